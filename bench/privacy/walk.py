"""A walk: people do at random what they do in Discord, one after the other, and a model repeats whatever it was told.

Each message has a word of its own, as each file and each thread's title, by which it is found in what the model is sent
and in what is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from datetime import timedelta
from unittest.mock import patch

from bench.privacy.access import Access
from bench.privacy.clicks import Clicks
from bench.privacy.ground import Act
from bench.privacy.places import PEOPLE
from bench.privacy.sent import note_posts, stamped
from bench.privacy.settings import VARIED
from bench.privacy.several import has_noted, life_of_several
from bench.privacy.threads import Threads
from bench.privacy.watch import Servers
from bench.privacy.words import ANYWHERE
from discord_io.prompt_cards import EXPIRED
from remote_memory import MAX_REMOTE
from state.revisions import MAX_EDITED
from tests.support.lives import kill, life
from tests.support.scene import Scene

NEAR, AWAY = (2, 5, 10, 20), (130, 200)  # seconds between two steps; the second ends a conversation
PATIENCE_SECONDS = 100.0  # of the machine's time: more than anything waits in a step
RETENTION = timedelta(days=30)
STEPS_ALONE = 6  # while the bot is away
FEW = None, 12, 5, 5  # messages of a conversation, in each of four walks; None: as many as without the walk
FEW_TOLD = MAX_REMOTE, MAX_REMOTE, 6  # of what remote agents are told, in each of three walks
FEW_EDITED = MAX_EDITED, 2  # edits of which the new words are known, in each of two


class Walk(Threads, Access, Clicks):
    """The people, what they know, and what was found wrong."""

    def __init__(self, scene: Scene, servers: Servers, seed: int) -> None:
        super().__init__(scene, servers, seed)
        self._few, self._few_told = self._random.choice(FEW), self._random.choice(FEW_TOLD)
        self._few_edited = self._random.choice(FEW_EDITED)
        self._is_one_of_several = False
        self._acts: dict[Act, int] = {
            self._say: 20, self._mention: 25, self._reply: 10, self._attach: 6, self._post_in_forum: 3,
            self._open_thread: 3, self._take_back_opener: 2, self._rename: 3, self._archive: 2, self._delete_thread: 1,
            self._pin: 3, self._edit: 6, self._delete: 6, self._delete_many: 1, self._remove_file: 2,
            self._act_by_itself: 6, self._close_or_open: 2, self._hide_or_show_history: 3, self._give_or_take_role: 2,
            self._ask_everybody: 3, self._ask_docs: 8, self._rejoin: 1,
        }  # fmt: skip
        self._acts_with_the_bot: dict[Act, int] = {
            self._forward: 6, self._ask_about: 8, self._plan: 6, self._click: 8, self._forget: 3, self._forget_all: 1,
            self._opt_out: 2, self._opt_in: 2, self._export: 2, self._ask_why: 5, self._leave_server: 1,
            self._answer_offer: 4, self._stay_away: 1, self._ask_alone: 3, self._look: 3, self._look_at_console: 2,
            self._set: 3, self._set_by_click: 3, self._act_meanwhile: 8, self._write_in_one_breath: 5,
            self._act_during_look_up: 3, self._act_while_disconnected: 3, self._stay_in_one_place: 6,
        }  # fmt: skip

    async def take(self, steps: int, lives: int) -> None:
        """Takes the walk, which ends where something is found. steps: in each life of the bot."""
        self._is_one_of_several = "redis_url" in self.settings and self._random.random() < 0.5
        self.log.append(f"Settings: { {name: self.settings[name] for name in VARIED} }")
        for _ in range(lives):
            self.log.append("The bot starts.")
            self._watch.ask_in(ANYWHERE, *(said.message_id for said in self._words.first.values() if said.private))
            self._is_running = True
            with stamped(lambda: self._watch.told_step), self._caps():
                async with self._life():
                    await self._caught_up()
                    for _ in range(steps):
                        await self._step()
                        if self.found:
                            return
                    await self._end()
            self._is_running = False
            for _ in range(STEPS_ALONE):
                await self._step()

    @contextmanager
    def _caps(self) -> Iterator[None]:
        """Caps for which there is no setting."""
        with (
            patch("remote_memory.MAX_REMOTE", self._few_told),
            patch("state.revisions.MAX_EDITED", self._few_edited),
        ):
            yield

    def _life(self) -> AbstractAsyncContextManager[None]:
        if self._is_one_of_several:
            return life_of_several(self._scene, self.settings["redis_url"], self.settings)
        return life(self._scene, **self.settings)

    async def _caught_up(self) -> None:
        """Waits until the bot has answered what it missed, in all places, and has the tools of its MCP server."""
        note_posts(self._scene.bot, lambda: self._watch.told_step, self._watch.posts)
        if self._few:
            self._scene.bot.conversations._max_messages = self._few  # noqa: SLF001 - there is no setting
        await self._scene.bot.parts.mcp.tried()
        for channel in self._words.readers:
            await self._scene.bot.parts.gate.wait(channel, self._words.guilds[channel])
        await self._scene.at_rest()

    async def _step(self) -> None:
        """Somebody does something, and the bot is at rest again."""
        self._clock.advance(self._random.choice(AWAY if self._random.random() < 0.08 else NEAR))
        acts = self._acts
        if self._is_running:
            self._expire()
            acts = self._acts | self._acts_with_the_bot
        [act] = self._random.choices([*acts], [*acts.values()])
        self._begin_step()
        self._watch.links = []
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await act(self._random.choice(PEOPLE))
                if self._is_running:
                    await self._at_rest()
                    self._watch.bot_was_told()
        except TimeoutError:
            self.found.append(f"{act.__name__} does not end")
            self.log.append(f"!! {self.found[-1]}: {[(t.get_name(), t.get_stack()) for t in asyncio.all_tasks()]}")

    def _expire(self) -> None:
        """Ends prompts and offers whose time is over: the bot's own timers go by the machine's time."""
        self._scene.bot.prompts.settle(self._scene.bot.states.expire(), EXPIRED)
        self._scene.bot.proactive_offers.pulse()

    async def _end(self) -> None:
        """Searches what is stored, and may have the bot killed in the middle of an answer."""
        await self._watch.search_disk()
        if self._is_one_of_several:
            await has_noted(self._scene)
        if self._random.random() < 0.5:
            gate = self._watch.gate = asyncio.Event()
            known = self._requests()
            self._begin_step()
            await self._mention(self._random.choice(PEOPLE))
            await self._hear_out()
            await self._scene.until(lambda: self._requests() > known or not len(self._scene.bot.turns))
            self.log.append("The bot is killed.")
            await kill(self._scene)
            gate.set()
            self._watch.gate = None

    # What several do at the same time

    async def _act_meanwhile(self, who: str) -> None:
        often = self._mention, self._mention, self._say, self._reply, self._reply, self._ask_docs, self._flood
        seldom = self._edit, self._delete, self._forget, self._attach, self._opt_out
        await self._meanwhile(who, often, seldom)

    async def _stay_in_one_place(self, who: str) -> None:
        asks = self._mention, self._mention, self._reply, self._reply, self._ask_docs, self._plan, self._forward
        changes = self._edit, self._edit, self._delete, self._pin
        await self._one_by_one(who, (*asks, *changes, self._flood, self._flood, self._forget))

    async def _write_in_one_breath(self, who: str) -> None:
        often = self._say, self._say, self._mention, self._attach, self._reply
        await self._go_on(who, often, (self._edit, self._edit, self._delete, self._forget, self._opt_out))

    async def _act_during_look_up(self, who: str) -> None:
        await self._plan_meanwhile(who, (self._edit, self._delete, self._forget, self._opt_out, self._say))

    async def _flood(self, who: str) -> None:
        """Says so much that a short conversation has nothing else any more."""
        for _ in range(self._few or 2):
            await self._say(who)

    async def _act_while_disconnected(self, who: str) -> None:
        await self._drop_connection(
            who, (self._say, self._mention, self._edit, self._delete, self._delete, self._attach)
        )

    async def _stay_away(self, _who: str) -> None:
        """Nobody says anything for a month."""
        self._watch.ask_in(ANYWHERE)
        self.log.append("A month passes.")
        self._clock.advance((RETENTION + timedelta(days=1)).total_seconds())
        self._expire()
        await self._at_rest()
        self._scene.bot.parts.sweep()
        await self._scene.bot.parts.privacy.expire(self._clock() - RETENTION)
        await self._watch.search_disk(lambda _: "it is a month old")
        self._words.month_passed()
