"""What the general agent is told in a turn: what is new in the channel, the time, and whom to answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from pydantic_ai.messages import ImageUrl, TextContent, UserContent

from agents.declining import STAY_SILENT, TOKEN
from agents.gateway import AgentRequest
from conversation import MessageRecord
from llm_history import indented, told
from understanding.shared_context import in_words

# What is told of a channel that went on for long without the bot.
MAX_TRANSCRIPT_MESSAGES = 60
MAX_TRANSCRIPT_CHARACTERS = 16_000
MAX_PROMPT_IMAGES = 4
MAY_DECLINE = (
    "You were not mentioned. If this was not said to you, or wants no answer from you, say nothing, by calling "
    f"{STAY_SILENT.name} before you write anything (if you have no tools, by writing only {TOKEN}). Otherwise"
)


def turn_content(request: AgentRequest) -> list[UserContent]:
    """What is new since the last turn. The time stands here, where the provider's cache ends anyway."""
    new = _newest(request.transcript, {m.message_id for m in request.questions})
    left_out = len(request.transcript) - len(new)
    gap = f"{left_out} earlier messages are left out. " if left_out else ""
    names = list(dict.fromkeys(f'"{question.author}"' for question in request.questions))
    # Of several, who asked last is the one whose answer is awaited.
    whose = f'What you ask by a tool goes to "{request.questions[-1].author}". ' if len(names) > 1 else ""
    images = [image for message in new for image in message.images][-MAX_PROMPT_IMAGES:]
    new = [replace(message, images=tuple(i for i in message.images if i in images)) for message in new]
    return [
        TextContent(f"It is {request.now:%A, %Y-%m-%d %H:%M %Z}. {gap}New in the channel:\n"),
        *(piece for message in new for piece in told(message)),
        *(TextContent(f"(Note: {indented(note)})\n") for note in (*_shared(request), *request.notes)),
        TextContent(f"{whose}{MAY_DECLINE if request.may_decline else 'Now'} answer {', '.join(names)}."),
    ]


def flat(content: str | Sequence[UserContent], *, images: bool = True) -> str | list[UserContent]:
    """The same, each stretch of text in one piece: not every server takes a list, and clients are slow on it."""
    if isinstance(content, str):
        return content
    pieces: list[UserContent] = []
    for is_image, items in groupby(content, lambda item: isinstance(item, ImageUrl)):
        if not is_image:
            pieces.append("".join(item.content if isinstance(item, TextContent) else str(item) for item in items))
        elif images:
            pieces.extend(items)
    if not images:
        return "".join(map(str, pieces))
    return pieces[0] if len(pieces) == 1 and isinstance(pieces[0], str) else pieces


def _shared(request: AgentRequest) -> list[str]:
    return [in_words(request.shared)] if request.shared else []


def _newest(transcript: Sequence[MessageRecord], questions: set[int]) -> list[MessageRecord]:
    """The newest messages within the bounds, and every question."""
    kept: list[MessageRecord] = []
    size = 0
    for position, message in enumerate(reversed(transcript)):
        size += message.size
        within = position < MAX_TRANSCRIPT_MESSAGES and size <= MAX_TRANSCRIPT_CHARACTERS
        if within or message.message_id in questions:
            kept.append(message)
    return kept[::-1]
