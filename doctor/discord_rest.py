"""Client of Discord's REST API, for GET requests with a token only: no gateway, no cache."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any, Self

import aiohttp

from doctor.findings import NotCheckedError

DISCORD = "https://discord.com/api/v10"
USER_AGENT = "DiscordBot (parley doctor, 1)"
MOST_AT_ONCE = 8
OK, TOO_MANY = 200, 429
SHORTEST_WAIT, LONGEST_WAIT = 0.1, 5.0  # seconds, at rate limits


class RefusedError(NotCheckedError):
    """Discord refused a request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(
            f"Discord refuses to answer (HTTP {status}: {message}).",
            "Try again later; https://discordstatus.com says how Discord is.",
        )
        self.status = status


class UnreachableError(NotCheckedError):
    """Nothing answers at Discord's address, or what answers is not Discord."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"Discord cannot be reached ({why}).",
            "Look at this machine's network, firewall and clock, and at DISCORD_API_BASE where that is set.",
        )


class DiscordRest:
    """GET requests of the bot. base: with the API's version; site: address of Discord's client; skew: seconds that
    this machine's clock is ahead of Discord's, known after the first response of any kind."""

    def __init__(self, token: str, base: str | None = None) -> None:
        self._base = base or DISCORD
        self.site = self._base.partition("/api/")[0]
        self._headers = {"Authorization": f"Bot {token}", "User-Agent": USER_AGENT}
        self._slots = asyncio.Semaphore(MOST_AT_ONCE)
        self.skew: float | None = None

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession(headers=self._headers)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    async def get(self, path: str) -> Any:
        """The response's JSON. Waits at rate limits, for 5 s at most. Raises RefusedError and UnreachableError."""
        async with self._slots:
            while True:
                try:
                    async with self._http.get(self._base + path, allow_redirects=False) as response:
                        with suppress(ValueError):
                            date = parsedate_to_datetime(response.headers.get("Date", ""))
                            self.skew = time.time() - date.timestamp()
                        body = await _body(response)
                except (aiohttp.ClientError, OSError, ValueError) as error:
                    if isinstance(error, TimeoutError):
                        raise
                    raise UnreachableError(type(error).__name__) from None
                if response.status != TOO_MANY:
                    break
                if (wait := _wait(_field(body, "retry_after", response.headers.get("Retry-After")))) > LONGEST_WAIT:
                    raise RefusedError(TOO_MANY, f"it asks to wait {wait:.0f} s")
                await asyncio.sleep(wait)
        if response.status != OK:
            raise RefusedError(response.status, str(_field(body, "message", response.reason))[:100])
        if body is None:
            raise UnreachableError("what answers is not Discord")
        return body


async def _body(response: aiohttp.ClientResponse) -> Any:
    """The response's JSON. None: it has none, as an error of a proxy in front of Discord."""
    try:
        return await response.json(content_type=None)
    except (ValueError, LookupError):
        return None


def _wait(seconds: Any) -> float:
    try:
        return max(SHORTEST_WAIT, float(seconds))
    except (TypeError, ValueError):
        return 1.0


def _field(body: Any, name: str, otherwise: Any) -> Any:
    return body.get(name, otherwise) if isinstance(body, dict) else otherwise
