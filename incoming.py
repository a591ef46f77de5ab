"""A person's message as it comes in: made once, at the Discord edge."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from conversation import ChannelConversation, MessageRecord
from place import Place


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message, with what is known at that moment of the place where it was said.

    record: as it was said. conversation: the place's active one. bot_id: the bot's own; may_send, may_react: what it
    may do there. manages: whether the author may delete what others say there; reads_history:
    whether they may read what was said there before they came. is_exempt: whether their roles free them of all budgets
    but the owner's for all together. role_ids: the author's; None: they are not known.
    """

    record: MessageRecord
    conversation: ChannelConversation | None
    place: Place
    bot_id: int
    now: datetime
    may_send: bool = True
    may_react: bool = True
    manages: bool = False
    reads_history: bool = True
    is_exempt: bool = False
    role_ids: frozenset[int] | None = frozenset()
