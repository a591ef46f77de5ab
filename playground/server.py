"""The playground: a Discord on loopback, for newcomers without a token, for tests, and for load tests.

`Playground` connects world, gateway, REST and page on one port. Through it tests see connections and requests, and
inject faults.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self, TypeVar

from aiohttp import web

from playground.changes import Changes
from playground.commands import Commands
from playground.endpoints import Endpoints
from playground.faults import Faults
from playground.gateway import Gateway, Session
from playground.interactions import Interaction, Interactions
from playground.limits import Limiter, Limits, Nonces
from playground.model import Clock, Message, Wire
from playground.page import Page, guard
from playground.people import People
from playground.posting import Posting
from playground.rest import Rest, Sent
from playground.scenes import Stage
from playground.world import World

T = TypeVar("T")
_MAX_REQUEST = 32 * 1024 * 1024
_STOP_SECONDS = 0.2  # for handlers that an injected fault still delays


class Playground(People):
    """A guild with channels, people and the bot that logs in with `token`; `add_guild` adds more guilds.

    `port`: 0: any free one. `message_content`: whether the application has the message content intent.
    `shards`: how many the bot must use; None: it is told one, and may use any number.
    `max_concurrency`: how many of them may IDENTIFY in 5 s; None: the bot is told one, and there is no limit.
    `history`: number of messages that a channel keeps; `replay`: number of events that a session keeps for RESUME.
    `newest_first`: False: histories are oldest first, as of some servers other than Discord's.
    `decisions`: whether the page shows the bot's decisions; False: the bot runs elsewhere and does not `annotate`.
    `clock`: monotonic (limits, nonces, interaction times); `wall`: for messages; both in seconds.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        token: str = "playground",  # noqa: S107 - no secret: the port is open to everybody
        channels: Sequence[str] = ("general", "help", "random"),
        people: Sequence[str] = ("Ada", "Ben", "Chloe"),
        bot_name: str = "Parley",
        message_content: bool = True,
        newest_first: bool = True,
        decisions: bool = True,
        shards: int | None = None,
        max_concurrency: int | None = None,
        history: int = 5_000,
        replay: int = 10_000,
        limits: Limits | None = None,
        clock: Clock = time.monotonic,
        wall: Clock = time.time,
    ) -> None:
        world = World(channels, people, bot_name=bot_name, history=history, now=wall)
        posting = Posting(world, Nonces(clock))
        self._changes = Changes()
        super().__init__(world, posting, Commands(world), Interactions(world, posting, clock, self._changes))
        self.host, self.port, self.token = host, port, token
        self.faults = Faults()
        self._gateway = Gateway(
            world,
            token,
            message_content=message_content,
            shards=shards,
            max_concurrency=max_concurrency,
            replay=replay,
            clock=clock,
            changes=self._changes,
        )
        self._stage = Stage(self, self._changes)
        self._page = Page(self, self._gateway, self._stage, decisions)
        self._rest = Rest(token, Limiter(limits or Limits(), clock), self.faults, self._changes, wall)
        self._endpoints = Endpoints(
            world, posting, self.commands, self.interactions, self._gateway, message_content, newest_first
        )
        self._runner: web.AppRunner | None = None
        for listener in (self._gateway.dispatch, self._page.publish, lambda _: self.notify()):
            world.listen(listener)

    # Life

    async def start(self) -> None:
        """Listen. OSError if the port is taken."""
        app = web.Application(middlewares=[guard(self.host)], client_max_size=_MAX_REQUEST)
        app.router.add_get("/gateway", self._gateway.handle)
        app.router.add_get("/gateway/", self._gateway.handle)
        app.add_subapp("/api/v10", self._rest.app(self._endpoints.routes()))
        app.router.add_routes(self._page.routes())
        app.on_shutdown.append(self._hang_up)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=_STOP_SECONDS)
        await self._runner.setup()
        await web.TCPSite(self._runner, self.host, self.port).start()
        self.port = self._runner.addresses[0][1]
        self._gateway.url = self.gateway_url
        self.posting.files_url = f"{self.url}/attachments"

    async def _hang_up(self, _: web.Application) -> None:
        self._gateway.disconnect(1001)
        self._page.close()

    async def stop(self) -> None:
        """Close every connection and the port."""
        await self._stage.close()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    # Addresses

    @property
    def url(self) -> str:
        """Address of the page, and the value for discord.py's Asset.BASE."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def api_base(self) -> str:
        return f"{self.url}/api/v10"

    @property
    def gateway_url(self) -> str:
        return f"{self.url.replace('http', 'ws', 1)}/gateway"

    # What the bot did

    @property
    def requests(self) -> deque[Sent]:
        """The last 2,000 requests of the bot, oldest first."""
        return self._rest.requests

    @property
    def sessions(self) -> list[Session]:
        """The bot's sessions, connected or resumable."""
        return list(self._gateway.sessions.values())

    @property
    def connected(self) -> bool:
        return self._gateway.connected

    @property
    def connected_shards(self) -> list[int]:
        """The shards with a connected session, lowest first. A shard that two processes have is listed twice."""
        return sorted(session.shard[0] for session in self.sessions if session.connection)

    @property
    def identifies(self) -> tuple[int, int]:
        """Number of IDENTIFYs that were accepted, and of those refused because they came too early."""
        return self._gateway.identified, self._gateway.refused

    async def wait_for(self, predicate: Callable[[], T], timeout: float = 5.0) -> T:  # noqa: ASYNC109 - plain for callers
        """The predicate's first true value. It is called now and after each change. TimeoutError after `timeout` s."""
        async with asyncio.timeout(timeout):
            return await self._changes.wait_for(predicate)

    def notify(self) -> None:
        """Call all waiting predicates again, after a change outside of the playground."""
        self._changes.notify()

    async def reply_to(self, interaction: Interaction, timeout: float = 5.0) -> Message:  # noqa: ASYNC109 - as above
        """Waits for the bot's response to an interaction, beyond "thinking"."""
        answer = await self.wait_for(lambda: interaction.reply, timeout)
        assert answer is not None  # noqa: S101 - wait_for returns true values only
        return answer

    async def suggested(self, interaction: Interaction, timeout: float = 5.0) -> list[Wire]:  # noqa: ASYNC109 - as above
        """Waits for the bot's autocomplete choices."""
        await self.wait_for(lambda: interaction.suggested is not None, timeout)
        return interaction.suggested or []

    async def form_of(self, interaction: Interaction, timeout: float = 5.0) -> Wire:  # noqa: ASYNC109 - as above
        """Waits for the form that the bot shows in response to an interaction."""
        form = await self.wait_for(lambda: interaction.form, timeout)
        assert form is not None  # noqa: S101 - wait_for returns true values only
        return form

    def annotate(self, message_id: int, *, respond: bool, reason: str, text: str) -> None:
        """Show the bot's decision beside a message on the page. `text`: one line for people."""
        self._page.annotate(message_id, respond=respond, reason=reason, text=text)

    # Gateway faults

    # Each concerns all connections, or those of one shard.

    def reconnect(self, shard_id: int | None = None) -> None:
        """Ask to reconnect (op 7)."""
        self._gateway.ask_reconnect(shard_id)

    def invalidate(self, *, resumable: bool, shard_id: int | None = None) -> None:
        """Invalidate the connected sessions (op 9)."""
        self._gateway.invalidate(resumable=resumable, shard_id=shard_id)

    def disconnect(self, code: int = 4000, shard_id: int | None = None) -> None:
        """Close with this code."""
        self._gateway.disconnect(code, shard_id)

    def cut(self, shard_id: int | None = None) -> None:
        """Abort the TCP connections."""
        self._gateway.cut(shard_id)

    def withhold_ready(self, shard_id: int, withheld: bool = True) -> None:
        """From now on accept a shard's IDENTIFYs without sending READY. withheld=False: send it again."""
        (self._gateway.unready.add if withheld else self._gateway.unready.discard)(shard_id)

    def duplicate(self, message: Message) -> None:
        """Send a message's MESSAGE_CREATE once more, as may happen after a RESUME."""
        self.world.repeat(message)
