"""The model of a walk, which repeats whatever it is told; and what it is told, posts and stores that it must not."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from bench.privacy.words import ANYWHERE, WORD, Said, Words
from playground.model import Event
from tests.support.lives import all_on_disk
from tests.support.scene import Scene
from tests.support.stub_model import Body, Call, Reply, texts

MAX_CALLS = 3  # of tools in a turn


class Watch:
    """Checks each request to the model, each message of the bot, and the disk.

    found: what was wrong; log: what happened, in words. channel: in which the model is asked; asked: for which
    messages. links: that whoever asks has just given. gate: that the model waits for in the middle of its answer.
    """

    def __init__(self, scene: Scene, words: Words, random: Random) -> None:
        self.found: list[str] = []
        self.log: list[str] = []
        self.channel, self.asked = ANYWHERE, frozenset[int]()
        self.links: list[str] = []
        self.gate: asyncio.Event | None = None
        self._scene, self._words, self._random = scene, words, random
        self._calls = 0
        scene.stub.default = self._answer
        scene.stub.rewriter_says = self._sum_up
        scene.pg.world.listen(self._listen)

    def ask_in(self, channel: int, *asked: int) -> None:
        """asked: messages, also with the titles of the posts that they open."""
        self.channel, self.asked, self._calls = channel, frozenset((*asked, *(-id_ for id_ in asked))), 0

    def check(self, how: str, words: Iterable[str]) -> None:
        for word in words:
            if why := self._words.may_not_be_told(word, self.channel, self.asked):
                self.find(f"{how}, though {why}", word)

    def find(self, what: str, word: str) -> None:
        self.found.append(f"{what}: {self._words.first[word]}, in {self.channel}")
        self.log.append(f"!! {self.found[-1]}")

    async def search_disk(self, why: Callable[[str], str] | None = None) -> None:
        """Seeks in what is stored the words that must not be there. why: as Words.may_not_be_kept()."""
        await self._scene.bot.snapshots.settled()
        await self._scene.bot.decision_log.flush()
        for path, found in {*all_on_disk(self._scene.folder, re.compile(WORD.pattern.encode()))}:
            if reason := (why or self._words.may_not_be_kept)(found.decode()):
                self.find(f"stored in {path}, though {reason}", found.decode())

    def _answer(self, body: Body) -> Reply:
        words = words_in(texts(body))
        self.check("told", words)
        if self.gate:
            return Reply(f"I see: {', '.join(words[:3])}.", gate=self.gate, chunk=8)
        chance = self._random.random()
        self._calls += 1
        if self._calls <= MAX_CALLS:
            if self.links and chance < 0.6:
                tool = self._random.choice(("read_message", "read_message", "pin"))
                return self._calling(tool, link=self._random.choice(self.links))
            if chance < 0.2:
                return self._calling("search_history", words=self._random.choice([*words, "code"]))
            if chance < 0.4 and words:
                first, second = self._random.choice(words), self._random.choice(words)
                return self._calling("ask_choice", question=f"Which {first}?", options=[second, "none"])
        quoted = self._random.sample(words, min(len(words), 3)) if chance > 0.5 else []
        return Reply(f"I see: {', '.join(quoted)}.")

    def _sum_up(self, body: Body) -> Reply:
        words = words_in(texts(body))
        self.check("told for a summary", words)
        return Reply(" ".join(words) or "nothing")

    def _calling(self, tool: str, **arguments: Any) -> Reply:
        return Reply(calls=(Call(tool, json.dumps(arguments), f"call-{len(self.log)}-{self._calls}"),))

    def _listen(self, event: Event) -> None:
        """Notes which words stand in the bot's messages."""
        message = event.message
        if message and message.author.id == self._scene.pg.bot_id and event.name.startswith("MESSAGE_"):
            others = [said for said in self._words.answers if said.message_id != message.id]
            words = words_in([message.content])
            if event.name == "MESSAGE_CREATE":
                self.check("posted", words)
            here = [Said(word, message.author.id, message.channel_id, message.id, self._words.step) for word in words]
            self._words.answers = others + here


def words_in(told: Iterable[str]) -> list[str]:
    return sorted({word for text in told for word in WORD.findall(text)})
