"""Reports of turns for those who run the bot: how each ended, and a sentence on what went wrong."""

from __future__ import annotations

from datetime import datetime

from activity import Ending, FaultKind, TurnEnded
from agents.gateway import FailureKind
from discord_io.channel_wire import Problem
from turns.turn import Cancel, Turn

AGENT_FAULTS = {
    FailureKind.BUSY: "The model was overloaded, or its rate limit was reached.",
    FailureKind.NO_CREDIT: "The model's provider says that the quota or credit is used up: top it up there.",
    FailureKind.MISCONFIGURED: "The model's provider refused the key or the model's name: check MODEL and its key.",
    FailureKind.REJECTED: "The model's provider did not accept a request.",
    FailureKind.TOO_LONG: "A conversation became too long for the model, and a new one was started.",
    FailureKind.UNAVAILABLE: "The model could not be reached, or stopped in the middle of an answer.",
    FailureKind.LATE: "The model took too long to answer.",
    FailureKind.EMPTY: "The model gave an empty answer.",
    FailureKind.OUT_OF_ROOM: "The model ran out of room before it had an answer.",
    FailureKind.WITHHELD: "The model's content filter withheld an answer.",
    FailureKind.OVER_BUDGET: "A budget was spent in the middle of an answer.",
    FailureKind.TURN_CAP: "An answer would have taken more than TURN_TOKENS allows.",
    FailureKind.INTERNAL: "An error of the bot's own ended an answer: its log has the details.",
    FailureKind.MINIAPP: "A mini-app failed: the log has the details.",
}
POST_FAULTS = {
    Problem.FORBIDDEN: "Discord does not let the bot post in this channel: give it View Channel and Send Messages.",
    Problem.BLOCKED: "An answer could not be posted: its reader takes no direct messages from the bot.",
    Problem.REJECTED: "Discord did not accept an answer.",
    Problem.GONE: "An answer could not be posted: its channel or message is gone.",
    Problem.LOCKED: "An answer could not be posted: its thread is locked or archived.",
    Problem.UNREACHABLE: "Discord could not be reached for so long that an answer was given up.",
    Problem.UNKNOWN: "It cannot be known whether Discord took an answer.",
}
OURS = {FailureKind.INTERNAL, FailureKind.MINIAPP}
ENDINGS = {
    "finished": Ending.ANSWERED,
    **{kind.value: Ending.FAILED for kind in FailureKind},
    **{cancel.value: Ending.STOPPED for cancel in Cancel},
    Cancel.OVER_BUDGET.value: Ending.FAILED,
    Cancel.UNDELIVERABLE.value: Ending.UNDELIVERED,
}


def agent_fault(failure: FailureKind, remote: str = "") -> tuple[FaultKind, str]:
    """The kind of fault and the sentence for a failure. remote: name of the remote agent that failed; empty: none."""
    if failure in OURS:
        return FaultKind.INTERNAL, AGENT_FAULTS[failure]
    if remote:
        return FaultKind.TOOL, f"The agent {remote} gave no answer ({failure.replace('_', ' ')})."
    return FaultKind.MODEL, AGENT_FAULTS[failure]


def post_fault(problem: Problem) -> tuple[FaultKind, str]:
    """The kind of fault and the sentence for an answer that could not be posted."""
    kind = FaultKind.PERMISSION if problem is Problem.FORBIDDEN else FaultKind.DISCORD
    return kind, POST_FAULTS.get(problem, "An answer could not be posted.")


def ending_of(outcome: str) -> Ending:
    """The Ending for a turn's outcome as logged."""
    if outcome.startswith("undelivered"):
        return Ending.UNDELIVERED
    return ENDINGS.get(outcome) or Ending(outcome)


def report_of(turn: Turn, outcome: str, at: datetime, seconds: float, first_text: float | None = None) -> TurnEnded:
    """The report of a turn that ended. outcome: in one word, as logged."""
    newest, by_model = turn.newest, turn.request is not None and not turn.is_remote
    agent = turn.agent if turn.request or turn.ready else newest.meaning.miniapp_id or ""
    return TurnEnded(
        newest.guild_id,
        newest.channel_id,
        tuple(question.message.message_id for question in turn.questions or [newest]),
        ending_of(outcome),
        outcome,
        at,
        seconds,
        first_text,
        agent,
        turn.model if by_model else "",
        tuple(dict.fromkeys(turn.tools)),
        tuple(turn.allowance.all_spent),
    )
