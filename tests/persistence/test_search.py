"""persistence/search.py: what was said is found by its words, and nothing that is to be gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conversation import MessageRecord
from persistence.search import KEPT_SECONDS, MAX_CHARACTERS, MOST_CHANNELS, MOST_MESSAGES, Index, Search, expressions
from persistence.transcript import Change, Transcript, expire, forget_person
from persistence.writer import Writer
from state.consent import Forgotten
from state.optout import redacted
from storage.sqlite_store import SQLiteStore
from tests.support.clock import NOON
from tests.support.people import ANNA, BEN, CHANNEL, GUILD, replied, said

OTHER = CHANNEL + 1
NEVER = 2**62


class Archive:
    """Transcripts, and their search, told of all that happens to them as Snapshots tells it."""

    def __init__(self, folder: Path) -> None:
        self.writer = Writer(lambda: SQLiteStore(folder / "db"))
        self.transcript = Transcript(self.writer)
        self.forgotten = Forgotten()
        self.search = Search(self._read, is_gone=self.forgotten.covers)
        self.reads: list[int] = []
        self.was_read, self.gate = asyncio.Event(), asyncio.Event()
        self.gate.set()

    async def _read(self, channel_id: int, count: int) -> Sequence[MessageRecord]:
        self.reads.append(channel_id)
        records = await self.writer.run(partial(self.transcript.recent, channel_id, 0))
        self.was_read.set()
        await self.gate.wait()
        return records[-count:]

    def add(self, *records: MessageRecord, channel: int = CHANNEL) -> None:
        for record in records:
            self.search.add(channel, record)
            self.writer.put(partial(self.transcript.add, channel, GUILD, record))

    def revise(self, record: MessageRecord) -> None:
        self.search.drop(CHANNEL)
        self.writer.put(partial(self.transcript.revise, CHANNEL, record))

    def remove(self, message_ids: Collection[int]) -> None:
        self.search.drop(CHANNEL)
        self.writer.put(partial(self.transcript.remove, CHANNEL, frozenset(message_ids)))

    async def forget_person(self, user_id: int) -> None:
        self.forgotten.mark(None, user_id, NEVER)
        await self._without(partial(self._change, forget_person(user_id)))

    async def forget_channel(self, channel_id: int) -> None:
        await self._without(partial(self.transcript.drop, channel_id))

    async def expire(self, before: datetime) -> None:
        await self._without(partial(self._change, expire(before)))

    def _change(self, change: Change) -> None:
        for channel_id in self.transcript.channels():
            self.transcript.change(channel_id, change)

    async def _without(self, work: partial[Any]) -> None:
        self.search.drop()
        await self.writer.run(work)
        self.search.drop()

    async def find(self, words: str, channel: int = CHANNEL, **more: object) -> list[str]:
        return [m.content for m in await self.search.find(channel, words, **more)]  # type: ignore[arg-type]


@pytest.fixture
async def archive(tmp_path: Path) -> AsyncIterator[Archive]:
    archive = Archive(tmp_path)
    yield archive
    archive.search.close()
    await archive.writer.close()


async def held(archive: Archive, words: str) -> asyncio.Task[list[str]]:
    """A search that has read the transcript, and goes on once the gate is set."""
    archive.gate.clear()
    archive.was_read.clear()
    task = asyncio.create_task(archive.find(words))
    await archive.was_read.wait()
    return task


async def test_a_message_is_found_and_comes_as_it_was_said(archive: Archive) -> None:
    answer = replied(ANNA, "The ferry leaves at nine.", NOON + timedelta(seconds=1.5))
    archive.add(said(ANNA, "ferries?"), answer, *(said(BEN, "on and on") for _ in range(9)), said(BEN, "a ferry!"))
    found = await archive.search.find(CHANNEL, "ferry")
    assert {m.content for m in found} == {answer.content, "a ferry!"}
    assert answer in found


async def test_another_channel_is_not_searched(archive: Archive) -> None:
    archive.add(said(ANNA, "the ferry"), channel=OTHER)
    assert await archive.find("ferry") == []
    assert await archive.find("ferry", OTHER) == ["the ferry"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("the ferry at nine", "ferry"),
        ("the ferry at nine", "FERRY"),
        ("the ferries of Oslo", "ferr oslo"),
        ("at nine goes the ferry", "ferry nine"),
        ("die Fähre fährt", "fahre"),
        ("die Fahre", "Fähre"),
        ("die Fa\u0308hre", "fähre"),
        ("state-management", "state-management"),
        ("state-management", "management"),
        ("we use C++ here", "c++"),
        ("I don't know", "don't"),
        ("port 8080, see https://example.org/a", "example.org"),
        ("it is 5 km", "5"),
        ("今日はフェリーに乗る", "フェリー"),
        ("今日はフェリーに乗る", "今日 乗る"),
        ("我们坐渡轮去", "渡轮"),
        ("我们坐渡轮去", "轮"),
        ("ｶﾌｪに行く", "カフェ"),
        ("か\u3099っこう", "がっこう"),
        ("학교에서 만나요", "학교"),
        ("พรุ่งนี้เราไปเกาะ", "เกาะ"),
        ("паром в девять", "паром"),
        ("हिन्दी में", "हिन्दी"),
        ('she said "ferry"', 'ferry"'),
        ("the ferry, perhaps", "ferry,perhaps"),
        ("x\0ferry", "ferry"),
        ("half \ud83d a ferry", "ferry \ud83d"),
        ("ferry AND bus", "AND"),
    ],
)
async def test_words_are_found_in_whatever_form(archive: Archive, text: str, words: str) -> None:
    archive.add(said(ANNA, text), said(BEN, "something else"))
    assert await archive.find(words) == [text.replace("\ud83d", "?")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("the ferry", "bus"),
        ("an answer", "a"),
        ("management of state", "state-management"),
        ("渡船和车轮", "渡轮"),
        ("ไป", "มา"),
    ],
)
async def test_what_was_not_said_is_not_found(archive: Archive, text: str, words: str) -> None:
    archive.add(said(BEN, text))
    assert await archive.find(words) == []


@pytest.mark.parametrize("words", ["", "  ", "?!", '"', "_", "*", "\0", "\ud83d", "🦊", "-- ;"])
async def test_no_words_find_nothing_and_cost_nothing(archive: Archive, words: str) -> None:
    archive.add(said(ANNA, f"ferry {words}"))
    assert await archive.find(words) == []
    assert await archive.find("ferry", author=words or "?") == []
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


async def test_the_question_itself_and_what_comes_behind_it_is_not_found(archive: Archive) -> None:
    first, question, later = (said(ANNA, f"ferry {n}") for n in range(3))
    archive.add(first, question, later)
    assert await archive.find("ferry", before=question.message_id) == [first.content]


async def test_whoever_does_not_want_to_be_read_is_not_found(archive: Archive) -> None:
    archive.add(redacted(said(ANNA, "a secret")), said(BEN, "who wants this?", reply_to_text="a secret"))
    assert await archive.find("secret") == []
    assert await archive.find("wants") == ["who wants this?"]


@pytest.mark.parametrize("message_id", [0, -1, 2**63, 2**99])
async def test_a_message_whose_id_is_none_is_left_out(archive: Archive, message_id: int) -> None:
    archive.add(said(ANNA, "the ferry"))
    assert await archive.find("ferry") == ["the ferry"]
    archive.search.add(CHANNEL, said(ANNA, "no ferry", message_id=message_id))
    assert await archive.find("ferry") == ["the ferry"]


async def test_what_is_said_later_is_found_without_reading_all_again(archive: Archive) -> None:
    archive.add(said(ANNA, "the ferry"))
    assert await archive.find("ferry") == ["the ferry"]
    growing = said(BEN, "a ferry")
    archive.add(growing)
    archive.add(said(BEN, "a longer ferry", message_id=growing.message_id))
    assert set(await archive.find("ferry")) == {"the ferry", "a longer ferry"}
    assert archive.reads == [CHANNEL]


async def test_what_is_said_while_it_is_read_is_found_once(archive: Archive) -> None:
    first, second = said(ANNA, "the ferry"), said(ANNA, "the ferry again")
    archive.add(first)
    searching = await held(archive, "ferry")
    archive.add(second, first)
    archive.gate.set()
    assert sorted(await searching) == ["the ferry", "the ferry again"]


# What is to be gone


async def test_what_was_edited_is_found_by_its_new_words_alone(archive: Archive) -> None:
    message = said(ANNA, "a secret")
    archive.add(message)
    assert await archive.find("secret") == ["a secret"]
    archive.revise(said(ANNA, "a word", message_id=message.message_id))
    assert await archive.find("secret") == []
    assert await archive.find("word") == ["a word"]


async def test_what_was_deleted_is_not_found(archive: Archive) -> None:
    message = said(ANNA, "a secret")
    archive.add(message, said(BEN, "no secret"))
    assert len(await archive.find("secret")) == 2
    archive.remove({message.message_id})
    assert await archive.find("secret") == ["no secret"]


async def test_who_was_forgotten_and_what_was_answered_to_them_is_found_in_no_channel(archive: Archive) -> None:
    for channel in (CHANNEL, OTHER):
        archive.add(said(ANNA, "a secret"), replied(ANNA, "a secret?"), said(BEN, "no secret"), channel=channel)
        assert len(await archive.find("secret", channel)) == 3
    await archive.forget_person(ANNA)
    for channel in (CHANNEL, OTHER):
        assert await archive.find("secret", channel) == ["no secret"]


async def test_of_a_channel_that_was_forgotten_nothing_is_found(archive: Archive) -> None:
    archive.add(said(ANNA, "a secret"))
    archive.add(said(ANNA, "another secret"), channel=OTHER)
    assert await archive.find("secret") == ["a secret"]
    await archive.forget_channel(CHANNEL)
    assert await archive.find("secret") == []
    assert await archive.find("secret", OTHER) == ["another secret"]


async def test_what_is_too_old_is_not_found(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    archive.add(said(ANNA, "an old secret", NOON), said(ANNA, "a new secret", NOON + timedelta(days=9)))
    assert len(await archive.find("secret")) == 2
    await archive.expire(NOON + timedelta(days=1))
    assert await archive.find("secret") == ["a new secret"]
    archive.search.close()
    await archive.writer.close()


@pytest.mark.parametrize("how", ["edited", "deleted", "forgotten"])
async def test_what_goes_while_it_is_read_is_not_found(archive: Archive, how: str) -> None:
    message = said(ANNA, "a secret")
    archive.add(message, said(BEN, "no secret"))
    searching = await held(archive, "secret")
    if how == "edited":
        archive.revise(said(ANNA, "a word", message_id=message.message_id))
    elif how == "deleted":
        archive.remove({message.message_id})
    else:
        await archive.forget_person(ANNA)
    archive.gate.set()
    assert await searching == ["no secret"]
    assert archive.reads == [CHANNEL, CHANNEL]


async def test_what_goes_while_the_index_is_asked_is_not_found(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = said(ANNA, "a secret")
    archive.add(message)
    loop, find, did_go = asyncio.get_running_loop(), Index.find, False

    def slow(index: Index, *query: object) -> list[MessageRecord]:
        nonlocal did_go
        found = find(index, *query)  # type: ignore[arg-type]
        if not did_go:
            did_go = True
            asyncio.run_coroutine_threadsafe(_called(archive.remove, {message.message_id}), loop).result(5)
        return found

    monkeypatch.setattr(Index, "find", slow)
    assert await archive.find("secret") == []
    assert did_go


async def _called(work: object, *arguments: object) -> None:
    work(*arguments)  # type: ignore[operator]


async def test_who_is_forgotten_is_not_found_before_their_words_are_gone(archive: Archive) -> None:
    archive.add(said(ANNA, "a secret"), replied(ANNA, "a secret?"), said(BEN, "no secret"))
    archive.forgotten.mark(None, ANNA, NEVER)
    assert await archive.find("secret") == ["no secret"]


# How much is kept, and how long


def files(folder: Path) -> dict[Path, int]:
    """All files, and how long they are."""
    return {path: path.stat().st_size for path in folder.rglob("*")}


async def test_nothing_of_it_is_on_disk(archive: Archive, tmp_path: Path) -> None:
    archive.add(said(ANNA, "a secret"))
    await archive.writer.settled()
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
    await archive.find("ferry")
    await archive.find("ferry")
    assert len(archive.search) == len(archive.reads) == 1
    [end] = ends
    end()
    assert len(archive.search) == 0
    assert await archive.find("ferry") == ["the ferry"]
    assert len(ends) == 2


async def test_the_indexes_of_the_channels_asked_for_last_are_kept(archive: Archive) -> None:
    for channel in range(1, MOST_CHANNELS + 1):
        await archive.find("ferry", channel)
    await archive.find("ferry", 1)
    await archive.find("ferry", MOST_CHANNELS + 1)
    assert len(archive.search) == MOST_CHANNELS
    archive.reads.clear()
    await archive.find("ferry", 1)
    assert archive.reads == []
    await archive.find("ferry", 2)
    assert archive.reads == [2]


async def test_the_newest_messages_are_asked_for_and_no_more() -> None:
    asked: list[tuple[int, int]] = []

    async def read(channel_id: int, count: int) -> Sequence[MessageRecord]:
        asked.append((channel_id, count))
        return []

    search = Search(read, is_gone=Forgotten().covers)
    assert await search.find(CHANNEL, "ferry") == []
    assert asked == [(CHANNEL, MOST_MESSAGES)]
    search.close()


async def test_several_searches_at_once_read_the_channel_once(archive: Archive) -> None:
    archive.add(said(ANNA, "the ferry"), said(ANNA, "the bus"))
    ferry, bus = await asyncio.gather(archive.find("ferry"), archive.find("bus"))
    assert (ferry, bus) == (["the ferry"], ["the bus"])
    assert archive.reads == [CHANNEL]


async def test_a_transcript_that_cannot_be_read_raises_and_is_read_anew_the_next_time(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.add(said(ANNA, "the ferry"))

    def fail(*_: object) -> None:
        raise OSError("no disk")

    with monkeypatch.context() as broken:
        broken.setattr(archive.transcript, "recent", fail)
        with pytest.raises(OSError, match="no disk"):
            await archive.find("ferry")
    assert len(archive.search) == 0
    assert await archive.find("ferry") == ["the ferry"]


async def test_a_search_that_is_given_up_leaves_nothing_half_done(archive: Archive) -> None:
    archive.add(said(ANNA, "the ferry"))
    searching = await held(archive, "ferry")
    searching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await searching
    archive.gate.set()
    assert len(archive.search) == 0
    assert await archive.find("ferry") == ["the ferry"]


@pytest.fixture(scope="module")
def index() -> Index:
    index = Index()
    index.add([said(ANNA, "the ferry"), said(BEN, "今日はフェリーに乗る"), said(BEN, 'a "b" AND (c* NEAR d) - e:f ^g')])
    return index


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
    st.text(),
    st.text(st.characters(categories=["Cs", "Cc", "Mn", "Lo", "Po"])),
    st.lists(st.sampled_from(SYNTAX), max_size=40).map("".join),
    st.text(min_size=1).map(lambda text: text * (2 * MAX_CHARACTERS // len(text))),
)


@settings(max_examples=500, deadline=None)
@given(words=HOSTILE, author=HOSTILE | st.just(""))
def test_no_text_is_an_error(index: Index, words: str, author: str) -> None:
    assert len(index.find(expressions(words, author), NEVER, 8)) <= 3


def test_no_text_of_ten_thousand_made_of_syntax_is_an_error(index: Index) -> None:
    random = Random(7)
    for _ in range(10_000):
        words, author = ("".join(random.choices(SYNTAX, k=random.randrange(20))) for _ in range(2))
        assert len(index.find(expressions(words, author), NEVER, 8)) <= 3


@settings(max_examples=200, deadline=None)
@given(text=HOSTILE, name=HOSTILE)
def test_whatever_is_said_can_be_indexed_and_comes_back(text: str, name: str) -> None:
    index = Index()
    message = said(ANNA, f"{text} ferry", author=name, addressees=frozenset({ANNA, BEN}))
    index.add([message])
    [found] = index.find(expressions("ferry", ""), NEVER, 8)
    assert found.text == message.text.encode(errors="replace").decode()
    assert found.author == name.encode(errors="replace").decode()
    assert (found.author_id, found.addressees, found.timestamp) == (ANNA, message.addressees, message.timestamp)
    index.close()
