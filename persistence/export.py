"""The file with a person's own messages that /export gives them."""

from __future__ import annotations

from typing import Any

import orjson

from state import Message

CLICKED = "(You clicked a button or chose an option of the bot's. Its words are not yours.)"


class Export:
    """Collects the messages of a person. channel_id, guild_id: where the next noted messages are."""

    def __init__(self, user_id: int) -> None:
        self.channel_id = self.guild_id = 0
        self._user_id = user_id
        self._messages: list[dict[str, Any]] = []

    def note(self, message: Message) -> Message:
        """Adds a message that is theirs. Returns every message unchanged."""
        if message.metadata.get("author_id") == self._user_id:
            self._messages.append(
                {
                    "server": str(self.guild_id),
                    "channel": str(self.channel_id),
                    "message": str(message.metadata.get("message_id", "")),
                    "at": message.timestamp,
                    "content": CLICKED if message.metadata.get("is_label") else message.content,
                }
            )
        return message

    def to_json(self) -> bytes:
        """The messages as JSON; empty: there are none."""
        exported = {"user": str(self._user_id), "messages": self._messages}
        return orjson.dumps(exported, option=orjson.OPT_INDENT_2) if self._messages else b""
