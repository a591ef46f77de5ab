"""What it costs to find out what a message means, with nothing asked and with each kind of prompt open."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from itertools import chain
from time import perf_counter
from typing import Any

from state import ConversationStateManager

TIMES = 300
USER, CHANNEL = 100, 1
DISTRICTS = "Shibuya Shinjuku Harajuku Roppongi Ebisu".split()
OPTIONS = [{"name": "Shake Shack", "district": district} for district in DISTRICTS]
PROMPTS: Mapping[str, Mapping[str, Any] | None] = {
    "nothing asked": None,
    "selection": {"awaiting_type": "awaiting_selection", "options": OPTIONS},
    "confirmation": {"awaiting_type": "awaiting_confirmation"},
    "metadata": {"awaiting_type": "awaiting_metadata", "context": {"target_item_id": "v1"}},
    "input": {"awaiting_type": "awaiting_input"},
}
REPLIES = (
    "2",
    "the Shinjuku one, please",
    "yes",
    "no, let's not do that after all",
    "get the shroom burger",
    "Tokyo Trip 2024",
    "And tomorrow?",
    "I think we should take two cars, one of them can bring the tent and the other one takes the food and the dog",
    "what is the capital of France?",
    "so what about the tickets, can I buy them on the train or is that more expensive?",
)
BEFORE = [
    {"role": "user", "content": "What's the weather in Tokyo?"},
    {"role": "assistant", "content": "Sunny all day, 21 degrees, with a light wind from the south. Take a hat along."},
    {"role": "user", "content": "did anybody see the match yesterday? what a mess in the defence"},
    {"role": "assistant", "content": "I did not, but I heard of that second goal. Would you like to know who shot it?"},
    {"role": "user", "content": "sure, and where do they play next?"},
]


def understanding() -> float:
    """Milliseconds of one call: the median over all kinds of prompts and replies."""
    return statistics.median(chain.from_iterable(map(times, PROMPTS.values())))


def times(state: Mapping[str, Any] | None) -> Sequence[float]:
    manager = ConversationStateManager()
    taken: list[float] = []
    for number in range(TIMES):
        if state:
            manager.set_awaiting(CHANNEL, {**state, "source_handler": "bench.ask"}, user_id=USER)
        reply = REPLIES[number % len(REPLIES)]
        began = perf_counter()
        manager.process_message(reply, CHANNEL, BEFORE, user_id=USER)
        taken.append(1000 * (perf_counter() - began))
    return taken
