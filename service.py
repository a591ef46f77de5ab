"""Runs the bot as a service: signals, reconnecting, health over HTTP, giving up, and the playground around it."""

from __future__ import annotations

import asyncio
import os
import signal
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol

import aiohttp
import discord
import structlog
from discord.backoff import ExponentialBackoff

from activity import Observer
from decider import LoggedDecision
from discord_io.discord_wire import UNREADABLE
from discord_io.sharded_client import OTHER_FORM, ask_gateway
from health import Health, watch_gateway, watch_loop
from persistence.lock import InUseError
from shards import Sharded
from storage.store import StoreError, WrongKeyError
from web.shown import Shown
from web.site import Site

if TYPE_CHECKING:
    from cluster.keeper import Keeper
    from playground.server import Playground

log = structlog.get_logger()

INTENTS = discord.Intents(
    guilds=True, guild_messages=True, dm_messages=True, guild_reactions=True, guild_typing=True, message_content=True
)
discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False  # it never joins a voice channel
LOOPBACK = "127.0.0.1"
MAX_RETRY_SECONDS = 60.0
FAULT_PAUSE_SECONDS = 90.0  # keeps restarts by the host below 1,000 IDENTIFYs a day
TOKEN_REFUSED_CODE = 4004  # Discord: the token sent with IDENTIFY is wrong
REFUSED = "DISCORD_TOKEN was refused by Discord: copy it again from the developer portal."
CONNECTION_FAILURES = (discord.HTTPException, discord.GatewayNotFound, aiohttp.ClientError, OSError)


class RefusedError(Exception):
    """A problem that the owner must fix before the bot can run. Its text is one sentence."""


class Bot(Sharded, Protocol):
    """What is used of the bot here."""

    @property
    def shown(self) -> Shown: ...

    async def start(self, token: str) -> None: ...

    async def shut_down(self, released: Callable[[int], Awaitable[None]] | None = None) -> None: ...


class MakeBot(Protocol):
    """Builds a bot for one connection."""

    def __call__(self, *, health: Health, intents: discord.Intents) -> Bot: ...


class Ending(Enum):
    """How a connection to Discord ended by itself."""

    CONTENT_REFUSED = auto()
    UNREACHABLE = auto()
    UNSTORED = auto()
    FAULT = auto()


UNREACHED = {Ending.UNREACHABLE: "discord_unreachable", Ending.UNSTORED: "store_unreachable"}


async def serve(
    make_bot: MakeBot,
    token: str,
    port: int | None,
    *,
    password: str | None = None,
    is_local: bool = False,
    shows_content: bool = False,
    keeper: Keeper | None = None,
) -> int:
    """Keeps a bot connected. Returns 0 after SIGTERM or SIGINT, 1 when only a restart can help. Raises RefusedError.

    password, is_local, shows_content: as of Site. keeper: of the shards, where there are several processes; raises
    HeldError.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    health = Health()
    site = Site(health, password=password, is_local=is_local, shows_content=shows_content)
    loop_watch = watch_loop(health, _exit_at_once)
    stopping = asyncio.create_task(stop.wait())
    gateway_lost = asyncio.create_task(watch_gateway(health))
    try:
        async with _http(port, site):
            return await _keep_connected(make_bot, token, site, stopping, gateway_lost, keeper)
    finally:
        loop_watch.set()
        stopping.cancel()
        gateway_lost.cancel()


@asynccontextmanager
async def sharing(redis_url: str, count: int | None, ids: Collection[int]) -> AsyncIterator[Keeper]:
    """The keeper of this process' shards, as one of several processes.

    count, ids: SHARD_COUNT and SHARD_IDS. Raises InUseError where other processes have these shards.
    """
    from cluster.connection import Cluster  # noqa: PLC0415 - only who sets REDIS_URL needs its client
    from cluster.keeper import HeldError, Keeper  # noqa: PLC0415

    keeper = Keeper(Cluster(redis_url), count, ids)
    try:
        async with keeper.renewing():
            yield keeper
    except HeldError as error:
        raise InUseError(str(error)) from None


async def _keep_connected(
    make_bot: MakeBot,
    token: str,
    site: Site,
    stopping: asyncio.Task[bool],
    gateway_lost: asyncio.Task[None],
    keeper: Keeper | None = None,
) -> int:
    intents, backoff = INTENTS, ExponentialBackoff()
    while not stopping.done():
        if keeper:
            first = asyncio.create_task(_first_shard(keeper, token, site.health))
            await asyncio.wait({first, stopping, gateway_lost}, return_when=asyncio.FIRST_COMPLETED)
            if not first.done():
                first.cancel()
                return 0 if stopping.done() else _given_up(site.health.problem())
            first.result()
        bot = make_bot(health=site.health, intents=intents)
        site.show(bot.shown)
        connection = asyncio.create_task(_connect(bot, token, keeper))
        try:
            await asyncio.wait({connection, stopping, gateway_lost}, return_when=asyncio.FIRST_COMPLETED)
            ending = connection.result() if connection.done() else None
            problem = site.health.problem()  # afterwards no shard is connected
        finally:
            if keeper and stopping.done():
                await keeper.leave()
                await bot.shut_down(keeper.release)
            else:
                await bot.shut_down()
            connection.cancel()
        if stopping.done():
            return 0
        if gateway_lost.done():
            return _given_up(problem)
        if ending is Ending.CONTENT_REFUSED and intents.message_content:
            log.warning(
                "message_content_refused",
                meaning="the bot sees only messages that mention it or reply to it, and cannot follow a conversation",
                remedy="switch on MESSAGE CONTENT INTENT for the bot in Discord's developer portal, and restart",
            )
            intents = discord.Intents(**dict(INTENTS))
            intents.message_content = False
        elif ending in UNREACHED:
            seconds = min(backoff.delay(), MAX_RETRY_SECONDS)
            log.warning(UNREACHED[ending], retry_in_s=round(seconds, 1))
            await asyncio.wait({stopping, gateway_lost}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        else:
            log.error("giving_up", why="the gateway refused the connection", exit_in_s=FAULT_PAUSE_SECONDS)
            if keeper:
                await keeper.give_back()
            await asyncio.wait({stopping}, timeout=FAULT_PAUSE_SECONDS)
            return 1
    return 0


def _given_up(why: str | None) -> int:
    log.error("giving_up", why=why)
    return 1


async def _first_shard(keeper: Keeper, token: str, health: Health) -> None:
    """Waits until this process has a shard. Raises RefusedError for a refused token, and HeldError."""
    backoff = ExponentialBackoff()
    while True:
        try:
            async with discord.Client(intents=INTENTS) as client:
                await client.login(token)
                count, max_concurrency = await ask_gateway(client)
                bot_id = client.user.id if client.user else 0
            break
        except discord.LoginFailure:
            raise RefusedError(REFUSED) from None
        except (*CONNECTION_FAILURES, *UNREADABLE) as error:
            seconds = min(backoff.delay(), MAX_RETRY_SECONDS)
            log.warning("discord_unreachable", detail=_in_words(error), retry_in_s=round(seconds, 1))
            await asyncio.sleep(seconds)
    keeper.expects(count, max_concurrency, bot_id)
    if not keeper.shards.ids:
        health.expects(())  # it waits for a free shard, and is healthy
    await keeper.first()


async def _connect(bot: Bot, token: str, keeper: Keeper | None = None) -> Ending:
    """Runs the bot until its connection ends. Raises RefusedError for a refused token or a wrong STATE_KEY."""
    try:
        async with keeper.taking(bot) if keeper else nullcontext():
            await bot.start(token)
    except discord.PrivilegedIntentsRequired:
        return Ending.CONTENT_REFUSED
    except (discord.LoginFailure, discord.ConnectionClosed) as error:
        if isinstance(error, discord.LoginFailure) or error.code == TOKEN_REFUSED_CODE:
            raise RefusedError(REFUSED) from None
        log.error("gateway_closed", code=error.code, detail=str(error))
    except WrongKeyError as error:
        raise RefusedError(str(error)) from None
    except Exception as error:
        # If the very first connection fails, discord.py raises another error on top, as it never had one.
        failure = error if isinstance(error, CONNECTION_FAILURES) else error.__context__
        if isinstance(failure, StoreError):
            log.warning("store_failed", detail=str(failure))
            return Ending.UNSTORED
        if isinstance(failure, CONNECTION_FAILURES):
            log.warning("connection_failed", server=discord.http.Route.BASE, detail=_in_words(failure))
        elif _is_of_another_form(error):
            log.warning("connection_failed", detail=_in_words(error))
        else:
            # The outermost edge: an error of the bot's own ends this connection, and not the process.
            log.exception("connection_broken")
        return Ending.UNREACHABLE
    return Ending.FAULT


def _is_of_another_form(error: Exception) -> bool:
    """Whether discord.py raised it on data that is not in Discord's form."""
    *_, (innermost, _) = traceback.walk_tb(error.__traceback__)
    return isinstance(error, UNREADABLE) and innermost.f_globals["__name__"].startswith("discord.")


def _in_words(failure: Exception) -> str:
    said = f"{type(failure).__name__}: {failure}"
    return f"{OTHER_FORM} ({said})" if isinstance(failure, UNREADABLE) else said


def _exit_at_once() -> None:
    """Ends the process at once: with the event loop blocked, nothing else can be done."""
    log.critical("event_loop_stuck")
    os._exit(1)


@asynccontextmanager
async def _http(port: int | None, site: Site) -> AsyncIterator[None]:
    """The bot's own HTTP, if a port is set."""
    if port is None:
        yield
        return
    async with AsyncExitStack() as stack:
        try:
            address = await stack.enter_async_context(site.served(port, LOOPBACK if site.is_local else ""))
        except OSError as error:
            raise RefusedError(f"PORT {port} cannot be used ({_reason(error)}): use another, or 0 for any.") from None
        log.info("listening", address=address)
        if site.is_local:
            print(f"Console: {address}/console", flush=True)  # noqa: T201
        elif not site.has_console:
            log.info("console_off", remedy="set CONSOLE_PASSWORD to see at /console how the bot is doing")
        yield


def _reason(error: OSError) -> str:
    """The system's own words: asyncio puts its own and the address before them."""
    return str(error.strerror).rpartition(": ")[2]


@asynccontextmanager
async def playground(host: str, port: int) -> AsyncIterator[Playground]:
    """A Discord on loopback with a chat page. Raises RefusedError where its host or port cannot be used."""
    from playground.model import FORUM  # noqa: PLC0415 - a bot in service never needs it
    from playground.server import Playground  # noqa: PLC0415

    loopback = Playground(host=host, port=port)
    projects = loopback.add_category("Projects")
    loopback.add_channel("website", "A channel in a category, to set what holds in either", category=projects)
    loopback.add_role("Helpers", members=[loopback.person("Ben")])
    loopback.add_role("Managers", "manage_guild", "manage_channels", members=[loopback.person("Chloe")])
    loopback.add_channel("questions", "A forum: each post is a thread of its own", type=FORUM, tags=("cooking", "code"))
    try:
        await loopback.start()
    except OSError as error:
        raise RefusedError(
            f"The playground cannot listen on {host}:{port} ({_reason(error)}): stop what else listens there, or set "
            "PLAYGROUND_PORT to a free port, or to 0 for any. PLAYGROUND_HOST must be an address of this machine."
        ) from None
    print(f"Open {loopback.url} in a browser: a Discord on this machine, with the bot in it.", flush=True)  # noqa: T201
    try:
        yield loopback
    finally:
        await loopback.stop()


class DecisionsOnPage(Observer):
    """Shows each decision beside its message on the chat page."""

    def __init__(self, loopback: Playground) -> None:
        self._loopback = loopback

    def decided(self, entry: LoggedDecision) -> None:
        decision, says = entry.decision, entry.decision.in_words()
        self._loopback.annotate(entry.message_id, respond=decision.respond, reason=decision.reason, text=says)
