"""A channel as the console shows it: its last messages, the decision on each, and how its answer ended.

No text is kept for this: it is read from the current conversation. Messages of people who have opted out, and answers
that may quote them, are not shown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from activity import Ending, TurnEnded
from decision import JUDGE_TIER, Decision, LoggedDecision
from followup.learning import posted_at
from state.message import MessageRecord
from understanding.names import SOMEBODY
from understanding.wording import MENTION
from web.shown import Shown

MOST_ROWS = 50
LONGEST = 1_000  # characters of a message
DECIDING = timedelta(seconds=30)  # a message without a decision after that is from before a restart
TIERS = {0: "", 1: "the rules for calls", 2: "rules and the trained model", JUDGE_TIER: "the judge"}


class State(StrEnum):
    """The state of a message."""

    HEARD = ""
    DECIDING = "deciding"
    SILENT = "silent"
    ANSWERING = "answering"
    ANSWERED = "answered"
    DECLINED = "declined"
    STOPPED = "stopped"
    FAILED = "failed"
    UNDELIVERED = "not delivered"


ENDINGS = {
    Ending.ANSWERED: State.ANSWERED,
    Ending.DECLINED: State.DECLINED,
    Ending.STOPPED: State.STOPPED,
    Ending.FAILED: State.FAILED,
    Ending.UNDELIVERED: State.UNDELIVERED,
}


@dataclass(frozen=True, slots=True)
class Why:
    """A decision as it is shown. in_words: as in /why; by: the tier that decided."""

    in_words: str
    reason: str
    by: str
    score: float
    evidence: str
    contrary: str


@dataclass(frozen=True, slots=True)
class Row:
    """A message as it is shown. text: None: not shown. turn: the turn that answered it; micros: its cost in
    micro-dollars, None: price not known."""

    message_id: int
    at: datetime
    who: str
    is_bot: bool
    text: str | None
    state: State
    why: Why | None = None
    turn: TurnEnded | None = None
    micros: int | None = None

    @property
    def tokens(self) -> int:
        return sum(spent.tokens for spent in self.turn.spent) if self.turn else 0


def rows(shown: Shown, channel_id: int, *, shows_content: bool) -> list[Row]:
    """The channel's last messages, the newest last. shows_content: whether with people's words and names."""
    conversation = shown.conversations.get(channel_id)
    records = {m.message_id: m for m in conversation.messages[-MOST_ROWS:]} if conversation else {}
    decided = {entry.message_id: entry for entry in shown.decisions.latest(channel_id, MOST_ROWS)}
    read = _Reading(shown, channel_id, shows_content=shows_content)
    found = (read.row(one, records.get(one), decided.get(one)) for one in sorted(records.keys() | decided.keys()))
    return [row for row in found if row][-MOST_ROWS:]


class _Reading:
    """Makes the rows of one channel from its current state."""

    def __init__(self, shown: Shown, channel_id: int, *, shows_content: bool) -> None:
        self._shown = shown
        self._channel_id = channel_id
        self._shows_content = shows_content
        conversation = shown.conversations.get(channel_id)
        own = [m for m in conversation.messages if m.is_bot] if conversation else []
        self._answered = {m.reply_to_id for m in own}
        self._unfinished = {q.message.message_id for q in shown.turns.pending.of(channel_id).questions}
        names = {**(conversation.names if conversation else {}), **{m.author_id: m.author for m in own}}
        self._names = {who: name for who, name in names.items() if who not in shown.opted_out}
        # Opted-out people whom it answered, here or where it read that: later answers may quote them. Those who only
        # spoke here were not read.
        self._unread = shown.conversations.read_or_answered(channel_id) & shown.opted_out

    def row(self, message_id: int, record: MessageRecord | None, entry: LoggedDecision | None) -> Row | None:
        """The row of a message. None: its author has opted out."""
        author_id = record.author_id if record else entry.author_id if entry else 0
        if author_id in self._shown.opted_out:
            return None
        turn = self._shown.feed.find(message_id)
        micros = [spent.micros for spent in turn.spent if spent.micros is not None] if turn else []
        return Row(
            message_id,
            record.timestamp if record else datetime.fromtimestamp(posted_at(message_id), UTC),
            self._who(author_id, record),
            record is not None and record.is_bot,
            self._text(record),
            self._state(message_id, record, entry, turn),
            self._why(entry.decision) if entry else None,
            turn,
            sum(micros) if micros else None,
        )

    def _who(self, author_id: int, record: MessageRecord | None) -> str:
        if record and record.is_bot:
            return record.author or "the bot"
        if record and self._shows_content:
            return record.author
        return "another bot" if record and record.is_other_bot else f"person …{author_id % 10_000:04}"

    def _text(self, record: MessageRecord | None) -> str | None:
        if record is None or not self._shows_content:
            return None
        if record.is_bot and not self._unread.isdisjoint(record.addressees | record.drew_on):
            return None
        attached = len(record.attached)
        return self._named(record.content)[:LONGEST] or f"({attached} file{'' if attached == 1 else 's'}, no text)"

    def _named(self, text: str) -> str:
        """The text with mentions replaced by names."""
        return MENTION.sub(lambda found: f"@{self._names.get(int(found[1]), SOMEBODY)}", text)

    def _state(
        self, message_id: int, record: MessageRecord | None, entry: LoggedDecision | None, turn: TurnEnded | None
    ) -> State:
        if message_id in self._unfinished:
            return State.ANSWERING
        if entry is None:
            is_new = record is not None and record.is_persons and self._shown.clock() - record.timestamp < DECIDING
            return State.DECIDING if is_new else State.HEARD
        if turn:
            return ENDINGS[turn.ending]
        if not entry.decision.respond:
            return State.SILENT
        return State.ANSWERED if message_id in self._answered else State.HEARD

    def _why(self, decision: Decision) -> Why:
        told = decision if self._shows_content else decision.unquoting
        partner = told.partner
        if partner is not None and (not self._shows_content or partner in self._shown.opted_out):
            told = replace(told, partner=None)
        evidence, contrary = self._named(told.evidence), self._named(told.contrary) if self._shows_content else ""
        words, by = self._named(told.in_words()), TIERS.get(told.tier, "")
        return Why(words, decision.reason.value, by, told.score, evidence, contrary)
