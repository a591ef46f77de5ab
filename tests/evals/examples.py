"""Examples of decisions, made by hand in the format of evals/examples.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

Line = dict[str, Any]


def past(
    ago: int, author: str = "U2", text: str = "hello", *, dt: int | None = None, to: list[str] | None = None
) -> Line:
    """An earlier message; 5 seconds lie between two, unless dt says otherwise."""
    line = {"ago": ago, "dt": 5 * ago if dt is None else dt, "author": author, "is_bot": author == "BOT", "text": text}
    return line if to is None else line | {"to": to}


def example(number: int = 0, text: str = "for writing letters", **more: Any) -> Line:
    """U3 was answered by the bot, and goes on; more: the other fields, and counters by their names."""
    state = {
        "msgs_since_bot": 0,
        "authors_since_bot": 0,
        "s_since_bot": 5,
        "min_since_bot": 0,
        "author_msgs_since_bot": 0,
        "bot_to_author": {"ago": 1, "dt": 5},
        "author_named_bot": {"ago": 2, "dt": 10},
        "bot_msgs_since_author": 1,
        "msgs_5m": 3,
        "authors_5m": 3,
        "bot_msgs_5m": 1,
        "bot_partners_5m": 1,
    }
    line = {
        "id": f"{number:016x}",
        "log": "a-log",
        "bot": "a-log#U1",
        "label": 1,
        "explicit": False,
        "cont": False,
        "t": 5_000,
        "author": "U3",
        "text": text,
        "mentions": [],
        "context": [
            past(3, "U2", "good morning"),
            past(2, "U3", "<@BOT> which laptop is best?"),
            past(1, "BOT", "What do you need it for?", to=["U3"]),
        ],
    }
    counters = {name: value for name, value in more.items() if name in state}
    fields = {name: value for name, value in more.items() if name not in state}
    return {**line, **fields, "state": state | counters}


def write(path: Path, *lines: Line) -> Path:
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return path
