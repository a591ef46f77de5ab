"""The bot's settings in a walk: most are the same in all, some are drawn by lot."""

from __future__ import annotations

from random import Random
from typing import Any

LONG = 60.0  # in which all of a step happens: the walk says when somebody has paused
SETTINGS: dict[str, Any] = {
    "model": "openai-chat:stub",
    "direct_messages": "open",
    "threads": "open",
    "decline": False,
    "turns_per_user_minute": 1_000,
    **dict.fromkeys(("turn_tokens", "person_tokens", "guild_tokens", "daily_tokens"), 0),
    "session_tokens": 2_000,
    "catch_up_seconds": 86_400.0,
    "offers_per_day": 100,
    "offer_timeout_seconds": 60,
    "offer_cooldown_seconds": 10,
    "decision_log": "content",
    **dict.fromkeys(("judge_model", "coordinator_model", "rewrite_model"), "openai-chat:stub"),
    "transcribe_model": "openai:ears",
    "shared_context": True,
}
VARIED: dict[str, tuple[Any, ...]] = {
    "burst_seconds": (0, LONG),
    "use_llm_judge": (True, True, False),
    "followup_eagerness": ("balanced", "balanced", "eager"),
    "gpa_keep_turns": (5, 5, 0),
    "session_summary_tokens": (500, 500, 0),
    "max_messages_per_session": (5_000, 10),
}


def drawn(random: Random) -> dict[str, Any]:
    """All settings of a walk."""
    return SETTINGS | {name: random.choice(values) for name, values in VARIED.items()}
