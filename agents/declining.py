"""How the general agent declines: by a tool, or by a fixed token at the start if the model accepts no tools."""

from __future__ import annotations

import re

from pydantic_ai import Tool
from pydantic_ai.messages import ModelMessage, ModelResponse

from agents.gateway import Asked

TOKEN = "[silent]"  # noqa: S105 - what the model says first, and no secret
OPENING = re.compile(r"""[\s"'`“”‘’*_]*""")
SILENT = re.compile(rf"""{OPENING.pattern}{re.escape(TOKEN)}["'`“”‘’*_.\s]*""", re.IGNORECASE)
MAX_OPENING = 100  # characters that are held back while they may still become the token
REFUSED = "Refused: you were called, or have begun to speak already. Go on and answer."


async def stay_silent(why: str) -> str:
    """Say nothing, where a message was not said to you or wants no answer from you. Call it before you write anything.

    Args:
        why: What speaks for that, in at most ten words.
    """
    del why  # if the call counts, the run ends before this, and reads it from the call
    return REFUSED


STAY_SILENT: Tool[Asked] = Tool(stay_silent)


def reason_in(message: ModelMessage) -> str | None:
    """Why the model stays silent, in its own words; None: it does not call the tool."""
    called = message.tool_calls if isinstance(message, ModelResponse) else []
    calls = (call.args_as_dict() for call in called if call.tool_name == STAY_SILENT.name)
    return next((str(given.get("why") or "") for given in calls), None)


def only_declines(message: ModelMessage) -> bool:
    """Whether the model calls only this tool."""
    called = message.tool_calls if isinstance(message, ModelResponse) else []
    return bool(called) and all(call.tool_name == STAY_SILENT.name for call in called)


def may_become_silent(beginning: str) -> bool:
    """Whether the text so far is the token, or may still become it."""
    if len(beginning) > MAX_OPENING:
        return False
    words = OPENING.sub("", beginning, count=1).lower()
    return TOKEN.startswith(words) or SILENT.fullmatch(beginning) is not None
