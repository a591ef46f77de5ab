"""The endpoints of pinned messages, with Discord's newer paths and its older ones."""

from collections.abc import Callable
from dataclasses import dataclass

from playground import errors, wire
from playground.model import REPLY, Message, Wire
from playground.posting import Posting
from playground.rest import Call, Route
from playground.world import World

MAX_PINS = 250  # Discord: per channel
_PAGE = 50
_OLD, _NEW = "/channels/{channel}/pins", "/channels/{channel}/messages/pins"


@dataclass(frozen=True, slots=True)
class Pins:
    """The endpoints, with the parts that they use. `shown`: a message's JSON as the bot may see it."""

    world: World
    posting: Posting
    shown: Callable[[Message], Wire]

    def routes(self) -> list[Route]:
        return [
            Route("GET", _NEW, self._page),
            Route("GET", _OLD, lambda call: [self.shown(one) for one in self._pinned(call)[:_PAGE]]),
            *(Route("PUT", f"{path}/{{message}}", self._pin) for path in (_NEW, _OLD)),
            *(Route("DELETE", f"{path}/{{message}}", self._unpin) for path in (_NEW, _OLD)),
        ]

    def _pinned(self, call: Call) -> list[Message]:
        channel = self.posting.visible(call.id("channel"))
        return channel.pinned if self.world.may(channel, self.world.bot.id, "read_message_history") else []

    def _page(self, call: Call) -> Wire:
        limit = call.limit(_PAGE, _PAGE)
        items = [{"pinned_at": wire.pinned_at(one), "message": self.shown(one)} for one in self._pinned(call)]
        before = call.query.get("before")
        older = [item for item in items if before is None or str(item["pinned_at"]) < before]
        return {"items": older[:limit], "has_more": len(older) > limit}

    def _pin(self, call: Call) -> None:
        channel = self.posting.changeable(call.id("channel"), "pin_messages")
        message = self.world.message(channel.id, call.id("message"))
        if message.type not in (0, REPLY):
            raise errors.system_message()
        if message.pinned_at is None and len(channel.pinned) >= MAX_PINS:
            raise errors.too_many_pins(MAX_PINS)
        self.world.pin(message, self.world.bot)

    def _unpin(self, call: Call) -> None:
        channel = self.posting.changeable(call.id("channel"), "pin_messages")
        self.world.unpin(self.world.message(channel.id, call.id("message")))
