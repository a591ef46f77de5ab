"""followup/outcomes.py: what later events say of a decision."""

from __future__ import annotations

import pytest

from followup import outcomes as module
from followup.outcomes import ANSWER_SECONDS, MISSED_SECONDS, TOLD_OFF_SECONDS, Mark, Outcome, Outcomes
from tests.support.people import ANNA, BEN, CHANNEL

ELSEWHERE = CHANNEL + 1
AT = 1_000.0
SILENT, QUESTION, ANSWER = 1, 2, 3


@pytest.fixture
def outcomes() -> Outcomes:
    """Silent on Anna's message, then it answers a question."""
    outcomes = Outcomes()
    outcomes.silent(CHANNEL, ANNA, SILENT, AT)
    outcomes.answering(CHANNEL, QUESTION, AT)
    outcomes.posted(ANSWER, QUESTION, AT)
    return outcomes


@pytest.mark.parametrize(("seconds", "missed"), [(0, True), (MISSED_SECONDS, True), (MISSED_SECONDS + 0.1, False)])
def test_a_mention_within_a_minute_of_a_silence_shows_that_it_missed_something(
    outcomes: Outcomes, seconds: float, missed: bool
) -> None:
    mark = outcomes.addressed(CHANNEL, ANNA, AT + seconds)
    assert mark == (Mark(SILENT, Outcome.MISSED, AT + seconds) if missed else None)


@pytest.mark.parametrize(("channel", "author"), [(CHANNEL, BEN), (ELSEWHERE, ANNA)])
def test_a_mention_by_somebody_else_or_elsewhere_shows_nothing(outcomes: Outcomes, channel: int, author: int) -> None:
    assert outcomes.addressed(channel, author, AT) is None


def test_a_mention_from_before_the_silence_shows_nothing(outcomes: Outcomes) -> None:
    assert outcomes.addressed(CHANNEL, ANNA, AT - 1) is None


def test_the_newest_silence_is_the_missed_one_also_if_the_judge_took_longer_over_an_older(outcomes: Outcomes) -> None:
    outcomes.silent(CHANNEL, ANNA, 9, AT + 2)
    outcomes.silent(CHANNEL, ANNA, 8, AT + 1)
    mark = outcomes.addressed(CHANNEL, ANNA, AT + 3)
    assert mark
    assert mark.message_id == 9


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


def test_an_answer_that_the_bot_takes_back_itself_is_not_held_against_it(outcomes: Outcomes) -> None:
    outcomes.retracted(ANSWER)
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


def test_what_is_not_answered_after_all_is_not_told_off(outcomes: Outcomes) -> None:
    outcomes.unanswered(CHANNEL, ANSWER)
    assert outcomes.told_off(CHANNEL, AT)
    outcomes.unanswered(CHANNEL, QUESTION)
    assert outcomes.told_off(CHANNEL, AT) is None


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
