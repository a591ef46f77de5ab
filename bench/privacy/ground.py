"""What all acts of a walk stand on: the people and their words, and how they post and use commands."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import Random
from typing import Any

from bench.privacy.places import Places
from bench.privacy.settings import drawn
from bench.privacy.watch import Servers, Watch
from bench.privacy.words import Said
from playground.model import Message
from tests.support.clock import FakeClock
from tests.support.scene import Scene

Act = Callable[[str], Awaitable[None]]
LOOK_SECONDS = 0.01  # of the machine's time, after which it is looked again whether the rest waits for more words


class Ground:
    """found: what was wrong; log: what happened, in words. settings: of the bot, in this walk."""

    def __init__(self, scene: Scene, servers: Servers, seed: int) -> None:
        assert scene.clock
        self._scene, self._random, self._pg = scene, Random(seed), scene.pg
        self._clock: FakeClock = scene.clock
        self.settings = drawn(self._random)
        self._places = Places(scene.pg, self._random)
        self._ids, self._words = self._places.ids, self._places.words
        self._servers = servers
        self._watch = Watch(scene, servers, self._words, self._random, self._ids)
        self.found, self.log = self._watch.found, self._watch.log
        self._clicked: set[tuple[str, str]] = set()
        self._is_running = self._is_cut = False  # the second: its connection has dropped
        self._in_one_breath: dict[tuple[str, int], list[int]] = {}  # messages of each person that wait for more

    def _begin_step(self) -> None:
        """Begins a step, of which the bot has been told nothing yet."""
        self._watch.begin_step()

    def keep_in(self, redis_url: str) -> None:
        """Notes where the bot keeps things beside its folder."""
        self._watch.redis_url = self.settings["redis_url"] = redis_url

    def _ask_in(self, who: str, channel: int, *asked: int) -> None:
        """Notes that somebody does what the bot may answer. asked: as for Watch.ask_in."""
        self._watch.ask_in(channel, *asked, *self._in_one_breath.get((who, channel), ()), by=self._ids[who])

    async def _post(
        self, who: str, channel: int, text: str, *, also: Sequence[str] = (), new: bool = True, **how: Any
    ) -> None:
        """Posts a text with a new word. also: other words that are in the text or the files."""
        self._ask_in(who, channel)
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
        self._places.posted[who].append(message)
        if self._is_running and self.settings["burst_seconds"]:
            self._in_one_breath.setdefault((who, message.channel_id), []).append(message.id)
        self._ask_in(who, message.channel_id, message.id)
        if self._watch.here and who in self._ids:
            self._watch.in_flight[message.id] = self._ids[who], self._words.step
        await self._heard("message", lambda heard: heard.id == message.id)

    async def _heard(self, event: str, check: Callable[..., bool]) -> None:
        """Waits until the bot, if it is running, has done what it does at an event."""

        def is_it(*told: Any) -> bool:
            if found := check(*told):  # what the bot sends once its handlers have begun, it sends in spite of it
                loop = asyncio.get_running_loop()
                loop.call_soon(loop.call_soon, self._watch.bot_was_told, self._words.step)
            return found

        if self._is_running:
            await self._scene.bot.wait_for(event, check=is_it, timeout=60)
            await self._handled()

    async def _handled(self) -> None:
        """Waits until the bot has done what it does at all events so far, but for waiting for somebody's next words."""
        while len(handlers := _handlers()) > len(self._scene.bot.bursts):
            await asyncio.wait(handlers, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        self._watch.bot_was_told()

    async def _hear_out(self) -> None:
        """Everybody has paused, so that the bot answers what they have said."""
        await self._scene.bot.bursts.end()
        await self._handled()

    async def _at_rest(self) -> None:
        """Waits until the bot has answered all."""
        await self._hear_out()
        await self._scene.at_rest()
        self._in_one_breath.clear()

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
        self._watch.bot_was_told()
        self.log.append(f"{who} uses /{name} in {channel}: {answer.content[:60]}")
        return answer


def _handlers() -> list[asyncio.Task[Any]]:
    """What the bot does at events, as far as it is not over."""
    return [task for task in asyncio.all_tasks() if task.get_name().startswith("discord.py: on_")]
