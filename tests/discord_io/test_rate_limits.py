"""What the client keeps of Discord's rate limits, of which each channel has some."""

import asyncio

import pytest

from discord_io.sharded_client import Limit, ShardedClient
from health import Health
from service import INTENTS


async def test_another_channel_does_not_have_the_limits_of_all_others_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[Limit] = []
    monkeypatch.setattr(Limit, "is_inactive", lambda limit: looked.append(limit))  # noqa: PLW0108 - for its self
    http = ShardedClient(Health(), intents=INTENTS).http
    for channel in range(2_000):
        http.get_ratelimit(f"hash:{channel}")
    assert len(looked) <= 2_000


async def test_limits_that_say_nothing_any_more_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    http, loop = ShardedClient(Health(), intents=INTENTS).http, asyncio.get_running_loop()
    for channel in range(300):
        http.get_ratelimit(f"hash:{channel}")
    later = loop.time() + 31.0
    http.get_ratelimit("hash:1").expires = later + 100.0
    async with http.get_ratelimit("hash:2"):
        monkeypatch.setattr(loop, "time", lambda: later)
        http.get_ratelimit("hash:300")
        assert list(http._buckets) == ["hash:1", "hash:2", "hash:300"]  # the library does not say it otherwise
