"""Turns with all around them faked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart

from agents.coordinator import Candidate, Choice, Picker
from agents.gateway import Place
from agents.team import Team
from conversation import ConversationManager, MessageRecord
from decider import Decision
from delivery.prompts import Prompts
from miniapps.base import MiniApp
from miniapps.router import MiniAppRouter
from state.awaiting import ConversationStateManager
from tests.support.clock import FakeClock
from tests.support.fake_agent import FakeAgent, Script
from tests.support.fake_wire import FakeWire
from tests.support.people import ANNA, BOT, CHANNEL, GUILD, IDS, said
from tests.support.virtual_time import until
from turns.answering import Answering
from turns.lanes import Turns
from turns.ledger import Ledger, Unfinished
from turns.turn import Question


class Bench:
    """Turns with all around them faked."""

    def __init__(self, *miniapps: MiniApp, has_docs: bool = False) -> None:
        self.clock = FakeClock()
        self.conversations = ConversationManager(60, clock=self.clock)
        self.agent = FakeAgent()
        self.docs = FakeAgent()  # who answers what names it
        self.wires: dict[int, FakeWire] = {}
        self.spent: list[int] = []
        self.has_budget = True
        self.before: list[MessageRecord] = []
        self.history_takes = 0.0
        self.recalled: list[int] = []
        self.states = ConversationStateManager(clock=self.clock)
        self.prompts = Prompts(self.states, self._open_wire, clock=self.clock)
        self.miniapps = MiniAppRouter(miniapps)
        self.ledger = Ledger()
        self.stored: list[Unfinished] = []  # what a kill would have left, each time that it was waited for
        self.kept: list[tuple[int, str]] = []
        self.ended: list[tuple[int, Decision | None]] = []
        others = {"docs": self.docs} if has_docs else {}
        candidates = [Candidate(name, "Knows the handbook.") for name in others]
        picker = Picker(candidates, model=None, has_budget=lambda: False, spend=self.spent.append)
        self.picked: list[tuple[int, Choice]] = []
        self.answering = Answering(
            team=Team(self.agent, others, picker, bot_id=lambda: BOT),
            picked=lambda questions, choice: self.picked.append((len(questions), choice)),
            miniapps=self.miniapps,
            states=self.states,
            load_history=self._load_history,
            has_budget=lambda: self.has_budget,
            clock=self.clock,
        )
        self.turns = Turns(
            conversations=self.conversations,
            answering=self.answering,
            prompts=self.prompts,
            open_wire=self._open_wire,
            bot=lambda: ("Parley", BOT),
            spend=self.spent.append,
            has_budget=lambda: self.has_budget,
            ledger=self.ledger,
            settled=self._settled,
            keep=lambda question, message: self.kept.append((question.message.message_id, message.content)),
            ended=lambda questions, silence: self.ended.extend((q.message.message_id, silence) for q in questions),
        )

    async def _settled(self) -> None:
        self.stored.append(self.ledger.of(CHANNEL))

    @property
    def wire(self) -> FakeWire:
        return self.wires.setdefault(CHANNEL, FakeWire())

    def _open_wire(self, _guild: int, channel: int) -> FakeWire:
        return self.wires.setdefault(channel, FakeWire(IDS))

    def ask(
        self, author: int = ANNA, text: str = "what?", *, channel: int = CHANNEL, starts: bool = False
    ) -> MessageRecord:
        """A message that wants an answer, recorded and submitted as the bot does."""
        message = self.say(author, text, channel=channel)
        self.turns.submit(self.question(message, channel, starts=starts))
        return message

    def question(self, message: MessageRecord, channel: int = CHANNEL, *, starts: bool = False) -> Question:
        place = Place("Parley", "The Guild", "general")
        return Question(message, GUILD, channel, place, starts_conversation=starts)

    def say(self, author: int, text: str, *, channel: int = CHANNEL) -> MessageRecord:
        message = said(author, text)
        if self.conversations.get(channel) is None:
            self.conversations.start(channel, [message])
        else:
            self.conversations.record_message(channel, message)
        return message

    def script(self, *scripts: Script) -> None:
        self.agent.scripts.extend(scripts)

    def history(self) -> list[ModelMessage]:
        conversation = self.conversations.get(CHANNEL)
        assert conversation
        return conversation.llm_history

    async def idle(self) -> None:
        """Waits until every turn has ended."""
        while tasks := [lane.task for lane in self.turns._lanes.values() if lane.task]:
            await asyncio.wait(tasks)

    async def _load_history(self, question: Question) -> Sequence[MessageRecord]:
        self.recalled.append(question.message.message_id)
        await asyncio.sleep(self.history_takes)
        return self.before


def answers(history: list[ModelMessage]) -> list[str]:
    """What the model is told that it said."""
    return [
        part.content for m in history if isinstance(m, ModelResponse) for part in m.parts if isinstance(part, TextPart)
    ]


def asked(bench: Bench) -> list[list[str]]:
    return [[message.content for message in request.questions] for request in bench.agent.requests]


async def running(bench: Bench, first: str = "") -> asyncio.Event:
    """A turn of Anna's that runs, and the gate that it waits at."""
    gate, earlier = asyncio.Event(), len(bench.agent.requests)
    bench.script(Script(first=first, gate=gate))
    bench.ask(ANNA, "one")
    await until(lambda: len(bench.agent.requests) > earlier and (not first or bench.wire.texts))
    return gate
