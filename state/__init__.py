"""What is remembered beside the conversation. Pure and synchronous; told the time."""

from state.awaiting import ConversationStateManager, ProcessingResult, RouteTarget
from state.prompts import AwaitingType, ResolutionType

__all__ = ["AwaitingType", "ConversationStateManager", "ProcessingResult", "ResolutionType", "RouteTarget"]
