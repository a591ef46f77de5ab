"""The model's history: made short, and read."""

from __future__ import annotations

from pydantic_ai.messages import (
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextContent,
    TextPart,
    UserPromptPart,
)

from conversation import MessageRecord
from llm_history import told


def turn(*asked: MessageRecord, answer: str = "yes") -> list[ModelMessage]:
    """A turn as the model's history has it."""
    content = [piece for message in asked for piece in told(message)]
    return [ModelRequest(parts=[UserPromptPart(content=content)]), ModelResponse(parts=[TextPart(answer)])]


def model_reads(history: list[ModelMessage]) -> str:
    """All that people said, as the model is given it."""
    items = [
        item
        for message in history
        for part in message.parts
        if isinstance(part, UserPromptPart)
        for item in part.content
    ]
    return "".join(
        item.content if isinstance(item, TextContent) else f"[{item.url}]" if isinstance(item, ImageUrl) else str(item)
        for item in items
    )
