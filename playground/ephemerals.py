"""Ephemeral messages, which only one person sees."""

from collections import OrderedDict

from playground.model import Channel, Event, Message
from playground.world import World

_MAX_KEPT = 1_000


class Ephemerals:
    """The last 1,000 ephemeral messages. They are in no channel's history; only interaction tokens can change them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._standing: OrderedDict[int, tuple[int, Message]] = OrderedDict()

    def show(self, channel: Channel, user_id: int, message: Message) -> None:
        """Show a message, or a newer version of it, to this person."""
        self._standing[message.id] = (user_id, message)
        if len(self._standing) > _MAX_KEPT:
            self._standing.popitem(last=False)
        self._world.emit(Event(name="EPHEMERAL", channel=channel, message=message, user_id=user_id))

    def find(self, message_id: int, user_id: int) -> Message | None:
        """The message. None: it was deleted, or is somebody else's."""
        owner_id, message = self._standing.get(message_id, (None, None))
        return message if owner_id == user_id else None

    def delete(self, message: Message) -> None:
        self._standing.pop(message.id, None)
        channel = self._world.channel(message.channel_id)
        self._world.emit(Event(name="EPHEMERAL_DELETE", channel=channel, ids=(message.id,)))
