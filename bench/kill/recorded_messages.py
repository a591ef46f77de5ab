"""What the bot's transcripts hold, read from its folder as it left it."""

from __future__ import annotations

from pathlib import Path

from persistence.open_store import open_stores
from persistence.transcript import MESSAGE


def recorded(folder: Path) -> dict[int, set[int]]:
    """The ids of the messages in each channel's transcript."""
    store = open_stores(folder, None, None)()
    found = {
        channel: {row.id for row in store.read(MESSAGE, channel) if row.value} for channel in store.channels(MESSAGE)
    }
    store.close()
    return found
