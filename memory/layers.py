"""The layers of a channel: which there are, how each is taken to be stored, and how they come back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import orjson
import structlog

from conversation import ConversationManager, StoredConversation
from initiative.book import Book
from memory.documents import Encode, Layers
from memory.keeper import Take
from miniapps.router import MiniAppRouter
from state.awaiting import ConversationStateManager
from turns.ledger import Ledger, read_unfinished

log = structlog.get_logger()

T = TypeVar("T")

CONVERSATION, PROMPTS, MINIAPPS, UNFINISHED = "conversation", "prompts", "miniapps", "unfinished"
INITIATIVE = "initiative"


class ChannelLayers:
    """What is kept of each channel beside its transcript."""

    def __init__(
        self,
        conversations: ConversationManager,
        states: ConversationStateManager,
        miniapps: MiniAppRouter,
        ledger: Ledger,
        book: Book,
    ) -> None:
        self._conversations = conversations
        self._states = states
        self._miniapps = miniapps
        self._ledger = ledger
        self._book = book

    @property
    def takes(self) -> Mapping[str, Take]:
        return {
            CONVERSATION: self._conversation,
            PROMPTS: lambda channel_id: as_json(self._states.stored(channel_id)),
            MINIAPPS: lambda channel_id: as_json(self._miniapps.stored(channel_id) or None),
            UNFINISHED: self._ledger.taken,
            INITIATIVE: self._of_initiative,
        }

    def _of_initiative(self, channel_id: int) -> Encode | None:
        stored = self._book.stored(channel_id)
        return stored.to_json if stored else None

    def _conversation(self, channel_id: int) -> Encode | None:
        stored = self._conversations.stored(channel_id)
        return stored.to_json if stored else None

    def restore(self, channel_id: int, layers: Layers) -> StoredConversation | None:
        """Brings back all but the conversation, which is given: it needs its messages, too."""
        restoring: Mapping[str, Callable[[Any], None]] = {
            PROMPTS: partial(self._states.restore, channel_id),
            MINIAPPS: partial(self._miniapps.restore, channel_id),
            UNFINISHED: lambda stored: self._ledger.adopt(channel_id, read_unfinished(stored)),
            INITIATIVE: partial(self._book.restore, channel_id),
        }
        for layer, restore in restoring.items():
            if layer in layers:
                restored(restore, layers[layer], layer=layer, channel=channel_id)
        return restored(_read_conversation, layers.get(CONVERSATION), layer=CONVERSATION, channel=channel_id)


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


def _read_conversation(stored: Any) -> StoredConversation:
    return StoredConversation.from_json(orjson.dumps(stored))
