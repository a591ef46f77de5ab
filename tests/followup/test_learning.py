"""followup/learning.py: what later events say of a decision, what is to go, and that it reaches the decision log."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from conversation import ChannelConversation, MessageRecord
from decider import EXPLICIT
from followup import learning as module
from followup.decision_file import FILE_NAME, DecisionFile
from followup.decision_log import DecisionLog
from followup.learning import (
    ANSWER_SECONDS,
    EVERYTHING,
    MISSED_SECONDS,
    TOLD_OFF_SECONDS,
    Learning,
    Mark,
    Outcome,
    Outcomes,
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


@pytest.fixture
def outcomes() -> Outcomes:
    """Silent on Anna's message, then it answers a question."""
    outcomes = Outcomes()
    outcomes.silent(CHANNEL, ANNA, SILENT, AT)
    outcomes.answering(CHANNEL, QUESTION, AT)
    outcomes.posted(ANSWER, QUESTION, AT)
    return outcomes


@pytest.mark.parametrize(
    ("seconds", "missed"), [(-1, False), (0, True), (MISSED_SECONDS, True), (MISSED_SECONDS + 0.1, False)]
)
def test_a_mention_within_a_minute_of_a_silence_shows_that_it_missed_something(
    outcomes: Outcomes, seconds: float, missed: bool
) -> None:
    mark = outcomes.addressed(CHANNEL, ANNA, AT + seconds)
    assert mark == (Mark(SILENT, Outcome.MISSED, AT + seconds) if missed else None)
    assert outcomes.addressed(CHANNEL, BEN, AT) is outcomes.addressed(ELSEWHERE, ANNA, AT) is None
    outcomes.silent(CHANNEL, ANNA, 9, AT + 2)
    outcomes.silent(CHANNEL, ANNA, 8, AT + 1)  # the judge took longer over the older one
    assert outcomes.addressed(CHANNEL, ANNA, AT + 3) == Mark(9, Outcome.MISSED, AT + 3)


@pytest.mark.parametrize(
    ("seconds", "told_off"), [(0, True), (TOLD_OFF_SECONDS, True), (TOLD_OFF_SECONDS + 0.1, False)]
)
def test_who_tells_it_off_means_the_channels_newest_answer(outcomes: Outcomes, seconds: float, told_off: bool) -> None:
    mark = outcomes.told_off(CHANNEL, AT + seconds)
    assert mark == (Mark(QUESTION, Outcome.TOLD_OFF, AT + seconds) if told_off else None)
    assert outcomes.told_off(ELSEWHERE, AT + seconds) is None


def test_deleting_or_disliking_an_answer_is_said_of_its_question(outcomes: Outcomes) -> None:
    assert outcomes.deleted(ANSWER, AT + 1) == Mark(QUESTION, Outcome.DELETED, AT + 1)
    assert outcomes.disliked(ANSWER, AT + 1) == Mark(QUESTION, Outcome.DISLIKED, AT + 1)
    assert outcomes.deleted(QUESTION, AT + 1) is None
    assert outcomes.disliked(QUESTION, AT + 1) is None
    for _ in range(2):  # one that the bot takes back itself is not held against it
        outcomes.retracted(ANSWER)
        assert outcomes.deleted(ANSWER, AT + 1) is None


def test_what_can_no_longer_matter_is_dropped(outcomes: Outcomes) -> None:
    counts = []
    for seconds in (MISSED_SECONDS, TOLD_OFF_SECONDS, ANSWER_SECONDS, ANSWER_SECONDS + 1):
        outcomes.sweep(AT + seconds)
        counts.append(len(outcomes))
    assert counts == [3, 2, 1, 0]


def test_nothing_grows_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KEPT", 10)
    outcomes = Outcomes()
    for number in range(100):
        outcomes.silent(number, ANNA, number, AT)
        outcomes.answering(number, number, AT)
        outcomes.posted(number, number, AT)
    assert len(outcomes) == 30
    assert outcomes.told_off(89, AT) is None
    assert outcomes.told_off(90, AT)


def test_what_is_not_answered_after_all_hides_nothing_that_was_answered_before() -> None:
    outcomes = Outcomes()
    for message_id in (1, 2, 3):
        outcomes.answering(CHANNEL, message_id, float(message_id))
    outcomes.unanswered(CHANNEL, 2)
    outcomes.unanswered(CHANNEL, 3)
    assert outcomes.told_off(CHANNEL, 10.0) == Mark(1, Outcome.TOLD_OFF, 10.0)
    outcomes.unanswered(CHANNEL, 1)
    assert outcomes.told_off(CHANNEL, 10.0) is None
    assert len(outcomes) == 0
