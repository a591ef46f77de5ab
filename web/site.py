"""The bot's own HTTP: `/healthz`, and what is shown of the bot of the moment."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from health import Health
from web.shown import Shown


class Site:
    """What is served. shown: what there is to see of the bot that is connected; none before the first one is made."""

    def __init__(self, health: Health) -> None:
        self.health = health
        self.shown: Shown | None = None

    def app(self) -> web.Application:
        app = web.Application()
        app[SITE] = self
        app.router.add_get("/healthz", self._healthz)
        return app

    @asynccontextmanager
    async def served(self, port: int, host: str = "") -> AsyncIterator[str]:
        """Listens; the address is given. host: empty for all interfaces. Raises OSError."""
        runner = web.AppRunner(self.app(), access_log=None)
        await runner.setup()
        try:
            # One socket for IPv4 and IPv6, so that any free port is one port.
            dual = not host and socket.has_dualstack_ipv6()
            listening = socket.create_server(
                (host, port), family=socket.AF_INET6 if dual else socket.AF_INET, dualstack_ipv6=dual
            )
            await web.SockSite(runner, listening).start()
            yield f"http://{host or 'localhost'}:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()

    async def _healthz(self, _request: web.Request) -> web.Response:
        problem = self.health.problem()
        return web.Response(text=problem or "ok", status=503 if problem else 200)


SITE = web.AppKey("site", Site)
