"""state/proactive.py: the document's example, its defaults, and what no sequence of events comes upon."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any, cast

import pytest

from state import (
    AgentStateV2,
    ConversationEventType,
    ConversationLink,
    InvalidTransitionError,
    ProactiveState,
    ReactiveState,
    SessionState,
    ThinkingState,
)
from state.proactive import TRANSITIONS, _Event
from tests.support.session_states import COOLDOWN, HOUR, MOMENT, START, TIMEOUT, EpochClock, cooling, started

THINKING, PROACTIVE, REACTIVE = AgentStateV2.THINKING, AgentStateV2.PROACTIVE, AgentStateV2.REACTIVE

Act = Callable[[SessionState], object]


@pytest.fixture
def clock() -> EpochClock:
    return EpochClock()


active_states = pytest.mark.parametrize("state", [PROACTIVE, REACTIVE])


def test_the_example_of_the_document() -> None:
    # Start fresh
    session = SessionState(interaction_timeout_s=20.0, cooldown_period_s=60.0)

    # Proactive trigger fires
    fired = session.transition_to_proactive("trig_001")
    assert fired is True
    assert session.current_state == AgentStateV2.PROACTIVE

    # User clicks a chip
    session.record_option_click()

    # Background pulse — flush timeouts
    session.tick()

    # Simulate 25 s of silence → transitions back to thinking with cooldown
    session.last_interaction_at -= 25.0
    session.tick()
    assert session.current_state == AgentStateV2.THINKING  # type: ignore[comparison-overlap] # mypy: still PROACTIVE
    assert session.thinking.cooldown_active is True

    # During cooldown, proactive is blocked
    assert session.transition_to_proactive("trig_002") is False

    # After cooldown expires, proactive is allowed again
    session.thinking.cooldown_started_at -= 70.0
    session.tick()
    assert session.thinking.can_go_proactive is True

    # Persist
    blob = session.to_dict()
    restored = SessionState.from_dict(blob)
    assert restored == session


def test_a_new_session_is_thinking_by_the_defaults_of_the_document(clock: EpochClock) -> None:
    session = SessionState(clock=clock)
    assert (session.interaction_timeout_s, session.cooldown_period_s) == (20.0, 60.0)
    assert session.current_state is THINKING
    assert session.last_interaction_at == START
    assert (session.thinking, session.proactive, session.reactive) == (
        ThinkingState(),
        ProactiveState(),
        ReactiveState(),
    )
    assert (session.conversation_linked, session.conversation_id) == (False, None)
    assert (session.session_id, session.metadata, session.visual_guidance_active) == ("", {}, False)


def test_the_settings_may_be_given_by_place_or_name(clock: EpochClock) -> None:
    metadata = {"guild": "7"}
    session = SessionState(5, 7, session_id="s1", metadata=metadata, clock=clock)
    assert session == SessionState(
        interaction_timeout_s=5.0, cooldown_period_s=7.0, session_id="s1", metadata=metadata, clock=EpochClock()
    )
    metadata["guild"] = "8"
    assert session.metadata == {"guild": "7"}


@pytest.mark.parametrize("name", ["interaction_timeout_s", "cooldown_period_s"])
@pytest.mark.parametrize("seconds", [-1.0, -MOMENT, math.nan, math.inf, -math.inf])
def test_a_period_that_is_negative_or_not_finite_is_refused(name: str, seconds: float) -> None:
    with pytest.raises(ValueError, match=f"^{name} is .*: it must be a number of seconds"):
        SessionState(**cast(dict[str, Any], {name: seconds}))


# Transitions


def test_every_state_has_a_row_and_only_thinking_leads_to_the_active_ones() -> None:
    assert {state: {*row.values()} for state, row in TRANSITIONS.items()} == {
        THINKING: {PROACTIVE, REACTIVE},
        PROACTIVE: {THINKING},
        REACTIVE: {THINKING},
    }


def test_an_offer_flushes_a_cooldown_that_is_over(clock: EpochClock) -> None:
    session = cooling(clock)
    clock.now += COOLDOWN
    assert session.can_deliver_proactive() == (False, "v2_cooldown_active")
    assert session.transition_to_proactive("trig_002") is True
    assert not session.thinking.cooldown_active


ILLEGAL: list[tuple[AgentStateV2, str, Act]] = [
    (PROACTIVE, "transition_to_proactive", lambda session: session.transition_to_proactive("trig_002")),
    (REACTIVE, "transition_to_proactive", lambda session: session.transition_to_proactive("trig_002")),
    (PROACTIVE, "transition_to_reactive", SessionState.transition_to_reactive),
    (REACTIVE, "transition_to_reactive", SessionState.transition_to_reactive),
    (THINKING, "timeout", lambda session: session._after(_Event.TIMEOUT)),
]


@pytest.mark.parametrize(("state", "event", "act"), ILLEGAL, ids=[f"{each[0]}, {each[1]}" for each in ILLEGAL])
@pytest.mark.parametrize("later", [0.0, TIMEOUT + MOMENT, HOUR], ids=["at once", "past the timeout", "much later"])
def test_an_illegal_transition_names_state_and_event_and_changes_nothing(
    clock: EpochClock, state: AgentStateV2, event: str, act: Act, later: float
) -> None:
    session = started(clock, state)
    session.set_visual_guidance(True)
    session.thinking = ThinkingState(True, START - HOUR, 1.0)  # what a hasty transition would flush
    clock.now += later
    before = deepcopy(session)
    with pytest.raises(InvalidTransitionError, match=f"^{event} is not allowed in the state {state}.$") as caught:
        act(session)
    assert (caught.value.state, caught.value.event) == (state, event)
    assert session == before


# Time


@active_states
def test_the_timeout_is_the_sessions_own(clock: EpochClock, state: AgentStateV2) -> None:
    session = started(clock, state, interaction_timeout_s=600)
    clock.now += 600
    session.tick()
    assert session.current_state is state
    clock.now += MOMENT
    session.tick()
    assert session.current_state is THINKING


def test_a_cooldowns_own_period_of_zero_is_not_taken_for_none(clock: EpochClock) -> None:
    session = cooling(clock)
    session.thinking.active_cooldown_period_s = 0.0
    session.tick()
    assert session.thinking.can_go_proactive


def test_a_cooldowns_own_period_holds_for_that_cooldown_only(clock: EpochClock) -> None:
    session = cooling(clock)
    session.thinking.active_cooldown_period_s = HOUR
    clock.now += HOUR
    assert session.transition_to_proactive("trig_002")
    clock.now += TIMEOUT + MOMENT
    session.tick()
    assert session.thinking.active_cooldown_period_s is None


@active_states
@pytest.mark.parametrize("back", [1.0, HOUR, START])
def test_a_clock_that_steps_back_keeps_nobody_in_a_state_for_longer_than_its_period(
    clock: EpochClock, state: AgentStateV2, back: float
) -> None:
    session = started(clock, state)
    clock.now -= back
    session.tick()
    assert session.last_interaction_at == clock.now
    assert session.current_state is state
    clock.now += TIMEOUT + MOMENT
    session.tick()
    assert session.current_state is THINKING


def test_a_states_own_data_start_anew_when_it_is_entered(clock: EpochClock) -> None:
    session = started(clock, PROACTIVE)
    session.record_option_click()
    clock.now += 25
    session.tick()
    session.transition_to_reactive()
    assert session.proactive == ProactiveState("trig_001", True, 25)
    clock.now += 25
    session.tick()
    session.thinking = ThinkingState()
    assert session.transition_to_proactive("trig_002")
    assert session.proactive == ProactiveState("trig_002", False, 0)
    clock.now += 25
    session.tick()
    session.transition_to_reactive()
    assert session.reactive == ReactiveState(0)


@pytest.mark.parametrize("event", [*ConversationEventType])
def test_a_link_of_another_session_is_refused(clock: EpochClock, event: ConversationEventType) -> None:
    session = started(clock, session_id="s1")
    before = deepcopy(session)
    with pytest.raises(ValueError, match=r"^This is session 's1': the link is one of session 's2'\.$"):
        session.on_conversation_linked(ConversationLink("s2", "c1", event))
    assert session == before
