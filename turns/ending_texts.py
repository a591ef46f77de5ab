"""The texts with which turns end."""

from __future__ import annotations

from typing import assert_never

from agents.gateway import Answer, Declined, Failure, FailureKind, Outcome
from decider import Decision, Reason
from discord_io.channel_wire import Problem
from setting_values import Period
from state.limits import Cap, Reached
from turns.turn import Cancel, Turn, with_note

NOT_ALLOWED = "🔇"

# A mini-app's failure has its own text.
OVER_BUDGET = "My budget is spent. Please ask me again once it is renewed."
MANAGERS = "For those who manage this server: "
WHOSE = {
    Cap.GUILD: "my budget for this server",
    Cap.CHANNEL: "my budget for this channel",
    Cap.THREAD: "my budget for this thread",
    Cap.PERSON: "my budget for you",
}
SENTENCES = {
    FailureKind.BUSY: "My model is overloaded. Please ask me again in a moment.",
    FailureKind.NO_CREDIT: "My model's quota or credit is used up. Whoever runs me can find the reason in my log.",
    FailureKind.MISCONFIGURED: "My model is not set up correctly. Whoever runs me can find the reason in my log.",
    FailureKind.REJECTED: "My model did not accept that. Please put it differently.",
    FailureKind.TOO_LONG: (
        "Our conversation became too long for my model, so I have started a new one. Please ask me again."
    ),
    FailureKind.UNAVAILABLE: "My model is not available right now. Please ask me again in a moment.",
    FailureKind.LATE: "My model took too long. Please ask me again.",
    FailureKind.EMPTY: "My model had no answer to that. Please put it differently.",
    FailureKind.OUT_OF_ROOM: "My model ran out of room before it had an answer. Please ask me for less at a time.",
    FailureKind.WITHHELD: "My model's content filter held back what I wanted to say here. Please put it differently.",
    FailureKind.OVER_BUDGET: OVER_BUDGET,
    FailureKind.TURN_CAP: "That takes more than I may use for one answer. Please ask me for less at a time.",
    FailureKind.INTERNAL: "Something went wrong on my side. Please ask me again.",
}
# For remote agents.
REMOTE_SENTENCES = {
    FailureKind.BUSY: "It is overloaded. Please ask again in a moment.",
    FailureKind.NO_CREDIT: "Its quota or credit is used up. Whoever runs me can find the reason in my log.",
    FailureKind.MISCONFIGURED: "It is not set up correctly. Whoever runs me can find the reason in my log.",
    FailureKind.REJECTED: "It did not accept that. Please put it differently.",
    FailureKind.UNAVAILABLE: (
        "It cannot be reached, or stopped in the middle of its answer. Please ask again in a moment."
    ),
    FailureKind.LATE: "It took too long. Please ask again.",
    FailureKind.EMPTY: "It had no answer to that. Please put it differently.",
}
SILENCES = {
    Cancel.STOPPED: Decision(False, Reason.STOP),
    Cancel.SHUTDOWN: Decision(False, Reason.SHUTTING_DOWN),
    Cancel.OVER_BUDGET: Decision(False, Reason.DAILY_CAP),
}
MAX_WHY = 120
CUT = "My answer is cut off here: it has reached its maximum length."
STOPPED = "Stopped."
RESTARTING = "I am being restarted. Please ask me again in a minute."
UNPOSTABLE = "I had an answer, but Discord did not let me post it."
INCOMPLETE = "My answer is incomplete: Discord did not let me post the rest. Please ask me again."
UNKNOWN = "I had an answer, but I cannot tell whether Discord posted it. If you do not see it, please ask me again."


def undelivered(problem: Problem, *, stands: bool) -> str:
    """The text for an answer that could not be posted. stands: whether a part of it was."""
    if problem is Problem.UNKNOWN:
        return UNKNOWN
    return INCOMPLETE if stands else UNPOSTABLE


def silence_of(turn: Turn, outcome: Outcome | Cancel) -> Decision | None:
    """The decision of a turn that ends in silence; None where something is posted, or no question is left.

    People who did not call the bot are told neither of a failure nor of a stop, unless they have read a part of the
    answer already.
    """
    if isinstance(outcome, Declined):
        why = " ".join(outcome.why.split())[:MAX_WHY].encode(errors="replace").decode()  # without lone surrogates
        return Decision(False, Reason.DECLINED, evidence=why)
    if outcome is Cancel.STOPPED and turn.ends_silently:
        return SILENCES[outcome]
    if not turn.may_decline or turn.text.strip():
        return None
    if isinstance(outcome, Failure):
        return Decision(False, Reason.DECLINE_FAILED)
    return SILENCES.get(outcome) if isinstance(outcome, Cancel) else None


def budget_line(reached: Reached) -> str:
    """The sentence for somebody who is refused by a spent budget, or, near its end, for those who manage the place."""
    whose, period = WHOSE.get(reached.cap, "my budget"), _period(reached)
    again = f"<t:{int(reached.resets_at.timestamp())}:R>"
    if reached.is_spent:
        return f"{whose[0].upper()}{whose[1:]} is spent for {period}. It is renewed {again}: please ask me again then."
    near = (
        f"four fifths of {whose} for {period} are used. I now answer only those who call me; the budget is renewed "
        f"{again}."
    )
    return f"F{near[1:]}" if reached.cap is Cap.PERSON else f"{MANAGERS}{near}"


def why_silent(reached: Reached) -> str:
    """Why a budget kept the bot silent, for /why."""
    whose, period = WHOSE.get(reached.cap, "my budget for everybody together"), _period(reached)
    if reached.is_spent:
        return f"{whose} was spent for {period}"
    return f"four fifths of {whose} for {period} were used, so I answered only those who called me"


def _period(reached: Reached) -> str:
    return "today" if reached.limit.period is Period.DAY else "this month"


def posted_text(turn: Turn, outcome: Outcome | Cancel) -> str:
    """The final text in the channel, with a line for those who manage it where a budget nears its end."""
    text = final_text(turn, outcome)
    if isinstance(outcome, Answer) and outcome.tokens and (reached := turn.allowance.managers_notice()):
        line = budget_line(reached)
        return with_note(text, line if line.startswith(MANAGERS) else f"{MANAGERS}{line[0].lower()}{line[1:]}")
    return text


def _over_budget(turn: Turn) -> str:
    reached = turn.allowance.spent_budget()
    return budget_line(reached) if reached else OVER_BUDGET


def final_text(turn: Turn, outcome: Outcome | Cancel) -> str:
    """The final text in the channel; empty: nothing."""
    match outcome:
        case Answer():
            return with_note(outcome.text, CUT) if outcome.was_cut else outcome.text
        case Failure():
            is_spent = outcome.kind is FailureKind.OVER_BUDGET
            sentence = _over_budget(turn) if is_spent else SENTENCES.get(outcome.kind)
            if turn.is_remote and outcome.kind in REMOTE_SENTENCES:
                sentence = f"I asked the agent {turn.agent}. {REMOTE_SENTENCES[outcome.kind]}"
            return with_note(outcome.text, sentence) if sentence else outcome.text
        case Cancel.STOPPED:
            return with_note(turn.text, STOPPED)
        case Cancel.SHUTDOWN:
            return with_note(turn.text, RESTARTING)
        case Cancel.OVER_BUDGET:
            return _over_budget(turn)
        case Declined() | Cancel.WITHDRAWN:
            return ""
        case Cancel.UNDELIVERABLE:
            return turn.text
        case _:
            assert_never(outcome)
