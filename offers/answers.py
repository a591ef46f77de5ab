"""Which later message answers an earlier one.

Whoever offers help after somebody has answered is a nuisance: where it is unclear, it counts as an answer. So does
anything that anybody else says to nobody in particular, a question back too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from state.cancel import clauses, plain
from state.message import MessageRecord
from state.names import called_by_name

MAX_SETTLING_LENGTH = 200  # characters: whoever writes more goes on telling
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


def answered_by(message: MessageRecord, earlier: Sequence[MessageRecord], present: Iterable[MessageRecord]) -> set[int]:
    """Ids of those of the earlier messages that this one answers. present: messages of those it may call by name."""
    own = {m.message_id for m in earlier if m.author_id == message.author_id}
    found = own if own and settles(message.content) else set()
    if len(own) < len(earlier):
        to, others = _to(message, present), (m for m in earlier if m.author_id != message.author_id)
        found |= {
            m.message_id for m in others if to is None or m.author_id in to or m.message_id == message.reply_to_id
        }
    return found


def _to(message: MessageRecord, present: Iterable[MessageRecord]) -> frozenset[int] | None:
    """To whom it is said; None: to nobody in particular, and to a group, which the asker may be of."""
    if message.mentions_group:
        return None
    ids = message.named if "<@" in message.content else message.addressed
    to = ids | called(message, present)
    return to if to or replies_elsewhere(message) else None


def called(message: MessageRecord, present: Iterable[MessageRecord]) -> frozenset[int]:
    """Whom of the authors of these it calls by name. Who is not to be read has none."""
    if not message.calls:
        return frozenset()
    return called_by_name(message, {other.author_id: other.author for other in present if other.content})


def replies_elsewhere(message: MessageRecord) -> bool:
    """A reply to anything but the author's own words."""
    return message.reply_to_id is not None and message.reply_to_author_id != message.author_id


def settles(content: str) -> bool:
    """Whether who asked before says by this that no answer is needed: "nvm", "found it", "thanks, works now".

    A thanks in a message that asks, or in advance, is a courtesy.
    """
    if len(content) > MAX_SETTLING_LENGTH:
        return False
    if HINT.search(content.casefold()) is None:
        return False
    return any(not clause.asks and _settles(clause.words, asking="?" in content) for clause in clauses(plain(content)))


def _settles(words: str, *, asking: bool) -> bool:
    rest, count = SETTLING.subn(" ", words)
    if not (count or (not asking and THANKING.search(words))):
        return False
    return UNSETTLED.search(rest) is None


def is_marked_solved(content: str) -> bool:
    """Whether a message was edited to say so: "[SOLVED] ...", "... EDIT: found it"."""
    return MARKED.search(content) is not None
