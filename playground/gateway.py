"""The playground's gateway: websocket connections, the bot's sessions, and the events sent to each session.

Opcodes and close codes are those of Discord's gateway documentation. A session outlives its connection, so that RESUME
replays the events it missed. A connection without a session may only IDENTIFY or RESUME.
"""

import asyncio
import contextlib
import math
import secrets
import zlib
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import WSMsgType, web

from playground import wire
from playground.changes import Changes
from playground.model import Clock, Event, Guild, Wire
from playground.world import World

_HEARTBEAT_INTERVAL_MS = 41_250
# Sent at once, it would arrive before discord.py has noted its heartbeat, and be measured as very late.
_ACK_SECONDS = 0.05
_MAX_PAYLOAD = 4_096  # bytes that a client may send at once
_SENDS, _SENDS_SECONDS = 120, 60.0
_MAX_QUEUED = 100_000  # frames waiting for a client that does not read
_MAX_DETACHED = 8  # sessions kept without a connection, or four of each shard
_MAX_GUILDS = 2_500  # on one shard
_IDENTIFY_SECONDS = 5.0

_MESSAGE_CONTENT = 1 << 15
_PRIVILEGED_OFF = 1 << 1 | 1 << 8  # members and presences, which the playground does not have
_KNOWN_INTENTS = (1 << 26) - 1
_GUILDS = 1 << 0
# The intent each event needs: in the guild, and in direct messages. 0 needs none.
_INTENTS = {
    "GUILD_CREATE": (_GUILDS, 0),
    "GUILD_DELETE": (_GUILDS, 0),
    "GUILD_ROLE_CREATE": (_GUILDS, 0),
    "GUILD_ROLE_UPDATE": (_GUILDS, 0),
    "GUILD_ROLE_DELETE": (_GUILDS, 0),
    "GUILD_MEMBER_UPDATE": (0, 0),  # of the bot itself; others' would need the members intent
    "CHANNEL_CREATE": (_GUILDS, 0),
    "CHANNEL_UPDATE": (_GUILDS, 0),
    "CHANNEL_DELETE": (_GUILDS, 0),
    "CHANNEL_PINS_UPDATE": (_GUILDS, 1 << 12),
    "THREAD_CREATE": (_GUILDS, 0),
    "THREAD_UPDATE": (_GUILDS, 0),
    "THREAD_DELETE": (_GUILDS, 0),
    "THREAD_LIST_SYNC": (_GUILDS, 0),
    "THREAD_MEMBER_UPDATE": (_GUILDS, 0),
    "THREAD_MEMBERS_UPDATE": (_GUILDS, 0),
    "MESSAGE_CREATE": (1 << 9, 1 << 12),
    "MESSAGE_UPDATE": (1 << 9, 1 << 12),
    "MESSAGE_DELETE": (1 << 9, 1 << 12),
    "MESSAGE_DELETE_BULK": (1 << 9, 1 << 12),
    "MESSAGE_REACTION_ADD": (1 << 10, 1 << 13),
    "MESSAGE_REACTION_REMOVE": (1 << 10, 1 << 13),
    "MESSAGE_REACTION_REMOVE_ALL": (1 << 10, 1 << 13),
    "TYPING_START": (1 << 11, 1 << 14),
    "INTERACTION_CREATE": (0, 0),
}
_ALWAYS_SEEN = {"CHANNEL_CREATE", "CHANNEL_UPDATE", "CHANNEL_DELETE"}


class ClosingError(Exception):
    """The connection must close with this code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class Close:
    """Entry of a connection's queue: close with this code."""

    code: int


class Connection:
    """One websocket, with its queue of frames and the client's send rate."""

    def __init__(self, socket: web.WebSocketResponse, request: web.Request) -> None:
        self.socket = socket
        self.session: Session | None = None
        self.closing = False  # by the gateway
        self._request = request
        self._queue: asyncio.Queue[bytes | Close] = asyncio.Queue()
        self._deflate = zlib.compressobj() if request.query.get("compress") == "zlib-stream" else None
        self._sent_at: deque[float] = deque(maxlen=_SENDS)

    def send(self, frame: bytes) -> None:
        if self._queue.qsize() >= _MAX_QUEUED:
            self.cut()
        else:
            self._queue.put_nowait(frame)

    def close(self, code: int) -> None:
        self.closing = True
        self._queue.put_nowait(Close(code))

    def cut(self) -> None:
        """Abort the TCP connection."""
        if self._request.transport is not None:
            self._request.transport.abort()

    def count_send(self, now: float) -> None:
        """ClosingError 4008 at the 121st send within 60 s."""
        if len(self._sent_at) == _SENDS and now - self._sent_at[0] < _SENDS_SECONDS:
            raise ClosingError(4008)
        self._sent_at.append(now)

    async def write(self) -> None:
        """Send the queued frames, until closed."""
        with contextlib.suppress(ConnectionError):
            while not isinstance(frame := await self._queue.get(), Close):
                if self._deflate is None:
                    await self.socket.send_str(frame.decode())
                else:
                    packed = self._deflate.compress(frame) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
                    await self.socket.send_bytes(packed)
            await self.socket.close(code=frame.code)


@dataclass(slots=True)
class Session:
    """A session made by IDENTIFY: intents, shard, numbered events, and its connection; None: disconnected."""

    id: str
    intents: int
    shard: tuple[int, int]
    connection: Connection | None
    sequence: int = 0
    events: deque[tuple[int, bytes]] = field(default_factory=deque)

    def push(self, name: str, body: bytes) -> None:
        """Number the event, keep it for a replay, and send it."""
        self.sequence += 1
        frame = b'{"op":0,"s":%d,"t":"%s","d":%s}' % (self.sequence, name.encode(), body)
        self.events.append((self.sequence, frame))
        if self.connection is not None:
            self.connection.send(frame)

    def can_replay(self, after: int) -> bool:
        return after == self.sequence or bool(self.events and self.events[0][0] <= after + 1)

    def replay(self, after: int) -> None:
        if self.connection is not None:
            for number, frame in self.events:
                if number > after:
                    self.connection.send(frame)


class Gateway:
    """All connections and sessions of the bot. `url` is the address for RESUME.

    `shards` and `max_concurrency` as in Playground; `replay`: number of events that each session keeps for RESUME.
    """

    def __init__(
        self,
        world: World,
        token: str,
        *,
        message_content: bool,
        shards: int | None,
        max_concurrency: int | None,
        replay: int,
        clock: Clock,
        changes: Changes,
    ) -> None:
        self.url = ""
        self.shards = shards
        self.max_concurrency = max_concurrency
        self.unready: set[int] = set()  # shards whose IDENTIFY is accepted, but which get no READY
        self.refused = 0  # number of IDENTIFYs that came too early
        self.sessions: dict[str, Session] = {}
        self.connections: set[Connection] = set()
        self.identified = 0  # number of accepted IDENTIFYs
        self._world = world
        self._token = token
        self._replay = replay
        self._identified_at: dict[int, float] = {}  # by bucket
        self._message_content = message_content
        self._clock = clock
        self._changes = changes

    @property
    def connected(self) -> bool:
        """Whether any session has a connection."""
        return any(session.connection for session in self.sessions.values())

    # Dispatch

    def dispatch(self, event: Event) -> None:
        """Serialise an event once, and send it to the sessions that it concerns."""
        if event.name not in _INTENTS:
            return
        sessions = [session for session in self.sessions.values() if self._concerns(session, event)]
        if not sessions:
            return
        data = wire.payload(self._world, event)
        whole = orjson.dumps(data)
        blank = whole
        if event.message is not None and not all(one.intents & _MESSAGE_CONTENT for one in sessions):
            blank = orjson.dumps(wire.redacted(self._world, data))
        for session in sessions:
            session.push(event.name, whole if session.intents & _MESSAGE_CONTENT else blank)

    def _concerns(self, session: Session, event: Event) -> bool:
        channel = event.channel
        guild = event.guild if channel is None else self._world.guild_of(channel)
        guild_id = channel.guild_id if channel else guild.id if guild else None
        if session.shard[0] != _shard_of(session.shard[1], guild_id):
            return False
        if _INTENTS[event.name][guild_id is None] & ~session.intents:
            return False
        if event.name == "INTERACTION_CREATE":
            return True
        if guild_id is not None and not (guild and (guild.bot_is_member or event.name == "GUILD_DELETE")):
            return False
        if event.name == "GUILD_MEMBER_UPDATE":
            return event.user_id == self._world.bot.id
        if event.name == "THREAD_MEMBERS_UPDATE":  # those of others would need the members intent
            return self._world.bot.id in event.ids
        if event.name in _ALWAYS_SEEN or channel is None:
            return True
        return self._world.may(channel, self._world.bot.id, "view_channel")

    # One connection

    async def handle(self, request: web.Request) -> web.WebSocketResponse:
        """Serve one websocket for as long as it lasts."""
        socket = web.WebSocketResponse(compress=False, autoclose=False)
        await socket.prepare(request)
        connection = Connection(socket, request)
        self.connections.add(connection)
        writer = asyncio.create_task(connection.write())
        connection.send(_frame(10, {"heartbeat_interval": _HEARTBEAT_INTERVAL_MS}))
        try:
            async for frame in socket:
                try:
                    connection.count_send(self._clock())
                    self._receive(connection, frame.type, frame.data)
                except ClosingError as refused:
                    connection.close(refused.code)
        finally:
            self._detach(connection)
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
            await socket.close()  # only now, since the client may IDENTIFY again at once
        return socket

    def _receive(self, connection: Connection, kind: WSMsgType, data: str | bytes) -> None:
        if kind not in (WSMsgType.TEXT, WSMsgType.BINARY) or len(data) > _MAX_PAYLOAD:
            raise ClosingError(4002)
        try:
            payload = _mapping(orjson.loads(data))
        except orjson.JSONDecodeError:
            raise ClosingError(4002) from None
        operation, body = payload.get("op"), payload.get("d")
        if operation == 1:
            asyncio.get_running_loop().call_later(_ACK_SECONDS, connection.send, _frame(11, None))
        elif operation == 2:
            self._identify(connection, _mapping(body))
        elif operation == 6:
            self._resume(connection, _mapping(body))
        elif operation not in (3, 4, 8, 31):  # presence, voice state, members, soundboard: nothing to do
            raise ClosingError(4001)
        elif connection.session is None:
            raise ClosingError(4003)

    def _identify(self, connection: Connection, body: Wire) -> None:
        if connection.session is not None:
            raise ClosingError(4005)
        self._check_token(body)
        intents = body.get("intents")
        if not isinstance(intents, int) or not 0 <= intents <= _KNOWN_INTENTS:
            raise ClosingError(4013)
        if intents & _PRIVILEGED_OFF or (intents & _MESSAGE_CONTENT and not self._message_content):
            raise ClosingError(4014)
        shard = number, count = _checked_shard(body.get("shard", [0, 1]))
        if self.shards not in (None, count):
            raise ClosingError(4010)
        members = (one for one in self._world.guilds.values() if one.bot_is_member)
        guilds = [one for one in members if _shard_of(count, one.id) == number]
        if len(guilds) > _MAX_GUILDS:  # the bot needs more shards
            raise ClosingError(4011)
        if self._is_too_early(number):
            connection.send(_frame(9, False))
            return
        self.identified += 1
        session = Session(secrets.token_hex(16), intents, shard, connection, events=deque(maxlen=self._replay))
        connection.session = self.sessions[session.id] = session
        if number not in self.unready:
            session.push("READY", orjson.dumps(self._ready(session, guilds)))
            for guild in guilds if intents & _GUILDS else ():
                session.push("GUILD_CREATE", orjson.dumps(wire.guild_object(self._world, guild)))
        self._connection_changed()

    def _is_too_early(self, shard_id: int) -> bool:
        """Whether an IDENTIFY exceeds its bucket's limit of one in 5 s; counts it."""
        if self.max_concurrency is None:
            return False
        now, bucket = self._clock(), shard_id % self.max_concurrency
        if now - self._identified_at.get(bucket, -math.inf) < _IDENTIFY_SECONDS:
            self.refused += 1
            return True
        self._identified_at[bucket] = now
        return False

    def _check_token(self, body: Wire) -> None:
        if body.get("token") not in (self._token, f"Bot {self._token}"):
            raise ClosingError(4004)

    def _ready(self, session: Session, guilds: Iterable[Guild]) -> Wire:
        application = wire.application_object(self._world, message_content=self._message_content)
        return {
            "v": 10,
            "user": wire.user_object(self._world.bot) | {"verified": True, "mfa_enabled": False, "flags": 0},
            "guilds": [{"id": str(one.id), "unavailable": True} for one in guilds],
            "session_id": session.id,
            "resume_gateway_url": self.url,
            "shard": session.shard,
            "application": {"id": application["id"], "flags": application["flags"]},
        }

    def _resume(self, connection: Connection, body: Wire) -> None:
        if connection.session is not None:
            raise ClosingError(4005)
        self._check_token(body)
        session, after = self.sessions.get(str(body.get("session_id"))), body.get("seq")
        if not isinstance(after, int) or (session is not None and after > session.sequence):
            raise ClosingError(4007)
        if session is None or not session.can_replay(after):
            connection.send(_frame(9, False))
            return
        if session.connection is not None:  # the newer connection takes over the session
            session.connection.session = None
            session.connection.close(4000)
        session.connection, connection.session = connection, session
        session.replay(after)
        session.push("RESUMED", b"{}")
        self._connection_changed()

    def _detach(self, connection: Connection) -> None:
        self.connections.discard(connection)
        session, connection.session = connection.session, None
        if session is not None:
            session.connection = None
            if not connection.closing and connection.socket.close_code in (1000, 1001):  # the client ended the session
                self.sessions.pop(session.id, None)
        detached = [one.id for one in self.sessions.values() if one.connection is None]
        for session_id in detached[: -max(_MAX_DETACHED, 4 * (self.shards or 0))]:
            del self.sessions[session_id]
        self._connection_changed()

    def _connection_changed(self) -> None:
        self._world.emit(Event(name="BOT"))
        self._changes.notify()

    # On request

    def _of(self, shard_id: int | None) -> list[Connection]:
        """The connections of a shard; None: all connections."""
        if shard_id is None:
            return list(self.connections)
        return [one for one in self.connections if one.session and one.session.shard[0] == shard_id]

    def ask_reconnect(self, shard_id: int | None = None) -> None:
        """Send op 7 (reconnect) to all connections, or to a shard's."""
        for connection in self._of(shard_id):
            connection.send(_frame(7, None))

    def invalidate(self, *, resumable: bool, shard_id: int | None = None) -> None:
        """Send op 9 (invalid session) to all connections, or to a shard's. Not resumable: drop the sessions, too."""
        for connection in self._of(shard_id):
            connection.send(_frame(9, resumable))
            if not resumable and connection.session is not None:
                connection.session.connection = None
                self.sessions.pop(connection.session.id, None)
                connection.session = None

    def disconnect(self, code: int, shard_id: int | None = None) -> None:
        for connection in self._of(shard_id):
            connection.close(code)

    def cut(self, shard_id: int | None = None) -> None:
        for connection in self._of(shard_id):
            connection.cut()


def _shard_of(count: int, guild_id: int | None) -> int:
    return 0 if guild_id is None else (guild_id >> 22) % count


def _frame(operation: int, data: Any) -> bytes:
    return orjson.dumps({"op": operation, "d": data, "s": None, "t": None})


def _mapping(value: Any) -> Wire:
    if not isinstance(value, dict):
        raise ClosingError(4002)
    return value


def _checked_shard(value: Any) -> tuple[int, int]:
    match value:
        case [int(shard), int(count)] if 0 <= shard < count:
            return shard, count
    raise ClosingError(4010)
