"""What is remembered beside the conversation. Pure and synchronous but for the store; told the time."""

from state.awaiting import ConversationStateManager, ProcessingResult, RouteTarget
from state.prompts import AwaitingType, ResolutionType
from state.session import Session
from state.sessions import SessionManager
from state.transcript import Message, MessageCategory

__all__ = [
    "AwaitingType",
    "ConversationStateManager",
    "Message",
    "MessageCategory",
    "ProcessingResult",
    "ResolutionType",
    "RouteTarget",
    "Session",
    "SessionManager",
]
