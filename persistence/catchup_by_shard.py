"""Recovery and catching up for each shard; no shard waits for another."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any

from pydantic import AwareDatetime, TypeAdapter

from conversation import StoredConversation
from persistence.catchup import CatchUp
from persistence.holders import Edit, Forget, Holder
from persistence.stored_state import Encode, as_json
from shards import DIRECT, Shards

# When a shard was last alive, and, while it catches up, since when it does.
MOMENTS: TypeAdapter[datetime | tuple[datetime, datetime] | None] = TypeAdapter(
    AwareDatetime | tuple[AwareDatetime, AwareDatetime] | None
)


class CatchUpByShard(Holder):
    """The CatchUp of each shard, and since when each has to catch up. make: makes one for a shard.

    A process that has all shards stores one moment, with shard 0, up to which no shard has missed anything.
    """

    def __init__(self, shards: Shards, make: Callable[[int], CatchUp]) -> None:
        self._shards = shards
        self._make = make
        self._by_shard: dict[int, CatchUp] = {}
        self._stored: dict[int, tuple[datetime, datetime | None]] = {}

    def of(self, shard_id: int) -> CatchUp:
        if (one := self._by_shard.get(shard_id)) is None:
            one = self._by_shard[shard_id] = self._make(shard_id)
            one.alive_at, one.began_at = self._stored.get(self._row(shard_id), (None, None))
        return one

    def _row(self, shard_id: int) -> int:
        return DIRECT if self._shards.are_all else shard_id

    async def restore_conversation(self, channel_id: int, guild_id: int, stored: StoredConversation | None) -> None:
        """As CatchUp.restore_conversation, on the shard of the channel's guild; 0: unknown."""
        await self.of(self._shards.of(guild_id)).restore_conversation(channel_id, stored)

    def beat(self, hears: Callable[[int], bool] = lambda _shard_id: True) -> bool:
        """As CatchUp.beat, on the connected shards. Returns whether any was up to date."""
        return True in [self.of(shard_id).beat() for shard_id in self._shards.ids if hears(shard_id)]

    def reach(self, shard_id: int) -> datetime | None:
        """As CatchUp.reach."""
        return self.of(shard_id).reach

    def revised(self, edit: Edit) -> bool:
        self._changed([edit.channel_id])
        for one in self._by_shard.values():
            one.edited(edit.message.message_id)
        return False

    def forget(self, what: Forget) -> None:
        # Which of the expired conversations have somebody's words, or a channel's, is known only once they are resumed.
        self._changed(what.channel_ids if what.author_id is None else None)

    def _changed(self, channel_ids: Collection[int] | None) -> None:
        """As CatchUp.changed, in these channels; None: in all."""
        for one in self._by_shard.values():
            for channel_id in [*one.expired] if channel_ids is None else channel_ids:
                one.changed(channel_id)

    def snapshot(self, shard_id: int) -> Encode | None:
        of_row = [self.of(one) for one in self._shards.ids if self._row(one) == shard_id]
        if not of_row:
            return None
        alive_at = min(one.alive_at or one.first_at for one in of_row)
        began_at = min((one.began_at for one in of_row if one.began_at), default=None)
        return as_json(MOMENTS.dump_python((alive_at, began_at) if began_at else alive_at, mode="json"))

    def left(self, shard_id: int) -> None:
        """Drops a shard, as another process serves it from now on."""
        self._by_shard.pop(shard_id, None)
        self._stored.pop(shard_id, None)

    def restore(self, shard_id: int, stored: Any) -> None:
        """Restores when an earlier process last received all messages; of several the earliest. Raises ValueError."""
        moments = MOMENTS.validate_python(stored)
        if moments is None:
            return
        alive_at, began_at = moments if isinstance(moments, tuple) else (moments, None)
        earlier = self._stored.get(shard_id, (alive_at, began_at))
        self._stored[shard_id] = min((alive_at, began_at), earlier, key=lambda each: each[0])
        for one in self._shards.ids:
            if one in self._by_shard and self._row(one) == shard_id:
                self.of(one).alive_at, self.of(one).began_at = self._stored[shard_id]
