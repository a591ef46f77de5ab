"""The general agent's history: what is kept of a turn, and what of all turns is sent with the next.

Kept are prompts, message by message so that each can be edited and deleted, and answers, each with what its tools were
asked and answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pydantic_ai.messages import ImageUrl, ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart

from agents.asking import settled
from agents.gateway import AgentRequest
from agents.tool_use import given_back
from agents.turn_input import flat, turn_content
from llm_history import indented


def kept(request: AgentRequest, response: ModelResponse) -> list[ModelMessage]:
    """What the next turn is given back."""
    # What was told stays known by its ids, even where the words are deleted later.
    told_ids = {"told": [message.message_id for message in request.transcript]}
    prompt = ModelRequest(
        parts=[UserPromptPart(content=turn_content(replace(request, notes=(), shared={})))], metadata=told_ids
    )
    before = settled(request.history, request.reply.ask_id) if request.reply else request.history
    return [*before, prompt, response]


def sent(history: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The history as it is sent: turn by turn, so that its beginning stays what a provider has in its cache."""
    return [part for message in history for part in (*given_back(message), flattened(message))]


def as_text(message: ModelMessage, bot_name: str) -> str:
    """A message of the history as a line of text."""
    if isinstance(message, ModelRequest):
        return (
            "".join(str(flat(p.content, images=False)) for p in message.parts if isinstance(p, UserPromptPart)) + "\n"
        )
    words = "".join(part.content for part in message.parts if isinstance(part, TextPart))
    return f"{bot_name} (you): {indented(words)}\n"


def flattened(message: ModelMessage, *, images: bool = True) -> ModelMessage:
    if not isinstance(message, ModelRequest):
        return message
    parts = [
        replace(part, content=flat(part.content, images=images)) if isinstance(part, UserPromptPart) else part
        for part in message.parts
    ]
    return replace(message, parts=parts)


def followed(messages: Sequence[ModelMessage], request: ModelRequest) -> list[ModelMessage]:
    """The messages with one more, in one with the results of other tools before it."""
    *before, last = messages
    if isinstance(last, ModelRequest):
        return [*before, replace(last, parts=[*last.parts, *request.parts])]
    return [*messages, request]


def has_images(message: ModelMessage) -> bool:
    prompts = (part for part in message.parts if isinstance(part, UserPromptPart))
    return any(isinstance(item, ImageUrl) for part in prompts for item in part.content)
