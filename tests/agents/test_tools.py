"""agents/tools.py in the general agent, over real HTTP: what the model may call, what Actions are asked, what is asked
of people first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agents import gateway
from agents.cutting import MAX_BYTES
from agents.gateway import AgentRequest, Answer, Asked
from agents.general import GeneralAgent
from agents.tools import (
    MAX_REACTIONS,
    NO_LINK,
    NO_TEXT,
    NOT_GIVEN,
    OTHER_CHANNEL,
    OTHER_GUILD,
    TOO_MANY,
    Poll,
    own_tools,
)
from agents.turn_input import MAX_FAULTS
from conversation import MessageRecord
from discord_io.split import MAX_LENGTH, length
from place import Place
from state.optout import UNREAD, redacted
from state.prompts import AwaitingType, ResolutionType
from tests.support.clock import NOON
from tests.support.people import ANNA, BEN, CHANNEL, GUILD, said
from tests.support.stub_model import Call, Reply, StubModel

PLACE = Place(bot_name="Parley", guild="The Guild", channel="general")
OTHER = 701  # a channel
LINK = f"https://discord.com/channels/{GUILD}/{CHANNEL}/900"
GIVEN = frozenset((ANNA, (GUILD, channel, 900)) for channel in (CHANNEL, OTHER))
POLL: dict[str, Any] = {"question": "Which day?", "options": ["Monday", "Friday"]}


class FakeActions:
    """Notes what it is asked; does all of it, or says why not."""

    def __init__(self) -> None:
        self.done: list[tuple[Any, ...]] = []
        self.message: MessageRecord | str = said(BEN, "The key is under the mat.", message_id=900)
        self.why_not: str | None = None

    async def read(
        self, asked: Asked, channel_id: int, message_id: int, *, is_given: bool = True
    ) -> MessageRecord | str:
        self.done.append(("read", asked.user_id, channel_id, message_id, *([] if is_given else ["not given"])))
        return self.message

    async def react(self, asked: Asked, message_id: int, emoji: str) -> str | None:
        self.done.append(("react", asked.user_id, message_id, emoji))
        return self.why_not

    async def pin(self, asked: Asked, message_id: int) -> str | None:
        self.done.append(("pin", asked.user_id, message_id))
        return self.why_not

    async def poll(self, asked: Asked, poll: Poll, nonce: str) -> str | None:
        self.done.append(("poll", asked.user_id, poll, nonce))
        return self.why_not


@pytest.fixture
def actions() -> FakeActions:
    return FakeActions()


@pytest.fixture
def agent(stub: StubModel, model: Model, actions: FakeActions) -> GeneralAgent:
    stub.default = lambda _: Reply("Done.")
    return GeneralAgent(model, tools=own_tools(actions, lambda: NOON))


def asks(
    message: MessageRecord, history: Sequence[ModelMessage] = (), reply: gateway.Reply | None = None
) -> AgentRequest:
    asked = Asked(GUILD, CHANNEL, message.author_id, message.message_id, links=GIVEN)
    return AgentRequest(history, [message], [message], PLACE, NOON, asked=asked, reply=reply)


def called(name: str, call_id: str = "call-1", **arguments: Any) -> Call:
    return Call(name, json.dumps(arguments), call_id)


async def answer(agent: GeneralAgent, request: AgentRequest) -> Answer:
    outcome = await agent.respond(request, lambda _: None)
    assert isinstance(outcome, Answer), outcome
    return outcome


def results(stub: StubModel) -> list[str]:
    """What the last request tells the model of its calls."""
    return [m["content"] for m in stub.requests[-1]["messages"] if m["role"] == "tool"]


async def result(agent: GeneralAgent, stub: StubModel, *calls: Call) -> list[str]:
    """What the model is told when Anna's message 800 has it make these calls."""
    stub.replies.append(Reply(calls=calls))
    assert (await answer(agent, asks(said(ANNA, "go on", message_id=800)))).ask is None
    return results(stub)


def resolved(asking: Answer, by: MessageRecord, *, confirmed: bool = True) -> AgentRequest:
    assert asking.ask
    reply = gateway.Reply(asking.ask.context["ask_id"], ResolutionType.CONFIRMATION, {"confirmed": confirmed})
    return asks(by, history=asking.history, reply=reply)


def tool(name: str) -> Tool[Asked]:
    return next(one for one in own_tools(FakeActions(), lambda: NOON) if one.name == name)


@pytest.mark.parametrize("name", ["current_time", "read_message", "react", "pin", "create_poll"])
def test_each_tool_and_each_of_its_arguments_is_described_to_the_model(name: str) -> None:
    definition = tool(name).tool_def
    arguments = definition.parameters_json_schema["properties"]
    assert definition.description
    assert "ctx" not in arguments
    assert all(argument["description"] for argument in arguments.values())


# The time


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "Monday, 2026-03-02 12:00 UTC (UTC+0000)"),
        ({"timezone": "Europe/Berlin"}, "Monday, 2026-03-02 13:00 CET (UTC+0100)"),
        ({"timezone": "Asia/Kathmandu"}, "Monday, 2026-03-02 17:45 +0545 (UTC+0545)"),
    ],
)
async def test_the_time_is_told_in_any_zone(
    agent: GeneralAgent, stub: StubModel, arguments: dict[str, str], told: str
) -> None:
    assert await result(agent, stub, called("current_time", **arguments)) == [told]


async def test_a_zone_that_is_none_is_given_back_to_the_model(agent: GeneralAgent, stub: StubModel) -> None:
    zones = ["Mars/Olympus", "", "Europe", "../etc/passwd", "/etc/passwd", "a\0b", "x" * 5000, "a." * 3_000 + "a/x"]
    told = await result(agent, stub, *(called("current_time", f"call-{n}", timezone=z) for n, z in enumerate(zones)))
    for zone, words in zip(zones, told, strict=True):
        assert "There is no time zone" in words, zone
        assert len(words) < 300, zone


async def test_of_what_is_wrong_with_a_call_the_model_is_told_ten_faults(agent: GeneralAgent, stub: StubModel) -> None:
    (told,) = await result(agent, stub, called("current_time", **{f"unknown{n}": "x" for n in range(50)}))
    assert [f"unknown{n}" in told for n in range(50)] == [True] * MAX_FAULTS + [False] * 40


# Reading


@pytest.mark.parametrize(
    "link",
    [
        LINK,
        f"  <{LINK}>  ",
        f"{LINK}/",
        LINK.replace("discord.com", "ptb.discord.com"),
        LINK.replace("discord.com", "discordapp.com"),
    ],
)
async def test_a_linked_message_is_told_with_its_author(
    agent: GeneralAgent, stub: StubModel, actions: FakeActions, link: str
) -> None:
    assert await result(agent, stub, called("read_message", link=link)) == ["Ben: The key is under the mat.\n"]
    assert actions.done == [("read", ANNA, CHANNEL, 900)]


async def test_a_message_of_another_channel_is_read_for_the_one_who_asks(
    agent: GeneralAgent, stub: StubModel, actions: FakeActions
) -> None:
    await result(agent, stub, called("read_message", link=LINK.replace(str(CHANNEL), str(OTHER))))
    assert actions.done == [("read", ANNA, OTHER, 900)]


async def test_a_message_that_whoever_asks_gave_no_link_to_is_not_read(
    agent: GeneralAgent, stub: StubModel, actions: FakeActions
) -> None:
    planted = LINK.replace("/900", "/901")
    assert await result(agent, stub, called("read_message", link=planted)) == [NOT_GIVEN]
    stub.replies.append(Reply(calls=(called("read_message", link=LINK),)))
    await answer(agent, asks(said(BEN, "go on", message_id=800)))
    assert results(stub) == [NOT_GIVEN]
    assert not actions.done


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("I cannot read that channel.", "I cannot read that channel."),
        (said(BEN, ""), NO_TEXT),
        (redacted(said(BEN, "secret")), f"somebody: {UNREAD}\n"),
    ],
)
async def test_what_may_not_be_read_is_told_in_a_sentence(
    agent: GeneralAgent, stub: StubModel, actions: FakeActions, message: MessageRecord | str, told: str
) -> None:
    actions.message = message
    assert await result(agent, stub, called("read_message", link=LINK)) == [told]


async def test_a_long_message_is_cut(agent: GeneralAgent, stub: StubModel, actions: FakeActions) -> None:
    actions.message = said(BEN, "€" * 4_000)
    [told] = await result(agent, stub, called("read_message", link=LINK))
    assert len(told.encode()) <= MAX_BYTES
    assert "(cut: " in told


async def test_what_was_read_says_whose_words_it_holds(actions: FakeActions) -> None:
    """By them it can be forgotten where the tool's results are kept."""

    def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        call = ToolCallPart("read_message", {"link": LINK})
        return ModelResponse(parts=[call] if len(messages) == 1 else [TextPart("done")])

    agent = Agent(FunctionModel(model), deps_type=Asked, tools=own_tools(actions, lambda: NOON))
    run = await agent.run("go on", deps=Asked(GUILD, CHANNEL, ANNA, 800, links=GIVEN))
    [told] = [part for m in run.all_messages() for part in m.parts if isinstance(part, ToolReturnPart)]
    assert told.metadata == {"words_of": [("message", 900), ("person", BEN), ("channel", CHANNEL)]}


@pytest.mark.parametrize(("name", "more"), [("read_message", {}), ("react", {"emoji": "👍"}), ("pin", {})])
async def test_what_is_no_link_of_a_message_is_given_back_to_the_model(
    agent: GeneralAgent, stub: StubModel, actions: FakeActions, name: str, more: dict[str, str]
) -> None:
    for link in ("900", "https://example.com/channels/1/2/3", LINK[:-4], f"{LINK}0" * 9, f"see {LINK}"):
        [told] = await result(agent, stub, called(name, link=link, **more))
        assert NO_LINK in told, link
    assert not actions.done


@pytest.mark.parametrize(
    ("name", "link", "told"),
    [
        ("read_message", LINK.replace(f"/{GUILD}/", "/71/"), OTHER_GUILD),
        ("react", LINK.replace(f"/{GUILD}/", "/71/"), OTHER_CHANNEL),
        ("pin", LINK.replace(f"/{GUILD}/", "/71/"), OTHER_CHANNEL),
        ("react", LINK.replace(str(CHANNEL), str(OTHER)), OTHER_CHANNEL),
        ("pin", LINK.replace(str(CHANNEL), str(OTHER)), OTHER_CHANNEL),
    ],
)
async def test_a_link_that_leads_elsewhere_is_left_alone(
    agent: GeneralAgent, stub: StubModel, actions: FakeActions, name: str, link: str, told: str
) -> None:
    arguments = {"link": link, "emoji": "👍"} if name == "react" else {"link": link}
    assert await result(agent, stub, called(name, **arguments)) == [told]
    assert not actions.done


# Reacting


@pytest.mark.parametrize(("more", "message_id"), [({}, 800), ({"link": LINK}, 900)])
async def test_a_reaction_goes_to_the_question_or_to_a_linked_message(
    agent: GeneralAgent, stub: StubModel, actions: FakeActions, more: dict[str, str], message_id: int
) -> None:
    assert await result(agent, stub, called("react", emoji="🎉", **more)) == ["The reaction stands there."]
    assert actions.done == [("react", ANNA, message_id, "🎉")]


@pytest.mark.parametrize("at_once", [True, False])
async def test_there_are_at_most_so_many_reactions_in_a_turn(
    agent: GeneralAgent, stub: StubModel, actions: FakeActions, at_once: bool
) -> None:
    calls = [called("react", f"call-{n}", emoji=emoji) for n, emoji in enumerate("🍎🍐🍊🍋🍌")]
    if not at_once:
        stub.replies.extend(Reply(calls=(call,)) for call in calls[:-1])
        calls = calls[-1:]
    told = await result(agent, stub, *calls)
    assert [call[-1] for call in actions.done] == list("🍎🍐🍊")
    assert told.count(TOO_MANY) == 2
    assert len(told) == MAX_REACTIONS + 2


async def test_a_server_whose_calls_all_have_one_id_does_not_get_round_the_limit(
    agent: GeneralAgent, stub: StubModel, actions: FakeActions
) -> None:
    stub.replies.extend(Reply(calls=(called("react", emoji="🍎"),)) for _ in range(4))
    await result(agent, stub, called("react", emoji="🍎"))
    assert len(actions.done) == MAX_REACTIONS


async def test_the_next_turn_counts_anew(agent: GeneralAgent, stub: StubModel, actions: FakeActions) -> None:
    for _ in range(2):
        stub.replies.append(Reply(calls=tuple(called("react", f"call-{n}", emoji="🍎") for n in range(3))))
        first = await answer(agent, asks(said(ANNA, "go on")))
    stub.replies.append(Reply(calls=(called("react", emoji="🍐"),)))
    await answer(agent, asks(said(ANNA, "once more"), history=first.history))
    assert len(actions.done) == 7


# What is allowed first


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (called("pin", link=f"<{LINK}>"), f"May I pin what Ben said, “The key is under the mat.”: {LINK} ?"),
        (
            called("create_poll", **POLL),
            "May I post this poll?\n\n**Which day?**\n1. Monday\n2. Friday\n\n"
            "It stays open for 24 hours, and each person has one vote.",
        ),
        (
            called("create_poll", question=" Which\n**day**? ", options=["<@1>", " a  b "], hours="1", multiple=True),
            "May I post this poll?\n\n**Which \\*\\*day\\*\\*?**\n1. \\<@1\\>\n2. a b\n\n"
            "It stays open for 1 hour, and each person may choose several options.",
        ),
    ],
)
async def test_people_read_what_exactly_will_be_done(
    agent: GeneralAgent, stub: StubModel, actions: FakeActions, call: Call, text: str
) -> None:
    stub.replies.append(Reply("Gladly.", calls=(call,)))
    asking = await answer(agent, asks(said(ANNA, "please")))
    assert asking.text == f"Gladly.\n\n{text}"
    assert asking.ask
    assert asking.ask.awaiting_type is AwaitingType.CONFIRMATION
    assert not [done for done in actions.done if done[0] != "read"]


async def test_what_it_may_not_read_is_asked_about_by_its_link(
    agent: GeneralAgent, stub: StubModel, actions: FakeActions
) -> None:
    actions.message = "Not read: its author does not want that."
    stub.replies.append(Reply(calls=(called("pin", link=LINK),)))
    assert (await answer(agent, asks(said(ANNA, "pin it")))).text == f"May I pin this message: {LINK} ?"


async def test_the_longest_poll_is_shown_whole(agent: GeneralAgent, stub: StubModel) -> None:
    options = [f"{n}{'*' * 54}" for n in range(10)]
    stub.replies.append(Reply(calls=(called("create_poll", question="*" * 300, options=options, hours=168),)))
    text = (await answer(agent, asks(said(ANNA, "please")))).text
    assert text.count("*") == 300 + 540 + 4
    assert length(text) <= MAX_LENGTH


async def test_what_is_allowed_is_done_for_the_one_who_allows_it(
    agent: GeneralAgent, stub: StubModel, actions: FakeActions
) -> None:
    stub.replies.append(Reply(calls=(called("pin", link=LINK),)))
    asking = await answer(agent, asks(said(ANNA, "pin it")))
    done = await answer(agent, resolved(asking, said(BEN, "yes")))
    assert actions.done == [("read", ANNA, CHANNEL, 900), ("pin", BEN, 900)]
    assert results(stub) == ["It is pinned."]
    assert done.ask is None


async def test_a_poll_is_posted_as_it_was_shown(agent: GeneralAgent, stub: StubModel, actions: FakeActions) -> None:
    stub.replies.append(Reply(calls=(called("create_poll", **POLL, hours=3),)))
    await answer(agent, resolved(await answer(agent, asks(said(ANNA, "a poll"))), said(ANNA, "yes")))
    [(_, user_id, poll, _)] = actions.done
    assert (user_id, poll) == (ANNA, Poll("Which day?", ("Monday", "Friday"), 3, False))
    assert results(stub) == ["The poll stands in the channel."]


@pytest.mark.parametrize("call", [called("pin", link=LINK), called("create_poll", **POLL)])
async def test_why_what_was_allowed_could_not_be_done_is_told(
    agent: GeneralAgent, stub: StubModel, actions: FakeActions, call: Call
) -> None:
    actions.why_not = "Not done: I lack the permission 'pin_messages' in this channel."
    stub.replies.append(Reply(calls=(call,)))
    await answer(agent, resolved(await answer(agent, asks(said(ANNA, "please"))), said(ANNA, "yes")))
    assert results(stub) == [actions.why_not]


async def test_a_poll_that_discord_would_not_take_is_not_asked_about(
    agent: GeneralAgent, stub: StubModel, actions: FakeActions
) -> None:
    wrong: list[dict[str, Any]] = [
        {"options": ["one"]},
        {"options": [str(n) for n in range(11)]},
        {"options": ["a b", "a  b"]},
        {"options": ["a", "\u200b"]},
        {"options": ["a", "b" * 56]},
        {"question": " "},
        {"question": "q" * 301},
        {"hours": 169},
    ]
    told = await result(
        agent, stub, *(called("create_poll", f"call-{n}", **(POLL | one)) for n, one in enumerate(wrong))
    )
    assert [one for one, words in zip(wrong, told, strict=True) if not words.startswith('{"error":')] == []
    assert not actions.done


async def nonce(agent: GeneralAgent, stub: StubModel, actions: FakeActions, call: Call, by: MessageRecord) -> str:
    stub.replies.append(Reply(calls=(call,)))
    await answer(agent, resolved(await answer(agent, asks(said(ANNA, "a poll"))), by))
    found: str = actions.done[-1][-1]
    return found


async def test_the_same_call_has_the_same_nonce_whenever_it_is_allowed(
    agent: GeneralAgent, stub: StubModel, actions: FakeActions
) -> None:
    stub.replies.append(Reply(calls=(called("create_poll", **POLL),)))
    asking = await answer(agent, asks(said(ANNA, "a poll")))
    for message_id in (810, 820):
        await answer(agent, resolved(asking, said(ANNA, "yes", message_id=message_id)))
    first, second = (done[-1] for done in actions.done)
    assert first == second
    assert 0 < len(first) <= 25  # Discord's limit


@pytest.mark.parametrize(
    "other", [called("create_poll", "call-2", **POLL), called("create_poll", **(POLL | {"question": "When?"}))]
)
async def test_another_call_or_poll_has_another_nonce(
    agent: GeneralAgent, stub: StubModel, actions: FakeActions, other: Call
) -> None:
    by = said(ANNA, "yes")
    first = await nonce(agent, stub, actions, called("create_poll", **POLL), by)
    assert first != await nonce(agent, stub, actions, other, replace(by, message_id=821))
