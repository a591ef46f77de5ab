"""How a reply resolves a prompt: a click and typed words give the same value.

Lexical: no model, no network, deterministic. What is uncertain resolves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from state.prompts import Ask, AwaitingType, ResolutionType
from understanding.acknowledgements import bare_acknowledgement
from understanding.cancel import calls_off
from understanding.confirmation import confirm
from understanding.selection import choose
from understanding.wording import CUES_OF, read, words_of

NOTE = "note"
MAX_GOING_ON = 60  # characters of a reply that accepts the offer to go on with an answer
MAX_CONTENT = 1_000  # characters of a free answer that are kept
MAX_READ = 60  # characters at the beginning and the end of a note that tell whether it is one

BE = r"(?:it['’]?s|it\s+is|they['’]?re|they\s+are|place\s+is)"
CLAUSE_START = re.compile(r"^\W{0,5}|[^\w\s]\s{1,3}", re.MULTILINE)
# What may come before a tip, several times. No other pronoun may: "I have a meeting" is no tip.
BEFORE = re.compile(
    rf"""(?:
    and|but|so|also|then|oh|ok|okay|yes|yeah|well|btw|fyi|just|definitely|absolutely|totally|seriously|really|very|super
    |always|please|must|a|{BE}|(?:the|this|that)(?=\s+place)|(?:make|be)\s+sure\s+to
    |(?:you|one|everyone|people)\s+(?:should|must|have\s+to|need\s+to|gotta)
    )\s+""",
    re.IGNORECASE | re.VERBOSE,
)
MAX_BEFORE = 6

# Document 000's patterns; the content follows the words that tell the kind. "best for" comes before "vibe", whose
# "it's ..." would otherwise match "it's great for families". "Have" alone needs a "the", since "have fun" and "you must
# have forgotten" are no tips.
METADATA_PATTERNS: Mapping[str, tuple[re.Pattern[str], ...]] = {
    kind: tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)
    for kind, patterns in {
        "must_try": (
            r"(?:must\s+have|get|try|order|have(?=\s+the\b))\s+(?P<the>the\s+)?(?P<content>\S.*)",
            r"(?:don['’]?t\s+miss|can['’]?t\s+skip)\s+(?P<the>the\s+)?(?P<content>\S.*)",
        ),
        "best_for": (r"(?:great|good|perfect|best|ideal)\s+(?:for|with)\s+(?P<content>\S.*)",),
        "vibe": (
            rf"{BE}\s+(?P<content>\w.*)",
            r"(?P<content>(?:cozy|romantic|lively|quiet|chill|fancy|casual)\b(?!\s+(?:out|down|an?|some|please)\b).*)",
        ),
    }.items()
}

# A content that begins with one of these is no note: "get it", "good for him", "it's not ...", "it's what I said".
TALK = frozenset("question asking you me going_on pointing yes_no denial report modal request preposition".split())
ELSEWHERE = "up down out off over away back again here there home later lost ready rid well been gone him her".split()
NO_CONTENT = frozenset({word for word, cues in CUES_OF.items() if cues & TALK}.union(ELSEWHERE))
ADVERBS = frozenset("very really quite pretty super so too also".split())
NO_VIBE = frozenset(
    """late early time noon midnight today tonight tomorrow yesterday monday tuesday wednesday thursday friday saturday
    sunday now again already all just only like almost fine""".split()
)
VERB = re.compile(r"(?>[^\Waeiouy]*[aeiouy])\w*ing")  # "restarting", but neither "king" nor "spring"

# Words that only ask for patience, each with a space before it.
PATIENCE = r"""
    h+m+|u+m+|u+h+|e+r+m?|wait|(?:hold|hang)\ on|hold\ up|(?:i'll\ )?be\ right\ back
    |(?:(?:just|give\ me|gimme)\ )?(?:a|one|1)\ (?:sec|second|moment)|(?:just|give\ me|gimme)\ (?:a|one|1)\ min(?:ute)?
    |(?:let\ me|lemme)\ (?:think|see|check)(?:\ about\ (?:it|that))?|ok|okay|oh|well|so|please|sorry
"""
GOING_ON = re.compile(r"(?: yes| ok)?(?: please)?(?: go (?:on|ahead)| continue| keep going| carry on)(?: please)?")
PUTS_OFF = re.compile(rf"\ (?:brb|bbl|afk|gtg|g2g)\b.*|(?:\ (?:{PATIENCE}))+", re.VERBOSE)


@dataclass(frozen=True, slots=True)
class Resolution:
    """The answer to a prompt. data: document 000's `resolution_data`, with all its keys, `type` included."""

    type: ResolutionType
    data: Mapping[str, Any]


CALLED_OFF = Resolution(ResolutionType.CANCEL, {"type": "cancel"})


def resolve(reply: str, ask: Ask, question: str = "", *, is_direct: bool = False) -> Resolution | None:
    """How a typed reply resolves a prompt; None: it does not. is_direct: it mentions the bot or replies to it.

    An option comes before a cancel, since an option may be called "Cancel"; so does a plain no, since "nope" is both.
    An offer to go on with an answer is only accepted by words that say nothing else.
    """
    if ask.ends_with:
        words = "".join(f" {word}" for word in words_of(reply)) if len(reply) <= MAX_GOING_ON else ""
        return chosen(ask, 0) if GOING_ON.fullmatch(words) else None
    is_off = calls_off(reply)
    match ask.awaiting_type:
        case AwaitingType.SELECTION:
            if (index := choose(reply, ask.options)) is not None:
                return chosen(ask, index)
        case AwaitingType.CONFIRMATION:
            is_yes = confirm(reply, question)
            if is_yes or (is_yes is False and (not is_off or "yes_no" in read(reply).first)):
                return confirmed(is_yes)
        case _ if not is_off:
            return given(ask, reply) if _is_free_answer(reply, ask, is_direct=is_direct) else None
    return CALLED_OFF if is_off else None


def chosen(ask: Ask, index: int) -> Resolution:
    """The option of this 0-based index; `selection_index` counts from 1, as people are shown it."""
    data = {"type": "selection", "selection_index": index + 1, "selected_option": ask.options[index]}
    return Resolution(ResolutionType.SELECTION, data)


def confirmed(is_yes: bool) -> Resolution:
    return Resolution(ResolutionType.CONFIRMATION, {"type": "confirmation", "confirmed": is_yes})


def given(ask: Ask, text: str) -> Resolution:
    """A free answer: the input that was asked for, or a note and its kind."""
    content = text.strip()[:MAX_CONTENT]
    if ask.awaiting_type is not AwaitingType.METADATA:
        return Resolution(ResolutionType.INPUT, {"type": "input", "content": content})
    kind, content = _kind_of_note(content) or (NOTE, content)
    target = ask.context.get("target_item_id")
    data = {"type": "metadata", "metadata_type": kind, "content": content, "target_item_id": target}
    return Resolution(ResolutionType.METADATA, data)


def _is_free_answer(reply: str, ask: Ask, *, is_direct: bool) -> bool:
    """Whether a reply is a free answer: not empty, a question, a command to another bot, bare thanks, laugh or emoji.

    A note has to match a pattern, or be said to the bot directly. An input must not merely ask to wait: "brb ...", or
    nothing but "one sec", "hold on", "hm" and the like. Of a long burst only the part that is kept is compared.
    """
    wording = read(reply)
    starts_else = (
        wording.asks or "question" in wording.first or wording.is_command or bare_acknowledgement(reply) is not None
    )
    kept = reply.strip()[:MAX_CONTENT]
    if starts_else or not kept:
        return False
    if ask.awaiting_type is AwaitingType.METADATA:
        return is_direct or _kind_of_note(kept) is not None
    return PUTS_OFF.fullmatch("".join(f" {word}" for word in words_of(kept))) is None


def _kind_of_note(text: str) -> tuple[str, str] | None:
    """The kind and content of a note, if a pattern matches at the start of the text or of one of its clauses, or behind
    words that may come before a tip."""
    starts = _starts(text)
    places = {place for each in starts for place in each}
    for kind, patterns in METADATA_PATTERNS.items():
        for pattern in patterns:
            found = {place: match for place in places if (match := pattern.match(text, place))}
            for each in starts if found else ():
                match = next((found[place] for place in each if place in found), None)
                if match and (match.groupdict().get("the") or not _is_talk(kind, match["content"])):
                    return kind, match["content"].strip()
    return None


def _starts(text: str) -> list[list[int]]:
    """For each start of a clause the places at which a tip may begin, the last one first.

    What may come before a tip is looked for only once at each place, as it may begin and go on anywhere.
    """
    ends: dict[int, int | None] = {}
    starts = []
    for clause in CLAUSE_START.finditer(text):
        places = [clause.end()]
        while len(places) <= MAX_BEFORE:
            if (last := places[-1]) not in ends:
                ends[last] = before.end() if (before := BEFORE.match(text, last)) else None
            if (end := ends[last]) is None:
                break
            places.append(end)
        starts.append(places[::-1])
    return starts


def _is_talk(kind: str, content: str) -> bool:
    """Whether a content is talk, and so no note.

    It begins with a pronoun and the like, or with a verb in -ing ("try restarting it"), except after "best for"; or it
    is a vibe that begins with a number or a time, or ends with a time ("it's down now"). A content without any words,
    such as a picture, is a note. Only its beginning and its end are read.
    """
    words = words_of(content[:MAX_READ])
    first = next((word for word in words if word not in ADVERBS), "")
    if not words or first in NO_CONTENT or kind == "best_for":
        return first in NO_CONTENT
    last = words_of(content[-MAX_READ:])[-1:] if kind == "vibe" else []
    is_time = kind == "vibe" and (not first[:1].isalpha() or first in NO_VIBE or not NO_VIBE.isdisjoint(last))
    return is_time or VERB.fullmatch(words[0]) is not None
