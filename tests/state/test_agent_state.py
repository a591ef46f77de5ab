"""state/agent_state.py: what an agent is given back next turn, and which values are refused."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from pydantic import ValidationError

from state import GPAState, UMSState
from state.agent_state import MAX_ID, AgentState, GPAMessages, read_agent_state

UUID = "0e4f9c1a-7f2e-4a4f-9a63-0e0c6d0c1f55"
GPA = {"is_gpa": True, "gpa_messages": {"tool_calls": [{"name": "python_run"}], "tool_responses": ["55"]}}
UMS = {"ums_conversation_id": UUID}


@pytest.mark.parametrize(
    ("value", "state"),
    [
        (GPA, GPAState(gpa_messages=GPAMessages(tool_calls=[{"name": "python_run"}], tool_responses=["55"]))),
        ({"is_gpa": True, "gpa_messages": {}}, GPAState(gpa_messages=GPAMessages())),
        (
            {"is_gpa": True, "gpa_messages": {"messages": [1, None]}},
            GPAState(gpa_messages=GPAMessages(messages=[1, None])),
        ),
        (UMS, UMSState(ums_conversation_id=UUID)),
        ({"v": 1, "ums_conversation_id": "x" * MAX_ID}, UMSState(ums_conversation_id="x" * MAX_ID)),
        ({**UMS, "shared_context": {"last_mentioned_location": "Paris"}}, UMSState(ums_conversation_id=UUID)),
    ],
)
def test_the_documents_dicts_are_states(value: dict[str, Any], state: AgentState) -> None:
    assert read_agent_state(value) == state
    assert type(read_agent_state(value)) is type(state)


@pytest.mark.parametrize("value", [GPA, UMS])
def test_a_state_written_as_json_is_read_again(value: dict[str, Any]) -> None:
    state = read_agent_state(value)
    written = state.model_dump()
    assert written["v"] == 1
    assert value.items() <= written.items() or written["gpa_messages"] == {"messages": [], **GPA["gpa_messages"]}  # type: ignore[dict-item]
    assert read_agent_state(json.loads(json.dumps(written))) == state


def in_gpa(**messages: Any) -> dict[str, Any]:
    return {"is_gpa": True, "gpa_messages": messages}


DEEP: list[Any] = []
for _ in range(500):
    DEEP = [DEEP]
NO_STATES: list[Any] = [
    None,
    [],
    "x",
    {},
    {"v": 1},
    {**GPA, **UMS},
    {"v": 2, **GPA},
    {"gpa_messages": {}},
    {"is_gpa": True},
]
NO_STATES += [{"is_gpa": flag, "gpa_messages": {}} for flag in (False, 1, "true")] + [{"is_gpa": False, **UMS}]
NO_STATES += [{"is_gpa": True, "gpa_messages": None}, {"is_gpa": True, "gpa_messages": []}]
NO_STATES += [in_gpa(tool_calls={}), in_gpa(tool_calls="x"), in_gpa(messages=DEEP)]
NO_STATES += [in_gpa(messages=[each]) for each in (math.nan, {1: 2}, b"x")]
NO_STATES += [{"ums_conversation_id": each} for each in ("", 5, None, "x" * (MAX_ID + 1), "\ud800")]
NO_STATES += [{**UMS, "v": version} for version in (0, 2, "1", None, True, 1.5)]


def test_anything_else_is_refused_in_one_sentence() -> None:
    for value in NO_STATES:
        with pytest.raises(
            ValueError, match=r"^This is no state of an agent: [^\n]+ cannot be used \([^\n]+\)\.$"
        ) as caught:
            read_agent_state(value)
        assert not isinstance(caught.value, ValidationError)
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({}, "it cannot be used (it has either is_gpa, which is true, or ums_conversation_id)"),
        ({"v": 2, **UMS}, "v cannot be used"),
        ({"is_gpa": True, "gpa_messages": {"tool_calls": 5}}, "gpa_messages.tool_calls cannot be used"),
        ({"ums_conversation_id": ""}, "ums_conversation_id cannot be used"),
    ],
)
def test_the_sentence_says_where(value: Any, said: str) -> None:
    with pytest.raises(ValueError, match="no state of an agent") as caught:
        read_agent_state(value)
    assert said in str(caught.value)


def test_what_a_refused_state_holds_is_not_told() -> None:
    with pytest.raises(ValueError, match="no state") as caught:
        read_agent_state({"is_gpa": True, "gpa_messages": {"messages": "somebody's words"}})
    assert "somebody" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_state_shares_nothing_with_what_it_was_read_from() -> None:
    call = {"arguments": [1]}
    state = read_agent_state({"is_gpa": True, "gpa_messages": {"tool_calls": [call]}})
    call["arguments"].append(2)
    assert isinstance(state, GPAState)
    assert state.gpa_messages.tool_calls == [{"arguments": [1]}]
