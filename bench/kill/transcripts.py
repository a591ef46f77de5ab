"""What the bot's sessions hold, read from its folder as any other program would."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from state import SessionManager


def recorded(folder: Path) -> dict[int, set[int]]:
    """The ids of the messages in each channel's session and in those that continue it."""
    manager = SessionManager(folder)
    origins = {row["id"]: row["metadata"].get("continued_from") for row in manager.list_sessions(limit=10_000)}
    found: dict[int, set[int]] = {}
    for session_id in origins:
        session = manager.load_session(session_id)
        messages = session.messages if session else []
        ids = {int(message.metadata["message_id"]) for message in messages if "message_id" in message.metadata}
        found.setdefault(_channel(session_id, origins), set()).update(ids)
    return found


def _channel(session_id: str, origins: Mapping[str, Any]) -> int:
    while origin := origins.get(session_id):
        session_id = origin
    return int(session_id)
