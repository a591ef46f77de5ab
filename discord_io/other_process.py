"""Detects another process with our token, by our own user's messages on the gateway or by its IDENTIFY."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

import discord
import structlog

from clock import Clock
from discord_io.channel_history import FAILURES
from shards import Shards

log = structlog.get_logger()

LOOK_SECONDS = 600.0
MAX_NONCES = 1_000
NEVER_SENT: tuple[int, frozenset[int]] = (0, frozenset())


class OtherProcess:
    """Logs once that there is another process, other than those that have the other shards.

    Where a server has no nonces or no count of IDENTIFY, says nothing. clock: the wall clock.
    """

    def __init__(self, client: discord.Client, shards: Shards, clock: Clock) -> None:
        self._client = client
        self._shards = shards
        self._clock = clock
        # What was on its way when an earlier process of ours died is older.
        self._since = discord.utils.time_snowflake(clock())
        # Those we sent: how often, as some minutes later Discord takes one for new, and the messages heard of with it.
        self._nonces: OrderedDict[str, tuple[int, frozenset[int]]] = OrderedDict()
        self._hears_since: dict[int, int] = {}  # by shard
        self._connected: set[int] = set()  # shards
        self._identifies_left: int | None = None  # since our connections are up: if it falls, that is not ours
        self._is_known = False

    def sends(self, nonce: str) -> None:
        """Must be called before a message is posted."""
        times, heard = self._nonces.get(nonce, NEVER_SENT)
        self._nonces[nonce] = (times + 1, heard)
        while len(self._nonces) > MAX_NONCES:
            self._nonces.popitem(last=False)

    def overheard(self, message: discord.Message) -> None:
        """Must be called for every new message of our own user."""
        nonce, shard_id = str(message.nonce or ""), self._shards.of(message.guild.id if message.guild else 0)
        if not nonce or message.poll or message.id < self._hears_since.get(shard_id, self._since):
            return  # polls are posted without this count
        if not (self._shards.are_all or nonce[0].isdigit()):
            return  # a notice: any of our processes may post it
        times, heard = self._nonces.get(nonce, NEVER_SENT)
        heard |= {message.id}
        if len(heard) > times:
            self._say("a message of ours that is not from here", message=message.id, channel=message.channel.id)
        else:
            self._nonces[nonce] = (times, heard)

    def hears_all_since(self, message_id: int, guild_id: int) -> bool | None:
        """Whether all of a guild's messages after this one were received; None: not yet, as its shard is disconnected.

        Missed messages come once the session is resumed, but not if a new session starts.
        """
        shard_id = self._shards.of(guild_id)
        if shard_id not in self._hears_since or message_id < self._hears_since[shard_id]:
            return False
        return True if shard_id in self._connected else None

    async def keep_looking(self) -> None:
        """Calls look() from time to time, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look()

    async def connected(self, shard_id: int) -> None:
        """Notes that a session has started. The count of IDENTIFYs starts again, with our own included."""
        self._identifies_left = None
        self._hears_since[shard_id] = discord.utils.time_snowflake(self._clock())
        self._connected.add(shard_id)
        await self.look()

    def resumed(self, shard_id: int) -> None:
        """Notes that a session was resumed."""
        self._connected.add(shard_id)

    def disconnected(self, shard_id: int) -> None:
        self._identifies_left = None
        self._connected.discard(shard_id)

    async def look(self) -> None:
        """Asks how many IDENTIFYs are left today, unless one of our own processes or shards might make one now."""
        if not self._shards.are_all or not self._connected.issuperset(self._shards.ids):
            return
        try:
            told = await self._client.http.request(discord.http.Route("GET", "/gateway/bot"))
            left = int(told["session_start_limit"]["remaining"])
        except FAILURES as error:
            log.debug("identifies_not_told", detail=str(error))
            return
        if self._identifies_left is not None and left < self._identifies_left:
            self._say("an IDENTIFY that is not ours")
        self._identifies_left = left

    def _say(self, seen: str, **where: int) -> None:
        if not self._is_known:
            self._is_known = True
            log.warning(
                "another_process",
                seen=seen,
                **where,
                meaning="a question may be answered twice if Discord does not notice equal nonces at once",
                remedy="stop the other process with this DISCORD_TOKEN, or reset the token",
            )
