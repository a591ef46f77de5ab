"""The house stands as its design says: imports point down only, and each outside library stays in its room."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent.parent
# From the top. What shares a line imports none of the others of its line.
FLOORS = (
    ("bench",),
    ("bot", "evals"),
    ("command_line", "running_bot"),
    ("doctor",),
    ("wiring", "environment"),
    ("wiring_state",),
    ("owners_agents",),
    ("owner",),
    ("service", "commands"),
    ("web",),
    ("persistence",),
    ("turns",),
    ("offers",),
    ("agents",),
    ("miniapps",),
    ("discord_io",),
    ("incoming",),
    ("decider",),
    ("counts",),
    ("activity", "followup"),
    ("decision",),
    ("conversation",),
    ("channel_conversation",),
    ("remote_memory",),
    ("stored_conversation",),
    ("history_cut",),
    ("llm_history",),
    ("files",),
    ("cluster",),
    ("state", "place"),
    ("place_settings",),
    ("setting_checks",),
    ("understanding", "storage", "health", "playground", "setting_values", "shards", "background", "clock", "tls"),
)
FLOOR = {name: floor for floor, names in enumerate(FLOORS) for name in names}
# Who may import what is not for everybody; bench starts the bot as bot.py does, and other bots beside it.
ROOMS = {
    "config": (
        "bot",
        "command_line",
        "running_bot",
        "doctor",
        "environment",
        "wiring",
        "wiring_state",
        "owner",
        "owners_agents",
        "evals",
        "bench",
    ),
    "discord": ("bot", "running_bot", "wiring", "wiring_state", "bench", "doctor", "service", "commands", "discord_io"),
    "pydantic_ai": (
        "agents",
        "conversation",
        "channel_conversation",
        "stored_conversation",
        "history_cut",
        "llm_history",
        "bench",
    ),
}
FILES = sorted(
    path for name in (*FLOOR, "config") for path in (*ROOT.glob(f"{name}.py"), *ROOT.glob(f"{name}/**/*.py"))
)


def module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def imports(path: Path) -> frozenset[str]:
    """The full names of all modules that a file imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(names)


def top(name: str) -> str:
    return name.partition(".")[0]


def wrong_imports(path: Path) -> Iterator[str]:
    name = module(path)
    here = top(name)
    for there in {top(name) for name in imports(path)} - {here}:
        if there in FLOOR:
            if here == "config" and there not in ("setting_checks", "setting_values"):
                yield f"{name} imports {there}"
            if here != "config" and FLOOR[here] >= FLOOR[there]:
                yield f"{name} imports {there}, which is not below it"
        if there in ROOMS and here not in ROOMS[there]:
            yield f"{name} imports {there}"


def test_imports_point_down_and_stay_in_their_rooms() -> None:
    assert [wrong for path in FILES for wrong in wrong_imports(path)] == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    known = {module(path) for path in FILES}
    order = TopologicalSorter({module(path): imports(path) & known - {module(path)} for path in FILES})
    assert set(order.static_order()) >= known


def test_every_top_level_module_has_its_floor() -> None:
    modules = {path.stem for path in ROOT.glob("*.py")} | {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert modules - {"tests"} <= {*FLOOR, "config"}


def test_the_package_has_every_room_but_those_that_measure() -> None:
    packed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    assert {*packed["py-modules"], *map(top, packed["packages"])} == {*FLOOR, "config"} - {"bench", "evals"}


def test_no_room_has_a_file_that_is_too_long_to_be_read_at_once() -> None:
    assert [path.name for path in FILES if len(path.read_text(encoding="utf-8").splitlines()) > 450] == []
