"""offers/proactive_offers.py: from what is heard to what is offered, and all that keeps the bot silent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from structlog.typing import EventDict

from offers.offer import Opportunity
from offers.offer_channels import MAX_LOOKS, OfferChannel
from offers.offer_limits import OfferLimits
from offers.proactive_offers import NOT_READY, OVER_BUDGET, PULSE_SECONDS, OffersStatus
from offers.triggers import TRIGGERS
from state.message import MessageRecord
from state.proactive import AgentStateV2
from tests.support.clock import NOON
from tests.support.offers import ENDS, QUESTION, Broken, Change, Desk, Judge, note_at, outcomes, refusals
from tests.support.people import ANNA, BEN, CHANNEL, CLEO, GUILD, said
from tests.support.virtual_time import settle

THINKING, PROACTIVE, REACTIVE = AgentStateV2.THINKING, AgentStateV2.PROACTIVE, AgentStateV2.REACTIVE
MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
COOLDOWN = 1_800
UTC = ZoneInfo("UTC")
BURGER = f"<@{ANNA}>, How was the burger?"
OTHER_QUESTION = "how do I mount an NTFS drive on linux?"


def offers(desk: Desk) -> int:
    """How many were posted, ever."""
    return len(desk.wire.offered)


def state(desk: Desk) -> AgentStateV2:
    return desk.channel.machine.current_state


# From a question to an offer


async def test_nothing_is_heard_or_offered_where_nobody_switched_it_on(desk: Desk) -> None:
    assert not desk.proactive_offers.listens(CHANNEL)
    desk.ask()
    await desk.wait(HOUR, step=30)
    assert (offers(desk), len(desk.offer_channels), desk.disk) == (0, 0, {})


async def test_an_unanswered_question_has_an_offer_made_after_90_seconds(desk: Desk) -> None:
    await desk.on()
    desk.ask()
    await desk.wait(89.9)
    assert offers(desk) == 0
    await desk.wait(0.1)
    assert offers(desk) == 1
    assert state(desk) is PROACTIVE
    assert desk.channel.machine.proactive.trigger_id == "unanswered_question"
    await desk.wait(600, step=5)
    assert offers(desk) == 1


@pytest.mark.parametrize("how", ENDS)
async def test_nothing_is_offered_about_what_is_gone_or_dealt_with(desk: Desk, how: str) -> None:
    await desk.on()
    question = desk.ask()
    await desk.wait(60)
    ENDS[how][0](desk, question.message_id)
    await desk.wait(1_200, step=30)
    assert offers(desk) == 0


async def test_a_message_that_becomes_a_question_by_an_edit_has_an_offer_made(desk: Desk) -> None:
    await desk.on()
    message = desk.ask("does anybody")
    desk.clock.advance(20)
    desk.proactive_offers.revised(CHANNEL, said(ANNA, QUESTION, message.timestamp, message_id=message.message_id))
    await desk.wait(70)
    assert offers(desk) == 1


# OfferLimits, each by its reason


def long_cooldown(desk: Desk) -> None:
    """As an offer that was declined has left it, with 5 minutes to go."""
    machine = desk.channel.machine
    machine.thinking.cooldown_active, machine.thinking.active_cooldown_period_s = True, 300.0
    machine.thinking.cooldown_started_at = desk.clock().timestamp()


def talk(desk: Desk) -> None:
    """Ben talks with us."""
    desk.proactive_offers.answered(CHANNEL, GUILD, said(BEN, at=desk.clock()))


def three_today(desk: Desk) -> None:
    desk.channel.made = [desk.clock() - timedelta(days=1) + timedelta(minutes=5)] * 3


@pytest.mark.parametrize(
    ("change", "reason", "minutes"),
    [
        (long_cooldown, "v2_cooldown_active", 5),
        (three_today, "daily_cap", 5),
        (lambda desk: setattr(desk, "muted", "missing_permission"), "missing_permission", None),
    ],
)
async def test_an_offer_that_is_refused_is_made_once_the_reason_is_gone(
    desk: Desk, change: Change, reason: str, minutes: float | None, logs: list[EventDict]
) -> None:
    await desk.on()
    change(desk)
    desk.ask()
    await desk.wait(180, step=5)
    assert offers(desk) == 0
    assert set(refusals(logs)) == {reason}
    assert len(refusals(logs)) <= 4, "it is looked at again every half minute, not with every pulse"
    if minutes is None:
        desk.muted = None
    await desk.wait(180, step=5)
    assert offers(desk) == 1


async def test_an_open_offer_refuses_by_its_name(desk: Desk, logs: list[EventDict]) -> None:
    await desk.offered()
    desk.hear(ANNA, "how do I mount an NTFS drive on linux, by the way?")
    assert desk.channel.offer
    await desk.wait(120, step=5)
    assert set(refusals(logs)) == {"offer_open"}
    assert offers(desk) == 1


async def test_quiet_hours_are_kept_and_a_fresh_question_is_come_back_to(logs: list[EventDict]) -> None:
    desk = Desk(OfferLimits(quiet_hours=(time(12), time(12, 10), UTC)))
    await desk.on()
    desk.ask()
    await desk.wait(8 * MINUTE, step=5)
    assert (offers(desk), set(refusals(logs))) == (0, {"quiet_hours"})
    await desk.wait(90, step=5)
    assert offers(desk) == 1


# How an offer goes on


@pytest.mark.parametrize("how", ["declined", "ignored"])
async def test_each_one_that_is_declined_or_ignored_doubles_the_cooldown(how: str, logs: list[EventDict]) -> None:
    desk = Desk(OfferLimits(per_day=100))
    await desk.on()
    for setbacks in range(1, 5):
        await desk.offered()
        if how == "declined":
            desk.offers.decline(CHANNEL)
        await desk.wait(601)
        assert desk.cooldown == COOLDOWN * 2**setbacks
        assert not desk.wire.standing
        await desk.wait(COOLDOWN * 2**setbacks - 0.001)
        assert state(desk) is THINKING
        assert desk.cooldown
        await desk.wait(0.001)
        assert desk.cooldown is None
    assert outcomes(logs) == [how] * 4


async def test_an_open_offer_goes_when_its_time_is_over_and_not_before(desk: Desk, logs: list[EventDict]) -> None:
    await desk.offered()
    await desk.wait(600, step=5)
    assert len(desk.wire.standing) == 1
    await desk.wait(0.001)
    assert not desk.wire.standing
    assert outcomes(logs) == ["ignored"]


@pytest.mark.parametrize(
    "interact",
    [
        lambda desk: desk.proactive_offers.reacted(CHANNEL),
        talk,
        lambda desk: desk.proactive_offers.clicked(CHANNEL, GUILD),
    ],
)
async def test_an_interaction_keeps_an_open_offer_open(desk: Desk, interact: Change) -> None:
    await desk.offered()
    await desk.wait(500)
    interact(desk)
    assert state(desk) is PROACTIVE
    await desk.wait(599, step=5)
    assert desk.channel.offer
    await desk.wait(2)
    assert desk.channel.offer is None


@pytest.mark.parametrize("how", ENDS)
async def test_an_open_offer_goes_with_its_reason(desk: Desk, how: str, logs: list[EventDict]) -> None:
    question = await desk.offered()
    desk.channel.setbacks = 1
    end, outcome = ENDS[how]
    end(desk, question.message_id)
    await settle()
    assert (outcomes(logs), desk.wire.standing, len(desk.wire.deleted)) == ([outcome], {}, 1)
    assert desk.channel.setbacks == 1
    await desk.wait(30 * MINUTE, step=30)
    assert offers(desk) == 1


async def test_one_that_a_moderator_deletes_is_declined(desk: Desk, logs: list[EventDict]) -> None:
    await desk.offered()
    desk.proactive_offers.messages_gone(CHANNEL, {desk.wire.moderate()})
    await settle()
    assert (outcomes(logs), desk.wire.deleted) == (["declined"], []), "it is gone already"
    assert desk.channel.setbacks == 1


async def test_one_that_people_react_to_stands_for_six_timeouts_at_most(desk: Desk, logs: list[EventDict]) -> None:
    await desk.offered()
    for _ in range(6):
        await desk.wait(599)
        desk.proactive_offers.reacted(CHANNEL)
    assert desk.channel.offer
    await desk.wait(7)
    assert desk.channel.offer is None
    assert (desk.wire.standing, outcomes(logs)) == ({}, ["ignored"])
    assert state(desk) is PROACTIVE
    assert desk.channel.setbacks == 1
    await desk.wait(594)
    assert desk.cooldown == 2 * COOLDOWN


BESIDE: dict[str, Callable[[Desk, int], object]] = {
    "to others": lambda desk, _: desk.hear(BEN, f"<@{CLEO}> lunch?"),
    "more of it": lambda desk, _: desk.hear(ANNA, "it is nginx on debian"),
    "another answered": lambda desk, q: desk.proactive_offers.dealt_with(CHANNEL, q - 1),
    "another deleted": lambda desk, q: desk.proactive_offers.messages_gone(CHANNEL, {q - 1}),
    "another forgotten": lambda desk, _: desk.proactive_offers.forget(CHANNEL, CLEO),
    "expiry": lambda desk, q: desk.proactive_offers.expire(CHANNEL, q + 1),
    "a talk": lambda desk, _: desk.proactive_offers.answered(CHANNEL, GUILD, said(CLEO, "hey")),
    "another left": lambda desk, _: desk.proactive_offers.leave(9),
}


@pytest.mark.parametrize("what", BESIDE)
async def test_what_has_nothing_to_do_with_it_leaves_it_open(desk: Desk, what: str) -> None:
    question = await desk.offered()
    BESIDE[what](desk, question.message_id)
    await settle()
    assert desk.channel.offer
    assert len(desk.wire.standing) == 1


async def test_its_answer_is_no_word_on_the_question(desk: Desk) -> None:
    await desk.offered()
    heard = len(desk.channel.recent.messages)
    no = desk.hear(ANNA, "not now, never mind")
    assert desk.channel.offer, "it is for whoever reads the answer to end it"
    assert len(desk.channel.recent.messages) == heard
    assert desk.offers.reply_of(CHANNEL, no)


async def test_an_edit_of_its_question_is_what_it_is_about_from_then_on(desk: Desk) -> None:
    question = await desk.offered()
    edited = said(ANNA, f"{QUESTION} on debian", question.timestamp, message_id=question.message_id)
    desk.proactive_offers.revised(CHANNEL, edited)
    offer = desk.offers.accept(CHANNEL)
    assert offer
    assert offer.opportunity.subject == edited
    assert b"on debian" not in desk.disk[CHANNEL]


async def test_one_that_was_left_is_forgotten_without_a_request(desk: Desk) -> None:
    await desk.offered()
    desk.proactive_offers.leave(CHANNEL)
    await desk.wait(1_200, step=60)
    assert (desk.offer_channels.get(CHANNEL), desk.disk, desk.wire.deleted) == (None, {}, [])


# Talks and reactions


async def test_a_talk_makes_the_machine_reactive_links_the_channel_and_ends_a_cooldown(desk: Desk) -> None:
    await desk.on()
    long_cooldown(desk)
    talk(desk)
    assert state(desk) is REACTIVE
    assert not desk.channel.machine.thinking.cooldown_active
    assert desk.channel.machine.conversation_id == str(CHANNEL)
    await desk.wait(600)
    assert state(desk) is REACTIVE
    await desk.wait(0.001)
    assert (state(desk), desk.cooldown) == (THINKING, COOLDOWN)


async def test_a_talk_where_offers_are_off_is_forgotten_when_it_is_over_on_disk_too(desk: Desk) -> None:
    talk(desk)
    assert set(desk.disk) == {CHANNEL}
    await desk.wait(601)
    await desk.wait(COOLDOWN)
    assert (desk.offer_channels.get(CHANNEL), desk.disk) == (None, {})


async def test_the_cooldown_after_a_talk_is_as_long_as_the_setbacks_have_made_it(desk: Desk) -> None:
    await desk.on()
    desk.channel.setbacks = 2
    talk(desk)
    await desk.wait(601)
    assert desk.cooldown == 4 * COOLDOWN


async def test_a_reaction_alone_begins_nothing(desk: Desk) -> None:
    desk.proactive_offers.reacted(CHANNEL)
    assert len(desk.offer_channels) == 0
    await desk.on()
    desk.proactive_offers.reacted(CHANNEL)
    assert state(desk) is THINKING


# Switching, and how it stands


async def test_switching_tells_whether_it_changed_anything(desk: Desk) -> None:
    switch = desk.proactive_offers.switch
    assert [await switch(CHANNEL, GUILD, on=on) for on in (False, True, True, False, False)] == [
        False,
        True,
        False,
        True,
        False,
    ]
    assert (len(desk.offer_channels), desk.disk) == (0, {})


@pytest.mark.parametrize("on", [True, False])
async def test_what_could_not_be_stored_is_said(desk: Desk, *, on: bool) -> None:
    desk.is_stored = False
    with pytest.raises(OSError, match="could not be written"):
        await desk.proactive_offers.switch(CHANNEL, GUILD, on=on)


async def test_switched_off_nothing_stays_of_what_was_heard(desk: Desk) -> None:
    await desk.offered()
    desk.proactive_offers.note(CHANNEL, note_at(NOON + timedelta(hours=5)))
    await desk.proactive_offers.switch(CHANNEL, GUILD, on=False)
    await settle()
    assert not desk.proactive_offers.listens(CHANNEL)
    assert (list(desk.channel.recent.messages), desk.channel.notes, desk.wire.standing) == ([], [], {})
    assert b"certbot" not in desk.disk[CHANNEL]
    await desk.wait(7 * DAY, step=3_600)
    assert (offers(desk), len(desk.offer_channels), desk.disk) == (1, 0, {})


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (str, OffersStatus(True, 0, 3, False, None, True, "")),
        (lambda desk: setattr(desk, "muted", "no"), OffersStatus(True, 0, 3, False, None, False, "")),
        (lambda desk: desk.proactive_offers.switch_off(CHANNEL), OffersStatus(False, 0, 3, False, None, True, "")),
        (
            lambda desk: setattr(desk.channel, "made", [NOON, NOON - timedelta(days=2)]),
            OffersStatus(True, 1, 3, False, None, True, ""),
        ),
        (long_cooldown, OffersStatus(True, 0, 3, False, NOON + timedelta(minutes=5), True, "")),
    ],
)
async def test_how_it_stands(desk: Desk, change: Change, expected: OffersStatus) -> None:
    await desk.on()
    change(desk)
    assert desk.proactive_offers.status(CHANNEL) == expected


async def test_how_it_stands_with_an_open_offer_and_quiet_hours() -> None:
    desk = Desk(OfferLimits(quiet_hours=(time(22), time(7, 30), ZoneInfo("Europe/Berlin"))))
    await desk.offered()
    status = desk.proactive_offers.status(CHANNEL)
    assert (status.is_open, status.made_today) == (True, 1)
    assert status.quiet_hours == "22:00 to 07:30 Europe/Berlin"
    desk.clock.advance(601)
    assert not desk.proactive_offers.status(CHANNEL).is_open, "its time is over, pulse or no pulse"


async def test_to_ask_how_it_stands_leaves_nothing(desk: Desk) -> None:
    for channel_id in range(100):
        desk.proactive_offers.status(channel_id)
    assert (len(desk.offer_channels), desk.disk) == (0, {})


async def test_what_was_made_outlasts_switching_off_and_on_for_a_week(desk: Desk) -> None:
    await desk.on()
    desk.channel.made = [desk.clock()] * 3
    await desk.proactive_offers.switch(CHANNEL, GUILD, on=False)
    await desk.wait(DAY - 60)
    await desk.on()
    assert desk.channel.refusal(desk.clock()) == "daily_cap"
    await desk.proactive_offers.switch(CHANNEL, GUILD, on=False)
    await desk.wait(6 * DAY)
    assert len(desk.offer_channels) == 1
    await desk.wait(120)
    assert (len(desk.offer_channels), desk.disk) == (0, {})


@pytest.mark.parametrize(("why", "may_speak"), [(NOT_READY, True), (OVER_BUDGET, True), ("missing_permission", False)])
async def test_what_keeps_it_silent_for_a_while_only_is_not_said(desk: Desk, why: str, *, may_speak: bool) -> None:
    await desk.on()
    desk.muted = why
    assert desk.proactive_offers.status(CHANNEL).may_speak is may_speak
    desk.ask()
    await desk.wait(90)
    assert offers(desk) == 0


# Notes


async def test_a_note_is_come_back_to_once_when_it_is_due(desk: Desk) -> None:
    await desk.on()
    desk.proactive_offers.note(CHANNEL, note_at(desk.clock() + timedelta(hours=3)))
    await desk.wait(3 * HOUR - 1, step=60)
    assert offers(desk) == 0
    await desk.wait(1)
    assert list(desk.wire.standing.values()) == [BURGER]
    assert desk.channel.notes == []
    await desk.wait(2 * DAY, step=600)
    assert offers(desk) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda desk: setattr(desk, "stands", set()),
        lambda desk: desk.proactive_offers.messages_gone(CHANNEL, [50]),
        lambda desk: desk.proactive_offers.forget(CHANNEL, ANNA),
        lambda desk: desk.proactive_offers.forget(CHANNEL, None),
        lambda desk: desk.proactive_offers.expire(CHANNEL, 51),
        lambda desk: desk.proactive_offers.switch_off(CHANNEL),
        lambda desk: desk.proactive_offers.leave(CHANNEL),
    ],
)
async def test_a_note_that_does_not_hold_any_more_is_dropped(desk: Desk, change: Change) -> None:
    await desk.on()
    desk.proactive_offers.note(CHANNEL, note_at(desk.clock() + timedelta(hours=3), source_id=50))
    change(desk)
    await desk.wait(DAY, step=600)
    assert offers(desk) == 0
    assert b"burger" not in desk.disk.get(CHANNEL, b"")


@pytest.mark.parametrize(
    "change",
    [
        lambda desk: desk.proactive_offers.messages_gone(CHANNEL, [49, 51]),
        lambda desk: desk.proactive_offers.forget(CHANNEL, BEN),
        lambda desk: desk.proactive_offers.expire(CHANNEL, 50),
    ],
)
async def test_a_note_outlasts_what_does_not_concern_it(desk: Desk, change: Change) -> None:
    await desk.on()
    desk.proactive_offers.note(CHANNEL, note_at(desk.clock() + timedelta(hours=3), source_id=50))
    change(desk)
    await desk.wait(3 * HOUR)
    assert offers(desk) == 1


async def test_a_note_that_could_not_be_offered_for_a_day_is_dropped(desk: Desk) -> None:
    await desk.on()
    desk.muted = "missing_permission"
    desk.proactive_offers.note(CHANNEL, note_at(desk.clock() + timedelta(hours=3)))
    await desk.wait(3 * HOUR + DAY, step=600)
    assert desk.channel.notes
    await desk.wait(31)
    assert desk.channel.notes == []
    assert b"burger" not in desk.disk[CHANNEL]


async def test_no_note_is_taken_where_offers_are_off(desk: Desk) -> None:
    desk.proactive_offers.note(CHANNEL, note_at(desk.clock()))
    talk(desk)
    desk.proactive_offers.note(CHANNEL, note_at(desk.clock()))
    assert desk.channel.notes == []


async def test_the_offer_of_a_note_goes_with_its_source_and_its_author(desk: Desk) -> None:
    ways: list[Callable[[], None]] = [
        lambda: desk.proactive_offers.messages_gone(CHANNEL, [50]),
        lambda: desk.proactive_offers.forget(CHANNEL, ANNA),
    ]
    for gone in ways:
        await desk.on()
        desk.proactive_offers.note(CHANNEL, note_at(desk.clock() + timedelta(minutes=5), source_id=50))
        await desk.wait(300)
        assert desk.wire.standing
        gone()
        await settle()
        assert not desk.wire.standing
        desk.wire._by_nonce.clear()  # Discord forgets them after minutes
        await desk.ended()


# Triggers that raise


@pytest.mark.parametrize("where", ["looks", "due"])
async def test_a_trigger_that_raises_is_logged_and_the_others_go_on(where: str, logs: list[EventDict]) -> None:
    desk = Desk(triggers=(Broken(where), *TRIGGERS))
    await desk.on()
    desk.ask()
    await desk.wait(90)
    assert offers(desk) == 1
    broken = [entry for entry in logs if entry["event"] == "trigger_broken"]
    assert broken
    assert {entry["trigger"] for entry in broken} == {"broken"}
    assert all(entry["exc_info"] for entry in broken)
    assert QUESTION not in str(broken)


async def test_a_channel_that_cannot_be_looked_at_keeps_no_other_from_it(desk: Desk, logs: list[EventDict]) -> None:
    await desk.on(9)
    await desk.on()
    desk.ask()
    broken = desk.offer_channels.open(9)
    broken.look_at(desk.clock() + timedelta(seconds=1))
    desk.offer_channels.plan(broken)
    broken.notes = [None]  # type: ignore[list-item]
    await desk.wait(90)
    assert [entry["channel"] for entry in logs if entry["event"] == "look_broken"] == [9]
    assert offers(desk) == 1


# The judge


async def judged(judge: Judge) -> tuple[Desk, MessageRecord]:
    """A question that the judge was asked about."""
    desk = Desk(judge=judge)
    await desk.on()
    question = desk.ask()
    await desk.wait(90)
    return desk, question


async def test_a_question_that_cannot_be_answered_is_not_asked_about_again(logs: list[EventDict]) -> None:
    judge = Judge(says=False)
    desk, question = await judged(judge)
    assert judge.asked == [(question.message_id, 2)]
    await desk.wait(HOUR, step=5)
    assert (len(judge.asked), offers(desk), refusals(logs)) == (1, 0, ["not_answerable"])
    assert state(desk) is THINKING
    assert desk.channel.made == []
    judge.says = True
    desk.ask(OTHER_QUESTION)
    await desk.wait(90)
    assert offers(desk) == 1


async def test_the_judge_is_not_asked_where_no_offer_may_be_made() -> None:
    judge = Judge()
    desk = Desk(judge=judge)
    await desk.on()
    desk.muted = "missing_permission"
    desk.ask()
    await desk.wait(HOUR, step=30)
    assert judge.asked == []


async def test_the_judge_is_not_asked_about_notes() -> None:
    judge = Judge(says=False)
    desk = Desk(judge=judge)
    await desk.on()
    desk.proactive_offers.note(CHANNEL, note_at(desk.clock() + timedelta(minutes=5)))
    await desk.wait(300)
    assert (judge.asked, offers(desk)) == ([], 1)


async def thought(judge: Judge) -> tuple[Desk, MessageRecord]:
    """A question that the judge is thinking about."""
    judge.gate = asyncio.Event()
    desk, question = await judged(judge)
    assert len(judge.asked) == 1
    assert offers(desk) == 0
    return desk, question


async def said_yes(judge: Judge) -> None:
    assert judge.gate
    judge.gate.set()
    await settle()


@pytest.mark.parametrize("seconds", [0.4, 1, 3])
async def test_the_offer_is_made_however_long_the_judge_thinks(seconds: float) -> None:
    judge = Judge()
    desk, _ = await thought(judge)
    desk.clock.advance(seconds)
    await said_yes(judge)
    await desk.wait(120, step=5)
    assert (offers(desk), len(judge.asked)) == (1, 1)


MEANWHILE: dict[str, Callable[[Desk, int], object]] = {
    **{how: end for how, (end, _) in ENDS.items()},
    "left": lambda desk, _: desk.proactive_offers.leave(CHANNEL),
    "a talk": lambda desk, _: talk(desk),
    "muted": lambda desk, _: setattr(desk, "muted", "missing_permission"),
    "set off": lambda desk, _: setattr(desk, "wants", False),
    "blocked": lambda desk, _: setattr(desk, "blocks", True),
}


@pytest.mark.parametrize("what", MEANWHILE)
async def test_what_happens_while_the_judge_thinks_counts(what: str) -> None:
    judge = Judge()
    desk, question = await thought(judge)
    MEANWHILE[what](desk, question.message_id)
    await said_yes(judge)
    assert offers(desk) == 0
    assert all(channel.offer is None for channel in desk.offer_channels._channels.values())


async def test_while_the_judge_thinks_it_is_not_asked_again() -> None:
    judge = Judge()
    desk, _ = await thought(judge)
    desk.ask(OTHER_QUESTION)
    await desk.wait(120, step=5)
    assert len(judge.asked) == 1


async def test_a_yes_to_one_question_is_none_to_another() -> None:
    judge = Judge()
    desk, question = await thought(judge)
    other = desk.ask(OTHER_QUESTION)
    await desk.wait(90)
    await said_yes(judge)
    assert offers(desk) == 0
    await desk.wait(60, step=5)
    assert [asked for asked, _ in judge.asked] == [question.message_id, other.message_id]
    assert desk.channel.offer
    assert desk.channel.offer.subject_id == other.message_id


async def test_what_is_due_with_it_is_come_back_to_after_a_no() -> None:
    desk = Desk(judge=Judge(says=False))
    await desk.on()
    desk.proactive_offers.note(CHANNEL, note_at(desk.clock() + timedelta(seconds=150)))
    desk.ask()
    await desk.wait(120)  # one look for both
    assert offers(desk) == 0
    await desk.wait(120, step=30)
    assert list(desk.wire.standing.values()) == [BURGER]


# A clock that jumps


async def _after_offer(desk: Desk, then: Any) -> None:
    await desk.offered()
    then()


async def _cooling(desk: Desk) -> None:
    talk(desk)
    await desk.wait(601)


STATES: dict[str, Any] = {
    "asked": lambda desk: desk.ask(),
    "offered": lambda desk: desk.offered(),
    "taken up": lambda desk: _after_offer(desk, lambda: desk.offers.accept(CHANNEL)),
    "declined": lambda desk: _after_offer(desk, lambda: desk.offers.decline(CHANNEL)),
    "talking": talk,
    "cooling": _cooling,
    "noted": lambda desk: desk.proactive_offers.note(CHANNEL, note_at(desk.clock() + timedelta(hours=2))),
}


@pytest.mark.parametrize("jump", [HOUR, -30 * DAY])
@pytest.mark.parametrize("state_name", STATES)
async def test_a_clock_that_jumps_leaves_nothing_hanging_and_nothing_old_offered(state_name: str, jump: float) -> None:
    desk = Desk()
    await desk.on()
    begun = STATES[state_name](desk)
    if asyncio.iscoroutine(begun):
        await begun
    await desk.pulse()
    before = offers(desk)
    desk.clock.advance(jump)
    await desk.pulse()
    assert offers(desk) == before
    await desk.wait(601, step=5)
    assert state(desk) is THINKING
    assert desk.channel.offer is None
    about_a_note = int(state_name == "noted" and jump == HOUR)
    await desk.wait(2 * COOLDOWN, step=5)
    assert offers(desk) - before == about_a_note
    if not about_a_note:
        assert desk.cooldown is None
        await desk.offered()


# What does not grow


async def test_a_busy_channel_stays_small(desk: Desk) -> None:
    await desk.on()
    for i in range(2_000):
        desk.hear((ANNA, BEN, CLEO)[i % 3], f"does anybody know what number {i} is good for?")
        desk.clock.advance(3)
        desk.proactive_offers.pulse()
    await settle()
    assert len(desk.channel.recent.messages) == 50
    assert len(desk.channel.recent.answered) <= 50
    assert len(desk.channel.looks) <= MAX_LOOKS + 1
    assert len(desk.offer_channels._heap) <= 20
    assert offers(desk) == 0
    await desk.wait(2 * HOUR, step=30)
    assert (list(desk.channel.recent.messages), desk.channel.looks, len(desk.offer_channels._heap)) == ([], [], 1)


async def test_channels_that_are_switched_off_again_leave_nothing(desk: Desk) -> None:
    for channel_id in range(500):
        desk.offer_channels.open(channel_id, GUILD).is_on = True
    assert len(desk.offer_channels) == 500
    for channel_id in range(500):
        desk.proactive_offers.switch_off(channel_id)
    assert (len(desk.offer_channels), len(desk.offer_channels._heap), desk.disk) == (0, 0, {})


# The pulse


class Counting:
    """A trigger that counts how often it is asked. wait: seconds."""

    def __init__(self, wait: float = 20) -> None:
        self.id = f"after {wait} s"
        self._wait = timedelta(seconds=wait)
        self.count = 0

    def looks(self, message: MessageRecord) -> datetime | None:
        return message.timestamp + self._wait

    def due(self, channel: OfferChannel, now: datetime) -> Opportunity | None:  # noqa: ARG002 - it is asked by these names
        self.count += 1
        return None


async def test_only_those_triggers_look_whose_time_has_come() -> None:
    soon, late = Counting(20), Counting(60)
    desk = Desk(triggers=[soon, late])
    await desk.on()
    desk.hear(ANNA, "hello")
    await desk.wait(50, step=5)
    assert (soon.count, late.count) == (1, 0)
    await desk.wait(50, step=5)
    assert (soon.count, late.count) == (1, 1)


@pytest.mark.virtual_time
async def test_the_pulse_comes_every_five_seconds_until_it_is_cancelled() -> None:
    counting = Counting()
    desk = Desk(triggers=[counting])
    loop, start = asyncio.get_running_loop(), desk.clock()
    await desk.on()
    desk.hear(ANNA, "hello")
    desk.offer_channels.clock = lambda: start + timedelta(seconds=loop.time())
    pulse = asyncio.create_task(desk.proactive_offers.keep())
    await asyncio.sleep(4 * PULSE_SECONDS - 1)
    assert counting.count == 0
    await asyncio.sleep(2)
    assert counting.count == 1
    pulse.cancel()
    await asyncio.gather(pulse, return_exceptions=True)
    assert pulse.cancelled()
