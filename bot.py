"""Discord edge and entry point: one short method for each event, create_bot(), and main()."""

from __future__ import annotations

import gc

gc.disable()  # until all is imported, which takes a seventh less time so

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Collection
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import discord
import structlog
import yarl

from activity import FaultKind
from agents.models import DEMO, UnusableModelError
from agents.tracing import traced_calls
from background import Background, every
from commands import answer_when_open, sync
from config import SettingError, Settings, load_settings
from conversation import Unwelcome
from decider import FollowupTier, LoggedDecision, load_followup
from discord_io.discord_wire import request_timeouts
from discord_io.incoming_messages import replied_to_id
from discord_io.sharded_client import ShardedClient
from doctor.at_start import look_around, report
from doctor.command import doctor_command
from environment import check_token, misspelt, secrets_of
from health import Health
from owner import apart_in_playground, where
from persistence.lock import InUseError, in_use
from persistence.move_command import move_command
from persistence.open_store import check_stores
from persistence.sessions_command import sessions_command
from service import INTENTS, RefusedError, playground, serve, sharing, shown_in
from setting_values import is_loopback
from shards import DIRECT, Shards
from storage.store import StoreError, WrongKeyError
from web.logs import configure_logging
from web.shown import Shown
from wiring import Parts

if TYPE_CHECKING:
    from cluster.connection import Cluster

gc.enable()

log = structlog.get_logger()

THUMBS_DOWN = "👎"
SWEEP_SECONDS = 15.0
REPORT_SECONDS = 3_600.0
DRAIN_SECONDS = 25.0
LEAVE_SECONDS = 0.2
ON_WHAT_IS_KEPT = {"sessions": sessions_command, "move": move_command}


class Parley(ShardedClient):
    """The bot. Its conversations, turns and limits are its own; several can live in one process."""

    def __init__(
        self,
        settings: Settings,
        *,
        health: Health | None = None,
        listener: Callable[[LoggedDecision], None] | None = None,
        followup: FollowupTier | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        is_playground: bool = False,
        shards: Shards | None = None,
        cluster: Cluster | None = None,
        **client_options: Any,
    ) -> None:
        ours = {
            "intents": INTENTS,
            "allowed_mentions": discord.AllowedMentions.none(),
            # Discord: seconds. A rate limit beyond that is an outage; without this the library waits for hours.
            "max_ratelimit_timeout": 60.0,
            "http_trace": (trace := request_timeouts()),
            # What was missed is taken up once no server has been told of for so long; the library waits 2 s.
            "guild_ready_timeout": 1.0,
        }
        if cluster:  # nothing is sent to Discord that another process may be sending by now
            trace.on_request_start.insert(0, cluster.once_sure)
        options = {**ours, **client_options}
        self._shards = shards = shards or Shards(options.get("shard_count"), options.get("shard_ids"))
        of_shards = {"shard_count": shards.count, "shard_ids": None if shards.are_all else shards.ids}
        super().__init__(health or Health(), **{**options, **of_shards})
        self._settings = settings
        self._now = clock
        self._is_playground = is_playground
        self._background = Background(self._failed)
        self._changes: list[asyncio.Task[None]] = []  # those of what is kept, which nobody asked for
        self._unready: set[int] = set()  # the shards that are connected and have not all their servers yet
        self._models = AsyncExitStack()
        self.parts = parts = Parts(
            settings,
            self,
            health=self.health,
            listener=listener,
            followup=followup,
            clock=clock,
            shards=shards,
            cluster=cluster,
        )
        self.tree = parts.tree
        self.snapshots, self.privacy = parts.snapshots, parts.privacy
        self.lifecycle, self.catch_up = parts.lifecycle, parts.catch_up
        self.decisions, self.learning, self.decision_log = parts.decisions, parts.learning, parts.decision_log
        self.conversations, self.states, self.prompts = parts.conversations, parts.states, parts.prompts
        self.turns, self.bursts, self.proactive_offers = parts.turns, parts.bursts, parts.proactive_offers

    @property
    def shown(self) -> Shown:
        return self.parts.shown

    # Its life

    async def setup_hook(self) -> None:
        self._shards.count = await self.ask_count()
        self.health.expects(self._shards.ids)
        await self.parts.lifecycle.take(self._shards.ids)
        for connection in self.parts.connections:
            await self._models.enter_async_context(connection)
        self.decision_log.start()
        for change in (
            self.prompts.keep(),
            every(SWEEP_SECONDS, self.parts.sweep),
            self.proactive_offers.keep(),
            self.lifecycle.expire(),
        ):
            self._changes.append(self._background.start(change))
        for work in (
            every(REPORT_SECONDS, self._report),
            self.lifecycle.beat(),
            self.parts.other_process.keep_looking(),
            self.keep_ready(),
            self._look_around(),
            *([self.parts.notices.keep()] if self.parts.notices else []),
            *([self.parts.accounts.keep()] if self.parts.accounts else []),
            *([self.parts.requests.keep()] if self.parts.requests else []),
        ):
            self._background.start(work)
        self._sync(self._shards.ids)

    def _sync(self, shard_ids: Collection[int]) -> None:
        if DIRECT in shard_ids:  # of all processes one tells Discord of the commands
            self._background.start(sync(self.tree))

    async def add_shard(self, shard_id: int) -> None:
        """Goes on with what is kept of a shard that nobody has. Returns once it has IDENTIFYed."""
        self._shards.add(shard_id)
        await self.lifecycle.take([shard_id])
        self._sync([shard_id])
        await self.connect_shard(shard_id)

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:  # noqa: ARG002
        cluster = self.parts.cluster
        await (cluster.may_identify(shard_id or 0) if cluster else super().before_identify_hook(shard_id))

    async def _look_around(self) -> None:
        """Says what is wrong, once it is ready: to read all the prices that there are takes 0.1 s."""
        await self.wait_until_ready()
        await asyncio.to_thread(self.parts.warn_unpriced)
        report(await look_around(self._settings, self))

    async def shut_down(self, released: Callable[[int], Awaitable[None]] | None = None) -> None:
        """Finishes what is being answered, tells those cut off, and closes.

        released: told of each shard as soon as nothing is answered there any more, and all that is kept of it is
        stored: another process may go on with it.
        """
        await self.bursts.end()
        self.parts.gate.is_shutting_down = True
        if released:
            self._background.start(self._leave(released))
        await asyncio.gather(self.turns.drain(DRAIN_SECONDS), self.parts.private_answers.drain(DRAIN_SECONDS))
        await self.close()
        if released:
            for shard_id in self._shards.ids:
                await released(shard_id)
        self._report()
        log.info("stopped", ignored_messages=self.decisions.ignored_count)

    async def close(self) -> None:
        await self._background.end()  # no request of theirs outlives the session
        self.bursts.drop()
        try:
            await super().close()
            for shard_id in self._shards.ids:
                self.health.gateway_down(shard_id)
            await self._models.aclose()
        finally:
            if self.parts.accounts:
                await self.parts.accounts.close()
            await self.decision_log.close()
            self.parts.stored_counts.store()
            await self.snapshots.close()

    async def _leave(self, released: Callable[[int], Awaitable[None]]) -> None:
        """Gives up all shards but the last, with which is stored what is kept of the process."""
        for change in self._changes:  # of channels that soon are another process'
            change.cancel()
        while True:
            for shard_id in [one for one in self._shards.ids if not self._is_busy(one)]:
                await self.disconnect_shard(shard_id)
                if self.parts.requests:
                    await self.parts.requests.leave([shard_id])
                is_stored = await self.snapshots.settled()
                if is_stored and not self._is_busy(shard_id) and len(self._shards.ids) > 1:
                    self._shards.drop(shard_id)
                    await self.snapshots.settled()  # also of the process, with another shard
                    await released(shard_id)
            await asyncio.sleep(LEAVE_SECONDS)

    def _is_busy(self, shard_id: int) -> bool:
        return self.catch_up.of(shard_id).is_running or shard_id in map(self._shards.of, self.turns.busy_guilds())

    def _failed(self, code: str) -> None:
        says = "An error of the bot's own was met, and it goes on: its log has the details."
        self.parts.activity.fault(FaultKind.INTERNAL, code, says)

    async def on_error(self, event_method: str, /, *_: Any, **__: Any) -> None:
        log.error("event_broken", during=event_method, exc_info=sys.exception())
        self._failed("event_broken")

    def _report(self) -> None:
        """Logs document 000's figures, and what began no conversation since the last time."""
        log.info("metrics", **self.states.get_metrics(), not_started=self.parts.records.not_started())

    # What Discord tells us

    async def on_shard_connect(self, shard_id: int) -> None:
        # Not on_shard_ready, which comes a second later even where the line has dropped since.
        self.health.gateway_up(shard_id)
        self.catch_up.of(shard_id).expect()
        self._unready.add(shard_id)
        self._background.start(self.parts.other_process.connected(shard_id))

    async def on_shard_ready(self, shard_id: int) -> None:
        self._catch_up(shard_id)

    async def on_ready(self) -> None:
        log.info("playground ready" if self._is_playground else "ready", bot=str(self.user), guilds=len(self.guilds))
        for shard_id in [*self._unready]:  # the library drops that of one where another connects anew in that moment
            self._catch_up(shard_id)

    async def on_guild_available(self, guild: discord.Guild) -> None:
        self.parts.places.rearranged(guild.id)
        if self.catch_up.of(guild.shard_id).available():
            self._catch_up(guild.shard_id)

    def _catch_up(self, shard_id: int) -> None:
        self._unready.discard(shard_id)
        guild_ids = {guild.id for guild in self.guilds if guild.shard_id == shard_id}
        for guild_id in guild_ids:
            self.parts.places.rearranged(guild_id)
        self.parts.stored_counts.connected(shard_id, guild_ids)
        self._background.start(self.lifecycle.catch_up(shard_id, guild_ids))

    async def on_shard_resumed(self, shard_id: int) -> None:
        self.health.gateway_up(shard_id)
        self.parts.other_process.resumed(shard_id)
        log.info("resumed", shard=shard_id)

    async def on_shard_disconnect(self, shard_id: int) -> None:
        self.health.gateway_down(shard_id)
        self.parts.other_process.disconnected(shard_id)

    async def on_message(self, message: discord.Message) -> None:
        channel_id, answered_id = message.channel.id, replied_to_id(message)
        guild_id = message.guild.id if message.guild else 0
        if self.user and message.author.id == self.user.id:
            self.parts.other_process.overheard(message)
            self.turns.overheard(channel_id, message.id, message.content, answered_id)
            return
        self.parts.reader.count(message)
        if answered_id and not self.parts.reader.hears(message):
            self.proactive_offers.dealt_with(channel_id, answered_id)
        if self.parts.gate.is_closed(channel_id, guild_id):
            await self.parts.gate.wait(channel_id, guild_id)
        await self.parts.inbox.take(message, hears_out=True)

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        if interaction.type is discord.InteractionType.modal_submit:  # clicks go to whom answer_clicks() names
            await answer_when_open(self.parts.gate, interaction, self.parts.sent_form)

    async def on_raw_typing(self, payload: discord.RawTypingEvent) -> None:
        self.states.typing(payload.channel_id, payload.user_id)
        self.bursts.typing(payload.channel_id, payload.user_id)

    async def on_raw_message_edit(self, payload: discord.RawMessageUpdateEvent) -> None:
        message, channel_id = payload.message, payload.channel_id
        if self.user and message.author.id == self.user.id:
            self.turns.overheard(channel_id, message.id, message.content)
        else:
            read = self.parts.reader.record(message)
            if self.parts.consent.is_opted_out(read.author_id):  # also of theirs the question is answered as it stands
                self.turns.reworded(channel_id, self.parts.consent.unquoted(channel_id, read))
            record = self.parts.consent.readable(channel_id, read)
            is_by_author = message.edited_at is not None
            self.parts.changes.revised(channel_id, payload.guild_id or 0, record, is_by_author=is_by_author)

    async def on_raw_message_delete(self, payload: discord.RawMessageDeleteEvent) -> None:
        self.parts.changes.deleted(payload.channel_id, {payload.message_id})

    async def on_raw_bulk_message_delete(self, payload: discord.RawBulkMessageDeleteEvent) -> None:
        self.parts.changes.deleted(payload.channel_id, payload.message_ids)

    async def on_raw_reaction_add(self, payload: discord.RawReactionActionEvent) -> None:
        if payload.member is None or payload.member.bot:
            return
        if payload.emoji.name.startswith(THUMBS_DOWN):  # the tone of the skin comes behind it
            mark = self.learning.disliked(payload.message_id, self._now())
            self.parts.records.unfollow(mark, Unwelcome.DISLIKED)
        else:
            self.learning.reacted(payload.message_id, self._now())
        if self.user and payload.message_author_id == self.user.id:
            self.proactive_offers.reacted(payload.channel_id)

    async def on_thread_create(self, thread: discord.Thread) -> None:
        # It has the id of the message that it was begun at.
        self.proactive_offers.dealt_with(thread.parent_id, thread.id)

    async def on_raw_thread_update(self, payload: discord.RawThreadUpdateEvent) -> None:
        self.parts.reader.counted(payload)

    async def on_thread_remove(self, thread: discord.Thread) -> None:
        thread.me = None  # which the library leaves as it was

    async def on_guild_channel_update(self, before: discord.abc.GuildChannel, after: discord.abc.GuildChannel) -> None:
        if before.category_id != after.category_id:
            self.parts.places.rearranged(after.guild.id)

    async def on_guild_channel_create(self, channel: discord.abc.GuildChannel) -> None:
        self.parts.places.rearranged(channel.guild.id)

    async def on_guild_channel_delete(self, channel: discord.abc.GuildChannel) -> None:
        self.parts.places.rearranged(channel.guild.id)
        await self.parts.changes.gone(channel.id)

    async def on_raw_thread_delete(self, payload: discord.RawThreadDeleteEvent) -> None:
        self.parts.guild_settings.thread_deleted(payload.guild_id, payload.thread_id)
        await self.parts.changes.gone(payload.thread_id)

    async def on_guild_remove(self, guild: discord.Guild) -> None:
        channel_ids = [place.id for place in (*guild.channels, *guild.threads)]
        await self.privacy.forget_guild(guild.id, channel_ids, discord.utils.time_snowflake(self._now()))


def create_bot(settings: Settings | None = None, **client_options: Any) -> Parley:
    """The bot, ready for `.start(token)`. Needs no token and touches no network.

    settings: read from the environment when None. client_options: discord.Client's, which win over ours, and health,
    listener (told of each decision) and followup (the second tier). Raises SettingError and UnusableModelError.
    """
    settings = settings or load_settings()
    if settings.discord_api_base and settings.discord_gateway_url:
        use_server(settings.discord_api_base, settings.discord_gateway_url)
    return Parley(settings, **client_options)


def use_server(api_base: str, gateway_url: str) -> None:
    """Has discord.py, in the whole process, talk to this server: by three attributes, public though undocumented."""
    discord.http.Route.BASE = api_base
    discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway_url)
    discord.asset.Asset.BASE = str(yarl.URL(api_base).origin())


def commands_of(settings: Settings) -> list[dict[str, Any]]:
    """The commands that the bot registers, as Discord is sent them. Raises as create_bot() does."""
    tree = create_bot(settings).tree
    return [dict(command.to_dict(tree)) for command in tree.get_commands()]


def main() -> int:
    """Runs the bot until it is told to stop. Returns the exit code: 0, 2 for what the owner must mend, 1 otherwise."""
    for number in (signal.SIGTERM, signal.SIGINT):  # until the bot is in service, which takes them over
        signal.signal(number, lambda *_: sys.exit(0))
    arguments = sys.argv[1:]
    if arguments and arguments[0] not in ("doctor", *ON_WHAT_IS_KEPT):
        sys.stderr.write(f"{arguments[0]!r} is no command: use none to start the bot, doctor, sessions, or move.\n")
        return 2
    if arguments[:1] == ["doctor"]:
        return doctor_command(arguments[1:], commands_of)
    try:
        settings = load_settings()
        check_token(settings, os.environ)
        settings = apart_in_playground(settings)
        configure_logging(settings.log_level, secrets_of(settings))
        for name, meant in misspelt(os.environ).items():
            log.warning("unknown_setting", variable=name, likely_meaning=meant)
        if arguments:
            return ON_WHAT_IS_KEPT[arguments[0]](arguments[1:], *where(settings))
        if settings.model == DEMO:
            log.warning("demo_model", meaning="answers only repeat what was said", remedy="set MODEL and its key")
        state_dir, redis_url, key = where(settings)
        with in_use(state_dir, None if settings.is_one_of_several else redis_url):
            try:
                check_stores(state_dir, redis_url, key)
            except ValueError as error:
                raise SettingError(f"{error}.") from None
            with traced_calls():
                return asyncio.run(run(settings))
    except (SettingError, UnusableModelError, RefusedError, WrongKeyError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except (InUseError, StoreError) as error:
        sys.stderr.write(f"{error}\n")
        return 1


async def run(settings: Settings) -> int:
    """Keeps the bot in service, in the playground where there is no token. Returns the exit code."""
    followup = load_followup(settings.followup_eagerness, settings.followup_window_seconds)
    make_bot = partial(create_bot, followup=followup)
    gc.disable()  # as above: with the model its provider's modules are imported
    make_bot(settings)  # a model that cannot be built ends the start before anything else begins
    gc.freeze()  # modules stay, the providers' too: to walk through them held up the event loop for 0.3 s each time
    gc.enable()
    password = settings.console_password.get_secret_value() if settings.console_password else None
    serve_it = partial(serve, password=password, shows_content=settings.console_show_content)
    if settings.discord_token:
        make_bot, token = partial(make_bot, settings), settings.discord_token.get_secret_value()
        if settings.is_one_of_several and settings.redis_url:
            url, count, ids = settings.redis_url.get_secret_value(), settings.shard_count, settings.shard_ids
            async with sharing(url, count, ids) as keeper:
                make_bot = partial(make_bot, shards=keeper.shards, cluster=keeper.cluster)
                return await serve_it(make_bot, token, settings.port, keeper=keeper)
        if settings.shard_count:
            make_bot = partial(make_bot, shards=Shards(settings.shard_count, settings.shard_ids or None))
        if settings.shard_ids:
            log.warning("shards_without_redis", meaning="budgets and opt-outs hold in this process alone")
        return await serve_it(make_bot, token, settings.port)
    async with playground(settings.playground_host, settings.playground_port) as loopback:
        here = {"discord_api_base": loopback.api_base, "discord_gateway_url": loopback.gateway_url}
        there = settings.model_copy(update=here)
        make_bot = partial(make_bot, there, listener=shown_in(loopback), is_playground=True)
        is_local = is_loopback(settings.playground_host)
        return await serve_it(make_bot, loopback.token, settings.port, is_local=is_local)


if __name__ == "__main__":
    gc.freeze()  # or the first collections walk through all that was imported
    sys.exit(main())
