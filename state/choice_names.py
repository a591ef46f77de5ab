"""The names and attributes of options in a reply: whole, in part, or what tells an option apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from state.choice_options import Index, Phrase
from state.choice_words import (
    CHOOSING,
    FRAME,
    FRAME_OF_PART,
    LINKS,
    MONTHS,
    NAMING,
    PARTICLES,
    PHRASAL,
    POLITE,
    PREPOSITIONS,
    PRONOUNS,
    UNCOUNTED,
    UNITS_OF_TIME,
    VALUING,
)
from state.numerals import cardinal, ordinal


class Mention(NamedTuple):
    """Words `first` to before `end` of a reply, and the options they stand for: none, where there is no such place.

    company: the only words that may stand beside it in its clause, or, if `alone`, in the reply; None: any may.
    is_bare: whether it is no more than a cardinal number.
    """

    first: int
    end: int
    options: frozenset[int]
    company: frozenset[str] | None = None
    alone: bool = False
    is_bare: bool = False


class Run(NamedTuple):
    """Words of a reply that stand in phrases of options, equally many in each; is_whole: whether they are all of it."""

    words: Sequence[str]
    first: int
    end: int
    phrases: Sequence[Phrase]
    is_whole: bool

    @property
    def phrase(self) -> Phrase:
        return self.phrases[0]

    @property
    def said(self) -> list[str]:
        return [word for word in self.words[self.first : self.end] if word in self.phrase.words]

    @property
    def options(self) -> frozenset[int]:
        return frozenset(phrase.option for phrase in self.phrases)

    @property
    def before(self) -> str:
        return self.words[self.first - 1] if self.first else ""

    @property
    def start(self) -> int:
        """Where it starts with the grammar that leads the name: "How to Train Your Dragon" begins no question."""
        lead = self.phrase.lead
        leads = list(self.words[max(self.first - len(lead), 0) : self.first]) == list(lead)
        return self.first - len(lead) if leads else self.first


def names_in(words: Sequence[str], index: Index) -> Iterator[Mention]:
    """Names and attributes in a reply, the longest at each word; of equally long ones those that are whole."""
    at = 0
    while at < len(words):
        phrases = index.phrases_with.get(words[at])
        if phrases is None:
            at += 1
            continue
        run = _longest(words, at, phrases)
        mention = _mention(run, index.count)
        if mention is not None:
            yield mention
        at = run.end


def _longest(words: Sequence[str], at: int, phrases: Sequence[Phrase]) -> Run:
    runs = [(*_run(words, at, phrase), phrase) for phrase in phrases]
    size = max(size for size, _, _ in runs)
    longest = [(end, phrase) for found, end, phrase in runs if found == size]
    whole = [(end, phrase) for end, phrase in longest if size >= _needed(phrase)]
    best = whole or longest
    return Run(words, at, max(end for end, _ in best), [phrase for _, phrase in best], bool(whole))


def _run(words: Sequence[str], at: int, phrase: Phrase) -> tuple[int, int]:
    """How many of a phrase's words stand here in their order, others left out; and where the last of them ends."""
    size, end, last = 0, at, -1
    for here in range(at, len(words)):
        word = words[here]
        place = phrase.words.get(word, -1)
        if place > last:
            size, end, last = size + 1, here + 1, place
        elif word not in phrase.grammar:
            break
    return size, end


def _needed(phrase: Phrase) -> int:
    """How many words make a phrase whole: with a time, "pm" may be left out."""
    return len(phrase.words.keys() - UNITS_OF_TIME)


def _mention(run: Run, count: int) -> Mention | None:
    if _is_particle(run):
        return None
    if run.phrase.bare:
        return _bare(run)
    if all(cardinal(word) is not None or ordinal(word) is not None for word in run.said):
        return _value(run, count)
    if _is_sure(run):
        return Mention(run.start, run.end, run.options)
    return _part(run)


def _is_particle(run: Run) -> bool:
    """Whether it belongs to the verb before it: "give up" does not name the film "Up"."""
    return run.before in PHRASAL and PARTICLES.issuperset(run.said)


def _bare(run: Run) -> Mention | None:
    """A name that is nothing but grammar: "After" among words of choosing; "It", a pronoun, alone."""
    if not run.is_whole:
        return None
    if PRONOUNS.issuperset(run.said):
        return Mention(run.first, run.end, run.options, POLITE, alone=True)
    return Mention(run.first, run.end, run.options, CHOOSING)


def _value(run: Run, count: int) -> Mention | None:
    """A number that is an option, or in one and no place in the list: "10" for "$10", "the 5th" for "March 5th"."""
    is_place = not run.is_whole and 0 < (cardinal(run.said[0]) or 0) <= count
    is_of_other_month = run.before in MONTHS and run.before not in run.phrase.grammar
    if is_place or is_of_other_month:
        return None
    return Mention(run.first, run.end, run.options, None if _is_date(run) else VALUING)


def _is_date(run: Run) -> bool:
    """Whether an ordinal is said as a day: "on the 5th", but not of a floor, nor of next month."""
    before, following = run.words[max(run.first - 2, 0) : run.first], [*run.words[run.end : run.end + 2], "", ""]
    is_counted = following[0] in UNCOUNTED and following[:2] != ["of", "this"]
    return run.before in MONTHS or (before == ["on", "the"] and not is_counted)


def _is_sure(run: Run) -> bool:
    """A whole name; "the Shinjuku one"; "the one in Shinjuku"; half of a name, and no strange word beside it."""
    if run.is_whole and (run.phrase.is_name or len(run.said) > 1):
        return run.start < run.first or LINKS.issuperset(run.phrase.lead)
    if len(run.said) == 1:
        return _is_telling(run) and _is_one(run)
    return 2 * len(run.said) >= len(run.phrase.words) and _is_free(run)


def _is_one(run: Run) -> bool:
    before = [word for word in run.words[max(run.first - 3, 0) : run.first] if word != "the"][-2:]
    is_where = before[:1] == ["one"] and PREPOSITIONS.issuperset(before[1:])
    return is_where or run.words[run.end : run.end + 1] == ["one"]


def _part(run: Run) -> Mention | None:
    """An attribute, or part of a name, among common words; a word from within a name less: such are kinds, too."""
    if len(run.said) > 1 or (run.is_whole and not run.phrase.is_name):
        return Mention(run.start, run.end, run.options, FRAME)
    if not _is_telling(run):
        return None
    if run.before == "my" or any(phrase.words[run.said[0]] == 0 for phrase in run.phrases):
        return Mention(run.start, run.end, run.options, FRAME_OF_PART)
    if not run.before or run.before in NAMING:
        return Mention(run.start, run.end, run.options, CHOOSING)
    return Mention(run.start, run.end, run.options, NAMING, alone=True)


def _is_telling(run: Run) -> bool:
    """Whether the one word of a part can stand for the whole: not "best", not "a movie"."""
    word = run.said[0]
    return word not in FRAME and run.before not in ("a", "an")


def _is_free(run: Run) -> bool:
    """Whether no strange word stands beside a part of a name: that makes another name of it."""
    beside = [run.before or "the", *run.words[run.end : run.end + 1]]
    return FRAME.issuperset(beside)
