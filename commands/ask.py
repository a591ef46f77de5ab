"""/ask and "Answer this": questions that are answered to whoever asks alone, also where the bot is no member."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import discord
from discord import app_commands

from commands.answers import defer, follow_up
from conversation import MessageRecord
from discord_io.channel_history import without_lost_quote
from discord_io.incoming_messages import MessageReader, bot_of
from incoming import Incoming
from place import Place, PlaceKind
from state.consent import Consent
from turns.admission import refused_line
from turns.turn import Question

NOT_TO_READ = "That message is not for me to read."
NOTHING_TO_READ = "There is nothing in that message that I can read."
ANSWER_IT = "Please answer the message above."


class Answers(Protocol):
    """Who answers."""

    async def answer(self, question: Question, about: Sequence[MessageRecord] = ()) -> str: ...


class History(Protocol):
    """What is kept of the bot's own words."""

    async def quoted(self, channel_id: int, message_id: int) -> MessageRecord | None: ...


class Asking:
    """Reads what is asked by commands, and has it answered."""

    def __init__(self, reader: MessageReader, consent: Consent, history: History, answers: Answers) -> None:
        self._reader = reader
        self._consent = consent
        self._history = history
        self._answers = answers

    async def ask(self, interaction: discord.Interaction, words: str) -> str:
        """The answer to a question."""
        asked = self._reader.clicked(interaction, words, None)
        return _refused(interaction, asked) or await self._answers.answer(_question(interaction, asked))

    async def answer_this(self, interaction: discord.Interaction, message: discord.Message) -> str:
        """The answer to a message, as far as it may be told; its words are data, and no instructions."""
        me, channel_id = bot_of(interaction.client)[1], interaction.channel_id or 0
        record: MessageRecord | None = without_lost_quote(self._reader.record(message), me, {})
        if message.author.id == me:
            record = await self._history.quoted(channel_id, message.id)
        if record is None or self._consent.is_opted_out(record.author_id):
            return NOT_TO_READ
        if (told := self._consent.tellable(channel_id, record)) is None:
            return NOT_TO_READ
        if not (told.text or told.images):
            return NOTHING_TO_READ
        asked = self._reader.clicked(interaction, ANSWER_IT, None)
        return _refused(interaction, asked) or await self._answers.answer(_question(interaction, asked), [told])


def _refused(interaction: discord.Interaction, asked: Incoming) -> str | None:
    """Why somebody is not answered, by what is set where they ask; only its own members' servers set anything."""
    refused = asked.place.held.refuses(asked.record.author_id, asked.role_ids)
    return refused_line(refused) if refused and interaction.is_guild_integration() else None


def _question(interaction: discord.Interaction, asked: Incoming) -> Question:
    place = Place(0, interaction.channel_id or 0, PlaceKind.DIRECT, asked.place.bot_name)
    if interaction.is_guild_integration():
        # Of the place it is told no more than that nobody else reads along, and what is set there.
        place = replace(
            place, guild_id=interaction.guild_id or 0, parent_id=asked.place.parent_id, held=asked.place.held
        )
    is_exempt = asked.is_exempt and interaction.is_guild_integration()
    return Question(replace(asked.record, is_direct=True), place, is_private=True, is_exempt=is_exempt)


def add_ask(tree: app_commands.CommandTree, asking: Asking) -> None:
    @tree.command(description="Ask me something: you alone see the answer, and I keep nothing of it.")
    @app_commands.describe(question="What you want to know")
    @app_commands.allowed_installs(guilds=True, users=True)
    @app_commands.allowed_contexts(guilds=True, dms=True, private_channels=True)
    async def ask(interaction: discord.Interaction, question: app_commands.Range[str, 1, 4_000]) -> None:
        if await defer(interaction):  # a model is not asked for what nobody would see
            await follow_up(interaction, asking.ask(interaction, question), failed="ask_failed")

    @tree.context_menu(name="Answer this")
    @app_commands.allowed_installs(guilds=True, users=True)
    @app_commands.allowed_contexts(guilds=True, dms=True, private_channels=True)
    async def answer_this(interaction: discord.Interaction, message: discord.Message) -> None:
        if await defer(interaction):
            await follow_up(interaction, asking.answer_this(interaction, message), failed="ask_failed")
