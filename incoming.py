"""A person's message as it comes in: made once, at the Discord edge."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from conversation import ChannelConversation, MessageRecord


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message, with what is known at that moment of the place where it was said.

    record: as it was said. conversation: the channel's active one. bot_name, bot_id: who the bot is there; may_send,
    may_react: what it may do there. manages: whether the author may delete what others say there; reads_history:
    whether they may read what was said there before they came.
    """

    record: MessageRecord
    conversation: ChannelConversation | None
    guild_id: int
    channel_id: int
    bot_name: str
    bot_id: int
    now: datetime
    guild_name: str = ""
    channel_name: str = ""
    may_send: bool = True
    may_react: bool = True
    manages: bool = False
    reads_history: bool = True
