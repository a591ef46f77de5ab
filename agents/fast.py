"""What the fast models that do us a service share: the messages as they are shown them, and the bill."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pydantic_ai import RunUsage
from pydantic_ai.messages import TextContent

from conversation import CHARACTERS_PER_TOKEN, MessageRecord, told


def line_of(message: MessageRecord) -> str:
    """A message as the models are told it, without its images."""
    return "".join(piece.content for piece in told(message) if isinstance(piece, TextContent))


@contextmanager
def billed(characters: int, spend: Callable[[int], None]) -> Iterator[RunUsage]:
    """Tells spend the tokens that a call within used, by its RunUsage, else estimated for so many characters."""
    usage = RunUsage()
    estimated = 0
    try:
        yield usage
        estimated = characters // CHARACTERS_PER_TOKEN
    except asyncio.CancelledError:
        # Too late for us, not for the bill.
        estimated = characters // CHARACTERS_PER_TOKEN
        raise
    finally:
        if tokens := usage.total_tokens or estimated:
            spend(tokens)
