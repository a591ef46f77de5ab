"""What is stored of offers comes back after a restart, whatever has become of it meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import orjson
import pytest
from structlog.typing import EventDict

from discord_io.channel_wire import Posted
from offers.offer import LABELS, Offer
from offers.offer_channels import STORED, StoredChannel
from offers.offer_limits import OfferLimits
from state.proactive import AgentStateV2
from tests.support.clock import NOON
from tests.support.offers import ENDS, QUESTION, Desk, note_at, opportunity, outcomes
from tests.support.people import ANNA, BEN, BOT, CHANNEL, CLEO, GUILD, said
from tests.support.virtual_time import settle

Document = dict[str, Any]
MINUTE = 60.0
THINKING, PROACTIVE, REACTIVE = AgentStateV2.THINKING, AgentStateV2.PROACTIVE, AgentStateV2.REACTIVE


async def full() -> Desk:
    """A channel of which everything there is to store is stored."""
    desk = Desk()
    await desk.on()
    desk.channel.setbacks, desk.channel.offered = 2, [5, 6]
    desk.channel.made = [desk.clock() - timedelta(hours=3)]
    desk.proactive_offers.note(CHANNEL, note_at(desk.clock() + timedelta(hours=5)))
    desk.proactive_offers.note(CHANNEL, note_at(desk.clock() + timedelta(hours=7)))
    await desk.offered()
    return desk


def document(desk: Desk) -> Document:
    stored = orjson.loads(desk.disk[CHANNEL])
    assert isinstance(stored, dict)
    return stored


def changed(stored: Document, path: str, value: Any) -> Document:
    """The document with another value at a place such as "offer.occasion.line"; `...` takes it out."""
    *parents, name = path.split(".")
    place = stored
    for parent in parents:
        place = place[parent]
    if value is ...:
        del place[name]
    else:
        place[name] = value
    return stored


# What comes back


async def test_all_of_it_comes_back_as_it_was() -> None:
    desk = await full()
    again = Desk(after=desk)
    assert again.offer_channels.stored(CHANNEL) == desk.offer_channels.stored(CHANNEL)
    assert again.channel.machine == desk.channel.machine
    assert again.channel.offer == desk.channel.offer
    assert (again.channel.notes, again.channel.made) == (desk.channel.notes, desk.channel.made)
    recent = again.channel.recent.messages
    assert all(message.content == QUESTION for message in recent), "of the others nothing is stored"
    assert again.proactive_offers.listens(CHANNEL)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"mentioned": frozenset({BEN, CLEO}), "readable": "words", "images": ("https://example.org/a.png",)},
        {"reply_to_id": 5, "reply_to_author_id": ANNA, "mentions_group": True},
        {"content": "“é😀\u2028\x00"},
    ],
)
def test_an_offers_subject_comes_back_word_by_word(more: Any) -> None:
    offer = Offer("o1", opportunity(said(ANNA, **more)), NOON, GUILD, "Shall I?", 9)
    stored = StoredChannel(True, GUILD, {}, offer, made=(NOON,), offered=(1,), setbacks=3)
    assert STORED.validate_python(orjson.loads(stored.to_json()), strict=False) == stored


async def test_an_open_offer_can_be_answered_after_a_restart() -> None:
    again = Desk(after=await full())
    assert again.offers.reply_of(CHANNEL, said(ANNA, "yes please"))
    offer = again.offers.accept(CHANNEL)
    assert offer
    assert offer.opportunity.subject
    assert offer.opportunity.subject.content == QUESTION
    await again.pulse()
    assert len(again.wire.offered) == 1


async def test_an_open_offer_that_was_ignored_over_a_restart_goes_and_counts_as_that(logs: list[EventDict]) -> None:
    desk = await full()
    desk.clock.advance(601)
    again = Desk(after=desk)
    await again.pulse()
    assert (again.wire.standing, outcomes(logs)) == ({}, ["ignored"])
    assert again.cooldown == 1_800 * 2**3


@pytest.mark.parametrize("how", ENDS)
async def test_an_open_offer_goes_with_its_reason_after_a_restart_too(how: str) -> None:
    desk = Desk()
    question = await desk.offered()
    again = Desk(after=desk)
    await again.pulse()
    ENDS[how][0](again, question.message_id)
    await settle()
    assert (again.channel.offer, again.wire.standing) == (None, {})


async def test_a_note_is_come_back_to_after_a_restart_once() -> None:
    desk = Desk()
    await desk.on()
    desk.proactive_offers.note(CHANNEL, note_at(desk.clock() + timedelta(hours=5)))
    desk.clock.advance(6 * 3_600)
    again = Desk(after=desk)
    await again.pulse()
    assert list(again.wire.standing.values()) == [f"<@{ANNA}>, How was the burger?"]
    third = Desk(after=again)
    await third.wait(86_400, step=600)
    assert len(third.wire.offered) == 1


async def test_the_days_count_the_setbacks_and_the_cooldown_hold_over_restarts() -> None:
    desk = Desk()
    await desk.on()
    for _ in range(20):
        desk.ask()
        await desk.wait(90)
        if desk.channel.offer:
            desk.offers.accept(CHANNEL)
        desk = Desk(after=desk)
        await desk.wait(20 * MINUTE, step=30)
        desk = Desk(after=desk)
    assert len(desk.wire.offered) == 3


async def test_what_was_offered_about_is_not_offered_about_again() -> None:
    desk = Desk(OfferLimits(cooldown_seconds=0, timeout_seconds=5))
    question = await desk.offered()
    again = Desk(OfferLimits(cooldown_seconds=0, timeout_seconds=5), after=desk)
    await again.wait(10, step=5)
    again.proactive_offers.heard(
        CHANNEL, said(BEN, f"<@{BOT}0> hi", question.timestamp - timedelta(minutes=1), message_id=1)
    )
    again.proactive_offers.heard(CHANNEL, question)  # read again from where we left off
    await again.wait(300, step=5)
    assert len(again.wire.offered) == 1


@pytest.mark.parametrize(("stands", "cooldown"), [(60, 120), (6_000, 7_200)])
async def test_the_settings_of_now_hold_for_what_was_stored_with_others(stands: float, cooldown: float) -> None:
    desk = Desk()
    await desk.offered()
    again = Desk(OfferLimits(stands, cooldown), after=desk)
    await again.wait(stands)
    assert again.channel.offer
    await again.wait(0.001)
    assert again.channel.offer is None
    assert again.cooldown == 2 * cooldown


# One that was being posted


async def posting(*, arrived: bool = True) -> Desk:
    """The desk after a process was killed that had stored an offer, whether Discord had got it or not."""
    desk = Desk()
    await desk.on()
    desk.offer_channels.settled = asyncio.Event().wait
    desk.ask()
    await desk.wait(90)
    killed = Desk(after=desk)
    offer = killed.channel.offer
    assert offer
    assert offer.message_id is None
    if arrived:
        await killed.wire.offer(offer.text, offer.id, LABELS, nonce=f"offer-{offer.subject_id}"[:25])
    for task in desk.offers._work:
        task.cancel()
    await settle()
    return killed


@pytest.mark.parametrize("seconds", [5.0, 59.0, 60.0, 300.0])
async def test_an_offer_that_was_posted_is_found_and_not_posted_once_more(seconds: float) -> None:
    desk = await posting()
    ((message_id, _),) = desk.wire.standing.items()
    await desk.wait(seconds)
    assert len(desk.wire.offered) == 1
    assert desk.channel.offer
    assert desk.channel.offer.message_id == message_id
    assert desk.wire.looked_for == [(desk.channel.offer.id, desk.channel.offer.subject_id)]
    assert [posted.message_id for _, _, posted in desk.shown] == [message_id]
    await desk.wait(120, step=5)
    assert len(desk.wire.looked_for) == 1


async def test_an_offer_that_cannot_be_found_is_posted_once_more_as_the_same_message() -> None:
    desk = await posting()
    desk.wire.is_readable = False
    await desk.wait(55, step=5)
    first, second = desk.wire.offered
    assert first == second
    ((message_id, _),) = desk.wire.standing.items()
    assert desk.channel.offer
    assert desk.channel.offer.message_id == message_id


async def test_an_offer_that_was_not_posted_is() -> None:
    desk = await posting(arrived=False)
    await desk.wait(5)
    assert (len(desk.wire.offered), len(desk.wire.standing)) == (1, 1)
    assert desk.offers.reply_of(CHANNEL, said(ANNA, "yes"))


async def test_after_a_minute_one_that_is_not_found_is_dropped(logs: list[EventDict]) -> None:
    desk = await posting(arrived=False)
    desk.clock.advance(60)
    await desk.pulse()
    assert (desk.wire.offered, desk.wire.deleted, desk.channel.offer) == ([], [], None)
    assert outcomes(logs) == ["withdrawn"]


async def test_it_can_be_clicked_before_it_is_found() -> None:
    desk = await posting()
    ((message_id, _),) = desk.wire.standing.items()
    assert desk.offers.find(CHANNEL, desk.wire.offered[0][0], Posted(message_id, NOON))
    assert desk.offers.accept(CHANNEL)
    await desk.wait(120, step=5)
    assert (len(desk.wire.offered), desk.wire.deleted, len(desk.shown)) == (1, [], 1)


async def looking() -> tuple[Desk, int]:
    """A process that is looking for the message of an offer, which stands."""
    desk = await posting()
    desk.wire.reading = asyncio.Event()
    await desk.wait(5)
    assert desk.wire.looked_for
    ((message_id, _),) = desk.wire.standing.items()
    return desk, message_id


async def test_a_yes_while_it_is_being_looked_for_counts_and_the_message_stays() -> None:
    desk, message_id = await looking()
    assert desk.offers.find(CHANNEL, desk.wire.offered[0][0], Posted(message_id, NOON))
    assert desk.offers.accept(CHANNEL)
    assert desk.wire.reading
    desk.wire.reading.set()
    await settle()
    assert (list(desk.wire.standing), desk.wire.deleted) == ([message_id], [])


@pytest.mark.parametrize("how", ["switched off", "an answer", "deleted"])
async def test_what_ends_while_it_is_being_looked_for_is_removed_once(how: str) -> None:
    desk, message_id = await looking()
    offer = desk.channel.offer
    assert offer
    ENDS[how][0](desk, offer.subject_id)
    assert desk.channel.offer is None
    assert desk.wire.reading
    desk.wire.reading.set()
    await settle()
    assert (desk.wire.standing, desk.wire.deleted) == ({}, [message_id])


# What cannot be read


REFUSED: list[tuple[str, Any]] = [
    ("is_on", ...),
    ("is_on", "perhaps"),
    ("guild_id", ...),
    ("guild_id", "here"),
    ("machine", ...),
    ("machine", None),
    ("machine", [1]),
    ("notes", {"a": 1}),
    ("notes", [{}]),
    ("notes", [None]),
    ("made", ["yesterday"]),
    ("made", ["2026-03-02T12:00:00"]),
    ("offered", ["x"]),
    ("setbacks", "many"),
    ("setbacks", None),
    ("offer", "yes"),
    ("offer", {}),
    ("offer.id", ...),
    ("offer.made_at", "2026-03-02T12:00:00"),
    ("offer.message_id", "x"),
    ("offer.occasion", None),
    ("offer.occasion.user_id", ...),
    ("offer.occasion.subject", {"author": "Anna"}),
    ("offer.occasion.subject.timestamp", "noon"),
]


async def test_what_is_missing_or_of_another_type_is_refused_and_leaves_nothing() -> None:
    whole, desk = orjson.dumps(document(await full())), Desk()
    for path, value in REFUSED:
        with pytest.raises(ValueError, match="StoredChannel"):
            desk.offer_channels.restore(CHANNEL, changed(orjson.loads(whole), path, value))
    for stored in (None, 5, "x", [], {}, [1, 2], {"_v": 2}):
        with pytest.raises(ValueError, match="StoredChannel"):
            desk.offer_channels.restore(CHANNEL, stored)
    assert len(desk.offer_channels) == 0


@pytest.mark.parametrize("path", ["more", "offer.more", "offer.occasion.more", "offer.occasion.subject.more"])
async def test_what_a_later_form_may_have_more_is_left_out(path: str) -> None:
    desk = await full()
    again = Desk()
    again.offer_channels.restore(CHANNEL, changed(document(desk), path, {"a": [1]}))
    assert again.offer_channels.stored(CHANNEL) == desk.offer_channels.stored(CHANNEL)


@pytest.mark.parametrize("path", ["offer", "notes", "made", "offered", "setbacks"])
async def test_what_an_earlier_form_may_not_have_yet_is_as_if_nothing_was(path: str) -> None:
    again = Desk()
    again.offer_channels.restore(CHANNEL, changed(document(await full()), path, ...))
    assert not getattr(again.channel, path)


BAD_MACHINES: dict[str, Callable[[Document], object]] = {
    "empty": lambda machine: machine.clear(),
    "another version": lambda machine: machine.update(_v=1),
    "an unknown state": lambda machine: machine.update(current_state="asleep"),
    "a missing field": lambda machine: machine.pop("last_interaction_at"),
    "a wrong type": lambda machine: machine.update(thinking=[]),
    "a negative time": lambda machine: machine.update(last_interaction_at=-1),
    "a conversation that is another channel": lambda machine: machine.update(conversation_id="815"),
    "a conversation that is no channel": lambda machine: machine.update(conversation_id="somewhere"),
    "of another channel": lambda machine: machine.update(session_id="815"),
}


async def spoiled(spoil: Callable[[Document], object]) -> Desk:
    """After a restart that found a machine that cannot be used, and everything else."""
    desk = await full()
    stored = document(desk)
    spoil(stored["machine"])
    again = Desk()
    again.clock.now = desk.clock()
    again.offer_channels.restore(CHANNEL, stored)
    assert again.channel.is_on
    assert (again.channel.offer, again.channel.notes) == (desk.channel.offer, desk.channel.notes)
    return again


@pytest.mark.parametrize("what", BAD_MACHINES)
async def test_where_only_the_machine_is_bad_an_open_offer_does_not_stay_for_ever(
    what: str, logs: list[EventDict]
) -> None:
    desk = await spoiled(BAD_MACHINES[what])
    await desk.wait(601, step=5)
    assert (desk.channel.offer, outcomes(logs)[-1:]) == (None, ["ignored"])


@pytest.mark.parametrize("state", [THINKING, PROACTIVE])
async def test_an_open_offer_goes_when_its_time_is_over_whatever_the_machine_was_stored_as(state: str) -> None:
    desk = await full()
    stored = document(desk)
    stored["machine"]["current_state"] = state
    again = Desk(after=desk)
    again.offer_channels.restore(CHANNEL, stored)
    await again.wait(601, step=5)
    assert (again.channel.offer, again.wire.standing) == (None, {})
