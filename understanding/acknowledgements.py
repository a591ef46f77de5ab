"""Acknowledgements, which need no answer: a bare thanks, ok or laugh."""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum

from understanding.wording import CUES, TALK_OF, words_of, words_of_name

THANKS = frozenset(CUES["thanks"].split()) | {"appreciated"} | {w for w, kinds in TALK_OF.items() if "thanks" in kinds}
LAUGHTER = frozenset(CUES["laughter"].split()) | {"xd", "lmfao", "ha"}
CONSENT = frozenset(
    "ok okay k kk okey alright cool great nice good perfect awesome neat sweet gotcha right wow".split()
)
FILLERS = frozenset(
    """you so much very a an the lot again man mate dude bro all guys everyone for your help that's thats that it's it
    its is then got now oh ah well hm hmm
    dir euch ihnen vielen sehr schön herzlichen lieben dafür super top prima perfekt toll passt alles klar
    muchas muchísimas mil beaucoup bien mille tante molte muito muita så mycket je wel bardzo большое""".split()
)
KNOWN = FILLERS | THANKS | LAUGHTER | CONSENT
ASKING = frozenset(CUES["asking"].split())  # "is that good" is a question without its mark, too
MAX_WORDS, MAX_LENGTH = 8, 100
SMILEY = re.compile(r"<a?:\w{2,32}:\d{1,20}>|(?:(?<=\s)|^)[:;=][-'^]?[)(\[\]dpo/|*]+(?=\s|$)", re.IGNORECASE)
PARTS_OF_EMOJI = frozenset({"So", "Sk", "Mn", "Cf"})  # pictures, skin tones, variation selectors, joiners


class Acknowledgement(StrEnum):
    """Kind of a message that is nothing else. CONSENT ("ok", "cool") is an answer if a question was asked."""

    THANKS = "thanks"
    CONSENT = "consent"
    LAUGHTER = "laughter"
    EMOJI = "emoji"


def bare_acknowledgement(text: str, bot_name: str = "") -> Acknowledgement | None:
    """The kind of a text that is only thanks, ok, lol or an emoji, with the bot's name or not. None: it says more."""
    if len(text) > MAX_LENGTH:
        return None
    rest = SMILEY.sub(" ", text)
    own = words_of_name(bot_name)
    words = [word for word in words_of(rest) if word not in own]
    asks = "?" in text or bool(words and words[0] in ASKING)
    if asks or len(words) > MAX_WORDS or not KNOWN.issuperset(words):
        return None
    for acknowledgement, core in (
        (Acknowledgement.THANKS, THANKS),
        (Acknowledgement.LAUGHTER, LAUGHTER),
        (Acknowledgement.CONSENT, CONSENT),
    ):
        if not core.isdisjoint(words):
            return acknowledgement
    # Emoji only: besides smileys nothing but pictures and their modifiers.
    kinds = {unicodedata.category(character) for character in "".join(rest.split()) if character not in ".!~"}
    is_emoji = not words and kinds <= PARTS_OF_EMOJI and (kinds or rest != text)
    return Acknowledgement.EMOJI if is_emoji else None
