"""offers/agenda.py: each channel once, at the earliest time it was given, and nothing for those that wait."""

from __future__ import annotations

from datetime import datetime, timedelta

from offers.agenda import Agenda
from tests.support.clock import NOON


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def test_nothing_is_due_on_an_empty_agenda() -> None:
    assert Agenda().due(NOON) == []


def test_a_channel_is_due_at_its_time_and_not_before() -> None:
    agenda = Agenda()
    agenda.wake(1, at(10))
    assert agenda.due(at(9.999)) == []
    assert agenda.due(at(10)) == [1]


def test_a_channel_is_due_once() -> None:
    agenda = Agenda()
    agenda.wake(1, at(10))
    agenda.wake(1, at(10))
    assert agenda.due(at(20)) == [1]
    assert agenda.due(at(20)) == []
    agenda.wake(1, at(20))
    assert agenda.due(at(20)) == [1]


def test_the_earliest_time_counts_in_whatever_order_they_come() -> None:
    agenda = Agenda()
    for seconds in (30, 10, 20, 40):
        agenda.wake(1, at(seconds))
    assert agenda.due(at(9)) == []
    assert agenda.due(at(10)) == [1]
    assert agenda.due(at(100)) == [], "the times after the earliest are no more"


def test_a_later_time_counts_once_the_earlier_has_been() -> None:
    agenda = Agenda()
    agenda.wake(1, at(30))
    agenda.wake(1, at(10))
    assert agenda.due(at(10)) == [1]
    agenda.wake(1, at(50))
    assert agenda.due(at(30)) == [], "a stale entry is none"
    assert agenda.due(at(50)) == [1]


def test_the_same_time_given_anew_is_one_time() -> None:
    agenda = Agenda()
    agenda.wake(1, at(30))
    agenda.wake(1, at(10))
    agenda.due(at(10))
    agenda.wake(1, at(30))
    assert agenda.due(at(30)) == [1]
    assert len(agenda) == 0


def test_no_time_is_no_need() -> None:
    agenda = Agenda()
    agenda.wake(1, None)
    assert (agenda.due(at(1e6)), len(agenda)) == ([], 0)
    agenda.wake(1, at(10))
    agenda.wake(1, None)
    assert agenda.due(at(10)) == [1]


def test_the_earliest_comes_first() -> None:
    agenda = Agenda()
    for channel_id in (3, 1, 2):
        agenda.wake(channel_id, at(channel_id))
    assert agenda.due(at(10)) == [1, 2, 3]


def test_those_that_wait_are_left_alone() -> None:
    agenda = Agenda()
    for channel_id in range(10_000):
        agenda.wake(channel_id, at(100 + channel_id))
    before = list(agenda._heap)
    for seconds in range(100):
        assert agenda.due(at(seconds)) == []
    assert agenda._heap == before
    assert agenda.due(at(102)) == [0, 1, 2]
    assert len(agenda) == 9_997


def test_all_can_be_woken_whatever_was_planned() -> None:
    agenda = Agenda()
    agenda.wake(1, at(10))
    agenda.wake(2, at(3_600))
    agenda.wake(9, at(5))
    agenda.wake_all([1, 2, 3], at(-3_600))
    assert sorted(agenda.due(at(-3_600))) == [1, 2, 3]
    assert (agenda.due(at(1e6)), len(agenda)) == ([], 0)


def test_it_stays_as_small_as_there_are_channels_however_often_one_is_woken() -> None:
    agenda = Agenda()
    for seconds in range(10_000, 0, -1):
        agenda.wake(seconds % 5, at(seconds))
    assert len(agenda) <= 20
    assert sorted(agenda.due(at(5))) == [0, 1, 2, 3, 4]


def test_a_channel_that_is_looked_at_again_and_again_leaves_nothing_behind() -> None:
    """As where each message is to be looked at soon, and the channel itself in an hour."""
    agenda = Agenda()
    for seconds in range(10_000):
        agenda.wake(1, at(3_600 + seconds))
        agenda.wake(1, at(seconds))
        assert agenda.due(at(seconds)) == [1]
    assert len(agenda) <= 20
