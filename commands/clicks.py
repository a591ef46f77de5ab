"""Clicks on the cards of prompts: the cards show what was answered, all else is seen only by whoever clicked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import discord

from agents.asking import APPROVAL
from delivery.card import Chosen, Click, Press, Written
from delivery.clicks import read_click, settle, show_form, whisper
from delivery.prompts import Prompts, ending_of, in_words, settled
from state.awaiting import ConversationStateManager, ProcessingResult, Prompt, RouteTarget
from state.prompts import Ask, AwaitingType, ResolutionType
from state.resolution import CALLED_OFF, Resolution, chosen, confirmed, given

TOO_LATE = "That question is no longer open."
NOT_YOURS = "That question was put to somebody else."
DOES_NOT_FIT = "That does not answer this question."
FORM_TITLES = {AwaitingType.INPUT: "Your answer", AwaitingType.METADATA: "Your note"}
FORM_SECONDS = 120.0  # to write in; the prompt's bound holds all the same


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
        elif not _may_answer(interaction, prompt, click):
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


def _may_answer(interaction: discord.Interaction, prompt: Prompt, click: Click) -> bool:
    """Whoever was asked; and where it is to allow something, whoever manages messages there, too."""
    is_asked = prompt.user_id in (None, click.user_id)
    return is_asked or bool(prompt.ask.context.get(APPROVAL) and interaction.permissions.manage_messages)


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
