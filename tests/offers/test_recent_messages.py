"""offers/recent_messages.py: what is kept of a channel, what of it is answered, and when people are talking fast."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offers.recent_messages import MAX_CHARACTERS, MAX_MESSAGES, RecentMessages, is_fast_exchange
from state.message import MessageRecord
from tests.support.clock import NOON
from tests.support.people import ANNA, BEN, CLEO, DAN, said

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
QUESTION = "How do I mount an NTFS drive?"


def recent_of(*messages: MessageRecord) -> RecentMessages:
    recent = RecentMessages()
    for message in messages:
        recent.heard(message, message.timestamp)
    return recent


def ids(recent: RecentMessages) -> list[int]:
    return [message.message_id for message in recent.messages]


def apart(*gaps: float) -> list[MessageRecord]:
    """Messages with these seconds between them, the last one at noon."""
    ends = [sum(gaps[i:]) for i in range(len(gaps) + 1)]
    return [said(ANNA, at=NOON - end * SECOND) for end in ends]


def test_it_keeps_the_last_fifty() -> None:
    messages = [said(ANNA, f"message {i}", NOON + i * SECOND) for i in range(3 * MAX_MESSAGES)]
    recent = recent_of(*messages)
    assert list(recent.messages) == messages[-MAX_MESSAGES:]


def test_it_keeps_an_hour() -> None:
    old, young = said(ANNA, at=NOON), said(ANNA, at=NOON + SECOND)
    recent = recent_of(old, young)
    recent.expire(NOON + HOUR)
    assert list(recent.messages) == [old, young]
    recent.expire(NOON + HOUR + SECOND)
    assert list(recent.messages) == [young]
    recent.heard(said(BEN, at=NOON, message_id=5), NOON + HOUR + SECOND)
    assert list(recent.messages) == [young], "what comes too late does not stay"


def test_answered_ids_go_with_their_messages() -> None:
    messages = [said((ANNA, BEN)[i % 2], at=NOON + i * SECOND) for i in range(500)]
    recent = recent_of(*messages)
    assert set(recent.answered) == set(ids(recent)[:-1])
    recent.expire(NOON + 24 * HOUR)
    assert (list(recent.messages), set(recent.answered)) == ([], set())


def test_long_texts_are_clipped_and_still_mention_whom_they_mentioned() -> None:
    text = "x" * MAX_CHARACTERS
    recent = recent_of(said(ANNA, text), said(ANNA, f"{text} <@{BEN}>", readable=f"{text} @Ben"))
    first, second = recent.messages
    assert first.content == second.content == second.readable == text
    assert second.mentions == {BEN}


def test_no_quote_is_kept() -> None:
    recent = recent_of(
        said(ANNA, "oh", reply_to_id=5, reply_to_author_id=BEN, reply_to_author="Ben", reply_to_text="x")
    )
    kept = recent.messages[0]
    assert (kept.reply_to_id, kept.reply_to_author_id) == (5, BEN)
    assert (kept.reply_to_author, kept.reply_to_text) == ("", "")


def test_a_question_is_open_until_somebody_else_speaks() -> None:
    question = said(ANNA, QUESTION)
    recent = recent_of(question, said(ANNA, "on ubuntu"), said(BEN, f"<@{CLEO}> lunch?"))
    assert not recent.answered
    recent.heard(said(CLEO, "ntfs-3g"), NOON)
    assert question.message_id in recent.answered


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_order_of_arrival_does_not_matter(order: tuple[int, ...]) -> None:
    sent = [
        said(ANNA, QUESTION, NOON, message_id=1),
        said(BEN, "ntfs-3g", NOON + SECOND, message_id=2),
        said(CLEO, "I see", NOON + 2 * SECOND, message_id=3),
    ]
    recent = recent_of(*(sent[i] for i in order))
    assert list(recent.messages) == sent
    assert set(recent.answered) == {1, 2}


def test_of_two_at_once_the_higher_id_is_later() -> None:
    recent = recent_of(said(BEN, "hi", message_id=8), said(ANNA, QUESTION, message_id=7))
    assert ids(recent) == [7, 8]
    assert set(recent.answered) == {7}


def test_our_answer_covers_what_its_author_said_before() -> None:
    recent = recent_of(
        said(ANNA, "ValueError: x", NOON, message_id=1),
        said(BEN, f"<@{CLEO}> hi", NOON + SECOND, message_id=2),
        said(ANNA, f"<@{DAN}> {QUESTION}", NOON + 2 * SECOND, message_id=3),
        said(ANNA, f"<@{DAN}> and another?", NOON + 3 * SECOND, message_id=4),
    )
    recent.mark_answered(3)
    assert set(recent.answered) == {1, 3}
    recent.mark_answered(99)
    assert set(recent.answered) == {1, 3}


def test_an_edit_is_followed() -> None:
    question = said(ANNA, QUESTION, message_id=1)
    recent = recent_of(question, said(BEN, f"<@{CLEO}> use ntfs-3g", NOON + SECOND, message_id=2))
    recent.revise(said(ANNA, "How do I mount a FAT drive?", message_id=1))
    assert recent.messages[0].content == "How do I mount a FAT drive?"
    assert not recent.answered
    recent.revise(said(BEN, f"<@{ANNA}> use ntfs-3g", NOON + SECOND, message_id=2))
    assert set(recent.answered) == {1}
    recent.revise(said(BEN, f"<@{CLEO}> use ntfs-3g", NOON + SECOND, message_id=2))
    assert set(recent.answered) == {1}, "what was read cannot be unread"


def test_a_question_can_be_edited_to_say_that_it_is_solved() -> None:
    recent = recent_of(said(ANNA, QUESTION, message_id=1))
    recent.revise(said(ANNA, f"{QUESTION} EDIT: found it", message_id=1))
    assert set(recent.answered) == {1}


def test_a_message_that_is_deleted_is_gone() -> None:
    recent = recent_of(said(ANNA, QUESTION, message_id=1), said(BEN, "ntfs-3g", NOON + SECOND, message_id=2))
    recent.remove({1, 99})
    assert (ids(recent), set(recent.answered)) == ([2], set())


def test_deleting_the_answer_opens_nothing() -> None:
    recent = recent_of(said(ANNA, QUESTION, message_id=1), said(BEN, "ntfs-3g", NOON + SECOND, message_id=2))
    recent.remove([2])
    assert (ids(recent), set(recent.answered)) == ([1], {1})


def test_a_person_can_be_forgotten_and_all() -> None:
    recent = recent_of(
        said(ANNA, message_id=1), said(BEN, message_id=2), said(ANNA, message_id=3), said(CLEO, message_id=4)
    )
    recent.forget(ANNA)
    assert (ids(recent), set(recent.answered)) == ([2, 4], {2})
    recent.forget()
    assert (ids(recent), set(recent.answered)) == ([], set())


def test_a_fast_exchange_is_known() -> None:
    assert not is_fast_exchange([], NOON)
    for gaps, since, is_fast in (
        ((5, 5), 0, True),
        ((5, 5), 59, True),
        ((5, 5), 60, False),
        ((19, 19), 10, True),
        ((20, 20), 10, False),
        ((900, 900, 5, 5, 5), 10, True),
        ((5, 5, 900, 900, 900), 10, False),
        ((900, 900, 900, 1, 2, 3, 4, 5), 0, True),
        ((), 0, False),
        ((5,), 0, False),
        ((1, 1, 30, 30, 30), 0, False),
        ((5, 5), -3_600, True),  # the clock went back
        ((5, 5), 3_600, False),  # the clock went ahead
    ):
        assert is_fast_exchange(apart(*gaps), NOON + since * SECOND) is is_fast, (gaps, since)


@pytest.mark.parametrize(
    ("jump", "kept"), [(-5 * MINUTE, [1, 2, 3]), (-2 * HOUR, []), (-400 * 24 * HOUR, []), (2 * HOUR, [])]
)
def test_a_jump_of_the_clock_loses_messages_at_most(jump: timedelta, kept: list[int]) -> None:
    recent = recent_of(said(ANNA, QUESTION, message_id=1), said(BEN, f"<@{CLEO}> hi", NOON + SECOND, message_id=2))
    recent.heard(said(DAN, "ntfs-3g", NOON + 2 * SECOND, message_id=3), NOON + jump)
    assert (ids(recent), set(recent.answered)) == (kept, {1, 2} & set(kept))


MESSAGES = st.builds(
    lambda author, text, at, number: said(author, text, NOON + at * SECOND, message_id=number),
    st.sampled_from([ANNA, BEN, CLEO]),
    st.sampled_from([QUESTION, "nvm", f"<@{ANNA}> yes", "Ben, no", "", "thanks"]),
    st.integers(-4_000, 4_000),
    st.integers(1, 80),
)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("heard"), MESSAGES),
        st.tuples(st.just("revise"), MESSAGES),
        st.tuples(st.just("answered"), st.integers(1, 80)),
        st.tuples(st.just("remove"), st.sets(st.integers(1, 80), max_size=3)),
        st.tuples(st.just("forget"), st.sampled_from([ANNA, BEN, None])),
    ),
    max_size=120,
)


@given(EVENTS)
def test_whatever_happens_it_is_bounded_and_has_each_message_once(events: list[tuple[str, object]]) -> None:
    recent = RecentMessages()
    act: dict[str, Callable[[Any], None]] = {
        "heard": lambda message: recent.heard(message, NOON),
        "revise": recent.revise,
        "answered": recent.mark_answered,
        "remove": recent.remove,
        "forget": recent.forget,
    }
    for name, given_it in events:
        act[name](given_it)
        assert len(set(ids(recent))) == len(ids(recent)) <= MAX_MESSAGES
        assert set(recent.answered) <= set(ids(recent))
