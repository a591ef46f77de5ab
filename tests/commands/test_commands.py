"""commands/: what Discord is told of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from commands.answers import plain
from playground.server import Playground

MANAGE_CHANNELS, MANAGE_GUILD = 1 << 4, 1 << 5


def parts(command: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A slash command, its subcommands and their options."""
    yield command
    for option in command.get("options", ()):
        yield from parts(option)


async def test_all_are_there_and_described_for_where_they_are_of_use_and_for_whom(pg: Playground) -> None:
    shown = {command["name"]: command for command in pg.commands.all()}
    assert shown.keys() == {
        "why",
        "privacy",
        "Why?",
        "forget",
        "optout",
        "optin",
        "export",
        "offers",
        "tour",
        "ask",
        "Answer this",
        "usage",
        "status",
        "parley",
        "model",
    }
    # What is of channels is in servers alone, the rest in direct messages as well.
    contexts = {name: command["contexts"] for name, command in shown.items()}
    in_groups = {"ask": [0, 1, 2], "Answer this": [0, 1, 2]}
    in_servers = {"offers", "tour", "parley", "model", "status"}
    assert contexts == {name: [0] if name in in_servers else [0, 1] for name in shown} | in_groups
    installs = {name for name, command in shown.items() if command["integration_types"] == [0, 1]}
    assert installs == {"ask", "Answer this", "privacy", "forget", "optout", "optin", "export"}
    needed = {name: command["default_member_permissions"] for name, command in shown.items()}
    assert needed.pop("offers") == needed.pop("model") == str(MANAGE_CHANNELS)
    assert needed.pop("status") == str(MANAGE_GUILD)
    assert set(needed.values()) == {None}
    del shown["Why?"], shown["Answer this"]
    descriptions = [part["description"] for command in shown.values() for part in parts(command)]
    assert all(0 < len(description) <= 100 for description in descriptions)


@pytest.mark.parametrize("words", ["[a](b) and [c](d)", "[[a](b)", r"[a](b) \[c](d)", "[a]\n(b) [c](d)"])
def test_words_of_others_are_no_links(words: str) -> None:
    assert not re.search(r"(?<!\\)(?:\\\\)*\[", plain(words))
