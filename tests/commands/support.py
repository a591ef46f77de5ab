"""What the tests of commands share: what stands behind the commands, and people who use them."""

from __future__ import annotations

import asyncio
from typing import Any

import discord

from commands.settings_clicks import SettingsClicks
from offers.proactive_offers import OffersStatus
from playground.interactions import Interaction
from playground.model import Message
from playground.server import Playground
from tests.playground.support import Bot

EPHEMERAL = 1 << 6


class FakePrivacy:
    """Notes what it is asked to do, and does it once the gate is open."""

    def __init__(self) -> None:
        self.done: list[tuple[Any, ...]] = []
        self.out: set[int] = set()
        self.kept = b"[]"
        self.error: Exception | None = None
        self.is_everywhere = True
        self.gate = asyncio.Event()
        self.gate.set()

    async def _do(self, *what: Any) -> bool:
        self.done.append(what)
        await self.gate.wait()
        if self.error:
            raise self.error
        return self.is_everywhere

    async def forget_person(self, user_id: int, at: int) -> bool:
        return await self._do("forget_person", user_id, at)

    async def forget_channel(self, channel_id: int, at: int) -> bool:
        return await self._do("forget_channel", channel_id, at)

    async def opt_out(self, user_id: int, at: int) -> bool:
        self.out.add(user_id)
        return await self._do("opt_out", user_id, at)

    async def opt_in(self, user_id: int, at: int) -> bool:
        self.out.discard(user_id)
        return await self._do("opt_in", user_id, at)

    def is_opted_out(self, user_id: int) -> bool:
        return user_id in self.out

    async def settle(self) -> bool:
        return self.is_everywhere

    async def export(self, user_id: int) -> bytes:
        await self._do("export", user_id)
        return self.kept


class FakeOffers:
    """Switched on in `switched`, {channel: guild}. How it stands in any channel is `stands`."""

    def __init__(self) -> None:
        self.switched: dict[int, int] = {}
        self.stands = OffersStatus()
        self.asked_of: int | None = None
        self.clicks: list[int] = []
        self.error: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def switch(
        self,
        channel_id: int,
        guild_id: int,
        *,
        on: bool,
        by: int = 0,  # noqa: ARG002 - it is told by this name
    ) -> bool:
        await self.gate.wait()
        if self.error:
            raise self.error
        was_on = channel_id in self.switched
        if on:
            self.switched[channel_id] = guild_id
        else:
            self.switched.pop(channel_id, None)
        return was_on is not on

    def status(self, channel_id: int) -> OffersStatus:
        self.asked_of = channel_id
        return self.stands

    def toured(self, channel_id: int, guild_id: int) -> None:  # noqa: ARG002 - it is told by this name
        self.clicks.append(channel_id)


class FakeModels:
    """The models that may be chosen."""

    def __init__(self) -> None:
        self.names = ["test:large", "test:small"]


class FakeStore:
    """Stores at once."""

    async def noted(self, _seconds: float) -> None: ...


class Commanded(Bot):
    """A client that hands on the forms which are sent to it, as the bot's edge does."""

    clicks: SettingsClicks

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        if interaction.type is discord.InteractionType.modal_submit:
            await self.clicks.answer(interaction)


def use(pg: Playground, name: str, who: str = "Ben", **options: Any) -> Interaction:
    return pg.command(pg.channel("general"), pg.person(who), name, options)


async def answer(pg: Playground, name: str, who: str = "Ben", **options: Any) -> Message:
    reply = await pg.reply_to(use(pg, name, who, **options), timeout=10)
    assert reply.flags & EPHEMERAL
    assert pg.messages(pg.channel("general")) == []
    return reply


async def answer_in_thread(pg: Playground, name: str, **options: Any) -> str:
    """The first person, who owns the server, uses a command in a thread of general."""
    owner = pg.person("Ada")
    if "a thread" not in {thread.name for thread in pg.world.threads.values()}:
        pg.open_thread(pg.channel("general"), owner, "a thread")
    used = pg.command(pg.channel("a thread"), owner, name, options)
    return (await pg.reply_to(used, timeout=10)).content


def words_of(message: Message) -> str:
    """All that stands on a message: its text, and its cards'."""
    parts = [message.content]
    for embed in message.embeds:
        parts += [embed.get("title", ""), embed.get("description", "")]
        parts += [f"{field['name']}\n{field['value']}" for field in embed.get("fields", ())]
    return "\n".join(filter(None, parts))


def line_of(message: Message, beginning: str) -> str:
    """The line on a message that begins so, without that."""
    return next(line for line in words_of(message).splitlines() if line.startswith(beginning)).removeprefix(beginning)


def labels_of(message: Message) -> list[str]:
    """What stands on its buttons and menus."""
    parts = [part for row in message.components for part in row["components"]]
    return [part.get("label") or part.get("placeholder") for part in parts]
