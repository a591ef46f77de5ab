"""What is stored of a conversation beside its messages, and which of it the channel's next conversation needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any

import orjson
from pydantic import AwareDatetime, BeforeValidator, TypeAdapter
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, TextContent, UserPromptPart

from llm_history import History, fits, origin_in, readable, told, told_in
from state.agent_state import AgentState, read_agent_state
from state.declines import Declines
from state.message import MessageRecord

UNKNOWN = 0  # stands for an author who is not known
NO_DECLINES = Declines()


def _by_agent(told: Any) -> Any:
    """Converts the form stored until 2026-11: message id to (agent's name, author's id)."""
    if not (isinstance(told, dict) and all(isinstance(one, list | tuple) for one in told.values())):
        return told
    by_agent: dict[Any, dict[Any, Any]] = {}
    for message_id, (agent, author_id) in told.items():
        by_agent.setdefault(agent, {})[message_id] = author_id
    return by_agent


def _all_of(people: Any) -> Any:
    """Converts the form stored until 2026-11-24: the author's id alone."""
    return (people,) if isinstance(people, int) else people


People = Annotated[tuple[int, ...], BeforeValidator(_all_of)]
Told = Annotated[dict[str, dict[int, People]], BeforeValidator(_by_agent)]


def people_of(told: Iterable[Mapping[int, People]]) -> set[int]:
    """All people whose words agents were told, perhaps with UNKNOWN. told: by agent, as in LeftStates.told."""
    return {who for one in told for people in one.values() for who in people}


def _known_states(states: Any) -> Any:
    """Drops states that cannot be read, so that the others and the conversation can be used."""
    if not isinstance(states, dict):
        return {}
    return {name: state for name, state in states.items() if fits(read_agent_state, state)}


def lines_in(history: History) -> dict[int, str]:
    """What the model was told of each message's text, by the message's id."""
    prompts = (part.content for message in history for part in message.parts if isinstance(part, UserPromptPart))
    items = (item for content in prompts if not isinstance(content, str) for item in content)
    texts = (item for item in items if isinstance(item, TextContent) and item.metadata)
    return {text.metadata["message_id"]: text.content for text in texts if "file" not in text.metadata}


def maybe_answered(history: History, gone: Collection[int], first: int) -> set[int]:
    """The questions that deleted messages may have answered that are not recorded any more. first: the id of the first
    that is. The model is told all messages but its own answers, so these are unknown in its history, as in what a
    summary was made of."""
    told = {one for message in history if isinstance(message, ModelRequest) for one in told_in(message)}
    own = max((one for one in gone if one < first and one not in told), default=0)
    told |= {before.through for before in map(origin_in, history) if before}
    return {one for one in told if one < own}


def line_of(message: MessageRecord) -> str:
    """What the model would be told of a message's text."""
    (line,) = (item.content for item in told(message) if isinstance(item, TextContent))
    return line


class Unwelcome(StrEnum):
    """What somebody did about an unprompted answer."""

    TOLD_OFF = "told_off"
    DELETED = "deleted"
    DISLIKED = "disliked"


@dataclass(frozen=True, slots=True)
class LeftStates:
    """Remote agents' states for the channel's next conversation.

    states: by the agent's name. told: the messages each agent was told: agent's name to {message id: whose words it
    has: those of its author, and those that it forwards, with the channel from which they are; 0 where that is not
    known}. at: the last activity of the conversation that ended.
    """

    states: Annotated[dict[str, AgentState], BeforeValidator(_known_states)]
    told: Told
    at: AwareDatetime

    def without(self, is_gone: Callable[[int, Collection[int]], bool]) -> LeftStates:
        """Without the states of agents that were told a deleted message, which they cannot be made to forget.

        is_gone: (message id, whose words it has) -> whether that message is deleted.
        """
        gone = {agent for agent, told in self.told.items() if any(is_gone(*one) for one in told.items())}
        states = {agent: state for agent, state in self.states.items() if agent not in gone}
        return replace(self, states=states) if gone else self

    def to_json(self) -> bytes:
        return LEFT.dump_json(self)

    @staticmethod
    def from_json(text: bytes) -> LeftStates:
        """Raises ValueError for what cannot be read."""
        return LEFT.validate_json(text)


LEFT = TypeAdapter(LeftStates)


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """A conversation without its messages.

    since: the lowest id of its own messages; those put before it are lower. own: ids of messages that the model wrote.
    remote, states, left, told_before: as of RemoteMemory, remote its `asked`. unwelcome, declines, looked_up,
    has_asked_for_thread, came_from, passed_over: as of ChannelConversation.
    """

    started_at: AwareDatetime
    last_activity: AwareDatetime
    since: int
    told_through: int
    own: frozenset[int]
    llm_history: History
    remote: dict[int, str] = field(default_factory=dict)
    states: Annotated[dict[str, AgentState], BeforeValidator(_known_states)] = field(default_factory=dict)
    left: frozenset[str] = frozenset()
    told_before: Told = field(default_factory=dict)
    unwelcome: Unwelcome | None = None
    declines: Declines = NO_DECLINES
    looked_up: frozenset[int] = frozenset()
    has_asked_for_thread: bool = False
    came_from: tuple[int, int] | None = None
    passed_over: frozenset[int] = frozenset()

    def to_json(self) -> bytes:
        head = STORED.dump_python(self, mode="json", exclude={"llm_history"})
        # Only pydantic-ai's own adapter writes bytes correctly wherever they occur.
        history = ModelMessagesTypeAdapter.dump_json(self.llm_history)
        return orjson.dumps({**head, "llm_history": orjson.Fragment(history)})

    @staticmethod
    def from_json(text: bytes) -> StoredConversation:
        """Raises ValueError for what cannot be read."""
        stored = STORED.validate_json(text)
        return replace(stored, llm_history=[readable(message) for message in stored.llm_history])


STORED = TypeAdapter(StoredConversation)
