"""A walk: people do at random what they do in Discord, one after the other, and a model repeats whatever it was told.

Each message has a word of its own, as each file and each thread's title, by which it is found in what the model is sent
and in what is stored.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

from bench.privacy.places import AUTOMATIC, MANAGER, PEOPLE, Places
from bench.privacy.words import ANYWHERE, WORD, Said
from discord_io.prompt_cards import EXPIRED
from playground.errors import ApiError
from playground.model import REPLY, Event, File, Message
from tests.support.lives import all_on_disk, kill
from tests.support.samples import pdf
from tests.support.scene import Scene, choices
from tests.support.stub_model import Body, Call, Reply, texts

NEAR, AWAY = (2, 5, 10, 20), (130, 200)  # seconds between two steps; the second ends a conversation
SETTINGS: dict[str, Any] = {
    "direct_messages": "open",
    "threads": "open",
    "decline": False,
    "followup_eagerness": "eager",
    "turns_per_user_minute": 1_000,
    **dict.fromkeys(("turn_tokens", "person_tokens", "guild_tokens", "daily_tokens"), 0),
    "session_tokens": 3_000,
    "catch_up_seconds": 86_400.0,
}
TRIP = (
    "start a trip called {}", "rename the trip to {}", "add {} Cafe to the trip", "add Shake Shack Shibuya to the trip",
    "add a note for Shake Shack Shibuya: {}", "list our trip, {}", "list our trip", "export the trip",
)  # fmt: skip
MAX_CALLS = 3  # of tools in a turn

Act = Callable[[str], Awaitable[None]]


class Walk:
    """The people, what they know, and what was found wrong. log: what happened, in words."""

    def __init__(self, scene: Scene, seed: int) -> None:
        self.found: list[str] = []
        self.log: list[str] = []
        self._scene, self._random, self._pg = scene, Random(seed), scene.pg
        places = self._places = Places(scene.pg, self._random)
        self._ids, self._words = places.ids, places.words
        self._channel, self._asked = ANYWHERE, frozenset[int]()  # where the model is asked, and for which messages
        self._links: list[str] = []  # that whoever asks has just given
        self._clicked: set[tuple[str, str]] = set()
        self._calls = 0
        self._gate: asyncio.Event | None = None  # that the model waits for in the middle of its answer
        self._is_running = False
        self._acts: dict[Act, int] = {
            self._say: 20, self._mention: 25, self._reply: 10, self._attach: 6, self._post_in_forum: 3,
            self._open_thread: 3, self._rename: 3, self._archive: 2, self._delete_thread: 1, self._pin: 3,
            self._edit: 6, self._delete: 6, self._remove_file: 2, self._act_by_itself: 6,
        }  # fmt: skip
        self._acts_with_the_bot: dict[Act, int] = {
            self._forward: 6, self._ask_about: 8, self._plan: 6, self._click: 8, self._forget: 3, self._forget_all: 1,
            self._opt_out: 2, self._opt_in: 2, self._export: 2, self._ask_why: 1,
        }  # fmt: skip
        scene.stub.default = self._answer
        scene.stub.rewriter_says = self._sum_up
        scene.pg.world.listen(self._listen)

    @contextmanager
    def wakes(self) -> Iterator[None]:
        """Notes that the bot starts, and may answer what it had not, in any channel. Until the end it is running."""
        self.log.append("The bot starts.")
        self._ask_in(ANYWHERE, *(said.message_id for said in self._words.first.values() if said.private))
        self._is_running = True
        yield
        self._is_running = False

    async def caught_up(self) -> None:
        """Waits until the bot has answered what it missed, in all places."""
        for channel in self._words.readers:
            await self._scene.bot.parts.gate.wait(channel, self._words.guilds[channel])
        await self._scene.at_rest()

    async def step(self) -> None:
        """Somebody does something, and the bot is at rest again."""
        assert self._scene.clock
        self._scene.clock.advance(self._random.choice(AWAY if self._random.random() < 0.08 else NEAR))
        acts = self._acts
        if self._is_running:
            self._scene.bot.prompts.settle(self._scene.bot.states.expire(), EXPIRED)  # its timer goes by machine time
            acts = self._acts | self._acts_with_the_bot
        [act] = self._random.choices([*acts], [*acts.values()])
        self._words.step += 1
        self._links = []
        await act(self._random.choice(PEOPLE))
        if self._is_running:
            await self._scene.at_rest()

    async def ends(self) -> None:
        """Searches what is stored, and may have the bot killed in the middle of an answer."""
        await self._search_disk()
        if self._random.random() < 0.5:
            self._gate = asyncio.Event()
            known = len(self._scene.stub.requests)
            self._words.step += 1
            await self._mention(self._random.choice(PEOPLE))
            await self._scene.until(lambda: len(self._scene.stub.requests) > known or not len(self._scene.bot.turns))
            self.log.append("The bot is killed.")
            await kill(self._scene)
            self._gate.set()
            self._gate = None

    # The model, and what it is told

    def _answer(self, body: Body) -> Reply:
        words = _words_in(texts(body))
        self._check("told", words)
        if self._gate:
            return Reply(f"I see: {', '.join(words[:3])}.", gate=self._gate, chunk=8)
        chance = self._random.random()
        self._calls += 1
        if self._calls <= MAX_CALLS:
            if self._links and chance < 0.6:
                tool = self._random.choice(("read_message", "read_message", "pin"))
                return self._calling(tool, link=self._random.choice(self._links))
            if chance < 0.2:
                return self._calling("search_history", words=self._random.choice([*words, "code"]))
            if chance < 0.4 and words:
                first, second = self._random.choice(words), self._random.choice(words)
                return self._calling("ask_choice", question=f"Which {first}?", options=[second, "none"])
        quoted = self._random.sample(words, min(len(words), 3)) if chance > 0.5 else []
        return Reply(f"I see: {', '.join(quoted)}.")

    def _sum_up(self, body: Body) -> Reply:
        words = _words_in(texts(body))
        self._check("told for a summary", words)
        return Reply(" ".join(words) or "nothing")

    def _calling(self, tool: str, **arguments: Any) -> Reply:
        return Reply(calls=(Call(tool, json.dumps(arguments), f"call-{len(self.log)}-{self._calls}"),))

    def _check(self, how: str, words: Iterable[str]) -> None:
        for word in words:
            if why := self._words.may_not_be_told(word, self._channel, self._asked):
                self._find(f"{how}, though {why}", word)

    def _find(self, what: str, word: str) -> None:
        self.found.append(f"{what}: {self._words.first[word]}, in {self._channel}")
        self.log.append(f"!! {self.found[-1]}")

    def _listen(self, event: Event) -> None:
        """Notes which words stand in the bot's messages."""
        message = event.message
        if message and message.author.id == self._pg.bot_id and event.name.startswith("MESSAGE_"):
            others = [said for said in self._words.answers if said.message_id != message.id]
            words = _words_in([message.content])
            if event.name == "MESSAGE_CREATE":
                self._check("posted", words)
            here = [Said(word, message.author.id, message.channel_id, message.id, self._words.step) for word in words]
            self._words.answers = others + here

    async def _search_disk(self) -> None:
        """Seeks in what is stored the words that nobody may be told any more."""
        await self._scene.bot.snapshots.settled()
        for path, found in {*all_on_disk(self._scene.folder, re.compile(WORD.pattern.encode()))}:
            if why := self._words.may_not_be_told(found.decode(), ANYWHERE, ()):
                self._find(f"stored in {path}, though {why}", found.decode())

    # What people do, and other bots

    async def _say(self, who: str) -> None:
        await self._post(who, self._places.one(who), "my code is")

    async def _mention(self, who: str) -> None:
        await self._post(who, self._places.one(who), f"<@{self._pg.bot_id}> tell me about")

    async def _reply(self, who: str) -> None:
        channel = self._places.one(who)
        if there := [m for m in self._pg.messages(channel)[-15:] if m.type in (0, REPLY)]:
            call = f"<@{self._pg.bot_id}> " if self._random.random() < 0.5 else ""
            await self._post(who, channel, f"{call}really,", reply_to=self._random.choice(there).id)

    async def _attach(self, who: str) -> None:
        call = f"<@{self._pg.bot_id}> " if self._random.random() < 0.7 else ""
        word = self._words.new()
        text = f"the plan is {word}"
        of = [File(f"{word}.txt", "text/plain", text.encode()), File("plan.pdf", "application/pdf", pdf([text]))]
        channel = self._places.one(who)
        await self._post(who, channel, f"{call}look at", also=[word], attachments=[self._random.choice(of)])

    async def _plan(self, who: str) -> None:
        """Asks the trip planner for something."""
        text = self._random.choice(TRIP).format(word := self._words.new())
        also = [word] if word in text else []
        await self._post(who, self._places.one(who), f"<@{self._pg.bot_id}> {text}", also=also, new=False)

    async def _act_by_itself(self, _who: str) -> None:
        act = self._random.choice((self._say, self._reply, self._edit, self._delete))
        await act(self._random.choice(AUTOMATIC))

    async def _ask_about(self, who: str) -> None:
        """Asks the bot about a message by its link."""
        if seen := self._places.seen(who):
            message = self._random.choice(seen)
            guild = self._words.guilds[message.channel_id] or "@me"
            link = f"https://discord.com/channels/{guild}/{message.channel_id}/{message.id}"
            self._links = [link]
            await self._post(who, self._places.one(who), f"<@{self._pg.bot_id}> what does {link} say, and")

    async def _forward(self, who: str) -> None:
        seen = [message for message in self._places.seen(who) if message.content]
        if not seen:
            return
        message, person = self._random.choice(seen), self._ids[who]
        self._ask_in(self._places.one(who))
        forward = self._pg.post(self._channel, person, forward=message)
        private = person in self._words.opted_out
        names = [attached["filename"] for attached in message.attachments]
        of = {said.word for said in self._words.first.values() if said.message_id == message.id}  # also in its files
        self._words.forwards += [
            Said(word, person, self._channel, forward.id, self._words.step, private=private)
            for word in of.union(_words_in([message.content, *names]))
        ]
        self.log.append(f"{who} forwards {message.id} to {self._channel} as {forward.id}: {message.content}")
        await self._posted_by(who, forward)

    async def _post(
        self, who: str, channel: int, text: str, *, also: Sequence[str] = (), new: bool = True, **how: Any
    ) -> None:
        """Posts a text with a new word. also: other words that are in the text or the files."""
        self._ask_in(channel)
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
        self._ask_in(message.channel_id, message.id)
        self._places.posted[who].append(message)
        if self._is_running and who in PEOPLE:
            await self._scene.until(lambda: self._scene.bot.parts.inbox.is_over(message.id))
            await asyncio.sleep(0)
        else:
            await self._heard("message", lambda heard: heard.id == message.id)

    # Threads and posts

    async def _post_in_forum(self, who: str) -> None:
        title, words, call = self._words.new(), self._words.new(), f"<@{self._pg.bot_id}> "
        self._ask_in(ANYWHERE)
        text = f"{call if self._random.random() < 0.5 else ''}what is {words}"
        thread = self._pg.forum_post(self._places.forum, self._ids[who], f"about {title}", text)
        self._note(Said(title, self._ids[who], thread, -thread, self._words.step))
        self._note(Said(words, self._ids[who], thread, thread, self._words.step))
        self.log.append(f"{who} posts {thread} in the forum: {title}: {text}")
        await self._posted_by(who, self._pg.messages(thread)[0])

    async def _open_thread(self, who: str) -> None:
        """Opens a thread, begun at a message or not, or a private one with the bot and somebody else."""
        channel = self._random.choice([id_ for id_ in self._places.channels if self._places.sees(who, id_)])
        person = self._ids[who]
        starters = [m for m in self._pg.messages(channel)[-15:] if m.id not in self._pg.world.threads]
        starter = self._random.choice([m for m in starters if m.type in (0, REPLY)] or [None])
        private, title = self._random.random() < 0.3, self._words.new()
        how: dict[str, Any] = {"private": True} if private else {"message": starter}
        self._ask_in(channel)
        thread = self._pg.open_thread(channel, person, f"about {title}", **how)
        if private:
            member = self._random.choice([*(self._words.readers[channel] - {person})])
            self._words.readers[thread] = frozenset((person, member))
            for member_id in (member, self._pg.bot_id):
                self._pg.add_to_thread(thread, member_id)
        self._note(Said(title, person, thread, -thread, self._words.step))
        self.log.append(f"{who} opens {thread} in {channel}: {title} {'in private' if private else 'at it'}")
        await self._post(who, thread, f"<@{self._pg.bot_id}> what is")

    async def _rename(self, who: str) -> None:
        """Gives somebody's thread another title."""
        if own := self._places.opened_by(who):
            thread, title = self._random.choice(own), self._words.new()
            self._ask_in(thread)
            self._words.gone(-thread)
            self._note(Said(title, self._ids[who], thread, -thread, self._words.step))
            self.log.append(f"{who} renames {thread}: {title}")
            self._pg.change_thread(thread, self._ids[who], archived=False)  # an archived one keeps its title
            self._pg.change_thread(thread, self._ids[who], name=f"about {title}")
            if self._is_running:
                heard = self._scene.bot.wait_for("raw_thread_update", check=lambda update: title in update.data["name"])
                await asyncio.wait_for(heard, timeout=60)
                await asyncio.gather(
                    *(t for t in asyncio.all_tasks() if t.get_name() == "discord.py: on_thread_update")
                )

    async def _archive(self, who: str) -> None:
        if threads := [id_ for id_ in self._places.threads if self._places.sees(who, id_)]:
            thread = self._random.choice(threads)
            self._ask_in(thread)
            self.log.append(f"{who} archives {thread}")
            self._pg.change_thread(thread, archived=True)

    async def _delete_thread(self, who: str) -> None:
        if own := self._places.opened_by(who):
            thread = self._random.choice(own)
            self._ask_in(ANYWHERE)
            self._places.gone(thread)
            self.log.append(f"{who} deletes the thread {thread}")
            self._pg.delete_channel(thread)
            await self._heard("raw_thread_delete", lambda deleted: deleted.thread_id == thread)

    # What becomes of messages

    async def _pin(self, who: str) -> None:
        """Pins a message, or no longer."""
        if seen := [message for message in self._places.seen(who) if message.type in (0, REPLY)]:
            message = self._random.choice(seen)
            self._ask_in(message.channel_id)
            self.log.append(f"{who} pins {message.id}: {message.content}")
            if message.pinned_at is None:
                self._pg.world.pin(message, self._pg.world.user(self._ids[who]))
            else:
                self._pg.world.unpin(message)

    async def _edit(self, who: str) -> None:
        own = [message for message in self._places.own(who) if WORD.search(message.content)]
        if own:
            message, word = self._random.choice(own), self._words.new()
            self._ask_in(message.channel_id, message.id)
            self._words.gone(message.id, WORD.findall(message.content))
            self._note(Said(word, self._ids[who], message.channel_id, message.id, self._words.step))
            self.log.append(f"{who} edits {message.id}: {word}")
            text = WORD.sub(word, message.content)
            self._pg.edit(message, text)
            await self._heard("raw_message_edit", lambda edited: edited.message_id == message.id)

    async def _delete(self, who: str) -> None:
        if own := self._places.own(who):
            message = self._random.choice(own)
            self._ask_in(message.channel_id)
            self._words.gone(message.id)
            self.log.append(f"{who} deletes {message.id}: {message.content}")
            self._pg.delete(message)
            await self._heard("raw_message_delete", lambda deleted: deleted.message_id == message.id)

    async def _remove_file(self, who: str) -> None:
        if own := [message for message in self._places.own(who) if message.attachments]:
            message = self._random.choice(own)
            self._ask_in(message.channel_id, message.id)
            own_words = WORD.findall(message.content)
            words = [said.word for said in self._words.first.values() if said.message_id == message.id]
            self._words.gone(message.id, set(words) - set(own_words))
            self.log.append(f"{who} removes the file of {message.id}")
            self._pg.world.edit(message, {"attachments": ()})
            await self._heard("raw_message_edit", lambda edited: edited.message_id == message.id)

    async def _heard(self, event: str, check: Callable[[Any], bool]) -> None:
        """Waits until the bot, if it is running, has done what it does at an event."""
        if self._is_running:
            await self._scene.bot.wait_for(event, check=check, timeout=60)
            handlers = [task for task in asyncio.all_tasks() if task.get_name().startswith("discord.py: on_")]
            await asyncio.gather(*handlers)

    # What people ask of the bot beside messages

    async def _click(self, who: str) -> None:
        cards = [m for m in self._places.seen(who) if m.author.id == self._pg.bot_id and choices(m)]
        if cards:
            card = self._random.choice(cards[-8:])
            label, custom_id, values = self._random.choice(choices(card))
            self._ask_in(card.channel_id)
            self._clicked |= {(who, word) for word in _words_in([label])}  # what they say by it
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
        await self._use(MANAGER, "forget", everything=True)
        self._words.channels_forgotten[self._channel] = self._words.step
        await self._search_disk()

    async def _opt_out(self, who: str) -> None:
        await self._use(who, "optout")
        self._words.opted_out.add(self._ids[who])
        self._words.people_forgotten[self._ids[who]] = self._words.step
        await self._search_disk()

    async def _opt_in(self, who: str) -> None:
        await self._use(who, "optin")
        self._words.opted_out.discard(self._ids[who])

    async def _export(self, who: str) -> None:
        answer = await self._use(who, "export")
        for attached in answer.attachments:
            file = self._pg.world.files[int(attached["id"])]
            words = _words_in([file.data.decode()])
            self._channel = ANYWHERE
            self._check("exported", words)
            for word in words:
                forwards = {said.author_id for said in self._words.forwards if said.word == word}
                is_own = self._ids[who] in forwards | {self._words.first[word].author_id}
                if not (is_own or (who, word) in self._clicked):
                    self._find(f"exported to {who}", word)

    async def _ask_why(self, who: str) -> None:
        self._check("shown", _words_in([(await self._use(who, "why")).content]))

    async def _use(self, who: str, name: str, **options: Any) -> Message:
        self._ask_in(self._places.one(who))
        if self._channel in self._places.threads:
            self._pg.change_thread(self._channel, archived=False)  # no command can be used in one that is archived
        used = self._pg.command(self._channel, self._ids[who], name, options)
        answer = await self._pg.reply_to(used, timeout=60)
        self.log.append(f"{who} uses /{name} in {self._channel}: {answer.content[:60]}")
        return answer

    # Where, and on what

    def _ask_in(self, channel: int, *asked: int) -> None:
        """asked: messages, also with the titles of the posts that they open."""
        self._channel, self._asked, self._calls = channel, frozenset((*asked, *(-id_ for id_ in asked))), 0


def _words_in(told: Iterable[str]) -> list[str]:
    return sorted({word for text in told for word in WORD.findall(text)})
