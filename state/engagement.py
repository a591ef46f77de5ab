"""How the bot stands in a channel: what a rule needs to know of it, as one small value."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from state.message import MessageRecord

RECENT = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Engagement:
    """How the bot stands in a channel: when it spoke, to whom, and who else is talking. Anyone can build one by hand.

    unanswered_by: those to whom the bot spoke and who have said nothing since, and whom nobody else has addressed
    since; with when it spoke to them. last_spoke: who spoke within the last 5
    minutes before the newest message, and when.
    """

    bot_spoke_at: datetime | None = None
    bot_spoke_last: bool = False
    unanswered_by: Mapping[int, datetime] = field(default_factory=dict)
    last_author: int | None = None
    last_spoke: Mapping[int, datetime] = field(default_factory=dict)

    def after(self, message: MessageRecord, called: Collection[int] = ()) -> Engagement:
        """The engagement once this message was posted. called: whom it calls by name."""
        if message.is_bot:
            spoken_to = message.addressees or ({self.last_author} if self.last_author is not None else set())
            return replace(
                self,
                bot_spoke_at=message.timestamp,
                bot_spoke_last=True,
                unanswered_by={**self._recently_unanswered(message), **dict.fromkeys(spoken_to, message.timestamp)},
            )
        start = message.timestamp - RECENT
        addressed = {message.author_id, message.reply_to_author_id, *message.mentions, *called}
        last_spoke = {author: at for author, at in self.last_spoke.items() if at >= start}
        last_spoke[message.author_id] = message.timestamp
        return replace(
            self,
            bot_spoke_last=False,
            unanswered_by={who: at for who, at in self._recently_unanswered(message).items() if who not in addressed},
            last_author=message.author_id,
            last_spoke=last_spoke,
        )

    def is_answer_due(self, message: MessageRecord) -> bool:
        """Whether the bot's last words to this author, within 5 minutes, have not been answered by them yet."""
        return message.author_id in self._recently_unanswered(message)

    def _recently_unanswered(self, message: MessageRecord) -> dict[int, datetime]:
        return {who: at for who, at in self.unanswered_by.items() if message.timestamp - at < RECENT}

    def people_since(self, start: datetime) -> frozenset[int]:
        """Who spoke since then; the bot does not count."""
        return frozenset(author for author, at in self.last_spoke.items() if at >= start)
