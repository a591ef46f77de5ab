"""Cuts the model's history to a budget of tokens, and begins it with a summary of what was cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import orjson
from pydantic_ai.messages import (
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextContent,
    TextPart,
    UserPromptPart,
)

from llm_history import Origin, as_made_of, is_turn_start, origin_in, origin_of, tokens_said, uses_tools
from state.message import MessageRecord
from state.session_messages import Message, MessageCategory, left_out
from state.spending import CHARACTERS_PER_TOKEN, estimated

IMAGE_TOKENS = 1_000  # about what providers bill for one image of a megapixel
CONTEXT_LENGTH = 2  # messages by which a summary is told
SUMMED_UP = "What was said here before this came to, in short:"


@dataclass(frozen=True, slots=True)
class Cut:
    """What to cut from a history of `length` messages: all before index `start`, and tool results of answers `emptied`.

    keeps_context: whether the summary at its beginning may stay. origin: what the cut part was made of.
    """

    length: int
    start: int
    emptied: frozenset[int]
    keeps_context: bool
    origin: Origin

    def after(self, history: Sequence[ModelMessage], summary: Sequence[ModelMessage]) -> list[ModelMessage]:
        """The history after the cut, behind a new summary of what was cut, or else behind its earlier one."""
        left = [replace(m, metadata=None) if place in self.emptied else m for place, m in enumerate(history)]
        before = history[:CONTEXT_LENGTH] if self.keeps_context and self.start and not summary else summary
        if self.start and not summary:  # the answers left may still draw on what was cut
            prompt = left[self.start]
            left[self.start] = replace(prompt, metadata={**(prompt.metadata or {}), "before": as_made_of(self.origin)})
        return [*before, *left[self.start :]]


def cut(history: Sequence[ModelMessage], max_tokens: int, own: Sequence[MessageRecord] = ()) -> Cut | None:
    """What to cut from a history of more than max_tokens, by the categories of a session; None where it fits.

    Cuts to half of the budget, so that cuts are rare and providers' prompt caches hit in between. Tool results go
    first, then the oldest turns, whole, then the summary. The newest turn stays as it is. own: the bot's messages.
    """
    sizes = list(map(_tokens, history))
    given = {
        place: len(orjson.dumps(message.metadata)) // CHARACTERS_PER_TOKEN
        for place, message in enumerate(history)
        if uses_tools(message)
    }
    if sum(sizes) + sum(given.values()) <= max_tokens:
        return None
    starts = [place for place, message in enumerate(history) if is_turn_start(message)]
    if len(starts) < 2:
        return None
    newest, context = starts[-1], CONTEXT_LENGTH if context_of(history) else 0
    places: list[int] = []
    messages: list[Message] = []
    for place in range(newest):
        if place in given:
            places.append(place)
            messages.append(Message("tool", "", MessageCategory.SYSTEM_OUTPUT, tokens=given[place]))
        category = MessageCategory.CONTEXT if place < context else MessageCategory.DIALOG
        places.append(place)
        messages.append(Message("user", "", category, tokens=sizes[place]))
    rest = max_tokens // 2 - sum(sizes[newest:]) - sum(size for place, size in given.items() if place >= newest)
    gone = {(messages[each].category, places[each]) for each in left_out(messages, max(0, rest))}
    last = max((place for category, place in gone if category is MessageCategory.DIALOG), default=-1)
    start = next(place for place in starts if place > last) if last >= 0 else 0
    emptied = frozenset(place for category, place in gone if category is MessageCategory.SYSTEM_OUTPUT)
    if not (start or emptied):
        return None
    keeps_context = context > 0 and (MessageCategory.CONTEXT, 0) not in gone
    return Cut(len(history), start, emptied, keeps_context, origin_of(history[:start], own))


def as_context(summary: str, origin: Origin) -> list[ModelMessage]:
    """A summary as the first messages of a history."""
    return [
        ModelRequest(parts=[UserPromptPart(content=[TextContent(SUMMED_UP)])]),
        ModelResponse(parts=[TextPart(summary)], metadata={"context": as_made_of(origin)}),
    ]


def context_of(history: Sequence[ModelMessage]) -> Origin | None:
    """The origin of the summary at the beginning of a history; None where there is none."""
    is_summed_up = len(history) >= CONTEXT_LENGTH and isinstance(history[1], ModelResponse)
    return origin_in(history[1]) if is_summed_up else None


def _tokens(message: ModelMessage) -> int:
    """The tokens of a message without tool results: as the provider counted, else an estimate."""
    if counted := tokens_said(message):
        return counted
    total = 0
    for part in message.parts:
        content = getattr(part, "content", "")
        is_one = isinstance(content, str) or not isinstance(part, UserPromptPart)
        for item in [content] if is_one else content:
            text = item.content if isinstance(item, TextContent) else str(item)
            is_image = isinstance(item, ImageUrl) and not is_one
            total += IMAGE_TOKENS if is_image else estimated(text)
    return total
