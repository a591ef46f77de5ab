"""Records what is posted, edited and deleted in the channels, from the loopback Discord's events alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from bench.week.managing import Managing
from bench.week.record import PersonsMessage, Record, Replied, Shown
from playground.model import Event, Message
from tests.support.scene import choices

YES = "Yes, please"
LINK = re.compile(r"/(\d+)\)")


class Observer:
    """Records events. records, managing: by channel id; the latter are told of new offers. clock: Unix seconds."""

    def __init__(
        self,
        records: Mapping[int, Record],
        bot_id: int,
        clock: Callable[[], float],
        managing: Mapping[int, Managing],
    ) -> None:
        self._records = records
        self._bot_id = bot_id
        self._clock = clock
        self._managing = managing
        self._offers: dict[int, Shown] = {}

    def listen(self, event: Event) -> None:
        """Takes an event of the playground."""
        record = self._records.get(event.channel.id) if event.channel else None
        if record is None:
            return
        match event.name, event.message:
            case "MESSAGE_CREATE", Message() as message if message.author.id == self._bot_id:
                self._ours(record, message)
            case "MESSAGE_CREATE", Message() as message:
                record.acts.add(self._clock())
                if not message.author.bot:
                    record.said[message.id] = PersonsMessage(self._clock(), message.author.id)
            case "MESSAGE_UPDATE", Message() as message if message.author.id != self._bot_id:
                record.acts.add(self._clock())
            case "MESSAGE_UPDATE", Message(components=()) as message if message.id in self._offers:
                self._offers[message.id].settled_at = self._clock()
            case "MESSAGE_DELETE", None:
                self._deleted(record, event.ids)

    def _ours(self, record: Record, message: Message) -> None:
        if any(label == YES for label, _, _ in choices(message)):
            about = LINK.search(message.content)
            offer = self._offers[message.id] = Shown(message, self._clock(), int(about[1]) if about else None)
            record.offers.append(offer)
            self._managing[record.channel_id].react(offer)
        else:
            to = message.reference.message_id if message.reference else None
            said = record.said.get(to or 0)
            record.replies.append(Replied(self._clock(), to, said.author_id if said else None))

    def _deleted(self, record: Record, message_ids: tuple[int, ...]) -> None:
        for message_id in message_ids:
            gone = self._offers.get(message_id) or record.said.get(message_id)
            if gone:
                gone.gone_at = self._clock()
            if message_id in record.said:
                record.acts.add(self._clock())
