"""What people do with a click: the commands `/why`, `/forget` and "Why?" on a message, and the cards of prompts.

All answers are ephemeral, but for a card, which shows what was answered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import aiohttp
import discord
import structlog
from discord import app_commands

from decider import LoggedDecision, RecentDecisions
from delivery.card import Chosen, Click, Press, Written
from delivery.clicks import read_click, settle, show_form, whisper
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

Forget = Callable[[int, int | None, int], None]
"""(channel id, author id or None for the whole conversation, id of the command) -> nothing older is remembered."""


def add_commands(tree: app_commands.CommandTree, decisions: RecentDecisions, forget: Forget) -> None:
    """Adds the commands to the tree."""

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

    @tree.command(name="forget", description="Forget what I remember of you in this channel.")
    @app_commands.describe(everything="The whole conversation, of everybody: for those who manage the channel")
    @app_commands.guild_only()
    async def forget_me(interaction: discord.Interaction, everything: bool = False) -> None:
        if everything and not interaction.permissions.manage_channels:
            await _tell(interaction, "Only those who manage this channel can have me forget the whole conversation.")
            return
        forget(interaction.channel_id or 0, None if everything else interaction.user.id, interaction.id)
        whose = "the conversation in this channel" if everything else "what you said in this channel"
        await _tell(interaction, f"Done: I have forgotten {whose}.")


class Clicks:
    """Clicks on the cards of prompts: each resolves its prompt as typed words would, and only once.

    refuse: says why a click cannot be taken now, or None. submit: is given the interaction and what
    it means, and ends the prompt.
    """

    def __init__(
        self,
        states: ConversationStateManager,
        prompts: Prompts,
        *,
        refuse: Callable[[discord.Interaction, Prompt], str | None],
        submit: Callable[[discord.Interaction, ProcessingResult], None],
    ) -> None:
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


async def _tell(interaction: discord.Interaction, text: str) -> None:
    try:
        await interaction.response.send_message(text, ephemeral=True, allowed_mentions=discord.AllowedMentions.none())
    except (discord.HTTPException, aiohttp.ClientError) as error:
        log.warning("interaction_failed", channel=interaction.channel_id, detail=str(error))  # after 3 s it is void


def _link(interaction: discord.Interaction, entry: LoggedDecision) -> str:
    return f"https://discord.com/channels/{interaction.guild_id}/{entry.channel_id}/{entry.message_id}"
