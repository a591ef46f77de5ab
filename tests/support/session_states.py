"""Session states to test with, on a clock of epoch seconds that is turned by hand."""

from __future__ import annotations

from typing import Any

from state import AgentStateV2, SessionState

START = 1_772_000_000.0
HOUR = 3_600.0
TIMEOUT = 20.0
COOLDOWN = 60.0
MOMENT = 1 / 1024  # is added to epoch seconds without being rounded


class EpochClock:
    """Epoch seconds, turned by hand."""

    def __init__(self, now: float = START) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def started(clock: EpochClock, state: AgentStateV2 = AgentStateV2.THINKING, **settings: Any) -> SessionState:
    session = SessionState(clock=clock, **settings)
    if state is AgentStateV2.PROACTIVE:
        assert session.transition_to_proactive("trig_001")
    elif state is AgentStateV2.REACTIVE:
        session.transition_to_reactive()
    return session


def cooling(clock: EpochClock, **settings: Any) -> SessionState:
    """One whose cooldown starts now."""
    session = started(clock, AgentStateV2.PROACTIVE, **settings)
    session.last_interaction_at -= session.interaction_timeout_s + MOMENT
    session.tick()
    assert session.thinking.cooldown_active
    return session
