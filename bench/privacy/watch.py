"""The model of a walk, which repeats whatever it is told; and what it is told, posts and stores that it must not."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from random import Random
from typing import Any

import redis

from bench.privacy.sent import stamp_of
from bench.privacy.venues import Venues
from bench.privacy.words import ANYWHERE, WORD, Said, Words
from playground.model import Event, Message
from state.agent_state import GENERAL
from storage.redis_store import STATE_KEY
from storage.state_key import KEY_FILE
from tests.support.lives import all_on_disk
from tests.support.remote_agent import RemoteAgent, RemoteReply, whole
from tests.support.scene import Scene
from tests.support.stub_model import Body, Call, Reply, texts
from tests.support.stub_responses import StubResponses

DOCS = "docs"
WHOM = re.compile(r'(?:Now|Otherwise) answer ((?:"[^"]*"(?:, )?)+)\.$')
NAME = re.compile(r'"([^"]*)"')
JUDGED = re.compile(r"(?:The newest message|The question):\n([^:(\n]*[^:(\n ])")
TO_COMPLETE = "The newest message:\n"  # in the request that a question be completed
MAX_CALLS = 3  # of tools in a turn
KEPT_STEPS = 12  # of which the words are known as they stood then: longer no request is on its way
FIRST_PIECE = 30  # characters of an answer, which have two words
LONG_CODE = 150  # lines, of which a file is made


@dataclass(frozen=True, slots=True)
class Servers:
    """What the bot asks beside its model: a remote agent, OpenAI's Responses API, a place search."""

    docs: RemoteAgent
    openai: StubResponses
    venues: Venues


class Watch:
    """Checks each request to the models and the remote agent, each message of the bot, and the disk.

    found: what was wrong; log: what happened, in words. channel: in which the model is asked; asked: for which
    messages; by: who gets the answer. here: where several are answered together, 0: nowhere; in_flight: what they said
    there by id, with its author and the step. held: that the model waits for before its answer. links: that whoever
    asks has just given. gate: that the model waits for in the middle of its answer. redis_url: where the bot keeps
    things beside its folder; None: nowhere. told_step: up to which the bot has been told of what happened; posts: the
    same at the time when it made a post, by the post's nonce. openai: the Responses API.
    """

    def __init__(
        self,
        scene: Scene,
        servers: Servers,
        words: Words,
        random: Random,
        ids: Mapping[str, int],
    ) -> None:
        self.found: list[str] = []
        self.log: list[str] = []
        self.channel, self.asked, self.by = ANYWHERE, frozenset[int](), 0
        self.links: list[str] = []
        self.gate: asyncio.Event | None = None
        self.held: asyncio.Event | None = None
        self.here, self.in_flight = 0, dict[int, tuple[int, int]]()
        self._together = frozenset[int]()
        self.redis_url: str | None = None
        docs, venues, self.openai = servers.docs, servers.venues, servers.openai
        self._scene, self._docs, self._words, self._random, self._ids = scene, docs, words, random, ids
        self._calls = 0
        self._known_to_docs = defaultdict[str, set[str]](set)
        self.told_step = 0
        self.posts = dict[str, int]()
        self._as_of: dict[int, Words] = {}
        docs.default = self._answer_as_docs
        venues.on_request = self._look_up
        stub = scene.stub
        self.openai.default, self.openai.on_request = self._answer_with_state, stub.on_request
        # In half of the walks the beginning of a conversation is summed up after a few answers.
        stub.answer_tokens = random.choice((15, 1_500))
        stub.default, stub.judge_says, stub.rewriter_says = self._answer, self._judge, self._sum_up
        stub.evidence = lambda body: " ".join(words_in([json.dumps(body)])[:5])
        stub.hears = lambda data: " ".join(words_in([data.decode(errors="replace")]))
        scene.pg.world.listen(self._listen)

    def ask_in(self, channel: int, *asked: int, by: int = 0) -> None:
        """asked: messages, also with the titles of the posts that they open. by: 0: somebody who may read all there."""
        self.channel, self.asked, self.by, self._calls = channel, frozenset((*asked, *(-id_ for id_ in asked))), by, 0
        self._together = frozenset()

    def begin_step(self) -> None:
        """Begins a step, of which the bot has been told nothing yet."""
        self._as_of[self._words.step] = deepcopy(self._words)
        self._as_of.pop(self._words.step - KEPT_STEPS, None)
        self._words.step += 1

    def bot_was_told(self, step: int | None = None) -> None:
        """Notes that the bot has been told of all that has happened so far, or up to a step."""
        self.told_step = max(self.told_step, self._words.step if step is None else step)

    def check(
        self, how: str, words: Iterable[str], asked: Iterable[int] | None = None, told_step: int | None = None
    ) -> None:
        """told_step: up to which the bot had been told of what happened when it made the request or post; None: of
        all. It may just have been told of some of the steps since: what may be told after one of them is on its way."""
        there = self.asked if asked is None else frozenset(asked)
        steps = range(self._words.step if told_step is None else told_step, self._words.step)
        since = [self._as_of[step] for step in steps if step in self._as_of]
        for word in words:
            if (why := self._why_not(self._words, word, there)) and all(
                word not in then.first or self._why_not(then, word, there) for then in since
            ):
                self.find(f"{how}, though {why}", word)

    def _why_not(self, words: Words, word: str, asked: frozenset[int]) -> str:
        whys = (words.may_not_be_told(word, self.channel, asked, by) for by in self._together or {self.by})
        return next(filter(None, whys), "")

    def check_shown(self, how: str, words: Iterable[str], asked: Iterable[int] | None = None) -> None:
        """Checks what people are shown beside answers: the judge's words may repeat a title that a thread had."""
        self.check(f"shown {how}", [word for word in words if not self._words.is_former_title(word)], asked)

    def check_hides(self, how: str, words: Iterable[str]) -> None:
        """Checks that the console shows nothing that somebody said while opted out, as they still are, also in answers
        that are kept. What somebody else forwarded may count as theirs."""
        forwarded = {said.word for said in self._words.forwards}
        for first in (self._words.first[word] for word in words if word not in forwarded):
            if first.private and first.author_id in self._words.opted_out:
                self.find(f"shown {how}, though its author opted out", first.word)

    def find(self, what: str, word: str) -> None:
        self.found.append(f"{what}: {self._words.first[word]}, in {self.channel}")
        self.log.append(f"!! {self.found[-1]}")

    async def search_disk(self, why: Callable[[str], str] | None = None) -> None:
        """Seeks in what is stored the words that must not be there. why: as Words.may_not_be_kept()."""
        await self._scene.bot.snapshots.settled()
        await self._scene.bot.decision_log.flush()
        folder = self._scene.folder
        if self.redis_url:  # a copy, with what is in Redis
            folder = folder.with_name("searched")
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(self._scene.folder, folder)
            with redis.Redis.from_url(self.redis_url) as client:
                kept: list[Any] = [client.dump(name) for name in client.scan_iter()]
                key: Any = client.get(STATE_KEY)
            (folder / "redis").write_bytes(b"\n".join(kept))
            (folder / KEY_FILE).write_bytes(key)
        for path, found in {*all_on_disk(folder, re.compile(WORD.pattern.encode()))}:
            if reason := (why or self._words.may_not_be_kept)(found.decode()):
                self.find(f"stored in {path}, though {reason}", found.decode())

    def _answer(self, body: Body) -> Reply:
        # What it has said itself stays until the answer ends, as docs/privacy.md says.
        asked = max(place for place, message in enumerate(body["messages"]) if message["role"] == "user")
        told = [m for place, m in enumerate(body["messages"]) if place <= asked or m["role"] == "tool"]
        words = words_in([json.dumps({**body, "messages": told})])
        return self._answer_to(words, texts(body), body, self._scene.stub.headers)

    def _answer_with_state(self, body: Body) -> Reply:
        """Answers at OpenAI, which also tells the model what it has kept."""
        told = self.openai.seen[-1]
        if not body.get("stream"):
            return self._sum_up_all(words_in([json.dumps(body), *told]), told, self.openai.headers)
        # Without what it has said itself since it was asked, as above.
        asked = max((place for place, text in enumerate(told) if WHOM.search(text)), default=len(told))
        results = [item for item in body["input"] if item.get("type") == "function_call_output"]
        words = words_in([*told[: asked + 1], json.dumps({**body, "input": results})])
        return self._answer_to(words, told, body, self.openai.headers)

    def _answer_to(self, words: list[str], told: Sequence[str], body: Body, headers: Mapping[str, str]) -> Reply:
        self._find_whom(told)
        self.check("told", words, told_step=stamp_of(headers))
        if self.held:
            looks = self._calling("current_time").calls if self._random.random() < 0.5 else ()
            return Reply("Hm.", before=self.held, calls=looks)
        if self.gate or "tools" not in body:
            quoted = self._random.sample(words, min(len(words), 3))
            return Reply(f"I see: {', '.join(quoted)}.", gate=self.gate, chunk=FIRST_PIECE)
        chance = self._random.random()
        self._calls += 1
        if self._calls <= MAX_CALLS:
            if self.links and chance < 0.6:
                tool = self._random.choice(("read_message", "read_message", "pin"))
                return self._calling(tool, link=self._random.choice(self.links))
            if chance < 0.2:
                return self._calling("search_history", words=self._random.choice([*words, "code"]))
            if chance < 0.3:
                own = self._word_of_a_server() if self.by and self._random.random() < 0.5 else ""
                return self._calling("echo", text=own or self._random.choice([*words, "hm"]))
            if chance < 0.5 and words:
                first, second = self._random.choice(words), self._random.choice(words)
                return self._asking(f"Which {first}?", [second, "none"])
        if chance > 0.95 and words:
            lines = "\n".join(f"print('{self._random.choice(words)}')" for _ in range(LONG_CODE))
            return Reply(f"Here it is:\n```python\n{lines}\n```\nThat is all.", chunk=2_000)
        quoted = self._random.sample(words, min(len(words), 3)) if chance > 0.6 else []
        return Reply(f"I see: {', '.join(quoted)}.")

    def _find_whom(self, told: Sequence[str]) -> None:
        """Finds out of a request whom it answers together, and which messages."""
        asking = [found for text in told for found in WHOM.findall(text)] if self.here else []
        if asking:
            self.ask_in(self.here)
            self._together = frozenset(self._ids[name] for name in NAME.findall(asking[-1]))
            self.asked = self._asked_by(self._together)

    def _asked_by(self, people: Iterable[int]) -> frozenset[int]:
        """The messages of these people that may be waiting for an answer."""
        forgotten = self._words.people_forgotten
        return frozenset(
            message_id
            for message_id, (author, at) in self.in_flight.items()
            if author in people and at >= forgotten.get(author, 0)
        )

    def _asking(self, question: str, options: list[str]) -> Reply:
        """Asks people something by a tool."""
        match self._random.choice(("ask_choice", "ask_choice", "ask_text", "ask_confirmation", "create_poll")):
            case "ask_choice" | "create_poll" as name:
                return self._calling(name, question=question, options=options)
            case name:
                return self._calling(name, question=question)

    def _word_of_a_server(self) -> str:
        """A word that an MCP server gives for an answer, which goes with the question and whoever asked it."""
        word, author = self._words.new(), self.by
        question = max(self.asked, default=0)
        self.asked |= {question}
        self._words.first[word] = Said(
            word, author, self.channel, question, self._words.step, private=author in self._words.opted_out
        )
        return word

    def _sum_up(self, body: Body) -> Reply:
        return self._sum_up_all(words_in([json.dumps(body)]), texts(body), self._scene.stub.headers)

    def _sum_up_all(self, words: list[str], told: Sequence[str], headers: Mapping[str, str]) -> Reply:
        """A summary, or a question in full."""
        before = self.asked
        if any(TO_COMPLETE in text for text in told):  # a question, also of somebody who has opted out
            self.asked |= self._asked_by(self._ids.values())
            self._check_for_all("told to complete a question", words, headers)
        else:  # the history, which has no words of theirs
            self.asked = frozenset()
            self._check_for_all("told for a summary", words, headers)
        self.asked = before
        return Reply(" ".join(words) or "nothing")

    def _judge(self, body: Body) -> bool:
        """Judges a message or a question to everybody, which may be another one's, or picks an agent."""
        asked = json.dumps(body)
        words = WORD.findall(asked)
        by = next((self._ids[name] for name in JUDGED.findall("\n".join(texts(body)))[-1:]), 0)
        is_offer = '"can_help"' in asked and words
        channel = self._words.first[words[-1]].channel_id if is_offer else None
        self._check_for_all("told the judge", words, self._scene.stub.headers, channel, by)
        agents = (DOCS, GENERAL, "not sure")
        self._scene.stub.picks = self._random.choice(agents) if '"agent"' in asked else ""
        return self._random.random() < 0.5

    def _check_for_all(
        self, how: str, words: Iterable[str], headers: Mapping[str, str], channel: int | None = None, by: int = 0
    ) -> None:
        """Checks what a model is told that answers nobody. channel: in which, if it is not the one that is asked in.
        by: whose message it judges; 0: nobody's."""
        before = self.channel, self.by, self._together
        self.channel, self.by, self._together = self.channel if channel is None else channel, by, frozenset()
        self.check(how, words, told_step=stamp_of(headers))
        self.channel, self.by, self._together = before

    def _answer_as_docs(self, content: str) -> RemoteReply:
        """The remote agent knows all that it was told in the same conversation."""
        known = self._known_to_docs[self._docs.asked[-1].path]
        if self.here:
            self.ask_in(self.here)
        self.check("told the remote agent", words_in([content]), ())
        known.update(words_in([content]))
        self.check("known to the remote agent", sorted(known))
        return whole(f"I know: {', '.join(self._random.sample(sorted(known), min(len(known), 3)))}.", before=self.held)

    def _look_up(self, query: str) -> None:
        self._scene.pg.notify()
        self.check("told the place search", words_in([query]))

    def _calling(self, tool: str, **arguments: Any) -> Reply:
        return Reply(calls=(Call(tool, json.dumps(arguments), f"call-{len(self.log)}-{self._calls}"),))

    def _listen(self, event: Event) -> None:
        """Notes which words stand in the bot's messages."""
        message = event.message
        thread = event.channel.thread if event.channel and event.name == "THREAD_CREATE" else None
        if event.channel and thread and thread.owner_id == self._scene.pg.bot_id:
            before = self.channel, self.by
            self.channel = event.channel.parent_id or 0
            for reader in self._words.readers[self.channel]:  # whoever sees the thread sees its title
                self.by = reader
                self.check("in a title", words_in([event.channel.name]), ())
            self.channel, self.by = before
        if message and message.author.id == self._scene.pg.bot_id and event.name.startswith("MESSAGE_"):
            others = [said for said in self._words.answers if said.message_id != message.id]
            files = [self._scene.pg.world.files[int(attached["id"])].data for attached in message.attachments]
            words = words_in(
                [message.content, json.dumps(message.poll), *(data.decode(errors="replace") for data in files)]
            )
            if event.name == "MESSAGE_CREATE":
                self._check_posted(message, words)
            to = self._answered_by(message)
            where = message.author.id, message.channel_id, message.id, self._words.step
            self._words.answers = others + [Said(word, *where, to=to) for word in words]

    def _answered_by(self, message: Message) -> frozenset[int]:
        """Whom the bot answers by a message."""
        if before := [said.to for said in self._words.answers if said.message_id == message.id]:
            return before[0]  # of which it is an edit
        there = self._scene.pg.messages(message.channel_id)
        asked = {one.author.id for one in there if one.id == message.points_at}
        return self._together.union(asked) if self.here else frozenset((self.by, *asked))

    def _check_posted(self, message: Message, words: list[str]) -> None:
        """Where several are answered, a message is for whoever wrote what it replies to, or with others."""
        before = self.asked, self.by, self._together
        if self.here and (question := self.in_flight.get(message.points_at or 0)):
            self.by = question[0]
            if self.by not in self._together:
                self.asked, self._together = self._asked_by([self.by]), frozenset()
        self.check("posted", words, told_step=self.posts.get(str(message.nonce)))
        self.asked, self.by, self._together = before


def words_in(told: Iterable[str]) -> list[str]:
    return sorted({word for text in told for word in WORD.findall(text)})
