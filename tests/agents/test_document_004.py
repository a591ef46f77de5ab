"""Document 004's tests and its three conversations, over real HTTP: a stub for the models, a remote agent for UMS.

Its coordinator is handed the messages of a conversation, each answer with the state that its agent left. Ours is told
by a conversation who said what; `Coordinator` brings the one to the other, and `Choice` carries the state.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pytest
from pydantic_ai import Tool
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart

from agents.coordinator import Candidate, Picker
from agents.gateway import AgentRequest, Answer
from agents.general import GeneralAgent
from agents.models import build_model
from agents.team import Team
from agents.ums import UMSAgent
from conversation import ChannelConversation
from llm_history import History, told
from place import Place
from state.agent_state import GENERAL, GPAState, UMSState, read_agent_state
from tests.support.clock import NOON
from tests.support.people import ANNA, CHANNEL, Me, said
from tests.support.purse import NotingPurse
from tests.support.remote_agent import RemoteAgent, whole
from tests.support.stub_model import Call, Reply, StubModel, texts

PLACE = Place(bot_name="Parley", guild="The Guild", channel="general")


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"


@dataclass
class CustomContent:
    state: dict[str, Any]


@dataclass
class Message:
    role: Role
    content: str
    custom_content: CustomContent | None = None


@dataclass
class Request:
    messages: list[Message]


@dataclass
class Choice:
    state: dict[str, Any] = field(default_factory=dict)

    def get_state(self) -> dict[str, Any]:
        return self.state


class Coordinator:
    """Document 004's, over ours."""

    def __init__(self, team: Team) -> None:
        self._team = team

    async def handle_request(self, choice: Choice, request: Request) -> Message:
        question = said(ANNA, request.messages[-1].content)
        conversation = ChannelConversation(CHANNEL, NOON, NOON, messages=[question])
        agent = (await self._team.pick(question, conversation, PLACE)).agent
        turn = AgentRequest(
            _history(request) if agent == GENERAL else [],
            [question],
            [question],
            PLACE,
            NOON,
            state=None if agent == GENERAL else _ums_state(request),
        )
        answer = await self._team[agent].respond(turn, lambda _: None)
        assert isinstance(answer, Answer), answer
        assert answer.state
        choice.state = json.loads(answer.state.model_dump_json())
        return Message(Role.ASSISTANT, answer.text)


def _history(request: Request) -> History:
    """The exchanges that were the general agent's, each with the user's message before it."""
    history: History = []
    for before, message in zip(request.messages, request.messages[1:], strict=False):
        state = message.custom_content and read_agent_state(message.custom_content.state)
        if isinstance(state, GPAState):
            prompt = UserPromptPart(content=told(said(ANNA, before.content)))
            answer = ModelResponse(parts=[TextPart(message.content)], metadata=state.model_dump())
            history += [ModelRequest(parts=[prompt]), answer]
    return history


def _ums_state(request: Request) -> UMSState | None:
    states = (read_agent_state(m.custom_content.state) for m in request.messages if m.custom_content)
    return next((state for state in states if isinstance(state, UMSState)), None)


async def python_run(code: str) -> str:
    """Runs Python."""
    return {"2+2": "4", "fibonacci(10)": "55", "fibonacci(20)": "6765"}[code]


@pytest.fixture
async def coordinator(stub: StubModel, remote: RemoteAgent) -> AsyncIterator[Coordinator]:
    assert stub.url
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(build_model("MODEL", "openai-chat:main"))
        users = await stack.enter_async_context(UMSAgent("ums", remote.url, {}))
        picker = Picker([Candidate("ums", "Manages users.")], model=model, purse=NotingPurse())
        general = GeneralAgent(model, tools=[Tool(python_run)])
        yield Coordinator(Team(general, {"ums": users}, picker, bot=Me()))


def user(text: str) -> Message:
    return Message(Role.USER, text)


def runs(code: str) -> Reply:
    return Reply(calls=(Call("python_run", json.dumps({"code": code})),))


# Its tests


async def test_gpa_state_persistence(coordinator: Coordinator, stub: StubModel) -> None:
    stub.picks = GENERAL
    # Turn 1: Initial tool call
    stub.replies.extend([runs("2+2"), Reply("It is 4.")])
    choice1, request1 = Choice(), Request([user("Calculate 2+2")])
    response1 = await coordinator.handle_request(choice1, request1)
    state1 = choice1.get_state()
    assert state1["is_gpa"] == True  # noqa: E712 - as it is written there
    assert "tool_calls" in state1["gpa_messages"]

    # Turn 2: Use saved state
    choice2, request2 = Choice(), Request([*request1.messages])
    request2.messages.append(
        Message(role=Role.ASSISTANT, content=response1.content, custom_content=CustomContent(state=state1))
    )
    request2.messages.append(Message(role=Role.USER, content="Now calculate 3+3"))
    stub.replies.append(Reply("It is 6."))
    response2 = await coordinator.handle_request(choice2, request2)
    assert response2.content == "It is 6."
    # GPA should have context from turn 1
    assert [m["role"] for m in stub.requests[-1]["messages"]][1:] == ["user", "assistant", "tool", "assistant", "user"]
    asked, call, result, answered, _ = stub.requests[-1]["messages"][1:]
    assert "Calculate 2+2" in asked["content"]
    assert call["tool_calls"][0]["function"] == {"name": "python_run", "arguments": '{"code":"2+2"}'}
    assert (result["content"], answered["content"]) == ("4", "It is 4.")


async def test_ums_conversation_reuse(coordinator: Coordinator, stub: StubModel, remote: RemoteAgent) -> None:
    stub.picks = "ums"
    # Turn 1: Create conversation
    choice1, request1 = Choice(), Request([user("List users")])
    response1 = await coordinator.handle_request(choice1, request1)
    state1 = choice1.get_state()
    conv_id = state1["ums_conversation_id"]

    # Turn 2: Reuse conversation
    choice2, request2 = Choice(), Request([*request1.messages])
    request2.messages.append(
        Message(role=Role.ASSISTANT, content=response1.content, custom_content=CustomContent(state=state1))
    )
    request2.messages.append(Message(role=Role.USER, content="Delete first user"))
    await coordinator.handle_request(choice2, request2)
    state2 = choice2.get_state()
    assert state2["ums_conversation_id"] == conv_id  # Same conversation
    chat = f"/ums/conversations/{conv_id}/chat"
    assert remote.paths == ["/ums/conversations", chat, chat]


# Its conversations


class Talk:
    """A conversation that goes on, each turn with all the states before it."""

    def __init__(self, coordinator: Coordinator, stub: StubModel) -> None:
        self._coordinator = coordinator
        self._stub = stub
        self.messages: list[Message] = []

    async def say(self, text: str, agent: str, *replies: Reply) -> dict[str, Any]:
        """A turn that goes to this agent. Returns its state."""
        self._stub.picks = agent
        self._stub.replies.extend(replies)
        choice = Choice()
        self.messages.append(user(text))
        response = await self._coordinator.handle_request(choice, Request([*self.messages]))
        response.custom_content = CustomContent(choice.get_state())
        self.messages.append(response)
        return choice.get_state()


@pytest.fixture
def talk(coordinator: Coordinator, stub: StubModel) -> Talk:
    return Talk(coordinator, stub)


async def test_gpa_multi_turn_code_execution(talk: Talk, stub: StubModel) -> None:
    first = await talk.say("Calculate fibonacci(10)", GENERAL, runs("fibonacci(10)"), Reply("55"))
    assert [call["tool_name"] for call in first["gpa_messages"]["tool_calls"]] == ["python_run"]
    second = await talk.say("Now calculate fibonacci(20)", GENERAL, runs("fibonacci(20)"), Reply("6765"))
    assert [response["content"] for response in second["gpa_messages"]["tool_responses"]] == ["6765"]
    results = [m["content"] for m in stub.requests[-1]["messages"] if m["role"] == "tool"]
    assert results == ["55", "6765"]


async def test_ums_multi_turn_user_management(talk: Talk, remote: RemoteAgent) -> None:
    remote.answers += [whole("Ann and Bob."), whole("Ann is gone.")]
    first = await talk.say("List users", "ums")
    assert await talk.say("Delete the first user", "ums") == first
    assert first["ums_conversation_id"] == "conv-1"
    assert remote.contents == ["List users", "Delete the first user"]


async def test_mixed_conversation_switching_agents(talk: Talk, stub: StubModel, remote: RemoteAgent) -> None:
    remote.answers += [whole("Ann and Bob."), whole("Ann is gone.")]
    users = await talk.say("List users", "ums")
    weather = await talk.say("What's the weather in Paris?", GENERAL, Reply("Mild."))
    assert (weather["is_gpa"], weather["gpa_messages"]["tool_calls"]) == (True, [])
    assert not users.keys() & weather.keys() - {"v"}
    assert len(texts(stub.requests[-1])) == 2, "a new conversation, without what the other was asked"
    assert "users" not in str(stub.requests[-1]["messages"])
    assert await talk.say("Delete the first user", "ums") == users
    assert remote.contents == ["List users", "Delete the first user"]
