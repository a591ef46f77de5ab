"""Evidence: what raised and lowered an estimate, in words. Features with the same meaning are grouped by aspect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum, auto

from decision import WITH_SOMEBODY
from followup.features import BOT, MOST_MESSAGES, NOBODY, OTHER, Features, feature_names
from followup.scene import NEVER

SHOWN = 3
LEAST = 0.05  # log odds that an aspect must have contributed to be mentioned
QUIET_PEOPLE = 4
SHORT_WORDS, LONG_WORDS = 5, 20
JUST_NOW, A_WHILE = 6, 12  # messages


class Aspect(IntEnum):
    """The subject of a group of features."""

    SPOKEN_TO = 0
    BOT_ASKED = auto()
    BOT_SPOKE = auto()
    PARTNER = auto()
    ANSWERED = auto()
    OWN_WORDS = auto()
    SPEAKERS = auto()
    NAMES_OTHERS = auto()
    NAMES_BOT = auto()
    QUESTION = auto()
    WORDING = auto()
    LENGTH = auto()
    OVERLAP = auto()
    CROWD = auto()
    OPEN_QUESTION = auto()


ASPECTS = tuple(Aspect)

OF_NAME: dict[str, Aspect] = {
    name: aspect
    for aspect, names in {
        Aspect.SPOKEN_TO: """to_author_ago to_author_seconds to_author_words to_author_names to_author_of_3 is_due
            bot_to_own bot_messages_since_own""",
        Aspect.BOT_ASKED: "to_author_asks bot_asks",
        Aspect.BOT_SPOKE: "bot_ago bot_seconds bot_words bot_in_window bot_to_others_ago people_since_bot",
        Aspect.PARTNER: """partner bot_score rival_score margin rank own_to_bot rival_to_own own_to_rival
            rivals_to_own_since free_since own_to own_before_to before_run previous_is_bots""",
        Aspect.ANSWERED: """room_answered_of_6 room_left_alone taken_up left_alone_since_bot own_said own_answered
            own_answered_share own_answered_of_3 own_last_answered own_left_alone""",
        Aspect.OWN_WORDS: "own_seconds own_words own_in_window own_ago run",
        Aspect.SPEAKERS: "speaker_1 speaker_2 speaker_3 speaker_4 speaker_5 other_ago other_seconds previous_seconds",
        Aspect.NAMES_OTHERS: "names_others names_others_first names_speakers names_person names_person_last",
        Aspect.NAMES_BOT: "names_bot names_bot_first names_bot_anywhere",
        Aspect.QUESTION: "asks ends_asking talk_ask talk_verb talk_can_you lead_ask lead_verb lead_can_you",
        Aspect.LENGTH: "words length rare_words",
        Aspect.CROWD: "people window_seconds window_speakers window_named",
        Aspect.OPEN_QUESTION: "open_question open_asks",
    }.items()
    for name in names.split()
}
OF_BEGINNING: Mapping[str, Aspect] = {
    "last_": Aspect.BOT_ASKED,
    "rival_": Aspect.SPEAKERS,
    "alike_": Aspect.OVERLAP,
    "rare_": Aspect.OVERLAP,
    "shared_": Aspect.OVERLAP,
    "new_words": Aspect.OVERLAP,
}
ASPECT_OF: Mapping[str, Aspect] = {
    name: next((aspect for begins, aspect in OF_BEGINNING.items() if name.startswith(begins)), Aspect.WORDING)
    for name in (*feature_names(), "words_score")
} | OF_NAME


def in_words(moved: Sequence[float], features: Features) -> tuple[str, str]:
    """The three aspects that raised the estimate most, and the three that lowered it most: each "a, b, and c", or "".

    moved: the contribution of each aspect, in the order of Aspect. An aspect without words is left out."""
    told: tuple[list[str], list[str]] = [], []
    strong = [(-abs(by), aspect) for aspect, by in zip(ASPECTS, moved, strict=True) if abs(by) >= LEAST]
    for _, aspect in sorted(strong):
        raised = moved[aspect] > 0
        side = told[0] if raised else told[1]
        if len(side) < SHOWN and (words := WORDS[aspect](features, raised)):
            side.append(words)
    raising, lowering = (f"{', '.join(side[:-1])}, and {side[-1]}" if side[1:] else "".join(side) for side in told)
    return raising, lowering


def _spoken_to(features: Features, _speaks_for: bool) -> str:
    ago = features["to_author_ago"]
    if ago == NEVER:
        return "I had said nothing to you"
    if features["is_due"]:
        return "I had just answered you" if ago <= JUST_NOW else "my last message was to you"
    return "I answered you a little earlier" if ago <= A_WHILE else "it had been a while since I answered you"


def _bot_spoke(features: Features, speaks_for: bool) -> str:
    since = int(features["bot_ago"]) - 1
    if since >= MOST_MESSAGES - 1:
        return "I had not spoken lately"
    if since == 0:
        return "I had spoken last" if speaks_for else ""
    return "there was one message after mine" if since == 1 else f"there were {since} messages after mine"


def _answered(features: Features, speaks_for: bool) -> str:
    if features["room_answered_of_6"]:
        if speaks_for:
            return "I was part of the conversation"
        return "" if features["speaker_1"] == BOT else "the conversation had moved on"
    return "the last messages were not to me"


def _overlap(features: Features, speaks_for: bool) -> str:
    mine, others = (max(features[name], 0) for name in ("alike_bot", "alike_rival"))
    if mine > others and speaks_for:
        return "it used words of mine"
    if mine < others and not speaks_for:
        return "it used other people's words"
    return "" if speaks_for or mine else "it used no words of mine"


def _length(features: Features, _speaks_for: bool) -> str:
    words = features["words"]
    if SHORT_WORDS < words < LONG_WORDS:
        return ""
    return "it was short" if words <= SHORT_WORDS else "it was long"


def _wording(features: Features, speaks_for: bool) -> str:
    if speaks_for:
        return "it asked for something" if features["lead_make"] else "it was worded like a message to me"
    found = (words for name, words in AMONG_PEOPLE.items() if features[name])
    return next(found, "it was worded like talk between people")


AMONG_PEOPLE = {
    "talk_thanks": "it said thanks",
    "starts_greeting": "it was a greeting",
    "talk_laugh": "it was a laugh",
    "talk_room": "it spoke to everybody",
}


def _either(names: str, yes: str, no: str, above: float = 0) -> Callable[[Features, bool], str]:
    """Says yes where one of these features is above this value."""
    wanted = names.split()
    return lambda features, _speaks_for: yes if any(features[name] > above for name in wanted) else no


def _by_value(name: str, words: Mapping[float, str], otherwise: str) -> Callable[[Features, bool], str]:
    """Says whom the feature stands for. The bot is no reason for a low estimate: other features of the aspect were."""

    def told(features: Features, speaks_for: bool) -> str:
        value = features[name]
        return "" if value == BOT and not speaks_for else words.get(value, otherwise)

    return told


WORDS: Mapping[Aspect, Callable[[Features, bool], str]] = {
    Aspect.SPOKEN_TO: _spoken_to,
    Aspect.BOT_ASKED: _either("bot_asks", "I had asked something", "I had asked nothing"),
    Aspect.BOT_SPOKE: _bot_spoke,
    Aspect.PARTNER: _by_value(
        "partner",
        {BOT: "you were talking with me", NOBODY: "you were talking with nobody in particular"},
        WITH_SOMEBODY,
    ),
    Aspect.ANSWERED: _answered,
    Aspect.OWN_WORDS: _either("own_in_window", "you had spoken a little earlier", "you had not spoken lately"),
    Aspect.SPEAKERS: _by_value(
        "speaker_1",
        {BOT: "nobody had spoken since I did", OTHER: "somebody else had spoken last"},
        "you had spoken last yourself",
    ),
    Aspect.NAMES_OTHERS: _either("names_others", "you named somebody else", "you spoke to nobody else by name"),
    Aspect.NAMES_BOT: _either("names_bot", "you called me by name", ""),
    Aspect.QUESTION: _either("asks talk_ask lead_verb lead_can_you", "you asked a question", "it was not a question"),
    Aspect.WORDING: _wording,
    Aspect.LENGTH: _length,
    Aspect.OVERLAP: _overlap,
    Aspect.CROWD: _either("people", "many people were talking", "few people were talking", above=QUIET_PEOPLE),
    Aspect.OPEN_QUESTION: _either(
        "open_asks", "somebody else's question was still open", "nobody else's question was open"
    ),
}
