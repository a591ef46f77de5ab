"""Finds the option that a reply chooses, by its words alone.

A reply is read as mentions of options: positions in the list ("2", "the last but one"), names or parts of them, and
attributes that distinguish an option. Each mention stands for a set of options. Mentions that choose nothing are
dropped: options that are asked about, talked about or rejected, and numbers or parts of names beside words that do not
choose. The remaining mentions must have exactly one option in common; otherwise nothing is chosen, since a wrong choice
costs more than asking again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

import understanding.choice_words as common
from understanding.choice_text import Index, Option, Phrase, Reply, calls, cardinal, ordinal, plain, read

MAX_LENGTH, MAX_WORDS = 600, 80  # a longer reply tells something, and does not choose
MAX_NAMED = 6_000  # characters that name the options: 25 labels of 100, or the 100 places that a list may have
MAX_CORRECTIONS = 3  # the last ones are looked at
MAX_ALIKE = 4_000  # pairs of a reply's word that no name has and a name's word with the same first letter
MAX_COMPARED = 1_000  # pairs of a reply's word and a name that has it: with more, the names are too alike
CORRECTION = re.compile(
    r"\b(?:(?:(?<=no )|(?<=[,.;!?] ))wait|wait(?=[,:])|scratch that|i meant?|sorry|or rather|actually|make that)\b[,:]?"
)
FROM_END = re.compile(
    r"(?<!\S)(?:one (?:before|prior to|preceding)(?: the)? (?:last|final)|next to(?: the)? last"
    r"|(?P<ante>ante)?penultimate|last (?:one )?but (?:one|(?P<but>\d{1,3}))"
    r"|(?P<nth>\d{1,3})th(?: (?:to|from|before|but))?(?: the)? (?:last|end|bottom))(?!\S)"
)
TAKING_IT = re.compile(
    r"\b(?:(?:that|this) one|(?:take|choose|pick|want|do|get|have|see|watch|try|with|for) (?:it|that|this))\b"
)
ASKING_FOR = re.compile(r"(?:is there|are there|do you have)(?: (?:an?|any|some|the))? (?!\S)")  # before a mention
OF_GROUP = re.compile(rf"(?<!\S)\d+ of (?:{'|'.join(common.GROUPS)})(?!\S)")  # "2 of us like it"


class Mention(NamedTuple):
    """Words `first` to before `end` of a reply, and the options they stand for: empty if there is no such position.

    company: the only other words allowed in its clause, or, if `alone`, in the whole reply; None: any. is_bare: whether
    it is only a cardinal number.
    """

    first: int
    end: int
    options: frozenset[int]
    company: frozenset[str] | None = None
    alone: bool = False
    is_bare: bool = False


class Mood(Enum):
    """How a clause is said. DOUBTED: a statement with a question mark."""

    STATED = 1
    DOUBTED = 2
    ASKED = 3


def choose(reply: str, options: Sequence[Option]) -> int | None:
    """The 0-based index of the option that a reply chooses. None: none for certain; it never guesses.

    After a correction ("the first, no wait, the second") only the rest counts, if it chooses an option. A reply of more
    than 600 characters or 80 words chooses nothing, nor is anything chosen among options of more than 6,000 characters.
    """
    named = sum(len(text) for option in options for text, _ in calls(option))
    if len(reply) > MAX_LENGTH or named > MAX_NAMED or not options:
        return None
    text, index = plain(reply), Index(options)
    starts = [0, *[correction.end() for correction in CORRECTION.finditer(text)][-MAX_CORRECTIONS:]]
    found = (_chosen(text[start:], index) for start in reversed(starts))
    return next((chosen for chosen in found if chosen is not None), None)


def _chosen(text: str, index: Index) -> int | None:
    """Index of the option that a text chooses. Where a name and a position overlap, the surer one counts.

    "The second one" does not name "March 2nd"; "on the 5th" among two dates is no position.
    """
    read_reply = read(text, MAX_WORDS + 1)  # of more clauses there are more words
    if len(read_reply.words) > MAX_WORDS:
        return None
    if index.compared(read_reply.words) > MAX_ALIKE:
        return None
    reply = index.spelled(read_reply)
    if sum(len(index.phrases_with.get(word, ())) for word in reply.words) > MAX_COMPARED:
        return None
    names = list(_names_in(reply.words, index))
    places = list(_places_in(reply.words, names, index.count))
    clauses = reply.clauses
    for first, end, *_ in (*names, *places):  # a mention joins its clauses to one: "Mad Max: Fury Road"
        clauses = [clauses[first] if clause == clauses[end - 1] else clause for clause in clauses]
    counted = {at for place in places if place.company is None for at in range(place.first, place.end)}
    names = [name for name in names if name.first not in counted]
    named = {at for name in names for at in range(name.first, name.end)}
    naming = {clauses[name.first] for name in names if name.company is None}
    places = [
        place
        for place in places
        if (place.options or place.first not in named) and not (place.is_bare and clauses[place.first] in naming)
    ]
    return (
        _verdict(Reply(reply.words, clauses, reply.marks), [*names, *places], index.count) if names + places else None
    )


def _at(words: Sequence[str], at: int) -> str:
    return words[at] if 0 <= at < len(words) else ""


# Names


class Run(NamedTuple):
    """Adjacent words of a reply that match the same number of words in each phrase. is_whole: the whole phrase."""

    words: Sequence[str]
    first: int
    end: int
    phrases: Sequence[Phrase]
    is_whole: bool

    @property
    def matched(self) -> list[str]:
        return [word for word in self.words[self.first : self.end] if word in self.phrases[0].words]

    @property
    def before(self) -> str:
        return _at(self.words, self.first - 1)

    @property
    def is_telling(self) -> bool:
        """Whether the first matched word can stand for the whole phrase: not "best", not "a movie"."""
        return self.matched[0] not in common.FRAME and self.before not in ("a", "an")


def _names_in(words: Sequence[str], index: Index) -> Iterator[Mention]:
    """Mentions by name or attribute: at each word the longest match, of equally long ones those of a whole phrase."""
    at = 0
    while at < len(words):
        if not (phrases := index.phrases_with.get(words[at])):
            at += 1
            continue
        runs = [(*_run(words, at, phrase), phrase) for phrase in phrases]
        size = max(size for size, _, _ in runs)
        longest = [(end, phrase) for found, end, phrase in runs if found == size]
        whole = [(end, phrase) for end, phrase in longest if size >= len(phrase.words.keys() - common.UNITS_OF_TIME)]
        ends, best = zip(*(whole or longest), strict=True)
        if mention := _name(Run(words, at, max(ends), best, bool(whole)), index.count):
            yield mention
        at = max(ends)


def _run(words: Sequence[str], at: int, phrase: Phrase) -> tuple[int, int]:
    """How many of a phrase's words follow from here, in order and perhaps with gaps, and the end of the last one."""
    size, end, last = 0, at, -1
    for here in range(at, len(words)):
        place = phrase.words.get(words[here], -1)
        if place > last:
            size, end, last = size + 1, here + 1, place
        elif words[here] not in phrase.grammar:
            break
    return size, end


def _name(run: Run, count: int) -> Mention | None:
    """The mention that a run is, with the words allowed beside it. None: the run means something else."""
    phrase, matched, options = run.phrases[0], run.matched, frozenset(phrase.option for phrase in run.phrases)
    if run.before in common.PHRASAL and common.PARTICLES.issuperset(matched):  # "give up" does not name the film "Up"
        return None
    if phrase.bare:  # "After" counts beside words of choosing only; "It", a pronoun, only alone
        alone = common.PRONOUNS.issuperset(matched)
        return (
            Mention(run.first, run.end, options, common.POLITE if alone else common.CHOOSING, alone)
            if run.is_whole
            else None
        )
    if all(cardinal(word) is not None or ordinal(word) is not None for word in matched):
        return _value(run, options, count)
    lead = list(phrase.lead)  # "How to Train Your Dragon" begins no question
    start = (
        run.first - len(lead)
        if lead and list(run.words[max(run.first - len(lead), 0) : run.first]) == lead
        else run.first
    )
    if _is_sure(run, leads=start < run.first):
        return Mention(start, run.end, options)
    if len(matched) > 1 or (run.is_whole and not phrase.is_name):
        return Mention(start, run.end, options, common.FRAME)
    if not run.is_telling:
        return None
    # One word of a name needs common words around it, a word from within a name more so: it may mean a kind.
    if run.before == "my" or any(phrase.words[matched[0]] == 0 for phrase in run.phrases):
        return Mention(run.first, run.end, options, common.FRAME_OF_PART)
    is_within = bool(run.before) and run.before not in common.NAMING
    return Mention(run.first, run.end, options, common.NAMING if is_within else common.CHOOSING, alone=is_within)


def _value(run: Run, options: frozenset[int], count: int) -> Mention | None:
    """The mention of an option by a number in its name that is no position: "10" for "$10", "the 5th" for "March 5th".

    "On the 5th" is a day, unless a floor or another month follows.
    """
    is_place = not run.is_whole and 0 < (cardinal(run.matched[0]) or 0) <= count
    if is_place or (run.before in common.MONTHS and run.before not in run.phrases[0].grammar):
        return None
    after = [*run.words[run.end : run.end + 2], "", ""]
    is_counted = after[0] in common.UNCOUNTED and after[:2] != ["of", "this"]
    is_day = [*run.words[max(run.first - 2, 0) : run.first]] == ["on", "the"] and not is_counted
    return Mention(run.first, run.end, options, None if is_day or run.before in common.MONTHS else common.VALUING)


def _is_sure(run: Run, *, leads: bool) -> bool:
    """Whether a run names its option for certain.

    That is a whole name, "the Shinjuku one", "the one in Shinjuku", or half of a name with only common words beside it.
    """
    phrase, matched, after = run.phrases[0], run.matched, _at(run.words, run.end)
    if run.is_whole and (phrase.is_name or len(matched) > 1):
        return leads or common.LINKS.issuperset(phrase.lead)
    if len(matched) > 1:
        return 2 * len(matched) >= len(phrase.words) and common.FRAME.issuperset({run.before or "the", after or "the"})
    before = [word for word in run.words[max(run.first - 3, 0) : run.first] if word != "the"][-2:]
    is_where = before[:1] == ["one"] and common.PREPOSITIONS.issuperset(before[1:])
    return run.is_telling and (is_where or after == "one")


# Places in the list


def _places_in(words: Sequence[str], names: Sequence[Mention], count: int) -> Iterator[Mention]:
    """Mentions by position in the list: by number, by ordinal, or counted from the end."""
    sure = [name for name in names if name.company is None or cardinal(words[name.first]) is not None]
    taken = {at for name in sure for at in range(name.first, name.end)}
    text = " ".join(words)
    for found in FROM_END.finditer(text):
        first = text.count(" ", 0, found.start())
        place = int(found["but"]) + 1 if found["but"] else 3 if found["ante"] else int(found["nth"] or 2)
        end = first + found[0].count(" ") + 1
        taken.update(range(first, end))
        yield Mention(first, end, _option(-place, count))
    for at in range(len(words)):
        mention = None if at in taken else _ordinal(words, at, count) or _cardinal(words, at, count)
        if mention:
            taken.update(range(mention.first, mention.end))
            yield mention


def _option(place: int, count: int) -> frozenset[int]:
    """The option at an index from 0, or from -1 at the end; empty if there is no such option."""
    return frozenset({place % count}) if -count <= place < count else frozenset()


def _ordinal(words: Sequence[str], at: int, count: int) -> Mention | None:
    """A mention by ordinal: "the second one" beside any words, "the second" beside words of choosing only.

    "The first two" choose nothing. A noun may follow at the end: "the second restaurant", but not "on the second
    floor".
    """
    word, before, after, last = words[at], _at(words, at - 1), _at(words, at + 1), _at(words, at + 2)
    number, place = ordinal(word), common.PLACES.get(word)
    if number is not None:
        place = number - 1 if number else count
    elif word in common.MIDDLE and count % 2:
        place = count // 2
    is_verb = (
        word == "2th" and before != "the" and after in ("that", "this") and common.POLITE.issuperset(words[at + 2 :])
    )
    if place is None or is_verb or (word in common.OF_TWO and count != 2):  # "I second that"
        return None
    if cardinal(after) is not None or after == "ones":
        return Mention(at, at + 2, frozenset())
    is_counted = before == "the" and _at(words, at - 2) not in common.BEFORE_QUANTITIES
    if after in common.COUNTED or (
        is_counted and after and after not in common.NO_THINGS and (not last or last in common.CHOOSING)
    ):
        return Mention(at, at + 2, _option(place, count))
    is_date = not common.BEFORE_DATES.isdisjoint(words[max(at - 2, 0) : at])
    if before in common.NOT_BEFORE_PLACES or after in common.UNCOUNTED or is_date:
        return None
    return Mention(at, at + 1, _option(place, count), common.PLACING, alone=before not in ("the", "option", "number"))


def _cardinal(words: Sequence[str], at: int, count: int) -> Mention | None:
    """A mention by number: "option 2" beside any words, "2" beside words of choosing only, but not "at 2" or "for 2".

    A bare "one" counts only alone. "Number one" may be praise: "my number one fan".
    """
    number, before = cardinal(words[at]), _at(words, at - 1)
    is_one = words[at] == "one"
    if number is None and not is_one:
        return None
    chosen = _option(0 if is_one else (number or count + 1) - 1, count)
    if before in common.MARKED:
        praises = before == "number" and (is_one or number == 1)
        return Mention(at - 1, at + 1, chosen, common.COUNTING if before == "#" else common.FRAME if praises else None)
    if is_one:
        return Mention(at, at + 1, chosen, common.POLITE, alone=True) if not before or before in common.POLITE else None
    is_for = before == "for" and _at(words, max(at - 2, 0)) not in ("go", "going", "vote")
    if is_for or before in common.BEFORE_QUANTITIES or _is_quantity(words, at):
        return None
    return Mention(at, at + 1, chosen, common.COUNTING, is_bare=True)


def _is_quantity(words: Sequence[str], at: int) -> bool:
    """Whether a number counts things, by the plural "s" of the next word: "2 tickets"."""
    after = _at(words, at + 1)
    return words[at].isdecimal() and after.endswith("s") and after not in common.NO_THINGS


# Which mentions choose


class _View:
    """A reply around its mentions: the other words of each clause, and its mood."""

    def __init__(self, reply: Reply, mentions: Sequence[Mention]) -> None:
        self.words, self.clauses, marks = reply
        self.covered = {at for mention in mentions for at in range(mention.first, mention.end)}
        counts = [at for at in range(len(self.words)) if _is_quantity(self.words, at)]
        skipped = self.covered.union(counts, (at + 1 for at in counts))
        self.around: list[list[str]] = [[] for _ in marks]
        for at, clause in enumerate(self.clauses):
            self.around[clause].append("" if at in skipped else self.words[at])
        self.others = {word for words in self.around for word in words} - {""}
        self.moods = [_mood(words, mark) for words, mark in zip(self.around, marks, strict=True)]
        for clause in range(len(marks) - 2, -1, -1):  # "in Shibuya," belongs to the question that follows
            leads_in = marks[clause] == "," and self.around[clause] and self.around[clause][0] in common.PREPOSITIONS
            if leads_in and self.moods[clause + 1] is Mood.ASKED:
                self.moods[clause] = Mood.ASKED

    def mood(self, mention: Mention) -> Mood:
        return self.moods[self.clauses[mention.first]]

    def keeps_company(self, mention: Mention) -> bool:
        """Whether the words beside a mention are among those allowed. A verb after "to" may be any: "to fly"."""
        beside = set(self.around[self.clauses[mention.first]]) - {""}
        if self.mood(mention) is Mood.DOUBTED and not beside <= common.FRAME:
            return False
        if mention.company is None:
            return True
        others = self.others if mention.alone else beside
        if mention.company is common.FRAME or mention.company is common.FRAME_OF_PART:
            others = others - {word for before, word in pairwise(self.words) if before in common.BEFORE_VERBS}
        return others <= mention.company

    def is_told(self, mention: Mention) -> bool:
        """Whether a mention is only talked about: "I was in Shibuya", "see you in Shibuya", "out of coffee".

        But "I was thinking of Shibuya" and "I picked Shibuya" choose.
        """
        around = self.around[self.clauses[mention.first]]
        before = [word for word in self.words[max(mention.first - 3, 0) : mention.first] if word != "the"]
        is_told = not common.TOLD.isdisjoint(around) or any(
            (word in common.REPORTERS and after.endswith("ed") and after not in common.DECIDED)
            or (word == "see" and after in ("you", "ya", "u"))
            for word, after in pairwise(around)
        )
        return before[-2:] == ["out", "of"] or (is_told and common.HAVING_IN_MIND.isdisjoint(around))

    def is_rejected(self, mention: Mention) -> bool:
        """Whether a "not" stands in a mention's clause before it, or after it if no other mention follows."""
        clause = [at for at, number in enumerate(self.clauses) if number == self.clauses[mention.first]]
        # The answer "no" rejects no mention, but "no Paprika" does.
        is_answer = self.words[clause[0]] == "no" and clause[0] + 1 not in self.covered
        others = [at for at in (clause[1:] if is_answer else clause) if at not in self.covered]
        negators = [at for at in others if self.words[at] in common.NEGATORS or self.words[at].endswith("n't")]
        is_last = all(at < mention.end for at in self.covered.intersection(clause))
        return any(at < mention.first or (is_last and self.words[at] != "except") for at in negators)

    def eliminates(self) -> bool:
        """Whether a reply only rules options out: "not the first one" leaves the other of two."""
        is_plain = set(self.moods) == {Mood.STATED} and self.others <= common.CHOOSING | common.ELIMINATING
        return is_plain and not self.others.isdisjoint(common.ELIMINATING)

    def takes(self, named: Sequence[Mention], asked: Sequence[Mention]) -> Sequence[Mention]:
        """The mentions that a reply without other choice takes: "has Shibuya parking? ok, that one".

        It takes those asked about in "Yes. Is Paprika long?", too.
        """
        last = self.around[-1]
        is_plain = self.moods[-1] is Mood.STATED and common.CHOOSING.issuperset(last)
        if is_plain and TAKING_IT.search(" ".join(last)):
            return named
        agrees = self.words[0] in common.AGREEING and all(mention.company is None for mention in asked)
        return asked if agrees else ()


def _mood(words: Sequence[str], mark: str) -> Mood:
    """The mood of a clause. A request ("can I get", "how about", "is there a Paprika") is STATED; "if ..." is ASKED."""
    start = next((at for at, word in enumerate(words) if word not in common.LEADING), len(words))
    first, second = _at(words, start), _at(words, start + 1)
    enquires = not common.ENQUIRING.isdisjoint(words)
    if (first in common.REQUESTS and second in common.PERSONS) or second == "about":
        return Mood.ASKED if enquires else Mood.STATED
    asks = first in common.ASKING or first == "if" or (first in common.INVERTED and second in common.SUBJECTS)
    if asks and ASKING_FOR.match(" ".join(words[start:])):
        return Mood.STATED
    if asks or (enquires and (first in common.ENQUIRING or not common.ASKING.isdisjoint(words[start:]))):
        return Mood.ASKED
    return Mood.DOUBTED if mark == "?" else Mood.STATED


def _verdict(reply: Reply, mentions: Sequence[Mention], count: int) -> int | None:
    """The one option that all choosing mentions have in common, without those rejected elsewhere. None: not one."""
    view = _View(reply, mentions)
    if not common.SEVERAL.isdisjoint(view.others) or OF_GROUP.search(" ".join(reply.words)):
        return None
    asked = [mention for mention in mentions if view.mood(mention) is Mood.ASKED]
    named = [*asked, *filter(view.is_told, mentions)]
    meant = [mention for mention in mentions if mention not in named]
    rejected = [mention for mention in meant if view.is_rejected(mention)]
    chosen = [mention for mention in meant if mention not in rejected and view.keeps_company(mention)]
    gone = {option for mention in rejected if len(mention.options) == 1 for option in mention.options}
    if rejected and not chosen:
        return _only([frozenset(range(count)) - gone]) if view.eliminates() else None
    return _only([mention.options - gone for mention in chosen or view.takes(named, asked)])


def _only(sets: Sequence[frozenset[int]]) -> int | None:
    """The one option that all sets have in common. None: not exactly one."""
    left = frozenset.intersection(*sets) if sets else frozenset()
    return next(iter(left)) if len(left) == 1 else None
