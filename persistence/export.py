"""What a person said, as they are given it."""

from __future__ import annotations

from typing import Any

import orjson

from state import Message


class Export:
    """Collects the messages of a person. channel_id, guild_id: where those are that are noted next."""

    def __init__(self, user_id: int) -> None:
        self.channel_id = self.guild_id = 0
        self._user_id = user_id
        self._messages: list[dict[str, Any]] = []

    def note(self, message: Message) -> Message:
        """Notes one that is theirs; changes none."""
        if message.metadata.get("author_id") == self._user_id:
            self._messages.append(
                {
                    "server": str(self.guild_id),
                    "channel": str(self.channel_id),
                    "message": str(message.metadata.get("message_id", "")),
                    "at": message.timestamp,
                    "content": message.content,
                }
            )
        return message

    def to_json(self) -> bytes:
        """Empty where there is nothing."""
        exported = {"user": str(self._user_id), "messages": self._messages}
        return orjson.dumps(exported, option=orjson.OPT_INDENT_2) if self._messages else b""
