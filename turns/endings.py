"""How turns end: in the channel, in words, and in a report for those who run the bot."""

from __future__ import annotations

from datetime import datetime
from typing import assert_never

from activity import Ending, FaultKind, TurnEnded
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
    FailureKind.WAITED: "There were more questions than I could answer in time. Please ask me again.",
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
# For those who run the bot.
AGENT_FAULTS = {
    FailureKind.BUSY: "The model was overloaded, or its rate limit was reached.",
    FailureKind.NO_CREDIT: "The model's provider says that the quota or credit is used up: top it up there.",
    FailureKind.MISCONFIGURED: "The model's provider refused the key or the model's name: check MODEL and its key.",
    FailureKind.REJECTED: "The model's provider did not accept a request.",
    FailureKind.TOO_LONG: "A conversation became too long for the model, and a new one was started.",
    FailureKind.UNAVAILABLE: "The model could not be reached, or stopped in the middle of an answer.",
    FailureKind.LATE: "The model took too long to answer.",
    FailureKind.WAITED: "A question waited too long for TURNS_AT_ONCE or its budget.",
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
OURS = {FailureKind.INTERNAL, FailureKind.MINIAPP, FailureKind.WAITED}
ENDINGS = {
    "finished": Ending.ANSWERED,
    **{kind.value: Ending.FAILED for kind in FailureKind},
    **{cancel.value: Ending.STOPPED for cancel in Cancel},
    Cancel.OVER_BUDGET.value: Ending.FAILED,
    Cancel.UNDELIVERABLE.value: Ending.UNDELIVERED,
}


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
