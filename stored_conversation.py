"""What is stored of a conversation beside its messages, and what of it the channel's next one needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any

import orjson
from pydantic import AwareDatetime, BeforeValidator, TypeAdapter
from pydantic_ai.messages import ModelMessagesTypeAdapter

from llm_history import History, fits, readable
from state.agent_state import AgentState, read_agent_state
from state.declines import Declines

UNKNOWN = 0  # whose words they are
NO_DECLINES = Declines()


def _by_agent(told: Any) -> Any:
    """Until 2026-11 a message had but one agent: its name and the author stood by the message's id."""
    if not (isinstance(told, dict) and all(isinstance(one, list | tuple) for one in told.values())):
        return told
    by_agent: dict[Any, dict[Any, Any]] = {}
    for message_id, (agent, author_id) in told.items():
        by_agent.setdefault(agent, {})[message_id] = author_id
    return by_agent


Told = Annotated[dict[str, dict[int, int]], BeforeValidator(_by_agent)]


def _known_states(states: Any) -> Any:
    """Without those that cannot be read: the others, and the conversation, are of use yet."""
    if not isinstance(states, dict):
        return {}
    return {name: state for name, state in states.items() if fits(read_agent_state, state)}


class Unwelcome(StrEnum):
    """What somebody did to an answer that nobody had asked for."""

    TOLD_OFF = "told_off"
    DELETED = "deleted"
    DISLIKED = "disliked"


@dataclass(frozen=True, slots=True)
class LeftStates:
    """What remote agents need back in the channel's next conversation.

    told: what each of them was told: by messages' ids whose words they are, 0 where that is not known. at: when the
    conversation before was last heard of.
    """

    states: Annotated[dict[str, AgentState], BeforeValidator(_known_states)]
    told: Told
    at: AwareDatetime

    def without(self, is_gone: Callable[[int, int], bool]) -> LeftStates:
        """Without those that were told what goes, which they cannot be made to forget.

        is_gone: (message id, whose words) -> whether it goes.
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
    """What its messages do not tell of a conversation.

    since: no message that belongs to it has a lower id; those put in front of it have. own: ids of what the model said.
    remote, states, told_before, unwelcome, declines, looked_up, has_asked_for_thread,
    came_from: as of ChannelConversation.
    """

    started_at: AwareDatetime
    last_activity: AwareDatetime
    since: int
    told_through: int
    own: frozenset[int]
    llm_history: History
    remote: dict[int, str] = field(default_factory=dict)
    states: Annotated[dict[str, AgentState], BeforeValidator(_known_states)] = field(default_factory=dict)
    told_before: Told = field(default_factory=dict)
    unwelcome: Unwelcome | None = None
    declines: Declines = NO_DECLINES
    looked_up: frozenset[int] = frozenset()
    has_asked_for_thread: bool = False
    came_from: tuple[int, int] | None = None

    def to_json(self) -> bytes:
        head = STORED.dump_python(self, mode="json", exclude={"llm_history"})
        # Its own adapter knows what to do with bytes, wherever they are.
        history = ModelMessagesTypeAdapter.dump_json(self.llm_history)
        return orjson.dumps({**head, "llm_history": orjson.Fragment(history)})

    @staticmethod
    def from_json(text: bytes) -> StoredConversation:
        """Raises ValueError for what cannot be read."""
        stored = STORED.validate_json(text)
        return replace(stored, llm_history=[readable(message) for message in stored.llm_history])


STORED = TypeAdapter(StoredConversation)
