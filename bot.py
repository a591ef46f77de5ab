"""Discord edge and entry point: one short method for each event, create_bot(), and main()."""

from __future__ import annotations

import gc

gc.disable()  # while importing, which then takes a seventh less time

import signal
import sys
from typing import Any

import discord
import structlog
import yarl

from command_line import command_line
from commands.items import answer_when_open
from config import Settings, load_settings
from conversation import Unwelcome
from discord_io.incoming_messages import STEPS
from discord_io.message_records import replied_to_id
from running_bot import RunningBot

if __name__ == "__main__":
    gc.freeze()  # before it is enabled, or the first collection walks through all that was imported
gc.enable()

log = structlog.get_logger()

THUMBS_DOWN = "👎"


class Parley(RunningBot):
    """The bot. Its conversations, turns and limits are its own; several can live in one process."""

    # The connection

    async def on_error(self, event_method: str, /, *_: Any, **__: Any) -> None:
        log.error("event_broken", during=event_method, exc_info=sys.exception())
        self.failed("event_broken")

    async def on_shard_connect(self, shard_id: int) -> None:
        # Not on_shard_ready, which comes a second later, even if the connection was lost meanwhile.
        self.health.gateway_up(shard_id)
        self.catch_up.of(shard_id).hold_back()
        self._unready.add(shard_id)
        self._background.start(self.parts.other_process.connected(shard_id))

    async def on_shard_ready(self, shard_id: int) -> None:
        self.take_up_missed(shard_id)

    async def on_ready(self) -> None:
        log.info("playground ready" if self._is_playground else "ready", bot=str(self.user), guilds=len(self.guilds))
        for shard_id in [*self._unready]:  # discord.py drops on_shard_ready of one if another reconnects at that moment
            self.take_up_missed(shard_id)

    async def on_guild_available(self, guild: discord.Guild) -> None:
        self.parts.places.rearranged(guild.id)
        if self.catch_up.of(guild.shard_id).available():
            self.take_up_missed(guild.shard_id)

    async def on_shard_resumed(self, shard_id: int) -> None:
        self.health.gateway_up(shard_id)
        self.parts.other_process.resumed(shard_id)
        log.info("resumed", shard=shard_id)

    async def on_shard_disconnect(self, shard_id: int) -> None:
        self.health.gateway_down(shard_id)
        self.parts.other_process.disconnected(shard_id)

    # What is said, and where

    async def on_message(self, message: discord.Message) -> None:
        channel_id, guild_id = message.channel.id, message.guild.id if message.guild else 0
        if self.user and message.author.id == self.user.id:
            self.parts.other_process.overheard(message)
            self.turns.overheard(channel_id, message.id, message.content, replied_to_id(message))
            return
        if message.type in STEPS:
            self.parts.reader.count(message)
        if message.reference and (answered_id := replied_to_id(message)) and not self.parts.reader.hears(message):
            self.proactive_offers.dealt_with(channel_id, answered_id)
        if self.health.is_lost(self._shards.of(guild_id)):  # the message is replayed, from meanwhile
            self.conversations.end_if_silent(channel_id, until=message.created_at)
        if self.parts.gate.is_queued(channel_id, guild_id):
            await self.parts.gate.wait(channel_id, guild_id)
        await self.parts.inbox.take(message, hears_out=True)

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        if interaction.type is discord.InteractionType.modal_submit:  # clicks are handled by answer_clicks()
            await answer_when_open(self.parts.gate, interaction, self.parts.sent_form, self.parts.break_off)

    async def on_raw_typing(self, payload: discord.RawTypingEvent) -> None:
        self.states.typing(payload.channel_id, payload.user_id)
        self.bursts.typing(payload.channel_id, payload.user_id)

    async def on_raw_message_edit(self, payload: discord.RawMessageUpdateEvent) -> None:
        message, channel_id = payload.message, payload.channel_id
        if self.user and message.author.id == self.user.id:
            self.turns.overheard(channel_id, message.id, message.content)
        elif not message.message_snapshots:  # a forward cannot be edited, and whose words it has was found out before
            read = self.parts.reader.record(message)
            if self.parts.consent.is_opted_out(read.author_id):  # their question too is answered as edited
                self.turns.reworded(channel_id, self.parts.consent.unquoted(channel_id, read))
            record = self.parts.consent.readable(channel_id, read)
            # A pin, a flag or an unfurled link changes neither the text nor the time of the last edit. The text alone
            # changes where an announcement is deleted in the channel from which it came.
            if before := payload.cached_message:
                is_by_author = (before.edited_at, before.content) != (message.edited_at, message.content)
            else:
                is_by_author = message.edited_at is not None or message.flags.source_message_deleted
            self.parts.changes.revised(channel_id, payload.guild_id or 0, record, is_by_author=is_by_author)

    async def on_raw_message_delete(self, payload: discord.RawMessageDeleteEvent) -> None:
        self.parts.changes.deleted(payload.channel_id, {payload.message_id})

    async def on_raw_bulk_message_delete(self, payload: discord.RawBulkMessageDeleteEvent) -> None:
        self.parts.changes.deleted(payload.channel_id, payload.message_ids)

    async def on_raw_reaction_add(self, payload: discord.RawReactionActionEvent) -> None:
        if payload.member is None or payload.member.bot:
            return
        if payload.emoji.name.startswith(THUMBS_DOWN):  # a skin tone may follow
            mark = self.learning.disliked(payload.message_id, self._now())
            self.parts.records.unfollow(mark, Unwelcome.DISLIKED)
        else:
            self.learning.reacted(payload.message_id, self._now())
        if self.user and payload.message_author_id == self.user.id:
            self.proactive_offers.reacted(payload.channel_id)

    async def on_thread_create(self, thread: discord.Thread) -> None:
        # A thread has the id of its starter message.
        self.proactive_offers.dealt_with(thread.parent_id, thread.id)

    async def on_raw_thread_update(self, payload: discord.RawThreadUpdateEvent) -> None:
        self.parts.reader.counted(payload)

    async def on_thread_update(self, before: discord.Thread, after: discord.Thread) -> None:
        if before.name != after.name:
            await self.parts.changes.retitled(after.guild.id, after.id)

    async def on_thread_remove(self, thread: discord.Thread) -> None:
        thread.me = None  # discord.py leaves it as it was

    async def on_guild_channel_update(self, before: discord.abc.GuildChannel, after: discord.abc.GuildChannel) -> None:
        if before.category_id != after.category_id:
            self.parts.places.rearranged(after.guild.id)

    async def on_guild_channel_create(self, channel: discord.abc.GuildChannel) -> None:
        self.parts.places.rearranged(channel.guild.id)

    async def on_guild_channel_delete(self, channel: discord.abc.GuildChannel) -> None:
        self.parts.places.rearranged(channel.guild.id)
        await self.privacy.forget_deleted_channel(channel.id)

    async def on_raw_thread_delete(self, payload: discord.RawThreadDeleteEvent) -> None:
        self.parts.guild_settings.thread_deleted(payload.guild_id, payload.thread_id)
        await self.privacy.forget_deleted_channel(payload.thread_id)

    async def on_guild_remove(self, guild: discord.Guild) -> None:
        channel_ids = [place.id for place in (*guild.channels, *guild.threads)]
        await self.privacy.forget_guild(guild.id, channel_ids)


def create_bot(settings: Settings | None = None, **client_options: Any) -> Parley:
    """The bot, ready for `.start(token)`. Needs no token and touches no network.

    settings: None: read from the environment. client_options: discord.Client's, which override the bot's own, and
    health, observer (told of what happens) and followup (the decider's second tier). Raises SettingError and
    UnusableModelError.
    """
    settings = settings or load_settings()
    if settings.discord_api_base and settings.discord_gateway_url:
        use_server(settings.discord_api_base, settings.discord_gateway_url)
    return Parley(settings, **client_options)


def use_server(api_base: str, gateway_url: str) -> None:
    """Points discord.py, in the whole process, at this server, by three public but undocumented attributes."""
    discord.http.Route.BASE = api_base
    discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway_url)
    discord.asset.Asset.BASE = str(yarl.URL(api_base).origin())


def main() -> int:
    """Runs the bot until it is told to stop. Returns the exit code: 0, 2 for what the owner must fix, 1 otherwise."""
    for number in (signal.SIGTERM, signal.SIGINT):  # until the running bot takes them over
        signal.signal(number, lambda *_: sys.exit(0))
    return command_line(sys.argv[1:], create_bot)


if __name__ == "__main__":
    sys.exit(main())
