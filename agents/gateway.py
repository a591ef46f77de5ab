"""How an agent is reached: what it is given for one turn, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from pydantic_ai.messages import ModelMessage

from conversation import MessageRecord
from discord_io.made_files import MadeFile
from files.reading import Reading
from llm_history import seen_since
from miniapps.base import FollowUp
from place import Place
from state.agent_state import AgentState
from state.budget import Allowance
from state.message import Link, Source
from state.prompts import Ask, ResolutionType
from state.spending import Spent


@dataclass(frozen=True, slots=True)
class Asked:
    """For whom, and where, a tool runs: the newest question of the turn, and whose it is.

    people: all whose questions are answered together: what one of them may not read nobody is told. links: which
    messages people linked to in the conversation, each with the id of whoever did. allowed: by the id of a call that
    needed to be allowed, who did. made: what tools have given to be posted with the answer. is_direct: they asked in a
    direct message, where nobody else reads.
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

    @property
    def everybody(self) -> frozenset[int]:
        return self.people | {self.user_id}

    def gave(self, link: Link) -> bool:
        """Whether one of those who ask linked to this message in their own words."""
        return any((who, link) in self.links for who in self.everybody)

    def by_whoever_allowed(self, call_id: str | None) -> Asked:
        """On behalf of whoever allowed a call, and of nobody else."""
        return replace(self, user_id=self.allowed.get(call_id or "", self.user_id), people=frozenset())


NOBODY = Asked(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Reply:
    """How somebody resolved what the agent had asked.

    ask_id: the one in the context of its Ask. data: the resolution's keys: selection_index (from 1), selected_option,
    confirmed, content.
    """

    ask_id: str
    type: ResolutionType
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class AgentRequest:
    """One turn. history: what the model was told and said so far; transcript: what was said since, oldest first,
    the questions among it; questions: the messages that want an answer. now: aware.

    notes: lines that the model is shown in this turn, and which the history does not keep. reply: what the agent had
    asked is resolved, and it goes on from there. asked: for whom tools run. tell_stage: told what the agent is doing
    before it goes on to speak, in a few words. used: told the names of the tools that it calls. looked_up: told whose
    words its tools gave, and which.
    state: what this agent left to be given back to it. shared: what people mentioned last, for every agent alike, as of
    understanding/shared_context.py; like the notes it is for this turn only. is_private: somebody who asks does not
    want to be kept. since: the first message that all who ask may read: of what was said before, the model is told
    nothing, though the history keeps it. may_decline: nobody called the bot, so that the agent may keep silent.
    allowance: what its model's calls are reserved from and counted in; None: they are not. attached: what became of the
    files beside the transcript's messages, by their keys; nothing of a file that is not in it is told. model: the name
    of the one that answers, where there are several; None: the default.
    """

    history: Sequence[ModelMessage]
    transcript: Sequence[MessageRecord]
    questions: Sequence[MessageRecord]
    place: Place
    now: datetime
    notes: Sequence[str] = ()
    reply: Reply | None = None
    asked: Asked = NOBODY
    tell_stage: Callable[[str], None] = lambda _stage: None
    used: Callable[[Sequence[str]], None] = lambda _tools: None
    looked_up: Callable[[Sequence[Source]], None] = lambda _sources: None
    state: AgentState | None = None
    shared: Mapping[str, str] = field(default_factory=dict)
    is_private: bool = False
    since: int = 0
    may_decline: bool = False
    allowance: Allowance | None = None
    attached: Mapping[str, Reading] = field(default_factory=dict)
    model: str | None = None

    def count(self, tokens: int, spent: Spent) -> None:
        """Counts what its model's calls have used by now; spent: the last of them."""
        if self.allowance:
            self.allowance.count(tokens, spent)

    @property
    def is_apart(self) -> bool:
        """Whether the provider is to remember nothing of it, and not to go on with what it remembers."""
        return self.is_private or bool(self.since)

    @property
    def seen(self) -> AgentRequest:
        """The request as far as all who ask may read what it tells."""
        if not self.since:
            return self
        asked = {question.message_id for question in self.questions}
        transcript = [m for m in self.transcript if m.message_id >= self.since or m.message_id in asked]
        return replace(self, history=seen_since(self.history, self.since), transcript=transcript)


class FailureKind(StrEnum):
    """What went wrong, as far as the person who waits is concerned."""

    BUSY = "busy"
    NO_CREDIT = "no_credit"
    MISCONFIGURED = "misconfigured"
    REJECTED = "rejected"
    TOO_LONG = "too_long"
    UNAVAILABLE = "unavailable"
    LATE = "late"
    EMPTY = "empty"
    OUT_OF_ROOM = "out_of_room"
    WITHHELD = "withheld"
    OVER_BUDGET = "over_budget"
    TURN_CAP = "turn_cap"
    INTERNAL = "internal"
    MINIAPP = "miniapp"


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer. history: replaces the one of the request. was_cut: it reached its greatest length and was ended.

    ask: what is awaited once the text is posted; its context's ask_id comes back in the Reply. soft_context: what the
    conversation is about from then on, and follow_up: what is to be come back to, as a mini-app says. state: what the
    agent is to be given back next turn. instructions: by which it was made. files: what is posted with it. model: the
    name of the one that made it.
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
    """No answer, or only its beginning. detail: one sentence for the log. state: what the agent is to be given back all
    the same."""

    kind: FailureKind
    detail: str
    text: str = ""
    tokens: int = 0
    state: AgentState | None = None


@dataclass(frozen=True, slots=True)
class Declined:
    """No answer, by the agent's own choice. why: in its own words, of any length. state: as of a Failure."""

    why: str
    tokens: int = 0
    state: AgentState | None = None


Outcome = Answer | Failure | Declined


class AgentGateway(Protocol):
    """An agent that answers."""

    async def respond(self, request: AgentRequest, show: Callable[[str], None]) -> Outcome:
        """Answers, or declines where it may; show is given the whole text so far, each time it grows."""
        ...

    def interrupted(self, request: AgentRequest, text: str) -> Answer:
        """The answer as far as it came when somebody stopped it; tokens: what respond() used for this request."""
        ...
