"""Keeps open prompts and the cards that show them in step, whichever of the two changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any
from weakref import WeakValueDictionary

import structlog
from pydantic import JsonValue

from clock import Clock
from conversation import MessageRecord
from discord_io.card import Card
from discord_io.channel_wire import PostError, Wires
from discord_io.split import MAX_LENGTH, clipped, length
from state.awaiting import MISSES_BEFORE_ASKING_AGAIN, ConversationStateManager, Miss
from state.prompts import Ask, AwaitingType, Prompt

log = structlog.get_logger()

EXPIRED = "I waited, but got no answer. Ask me again if you still want this."
CALLED_OFF = "Called off."
NO_NOTE = "No note."
ANSWERED = "✓ Answered."
REPLACED = "Replaced by another question."
ASKED_AGAIN = "Asked again below."
LET_GO = "I let this go."
WITHDRAWN = "Withdrawn."
GO_ON_SECONDS = 600.0  # the time to read an answer that was cut, before its offer to go on expires
LATE_SECONDS = 1.0  # between looks whether a prompt past its deadline can be ended
MAX_SHOWN = 100  # characters of an answer on a card


class PromptCards:
    """Opens, settles and expires prompts.

    said: (mini-app, channel id) -> whose words a mini-app keeps there, which its prompts may have: by the ids of the
    messages those of their authors.
    """

    def __init__(
        self,
        states: ConversationStateManager,
        wires: Wires,
        clock: Clock,
        said: Callable[[str, int], Mapping[int, int]] = lambda _miniapp_id, _channel_id: {},
    ) -> None:
        self._said = said
        self._states = states
        self._wires = wires
        self._clock = clock
        self._opened = asyncio.Event()
        self._edits: set[asyncio.Task[None]] = set()
        self._in_order: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()  # by message
        self._being_posted: dict[str, str] = {}

    def open(
        self,
        ask: Ask,
        source: MessageRecord,
        *,
        guild_id: int,
        channel_id: int,
        miniapp_id: str | None,
        parts: tuple[int, ...] = (),
        people: frozenset[int] = frozenset(),
    ) -> Prompt | None:
        """Opens a prompt for the author of `source`, or for anyone if so asked; shown() must follow.

        parts: the ids of the earlier messages of its burst. people: all whom the answer is for that ends with it.
        None: it is an offer to go on with an answer, and they have another open prompt, which stays.
        """
        owner = None if ask.anyone else source.author_id
        before = [p for p in self._states.prompts(channel_id) if p.user_id == owner]
        if ask.ends_with and any(self._states.is_open(p) and not p.ask.ends_with for p in before):
            return None
        prompt = self._states.set_awaiting(
            channel_id,
            ask,
            user_id=source.author_id,
            source_miniapp_id=miniapp_id,
            guild_id=guild_id,
            source_id=source.message_id,
            source_parts=parts,
            people=people,
            said=self._said(miniapp_id, channel_id) if miniapp_id else {},
        )
        if ask.ends_with:
            prompt = self._states.extend(prompt, GO_ON_SECONDS)
        self.settle(before, REPLACED)
        self._being_posted[prompt.id] = ""
        self._opened.set()
        return prompt

    def restore(self, channel_id: int, stored: JsonValue) -> None:
        """Restores a channel's prompts. Raises ValueError for what cannot be read."""
        self._states.restore(channel_id, stored)
        self._opened.set()

    def reopen(self, channel_id: int, prompt_id: str) -> Prompt | None:
        """Finds a prompt that an earlier process opened, and may not have posted yet; shown() must follow."""
        prompt = self._states.find(channel_id, prompt_id)
        if prompt:
            self._being_posted[prompt.id] = ""
        return prompt

    def missed(self, channel_id: int, user_id: int) -> Prompt | None:
        """Counts that another message of this user is being answered. Returns their prompt if it is to be shown again
        below the answer.

        shown() must then follow. An offer to go on with an answer stays, and is not shown again.
        """
        open_prompt = self._states.awaited_of(channel_id, user_id)
        if open_prompt is None or open_prompt.ask.ends_with:
            return None
        match self._states.missed(channel_id, user_id):
            case (prompt, Miss.ASKS_AGAIN):
                self._being_posted[prompt.id] = ""
                return prompt
            case (prompt, Miss.LETS_GO):
                self.settle([prompt], LET_GO)
        return None

    def shown(self, prompt: Prompt, message_id: int | None, question: str) -> None:
        """Records that a prompt was posted in this message of ours; None: it could not be posted."""
        ending = self._being_posted.pop(prompt.id, "")
        current = self._states.find(prompt.chat_guid, prompt.id)
        if message_id is None:
            if prompt.message_id is None:
                self._states.clear_prompt(prompt)
            elif current and current.misses:
                self._states.not_shown(current)
        elif current is None:
            self._close(replace(prompt, message_id=message_id, question=question), ending or LET_GO)
        else:
            if current.message_id not in (None, message_id):
                self._close(current, ASKED_AGAIN)
            self._states.shown(current, message_id, question)

    def settle(self, prompts: Iterable[Prompt], ending: str, *, but: int | None = None) -> None:
        """Edits the cards of prompts that have ended: adds how, removes the buttons. but: a message to leave out."""
        for prompt in prompts:
            if prompt.id in self._being_posted:
                self._being_posted[prompt.id] = ending
            if prompt.message_id not in (None, but):
                self._close(prompt, ending)

    def messages_gone(self, channel_id: int, message_ids: Collection[int], answered: Collection[int] = ()) -> None:
        """Ends the prompts whose cards, or whose questions, were deleted, those of mini-apps that may quote any, and
        offers to go on with an answer of which a part was. Soft context may come from any of them. answered: the
        questions that any of them answered."""
        self._states.drop_soft_context(channel_id)
        for prompt in self._states.prompts(channel_id):
            told = {prompt.source_id, *prompt.source_parts, prompt.message_id, *self._said_for(prompt)}
            is_gone = not told.isdisjoint(message_ids) or (prompt.ask.ends_with and prompt.source_id in answered)
            if is_gone and self._states.clear_prompt(prompt):
                self.settle([prompt] if prompt.message_id not in message_ids else [], WITHDRAWN)

    def reworded(self, channel_id: int, message_id: int) -> bool:
        """Ends the mini-apps' prompts that may quote a message that was edited, or that it led to, and drops such soft
        context. Returns whether there were any."""
        source = self._states.soft_context(channel_id).get("source_miniapp_id", "")
        is_quoted = message_id in self._said(source, channel_id)
        if is_quoted:
            self._states.drop_soft_context(channel_id)
        asked = [p for p in self._states.prompts(channel_id) if p.miniapp_id]
        quoting = [p for p in asked if message_id in (p.source_id, *p.source_parts, *self._said_for(p))]
        self.settle(filter(self._states.clear_prompt, quoting), WITHDRAWN)
        return is_quoted or bool(quoting)

    def withdraw(self, channel_id: int, is_meant: Callable[[int | None], bool]) -> None:
        """Ends the agent's prompts that are being posted, or on cards that are meant, and those of mini-apps that were
        asked again below an answer of the agent's. is_meant: called with the id."""
        for prompt in self._states.prompts(channel_id):
            is_gone = is_meant(prompt.message_id) or prompt.id in self._being_posted
            is_below_answer = prompt.miniapp_id is None or prompt.misses >= MISSES_BEFORE_ASKING_AGAIN
            if is_below_answer and is_gone and self._states.clear_prompt(prompt):
                self.settle([prompt], WITHDRAWN)

    def forget(self, channel_id: int, user_id: int | None) -> None:
        """Drops a person's prompt in a channel, with those of mini-apps that may quote them, or with None all of the
        channel's."""
        self.settle(self._states.forget(channel_id, user_id), WITHDRAWN)
        others = [p for p in self._states.prompts(channel_id) if user_id in self._said_for(p).values()]
        self.settle(filter(self._states.clear_prompt, others), WITHDRAWN)

    def _said_for(self, prompt: Prompt) -> Mapping[int, int]:
        """Whose words a prompt of a mini-app's may have, also those that the mini-app no longer keeps."""
        now = self._said(prompt.miniapp_id, int(prompt.chat_guid)) if prompt.miniapp_id else {}
        return {**prompt.said, **now}

    async def keep(self) -> None:
        """Expires prompts as their deadlines pass, until cancelled."""
        while True:
            self.settle(self._states.expire(), EXPIRED)
            self._opened.clear()
            deadline, now = self._states.next_deadline(), self._clock()
            # One past its deadline is kept while its channel is behind.
            seconds = None if deadline is None else (deadline - now).total_seconds() if deadline > now else LATE_SECONDS
            with suppress(TimeoutError):
                await asyncio.wait_for(self._opened.wait(), seconds)

    def _close(self, prompt: Prompt, ending: str) -> None:
        task = asyncio.create_task(self._edit(prompt, ending))
        self._edits.add(task)
        task.add_done_callback(self._edits.discard)

    async def _edit(self, prompt: Prompt, ending: str) -> None:
        wire, message_id = self._wires.open(prompt.guild_id, int(prompt.chat_guid)), prompt.message_id or 0
        async with self._in_order.setdefault(message_id, asyncio.Lock()):  # how it ended may be changed at once
            try:
                await wire.settle(message_id, settled(prompt, ending))
            except PostError as error:
                log.info("card_not_settled", channel=prompt.chat_guid, message=message_id, detail=str(error))


def card_of(prompt: Prompt) -> Card:
    """The card of a prompt: what is shown below its text."""
    return Card(prompt.id, prompt.ask.awaiting_type, prompt.ask.labels, numbered=not prompt.ask.ends_with)


def settled(prompt: Prompt, ending: str) -> str:
    """The final text of a card. Its own text may be the end of an answer, of which nothing is cut for the ending."""
    text = f"{prompt.question}\n\n-# {ending}"
    return text if length(text) <= MAX_LENGTH else prompt.question


def in_words(data: Mapping[str, Any], ask: Ask) -> str:
    """The answer as if it had been typed. data: the resolution's."""
    match ask.awaiting_type:
        case _ if data["type"] == "cancel":
            return CALLED_OFF
        case AwaitingType.SELECTION:
            return ask.labels[int(data["selection_index"]) - 1]
        case AwaitingType.CONFIRMATION:
            return "Yes" if data["confirmed"] else "No"
        case _:
            return str(data["content"])


def ending_of(data: Mapping[str, Any], ask: Ask) -> str:
    """What the card shows of the answer: no text that somebody wrote, as they may delete that."""
    is_free = ask.awaiting_type in (AwaitingType.INPUT, AwaitingType.METADATA)
    if data["type"] == "cancel":
        return NO_NOTE if ask.awaiting_type is AwaitingType.METADATA else CALLED_OFF
    return ANSWERED if is_free else f"✓ {clipped(' '.join(in_words(data, ask).split()), MAX_SHOWN)}"
