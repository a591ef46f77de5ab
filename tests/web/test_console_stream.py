"""The console's event streams over real HTTP: how many, how often, and that nobody who looks costs nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import orjson
import pytest
from aiohttp import ClientResponse, ClientSession

from bot import Parley, create_bot
from config import Settings
from decision import NOTHING
from health import Health
from tests.web.test_console import OWN, PASSWORD, csrf_of, log_in, opened
from web.console import stream
from web.site import Site

LIVE = "/console/live"


@pytest.fixture
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "INTERVAL_SECONDS", 0.0)
    monkeypatch.setattr(stream, "QUIET_SECONDS", 0.01)


@pytest.fixture
def site() -> Site:
    return Site(Health(), is_local=True)


@pytest.fixture
def bot(site: Site) -> Parley:
    bot = create_bot(Settings(decision_log="off"))
    site.show(bot.shown)
    return bot


@pytest.fixture
async def visitor(site: Site, bot: Parley) -> AsyncIterator[ClientSession]:
    assert site.shown is bot.shown
    async with opened(site, has_bot=False) as found:
        (await found.get("/console")).release()
        yield found


def watching(bot: Parley) -> int:
    return len(bot.shown.activity._observers)


async def update(live: ClientResponse) -> dict[str, str]:
    while not (line := await live.content.readline()).startswith(b"data: "):
        pass
    sent: dict[str, str] = orjson.loads(line.removeprefix(b"data: "))
    return sent


async def until_nobody_watches(visitor: ClientSession, bot: Parley, before: int) -> None:
    async with asyncio.timeout(5):
        while watching(bot) > before:
            await (await visitor.get("/healthz")).read()


@pytest.mark.usefixtures("_soon")
async def test_what_has_changed_is_sent_and_whoever_leaves_is_forgotten(visitor: ClientSession, bot: Parley) -> None:
    before = watching(bot)
    async with visitor.get(LIVE) as live:
        assert live.headers["Content-Type"] == "text/event-stream"
        assert set(await update(live)) >= {"now", "today", "chart-silent", "chart-answering"}
        assert watching(bot) == before + 1
        bot.decisions.add(1, 5, 7, NOTHING, is_ignored=True)
        while "I did not think it was meant for me" not in (await update(live)).get("chart-silent", ""):
            pass
    await until_nobody_watches(visitor, bot, before)


async def test_of_many_streams_so_many_are_open_at_once(
    visitor: ClientSession, bot: Parley, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pause in ("INTERVAL_SECONDS", "QUIET_SECONDS"):
        monkeypatch.setattr(stream, pause, 0.05)
    monkeypatch.setattr(stream, "MOST_STREAMS", most := 5)
    before = watching(bot)
    async with AsyncExitStack() as stack:
        for _ in range(most):
            await update(await stack.enter_async_context(visitor.get(LIVE)))
        refused = await visitor.get(LIVE)
        assert (refused.status, refused.headers["Retry-After"]) == (503, "10")
        assert "close one" in await refused.text()
        assert watching(bot) == before + most
    await until_nobody_watches(visitor, bot, before)
    async with visitor.get(LIVE) as again:
        assert again.status == 200


async def test_who_asks_for_no_stream_holds_no_place_of_one(visitor: ClientSession, bot: Parley) -> None:
    before = watching(bot)
    for path in (LIVE, "/console/errors/live", "/console/places/1/2/live"):
        async with visitor.head(path) as refused:
            assert (refused.status, watching(bot)) == (405, before)


async def test_a_stream_ends_with_its_time(visitor: ClientSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "STREAM_SECONDS", 0.05)
    async with visitor.get(LIVE) as live:
        await live.read()


@pytest.mark.usefixtures("_soon")
async def test_a_stream_ends_with_its_bot(visitor: ClientSession, site: Site) -> None:
    async with visitor.get(LIVE) as live:
        await update(live)
        site.show(create_bot(Settings(decision_log="off")).shown)
        await live.read()


@pytest.mark.usefixtures("_soon")
async def test_a_stream_ends_with_its_session(bot: Parley) -> None:
    site = Site(Health(), password=PASSWORD)
    site.show(bot.shown)
    async with opened(site, has_bot=False) as visitor:
        await log_in(visitor)
        async with visitor.get(LIVE) as live:
            await update(live)
            (await visitor.post("/console/logout", data={"csrf": await csrf_of(visitor)}, headers=OWN)).release()
            await live.read()


async def test_a_browser_that_never_leaves_holds_up_no_end_of_the_process(site: Site, bot: Parley) -> None:
    before = watching(bot)
    async with ClientSession() as visitor:
        async with site.served(0, "127.0.0.1") as address:
            entered = await visitor.get(f"{address}/console")
            borne = {"Cookie": f"parley_console={entered.cookies['parley_console'].value}"}
            live = await visitor.get(f"{address}{LIVE}", headers=borne)
            await update(live)
        assert watching(bot) == before
        live.close()
