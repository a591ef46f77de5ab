"""What a channel's remote agents were told. They cannot be made to forget, so they begin new conversations instead."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from state.agent_state import AgentState
from state.message import MessageRecord
from stored_conversation import UNKNOWN, LeftStates, Told, people_of

MAX_REMOTE = 2_000  # message ids remembered as a remote agent's questions and answers


@dataclass(slots=True)
class RemoteMemory:
    """asked: message id to the agent that was asked it or said it; states: agent's name to its state for the next
    question; left: agents that must begin a new conversation; told_before: as in LeftStates.told."""

    asked: dict[int, str] = field(default_factory=dict)
    states: dict[str, AgentState] = field(default_factory=dict)
    left: frozenset[str] = frozenset()
    told_before: Told = field(default_factory=dict)

    def ask(self, agent: str, message_ids: Collection[int]) -> None:
        """Notes messages as questions to an agent, or as its answers.

        Of too many the older half is not remembered, and so could not be taken back any more: agents that were told
        some of it begin new conversations.
        """
        noted = [*self.asked.items(), *dict.fromkeys(message_ids, agent).items()]
        kept = MAX_REMOTE // 2 if len(noted) > MAX_REMOTE else MAX_REMOTE
        self.leave(agent for _, agent in noted[:-kept])
        self.asked = dict(noted[-kept:])

    def tell_beside(self, agent: str, said: Sequence[MessageRecord]) -> None:
        """Notes messages of which an agent is told some words beside its questions. As ask() if too many."""
        new = {m.message_id: m.said_by for m in said}
        told = self.told_before.get(agent, {}) | new
        if len(told) > MAX_REMOTE:
            self.leave([agent])
            told = new
        self.told_before[agent] = told

    def told(self, message_ids: Collection[int]) -> set[str]:
        """The agents that were told any of these messages."""
        before = {agent for agent, told in self.told_before.items() if not told.keys().isdisjoint(message_ids)}
        return before | {self.asked[i] for i in message_ids if i in self.asked}

    def told_earlier(self, message_id: int) -> set[int]:
        """The people whose words the agent that said this still knows from earlier conversations."""
        return people_of([self.told_before.get(self.asked.get(message_id, ""), {})]) - {UNKNOWN}

    def leave(self, agents: Iterable[str]) -> None:
        """Ends these agents' conversations."""
        for agent in set(agents):
            self.states.pop(agent, None)
            self.left |= {agent}

    def forget(self, author_id: int) -> None:
        """Leaves the agents that knew this person's words before, or beside their questions."""
        self.leave(agent for agent, told in self.told_before.items() if {author_id, UNKNOWN} & people_of([told]))

    def left_states(self, people: Mapping[int, tuple[int, ...]], others: Collection[int], at: datetime) -> LeftStates:
        """The agents' states for the channel's next conversation. people: whose words each message has, by its id.
        others: those whose words the messages may have of which that is not known any more."""
        told = {}
        for agent in self.told_before.keys() | self.asked.values():
            asked = {i: people.get(i) or (UNKNOWN,) for i, one in self.asked.items() if one == agent}
            if unknown := [i for i, whose in asked.items() if UNKNOWN in whose]:
                asked[unknown[0]] = (UNKNOWN, *sorted(others))  # of one: else there would be thousands of copies
            told[agent] = self.told_before.get(agent, {}) | asked
        # Where more is not remembered, it could not be taken back any more: the agent begins a new conversation.
        kept = {agent: told for agent, told in told.items() if len(told) <= MAX_REMOTE}
        states = {agent: state for agent, state in self.states.items() if agent in kept}
        return LeftStates(states, kept, at)
