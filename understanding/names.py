"""Finds the people whom a message calls by name without a mention: "Ben, ...", "..., Ben?", "ben are you coming"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Protocol

from understanding.stopping import KNOWN
from understanding.wording import TALK_OF, TOO_COMMON, Wording, words_of, words_of_name

SOMEBODY = "somebody"
"""The name shown for people who have opted out."""
SHORTEST = 3  # letters that a name needs at least to be recognised without a comma
SHORTENED = 4  # letters from which on the beginning of a name stands for it: "calvin" for calvinr
ABOUT = frozenset(
    "is isn't was wasn't has hasn't had said says say did does will would and or who s just got went ist hat war es"
    " está ha est a è ma jest był är har".split()
)
"""Words after a name at the start of a text that is about that person, and does not call them."""
SPEAKING_TO = frozenset("you you_social can_you make please thanks go stop ok yes no laugh agree".split())
"""Classes of words in a text that ends in a name, which show that it calls that person."""

FIRST_WORD = re.compile(r"\s*(?:(?:hey|hi|hello|yo|ok|okay|so|and|but)[\s,]+)?@?([^\W\d_]{3,20}),\s", re.IGNORECASE)
ASKING_ONE = frozenset({"you_social", "can_you"})
ASKING_PERSON = ASKING_ONE | {"we"}
"""Classes of words that follow the name of whoever is asked something."""
NO_NAMES = frozenset(
    "interesting awesome amazing anyway anyways well sorry wow hello lovely wonderful brilliant fine excellent "
    "fantastic sweet neat weird strange funny impressive honestly seriously basically apparently obviously "
    "unfortunately sadly luckily hopefully surely certainly definitely absolutely besides however meanwhile "
    "otherwise instead first second third firstly secondly lastly finally afterwards earlier question congrats "
    "congratulations welcome damn whoa ugh understood noted brb btw übrigens schade toll krass schön interessant "
    "phew uhm umm erm hum hrm dunno yer gosh golly meh aw aww eh ooh argh tbh imo maybe perhaps rather "
    "entschuldigung außerdem trotzdem wunderbar pardon désolé intéressant interesante perdona disculpa además "
    "interessante scusa inoltre desculpa além sympa".split()
)
"""Words that begin a text with a comma as a name does, beside those of other classes."""


class Message(Protocol):
    """The fields of a message that are read here."""

    @property
    def author_id(self) -> int: ...
    @property
    def at_ends(self) -> Sequence[str]:
        """What names_at_ends() finds in its wording."""

    @property
    def calls(self) -> frozenset[str]:
        """Possible names that it calls, case-folded."""


@lru_cache(maxsize=4_096)
def keys_of(name: str) -> Sequence[str]:
    """The words by which somebody of this name is called: its first word, its longer words, and short forms."""
    words = words_of(name.replace("_", " "))
    first = next((word.rstrip("0123456789") for word in words if len(word) >= SHORTEST), "")
    if len(first) < SHORTEST:
        return ()
    whole = [first, *(word for word in words if len(word) > SHORTENED)]
    # "mind your own business" does not name Mindy, nor "forget it" forgetful_fred.
    beginnings = [first[:length] for length in range(SHORTENED, len(first)) if first[:length] not in KNOWN]
    keys = dict.fromkeys((*whole, *beginnings))
    return tuple(key for key in keys if key not in TOO_COMMON and key not in TALK_OF)


def index_of(names: Mapping[int, str]) -> dict[str, int]:
    """Index of the words that call people: word -> user id, 0 where several people share it. names: by user id."""
    found: dict[str, int] = {}
    for who, name in names.items():
        add_to(found, who, name)
    return found


def add_to(index: dict[str, int], who: int, name: str) -> None:
    for key in keys_of(name):
        # A word that two people share calls neither.
        index[key] = who if index.get(key, who) == who else 0


def called_by_name(
    message: Message, names: Mapping[int, str], index: Mapping[str, int] | None = None
) -> frozenset[int]:
    """Ids of the people whom a message calls without a mention, except its author.

    names: display names by user id; index: index_of these names, if it is known already.
    """
    found: set[int] = set()
    if calls := message.calls:
        found.update(who for who, name in names.items() if name.casefold() in calls)
    index = index_of(names) if index is None else index
    found.update(index.get(word, 0) for word in message.at_ends)
    return frozenset(found - {message.author_id, 0})


def names_at_ends(wording: Wording) -> tuple[str, ...]:
    """The words at the start and at the end of a text that call somebody, if they are names.

    "Ben are you coming" and "are you coming ben" call Ben, "ben is late" does not, nor does "i like ben".
    """
    tokens = wording.tokens
    tells_of = len(tokens) > 1 and tokens[1] in ABOUT and tokens[2:3] != ("you",)
    speaks_to = wording.asks or "greeting" in wording.cues or not wording.talk.isdisjoint(SPEAKING_TO)
    first = tokens[:1] if not tells_of else ()
    return (*first, *(tokens[-1:] if len(tokens) > 1 and speaks_to else ()))


def calls_stranger(content: str, wording: Wording, bot_name: str = "") -> bool:
    """Whether it asks somebody whose name nobody there has: "Ben, shall we go?", where no Ben has spoken yet.

    Takes for a name any capitalised first word before a comma that is in no class of other words, nor the bot's name,
    and one in lower case where the rest asks one person: "mike, can you look at it?".
    """
    if wording.talk.isdisjoint(ASKING_PERSON) or not (found := FIRST_WORD.match(content)):
        return False
    word, key = found[1], found[1].casefold()
    is_name = not any(key in known for known in (NO_NAMES, KNOWN, TOO_COMMON, TALK_OF, words_of_name(bot_name)))
    return is_name and (word.istitle() or (word.islower() and not wording.talk.isdisjoint(ASKING_ONE)))
