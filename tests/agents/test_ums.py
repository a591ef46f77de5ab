"""agents/ums.py, over real HTTP: what a remote agent is sent, and what becomes of all that it can send back."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from agents.gateway import AgentRequest, Answer, Declined, Failure, FailureKind, Outcome
from agents.run import MAX_ANSWER_CHARACTERS
from agents.ums import ANSWER_TOKENS, UMSAgent
from agents.ums_wire import MAX_BODY_BYTES, MAX_JSON, event_data
from conversation import MessageRecord
from place import Place
from state.agent_state import MAX_ID, AgentState, GPAMessages, GPAState, UMSState
from state.budget import Allowance, Budget
from state.limits import Limits
from state.spending import NOBODY, Amount, Reserved
from tests.support.clock import NOON
from tests.support.people import ANNA, BEN, CLEO, replied, said
from tests.support.remote_agent import STREAM, RemoteAgent, RemoteReply, delta_event, streamed, whole

PLACE = Place(bot_name="Parley", guild="The Guild", channel="general")
SECRET = "s3cret-of-the-docs"
HEADERS = {"Authorization": f"Bearer {SECRET}", "X-Guild": "g"}
ABOUT = "Knows the handbook."
FIRST = UMSState(ums_conversation_id="conv-1")
SECOND = UMSState(ums_conversation_id="conv-2")


@pytest.fixture
async def agent(remote: RemoteAgent) -> AsyncIterator[UMSAgent]:
    async with UMSAgent("docs", remote.url, HEADERS) as agent:
        yield agent


def request(
    *questions: MessageRecord | str, state: AgentState | None = None, shared: Mapping[str, str] | None = None
) -> AgentRequest:
    """A turn with these questions, in a channel in which more was said."""
    asked = [said(ANNA, q) if isinstance(q, str) else q for q in questions or ["List users"]]
    around = [said(CLEO, "something else"), replied(CLEO, "another agent's answer")]
    return AgentRequest([], [*around, *asked], asked, PLACE, NOON, ["a note"], state=state, shared=shared or {})


async def respond(agent: UMSAgent, turn: AgentRequest | None = None) -> tuple[Outcome, list[str]]:
    """The outcome, and each text that was shown on the way."""
    shown: list[str] = []
    return await agent.respond(turn or request(), shown.append), shown


async def answer(agent: UMSAgent, turn: AgentRequest | None = None) -> Answer:
    outcome, _ = await respond(agent, turn)
    assert isinstance(outcome, Answer), outcome
    assert (outcome.history, outcome.tokens) == ([], 0)
    return outcome


async def failure(agent: UMSAgent, turn: AgentRequest | None = None) -> Failure:
    outcome, _ = await respond(agent, turn)
    assert isinstance(outcome, Failure), outcome
    assert outcome.detail.startswith("The agent docs ")
    assert outcome.detail.endswith(".")
    assert "\n" not in outcome.detail
    assert len(outcome.detail) < 200
    assert outcome.tokens == 0
    return outcome


# The conversation, and what is said in it


async def test_a_conversation_is_made_for_the_first_question(remote: RemoteAgent, agent: UMSAgent) -> None:
    assert remote.asked == []
    outcome = await answer(agent, request("List users"))
    assert (outcome.text, outcome.state, outcome.was_cut) == ("You said: List users", FIRST, False)
    assert [(asked.path, asked.body) for asked in remote.asked] == [
        ("/ums/conversations", {}),
        ("/ums/conversations/conv-1/chat", {"message": {"role": "user", "content": "List users"}}),
    ]


async def test_the_state_of_another_kind_of_agent_is_not_used(remote: RemoteAgent, agent: UMSAgent) -> None:
    assert (await answer(agent, request(state=GPAState(gpa_messages=GPAMessages())))).state == FIRST
    assert len(remote.asked) == 2


@pytest.mark.parametrize(
    ("odd", "path"),
    [
        ("../../admin?y=1#z", "..%2F..%2Fadmin%3Fy%3D1%23z"),
        ("a%2Fb", "a%252Fb"),
        ("ä b+c\r\nX: y", "%C3%A4%20b%2Bc%0D%0AX%3A%20y"),
        ("...", "..."),
    ],
)
async def test_an_id_is_one_part_of_the_path_whatever_it_has(
    remote: RemoteAgent, agent: UMSAgent, odd: str, path: str
) -> None:
    remote.ids.append(odd)
    outcome = await answer(agent)
    assert outcome.state == UMSState(ums_conversation_id=odd)
    assert remote.paths[1] == f"/ums/conversations/{path}/chat"


@pytest.mark.parametrize(
    ("questions", "content"),
    [
        (["ask the docs agent: where is it?"], "ask the docs agent: where is it?"),
        (["hey Parley, where is it?"], "where is it?"),
        ([said(ANNA, "<@1> where is <@12>?", readable="@Parley where is @Ben?")], "where is @Ben?"),
        (["Parley"], "Parley"),
        (["Parley,"], "Parley,"),
        (["one\ntwo"], "one\ntwo"),
        (["where?", said(BEN, "and\nAnna: when?")], "Anna: where?\nBen: and\n    Anna: when?"),
        ([said(ANNA, "Parley, where?"), said(ANNA, "when?")], "Anna: where?\nAnna: when?"),
        (["\ud83d\ude00 \ud83d"], "\ud83d\ude00 \ud83d"),
    ],
)
async def test_only_the_words_of_the_questions_are_sent(
    remote: RemoteAgent, agent: UMSAgent, questions: list[MessageRecord | str], content: str
) -> None:
    await answer(agent, request(*questions))
    assert remote.contents[0].encode("utf-16", "surrogatepass") == content.encode("utf-16", "surrogatepass")


@pytest.mark.parametrize(
    ("questions", "words"),
    [
        (["Parley, where is he?"], "where is he?"),
        (["where?", said(BEN, "when?")], "Anna: where?\nBen: when?"),
    ],
)
async def test_what_agents_are_told_in_common_stands_in_a_line_before_the_words(
    remote: RemoteAgent, agent: UMSAgent, questions: list[MessageRecord | str], words: str
) -> None:
    await answer(agent, request(*questions, shared={"last_mentioned_user": 'John "J"'}))
    first, _, rest = remote.contents[0].partition("\n")
    assert first == (
        "(Last mentioned in the channel, in people's own words: " + r'{"last_mentioned_user": "John \"J\""})'
    )
    assert rest == words


async def test_what_was_taken_back_while_an_agent_waited_for_its_budget_is_not_told_it(
    remote: RemoteAgent, agent: UMSAgent
) -> None:
    asked = request("where is he?", shared={"last_mentioned_user": "John", "last_mentioned_place": "Osaka"})
    left = {"last_mentioned_place": "Osaka", "last_mentioned_url": "https://since.example"}
    await answer(agent, replace(asked, noted_now=lambda now: replace(now, shared=left)))
    assert "Osaka" in remote.contents[0]
    assert "John" not in remote.contents[0]
    assert "since.example" not in remote.contents[0]  # what an agent was told is known from the beginning


async def test_two_channels_at_once_have_a_conversation_each(remote: RemoteAgent, agent: UMSAgent) -> None:
    gate = asyncio.Event()
    remote.default = lambda content: streamed(content, "!", gate=gate)
    shown: list[str] = []

    def show(text: str) -> None:
        shown.append(text)
        if {"one", "two"} <= set(shown):
            gate.set()

    outcomes = await asyncio.gather(agent.respond(request("one"), show), agent.respond(request("two"), show))
    one, two = outcomes
    assert isinstance(one, Answer)
    assert isinstance(two, Answer)
    assert [one.text, two.text] == ["one!", "two!"]
    assert {outcome.state for outcome in outcomes} == {FIRST, SECOND}
    told = {asked.path: asked.body["message"]["content"] for asked in remote.asked if asked.body}
    for outcome in (one, two):
        assert isinstance(outcome.state, UMSState)
        assert told[f"/ums/conversations/{outcome.state.ums_conversation_id}/chat"] in outcome.text


async def test_nothing_passes_from_one_channel_to_another_by_the_connection(remote: RemoteAgent) -> None:
    remote.answers.append(whole("yes", headers={"Set-Cookie": "session=annas; Path=/"}))
    # An address in numbers would be given no cookies anyway.
    async with UMSAgent("docs", remote.url.replace("127.0.0.1", "localhost"), HEADERS) as agent:
        await answer(agent)
        await answer(agent)
    assert all("Cookie" not in asked.headers for asked in remote.asked)
    assert [asked.headers["Connection"] for asked in remote.asked] == ["close"] * 4


async def test_the_headers_are_sent_with_each_request(remote: RemoteAgent) -> None:
    async with UMSAgent("docs", remote.url, {**HEADERS, "ACCEPT": "application/json"}) as agent:
        await answer(agent)
    assert len(remote.asked) == 2
    for asked in remote.asked:
        assert asked.headers["Authorization"] == f"Bearer {SECRET}"
        assert [value for name, value in asked.headers.items() if name.lower() == "accept"] == ["application/json"]


async def test_an_agent_that_was_closed_can_be_used_again(agent: UMSAgent) -> None:
    await answer(agent)
    await agent.__aexit__()
    assert (await answer(agent)).state == SECOND


# Answers


async def test_an_answer_as_json_is_shown_at_once(remote: RemoteAgent, agent: UMSAgent) -> None:
    remote.answers.append(whole("Grüße 😀"))
    outcome, shown = await respond(agent)
    assert isinstance(outcome, Answer)
    assert (outcome.text, shown) == ("Grüße 😀", ["Grüße 😀"])


async def test_a_stream_is_shown_as_it_grows(remote: RemoteAgent, agent: UMSAgent) -> None:
    remote.answers.append(streamed("one ", "two ", "", "three"))
    outcome, shown = await respond(agent)
    assert isinstance(outcome, Answer)
    assert outcome.text == "one two three"
    assert shown == ["one ", "one two ", "one two three"]


async def test_the_first_words_are_shown_before_the_last_come(remote: RemoteAgent, agent: UMSAgent) -> None:
    gate = asyncio.Event()
    remote.answers.append(streamed("one ", "two", gate=gate))
    outcome = await agent.respond(request(), lambda text: gate.set() if text == "one " else None)
    assert isinstance(outcome, Answer)
    assert outcome.text == "one two"


@pytest.mark.parametrize("type_", ["text/event-stream; charset=utf-8", "Text/Event-Stream"])
async def test_a_stream_is_one_however_its_type_is_written(remote: RemoteAgent, agent: UMSAgent, type_: str) -> None:
    remote.answers.append(streamed("yes", type=type_))
    assert (await answer(agent)).text == "yes"


@pytest.mark.parametrize(
    "stream",
    [
        b'data: {"delta": "yes"}\n\ndata: [DONE]\n\n',
        b'data: {"delta": "yes"}\n\ndata: [DONE]\n\ndata: garbage\n\n',
        b'data: {"delta": "yes"}\n\ndata: [DONE]',
        b'data: {"delta": "yes"}',
        b'data:{"delta":"yes"}\r\n\r\n',
        b'data: {"delta": "yes"}\r\r',
        b'\xef\xbb\xbfdata: {"delta": "yes"}\n\n',
        b'data: {"delta":\ndata: "yes"}\n\n',
        b': heartbeat\n\ndata: {"delta": "y"}\n\n:\n\ndata\n\ndata: {"delta": "es"}\n\n',
        b'event: ping\ndata: 12:00\n\nid: 7\nretry: 10\nevent: message\ndata: {"delta": "yes"}\n\n',
        b'data: {}\n\ndata: {"delta": "yes", "n": 1}\n\ndata: {"usage": {"tokens": 5}}\n\n',
    ],
)
async def test_a_stream_may_have_all_that_streams_have(remote: RemoteAgent, agent: UMSAgent, stream: bytes) -> None:
    remote.answers.append(RemoteReply([stream], STREAM))
    assert (await answer(agent)).text == "yes"


async def test_characters_come_whole_however_they_are_cut(remote: RemoteAgent, agent: UMSAgent) -> None:
    body = 'data: {"delta": "Grüße 😀"}\r\n\r\n'.encode()
    halves = b'data: {"delta": "\\ud83d"}\r\n\r\ndata: {"delta": "\\ude00 \\ud83d!"}\r\n\r\n'
    remote.answers.append(RemoteReply([bytes([byte]) for byte in body + halves], STREAM))
    outcome, shown = await respond(agent)
    assert isinstance(outcome, Answer)
    assert outcome.text == "Grüße 😀😀 \ufffd!"
    assert shown == ["Grüße 😀", "Grüße 😀😀 \ufffd!"]


@pytest.mark.parametrize("extra", [0, 1])
@pytest.mark.parametrize("say", [whole, streamed])
async def test_an_answer_that_is_too_long_is_cut(remote: RemoteAgent, agent: UMSAgent, say: Any, extra: int) -> None:
    remote.answers.append(say("x" * (MAX_ANSWER_CHARACTERS + extra)))
    outcome = await answer(agent)
    assert outcome.text == "x" * MAX_ANSWER_CHARACTERS
    assert outcome.was_cut == bool(extra)


async def test_an_endless_answer_is_not_waited_for(remote: RemoteAgent, agent: UMSAgent) -> None:
    many = [delta_event("and so on, " * 100)] * 20
    remote.answers.append(RemoteReply([b"".join(many), b"never"], STREAM, gate=asyncio.Event()))
    outcome = await answer(agent)
    assert (len(outcome.text), outcome.was_cut, outcome.state) == (MAX_ANSWER_CHARACTERS, True, FIRST)


# A conversation that is gone


async def test_a_conversation_that_is_gone_is_made_anew(remote: RemoteAgent, agent: UMSAgent) -> None:
    with capture_logs() as logs:
        outcome = await answer(agent, request("And now?", state=UMSState(ums_conversation_id="old")))
    assert (outcome.text, outcome.state) == ("You said: And now?", FIRST)
    assert remote.paths == [
        "/ums/conversations/old/chat",
        "/ums/conversations",
        "/ums/conversations/conv-1/chat",
    ]
    assert remote.contents == ["And now?", "And now?"]
    assert [entry["event"] for entry in logs] == ["agent_lost_conversation"]


async def test_it_is_made_anew_once(remote: RemoteAgent, agent: UMSAgent) -> None:
    remote.default = lambda _content: RemoteReply(status=404)
    outcome = await failure(agent, request(state=UMSState(ums_conversation_id="old")))
    assert (outcome.kind, outcome.state) == (FailureKind.UNAVAILABLE, FIRST)
    assert len(remote.asked) == 3


async def test_a_conversation_that_cannot_be_made_anew_leaves_the_old_state(
    remote: RemoteAgent, agent: UMSAgent
) -> None:
    old = UMSState(ums_conversation_id="old")
    remote.creations.append(RemoteReply(status=500))
    outcome = await failure(agent, request(state=old))
    assert (outcome.kind, outcome.state) == (FailureKind.UNAVAILABLE, old)


# Failures

STATUSES = [
    (301, FailureKind.MISCONFIGURED),
    (400, FailureKind.REJECTED),
    (401, FailureKind.MISCONFIGURED),
    (403, FailureKind.MISCONFIGURED),
    (422, FailureKind.REJECTED),
    (429, FailureKind.BUSY),
    (503, FailureKind.UNAVAILABLE),
]


@pytest.mark.parametrize(("status", "kind"), STATUSES)
async def test_each_refusal_of_an_answer_is_a_kind_of_failure(
    remote: RemoteAgent, agent: UMSAgent, status: int, kind: FailureKind
) -> None:
    remote.answers.append(whole("somebody's words", status=status, headers={"Location": "/elsewhere"}))
    outcome = await failure(agent)
    assert (outcome.kind, outcome.text, outcome.state) == (kind, "", FIRST)
    assert str(status) in outcome.detail
    assert "words" not in outcome.detail
    assert len(remote.asked) == 2


@pytest.mark.parametrize(("status", "kind"), [*STATUSES, (404, FailureKind.UNAVAILABLE)])
async def test_each_refusal_of_a_conversation_is_a_kind_of_failure(
    remote: RemoteAgent, agent: UMSAgent, status: int, kind: FailureKind
) -> None:
    remote.creations.append(RemoteReply(status=status, headers={"Location": "/elsewhere"}))
    outcome = await failure(agent)
    assert (outcome.kind, outcome.text, outcome.state) == (kind, "", None)
    assert len(remote.asked) == 1


@pytest.mark.parametrize("status", [302, 307])
async def test_credentials_do_not_follow_a_redirect(remote: RemoteAgent, agent: UMSAgent, status: int) -> None:
    elsewhere = RemoteAgent()
    await elsewhere.start()
    remote.answers.append(RemoteReply(status=status, headers={"Location": elsewhere.url}))
    outcome = await failure(agent)
    assert outcome.kind is FailureKind.MISCONFIGURED
    assert elsewhere.url not in outcome.detail
    assert elsewhere.asked == []
    await elsewhere.stop()


@pytest.mark.parametrize(
    "body",
    [
        b"<html>busy</html>",
        b"[]",
        b'{"id": 5}',
        b'{"id": ""}',
        b'{"id": ".."}',
        b'{"id": "\\ud800"}',
        json.dumps({"id": "x" * (MAX_ID + 1)}).encode(),
        b'\xff{"id": "conv-1"}',
        b"[" * 100_000,
    ],
)
async def test_garbage_for_an_id_is_a_failure(remote: RemoteAgent, agent: UMSAgent, body: bytes) -> None:
    remote.creations.append(RemoteReply([body]))
    outcome = await failure(agent)
    assert (outcome.kind, outcome.state) == (FailureKind.UNAVAILABLE, None)
    assert len(remote.asked) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"content": null}',
        b'{"content": "hello"',
        b'{"content": "\xff"}',
        b'{"error": "somebody\'s words"}',
        b'data: {"delta": "hello"}\n\n',
        b'{"content": ' + b"1" * 10_000 + b"}",
        b"[" * 100_000,
    ],
)
async def test_garbage_for_an_answer_is_a_failure(remote: RemoteAgent, agent: UMSAgent, body: bytes) -> None:
    remote.answers.append(RemoteReply([body]))
    outcome = await failure(agent)
    assert (outcome.kind, outcome.text, outcome.state) == (FailureKind.UNAVAILABLE, "", FIRST)
    assert "words" not in outcome.detail


@pytest.mark.parametrize(
    "garbage",
    [
        b'data: {"delta": "wor',
        b"data: 5\n\n",
        b'data: {"delta": 5}\n\n',
        b'data: {"error": "somebody\'s words"}\n\n',
        b"event: error\ndata: somebody's words\n\n",
        b"data: " + b"[" * 100_000 + b"\n\n",
        b": heartbeat\n\n" * (MAX_BODY_BYTES // 10),
    ],
)
async def test_garbage_in_a_stream_keeps_what_came_before(remote: RemoteAgent, agent: UMSAgent, garbage: bytes) -> None:
    remote.answers.append(RemoteReply([delta_event("The beginning"), garbage], STREAM))
    outcome = await failure(agent)
    assert (outcome.kind, outcome.text, outcome.state) == (FailureKind.UNAVAILABLE, "The beginning", FIRST)
    assert "words" not in outcome.detail


@pytest.mark.parametrize(
    "cut", [streamed("The beginning", cut=True), RemoteReply([delta_event("x"), b"data"], STREAM, cut=True)]
)
async def test_half_a_stream_is_a_failure_and_its_beginning_kept(
    remote: RemoteAgent, agent: UMSAgent, cut: RemoteReply
) -> None:
    heard = asyncio.Event()
    remote.answers.append(replace(cut, gate=heard))
    outcome = await agent.respond(request(), lambda _text: heard.set())
    assert isinstance(outcome, Failure)
    assert outcome.kind is FailureKind.UNAVAILABLE
    assert outcome.text in ("The beginning", "x")
    assert outcome.state == FIRST


async def test_a_huge_answer_is_not_read(remote: RemoteAgent, agent: UMSAgent) -> None:
    remote.answers.append(RemoteReply([b'{"content": "', b"x" * MAX_BODY_BYTES, b'"}']))
    outcome = await failure(agent)
    assert outcome.kind is FailureKind.UNAVAILABLE
    assert outcome.detail == "The agent docs gave an answer that cannot be used: more than 1,000,000 bytes."


@pytest.mark.parametrize("stream", [False, True])
async def test_json_that_would_take_long_to_parse_is_not_parsed(
    remote: RemoteAgent, agent: UMSAgent, stream: bool
) -> None:
    body = b'{"content": "so", "delta": "so", "more": [' + b"[]," * (MAX_JSON // 3) + b"[]]}"
    reply = RemoteReply([b"data: " + body + b"\n\n"], "text/event-stream") if stream else RemoteReply([body])
    remote.answers.append(reply)
    outcome = await failure(agent)
    assert outcome.detail.endswith("cannot be used: more than 196,608 bytes of JSON.")


async def test_an_answer_that_is_huge_once_unpacked_is_not_read(remote: RemoteAgent, agent: UMSAgent) -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    remote.answers.append(RemoteReply([bomb], headers={"Content-Encoding": "gzip"}))
    assert (await failure(agent)).kind is FailureKind.UNAVAILABLE


@pytest.mark.parametrize("encoding", ["gzip", "br"])
async def test_what_cannot_be_unpacked_is_a_failure(remote: RemoteAgent, agent: UMSAgent, encoding: str) -> None:
    remote.answers.append(RemoteReply([b"no such thing"], headers={"Content-Encoding": encoding}))
    assert (await failure(agent)).kind is FailureKind.UNAVAILABLE


@pytest.mark.parametrize(
    "empty", [whole(""), whole(" \n\u200b"), streamed(), streamed("", " "), RemoteReply([b"data: [DONE]\n\n"], STREAM)]
)
async def test_an_empty_answer_is_a_failure(remote: RemoteAgent, agent: UMSAgent, empty: RemoteReply) -> None:
    remote.answers.append(empty)
    outcome = await failure(agent)
    assert (outcome.kind, outcome.text, outcome.state) == (FailureKind.EMPTY, "", FIRST)


async def test_an_agent_that_cannot_be_reached_is_a_failure(remote: RemoteAgent, agent: UMSAgent) -> None:
    await remote.stop()
    outcome = await failure(agent, request(state=FIRST))
    assert (outcome.kind, outcome.state) == (FailureKind.UNAVAILABLE, FIRST)
    assert "127.0.0.1" not in outcome.detail


async def test_an_agent_to_which_no_connection_comes_about_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_args: object, **_how: object) -> list[object]:
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", never)
    async with UMSAgent("docs", "https://agents.example", HEADERS, connect_seconds=0.02) as agent:
        outcome = await failure(agent)
    assert (outcome.kind, outcome.detail) == (FailureKind.UNAVAILABLE, "The agent docs cannot be reached.")


async def test_something_else_that_listens_there_is_a_failure() -> None:
    async def speak(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(speak, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with UMSAgent("docs", f"http://127.0.0.1:{port}", HEADERS) as agent:
            assert (await failure(agent)).kind is FailureKind.UNAVAILABLE


class Lags:
    """The longest time that the event loop was held up while the context lasted."""

    async def __aenter__(self) -> Lags:
        self.longest = 0.0
        self._task = asyncio.create_task(self._watch())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0)
        self._task.cancel()

    async def _watch(self) -> None:
        while True:
            begun = time.process_time()
            await asyncio.sleep(0)
            self.longest = max(self.longest, time.process_time() - begun)


@pytest.mark.parametrize(
    ("answer", "count"),
    [
        (b"HTTP/1.1 103 E\r\n\r\n", 60_000),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream" + b';"' * 4_000 + b"\r\n\r\n", 1),
        (b"HTTP/1.1 200 OK\r\nContent-Type: application/json" + b";a" * 4_000 + b"\r\n\r\n", 1),
    ],
    ids=["interim responses", "parameters of a stream's type", "parameters of another type"],
)
async def test_all_else_goes_on_while_what_comes_before_an_answer_is_read(answer: bytes, count: int) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        if b"/chat" in asked:
            with suppress(ConnectionError):
                writer.write(answer * count)
                await writer.drain()
        else:
            writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"id": "c1"}')
        writer.close()

    async with await asyncio.start_server(speak, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with UMSAgent("docs", f"http://127.0.0.1:{port}", HEADERS) as agent, Lags() as lags:
            await respond(agent)
    assert lags.longest < 0.1


@pytest.mark.parametrize("limits", [{"stall_seconds": 0.1}, {"total_seconds": 0.2}])
async def test_an_agent_that_stalls_midway_is_late_and_its_beginning_kept(
    remote: RemoteAgent, limits: dict[str, float]
) -> None:
    remote.answers.append(streamed("The beginning", "and the end", gate=asyncio.Event()))
    async with UMSAgent("docs", remote.url, HEADERS, **limits) as agent:
        outcome = await failure(agent)
    assert (outcome.kind, outcome.text, outcome.state) == (FailureKind.LATE, "The beginning", FIRST)


# Stopped on the way


async def stopped(agent: UMSAgent, turn: AgentRequest, event: asyncio.Event, shown: list[str] | None = None) -> None:
    """Has the turn cancelled once the event comes, which is set at the first words, too."""

    def show(text: str) -> None:
        (shown if shown is not None else []).append(text)
        event.set()

    running = asyncio.create_task(agent.respond(turn, show))
    await event.wait()
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()


async def test_a_stopped_answer_keeps_its_words_and_the_conversation(remote: RemoteAgent, agent: UMSAgent) -> None:
    remote.answers.append(streamed("Once upon ", "a time", gate=asyncio.Event()))
    turn, shown = request("tell me"), list[str]()
    await stopped(agent, turn, asyncio.Event(), shown)
    assert agent.interrupted(turn, shown[-1]) == Answer("Once upon ", [], 0, state=FIRST)
    assert (await answer(agent, request("go on", state=FIRST))).state == FIRST
    assert remote.paths.count("/ums/conversations") == 1


async def test_a_turn_stopped_before_any_words_keeps_the_conversation(remote: RemoteAgent, agent: UMSAgent) -> None:
    chatting = asyncio.Event()

    def begun(_content: str) -> RemoteReply:
        chatting.set()
        return whole("never", before=asyncio.Event())

    remote.default = begun
    turn = request(state=UMSState(ums_conversation_id="old"))
    await stopped(agent, turn, chatting)
    assert agent.interrupted(turn, "").state == FIRST


async def test_a_turn_stopped_before_it_had_a_conversation_has_none(remote: RemoteAgent, agent: UMSAgent) -> None:
    remote.creations.append(RemoteReply(before=asyncio.Event()))
    turn = request()
    await stopped(agent, turn, remote.arrived)
    assert agent.interrupted(turn, "").state is None


async def test_nothing_is_kept_of_turns_that_are_over(agent: UMSAgent) -> None:
    await answer(agent)
    assert len(agent._begun) == 0


# Secrets


async def test_no_header_is_logged_or_shown(
    remote: RemoteAgent, agent: UMSAgent, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    remote.answers.extend(
        [whole("x", status=401), RemoteReply([b"garbage"]), streamed("x", cut=True), RemoteReply(status=404)]
    )
    with capture_logs() as logs:
        outcomes = [(await respond(agent))[0] for _ in range(5)]
    await remote.stop()
    outcomes.append((await respond(agent))[0])
    assert sum(isinstance(outcome, Failure) for outcome in outcomes) == 4
    assert all(asked.headers["Authorization"] == f"Bearer {SECRET}" for asked in remote.asked)
    assert SECRET not in f"{outcomes} {logs} {caplog.text} {agent!r} {agent._remote!r}"


# Events


async def read(chunks: Iterable[bytes]) -> list[str]:
    async def given_one_by_one() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    return [data async for data in event_data(given_one_by_one())]


@pytest.mark.parametrize("lines", [b'data: {"delta": "a"}\n\n', b"\n", b": ping\n"])
async def test_all_else_goes_on_while_thousands_of_lines_are_read_that_came_at_once(lines: bytes) -> None:
    chunk, turns = lines * (MAX_BODY_BYTES // len(lines)), 0

    async def chunks() -> AsyncIterator[bytes]:
        yield chunk

    async def go_on() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(go_on())
    async for _ in event_data(chunks()):
        pass
    task.cancel()
    assert turns > 200


@settings(max_examples=40)
@given(
    texts=st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1)),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    cuts=st.sets(st.integers(0, 300)),
)
def test_events_are_the_same_wherever_the_stream_is_cut(texts: list[str], end: str, cuts: set[int]) -> None:
    body = "".join(f"data: {text}{end}: heartbeat{end}{end}" for text in texts).encode()
    places = [0, *sorted(cut for cut in cuts if cut < len(body)), len(body)]
    chunks = [body[start:stop] for start, stop in pairwise(places)]
    assert asyncio.run(read(chunks)) == texts


@pytest.mark.parametrize(
    ("stream", "data"),
    [
        (b"", []),
        (b"\n\n\n", []),
        (b"data\n\ndata:\n\n", []),
        (b"data: a\ndata\ndata:  b\n\n", ["a\n\n b"]),
        (b"data:a\x0bb\xe2\x80\xa8c\n\n", ["a\x0bb\u2028c"]),
        (b"data: \xff\n\n", ["\ufffd"]),
        (b"datax: a\nDATA: b\n data: c\n\n", []),
        (b"event: ping\n\ndata: a\n\n", ["a"]),
        (b"data: a", ["a"]),
        (b"data: a\r", ["a"]),
    ],
)
async def test_events_are_read_by_the_rules(stream: bytes, data: list[str]) -> None:
    assert await read([stream]) == data


# Declining


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (RemoteReply(status=204), ""),
        (RemoteReply([b'{"declined": true}']), ""),
        (RemoteReply([b'{"declined": true, "why": "they talk to Ben", "content": "hm"}']), "they talk to Ben"),
        (RemoteReply([b'{"declined": true, "why": 5}']), "5"),
        (RemoteReply(status=204, type=STREAM), ""),
        (RemoteReply([b'data: {"declined": true, "why": "they talk to Ben"}\n\n'], type=STREAM), "they talk to Ben"),
        (RemoteReply([b"data: {}\n\n", b'data: {"delta": " "}\n\n', b'data: {"declined": true}\n\n'], type=STREAM), ""),
    ],
)
async def test_where_it_may_it_declines_and_where_it_was_called_that_is_no_answer(
    remote: RemoteAgent, agent: UMSAgent, said: RemoteReply, why: str
) -> None:
    remote.answers.extend([said, said])
    outcome, shown = await respond(agent, replace(request(), may_decline=True))
    assert (outcome, "".join(shown).strip()) == (Declined(why, state=FIRST), "")
    assert (await failure(agent)).kind is FailureKind.EMPTY
    assert [body.get("may_decline", "not said") for body in remote.chats] == [True, "not said"]


async def test_words_that_were_shown_stand_though_it_declines_behind_them(remote: RemoteAgent, agent: UMSAgent) -> None:
    remote.answers.append(RemoteReply([delta_event("Yes."), b'data: {"declined": true}\n\n'], type=STREAM))
    assert (await answer(agent, replace(request(), may_decline=True))).text == "Yes."


@pytest.mark.parametrize(
    ("said", "tokens"),
    [
        (RemoteReply([b"no json"]), ANSWER_TOKENS),
        (RemoteReply([b'{"content": "', b"x" * MAX_BODY_BYTES, b'"}']), ANSWER_TOKENS),
        (RemoteReply([b"event: error\ndata: x\n\n"], STREAM), ANSWER_TOKENS),
        (RemoteReply([b"data"], STREAM, cut=True), ANSWER_TOKENS),
        (RemoteReply(status=500), 0),
        (RemoteReply(status=429), 0),
    ],
)
async def test_what_was_asked_counts_unless_it_was_refused(
    remote: RemoteAgent, agent: UMSAgent, said: RemoteReply, tokens: int
) -> None:
    remote.answers.append(said)
    limits = Limits(turns_per_user_minute=20, daily_tokens=None)
    outcome, _ = await respond(agent, replace(request(), allowance=Allowance(Budget(limits, lambda: NOON), NOBODY)))
    assert isinstance(outcome, Failure)
    assert outcome.tokens == tokens


async def test_an_answer_is_reserved_before_it_is_asked_for_and_counts_as_that(
    remote: RemoteAgent, agent: UMSAgent
) -> None:
    limits = Limits(turns_per_user_minute=20, daily_tokens=ANSWER_TOKENS)

    def turn() -> AgentRequest:
        return replace(request(), allowance=Allowance(Budget(limits, lambda: NOON), NOBODY))

    first = turn()
    outcome, _ = await respond(agent, first)
    assert outcome.tokens == ANSWER_TOKENS
    assert not limits.reserve(Reserved(NOBODY, Amount(1)), NOON)
    assert first.allowance
    first.allowance.settle(outcome.tokens)
    asked = len(remote.asked)
    late, _ = await respond(agent, turn())
    assert isinstance(late, Failure)
    assert (late.kind, late.tokens) == (FailureKind.OVER_BUDGET, 0)
    assert len(remote.asked) == asked
