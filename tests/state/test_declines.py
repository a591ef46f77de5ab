"""state/declines.py: whom the agent is not asked about for a while."""

from __future__ import annotations

from state.declines import IN_A_ROW, MAX_PEOPLE, PERSON, Declines
from tests.support.clock import NOON
from tests.support.people import ANNA, BEN, CLEO


def in_a_row(count: int) -> Declines:
    declines = Declines()
    for number in range(count):
        declines = declines.after([BEN], NOON + number * PERSON)
    return declines


def test_a_decline_limits_its_author_for_a_while_and_nobody_else() -> None:
    declines = Declines().after([ANNA, BEN], NOON)
    assert declines.limit(ANNA, NOON)
    assert declines.limit(BEN, NOON + PERSON * 0.99)
    assert not declines.limit(BEN, NOON + PERSON)
    assert not declines.limit(CLEO, NOON)


def test_a_clock_that_is_set_back_limits_nobody_for_longer() -> None:
    declines = Declines().after([ANNA], NOON)
    assert not declines.limit(ANNA, NOON - PERSON)
    assert declines.after([BEN], NOON - PERSON).at.keys() == {BEN}


def test_several_in_a_row_limit_everybody_until_somebody_calls() -> None:
    later = NOON + 100 * PERSON
    assert not in_a_row(IN_A_ROW - 1).limit(CLEO, later)
    declines = in_a_row(IN_A_ROW)
    assert declines.limit(CLEO, later)
    assert declines.answered().limit(CLEO, later)
    assert not declines.called(ANNA).limit(CLEO, later)


def test_an_answer_in_between_breaks_the_row() -> None:
    assert not in_a_row(IN_A_ROW - 1).answered().after([BEN], NOON).limit(CLEO, NOON)


def test_whoever_calls_is_not_limited_any_more_and_others_are() -> None:
    declines = Declines().after([ANNA, BEN], NOON).called(ANNA)
    assert not declines.limit(ANNA, NOON)
    assert declines.limit(BEN, NOON)


def test_what_is_kept_is_bounded_and_ages() -> None:
    declines = Declines()
    for author in range(3 * MAX_PEOPLE):
        declines = declines.after([author], NOON)
    assert len(declines.at) == MAX_PEOPLE
    assert declines.after([ANNA], NOON + PERSON).at.keys() == {ANNA}


def test_of_whoever_is_forgotten_nothing_is_known_and_the_row_goes_on() -> None:
    declines = in_a_row(IN_A_ROW).forget(BEN)
    assert not declines.at
    assert declines.limit(CLEO, NOON)
