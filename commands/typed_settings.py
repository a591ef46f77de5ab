"""Parsing of typed settings: names, values, lists by mention, id or name; and autocomplete."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import discord
from discord.app_commands import Choice

from commands.place_edge import MAX_CHOICE, PlaceEdge, one_of, quoted
from commands.setting_words import INHERIT, WORDS
from discord_io.split import clipped
from place_settings.fields import ABOUT, Listed, SettingRefusedError, choices

MAX_SUGGESTED = 25  # Discord's
SIGNS = {Listed.CHANNELS: "#", Listed.ROLES: "@&", Listed.USERS: "@!?"}
CATEGORY = " (category)"
SNOWFLAKE = r"\d{15,19}"


def find_setting(typed: str) -> str:
    """Finds a setting by its name or label, and returns the name. Raises SettingRefusedError."""
    wanted = typed.strip().casefold()
    for name, about in ABOUT.items():
        if wanted in (name, about.label.casefold()):
            return name
    labels = [about.label for about in ABOUT.values()]
    raise SettingRefusedError(f"There is no setting {quoted(typed)}: use {one_of(labels)}.")


def read_value(name: str, typed: str, own: Any, guild: discord.Guild | None) -> Any:
    """Parses a value for PlaceSettings.changed(). own: the list that "+" and "-" change. Raises SettingRefusedError."""
    listed = ABOUT[name].listed
    if typed.strip().lower() == INHERIT:
        return None
    if not listed:
        return typed
    ids, own = frozenset(_read_ids(listed, typed.lstrip(" +-"), guild)), own or frozenset()
    match typed.strip()[:1]:
        case "+":
            return own | ids
        case "-":
            return own - ids
        case _:
            return ids


def _read_ids(listed: Listed, typed: str, guild: discord.Guild | None) -> Iterator[int]:
    known = _known(listed, guild)
    called: dict[str, list[int]] = {}  # the ids by each name in lower case, with its mark and without
    for one, name in known.items():
        for form in {name.casefold(), _bare(name)}:
            called.setdefault(form, []).append(one)
    mention = re.compile(rf"<{SIGNS[listed]}({SNOWFLAKE})>|(?<!\d)({SNOWFLAKE})(?![\d>])")
    for part in filter(str.strip, typed.split(",")):
        for sign_id, bare_id in mention.findall(part):
            if listed is not Listed.USERS and int(sign_id or bare_id) not in known:
                raise _unknown(listed, sign_id or bare_id)
            yield int(sign_id or bare_id)
        if rest := mention.sub("", part).strip(" "):
            found = called.get(rest.casefold(), ())
            if len(found) > 1:
                raise SettingRefusedError(
                    f"{quoted(rest)} is the name of more than one {WORDS[listed]} here: use a mention or an id."
                )
            if not found:
                raise _unknown(listed, rest)
            yield found[0]


def _bare(name: str) -> str:
    """A name in lower case, without "@", "#" or the mark of a category."""
    return name.casefold().removeprefix("@").removeprefix("#").removesuffix(CATEGORY)


def _unknown(listed: Listed, typed: str) -> SettingRefusedError:
    how = "mentions or ids" if listed is Listed.USERS else "mentions, ids or names"
    return SettingRefusedError(
        f"I cannot find the {WORDS[listed]} {quoted(typed)} here: use {how}, separated by commas."
    )


def _known(listed: Listed, guild: discord.Guild | None) -> dict[int, str]:
    """The channels or roles that can be listed: id -> name with its mark. Empty for members: the bot has no list."""
    if guild is None or listed is Listed.USERS:
        return {}
    if listed is Listed.ROLES:
        return {role.id: f"@{role.name.removeprefix('@')}" for role in guild.roles}
    marked = {one.id: f"{one.name}{CATEGORY}" for one in guild.categories}
    return {one.id: f"#{one.name}" for one in guild.channels} | marked


def suggest_settings(typed: str, *others: str) -> list[Choice[str]]:
    """The settings whose name or label contains what is typed, at most 25. others: further words to suggest."""
    labels = {name: about.label for name, about in ABOUT.items()} | {one: one.capitalize() for one in others}
    wanted = typed.strip().casefold()
    found = [name for name, text in labels.items() if wanted in name or wanted in text.casefold()]
    return [Choice(name=labels[name], value=name) for name in found[:MAX_SUGGESTED]]


def suggest_values(edge: PlaceEdge, interaction: discord.Interaction, setting: str, typed: str) -> list[Choice[str]]:
    """The choices of a setting that contain what is typed, at most 25. In a list its last part is completed."""
    try:
        name = find_setting(setting)
    except SettingRefusedError:
        return []
    listed = ABOUT[name].listed
    if listed:
        return _suggest_ids(listed, typed, _known(listed, interaction.guild), partial(_is_seen, interaction))
    offered = [*(choices(name) or edge.suggestions(name))]
    return suggest([*offered, *([INHERIT] if offered else [])], typed)


def suggest(offered: Sequence[str], typed: str) -> list[Choice[str]]:
    """The choices that contain what is typed, at most 25."""
    found = [one for one in offered if typed.strip().casefold() in one.casefold() and len(one) <= MAX_CHOICE]
    return [Choice(name=one, value=one) for one in found[:MAX_SUGGESTED]]


def _is_seen(interaction: discord.Interaction, one: int) -> bool:
    """Whether the user can see it, if it is a channel."""
    guild, user = interaction.guild, interaction.user
    if guild is None or not isinstance(user, discord.Member):
        return False
    channel = guild.get_channel(one)
    return channel is None or channel.permissions_for(user).view_channel


def _suggest_ids(
    listed: Listed, typed: str, known: Mapping[int, str], is_seen: Callable[[int], bool]
) -> list[Choice[str]]:
    """is_seen: whether a channel may be suggested, which is asked of those only that fit."""
    *done, last = typed.split(",")
    wanted = last.strip(" +-@#").casefold()
    head = ", ".join(part.strip() for part in done)
    if not done and last.strip()[:1] in ("+", "-"):
        head = last.strip()[0]
    sign = SIGNS[listed].rstrip("!?")
    found = sorted(
        (not _bare(name).startswith(wanted), name, one) for one, name in known.items() if wanted in name.casefold()
    )
    joint = ", " if done else " " if head else ""
    made = [
        Choice(name=clipped(f"{head}{joint}{name}", MAX_CHOICE), value=f"{head}{joint}<{sign}{one}>")
        for _, name, one in islice((each for each in found if is_seen(each[2])), MAX_SUGGESTED)
    ]
    return [choice for choice in made if len(choice.value) <= MAX_CHOICE]
