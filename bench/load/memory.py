"""What live conversations take of the process' memory, what is given back once they end, and what as many more take."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import re
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from bench.__main__ import Peer
from bench.load.run import Row, resident, running_bot
from bot import Parley
from conversation import ChannelConversation, MessageRecord
from decider import Decision, TrainedFollowup
from followup.model import load_model

WARM_UP = 100  # channels in which everything is found once that all channels share
MESSAGES = 50
AT_ONCE = 20  # channels that are filled at once: what waits to be handled takes memory, too
MAX_KILOBYTES, MAX_LEFT, AGAIN = 60, 0.25, 1.05
SETTLED_SECONDS = 6.0  # for what is stored a little later; idle conversations are looked for every 5 s
NEVER = 2.0  # a score that there is not
DAY = timedelta(days=1)


class Mallinfo(ctypes.Structure):
    """What mallinfo2() tells, in bytes. uordblks: in use; hblkhd: in use apart from the arenas."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


class Silent(TrainedFollowup):
    """Decides as the bot does, which has all be read that is, and then never answers."""

    def __init__(self) -> None:
        super().__init__(load_model())
        self.doubt = self.gate = NEVER, NEVER
        self.open_from = NEVER

    def __call__(self, message: MessageRecord, conversation: ChannelConversation, bot_user_id: int, /) -> Decision:
        return replace(super().__call__(message, conversation, bot_user_id), respond=False)


async def memory(folder: Path, channels: int) -> list[Row]:
    later = timedelta()

    def clock() -> datetime:
        return datetime.now(UTC) + later

    settings: dict[str, Any] = {
        "conversation_timeout_seconds": 3_600,
        "turns_per_user_minute": 1_000_000,
        "burst_seconds": 0,
    }
    options = {"clock": clock, "followup": Silent()}
    async with running_bot(folder, WARM_UP + 2 * channels, options, **settings) as (bot, peer):
        await _fill(bot, peer, 0, WARM_UP)
        before, used_before, live_before = _trimmed(), _in_use(), len(bot.conversations)
        await _fill(bot, peer, WARM_UP, channels)
        full, kept, live = resident(), _trimmed(), len(bot.conversations) - live_before
        later = DAY
        async with asyncio.timeout(60):
            while len(bot.conversations):
                await asyncio.sleep(1)
        await asyncio.sleep(SETTLED_SECONDS)
        held, used = _trimmed(), _in_use()
        later = timedelta()
        # Where talk stands already a conversation begins with some of it, and takes more.
        await _fill(bot, peer, WARM_UP + channels, channels)
        again, live_again = resident(), len(bot.conversations)
    each, of_ended = 1e3 * (kept - before) / channels, 1e3 * (used - used_before) / channels
    return [
        Row("live conversations", f"{live:,}", f"{channels:,}", live == channels),
        Row("memory of each", f"{each:.0f} kB", f"{MAX_KILOBYTES} kB", each <= MAX_KILOBYTES),
        Row("the same with what the allocator had kept for itself", f"{1e3 * (full - before) / channels:.0f} kB"),
        Row(
            "in use after they ended, of each",
            f"{of_ended:.0f} kB",
            f"{MAX_LEFT * each:.0f} kB",
            of_ended <= MAX_LEFT * each,
        ),
        Row("the same with what the allocator keeps for what comes next", f"{1e3 * (held - before) / channels:.0f} kB"),
        Row("live ones then in as many others", f"{live_again:,}", f"{channels:,}", live_again == channels),
        Row("the process against the first time", f"{again / full:.3f}", f"{AGAIN}", again <= AGAIN * full),
    ]


async def _fill(bot: Parley, peer: Peer, first: int, channels: int) -> None:
    for start in range(first, first + channels, AT_ONCE):
        last = int((await peer.tell("fill", first=start, count=AT_ONCE, messages=MESSAGES))["last"])
        while bot.cached_messages[-1].id < last:
            await asyncio.sleep(0.02)
        if unhandled := [task for task in asyncio.all_tasks() if task.get_name() == "discord.py: on_message"]:
            await asyncio.wait(unhandled)
    await asyncio.sleep(SETTLED_SECONDS)


def _trimmed() -> float:
    """Megabytes of this process, once what is free has been given back to the system as far as the C library can."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return resident()


def _in_use() -> float:
    """Megabytes that what there is takes, of Python's allocator and of the C library's."""
    with TemporaryFile() as told:
        errors = os.dup(2)
        os.dup2(told.fileno(), 2)
        sys._debugmallocstats()  # noqa: SLF001 - which has nowhere else to write
        os.dup2(errors, 2)
        os.close(errors)
        told.seek(0)
        found = re.search(rb"# bytes in allocated blocks\s+=\s+([\d,]+)", told.read())
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = Mallinfo
    libc, python = mallinfo2(), int(found[1].replace(b",", b"")) if found else 0
    # Python takes its arenas by mmap itself: they are in none of these.
    return (python + int(libc.uordblks) + int(libc.hblkhd)) / 1e6
