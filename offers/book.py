"""The channels that there is anything to know of, each with its machine; when to look at which; how they are stored."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from offers.agenda import Agenda
from offers.channel import Channel, StoredChannel, restored
from offers.restraint import Restraint
from state.proactive import ConversationEventType, ConversationLink, SessionState

STEP_BACK = timedelta(seconds=1)


class Book:
    """A channel that is at rest is not kept. on_change: told the channel that changed."""

    def __init__(
        self, restraint: Restraint, *, clock: Callable[[], datetime], on_change: Callable[[int], None]
    ) -> None:
        self.restraint = restraint
        self.clock = clock
        self._on_change = on_change
        self._channels: dict[int, Channel] = {}
        self._agenda = Agenda()
        self._looked_at: datetime | None = None

    def __len__(self) -> int:
        return len(self._channels)

    def get(self, channel_id: int) -> Channel | None:
        return self._channels.get(channel_id)

    def open(self, channel_id: int, guild_id: int = 0) -> Channel:
        """The channel, made where there is none. guild_id: 0 where it is not known."""
        channel = self._channels.get(channel_id)
        if channel is None:
            channel = self._channels[channel_id] = Channel(channel_id, guild_id, self._machine(channel_id))
        channel.guild_id = channel.guild_id or guild_id
        return channel

    def drop(self, channel_id: int) -> None:
        if channel := self._channels.pop(channel_id, None):
            channel.offer, channel.is_on = None, False
            self._on_change(channel_id)

    def changed(self, channel: Channel) -> None:
        """To be stored, and planned anew."""
        self._on_change(channel.channel_id)
        self.plan(channel)

    def plan(self, channel: Channel) -> None:
        """It is looked at when it has to be, and freed once it is at rest."""
        if channel.is_at_rest:
            if self._channels.get(channel.channel_id) is channel:
                del self._channels[channel.channel_id]
                if channel.is_kept:
                    self._on_change(channel.channel_id)
        else:
            self._agenda.wake(channel.channel_id, channel.next_look(self.restraint, self.clock()))

    def wake(self, channel: Channel, at: datetime) -> None:
        """It is looked at then, whatever else is planned."""
        self._agenda.wake(channel.channel_id, at)

    def due(self, now: datetime) -> list[Channel]:
        """The channels to look at now. Costs by what is due, not by how many channels there are."""
        if self._looked_at and now < self._looked_at - STEP_BACK:  # the clock was set back
            self._agenda.wake_all(self._channels, now)
        self._looked_at = now
        return [channel for channel_id in self._agenda.due(now) if (channel := self._channels.get(channel_id))]

    def link(self, channel: Channel, event: ConversationEventType) -> None:
        """The channel is where we talk."""
        link = ConversationLink(str(channel.channel_id), str(channel.destination), event)
        channel.machine.on_conversation_linked(link)

    def stored(self, channel_id: int) -> StoredChannel | None:
        """For restore(); None where nothing is to be kept."""
        channel = self._channels.get(channel_id)
        return channel.stored() if channel else None

    def restore(self, channel_id: int, stored: Any) -> None:
        """Takes back what stored() gave. Raises ValueError for what cannot be read."""
        try:
            channel = restored(channel_id, stored, self._seconds, lambda: self._machine(channel_id), self.restraint)
            channel.next_look(self.restraint, self.clock())
        except (OverflowError, TypeError) as error:  # a time beyond all time, or without its zone
            raise ValueError(f"it has a time that is none: {error}") from None
        self._channels[channel_id] = channel
        self.plan(channel)

    def _machine(self, channel_id: int) -> SessionState:
        return SessionState(
            self.restraint.timeout_seconds,
            self.restraint.cooldown_seconds,
            session_id=str(channel_id),
            clock=self._seconds,
        )

    def _seconds(self) -> float:
        return self.clock().timestamp()
