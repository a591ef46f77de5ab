"""The state of channels and people. Pure and synchronous except for the sessions' files; the time is an argument."""

from state.agent_state import GPAState, UMSState
from state.awaiting import ConversationStateManager, ProcessingResult, RouteTarget
from state.proactive import (
    AgentStateV2,
    ConversationEventType,
    ConversationLink,
    InvalidTransitionError,
    ProactiveState,
    ReactiveState,
    SessionState,
    ThinkingState,
)
from state.prompts import AwaitingType, ResolutionType
from state.session import Session
from state.session_messages import Message, MessageCategory
from state.sessions import SessionManager

__all__ = [
    "AgentStateV2",
    "AwaitingType",
    "ConversationEventType",
    "ConversationLink",
    "ConversationStateManager",
    "GPAState",
    "InvalidTransitionError",
    "Message",
    "MessageCategory",
    "ProactiveState",
    "ProcessingResult",
    "ReactiveState",
    "ResolutionType",
    "RouteTarget",
    "Session",
    "SessionManager",
    "SessionState",
    "ThinkingState",
    "UMSState",
]
