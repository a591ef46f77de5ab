"""What the playground's tests share: a bot on discord.py, a raw REST caller, a raw gateway client."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Self

import aiohttp
import discord
import orjson
import pytest
import yarl

from playground.server import Playground

INTENTS = discord.Intents(
    guilds=True, guild_messages=True, guild_reactions=True, guild_typing=True, message_content=True, dm_messages=True
)


def point_discord_at(pg: Playground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discord.http.Route, "BASE", pg.api_base)
    monkeypatch.setattr(discord.gateway.DiscordWebSocket, "DEFAULT_GATEWAY", yarl.URL(pg.gateway_url))
    monkeypatch.setattr(discord.asset.Asset, "BASE", pg.url)


class Bot(discord.Client):
    """Notes what discord.py dispatched, in order: (event, its argument)."""

    def __init__(self, intents: discord.Intents = INTENTS) -> None:
        super().__init__(intents=intents, guild_ready_timeout=0.001)
        self.ready = asyncio.Event()
        self.seen: list[tuple[str, Any]] = []
        self._noted = asyncio.Condition()
        self.tree = discord.app_commands.CommandTree(self)

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Without discord.py's wait of 5 s before a fresh IDENTIFY."""

    async def on_ready(self) -> None:
        self.ready.set()

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        super().dispatch(event, *args, **kwargs)
        self.seen.append((event, args[0] if args else None))
        asyncio.get_running_loop().create_task(self._note())

    async def _note(self) -> None:
        async with self._noted:
            self._noted.notify_all()

    def all(self, event: str) -> list[Any]:
        return [argument for name, argument in self.seen if name == event]

    def text_channel(self, channel_id: int) -> discord.TextChannel:
        channel = self.get_channel(channel_id)
        assert isinstance(channel, discord.TextChannel)
        return channel

    async def event(self, name: str, count: int = 1) -> Any:  # type: ignore[override]
        """The `count`th argument dispatched under that name, once it was."""
        async with asyncio.timeout(5), self._noted:
            await self._noted.wait_for(lambda: len(self.all(name)) >= count)
        return self.all(name)[count - 1]


@asynccontextmanager
async def connected(pg: Playground, intents: discord.Intents = INTENTS) -> AsyncIterator[Bot]:
    """An unmodified discord.py client, while it is connected."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        point_discord_at(pg, monkeypatch)
        async with Bot(intents) as client:
            task = asyncio.create_task(client.start(pg.token))
            await client.ready.wait()
            yield client
            await client.close()
            await task


class Api:
    """Raw REST calls as the bot; answers (status, body)."""

    def __init__(self, pg: Playground, http: aiohttp.ClientSession) -> None:
        self._pg = pg
        self._http = http

    async def call(
        self, method: str, path: str, json: Any = None, *, authorized: bool = True, **options: Any
    ) -> tuple[int, Any]:
        async with self._request(method, path, json, authorized=authorized, **options) as response:
            return response.status, orjson.loads(await response.read() or b"null")

    async def response(self, method: str, path: str, json: Any = None, **options: Any) -> aiohttp.ClientResponse:
        """For its status and headers."""
        async with self._request(method, path, json, authorized=True, **options) as response:
            return response

    def _request(
        self, method: str, path: str, json: Any, *, authorized: bool, **options: Any
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        headers = {"Authorization": f"Bot {self._pg.token}"} if authorized else {}
        url = yarl.URL(self._pg.api_base + path, encoded=True)
        return self._http.request(method, url, json=json, headers=headers, **options)

    async def send(self, channel_id: int, **body: Any) -> tuple[int, Any]:
        return await self.call("POST", f"/channels/{channel_id}/messages", body)

    async def code(self, method: str, path: str, json: Any = None) -> tuple[int, int]:
        """The status and Discord's error code."""
        status, body = await self.call(method, path, json)
        return status, body["code"]


class Wire:
    """A raw gateway client."""

    def __init__(self, pg: Playground, http: aiohttp.ClientSession) -> None:
        self._pg = pg
        self._http = http

    async def __aenter__(self) -> Self:
        self._socket = await self._http.ws_connect(self._pg.gateway_url)
        assert (await self.receive())["op"] == 10
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._socket.close()

    async def receive(self) -> dict[str, Any]:
        frame: dict[str, Any] = await self._socket.receive_json(timeout=5)
        return frame

    async def send(self, operation: Any, data: Any = None) -> None:
        await self._socket.send_json({"op": operation, "d": data})

    async def send_text(self, text: str) -> None:
        await self._socket.send_str(text)

    async def close(self, code: int) -> None:
        await self._socket.close(code=code)

    async def identify(self, intents: int = INTENTS.value, **more: Any) -> dict[str, Any]:
        """The READY's data, GUILD_CREATE read too where it comes."""
        await self.send(2, {"token": "playground", "intents": intents, "properties": {}} | more)
        ready = await self.receive()
        assert ready["t"] == "READY"
        data: dict[str, Any] = ready["d"]
        return data

    async def event(self, name: str) -> dict[str, Any]:
        """The next event of that name, skipping others."""
        while (frame := await self.receive())["t"] != name:
            pass
        return frame

    async def close_code(self) -> int | None:
        """Read until the server closes."""
        async with asyncio.timeout(5):
            async for _ in self._socket:
                pass
        return self._socket.close_code


def contents(messages: Sequence[Any]) -> list[str]:
    return [message.content for message in messages]
