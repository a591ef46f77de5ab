"""A reply as its words in clauses, the numbers in digits: the form in which a choice is looked for."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from itertools import zip_longest
from typing import NamedTuple

from state.choice_words import JOINTS, MONTHS, PAIRS, STARTS, TURNS, UNITS_OF_TIME
from state.numerals import cardinal, has_numbers, in_digits, ordinal
from state.wording import NOT_WORDS

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
    r"|[\u3040-\u30ff\u3400-\u9fff]"  # a character of these scripts is taken for a word
    r"|(?<=\d)[+*×÷=](?=\d)|(?<=\d )[-+*/×÷=](?= \d)"  # an operator between numbers
    r"|[.,;:!?()\n#]"
)
MARKS = frozenset(".,;:!?()\n")
CLOCK = re.compile(r"\d{1,2}[:.]\d\d")


class Reply(NamedTuple):
    """The words of a reply, numbers in digits; the clause of each word; the mark that ends each clause."""

    words: list[str]
    clauses: list[int]
    marks: list[str]


def plain(reply: str) -> str:
    """A reply without links, mentions, code and quoted lines, folded."""
    if ">" in reply:
        reply = QUOTED.sub(" ", reply)
    return folded(NOT_WORDS.sub(" ", reply) if "<" in reply or "http" in reply or "```" in reply else reply)


def folded(text: str) -> str:
    """Text without case and accents, and with one spelling of what has several; lines stay lines."""
    if not text.isascii():
        for character, plain in CHARACTERS.items():
            text = text.replace(character, plain)
        text = FOLDED_AWAY.sub("", unicodedata.normalize("NFKD", text))
    text = text.casefold().replace("&", " and ")
    return HALF_OF_DAY.sub(r"\1m", text) if "." in text else text


def read(text: str) -> Reply:
    """A text in clauses: they end at a mark, and before words that turn ("but") or go on anew ("and I")."""
    words: list[str] = []
    clauses: list[int] = []
    marks: list[str] = []
    run: list[str] = []

    def close(mark: str) -> None:
        if run:
            said = _dated(_clocked(in_digits(run))) if has_numbers(run) else run
            words.extend(said)
            clauses.extend([len(marks)] * len(said))
            marks.append(mark)
            run.clear()

    tokens = iter(zip_longest(found := TOKEN.findall(text), found[1:], fillvalue=""))
    for token, following in tokens:
        if token in MARKS:
            close(token)
            continue
        if token in TURNS or (token in JOINTS and following in STARTS):
            close("")
        word = PAIRS.get((token, following))
        run.append(word or token.removesuffix("'s"))
        if word:
            next(tokens)
    close("")
    return Reply(words, clauses, marks)


def _clocked(words: list[str]) -> list[str]:
    """Words with times in one spelling: "7 pm" is "7:00 pm", "seven thirty" and "7.30" are "7:30"."""
    found: list[str] = []
    for word in words:
        before = found[-1] if found else ""
        hour = cardinal(before)
        if hour is None or not 1 <= hour <= 12:
            found.append(word.replace(".", ":") if CLOCK.fullmatch(word) else word)
        elif word in UNITS_OF_TIME:
            found[-1] = f"{before}:00"
            found.append(word)
        elif 10 <= (cardinal(word) or 0) <= 59:
            found[-1] = f"{before}:{word}"
        else:
            found.append(word)
    return found


def _dated(words: list[str]) -> list[str]:
    """Words with dates in one order: "the 5th of May" is "the may 5th"; without "of", "may" is rather a verb."""
    for at, word in enumerate(words):
        if ordinal(word) is None:
            continue
        following = [*words[at + 1 : at + 3], "", ""]
        size = 3 if following[0] == "of" else 2
        month = following[size - 2]
        if month in MONTHS and (size == 3 or month != "may"):
            return [*words[:at], month, word, *_dated(words[at + size :])]
    return words
