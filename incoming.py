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
    whether they may read what was said there before they came. role_ids: the author's; None: they are not known.
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
    role_ids: frozenset[int] | None = frozenset()

    @property
    def is_exempt(self) -> bool:
        """Whether the author's roles free them of the server's own budgets, and of a person's."""
        return not (self.place.held.settings.exempt_roles or frozenset()).isdisjoint(self.role_ids or ())
