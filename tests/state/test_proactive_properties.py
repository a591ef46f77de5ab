"""Whatever happens to a session, and whatever its clock does, the rules of the document "SessionState v2" hold."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass

import pytest

from state import AgentStateV2, ConversationEventType, ConversationLink, InvalidTransitionError, SessionState
from tests.support.session_states import COOLDOWN, HOUR, MOMENT, TIMEOUT, EpochClock

THINKING, PROACTIVE, REACTIVE = AgentStateV2.THINKING, AgentStateV2.PROACTIVE, AgentStateV2.REACTIVE
SEQUENCES = 10_000
LONGEST = 25

EVENTS: dict[str, Callable[[SessionState], object]] = {
    "tick": SessionState.tick,
    "offer": lambda session: session.transition_to_proactive("trig"),
    "chat": SessionState.transition_to_reactive,
    "any": SessionState.record_any_interaction,
    "message": SessionState.record_user_interaction,
    "click": SessionState.record_option_click,
    "reaction": SessionState.record_reaction,
    "step": SessionState.record_tour_step,
    "tour on": lambda session: session.set_visual_guidance(True),
    "tour off": lambda session: session.set_visual_guidance(False),
    "new": lambda session: session.on_conversation_linked(link("c1", ConversationEventType.NEW)),
    "reply": lambda session: session.on_conversation_linked(link("c2", ConversationEventType.REPLY_EXISTING)),
    "stranger": lambda session: session.on_conversation_linked(ConversationLink("s2", "c3", ConversationEventType.NEW)),
    "override": lambda session: setattr(session.thinking, "active_cooldown_period_s", 2 * COOLDOWN),
    "ask": SessionState.can_deliver_proactive,
    "save": SessionState.to_dict,
}
INTERACTIONS = {"any", "message", "click", "reaction", "step"}
LINKS = {"new", "reply"}
SECONDS = [0, MOMENT, 5, TIMEOUT, TIMEOUT + MOMENT, COOLDOWN - MOMENT, COOLDOWN, 2 * COOLDOWN, HOUR, -5, -HOUR]

Step = tuple[str, float]
"""An event, and for how many seconds the clock goes on before it: less than zero where it is set back."""


def link(conversation_id: str, event: ConversationEventType) -> ConversationLink:
    return ConversationLink("s1", conversation_id, event)


@dataclass
class Seen:
    """One event: the session before and after it, and what came of it."""

    event: str
    now: float
    before: SessionState
    after: SessionState
    gave: object = None
    raised: type[Exception] | None = None

    @property
    def moved(self) -> bool:
        return self.before.current_state is not self.after.current_state


def lived(steps: Iterable[Step]) -> SessionState:
    """Has all that happen to a session, and looks at every rule after each of its events."""
    clock = EpochClock()
    session = SessionState(session_id="s1", clock=clock)
    for event, seconds in steps:
        clock.now += seconds
        seen = happened(session, event, clock.now)
        for rule in RULES:
            rule(seen)
    return session


def happened(session: SessionState, event: str, now: float) -> Seen:
    seen = Seen(event, now, twin(session), session)
    try:
        seen.gave = EVENTS[event](session)
    except (InvalidTransitionError, ValueError) as error:
        seen.raised = type(error)
    return seen


def twin(session: SessionState) -> SessionState:
    other = copy(session)
    other.thinking, other.proactive = copy(session.thinking), copy(session.proactive)
    other.reactive = copy(session.reactive)
    return other


def what_is_illegal_raises_and_nothing_else_does(seen: Seen) -> None:
    illegal = seen.event in ("offer", "chat") and seen.before.current_state is not THINKING
    expected = InvalidTransitionError if illegal else ValueError if seen.event == "stranger" else None
    assert seen.raised is expected


def what_is_refused_or_only_looks_changes_nothing(seen: Seen) -> None:
    if seen.raised or seen.gave is False or seen.event in ("ask", "save"):
        assert seen.before == seen.after


def only_the_transitions_of_the_table_move_it(seen: Seen) -> None:
    before, after = seen.before.current_state, seen.after.current_state
    if seen.event == "tick":
        silence = seen.now - seen.before.last_interaction_at
        assert after is (THINKING if before is THINKING or silence > TIMEOUT else before)
    elif seen.event == "offer" and before is THINKING:
        assert after is (PROACTIVE if seen.gave else THINKING)
    elif seen.event == "chat" and before is THINKING:
        assert after is REACTIVE
    else:
        assert after is before


def an_offer_is_made_unless_a_cooldown_runs(seen: Seen) -> None:
    if seen.event == "offer" and seen.before.current_state is THINKING:
        assert seen.gave is not cools(seen.before, seen.now)


def cools(session: SessionState, now: float) -> bool:
    override = session.thinking.active_cooldown_period_s
    period = COOLDOWN if override is None else override
    return session.thinking.cooldown_active and now - session.thinking.cooldown_started_at < period


def a_cooldown_starts_with_a_timeout_and_ends_when_it_is_over_or_somebody_talks(seen: Seen) -> None:
    before, after = seen.before.thinking.cooldown_active, seen.after.thinking.cooldown_active
    if seen.event == "tick" and seen.moved:
        assert after
        assert seen.after.thinking.cooldown_started_at == seen.now
    elif seen.event in ("tick", "offer") and not seen.raised:
        assert after is cools(seen.before, seen.now)
    else:
        assert after is (before and not (seen.event == "chat" and seen.moved))


def only_interactions_start_the_timeout_anew(seen: Seen) -> None:
    entered = seen.moved and seen.after.current_state is not THINKING
    tour = seen.event == "tour on" and seen.before.current_state is not THINKING
    if seen.event in INTERACTIONS or entered or tour:
        assert seen.after.last_interaction_at == seen.now
    elif seen.event == "tick":
        assert seen.after.last_interaction_at == min(seen.before.last_interaction_at, seen.now)
    else:
        assert seen.after.last_interaction_at == seen.before.last_interaction_at


def an_active_state_knows_no_cooldown_and_thinking_no_tour(seen: Seen) -> None:
    if seen.after.current_state is THINKING:
        assert not seen.after.visual_guidance_active
    else:
        assert not seen.after.thinking.cooldown_active
        expected = {"tour on": True, "tour off": False}.get(seen.event, seen.before.visual_guidance_active)
        assert seen.after.visual_guidance_active is expected


def a_tick_leaves_nothing_overdue(seen: Seen) -> None:
    if seen.event != "tick":
        return
    if seen.after.current_state is not THINKING:
        assert 0 <= seen.now - seen.after.last_interaction_at <= TIMEOUT
    if seen.after.thinking.cooldown_active:
        assert seen.after.thinking.cooldown_started_at <= seen.now
        assert cools(seen.after, seen.now)


def tick_tells_the_silence_of_the_state_it_finds(seen: Seen) -> None:
    for state, own in ((PROACTIVE, "proactive"), (REACTIVE, "reactive")):
        before = getattr(seen.before, own).time_since_last_interaction_s
        after = getattr(seen.after, own).time_since_last_interaction_s
        if seen.event == "tick" and seen.before.current_state is state:
            assert after == seen.now - min(seen.before.last_interaction_at, seen.now)
        else:
            assert after == (0 if seen.moved and seen.after.current_state is state else before)


def a_click_counts_for_the_offer_that_is_open(seen: Seen) -> None:
    before, after = seen.before.proactive.user_clicked_option, seen.after.proactive.user_clicked_option
    if seen.event == "click" and seen.before.current_state is PROACTIVE:
        assert after
    else:
        assert after is (before and not (seen.event == "offer" and seen.moved))


def a_link_is_never_lost_and_a_reply_never_replaces_it(seen: Seen) -> None:
    before, after = seen.before, seen.after
    assert after.conversation_linked is (before.conversation_linked or seen.event in LINKS)
    assert after.conversation_linked is (after.conversation_id is not None)
    if seen.event == "new":
        assert after.conversation_id == "c1"
    elif before.conversation_linked:
        assert after.conversation_id == before.conversation_id


def the_gate_says_what_the_state_is(seen: Seen) -> None:
    allowed, reason = seen.after.can_deliver_proactive()
    if seen.after.current_state is not THINKING:
        assert (allowed, reason) == (False, f"v2_state_{seen.after.current_state.value}")
    elif seen.after.thinking.cooldown_active:
        assert (allowed, reason) == (False, "v2_cooldown_active")
    else:
        assert (allowed, reason) == (True, "ok")


RULES = [
    what_is_illegal_raises_and_nothing_else_does,
    what_is_refused_or_only_looks_changes_nothing,
    only_the_transitions_of_the_table_move_it,
    an_offer_is_made_unless_a_cooldown_runs,
    a_cooldown_starts_with_a_timeout_and_ends_when_it_is_over_or_somebody_talks,
    only_interactions_start_the_timeout_anew,
    an_active_state_knows_no_cooldown_and_thinking_no_tour,
    a_tick_leaves_nothing_overdue,
    tick_tells_the_silence_of_the_state_it_finds,
    a_click_counts_for_the_offer_that_is_open,
    a_link_is_never_lost_and_a_reply_never_replaces_it,
    the_gate_says_what_the_state_is,
]


def is_free_again_after_both_periods(session: SessionState) -> None:
    """Wherever it stands and whatever the clock has done: ticks, and what is waited for from then on, lead back."""
    clock = EpochClock(session.clock())
    session.clock = clock
    session.tick()
    clock.now += TIMEOUT + MOMENT
    session.tick()
    assert session.current_state is THINKING
    clock.now += 2 * COOLDOWN
    session.tick()
    assert session.can_deliver_proactive() == (True, "ok")


@pytest.mark.slow
def test_the_rules_hold_through_10_000_random_sequences() -> None:
    """Seeded, and in favour of what moves a session, so that every transition is seen thousands of times."""
    chance = random.Random(2)
    events = [*EVENTS, *["tick", "offer", "chat"] * 5]
    ends = dict.fromkeys(AgentStateV2, 0)
    for _ in range(SEQUENCES):
        length = chance.randint(1, LONGEST)
        session = lived([(chance.choice(events), chance.choice(SECONDS)) for _ in range(length)])
        ends[session.current_state] += 1
        assert SessionState.from_dict(session.to_dict()) == session
        is_free_again_after_both_periods(session)
    assert min(ends.values()) > SEQUENCES / 10
