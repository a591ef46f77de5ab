"""What ends a connection, and what then."""

from __future__ import annotations

import asyncio
from unittest.mock import MagicMock

import aiohttp
import discord
import pytest
from structlog.testing import capture_logs

from health import Health
from service import Ending, RefusedError, _connect, _keep_connected, playground
from state.metrics import Metrics
from storage.store import StoreError
from web.shown import Shown
from web.site import Site


class FakeBot:
    """One connection after another, each ending with the next of these errors; then it stays."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.intents: list[discord.Intents] = []
        self.stopping = asyncio.Event()
        self.shut = 0

    def __call__(self, *, health: Health, intents: discord.Intents) -> FakeBot:
        assert health
        self.intents.append(intents)
        return self

    @property
    def shown(self) -> Shown:
        shown = MagicMock()
        shown.states.get_metrics = Metrics().figures
        return shown

    async def start(self, token: str) -> None:
        assert token
        if self.errors:
            raise self.errors.pop(0)
        self.stopping.set()
        await asyncio.Event().wait()

    async def shut_down(self, released: object = None) -> None:
        assert released is None
        self.shut += 1

    def is_up(self, shard_id: int) -> bool:
        return shard_id == 0

    async def add_shard(self, shard_id: int) -> None: ...

    async def leave_shard(self, shard_id: int) -> bool:  # noqa: ARG002
        return False


async def serve(bot: FakeBot) -> int:
    stopping = asyncio.create_task(bot.stopping.wait())
    lost = asyncio.create_task(asyncio.sleep(1e9))
    try:
        return await _keep_connected(bot, "token", Site(Health()), stopping, lost)
    finally:
        lost.cancel()


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    "error", [KeyError("author"), TypeError("expiry"), OSError("no route"), aiohttp.ClientConnectionError("reset")]
)
async def test_a_connection_that_breaks_is_made_again(error: Exception) -> None:
    bot = FakeBot(error, error)
    assert await serve(bot) == 0
    assert len(bot.intents) == 3
    assert bot.shut == 3


@pytest.mark.virtual_time
async def test_without_the_content_intent_it_goes_on_without_content() -> None:
    bot = FakeBot(discord.PrivilegedIntentsRequired(None))
    assert await serve(bot) == 0
    assert [intents.message_content for intents in bot.intents] == [True, False]


@pytest.mark.virtual_time
async def test_refused_even_without_content_it_gives_up() -> None:
    bot = FakeBot(discord.PrivilegedIntentsRequired(None), discord.PrivilegedIntentsRequired(None))
    assert await serve(bot) == 1


async def test_a_refused_token_is_the_owners_to_mend() -> None:
    with pytest.raises(RefusedError, match="DISCORD_TOKEN"):
        await _connect(FakeBot(discord.LoginFailure("no")), "token")


async def test_what_cannot_be_read_ends_the_connection_only() -> None:
    assert await _connect(FakeBot(KeyError("author")), "token") is Ending.UNREACHABLE


async def test_what_discord_py_stumbles_over_where_its_first_connection_is_refused_is_one_line() -> None:
    stumbles = AttributeError("'NoneType' object has no attribute 'sequence'")
    stumbles.__context__ = aiohttp.ClientConnectionError("refused")
    with capture_logs() as logs:
        assert await _connect(FakeBot(stumbles), "token") is Ending.UNREACHABLE
    (line,) = logs
    assert (line["event"], line["detail"]) == ("connection_failed", "ClientConnectionError: refused")


async def test_what_is_stored_that_cannot_be_read_is_not_told_as_discords_fault() -> None:
    with capture_logs() as logs:
        assert (
            await _connect(FakeBot(StoreError("What is stored could not be read in Redis.")), "token")
            is Ending.UNSTORED
        )
    assert [line["event"] for line in logs] == ["store_failed"]


async def test_a_port_that_another_program_has_is_told_in_the_systems_words() -> None:
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as other:
        port = other.sockets[0].getsockname()[1]
        with pytest.raises(RefusedError, match=rf"^The playground cannot listen on 127.0.0.1:{port} \(") as refused:
            async with playground("127.0.0.1", port):
                pass
    assert "(address already in use): stop what else listens there, or set PLAYGROUND_PORT" in str(refused.value)
