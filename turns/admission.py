"""Admission of questions and clicks: place settings, permissions, caps, and shutting down."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import structlog

from agents.gateway import FailureKind
from decider import CALLING, Decision, Reason
from incoming import Incoming
from place import Place, PlaceKind
from place_settings.document import PAUSED
from place_settings.guild_settings import GuildSettings
from place_settings.inheritance import Refused
from state.direct_messages import DirectMessages
from state.limits import Cap, Limits, Refusal
from state.spending import Payer
from turns.endings import NOT_ALLOWED, RESTARTING, SENTENCES, budget_line, why_silent
from turns.gate import Gate
from turns.turn import Question, payer_of
from turns.turn_queue import TurnQueue
from turns.turn_slots import TurnSlots

log = structlog.get_logger()

CLOSED_THREADS = (
    "{name}, I cannot answer in <#{thread}>: in the threads of this channel I lack the permission "
    "*Send Messages in Threads*."
)
CALLED = CALLING | {Reason.AWAITED, Reason.OFFER_ACCEPTED}
NO_DIRECT_MESSAGES = (
    "I do not answer direct messages. Mention me in a server that we are both in, and I will answer you there."
)
DIRECT_MESSAGES_OF_SOME = (
    "I answer direct messages from some people only, and you are not on the list. Mention me in a server that we are "
    "both in, and I will answer you there."
)
SILENCING = {
    "allowed_channels": Reason.CHANNEL_NOT_LISTED,
    "blocked_channels": Reason.CHANNEL_NOT_LISTED,
    "answers": Reason.ANSWERS_OFF,
    PAUSED: Reason.PAUSED,
    "threads": Reason.THREADS_OFF,
}
"""The reason for each setting that silences a place; other settings say who is answered there."""


class Admission:
    """Admits questions and clicks. direct: who may send direct messages. settings: of places. slots: for which turns
    wait."""

    def __init__(
        self,
        limits: Limits,
        gate: Gate,
        turns: TurnQueue,
        direct: DirectMessages,
        settings: GuildSettings,
        slots: TurnSlots,
    ) -> None:
        self._slots = slots
        self._settings = settings
        self._direct = direct
        self._limits = limits
        self._gate = gate
        self._turns = turns
        self._told_above: set[int | None] = set()  # channels, so bounded by those that the bot sees

    def refuses_here(self, incoming: Incoming, question: Question) -> Decision | None:
        """The decision on a message that the settings of its place refuse; None: they allow an answer."""
        refused = incoming.place.held.refuses(question.message.author_id, incoming.role_ids)
        if refused is None:
            return self._refuses_direct(incoming, question) if incoming.place.kind is PlaceKind.DIRECT else None
        reason = Reason.SETTINGS_UNREAD if refused.is_unread else SILENCING.get(refused.name, Reason.NOT_ALLOWED)
        return Decision(False, reason, evidence="" if reason is Reason.PAUSED else refused.in_words)

    def _refuses_direct(self, incoming: Incoming, question: Question) -> Decision | None:
        """The decision on a direct message that is refused, which its author is told once a day; None: it is not."""
        if self._direct.takes(question.message.author_id):
            return None
        if self._gate.is_ending(question.guild_id):
            return Decision(False, Reason.SHUTTING_DOWN)
        if self._direct.tells(question.message.author_id, incoming.now):
            self._turns.announce(question, self._no_direct_messages)
        return Decision(False, Reason.DIRECT_MESSAGES_OFF)

    @property
    def _no_direct_messages(self) -> str:
        return NO_DIRECT_MESSAGES if self._direct.mode == "off" else DIRECT_MESSAGES_OF_SOME

    def permit(self, incoming: Incoming, question: Question, decision: Decision) -> Decision:
        """The decision; turned to silence where a permission, a cap or shutting down forbids an answer."""
        if not decision.respond:
            return decision
        if self._gate.is_ending(question.guild_id):
            return replace(decision, respond=False, reason=Reason.SHUTTING_DOWN)
        refusal = self._limits.admit(
            question.message.author_id,
            question.channel_id,
            explicit=decision.reason in CALLED,
            now=incoming.now,
            payer=question.payer,
            costs_tokens=not question.by_miniapp,
            tells=incoming.may_send and not decision.may_decline,
            is_full=self._slots.is_full(question.guild_id, question.channel_id),
        )
        if not incoming.may_send:
            if incoming.may_react and not refusal:
                self._turns.react(question, NOT_ALLOWED)
                self._tell_above(question, decision)
            return replace(decision, respond=False, reason=Reason.MISSING_PERMISSION)
        if refusal is None:
            return decision
        if refusal.announce:
            log.warning("cap_reached", cap=refusal.cap.value, guild=question.guild_id, channel=question.channel_id)
            self._turns.announce(question, refusal_line(refusal))
        reason = {Cap.USER: Reason.USER_CAP, Cap.QUEUE: Reason.QUEUE_FULL}.get(refusal.cap, Reason.DAILY_CAP)
        evidence = why_silent(refusal.reached) if refusal.reached else ""
        return replace(decision, respond=False, reason=reason, evidence=evidence, contrary="")

    def _tell_above(self, question: Question, decision: Decision) -> None:
        """Explains once, in the parent channel of a thread where the bot may not write, why a call gets no answer."""
        place = question.place
        if not place.is_thread or place.kind is PlaceKind.POST or decision.reason not in CALLED:
            return  # a forum holds nothing but posts
        if place.kind is PlaceKind.PRIVATE_THREAD or self._settings.at(place.above).silenced:
            return  # nobody else may learn who is in a private thread
        if place.parent_id not in self._told_above:
            self._told_above.add(place.parent_id)
            told = CLOSED_THREADS.format(name=question.message.author, thread=place.channel_id)
            # A reply to the starter message, if it is in the channel: it has the thread's id.
            self._turns.announce(replace(question, place=place.above, card_id=place.channel_id), told)

    def not_allowed(self, clicked: Incoming) -> str | None:
        """Why a click that asks for no answer is refused now, in a sentence; None: it is not."""
        guild_id = clicked.place.guild_id
        if self._gate.is_closed(clicked.place.channel_id, guild_id) or self._gate.is_ending(guild_id):
            return RESTARTING
        if clicked.place.kind is PlaceKind.DIRECT and not self._direct.takes(clicked.record.author_id):
            return self._no_direct_messages
        refused = clicked.place.held.refuses(clicked.record.author_id, clicked.role_ids)
        return refused_line(refused) if refused else None

    def refuses_click(self, clicked: Incoming, *, costs_tokens: bool) -> str | None:
        """Why a click that asks for an answer is refused now, in a sentence; None: it is not, and it is counted."""
        if refusal := self.not_allowed(clicked):
            return refusal
        people = frozenset({clicked.record.author_id})
        payer = payer_of(clicked.place, people, people if clicked.is_exempt else frozenset())
        return self.refuses(payer, clicked.place, clicked.now, costs_tokens=costs_tokens)

    def refuses(self, payer: Payer, place: Place, now: datetime, *, costs_tokens: bool) -> str | None:
        """Why a click or command is refused now, in a sentence; None: it is not, and it is counted."""
        if self._gate.is_ending(place.guild_id):
            return RESTARTING
        (user_id,) = payer.people
        refusal = self._limits.admit(
            user_id,
            place.channel_id,
            explicit=True,
            now=now,
            payer=payer,
            costs_tokens=costs_tokens,
            is_full=self._slots.is_full(place.guild_id, place.channel_id),
        )
        return refusal_line(refusal) if refusal else None


def refused_line(refused: Refused) -> str:
    """The answer to a click or command that the settings of the place refuse."""
    return f"I may not answer you here, because of {refused.in_words}."


def refusal_line(refusal: Refusal) -> str:
    if refusal.cap is Cap.QUEUE:
        return SENTENCES[FailureKind.WAITED]
    if refusal.reached is None:
        again = f"<t:{int(refusal.resets_at.timestamp())}:R>"
        return f"That was a lot at once. Please give me a moment, and ask me again {again}."
    return budget_line(refusal.reached)
