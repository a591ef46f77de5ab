"""conversation.py: a conversation that was stored and taken up again is the one it was."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from agents.gateway import AgentRequest, Answer, Reply
from agents.general import GeneralAgent
from conversation import ChannelConversation, ConversationManager, MessageRecord, StoredConversation, Unwelcome
from llm_history import History
from place import Place
from state.agent_state import UMSState
from state.optout import FORGOTTEN
from state.prompts import ResolutionType
from stored_conversation import LeftStates
from tests.support.clock import NOON, FakeClock
from tests.support.histories import model_reads, turn
from tests.support.people import ANNA, BEN, CHANNEL, CLEO, replied, said

IMAGE = "https://cdn.example/cat?ex=1"
JPEG = b"\xff\xd8\x00\xfb"
RECORD = TypeAdapter(MessageRecord)
HOUR = timedelta(hours=1)


class Process:
    """A manager, and which channels it said have changed. die() gives the next process, which knows what was kept."""

    def __init__(self, clock: FakeClock | None = None, **how: Any) -> None:
        self.clock = clock or FakeClock()
        self.how = how
        self.changed: list[int] = []
        self.manager = ConversationManager(60, clock=self.clock, on_change=self.changed.append, **how)

    def start(self, *messages: MessageRecord) -> ChannelConversation:
        return self.manager.start(CHANNEL, messages)

    def stored(self) -> StoredConversation:
        stored = self.manager.stored(CHANNEL)
        assert stored
        return stored

    def die(self, seconds: float = 0) -> tuple[Process, ChannelConversation | None]:
        """The messages come from a transcript, which has those from before the conversation, too."""
        stored, conversation = self.stored(), self.manager.get(CHANNEL)
        assert conversation
        messages = [m for m in conversation.messages if m.message_id >= stored.since]
        written = orjson.dumps(orjson.loads(stored.to_json())), [RECORD.dump_json(m) for m in messages]
        self.clock.advance(seconds)
        later = Process(self.clock, **self.how)
        read = StoredConversation.from_json(written[0]), [RECORD.validate_json(m) for m in written[1]]
        return later, later.manager.restore(CHANNEL, *read)

    def reborn(self) -> tuple[Process, ChannelConversation]:
        later, conversation = self.die()
        assert conversation
        return later, conversation


@pytest.fixture
def process() -> Process:
    return Process()


# Messages


@pytest.mark.parametrize("mode", ["python", "json"])
def test_a_message_comes_back_as_it_was(mode: str) -> None:
    for message in (
        said(ANNA),
        said(ANNA, "hey ben: ok? <@5> 👍\u200b", mentioned=frozenset({5, 6}), mentions_group=True),
        said(ANNA, "", mentioned=frozenset(), images=(IMAGE, "https://cdn.example/b.png"), readable="[picture]"),
        said(BEN, "oh", reply_to_id=5, reply_to_author_id=ANNA, reply_to_author="Anna", reply_to_text="tea?"),
        replied(ANNA, at=NOON + timedelta(microseconds=1)),
    ):
        fields = RECORD.dump_python(message, mode="json").keys()
        assert (message.mentions, message.named, message.wording, message.calls) is not None  # computed, and kept
        dumped = RECORD.dump_python(message, mode="json" if mode == "json" else "python")
        assert dumped.keys() == fields == {*MessageRecord.__dataclass_fields__}
        back = RECORD.validate_python(json.loads(json.dumps(dumped)) if mode == "json" else dumped)
        assert (back, back.addressed, back.wording) == (message, message.addressed, message.wording)


# The whole


def a_long_one(process: Process) -> ChannelConversation:
    """One in which all happened: told, answered, replied to, edited, deleted, said by a mini-app, and put in front."""
    asked, wrong, secret = said(ANNA, images=(IMAGE,)), said(BEN, "wrong"), said(CLEO, "my secret")
    conversation = process.start(asked)
    conversation.precede([said(BEN, message_id=7), said(CLEO, message_id=8)])
    for message in (wrong, secret, replied(ANNA, reply_to_id=asked.message_id)):
        process.clock.advance(3)
        process.manager.record_message(CHANNEL, replace(message, timestamp=process.clock.now))
    process.manager.record_bot_response(CHANNEL, turn(asked, wrong, secret))
    process.manager.record_message(CHANNEL, replied(BEN, "a card", process.clock.now), by_model=False)
    process.manager.revise(CHANNEL, replace(wrong, content="right"))
    process.manager.forget_messages(CHANNEL, {secret.message_id})
    process.manager.record_message(CHANNEL, said(BEN, "and?", process.clock.now))
    process.manager.follow(CHANNEL, Unwelcome.DISLIKED)
    process.manager.record_declined(CHANNEL, {BEN})
    return conversation


def test_a_conversation_goes_on_as_if_nothing_had_happened(process: Process) -> None:
    before = a_long_one(process)
    later, after = process.reborn()
    assert after.messages == before.messages[2:]
    assert after.llm_history == before.llm_history
    assert after.untold() == [m for m in before.untold() if m in after.messages]
    assert (after.own, after.told_through) == (before.own, before.told_through)
    assert after.unwelcome is before.unwelcome is Unwelcome.DISLIKED
    assert after.declines == before.declines
    assert before.declines.in_a_row == 1
    assert (after.started_at, after.last_activity) == (before.started_at, before.last_activity)
    assert (after.participants, after.names) == ({ANNA, BEN}, {ANNA: "Anna", BEN: "Ben"})
    assert after.engagement == ChannelConversation(CHANNEL, NOON, NOON, messages=before.messages[2:]).engagement
    assert later.stored() == process.stored()


@given(st.lists(st.sampled_from(["ask", "answer", "talk"]), max_size=40), st.integers(3, 9))
def test_however_it_was_trimmed_it_keeps_its_messages(steps: list[str], cap: int) -> None:
    process = Process(max_messages=cap)
    conversation = process.start(said(ANNA))
    for step in steps:
        if step == "answer":
            process.manager.record_message(CHANNEL, replied(ANNA))
            told = turn(*conversation.untold()) if conversation.untold() else []
            process.manager.record_bot_response(CHANNEL, [*conversation.llm_history, *told])
        else:
            process.manager.record_message(CHANNEL, said(ANNA if step == "ask" else BEN))
    _, after = process.reborn()
    assert (after.messages, after.own, after.untold()) == (
        conversation.messages,
        conversation.own,
        conversation.untold(),
    )
    assert after.llm_history == conversation.llm_history


def test_more_messages_than_are_kept_are_trimmed_as_ever() -> None:
    messages = [said(BEN, str(number)) for number in range(6)]
    before, after = Process(), Process(max_messages=4)
    before.start(messages[0])
    conversation = after.manager.restore(CHANNEL, before.stored(), messages)
    assert conversation
    assert conversation.messages == messages[3:]


def test_what_was_put_in_front_does_not_belong_to_it(process: Process) -> None:
    asked = said(ANNA)
    conversation = process.start(asked)
    conversation.precede([said(BEN, message_id=5)])
    assert process.stored().since == asked.message_id
    process.manager.forget_messages(CHANNEL, {asked.message_id})
    assert process.stored().since == asked.message_id


def test_one_that_began_without_a_message_begins_with_the_first(process: Process) -> None:
    process.start()
    process.manager.record_message(CHANNEL, first := said(ANNA))
    process.manager.record_message(CHANNEL, second := said(ANNA))
    assert process.stored().since == first.message_id
    process.manager.forget_messages(CHANNEL, {first.message_id, second.message_id})
    assert process.stored().since == first.message_id
    later, _ = process.reborn()
    assert later.stored().since == first.message_id


def test_one_that_is_there_already_stays(process: Process) -> None:
    process.start(said(ANNA))
    stored = process.stored()
    live = process.start(said(BEN))
    assert process.manager.restore(CHANNEL, stored, [said(ANNA)]) is live
    assert process.manager.get(CHANNEL) is live


# Whether it is still alive


@pytest.mark.parametrize(("seconds", "lives"), [(0, True), (60, True), (61, False), (86_400, False), (-61, False)])
def test_it_is_taken_up_only_as_long_as_it_would_have_lived(process: Process, seconds: float, lives: bool) -> None:
    process.start(said(ANNA))
    later, conversation = process.die(seconds)
    assert (conversation is not None, len(later.manager)) == (lives, int(lives))


def test_an_open_prompt_keeps_it_open() -> None:
    process = Process(keeps_open=lambda channel_id, _at: channel_id == CHANNEL)
    process.start(said(ANNA))
    assert process.die(3_600)[1]


def test_its_newest_message_counts_though_it_was_not_stored_since(process: Process) -> None:
    process.start(said(ANNA))
    stored = process.stored()
    newest = said(BEN, at=NOON + timedelta(seconds=50))
    process.clock.advance(100)
    conversation = Process(process.clock).manager.restore(CHANNEL, stored, [newest])
    assert conversation
    assert conversation.last_activity == newest.timestamp


def test_one_that_has_expired_is_taken_up_for_a_time_when_it_was_alive(process: Process) -> None:
    process.start(said(ANNA))
    stored = process.stored()
    process.clock.advance(3_600)
    manager = Process(process.clock).manager
    assert manager.restore(CHANNEL, stored, [], at=NOON + timedelta(seconds=61)) is None
    assert manager.restore(CHANNEL, stored, [], at=NOON + timedelta(seconds=60))


def test_where_none_is_alive_nothing_is_stored_and_looking_frees_nothing(process: Process) -> None:
    assert process.manager.stored(CHANNEL) is None
    process.start(said(ANNA))
    process.clock.advance(61)
    assert process.manager.stored(CHANNEL) is None
    assert len(process.manager) == 1


@pytest.mark.parametrize(("seconds", "ends"), [(-60, False), (0, False), (110, False), (111, True)])
@pytest.mark.parametrize("is_held", [False, True])
def test_it_ends_where_nobody_spoke_for_too_long_until_then(
    process: Process, seconds: float, ends: bool, is_held: bool
) -> None:
    """While an answer is made in it, or waits for Discord, it goes on: what waits behind it needs it."""
    process.start(said(ANNA))
    process.clock.advance(50)
    process.manager.record_message(CHANNEL, said(BEN))
    with process.manager.hold(CHANNEL) if is_held else nullcontext():
        process.manager.end_if_silent(CHANNEL, until=NOON + timedelta(seconds=seconds))
        assert len(process.manager) == int(not ends or is_held)


def test_it_had_not_ended_while_an_answer_was_made_in_it(process: Process) -> None:
    process.start(said(ANNA))
    with process.manager.hold(CHANNEL):
        process.clock.advance(100)
    process.manager.end_if_silent(CHANNEL, until=NOON + timedelta(seconds=90))
    assert process.manager.get(CHANNEL)


@pytest.mark.parametrize(("seconds", "ends"), [(60, False), (61, True)])
@pytest.mark.parametrize("is_held", [False, True])
def test_one_restored_for_what_was_missed_ends_by_when_somebody_spoke(
    process: Process, seconds: float, ends: bool, is_held: bool
) -> None:
    """While an answer to it is made, it goes on."""
    message = said(ANNA)
    process.start(message)
    stored, later = process.stored(), Process(process.clock)
    later.clock.advance(900)
    later.manager.restore(CHANNEL, stored, [message], at=NOON)
    with later.manager.hold(CHANNEL) if is_held else nullcontext():
        later.manager.end_if_silent(CHANNEL, until=NOON + timedelta(seconds=seconds))
        assert (later.manager.get(CHANNEL) is None) == (ends and not is_held)


def test_one_in_which_we_answered_late_had_not_ended_for_what_was_said_before_that(process: Process) -> None:
    """A new one, for a message missed between question and answer, would show the question as if nobody had answered
    it: of what is later than that message it shows nothing."""
    question, answer = said(ANNA), replace(said(BEN), timestamp=NOON + timedelta(seconds=100))
    process.start(question, answer)
    stored, later = process.stored(), Process(process.clock)
    later.clock.advance(900)
    later.manager.restore(CHANNEL, stored, [question, answer], at=NOON)
    later.manager.end_if_silent(CHANNEL, until=NOON + timedelta(seconds=80))
    assert later.manager.get(CHANNEL)
    later.manager.end_if_silent(CHANNEL, until=NOON + timedelta(seconds=161))
    assert later.manager.get(CHANNEL) is None


# Edits and deletions afterwards


@pytest.fixture
def secret() -> MessageRecord:
    return said(ANNA, "my secret", images=(IMAGE,))


def after_a_restart(process: Process, secret: MessageRecord, *, trimmed: bool) -> tuple[Process, ChannelConversation]:
    """The secret was told to the model, quoted by Ben and kept by the agent; perhaps it was trimmed since."""
    quoting = said(
        BEN,
        "oh",
        reply_to_id=secret.message_id,
        reply_to_author_id=ANNA,
        reply_to_author="Anna",
        reply_to_text="secret",
    )
    process.start(secret, quoting)
    prompt, answer = turn(secret, quoting, answer="a secret, I see")
    words = {"words_of": [(secret.message_id, ANNA)], "so": "secret"}
    asked = said(BEN, "next")
    history = [
        replace(prompt, metadata={"told": [secret.message_id]}),
        answer,
        *turn(asked, answer="fine"),
        ModelResponse(parts=[TextPart("so")], metadata=words),
    ]
    process.manager.record_message(CHANNEL, asked)
    process.manager.record_bot_response(CHANNEL, history)
    later, _ = process.reborn()
    conversation = later.manager.get(CHANNEL)
    assert conversation
    if trimmed:
        conversation.trim(1, 10**6)
        assert conversation.find(secret.message_id) is None
    assert "secret" in repr(conversation.llm_history)
    return later, conversation


@pytest.mark.parametrize("trimmed", [False, True])
@pytest.mark.parametrize("how", ["deleted", "edited", "forgotten"])
def test_what_goes_goes_from_what_was_told_before_the_restart(
    process: Process, secret: MessageRecord, how: str, *, trimmed: bool
) -> None:
    later, conversation = after_a_restart(process, secret, trimmed=trimmed)
    if how == "deleted":
        later.manager.forget_messages(CHANNEL, {secret.message_id})
        assert "[http" not in model_reads(conversation.llm_history)
        assert [m.metadata for m in conversation.llm_history if isinstance(m, ModelResponse)] == [None, None, None]
    elif how == "edited":
        later.manager.revise(CHANNEL, replace(secret, content="harmless", images=()))
        assert model_reads(conversation.llm_history).startswith("Anna: harmless\n")
    else:
        later.manager.forget_author(CHANNEL, ANNA)
        texts = [part.content for m in conversation.llm_history for part in m.parts if isinstance(part, TextPart)]
        assert texts[:2] == [FORGOTTEN, FORGOTTEN]
        assert "next" in model_reads(conversation.llm_history)
        assert "secret" not in repr((conversation.messages, conversation.llm_history))
    assert "my secret" not in repr((conversation.messages, conversation.llm_history))
    assert later.changed == [CHANNEL]


# A run that waits for somebody

WHICH = json.dumps({"question": "Which tea?", "options": ["green", "black"]})
PLACE = Place(bot_name="Parley", guild="The Guild", channel="general")


async def makes_tea(messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    """Asks which, then tells what it was told."""
    results = [part.content for message in messages for part in message.parts if part.part_kind == "tool-return"]
    if results:
        yield f"{results[-1]} tea it is."
    else:
        yield {0: DeltaToolCall("ask_choice", WHICH, tool_call_id="call-1")}


async def test_a_run_that_waits_for_an_answer_goes_on_after_the_restart(process: Process) -> None:
    agent = GeneralAgent(FunctionModel(stream_function=makes_tea))
    process.start(asked := said(ANNA, "make tea"))
    question = await agent.respond(AgentRequest([], [asked], [asked], PLACE, NOON), lambda _: None)
    assert isinstance(question, Answer)
    assert question.ask
    process.manager.record_bot_response(CHANNEL, question.history)

    _, conversation = process.reborn()
    assert conversation.llm_history == question.history
    word = said(ANNA, "the first")
    data = {"type": "selection", "selected_option": "green", "selection_index": 1}
    reply = Reply(question.ask.context["ask_id"], ResolutionType.SELECTION, data)
    answer = await agent.respond(
        AgentRequest(conversation.llm_history, [word], [word], PLACE, NOON, reply=reply), lambda _: None
    )
    assert isinstance(answer, Answer)
    assert answer.text == "green tea it is."


# What is told of changes

Change = Callable[[Process, MessageRecord], object]
CHANGES: list[Change] = [
    lambda process, _: process.start(said(ANNA)),
    lambda process, _: process.manager.record_bot_response(CHANNEL, []),
    lambda process, asked: process.manager.revise(CHANNEL, replace(asked, content="other")),
    lambda process, asked: process.manager.forget_messages(CHANNEL, {asked.message_id}),
    lambda process, _: process.manager.forget_author(CHANNEL, ANNA),
    lambda process, _: process.manager.forget_history(CHANNEL),
    lambda process, _: process.manager.follow(CHANNEL, Unwelcome.DELETED),
    lambda process, _: process.manager.end(CHANNEL),
    lambda process, _: (process.clock.advance(61), process.manager.get(CHANNEL)),
    lambda process, _: (process.clock.advance(61), process.manager.sweep()),
    lambda process, _: process.manager.end_if_silent(CHANNEL, until=NOON + HOUR),
]
NO_CHANGES: list[Change] = [
    lambda process, _: process.manager.record_message(CHANNEL, said(BEN)),
    lambda process, _: process.manager.record_message(CHANNEL, replied(BEN)),
    lambda process, asked: process.manager.revise(CHANNEL, asked),
    lambda process, _: process.manager.revise(CHANNEL, said(BEN)),
    lambda process, _: process.manager.forget_messages(CHANNEL, {1}),
    lambda process, _: process.manager.forget_author(CHANNEL, CLEO),
    lambda process, asked: process.manager.forget_messages(CHANNEL + 1, {asked.message_id}),
    lambda process, _: process.manager.forget_history(CHANNEL + 1),
    lambda process, _: process.manager.follow(CHANNEL),
    lambda process, _: process.manager.follow(CHANNEL + 1, Unwelcome.DELETED),
    lambda process, _: process.manager.end(CHANNEL + 1),
    lambda process, _: process.manager.record_bot_response(CHANNEL + 1, []),
    lambda process, _: (process.manager.get(CHANNEL), process.manager.sweep()),
    lambda process, _: process.stored(),
    lambda process, _: process.manager.restore(CHANNEL, process.stored(), []),
]


def test_what_changes_a_conversation_is_told_once_and_a_message_that_is_recorded_is_not() -> None:
    for change in (*CHANGES, *NO_CHANGES):
        process = Process()
        process.start(asked := said(ANNA))
        process.manager.record_bot_response(CHANNEL, turn(asked))
        process.changed.clear()
        change(process, asked)
        assert process.changed == ([CHANNEL] if change in CHANGES else []), change


def test_of_an_emptied_history_only_the_messages_stay(process: Process) -> None:
    conversation = process.start(asked := said(ANNA))
    process.manager.record_bot_response(CHANNEL, turn(asked))
    process.manager.forget_history(CHANNEL)
    assert (conversation.llm_history, conversation.messages, conversation.untold()) == ([], [asked], [])


# As a text


def test_pictures_and_files_in_the_history_survive(process: Process) -> None:
    process.start(asked := said(ANNA, images=(IMAGE,)))
    picture = UserPromptPart(content=[BinaryContent(JPEG, media_type="image/jpeg")])
    returned = ToolReturnPart("look", JPEG, "1")
    process.manager.record_bot_response(CHANNEL, [*turn(asked), ModelRequest(parts=[picture, returned])])
    text = process.stored().to_json()
    (*_, last) = StoredConversation.from_json(text).llm_history
    assert isinstance(last.parts[0], UserPromptPart)
    back = last.parts[0].content[0]
    assert isinstance(back, BinaryContent)
    assert (back.data, back.media_type) == (JPEG, "image/jpeg")
    assert isinstance(last.parts[1], ToolReturnPart)
    assert last.parts[1].content == "_9gA-w=="


GOOD: dict[str, Any] = {
    "started_at": "2026-03-02T12:00:00Z",
    "last_activity": "2026-03-02T12:00:00Z",
    "since": 5,
    "told_through": 6,
    "own": [6],
    "llm_history": [],
}


def test_what_cannot_be_read_is_refused() -> None:
    assert StoredConversation.from_json(json.dumps(GOOD).encode())
    wrong: tuple[dict[str, Any], ...] = (
        {"started_at": "2026-03-02T12:00:00"},
        {"last_activity": "soon"},
        {"since": "first"},
        {"own": [None]},
        {"llm_history": [{"kind": "request"}]},
        {"llm_history": [{"kind": "miracle", "parts": []}]},
    )
    changed = [json.dumps({**GOOD, **changes}).encode() for changes in wrong]
    for text in (b"", b"null", b"[]", b"{}", b"\xff", b'{"since": 1', *changed):
        with pytest.raises(ValueError, match="validation error"):
            StoredConversation.from_json(text)


TAG = {"message_id": 5, "author_id": ANNA, "reply_to_id": None, "reply_to_author_id": None}


def stored_with(metadata: Any = None, told: Any = None, tag: Any = None, **changes: Any) -> StoredConversation:
    """A conversation of one turn, whose answer, prompt and message have these metadata."""
    text = {"kind": "text-content", "content": "Anna: hello", "metadata": tag or TAG}
    prompt = {"part_kind": "user-prompt", "content": [text, "and more"]}
    answer = {"part_kind": "text", "content": "Hello."}
    history = [
        {"kind": "request", "parts": [prompt], "metadata": told or {"told": [5]}},
        {"kind": "response", "parts": [answer], "metadata": metadata},
    ]
    return StoredConversation.from_json(json.dumps({**GOOD, "llm_history": history, **changes}).encode())


def test_what_is_kept_beside_a_message_and_cannot_be_read_goes_alone() -> None:
    for words_of in (5, [5], [[1, 2, 3]], None, {"a": 1}, [[[], 1]], [["message", "x"]], [[7, 8]]):
        history = stored_with({"is_gpa": True, "words_of": words_of}).llm_history
        assert [message.metadata for message in history] == [{"told": [5]}, None]
    assert stored_with({"is_gpa": True, "words_of": [["message", 5]]}).llm_history[1].metadata
    unread: list[Any] = [5, "x", [[]], {"a": 1}]
    for told in unread:  # what it told is told yet
        history = stored_with(told={"told": told}).llm_history
        assert history[0].metadata is None
        assert "hello" in model_reads(history)
    tags: list[Any] = [{"message_id": 1}, {**TAG, "author_id": []}, {**TAG, "reply_to_id": "x"}, {"a": 5}]
    for tag in tags:
        assert model_reads(stored_with(tag=tag).llm_history) == "and more"  # of whose it is nothing is known


def test_a_state_that_cannot_be_read_goes_alone() -> None:
    good = {"v": 1, "ums_conversation_id": "c"}
    states = {"docs": good, "gone": {"v": 2, "ums_conversation_id": "x"}, "other": {"ums_conversation_id": 5}, "it": 7}
    assert stored_with(states=states).states == {"docs": UMSState(ums_conversation_id="c")}
    assert stored_with(states=[]).states == {}


def test_what_was_stored_does_not_change_with_the_conversation(process: Process) -> None:
    process.start(asked := said(ANNA))
    process.manager.record_bot_response(CHANNEL, turn(asked))
    stored = process.stored()
    text = stored.to_json()
    process.manager.record_message(CHANNEL, replied(ANNA))
    process.manager.record_bot_response(CHANNEL, [*turn(asked), *turn(said(BEN))])
    process.manager.forget_author(CHANNEL, ANNA)
    assert stored.to_json() == text


def test_of_whoever_is_forgotten_no_decline_is_kept(process: Process) -> None:
    process.start(said(ANNA))
    process.manager.record_declined(CHANNEL, {ANNA, BEN})
    process.manager.forget_author(CHANNEL, ANNA)
    stored = process.manager.stored(CHANNEL)
    assert stored
    assert stored.declines.at.keys() == {BEN}


def test_what_is_no_history_is_refused() -> None:
    values: list[Any] = [None, 5, "x", {}, [7], [{"kind": "request"}], [{"kind": "other", "parts": []}]]
    for value in values:
        with pytest.raises(ValueError, match=r"."):
            TypeAdapter(History).validate_python(value)


def test_a_history_is_the_same_within_whatever_it_is_stored() -> None:
    told: list[ModelMessage] = [
        *turn(said(ANNA, images=(IMAGE,))),
        ModelRequest(parts=[UserPromptPart(content=[BinaryContent(JPEG, media_type="image/jpeg")])]),
    ]
    within = TypeAdapter(dict[str, History | None])
    text = within.dump_json({"told": told, "nothing": None})
    assert within.dump_json(within.validate_json(text)) == text
    assert within.dump_json(within.validate_python(orjson.loads(text))) == text
    assert orjson.loads(text)["told"] == orjson.loads(ModelMessagesTypeAdapter.dump_json(told))


def test_what_an_earlier_version_stored_of_what_agents_were_told_is_read() -> None:
    left = {"states": {}, "told": {"7": ["docs", ANNA], "8": ["docs", BEN]}, "at": NOON.isoformat()}
    told = {"docs": {7: (ANNA,), 8: (BEN,)}}
    assert LeftStates.from_json(json.dumps(left).encode()).told == told
    left["told"] = {"docs": {"7": ANNA, "8": BEN}}
    assert LeftStates.from_json(json.dumps(left).encode()).told == told
