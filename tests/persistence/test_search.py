"""persistence/search.py: what was said is found by its words, and nothing that is to be gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conversation import MessageRecord
from persistence import search, transcript
from persistence.search import KEPT_SECONDS, MAX_CHARACTERS, MOST_CHANNELS, Index, expressions
from state.consent import Forgotten
from state.message import Appended
from state.optout import redacted
from tests.persistence.conftest import open_snapshots
from tests.support.clock import NOON
from tests.support.people import ANNA, BEN, CHANNEL, GUILD, replied, said

OTHER = CHANNEL + 1
NEVER = 2**62


class Archive:
    """Transcripts and their search. reads: the channels whose transcripts were read for it."""

    def __init__(self, folder: Path) -> None:
        self.forgotten = Forgotten()
        self.snapshots = open_snapshots(folder, self.forgotten)
        self.search = self.snapshots.search
        self.reads: list[int] = []
        self.was_read, self.gate = asyncio.Event(), asyncio.Event()
        self.gate.set()
        self._read, self.search._read = self.search._read, self._noted  # type: ignore[method-assign]

    async def _noted(self, channel_id: int) -> list[MessageRecord]:
        self.reads.append(channel_id)
        records = await self._read(channel_id)
        self.was_read.set()
        await self.gate.wait()
        return records

    def add(self, *records: MessageRecord, channel: int = CHANNEL) -> None:
        for record in records:
            self.snapshots.append(Appended(channel, GUILD, record))

    async def find(self, words: str, channel: int = CHANNEL, **more: Any) -> list[str]:
        return [m.content for m in await self.search.find(channel, words, **more)]

    async def held(self, words: str) -> asyncio.Task[list[str]]:
        """A search that has read the transcript, and goes on once the gate is set."""
        self.gate.clear()
        task = asyncio.create_task(self.find(words))
        await self.was_read.wait()
        return task


@pytest.fixture
async def archive(tmp_path: Path) -> AsyncIterator[Archive]:
    archive = Archive(tmp_path)
    yield archive
    await archive.snapshots.close()


def in_index(text: str, words: str) -> list[str]:
    index = Index()
    index.add([said(ANNA, text), said(BEN, "something else")])
    found = index.find(expressions(words, ""), NEVER, 8)
    index.close()
    return [message.content for message in found]


FOUND = [
    ("the ferry at nine", "FERRY"),
    ("the ferries of Oslo", "ferr oslo"),
    ("at nine goes the ferry", "ferry nine"),
    ("die Fähre fährt", "fahre"),
    ("die Fa\u0308hre", "fähre"),
    ("state-management", "management"),
    ("we use C++ here", "c++"),
    ("I don't know", "don't"),
    ("port 8080, see https://example.org/a", "example.org"),
    ("it is 5 km", "5"),
    ("今日はフェリーに乗る", "今日 乗る"),
    ("我们坐渡轮去", "渡轮"),
    ("我们坐渡轮去", "轮"),
    ("ｶﾌｪに行く", "カフェ"),
    ("학교에서 만나요", "학교"),
    ("พรุ่งนี้เราไปเกาะ", "เกาะ"),
    ("паром в девять", "паром"),
    ("हिन्दी में", "हिन्दी"),
    ('she said "ferry"', 'ferry"'),
    ("the ferry, perhaps", "ferry,perhaps"),
    ("x\0ferry", "ferry"),
    ("half \ud83d a ferry", "ferry \ud83d"),
    ("ferry AND bus", "AND"),
]
NOT_FOUND = [
    ("the ferry", "bus"),
    ("an answer", "a"),
    ("management of state", "state-management"),
    ("渡船和车轮", "渡轮"),
    ("ไป", "มา"),
]


def test_words_are_found_in_whatever_form_and_what_was_not_said_is_not() -> None:
    assert [in_index(*each) for each in FOUND] == [[text.replace("\ud83d", "?")] for text, _ in FOUND]
    assert [in_index(*each) for each in NOT_FOUND] == [[]] * len(NOT_FOUND)


async def test_a_message_of_the_channel_is_found_as_it_was_said(archive: Archive) -> None:
    answer = replied(ANNA, "The ferry leaves at nine.", NOON + timedelta(seconds=1.5))
    archive.add(said(ANNA, "ferries?"), answer, *(said(BEN, "on and on") for _ in range(9)), said(BEN, "a ferry!"))
    archive.add(said(ANNA, "another ferry"), channel=OTHER)
    found = await archive.search.find(CHANNEL, "ferry")
    assert {m.content for m in found} == {answer.content, "a ferry!"}
    assert answer in found
    assert await archive.find("ferry", before=answer.message_id) == []


async def test_no_words_find_nothing_and_cost_nothing(archive: Archive) -> None:
    for words in ("", "  ", "?!", '"', "*", "\0", "\ud83d", "🦊", "-- ;"):
        archive.add(said(ANNA, f"ferry {words}"))
        assert await archive.find(words) == await archive.find("ferry", author=words or "?") == []
    assert archive.reads == []


async def test_where_no_message_has_all_words_any_will_do(archive: Archive) -> None:
    archive.add(said(ANNA, "the ferry"), said(BEN, "the bus"))
    assert set(await archive.find("ferry bus")) == {"the ferry", "the bus"}
    archive.add(said(ANNA, "ferry or bus"))
    assert await archive.find("ferry bus") == ["ferry or bus"]


async def test_of_those_that_fit_alike_the_newest_comes_first_and_the_better_before_it(archive: Archive) -> None:
    archive.add(said(BEN, "ferry ferry ferry"))
    archive.add(*(said(BEN, f"we take the ferry there on day {n}") for n in range(5)))
    archive.add(*(said(BEN, "nothing of it") for _ in range(50)))
    days = [f"we take the ferry there on day {n}" for n in (4, 3, 2, 1, 0)]
    assert await archive.find("ferry") == ["ferry ferry ferry", *days]
    assert await archive.find("ferry", limit=2) == ["ferry ferry ferry", days[0]]


async def test_a_name_counts_as_a_word_or_is_asked_for_alone(archive: Archive) -> None:
    archive.add(said(ANNA, "the ferry"), said(BEN, "the ferry of Anna"), said(BEN, "a word", author="渡辺"))
    assert set(await archive.find("anna ferry")) == {"the ferry", "the ferry of Anna"}
    assert await archive.find("ferry", author="@anna") == ["the ferry"]
    assert await archive.find("ferry bus", author="Ben") == ["the ferry of Anna"]
    assert await archive.find("ferry", author="Cleo") == []
    [found] = await archive.search.find(CHANNEL, "word", author="渡")
    assert found.author == "渡辺"


async def test_whoever_does_not_want_to_be_read_and_what_has_no_id_is_left_out(archive: Archive) -> None:
    archive.add(redacted(said(ANNA, "a secret")), said(BEN, "who wants this?", reply_to_text="a secret"))
    assert await archive.find("secret") == []
    for message_id in (0, -1, 2**63, 2**99):
        archive.search.add(CHANNEL, said(ANNA, "a secret", message_id=message_id))
    assert await archive.find("secret") == []
    assert await archive.find("wants") == ["who wants this?"]


async def test_what_is_said_later_is_found_without_reading_all_again(archive: Archive) -> None:
    archive.add(first := said(ANNA, "the ferry"))
    searching = await archive.held("ferry")
    archive.add(said(ANNA, "the ferry again"), first)  # while it is read
    archive.gate.set()
    assert sorted(await searching) == ["the ferry", "the ferry again"]
    archive.add(growing := said(BEN, "a ferry"))
    archive.add(said(BEN, "a longer ferry", message_id=growing.message_id))
    assert set(await archive.find("ferry")) == {"the ferry", "the ferry again", "a longer ferry"}
    assert archive.reads == [CHANNEL]


# What is to be gone

GOING: dict[str, Callable[[Archive, MessageRecord], Any]] = {
    "edited": lambda a, m: a.snapshots.revised(CHANNEL, said(ANNA, "a word", message_id=m.message_id)),
    "deleted": lambda a, m: a.snapshots.removed(CHANNEL, {m.message_id}),
    "forgotten": lambda a, _: a.snapshots.forget_person(ANNA),
    "channel forgotten": lambda a, _: a.snapshots.forget_where(lambda channel, _guild: channel == CHANNEL),
    "too old": lambda a, _: a.snapshots.expire(NOON + timedelta(days=1)),
}


async def go(archive: Archive, how: str, message: MessageRecord) -> None:
    if work := GOING[how](archive, message):
        await work


@pytest.mark.parametrize("is_being_read", [False, True])
@pytest.mark.parametrize("how", GOING)
async def test_what_goes_is_not_found_also_where_it_goes_while_it_is_read(
    archive: Archive, how: str, is_being_read: bool
) -> None:
    message = said(ANNA, "a secret")
    stays = CHANNEL if how != "channel forgotten" else OTHER
    archive.add(message)
    archive.add(said(BEN, "no secret", NOON + timedelta(days=9)), channel=stays)
    if is_being_read:
        searching = await archive.held("secret")
        await go(archive, how, message)
        archive.gate.set()
        assert "a secret" not in await searching
    else:
        assert "a secret" in await archive.find("secret")
        await go(archive, how, message)
    assert await archive.find("secret", stays) == ["no secret"]
    assert await archive.find("word") == (["a word"] if how == "edited" else [])
    assert archive.reads.count(CHANNEL) >= 2


async def test_what_goes_while_the_index_is_asked_is_not_found(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.add(message := said(ANNA, "a secret"))
    loop, find, gone = asyncio.get_running_loop(), Index.find, [message]

    def slow(index: Index, *query: Any) -> list[MessageRecord]:
        found = find(index, *query)
        if gone:
            asyncio.run_coroutine_threadsafe(go(archive, "deleted", gone.pop()), loop).result(5)
        return found

    monkeypatch.setattr(Index, "find", slow)
    assert await archive.find("secret") == []
    assert not gone


async def test_who_is_forgotten_is_not_found_before_their_words_are_gone(archive: Archive) -> None:
    archive.add(said(ANNA, "a secret"), replied(ANNA, "a secret?"), said(BEN, "no secret"))
    archive.forgotten.mark(None, ANNA, NEVER)
    assert await archive.find("secret") == ["no secret"]


# How much is kept, and how long


def files(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_size for path in folder.rglob("*")}


async def test_nothing_of_it_is_on_disk(archive: Archive, tmp_path: Path) -> None:
    archive.add(said(ANNA, "a secret"))
    await archive.snapshots.settled()
    before = files(tmp_path)
    assert await archive.find("secret")
    assert files(tmp_path) == before


async def test_an_index_is_kept_for_some_minutes_from_when_it_was_made(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, ends = asyncio.get_running_loop(), []
    call_later = loop.call_later

    def noted(seconds: float, work: Callable[..., object], *arguments: Any) -> asyncio.TimerHandle:
        if seconds == KEPT_SECONDS:
            ends.append(partial(work, *arguments))
        return call_later(seconds, work, *arguments)

    monkeypatch.setattr(loop, "call_later", noted)
    archive.add(said(ANNA, "the ferry"))
    await asyncio.gather(archive.find("ferry"), archive.find("ferry"))
    assert len(archive.search) == len(archive.reads) == 1
    [end] = ends
    end()
    assert len(archive.search) == 0
    assert await archive.find("ferry") == ["the ferry"]
    assert len(ends) == 2


async def test_the_indexes_of_the_channels_asked_for_last_are_kept(archive: Archive) -> None:
    for channel in (*range(1, MOST_CHANNELS + 1), 1, MOST_CHANNELS + 1):
        await archive.find("ferry", channel)
    assert len(archive.search) == MOST_CHANNELS
    archive.reads.clear()
    await archive.find("ferry", 1)
    await archive.find("ferry", 2)
    assert archive.reads == [2]


async def test_the_newest_messages_are_read_and_no_more(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "PAGE", 2)
    monkeypatch.setattr(search, "MOST_MESSAGES", 3)
    assert transcript.PAGE > 2
    archive.add(*(said(ANNA, f"ferry {n}") for n in range(6)))
    assert await archive.find("ferry") == ["ferry 5", "ferry 4", "ferry 3"]


@pytest.mark.parametrize("ends", ["cancelled", "failed"])
async def test_a_search_that_does_not_end_leaves_nothing_half_done(
    archive: Archive, ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.add(said(ANNA, "the ferry"))
    if ends == "cancelled":
        searching = await archive.held("ferry")
        searching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await searching
        archive.gate.set()
    else:
        monkeypatch.setattr(archive.snapshots._transcript, "newest", _fail)
        with pytest.raises(OSError, match="no disk"):
            await archive.find("ferry")
        monkeypatch.undo()
    assert len(archive.search) == 0
    assert await archive.find("ferry") == ["the ferry"]


def _fail(*_: object) -> None:
    raise OSError("no disk")


SYNTAX = [
    *'"*()^-+:{},.;_ \0\ud83d',
    "AND",
    "OR",
    "NOT",
    "NEAR(",
    "author :",
    "said",
    "rank",
    "ferry",
    "フェ",
    "\u0301",
]
HOSTILE = st.one_of(
    st.text(st.characters(categories=["Cs", "Cc", "Mn", "Lo", "Po"])),
    st.lists(st.sampled_from(SYNTAX), max_size=40).map("".join),
    st.text(min_size=1).map(lambda text: text * (2 * MAX_CHARACTERS // len(text))),
)


@settings(deadline=None)
@given(text=HOSTILE, name=HOSTILE, words=HOSTILE, author=HOSTILE | st.just(""))
def test_no_text_is_an_error_and_whatever_is_said_comes_back(text: str, name: str, words: str, author: str) -> None:
    index = Index()
    message = said(ANNA, f"{text} ferry", author=name, addressees=frozenset({ANNA, BEN}))
    index.add([message, said(BEN, "今日はフェリーに乗る"), said(BEN, 'a "b" AND (c* NEAR d) - e:f ^g')])
    assert len(index.find(expressions(words, author), NEVER, 8)) <= 3
    [found] = index.find(expressions("ferry", ""), NEVER, 8)
    assert found.text == message.text.encode(errors="replace").decode()
    assert found.author == name.encode(errors="replace").decode()
    assert (found.author_id, found.addressees, found.timestamp) == (ANNA, message.addressees, message.timestamp)
    index.close()
