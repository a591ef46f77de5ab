"""Who can read a channel, held against discord.py's own arithmetic for each member there could be."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain, combinations
from typing import Any, cast

import discord
import pytest

from discord_io.who_may_read import Channel, is_read_by_all_of, is_seen_by_all_of, may_read
from tests.support.discord_payloads import a_bot, user
from tests.support.people import BOT, GUILD

VIEW, HISTORY, CONNECT, ADMINISTRATOR = 1 << 10, 1 << 16, 1 << 20, 1 << 3
ALL = VIEW | HISTORY | CONNECT
STAFF, MUTED, FRIENDS = 301, 302, 303
ANN, BOB = 401, 402
Overwrites = Mapping[int, tuple[int, int]]
"""By a role's or member's id what a channel allows and what it denies them."""
HIDDEN: Overwrites = {GUILD: (0, VIEW)}
FOR_STAFF: Overwrites = {**HIDDEN, STAFF: (VIEW, 0)}


def channels(
    here: Overwrites,
    there: Overwrites,
    *,
    roles: Mapping[int, int] | None = None,
    kind: int = 0,
    kind_here: int = 0,
) -> tuple[Channel, Channel]:
    """Two channels of a guild with these roles. kind: of the one that is not here; 2: a voice channel."""
    granted = {GUILD: ALL, STAFF: 0, MUTED: 0, FRIENDS: 0, **(roles or {})}
    data = {
        "id": str(GUILD),
        "name": "guild",
        "owner_id": "1",
        "roles": [
            {"id": str(role), "name": str(role), "permissions": str(value), "position": position, "color": 0}
            | {"hoist": False, "managed": False, "mentionable": False, "colors": {"primary_color": 0}}
            for position, (role, value) in enumerate(granted.items())
        ],
        "channels": [
            {"id": str(number), "type": type_, "name": "channel", "position": number, "parent_id": None}
            | {"bitrate": 64_000, "user_limit": 0, "permission_overwrites": [_wire(*one) for one in said.items()]}
            for number, (type_, said) in enumerate([(kind_here, here), (kind, there)], 501)
        ],
        "members": [_member(BOT, ())],
    }
    guild = discord.Guild(data=cast(Any, data), state=_state())
    first, second = (guild.get_channel(number) for number in (501, 502))
    assert isinstance(first, Channel)
    assert isinstance(second, Channel)
    return first, second


@cache
def _state() -> Any:
    """Of one bot for all tests, which change nothing of it."""
    return a_bot()._connection


def _wire(target: int, said: tuple[int, int]) -> dict[str, Any]:
    return {"id": str(target), "type": int(target in (ANN, BOB)), "allow": str(said[0]), "deny": str(said[1])}


def _member(user_id: int, roles: Iterable[int]) -> dict[str, Any]:
    more = {"joined_at": None, "deaf": False, "mute": False, "flags": 0}
    return {"user": user(user_id), "roles": [str(role) for role in roles], **more}


def everybody(guild: discord.Guild) -> list[discord.Member]:
    """A member for each choice of roles, with and without overwrites of their own."""
    roles = [role.id for role in guild.roles if not role.is_default()]
    choices = chain.from_iterable(combinations(roles, count) for count in range(len(roles) + 1))
    made = [_member(who, choice) for choice in choices for who in (ANN, BOB, 403)]
    return [discord.Member(data=cast(Any, data), guild=guild, state=guild._state) for data in made]


@pytest.mark.parametrize(
    ("here", "there", "more", "is_read"),
    [
        ({}, {}, {}, True),
        ({}, HIDDEN, {}, False),
        ({}, {GUILD: (0, HISTORY)}, {}, False),
        (FOR_STAFF, FOR_STAFF, {}, True),
        ({}, FOR_STAFF, {}, False),
        (FOR_STAFF, {}, {}, True),
        # Who can see this channel may also be kept out of that one.
        (FOR_STAFF, {**FOR_STAFF, MUTED: (0, VIEW)}, {}, True),
        (FOR_STAFF, {MUTED: (0, VIEW)}, {}, False),
        ({**FOR_STAFF, ANN: (VIEW, 0)}, FOR_STAFF, {}, False),
        (FOR_STAFF, {**FOR_STAFF, ANN: (0, VIEW)}, {}, False),
        ({**FOR_STAFF, ANN: (VIEW, 0)}, {**FOR_STAFF, ANN: (VIEW, 0)}, {}, True),
        # Whoever reads along has not read what was said before, if they may not.
        ({GUILD: (0, HISTORY)}, {GUILD: (0, HISTORY)}, {}, False),
        # An administrator reads everything.
        ({**HIDDEN, FRIENDS: (VIEW, 0)}, HIDDEN, {"roles": {FRIENDS: ADMINISTRATOR}}, True),
        ({}, HIDDEN, {"roles": {GUILD: ADMINISTRATOR}}, True),
        ({}, {}, {"kind": 2}, True),
        ({}, {GUILD: (0, CONNECT)}, {"kind": 2}, False),
        # A guest of a voice channel sees no other one, whatever everybody may see.
        ({}, {}, {"kind_here": 2}, False),
        ({}, {}, {"kind_here": 13}, False),
    ],
)
def test_a_channel_is_read_by_all_of_another(
    here: Overwrites, there: Overwrites, more: Mapping[str, Any], is_read: bool
) -> None:
    first, second = channels(here, there, **more)
    assert is_read_by_all_of(second, first) is is_read


def test_what_is_in_a_voice_channel_is_read_by_all_of_it() -> None:
    here, _ = channels({}, {}, kind_here=2)
    assert is_read_by_all_of(here, here)
    assert is_seen_by_all_of(here, here)


def test_nobody_who_sees_one_channel_lacks_the_other_that_is_read_by_all_of_it() -> None:
    """Neither is anything withheld that everybody can read."""
    dice = random.Random(1)

    def bits() -> int:
        return dice.choice([0, VIEW, HISTORY, VIEW | HISTORY, CONNECT, ALL])

    def overwrites() -> Overwrites:
        said = {}
        for target in dice.sample([GUILD, STAFF, MUTED, FRIENDS, ANN, BOB], dice.randrange(5)):
            allowed = bits()
            said[target] = allowed, bits() & ~allowed
        return said

    for _ in range(150):
        here, there, roles = overwrites(), overwrites(), {role: bits() for role in (GUILD, STAFF, MUTED, FRIENDS)}
        roles[STAFF] |= dice.choice([0, 0, 0, ADMINISTRATOR])
        first, second = channels(here, there, roles=roles, kind=dice.choice([0, 2, 5, 13]))
        seeing = [member for member in everybody(first.guild) if first.permissions_for(member).view_channel]
        theirs = [second.permissions_for(member) for member in seeing]
        assert is_read_by_all_of(second, first) is all(may_read(second, one) for one in theirs), (here, there, roles)
        assert is_seen_by_all_of(second, first) is all(one.view_channel for one in theirs), (here, there, roles)
