"""What moved an estimate, in words. Features that say the same thing of a message count together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum, auto
from itertools import islice

from followup.features import BOT, MOST_MESSAGES, NEVER, NOBODY, SAYS, STARTS, Features

SHOWN = 3
QUIET_PEOPLE = 4
SHORT_WORDS, LONG_WORDS = 5, 20
JUST_NOW, A_WHILE = 6, 12  # messages


class Aspect(IntEnum):
    """What a group of features is about."""

    SPOKEN_TO = 0
    BOT_ASKED = auto()
    BOT_SPOKE = auto()
    PARTNER = auto()
    OWN_WORDS = auto()
    NAMES_OTHERS = auto()
    NAMES_BOT = auto()
    QUESTION = auto()
    WORDING = auto()
    LENGTH = auto()
    OVERLAP = auto()
    CROWD = auto()
    OPEN_QUESTION = auto()


_QUESTION_CUES = {"says_question", "starts_question", "starts_asking"}
ASPECT_OF: Mapping[str, Aspect] = {
    name: aspect
    for aspect, names in {
        Aspect.SPOKEN_TO: """to_author_ago to_author_seconds to_author_words to_author_names to_author_of_3 is_due
            bot_to_own bot_messages_since_own""",
        Aspect.BOT_ASKED: "to_author_asks bot_asks",
        Aspect.BOT_SPOKE: "bot_ago bot_seconds bot_words bot_in_window bot_to_others_ago people_since_bot",
        Aspect.PARTNER: """partner bot_score rival_score margin rank own_to_bot rival_to_own own_to_rival own_since
            own_to_rivals_since rivals_to_own_since free_since own_to own_before_to before_run""",
        Aspect.OWN_WORDS: "own_seconds own_words own_asks own_in_window",
        Aspect.NAMES_OTHERS: "names_others names_others_first names_speakers",
        Aspect.NAMES_BOT: "names_bot names_bot_first",
        Aspect.QUESTION: "asks ends_asking " + " ".join(_QUESTION_CUES),
        Aspect.WORDING: "exclaims has_link commas colons capitals word_length is_command "
        + " ".join({*("says_" + cue for cue in SAYS), *("starts_" + cue for cue in STARTS)} - _QUESTION_CUES),
        Aspect.LENGTH: "words length rare_words",
        Aspect.OVERLAP: """overlap_bot overlap_rival overlap_margin overlap_own shared_to_author shared_bot
            shared_people new_words""",
        Aspect.CROWD: "people window_seconds",
        Aspect.OPEN_QUESTION: "open_question",
    }.items()
    for name in names.split()
}


def in_words(moved: Mapping[Aspect, float], features: Features) -> str:
    """The three aspects that moved the estimate most, either way: "a, b, and c". Some have no words where they lack."""
    strongest_first = sorted(moved, key=lambda aspect: -abs(moved[aspect]))
    clauses = filter(None, (WORDS[aspect](features) for aspect in strongest_first))
    *first, last = islice(clauses, SHOWN)
    return f"{', '.join(first)}, and {last}"


def _spoken_to(features: Features) -> str:
    ago = features["to_author_ago"]
    if ago == NEVER:
        return "I had said nothing to you"
    if features["is_due"]:
        return "I had just answered you" if ago <= JUST_NOW else "my last words went to you"
    return "I had answered you shortly before" if ago <= A_WHILE else "it was a while since I answered you"


def _bot_spoke(features: Features) -> str:
    since = int(features["bot_ago"]) - 1
    if since >= MOST_MESSAGES - 1:
        return "I had not spoken lately"
    if since == 0:
        return "I had spoken last"
    return "one message had passed since I spoke" if since == 1 else f"{since} messages had passed since I spoke"


def _partner(features: Features) -> str:
    partner = features["partner"]
    if partner == BOT:
        return "you were talking with me"
    return "you were talking with nobody yet" if partner == NOBODY else "you were talking with somebody else"


def _overlap(features: Features) -> str:
    margin = features["overlap_margin"]
    if margin == 0:
        return "it took up no one's words in particular"
    return "it took up my words" if margin > 0 else "it took up somebody else's words"


def _length(features: Features) -> str:
    words = features["words"]
    if SHORT_WORDS < words < LONG_WORDS:
        return "it was neither short nor long"
    return "it was short" if words <= SHORT_WORDS else "it was long"


def _wording(features: Features) -> str:
    known = {"says_thanks": "it said thanks", "starts_greeting": "it greeted", "says_everybody": "it spoke to anybody"}
    return next((words for name, words in known.items() if features[name]), "")


def _either(name: str, yes: str, no: str) -> Callable[[Features], str]:
    return lambda features: yes if features[name] > 0 else no


WORDS: Mapping[Aspect, Callable[[Features], str]] = {
    Aspect.SPOKEN_TO: _spoken_to,
    Aspect.BOT_ASKED: _either("to_author_asks", "I had asked you something", "I had asked you nothing"),
    Aspect.BOT_SPOKE: _bot_spoke,
    Aspect.PARTNER: _partner,
    Aspect.OWN_WORDS: _either("own_in_window", "you had spoken shortly before", "you had not spoken lately"),
    Aspect.NAMES_OTHERS: _either("names_others", "you named somebody else", "you named nobody else"),
    Aspect.NAMES_BOT: _either("names_bot", "you called me by name", ""),
    Aspect.QUESTION: _either("asks", "you asked a question", "it was no question"),
    Aspect.WORDING: _wording,
    Aspect.LENGTH: _length,
    Aspect.OVERLAP: _overlap,
    Aspect.CROWD: lambda features: (
        "few people were talking" if features["people"] <= QUIET_PEOPLE else "many people were talking"
    ),
    Aspect.OPEN_QUESTION: _either(
        "open_question", "somebody else's question was open", "nobody else's question was open"
    ),
}
