"""understanding/selection.py: which option a reply chooses, and what chooses none."""

from __future__ import annotations

import re
from pathlib import Path

import orjson
from hypothesis import given
from hypothesis import strategies as st

from tests.support.phrases import labelled
from understanding.choice_text import Option, in_digits
from understanding.selection import MAX_LENGTH, MAX_WORDS, choose

FILMS: list[Option] = ["Paprika", "Kagemusha", "Iron Lantern: Winter Road"]
THIRTY: list[Option] = [f"Parcel {number}" for number in range(100, 130)]


def test_the_table_of_choices_holds() -> None:
    wrong = []
    for line, options in labelled(Path(__file__).with_name("choices.txt")):
        reply, _, place = line.rpartition(" = ")
        chosen = choose(reply.replace("\\n", "\n"), orjson.loads(options))
        if chosen != (None if place == "none" else int(place) - 1):
            wrong.append((line, options, chosen))
    assert wrong == []


def test_numbers_are_put_in_digits() -> None:
    table = """twenty = 20, twenty five = 25, ninetyfive = 95, one hundred and two = 102, first = 1th, 2nd = 2th
        twenty first = 21th, twentyfirst = 21th, one hundred twenty fifth = 125th, one hundredth = 100th, 007 = 7, ٢ = 2
        the first one = the 1th one, 7 pm = 7:00 pm, one = one, one third = one 3th, two three = 2 3, 3d = 3d
        two and three = 2 and 3, twenty ten = 20 10, twenty and five = 20 and 5, one hundred and some = 100 and some"""
    for line in re.split(r", |\n *", table):
        said, digits = line.split(" = ")
        assert in_digits(said.split()) == digits.split()


def test_no_options_are_never_chosen_from() -> None:
    assert choose("1", []) is None


def test_a_reply_that_is_too_long_to_be_an_answer_chooses_nothing() -> None:
    assert choose("Kagemusha" + " " * (MAX_LENGTH - 9), FILMS) == 1
    assert choose("Kagemusha" + " " * MAX_LENGTH, FILMS) is None
    assert choose("Kagemusha" + " a" * MAX_WORDS, FILMS) is None


def test_a_number_of_any_length_is_read() -> None:
    assert choose("9" * 500, FILMS) is None
    assert choose("the " + "9" * 500 + "th one", FILMS) is None


@given(st.text(max_size=200), st.lists(st.text(min_size=1, max_size=30) | st.just("Kagemusha"), max_size=8))
def test_any_text_is_read(reply: str, options: list[str]) -> None:
    chosen = choose(reply, options)
    assert chosen is None or 0 <= chosen < len(options)


@given(
    st.lists(st.sampled_from("the a 2 second one not no Paprika winter of , ? but and last for two $5 7:30".split()))
)
def test_any_mix_of_telling_words_is_read(words: list[str]) -> None:
    chosen = choose(" ".join(words), FILMS)
    assert chosen is None or 0 <= chosen < len(FILMS)


def test_every_place_is_chosen_by_its_number() -> None:
    for place in range(30):
        assert choose(str(place + 1), THIRTY) == choose(f"option {place + 1}", THIRTY) == place


def test_a_long_name_whose_letters_are_several_signs_each_is_chosen_by_its_whole() -> None:
    names = [
        "서울에서 가장 오래된 시장을 천천히 걸어서 돌아보고 점심을 먹은 다음 강을 따라 저녁까지 산책하기 "
        "그리고 남산 타워에 올라가기",
        "부산에서 바다를 보며 하루 종일 쉬고 저녁에는 시장에서 회를 먹고 밤에는 해변을 따라 걷기 "
        "그리고 다음 날 아침에 돌아오기",
    ]
    assert [choose(name, names) for name in names] == [0, 1]
