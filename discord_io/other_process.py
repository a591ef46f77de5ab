"""What the gateway tells of our own messages, and by it, or by its IDENTIFY, of another process with our token."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

import discord
import structlog

from discord_io.channel_history import FAILURES

log = structlog.get_logger()

LOOK_SECONDS = 600.0
MAX_NONCES = 1_000
NEVER_SENT: tuple[int, frozenset[int]] = (0, frozenset())


class OtherProcess:
    """Says once that there is another process. Where a server has no nonces or no count of IDENTIFY, says nothing."""

    def __init__(self, client: discord.Client) -> None:
        self._client = client
        # What was on its way when an earlier process of ours died is older.
        self._since = discord.utils.time_snowflake(discord.utils.utcnow())
        # Those we sent: how often, as some minutes later Discord takes one for new, and the messages heard of with it.
        self._nonces: OrderedDict[str, tuple[int, frozenset[int]]] = OrderedDict()
        self._hears_since: int | None = None
        self._is_connected = False
        self._identifies_left: int | None = None  # since our connection stands: whatever goes is not ours
        self._is_known = False

    def sends(self, nonce: str) -> None:
        """To be told before a message is posted."""
        times, heard = self._nonces.get(nonce, NEVER_SENT)
        self._nonces[nonce] = (times + 1, heard)
        while len(self._nonces) > MAX_NONCES:
            self._nonces.popitem(last=False)

    def overheard(self, message: discord.Message) -> None:
        """To be told of every new message of our own user."""
        nonce = str(message.nonce or "")
        if not nonce or message.poll or message.id < self._since:  # polls are posted apart
            return
        times, heard = self._nonces.get(nonce, NEVER_SENT)
        heard |= {message.id}
        if len(heard) > times:
            self._say("a message of ours that is not from here", message=message.id, channel=message.channel.id)
        else:
            self._nonces[nonce] = (times, heard)

    def hears_all_since(self, message_id: int) -> bool | None:
        """Whether all that came after this message was heard of; None: not yet, as the connection is down.

        What is missed while that is down comes once it is resumed; but nothing where another session begins.
        """
        if self._hears_since is None or message_id < self._hears_since:
            return False
        return True if self._is_connected else None

    async def keep_looking(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look()

    async def connected(self) -> None:
        """A session begins. Our own IDENTIFY is among those that are counted from now on."""
        self.disconnected()
        self._hears_since, self._is_connected = discord.utils.time_snowflake(discord.utils.utcnow()), True
        await self.look()

    def resumed(self) -> None:
        """The session goes on."""
        self._is_connected = True

    def disconnected(self) -> None:
        self._identifies_left, self._is_connected = None, False

    async def look(self) -> None:
        """Asks how many IDENTIFY are left today."""
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
                meaning="a question may be answered twice where the server does not tell equal nonces apart at once",
                remedy="stop the other process with this DISCORD_TOKEN, or reset the token",
            )
