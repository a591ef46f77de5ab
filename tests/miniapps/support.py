"""Messages for mini-apps, made short."""

from __future__ import annotations

from itertools import count
from typing import Any

from miniapps.base import MiniApp, MiniAppContext, MiniAppResponse
from tests.support.clock import NOON
from tests.support.people import ANNA, CHANNEL, NAMES

_ids = count(5_000)


def told(text: str = "hello", user_id: int = ANNA, **more: Any) -> MiniAppContext:
    """A message with an id of its own."""
    return MiniAppContext(
        **{
            "text": text,
            "chat_guid": CHANNEL,
            "user_id": user_id,
            "user_name": NAMES.get(user_id, f"user {user_id}"),
            "message_id": next(_ids),
            "now": NOON,
            **more,
        }
    )


def resolved(question: MiniAppResponse, text: str, user_id: int = ANNA, **resolution: Any) -> MiniAppContext:
    """The message that resolves what a response asked for."""
    assert question.ask
    return told(
        text,
        user_id,
        focus_resolution=resolution,
        source_handler=question.ask.source_handler,
        asked=question.ask.context,
        soft_context=question.soft_context,
    )


def chosen(question: MiniAppResponse, number: int, text: str = "") -> MiniAppContext:
    """The choice of an option, counted from 1."""
    assert question.ask
    option = question.ask.options[number - 1]
    return resolved(question, text or str(number), type="selection", selection_index=number, selected_option=option)


async def said(app: MiniApp, text: str, user_id: int = ANNA, **more: Any) -> MiniAppResponse:
    return await app.handle(told(text, user_id, **more))
