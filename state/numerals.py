"""Numbers as people write them: digits, words and ordinals, in English."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_UNITS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen""".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_ORDINAL_UNITS = """first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth
fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth""".split()
SCALES: Mapping[str, int] = {
    "hundred": 100,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
}
CARDINALS: Mapping[str, int] = (
    dict(SCALES)
    | {word: value for value, word in enumerate(_UNITS)}
    | {word: 10 * value for value, word in enumerate(_TENS, start=2)}
)
ORDINALS: Mapping[str, int] = (
    {word: value for value, word in enumerate(_ORDINAL_UNITS, start=1)}
    | {f"{word[:-1]}ieth": 10 * value for value, word in enumerate(_TENS, start=2)}
    | {f"{word}th": value for word, value in SCALES.items()}
)
TOGETHER = re.compile(rf"({'|'.join(_TENS)})({'|'.join([*_UNITS[1:10], *_ORDINAL_UNITS[:9]])})")  # "twentyfifth"
MAX_DIGITS = 16
MAYBE = re.compile(r"\d|ty[a-z]")
DIGITS = re.compile(r"(\d{1,15})(st|nd|rd|th)?")
NUMBER_WORDS = frozenset(CARDINALS) | frozenset(ORDINALS)
NUMBER_WORDS_BUT_ONE = NUMBER_WORDS - {"one"}


def has_numbers(words: Sequence[str]) -> bool:
    """Whether there may be more of a number in words than "one". It costs far less than `in_digits`."""
    return not NUMBER_WORDS_BUT_ONE.isdisjoint(words) or MAYBE.search(" ".join(words)) is not None


def in_digits(words: Sequence[str]) -> list[str]:
    """Words with each number in digits: "twenty", "first" give "21th", "one hundred and two" gives "102".

    Every ordinal ends in "th", also "2nd": one spelling for each. A bare "one" stays, for it is a pronoun as often.
    Words that make no number together stay apart: "one third", "two three".
    """
    found: list[str] = []
    at = 0
    while at < len(words):
        text, size = _number_at(words, at)
        found.append(text)
        at += size
    return found


def cardinal(word: str) -> int | None:
    """The value of "2"; None for an ordinal and whatever else is not a whole number."""
    return int(word) if word.isdecimal() and len(word) < MAX_DIGITS else None


def ordinal(word: str) -> int | None:
    """The value of "2th", as `in_digits` spells it."""
    return cardinal(word[:-2]) if word.endswith("th") else None


def _number_at(words: Sequence[str], at: int) -> tuple[str, int]:
    """The number that begins here, and how many words it takes; or the word itself."""
    word = words[at]
    if (digits := DIGITS.fullmatch(word)) is not None:
        return f"{int(digits[1])}{'th' if digits[2] else ''}", 1
    if (both := TOGETHER.fullmatch(word)) is not None:
        return in_digits(both.groups())[0], 1
    if word not in NUMBER_WORDS:
        return word, 1
    return _in_words(words, at)


def _in_words(words: Sequence[str], at: int) -> tuple[str, int]:
    done, group, size = 0, 0, 0
    while at + size < len(words):
        word = words[at + size]
        if word == "and" and size and group % 100 == 0 and _fits(words[at + size + 1 : at + size + 2], group, size):
            size += 1
            word = words[at + size]
        if not _fits([word], group, size):
            break
        size += 1
        done, group = _added(done, group, CARDINALS.get(word) or ORDINALS.get(word, 0))
        if word in ORDINALS:
            return f"{done + group}th", size
    return (words[at] if words[at : at + size] == ["one"] else str(done + group)), size


def _fits(following: Sequence[str], group: int, size: int) -> bool:
    """Whether a word goes on the number that has come to this: "five" after "twenty" or "hundred", not after "two"."""
    if not following or following[0] not in NUMBER_WORDS:
        return False
    value = CARDINALS.get(following[0]) or ORDINALS.get(following[0], 0)
    if not size:
        return True
    if value >= 100:
        return group > 0
    room = 100 if group % 100 == 0 else 10 if group % 10 == 0 and group % 100 >= 20 else 0
    return 0 < value < room


def _added(done: int, group: int, value: int) -> tuple[int, int]:
    if value < 100:
        return done, group + value
    return (done, max(group, 1) * value) if value == 100 else (done + max(group, 1) * value, 0)
