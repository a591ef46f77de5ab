"""Another process with our token: noticed by a message of ours that we did not post, or by its IDENTIFY."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

import discord
import structlog

from discord_io.channel_history import FAILURES

log = structlog.get_logger()

LOOK_SECONDS = 600.0
MAX_NONCES = 1_000


class OtherProcess:
    """Says once that there is another process. Where a server has no nonces or no count of IDENTIFY, says nothing."""

    def __init__(self, client: discord.Client) -> None:
        self._client = client
        # What was on its way when an earlier process of ours died is older.
        self._since = discord.utils.time_snowflake(discord.utils.utcnow())
        self._nonces: OrderedDict[str, int] = OrderedDict()  # those we sent, with the message's id once we heard of it
        self._identifies_left: int | None = None  # since our connection stands: whatever goes is not ours
        self._is_known = False

    def sends(self, nonce: str) -> None:
        """To be told before a message is posted."""
        self._nonces.setdefault(nonce, 0)
        while len(self._nonces) > MAX_NONCES:
            self._nonces.popitem(last=False)

    def overheard(self, message: discord.Message) -> None:
        """To be told of every new message of our own user."""
        nonce = str(message.nonce or "")
        if not nonce or message.poll or message.id < self._since:  # polls are posted apart
            return
        if self._nonces.get(nonce) not in (0, message.id):
            self._say("a message of ours that is not from here", message=message.id, channel=message.channel.id)
        else:
            self._nonces[nonce] = message.id

    async def keep_looking(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look()

    async def connected(self) -> None:
        """Our own IDENTIFY is among those that are counted from now on."""
        self.disconnected()
        await self.look()

    def disconnected(self) -> None:
        self._identifies_left = None

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
