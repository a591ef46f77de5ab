"""Stores who opted out, and up to when people's messages and channels were forgotten: one row for each id.

So processes that share a store never overwrite each other's rows.
"""

from __future__ import annotations

from collections.abc import Callable

import orjson
import structlog
from pydantic import ValidationError

from clock import Clock
from discord_io.backlog import id_at
from persistence.snapshots import Snapshots
from state.consent import MARKS, Forgotten, Whose
from state.optout import IDS, OptOut
from storage.store import unquoted

log = structlog.get_logger()

OPTED_OUT = "opted_out"
FORGOTTEN, FORGOTTEN_CHANNEL = "forgotten", "forgotten_channel"  # by a person's id, by a channel's
LIST = 0  # the id of the row in which an earlier version stored all of them
YES = b"true"


class People:
    """Stores opt-outs and marks of what was forgotten. stores: whether this process stores the rows of a user id; of
    several processes it is the one with the shard on which a guild with that id would be.
    """

    def __init__(
        self,
        opted_out: OptOut,
        forgotten: Forgotten,
        snapshots: Snapshots,
        stores: Callable[[int], bool],
        clock: Clock,
    ) -> None:
        self._clock = clock
        self.opted_out = opted_out
        self.forgotten = forgotten
        self._snapshots = snapshots
        self._stores = stores
        snapshots.when_gone(self._store_anew)

    async def load(self) -> None:
        """Loads what is stored. Raises StoreError where it cannot be read."""
        for row in await self._snapshots.rows(OPTED_OUT):
            if row.id != LIST:  # the id is enough, so a damaged row counts
                self.opted_out.add(row.id)
            elif row.value is not None:
                self._split_opted_out(row.value)
        await self.load_forgotten()

    async def load_forgotten(self) -> None:
        """Loads only what was forgotten, by whichever process. Raises as load() does."""
        for kind in (FORGOTTEN, FORGOTTEN_CHANNEL):
            for row in await self._snapshots.rows(kind):
                whose: Whose = (None, row.id) if kind == FORGOTTEN else (row.id, None)
                if row.id == LIST:
                    if row.value is not None:
                        self._split_forgotten(row.value)
                elif row.value is None:  # it is damaged: up to which message is not known, so it is up to now
                    self.forget(*whose, id_at(self._clock()))
                else:
                    self.forgotten.mark(*whose, orjson.loads(row.value))

    def _split_opted_out(self, stored: bytes) -> None:
        """Stores one row for each user, in place of an earlier version's single row."""
        try:
            user_ids = IDS.validate_json(stored)
        except ValidationError as error:
            _refused(OPTED_OUT, error)
            return
        for user_id in user_ids:
            self.opted_out.add(user_id)
            self._snapshots.store_row(OPTED_OUT, user_id, YES)
        self._snapshots.store_row(OPTED_OUT, LIST, None)

    def _split_forgotten(self, stored: bytes) -> None:
        try:
            marks = MARKS.validate_json(stored)
        except ValidationError as error:
            _refused(FORGOTTEN, error)
            return
        for whose, at in marks:
            self.forgotten.mark(*whose, at)
            self._store_mark(*whose)
        self._snapshots.store_row(FORGOTTEN, LIST, None)

    def opt(self, user_id: int, at: int, *, out: bool) -> None:
        """Opts a user out or in, and stores it. What they said up to this id stays unread, also after an opt-in."""
        (self.opted_out.add if out else self.opted_out.discard)(user_id)
        self.store_opted(user_id)
        self.forget(None, user_id, at)

    def store_opted(self, user_id: int) -> None:
        """Stores whether a user opted out, even if that has not changed."""
        if self._stores(user_id):
            self._snapshots.store_row(OPTED_OUT, user_id, YES if user_id in self.opted_out else None)

    def forget(self, channel_id: int | None, user_id: int | None, at: int, *, is_gone: bool = False) -> None:
        """Marks messages in a channel or by a person, up to this id, as not to be read from Discord again. is_gone: the
        channel is, so this is not stored."""
        self.forgotten.mark(channel_id, user_id, at, is_gone=is_gone)
        if not is_gone:
            self._store_mark(channel_id, user_id)

    def _store_mark(self, channel_id: int | None, user_id: int | None) -> None:
        if user_id is not None and not self._stores(user_id):
            return
        kind, id_ = (FORGOTTEN, user_id) if channel_id is None else (FORGOTTEN_CHANNEL, channel_id)
        self._snapshots.store_row(kind, id_ or 0, orjson.dumps(self.forgotten.at(channel_id, user_id)))

    def _store_anew(self) -> None:
        """Stores all again after the store has lost its data, also opt-outs that another process would store."""
        for user_id in self.opted_out:
            self._snapshots.store_row(OPTED_OUT, user_id, YES)
        for whose in self.forgotten:
            if whose[0] not in self.forgotten.gone:
                self._store_mark(*whose)

    def sweep(self, oldest: int, oldest_gone: int) -> None:
        """As Forgotten.sweep()."""
        if self.forgotten.sweep(oldest, oldest_gone):
            for kind in (FORGOTTEN, FORGOTTEN_CHANNEL):
                self._snapshots.drop_rows(
                    kind, lambda row: row.id != LIST and (row.value is None or orjson.loads(row.value) <= oldest)
                )


def _refused(kind: str, error: ValidationError) -> None:
    log.error("snapshot_refused", kind=kind, channel=0, detail=unquoted(error))
