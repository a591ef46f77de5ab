"""offers/offer_channels.py: what a channel refuses and why, when it is checked, what is kept of it and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from offers.offer import Offer
from offers.offer_channels import ANY, MAX_LOOKS, MAX_NOTES, MAX_OFFERED, MOMENT, OfferChannel, OfferChannels
from offers.offer_limits import OfferLimits
from state.proactive import SessionState
from tests.support.clock import NOON, FakeClock
from tests.support.offers import note_at, opportunity
from tests.support.people import ANNA, BEN, CHANNEL, GUILD, said

SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
AT_NOON = (time(12), time(13), ZoneInfo("UTC"))
LIMITS = OfferLimits(quiet_hours=AT_NOON)
EVENING = NOON + 8 * HOUR


class At:
    """A channel on a clock of its own, where offers are on."""

    def __init__(self, now: datetime = EVENING) -> None:
        self.clock = FakeClock(now)
        self.machine = SessionState(600, 1_800, session_id=str(CHANNEL), clock=lambda: self.clock().timestamp())
        self.channel = OfferChannel(CHANNEL, GUILD, self.machine, LIMITS, is_on=True)

    def refusal(self) -> str | None:
        return self.channel.refusal(self.clock())

    def earliest(self) -> float | None:
        """Seconds from now."""
        return self._from_now(self.channel.earliest(self.clock()))

    def next_look(self) -> float | None:
        return self._from_now(self.channel.next_look(self.clock()))

    def _from_now(self, at: datetime | None) -> float | None:
        return None if at is None else (at - self.clock()).total_seconds()

    def make(self, offer: Offer | None = None) -> Offer:
        offer = offer or Offer("o1", opportunity(said(ANNA)), self.clock(), GUILD, "Shall I?")
        self.channel.add_offer(offer, self.clock())
        return offer

    def cool(self) -> None:
        """The cooldown starts now."""
        self.machine.transition_to_proactive("t")
        self.clock.advance(601)
        assert self.channel.tick()

    def chatter(self, gap: float, count: int = 6) -> None:
        for i in reversed(range(count)):
            self.channel.recent.heard(said(BEN, at=self.clock() - i * gap * SECOND), self.clock())


@pytest.fixture
def at() -> At:
    return At()


# Whether an offer may be made


def test_off_comes_first(at: At) -> None:
    at.make()
    at.channel.is_on = False
    assert at.refusal() == "off"


def test_an_open_offer_is_told_before_the_machine_that_it_made_busy(at: At) -> None:
    at.make()
    at.machine.transition_to_proactive("t")
    assert at.refusal() == "offer_open"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda at: at.machine.transition_to_proactive("t"), "v2_state_proactive_assistance"),
        (lambda at: at.machine.transition_to_reactive(), "v2_state_reactive_assistance"),
        (At.cool, "v2_cooldown_active"),
    ],
)
def test_the_machine_refuses_with_its_own_reasons(at: At, change: Callable[[At], object], reason: str) -> None:
    change(at)
    at.chatter(5)
    at.channel.made = [at.clock()] * 3
    assert at.refusal() == reason


def test_the_day_has_its_count(at: At) -> None:
    at.channel.made = [at.clock() - DAY + SECOND, at.clock() - HOUR, at.clock()]
    assert at.refusal() == "daily_cap"
    at.clock.advance(1)
    assert at.refusal() is None
    at.channel.made = [at.clock() + HOUR, at.clock(), at.clock()]
    assert at.refusal() == "daily_cap", "made before the clock was set back"


def test_quiet_hours_refuse() -> None:
    assert At(NOON).refusal() == "quiet_hours"
    assert At(NOON + HOUR).refusal() is None


@pytest.mark.parametrize(("gap", "reason"), [(19.9, "fast_exchange"), (20, None)])
def test_a_fast_exchange_refuses(at: At, gap: float, reason: str | None) -> None:
    at.chatter(gap)
    assert at.refusal() == reason
    at.clock.advance(60)
    assert at.refusal() is None


# When it may be made


def test_the_earliest_is_when_the_cooldown_is_over(at: At) -> None:
    at.cool()
    assert at.earliest() == 1_800
    at.clock.advance(1_000)
    assert at.earliest() == 800


@pytest.mark.parametrize(("setbacks", "cooldown"), [(0, 1_800), (2, 7_200)])
def test_the_earliest_of_a_talk_is_after_its_timeout_and_cooldown(at: At, setbacks: int, cooldown: float) -> None:
    at.channel.setbacks = setbacks
    at.machine.transition_to_reactive()
    assert at.earliest() == pytest.approx(600.001 + cooldown)


@pytest.mark.parametrize(
    ("made", "per_day", "hours"),
    [
        ((-20, -1, 0), 3, 4),
        ((-20, -1), 1, 23),  # more than the settings now allow
        ((1, 0, 0), 3, 24),  # the clock was set back between two
    ],
)
def test_the_earliest_is_when_one_offer_of_the_day_is_over(
    at: At, made: tuple[int, ...], per_day: int, hours: int
) -> None:
    at.channel.made = [at.clock() + ago * HOUR for ago in made]
    at.channel.limits = OfferLimits(per_day=per_day)
    assert at.earliest() == hours * 3_600
    at.cool()
    assert at.earliest() == hours * 3_600 - 601, "the later of the two"


# When it is looked at


def test_it_is_not_looked_at_where_nothing_will_be(at: At) -> None:
    assert at.next_look() is None


@pytest.mark.parametrize(
    ("change", "seconds"),
    [
        (lambda at: at.channel.look_at(at.clock() + 5 * SECOND), 5),
        (lambda at: at.channel.look_at(None), None),
        (lambda at: at.channel.note(note_at(at.clock() + MINUTE)), 60),
        (lambda at: at.channel.note(note_at(at.clock())), None),
        (lambda at: at.chatter(0, 1), 3_600),
        (lambda at: at.machine.transition_to_reactive(), 600 + MOMENT.total_seconds()),
        (lambda at: at.machine.transition_to_proactive("t"), 600 + MOMENT.total_seconds()),
        (At.cool, 1_800),
        (At.make, 6 * 600 + MOMENT.total_seconds()),
    ],
)
def test_it_is_looked_at_when_something_may_have_changed(
    at: At, change: Callable[[At], object], seconds: float | None
) -> None:
    change(at)
    assert at.next_look() == (None if seconds is None else pytest.approx(seconds))


def test_it_is_looked_at_at_the_earliest_of_all_times(at: At) -> None:
    at.machine.transition_to_reactive()
    at.channel.look_at(at.clock() + 90 * SECOND)
    at.channel.look_at(at.clock() + 30 * SECOND)
    assert at.next_look() == 30
    at.channel.looked(at.clock() + 30 * SECOND)
    assert at.next_look() == 90


def test_those_look_whose_time_has_come(at: At) -> None:
    at.channel.look_at(at.clock() + SECOND, "one")
    at.channel.look_at(at.clock() + MINUTE, "other")
    at.channel.look_at(at.clock() + MINUTE)
    assert at.channel.looked(at.clock()) == set()
    assert at.channel.looked(at.clock() + SECOND) == {"one"}
    assert at.channel.looked(at.clock() + MINUTE) == {"other", ANY}
    assert at.channel.looked(at.clock() + HOUR) == set()


def test_only_the_way_back_is_told_by_a_tick(at: At) -> None:
    assert not at.channel.tick()
    at.machine.transition_to_reactive()
    at.clock.advance(600)
    assert not at.channel.tick()
    at.clock.advance(1)
    assert at.channel.tick()
    assert not at.channel.tick()
    at.clock.advance(1_800)
    assert not at.channel.tick()
    assert at.refusal() is None


# What is kept


def test_a_note_takes_the_place_of_one_on_the_same_matter(at: At) -> None:
    old, other, new = (note_at(EVENING, about=about) for about in ("Mel's", "Joe's", "Mel's"))
    for note in (old, other, new):
        at.channel.note(note)
    assert at.channel.notes == [other, new]


def test_notes_about_nothing_do_not_displace_each_other(at: At) -> None:
    notes = [note_at(EVENING, about="") for _ in range(2)]
    for note in notes:
        at.channel.note(note)
    assert at.channel.notes == notes


def test_an_offer_takes_its_note_and_no_other(at: At) -> None:
    due, later = note_at(EVENING), note_at(EVENING + HOUR)
    at.channel.notes = [due, later]
    at.make(Offer("o1", opportunity(note=due), EVENING, GUILD, due.text))
    assert at.channel.notes == [later]
    assert due.source_id in at.channel.offered


def test_what_was_answered_or_offered_about_is_not_unanswered(at: At) -> None:
    messages = [said(ANNA, at=at.clock()) for _ in range(4)]
    for message in messages:
        at.channel.recent.heard(message, at.clock())
    assert at.channel.unanswered == messages[::-1], "newest first"
    at.make(Offer("o1", opportunity(messages[0]), EVENING, GUILD, "Shall I?"))
    at.channel.exclude(messages[2].message_id)
    at.channel.recent.mark_answered(messages[1].message_id)
    assert at.channel.unanswered == [messages[3]]


def test_what_is_kept_of_notes_looks_and_offers_is_bounded(at: At) -> None:
    for i in range(1_000):
        at.channel.note(note_at(EVENING + i * SECOND))
        at.channel.look_at(EVENING + i * SECOND)
        at.make()
        at.clock.advance(600)
    assert len(at.channel.notes) == MAX_NOTES
    assert at.channel.notes[-1].due == EVENING + 999 * SECOND
    assert len(at.channel.looks) == MAX_LOOKS + 1
    assert len(at.channel.offered) == MAX_OFFERED
    at.channel.looked(at.clock() + timedelta(days=2))
    assert len(at.channel.made) == 5 * 144 - 1, "those of the last week"


@pytest.mark.parametrize(
    "change",
    [
        lambda at: setattr(at.channel, "is_on", True),
        lambda at: at.make(),
        lambda at: setattr(at.channel, "is_busy", True),
        lambda at: setattr(at.channel, "made", [EVENING]),
        lambda at: at.machine.transition_to_reactive(),
        At.cool,
    ],
)
def test_it_is_at_rest_where_nothing_is_on_open_or_running(at: At, change: Callable[[At], object]) -> None:
    at.channel.is_on = False
    assert at.channel.is_at_rest
    change(at)
    assert not at.channel.is_at_rest


# All channels

MANY = range(1, 2_001)


class Kept:
    """Channels, and which of its channels are on the disk."""

    def __init__(self, limits: OfferLimits | None = None) -> None:
        self.clock = FakeClock()
        self.offer_channels = OfferChannels(
            limits or OfferLimits(), clock=self.clock, on_change=self._changed, settled=asyncio.Event().wait
        )
        self.disk: set[int] = set()
        self.changes = 0

    def _changed(self, channel_id: int) -> None:
        self.changes += 1
        (self.disk.add if self.offer_channels.stored(channel_id) else self.disk.discard)(channel_id)

    def open(self, channel_id: int = CHANNEL, *, on: bool = True) -> OfferChannel:
        channel = self.offer_channels.open(channel_id, GUILD)
        channel.is_on = on
        self.offer_channels.changed(channel)
        return channel

    def talk(self, channel_id: int = CHANNEL) -> OfferChannel:
        """A talk in a channel where offers are off."""
        channel = self.offer_channels.open(channel_id, GUILD)
        channel.machine.transition_to_reactive()
        self.offer_channels.changed(channel)
        return channel

    def look(self, seconds: float) -> list[int]:
        """Time passes; the ids of the channels that are due then, which notice the time."""
        self.clock.advance(seconds)
        due = self.offer_channels.due(self.clock())
        for channel in due:
            if channel.tick():
                self.offer_channels.changed(channel)
            channel.looked(self.clock())
            self.offer_channels.plan(channel)
        return [channel.channel_id for channel in due]


@pytest.fixture
def kept() -> Kept:
    return Kept()


def test_the_guild_is_taken_where_it_becomes_known(kept: Kept) -> None:
    assert kept.offer_channels.open(CHANNEL).guild_id == 0
    assert kept.offer_channels.open(CHANNEL, GUILD).guild_id == GUILD
    assert kept.offer_channels.open(CHANNEL).guild_id == GUILD


def test_its_machine_has_the_channels_timeouts(kept: Kept) -> None:
    machine = Kept(OfferLimits(30, 40)).offer_channels.open(CHANNEL).machine
    assert (machine.interaction_timeout_s, machine.cooldown_period_s) == (30, 40)
    assert machine.session_id == str(CHANNEL)
    assert machine.last_interaction_at == kept.clock().timestamp()


def test_a_channel_at_rest_is_not_kept(kept: Kept) -> None:
    channel = kept.offer_channels.open(CHANNEL)
    assert kept.offer_channels.stored(CHANNEL) is None
    kept.offer_channels.plan(channel)
    assert len(kept.offer_channels) == 0
    kept.open()
    assert (len(kept.offer_channels), kept.disk) == (1, {CHANNEL})
    kept.open(on=False)
    assert (len(kept.offer_channels), kept.disk) == (0, set())


def test_a_channel_that_was_left_is_gone_and_its_offer_with_it(kept: Kept) -> None:
    channel = kept.open()
    kept.offer_channels.drop(CHANNEL)
    assert (len(kept.offer_channels), kept.disk, channel.offer) == (0, set(), None)
    before = kept.changes
    kept.offer_channels.drop(CHANNEL)
    assert kept.changes == before


def test_what_is_due_is_found_without_looking_at_the_others(kept: Kept) -> None:
    for channel_id in range(1, 1_001):
        kept.open(channel_id).look_at(kept.clock() + timedelta(seconds=channel_id))
        kept.offer_channels.plan(kept.offer_channels.open(channel_id))
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


def test_many_talks_leave_nothing_once_their_cooldown_is_over(kept: Kept) -> None:
    for channel_id in MANY:
        kept.talk(channel_id)
    kept.look(601)
    assert len(kept.offer_channels) == len(MANY)
    kept.look(1_800)
    assert (len(kept.offer_channels), len(kept.offer_channels._heap), len(kept.disk)) == (0, 0, 0)


def test_a_channel_is_checked_once_at_the_earliest_time_it_was_given(kept: Kept) -> None:
    channel = kept.open()
    for seconds in (30, 10, 20, 40, 10):
        kept.offer_channels.wake(channel, kept.clock() + timedelta(seconds=seconds))
    kept.offer_channels.wake(channel, None)
    due = [len(kept.offer_channels.due(kept.clock() + timedelta(seconds=seconds))) for seconds in (9, 10, 30, 100)]
    assert due == [0, 1, 0, 0], "the times after the earliest are no more"


def test_a_later_time_counts_once_the_earlier_has_been(kept: Kept) -> None:
    channel, start = kept.open(), kept.clock()
    for seconds in (30, 10):
        kept.offer_channels.wake(channel, start + timedelta(seconds=seconds))
    assert kept.offer_channels.due(start + timedelta(seconds=10)) == [channel]
    kept.offer_channels.wake(channel, start + timedelta(seconds=50))
    assert kept.offer_channels.due(start + timedelta(seconds=30)) == [], "a stale time is none"
    assert kept.offer_channels.due(start + timedelta(seconds=50)) == [channel]


def test_what_is_planned_stays_as_small_as_there_are_channels_however_often_one_is_woken(kept: Kept) -> None:
    channels = [kept.open(channel_id) for channel_id in range(5)]
    for seconds in range(10_000, 0, -1):
        kept.offer_channels.wake(channels[seconds % 5], kept.clock() + timedelta(seconds=seconds))
    assert len(kept.offer_channels._heap) <= 20
    assert len(kept.offer_channels.due(kept.clock() + timedelta(seconds=5))) == 5
