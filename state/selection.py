"""Which of the options shown a reply chooses, by its words alone.

A reply is read as mentions: places in the list ("2", "the last but one") and names (whole, in part, or what tells an
option apart). Each mention stands for a set of options. Mentions that choose nothing are dropped: those asked about,
told of or rejected, and numbers and parts of names in other company than words of choosing. What all the remaining
mentions have in common must be one option; else nothing is chosen, for a wrong choice costs more than asking again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from functools import cached_property
from itertools import pairwise

from state.choice_names import Mention, names_in
from state.choice_options import Index
from state.choice_places import places_in, quantities
from state.choice_reading import Reply, plain, read
from state.choice_words import (
    AGREEING,
    ASKING,
    BEFORE_VERBS,
    CHOOSING,
    DECIDED,
    ELIMINATING,
    ENQUIRING,
    FRAME,
    FRAME_OF_PART,
    GROUPS,
    HAVING_IN_MIND,
    INVERTED,
    LEADING,
    NEGATORS,
    PERSONS,
    PREPOSITIONS,
    REPORTERS,
    REQUESTS,
    SEVERAL,
    SUBJECTS,
    TOLD,
)
from state.prompts import Option

MAX_LENGTH = 600  # whoever writes more tells something, and does not choose
CORRECTING = ("wait", "scratch", "mean", "sorry", "rather", "actually", "make")  # of every correction a word
CORRECTION = re.compile(
    r"\b(?:(?:(?<=no )|(?<=[,.;!?] ))wait|wait(?=[,:])|scratch that|i meant?|sorry|or rather|actually|make that)\b[,:]?"
)
TAKING_IT = re.compile(
    r"\b(?:(?:that|this) one|(?:take|choose|pick|want|do|get|have|see|watch|try|with|for) (?:it|that|this))\b"
)
ASKING_FOR = re.compile(r"(?:is there|are there|do you have)(?: (?:an?|any|some|the))? (?!\S)")  # and a mention


class Mood(Enum):
    """How a clause is said. DOUBTED: with a question mark, though not worded as a question."""

    STATED = 1
    DOUBTED = 2
    ASKED = 3


def choose(reply: str, options: Sequence[Option]) -> int | None:
    """The 0-based index of the option that a reply chooses, or None: never a guess.

    After a correction ("the first, no wait, the second") the rest counts alone, if it chooses. A reply of more than 600
    characters chooses nothing.
    """
    if len(reply) > MAX_LENGTH or not options:
        return None
    text = plain(reply)
    index = Index(options)
    corrections = list(CORRECTION.finditer(text)) if any(word in text for word in CORRECTING) else []
    for correction in reversed(corrections):
        chosen = _chosen(text[correction.end() :], index)
        if chosen is not None:
            return chosen
    return _chosen(text, index)


def _chosen(text: str, index: Index) -> int | None:
    spelled = index.spelled(read(text))
    found = list(names_in(spelled.words, index))
    places = list(places_in(spelled.words, found, index.count))
    reply = _joined(spelled, [*found, *places])
    names = _names_proper(found, places)
    return _verdict(reply, [*names, *_places_proper(reply, places, names)], index.count)


def _names_proper(names: Sequence[Mention], places: Sequence[Mention]) -> list[Mention]:
    """The names but for numbers that are said to be places: "the second one" is not "March 2nd"."""
    explicit = {at for place in places if place.company is None for at in range(place.first, place.end)}
    return [name for name in names if name.first not in explicit]


def _places_proper(reply: Reply, places: Sequence[Mention], names: Sequence[Mention]) -> list[Mention]:
    """The places but for numbers that only a name has, as "on the 5th" of two dates, and quantities."""
    named = {at for name in names for at in range(name.first, name.end)}
    naming = {reply.clauses[name.first] for name in names if name.company is None}
    return [
        place
        for place in places
        if (place.options or place.first not in named)
        and (not place.is_bare or reply.clauses[place.first] not in naming)
    ]


def _joined(reply: Reply, mentions: Sequence[Mention]) -> Reply:
    """The reply with every mention in one clause: the marks in "Mad Max: Fury Road" end none."""
    clauses = list(reply.clauses)
    for mention in mentions:
        first, last = clauses[mention.first], clauses[mention.end - 1]
        if first != last:
            clauses = [first if clause == last else clause for clause in clauses]
    return Reply(reply.words, clauses, reply.marks)


class _View:
    """A reply beside its mentions: what is said around them, and how."""

    def __init__(self, reply: Reply, mentions: Sequence[Mention]) -> None:
        self.reply = reply
        self.covered = {at for mention in mentions for at in range(mention.first, mention.end)}
        skipped = self.covered | quantities(reply.words)
        self.around: list[list[str]] = [[] for _ in reply.marks]
        for at, clause in enumerate(reply.clauses):
            self.around[clause].append("" if at in skipped else reply.words[at])
        self.moods = _moods(self.around, reply.marks)
        self.others = {word for words in self.around for word in words} - {""}

    @cached_property
    def verbs(self) -> set[str]:
        """What is to be done, whatever it is: "to fly", "I'll fly"."""
        return {word for before, word in pairwise(self.reply.words) if before in BEFORE_VERBS}

    def others_beside(self, mention: Mention) -> set[str]:
        return set(self.around[self.reply.clauses[mention.first]]) - {""}

    def mood(self, mention: Mention) -> Mood:
        return self.moods[self.reply.clauses[mention.first]]

    def keeps_company(self, mention: Mention) -> bool:
        """Whether a mention counts beside the words that are beside it."""
        if self.mood(mention) is Mood.DOUBTED and not self.others_beside(mention) <= FRAME:
            return False
        if mention.company is None:
            return True
        others = self.others if mention.alone else self.others_beside(mention)
        if mention.company is FRAME or mention.company is FRAME_OF_PART:
            others = others - self.verbs
        return others <= mention.company

    def is_told(self, mention: Mention) -> bool:
        """Whether a mention is told of: "I was in Shibuya", "I missed Shibuya", "see you in Shibuya", "out of coffee".

        But "I was thinking of Shibuya" chooses.
        """
        around = self.around[self.reply.clauses[mention.first]]
        before = [word for word in self.reply.words[max(mention.first - 3, 0) : mention.first] if word != "the"]
        is_told = not TOLD.isdisjoint(around) or any(map(_is_past_or_leave, around, around[1:]))
        return before[-2:] == ["out", "of"] or (is_told and HAVING_IN_MIND.isdisjoint(around))

    @cached_property
    def negators(self) -> list[int]:
        return [at for at, word in enumerate(self.reply.words) if at not in self.covered and self._negates(at, word)]

    def _negates(self, at: int, word: str) -> bool:
        begins = not at or self.reply.clauses[at - 1] != self.reply.clauses[at]
        if word == "no" and begins:  # the answer no, unless it belongs to the name: "no Paprika"
            return at + 1 in self.covered
        return word in NEGATORS or word.endswith("n't")

    def is_rejected(self, mention: Mention) -> bool:
        """Whether a "not" stands before a mention in its clause, or after it with no other mention behind."""
        clauses = self.reply.clauses
        clause = clauses[mention.first]
        negators = [at for at in self.negators if clauses[at] == clause]
        if not negators:
            return False
        is_last = all(at < mention.end for at in self.covered if clauses[at] == clause)
        return any(at < mention.first or (is_last and self.reply.words[at] != "except") for at in negators)


def _is_past_or_leave(word: str, following: str) -> bool:
    """ "I spilled", unless it says a choice ("I picked"), and "see you"."""
    is_past = word in REPORTERS and following.endswith("ed") and following not in DECIDED
    return is_past or (word == "see" and following in ("you", "ya", "u"))


def _moods(around: Sequence[Sequence[str]], marks: Sequence[str]) -> list[Mood]:
    """How each clause is said; one such as "in Shibuya," belongs to the question that follows."""
    moods = [_mood(words, mark) for words, mark in zip(around, marks, strict=True)]
    for clause in range(len(moods) - 2, -1, -1):
        leads_in = marks[clause] == "," and bool(around[clause]) and around[clause][0] in PREPOSITIONS
        if leads_in and moods[clause + 1] is Mood.ASKED:
            moods[clause] = Mood.ASKED
    return moods


def _mood(words: Sequence[str], mark: str) -> Mood:
    """A request ("can I get", "how about", "is there a Paprika") states what is wanted; a question or an "if" asks."""
    start = next((at for at, word in enumerate(words) if word not in LEADING), len(words))
    first, second = [*words[start : start + 2], "", ""][:2]
    enquires = not ENQUIRING.isdisjoint(words)
    if (first in REQUESTS and second in PERSONS) or second == "about":
        return Mood.ASKED if enquires else Mood.STATED
    asks = first in ASKING or first == "if" or (first in INVERTED and second in SUBJECTS)
    if asks and ASKING_FOR.match(" ".join(words[start:])):
        return Mood.STATED
    if asks or (enquires and (first in ENQUIRING or not ASKING.isdisjoint(words[start:]))):
        return Mood.ASKED
    return Mood.DOUBTED if mark == "?" else Mood.STATED


def _verdict(reply: Reply, mentions: Sequence[Mention], count: int) -> int | None:
    """The option that all mentions which choose have in common, unless it is rejected elsewhere; else none."""
    if not mentions:
        return None
    view = _View(reply, mentions)
    if not SEVERAL.isdisjoint(view.others) or _speaks_for_some(reply.words):
        return None
    asked = [mention for mention in mentions if view.mood(mention) is Mood.ASKED]
    told = [mention for mention in mentions if view.is_told(mention)]
    only_named = [*asked, *told]
    rejected = [mention for mention in mentions if mention not in only_named and view.is_rejected(mention)]
    dropped = [*only_named, *rejected]
    chosen = [mention for mention in mentions if mention not in dropped and view.keeps_company(mention)]
    gone = frozenset[int]().union(*(mention.options for mention in rejected if len(mention.options) == 1))
    if chosen:
        return _only(frozenset.intersection(*(mention.options for mention in chosen)) - gone)
    if rejected:
        return _only(frozenset(range(count)) - gone) if _eliminates(view) else None
    taken = only_named if _points(view) else asked if _agrees(view, asked) else ()
    return _only(frozenset.intersection(*(mention.options for mention in taken))) if taken else None


def _speaks_for_some(words: Sequence[str]) -> bool:
    """Whether it tells of so many of a group: "2 of us like it"."""
    triples = zip(words, words[1:], words[2:], strict=False)
    return any(number.isdecimal() and of == "of" and group in GROUPS for number, of, group in triples)


def _only(options: frozenset[int]) -> int | None:
    return next(iter(options)) if len(options) == 1 else None


def _agrees(view: _View, asked: Sequence[Mention]) -> bool:
    """Whether a reply says yes and then asks about what it names: "Yes. What time does Paprika start?"."""
    return view.reply.words[0] in AGREEING and all(mention.company is None for mention in asked)


def _eliminates(view: _View) -> bool:
    """Whether a reply does nothing but rule options out: "not the first one" leaves the other of two."""
    is_plain = set(view.moods) == {Mood.STATED} and view.others <= CHOOSING | ELIMINATING
    return is_plain and not view.others.isdisjoint(ELIMINATING)


def _points(view: _View) -> bool:
    """Whether a reply takes in the end what it asked about or told of: "has Shibuya parking? ok, that one"."""
    last = view.around[-1]
    is_plain = view.moods[-1] is Mood.STATED and CHOOSING.issuperset(last)
    return is_plain and TAKING_IT.search(" ".join(last)) is not None
