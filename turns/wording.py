"""How a turn ends, in words."""

from __future__ import annotations

from typing import assert_never

from agents.gateway import Answer, Failure, FailureKind
from delivery.split import closed
from turns.turn import Cancel, Turn

NOT_ALLOWED = "🔇"

# A mini-app's failure brings its own.
SENTENCES = {
    FailureKind.BUSY: "My model is overloaded or out of quota. Please ask me again in a moment.",
    FailureKind.MISCONFIGURED: "My model is not set up correctly. Whoever runs me finds the reason in my log.",
    FailureKind.REJECTED: "My model did not accept that. Please put it differently.",
    FailureKind.TOO_LONG: "Our conversation had grown too long for my model. I start afresh: please ask me again.",
    FailureKind.UNAVAILABLE: "My model cannot be reached. Please ask me again in a moment.",
    FailureKind.LATE: "My model took too long. Please ask me again.",
    FailureKind.EMPTY: "My model had no answer to that. Please put it differently.",
    FailureKind.INTERNAL: "Something went wrong on my side. Please ask me again.",
}
CUT = "That is as much as I say in one go."
STOPPED = "Stopped."
OVER_BUDGET = "My budget for today is spent. Please ask me again tomorrow."
RESTARTING = "I am being restarted. Please ask me again in a minute."
UNPOSTABLE = "I had an answer, but Discord did not let me post it."


def final_text(turn: Turn, outcome: Answer | Failure | Cancel) -> str:
    """What stands in the channel in the end; empty: nothing."""
    match outcome:
        case Answer():
            return _with_note(outcome.text, CUT) if outcome.was_cut else outcome.text
        case Failure():
            return _with_note(outcome.text, SENTENCES[outcome.kind]) if outcome.kind in SENTENCES else outcome.text
        case Cancel.STOPPED:
            return _with_note(turn.text, STOPPED)
        case Cancel.SHUTDOWN:
            return _with_note(turn.text, RESTARTING)
        case Cancel.OVER_BUDGET:
            return OVER_BUDGET
        case Cancel.WITHDRAWN:
            return ""
        case Cancel.UNDELIVERABLE:
            return turn.text
        case _:
            assert_never(outcome)


def _with_note(text: str, note: str) -> str:
    return f"{closed(text)}\n\n-# {note}" if text.strip() else note
