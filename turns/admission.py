"""Whether what is to be answered may be: what the bot may do there, the caps, and whether it is shutting down."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import structlog

from decider import Decision, Reason
from incoming import Incoming
from state.limits import Cap, Limits, Refusal
from turns.ending_texts import NOT_ALLOWED, RESTARTING
from turns.gate import Gate
from turns.turn import Question
from turns.turn_queue import TurnQueue

log = structlog.get_logger()

CALLED = (Reason.EXPLICIT_TRIGGER, Reason.AWAITED, Reason.OFFER_ACCEPTED)


class Admission:
    """Admits questions and clicks."""

    def __init__(self, limits: Limits, gate: Gate, turns: TurnQueue) -> None:
        self._limits = limits
        self._gate = gate
        self._turns = turns

    def has_budget(self, now: datetime) -> bool:
        """Whether there are tokens left for more than to answer mentions."""
        return self._limits.may_judge(now)

    def permit(self, incoming: Incoming, question: Question, decision: Decision, *, costs_tokens: bool) -> Decision:
        """The decision to answer, unless something outside the conversation forbids it."""
        if self._turns.draining:
            return replace(decision, respond=False, reason=Reason.SHUTTING_DOWN)
        author_id = question.message.author_id
        refusal = self._limits.admit(
            author_id,
            incoming.channel_id,
            explicit=decision.reason in CALLED,
            now=incoming.now,
            costs_tokens=costs_tokens,
            tells=not decision.may_decline,
        )
        if not incoming.may_send:
            if incoming.may_react and not refusal:
                self._turns.react(question, NOT_ALLOWED)
            return replace(decision, respond=False, reason=Reason.MISSING_PERMISSION)
        if refusal is None:
            return decision
        if refusal.announce:
            log.warning("cap_reached", cap=refusal.cap.value, guild=incoming.guild_id, channel=incoming.channel_id)
            self._turns.announce(question, refusal_line(refusal))
        return replace(decision, respond=False, reason=_reason_of(refusal))

    def refuses_click(self, clicked: Incoming, *, costs_tokens: bool) -> str | None:
        """Why a click cannot be taken now, in a sentence."""
        if self._turns.draining or self._gate.is_closed(clicked.channel_id):
            return RESTARTING
        refusal = self._limits.admit(
            clicked.record.author_id,
            clicked.channel_id,
            explicit=True,
            now=clicked.now,
            costs_tokens=costs_tokens,
        )
        return refusal_line(refusal) if refusal else None


def _reason_of(refusal: Refusal) -> Reason:
    return Reason.USER_CAP if refusal.cap is Cap.USER else Reason.DAILY_CAP


def refusal_line(refusal: Refusal) -> str:
    again = f"<t:{int(refusal.resets_at.timestamp())}:R>"
    if refusal.cap is Cap.USER:
        return f"That was a lot at once. I answer you only sparingly for a moment; ask me again {again}."
    return f"My budget for today is nearly spent. I answer mentions only, as long as it lasts; it is renewed {again}."
