"""Fetches attachments from Discord's own hosts only, wherever a URL comes from."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

import aiohttp
from yarl import URL

from files.reading import DISCORD_HOSTS, FileProblem

CHUNK_BYTES = 65_536
TIMEOUT = aiohttp.ClientTimeout(total=60.0, sock_connect=5.0, sock_read=10.0)


class Attachments:
    """api_base: the URL of another server in place of Discord, whose attachments are fetched, too; None: Discord."""

    def __init__(self, api_base: str | None) -> None:
        self._origin = URL(api_base).origin() if api_base else None
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()

    @asynccontextmanager
    async def open(self, url: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Streams a file's bytes. Raises FileProblem. Follows no redirect, and sends no cookie and no token."""
        if not self._is_discords(url):
            raise FileProblem("elsewhere")
        if self._session is None:
            # Not compressed: a small response could become a huge one.
            self._session = aiohttp.ClientSession(
                timeout=TIMEOUT,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                headers={"Accept-Encoding": "identity"},
            )
        try:
            async with self._session.get(url, allow_redirects=False) as response:
                if response.status != 200:
                    raise FileProblem("away")
                yield response.content.iter_chunked(CHUNK_BYTES)
        except (aiohttp.ClientError, OSError) as error:
            if isinstance(error, TimeoutError):
                raise FileProblem("late") from error
            raise FileProblem("away") from error

    def _is_discords(self, url: str) -> bool:
        try:
            address = URL(url)
            if address.host in DISCORD_HOSTS:
                return address.scheme == "https" and address.explicit_port in (None, 443) and not address.user
            return address.origin() == self._origin
        except ValueError:
            return False
