"""What is kept, counted and measured."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from bot import create_bot
from config import Settings
from conversation import MessageRecord
from persistence.open_store import DATABASE
from state.message import Appended
from storage.state_key import KEY_FILE


async def test_it_measures_the_files_and_counts_the_channels(tmp_path: Path) -> None:
    bot = create_bot(Settings(state_dir=tmp_path / "state"))
    sizes = bot.shown.sizes
    before = await sizes.measured()
    assert (before.files, before.channels, before.transcripts) == ({}, {}, 0)
    assert before.key.startswith("none yet")
    for channel_id in (5, 6):
        said = MessageRecord("Ann", 7, "hello", datetime.now(UTC), is_bot=False, message_id=channel_id)
        bot.conversations.start(channel_id, [said])
        bot.snapshots.append(Appended(channel_id, 1, said))
    assert await bot.snapshots.settled()
    after = await sizes.measured()
    about, size = after.files[DATABASE]
    assert about.startswith("the database")
    assert size >= (tmp_path / "state" / DATABASE).stat().st_size > 0
    assert after.channels["conversation"] == after.transcripts == 2
    assert after.free
    assert KEY_FILE in after.key
    await bot.close()
