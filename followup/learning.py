"""The changes to the decision log: decisions in conversations, their outcomes, edits and removals.

Pure and bounded. Changes carry times in Unix seconds; Learning is given aware datetimes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from conversation import ChannelConversation, MessageRecord
from decision import JUDGE_TIER, Decision, Reason

MISSED_SECONDS = 60.0
TOLD_OFF_SECONDS = 300.0
ANSWER_SECONDS = 86_400.0
MAX_KEPT = 10_000
ANSWERED_KEPT = 8
MAX_REMOVALS = 100_000
DISCORD_EPOCH_MS = 1_420_070_400_000


def posted_at(message_id: int) -> float:
    """When a message was posted, by its Discord id."""
    return ((message_id >> 22) + DISCORD_EPOCH_MS) / 1_000


class Outcome(StrEnum):
    """The outcome of a decision. MISSED: the bot kept silent, and was mentioned by the author within a minute.
    TAKEN_UP: somebody replied or reacted to its answer. The others: it answered, and the answer was unwelcome.
    """

    MISSED = "missed"
    TAKEN_UP = "taken_up"
    TOLD_OFF = "told_off"
    DELETED = "deleted"
    DISLIKED = "disliked"


BUTTED_IN = frozenset({Outcome.TOLD_OFF, Outcome.DELETED, Outcome.DISLIKED})


@dataclass(frozen=True, slots=True)
class Entry:
    """A decision within a conversation. conversation: its start time. content: the message's text; None: not kept.

    agent, agent_reason: as in Assignment; empty: none. place: in words; empty: not noted. Message ids grow with time,
    as Discord's do.
    """

    message_id: int
    channel_id: int
    guild_id: int
    author_id: int
    conversation: float
    at: float
    respond: bool
    reason: str
    tier: int
    score: float
    evidence: str
    content: str | None = None
    outcome: Outcome | None = None
    outcome_at: float | None = None
    agent: str = ""
    agent_reason: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """The outcome of the decision on a message, and when it became known."""

    message_id: int
    outcome: Outcome
    at: float


@dataclass(frozen=True, slots=True)
class Revision:
    """An edit of a message. content: the new text; None: none is kept, and one kept earlier is dropped."""

    message_id: int
    channel_id: int
    author_id: int
    content: str | None
    guild_id: int = 0

    @property
    def at(self) -> float:
        return posted_at(self.message_id)


@dataclass(frozen=True, slots=True)
class Assignment:
    """The agent that answers a message, and why. agent: empty for the general one. A later one replaces it."""

    message_id: int
    agent: str
    reason: str


@dataclass(frozen=True, slots=True)
class Silence:
    """A message that was not answered after all. reason: why."""

    message_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class Removal:
    """Removes everything that meets all given conditions. through: the highest message id; before: when posted."""

    message_ids: frozenset[int] | None = None
    channel_id: int | None = None
    author_id: int | None = None
    guild_id: int | None = None
    through: int | None = None
    before: float | None = None

    def covers(self, noted: Entry | Revision) -> bool:
        return (
            (self.message_ids is None or noted.message_id in self.message_ids)
            and self.channel_id in (None, noted.channel_id)
            and self.author_id in (None, noted.author_id)
            and self.guild_id in (None, noted.guild_id)
            and (self.through is None or noted.message_id <= self.through)
            and (self.before is None or noted.at < self.before)
        )


EVERYTHING = Removal()
Addition = Entry | Mark | Revision | Assignment | Silence
Change = Addition | Removal


class Removals:
    """Removals that wait to be written. Beyond `most` they become one of everything: safer than dropping any."""

    def __init__(self, most: int = MAX_REMOVALS) -> None:
        self._most = most
        self._message_ids: set[int] = set()
        self._others: dict[Removal, None] = {}

    def __len__(self) -> int:
        return len(self._message_ids) + len(self._others)

    def add(self, removal: Removal) -> None:
        if removal.message_ids is None:
            self._others[removal] = None
        else:
            self._message_ids |= removal.message_ids
        if len(self) > self._most:
            self._message_ids, self._others = set(), {EVERYTHING: None}

    def take(self) -> list[Removal]:
        """Returns all waiting removals, and drops them."""
        taken = list(self._others)
        if self._message_ids:
            taken.append(Removal(frozenset(self._message_ids)))
        self._message_ids, self._others = set(), {}
        return taken


class _Recent:
    """The newest messages for each key, for so many seconds. Where there are too many keys, the oldest is dropped.

    of_each: how many messages are kept for each key; an older one counts only once the newer ones are dropped.
    """

    def __init__(self, seconds: float, *, of_each: int = 1) -> None:
        self._seconds = seconds
        self._of_each = of_each
        self._items: dict[Hashable, tuple[tuple[float, int], ...]] = {}

    def __len__(self) -> int:
        return len(self._items)

    def put(self, key: Hashable, message_id: int, at: float) -> None:
        # The judge may decide on an older message after a newer one.
        self._items[key] = tuple(sorted({*self._items.pop(key, ()), (at, message_id)})[-self._of_each :])
        if len(self._items) > MAX_KEPT:
            del self._items[next(iter(self._items))]

    def mark(self, key: Hashable, outcome: Outcome, at: float) -> Mark | None:
        """The Mark for the key's newest message; None where there is none, or it is too old."""
        if key not in self._items:
            return None
        since, message_id = self._items[key][-1]
        return Mark(message_id, outcome, at) if 0 <= at - since <= self._seconds else None

    def drop(self, key: Hashable, message_id: int | None = None) -> None:
        """Drops a message of the key; message_id: None: all of them."""
        if left := tuple(item for item in self._items.pop(key, ()) if message_id not in (None, item[1])):
            self._items[key] = left

    def sweep(self, now: float) -> None:
        self._items = {key: items for key, items in self._items.items() if now - items[-1][0] <= self._seconds}


class Learning:
    """Feeds the decision log with decisions, and with Marks, where events show the outcomes of earlier ones, whether or
    not their rows are still kept. log: accepts a change. keeps_content: whether the text of messages is logged.
    """

    def __init__(self, log: Callable[[Change], None], *, keeps_content: bool) -> None:
        self._log = log
        self._keeps_content = keeps_content
        self._silences = _Recent(MISSED_SECONDS)  # by channel and author
        # By channel; several, so that a declined one does not hide the answer before it.
        self._answered = _Recent(TOLD_OFF_SECONDS, of_each=ANSWERED_KEPT)
        self._questions = _Recent(ANSWER_SECONDS)  # by the answer's id

    def __len__(self) -> int:
        return len(self._silences) + len(self._answered) + len(self._questions)

    # What the bot does

    def decided(
        self,
        message: MessageRecord,
        guild_id: int,
        conversation: ChannelConversation,
        decision: Decision,
        *,
        is_explicit: bool,
        is_judgement: bool,
        place: str = "",
    ) -> None:
        """Logs a decision. is_explicit: on a mention or reply; is_judgement: a silence means: not meant for the bot."""
        channel_id, at = conversation.channel_id, message.timestamp.timestamp()
        if message.reply_to_id and decision.reason not in (Reason.TOLD_OFF, Reason.STOP):
            self._mark(self._questions.mark(message.reply_to_id, Outcome.TAKEN_UP, at))
        if is_explicit:
            self._mark(self._silences.mark((channel_id, message.author_id), Outcome.MISSED, at))
        if decision.respond:
            self._answered.put(channel_id, message.message_id, at)
        elif is_judgement:
            self._silences.put((channel_id, message.author_id), message.message_id, at)
        current = conversation.find(message.message_id) or message  # it may have been edited while the judge ran
        entry = Entry(
            message_id=message.message_id,
            channel_id=channel_id,
            guild_id=guild_id,
            author_id=message.author_id,
            conversation=conversation.started_at.timestamp(),
            at=at,
            respond=decision.respond,
            reason=decision.reason,
            tier=decision.tier,
            score=decision.score,
            # The judge's own words may quote anybody, and would not follow a deletion.
            evidence="" if decision.tier == JUDGE_TIER else decision.evidence,
            content=current.content if self._keeps_content else None,
            place=place,
        )
        self._log(entry)

    def silent(self, message: MessageRecord, channel_id: int, reason: str, *, is_judgement: bool) -> None:
        """Logs that a message is not answered after all. is_judgement: since it was not meant for the bot."""
        self._answered.drop(channel_id, message.message_id)
        if is_judgement:
            self._silences.put((channel_id, message.author_id), message.message_id, message.timestamp.timestamp())
        self._log(Silence(message.message_id, reason))

    def assigned(self, message_ids: Collection[int], agent: str, reason: str) -> None:
        """Logs the agent chosen to answer these messages, where there are several. agent: empty for the general one."""
        for message_id in message_ids:
            self._log(Assignment(message_id, agent, reason))

    def posted(self, answer_id: int, question_id: int, at: datetime) -> None:
        """Notes that the bot posted a message."""
        self._questions.put(answer_id, question_id, at.timestamp())

    def retracted(self, answer_id: int) -> None:
        """Notes that the bot is about to delete its own message, so that this does not count as somebody's deletion."""
        self._questions.drop(answer_id)

    # What people do

    def told_off(self, channel_id: int, at: datetime, ended: Collection[int] = (), *, is_again: bool) -> Mark | None:
        """Somebody told the bot to keep out. Returns the Mark of the channel's newest answer, which is logged if they
        had not told it before. ended: the questions whose answers they ended thereby; another answer is not meant."""
        mark = self._answered.mark(channel_id, Outcome.TOLD_OFF, at.timestamp())
        if mark and ended and mark.message_id not in ended:
            return None
        return mark if is_again else self._mark(mark)

    def reacted(self, message_id: int, at: datetime) -> None:
        """Somebody reacted to any message with anything but a thumbs down."""
        self._mark(self._questions.mark(message_id, Outcome.TAKEN_UP, at.timestamp()))

    def disliked(self, message_id: int, at: datetime) -> Mark | None:
        """Somebody reacted to any message with a thumbs down. Returns the Mark, if it was an answer of the bot's."""
        return self._mark(self._questions.mark(message_id, Outcome.DISLIKED, at.timestamp()))

    def revised(self, message_id: int, channel_id: int, author_id: int, content: str, guild_id: int = 0) -> None:
        self._log(Revision(message_id, channel_id, author_id, content if self._keeps_content else None, guild_id))

    def deleted(self, message_ids: Collection[int], at: datetime) -> list[Mark]:
        """Messages were deleted. Returns the Marks of those that were answers of the bot's."""
        self._log(Removal(frozenset(message_ids)))
        answers = (self._questions.mark(message_id, Outcome.DELETED, at.timestamp()) for message_id in message_ids)
        return [mark for answer in answers if (mark := self._mark(answer))]

    def forgotten(self, channel_id: int | None, author_id: int | None, through: int) -> None:
        """Removes entries up to this message id: in a channel (None: in all), of a person (None: of everybody)."""
        self._log(Removal(channel_id=channel_id, author_id=author_id, through=through))

    def guild_forgotten(self, guild_id: int, through: int) -> None:
        """Removes a guild's entries up to this message id."""
        self._log(Removal(guild_id=guild_id, through=through))

    def expire(self, before: datetime) -> None:
        """Removes entries of messages posted before this."""
        self._log(Removal(before=before.timestamp()))

    def sweep(self, now: datetime) -> None:
        """Drops expired notes."""
        for recent in (self._silences, self._answered, self._questions):
            recent.sweep(now.timestamp())

    def _mark(self, mark: Mark | None) -> Mark | None:
        if mark:
            self._log(mark)
        return mark
