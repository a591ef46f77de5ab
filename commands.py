"""What people do with a click: the commands, "Why?" on a message, and the cards of prompts.

All answers are ephemeral, but for a card, which shows what was answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from io import BytesIO
from typing import Protocol
from zipfile import ZIP_DEFLATED, ZipFile

import aiohttp
import discord
import structlog
from discord import app_commands

from decider import LoggedDecision, RecentDecisions
from delivery.card import Chosen, Click, Press, Written
from delivery.clicks import UNANSWERABLE, read_click, settle, show_form, whisper
from delivery.prompts import Prompts, ending_of, in_words, settled
from state.awaiting import ConversationStateManager, ProcessingResult, Prompt, RouteTarget
from state.prompts import Ask, AwaitingType, ResolutionType
from state.resolution import CALLED_OFF, Resolution, chosen, confirmed, given

log = structlog.get_logger()

SHOWN = 5
NOTHING_KNOWN = (
    "I remember no decision about that. I keep the last ones only, and none of messages from before I was started, "
    "in direct messages, in threads, or by bots."
)

TOO_LATE = "That question is no longer open."
NOT_YOURS = "That question was put to somebody else."
DOES_NOT_FIT = "That does not answer this question."
FORM_TITLES = {AwaitingType.INPUT: "Your answer", AwaitingType.METADATA: "Your note"}
FORM_SECONDS = 120.0  # to write in; the prompt's bound holds all the same

NOT_A_MANAGER = "Only those who manage this channel can have me forget the whole conversation."
FORGOTTEN = "Done: I have forgotten what you said, in all channels. /optout keeps me from reading more."
CHANNEL_FORGOTTEN = "Done: I have forgotten the conversation in this channel."
OPTED_OUT = "Done: I have forgotten what you said, and from now on I read only those of your messages that mention me."
OUT_ALREADY = "You had opted out already: I read only those of your messages that mention me."
OPTED_IN = "Done: from now on I read your messages again."
IN_ALREADY = "You have not opted out: I read your messages."
NOTHING_KEPT = "I keep nothing of what you said."
EXPORTED = "This is what I keep of what you said."
TOO_LARGE = "What I keep of what you said is too large for a file in Discord, even zipped: ask whoever runs me for it."
INCOMPLETE = "That could not be done completely. Whoever runs me finds the reason in my log; please try again later."

EXPORT_NAME = "messages.json"
UNZIPPED_BYTES = 1_000_000


class Privacy(Protocol):
    """What people can have done with what is kept of them. at: the id of the interaction: what is older goes.

    Each raises OSError where it could not be done completely.
    """

    async def forget_person(self, user_id: int, at: int) -> None:
        """Everywhere: memory, sessions, journals, backups, decision log."""

    async def forget_channel(self, channel_id: int, at: int) -> None:
        """What anybody said in one channel."""

    async def opt_out(self, user_id: int, at: int) -> None:
        """Also forgets the person."""

    async def opt_in(self, user_id: int) -> None: ...

    def is_opted_out(self, user_id: int) -> bool: ...

    async def export(self, user_id: int) -> bytes:
        """The person's own messages: JSON in UTF-8; empty where there are none."""


def add_commands(tree: app_commands.CommandTree, decisions: RecentDecisions, privacy: Privacy) -> None:
    """Adds the commands to the tree."""
    _add_why(tree, decisions)
    _add_forget(tree, privacy)
    _add_opting(tree, privacy)
    _add_export(tree, privacy)


def _add_why(tree: app_commands.CommandTree, decisions: RecentDecisions) -> None:
    @tree.command(description="Why did I answer, or not answer, the last messages in this channel?")
    @app_commands.guild_only()
    async def why(interaction: discord.Interaction) -> None:
        latest = decisions.latest(interaction.channel_id or 0, SHOWN)
        lines = [f"- {_link(interaction, entry)} {entry.decision.in_words()}" for entry in latest]
        await _tell(interaction, "\n".join(lines) or NOTHING_KNOWN)

    @tree.context_menu(name="Why?")
    @app_commands.guild_only()
    async def why_this(interaction: discord.Interaction, message: discord.Message) -> None:
        question_id = (
            message.reference.message_id if message.reference and message.author == interaction.client.user else None
        )
        entry = decisions.find(question_id or message.id)
        words = entry.decision.in_words() if entry else NOTHING_KNOWN
        await _tell(interaction, words[:1].upper() + words[1:])


def _add_forget(tree: app_commands.CommandTree, privacy: Privacy) -> None:
    @tree.command(description="Forget what I keep of what you said, in all channels.")
    @app_commands.describe(everything="All that anybody said in this channel: for those who manage it")
    @app_commands.guild_only()
    async def forget(interaction: discord.Interaction, everything: bool = False) -> None:
        if everything and not interaction.permissions.manage_channels:
            await _tell(interaction, NOT_A_MANAGER)
        elif everything:
            await _carry_out(interaction, forget_channel)
        else:
            await _carry_out(interaction, forget_person)

    async def forget_channel(interaction: discord.Interaction) -> str:
        await privacy.forget_channel(interaction.channel_id or 0, interaction.id)
        return CHANNEL_FORGOTTEN

    async def forget_person(interaction: discord.Interaction) -> str:
        await privacy.forget_person(interaction.user.id, interaction.id)
        return FORGOTTEN


def _add_opting(tree: app_commands.CommandTree, privacy: Privacy) -> None:
    @tree.command(description="Forget what you said, and read only those of your messages that mention me.")
    @app_commands.guild_only()
    async def optout(interaction: discord.Interaction) -> None:
        await _carry_out(interaction, opt_out)

    @tree.command(description="Read your messages again, after /optout.")
    @app_commands.guild_only()
    async def optin(interaction: discord.Interaction) -> None:
        await _carry_out(interaction, opt_in)

    async def opt_out(interaction: discord.Interaction) -> str:
        was_out = privacy.is_opted_out(interaction.user.id)
        # Also then: the first time may have been incomplete.
        await privacy.opt_out(interaction.user.id, interaction.id)
        return OUT_ALREADY if was_out else OPTED_OUT

    async def opt_in(interaction: discord.Interaction) -> str:
        if not privacy.is_opted_out(interaction.user.id):
            return IN_ALREADY
        await privacy.opt_in(interaction.user.id)
        return OPTED_IN


def _add_export(tree: app_commands.CommandTree, privacy: Privacy) -> None:
    @tree.command(description="Give me a file with what you keep of what I said.")
    @app_commands.guild_only()
    async def export(interaction: discord.Interaction) -> None:
        await _carry_out(interaction, as_file)

    async def as_file(interaction: discord.Interaction) -> discord.File | str:
        name, content = EXPORT_NAME, await privacy.export(interaction.user.id)
        if not content:
            return NOTHING_KEPT
        if len(content) > UNZIPPED_BYTES:
            name, content = f"{EXPORT_NAME}.zip", await asyncio.to_thread(_zipped, name, content)
        return discord.File(BytesIO(content), name) if len(content) <= interaction.filesize_limit else TOO_LARGE


def _zipped(name: str, content: bytes) -> bytes:
    packed = BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return packed.getvalue()


class Clicks:
    """Clicks on the cards of prompts: each resolves its prompt as typed words would, and only once.

    refuse: says why a click cannot be taken now, or None. submit: is given the interaction and what
    it means, and ends the prompt. stored: waits, shortly, until that would survive a kill.
    """

    def __init__(
        self,
        states: ConversationStateManager,
        prompts: Prompts,
        *,
        refuse: Callable[[discord.Interaction, Prompt], str | None],
        submit: Callable[[discord.Interaction, ProcessingResult], None],
        stored: Callable[[], Awaitable[None]],
    ) -> None:
        self._stored = stored
        self._states = states
        self._prompts = prompts
        self._refuse = refuse
        self._submit = submit

    async def answer(self, interaction: discord.Interaction) -> None:
        """Answers an interaction if it is a click on a card."""
        click = read_click(interaction)
        if click is None:
            return
        prompt = self._states.find(interaction.channel_id or 0, click.prompt_id)
        if prompt is None or not self._states.is_open(prompt):
            await whisper(interaction, _with_words(TOO_LATE, click))
        elif prompt.user_id not in (None, click.user_id):
            await whisper(interaction, NOT_YOURS)
        elif click.action is Press.OPEN_FORM and prompt.ask.awaiting_type in FORM_TITLES:
            self._states.extend(prompt, FORM_SECONDS)
            await show_form(interaction, prompt.id, FORM_TITLES[prompt.ask.awaiting_type], prompt.question)
        elif (resolution := resolution_of(click, prompt.ask)) is None:
            await whisper(interaction, DOES_NOT_FIT)
        elif refusal := self._refuse(interaction, prompt):
            await whisper(interaction, _with_words(refusal, click))
        else:
            await self._resolve(interaction, prompt, resolution, click)

    async def _resolve(
        self, interaction: discord.Interaction, prompt: Prompt, resolution: Resolution, click: Click
    ) -> None:
        if resolution.type is ResolutionType.CANCEL:
            self._states.clear_prompt(prompt)
        else:
            self._submit(interaction, _meaning(prompt, resolution, click))
            await self._stored()  # before anybody sees that it counts: a click cannot be read again after a kill
        ending = ending_of(resolution.data, prompt.ask)
        card = interaction.message
        self._prompts.settle([prompt], ending, but=card.id if card else None)
        if card:
            # Its own text, since a card can be clicked before the record knows how it was posted.
            here = replace(prompt, message_id=card.id, question=card.content)
            if not await settle(interaction, settled(here, ending)):
                self._prompts.settle([here], ending)


def _with_words(sentence: str, click: Click) -> str:
    """What was written into a form is given back: nobody likes to write it twice."""
    return f"{sentence} You wrote:\n{click.action.text}" if isinstance(click.action, Written) else sentence


def resolution_of(click: Click, ask: Ask) -> Resolution | None:
    """What a click resolves; None for one that the prompt does not offer."""
    match ask.awaiting_type, click.action:
        case AwaitingType.SELECTION, Chosen(index) if index < len(ask.options):
            return chosen(ask, index)
        case AwaitingType.CONFIRMATION, Press.YES | Press.NO:
            return confirmed(click.action is Press.YES)
        case AwaitingType.INPUT | AwaitingType.METADATA, Written(text) if text.strip():
            return given(ask, text)
        case AwaitingType.METADATA, Press.CANCEL:
            return CALLED_OFF
        case _:
            return None


def _meaning(prompt: Prompt, resolution: Resolution, click: Click) -> ProcessingResult:
    words = click.action.text if isinstance(click.action, Written) else in_words(resolution.data, prompt.ask)
    return ProcessingResult(
        RouteTarget.MINIAPP if prompt.miniapp_id else RouteTarget.AGENT,
        miniapp_id=prompt.miniapp_id,
        resolution_type=resolution.type,
        resolution_data=resolution.data,
        query=words,
        enriched_query=words,
        prompt=prompt,
    )


async def sync(tree: app_commands.CommandTree) -> None:
    """Tells Discord of the commands. Without that the bot still answers; it is logged, no more."""
    try:
        await tree.sync()
    except (discord.DiscordException, aiohttp.ClientError, OSError) as error:
        log.warning("command_sync_failed", detail=str(error))


async def _carry_out(
    interaction: discord.Interaction, work: Callable[[discord.Interaction], Awaitable[str | discord.File]]
) -> None:
    """Does what can take longer than the 3 s that Discord waits for an answer, and then says what became of it.

    It is done even where Discord takes no answer: what somebody wants gone goes.
    """
    await _take(interaction, interaction.response.defer(ephemeral=True, thinking=True))
    try:
        outcome = await work(interaction)
    except OSError as error:
        log.error("privacy_failed", **_ids(interaction), command=_name(interaction), detail=str(error))
        outcome = INCOMPLETE
    if isinstance(outcome, discord.File):
        await _take(interaction, interaction.edit_original_response(content=EXPORTED, attachments=[outcome]))
    else:
        await _take(interaction, interaction.edit_original_response(content=outcome))


async def _tell(interaction: discord.Interaction, text: str) -> None:
    nobody = discord.AllowedMentions.none()
    await _take(interaction, interaction.response.send_message(text, ephemeral=True, allowed_mentions=nobody))


async def _take(interaction: discord.Interaction, answer: Awaitable[object]) -> None:
    """Sends an answer. That Discord does not take it is logged, no more."""
    try:
        await answer
    except UNANSWERABLE as error:
        log.warning("interaction_failed", **_ids(interaction), command=_name(interaction), detail=str(error))


def _name(interaction: discord.Interaction) -> str:
    return interaction.command.name if interaction.command else ""


def _ids(interaction: discord.Interaction) -> dict[str, int | None]:
    return {"guild": interaction.guild_id, "channel": interaction.channel_id, "user": interaction.user.id}


def _link(interaction: discord.Interaction, entry: LoggedDecision) -> str:
    return f"https://discord.com/channels/{interaction.guild_id}/{entry.channel_id}/{entry.message_id}"
