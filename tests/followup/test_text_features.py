"""followup/text_features.py: a message's own words as places in a table of weights."""

from __future__ import annotations

from math import sqrt
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from followup.text_features import MAX_BYTES, MAX_WORDS, SIZE, WEIGHT, Group, groups
from understanding.wording import read


def groups_of(text: str, before: str = "a") -> list[Group]:
    return list(groups(read(text), text, before))


def shared(one: str, other: str, group: int) -> float:
    """The share of the places of one text that another has too."""
    first, second = (set(groups_of(text)[group][0]) for text in (one, other))
    return len(first & second) / len(first)


@given(st.text(), st.sampled_from("abcde"))
def test_any_text_has_its_places_in_the_table_each_once(text: str, before: str) -> None:
    for places, weight in groups_of(text, before):
        assert all(0 <= place < SIZE for place in places)
        assert len(set(places)) == len(places)
        assert weight * sqrt(len(places) or 1) == pytest.approx(WEIGHT)


def test_the_same_words_are_at_the_same_places_in_every_process() -> None:
    """Python's own hash differs from start to start."""
    assert sorted(groups_of("zebra")[0][0]) == [7_072, 67_900, 87_666, 89_526]


@pytest.mark.parametrize("text", ["MAKE it Shorter", "make it  shorter", "make, it shorter"])
def test_words_count_whatever_their_case_and_the_space_between(text: str) -> None:
    assert shared(text, "make it shorter", 0) == 1


@pytest.mark.parametrize("other", ["it make shorter", "make it shorter?", "make it shorter now", "make it"])
def test_order_marks_beginning_and_end_count_too(other: str) -> None:
    one, another = {*groups_of("make it shorter")[0][0]}, {*groups_of(other)[0][0]}
    assert one & another
    assert one ^ another


def test_runs_of_letters_are_shared_by_words_of_one_stem() -> None:
    assert shared("shortening", "shortened", 1) > 0.5
    assert shared("shortening", "zebra", 1) == 0


@given(st.text(max_size=2 * MAX_BYTES))
def test_runs_are_at_the_places_of_their_checksums(text: str) -> None:
    """As all models that were ever trained have them."""
    whole = f" {text.casefold()} ".encode()[:MAX_BYTES]
    ends = ((start, start + run, run) for run in (3, 4) for start in range(len(whole) - run + 1))
    assert {*groups_of(text)[1][0]} == {crc32(whole[start:end], run) % SIZE for start, end, run in ends}


def test_words_count_a_second_time_together_with_who_spoke_before() -> None:
    after_bot, after_another = groups_of("make it shorter", "a"), groups_of("make it shorter", "e")
    assert after_bot[:2] == after_another[:2]
    assert not {*after_bot[2][0]} & {*after_another[2][0]}
    assert {*groups_of("zebra", "a")[2][0]} & {*after_bot[2][0]}  # that the bot spoke before, whatever the words


def test_mentions_links_and_code_are_no_words() -> None:
    assert shared("<@12> see https://cdn.example/x ```zebra```", "see", 0) == 1


def test_what_is_said_late_in_a_long_message_counts_no_more() -> None:
    start = " ".join(f"word{number}" for number in range(MAX_WORDS))
    assert groups_of(start + " zebra") == groups_of(start + " giraffe")
    assert len(start) > MAX_BYTES
    assert sum(len(places) for places, _ in groups_of("x y " * 1_000)) < 1_000
