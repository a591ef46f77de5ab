"""The decision log: decisions within conversations, and their outcomes, in an encrypted file of bounded size.

Adding a change never waits: a thread writes the pending changes every few seconds, and removals at once. A kill loses
the unwritten changes. A failing disk causes one warning, and the oldest pending changes are dropped.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import suppress
from itertools import count, islice
from pathlib import Path

import structlog

from followup.decision_file import FILE_NAME, MAX_ROWS, DecisionFile
from followup.learning import Addition, Change, Entry, Removal, Removals, Revision
from storage.sealing import Seal

log = structlog.get_logger()

MAX_PENDING = 10_000
INTERVAL_SECONDS = 5.0


class DecisionLog:
    """Accepts changes at once and writes them later. To be used in one event loop.

    folder: created where missing. is_on: False: nothing is added, but deletions and edits are still applied. lost: how
    many changes were dropped since the disk began to fail. max_pending: of additions and edits; removals have their own
    bound.
    """

    def __init__(
        self,
        folder: Path,
        seal: Seal,
        *,
        is_on: bool = True,
        max_rows: int = MAX_ROWS,
        max_pending: int = MAX_PENDING,
        interval_seconds: float = INTERVAL_SECONDS,
    ) -> None:
        self._file = DecisionFile(folder / FILE_NAME, seal, max_rows=max_rows)
        self._is_on = is_on
        self._max_pending = max_pending
        self._interval = interval_seconds
        self._pending: dict[int, Addition] = {}
        self._removals = Removals()
        self._leaving: list[Removal] = []
        self._numbers = count()
        self._writing = asyncio.Lock()
        self._wake = asyncio.Event()
        self._writer: asyncio.Task[None] | None = None
        self._is_failing = self._is_closed = False
        self.lost = 0

    def __len__(self) -> int:
        return len(self._pending) + len(self._removals) + len(self._leaving)

    def add(self, change: Change) -> None:
        """Notes a change. A removal also drops the pending changes that it covers."""
        if isinstance(change, Removal):
            # Changes that only name a row's id have no effect once the row is gone.
            rows = [(n, waits) for n, waits in self._pending.items() if isinstance(waits, Entry | Revision)]
            for number in [n for n, row in rows if change.covers(row)]:
                del self._pending[number]
            self._removals.add(change)
            self._wake.set()  # removals are written at once
        elif self._is_on or isinstance(change, Revision):
            self._pending[next(self._numbers)] = change
            too_many = max(1, self._max_pending // 4) if len(self._pending) > self._max_pending else 0
            for number in [*islice(self._pending, too_many)]:  # the oldest quarter
                dropped = self._pending.pop(number)
                if isinstance(dropped, Revision):  # the row is removed, too, as it has the words before the edit
                    self._removals.add(Removal(frozenset({dropped.message_id})))
                self.lost += 1

    def start(self) -> None:
        """Starts writing in the background."""
        self._writer = asyncio.create_task(self._write())

    async def close(self) -> None:
        """Writes the pending changes, and stops."""
        self._is_closed = True
        self._wake.set()
        if self._writer:
            await self._writer
        if not await self.flush() and self._leaving:
            log.error(
                "decision_log_not_cleared",
                file=str(self._file.path),
                meaning="what people deleted, by hand or with /forget, could not be removed from the decision log",
                remedy="delete the file",
            )

    async def flush(self) -> bool:
        """Writes the pending changes; where that fails, they stay pending.

        Returns False if something to be removed may still be in the file, or in a file just moved aside.
        """
        async with self._writing:
            for removal in self._leaving:  # of the last batch, if writing it failed
                self._removals.add(removal)
            removals = self._leaving = self._removals.take()
            additions = dict(self._pending)
            if not removals and not additions:
                return True
            try:
                # Removals first: additions that they cover were dropped when they were added.
                aside = await asyncio.to_thread(self._file.write, [*removals, *additions.values()])
            except (OSError, sqlite3.Error) as error:
                self._warn(error)
                return not removals
            self._leaving = []
            for number in additions:
                self._pending.pop(number, None)
            # Without an entry there may have been nothing to write, which proves nothing of the disk.
            if self._is_failing and any(isinstance(change, Entry) for change in additions.values()):
                log.info("decision_log_resumed", lost=self.lost)
                self._is_failing, self.lost = False, 0
            return not (aside and removals)

    async def _write(self) -> None:
        try:
            if self._is_on:
                await asyncio.to_thread(self._file.check)
        except OSError as error:
            self._warn(error)
        while not self._is_closed:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval):
                    await self._wake.wait()
            self._wake.clear()
            await self.flush()

    def _warn(self, error: Exception) -> None:
        """Logs the failure, once per outage."""
        if not self._is_failing:
            log.warning(
                "decision_log_failed",
                file=str(self._file.path),
                error=str(error),
                meaning="the bot goes on, and decisions wait in memory until they can be written",
                remedy="set STATE_DIR to a folder that can be written, or set DECISION_LOG=off",
            )
        self._is_failing = True
