"""The bot's own HTTP server: `/healthz`, `/privacy`, `/metrics` and the console."""

from __future__ import annotations

import asyncio
import binascii
import socket
import sys
from base64 import b64decode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.typedefs import Handler

from health import Health
from setting_values import is_loopback
from web.console.access import Password, address_of, host_of
from web.console.app import console_app
from web.metrics import Metrics
from web.privacy_page import privacy_page
from web.shown import Shown

MOST_BYTES = 16_384  # of a form
# Of a connection's receive buffer, of which Linux makes twice as many: aiohttp parses all that is in it in one go, and
# keeps what it parses, 170 MB for requests whose bodies come in pieces of one byte.
BUFFER_BYTES = 8 * 1024
STOP_SECONDS = 2.0  # for running responses when the process ends
IDLE_SECONDS = 75.0  # until a connection without a complete request is closed
MOST_CONNECTIONS = 4_096  # at once, or half of the files that the process may open, if that is less
# Nothing inline, nothing from other hosts, no frames. The referrer is kept within the console: with "no-referrer"
# browsers leave the origin out of its forms.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Site:
    """The HTTP server's content. shown: parts of the connected bot; None: it is still starting.

    password: for the console and /metrics; without it both are off, unless is_local: the server listens on loopback.
    shows_content: whether the console shows people's words.
    """

    def __init__(
        self, health: Health, *, password: str | None = None, is_local: bool = False, shows_content: bool = False
    ) -> None:
        self.health = health
        self.password = Password(password) if password else None
        self.is_local = is_local
        self.shows_content = shows_content
        self.shown: Shown | None = None
        self.metrics = Metrics(health)

    def show(self, shown: Shown) -> None:
        """Serves the pages of this bot from now on."""
        self.shown = shown
        self.metrics.show(shown)

    @property
    def has_console(self) -> bool:
        return self.is_local or self.password is not None

    def app(self) -> web.Application:
        app = web.Application(client_max_size=MOST_BYTES, middlewares=[_named_as_local] if self.is_local else [])
        app[SITE] = self
        app.cleanup_ctx.append(self.metrics.measure_lag)
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/privacy", self._privacy)
        if self.has_console:
            app.router.add_get("/metrics", self._metrics)
            app.add_subapp("/console", console_app(self, password=self.password, shows_content=self.shows_content))
        app.on_response_prepare.append(_with_headers)
        return app

    @asynccontextmanager
    async def served(self, port: int, host: str = "") -> AsyncIterator[str]:
        """Listens while the context lasts, and yields the address. host: empty: all interfaces. Raises OSError."""
        runner = web.AppRunner(
            self.app(), access_log=None, shutdown_timeout=STOP_SECONDS, keepalive_timeout=IDLE_SECONDS
        )
        await runner.setup()
        server = None
        try:
            # One socket for IPv4 and IPv6, so that any free port is one port.
            dual = not host and socket.has_dualstack_ipv6()
            is_six = dual or ":" in host
            listening = socket.create_server(
                (host, port), family=socket.AF_INET6 if is_six else socket.AF_INET, dualstack_ipv6=dual
            )
            server = await asyncio.get_running_loop().create_server(_bounded(runner), sock=listening)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)  # also of its connections
            yield f"http://{f'[{host}]' if ':' in host else host or 'localhost'}:{listening.getsockname()[1]}"
        finally:
            if server:
                server.close()
            await runner.cleanup()

    async def _healthz(self, _request: web.Request) -> web.Response:
        problem = self.health.problem()
        return web.Response(text=problem or "ok", status=503 if problem else 200)

    async def _privacy(self, _request: web.Request) -> web.Response:
        if self.shown is None:
            raise web.HTTPServiceUnavailable(text="The bot is starting: try again in a few seconds.")
        return privacy_page(self.shown.practices)

    async def _metrics(self, request: web.Request) -> web.Response:
        given, address = _sent_password(request.headers.get("Authorization", "")), address_of(request)
        if self.password:
            if seconds := self.password.seconds_to_wait(address):
                raise web.HTTPTooManyRequests(headers={"Retry-After": str(seconds)})
            if not (given and self.password.accepts(given, address)):
                raise web.HTTPUnauthorized(headers={"WWW-Authenticate": 'Basic realm="metrics"'})
        return self.metrics.response(request.headers.get("Accept", ""))


def _bounded(runner: web.AppRunner) -> Callable[[], asyncio.Protocol]:
    """A factory of protocols for connections, with a limit of their number and of the time without a request.

    Beyond the limit the oldest connection is closed, since a new one may be the host's health check.
    """

    most = MOST_CONNECTIONS
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 - not on Windows

        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = most if files == resource.RLIM_INFINITY else min(most, files // 2)

    def answering() -> asyncio.Protocol:
        server = runner.server
        if server is None:  # it is being closed
            return asyncio.Protocol()
        if len(known := server.connections) >= most:
            oldest = next((one.transport for one in known if one.transport and not one.transport.is_closing()), None)
            if oldest:
                oldest.abort()
        protocol = server()
        protocol.keep_alive(True)  # else there is no timeout for the first request
        return protocol

    return answering


def _sent_password(authorization: str) -> str:
    """The password in an Authorization header: a bearer token, or basic authentication with any user. Empty: none."""
    scheme, _, sent = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return sent.strip()
    try:
        user_and_password = b64decode(sent, validate=True).decode() if scheme.lower() == "basic" else ""
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""
    return user_and_password.partition(":")[2]


SITE = web.AppKey("site", Site)


@web.middleware
async def _named_as_local(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuses other host names, against DNS rebinding: another site can let its name resolve to this machine."""
    if not is_loopback(host_of(request)):
        raise web.HTTPMisdirectedRequest(
            text="This page is open only on the machine that it runs on: use localhost in the address."
        )
    return await handler(request)


async def _with_headers(_request: web.Request, response: web.StreamResponse) -> None:
    response.headers.pop("Server", None)  # it names versions
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
