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


async def test_all_are_there_described_and_for_servers_alone_and_offers_for_those_who_manage(pg: Playground) -> None:
    shown = {command["name"]: command for command in pg.commands.all()}
    assert shown.keys() == {"why", "Why?", "forget", "optout", "optin", "export", "offers", "tour"}
    assert [command["contexts"] for command in shown.values()] == [[0]] * 8
    needed = {name: command["default_member_permissions"] for name, command in shown.items()}
    assert needed.pop("offers") == str(MANAGE_CHANNELS)
    assert set(needed.values()) == {None}
    del shown["Why?"]
    descriptions = [part["description"] for command in shown.values() for part in parts(command)]
    assert all(0 < len(description) <= 100 for description in descriptions)
