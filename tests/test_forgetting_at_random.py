"""Conversations of few messages, in which people do at random what they do: nothing of the forgotten is left."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart

from conversation import ChannelConversation, ConversationManager, MessageRecord, StoredConversation
from llm_history import told
from tests.support.clock import FakeClock

BOT, PEOPLE = 1, (11, 12, 13, 14)
WORD = re.compile(r"w\d+x")
STEPS = 60


class Walk:
    """authors: whose each word is; forgotten: the words of those who were; through: the newest id when each was."""

    def __init__(self, seed: int) -> None:
        self._random, self._clock = Random(seed), FakeClock()
        self._few = self._random.choice((4, 6, 9, 30))
        self._manager = self._anew()
        self._said: dict[int, MessageRecord] = {}
        self._authors: dict[str, int] = {}
        self._forgotten: set[str] = set()
        self._through: dict[int, int] = {}
        self._newest, self._channel = 1_000, 700
        self.log: list[str] = []

    def _anew(self) -> ConversationManager:
        return ConversationManager(1e9, clock=self._clock, max_messages=self._few)

    @property
    def _talk(self) -> ChannelConversation:
        talk = self._manager.get(self._channel)
        assert talk
        return talk

    def take(self) -> None:
        self._manager.start(self._channel, [self._message()])
        acts = [self._say, self._edit, self._edit, self._delete, self._miniapp, self._flood, self._forget]
        acts += [self._forward, self._cut, self._restart, self._move, *[self._turn] * 4]
        for _ in range(STEPS):
            self._clock.advance(1)
            self._random.choice(acts)()
            messages = self._talk.messages
            self._check("told", texts(self._talk.llm_history))
            self._check("recorded", [words for m in messages for words in (m.text, m.reply_to_text)])

    def _check(self, how: str, found: Iterable[str]) -> None:
        left = words_in(found) & self._forgotten
        assert not left, f"{how}: {left} by {[self._authors[word] for word in left]}"

    def _some(self, chance: float, *acts: Callable[[], object]) -> None:
        if self._random.random() < chance:
            self._random.choice(acts)()

    def _record(self, who: int, text: str, **how: Any) -> MessageRecord:
        self._newest += 1
        message = MessageRecord(f"n{who}", who, text, self._clock(), is_bot=who == BOT, message_id=self._newest)
        message = replace(message, **how)
        self._said[self._newest] = message
        self.log.append(f"{self._newest} by {who}: {message.text}, to {message.reply_to_id}")
        return message

    def _message(self, who: int = 0) -> MessageRecord:
        who = who or self._random.choice(PEOPLE)
        return self._record(who, f"says {self._word(who)}")

    def _word(self, who: int) -> str:
        word = f"w{len(self._authors)}x"
        self._authors[word] = who
        return word

    def _say(self) -> MessageRecord:
        message = self._message()
        if self._talk.messages and self._random.random() < 0.5:
            to = self._random.choice(self._talk.messages)
            name, quote = to.author, to.text
            message = replace(message, reply_to_id=to.message_id, reply_to_author_id=to.author_id)
            message = replace(message, reply_to_author=name, reply_to_text=quote)
            self.log.append(f"which replies to {to.message_id}")
        self._manager.record_message(self._channel, message)
        return message

    def _flood(self) -> None:
        for _ in range(6):
            self._say()

    def _forward(self) -> None:
        of = [m for m in self._talk.messages if not words_in([m.text]) & self._forgotten]
        if of:
            original, who = self._random.choice(of), self._random.choice(PEOPLE)
            whose = {original.author_id, *original.drew_on, *original.addressees} - {who}
            forward = self._record(who, "", readable=f"[forwarded] {original.text}", drew_on=frozenset(whose))
            self._manager.record_message(self._channel, forward)

    def _miniapp(self) -> None:
        question = self._say()
        to: dict[str, Any] = {"reply_to_id": question.message_id, "addressees": frozenset({question.author_id})}
        self._manager.record_message(
            self._channel, self._record(BOT, f"Created {question.content}", **to), by_model=False
        )

    def _edit(self) -> None:
        known = self._talk.messages if self._random.random() < 0.6 else [*self._said.values()]
        if own := [m for m in known if not m.is_bot and m.content and not self._is_forgotten(m)]:
            message = self._random.choice(own)
            before = self._talk.find(message.message_id) or replace(message, reply_to_text="")
            edited = replace(before, content=f"says {self._word(message.author_id)}")
            self.log.append(f"edit of {message.message_id}: {edited.content}")
            self._manager.revise(self._channel, edited)

    def _delete(self) -> None:
        if self._talk.messages:
            message_id = self._random.choice(self._talk.messages).message_id
            self.log.append(f"{message_id} is deleted")
            self._manager.forget_messages(self._channel, [message_id])
            self._said.pop(message_id, None)

    def _forget(self) -> None:
        who = self._random.choice(PEOPLE)
        self.log.append(f"{who} is forgotten")
        self._manager.forget_author(self._channel, who)
        self._through[who] = self._newest
        self._forgotten |= {word for word, author in self._authors.items() if author == who}

    def _is_forgotten(self, message: MessageRecord) -> bool:
        return message.message_id <= self._through.get(message.author_id, 0)

    def _cut(self) -> None:
        if made := self._talk.cut(self._random.choice((20, 60))):
            summary = " ".join(sorted(words_in(texts(self._talk.llm_history[: made.start]))))
            self._some(0.3, self._say, self._forget, self._edit)
            self._manager.shorten(self._channel, made, summary if self._random.random() < 0.6 else "")
            self.log.append(f"cut at {made.start}")

    def _restart(self) -> None:
        stored, messages = self._manager.stored(self._channel), self._talk.messages
        assert stored
        self._manager = self._anew()
        own = [m for m in messages if m.message_id >= stored.since]
        self._manager.restore(self._channel, StoredConversation.from_json(stored.to_json()), own)
        self.log.append("restart")

    def _move(self) -> None:
        self._manager.move(self._channel, self._channel + 1)
        self._channel += 1
        self.log.append("to a thread")

    def _turn(self) -> None:
        """Somebody asks, and the model repeats what it is told; people go on meanwhile."""
        question = self._say()
        self._talk.begin_turn()
        meanwhile = self._say, self._say, self._edit, self._delete, self._forget, self._forward
        self._some(0.3, *meanwhile)
        if self._is_gone(question):
            return
        told_now = self._talk.untold()
        if question.message_id not in {m.message_id for m in told_now}:
            told_now = [self._now(question), *told_now]
        metadata = {"told": [m.message_id for m in told_now]}
        prompt = ModelRequest([UserPromptPart([p for m in told_now for p in told(m)])], metadata=metadata)
        history = [*self._talk.llm_history, prompt]
        self._check("told", texts(history))
        known = sorted(words_in(texts(history)))
        for _ in range(self._random.randrange(4)):
            self._some(0.5, *meanwhile)
        asked = [] if self._is_gone(question) else [self._now(question)]
        self._check("told", texts(self._talk.current(history, asked)))
        if asked:
            self._answer(question, history, " ".join(self._random.sample(known, min(3, len(known)))))

    def _is_gone(self, question: MessageRecord) -> bool:
        quoted = words_in([self._now(question).reply_to_text]) & self._forgotten
        return self._talk.is_deleted(question.message_id) or self._is_forgotten(question) or bool(quoted)

    def _now(self, question: MessageRecord) -> MessageRecord:
        return self._talk.latest(question.message_id) or question

    def _answer(self, question: MessageRecord, history: Sequence[ModelMessage], words: str) -> None:
        to: dict[str, Any] = {"reply_to_id": question.message_id, "addressees": frozenset({question.author_id})}
        parts = [self._record(BOT, f"I see {words}", **to) for _ in range(self._random.choice((1, 1, 2)))]
        for part in parts:
            self._manager.record_message(self._channel, part)
            self._some(0.4, self._say, self._edit, self._forget, self._delete)
            self._manager.record_message(self._channel, replace(part, content=f"{part.content}."))
            self._check("recorded", [words for m in self._talk.messages for words in (m.text, m.reply_to_text)])
        self._manager.record_bot_response(self._channel, [*history, ModelResponse([TextPart(f"I see {words}")])])
        for part in parts:
            found = self._talk.find(part.message_id) or self._talk.drawing(part)
            if not found.drew_on.isdisjoint(self._talk.tainted):
                self._manager.forget_messages(self._channel, [part.message_id])
                self._said.pop(part.message_id, None)


def texts(history: Iterable[ModelMessage]) -> list[str]:
    parts = [part for message in history for part in message.parts]
    prompts = [item for part in parts if isinstance(part, UserPromptPart) for item in part.content]
    answers = [part.content for part in parts if isinstance(part, TextPart)]
    return [*answers, *(getattr(item, "content", "") for item in prompts)]


def words_in(found: Iterable[str]) -> set[str]:
    return {word for text in found for word in WORD.findall(text)}


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_nothing_of_the_forgotten_is_left(first: int) -> None:
    for seed in range(first, first + 50):
        walk = Walk(seed)
        try:
            walk.take()
        except AssertionError as error:
            pytest.fail(f"seed {seed}: {error}\n" + "\n".join(walk.log[-40:]))
