"""The messages that Discord replays after a RESUME of a shard's last session, from while no process served the shard.

Reading channels' history would be slower: it takes a request for each channel, and Discord allows 50 a second.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

import aiohttp
import discord
import orjson
import structlog
import yarl
from discord.gateway import DiscordWebSocket

from clock import Clock
from setting_values import checked_address
from shards import Session

if TYPE_CHECKING:
    from cluster.sessions import Sessions

log = structlog.get_logger()

NOTE_SECONDS = 3.0
MOST_NOTED = 200  # records of one session: ten minutes
RESUME_SECONDS = 10.0  # in which all missed events have to come
CLOSE_SECONDS = 2.0
MOST_MESSAGES = 50_000  # of one replay
BREATH = 100  # frames read before other tasks run: reading what has arrived does not yield by itself
RESUMABLE = 4_000  # a close code that keeps the session: 1000 and 1001 would end it
DISCORD_GATEWAY, DISCORD_GATEWAYS = "gateway.discord.gg", ".discord.gg"
Payload = dict[str, Any]


class Connected(Protocol):
    """What is used of a client to store and resume its sessions."""

    @property
    def shard_count(self) -> int | None: ...

    @property
    def http(self) -> Any: ...

    def sessions(self, now: datetime) -> Mapping[int, Session]: ...


class Replay:
    """The messages since a session's stored moment, up to now, or until it was closed."""

    def __init__(self, session: Session) -> None:
        self.since = discord.utils.time_snowflake(session.at)
        self._session = session
        self._messages: dict[int, dict[int, Payload]] = {}  # by channel
        self._newest: dict[int, int] = {}
        self._count = 0
        self._sequence = session.sequence
        self._reading: asyncio.Task[None] | None = None
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._is_resumed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def said(self, channel_id: int, after: int, newest: int) -> list[Payload] | None:
        """A channel's messages after an id, oldest first; None: not all were received, up to the newest."""
        if after < self.since or self._newest.get(channel_id, 0) < newest:
            return None
        return [message for number, message in sorted(self._messages[channel_id].items()) if number > after]

    def add(self, event: str, data: Payload) -> None:
        match event:
            case "MESSAGE_CREATE":
                channel_id, message_id = int(data["channel_id"]), int(data["id"])
                self._newest[channel_id] = max(message_id, self._newest.get(channel_id, 0))
                self._messages.setdefault(channel_id, {})[message_id] = data
                self._count += 1
            case "MESSAGE_UPDATE":
                here = self._messages.get(int(data["channel_id"]), {})
                if message := here.get(int(data["id"])):
                    message.update(data)
            case "MESSAGE_DELETE" | "MESSAGE_DELETE_BULK":
                here = self._messages.get(int(data["channel_id"]), {})
                for deleted in data.get("ids") or [data["id"]]:
                    here.pop(int(deleted), None)

    async def resume(self, client: Connected) -> bool:
        """Resumes the session. Returns whether Discord still had it, and all missed events have come."""
        self._reading = asyncio.create_task(self._read(client))
        try:
            async with asyncio.timeout(RESUME_SECONDS):
                return await self._is_resumed
        except TimeoutError:
            return False

    async def close(self) -> None:
        """Leaves the session to whoever comes next. Returns once the gateway has acknowledged that."""
        if self._reading is None:
            return
        if self._socket:
            # The reader may be the one that closes it: the library has whoever calls second go on at once, and behind
            # a reader that is cancelled it waits for no acknowledgement.
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._socket.close(code=RESUMABLE)
                    await asyncio.wait([self._reading])
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self, client: Connected) -> None:
        try:
            url = yarl.URL(self._session.url).with_query(v=10, encoding="json")
            self._socket = socket = await client.http.ws_connect(str(url))
            await self._hear(socket, client.http.token)
        except (aiohttp.ClientError, OSError, ValueError, KeyError, TypeError) as error:
            log.info("replay_broken", detail=f"{type(error).__name__}: {error}")
        finally:
            if not self._is_resumed.done():
                self._is_resumed.set_result(False)
            if self._socket:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._socket.close(code=RESUMABLE)

    async def _hear(self, socket: aiohttp.ClientWebSocketResponse, token: str) -> None:
        """Reads events until the connection is lost, or Discord ends the session."""
        loop, beat_at, interval, frames = asyncio.get_running_loop(), None, 0.0, 0
        while self._count < MOST_MESSAGES:
            try:
                async with asyncio.timeout_at(beat_at):
                    frame = await socket.receive()
            except TimeoutError:
                beat_at = loop.time() + interval
                await socket.send_json({"op": 1, "d": self._sequence})
                continue
            if frame.type is not aiohttp.WSMsgType.TEXT:
                return
            told = orjson.loads(frame.data)
            match told["op"]:
                case 0:
                    self._sequence = told["s"]
                    self.add(told["t"], told["d"])
                    if told["t"] == "RESUMED" and not self._is_resumed.done():
                        self._is_resumed.set_result(True)
                case 1:
                    beat_at = loop.time()
                case 7 | 9:
                    return
                case 10:
                    interval = told["d"]["heartbeat_interval"] / 1_000
                    beat_at = loop.time() + interval
                    how = {"token": token, "session_id": self._session.id, "seq": self._session.sequence}
                    await socket.send_json({"op": 6, "d": how})
            frames += 1
            if frames % BREATH == 0:
                await asyncio.sleep(0)


class Replays:
    """Stores the sessions of this process' shards for the next process, and replays those that it found.

    clock: the wall clock.
    """

    def __init__(self, sessions: Sessions, clock: Clock) -> None:
        self._sessions = sessions
        self._clock = clock
        self._noted: dict[int, deque[Session]] = {}
        self._open: dict[int, Replay] = {}
        self._heard: dict[int, Replay] = {}

    async def keep(self, client: Connected, reach: Callable[[int], datetime | None]) -> None:
        """Stores the sessions every few seconds. Until cancelled.

        reach: since when the next process would need a shard's messages; None: unknown.
        """
        try:
            while True:
                await asyncio.sleep(NOTE_SECONDS)
                await self._sessions.store(self._note(client.sessions(self._clock()), reach))
        finally:
            for replay in [*self._open.values()]:
                await replay.close()

    def _note(self, found: Mapping[int, Session], reach: Callable[[int], datetime | None]) -> dict[int, Session]:
        """The sessions that reach back far enough. For other shards the stored one stays, while Discord has it."""
        self._noted = {shard_id: self._noted.get(shard_id, deque(maxlen=MOST_NOTED)) for shard_id in found}
        reaching = {}
        for shard_id, session in found.items():
            noted = self._noted[shard_id]
            if noted and noted[-1].id != session.id:
                noted.clear()
            noted.append(session)
            since = reach(shard_id)
            while since and len(noted) > 1 and noted[1].at <= since:
                noted.popleft()
            if since and noted[0].at <= since:
                reaching[shard_id] = noted[0]
        return reaching

    async def open(self, client: Connected, shard_id: int) -> None:
        """RESUMEs the last session of a shard that no process serves, if there is one, and reads its events."""
        if shard_id in self._open or (session := await self._sessions.load(shard_id)) is None:
            return
        if session.count != client.shard_count:  # other guilds were on it
            return
        if not may_have_token(session.url):
            log.warning("replay_refused", shard=shard_id, meaning="its address is not one of the gateway's")
            return
        replay = self._open[shard_id] = Replay(session)  # kept here so that it is closed if this is cancelled
        if await replay.resume(client):
            log.info("session_resumed", shard=shard_id, since=f"{session.at:%H:%M:%S}")
        else:
            await replay.close()
            self._open.pop(shard_id, None)
            log.info("no_replay", shard=shard_id, meaning="what was missed is read channel by channel")

    async def end(self, shard_id: int) -> bool:
        """Closes a shard's replay, as the shard is about to IDENTIFY. Returns whether it had one."""
        if replay := self._open.get(shard_id):
            await replay.close()
            self._open.pop(shard_id, None)  # only now: if this is cancelled, it is still to be closed
            self._heard[shard_id] = replay
        return replay is not None

    def of(self, shard_id: int) -> Replay | None:
        """A shard's replay, once it was closed."""
        return self._heard.get(shard_id)

    def drop(self, shard_id: int) -> None:
        self._heard.pop(shard_id, None)

    async def leave(self, shard_id: int) -> None:
        """Drops a shard that another process has from now on, or none."""
        await self.end(shard_id)
        self.drop(shard_id)


def may_have_token(url: str) -> bool:
    """Whether a URL is the configured gateway's, or, if that is Discord's, one of Discord's gateways."""
    gateway = DiscordWebSocket.DEFAULT_GATEWAY.host
    try:
        host = yarl.URL(checked_address(url, secure="wss", loopback="ws")).host or ""
    except ValueError:
        return False
    return host == gateway or (gateway == DISCORD_GATEWAY and host.endswith(DISCORD_GATEWAYS))
