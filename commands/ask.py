"""/ask and "Answer this": questions answered ephemerally, also in servers where the bot is no member."""

from __future__ import annotations

from dataclasses import replace

import discord
from discord import app_commands

from commands.answers import defer, follow_up
from conversation import MessageRecord
from discord_io.channel_history import ChannelHistory, with_forwarded, without_lost_quote
from discord_io.incoming_messages import MessageReader, bot_of
from incoming import Incoming
from place import Place, PlaceKind
from state.consent import Consent
from state.message import unquoting
from turns.admission import refused_line
from turns.private_answers import About, PrivateAnswers
from turns.turn import Question

NOT_TO_READ = "That message is not for me to read."
NOTHING_TO_READ = "There is nothing in that message that I can read."
CHANGED = "That message was changed or deleted just now, so I did not answer it."
ANSWER_IT = "Please answer the message above."


class Asking:
    """Reads questions from commands, and answers them."""

    def __init__(
        self, reader: MessageReader, consent: Consent, history: ChannelHistory, answers: PrivateAnswers
    ) -> None:
        self._reader = reader
        self._consent = consent
        self._history = history
        self._answers = answers

    async def ask(self, interaction: discord.Interaction, words: str) -> str:
        """Answers a question."""
        asked = self._reader.clicked(interaction, words, None)
        return _refused(interaction, asked) or await self._answers.answer(_question(interaction, asked))

    async def answer_this(self, interaction: discord.Interaction, message: discord.Message) -> None:
        """Answers a message, if the model may be told of it. Its words are data, not instructions."""
        read = self._reader.record(message)
        with self._answers.told_changes(interaction.channel_id or 0, [read]) as meanwhile:
            if await defer(interaction):  # else nobody would see the model's answer
                work = self._answer_this(interaction, message, read, meanwhile)
                await follow_up(interaction, work, failed="ask_failed")

    async def _answer_this(
        self, interaction: discord.Interaction, message: discord.Message, read: MessageRecord, meanwhile: About
    ) -> str:
        me, channel_id = bot_of(interaction.client)[1], interaction.channel_id or 0
        people = await self._history.forwarded(message)
        record: MessageRecord | None = without_lost_quote(with_forwarded(read, people), me, {})
        if message.author.id == me:
            record = await self._history.quoted(channel_id, message.id)
        if meanwhile.changes:
            return CHANGED
        if record is None or self._consent.is_opted_out(record.author_id):
            return NOT_TO_READ
        if (told := self._consent.tellable(channel_id, record)) is None:
            return NOT_TO_READ
        if not (told.text or told.images):
            return NOTHING_TO_READ
        asked = self._reader.clicked(interaction, ANSWER_IT, None)
        if not asked.reads_history:
            told = unquoting(told)
        return _refused(interaction, asked) or await self._answers.answer(_question(interaction, asked), [told])


def _refused(interaction: discord.Interaction, asked: Incoming) -> str | None:
    """Why the place's settings exclude somebody from answers. None: they do not, or the bot is no member there."""
    refused = asked.place.held.refuses(asked.record.author_id, asked.role_ids)
    return refused_line(refused) if refused and interaction.is_guild_integration() else None


def _question(interaction: discord.Interaction, asked: Incoming) -> Question:
    place = Place(0, interaction.channel_id or 0, PlaceKind.DIRECT, asked.place.bot_name)
    if interaction.is_guild_integration():
        # The model is told nothing of the place but its settings, and that nobody else reads the answer.
        place = replace(
            place, guild_id=interaction.guild_id or 0, parent_id=asked.place.parent_id, held=asked.place.held
        )
    is_exempt = asked.is_exempt and interaction.is_guild_integration()
    return Question(replace(asked.record, is_direct=True), place, is_private=True, is_exempt=is_exempt)


def add_ask(tree: app_commands.CommandTree, asking: Asking) -> None:
    @tree.command(description="Ask me something: only you see the answer, and I keep nothing of it.")
    @app_commands.describe(question="What you want to know")
    @app_commands.allowed_installs(guilds=True, users=True)
    @app_commands.allowed_contexts(guilds=True, dms=True, private_channels=True)
    async def ask(interaction: discord.Interaction, question: app_commands.Range[str, 1, 4_000]) -> None:
        if await defer(interaction):  # else nobody would see the model's answer
            await follow_up(interaction, asking.ask(interaction, question), failed="ask_failed")

    @tree.context_menu(name="Answer this")
    @app_commands.allowed_installs(guilds=True, users=True)
    @app_commands.allowed_contexts(guilds=True, dms=True, private_channels=True)
    async def answer_this(interaction: discord.Interaction, message: discord.Message) -> None:
        await asking.answer_this(interaction, message)
