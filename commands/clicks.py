"""Clicks on the cards of prompts. A card shows what was answered; all other responses are ephemeral."""

from __future__ import annotations

from dataclasses import replace

import discord

from agents.asking import APPROVAL
from commands.items import CLICK_PATIENCE_SECONDS
from conversation import ConversationManager
from discord_io.card import Chosen, Click, Press, Written
from discord_io.incoming_messages import MessageReader
from discord_io.interactions import read_click, settle, show_form, whisper
from discord_io.prompt_cards import PromptCards, ending_of, in_words, settled
from incoming import Incoming
from offers.offer import LABELS, Reply
from persistence.snapshots import Snapshots
from place import Place
from state.awaiting import ConversationStateManager, ProcessingResult, RouteTarget
from state.prompts import Ask, AwaitingType, Prompt, ResolutionType
from state.resolution import CALLED_OFF, Resolution, chosen, confirmed, given
from turns.admission import Admission
from turns.message_handler import MessageHandler

TOO_LATE = "That question is no longer open."
NOT_YOURS = "That question was for somebody else."
DOES_NOT_FIT = "That does not answer this question."
FORM_TITLES = {AwaitingType.INPUT: "Your answer", AwaitingType.METADATA: "Your note"}
FORM_SECONDS = 120.0  # to fill in the form; the prompt's own bound still holds


class ClickEdge:
    """Converts interactions into Incomings for the message handler."""

    def __init__(
        self,
        reader: MessageReader,
        conversations: ConversationManager,
        admission: Admission,
        handler: MessageHandler,
        snapshots: Snapshots,
    ) -> None:
        self._reader = reader
        self._conversations = conversations
        self._admission = admission
        self._handler = handler
        self._snapshots = snapshots

    def refusal(self, interaction: discord.Interaction, *, costs_tokens: bool) -> str | None:
        """The reason a click that asks for an answer cannot be accepted now, as a sentence; None: it can."""
        return self._admission.refuses_click(self._incoming(interaction, ""), costs_tokens=costs_tokens)

    def place(self, interaction: discord.Interaction) -> Place:
        """The place of the click, with its current settings."""
        return self._incoming(interaction, "").place

    def not_allowed(self, interaction: discord.Interaction) -> str | None:
        """The reason a click that asks for no answer cannot be accepted now, as a sentence; None: it can."""
        return self._admission.not_allowed(self._incoming(interaction, ""))

    async def resolve(self, interaction: discord.Interaction, meaning: ProcessingResult) -> None:
        """Queues the answer that a click gives to a prompt, which ends the prompt."""
        self._handler.resolve(self._incoming(interaction, meaning.query), meaning)
        await self.stored()

    async def accept(self, interaction: discord.Interaction) -> None:
        """Accepts the offer that was clicked."""
        self._handler.accept(self._incoming(interaction, LABELS[Reply.YES]))
        await self.stored()

    async def stored(self) -> None:
        """Waits, for 1.5 s at most, until a click is stored, before anybody sees that it counts.

        After a kill a click cannot be fetched from Discord again, as a message can.
        """
        await self._snapshots.noted(CLICK_PATIENCE_SECONDS)

    def _incoming(self, interaction: discord.Interaction, words: str) -> Incoming:
        return self._reader.clicked(interaction, words, self._conversations.get(interaction.channel_id or 0))


class Clicks:
    """Handles clicks on the cards of prompts: each resolves its prompt as typed words would, and only once."""

    def __init__(self, states: ConversationStateManager, prompts: PromptCards, edge: ClickEdge) -> None:
        self._states = states
        self._prompts = prompts
        self._edge = edge

    async def answer(self, interaction: discord.Interaction) -> None:
        """Handles an interaction if it is a click on the card of a prompt."""
        click = read_click(interaction)
        if click is None:
            return
        prompt = self._states.find(interaction.channel_id or 0, click.prompt_id)
        if prompt is None or not self._states.is_open(prompt, interaction.created_at):
            await whisper(interaction, _with_words(TOO_LATE, click))
        elif prompt.user_id not in (None, click.user_id) and not (
            prompt.ask.context.get(APPROVAL) and interaction.permissions.manage_messages
        ):  # an approval may also be given by those who manage messages there
            await whisper(interaction, NOT_YOURS)
        elif click.action is Press.OPEN_FORM and prompt.ask.awaiting_type in FORM_TITLES:
            self._states.extend(prompt, FORM_SECONDS)
            # A form needs a text: the card's own if it is clicked before the prompt's record has its question.
            question = form_question(prompt) or (interaction.message.content if interaction.message else "")
            await show_form(interaction, prompt.id, FORM_TITLES[prompt.ask.awaiting_type], question)
        elif (resolution := resolution_of(click, prompt.ask)) is None:
            await whisper(interaction, DOES_NOT_FIT)
        elif refusal := self._edge.refusal(interaction, costs_tokens=prompt.miniapp_id is None):
            await whisper(interaction, _with_words(refusal, click))
        else:
            await self._resolve(interaction, prompt, resolution, click)

    async def _resolve(
        self, interaction: discord.Interaction, prompt: Prompt, resolution: Resolution, click: Click
    ) -> None:
        if resolution.type is ResolutionType.CANCEL:
            self._states.clear_prompt(prompt)
        else:
            words = click.action.text if isinstance(click.action, Written) else in_words(resolution.data, prompt.ask)
            meaning = ProcessingResult(
                RouteTarget.MINIAPP if prompt.miniapp_id else RouteTarget.AGENT,
                miniapp_id=prompt.miniapp_id,
                resolution_type=resolution.type,
                resolution_data=resolution.data,
                query=words,
                enriched_query=words,
                prompt=prompt,
            )
            await self._edge.resolve(interaction, meaning)
        ending = ending_of(resolution.data, prompt.ask)
        card = interaction.message
        self._prompts.settle([prompt], ending, but=card.id if card else None)
        if card:
            # With the card's id and text, since it can be clicked before the prompt's record has them.
            here = replace(prompt, message_id=card.id, question=card.content)
            if not await settle(interaction, settled(here, ending)):
                self._prompts.settle([here], ending)


def _with_words(sentence: str, click: Click) -> str:
    """The sentence, with the text of a form below it, so that nobody has to write that twice."""
    return f"{sentence} You wrote:\n{click.action.text}" if isinstance(click.action, Written) else sentence


def form_question(prompt: Prompt) -> str:
    """The form's question. The card of a note only says what was done, so the subject is taken from its context."""
    if prompt.ask.awaiting_type is not AwaitingType.METADATA:
        return prompt.question
    name = prompt.ask.context.get("target_item_name")
    return f"What shall I note about {name}?" if name else "What shall I note?"


def resolution_of(click: Click, ask: Ask) -> Resolution | None:
    """The resolution that a click gives. None: the prompt has no such button."""
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
