"""state/numerals.py: numbers in words and ordinals, in digits."""

from __future__ import annotations

import pytest

from state.numerals import cardinal, has_numbers, in_digits, ordinal


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("twenty", "20"),
        ("twenty five", "25"),
        ("one hundred and two", "102"),
        ("one hundred thousand and five", "100005"),
        ("a thousand", "a 1000"),
        ("first", "1th"),
        ("2nd", "2th"),
        ("twenty first", "21th"),
        ("twentyfirst", "21th"),
        ("ninetyfive", "95"),
        ("two hundredth", "200th"),
        ("one hundred twenty fifth", "125th"),
        ("three trillionth", "3000000000000th"),
        ("007", "7"),
        ("٢", "2"),
        ("the first one", "the 1th one"),
    ],
)
def test_a_number_is_put_in_digits(text: str, digits: str) -> None:
    assert in_digits(text.split()) == digits.split()


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("one", "one"),
        ("one third", "one 3th"),
        ("two three", "2 3"),
        ("two and three", "2 and 3"),
        ("twenty ten", "20 10"),
        ("twenty and five", "20 and 5"),
        ("one hundred and some", "100 and some"),
        ("salt and pepper", "salt and pepper"),
        ("3d", "3d"),
    ],
)
def test_what_makes_no_number_together_stays_apart(text: str, digits: str) -> None:
    assert in_digits(text.split()) == digits.split()


def test_cardinals_and_ordinals_are_told_apart() -> None:
    assert (cardinal("21"), ordinal("21")) == (21, None)
    assert (cardinal("21th"), ordinal("21th")) == (None, 21)
    assert (cardinal("with"), ordinal("with")) == (None, None)
    assert cardinal("9" * 5000) is None


@pytest.mark.parametrize("text", ["two", "the 2nd", "fortytwo", "tenth"])
def test_words_with_a_number_have_one(text: str) -> None:
    assert has_numbers(text.split())


@pytest.mark.parametrize("text", ["", "one", "salt and pepper", "plenty"])
def test_words_without_a_number_have_none(text: str) -> None:
    assert not has_numbers(text.split())
