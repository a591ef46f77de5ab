"""state/engagement.py: how the bot stands with each person, message by message."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import pytest

from state.engagement import MAX_PEOPLE, STRANGER, Engagement, Mark
from state.message import MessageRecord
from tests.support.clock import NOON
from tests.support.followups import after
from tests.support.people import ANNA, BEN, BOT, CLEO, replied, said


def engaged(*messages: MessageRecord, before: Engagement | None = None) -> Engagement:
    engagement = before or Engagement()
    for message in messages:
        engagement = engagement.after(message)
    return engagement


def due(engagement: Engagement) -> set[int]:
    return {who for who, standing in engagement.people.items() if standing.due_since}


# Marks


def test_each_message_gets_the_next_number() -> None:
    engagement = engaged(said(ANNA), replied(ANNA, at=after(5)), said(BEN, at=after(9)), said(ANNA, at=after(12)))
    assert (engagement.number, engagement.bot_messages, engagement.last_author) == (4, 1, ANNA)
    assert (engagement.bot, engagement.bot_name) == (BOT, "Parley")
    assert engagement.bot_spoke == Mark(1, after(5))
    assert engaged(replied(ANNA, at=after(15)), before=engagement).bot_spoke == Mark(4, after(15))
    anna, ben = engagement.standing(ANNA), engagement.standing(BEN)
    assert (anna.spoke, anna.spoken_to, anna.addressed) == (Mark(3, after(12)), Mark(1, after(5)), None)
    assert (ben.spoke, ben.spoken_to, ben.addressed) == (Mark(2, after(9)), None, None)
    assert (anna.last_heard, STRANGER.last_heard) == (3, -1)


def test_how_much_the_bot_had_said_when_a_person_spoke() -> None:
    engagement = engaged(said(ANNA), replied(ANNA), said(BEN), replied(BEN), replied(BEN))
    assert [engagement.standing(who).bot_messages for who in (ANNA, BEN, CLEO)] == [0, 1, 0]


# An answer that is due


def test_the_bots_words_await_an_answer_of_those_they_went_to() -> None:
    engagement = engaged(said(ANNA), replied(ANNA, at=after(5)))
    assert engagement.standing(ANNA).due_since == Mark(1, after(5))
    assert due(engaged(said(ANNA), before=engagement)) == set()
    assert due(engaged(said(BEN), before=engagement)) == {ANNA}
    assert due(engagement.after(said(BEN, "Anna, lunch?"), {ANNA})) == set()
    both = said(BOT, "Here you are.", addressees=frozenset({ANNA, BEN}))
    assert due(engaged(said(ANNA), both)) == {ANNA, BEN}


def test_the_bots_words_to_nobody_in_particular_go_to_who_spoke_last() -> None:
    assert due(engaged(said(ANNA), said(BEN), replied(None))) == {BEN}
    assert due(engaged(replied(None))) == set()


@pytest.mark.parametrize(
    "words",
    [
        said(BEN, f"<@{ANNA}> lunch?"),
        said(BEN, "lunch?", reply_to_id=5, reply_to_author_id=ANNA),
        said(BEN, f"lunch, <@{ANNA}>?", mentioned=frozenset()),
    ],
)
def test_an_answer_is_given_up_when_somebody_else_addresses_them(words: MessageRecord) -> None:
    engagement = engaged(said(ANNA), replied(ANNA))
    assert not engagement.standing(ANNA).is_addressed_by_others
    later = engaged(words, before=engagement)
    assert due(later) == set()
    assert later.standing(ANNA).is_addressed_by_others


@pytest.mark.parametrize("words", [said(ANNA, "sure"), replied(ANNA)])
def test_whoever_spoke_or_was_spoken_to_since_is_no_longer_addressed_by_others(words: MessageRecord) -> None:
    addressed = engaged(said(ANNA), replied(ANNA), said(BEN, f"<@{ANNA}> lunch?"))
    assert not engaged(words, before=addressed).standing(ANNA).is_addressed_by_others


def test_who_has_said_nothing_yet_is_noted_when_named_and_nobody_by_themselves() -> None:
    engagement = engaged(said(BEN, f"<@{CLEO}> hi"))
    assert engagement.standing(CLEO).is_addressed_by_others
    assert engagement.people_since(NOON) == {BEN}
    assert engaged(said(BEN, f"<@{BEN}> hi")).standing(BEN).addressed is None


def test_an_answer_is_due_for_five_minutes() -> None:
    engagement = engaged(said(ANNA), replied(ANNA))
    assert engagement.is_answer_due(said(ANNA, at=after(299)))
    assert not engagement.is_answer_due(said(ANNA, at=after(300)))
    assert not engagement.is_answer_due(said(BEN, at=after(1)))


def test_who_spoke_since() -> None:
    engagement = engaged(said(ANNA), said(BEN, at=after(240)), replied(CLEO, at=after(241)))
    assert engagement.people_since(NOON) == {ANNA, BEN}
    assert engagement.people_since(NOON + timedelta(seconds=1)) == {BEN}
    assert engagement.people_since(after(241)) == set()


# Told off


@pytest.mark.parametrize(
    ("messages", "told_off"),
    [
        ([replied(ANNA), said(ANNA, "stop")], True),
        ([replied(BEN), said(ANNA, "shut up")], True),
        ([replied(ANNA), said(BEN, "hm"), said(ANNA, "stop")], True),
        ([replied(BEN), said(BEN, "hm"), said(ANNA, "stop")], False),
        ([replied(BEN), said(BEN, "hm"), said(ANNA, f"<@{BOT}> stop")], True),
        ([replied(BEN), said(BEN, "hm"), said(ANNA, "stop", reply_to_id=5, reply_to_author_id=BOT)], True),
        ([replied(ANNA), said(ANNA, f"<@{BEN}> stop")], False),
        ([replied(ANNA), said(ANNA, "stop", reply_to_id=5, reply_to_author_id=BEN)], False),
        ([replied(ANNA), said(ANNA, "<@&5> stop", mentions_group=True)], False),
        ([replied(ANNA), said(ANNA, "stop the train")], False),
        ([said(BEN), said(ANNA, "stop")], False),
        ([said(ANNA, f"<@{BOT}> stop")], False),
        ([said(ANNA, "stop", tells_off=True)], True),
        ([replied(ANNA), said(ANNA, "never mind")], False),
        ([replied(ANNA), said(ANNA, "halt die Klappe")], True),
        ([replied(ANNA, at=NOON), said(BEN), said(ANNA, "stop", at=after(300))], False),
    ],
)
def test_the_bot_is_told_off_where_it_is_said_to_the_bot(messages: list[MessageRecord], told_off: bool) -> None:
    *earlier, last = messages
    before = engaged(said(ANNA), *earlier)
    assert before.is_telling_off(last) is told_off
    assert engaged(last, before=before).standing(ANNA).told_off is told_off


def test_who_is_called_by_name_is_told_off_and_not_the_bot() -> None:
    before = engaged(said(BEN), said(ANNA), replied(ANNA))
    assert before.is_telling_off(said(ANNA, "stop"))
    assert not before.is_telling_off(said(ANNA, "stop"), {BEN})
    assert not before.after(said(ANNA, "stop"), {BEN}).standing(ANNA).told_off


def test_being_told_off_lasts_until_that_person_calls_the_bot_back() -> None:
    told_off = engaged(said(ANNA), replied(ANNA), said(ANNA, "stop"))
    later = engaged(said(BEN, f"<@{BOT}> hi"), replied(BEN), said(ANNA, "why?"), replied(ANNA), before=told_off)
    assert later.standing(ANNA).told_off
    assert not later.standing(BEN).told_off
    for words in (said(ANNA, f"<@{BOT}> hi"), said(ANNA, "hi", reply_to_id=5, reply_to_author_id=BOT)):
        assert not engaged(words, before=later).standing(ANNA).told_off
    assert engaged(said(ANNA, f"<@{BOT}> stop"), before=later).standing(ANNA).told_off


# Bounded


def crowd(size: int) -> Iterable[MessageRecord]:
    return (said(10_000 + i, at=after(i)) for i in range(size))


def test_the_newest_people_are_kept() -> None:
    assert len(engaged(*crowd(MAX_PEOPLE)).people) == MAX_PEOPLE
    engagement = engaged(*crowd(1_000))
    assert 150 <= len(engagement.people) <= MAX_PEOPLE == 200
    assert set(engagement.people) >= {10_000 + i for i in range(850, 1_000)}


def test_whom_the_bot_spoke_to_or_others_addressed_counts_as_new() -> None:
    engagement = engaged(said(ANNA), said(BEN), *crowd(190), said(CLEO, f"<@{BEN}> hi"), replied(ANNA))
    engagement = engaged(*(said(20_000 + i) for i in range(20)), before=engagement)
    assert len(engagement.people) <= 200
    assert {ANNA, BEN, CLEO} <= set(engagement.people)
    assert 10_000 not in engagement.people


def test_ids_that_are_only_written_push_nobody_out() -> None:
    """Anybody can write `<@1>` to `<@300>`; Discord mentions nobody by it."""
    stands = Engagement().after(said(ANNA)).after(replied(ANNA)).after(said(ANNA, "not you"))
    crowd = " ".join(f"<@{number}>" for number in range(1_000, 1_300))
    assert stands.after(said(BEN, crowd, mentioned=frozenset())).standing(ANNA).told_off


# How often the bot answered whom


def heard(engagement: Engagement, who: int = ANNA) -> tuple[int, int, str]:
    """How many messages, how many answered, and which of them, the newest last."""
    standing = engagement.standing(who)
    return standing.said, standing.answered, f"{standing.trail:0{min(standing.said, 8)}b}"


def test_each_message_is_answered_once_at_most() -> None:
    engagement = engaged(said(ANNA), replied(ANNA), replied(ANNA))
    assert heard(engagement) == (1, 1, "1")
    assert heard(engaged(said(ANNA), said(ANNA), replied(ANNA), before=engagement)) == (3, 2, "101")


def test_whom_the_bot_addressed_before_they_spoke_was_not_answered() -> None:
    engagement = engaged(said(BEN), replied(ANNA))
    assert (engagement.standing(ANNA).answered, engagement.standing(ANNA).trail) == (0, 0)
    assert heard(engaged(said(ANNA), before=engagement)) == (1, 0, "0")


def test_which_of_the_last_eight_were_answered_is_kept() -> None:
    engagement = engaged(said(ANNA), replied(ANNA), *(said(ANNA) for _ in range(7)))
    assert heard(engagement) == (8, 1, "10000000")
    assert heard(engaged(said(ANNA), replied(ANNA), before=engagement)) == (9, 2, "00000001")
    assert engaged(*(said(ANNA) for _ in range(1_000)), replied(ANNA)).standing(ANNA).trail == 1
