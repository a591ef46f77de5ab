"""Messages and sessions as the document "State Management" has them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from copy import deepcopy
from dataclasses import FrozenInstanceError, fields
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from state import Message, MessageCategory, Session
from state.session import VersionError
from state.session_messages import SessionError, estimated_tokens

SYSTEM, CONTEXT, DIALOG, OUTPUT = (
    MessageCategory.SYSTEM,
    MessageCategory.CONTEXT,
    MessageCategory.DIALOG,
    MessageCategory.SYSTEM_OUTPUT,
)
IMAGE = {"type": "image_url", "image_url": {"url": "https://cdn.example/cat.png", "detail": "low"}}
CONTENTS: list[Any] = [
    "Hello, how are you?",
    "",
    [{"type": "text", "text": "what is this?"}, IMAGE],
    IMAGE,
    {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
    {"type": "file", "file": {"file_id": "f1"}},
    None,
    "🦊\0\n",
]


def said(text: str, category: MessageCategory = DIALOG, **more: Any) -> Message:
    return Message("user", text, category, **more)


def called(*ids: str, category: MessageCategory = DIALOG, **more: Any) -> Message:
    calls = [{"id": each, "type": "function", "function": {"name": "search", "arguments": "{}"}} for each in ids]
    return Message("assistant", more.pop("content", ""), category, metadata={"tool_calls": calls}, **more)


def result(call_id: str, category: MessageCategory = OUTPUT, text: str = "found") -> Message:
    return Message("tool", text, category, metadata={"tool_call_id": call_id}, tokens=10)


def test_the_fields_and_their_defaults_are_those_of_the_document() -> None:
    assert [(each.name, each.value) for each in MessageCategory] == [
        ("SYSTEM", 1),
        ("CONTEXT", 2),
        ("DIALOG", 3),
        ("SYSTEM_OUTPUT", 4),
    ]
    names = ["role", "content", "category", "id", "timestamp", "metadata", "tokens"]
    assert [each.name for each in fields(Message)] == names
    assert [each.name for each in fields(Session) if each.init] == [
        "id",
        "messages",
        "created_at",
        "last_active",
        "metadata",
    ]
    message, session = said("hi"), Session()
    assert re.fullmatch("msg_[0-9a-f]{8}", message.id)
    assert re.fullmatch(r"session_\d{8}_\d{6}_[0-9a-f]{8}", session.id)
    for time in (message.timestamp, session.created_at, session.last_active):
        assert datetime.fromisoformat(time).utcoffset() is not None
    assert (message.metadata, message.tokens, session.messages, session.metadata) == ({}, 0, [], {})
    assert said("hi").id != message.id


def test_adding_records_in_place_and_bumps_last_active() -> None:
    session = Session(last_active="2026-01-01T00:00:00+00:00")
    session.add_message(said("a"))
    session.add_message(said("b"))
    assert [message.content for message in session.messages] == ["a", "b"]
    assert session.last_active > "2026-01-02"
    with pytest.raises(FrozenInstanceError):
        session.messages[0].content = "ho"  # type: ignore[misc]


def test_of_messages_with_the_same_id_the_later_counts_in_the_place_of_the_first() -> None:
    session = Session()
    for id_, text in (("1", "a"), ("2", "b"), ("1", "c")):
        session.add_message(said(text, id=id_))
    assert [message.content for message in session.messages] == ["c", "b"]
    session.messages.insert(0, said("by hand", id="3"))
    session.add_message(said("d", id="2"))
    assert [message.content for message in session.messages] == ["by hand", "c", "d"]
    session.messages.reverse()
    session.add_message(said("e", id="2"))
    assert [message.content for message in session.messages] == ["d", "c", "by hand", "e"]


@pytest.mark.parametrize("content", CONTENTS, ids=str)
def test_what_is_written_is_read_again(content: Any) -> None:
    message = Message("user", content, CONTEXT, metadata={"author_id": 7, "nested": {"a": [None]}}, tokens=5)
    session = Session(messages=[message, said("more")], metadata={"channel": 1})
    read = Session.from_dict(json.loads(json.dumps(session.to_dict())))
    assert read == session
    assert read.messages[0].content == content
    assert session.to_dict()["messages"][0]["category"] == "CONTEXT"
    assert Message.from_dict(message.to_dict()) == message


def test_what_has_a_default_may_be_missing() -> None:
    message = Message.from_dict({"role": "user", "content": "hi", "category": "DIALOG"})
    assert re.fullmatch("msg_[0-9a-f]{8}", message.id)
    assert message.metadata == {}
    assert message.metadata is not Message.from_dict({"role": "user", "content": 1, "category": "DIALOG"}).metadata


MESSAGE = said("hi").to_dict()
SESSION = Session(messages=[said("hi")]).to_dict()


def test_a_message_or_session_that_is_none_is_refused_in_one_sentence() -> None:
    wrong_messages: list[dict[str, Any]] = [{"role": 5}, {"category": "MAGIC"}, {"category": 3}, {"timestamp": "soon"}]
    wrong_messages += [{"tokens": -1}, {"tokens": "5"}, {"metadata": []}, {"id": None}, {"magic": 1}]
    for wrong in wrong_messages:
        with pytest.raises(SessionError, match=f"{next(iter(wrong))} cannot be used") as refused:
            Message.from_dict({**MESSAGE, **wrong})
        assert "\n" not in str(refused.value)
    wrong_sessions: list[dict[str, Any]] = [{"id": ""}, {"id": 5}, {"messages": {}}, {"messages": [1]}, {"x": 1}]
    wrong_sessions += [{"messages": [MESSAGE, {**MESSAGE, **wrong}]} for wrong in wrong_messages]
    wrong_sessions += [{"created_at": "then"}, {"metadata": None}]
    nothing: list[Any] = [None, [], "text", {}, {"messages": []}]
    for session in [*nothing, *({**SESSION, **wrong} for wrong in wrong_sessions)]:
        with pytest.raises(SessionError) as refused:
            Session.from_dict(session)
        assert "\n" not in str(refused.value)
    for version in (2, 0, "1", None):
        with pytest.raises(VersionError, match="version"):
            Session.from_dict({**SESSION, "version": version})


def test_tokens_are_the_providers_where_known_and_else_estimated() -> None:
    assert said("x" * 400).size == 100
    assert said("x" * 400, tokens=7).size == 7
    assert Session(messages=[said("abcd"), said("abcde", tokens=9)]).tokens == 10
    text = {"type": "text", "text": "x" * 40}
    contents: list[Any] = ["", "abc", "abcde", IMAGE, [text, IMAGE, IMAGE], {"text": "abcd"}, {"a": "ab", "b": ["ab"]}]
    assert list(map(estimated_tokens, [*contents, None, 5])) == [0, 1, 2, 1_000, 2_010, 1, 2, 0, 1]


def ten(name: str, category: MessageCategory) -> Message:
    return Message("user", name, category, id=name, tokens=10)


ORDER = {
    "s": SYSTEM,
    "c1": CONTEXT,
    "d1": DIALOG,
    "o1": OUTPUT,
    "d2": DIALOG,
    "o2": OUTPUT,
    "c2": CONTEXT,
    "d3": DIALOG,
}
MIXED = [ten(name, category) for name, category in ORDER.items()]


TRIMMED = {1_000: "s c1 d1 o1 d2 o2 c2 d3", 80: "s c1 d1 o1 d2 o2 c2 d3", 79: "s c1 d1 d2 o2 c2 d3"}
TRIMMED |= {60: "s c1 d1 d2 c2 d3", 59: "s c1 d2 c2 d3", 45: "s c1 c2 d3", 30: "s c1 c2", 20: "s c2"}
TRIMMED |= dict.fromkeys((10, 0, -5), "s")


def test_trimming_drops_results_then_dialogue_then_context_and_never_system() -> None:
    for max_tokens, left in TRIMMED.items():
        session = Session(messages=list(MIXED), metadata={"a": 1})
        trimmed = session.trim(max_tokens)
        assert [message.id for message in trimmed.messages] == left.split()
        assert (trimmed.id, trimmed.metadata, trimmed.created_at) == (session.id, session.metadata, session.created_at)
        trimmed.metadata["b"] = 2
        trimmed.messages.clear()
        assert (session.metadata, session.messages) == ({"a": 1}, MIXED)


def test_a_call_takes_its_results_with_it() -> None:
    messages = [called("1", "2", tokens=10), result("1", DIALOG), result("2", DIALOG), ten("d", DIALOG)]
    assert Session(messages=messages).trim(39).messages == messages[3:]


def test_a_call_counts_for_as_much_as_its_most_important_result() -> None:
    messages = [called("1", tokens=10), result("1", CONTEXT), ten("d1", DIALOG), ten("d2", DIALOG)]
    assert Session(messages=messages).trim(25).messages == messages[:2]
    of_system = [called("1", tokens=10), result("1", SYSTEM), ten("d", DIALOG)]
    assert Session(messages=of_system).trim(0).messages == of_system[:2]


def test_a_result_without_a_call_goes_even_where_there_is_room() -> None:
    messages = [result("1"), called("1", tokens=1), result("1"), result("2", CONTEXT)]
    assert Session(messages=messages).trim(1_000).messages == messages[1:3]


@pytest.mark.parametrize("where", ["metadata", "content"])
def test_calls_are_known_from_the_metadata_and_from_the_content(where: str) -> None:
    call = {where: {"tool_calls": [{"id": "a"}]}}
    answer = {where: {"tool_call_id": "a"}}
    message = Message("assistant", call.get("content"), DIALOG, metadata=call.get("metadata", {}))
    reply = Message("tool", answer.get("content"), OUTPUT, metadata=answer.get("metadata", {}))
    assert (message.calls, message.call_id, reply.calls, reply.call_id) == (frozenset("a"), "", frozenset(), "a")
    no_calls: list[Any] = [5, "text", [1], [{}], None, {"id": "a"}]
    for odd in no_calls:
        assert not Message("assistant", "", DIALOG, metadata={"tool_calls": odd}).calls


CATEGORIES = st.sampled_from(list(MessageCategory))
IDS = st.sampled_from("abc")
MESSAGES = st.one_of(
    st.builds(said, st.text(max_size=40), CATEGORIES),
    st.builds(lambda ids, category: called(*ids, category=category, tokens=7), st.sets(IDS, min_size=1), CATEGORIES),
    st.builds(result, IDS, CATEGORIES),
)


@settings(deadline=None)
@given(st.lists(MESSAGES, max_size=12), st.integers(0, 120))
def test_whatever_is_trimmed_is_as_small_as_asked_and_has_every_results_call(
    messages: list[Message], max_tokens: int
) -> None:
    session = Session(messages=messages)
    before = deepcopy(messages)
    trimmed = session.trim(max_tokens)
    assert session.messages == before
    assert [each for each in trimmed.messages if each.category is SYSTEM] == [
        m for m in messages if m.category is SYSTEM
    ]
    if trimmed.tokens > max_tokens:
        needed = {each.call_id for each in messages if each.category is SYSTEM}
        assert all(each.category is SYSTEM or each.calls & needed for each in trimmed.messages if not each.call_id)
    known: set[str] = set()
    for each in trimmed.messages:
        known |= each.calls
        assert not each.call_id or each.call_id in known or each.category is SYSTEM


def test_filtering_gives_a_new_session() -> None:
    def left(wanted: Callable[[Message], bool] | Collection[MessageCategory]) -> str:
        return " ".join(message.id for message in session.filter(wanted).messages)

    session = Session(messages=list(MIXED))
    assert (left([DIALOG]), left({SYSTEM, CONTEXT}), left(())) == ("d1 d2 d3", "s c1 c2", "")
    assert left(lambda message: message.content.endswith("1")) == "c1 d1 o1"
    assert session.messages == MIXED
