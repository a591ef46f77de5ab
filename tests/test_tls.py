"""tls.py: what the clients of foreign servers offer when a connection begins."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import httpx2
import pytest
from aiohttp import ClientError

from agents.bounded_client import bound_http
from agents.ums_wire import Remote
from miniapps.venues import NominatimVenues

SLOW = {0x009E, 0x009F, 0x0067, 0x006B}  # of RFC 5288 and RFC 5246, with a prime that the server names


async def by_models_and_mcp(url: str) -> None:
    async with bound_http(httpx2.AsyncClient(), 1_000, 1_000) as http:
        await http.get(url)


async def by_a_remote_agent(url: str) -> None:
    remote = Remote(url, {}, connect_seconds=5, stall_seconds=5)
    try:
        await remote.begin()
    finally:
        await remote.aclose()


async def by_venues(url: str) -> None:
    await NominatimVenues(url, "parley").find("x", 1)


@pytest.mark.parametrize("connect", [by_models_and_mcp, by_a_remote_agent, by_venues])
async def test_no_cipher_is_offered_whose_handshake_takes_long(connect: Callable[[str], Awaitable[None]]) -> None:
    offered: set[int] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hello = await reader.read(4_096)
        at = 43 + 1 + hello[43]  # behind the headers, version, random number and session id
        suites = hello[at + 2 : at + 2 + int.from_bytes(hello[at : at + 2])]
        offered.update(int.from_bytes(suites[i : i + 2]) for i in range(0, len(suites), 2))
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with listening:
        with suppress(httpx2.HTTPError, ClientError):
            await connect(f"https://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
    assert offered
    assert not offered & SLOW
