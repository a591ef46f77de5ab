"""Turns with all around them faked."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import cast

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart

from activity import Activity
from agents.coordinator import Candidate, Choice, Picker
from agents.demo import demo_model
from agents.models import Models
from agents.team import Team
from conversation import ChannelConversation, ConversationManager, MessageRecord
from decider import Decision
from discord_io.attachments import Attachments
from discord_io.prompt_cards import PromptCards
from files.reading import FileReader
from miniapps.base import FollowUp, MiniApp
from miniapps.router import MiniAppRouter
from offers.offer import Reply
from offers.open_offers import OpenOffers
from place import Place
from state.awaiting import ConversationStateManager
from state.budget import Budget
from state.message import Source
from state.spending import Payer, Spent
from tests.support.clock import FakeClock
from tests.support.fake_agent import FakeAgent, Script
from tests.support.fake_wire import FakeWire
from tests.support.people import ANNA, BOT, CHANNEL, GUILD, IDS, said
from tests.support.purse import NotingPurse
from tests.support.virtual_time import until
from turns.answering import Answering
from turns.compaction import Compaction
from turns.meanings import Meanings
from turns.pending_turns import PendingTurns, Unfinished
from turns.preparing import Preparing
from turns.records import Records
from turns.turn import Question, Turn
from turns.turn_making import TurnMaker
from turns.turn_queue import Intake, TurnQueue
from turns.turn_slots import TurnSlots


class Bench:
    """Turns with all around them faked."""

    def __init__(self, *miniapps: MiniApp, has_docs: bool = False, at_once: int = 64) -> None:
        self.clock = FakeClock()
        self.conversations = ConversationManager(60, clock=self.clock)
        self.agent = FakeAgent()
        self.docs = FakeAgent()  # who answers what names it
        self.wires: dict[int, FakeWire] = {}
        self.spent: list[int] = []
        self.has_budget = True
        self.newcomers: frozenset[int] = frozenset()
        self.before: list[MessageRecord] = []
        self.history_takes = 0.0
        self.recalled: list[int] = []
        self.states = ConversationStateManager(clock=self.clock)
        self.around = Around(self)
        self.prompts = PromptCards(self.states, self.around, clock=self.clock)
        self.miniapps = MiniAppRouter(miniapps)
        self.pending = PendingTurns()
        self.stored: list[Unfinished] = []  # what a kill would have left, each time that it was waited for
        self.kept: list[tuple[int, str]] = []
        self.ended: list[tuple[int, Decision | None]] = []
        others = {"docs": self.docs} if has_docs else {}
        candidates = [Candidate(name, "Knows the handbook.") for name in others]
        picker = Picker(candidates, model=None, purse=NotingPurse(self.spent))
        self.picked: list[tuple[int, Choice]] = []
        budget, records = cast(Budget, self.around), cast(Records, self.around)
        compaction = Compaction(self.conversations, records, None, 12_000)
        models = Models({"demo": demo_model()})
        files = FileReader(Attachments(None), 60_000)
        self.preparing = Preparing(self.around, self.states, budget, None, compaction, files, models)
        team = Team(self.agent, others, picker, bot=self.around)
        self.slots = TurnSlots(at_once)
        self.answering = Answering(
            team,
            self.miniapps,
            self.states,
            self.preparing,
            records,
            self.slots,
            self.around,
            waiting=self.pending.waiting_in,
            clock=self.clock,
        )
        self.activity = Activity(self.clock)
        self.offers = FakeOffers()
        self.meanings = Meanings(
            conversations=self.conversations,
            states=self.states,
            prompts=self.prompts,
            miniapps=self.miniapps,
            offers=cast(OpenOffers, self.offers),
            discord=self.around,
        )
        self.maker = TurnMaker(
            self.conversations,
            self.answering,
            self.prompts,
            budget,
            self.meanings,
            self.pending,
            records,
            self.activity,
        )
        self.turns = TurnQueue(
            conversations=self.conversations,
            maker=self.maker,
            meanings=self.meanings,
            discord=self.around,
            pending=self.pending,
            records=records,
            activity=self.activity,
            picks=team.has_several,
        )
        self.intake = Intake(
            meanings=self.meanings, states=self.states, prompts=self.prompts, turns=self.turns, discord=self.around
        )

    @property
    def wire(self) -> FakeWire:
        return self.wires.setdefault(CHANNEL, FakeWire())

    def ask(
        self,
        author: int = ANNA,
        text: str = "what?",
        *,
        channel: int = CHANNEL,
        starts: bool = False,
        guild: int = GUILD,
    ) -> MessageRecord:
        """A message that wants an answer, recorded and submitted as the bot does."""
        message = self.say(author, text, channel=channel)
        self.turns.submit(self.question(message, channel, starts=starts, guild=guild))
        return message

    async def answered(
        self, author: int = ANNA, text: str = "what?", *, channel: int = CHANNEL, starts: bool = False
    ) -> MessageRecord:
        """As ask(), and waits until every turn has ended."""
        message = self.ask(author, text, channel=channel, starts=starts)
        await self.idle()
        return message

    def question(
        self, message: MessageRecord, channel: int = CHANNEL, *, starts: bool = False, guild: int = GUILD
    ) -> Question:
        place = Place(guild, channel, bot_name="Parley", guild="The Guild", channel="general")
        return Question(message, place, starts_conversation=starts)

    def say(self, author: int, text: str, *, channel: int = CHANNEL) -> MessageRecord:
        message = said(author, text)
        if self.conversations.get(channel) is None:
            self.conversations.start(channel, [message])
        else:
            self.conversations.record_message(channel, message)
        return message

    def script(self, *scripts: Script) -> None:
        self.agent.scripts.extend(scripts)

    @property
    def conversation(self) -> ChannelConversation:
        conversation = self.conversations.get(CHANNEL)
        assert conversation
        return conversation

    def history(self) -> list[ModelMessage]:
        return self.conversation.llm_history

    async def idle(self) -> None:
        """Waits until every turn has ended."""
        while tasks := [queue.task for queue in self.turns._queues.values() if queue.task]:
            await asyncio.wait(tasks)


class FakeOffers:
    """One open offer. reply: what the next message replies to it."""

    def __init__(self) -> None:
        self.reply: Reply | None = None

    def is_open(self, _channel_id: int) -> bool:
        return self.reply is not None

    def reply_of(self, _channel_id: int, _message: MessageRecord) -> Reply | None:
        return self.reply


class FakeAllowance:
    """Notes what is spent."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.all_spent: list[Spent] = []

    def settle(self, tokens: int, **_how: bool) -> int:
        self._bench.spent.append(tokens)
        return tokens

    def spent_budget(self) -> None:
        """None is."""

    def managers_notice(self) -> None:
        """Nobody is told of any."""


class Around:
    """All that turns ask of others, and tell them, noted at the bench."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def bot(self) -> tuple[str, int]:
        return "Parley", BOT

    async def newcomers(self, _place: Place, people: Collection[int]) -> frozenset[int]:
        return self._bench.newcomers.intersection(people)

    def named_now(self, place: Place) -> Place:
        return place

    def open(self, _guild_id: int, channel_id: int) -> FakeWire:
        return self._bench.wires.setdefault(channel_id, FakeWire(IDS))

    def allowance(self, _payer: Payer) -> FakeAllowance:
        return FakeAllowance(self._bench)

    def has_budget(self) -> bool:
        return self._bench.has_budget

    async def before(self, _guild_id: int, _channel_id: int, asked: MessageRecord) -> Sequence[MessageRecord]:
        self._bench.recalled.append(asked.message_id)
        await asyncio.sleep(self._bench.history_takes)
        return self._bench.before

    @property
    def mark(self) -> int:
        return 0

    async def stored(self) -> None:
        self._bench.stored.append(self._bench.pending.of(CHANNEL))

    def said(self, question: Question, record: MessageRecord) -> None:
        self._bench.kept.append((question.message.message_id, record.content))

    def answered(self, turn: Turn, records: Sequence[MessageRecord]) -> None:
        for record in records:
            self.said(turn.newest, record)

    def ended(self, turn: Turn, silence: Decision | None) -> None:
        self._bench.ended.extend((q.message.message_id, silence) for q in turn.questions)

    def picked(self, turn: Turn, choice: Choice) -> None:
        self._bench.picked.append((len(turn.questions), choice))

    def made_by(self, questions: Sequence[Question], model: str) -> None:
        """What /why tells is not looked at here."""

    def looked_up(self, channel_id: int, sources: Sequence[Source]) -> None:
        """No tool gives the agent anything."""

    def shared(self, channel_id: int, agent: str, words: Collection[str]) -> None:
        """What went is not looked at here."""

    def titled(self, question: Question) -> Place:
        """Nobody is forgotten."""
        return question.place

    def follow_up(self, question: Question, follow_up: FollowUp, now: datetime) -> None:
        """Nobody comes back to anything."""


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
