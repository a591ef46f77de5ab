"""A person's message as it comes in: built once, at the Discord edge."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from conversation import ChannelConversation, MessageRecord
from place import Place


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message, with its place, conversation and permissions at that moment.

    conversation: the place's active one, or None. bot_id: the bot's user id. may_send, may_react: the bot's permissions
    there. manages: whether the author may delete others' messages there. reads_history: whether the author may read
    the history there, as far as it is known. role_ids: the author's roles; None: unknown.
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
        """Whether one of the author's roles exempts them from the server's own budgets and the budget of a person."""
        return not (self.place.held.settings.exempt_roles or frozenset()).isdisjoint(self.role_ids or ())
