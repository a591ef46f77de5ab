"""An agent that does as it is told, and keeps what it was asked."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart

from agents.gateway import AgentRequest, Answer, Declined, Failure, FailureKind, Outcome
from llm_history import told
from state.agent_state import AgentState
from state.prompts import Ask

INTERRUPTED_TOKENS = 3


@dataclass
class Script:
    """One turn: shows `first`, waits for the gate, then fails, raises, declines or answers."""

    text: str = "the answer"
    first: str = ""
    gate: asyncio.Event | None = None
    failure: FailureKind | None = None
    declines: str | None = None
    error: Exception | None = None
    tokens: int = 10
    was_cut: bool = False
    ask: Ask | None = None
    state: AgentState | None = None


class FakeAgent:
    """Plays the scripts in order, then answers "the answer". begun: the state of a turn that is stopped."""

    def __init__(self) -> None:
        self.begun: AgentState | None = None
        self.scripts: deque[Script] = deque()
        self.requests: list[AgentRequest] = []

    async def respond(self, request: AgentRequest, show: Callable[[str], None]) -> Outcome:
        self.requests.append(request)
        script = self.scripts.popleft() if self.scripts else Script()
        if script.first:
            show(script.first)
        if script.gate:
            await script.gate.wait()
        if script.error:
            raise script.error
        if script.failure:
            return Failure(script.failure, "the script says so", script.first, script.tokens, script.state)
        if script.declines is not None:
            return Declined(script.declines, script.tokens, script.state)
        history = turn_of(request, script.text)
        return Answer(script.text, history, script.tokens, script.was_cut, script.ask, state=script.state)

    def interrupted(self, request: AgentRequest, text: str) -> Answer:
        return Answer(text, turn_of(request, text), INTERRUPTED_TOKENS, state=self.begun)


def turn_of(request: AgentRequest, answer: str) -> list[ModelMessage]:
    """The history after a turn, as pydantic-ai gives it back."""
    content = [piece for message in request.transcript for piece in told(message)]
    asked = ModelRequest(parts=[UserPromptPart(content=content)])
    return [*request.history, asked, ModelResponse(parts=[TextPart(answer)])]
