"""How a reply resolves what was asked: by typed words or by a click, always to the same value.

Lexical: no model, no network, deterministic. What is not sure resolves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from state.cancel import calls_off
from state.confirmation import confirm
from state.prompts import Ask, AwaitingType, ResolutionType
from state.remarks import bare_remark
from state.selection import choose
from state.wording import read

NOTE = "note"
MAX_CONTENT = 1_000  # characters of a free answer that are taken

# Document 000's patterns; what stands behind the words that tell the kind is the content. "best for" is looked for
# before "vibe", whose "it's ..." would otherwise take "it's great for families".
METADATA_PATTERNS: Mapping[str, tuple[re.Pattern[str], ...]] = {
    kind: tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)
    for kind, patterns in {
        "must_try": (
            r"\b(?:must have|get|try|order|have)\s+(?:the\s+)?(?P<content>\S.*)",
            r"\b(?:don['’]?t\s+miss|can['’]?t\s+skip)\s+(?:the\s+)?(?P<content>\S.*)",
        ),
        "best_for": (r"\b(?:great|good|perfect|best|ideal)\s+(?:for|with)\s+(?P<content>\S.*)",),
        "vibe": (
            r"\b(?:it['’]?s?|they['’]?re?|place is)\s+(?P<content>(?:very\s+)?\w.*)",
            r"(?P<content>.*\b(?:cozy|romantic|lively|quiet|chill|fancy|casual)\b.*)",
        ),
    }.items()
}


@dataclass(frozen=True, slots=True)
class Resolution:
    """What somebody answered. data: document 000's `resolution_data`, with its keys, `type` among them."""

    type: ResolutionType
    data: Mapping[str, Any]


CALLED_OFF = Resolution(ResolutionType.CANCEL, {"type": "cancel"})


def resolve(reply: str, ask: Ask, question: str = "", *, is_direct: bool = False) -> Resolution | None:
    """What a typed reply resolves, or None. is_direct: it mentions the bot or replies to it.

    An option comes before a cancel, since it may be called "Cancel", and so does a plain no: "nope" is both.
    """
    match ask.awaiting_type:
        case AwaitingType.SELECTION:
            found = _selection(reply, ask)
        case AwaitingType.CONFIRMATION:
            found = _confirmation(reply, question)
        case _ if calls_off(reply):
            return CALLED_OFF
        case AwaitingType.METADATA:
            return _metadata(reply, ask, is_direct=is_direct)
        case AwaitingType.INPUT:
            return None if _starts_something_else(reply) else given(ask, reply)
    return found or (CALLED_OFF if calls_off(reply) else None)


def chosen(ask: Ask, index: int) -> Resolution:
    """The option of this 0-based index; `selection_index` counts from 1, as people are shown it."""
    data = {"type": "selection", "selection_index": index + 1, "selected_option": ask.options[index]}
    return Resolution(ResolutionType.SELECTION, data)


def confirmed(is_yes: bool) -> Resolution:
    return Resolution(ResolutionType.CONFIRMATION, {"type": "confirmation", "confirmed": is_yes})


def given(ask: Ask, text: str) -> Resolution:
    """Free words: the input that was asked for, or a note of whichever kind they are."""
    content = text.strip()[:MAX_CONTENT]
    if ask.awaiting_type is AwaitingType.METADATA:
        return _noted(ask, *(_kind_of_note(content) or (NOTE, content)))
    return Resolution(ResolutionType.INPUT, {"type": "input", "content": content})


def _selection(reply: str, ask: Ask) -> Resolution | None:
    index = choose(reply, ask.options)
    return None if index is None else chosen(ask, index)


def _confirmation(reply: str, question: str) -> Resolution | None:
    is_yes = confirm(reply, question)
    if is_yes is None or (not is_yes and calls_off(reply) and "yes_no" not in read(reply).first):
        return None
    return confirmed(is_yes)


def _metadata(reply: str, ask: Ask, *, is_direct: bool) -> Resolution | None:
    """A note by one of the patterns; in words said to the bot directly, any statement."""
    if _starts_something_else(reply):
        return None
    if found := _kind_of_note(reply.strip()[:MAX_CONTENT]):
        return _noted(ask, *found)
    return given(ask, reply) if is_direct else None


def _kind_of_note(text: str) -> tuple[str, str] | None:
    for kind, patterns in METADATA_PATTERNS.items():
        for pattern in patterns:
            if match := pattern.search(text):
                return kind, match["content"].strip()
    return None


def _noted(ask: Ask, kind: str, content: str) -> Resolution:
    data = {
        "type": "metadata",
        "metadata_type": kind,
        "content": content,
        "target_item_id": ask.context.get("target_item_id"),
    }
    return Resolution(ResolutionType.METADATA, data)


def _starts_something_else(reply: str) -> bool:
    """Nothing at all, a question, a command to another bot, a bare thanks, laugh or emoji: no free answer."""
    wording = read(reply)
    is_question = wording.asks or "question" in wording.first
    return not reply.strip() or is_question or wording.is_command or bare_remark(reply) is not None
