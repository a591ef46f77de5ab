"""state/proactive_form.py: snapshots of a session's state, and which of them are refused."""

from __future__ import annotations

import json
import math
from copy import deepcopy
from typing import Any

import pytest

from state import AgentStateV2, ConversationEventType, ConversationLink, SessionState, ThinkingState
from tests.support.session_states import MOMENT, START, EpochClock, cooling, started

PROACTIVE, REACTIVE = AgentStateV2.PROACTIVE, AgentStateV2.REACTIVE


@pytest.fixture
def clock() -> EpochClock:
    return EpochClock()


def full(clock: EpochClock) -> SessionState:
    """One in which nothing stands at its default."""
    session = cooling(clock, interaction_timeout_s=600, cooldown_period_s=1800, session_id="s1", metadata={"a": [1]})
    session.transition_to_reactive()
    session.set_visual_guidance(True)
    clock.now += 3
    session.tick()
    session.on_conversation_linked(ConversationLink("s1", "c1", ConversationEventType.NEW))
    session.proactive.user_clicked_option = True
    session.thinking = ThinkingState(True, START, 7.5)
    return session


def test_a_snapshot_holds_every_field_and_json_types_only(clock: EpochClock) -> None:
    snapshot = full(clock).to_dict()
    assert snapshot == {
        "_v": 2,
        "session_id": "s1",
        "metadata": {"a": [1]},
        "interaction_timeout_s": 600.0,
        "cooldown_period_s": 1800.0,
        "current_state": "reactive_assistance",
        "thinking": {"cooldown_active": True, "cooldown_started_at": START, "active_cooldown_period_s": 7.5},
        "proactive": {
            "trigger_id": "trig_001",
            "user_clicked_option": True,
            "time_since_last_interaction_s": 600 + MOMENT,
        },
        "reactive": {"time_since_last_interaction_s": 3.0},
        "last_interaction_at": START,
        "visual_guidance_active": True,
        "conversation_linked": True,
        "conversation_id": "c1",
    }
    assert type(snapshot["current_state"]) is str
    assert json.loads(json.dumps(snapshot)) == snapshot


def test_a_snapshot_read_again_gives_an_equal_session(clock: EpochClock) -> None:
    for session in (full(clock), started(clock), cooling(clock), started(clock, PROACTIVE), started(clock, REACTIVE)):
        read = SessionState.from_dict(json.loads(json.dumps(session.to_dict())), clock=clock)
        assert read == session
        assert isinstance(read.current_state, AgentStateV2)
        assert read.to_dict() == session.to_dict()


def test_a_snapshot_shares_nothing_with_the_session(clock: EpochClock) -> None:
    session = full(clock)
    snapshot = session.to_dict()
    read = SessionState.from_dict(snapshot, clock=clock)
    snapshot["metadata"]["a"].append(2)
    snapshot["thinking"]["cooldown_active"] = False
    assert read == session == full(EpochClock())


SNAPSHOT = SessionState(clock=EpochClock()).to_dict()
PLACES = [
    *SNAPSHOT,
    *(f"{state}.{name}" for state in ("thinking", "proactive", "reactive") for name in SNAPSHOT[state]),
]


def own_place(snapshot: dict[str, Any], place: str) -> tuple[dict[str, Any], str]:
    """What holds the value of a place such as "thinking.cooldown_active", and by which name."""
    state, _, name = place.rpartition(".")
    return (snapshot[state] if state else snapshot), name


def test_every_place_is_tested() -> None:
    assert {*WRONG, "_v"} == {*PLACES}


MISSING = object()
NO_SECONDS: list[object] = [-1.0, -1, math.nan, math.inf, -math.inf, "1.0", True, [], {}, 10**400]
NO_TEXT: list[object] = [1, True, [], {}, b"c1"]
NO_FLAG: list[object] = [0, 1, "true", None, []]
NO_OWN_DATA: list[object] = [None, [], "", 1, {}]
WRONG: dict[str, list[object]] = {
    "session_id": [*NO_TEXT, None],
    "conversation_id": NO_TEXT,
    "interaction_timeout_s": [*NO_SECONDS, None],
    "cooldown_period_s": [*NO_SECONDS, None],
    "last_interaction_at": [*NO_SECONDS, None],
    "visual_guidance_active": NO_FLAG,
    "conversation_linked": NO_FLAG,
    "current_state": [*NO_TEXT, None, "", "proactive", "THINKING", "asleep"],
    "metadata": [None, [], "", 1, {1: "a"}, {"a": math.nan}, {"a": {"b": [math.inf]}}, {"a": {1}}, {"a": (1,)}],
    "thinking": NO_OWN_DATA,
    "proactive": NO_OWN_DATA,
    "reactive": NO_OWN_DATA,
    "thinking.cooldown_active": NO_FLAG,
    "thinking.cooldown_started_at": [*NO_SECONDS, None],
    "thinking.active_cooldown_period_s": NO_SECONDS,
    "proactive.trigger_id": [*NO_TEXT, None],
    "proactive.user_clicked_option": NO_FLAG,
    "proactive.time_since_last_interaction_s": [*NO_SECONDS, None],
    "reactive.time_since_last_interaction_s": [*NO_SECONDS, None],
}


def test_a_snapshot_in_which_something_is_missing_or_of_the_wrong_kind_is_refused(clock: EpochClock) -> None:
    for place, values in WRONG.items():
        for value in [*values, MISSING]:
            snapshot = full(clock).to_dict()
            holder, name = own_place(snapshot, place)
            holder[name] = value
            if value is MISSING:
                del holder[name]
            with pytest.raises(ValueError, match=rf"^[^\n]*\b{place}\b[^\n]*\.$") as caught:
                SessionState.from_dict(snapshot)
            assert type(caught.value) is ValueError


def test_another_version_and_what_is_no_mapping_are_refused(clock: EpochClock) -> None:
    for version in (1, 3, 0, "2", None, True, [2], 2.5):
        with pytest.raises(ValueError, match=r"^The _v of a session's snapshot must be 2: this one's is .*\.$"):
            SessionState.from_dict(full(clock).to_dict() | {"_v": version})
    for snapshot in (None, [], "", "{}", 2, [("_v", 2)]):
        with pytest.raises(ValueError, match=r"^This is no snapshot of a session's state: it is no mapping\.$"):
            SessionState.from_dict(snapshot)


def test_metadata_of_any_depth_is_refused_in_a_short_sentence(clock: EpochClock) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match=r"^.{,200}$"):
        SessionState.from_dict(full(clock).to_dict() | {"metadata": {"a": deep}})


def test_fields_that_are_unknown_are_left_out(clock: EpochClock) -> None:
    snapshot = full(clock).to_dict()
    later_form = deepcopy(snapshot) | {"mood": "curious", "clock": None}
    later_form["thinking"]["since"] = START
    session = SessionState.from_dict(later_form, clock=clock)
    assert session.to_dict() == snapshot
    assert session.clock is clock


@pytest.mark.parametrize(
    ("name", "value"),
    [("metadata", {"a": {1}}), ("last_interaction_at", math.nan), ("interaction_timeout_s", -1.0)],
)
def test_nothing_is_written_that_could_not_be_read(clock: EpochClock, name: str, value: object) -> None:
    session = full(clock)
    setattr(session, name, value)
    with pytest.raises(ValueError, match=name):
        session.to_dict()
