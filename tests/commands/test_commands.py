"""commands/: what Discord is told of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from playground.server import Playground

MANAGE_CHANNELS = 1 << 4


def parts(command: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A slash command, its subcommands and their options."""
    yield command
    for option in command.get("options", ()):
        yield from parts(option)


async def test_all_are_there_and_described(pg: Playground) -> None:
    shown = {command["name"]: command for command in pg.commands.all()}
    assert shown.keys() == {"why", "Why?", "forget", "optout", "optin", "export", "offers", "tour"}
    del shown["Why?"]
    descriptions = [part["description"] for command in shown.values() for part in parts(command)]
    assert all(0 < len(description) <= 100 for description in descriptions)


async def test_only_offers_are_for_those_who_manage_channels(pg: Playground) -> None:
    needed = {
        command["name"]: int(command["default_member_permissions"])
        for command in pg.commands.all()
        if command["default_member_permissions"] is not None
    }
    assert needed == {"offers": MANAGE_CHANNELS}


async def test_none_can_be_used_in_direct_messages(pg: Playground) -> None:
    assert [command["contexts"] for command in pg.commands.all()] == [[0]] * 8
