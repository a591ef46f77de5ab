"""persistence/transcript.py: what was said in a channel, in sessions that continue one another; what is to go, goes."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from conversation import MessageRecord
from persistence.stored_messages import Change, forget_person, to_message, to_record
from persistence.transcript import MESSAGE, Transcript
from persistence.writer import Writer
from state import Message, MessageCategory
from state.message import Appended, AttachedFile
from state.optout import redacted
from storage.sqlite_store import SQLiteStore
from storage.store import Key, Row
from tests.support.lives import on_disk
from tests.support.people import ANNA, BEN, CHANNEL, CLEO, GUILD, replied, said

OTHER, ELSEWHERE = CHANNEL + 1, GUILD + 1
PAGE_OF_THREE = 3


class Shelf:
    """The transcripts of a process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = SQLiteStore(folder / "db")
        self.writer = Writer(lambda: self.store)
        self.transcript = Transcript(self.writer)

    def add(self, *records: MessageRecord, channel: int = CHANNEL, guild: int = GUILD) -> None:
        for record in records:
            self.transcript.add(Appended(channel, guild, record))

    def change(self, change: Change, **how: Any) -> None:
        """Changes all channels' messages, few at a time."""
        for channel_id in self.transcript.channels():
            since: int | None = 0
            while since is not None:
                since, _ = self.transcript.change(channel_id, change, since=since, **how)

    def all(self) -> list[str]:
        """What the next process finds in all channels, nothing of what has gone being on the disk."""
        assert self.writer.sync()
        transcript = Shelf(self.folder).transcript
        return [record.content for channel in sorted(transcript.load()[0]) for record in transcript.recent(channel, 0)]


FILE = AttachedFile("a.txt", "text/plain", 5, "https://cdn.example/a.txt?ex=1", 1.5)


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    monkeypatch.setitem(Transcript.change.__kwdefaults__ or {}, "limit", PAGE_OF_THREE)
    return Shelf(tmp_path / "state")


def test_a_message_comes_back_as_it_was_and_what_was_none_of_a_channel_is_refused() -> None:
    images = ("https://example.org/a.png", "https://example.org/b.png")
    for record in (
        said(ANNA, "hello"),
        said(ANNA, "<@12> hi", mentioned=frozenset({BEN}), readable="@Ben hi"),
        said(ANNA, "", images=images),
        said(ANNA, "stop, Parley", tells_off=True, calls_bot="Parley", mentions_group=True),
        said(ANNA, "look", images=images[:1], readable="look [a.png]"),
        said(ANNA, "this", files=(FILE,), reply_to_id=5, reply_to_text="look", reply_files=(FILE,)),
        replied(ANNA, "Here you are.\n\nTwo lines 🦊", unasked=True),
        said(ANNA, "why?", reply_to_id=5, reply_to_author="Ben", reply_to_author_id=BEN, reply_to_text="because"),
        redacted(said(ANNA, "a secret", reply_to_author_id=BEN, reply_to_text="x")),
    ):
        assert to_record(to_message(record)) == record
    for category in (MessageCategory.SYSTEM, MessageCategory.DIALOG):
        with pytest.raises(ValueError):  # noqa: PT011 - pydantic's own text
            to_record(Message("user", "x", category))


def test_what_was_said_since_a_message_is_given_in_order(shelf: Shelf) -> None:
    first, second, third = said(ANNA, "one"), said(BEN, "two"), said(ANNA, "three")
    shelf.add(first, third, second)
    shelf.all()
    later = Shelf(shelf.folder).transcript
    assert later.recent(CHANNEL, second.message_id) == [second, third]
    assert later.newest(CHANNEL, third.message_id, 1) == [second]
    assert later.recent(OTHER, 0) == []


@pytest.mark.parametrize("where", [0, 3, 7])
def test_edits_and_deletions_reach_a_message_wherever_it_is(shelf: Shelf, where: int) -> None:
    records = [said(ANNA, f"word{number}") for number in range(8)]
    shelf.add(*records)
    shelf.transcript.revise(CHANNEL, said(ANNA, "new words", message_id=records[where].message_id))
    assert shelf.all() == [f"word{n}" if n != where else "new words" for n in range(8)]
    shelf.transcript.remove(CHANNEL, {records[where].message_id})
    assert shelf.all() == [f"word{n}" for n in range(8) if n != where]
    assert not on_disk(shelf.folder, f"word{where}") + on_disk(shelf.folder, "new words")


@pytest.mark.parametrize("how", ["edited", "deleted", "forgotten"])
def test_replies_quote_what_counts_now(shelf: Shelf, how: str) -> None:
    secret = said(ANNA, "a secret")
    quotes: dict[str, Any] = {"reply_to_id": secret.message_id, "reply_to_author_id": ANNA, "reply_to_text": "a secret"}
    shelf.add(secret, *(said(CLEO, "on") for _ in range(5)), said(BEN, "really?", **quotes))
    if how == "edited":
        shelf.transcript.revise(CHANNEL, said(ANNA, "never mind", message_id=secret.message_id))
    elif how == "deleted":
        shelf.transcript.remove(CHANNEL, {secret.message_id})
    else:
        shelf.change(forget_person(ANNA), naming=ANNA)
    assert "really?" in shelf.all()
    assert not on_disk(shelf.folder, "a secret")


def test_replies_name_only_those_files_that_the_message_still_has(shelf: Shelf) -> None:
    kept = replace(FILE, name="b.txt", url="https://cdn.example/b.txt?ex=1")
    quoted = said(ANNA, "look", files=(FILE, kept))
    shelf.add(
        quoted, said(BEN, "really?", reply_to_id=quoted.message_id, reply_to_text="look", reply_files=quoted.files)
    )
    anew = replace(kept, url="https://cdn.example/b.txt?ex=2")
    shelf.transcript.revise(CHANNEL, replace(quoted, files=(anew,)))
    *_, reply = shelf.transcript.recent(CHANNEL, 0)
    assert (reply.reply_to_text, reply.reply_files) == ("look", (kept,))


def test_a_channel_goes_as_a_whole_and_can_begin_anew(shelf: Shelf) -> None:
    shelf.add(*(said(ANNA, "here") for _ in range(5)))
    shelf.add(said(ANNA, "there"), channel=OTHER, guild=ELSEWHERE)
    assert shelf.transcript.channels() == {CHANNEL: GUILD, OTHER: ELSEWHERE}
    shelf.transcript.drop(CHANNEL)
    assert shelf.all() == ["there"]
    assert Shelf(shelf.folder).transcript.load()[0] == {OTHER: ELSEWHERE}
    shelf.add(said(ANNA, "again"))
    assert shelf.all() == ["again", "there"]


def test_a_channel_goes_up_to_a_message_in_a_time_in_proportion(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of thousands of messages may be quoted by any later one."""
    old, new = [said(ANNA, f"a secret {number}") for number in range(50)], said(BEN, "later")
    shelf.add(*old)
    through = old[-1].message_id
    for category in (MessageCategory.CONTEXT, MessageCategory.SYSTEM_OUTPUT):
        shelf.transcript.note(CHANNEL, through, [Message("system", "out of a secret", category, f"of_{through}")])
    shelf.add(new)
    read, rows = shelf.writer.read, list[object]()

    def counted(*args: Any, **how: Any) -> list[Row]:
        found = read(*args, **how)
        rows.extend(found)
        return found

    monkeypatch.setattr(shelf.writer, "read", counted)
    shelf.transcript.drop(CHANNEL, through)
    assert len(rows) < 2 * len(old)
    assert shelf.all() == ["later"]
    assert not on_disk(shelf.folder, "secret")
    shelf.transcript.drop(CHANNEL, new.message_id)
    assert shelf.all() == shelf.store.kinds() == []


def test_what_cannot_be_read_is_not_quoted_in_the_log(shelf: Shelf) -> None:
    message = said(ANNA, "one")
    shelf.add(message)
    shelf.all()
    (row,) = shelf.store.read(MESSAGE)
    stored = orjson.loads(row.value or b"")
    stored["metadata"]["author_id"] = "what nobody is to read"
    shelf.store.write({Key(MESSAGE, CHANNEL, message.message_id): orjson.dumps(stored)})
    with capture_logs() as logs:
        assert shelf.all() == []
    assert logs[0]["event"] == "message_refused"
    assert logs[0]["detail"].startswith("author_id: Input should be a valid integer")
    assert "nobody" not in str(logs)


def test_a_row_that_cannot_be_read_costs_the_others_nothing_and_goes_with_what_is_to_go(shelf: Shelf) -> None:
    first, second = said(ANNA, "one"), said(ANNA, "two")
    shelf.add(first, second)
    shelf.all()
    shelf.store.write({Key(MESSAGE, CHANNEL, first.message_id): b'{"what": "is this?"}'})
    with capture_logs() as logs:
        assert shelf.all() == ["two"]
    assert [entry["event"] for entry in logs] == ["message_refused"]
    shelf.store.close()
    with sqlite3.connect(shelf.folder / "db") as db:
        db.execute("UPDATE row SET channel = ? WHERE id = ?", (OTHER, second.message_id))
    db.close()
    with capture_logs() as logs:
        assert shelf.all() == []
        shelf.change(forget_person(ANNA))
        shelf.all()
    assert not on_disk(shelf.folder, "two")


@pytest.mark.parametrize("how", ["deleted", "edited"])
def test_a_summary_goes_with_an_answer_that_was_posted_after_the_question_with_which_its_session_starts(
    shelf: Shelf, how: str
) -> None:
    """Several asked before the first was answered."""
    first, second, answer = said(ANNA, "and then?"), said(BEN, "and now?"), replied(ANNA, "the end")
    shelf.add(first, second, answer)
    made_of = {"since": first.message_id, "through": answer.message_id}
    note = Message("system", "It came to an end.", MessageCategory.CONTEXT, "context_1", "", made_of)
    shelf.transcript.note(CHANNEL, second.message_id - 1, [note])
    assert shelf.writer.sync()
    assert on_disk(shelf.folder, "came to an end")
    if how == "deleted":
        shelf.transcript.remove(CHANNEL, [answer.message_id])
    else:
        shelf.transcript.revise(CHANNEL, replace(answer, content="no end"))
    assert shelf.writer.sync()
    assert not on_disk(shelf.folder, "came to an end")
