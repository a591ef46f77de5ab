"""state/proactive.py: every rule of the document "SessionState v2", and what it refuses."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import asdict
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
NEW, REPLY_EXISTING = ConversationEventType.NEW, ConversationEventType.REPLY_EXISTING

Act = Callable[[SessionState], object]


@pytest.fixture
def clock() -> EpochClock:
    return EpochClock()


active_states = pytest.mark.parametrize("state", [PROACTIVE, REACTIVE])
all_states = pytest.mark.parametrize("state", list(AgentStateV2))

RECORDS: dict[str, Act] = {
    "any": SessionState.record_any_interaction,
    "user": SessionState.record_user_interaction,
    "option": SessionState.record_option_click,
    "reaction": SessionState.record_reaction,
    "tour": SessionState.record_tour_step,
}
all_records = pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)


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


def test_the_states_have_the_values_of_the_document() -> None:
    assert [*AgentStateV2] == ["thinking", "proactive_assistance", "reactive_assistance"]


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


def test_an_offer_makes_it_proactive_and_counts_as_an_interaction(clock: EpochClock) -> None:
    session = started(clock)
    clock.now += HOUR
    assert session.transition_to_proactive("trig_001") is True
    assert session.current_state is PROACTIVE
    assert session.proactive == ProactiveState("trig_001")
    assert session.last_interaction_at == clock.now


def test_a_user_makes_it_reactive_and_that_counts_as_an_interaction(clock: EpochClock) -> None:
    session = started(clock)
    clock.now += HOUR
    session.transition_to_reactive()
    assert session.current_state is REACTIVE
    assert session.last_interaction_at == clock.now


def test_no_offer_during_a_cooldown_and_nothing_changes(clock: EpochClock) -> None:
    session = cooling(clock)
    clock.now += COOLDOWN - MOMENT
    before = deepcopy(session)
    assert session.transition_to_proactive("trig_002") is False
    assert session == before


def test_an_offer_flushes_a_cooldown_that_is_over(clock: EpochClock) -> None:
    session = cooling(clock)
    clock.now += COOLDOWN
    assert session.can_deliver_proactive() == (False, "v2_cooldown_active")
    assert session.transition_to_proactive("trig_002") is True
    assert not session.thinking.cooldown_active


def test_a_user_who_talks_ends_the_cooldown(clock: EpochClock) -> None:
    session = cooling(clock)
    session.thinking.active_cooldown_period_s = HOUR
    session.transition_to_reactive()
    assert session.thinking.can_go_proactive
    assert session.thinking.active_cooldown_period_s is None


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


def test_all_that_is_not_in_the_table_is_illegal() -> None:
    events = {event for row in TRANSITIONS.values() for event in row}
    legal = {(state, event) for state, row in TRANSITIONS.items() for event in row}
    assert {(state, event) for state, event, _ in ILLEGAL} == {(s, e) for s in AgentStateV2 for e in events} - legal


# Time


@active_states
def test_silence_of_exactly_the_timeout_is_none_yet(clock: EpochClock, state: AgentStateV2) -> None:
    session = started(clock, state)
    clock.now += TIMEOUT
    session.tick()
    assert session.current_state is state


@active_states
def test_silence_past_the_timeout_leads_back_to_thinking_and_starts_a_cooldown(
    clock: EpochClock, state: AgentStateV2
) -> None:
    session = started(clock, state)
    clock.now += TIMEOUT + MOMENT
    session.tick()
    assert session.current_state is THINKING
    assert session.thinking == ThinkingState(cooldown_active=True, cooldown_started_at=clock.now)


@active_states
def test_nothing_but_tick_leads_back(clock: EpochClock, state: AgentStateV2) -> None:
    session = started(clock, state)
    clock.now += HOUR
    assert session.can_deliver_proactive() == (False, f"v2_state_{state}")
    session.set_visual_guidance(False)
    session.on_conversation_linked(ConversationLink("", "c1", NEW))
    session = SessionState.from_dict(session.to_dict(), clock=clock)
    assert session.current_state is state
    session.tick()
    assert session.current_state is THINKING


@active_states
def test_the_timeout_is_the_sessions_own(clock: EpochClock, state: AgentStateV2) -> None:
    session = started(clock, state, interaction_timeout_s=600)
    clock.now += 600
    session.tick()
    assert session.current_state is state
    clock.now += MOMENT
    session.tick()
    assert session.current_state is THINKING


@active_states
def test_a_timeout_of_zero_is_over_a_moment_later(clock: EpochClock, state: AgentStateV2) -> None:
    session = started(clock, state, interaction_timeout_s=0)
    session.tick()
    assert session.current_state is state
    clock.now += MOMENT
    session.tick()
    assert session.current_state is THINKING


@pytest.mark.parametrize(("since", "over"), [(0, False), (COOLDOWN - MOMENT, False), (COOLDOWN, True), (HOUR, True)])
def test_a_cooldown_is_over_when_all_its_seconds_have_passed(clock: EpochClock, since: float, over: bool) -> None:
    session = cooling(clock)
    clock.now += since
    session.tick()
    assert session.thinking.can_go_proactive is over
    assert session.thinking.cooldown_active is not over


@pytest.mark.parametrize("period", [1.0, COOLDOWN, HOUR])
def test_a_cooldown_may_have_a_period_of_its_own(clock: EpochClock, period: float) -> None:
    session = cooling(clock)
    session.thinking.active_cooldown_period_s = period
    clock.now += period - MOMENT
    session.tick()
    assert session.thinking.cooldown_active
    clock.now += MOMENT
    session.tick()
    assert not session.thinking.cooldown_active


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


def test_a_cooldown_of_zero_seconds_is_over_in_the_tick_that_starts_it(clock: EpochClock) -> None:
    session = started(clock, PROACTIVE, cooldown_period_s=0)
    clock.now += TIMEOUT + MOMENT
    session.tick()
    assert session.can_deliver_proactive() == (True, "ok")


def test_the_cooldown_starts_when_the_timeout_is_found_however_late(clock: EpochClock) -> None:
    session = started(clock, PROACTIVE)
    clock.now += HOUR
    session.tick()
    assert session.thinking.cooldown_started_at == clock.now
    assert session.thinking.cooldown_active


def test_tick_says_how_long_the_silence_of_the_active_state_is(clock: EpochClock) -> None:
    for state in (PROACTIVE, REACTIVE):
        session = started(clock, state)
        clock.now += 7
        before = asdict(session.proactive), asdict(session.reactive)
        assert [each["time_since_last_interaction_s"] for each in before] == [0, 0]
        session.tick()
        seen = session.proactive.time_since_last_interaction_s, session.reactive.time_since_last_interaction_s
        assert seen == ((7, 0) if state is PROACTIVE else (0, 7))


def test_the_silence_that_led_back_can_still_be_read(clock: EpochClock) -> None:
    session = started(clock, REACTIVE)
    clock.now += 25
    session.tick()
    assert session.current_state is THINKING
    assert session.reactive.time_since_last_interaction_s == 25


def test_a_tick_that_nothing_is_due_at_changes_nothing(clock: EpochClock) -> None:
    for session in (started(clock), cooling(clock), started(clock, PROACTIVE), started(clock, REACTIVE)):
        before = deepcopy(session)
        session.tick()
        assert session == before


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


@pytest.mark.parametrize("back", [1.0, HOUR, START])
def test_a_clock_that_steps_back_makes_no_cooldown_longer_than_its_period(clock: EpochClock, back: float) -> None:
    session = cooling(clock)
    clock.now -= back
    session.tick()
    assert session.thinking.cooldown_started_at == clock.now
    clock.now += COOLDOWN - MOMENT
    session.tick()
    assert session.thinking.cooldown_active
    clock.now += MOMENT
    session.tick()
    assert session.thinking.can_go_proactive


def test_a_clock_that_jumps_ahead_ends_things(clock: EpochClock) -> None:
    session = started(clock, REACTIVE)
    for _ in range(2):
        clock.now += HOUR
        session.tick()
    assert session.can_deliver_proactive() == (True, "ok")


# Own data, interactions, visual guidance


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


def test_thinking_starts_anew_when_it_is_entered(clock: EpochClock) -> None:
    session = started(clock, PROACTIVE)
    session.thinking.active_cooldown_period_s = HOUR
    clock.now += 25
    session.tick()
    assert session.thinking == ThinkingState(True, clock.now, None)


@all_records
@all_states
def test_every_interaction_starts_the_timeout_anew(clock: EpochClock, state: AgentStateV2, record: Act) -> None:
    session = started(clock, state)
    clock.now += TIMEOUT
    record(session)
    assert session.last_interaction_at == clock.now
    clock.now += TIMEOUT
    session.tick()
    assert session.current_state is state


@all_records
@all_states
def test_an_interaction_moves_no_session_and_ends_no_cooldown(
    clock: EpochClock, state: AgentStateV2, record: Act
) -> None:
    session = cooling(clock) if state is THINKING else started(clock, state)
    thinking = deepcopy(session.thinking)
    clock.now += HOUR
    record(session)
    assert session.current_state is state
    assert session.thinking == thinking


@all_records
@all_states
def test_only_a_click_on_an_offers_option_is_remembered(clock: EpochClock, state: AgentStateV2, record: Act) -> None:
    session = started(clock, state)
    record(session)
    clicked = state is PROACTIVE and record is SessionState.record_option_click
    assert session.proactive.user_clicked_option is clicked


@active_states
def test_a_tour_that_starts_is_an_interaction_and_one_that_ends_is_none(clock: EpochClock, state: AgentStateV2) -> None:
    session = started(clock, state)
    clock.now += 5
    session.set_visual_guidance(True)
    assert (session.visual_guidance_active, session.last_interaction_at) == (True, START + 5)
    clock.now += 5
    session.set_visual_guidance(False)
    assert (session.visual_guidance_active, session.last_interaction_at) == (False, START + 5)


@pytest.mark.parametrize("active", [True, False])
def test_visual_guidance_has_no_effect_while_thinking(clock: EpochClock, active: bool) -> None:
    session = started(clock)
    before = deepcopy(session)
    clock.now += 5
    session.set_visual_guidance(active)
    assert session == before


@active_states
def test_visual_guidance_ends_with_the_timeout(clock: EpochClock, state: AgentStateV2) -> None:
    session = started(clock, state)
    session.set_visual_guidance(True)
    clock.now += TIMEOUT + MOMENT
    session.tick()
    assert not session.visual_guidance_active


# Whether an offer may be made


@all_states
def test_whether_an_offer_may_be_made_and_why_not(clock: EpochClock, state: AgentStateV2) -> None:
    expected = (True, "ok") if state is THINKING else (False, f"v2_state_{state.value}")
    assert started(clock, state).can_deliver_proactive() == expected
    assert cooling(clock).can_deliver_proactive() == (False, "v2_cooldown_active")


def test_asking_whether_an_offer_may_be_made_changes_nothing(clock: EpochClock) -> None:
    for session in (started(clock), cooling(clock), started(clock, PROACTIVE), started(clock, REACTIVE)):
        before = deepcopy(session)
        clock.now += HOUR
        session.can_deliver_proactive()
        assert session == before


# The conversation


@all_states
@pytest.mark.parametrize(
    ("events", "conversation_id"),
    [
        ([NEW], "c0"),
        ([REPLY_EXISTING], "c0"),
        ([NEW, NEW], "c1"),
        ([NEW, REPLY_EXISTING], "c0"),
        ([REPLY_EXISTING, REPLY_EXISTING], "c0"),
        ([REPLY_EXISTING, NEW, REPLY_EXISTING], "c1"),
    ],
    ids=repr,
)
def test_a_new_conversation_always_links_and_a_reply_only_where_there_is_no_link(
    clock: EpochClock, state: AgentStateV2, events: list[ConversationEventType], conversation_id: str
) -> None:
    session = started(clock, state, session_id="s1")
    for place, event in enumerate(events):
        session.on_conversation_linked(ConversationLink("s1", f"c{place}", event))
    assert (session.conversation_linked, session.conversation_id) == (True, conversation_id)
    assert session.current_state is state


@pytest.mark.parametrize("event", [*ConversationEventType])
def test_a_link_of_another_session_is_refused(clock: EpochClock, event: ConversationEventType) -> None:
    session = started(clock, session_id="s1")
    before = deepcopy(session)
    with pytest.raises(ValueError, match=r"^This is session 's1': the link is one of session 's2'\.$"):
        session.on_conversation_linked(ConversationLink("s2", "c1", event))
    assert session == before


def test_a_session_without_an_id_takes_any_link(clock: EpochClock) -> None:
    session = started(clock)
    session.on_conversation_linked(ConversationLink("s2", "c1", NEW))
    assert (session.conversation_id, session.session_id) == ("c1", "")


def test_a_link_outlives_timeouts_and_transitions(clock: EpochClock) -> None:
    session = started(clock, REACTIVE)
    session.on_conversation_linked(ConversationLink("", "c1", NEW))
    for _ in range(2):
        clock.now += HOUR
        session.tick()
    session.transition_to_proactive("trig_002")
    assert (session.conversation_linked, session.conversation_id) == (True, "c1")
