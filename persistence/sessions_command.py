"""`python bot.py sessions`: what is stored of each channel, for the owner to list, show, delete and export.

A session is a channel's transcript, in the form of the document "State Management"; its id is the channel's.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import orjson

from followup.decision_file import FILE_NAME, DecisionFile
from followup.learning import Removal
from persistence.lock import InUseError, in_use
from persistence.open_store import find_seal, open_stores
from persistence.transcript import GUILD, MESSAGE, OUTPUT, SYSTEM, stored_message, stored_messages
from state import Message, Session
from storage.store import Key, Store


def sessions_command(arguments: Sequence[str], state_dir: Path, redis_url: str | None, keys: str | None) -> int:
    """Does what the arguments say, and returns the exit code: 2 for a session that there is not.

    What only reads may do so beside a bot that runs. Raises InUseError for a deletion beside one, and as what
    open_stores() gives does.
    """
    parser = argparse.ArgumentParser(prog="python bot.py sessions", description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(required=True, metavar="list|show|delete|export", dest="command")
    commands.add_parser("list", help="all sessions, the one last used first")
    for name, what in (
        ("show", "what was said in one"),
        ("delete", "all that is kept of its channel; the bot must not be running"),
        ("export", "one as JSON"),
    ):
        commands.add_parser(name, help=what).add_argument("id", type=int, help="the id of its channel")
    given = parser.parse_args(arguments)
    with ExitStack() as stack:
        try:
            stack.enter_context(in_use(state_dir, redis_url, 0.0))
        except InUseError:
            if given.command == "delete":
                raise
        store = open_stores(state_dir, redis_url, keys)()
        stack.callback(store.close)
        if given.command == "list":
            sys.stdout.write(_table(store))
            return 0
        session = read_session(store, given.id)
        if session is None:
            sys.stderr.write(f"There is no session {given.id}: `python bot.py sessions list` names all.\n")
            return 2
        if given.command == "delete":
            _delete(store, given.id)
            DecisionFile(state_dir / FILE_NAME, find_seal(state_dir, redis_url, keys)).write(
                [Removal(channel_id=given.id)]
            )
        else:
            write: Callable[[Session], bytes] = _shown if given.command == "show" else _exported
            sys.stdout.buffer.write(write(session))
    return 0


def read_session(store: Store, channel_id: int) -> Session | None:
    """None where nothing is stored of what was said there. What cannot be read is left out, which is logged."""
    messages = _messages(store, channel_id)
    if not messages:
        return None
    guild = next((orjson.loads(row.value)["guild_id"] for row in store.read(GUILD, channel_id) if row.value), 0)
    metadata = {"channel_id": channel_id, "guild_id": guild}
    return Session(str(channel_id), messages, messages[0].timestamp, messages[-1].timestamp, metadata)


def _messages(store: Store, channel_id: int) -> list[Message]:
    """All of a channel, in order: what was to be followed before what followed it."""
    dialog = [((row.id, 2), message) for row in store.read(MESSAGE, channel_id) if (message := stored_message(row))]
    if not dialog:
        return []
    beside = [
        # What tools gave stands before the answer that was made of it.
        ((message.metadata.get("message_id", row.id), place), message)
        for place, kind in enumerate((SYSTEM, OUTPUT))
        for row in store.read(kind, channel_id)
        for message in stored_messages(row)
    ]
    return [message for _, message in sorted([*dialog, *beside], key=lambda each: each[0])]


def _table(store: Store) -> str:
    rows: list[tuple[str, ...]] = [("id", "server", "messages", "tokens", "begun", "last active")]
    for channel_id in reversed(store.channels(MESSAGE)):
        if session := read_session(store, channel_id):
            times = [moment[:16].replace("T", " ") for moment in (session.created_at, session.last_active)]
            counts = (str(len(session.messages)), str(session.tokens))
            rows.append((session.id, str(session.metadata["guild_id"]), *counts, *times))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join("  ".join(map(str.ljust, row, widths)).rstrip() + "\n" for row in rows)


def _shown(session: Session) -> bytes:
    lines = []
    for message in session.messages:
        who = message.metadata.get("author") or message.metadata.get("tool_name") or message.role
        # What people wrote must not steer the terminal.
        printable = "".join(c if c.isprintable() else " " for c in f"{who}: {' '.join(_texts(message.content))}")
        lines.append(f"{message.timestamp[:19].replace('T', ' ')}  {message.category.name:13}  {printable}\n")
    return "".join(lines).encode(errors="replace")


def _texts(content: Any) -> Iterator[str]:
    """What a message says, in the order in which it says it."""
    if isinstance(content, dict):
        for function in (call["function"] for call in content["tool_calls"]):
            yield f"{function['name']}({function['arguments']})"
        return
    for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
        yield part["text"] if part["type"] == "text" else "(picture)"


def _exported(session: Session) -> bytes:
    return orjson.dumps(session.to_dict(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _delete(store: Store, channel_id: int) -> None:
    store.write({Key(kind, channel_id, row.id): None for kind in store.kinds() for row in store.read(kind, channel_id)})
    store.sync()
