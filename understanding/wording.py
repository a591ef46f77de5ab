"""The wording of a message: features of its text alone, computed once.

Only closed classes of common English words (pronouns, question words, thanks) and punctuation count, no words of a
special field or place. A text in another language has few cues; its punctuation, length and rare words still count.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from string import ascii_uppercase
from sys import intern
from typing import TYPE_CHECKING, Any

CUES: Mapping[str, str] = {
    "question": "what why how when where which who whose whom what's why's how's where's who's whats hows wheres",
    "asking": "is are was were do does did can could will would should shall has have had may isn't aren't don't",
    "yes_no": "yes yeah yep yup ya yea no nope nah sure ok okay k kk right correct exactly true indeed",
    "thanks": "thanks thank thx ty tyvm thankyou cheers tnx tks thanx",
    "you": "you your yours u ur you're you've you'd you'll youre",
    "me": "i my me mine i'm i've i'd i'll im ive we our us",
    "going_on": "and also but so then because cause or though however yet still otherwise",
    "pointing": "that it this they those these them its that's it's thats",
    "everybody": "anyone anybody someone somebody everyone everybody guys folks all any",
    "greeting": "hi hello hey hiya yo greetings morning evening welcome",
    "hedge": "hmm hm ah oh aha ahh ohh well um uh huh wow oops ow ugh",
    "request": "please pls plz tell show give try make let explain help write check look see use add put run go",
    "denial": "not don't doesn't no nothing didn't isn't can't cannot won't never dont cant doesnt none neither nor",
    "report": "did tried got done works worked work working says said already now went seems was had",
    "modal": "should would could can might may must will need want wanna gonna",
    "laughter": "lol haha hahaha heh hehe lmao rofl hah",
    "opinion": "know think guess see mean understand believe thought hope",
    "article": "the a an",
    "preposition": "of in on from with for to at by",
}
COMMON = """about after again also because been before being both could does doing down done each even every from have
having here into just like more most much need only other over really same should some such than that then there these
they thing think this those through very want well were what when where which while will with without would your make
still good going"""

MENTION = re.compile(r"<@!?(\d{1,20})>")
NOT_WORDS = re.compile(r"<a?[@#:!&]{1,2}[^<>\s]{1,60}>|https?://\S+|```.*?```", re.DOTALL)
WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
COMMAND = re.compile(r"\s*[!?$%&;]{1,2}[^\W\d_]")  # commands of other bots: "!help", "?rank"
CAPITALS = ascii_uppercase.encode()
MAX_WORDS = 60
MAX_GRAMS = 400

_cues_of: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
for _cue, _words in CUES.items():
    for _word in _words.split():
        _cues_of[_word] |= {_cue}
CUES_OF: Mapping[str, frozenset[str]] = dict(_cues_of)
NO_CUES: frozenset[str] = frozenset()
HAVE_CUES = frozenset(CUES_OF)
TOO_COMMON = frozenset(COMMON.split()) | HAVE_CUES


def _read_talk(text: str) -> dict[str, frozenset[str]]:
    """The classes of each word or phrase in the file. A line "[name] word word_word ..." lists the words of a class."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for line in text.splitlines():
        if line.startswith("["):
            name, _, words = line[1:].partition("]")
            for word in words.split():
                found[word.replace("_", " ")].add(name)
    return {word: frozenset(names) for word, names in found.items()}


TALK_OF: Mapping[str, frozenset[str]] = _read_talk(Path(__file__).with_name("talk.txt").read_text(encoding="utf-8"))
IN_TALK = frozenset(TALK_OF)
_FILLING, _ASKING = frozenset("ok so and but wait laugh agree".split()), frozenset("ask verb make".split())
FILLERS = frozenset(w for w, names in TALK_OF.items() if names & _FILLING and not names & _ASKING)
"""Words with which a message may begin before its actual content."""


class _Cut:
    """grams: all runs of 4 characters in the tokens, each once; cut out when they are first asked for."""

    __slots__ = ("grams",)

    grams: tuple[str, ...]

    if not TYPE_CHECKING:  # or it would take any name for an attribute's

        def __getattr__(self, name: str) -> Any:
            if name != "grams":
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            text = self.run_together
            # As a set they take four times the room.
            grams = tuple(map(intern, {text[i : i + 4] for i in range(len(text) - 3)}))
            object.__setattr__(self, name, grams)
            return grams


@dataclass(frozen=True, slots=True)
class Wording(_Cut):
    """What a text is made of.

    tokens: the first 60 words, case-folded, without mentions, links and code; count: number of all words; cues: the
    classes of common words that occur; first: the classes of the first word.
    """

    tokens: Sequence[str]
    count: int
    length: int
    cues: frozenset[str]
    first: frozenset[str]
    talk: frozenset[str]
    lead: frozenset[str]
    asks: bool
    ends_asking: bool
    has_link: bool
    commas: int
    capitals: int
    is_command: bool

    @property
    def words(self) -> frozenset[str]:
        """The set of its tokens. Not cached: a set takes a kilobyte, and for most kept messages it is never needed."""
        return frozenset(self.tokens)

    @property
    def run_together(self) -> str:
        """Its tokens as one text, of which its runs of letters are."""
        return " ".join(self.tokens)[:MAX_GRAMS]


def read(text: str) -> Wording:
    """The wording of a text as it was posted."""
    plain = _plain(text)
    stripped = plain.strip()
    words = WORD.findall(_folded(plain))
    known = tuple(map(intern, words[:MAX_WORDS]))
    talk = IN_TALK.intersection([*known, *map(" ".join, pairwise(known))])
    start = next((place for place, word in enumerate(known) if word not in FILLERS), 0)
    if plain.isascii():  # ten times as fast
        capitals = len(plain) - len(plain.encode().translate(None, CAPITALS))
    else:
        capitals = sum(map(str.isupper, plain))
    beginnings = (*known[start : start + 1], " ".join(known[start : start + 2]))
    return Wording(
        tokens=known,
        count=len(words),
        length=len(stripped),
        cues=_one(NO_CUES.union(*[CUES_OF[word] for word in HAVE_CUES.intersection(known)])),
        first=CUES_OF.get(known[0], NO_CUES) if known else NO_CUES,
        talk=_one(NO_CUES.union(*[TALK_OF[piece] for piece in talk])),
        lead=_one(NO_CUES.union(*[TALK_OF[piece] for piece in beginnings if piece in TALK_OF])),
        asks="?" in plain,
        ends_asking=stripped.endswith("?"),
        has_link="http" in text,
        commas=plain.count(","),
        capitals=capitals,
        is_command=COMMAND.match(text) is not None,
    )


@lru_cache(maxsize=4_096)
def _one(classes: frozenset[str]) -> frozenset[str]:
    """The same object for equal sets of classes, to save memory: each set takes 216 bytes or more."""
    return classes


def words_of(text: str) -> list[str]:
    """The words of a text in order, case-folded, without mentions, links and code."""
    return WORD.findall(_folded(_plain(text)))


@lru_cache(maxsize=256)
def words_of_name(name: str) -> tuple[str, ...]:
    """The words of one of the bot's names: the same for every message."""
    return tuple(words_of(name))


def _plain(text: str) -> str:
    """The text without mentions, custom emoji, links and code."""
    has_others = "<" in text or "http" in text or "```" in text
    return NOT_WORDS.sub(" ", text) if has_others else text


def _folded(text: str) -> str:
    return text.casefold().replace("’", "'")
