"""Questions that anybody could answer: what is one, whether two are the same, and which later message answers it.

Without a question mark a question counts if it asks for anybody who knows. Only common English words are known; in
other languages the question mark, the length and the shared words decide. An offer after somebody has answered is a
nuisance, so in doubt a message counts as an answer. So does anything that somebody else says to nobody in particular,
even a question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rapidfuzz import fuzz

from state.message import MessageRecord
from understanding.cancel import clauses, plain
from understanding.names import called_by_name
from understanding.wording import TOO_COMMON, Wording

MIN_WORDS = 4
MIN_SHARED = 2  # uncommon words; questions with fewer count as the same only if they are equal word by word
MAX_COMPARED = 400  # characters of uncommon words; each of 50 questions is compared with all the others in one go
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
"""A question about the people present: "how are you all?", "anyone up for a game?", "are we still on for tonight?"."""
TAG = re.compile(
    r"[,.!\s](?:right|no|eh|huh|ok|okay|yeah|yes|lol|lmao|haha|innit|you know|y'?know|am i right|get it"
    r"|(?:is|isn't|are|aren't|was|wasn't|do|don't|does|doesn't|did|didn't|can|can't|won't|ain't)"
    r"\W+(?:it|they|he|she|we|you|that))\W*$",
    re.IGNORECASE,
)
"""A question tag at the end of a statement: "..., right?", "..., isn't it?"."""
MAX_TAG = 40  # characters at the end of a text, with punctuation
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

MAX_SETTLING_LENGTH = 200  # characters: a longer message goes on with the problem
SETTLING = re.compile(
    r"\b(?:nvm|never ?mind|forget (?:about )?it|solved|fixed|sorted|resolved|found (?:it|out|the)|figured|got it"
    r"|(?:works|working|worked) now|(?:it|that|this) (?:works|worked|did it|helped)|all good|my bad)\b"
)
THANKING = re.compile(r"\b(?:thanks|thank you|thx|ty|tysm|tyvm|cheers)\b")
HINT = re.compile(f"{SETTLING.pattern}|{THANKING.pattern}")
UNSETTLED = re.compile(
    r"\b(?:not|never|no|nobody|still|cant|cannot|dont|didnt|isnt|wasnt|doesnt|havent|hasnt|wont|need|needs|must|should"
    r"|if|until|want|wanna|how|what|why|where|who|which|in advance|for any)\b"
)
MARKED = re.compile(
    r"[\[(](?:re)?solved[\])]|^\W*solved\b|\b(?:edit|update)\w*\W.{0,60}\b(?:solved|fixed|found|figured|nvm|works)\b",
    re.IGNORECASE,
)


def is_to_nobody(message: MessageRecord) -> bool:
    """Whether it is addressed to nobody in particular, by itself: no mention, no reply, no bot command."""
    is_to_somebody = message.mentions_group or message.named or replies_elsewhere(message)
    return not (is_to_somebody or message.wording.is_command)


def is_question(message: MessageRecord) -> bool:
    """Whether it is a question to anybody, of 4 words or more, and neither small talk nor rhetorical."""
    content, wording = message.content.replace("’", "'"), message.wording
    if wording.count < MIN_WORDS or not (wording.asks or ANYBODY.match(content)):
        return False
    if _nudges(message) or OF_PEOPLE.match(content) or TAG.search(content[-MAX_TAG:]) or RHETORICAL.search(content):
        return False
    return is_to_nobody(message)


def asks_again(message: MessageRecord) -> bool:
    """Whether it only asks again for an answer to an earlier question: "anyone?", "any ideas?", "bump"."""
    return _nudges(message) and is_to_nobody(message)


def _nudges(message: MessageRecord) -> bool:
    words = message.wording.words
    is_short = len(message.content) <= MAX_NUDGE_LENGTH
    return is_short and words <= AROUND_NUDGES and not NUDGES.isdisjoint(words)


def is_same_question(one: Wording, other: Wording) -> bool:
    """Whether two texts ask the same: nearly the same words, or one has all the words of the other. Only the beginnings
    are compared."""
    words, others = one.tokens, other.tokens
    if words == others:
        return True
    meant, others_meant = ([w for w in words if w not in TOO_COMMON] for words in (words, others))
    if min(len(set(meant)), len(set(others_meant))) < MIN_SHARED:
        return False
    compared, others_compared = (" ".join(words)[:MAX_COMPARED] for words in (meant, others_meant))
    return fuzz.token_set_ratio(compared, others_compared, score_cutoff=ALIKE) >= ALIKE


def answered_by(message: MessageRecord, earlier: Sequence[MessageRecord], present: Iterable[MessageRecord]) -> set[int]:
    """Ids of the earlier messages that this one answers. present: messages whose authors it may call by name."""
    own = {m.message_id for m in earlier if m.author_id == message.author_id}
    found = own if own and settles(message.content) else set()
    if len(own) == len(earlier):
        return found
    to = (message.named if "<@" in message.content else message.addressed) | called(message, present)
    # A mentioned role or "@everyone" may include the asker.
    is_to_nobody = message.mentions_group or not (to or replies_elsewhere(message))
    others = (m for m in earlier if m.author_id != message.author_id)
    return found | {
        m.message_id for m in others if is_to_nobody or m.author_id in to or m.message_id == message.reply_to_id
    }


def called(message: MessageRecord, present: Iterable[MessageRecord]) -> frozenset[int]:
    """Ids of the authors of `present` whom it calls by name. Authors whose text may not be read are left out."""
    if not message.calls:
        return frozenset()
    return called_by_name(message, {other.author_id: other.author for other in present if other.content})


def replies_elsewhere(message: MessageRecord) -> bool:
    """Whether it is a reply to somebody else's message."""
    return message.reply_to_id is not None and message.reply_to_author_id != message.author_id


def settles(content: str) -> bool:
    """Whether the asker says that no answer is needed any more: "nvm", "found it", "thanks, works now".

    Thanks in a message that asks something, or thanks in advance, are only polite.
    """
    if len(content) > MAX_SETTLING_LENGTH or HINT.search(content.casefold()) is None:
        return False
    for clause in clauses(plain(content)):
        rest, count = SETTLING.subn(" ", clause.words)
        is_thanks = "?" not in content and THANKING.search(clause.words)
        if not clause.asks and (count or is_thanks) and UNSETTLED.search(rest) is None:
            return True
    return False


def is_marked_solved(content: str) -> bool:
    """Whether an edited message says that it is solved: "[SOLVED] ...", "... EDIT: found it"."""
    return MARKED.search(content) is not None
