"""followup/features.py: what the model is told of a message."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversation import MessageRecord
from followup.features import BOT as WITH_BOT
from followup.features import NEVER, NEVER_SECONDS, NOBODY, OTHER, feature_names
from tests.support.clock import NOON
from tests.support.followups import after, look_at
from tests.support.people import ANNA, BEN, BOT, CLEO, replied, said

ANSWERED = [
    said(BEN, "good morning"),
    said(ANNA, f"<@{BOT}> which kernel do I need?", after(5)),
    replied(ANNA, "The newest kernel is fine. Which laptop do you have?", after(10)),
]
PEOPLE = [BOT, ANNA, BEN, CLEO]
WINDOW, REACH = 12, 300  # as documented


def words_of_others(count: int) -> list[MessageRecord]:
    return [said(BEN, "hm", after(20)) for _ in range(count)]


# All of them


def test_the_names_stay_the_same_in_the_same_order() -> None:
    names = feature_names()
    assert len(set(names)) == len(names) > 50
    for message in (
        said(ANNA, "and my laptop?", after(20)),
        said(CLEO, ""),
        said(BEN, f"<@{BOT}> <@{ANNA}>, Ben: ok?"),
    ):
        assert list(look_at(message, *ANSWERED)) == names
        assert list(look_at(message)) == names


@pytest.mark.parametrize("content", ["", " ", "\n", f"<@{BEN}>", "?", ",", ":", "👍", "x" * 4_000, "a, " * 1_000])
def test_any_content_gives_finite_numbers(content: str) -> None:
    for earlier in ([], ANSWERED):
        assert all(math.isfinite(value) for value in look_at(said(ANNA, content, after(20)), *earlier).values())


@given(
    st.lists(
        st.tuples(
            st.sampled_from(PEOPLE),
            st.text() | st.sampled_from(["Anna, ok?", f"<@{BEN}> see", f"<@{BOT}>", "parley: you?"]),
            st.integers(-600, 600),
            st.sampled_from([frozenset(), frozenset({ANNA}), frozenset({ANNA, BEN})]),
        ),
        max_size=30,
    ),
    st.sampled_from(PEOPLE[1:]),
    st.text(),
)
def test_any_text_and_any_order_of_speakers_gives_finite_numbers(
    spoken: list[tuple[int, str, int, frozenset[int]]], author: int, content: str
) -> None:
    earlier = [
        said(who, text, after(at), addressees=addressees if who == BOT else frozenset())
        for who, text, at, addressees in spoken
    ]
    found = look_at(said(author, content), *earlier)
    assert list(found) == feature_names()
    assert all(math.isfinite(value) for value in found.values())


def test_who_was_called_by_name_before_they_spoke_is_the_same_recorded_or_not() -> None:
    found = look_at(said(ANNA, "me?", after(20)), said(BEN, "Anna, lunch?"))
    assert found["rival_to_own"] == 1


# Whom the bot spoke to


def test_an_answer_is_due_until_it_is_given() -> None:
    assert look_at(said(ANNA, "an old one", after(20)), *ANSWERED)["is_due"]
    assert not look_at(said(ANNA, "and big", after(30)), *ANSWERED, said(ANNA, "an old one", after(20)))["is_due"]
    assert not look_at(said(BEN, "an old one", after(20)), *ANSWERED)["is_due"]


def test_how_long_ago_the_bot_spoke_to_the_author_and_at_all() -> None:
    found = look_at(said(ANNA, "an old one", after(40)), *ANSWERED, replied(BEN, "hi", after(25)), *words_of_others(1))
    assert (found["to_author_ago"], found["to_author_seconds"]) == (3, 30)
    assert (found["bot_ago"], found["bot_seconds"]) == (2, 15)
    assert (found["to_author_asks"], found["bot_asks"], found["bot_messages_since_own"]) == (True, False, 2)


def test_a_conversation_without_the_bots_words_says_so() -> None:
    found = look_at(said(ANNA, "so, parley, and me?", after(20)), said(BEN, "hi"), said(ANNA, "hi", after(5)))
    assert {found[name] for name in ("to_author_ago", "bot_to_others_ago", "bot_to_own", "own_to_bot")} == {NEVER}
    assert {found[name] for name in ("to_author_seconds", "bot_seconds")} == {NEVER_SECONDS}
    assert {found[name] for name in ("to_author_asks", "bot_words", "bot_asks", "shared_bot")} == {-1}
    assert not any(found[name] for name in ("is_due", "names_bot", "names_bot_first", "bot_in_window", "overlap_bot"))


@pytest.mark.parametrize("content", [", you?", "you see,", "you: see", "and you?"])
@pytest.mark.parametrize("name", ["", "🤖"])
def test_a_bot_whose_name_has_no_words_is_not_called_by_every_message(content: str, name: str) -> None:
    earlier = [said(ANNA), said(BOT, "Hello.", author=name)] if name else [said(ANNA)]
    assert not look_at(said(ANNA, content), *earlier)["names_bot"]


def test_nothing_before_it_is_nothing() -> None:
    found = look_at(said(ANNA, "hello"))
    assert (found["partner"], found["before_run"], found["people"], found["own_in_window"]) == (NOBODY, NOBODY, 0, 0)
    assert (found["own_seconds"], found["window_seconds"]) == (NEVER_SECONDS, NEVER_SECONDS)


# With whom the author talks


@pytest.mark.parametrize(
    ("later", "partner"),
    [
        ([], WITH_BOT),
        ([said(BEN, f"<@{ANNA}> lunch?", after(12))], OTHER),
        ([said(ANNA, f"<@{BEN}> lunch?", after(12))], OTHER),
        ([said(ANNA, "Ben, lunch?", after(12))], OTHER),
        ([said(BEN, "lunch?", after(12))], WITH_BOT),
        ([said(BEN, f"<@{ANNA}> lunch?", after(12)), replied(ANNA, "hi", after(13))], WITH_BOT),
    ],
)
def test_the_partner_is_who_exchanged_words_with_the_author_last(later: list[MessageRecord], partner: float) -> None:
    assert look_at(said(ANNA, "sure", after(20)), *ANSWERED, *later)["partner"] == partner


def test_who_talks_with_nobody_has_no_partner() -> None:
    assert look_at(said(BEN, "sure", after(20)), *ANSWERED)["partner"] == NOBODY


def test_the_bot_is_weighed_against_the_authors_other_partners() -> None:
    with_bot = look_at(said(ANNA, "sure", after(20)), *ANSWERED)
    assert with_bot["margin"] > 0 == with_bot["rank"]
    lunch = [said(BEN, f"<@{ANNA}> lunch?", after(12)), said(ANNA, f"<@{BEN}> when?", after(13))]
    with_ben = look_at(said(ANNA, "sure", after(20)), *ANSWERED, *lunch)
    assert with_ben["margin"] < 0 < with_ben["rank"]
    assert with_ben["own_to_rivals_since"] == with_ben["rivals_to_own_since"] == 1


# Names


@pytest.mark.parametrize(
    ("content", "calls", "is_first"),
    [
        ("Parley, look", True, True),
        ("hey parley: look", True, True),
        ("Parley is it far", False, False),
        ("Parley is it far?", True, True),
        ("can you, parley", True, True),
        ("could you tell me parley", True, False),
        (f"see <@{BOT}>", True, False),
        (f"<@{BOT}> see", True, True),
        ("Parley is nice", False, False),
        ("the parleys were long", False, False),
        ("look", False, False),
    ],
)
def test_the_bot_is_called_by_name_but_not_by_talk_about_it(content: str, calls: bool, is_first: bool) -> None:
    found = look_at(said(ANNA, content, after(20)), *ANSWERED)
    assert (bool(found["names_bot"]), bool(found["names_bot_first"])) == (calls, is_first)
    assert not found["names_others"]


@pytest.mark.parametrize(
    ("content", "others", "is_first", "speaks"),
    [
        (f"<@{BEN}> look", 1, True, True),
        (f"look <@{BEN}> and <@{CLEO}>", 2, False, True),
        (f"look <@{CLEO}>", 1, False, False),
        ("Ben, look", 1, False, True),
        ("Cleo, look", 0, False, False),
        ("Anna, look", 0, False, False),
        (f"<@{BOT}> look", 0, False, False),
    ],
)
def test_others_are_named_by_mention_or_by_call(content: str, others: int, is_first: bool, speaks: bool) -> None:
    found = look_at(said(ANNA, content, after(20)), *ANSWERED)
    assert found["names_others"] == others
    assert (bool(found["names_others_first"]), bool(found["names_speakers"])) == (is_first, speaks)


# Words that are shared


def test_words_of_the_bots_count_against_those_of_others() -> None:
    rivals = said(BEN, "my garden needs water", after(12))
    takes_up_bot = look_at(said(ANNA, "my laptop has another kernel", after(20)), *ANSWERED, rivals)
    assert takes_up_bot["overlap_bot"] > 0 == takes_up_bot["overlap_rival"]
    assert takes_up_bot["overlap_margin"] > 0
    takes_up_ben = look_at(said(ANNA, "water the garden today", after(20)), *ANSWERED, rivals)
    assert takes_up_ben["overlap_rival"] > 0 == takes_up_ben["overlap_bot"]
    assert takes_up_ben["overlap_margin"] < 0
    takes_up_own = look_at(said(ANNA, "gardening", after(20)), *ANSWERED, said(ANNA, "gardening", after(12)))
    assert takes_up_own["overlap_own"] > 0 == takes_up_own["overlap_margin"]


def test_a_word_that_everybody_uses_counts_less() -> None:
    message = said(ANNA, "the laptop", after(30))
    everybodys = [said(BEN, "laptop", after(15 + i)) for i in range(5)]
    assert 0 < look_at(message, *ANSWERED, *everybodys)["overlap_bot"] < look_at(message, *ANSWERED)["overlap_bot"]


# How far it looks


def test_the_window_is_of_twelve_messages() -> None:
    message = said(ANNA, "and water", after(30))
    asked, answer = ANSWERED[1:]
    within = look_at(message, asked, answer, *words_of_others(WINDOW - 1))
    beyond = look_at(message, asked, answer, *words_of_others(WINDOW))
    assert (within["bot_in_window"], within["partner"], within["bot_to_own"]) == (1, WITH_BOT, WINDOW)
    assert (beyond["bot_in_window"], beyond["partner"], beyond["bot_to_own"]) == (0, NOBODY, NEVER)
    assert beyond["is_due"]
    rivals = said(BEN, "cold water", after(12))
    assert look_at(message, asked, answer, rivals, *words_of_others(WINDOW - 1))["overlap_rival"] > 0
    assert look_at(message, asked, answer, rivals, *words_of_others(WINDOW))["overlap_rival"] == 0


def test_the_bots_words_are_found_up_to_three_hundred_messages_back() -> None:
    message = said(ANNA, "an old laptop", after(30))
    within = look_at(message, *ANSWERED, *words_of_others(REACH - 1))
    beyond = look_at(message, *ANSWERED, *words_of_others(REACH))
    assert (within["to_author_ago"], within["overlap_bot"] > 0, within["bot_words"] > 0) == (REACH, True, True)
    assert (beyond["overlap_bot"], beyond["bot_words"], beyond["to_author_words"]) == (0, -1, -1)
    assert beyond["to_author_ago"] == REACH
    assert look_at(message, *ANSWERED, *words_of_others(REACH + 50))["to_author_ago"] == REACH


def test_only_the_last_three_messages_of_the_bot_are_read() -> None:
    message = said(ANNA, "an old laptop", after(30))
    two, three = ([replied(BEN, "Hello.", after(11)) for _ in range(count)] for count in (2, 3))
    assert look_at(message, *ANSWERED, *two)["overlap_bot"] > 0
    assert look_at(message, *ANSWERED, *three)["overlap_bot"] == 0


# The channel


def test_people_count_who_spoke_within_five_minutes() -> None:
    later = NOON + timedelta(minutes=5, seconds=3)
    assert look_at(said(CLEO, "hi", after(20)), *ANSWERED)["people"] == 2
    assert look_at(said(CLEO, "hi", later), *ANSWERED)["people"] == 1
    assert look_at(said(CLEO, "hi", after(20)), *ANSWERED, *words_of_others(2))["people_since_bot"] == 1


@pytest.mark.parametrize(
    ("later", "ago"),
    [
        ([said(BEN, "who knows zsh?", after(12))], 1),
        ([said(BEN, "who knows zsh?", after(12)), *words_of_others(5)], 6),
        ([said(BEN, "who knows zsh?", after(12)), *words_of_others(6)], 0),
        ([said(BEN, f"<@{CLEO}> do you know zsh?", after(12))], 0),
        ([said(ANNA, "who knows zsh?", after(12))], 0),
        ([replied(None, "who knows zsh?", after(12))], 0),
    ],
)
def test_a_question_to_nobody_in_particular_is_open(later: list[MessageRecord], ago: int) -> None:
    asked, answer = ANSWERED[1:]
    assert look_at(said(ANNA, "zsh is fine", after(30)), asked, answer, *later)["open_question"] == ago
