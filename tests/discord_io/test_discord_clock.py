"""The wall clock as Discord has it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import aiohttp
import discord
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from structlog.testing import capture_logs
from yarl import URL

from discord_io import discord_clock
from discord_io.discord_clock import DiscordClock

NOW = datetime(2026, 11, 23, 12, 0, 0, 500_000, tzinfo=UTC)


class Stage:
    """A server that tells its time, and a machine whose clock is so many seconds ahead of it."""

    http: aiohttp.ClientSession

    def __init__(self, url: URL) -> None:
        self.ahead = 0.0
        self.trace = aiohttp.TraceConfig()
        self.clock = DiscordClock(self.trace, lambda: NOW + timedelta(seconds=self.ahead))
        self._url = url

    async def ask(self, date: str = format_datetime(NOW, usegmt=True), path: str = "/api/v10/gateway") -> float:
        """Returns how many seconds the clock is ahead then."""
        await self.http.get(self._url.with_path(path), headers={"X-Date": date})
        return (self.clock() - NOW).total_seconds()


@pytest.fixture
async def stage(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(headers={"Date": request.headers["X-Date"]})

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    async with TestServer(app) as server:
        monkeypatch.setattr(discord.http.Route, "BASE", str(server.make_url("/api/v10")))
        stage = Stage(server.make_url("/"))
        async with aiohttp.ClientSession(trace_configs=[stage.trace]) as stage.http:
            yield stage


@pytest.mark.parametrize("ahead", [30.0, -30.0])
async def test_a_machine_whose_clock_is_off_goes_by_discords_and_says_so_once(stage: Stage, ahead: float) -> None:
    stage.ahead = ahead
    with capture_logs() as logs:
        assert [await stage.ask(), await stage.ask()] == [0.0, 0.0]
    assert [(entry["event"], entry["ahead_s"]) for entry in logs] == [("clock_off", ahead)]


async def test_one_that_is_as_good_as_can_be_told_is_left_alone(stage: Stage) -> None:
    stage.ahead = 1.5
    assert await stage.ask() == 1.5


async def test_one_that_is_set_meanwhile_goes_by_itself_again(stage: Stage) -> None:
    stage.ahead = 30.0
    await stage.ask()
    stage.ahead = 0.0
    assert await stage.ask() == 0.0


@pytest.mark.parametrize("why", ["it is no time", "it has no zone", "it is another server's", "it came late"])
async def test_what_is_not_discords_time_teaches_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    stage.ahead, date = 30.0, format_datetime(NOW, usegmt=True)
    if why == "it came late":
        monkeypatch.setattr(discord_clock, "LONGEST_SECONDS", 0.0)
    told = {"it is no time": "soon", "it has no zone": date.replace("GMT", "-0000")}.get(why, date)
    assert await stage.ask(told, "/files/1" if why == "it is another server's" else "/api/v10/gateway") == 30.0
