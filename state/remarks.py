"""Remarks that ask for no answer: a bare thanks or laugh, and telling the bot off."""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum

from state.wording import CUES, words_of

THANKS = frozenset(CUES["thanks"].split()) | {"appreciated", "danke", "gracias", "merci", "grazie", "obrigado"}
LAUGHTER = frozenset(CUES["laughter"].split()) | {"xd", "lmfao", "ha"}
CONSENT = frozenset(
    "ok okay k kk okey alright cool great nice good perfect awesome neat sweet gotcha right wow".split()
)
FILLERS = frozenset(
    """you so much very a an the lot again man mate dude bro all guys everyone for your help that's thats that it's it
    its is then got now oh ah well hm hmm""".split()
)
ASKING = frozenset(CUES["asking"].split())  # "is that good" needs no mark to be a question
MAX_REMARK_WORDS, MAX_REMARK_LENGTH = 8, 100
SMILEY = re.compile(r"<a?:\w{2,32}:\d{1,20}>|(?:(?<=\s)|^)[:;=][-'^]?[)(\[\]dpo/|*]+(?=\s|$)", re.IGNORECASE)
PARTS_OF_EMOJI = frozenset({"So", "Sk", "Mn", "Cf"})  # pictures, skin tones, variation selectors, joiners

AROUND_TELLING_OFF = frozenset("please pls bot robot now man dude bro ok okay hey no nah oh just you and".split())
TELLING_OFF = re.compile(
    r"(?:"
    r"not you"
    r"|(?:i|we)?(?:'m|'re|m| am| are| was| were| wasn't| weren't| aren't| wasnt| werent)?(?: ?not)?"
    r" ?(?:talking|speaking|asking)(?: to)? you"
    r"|(?:i|we)? ?(?:didn't|didnt|did not) ask(?: you)?"
    r"|(?:nobody|noone|no one|who) asked(?: you)?"
    r"|shut (?:up|it)|zip it|stfu|shush|hush|be (?:quiet|silent)"
    r"|go away|butt out|stay out(?: of (?:this|it))?|leave (?:us|me) alone|mind your own business"
    r"|stop(?: (?:it|that|this|talking|answering|replying|responding|butting in|interrupting))?"
    r")"
)
TALKING_TO_YOU = re.compile(r"(?:talking|speaking|asking)(?: to)? you$")
DENIAL = re.compile(r"\b(?:not|wasn't|weren't|aren't|wasnt|werent)\b")


class Remark(StrEnum):
    """A message that is only this. CONSENT ("ok", "cool") answers a question where one was asked."""

    THANKS = "thanks"
    CONSENT = "consent"
    LAUGHTER = "laughter"
    EMOJI = "emoji"


def bare_remark(text: str) -> Remark | None:
    """What a text is that says no more than thanks, ok, lol or an emoji; None where it says more."""
    if len(text) > MAX_REMARK_LENGTH:
        return None
    rest = SMILEY.sub(" ", text)
    words = words_of(rest)
    asks = "?" in text or bool(words and words[0] in ASKING)
    if asks or len(words) > MAX_REMARK_WORDS or not set(words) <= FILLERS | THANKS | LAUGHTER | CONSENT:
        return None
    for remark, core in ((Remark.THANKS, THANKS), (Remark.LAUGHTER, LAUGHTER), (Remark.CONSENT, CONSENT)):
        if not core.isdisjoint(words):
            return remark
    return Remark.EMOJI if not words and _is_emoji(rest, text) else None


def _is_emoji(rest: str, text: str) -> bool:
    """Whether a text of which this is left without its smileys consists of emoji."""
    kinds = {
        unicodedata.category(character) for character in rest if not character.isspace() and character not in ".!~"
    }
    return kinds <= PARTS_OF_EMOJI and (bool(kinds) or rest != text)


def tells_off(text: str, bot_name: str) -> bool:
    """Whether a text does nothing but send its reader away: "not you", "stop", "shut up, Parley"."""
    if len(text) > MAX_REMARK_LENGTH:
        return False
    around = AROUND_TELLING_OFF | set(words_of(bot_name))
    words = words_of(text)
    if len(words) > MAX_REMARK_WORDS:
        return False
    for end in (0, -1):
        while len(words) > 1 and words[end] in around and not _is_telling_off(words):
            words.pop(end)
    return _is_telling_off(words)


def _is_telling_off(words: list[str]) -> bool:
    said = " ".join(words)
    if TELLING_OFF.fullmatch(said) is None:
        return False
    return TALKING_TO_YOU.search(said) is None or DENIAL.search(said) is not None
