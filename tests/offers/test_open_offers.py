"""offers/open_offers.py: how an offer is posted and ends, and what happens where the two meet."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from structlog.typing import EventDict

from discord_io.channel_wire import Posted, Problem
from offers.offer import Ending, Offer, Reply
from state.proactive import AgentStateV2
from tests.support import offers as support
from tests.support.clock import NOON
from tests.support.offers import QUESTION, Desk, note_at, outcomes
from tests.support.people import ANNA, BEN, BOT, CHANNEL, CLEO, GUILD, said
from tests.support.virtual_time import settle

ELSEWHERE = 701


async def posting(desk: Desk) -> int:
    """The id of the message of an offer that Discord has and has not told us of yet."""
    desk.wire.gate = asyncio.Event()
    await desk.on()
    desk.ask()
    await desk.wait(90)
    (message_id,) = desk.wire.standing
    assert desk.channel.offer
    assert desk.channel.offer.message_id is None
    return message_id


async def answer_comes(desk: Desk) -> None:
    assert desk.wire.gate
    desk.wire.gate.set()
    await settle()


def click(desk: Desk, message_id: int) -> Offer | None:
    """Somebody clicks on what stands there; the offer that they find."""
    offer_id = desk.wire.offered[-1][0]
    return desk.offers.find(CHANNEL, offer_id, Posted(message_id, NOON))


# How it is posted


async def test_it_stands_with_a_link_to_its_question(desk: Desk) -> None:
    question = await desk.offered()
    (text,) = desk.wire.standing.values()
    assert text == (
        f"Nobody has answered [this question](https://discord.com/channels/{GUILD}/{CHANNEL}/{question.message_id}) "
        f"of <@{ANNA}> yet. Shall I try?"
    )
    assert QUESTION not in text


async def test_those_who_are_to_know_are_told_of_it_once(desk: Desk) -> None:
    await desk.offered()
    ((channel_id, offer, posted),) = desk.shown
    assert (channel_id, offer.message_id, posted.content) == (CHANNEL, posted.message_id, offer.text)
    assert offer == desk.channel.offer


async def test_its_nonce_is_one_that_discord_takes_and_comes_from_its_question(desk: Desk) -> None:
    await desk.on()
    desk.hear(BEN, f"<@{BOT}0> hi")
    desk.clock.advance(60)
    question = desk.hear(ANNA, QUESTION, message_id=2**64 - 1)
    await desk.wait(90)
    ((_, nonce),) = desk.wire.offered
    assert nonce == f"offer-{question.message_id}"[:25]


async def test_it_is_stored_before_it_is_posted_and_with_its_message_afterwards(desk: Desk) -> None:
    message_id = await posting(desk)
    assert b'"message_id":null' in desk.disk[CHANNEL]
    await answer_comes(desk)
    assert f'"message_id":{message_id}'.encode() in desk.disk[CHANNEL].split(b'"text"')[-1]


async def test_it_links_the_channel_as_a_new_conversation(desk: Desk) -> None:
    await desk.offered()
    machine = desk.channel.machine
    assert (machine.conversation_linked, machine.conversation_id) == (True, str(CHANNEL))


async def test_a_note_is_offered_in_its_own_words(desk: Desk) -> None:
    await desk.on()
    desk.proactive_offers.note(CHANNEL, note_at(NOON + timedelta(hours=3), text="How was {link}, the burger?"))
    await desk.wait(3 * 3_600)
    (text,) = desk.wire.standing.values()
    assert text.startswith(f"<@{ANNA}>, How was ")
    assert text.endswith(", the burger?")


@pytest.mark.parametrize("problem", [p for p in Problem if p is not Problem.UNREACHABLE])
async def test_what_cannot_be_posted_is_withdrawn_and_not_tried_again(
    desk: Desk, problem: Problem, logs: list[EventDict]
) -> None:
    desk.wire.problems.append(problem)
    await desk.on()
    desk.ask()
    await desk.wait(15 * 60, step=30)
    assert len(desk.wire.offered) == 1
    assert (desk.channel.offer, desk.wire.standing, desk.wire.deleted) == (None, {}, [])
    assert outcomes(logs) == ["withdrawn"]
    assert desk.channel.setbacks == 0
    assert [entry["problem"] for entry in logs if entry["event"] == "offer_failed"] == [problem]
    assert len(desk.channel.made) == 1, "it counts all the same: who cannot post does not go on trying"


async def test_one_that_cannot_be_posted_any_more_is_not_withdrawn_twice(desk: Desk, logs: list[EventDict]) -> None:
    await desk.on()
    question = desk.ask()
    desk.wire.problems.append(Problem.UNREACHABLE)
    desk.clock.advance(90)
    desk.proactive_offers.pulse()
    await asyncio.sleep(0)
    desk.proactive_offers.messages_gone(CHANNEL, [question.message_id])
    await settle()
    assert outcomes(logs) == ["withdrawn"]


@pytest.mark.parametrize("arrives", [True, False])
async def test_what_discord_could_not_be_told_is_looked_for_and_posted_once(desk: Desk, arrives: bool) -> None:
    desk.wire.problems.append(Problem.UNREACHABLE)
    desk.wire.arrives_anyway = arrives
    await desk.on()
    desk.ask()
    await desk.wait(90)
    assert len(desk.wire.standing) == arrives
    await desk.wait(30)
    (message_id,) = desk.wire.standing
    offer = click(desk, message_id)
    assert offer
    assert offer.message_id == message_id


async def test_what_discord_cannot_be_told_for_long_is_let_go(desk: Desk, logs: list[EventDict]) -> None:
    desk.wire.problems.extend([Problem.UNREACHABLE] * 9)
    await desk.on()
    desk.ask()
    await desk.wait(90)
    await desk.wait(15 * 60, step=5)
    assert outcomes(logs) == ["withdrawn"]
    assert not desk.wire.standing


async def test_nothing_is_posted_where_a_cooldown_began_meanwhile(desk: Desk) -> None:
    await desk.offered()
    desk.offers.decline(CHANNEL)
    desk.clock.advance(601)
    desk.offers.tick(desk.channel)
    assert desk.cooldown
    before = len(desk.wire.offered)
    offer = desk.shown[0][1]
    await desk.offers.make(desk.channel, offer.opportunity)
    assert (desk.channel.offer, len(desk.wire.offered)) == (None, before)


# Clicks, before and after the post's answer


async def test_an_offer_is_found_by_its_id_alone(desk: Desk) -> None:
    await desk.offered()
    assert desk.channel.offer
    posted = desk.shown[0][2]
    assert desk.offers.find(CHANNEL, desk.channel.offer.id, posted) == desk.channel.offer
    assert desk.offers.find(CHANNEL, "another", posted) is None
    assert desk.offers.find(ELSEWHERE, desk.channel.offer.id, posted) is None


async def test_an_offer_whose_time_is_over_is_not_found(desk: Desk) -> None:
    await desk.offered()
    posted = desk.shown[0][2]
    desk.clock.advance(601)
    assert click(desk, posted.message_id) is None
    await settle()
    assert desk.wire.deleted == [posted.message_id]


async def test_a_yes_before_the_posts_answer_counts_and_the_message_stays(desk: Desk, logs: list[EventDict]) -> None:
    message_id = await posting(desk)
    assert click(desk, message_id)
    offer = desk.offers.accept(CHANNEL)
    assert offer
    assert offer.message_id == message_id
    await answer_comes(desk)
    assert (list(desk.wire.standing), desk.wire.deleted) == ([message_id], [])
    assert len(desk.shown) == 1
    assert outcomes(logs) == ["accepted"]


async def test_a_no_before_the_posts_answer_removes_the_message_once(desk: Desk, logs: list[EventDict]) -> None:
    message_id = await posting(desk)
    assert click(desk, message_id)
    desk.offers.decline(CHANNEL)
    await answer_comes(desk)
    assert (desk.wire.standing, desk.wire.deleted) == ({}, [message_id])
    assert outcomes(logs) == ["declined"]


async def test_it_cannot_be_answered_in_words_before_it_is_known_to_stand(desk: Desk) -> None:
    await posting(desk)
    assert desk.offers.reply_of(CHANNEL, said(ANNA, "yes")) is None
    await answer_comes(desk)
    assert desk.offers.reply_of(CHANNEL, said(ANNA, "yes")) is Reply.YES


def late(desk: Desk, _: int) -> None:
    desk.clock.advance(601)
    desk.offers.tick(desk.channel)


ENDS = {**support.ENDS, "timed out": (late, "ignored")}


@pytest.mark.parametrize("how", ENDS)
async def test_what_ends_while_it_is_being_posted_is_removed_once(desk: Desk, how: str, logs: list[EventDict]) -> None:
    message_id = await posting(desk)
    end, outcome = ENDS[how]
    end(desk, desk.channel.offered[-1])
    assert desk.wire.deleted == [], "there is nothing known to delete yet"
    await answer_comes(desk)
    assert (desk.wire.standing, desk.wire.deleted) == ({}, [message_id])
    assert (outcomes(logs), desk.shown) == ([outcome], [])
    await desk.wait(900, step=30)
    assert desk.wire.deleted == [message_id]


@pytest.mark.parametrize("how", ENDS)
async def test_what_ends_while_it_is_being_stored_is_never_posted(desk: Desk, how: str, logs: list[EventDict]) -> None:
    gate = asyncio.Event()
    await desk.on()
    desk.offer_channels.settled = gate.wait
    desk.ask()
    await desk.wait(90)
    assert desk.channel.offer
    end, outcome = ENDS[how]
    end(desk, desk.channel.offered[-1])
    gate.set()
    await settle()
    assert (desk.wire.offered, desk.wire.deleted, outcomes(logs)) == ([], [], [outcome])


async def test_what_is_left_while_it_is_being_posted_is_removed_once(desk: Desk) -> None:
    message_id = await posting(desk)
    desk.proactive_offers.leave(CHANNEL)
    await answer_comes(desk)
    assert (desk.wire.deleted, desk.shown) == ([message_id], [])
    assert (desk.offer_channels.get(CHANNEL), desk.disk) == (None, {})
    await desk.wait(86_400, step=600)
    assert len(desk.wire.offered) == 1


async def test_a_channel_that_is_taken_up_anew_while_an_old_offer_is_posted_is_not_confused(desk: Desk) -> None:
    message_id = await posting(desk)
    desk.proactive_offers.leave(CHANNEL)
    await desk.on()
    await answer_comes(desk)
    assert desk.wire.deleted == [message_id]
    assert desk.channel.is_on
    assert desk.channel.offer is None


# What is said to it


async def test_only_its_addressee_answers_it(desk: Desk) -> None:
    await desk.offered()
    assert desk.offers.reply_of(CHANNEL, said(ANNA, "yes please")) is Reply.YES
    assert desk.offers.reply_of(CHANNEL, said(BEN, "yes please")) is None
    assert desk.offers.reply_of(ELSEWHERE, said(ANNA, "yes please")) is None


@pytest.mark.parametrize(
    ("more", "counts"),
    [
        ({"content": f"<@{BOT}> yes please"}, True),
        ({"content": f"<@!{BOT}>, yes please"}, True),
        ({"content": "Parley, yes please"}, True),
        ({"content": f"<@{BEN}> yes please"}, False),
        ({"content": f"<@{BOT}> <@{BEN}> yes please"}, False),
        ({"content": "Ben, yes please"}, False),
        ({"content": "yes please", "reply_to_id": 5, "reply_to_author_id": BEN}, False),
        ({"content": "yes please", "message_id": 3}, False),
        ({"content": ""}, False),
    ],
)
async def test_it_is_answered_by_what_is_said_to_us_or_to_nobody_and_after_it(
    desk: Desk, more: dict[str, Any], *, counts: bool
) -> None:
    await desk.offered()
    assert desk.offers.reply_of(CHANNEL, said(ANNA, **more)) is (Reply.YES if counts else None)


@pytest.mark.parametrize(
    ("between", "how", "counts"),
    [
        ((BEN, f"<@{CLEO}> lunch?"), {}, False),
        ((BEN, f"<@{CLEO}> lunch?"), {"content": f"<@{BOT}> yes"}, True),
        ((ANNA, "it is nginx on debian"), {}, True),
        (None, {"mentions_group": True}, False),
        (None, {"content": "yes, Ben"}, False),
    ],
)
async def test_a_bare_yes_counts_while_nobody_else_has_spoken_since(
    desk: Desk, between: tuple[int, str] | None, how: dict[str, Any], *, counts: bool
) -> None:
    await desk.offered()
    if between:
        desk.hear(*between)
    reply = desk.offers.reply_of(CHANNEL, said(ANNA, **{"content": "yes", **how}))
    assert reply is (Reply.YES if counts else None)


async def test_it_is_answered_once(desk: Desk, logs: list[EventDict]) -> None:
    await desk.offered()
    assert desk.offers.accept(CHANNEL)
    assert desk.offers.accept(CHANNEL) is None
    desk.offers.decline(CHANNEL)
    assert outcomes(logs) == ["accepted"]
    assert desk.offers.reply_of(CHANNEL, said(ANNA, "yes")) is None
    assert desk.channel.setbacks == 0


async def test_a_click_is_told_to_the_machine_which_stays_until_its_timeout(desk: Desk) -> None:
    await desk.offered()
    desk.clock.advance(500)
    desk.offers.accept(CHANNEL)
    assert desk.channel.machine.proactive.user_clicked_option
    desk.clock.advance(600)
    desk.offers.tick(desk.channel)
    assert desk.channel.machine.current_state is AgentStateV2.PROACTIVE


# How it ends


@pytest.mark.parametrize("ending", Ending)
async def test_what_stands_is_removed_however_it_ends(desk: Desk, ending: Ending, logs: list[EventDict]) -> None:
    await desk.offered()
    (message_id,) = desk.wire.standing
    desk.channel.setbacks = 2
    desk.offers.end(desk.channel, ending)
    await settle()
    assert (desk.wire.standing, desk.wire.deleted, outcomes(logs)) == ({}, [message_id], [ending])
    expected = {Ending.ACCEPTED: 0, Ending.DECLINED: 3, Ending.IGNORED: 3}
    assert desk.channel.setbacks == expected.get(ending, 2)
    desk.offers.end(desk.channel, ending)
    await settle()
    assert len(desk.wire.deleted) == 1


async def test_what_was_taken_up_says_so(desk: Desk) -> None:
    await desk.offered()
    offer = desk.offers.accept(CHANNEL)
    assert offer
    desk.offers.settle(CHANNEL, offer)
    await settle()
    assert list(desk.wire.standing.values()) == [offer.taken_up]
    assert desk.wire.deleted == []


@pytest.mark.parametrize("problem", Problem)
@pytest.mark.parametrize("how", ["settle", "remove"])
async def test_what_cannot_be_changed_any_more_is_left_and_said_so(
    desk: Desk, how: str, problem: Problem, logs: list[EventDict]
) -> None:
    await desk.offered()
    desk.wire.problem = problem
    if how == "settle":
        offer = desk.offers.accept(CHANNEL)
        assert offer
        desk.offers.settle(CHANNEL, offer)
    else:
        desk.offers.decline(CHANNEL)
    await settle()
    assert [entry["problem"] for entry in logs if entry["event"] == "offer_left_behind"] == [problem]
    assert desk.channel.offer is None
    await desk.ended()
    desk.wire.problem = None
    await desk.offered()


async def test_the_message_of_the_last_offer_is_known_after_it_is_over(desk: Desk) -> None:
    await desk.offered()
    (message_id,) = desk.wire.standing
    desk.offers.decline(CHANNEL)
    assert desk.offers.is_last(CHANNEL, message_id)
    assert not desk.offers.is_last(CHANNEL, message_id - 1)
    assert not desk.offers.is_last(ELSEWHERE, message_id)


async def test_no_work_is_kept_that_is_done(desk: Desk) -> None:
    await desk.offered()
    desk.offers.decline(CHANNEL)
    await settle()
    assert not desk.offers._work
