"""memory/transcript.py: what was said in a channel, in sessions that continue one another; what is to go, goes."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from conversation import MessageRecord
from memory.transcript import Transcript, to_message, to_record
from state import Message, MessageCategory, SessionManager
from state.optout import redacted
from tests.support.clock import NOON
from tests.support.lives import on_disk
from tests.support.people import ANNA, BEN, CHANNEL, CLEO, GUILD, replied, said

OTHER, ELSEWHERE = CHANNEL + 1, GUILD + 1
FULL = 4


class Shelf:
    """A transcript with short sessions, and the folder it is in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manager = SessionManager(folder, max_messages_per_session=FULL)
        self.transcript = Transcript(self.manager)

    def add(self, *records: MessageRecord, channel: int = CHANNEL, guild: int = GUILD) -> None:
        for record in records:
            self.transcript.add(channel, guild, record)

    def all(self) -> list[str]:
        """What the next process finds in all sessions."""
        manager = SessionManager(self.folder)
        listed = sorted(manager.list_sessions(99), key=lambda header: str(header["id"]))
        sessions = [manager.load_session(str(header["id"])) for header in listed]
        return [str(m.content) for s in sessions if s for m in s.messages if m.category is MessageCategory.DIALOG]


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "sessions")


@pytest.mark.parametrize(
    "record",
    [
        said(ANNA, "hello"),
        said(ANNA, "<@12> hi", mentioned=frozenset({BEN}), readable="@Ben hi"),
        said(ANNA, "", images=("https://example.org/a.png", "https://example.org/b.png")),
        said(ANNA, "stop, Parley", tells_off=True, calls_bot="Parley"),
        said(ANNA, "look", images=("https://example.org/a.png",), readable="look [a.png]"),
        replied(ANNA, "Here you are.\n\nTwo lines 🦊"),
        said(ANNA, "why?", reply_to_id=5, reply_to_author="Ben", reply_to_author_id=BEN, reply_to_text="because"),
        redacted(said(ANNA, "a secret", reply_to_author_id=BEN, reply_to_text="x")),
    ],
)
def test_a_message_comes_back_as_it_was(record: MessageRecord) -> None:
    assert to_record(to_message(record)) == record


@pytest.mark.parametrize(
    "message", [Message("system", "a notice", MessageCategory.SYSTEM), Message("user", "x", MessageCategory.DIALOG)]
)
def test_what_was_no_message_of_a_channel_is_refused(message: Message) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - pydantic's own text
        to_record(message)


def test_what_was_said_since_a_message_is_given_in_order(shelf: Shelf) -> None:
    first, second, third = said(ANNA, "one"), said(BEN, "two"), said(ANNA, "three")
    shelf.add(first, third, second)
    assert Shelf(shelf.folder).transcript.recent(CHANNEL, second.message_id) == [second, third]
    assert shelf.transcript.recent(OTHER, 0) == []


def test_a_full_session_is_continued_and_the_next_process_finds_the_last(shelf: Shelf) -> None:
    records = [said(ANNA, str(number)) for number in range(2 * FULL + 1)]
    shelf.add(*records)
    ids = {header["id"] for header in shelf.manager.list_sessions()}
    assert ids == {str(CHANNEL), f"{CHANNEL}.1", f"{CHANNEL}.2"}
    later = Shelf(shelf.folder)
    later.add(said(ANNA, "last"))
    assert [record.content for record in later.transcript.recent(CHANNEL, records[7].message_id)] == ["7", "8", "last"]
    assert [record.content for record in later.transcript.recent(CHANNEL, 0)] == [*map(str, range(9)), "last"]
    assert later.all() == [*map(str, range(9)), "last"]


@pytest.mark.parametrize("where", range(2 * FULL + 1))
def test_an_edit_reaches_a_message_wherever_it_is(shelf: Shelf, where: int) -> None:
    records = [said(ANNA, f"word{number}") for number in range(2 * FULL + 1)]
    shelf.add(*records)
    edited = said(ANNA, "new words", message_id=records[where].message_id)
    shelf.transcript.revise(CHANNEL, edited)
    assert shelf.all() == [*(f"word{n}" for n in range(where)), "new words"] + [
        f"word{n}" for n in range(where + 1, 2 * FULL + 1)
    ]
    assert not on_disk(shelf.folder, f"word{where}")


@pytest.mark.parametrize("where", range(2 * FULL + 1))
def test_a_deletion_reaches_a_message_wherever_it_is(shelf: Shelf, where: int) -> None:
    records = [said(ANNA, f"word{number}") for number in range(2 * FULL + 1)]
    shelf.add(*records)
    shelf.transcript.remove(CHANNEL, {records[where].message_id})
    assert shelf.all() == [f"word{n}" for n in range(2 * FULL + 1) if n != where]
    assert not on_disk(shelf.folder, f"word{where}")


@pytest.mark.parametrize("how", ["edited", "deleted", "forgotten"])
def test_replies_quote_what_counts_now(shelf: Shelf, how: str) -> None:
    secret = said(ANNA, "a secret")
    quotes: dict[str, Any] = {"reply_to_id": secret.message_id, "reply_to_author_id": ANNA, "reply_to_text": "a secret"}
    shelf.add(secret, said(BEN, "really?", **quotes))
    if how == "edited":
        shelf.transcript.revise(CHANNEL, said(ANNA, "never mind", message_id=secret.message_id))
    elif how == "deleted":
        shelf.transcript.remove(CHANNEL, {secret.message_id})
    else:
        shelf.transcript.forget_person(ANNA)
    assert "really?" in shelf.all()
    assert not on_disk(shelf.folder, "a secret")


def test_who_is_forgotten_leaves_nothing_in_any_channel_and_others_stay(shelf: Shelf) -> None:
    for channel in (CHANNEL, OTHER):
        shelf.add(said(ANNA, "a secret"), replied(ANNA, "your secret"), said(BEN, "a word"), channel=channel)
        shelf.add(*(said(CLEO, "on") for _ in range(FULL)), channel=channel)
    shelf.transcript.forget_person(ANNA)
    assert shelf.all() == ["a word", *["on"] * FULL] * 2
    assert not on_disk(shelf.folder, "secret")


@pytest.mark.parametrize(
    ("is_gone", "left"),
    [
        (lambda channel, _guild: channel == CHANNEL, ["there"]),
        (lambda _channel, guild: guild == ELSEWHERE, ["here"] * 5),
    ],
    ids=["channel", "guild"],
)
def test_a_channel_or_server_goes_with_all_its_sessions_and_can_begin_anew(
    shelf: Shelf, is_gone: object, left: list[str]
) -> None:
    shelf.add(*(said(ANNA, "here") for _ in range(FULL + 1)))
    shelf.add(said(ANNA, "there"), channel=OTHER, guild=ELSEWHERE)
    shelf.transcript.forget_where(is_gone)  # type: ignore[arg-type]
    assert shelf.all() == left
    shelf.add(said(ANNA, "again"))
    assert sorted(shelf.all()) == sorted([*left, "again"])


def test_what_is_too_old_goes(shelf: Shelf) -> None:
    manager = SessionManager(shelf.folder, max_messages_per_session=FULL, clock=lambda: NOON)
    shelf.transcript = Transcript(manager)
    for days in range(6):
        shelf.add(said(ANNA, f"day{days}", NOON + timedelta(days=days)))
    shelf.transcript.expire(NOON + timedelta(days=4))
    assert shelf.all() == ["day4", "day5"]
    assert not on_disk(shelf.folder, "day3")


def test_what_somebody_said_is_found_in_all_sessions(shelf: Shelf) -> None:
    shelf.add(*(said(ANNA, f"a{n}") for n in range(FULL)), said(BEN, "b"), said(ANNA, "last"))
    shelf.add(said(ANNA, "there"), channel=OTHER, guild=ELSEWHERE)
    found = [(where["channel_id"], message.content) for where, message in shelf.transcript.said_by(ANNA)]
    assert sorted(found) == [(CHANNEL, f"a{n}") for n in range(FULL)] + [(CHANNEL, "last"), (OTHER, "there")]
    assert shelf.transcript.channels() == {CHANNEL: GUILD, OTHER: ELSEWHERE}


def test_a_session_that_cannot_be_read_costs_the_others_nothing_but_is_told(shelf: Shelf) -> None:
    shelf.add(said(ANNA, "here"))
    shelf.folder.joinpath(f"{OTHER}.json").write_text(
        f'{{"version": 99, "id": "{OTHER}", "messages": [], "metadata": {{"channel_id": {OTHER}}}}}'
    )
    assert Shelf(shelf.folder).transcript.recent(OTHER, 0) == []
    later = Shelf(shelf.folder)
    try:
        later.transcript.forget_person(ANNA)
    except OSError as error:
        assert str(OTHER) in str(error)  # noqa: PT017 - whether it is listed at all is the manager's affair
    assert not on_disk(shelf.folder, "here")


@pytest.mark.parametrize("since", [0, 1])
def test_of_a_recovered_session_the_notice_is_no_message(shelf: Shelf, since: int) -> None:
    shelf.add(said(ANNA, "here"))
    shelf.manager.save_all()
    for path in shelf.folder.rglob("*"):
        if path.is_file():
            path.write_bytes(b"nonsense")
    later = Shelf(shelf.folder)
    assert later.transcript.recent(CHANNEL, since) == []
    later.add(said(ANNA, "again"))
    assert [record.content for record in later.transcript.recent(CHANNEL, since)] == ["again"]
