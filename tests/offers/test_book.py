"""offers/book.py: which channels are kept, when they are looked at, and what the disk is told of them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from offers.book import Book
from offers.channel import Channel
from offers.restraint import Restraint
from state.proactive import ConversationEventType
from tests.support.clock import FakeClock
from tests.support.people import CHANNEL, GUILD

MANY = range(1, 10_001)


class Kept:
    """A book, and which of its channels are on the disk."""

    def __init__(self, restraint: Restraint | None = None) -> None:
        self.clock = FakeClock()
        self.book = Book(restraint or Restraint(), clock=self.clock, on_change=self._changed)
        self.disk: set[int] = set()
        self.changes = 0

    def _changed(self, channel_id: int) -> None:
        self.changes += 1
        (self.disk.add if self.book.stored(channel_id) else self.disk.discard)(channel_id)

    def open(self, channel_id: int = CHANNEL, *, on: bool = True) -> Channel:
        channel = self.book.open(channel_id, GUILD)
        channel.is_on = on
        self.book.changed(channel)
        return channel

    def talk(self, channel_id: int = CHANNEL) -> Channel:
        """A talk in a channel where offers are off."""
        channel = self.book.open(channel_id, GUILD)
        channel.machine.transition_to_reactive()
        self.book.changed(channel)
        return channel

    def look(self, seconds: float) -> list[int]:
        """Time passes; the ids of the channels that are due then, which notice the time."""
        self.clock.advance(seconds)
        due = self.book.due(self.clock())
        for channel in due:
            if channel.tick():
                self.book.changed(channel)
            channel.looked(self.clock())
            self.book.plan(channel)
        return [channel.channel_id for channel in due]


@pytest.fixture
def kept() -> Kept:
    return Kept()


def test_a_channel_is_opened_once(kept: Kept) -> None:
    assert kept.book.get(CHANNEL) is None
    channel = kept.book.open(CHANNEL, GUILD)
    assert kept.book.open(CHANNEL) is channel is kept.book.get(CHANNEL)
    assert (channel.guild_id, channel.is_on, len(kept.book)) == (GUILD, False, 1)


def test_the_guild_is_taken_where_it_becomes_known(kept: Kept) -> None:
    assert kept.book.open(CHANNEL).guild_id == 0
    assert kept.book.open(CHANNEL, GUILD).guild_id == GUILD
    assert kept.book.open(CHANNEL).guild_id == GUILD


def test_its_machine_has_the_channels_timeouts(kept: Kept) -> None:
    machine = Kept(Restraint(30, 40)).book.open(CHANNEL).machine
    assert (machine.interaction_timeout_s, machine.cooldown_period_s) == (30, 40)
    assert machine.session_id == str(CHANNEL)
    assert machine.last_interaction_at == kept.clock().timestamp()


def test_a_channel_at_rest_is_not_kept(kept: Kept) -> None:
    kept.book.plan(kept.book.open(CHANNEL))
    assert len(kept.book) == 0
    kept.open()
    assert (len(kept.book), kept.disk) == (1, {CHANNEL})
    kept.open(on=False)
    assert (len(kept.book), kept.disk) == (0, set())


def test_a_talk_is_forgotten_after_its_timeout_and_cooldown_on_disk_too(kept: Kept) -> None:
    kept.talk()
    assert kept.look(600) == []
    assert kept.look(1) == [CHANNEL]
    assert kept.disk == {CHANNEL}
    assert kept.look(1_799) == []
    assert kept.look(1) == [CHANNEL]
    assert (kept.book.get(CHANNEL), kept.disk) == (None, set())


def test_a_channel_that_was_left_is_gone_and_its_offer_with_it(kept: Kept) -> None:
    channel = kept.open()
    kept.book.drop(CHANNEL)
    assert (len(kept.book), kept.disk, channel.offer) == (0, set(), None)
    before = kept.changes
    kept.book.drop(CHANNEL)
    assert kept.changes == before


def test_what_is_due_is_found_without_looking_at_the_others(kept: Kept) -> None:
    for channel_id in range(1, 1_001):
        kept.open(channel_id).look_at(kept.clock() + timedelta(seconds=channel_id))
        kept.book.plan(kept.book.open(channel_id))
    assert kept.look(0.5) == []
    assert kept.look(2.5) == [1, 2, 3]
    assert kept.look(0) == []


def test_a_clock_that_is_set_back_has_all_looked_at_once(kept: Kept) -> None:
    for channel_id in (1, 2, 3):
        kept.talk(channel_id)
    kept.look(10)
    assert kept.look(-0.5) == [], "that is no more than the clock being put right"
    assert sorted(kept.look(-3_600)) == [1, 2, 3]
    assert kept.look(5) == []
    assert sorted(kept.look(601)) == [1, 2, 3], "the timeouts count from the step"


def test_a_clock_that_is_set_forward_ends_things_early_and_no_more(kept: Kept) -> None:
    kept.talk()
    kept.look(10)
    assert kept.look(3_600) == [CHANNEL]
    assert kept.book.open(CHANNEL).machine.thinking.cooldown_active
    assert kept.look(-3_600) == [CHANNEL]
    assert kept.look(1_799) == []
    assert kept.look(1) == [CHANNEL]
    assert len(kept.book) == 0


def test_a_channel_of_which_nothing_is_known_is_not_stored(kept: Kept) -> None:
    assert kept.book.stored(CHANNEL) is None
    kept.book.open(CHANNEL)
    assert kept.book.stored(CHANNEL) is None


def test_a_link_says_where_offers_go_and_a_reply_changes_none(kept: Kept) -> None:
    channel = kept.open()
    kept.book.link(channel, ConversationEventType.REPLY_EXISTING)
    machine = channel.machine
    assert (machine.conversation_linked, machine.conversation_id) == (True, str(CHANNEL))
    machine.conversation_id = "815"
    kept.book.link(channel, ConversationEventType.REPLY_EXISTING)
    assert channel.destination == 815


def test_channels_that_are_switched_off_again_leave_nothing_planned_either(kept: Kept) -> None:
    for channel_id in range(1, 1_001):
        kept.open(channel_id).look_at(kept.clock() + timedelta(seconds=90))
        kept.book.plan(kept.book.open(channel_id))
    assert len(kept.book) == 1_000
    for channel_id in range(1, 1_001):
        kept.open(channel_id, on=False)
    assert (len(kept.book), kept.disk) == (0, set())
    assert kept.look(90) == []
    assert len(kept.book._agenda) == 0


def test_ten_thousand_talks_leave_nothing_once_their_cooldown_is_over(kept: Kept) -> None:
    for channel_id in MANY:
        kept.talk(channel_id)
    kept.look(601)
    assert len(kept.book) == len(MANY)
    kept.look(1_800)
    assert (len(kept.book), len(kept.book._agenda), len(kept.disk)) == (0, 0, 0)
