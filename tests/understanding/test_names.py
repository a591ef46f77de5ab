"""understanding/names.py: whom a message calls by name, without a mention."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.support.people import ANNA, BEN, CLEO, DAN, EVE, said
from understanding.names import add_to, called_by_name, index_of, keys_of

NAMES = {
    BEN: "Ben", ANNA: "Anna", DAN: "calvinr", EVE: "Marta", 16: "Martin", 17: "so", 18: "Will", 19: "Алексей",
    CLEO: "Cleo",
}  # fmt: skip
TABLE = Path(__file__).with_name("named.txt").read_text(encoding="utf-8").splitlines()


def called(text: str, names: dict[int, str] = NAMES, author: int = CLEO) -> set[str]:
    return {names[who] for who in called_by_name(said(author, text), names)}


def test_who_is_called() -> None:
    lines = [line.partition(" =") for line in TABLE if line and not line.startswith("#")]
    expected = {text: {name.strip() for name in who.split(",") if name.strip()} for text, _, who in lines}
    assert len(expected) > 25
    assert {text: called(text) for text in expected} == expected


def test_nobody_calls_themselves() -> None:
    assert called("ben are you coming", author=BEN) == set()
    assert called("Ben, are you coming", author=BEN) == set()


def test_who_is_not_in_the_room_is_not_called() -> None:
    assert called("ben are you coming", {ANNA: "Anna"}) == set()


def test_two_of_one_name_are_called_with_a_comma_only() -> None:
    names = {BEN: "Ben", DAN: "ben", EVE: "Ben"}
    assert called_by_name(said(CLEO, "ben are you coming"), names) == frozenset()
    assert called_by_name(said(CLEO, "ben, are you coming"), names) == {BEN, DAN, EVE}


def test_a_name_of_several_words_is_called_by_its_first_or_a_long_one() -> None:
    names = {BEN: "Stormy_Petrel99", DAN: "the tall dragon"}
    for text, who in (("stormy hi", {BEN}), ("hi petrel99", {BEN}), ("hi tall", set()), ("dragon hi", {DAN})):
        assert called_by_name(said(CLEO, text), names) == who


def test_a_stop_names_nobody_whose_name_begins_like_it() -> None:
    names = {BEN: "Mindy", DAN: "forgetful_fred", EVE: "hushpuppy", ANNA: "Fred"}
    for text in ("mind your own business", "forget it", "hush", "hush!"):
        assert called_by_name(said(CLEO, text), names) == frozenset()
    assert called_by_name(said(CLEO, "mindy are you there"), names) == {BEN}
    assert called_by_name(said(CLEO, "fred are you there"), names) == {ANNA}


def test_numbers_at_the_end_of_a_name_need_not_be_written() -> None:
    for text in ("benny hi", "benny77 hi", "hi benny"):
        assert called(text, {BEN: "benny77"}) == {"benny77"}


def test_names_without_words_or_of_two_letters_are_called_with_a_comma_only() -> None:
    names = {BEN: "🤖", ANNA: "Al", DAN: "日本", EVE: ""}
    assert keys_of("🤖") == keys_of("Al") == keys_of("日本") == keys_of("") == ()
    assert called("al are you coming", names) == called("日本 hi", names) == called("🤖 hi", names) == set()
    assert called("al, are you coming", names) == {"Al"}
    assert called("日本, hi", names) == {"日本"}


def test_in_a_room_of_two_hundred_everybody_is_called_by_the_whole_name() -> None:
    names = {100 + i: f"person{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(200)}
    assert len(set(names.values())) == 200
    assert all(called(f"{name} are you coming", names) == {name} for name in names.values())
    assert called("person are you coming", names) == set()


def test_an_index_that_grew_is_one_that_was_built_at_once() -> None:
    grown: dict[str, int] = {}
    for who, name in NAMES.items():
        add_to(grown, who, name)
        add_to(grown, who, name)
    assert grown == index_of(NAMES)


@given(st.text(), st.dictionaries(st.integers(1, 9), st.text(max_size=20), max_size=5))
def test_any_text_and_any_names_can_be_read(text: str, names: dict[int, str]) -> None:
    assert called_by_name(said(CLEO, text), names) <= names.keys()
    assert called_by_name(said(CLEO, text), names, index_of(names)) == called_by_name(said(CLEO, text), names)
