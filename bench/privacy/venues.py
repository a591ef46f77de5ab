"""A place search on loopback, as the trip planner asks it: it finds one place or two, whatever it is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiohttp import web


class Venues:
    """asked: what it was asked for. held: that it waits for before it answers; None: nothing."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.held: asyncio.Event | None = None
        self.on_request: Callable[[str], object] = lambda _query: None
        self.url = ""

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/search", self._search)
        self._runner = web.AppRunner(app, shutdown_timeout=0.001)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        await self._runner.cleanup()

    async def _search(self, request: web.Request) -> web.Response:
        query = request.query["q"]
        self.asked.append(query)
        self.on_request(query)
        if self.held:
            await self.held.wait()
        number = len(self.asked)
        return web.json_response([_place(number), *([_place(-number)] if number % 2 else [])])


def _place(number: int) -> dict[str, object]:
    """Its name is nobody's words: a place stays in a trip's list when whoever put it there is forgotten."""
    address = {"city": "Tokyo" if number > 0 else "Kyoto"}
    name = f"Cafe Number {abs(number)}"
    where = {"osm_type": "node", "osm_id": number, "lat": "35.0", "lon": "139.0"}
    return {**where, "name": name, "display_name": name, "address": address}
