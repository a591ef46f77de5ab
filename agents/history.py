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
from agents.prompt import flat, prompt_of
from agents.tool_use import given_back, has_tool_use
from llm_history import indented

# The providers' clients take 0.1 to 0.2 ms for each message of a request. So the newest turns are sent as the model
# knows turns, what was before as text; rarely, as a provider then has nothing of the history in its cache.
UNFOLDED_TURNS = 2
FOLDED_AT_ONCE = 30


def kept(request: AgentRequest, said: ModelResponse) -> list[ModelMessage]:
    """What the next turn is given back."""
    # What was told stays known by its ids, even where the words are deleted later.
    told_ids = {"told": [message.message_id for message in request.transcript]}
    prompt = ModelRequest(
        parts=[UserPromptPart(content=prompt_of(replace(request, notes=(), shared={})))], metadata=told_ids
    )
    before = settled(request.history, request.reply.ask_id) if request.reply else request.history
    return [*before, prompt, said]


def sent(history: Sequence[ModelMessage], bot_name: str) -> list[ModelMessage]:
    """The history as it is sent.

    Its beginning stays the same from turn to turn, but where older turns are folded, or their tool use was pruned: what
    a provider has cached stays good.
    """
    border = _border(history)
    older = "".join(as_text(message, bot_name) for message in history[:border])
    newer = [part for message in history[border:] for part in (*given_back(message), flattened(message))]
    if older and isinstance(newer[0], ModelRequest):
        newer[0] = replace(newer[0], parts=[UserPromptPart(content=older), *newer[0].parts])
        newer[0] = _joined(newer[0])
    return newer


def _border(history: Sequence[ModelMessage]) -> int:
    """Where the turns begin that are sent as such: those that used tools are, as long as that is kept."""
    starts = [i for i, m in enumerate(history) if any(isinstance(p, UserPromptPart) for p in m.parts)]
    used = next((i for i, m in enumerate(history) if has_tool_use(m)), len(history))
    foldable = min(len(starts) - UNFOLDED_TURNS, sum(start < used for start in starts) - (used < len(history)))
    folded = max(0, foldable) // FOLDED_AT_ONCE * FOLDED_AT_ONCE
    return starts[folded] if folded else 0


def as_text(message: ModelMessage, bot_name: str) -> str:
    if isinstance(message, ModelRequest):
        return (
            "".join(str(flat(p.content, images=False)) for p in message.parts if isinstance(p, UserPromptPart)) + "\n"
        )
    said = "".join(part.content for part in message.parts if isinstance(part, TextPart))
    return f"{bot_name} (you): {indented(said)}\n"


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


def _joined(message: ModelRequest) -> ModelRequest:
    """With its prompts in one: some models' templates insist that the roles take turns."""
    prompts = [part for part in message.parts if isinstance(part, UserPromptPart)]
    content = [item for part in prompts for item in ([part.content] if isinstance(part.content, str) else part.content)]
    return replace(message, parts=[UserPromptPart(content=flat(content))])
