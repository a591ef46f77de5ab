"""followup/learning.py: what later events say of a decision, what is to go, and that it reaches the decision log."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from conversation import ChannelConversation, MessageRecord
from decider import EXPLICIT, NOTHING, Decision, Reason
from followup import learning as module
from followup.decision_file import FILE_NAME, DecisionFile
from followup.decision_log import DecisionLog
from followup.learning import (
    ANSWER_SECONDS,
    EVERYTHING,
    MISSED_SECONDS,
    TOLD_OFF_SECONDS,
    Change,
    Learning,
    Mark,
    Outcome,
    Removal,
    Removals,
)
from storage.sealing import read_keys
from tests.storage.conftest import KEY
from tests.support.clock import NOON
from tests.support.people import ANNA, BEN, CHANNEL, GUILD, said

OLD = datetime(2020, 1, 1, tzinfo=UTC)
ELSEWHERE = CHANNEL + 1
SEAL = read_keys(KEY)
AT = 1_000.0
SILENT, QUESTION, ANSWER = 1, 2, 3
ANSWERED = Decision(True, Reason.FOLLOWUP)


@pytest.fixture
def log(tmp_path: Path) -> DecisionLog:
    return DecisionLog(tmp_path, SEAL)


def decide(learning: Learning, message: MessageRecord, channel_id: int = CHANNEL, guild_id: int = GUILD) -> int:
    conversation = ChannelConversation(channel_id, NOON, NOON, messages=[message])
    learning.decided(message, guild_id, conversation, EXPLICIT, is_explicit=True, is_judgement=True)
    return message.message_id


@pytest.mark.parametrize(
    ("forget", "left"),
    [
        (lambda learning, at: learning.forgotten(CHANNEL, ANNA, at), {"bens", "elsewhere", "abroad"}),
        (lambda learning, at: learning.forgotten(None, ANNA, at), {"bens"}),
        (lambda learning, at: learning.forgotten(CHANNEL, None, at), {"elsewhere", "abroad"}),
        (lambda learning, at: learning.guild_forgotten(GUILD, at), {"abroad"}),
        (lambda learning, _at: learning.expire(NOON), {"annas", "bens", "elsewhere"}),
        (lambda learning, at: learning.deleted({at}, NOON), {"annas", "bens", "elsewhere"}),
    ],
)
async def test_what_goes_is_gone_from_disk(
    tmp_path: Path, log: DecisionLog, forget: Callable[[Learning, int], None], left: set[str]
) -> None:
    learning = Learning(log.add, keeps_content=True)
    ids = {
        "annas": decide(learning, said(ANNA)),
        "bens": decide(learning, said(BEN)),
        "elsewhere": decide(learning, said(ANNA), CHANNEL + 1),
        "abroad": decide(learning, said(ANNA, at=OLD), CHANNEL + 2, GUILD + 1),
    }
    assert await log.flush()
    forget(learning, ids["abroad"])
    assert await log.flush()
    rows = {row.message_id for row in DecisionFile(tmp_path / FILE_NAME, SEAL).read()}
    assert {name for name, message_id in ids.items() if message_id in rows} == left


@pytest.mark.parametrize(("agent", "reason"), [("docs", "named"), ("", "unsure")])
async def test_the_agent_of_several_messages_is_logged(
    tmp_path: Path, log: DecisionLog, agent: str, reason: str
) -> None:
    learning = Learning(log.add, keeps_content=False)
    asked = [decide(learning, said(who)) for who in (ANNA, BEN)]
    learning.assigned([*asked, 999], agent, reason)
    later = decide(learning, said(ANNA))
    assert await log.flush()
    rows = {row.message_id: (row.agent, row.agent_reason) for row in DecisionFile(tmp_path / FILE_NAME, SEAL).read()}
    assert rows == {asked[0]: (agent, reason), asked[1]: (agent, reason), later: ("", "")}


# What is to go


def test_removals_are_taken_once_and_deletions_together() -> None:
    removals = Removals()
    forgotten, expired = Removal(author_id=ANNA, through=5), Removal(before=7.0)
    for message_ids in ((), (1,), (1, 2)):
        for removal in (Removal(frozenset(message_ids)), forgotten, expired):
            removals.add(removal)
    assert removals.take() == [forgotten, expired, Removal(frozenset({1, 2}))]
    assert (len(removals), removals.take()) == (0, [])


@pytest.mark.parametrize(
    "of", [lambda n: Removal(frozenset({n})), lambda n: Removal(channel_id=n, through=1), lambda n: Removal(before=n)]
)
def test_beyond_the_bound_all_goes(of: Callable[[int], Removal]) -> None:
    removals = Removals(most=8)
    for number in range(8):
        removals.add(of(number))
    assert EVERYTHING not in removals.take()
    for number in range(20):
        removals.add(of(number))
        assert len(removals) <= 8
    assert removals.take()[0] == EVERYTHING


# What became of a decision


class Desk:
    """Decides on messages of people at some seconds, and collects what is logged of earlier ones."""

    def __init__(self) -> None:
        self.logged: list[Change] = []
        self.learning = Learning(self.logged.append, keeps_content=False)

    def decided(
        self, author: int, message_id: int, at: float, channel_id: int = CHANNEL, *, decision: Decision = NOTHING
    ) -> list[Change]:
        """The Marks that are logged with a decision; EXPLICIT is one on a mention."""
        self.logged.clear()
        message = said(author, at=moment(at), message_id=message_id)
        conversation = ChannelConversation(channel_id, NOON, NOON, messages=[message])
        is_explicit = decision is EXPLICIT
        self.learning.decided(message, GUILD, conversation, decision, is_explicit=is_explicit, is_judgement=True)
        return [change for change in self.logged if isinstance(change, Mark)]

    def told_off(self, at: float, channel_id: int = CHANNEL) -> Mark | None:
        return self.learning.told_off(channel_id, moment(at), is_again=True)


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


@pytest.fixture
def desk() -> Desk:
    """Silent on Anna's message, then it answers a question."""
    desk = Desk()
    desk.decided(ANNA, SILENT, AT)
    desk.decided(BEN, QUESTION, AT, decision=ANSWERED)
    desk.learning.posted(ANSWER, QUESTION, moment(AT))
    return desk


@pytest.mark.parametrize(
    ("seconds", "missed"), [(-1, False), (0, True), (MISSED_SECONDS, True), (MISSED_SECONDS + 0.1, False)]
)
def test_a_mention_within_a_minute_of_a_silence_shows_that_it_missed_something(
    desk: Desk, seconds: float, missed: bool
) -> None:
    marks = desk.decided(ANNA, 5, AT + seconds, decision=EXPLICIT)
    assert marks == ([Mark(SILENT, Outcome.MISSED, AT + seconds)] if missed else [])
    assert desk.decided(BEN, 6, AT, decision=EXPLICIT) == []
    assert desk.decided(ANNA, 7, AT, ELSEWHERE, decision=EXPLICIT) == []
    desk.decided(ANNA, 9, AT + 2)
    desk.decided(ANNA, 8, AT + 1)  # the judge took longer over the older one
    assert desk.decided(ANNA, 10, AT + 3, decision=EXPLICIT) == [Mark(9, Outcome.MISSED, AT + 3)]


@pytest.mark.parametrize(
    ("seconds", "told_off"), [(0, True), (TOLD_OFF_SECONDS, True), (TOLD_OFF_SECONDS + 0.1, False)]
)
def test_who_tells_it_off_means_the_channels_newest_answer(desk: Desk, seconds: float, told_off: bool) -> None:
    mark = Mark(QUESTION, Outcome.TOLD_OFF, AT + seconds) if told_off else None
    desk.logged.clear()
    assert desk.told_off(AT + seconds) == mark
    assert desk.told_off(AT + seconds, ELSEWHERE) is None
    assert desk.logged == []
    assert desk.learning.told_off(CHANNEL, moment(AT + seconds), is_again=False) == mark
    assert desk.logged == ([mark] if mark else [])


def test_deleting_or_disliking_an_answer_is_said_of_its_question(desk: Desk) -> None:
    at = moment(AT + 1)
    assert desk.learning.deleted([ANSWER, QUESTION], at) == [Mark(QUESTION, Outcome.DELETED, AT + 1)]
    assert desk.learning.disliked(ANSWER, at) == Mark(QUESTION, Outcome.DISLIKED, AT + 1)
    assert desk.logged[-2:] == [Mark(QUESTION, what, AT + 1) for what in (Outcome.DELETED, Outcome.DISLIKED)]
    assert desk.learning.disliked(QUESTION, at) is None
    for _ in range(2):  # one that the bot takes back itself is not held against it
        desk.learning.retracted(ANSWER)
        assert desk.learning.deleted([ANSWER], at) == []


def test_what_can_no_longer_matter_is_dropped(desk: Desk) -> None:
    counts = []
    for seconds in (MISSED_SECONDS, TOLD_OFF_SECONDS, ANSWER_SECONDS, ANSWER_SECONDS + 1):
        desk.learning.sweep(moment(AT + seconds))
        counts.append(len(desk.learning))
    assert counts == [3, 2, 1, 0]


def test_nothing_grows_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KEPT", 10)
    desk = Desk()
    for number in range(100):
        desk.decided(ANNA, number, AT, number)
        desk.decided(ANNA, number, AT, number, decision=ANSWERED)
        desk.learning.posted(number, number, moment(AT))
    assert len(desk.learning) == 30
    assert desk.told_off(AT, 89) is None
    assert desk.told_off(AT, 90)


def test_what_is_not_answered_after_all_hides_nothing_that_was_answered_before() -> None:
    desk = Desk()
    for message_id in (1, 2, 3):
        desk.decided(ANNA, message_id, float(message_id), decision=ANSWERED)
    for message_id in (2, 3):
        desk.learning.silent(said(ANNA, message_id=message_id), CHANNEL, "declined", is_judgement=False)
    assert desk.told_off(10.0) == Mark(1, Outcome.TOLD_OFF, 10.0)
    desk.learning.silent(said(ANNA, message_id=1), CHANNEL, "declined", is_judgement=False)
    assert desk.told_off(10.0) is None
    assert len(desk.learning) == 0
