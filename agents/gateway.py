"""The interface of agents: the request for one turn, and its outcome."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from pydantic_ai.messages import ModelMessage

from conversation import MessageRecord
from discord_io.made_files import MadeFile
from files.reading import Reading
from llm_history import only
from miniapps.base import FollowUp
from place import Place
from state.agent_state import AgentState
from state.budget import Allowance
from state.message import Link, Source, unquoting
from state.prompts import Ask, ResolutionType
from state.spending import Spent


@dataclass(frozen=True, slots=True)
class Asked:
    """For whom, and where, a tool runs: the newest question of the turn, and its author.

    people: all for whom the answer is; what one of them may not read is shown to none. links: the messages that people
    linked to in the conversation, each with the id of the user who did. allowed: who allowed a call that needed
    approval, by the call's id. made: files from tools, to be posted with the answer. is_direct: they asked in a direct
    message, where nobody else reads. newcomers: those who may not read the history there.
    """

    guild_id: int
    channel_id: int
    user_id: int
    message_id: int
    people: frozenset[int] = frozenset()
    links: frozenset[tuple[int, Link]] = frozenset()
    allowed: Mapping[str, int] = field(default_factory=dict)
    made: list[MadeFile] = field(default_factory=list, compare=False)
    is_direct: bool = False
    newcomers: frozenset[int] = frozenset()

    @property
    def everybody(self) -> frozenset[int]:
        return self.people | {self.user_id}

    def gave(self, link: Link) -> bool:
        """Whether one of those who ask posted a link to this message."""
        return any((who, link) in self.links for who in self.everybody)

    def by_whoever_allowed(self, call_id: str | None) -> Asked:
        """The same on behalf of only the user who allowed a call."""
        return replace(self, user_id=self.allowed.get(call_id or "", self.user_id), people=frozenset())


NOBODY = Asked(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Reply:
    """A user's answer to a question of the agent.

    ask_id: the one in the context of its Ask. data: the resolution's keys: selection_index (from 1), selected_option,
    confirmed, content.
    """

    ask_id: str
    type: ResolutionType
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class AgentRequest:
    """One turn. history: what the model was sent and answered so far; transcript: the messages since, oldest first,
    including the questions; questions: the messages to answer. now: aware.

    notes: lines that the model is shown in this turn, and which the history does not keep; noted_of: the ids of the
    messages whose words these, or what is shared, may have. reply: the answer to the agent's question, with which its
    run is resumed. asked: for whom tools run. tell_stage: called with what the agent is doing, in a few words. used:
    called with the names of the tools that it calls. looked_up: called with the sources of words in tool results. gone:
    what was edited, deleted or forgotten since the turn began, now; current: a history without that, as all who ask may
    read it; noted_now: the request with the thread's title, notes, questions and what is shared as of now.

    state: what this agent returned as its state before. shared: what people mentioned last, the same for every agent,
    see understanding/shared_context.py; like the notes for this turn only. is_private: an author opted out of being
    kept. said: where somebody who asks may not read the history, the messages, by id, that the model is told of it,
    though the history keeps more; None: all. may_decline: nobody called the bot, so the agent may stay silent.
    allowance: from which its model's calls are reserved, and in which they are counted; None: they are not. attached:
    the results of reading the files of the transcript's messages, by the files' keys; other files are not mentioned.
    model: the name of the model to use, if there are several; None: the default.
    """

    history: Sequence[ModelMessage]
    transcript: Sequence[MessageRecord]
    questions: Sequence[MessageRecord]
    place: Place
    now: datetime
    notes: Sequence[str] = ()
    noted_of: Collection[int] = ()
    reply: Reply | None = None
    asked: Asked = NOBODY
    tell_stage: Callable[[str], None] = lambda _stage: None
    used: Callable[[Sequence[str]], None] = lambda _tools: None
    looked_up: Callable[[Sequence[Source]], None] = lambda _sources: None
    gone: Collection[Source] = ()
    current: Callable[[list[ModelMessage]], list[ModelMessage]] = lambda history: history
    noted_now: Callable[[AgentRequest], AgentRequest] = lambda request: request
    state: AgentState | None = None
    shared: Mapping[str, str] = field(default_factory=dict)
    is_private: bool = False
    said: Mapping[int, MessageRecord] | None = None
    may_decline: bool = False
    allowance: Allowance | None = None
    attached: Mapping[str, Reading] = field(default_factory=dict)
    model: str | None = None

    def count(self, tokens: int, spent: Spent) -> None:
        """Counts what its model's calls have used by now; spent: the last call's use."""
        if self.allowance:
            self.allowance.count(tokens, spent)

    @property
    def seen(self) -> AgentRequest:
        """The request as the model is told it."""
        if (said := self.said) is None:
            return self
        told = [unquoting(m, said) for m in self.transcript if m.message_id in said]
        return replace(self, history=only(self.history, said, self.asked.newcomers), transcript=told)


class FailureKind(StrEnum):
    """What went wrong, in terms that the waiting person can be told."""

    BUSY = "busy"
    NO_CREDIT = "no_credit"
    MISCONFIGURED = "misconfigured"
    REJECTED = "rejected"
    TOO_LONG = "too_long"
    UNAVAILABLE = "unavailable"
    LATE = "late"
    WAITED = "waited"
    EMPTY = "empty"
    OUT_OF_ROOM = "out_of_room"
    WITHHELD = "withheld"
    OVER_BUDGET = "over_budget"
    TURN_CAP = "turn_cap"
    INTERNAL = "internal"
    MINIAPP = "miniapp"


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer. history: replaces the one of the request. was_cut: it was ended at the greatest length.

    ask: the question to open once the text is posted; its context's ask_id comes back in the Reply. soft_context: what
    the conversation is about from then on, and follow_up: what to come back to, as a mini-app says. state: passed to
    the agent in its next turn. instructions: those that the model had. files: posted with the answer. model: the name
    of the one that answered.
    """

    text: str
    history: list[ModelMessage]
    tokens: int
    was_cut: bool = False
    ask: Ask | None = None
    soft_context: Mapping[str, Any] = field(default_factory=dict)
    follow_up: FollowUp | None = None
    state: AgentState | None = None
    instructions: str = ""
    files: tuple[MadeFile, ...] = ()
    model: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """No answer, or only its beginning, in text. detail: one sentence for the log. state: as in Answer."""

    kind: FailureKind
    detail: str
    text: str = ""
    tokens: int = 0
    state: AgentState | None = None


@dataclass(frozen=True, slots=True)
class Declined:
    """No answer, by the agent's own choice. why: in its own words, of any length. state: as in Answer."""

    why: str
    tokens: int = 0
    state: AgentState | None = None


Outcome = Answer | Failure | Declined


class Bot(Protocol):
    """The bot's identity."""

    def bot(self) -> tuple[str, int]:
        """Its name and id."""
        ...


class AgentGateway(Protocol):
    """An agent that answers."""

    async def respond(self, request: AgentRequest, show: Callable[[str], None]) -> Outcome:
        """Answers, or declines if it may. show: called with the whole text so far, each time it grows."""
        ...

    def interrupted(self, request: AgentRequest, text: str) -> Answer:
        """The answer as far as it came when somebody stopped it; its tokens: what respond() used for this request."""
        ...
