"""When we may start to talk: the three-state machine of the document "SessionState v2".

All that moves a session between its states, or changes one of its flags, is in this file. A session is *thinking*
(nobody talks with us), or in *proactive assistance* (we have made an offer unasked), or in *reactive assistance*
(somebody talks with us):

    thinking -- transition_to_proactive, unless a cooldown runs ------> proactive_assistance
    thinking -- transition_to_reactive, which ends the cooldown ------> reactive_assistance
    both     -- tick, once nobody interacted for longer than the timeout --> thinking, where a cooldown starts

Nothing else moves it. The two active states never follow each other, and only `tick` leaves them: not even a call that
comes after the timeout does. So tick first, with every event and on a pulse, and after a session was loaded. A call
that is illegal in a state raises InvalidTransitionError before anything has changed.

The timeout counts from the last interaction of any kind, the entry into an active state being one, and is over when
*more* than its seconds have passed. The cooldown counts from the tick that started it, and is over when *all* its
seconds have passed; a tick or an attempt to become proactive then ends it. Reading a field changes nothing.

Moments are seconds of the wall clock, so that a snapshot means the same after a restart and on another machine. A wall
clock can be set back: `tick` replaces a moment in the future by now, so that nothing lasts longer than its period from
that tick on. A clock that is set forward ends things early.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

from pydantic import JsonValue

from state.proactive_form import VERSION, checked, read_snapshot


class AgentStateV2(StrEnum):
    """The state of a session. The values are those of the document."""

    THINKING = "thinking"
    PROACTIVE = "proactive_assistance"
    REACTIVE = "reactive_assistance"


class _Event(StrEnum):
    """What can move a session, by the method that does."""

    OFFER = "transition_to_proactive"
    CHAT = "transition_to_reactive"
    TIMEOUT = "timeout"


TRANSITIONS: Mapping[AgentStateV2, Mapping[_Event, AgentStateV2]] = {
    AgentStateV2.THINKING: {
        _Event.OFFER: AgentStateV2.PROACTIVE,
        _Event.CHAT: AgentStateV2.REACTIVE,
    },
    AgentStateV2.PROACTIVE: {_Event.TIMEOUT: AgentStateV2.THINKING},
    AgentStateV2.REACTIVE: {_Event.TIMEOUT: AgentStateV2.THINKING},
}


class InvalidTransitionError(Exception):
    """A transition that is illegal in the current state. Nothing has changed."""

    def __init__(self, state: AgentStateV2, event: str) -> None:
        super().__init__(f"{event} is not allowed in the state {state}.")
        self.state = state
        self.event = event


class ConversationEventType(StrEnum):
    """How a session was linked to a conversation: a new one was opened, or somebody replied in an existing one."""

    NEW = "new"
    REPLY_EXISTING = "reply_existing"


@dataclass(frozen=True, slots=True)
class ConversationLink:
    """A session's link to a conversation. conversation_id: where its messages are sent."""

    session_id: str
    conversation_id: str
    event: ConversationEventType


@dataclass(slots=True)
class ThinkingState:
    """Mutable. cooldown_started_at: epoch seconds; 0.0 where no cooldown has started.

    active_cooldown_period_s: length of this cooldown; None: the session's cooldown_period_s.
    """

    cooldown_active: bool = False
    cooldown_started_at: float = 0.0
    active_cooldown_period_s: float | None = None

    @property
    def can_go_proactive(self) -> bool:
        return not self.cooldown_active


@dataclass(slots=True)
class ProactiveState:
    """Mutable. trigger_id: what caused the offer. time_since_last_interaction_s: as of the last tick."""

    trigger_id: str = ""
    user_clicked_option: bool = False
    time_since_last_interaction_s: float = 0.0


@dataclass(slots=True)
class ReactiveState:
    """Mutable. time_since_last_interaction_s: as of the last tick."""

    time_since_last_interaction_s: float = 0.0


OWN_DATA: Mapping[str, Callable[..., Any]] = {
    "thinking": ThinkingState,
    "proactive": ProactiveState,
    "reactive": ReactiveState,
}


@dataclass(init=False, slots=True)
class SessionState:
    """The state machine of one session. Mutable: its methods change it; its owner may set moments and a cooldown's
    period.

    thinking, proactive, reactive: the data of each state; always there, replaced when that state is entered.
    last_interaction_at: epoch seconds. metadata: JSON.
    """

    interaction_timeout_s: float
    cooldown_period_s: float
    session_id: str
    metadata: dict[str, JsonValue]
    clock: Callable[[], float] = field(repr=False, compare=False)
    current_state: AgentStateV2
    thinking: ThinkingState
    proactive: ProactiveState
    reactive: ReactiveState
    last_interaction_at: float
    visual_guidance_active: bool
    conversation_linked: bool
    conversation_id: str | None

    def __init__(
        self,
        interaction_timeout_s: float = 20.0,
        cooldown_period_s: float = 60.0,
        *,
        session_id: str = "",
        metadata: Mapping[str, JsonValue] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """clock: gives epoch seconds. Raises ValueError for a period that is negative or not finite."""
        self.interaction_timeout_s = _period("interaction_timeout_s", interaction_timeout_s)
        self.cooldown_period_s = _period("cooldown_period_s", cooldown_period_s)
        self.session_id = session_id
        self.metadata = dict(metadata or {})
        self.clock = clock
        self.current_state = AgentStateV2.THINKING
        self.thinking = ThinkingState()
        self.proactive = ProactiveState()
        self.reactive = ReactiveState()
        self.last_interaction_at = clock()
        self.visual_guidance_active = False
        self.conversation_linked = False
        self.conversation_id = None

    def tick(self) -> None:
        """Applies what is due by now: first a timeout, then the end of a cooldown."""
        now = self.clock()
        self.last_interaction_at = min(self.last_interaction_at, now)
        self.thinking.cooldown_started_at = min(self.thinking.cooldown_started_at, now)
        if self.current_state is not AgentStateV2.THINKING:
            active = self.proactive if self.current_state is AgentStateV2.PROACTIVE else self.reactive
            active.time_since_last_interaction_s = silence = now - self.last_interaction_at
            if silence > self.interaction_timeout_s:
                self.current_state = self._after(_Event.TIMEOUT)
                self.thinking = ThinkingState(cooldown_active=True, cooldown_started_at=now)
                self.visual_guidance_active = False
        self._end_cooldown_if_over(now)

    def can_deliver_proactive(self) -> tuple[bool, str]:
        """Whether we may make an offer, and why not: "ok", "v2_state_<state>" or "v2_cooldown_active". Tick first."""
        if self.current_state is not AgentStateV2.THINKING:
            return False, f"v2_state_{self.current_state}"
        if self.thinking.cooldown_active:
            return False, "v2_cooldown_active"
        return True, "ok"

    def transition_to_proactive(self, trigger_id: str) -> bool:
        """Records that we make an offer. Returns False, and changes nothing, while a cooldown runs.

        Raises InvalidTransitionError unless THINKING.
        """
        after = self._after(_Event.OFFER)
        now = self.clock()
        self._end_cooldown_if_over(now)
        if self.thinking.cooldown_active:
            return False
        self.current_state = after
        self.proactive = ProactiveState(trigger_id)
        self.last_interaction_at = now
        return True

    def transition_to_reactive(self) -> None:
        """Records that somebody talks with us, and ends a cooldown. Raises InvalidTransitionError unless THINKING."""
        self.current_state = self._after(_Event.CHAT)
        self._end_cooldown()
        self.reactive = ReactiveState()
        self.last_interaction_at = self.clock()

    def record_any_interaction(self) -> None:
        """Records that a user did anything with what we said or show."""
        self.last_interaction_at = self.clock()

    # A message, a reaction, or a further step of a tour, whether or not its user ever talked with us.
    record_user_interaction = record_reaction = record_tour_step = record_any_interaction

    def record_option_click(self) -> None:
        """Records that a user clicked a quick reply; in PROACTIVE, one of the offer."""
        if self.current_state is AgentStateV2.PROACTIVE:
            self.proactive.user_clicked_option = True
        self.record_any_interaction()

    def set_visual_guidance(self, active: bool) -> None:
        """Records whether a tour is shown; starting one is an interaction. No effect in THINKING."""
        if self.current_state is AgentStateV2.THINKING:
            return
        self.visual_guidance_active = active
        if active:
            self.record_any_interaction()

    def on_conversation_linked(self, link: ConversationLink) -> None:
        """Links the session to a conversation. A reply in an existing conversation does not replace a link.

        Raises ValueError for a link of another session; a session without an id accepts any.
        """
        if self.session_id not in ("", link.session_id):
            raise ValueError(f"This is session {self.session_id!r}: the link is one of session {link.session_id!r}.")
        if link.event == ConversationEventType.NEW or not self.conversation_linked:
            self.conversation_linked = True
            self.conversation_id = link.conversation_id

    def to_dict(self) -> dict[str, Any]:
        """A snapshot of JSON types only, which shares nothing with the session.

        Raises ValueError for a value that `from_dict` would refuse, such as metadata that JSON cannot hold.
        """
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "clock"}
        own |= {name: asdict(own[name]) for name in OWN_DATA}
        return {"_v": VERSION, **checked(own)}

    @classmethod
    def from_dict(cls, d: Any, *, clock: Callable[[], float] = time.time) -> SessionState:
        """Reads what `to_dict` returns; tick before use. Ignores unknown fields: later versions may add some.

        Raises ValueError, in one sentence that names the first error, for any other `_v`, for a missing field or one of
        another type, for a number that is negative or not finite, and for an unknown state.
        """
        read = read_snapshot(d)
        read |= {name: own_data(**read[name]) for name, own_data in OWN_DATA.items()}
        read["current_state"] = AgentStateV2(read["current_state"])
        session = cls(clock=clock)
        for name, value in read.items():
            setattr(session, name, value)
        return session

    def _after(self, event: _Event) -> AgentStateV2:
        after = TRANSITIONS[self.current_state].get(event)
        if after is None:
            raise InvalidTransitionError(self.current_state, event)
        return after

    def _end_cooldown_if_over(self, now: float) -> None:
        override = self.thinking.active_cooldown_period_s
        period = self.cooldown_period_s if override is None else override
        if self.thinking.cooldown_active and now - self.thinking.cooldown_started_at >= period:
            self._end_cooldown()

    def _end_cooldown(self) -> None:
        self.thinking.cooldown_active = False
        self.thinking.active_cooldown_period_s = None


def _period(name: str, seconds: float) -> float:
    if not 0 <= seconds < math.inf:  # true for NaN, too
        raise ValueError(f"{name} is {seconds}: it must be a number of seconds, zero or more.")
    return seconds
