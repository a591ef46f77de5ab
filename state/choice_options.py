"""The options shown, by the words that they can be called by; and a reply's words spelled as they are there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from rapidfuzz import process
from rapidfuzz.distance import OSA, Prefix

from state.choice_reading import Reply, folded, read
from state.choice_words import BEFORE_VALUES, COUNTED, FRAME, GRAMMAR, MONTHS, UNITS
from state.numerals import NUMBER_WORDS, ORDINALS, cardinal, in_digits
from state.prompts import Option

MAX_NAME_LENGTH, MAX_ATTRIBUTES = 120, 12
MIN_TYPO_LENGTH, LONG_WORD = 5, 10  # one typing error in a word, two in a long one
MIN_STEM, STEM_SHARE, MAX_SUFFIX = 5, 0.8, 3  # letters in common, share of the shorter word, letters more
PLAIN = re.compile("[a-z ]*")
HEAD = re.compile(r":(?!\d)|\(|\s[-\u2013]\s")
NO_GRAMMAR: frozenset[str] = frozenset()


class Phrase(NamedTuple):
    """A name or an attribute of an option: the places of the words that carry meaning, and the grammar among them.

    lead: the grammar before them; bare: whether there is nothing but grammar, as in the name "After".
    """

    option: int
    words: Mapping[str, int]
    grammar: frozenset[str]
    lead: Sequence[str]
    is_name: bool
    bare: bool


class Index:
    """The options by the words of their names and attributes."""

    def __init__(self, options: Sequence[Option]) -> None:
        self.count = len(options)
        self.phrases_with: dict[str, list[Phrase]] = {}
        called = [call for number, option in enumerate(options) for call in _calls(number, option)]
        texts = folded("\n".join([text for _, text, _ in called])).split("\n")
        for (number, _, is_name), text in zip(called, texts, strict=True):
            for phrase in _phrases(number, text, is_name):
                for word in phrase.words:
                    self.phrases_with.setdefault(word, []).append(phrase)

    @cached_property
    def joined(self) -> Mapping[str, tuple[str, str]]:
        """Words that follow each other in a phrase, by how they look without the space."""
        phrases = {id(phrase): phrase for found in self.phrases_with.values() for phrase in found}
        return {"".join(pair): pair for phrase in phrases.values() for pair in pairwise(phrase.words)}

    def spelled(self, reply: Reply) -> Reply:
        """The reply with words of the options spelled as they are there: "shinjuko", "sevenoaks", "full size"."""
        words: list[str] = []
        clauses: list[int] = []
        skip = False
        for at, word in enumerate(reply.words):
            if skip:
                skip = False
                continue
            following = reply.words[at + 1] if at + 1 < len(reply.words) else ""
            if word in self.phrases_with or word in FRAME:
                said: tuple[str, ...] = (word,)
            elif word + following in self.phrases_with:
                said, skip = (word + following,), True
            else:
                before = reply.words[at - 1] if at else ""
                said = self._spelled(word, before, following)
            words.extend(said)
            clauses.extend([reply.clauses[at]] * len(said))
        return Reply(words, clauses, reply.marks)

    def _spelled(self, word: str, before: str, following: str) -> tuple[str, ...]:
        if cardinal(word) is not None and (before in BEFORE_VALUES or following in UNITS or not before + following):
            return (next((value for value in _values(word) if value in self.phrases_with), word),)
        if before in MONTHS and f"{word}th" in self.phrases_with:
            return (f"{word}th",)
        if len(word) < MIN_TYPO_LENGTH:
            return (word,)
        ordinals = _nearest(word, ORDINALS) if following in COUNTED else None
        if ordinals is not None:
            return tuple(in_digits([ordinals]))
        if word in self.joined:
            return self.joined[word]
        return (_nearest(word, self.phrases_with) or word,)


def _values(number: str) -> Iterator[str]:
    """What a number may stand for: a full hour or an amount of money."""
    yield f"{number}:00"
    yield from (sign + number for sign in "$€£")


def _nearest(word: str, known: Iterable[str]) -> str | None:
    """The one known word that a word is, but for a typing error or its ending; None if there are several.

    A typing error is never in the first letter, two are in words of ten letters only, and a short word has none that
    puts one letter for another: "greek" is not "green".
    """
    alike = [other for other in known if other[0] == word[0] and len(other) >= MIN_TYPO_LENGTH]
    errors = 1 if len(word) < LONG_WORD else 2
    close = process.extract(word, alike, scorer=OSA.distance, score_cutoff=errors, limit=3)
    near = {other for other, _, _ in close if _may_be_typed(word, other)}
    near.update(other for other in alike if _is_of_stem(word, other))
    return near.pop() if len(near) == 1 else None


def _may_be_typed(word: str, other: str) -> bool:
    return len(word) != len(other) or len(word) > MIN_TYPO_LENGTH or sorted(word) == sorted(other)


def _is_of_stem(word: str, other: str) -> bool:
    """ "Luxurious" is of "luxury"; "psychiatrist" not of "psychologist"."""
    if other[:MIN_STEM] != word[:MIN_STEM] or abs(len(word) - len(other)) > MAX_SUFFIX:
        return False
    return Prefix.similarity(word, other) >= STEM_SHARE * min(len(word), len(other))


def _calls(number: int, option: Option) -> list[tuple[int, str, bool]]:
    """What an option can be called by, each on one line: its name (True) and its attributes."""
    if isinstance(option, str):
        return [(number, _line(option), True)]
    told = [value for key, value in option.items() if _tells(key, value)][:MAX_ATTRIBUTES]
    return [(number, _line(option.get("name") or ""), True), *((number, _line(value), False) for value in told)]


def _line(value: object) -> str:
    return str(value)[:MAX_NAME_LENGTH].replace("\n", " ")


def _tells(key: str, value: object) -> bool:
    is_value = isinstance(value, str | int | float) and not isinstance(value, bool)
    return is_value and key not in ("name", "id") and not key.endswith("_id") and len(str(value)) <= MAX_NAME_LENGTH


def _phrases(number: int, text: str, is_name: bool) -> list[Phrase]:
    """A name or attribute; of a name also its head and what follows it: "Mad Max" of "Mad Max: Fury Road"."""
    words = text.split()
    if PLAIN.fullmatch(text) and NUMBER_WORDS.isdisjoint(words):
        return [_phrase(number, words, is_name)]
    words = read(text).words
    phrases = [_phrase(number, words, is_name)]
    if (head := HEAD.search(text)) is not None:
        parts = (*_phrases(number, text[: head.start()], is_name), *_phrases(number, text[head.end() :], False))
        phrases += [phrase for phrase in parts if not phrase.bare]
    return phrases


def _phrase(number: int, words: Sequence[str], is_name: bool) -> Phrase:
    if GRAMMAR.isdisjoint(words):
        return Phrase(number, {word: place for place, word in enumerate(words)}, NO_GRAMMAR, (), is_name, False)
    telling = [word for word in words if word not in GRAMMAR]
    places = {word: place for place, word in enumerate(telling or words)}
    lead = words[: words.index(telling[0])] if telling else ()
    return Phrase(number, places, GRAMMAR.intersection(words), lead, is_name, bare=not telling)
