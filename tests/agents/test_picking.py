"""agents/picking.py: whom a message calls, and what is no call."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from agents.picking import called, spoken
from state.agent_state import GENERAL
from tests.support.phrases import labelled

UNITS = ["@", "not ", "not @", "> ", '"', "the ", ", ", "`\n", "…", "<@1>", "\n", "a"]
CALLS = Path(__file__).with_name("calls.txt")
NAMES = ["docs", "user-management", "sql", "weather", "it", "go", GENERAL]


def test_whom_a_message_calls() -> None:
    for line, name in labelled(CALLS):
        assert called(line.replace(r"\n", "\n"), NAMES) == ({name} - {"nobody"}), line


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("ask docs and sql", {"docs", "sql"}),
        ("ask the docs agent and the sql agent what they think", {"docs", "sql"}),
        ("ask the docs and weather agents", {"docs", "weather"}),
        ("ask docs, sql and user management about it", {"docs", "sql", "user-management"}),
        ("@docs @sql what now?", {"docs", "sql"}),
        ("@sql what now? not @docs", {"sql"}),
        ("ask docs. Then ask yourself if that is so", {"docs", GENERAL}),
        ("docs: what does the it agent do? ask sql", {"docs", "sql"}),
    ],
)
def test_several_can_be_called_at_once(text: str, names: set[str]) -> None:
    assert called(text, NAMES) == names


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("ask yourself", ["docs"], set()),
        ("", NAMES, set()),
        ("@- hello", ["-", "___", "docs"], set()),
        ("ask the docs agent", ["docs", "he"], {"docs"}),
        ("@user management look", ["user", "user-management"], {"user-management"}),
        ("ask user-management to look", ["user", "user-management"], {"user-management"}),
        ("ask user management to look", ["user-management", "user_management"], {"user-management", "user_management"}),
        ("ask the docs agent", ["docs-agent"], {"docs-agent"}),
        ("ask the docs agent agent", ["docs-agent-agent"], {"docs-agent-agent"}),
        ("ask the STRASSE agent", ["Straße"], {"Straße"}),
        ("ask 天気 about it", ["天気"], {"天気"}),
        ("ask yourself", [GENERAL, "yourself"], {"yourself"}),
    ],
)
def test_names_of_all_kinds(text: str, names: list[str], expected: set[str]) -> None:
    assert called(text, names) == expected


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Docs", "docs"),
        ("user-management", "user management"),
        ("_user__Management-", "user management"),
        ("docs-agent", "docs"),
        ("docs_Agent-agent", "docs"),
        ("agent", "agent"),
        ("Straße", "strasse"),
        ("-_-", ""),
    ],
)
def test_a_name_is_said_in_one_way(name: str, said: str) -> None:
    assert spoken(name) == spoken(said) == said


@pytest.mark.slow
def test_a_long_message_takes_no_time() -> None:
    called("ask docs", NAMES)
    for unit in ("please ", "please, can you ", "ask docs, ", "docs ", "ask the ", *UNITS):
        text = unit * (4000 // len(unit))
        began = time.process_time()
        called(text, NAMES)
        assert time.process_time() - began < 0.1, unit


@pytest.mark.parametrize("filling", ["I asked him. ", "the docs are wrong ", "so it goes, and so on "])
def test_a_long_message_calls_at_its_beginning_and_at_its_end(filling: str) -> None:
    long = filling * 200
    assert called(f"ask docs about this: {long}", NAMES) == {"docs"}
    assert called(f"{long}. Ask docs about it", NAMES) == {"docs"}
    assert called(f"{long}. Ask docs about it. {long}", NAMES) == set()


def test_what_is_left_out_of_a_long_message_makes_no_call_of_what_is_none() -> None:
    """Wherever the middle begins and ends."""
    text = "I asked docs and he will ask docs, docs: what " * 100
    assert all(called("a" * start + text, NAMES) == set() for start in range(60))
