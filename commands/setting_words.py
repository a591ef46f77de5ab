"""Settings of places in words: values, what is in force, and where it comes from."""

from __future__ import annotations

from typing import Any

from commands.answers import plain
from discord_io.split import clipped
from place_settings.fields import ABOUT, Combining, Level, Listed, choices
from place_settings.inheritance import InForce, source_in_words

MAX_TEXT, MAX_LISTED = 80, 8  # shown in one line: characters of a text, entries of a list
MENTIONS = {Listed.CHANNELS: "<#{}>", Listed.ROLES: "<@&{}>", Listed.USERS: "<@{}>"}
WORDS = {Listed.CHANNELS: "channel", Listed.ROLES: "role", Listed.USERS: "member"}
DEFAULT_IS = "Default: as set by my owner."
NOT_SET = "not set"
INHERIT = "inherit"


def label(name: str) -> str:
    return ABOUT[name].label


def value_in_words(name: str, value: Any, *, to_manager: bool) -> str:
    """A value on one line. Those who do not manage the place see only a list's length, and that a secret is set."""
    listed = ABOUT[name].listed
    if value is None:
        return NOT_SET
    if isinstance(value, bool):
        return "on" if value else "off"
    if listed and (not to_manager or not value):
        return f"{len(value)} {WORDS[listed]}{'' if len(value) == 1 else 's'}"
    if listed:
        shown = [MENTIONS[listed].format(one) for one in sorted(value)[:MAX_LISTED]]
        more = len(value) - len(shown)
        return " ".join([*shown, *([f"and {more} more"] if more else [])])
    if choices(name):
        return str(value)
    if ABOUT[name].is_for_managers and not to_manager:
        return "set"
    text = clipped(plain(value), MAX_TEXT)
    return f"“{text}”" if " " in text else text


def holding_in_words(name: str, holds: InForce, *, to_manager: bool, here: Level | None = None) -> str:
    """A setting's value in force, and its source. If each level's value counts, all of them, the nearest first."""
    value = getattr(holds.settings, name, None)
    if value is None:
        return NOT_SET
    if ABOUT[name].combining is Combining.EACH:
        each = [(layer.level, getattr(layer.settings, name)) for layer in reversed(holds.layers)]
        return "; ".join(
            f"{value_in_words(name, said, to_manager=to_manager)} · {source_in_words([level], here)}"
            for level, said in each
            if said is not None
        )
    return f"{value_in_words(name, value, to_manager=to_manager)} · {source_in_words(holds.sources[name], here)}"
