"""A walk: people do at random what they do in Discord, one after the other, and a model repeats whatever it was told.

Each message has a word of its own, by which it is found in what the model is sent and in what is stored.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from random import Random
from typing import Any

from bench.privacy.words import ANYWHERE, WORD, Said, Words
from discord_io.prompt_cards import EXPIRED
from playground.errors import ApiError
from playground.model import Event, Message
from tests.support.lives import on_disk
from tests.support.scene import Scene, choices
from tests.support.stub_model import Body, Call, Reply, texts

PEOPLE = ("Ada", "Ben", "Chloe", "Dan")  # Ada manages the server; only she and Ben see #secret
MANAGER, INSIDERS = "Ada", ("Ada", "Ben")
CHANNELS = ("general", "random", "secret")
NEAR, AWAY = (2, 5, 10, 20), (130, 200)  # seconds between two steps; the second ends a conversation
SETTINGS: dict[str, Any] = {
    "direct_messages": "open",
    "decline": False,
    "followup_eagerness": "eager",
    "turns_per_user_minute": 1_000,
    **dict.fromkeys(("turn_tokens", "person_tokens", "guild_tokens", "daily_tokens"), 0),
    "session_tokens": 3_000,
    "catch_up_seconds": 86_400.0,
}
MAX_CALLS = 3  # of tools in a turn
SOUGHT = 12  # words that are sought on disk at once


class Walk:
    """The people, what they know, and what was found wrong. log: what happened, in words."""

    def __init__(self, scene: Scene, seed: int) -> None:
        self.found: list[str] = []
        self.log: list[str] = []
        self._scene, self._random = scene, Random(seed)
        pg = self._pg = scene.pg
        pg.add_person("Dan")
        pg.add_channel("secret")
        self._ids = {name: pg.person(name) for name in PEOPLE}
        everybody, insiders = frozenset(self._ids.values()), frozenset(self._ids[name] for name in INSIDERS)
        for outsider in everybody - insiders:
            pg.deny(pg.channel("secret"), "view_channel", member=outsider)
        self._channels = {name: pg.channel(name) for name in CHANNELS}
        readers = {id_: insiders if name == "secret" else everybody for name, id_ in self._channels.items()}
        direct = {pg.dm(person): frozenset((person,)) for person in everybody}
        self._words = Words(readers | direct, frozenset(direct))
        self._posted: dict[str, list[Message]] = {name: [] for name in PEOPLE}
        self._channel, self._asked = ANYWHERE, frozenset[int]()  # where the model is asked, and for which messages
        self._links: list[str] = []  # that whoever asks has just given
        self._calls = 0
        self._acts: dict[Callable[[str], Awaitable[None]], int] = {
            self._say: 20, self._mention: 25, self._reply: 10, self._forward: 6, self._ask_about: 5, self._write: 6,
            self._edit: 6, self._delete: 6, self._click: 4, self._forget: 3, self._forget_all: 1, self._opt_out: 2,
            self._opt_in: 2,
        }  # fmt: skip
        scene.stub.default = self._answer
        scene.stub.rewriter_says = lambda body: Reply(" ".join(_words_in(texts(body))) or "nothing")
        pg.world.listen(self._listen)

    def wakes(self) -> None:
        """Notes that the bot starts, and may answer what it had not, in any channel."""
        self.log.append("The bot starts.")
        self._ask_in(ANYWHERE, *(said.message_id for said in self._words.first.values() if said.private))

    async def step(self) -> None:
        """Somebody does something, and the bot is at rest again."""
        assert self._scene.clock
        self._scene.clock.advance(self._random.choice(AWAY if self._random.random() < 0.08 else NEAR))
        self._scene.bot.prompts.settle(self._scene.bot.states.expire(), EXPIRED)  # its timer goes by the machine's time
        [act] = self._random.choices([*self._acts], [*self._acts.values()])
        self._words.step += 1
        await act(self._random.choice(PEOPLE))
        await self._scene.at_rest()

    # The model, and what it is told

    def _answer(self, body: Body) -> Reply:
        words = _words_in(texts(body))
        for word in words:
            if why := self._words.may_not_be_told(word, self._channel, self._asked):
                self._find(f"told, though {why}", word)
        chance = self._random.random()
        self._calls += 1
        if self._calls <= MAX_CALLS and chance < 0.4:
            if chance < 0.15:
                return self._calling("search_history", words=self._random.choice([*words, "code"]))
            if chance < 0.35 and self._links:
                return self._calling("read_message", link=self._random.choice(self._links))
            if words:
                first, second = self._random.choice(words), self._random.choice(words)
                return self._calling("ask_choice", question=f"Which {first}?", options=[second, "none"])
        quoted = self._random.sample(words, min(len(words), 3)) if chance > 0.5 else []
        return Reply(f"I see: {', '.join(quoted)}.")

    def _calling(self, tool: str, **arguments: Any) -> Reply:
        return Reply(calls=(Call(tool, json.dumps(arguments), f"call-{len(self.log)}-{self._calls}"),))

    def _find(self, what: str, word: str) -> None:
        self.found.append(f"{what}: {self._words.first[word]}, in {self._channel}")
        self.log.append(f"!! {self.found[-1]}")

    def _listen(self, event: Event) -> None:
        """Notes which words stand in the bot's messages."""
        message = event.message
        if message and message.author.id == self._pg.bot_id and event.name.startswith("MESSAGE_"):
            others = [said for said in self._words.answers if said.message_id != message.id]
            here = [
                Said(word, message.author.id, message.channel_id, message.id, self._words.step)
                for word in _words_in([message.content])
            ]
            self._words.answers = others + here

    async def _search_disk(self) -> None:
        """Seeks the words that were forgotten last in what is stored."""
        await self._scene.bot.snapshots.settled()
        erased = [word for word in self._words.first if self._words.is_erased(word)]
        for word in erased[-SOUGHT:]:
            if on_disk(self._scene.folder, word):
                self._find("stored", word)

    # What people do

    async def _say(self, who: str) -> None:
        await self._post(who, self._place(who), "my code is")

    async def _mention(self, who: str) -> None:
        await self._post(who, self._place(who), f"<@{self._pg.bot_id}> tell me about")

    async def _write(self, who: str) -> None:
        await self._post(who, self._pg.dm(self._ids[who]), "what about")

    async def _reply(self, who: str) -> None:
        channel = self._place(who)
        if there := self._pg.messages(channel)[-15:]:
            call = f"<@{self._pg.bot_id}> " if self._random.random() < 0.5 else ""
            await self._post(who, channel, f"{call}really,", reply_to=self._random.choice(there).id)

    async def _ask_about(self, who: str) -> None:
        """Asks the bot about a message by its link."""
        if seen := self._seen(who):
            message = self._random.choice(seen)
            link = f"https://discord.com/channels/{self._pg.guild_id}/{message.channel_id}/{message.id}"
            self._links = [link]
            await self._post(who, self._place(who), f"<@{self._pg.bot_id}> what does {link} say, and")
            self._links = []

    async def _forward(self, who: str) -> None:
        seen = [message for message in self._seen(who) if message.content]
        if not seen:
            return
        message, person = self._random.choice(seen), self._ids[who]
        self._ask_in(self._random.choice((self._place(who), self._pg.dm(person))))
        forward = self._pg.post(self._channel, person, forward=message)
        private = person in self._words.opted_out
        self._words.forwards += [
            Said(word, person, self._channel, forward.id, self._words.step, private=private)
            for word in _words_in([message.content])
        ]
        self.log.append(f"{who} forwards {message.id} to {self._channel} as {forward.id}: {message.content}")
        await self._posted_by(who, forward)

    async def _post(self, who: str, channel: int, text: str, **how: Any) -> None:
        self._ask_in(channel)
        word, person = self._words.new(), self._ids[who]
        message = self._pg.post(channel, person, f"{text} {word}", **how)
        self._note(Said(word, person, channel, message.id, self._words.step))
        self.log.append(f"{who} in {channel} says {message.id}: {message.content} {how or ''}")
        await self._posted_by(who, message)

    def _note(self, said: Said) -> None:
        said.private = said.author_id in self._words.opted_out
        self._words.first[said.word] = said

    async def _posted_by(self, who: str, message: Message) -> None:
        self._asked = frozenset((message.id,))
        self._posted[who].append(message)
        await self._scene.until(lambda: self._scene.bot.parts.inbox.is_over(message.id))
        await asyncio.sleep(0)

    async def _edit(self, who: str) -> None:
        own = [message for message in self._own(who) if message.content]
        if own:
            message, word = self._random.choice(own), self._words.new()
            self._ask_in(message.channel_id, message.id)
            self._words.gone(message.id)
            self._note(Said(word, self._ids[who], message.channel_id, message.id, self._words.step))
            self.log.append(f"{who} edits {message.id}: {word}")
            await self._scene.edit(message, WORD.sub(word, message.content))

    async def _delete(self, who: str) -> None:
        if own := self._own(who):
            message = self._random.choice(own)
            self._ask_in(message.channel_id)
            self._words.gone(message.id)
            self.log.append(f"{who} deletes {message.id}: {message.content}")
            await self._scene.delete(message)

    async def _click(self, who: str) -> None:
        cards = [m for m in self._seen(who) if m.author.id == self._pg.bot_id and choices(m)]
        if cards:
            card = self._random.choice(cards)
            label, custom_id, values = self._random.choice(choices(card))
            self._ask_in(card.channel_id)
            self.log.append(f"{who} clicks {label} on {card.id}")
            try:
                clicked = self._pg.click(card, self._ids[who], custom_id, values)
            except ApiError:  # somebody else's answer has disabled it
                return
            await self._scene.until(lambda: clicked.callback is not None)

    async def _forget(self, who: str) -> None:
        await self._use(who, "forget")
        self._words.people_forgotten[self._ids[who]] = self._words.step
        await self._search_disk()

    async def _forget_all(self, _who: str) -> None:
        name = self._random.choice(CHANNELS)
        await self._use(MANAGER, "forget", name, everything=True)
        self._words.channels_forgotten[self._channels[name]] = self._words.step
        await self._search_disk()

    async def _opt_out(self, who: str) -> None:
        await self._use(who, "optout")
        self._words.opted_out.add(self._ids[who])
        self._words.people_forgotten[self._ids[who]] = self._words.step
        await self._search_disk()

    async def _opt_in(self, who: str) -> None:
        await self._use(who, "optin")
        self._words.opted_out.discard(self._ids[who])

    async def _use(self, who: str, name: str, channel: str = "general", **options: Any) -> None:
        self._asked = frozenset()
        answer = await self._scene.use(who, name, channel=channel, **options)
        self.log.append(f"{who} uses /{name} in {channel}: {answer.content[:60]}")

    # Where, and on what

    def _ask_in(self, channel: int, *asked: int) -> None:
        self._channel, self._asked, self._calls = channel, frozenset(asked), 0

    def _place(self, who: str) -> int:
        """A channel that somebody sees."""
        seen = [id_ for id_ in self._channels.values() if self._ids[who] in self._words.readers[id_]]
        return self._random.choice(seen)

    def _seen(self, who: str) -> list[Message]:
        """The newest messages in all channels that somebody sees."""
        mine = [id_ for id_, readers in self._words.readers.items() if self._ids[who] in readers]
        return [message for id_ in mine for message in self._pg.messages(id_)[-25:]]

    def _own(self, who: str) -> Sequence[Message]:
        """Somebody's newest messages that still stand."""
        standing = {message.id for id_ in self._words.readers for message in self._pg.messages(id_)}
        return [message for message in self._posted[who] if message.id in standing][-12:]


def _words_in(told: Iterable[str]) -> list[str]:
    return sorted({word for text in told for word in WORD.findall(text)})
