"""How layers become JSON to be stored, and come back from it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import orjson
import structlog

from conversation import StoredConversation
from memory.keeper import Encode

log = structlog.get_logger()

T = TypeVar("T")


def restored(restore: Callable[[Any], T], stored: Any, **where: object) -> T | None:
    """What it restores; None where nothing is stored, or what is cannot be read, which is logged and left out."""
    if stored is None:
        return None
    try:
        return restore(stored)
    except ValueError as error:
        log.error("layer_refused", detail=" ".join(str(error).split())[:300], **where)
        return None


def as_json(value: Any) -> Encode | None:
    return None if value is None else partial(orjson.dumps, value)


def read_conversation(stored: Any) -> StoredConversation:
    """Raises ValueError."""
    return StoredConversation.from_json(orjson.dumps(stored))
