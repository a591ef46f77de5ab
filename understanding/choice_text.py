"""Replies and options as words: numbers in digits, clauses, and an index of the options' names and attributes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise, product, zip_longest
from typing import Any, NamedTuple

from rapidfuzz import process
from rapidfuzz.distance import OSA, Prefix

from understanding.choice_words import (
    BEFORE_VALUES,
    COUNTED,
    FRAME,
    GRAMMAR,
    JOINTS,
    MONTHS,
    PAIRS,
    STARTS,
    TURNS,
    UNITS,
)
from understanding.wording import NOT_WORDS

MAX_NAME_LENGTH, MAX_ATTRIBUTES = 120, 12
MAX_CLAUSES = 16  # that are read of a name
MAX_CUT, MAX_HEADS = 80, 2  # a longer name, or one with more colons, brackets and dashes, is not cut into parts
MIN_TYPO_LENGTH, LONG_WORD = 5, 10  # one typing error in a word, two in a long one
MIN_STEM, STEM_SHARE, MAX_SUFFIX = 5, 0.8, 3  # letters in common, share of the shorter word, letters more

Option = str | Mapping[str, Any]
"""An option: a name, or a mapping with a "name" and attributes that distinguish equal names."""

_ONES = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen""".split()
_ORDINALS = """zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth
fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth""".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


def _numbers() -> dict[str, str]:
    """Numbers up to 199 in words -> in digits: "twenty one" -> "21", "twentyfirst" -> "21th"."""
    numbers = {word: str(value) for value, word in enumerate(_ONES)}
    numbers |= {word: f"{value}th" for value, word in enumerate(_ORDINALS)}
    for value, ten in enumerate(_TENS, start=2):
        numbers |= {ten: f"{value}0", f"{ten[:-1]}ieth": f"{value}0th"}
        for one, joint in product(range(1, 10), ("", " ")):
            numbers |= {ten + joint + _ONES[one]: f"{value}{one}", ten + joint + _ORDINALS[one]: f"{value}{one}th"}
    for (word, digits), joint in product(list(numbers.items()), (" ", " and ")):
        numbers[f"one hundred{joint}{word}"] = "1" + digits.zfill(2 if digits.isdecimal() else 4)
    numbers |= {"one hundred": "100", "one hundredth": "100th"}
    del numbers["one"]  # it is as often a pronoun
    return numbers


NUMBERS = _numbers()
LONGEST_NUMBER = 5  # words: "one hundred and twenty one"
STARTS_NUMBER = frozenset(number.partition(" ")[0] for number in NUMBERS if " " in number)
DIGITS = re.compile(r"(\d{1,15})(st|nd|rd|th)?")
HAS_DIGIT = re.compile(r"\d")
CLOCK = re.compile(r"(?<!\S)(\d{1,2})\.(\d\d)(?!\S)")  # "7.30"
HOUR = re.compile(r"(?<!\S)(1[0-2]|[1-9]) (?:(?=(?:am|pm|o'?clock)(?!\S))|([1-5]\d)(?!\S))")  # "7 pm", "7 30"
_MONTH = "|".join(sorted(MONTHS - {"may"}))  # without "of", "may" is rather a verb
DAY = re.compile(rf"(?<!\S)(\d+th) (?:of ({_MONTH}|may)|({_MONTH}))(?!\S)")

FOLDED_AWAY = re.compile("[\u0300-\u036f\ufe0f]")
CHARACTERS: Mapping[str, str] = {"’": "'", "\N{KEYCAP TEN}": "10 ", "\N{COMBINING ENCLOSING KEYCAP}": " "}
QUOTED = re.compile(r"^>.*$", re.MULTILINE)
HALF_OF_DAY = re.compile(r"\b([ap])\. ?m\b\.?")  # "p.m."
TOKEN = re.compile(
    r"[^\W\d_\u3040-\u30ff\u3400-\u9fff][^\W_\u3040-\u30ff\u3400-\u9fff]*(?:'[^\W_]+)*"
    r"|(?<!\w)-\d[\d.,:]*"
    r"|\d{1,2}(?=[ap]m\b)"
    r"|[$€£]?\d+(?:[.:,]\d+)+%?|[$€£]\d+|\d+%"
    r"|\d[^\W_\u3040-\u30ff\u3400-\u9fff]*"
    r"|[\u3040-\u30ff\u3400-\u9fff]"  # each character of these scripts counts as a word
    r"|(?<=\d)[+*×÷=](?=\d)|(?<=\d )[-+*/×÷=](?= \d)"  # an operator between numbers
    r"|[.,;:!?()\n#]"
)
MARKS = frozenset(".,;:!?()\n")
HEAD = re.compile(r":(?!\d)|\(|\s[-\u2013]\s")


class Reply(NamedTuple):
    """A reply. words: numbers in digits; clauses: the clause of each word; marks: the punctuation after each clause."""

    words: list[str]
    clauses: list[int]
    marks: list[str]


class Phrase(NamedTuple):
    """A name or an attribute of an option.

    option: index of the option; words: its meaningful words -> their positions; grammar: its grammar words; lead: those
    before the first meaningful word; is_name: a name, not an attribute; bare: only grammar, as the name "After".
    """

    option: int
    words: Mapping[str, int]
    grammar: frozenset[str]
    lead: Sequence[str]
    is_name: bool
    bare: bool


def cardinal(word: str) -> int | None:
    """The value of "2"; None for an ordinal and for anything but a whole number of at most 15 digits."""
    return int(word) if word.isdecimal() and len(word) <= 15 else None


def ordinal(word: str) -> int | None:
    """The value of "2th"."""
    return cardinal(word[:-2]) if word.endswith("th") else None


def in_digits(words: Sequence[str]) -> list[str]:
    """The words, with numbers up to 199, times and dates in one spelling.

    "Twenty first" becomes "21th", "7 pm" "7:00 pm", "5th of May" "may 5th". A bare "one" stays, and so do words that
    are no number together: "one third", "two three".
    """
    found: list[str] = []
    at = 0
    while at < len(words):
        text = words[at]
        if text in STARTS_NUMBER:
            phrases = (" ".join(words[at : at + size]) for size in range(LONGEST_NUMBER, 1, -1))
            text = next((phrase for phrase in phrases if phrase in NUMBERS), text)
        digits = DIGITS.fullmatch(text)
        found.append(f"{int(digits[1])}{'th' if digits[2] else ''}" if digits else NUMBERS.get(text, text))
        at += 1 + text.count(" ")
    text = HOUR.sub(lambda hour: f"{hour[1]}:{hour[2] or '00 '}", CLOCK.sub(r"\1:\2", " ".join(found)))
    return DAY.sub(lambda day: f"{day[2] or day[3]} {day[1]}", text).split(" ")


def plain(reply: str) -> str:
    """The reply without links, mentions, code and quoted lines, and folded."""
    return folded(NOT_WORDS.sub(" ", QUOTED.sub(" ", reply)))


def folded(text: str) -> str:
    """The text without case and accents, with one spelling of characters that have several. Line breaks stay."""
    if not text.isascii():
        for character, spelling in CHARACTERS.items():
            text = text.replace(character, spelling)
        # NFKD may turn one character into eighteen.
        text = FOLDED_AWAY.sub("", unicodedata.normalize("NFKD", text)[: max(MAX_NAME_LENGTH, 2 * len(text))])
    return HALF_OF_DAY.sub(r"\1m", text.casefold().replace("&", " and "))


def read(text: str, most: int | None = None) -> Reply:
    """Cuts a folded text into clauses: at punctuation, before "but" and the like, and before "and I" and the like.

    most: how many of them are read; None: all.
    """
    reply = Reply([], [], [])
    run: list[str] = []
    tokens = iter(zip_longest(found := TOKEN.findall(text), found[1:], fillvalue=""))
    for token, following in tokens:
        is_mark = token in MARKS
        if is_mark or token in TURNS or (token in JOINTS and following in STARTS):
            _close(reply, run, token if is_mark else "")
        if is_mark:
            continue
        if len(reply.marks) == most:
            return reply
        word = PAIRS.get((token, following))
        run.append(word or token.removesuffix("'s"))
        if word:
            next(tokens)
    _close(reply, run, "")
    return reply


def _close(reply: Reply, run: list[str], mark: str) -> None:
    """Ends a clause: adds its words to the reply."""
    if run:
        words = in_digits(run) if not NUMBERS.keys().isdisjoint(run) or HAS_DIGIT.search("".join(run)) else run
        reply.words.extend(words)
        reply.clauses.extend([len(reply.marks)] * len(words))
        reply.marks.append(mark)
        run.clear()


class Index:
    """Index of the options by the words of their names and attributes."""

    def __init__(self, options: Sequence[Option]) -> None:
        self.count = len(options)
        self.phrases_with: dict[str, list[Phrase]] = {}
        for number, option in enumerate(options):
            for text, is_name in calls(option):
                known = folded(text)
                if len(unicodedata.normalize("NFC", known)) > MAX_NAME_LENGTH:  # not by the letters of Korean alone
                    known = known[:MAX_NAME_LENGTH]
                for phrase in _phrases(number, known, is_name):
                    for word in phrase.words:
                        self.phrases_with.setdefault(word, []).append(phrase)

    @cached_property
    def joined(self) -> Mapping[str, tuple[str, str]]:
        """Two adjacent words of a phrase written as one -> the two words."""
        phrases = (phrase for found in self.phrases_with.values() for phrase in found)
        return {"".join(pair): pair for phrase in phrases for pair in pairwise(phrase.words)}

    @cached_property
    def alike(self) -> Mapping[str, list[str]]:
        return _by_letter(self.phrases_with)

    def compared(self, words: Sequence[str]) -> int:
        """How many pairs of a reply's word and a word of the options are compared for how the former is misspelled."""
        unknown = (word for word in words if word not in self.phrases_with and word not in FRAME)
        return sum(len(self.alike.get(word[0], ())) for word in unknown if len(word) >= MIN_TYPO_LENGTH)

    def spelled(self, reply: Reply) -> Reply:
        """The reply with its misspelled words spelled as in the options: "shinjuko", "sevenoaks", "full size"."""
        spelled = Reply([], [], reply.marks)
        before = ""
        words = iter(zip(reply.words, reply.clauses, [*reply.words[1:], ""], strict=False))
        for word, clause, after in words:
            spelling: Sequence[str] = (word,)
            if word not in self.phrases_with and word not in FRAME:
                if word + after in self.phrases_with:
                    spelling = (word + after,)
                    next(words, None)
                else:
                    spelling = self._spelled(word, before, after)
            spelled.words.extend(spelling)
            spelled.clauses.extend([clause] * len(spelling))
            before = word
        return spelled

    def _spelled(self, word: str, before: str, following: str) -> Sequence[str]:
        if cardinal(word) is not None and (before in BEFORE_VALUES or following in UNITS or not before + following):
            values = (f"{word}:00", f"${word}", f"€{word}", f"£{word}")  # a full hour or an amount of money
            return [next((value for value in values if value in self.phrases_with), word)]
        if before in MONTHS and f"{word}th" in self.phrases_with:
            return [f"{word}th"]
        if len(word) < MIN_TYPO_LENGTH:
            return [word]
        if following in COUNTED and (typed := _nearest(word, ORDINALS_BY_LETTER)):
            return [NUMBERS[typed]]
        return self.joined.get(word) or [_nearest(word, self.alike) or word]


def _by_letter(words: Iterable[str]) -> Mapping[str, list[str]]:
    """The words that are long enough to be misspelled, by their first letters."""
    found: dict[str, list[str]] = {}
    for word in words:
        if len(word) >= MIN_TYPO_LENGTH:
            found.setdefault(word[0], []).append(word)
    return found


ORDINALS_BY_LETTER = _by_letter(word for word, digits in NUMBERS.items() if digits.endswith("th") and " " not in word)


def _nearest(word: str, known: Mapping[str, list[str]]) -> str | None:
    """The one known word that differs only by a typing error or its ending. None: there is none, or several.

    The first letter must be right. Two errors are allowed only in words of ten letters or more, and a short word may
    not have a letter replaced: "greek" is not "green". Different endings: "luxurious" is "luxury".
    """
    alike = known.get(word[0], [])
    errors = 1 if len(word) < LONG_WORD else 2
    near = {
        other
        for other, _, _ in process.extract(word, alike, scorer=OSA.distance, score_cutoff=errors, limit=3)
        if len(word) != len(other) or len(word) > MIN_TYPO_LENGTH or sorted(word) == sorted(other)
    }
    near.update(
        other
        for other in alike
        if other[:MIN_STEM] == word[:MIN_STEM]
        and abs(len(word) - len(other)) <= MAX_SUFFIX
        and Prefix.similarity(word, other) >= STEM_SHARE * min(len(word), len(other))
    )
    return near.pop() if len(near) == 1 else None


def calls(option: Option) -> Iterator[tuple[str, bool]]:
    """The texts that can name an option: its name (True); its attributes (False), short texts and numbers, no ids."""
    named = {"name": option} if isinstance(option, str) else option
    yield str(named.get("name") or "")[:MAX_NAME_LENGTH], True
    told = [
        str(value)
        for key, value in named.items()
        if isinstance(value, str | int | float) and not isinstance(value, bool)
        if key not in ("name", "id") and not key.endswith("_id") and len(str(value)) <= MAX_NAME_LENGTH
    ]
    yield from ((text, False) for text in told[:MAX_ATTRIBUTES])


def _phrases(number: int, text: str, is_name: bool) -> Iterator[Phrase]:
    """The phrases of a name or attribute: all of it, and its parts before and after a colon, bracket or dash.

    "Mad Max: Fury Road" gives "Mad Max", too. The part after counts as an attribute.
    """
    words = read(text, MAX_CLAUSES).words
    telling = [word for word in words if word not in GRAMMAR]
    places = {word: place for place, word in enumerate(telling or words)}
    lead = words[: words.index(telling[0])] if telling else ()
    yield Phrase(number, places, GRAMMAR.intersection(words), lead, is_name, bare=not telling)
    heads = list(HEAD.finditer(text))
    if 0 < len(heads) <= MAX_HEADS and len(text) <= MAX_CUT:
        start, end = heads[0].span()
        parts = (*_phrases(number, text[:start], is_name), *_phrases(number, text[end:], False))
        yield from (phrase for phrase in parts if not phrase.bare)
