"""What all acts of a walk stand on: the people and their words, and how they post and use commands."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import Random
from typing import Any

from bench.privacy.places import PEOPLE, Places
from bench.privacy.watch import Watch
from bench.privacy.words import Said
from playground.model import Message
from tests.support.clock import FakeClock
from tests.support.remote_agent import RemoteAgent
from tests.support.scene import Scene

Act = Callable[[str], Awaitable[None]]


class Ground:
    """found: what was wrong; log: what happened, in words."""

    def __init__(self, scene: Scene, docs: RemoteAgent, seed: int) -> None:
        assert scene.clock
        self._scene, self._random, self._pg = scene, Random(seed), scene.pg
        self._clock: FakeClock = scene.clock
        self._places = Places(scene.pg, self._random)
        self._ids, self._words = self._places.ids, self._places.words
        self._watch = Watch(scene, docs, self._words, self._random, self._ids)
        self.found, self.log = self._watch.found, self._watch.log
        self._clicked: set[tuple[str, str]] = set()
        self._is_running = False

    def keep_in(self, redis_url: str) -> None:
        """Notes where the bot keeps things beside its folder."""
        self._watch.redis_url = redis_url

    def _ask_in(self, who: str, channel: int, *asked: int) -> None:
        """Notes that somebody does what the bot may answer. asked: as for Watch.ask_in."""
        self._watch.ask_in(channel, *asked, by=self._ids[who])

    def _speak_in(self, who: str, channel: int, *asked: int) -> None:
        """As _ask_in, of somebody who says something there."""
        self._ask_in(who, channel, *asked)
        if self._is_running and self._scene.bot.conversations.get(channel) is None:
            self._words.ended(channel)
        self._words.come(channel, self._ids[who])

    async def _post(
        self, who: str, channel: int, text: str, *, also: Sequence[str] = (), new: bool = True, **how: Any
    ) -> None:
        """Posts a text with a new word. also: other words that are in the text or the files."""
        self._speak_in(who, channel)
        words = [*also, *([self._words.new()] if new else ())]
        message = self._pg.post(channel, self._ids[who], f"{text} {words[-1]}" if new else text, **how)
        for word in words:
            self._note(Said(word, self._ids[who], channel, message.id, self._words.step))
        to = f", to {message.points_at}" if message.points_at else ""
        files = [attached["filename"] for attached in message.attachments]
        self.log.append(f"{who} in {channel} says {message.id}{to}: {message.content} {files or ''}")
        await self._posted_by(who, message)

    def _note(self, said: Said) -> None:
        said.private = said.author_id in self._words.opted_out
        self._words.first[said.word] = said

    async def _posted_by(self, who: str, message: Message) -> None:
        self._ask_in(who, message.channel_id, message.id)
        self._places.posted[who].append(message)
        if self._watch.here and who in self._ids:
            self._watch.in_flight[message.id] = self._ids[who], self._words.step
        if self._is_running and who in PEOPLE:
            await self._scene.until(lambda: self._scene.bot.parts.inbox.is_over(message.id))
            await self._handled()
        else:
            await self._heard("message", lambda heard: heard.id == message.id)

    async def _heard(self, event: str, check: Callable[..., bool]) -> None:
        """Waits until the bot, if it is running, has done what it does at an event."""
        if self._is_running:
            await self._scene.bot.wait_for(event, check=check, timeout=60)
            await self._handled()

    async def _handled(self) -> None:
        """Waits until the bot has done what it does at all events so far."""
        handlers = [task for task in asyncio.all_tasks() if task.get_name().startswith("discord.py: on_")]
        await asyncio.gather(*handlers)

    async def _use(
        self,
        who: str,
        name: str,
        channel: int | None = None,
        *asked: int,
        target: Message | None = None,
        **options: Mapping[str, Any] | str | bool,
    ) -> Message:
        """Uses a command, also on a message, and returns the bot's answer. asked: as for Watch.ask_in."""
        channel = channel or self._places.one(who)
        self._ask_in(who, channel, *asked)
        if channel in self._places.threads:
            self._pg.change_thread(channel, archived=False)  # no command can be used in one that is archived
        used = self._pg.command(channel, self._ids[who], name, options, target.id if target else None)
        answer = await self._pg.reply_to(used, timeout=60)
        self.log.append(f"{who} uses /{name} in {channel}: {answer.content[:60]}")
        return answer
