"""discord.py's sharded client, changed so that each shard connects and reconnects without the others waiting."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from datetime import datetime
from typing import Any, Self

import aiohttp
import discord
import structlog
from discord.backoff import ExponentialBackoff
from discord.gateway import DiscordClientWebSocketResponse, DiscordWebSocket, ReconnectWebSocket
from discord.shard import EventItem
from discord.shard import Shard as LibrarysShard

from discord_io.discord_wire import UNREADABLE
from discord_io.replay import CLOSE_SECONDS, RESUMABLE, Replays
from health import Health
from shards import DIRECT, IDENTIFY_SECONDS, Session

log = structlog.get_logger()

LOOK_SECONDS = 5.0
LIMITS_SECONDS = 30.0
READY_SECONDS = 60.0  # from IDENTIFY to READY, or RESUME to RESUMED; Discord takes seconds
INVALID_SEQUENCE = 4007  # the close code for a RESUME with an impossible sequence number
FAILURES = (discord.DiscordException, aiohttp.ClientError, OSError)
# What discord.py raises for data in another form than Discord's.
STUMBLES = (*UNREADABLE, zlib.error)
OTHER_FORM = "what answers has another form than Discord's"


async def ask_gateway(client: discord.Client) -> tuple[int, int]:
    """How many shards Discord recommends, and how many buckets of them may IDENTIFY at once. Raises FAILURES."""
    try:
        count, _, limits = await client.http.get_bot_gateway()
        return max(int(count), 1), max(int(limits["max_concurrency"]), 1)
    except UNREADABLE as error:
        raise ConnectionError(f"{OTHER_FORM} ({type(error).__name__}: {error})") from None


def _or_left_out(name: str, parse: Callable[[Any], None]) -> Callable[[Any], None]:
    """Wraps discord.py's parser of an event: its errors are logged, as they would end the connections of all shards."""

    def parse_or_leave_out(data: Any) -> None:
        try:
            parse(data)
        except STUMBLES as error:
            log.warning("event_unreadable", name=name, error=f"{type(error).__name__}: {error}")

    return parse_or_leave_out


class Socket(DiscordClientWebSocketResponse):
    """Keeps the gateway's close code also if the connection was lost before the close could be acknowledged."""

    async def close(self, *, code: int = RESUMABLE, message: bytes = b"") -> bool:
        told = self.close_code
        try:
            return await super().close(code=code, message=message)
        finally:
            self._close_code = told or self._close_code


discord.http.DiscordClientWebSocketResponse = Socket  # type: ignore[attr-defined]  # the class of its connections


_opened: ContextVar[list[DiscordWebSocket]] = ContextVar("_opened")


class WebSocket(DiscordWebSocket):
    """Closes its connection if it is cancelled before its IDENTIFY or RESUME, when nothing else refers to it yet."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, *, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(socket, loop=loop)
        _opened.get().append(self)

    @classmethod
    async def from_client(cls, client: discord.Client, **options: Any) -> Self:
        opened: list[DiscordWebSocket] = []
        _opened.set(opened)
        try:
            return await super().from_client(client, **options)
        except BaseException:
            for socket in opened:
                with suppress(TimeoutError):
                    async with asyncio.timeout(CLOSE_SECONDS):
                        await socket.close(code=RESUMABLE)
            raise


discord.shard.DiscordWebSocket = WebSocket  # type: ignore[misc]  # the class with which a shard reconnects


class Limit(discord.http.Ratelimit):
    """A rate limit that is dropped once it has expired. discord.py keeps each for 300 s, and a channel in which the bot
    speaks has three of a kilobyte."""

    __slots__ = ()

    def is_inactive(self) -> bool:
        now = asyncio.get_running_loop().time()
        is_idle = now - self._last_request >= LIMITS_SECONDS and not (self.outgoing or self._pending_requests)
        return is_idle and (self.expires is None or now > self.expires)


discord.http.Ratelimit = Limit  # type: ignore[misc]  # which a client makes for each channel and kind of request


class Requests(discord.http.HTTPClient):
    """Clears expired rate limits once a minute. discord.py would check all of them for each new one, and each channel
    has some: with many channels that would block the event loop.
    """

    _looked_at = -LIMITS_SECONDS

    def _try_clear_expired_ratelimits(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._looked_at >= LIMITS_SECONDS:
            self._looked_at = now
            super()._try_clear_expired_ratelimits()


discord.client.HTTPClient = Requests  # type: ignore[attr-defined]  # the class of a client's HTTP requests


class Shard(LibrarysShard):
    """One shard's connection."""

    end_code = 1000  # the close code when it ends; 1000 ends the session
    _client: ShardedClient
    _returning: asyncio.Task[None] | None = None

    def __init__(self, ws: DiscordWebSocket, client: ShardedClient, queue_put: Callable[[EventItem], None]) -> None:
        super().__init__(ws, client, queue_put)
        self._is_up = client.is_up
        self._handled_exceptions += STUMBLES  # else these would end all shards

    async def _handle_disconnect(self, e: Exception) -> None:
        if isinstance(e, STUMBLES):
            await self.ws.close(code=RESUMABLE)
            if not self._is_up(self.id):  # a session whose READY was not read is of no use
                self.ws.session_id = None
        await super()._handle_disconnect(e)

    @property
    def is_returning(self) -> bool:
        return self._returning is not None and not self._returning.done()

    async def reidentify(self, exc: ReconnectWebSocket) -> None:
        """Reconnects while the other shards are served; in discord.py they would wait."""
        self._returning = asyncio.create_task(self._return(exc))

    async def _return(self, exc: ReconnectWebSocket) -> None:
        # It was lost before READY, or the RESUME would be refused each time: there is no session to resume.
        if exc.resume and (self.ws.session_id is None or self.ws.socket.close_code == INVALID_SEQUENCE):
            exc = ReconnectWebSocket(self.id, resume=False)
        if not exc.resume:
            self._dispatch("shard_disconnect", self.id)  # discord.py dispatches that only once it connects
            await self._client.may_identify(self.id)
        await super().reidentify(exc)

    async def reconnect(self) -> None:
        """Tries to resume its session, which discord.py does for unsharded clients only."""
        await self.reidentify(ReconnectWebSocket(self.id))

    async def close(self) -> None:
        if self._returning:
            self._returning.cancel()
            await asyncio.gather(self._returning, return_exceptions=True)
        self._cancel_task()
        await self.ws.close(code=self.end_code)


class ShardedClient(discord.AutoShardedClient):
    """A client whose shards can be added and removed while it runs.

    health: told which shards are expected. max_concurrency: how many buckets of shards may IDENTIFY at once, as Discord
    says.
    """

    max_concurrency = 1
    replays: Replays | None = None  # resumes the sessions of shards that another process had
    # discord.py's private attributes __shards and __queue.
    _AutoShardedClient__shards: dict[int, Shard]
    _AutoShardedClient__queue: asyncio.PriorityQueue[EventItem]

    def __init__(self, health: Health, *, intents: discord.Intents, **options: Any) -> None:
        super().__init__(intents=intents, **options)
        self.health = health
        self._AutoShardedClient__queue = asyncio.PriorityQueue()  # else it cannot be closed before it is started
        self._turns: dict[int, tuple[int | None, float]] = {}  # by bucket: the shard whose turn it is; until when
        self._launching: asyncio.Task[None] | None = None
        parsers = self._connection.parsers
        parse_ready: Callable[[Any], None] = parsers["READY"]

        def ready(data: Any) -> None:
            # Drops guilds that the bot has left since the last session; discord.py does so for unsharded clients only.
            self.forget_guilds(data["shard"][0])
            parse_ready(data)

        for name, parse in parsers.items():
            parsers[name] = _or_left_out(name, parse)
        parsers["READY"] = ready

    async def ask_count(self) -> int:
        """Sets shard_count to what Discord recommends, unless it is set, and returns it. Raises FAILURES."""
        if self.shard_count is None:
            self.shard_count, self.max_concurrency = await ask_gateway(self)
        return self.shard_count

    async def may_identify(self, shard_id: int) -> None:
        """Waits for this shard's turn to IDENTIFY; it then has some seconds to connect.

        To be called before it connects: while a shard waits, nobody would read its connection's heartbeat answers.
        """
        await self._turn(shard_id, shard_id, None)

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:  # noqa: ARG002
        await self._turn(shard_id or 0, None, shard_id or 0)

    async def _turn(self, shard_id: int, holder: int | None, before: int | None) -> None:
        """Waits until a bucket's turn is free, or is held by `before`; then gives it to `holder`."""
        bucket, now = shard_id % self.max_concurrency, asyncio.get_running_loop().time
        while True:
            had, until = self._turns.get(bucket, (None, 0.0))
            if until <= now() or (before is not None and before == had):
                self._turns[bucket] = holder, now() + IDENTIFY_SECONDS
                return
            await asyncio.sleep(until - now())

    async def launch_shards(self) -> None:
        """Launches the first shard, and the others in a task, so that the first is served at once. Raises FAILURES."""
        if self.is_closed():
            return
        first, *others = self.shard_ids or range(await self.ask_count())
        self._connection.shard_count, self._connection.shard_ids = self.shard_count, [first, *others]
        await self._launch(first)
        self._launching = asyncio.create_task(self._launch_all(others))

    async def _launch_all(self, shard_ids: Sequence[int]) -> None:
        for number, shard_id in enumerate(shard_ids):
            self.health.waits(shard_ids[number:])
            await self._launch_in_the_end(shard_id)

    async def _launch_in_the_end(self, shard_id: int) -> None:
        backoff = ExponentialBackoff()
        while not self.is_closed():
            try:
                await self._launch(shard_id)
            except (*FAILURES, *STUMBLES) as error:
                seconds = backoff.delay()
                log.warning("shard_unreachable", shard=shard_id, detail=str(error), retry_in_s=round(seconds, 1))
                await asyncio.sleep(seconds)
            else:
                return

    async def _launch(self, shard_id: int) -> None:
        """Connects a shard. Returns once it has sent its IDENTIFY."""
        if self.replays:
            await self.replays.open(self, shard_id)
        await self.may_identify(shard_id)
        try:
            async with asyncio.timeout(self.shard_connect_timeout):
                socket = await WebSocket.from_client(self, shard_id=shard_id)
        except ReconnectWebSocket:
            raise ConnectionError("the gateway closed the connection at once") from None
        shard = Shard(socket, self, self._AutoShardedClient__queue.put_nowait)
        self._AutoShardedClient__shards[shard_id] = shard
        shard.launch()

    async def connect_shard(self, shard_id: int) -> None:
        """Connects one more shard, with retries. Returns once it has sent its IDENTIFY."""
        self.health.expects([shard_id])
        self._connection.shard_ids = [*self._connection.shard_ids, shard_id]
        await self._launch_in_the_end(shard_id)

    async def disconnect_shard(self, shard_id: int) -> None:
        """Disconnects a shard; its session ends, or is left to another process."""
        self.health.leaves(shard_id)
        self._connection.shard_ids = [one for one in self._connection.shard_ids if one != shard_id]
        if shard := self._AutoShardedClient__shards.pop(shard_id, None):
            self._leave_session(shard)
            await shard.close()
        if self.replays:
            await self.replays.leave(shard_id)

    def forget_guilds(self, shard_id: int) -> None:
        """Drops the guilds of a shard that another process has from now on, or that has a new session: the cache may
        have messages that were deleted meanwhile."""
        if (messages := self._connection._messages) is not None:  # noqa: SLF001 - as below
            kept = [m for m in messages if (m.guild.shard_id if m.guild else DIRECT) != shard_id]
            messages.clear()
            messages.extend(kept)
        for guild in [guild for guild in self.guilds if guild.shard_id == shard_id]:
            self._connection._remove_guild(guild)  # noqa: SLF001 - there is no other way

    def _leave_session(self, shard: Shard) -> None:
        if self.replays:
            shard.end_code = RESUMABLE

    def sessions(self, now: datetime) -> dict[int, Session]:
        """The current session of each shard that has one."""
        sockets = {shard_id: shard.ws for shard_id, shard in self._AutoShardedClient__shards.items()}
        return {
            shard_id: Session(socket.session_id, str(socket.gateway), socket.sequence, now, self.shard_count or 1)
            for shard_id, socket in sockets.items()
            if socket.session_id and socket.sequence
        }

    def is_up(self, shard_id: int) -> bool:
        return self.health.is_up(shard_id)

    async def reconnect_shard(self, shard_id: int) -> None:
        """Reconnects a shard, unless it is reconnecting already."""
        shard = self._AutoShardedClient__shards[shard_id]
        if not shard.is_returning:
            await shard.disconnect()
            await shard.reconnect()

    async def keep_ready(self) -> None:
        """Reconnects shards that are connected but do not become ready. Until cancelled."""
        since: dict[DiscordWebSocket, float] = {}
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now, shards = asyncio.get_running_loop().time(), [*self._AutoShardedClient__shards.values()]
            unready = [shard for shard in shards if shard.ws.open and not self.is_up(shard.id)]
            since = {shard.ws: since.get(shard.ws, now) for shard in unready}
            for shard_id in [shard.id for shard in unready if now - since[shard.ws] >= READY_SECONDS]:
                log.warning("shard_not_ready", shard=shard_id, seconds=READY_SECONDS, meaning="it is connected again")
                await self.reconnect_shard(shard_id)

    async def close(self) -> None:
        if self._launching:
            self._launching.cancel()
        for shard in self._AutoShardedClient__shards.values():
            self._leave_session(shard)
        await super().close()
