"""What a question is that anybody could answer, and whether two are the same.

A question without a question mark counts where it asks for anybody who knows. Only common English words are known; in
another language the mark, the length and the shared words count.
"""

from __future__ import annotations

import re

from rapidfuzz import fuzz

from offers.answers import replies_elsewhere
from state.message import MessageRecord
from state.wording import TOO_COMMON, words_of

MIN_WORDS = 4
MIN_SHARED = 2  # words that carry meaning; with fewer, the questions have to be the same word by word
ALIKE = 85.0  # of 100; measured on the logs of the decision examples
GREETED = r"\W*(?:(?:hi|hey|hello|yo|so|ok|okay|guys|all|everyone|everybody|folks|there|um|sorry)\W+)*"
ANYBODY = re.compile(
    GREETED + r"(?:(?:do|does|can|could|is|has|would|have)\W+)?any(?:one|body)\W+(?:\w+\W+)?"
    r"(?:knows?|help|tell|explain|able|familiar|experienced?|tried|using|used|seen)\b",
    re.IGNORECASE,
)
OF_PEOPLE = re.compile(
    GREETED + r"(?:(?:how|what|where|when|why)\W+)?(?:"
    r"(?:are|r|were|did|have|has|will|is|was|'?s)\W+(?:you|u|ya|we|they|he|she|everyone|everybody)\b"
    r"(?!\W+(?:supposed|able|allowed)\b)"
    r"|do\W+(?:you|u|ya|we|they)\W+(?:want|wanna|like|think|remember|guys|live|work|play|still|mind|ever)\b"
    r"|who(?:'s|\W+(?:is|are))\W+(?:up|in|down|here|coming|going|playing|free|around|online)\b"
    r"|who\W+(?:wants?|else|knew|asked|would)\b|(?:what's|whats|what is)\W+(?:up|new|good)\b"
    r"|(?:(?:is|are|does)\W+)?any(?:one|body)\W+(?:here\W*$|(?:else|around|up|on|online|wants?|wanna|alive|down|free)\b))",
    re.IGNORECASE,
)
"""A question about those who are there: "how are you all?", "anyone up for a game?", "are we still on for tonight?"."""
TAG = re.compile(
    r"[,.!\s](?:right|no|eh|huh|ok|okay|yeah|yes|lol|lmao|haha|innit|you know|y'?know|am i right|get it"
    r"|(?:is|isn't|are|aren't|was|wasn't|do|don't|does|doesn't|did|didn't|can|can't|won't|ain't)"
    r"\W+(?:it|they|he|she|we|you|that))\W*$",
    re.IGNORECASE,
)
"""At the end of what is said rather than asked: "..., right?", "..., isn't it?"."""
MAX_TAG = 40  # characters at the end of a text, its marks included
RHETORICAL = re.compile(
    r"\b(?:who (?:cares|knows|knew)|guess what|you know what|what a|how dare|why bother"
    r"|what (?:could|can) (?:possibly )?go wrong|(?:is|are) (?:this|you|he|she|they) (?:serious|kidding|joking)"
    r"|how (?:cool|great|awesome|nice|cute|crazy|sick|weird) (?:is|was|are))\b",
    re.IGNORECASE,
)
NUDGES = frozenset("anyone anybody someone somebody bump help idea ideas idea's clue clues suggestions".split())
AROUND_NUDGES = NUDGES | frozenset(
    """any does has can could would is please pls know knows here there have got me with this it on about at all out
    still guys hello hi hey again and so or my question""".split()
)
MAX_NUDGE_LENGTH = 80  # characters


def is_to_nobody(message: MessageRecord) -> bool:
    """Said to nobody in particular, as far as it shows by itself: no mention, no reply, no command of a bot."""
    is_to_somebody = message.mentions_group or message.named or replies_elsewhere(message)
    return not (is_to_somebody or message.wording.is_command)


def is_question(message: MessageRecord) -> bool:
    """A question that wants an answer from whoever has one: of 4 words or more, neither small talk nor rhetorical."""
    content, wording = message.content.replace("’", "'"), message.wording
    if wording.count < MIN_WORDS or not (wording.asks or ANYBODY.match(content)):
        return False
    if _nudges(message) or OF_PEOPLE.match(content) or TAG.search(content[-MAX_TAG:]) or RHETORICAL.search(content):
        return False
    return is_to_nobody(message)


def asks_again(message: MessageRecord) -> bool:
    """Whether it is no question itself, and asks for an answer to one: "anyone?", "any ideas?", "bump"."""
    return _nudges(message) and is_to_nobody(message)


def _nudges(message: MessageRecord) -> bool:
    words = message.wording.words
    is_short = len(message.content) <= MAX_NUDGE_LENGTH
    return is_short and words <= AROUND_NUDGES and not NUDGES.isdisjoint(words)


def is_same_question(one: str, other: str) -> bool:
    """Whether two texts ask the same: nearly the same words, or those of one among those of the other."""
    words, others = words_of(one), words_of(other)
    if words == others:
        return True
    meant, others_meant = ([w for w in words if w not in TOO_COMMON] for words in (words, others))
    if min(len(set(meant)), len(set(others_meant))) < MIN_SHARED:
        return False
    return fuzz.token_set_ratio(" ".join(meant), " ".join(others_meant)) >= ALIKE
