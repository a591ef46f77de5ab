"""The bot's own HTTP: `/healthz`, `/metrics`, and what is shown of the bot of the moment."""

from __future__ import annotations

import binascii
import hmac
import socket
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from health import Health
from web.metrics import Metrics
from web.shown import Shown


class Site:
    """What is served. shown: what there is to see of the bot that is connected; none before the first one is made.

    password: of whoever runs the bot; without it only /healthz is served, unless is_local: it listens on loopback.
    """

    def __init__(self, health: Health, *, password: str | None = None, is_local: bool = False) -> None:
        self.health = health
        self.shown: Shown | None = None
        self.metrics = Metrics(health)
        self.is_local = is_local
        self._password = password

    def show(self, shown: Shown) -> None:
        """Shows this bot from now on."""
        self.shown = shown
        self.metrics.show(shown)

    def app(self) -> web.Application:
        app = web.Application()
        app[SITE] = self
        app.cleanup_ctx.append(self.metrics.measure_lag)
        app.router.add_get("/healthz", self._healthz)
        if self.is_local or self._password:
            app.router.add_get("/metrics", self._metrics)
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

    async def _metrics(self, request: web.Request) -> web.Response:
        if not self.is_local and not self.is_password(_sent_password(request.headers.get("Authorization", ""))):
            raise web.HTTPUnauthorized(headers={"WWW-Authenticate": 'Basic realm="metrics"'})
        return self.metrics.response(request.headers.get("Accept", ""))

    def is_password(self, given: str) -> bool:
        """Whether this is the password, in a time that does not tell how much of it is right."""
        wanted = (self._password or "").encode()
        return hmac.compare_digest(given.encode(errors="replace"), wanted) and bool(wanted)


def _sent_password(authorization: str) -> str:
    """The password of a header: a bearer's token, or basic authentication's, with any user. Empty for any other."""
    scheme, _, sent = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return sent.strip()
    try:
        user_and_password = b64decode(sent, validate=True).decode() if scheme.lower() == "basic" else ""
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""
    return user_and_password.partition(":")[2]


SITE = web.AppKey("site", Site)
