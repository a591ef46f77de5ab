"""`python bot.py sessions`: what is stored of each channel, for the owner to list, show, delete and export.

A session is a channel's transcript, in the form of the document "State Management"; its id is the channel's. When a
session is full, or the agent is no longer shown what was said in it, the transcript continues in a new session, which
starts with the system and context messages of the one before. Its id is the channel's and that of the newest message
before it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson

from followup.decision_file import FILE_NAME, DecisionFile
from followup.learning import Removal
from persistence.lock import InUseError, in_use
from persistence.open_store import find_seal, open_stores
from persistence.stored_messages import stored_message, stored_messages
from persistence.transcript import CONTEXT, GUILD, MESSAGE, OUTPUT, SYSTEM
from state import Message, MessageCategory, Session
from state.sessions import CARRIED_OVER
from storage.store import ANY, Key, Store


def sessions_command(arguments: Sequence[str], state_dir: Path, redis_url: str | None, keys: str | None) -> int:
    """Runs the command, and returns the exit code: 2 if there is no such session.

    Commands that only read work while a bot is running. Raises InUseError for a deletion while one is, and as the
    function from open_stores() does.
    """
    parser = argparse.ArgumentParser(prog="python bot.py sessions", description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(required=True, metavar="list|show|delete|export", dest="command")
    commands.add_parser("list", help="all sessions, the one last used first")
    for name, what in (
        ("show", "what was said in one"),
        ("delete", "all that is kept of its channel; the bot must not be running"),
        ("export", "one as JSON"),
    ):
        whose = "the id of its channel" if name == "delete" else "its id, as the list has it"
        commands.add_parser(name, help=what).add_argument("id", type=int if name == "delete" else str, help=whose)
    given = parser.parse_args(arguments)
    with ExitStack() as stack:
        is_running = False
        try:
            stack.enter_context(in_use(state_dir, redis_url, 0.0))
        except InUseError:
            if given.command == "delete":
                raise
            is_running = True
        store = open_stores(state_dir, redis_url, keys, is_shared=is_running)()
        stack.callback(store.close)
        if given.command == "list":
            sys.stdout.write(_table(store))
            return 0
        channel = str(given.id).partition(".")[0]
        sessions = read_sessions(store, int(channel)) if channel.isdecimal() else []
        session = next((each for each in sessions if given.command == "delete" or each.id == given.id), None)
        if session is None:
            sys.stderr.write(f"There is no session {given.id}: `python bot.py sessions list` names all.\n")
            return 2
        if given.command == "delete":
            rows = (Key(kind, given.id, row.id) for kind in store.kinds() for row in store.read(kind, given.id))
            store.write(dict.fromkeys(rows))
            store.sync()
            DecisionFile(state_dir / FILE_NAME, find_seal(state_dir, redis_url, keys)).write(
                [Removal(channel_id=given.id)]
            )
        elif given.command == "show":
            sys.stdout.buffer.write(_shown(session))
        else:
            exported = orjson.dumps(session.to_dict(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
            sys.stdout.buffer.write(exported)
    return 0


def read_sessions(store: Store, channel_id: int) -> list[Session]:
    """A channel's sessions, the oldest first. Leaves out and logs what cannot be read."""
    messages = [
        # Instructions and tool results come before the dialogue that follows them.
        ((message.metadata.get("message_id", row.id), place), message)
        for place, kind in enumerate((SYSTEM, OUTPUT))
        for row in store.read(kind, channel_id)
        for message in stored_messages(row)
    ]
    dialog = store.read(MESSAGE, channel_id)
    messages += [((row.id, 2), message) for row in dialog if (message := stored_message(row))]
    messages.sort(key=lambda each: each[0])
    ends = {row.id: stored_messages(row) for row in store.read(CONTEXT, channel_id)}
    guild = next((orjson.loads(row.value)["guild_id"] for row in store.read(GUILD, channel_id) if row.value), 0)
    sessions: list[Session] = []
    carried: Sequence[Message] = ()
    for index, (since, before) in enumerate(pairwise([0, *ends, ANY])):
        own = [message for (at, _), message in messages if since < at <= before]
        session = Session(f"{channel_id}.{since}" if since else str(channel_id))
        session.metadata = {"channel_id": channel_id, "guild_id": guild, "continuation_index": index}
        # A summary replaces an earlier one of the same conversation.
        for message in (*carried, *own, *(each for each in ends.get(before, ()) if each.content)):
            session.take(message, message.timestamp)
        carried = session.filter(CARRIED_OVER).messages
        if not any(message.category is MessageCategory.DIALOG for message in own):
            continue
        session.created_at, session.last_active = own[0].timestamp, own[-1].timestamp
        if sessions:
            sessions[-1].metadata["continued_to"] = session.id
            session.metadata["continued_from"] = sessions[-1].id
        sessions.append(session)
    return sessions


def _table(store: Store) -> str:
    rows: list[tuple[str, ...]] = [("id", "server", "messages", "tokens", "begun", "last active")]
    for channel_id in reversed(store.channels(MESSAGE)):
        for session in reversed(read_sessions(store, channel_id)):
            times = [moment[:16].replace("T", " ") for moment in (session.created_at, session.last_active)]
            counts = (str(len(session.messages)), str(session.tokens))
            rows.append((session.id, str(session.metadata["guild_id"]), *counts, *times))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join("  ".join(map(str.ljust, row, widths)).rstrip() + "\n" for row in rows)


def _shown(session: Session) -> bytes:
    lines = []
    for message in session.messages:
        who = message.metadata.get("author") or message.metadata.get("tool_name") or message.role
        # People's messages must not contain control characters for the terminal.
        printable = "".join(c if c.isprintable() else " " for c in f"{who}: {' '.join(_texts(message.content))}")
        lines.append(f"{message.timestamp[:19].replace('T', ' ')}  {message.category.name:13}  {printable}\n")
    return "".join(lines).encode(errors="replace")


def _texts(content: Any) -> Iterator[str]:
    """The parts of a message as text, in order."""
    if isinstance(content, dict):
        for function in (call["function"] for call in content["tool_calls"]):
            yield f"{function['name']}({function['arguments']})"
        return
    for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
        yield part["text"] if part["type"] == "text" else "(picture)"
