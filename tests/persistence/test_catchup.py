"""persistence/catchup.py: which channels are read and since when, what is taken up there, and who waits for that."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, cast

import orjson
import pytest
from structlog.testing import capture_logs

from conversation import MessageRecord
from discord_io.backlog import LIMIT, Backlog, News, id_at
from discord_io.channel_wire import Posted
from discord_io.inbox import Inbox
from persistence.catchup import AT_ONCE, HELD, MARGIN, MARGIN_CONNECTED, CatchUp
from persistence.catchup_by_shard import CatchUpByShard
from persistence.changes import Changes
from persistence.snapshots import Snapshots
from persistence.unfinished_questions import UnfinishedQuestions
from place import Place
from shards import DIRECT, Shards
from state.message import Appended
from storage.store import StoreError
from tests.support.clock import NOON
from tests.support.people import ANNA, BEN, CHANNEL, GUILD, said
from tests.support.turns_bench import Bench
from turns.gate import Gate
from turns.pending_turns import NOTHING, Begun, Unfinished

SECONDS = 300.0
OTHER = CHANNEL + 1


@dataclass(frozen=True, slots=True)
class Message:
    """A message as far as it is looked at."""

    id: int
    created_at: datetime
    content: str = "hello"


def posted(seconds: float, content: str = "hello", *, number: int = 0) -> Message:
    """A message of so many seconds after noon."""
    at = NOON + timedelta(seconds=seconds)
    return Message(id_at(at) + number, at, content)


class FakeBacklog:
    """channels: what stands there. answered: the messages to which we replied.

    broken: channels that raise. unreachable: those that cannot be read.
    """

    def __init__(self) -> None:
        self.channels: dict[int, list[Message] | None] = {}
        self.answered: set[int] = set()
        self.broken: set[int] = set()
        self.unreachable: set[int] = set()
        self.gate: asyncio.Event | None = None
        self.is_complete = True
        self.asked: list[int] = []
        self.read: list[int] = []
        self.reading = self.most_reading = 0

    def knows_all(self, _shard_id: int) -> bool:
        return self.is_complete

    def is_on(self, _shard_id: int, _guild_id: int) -> bool:
        return True

    def news(self, _shard_id: int, after: int) -> list[News]:
        self.asked.append(after)
        newest = {
            channel: max([m.id for m in messages or ()], default=0) for channel, messages in self.channels.items()
        }
        return [News(GUILD, channel, last) for channel, last in newest.items() if last > after]

    def direct(self, _channel_ids: Sequence[int], _after: int) -> list[News]:
        return []

    async def all_since(self, guild_id: int, channel_id: int, after: int) -> list[Message] | None:
        return await self.since(guild_id, channel_id, after)

    async def since(self, _guild_id: int, channel_id: int, after: int) -> list[Message] | None:
        self.read.append(channel_id)
        self.reading += 1
        self.most_reading = max(self.most_reading, self.reading)
        await (self.gate.wait() if self.gate else asyncio.sleep(0))
        self.reading -= 1
        if channel_id in self.broken:
            raise ZeroDivisionError
        messages = self.channels.get(channel_id)
        return (
            None
            if messages is None or channel_id in self.unreachable
            else [m for m in messages if m.id > after][:LIMIT]
        )

    def is_answered(self, _place: Place, _author_id: int) -> bool:
        return True

    def renewed(self, place: Place) -> Place:
        return place

    async def to_record(self, message: Message) -> MessageRecord:
        return self.record(message)

    def record(self, message: Message) -> MessageRecord:
        return said(ANNA, message.content, message.created_at, message_id=message.id)

    def replied_to(self, _messages: Sequence[Message]) -> set[int]:
        return self.answered

    async def around(self, _news: News, messages: Sequence[Message]) -> Sequence[Message]:
        return messages

    async def exchange(self, *_: object) -> None:
        return None

    def answer(self, _messages: Sequence[Message], _reply_to: int, later: Collection[int]) -> list[Posted]:
        return [Posted(message_id, NOON) for message_id in later]


class FakeSnapshots:
    def __init__(self) -> None:
        self.transcript: list[MessageRecord] = []
        self.revisions: list[MessageRecord] = []
        self.purged: list[int] = []
        self.known: dict[int, int] = {}
        self.outages = 0
        self.kept_are_away = False

    async def known_channels(self) -> dict[int, int]:
        if self.kept_are_away:
            raise StoreError("What is kept could not be read.")
        return self.known

    async def direct_channels(self) -> list[int]:
        return []

    async def recent(self, _channel_id: int, since: int) -> list[MessageRecord]:
        if self.outages:
            self.outages -= 1
            raise StoreError("What is kept could not be read.")
        return [record for record in self.transcript if record.message_id >= since]

    def append(self, appended: Appended) -> None:
        self.transcript.append(appended.record)

    def revised(self, _channel_id: int, record: MessageRecord) -> None:
        self.revisions.append(record)

    def purge(self, channel_id: int) -> None:
        self.purged.append(channel_id)


class Stage:
    def __init__(self) -> None:
        self.bench = Bench()
        self.backlog = FakeBacklog()
        self.snapshots = FakeSnapshots()
        self.taken: list[int] = []
        self.active: list[bool] = []
        self.gone: dict[int, set[int]] = {}
        self.reviewed: list[int] = []
        self.reviews_fail = False
        self.newest: dict[int, list[Message]] = {}
        self.gate = Gate()
        slots = asyncio.Semaphore(AT_ONCE)
        unfinished = UnfinishedQuestions(
            slots,
            backlog=cast(Backlog, self.backlog),
            conversations=self.bench.conversations,
            turns=self.bench.turns,
            snapshots=cast(Snapshots, self.snapshots),
            changes=cast(Changes, self),
            clock=self.bench.clock,
        )
        self.catch_up = CatchUp(
            DIRECT,
            slots,
            seconds=SECONDS,
            backlog=cast(Backlog, self.backlog),
            conversations=self.bench.conversations,
            unfinished=unfinished,
            snapshots=cast(Snapshots, self.snapshots),
            gate=self.gate,
            changes=cast(Changes, self),
            inbox=cast(Inbox, self),
            clock=self.bench.clock,
        )
        self.by_shard = CatchUpByShard(Shards(), lambda _shard_id: self.catch_up)
        self.by_shard.of(DIRECT)

    def deleted(self, channel_id: int, message_ids: Collection[int]) -> None:
        self.gone[channel_id] = set(message_ids)

    async def review(self, channel_id: int, _guild_id: int, _expired: object) -> list[Message] | None:
        self.reviewed.append(channel_id)
        await asyncio.sleep(0)
        if self.reviews_fail:
            raise OSError("the store cannot be read")
        return self.newest.get(channel_id)

    def is_over(self, message_id: int) -> bool:
        return message_id in self.taken

    async def take(self, message: Any) -> None:
        self.taken.append(message.id)
        self.active.append(self.bench.conversations.get(CHANNEL) is not None)

    async def run(self, alive: float | None = 0.0, now: float = 20.0) -> None:
        """Comes back so many seconds after noon, when it was last alive at that."""
        self.bench.clock.now = NOON + timedelta(seconds=now)
        self.catch_up.alive_at = None if alive is None else NOON + timedelta(seconds=alive)
        await self.catch_up.run()

    async def left(self, unfinished: Unfinished) -> None:
        self.bench.pending.adopt(CHANNEL, unfinished)
        await self.catch_up.restore_conversation(CHANNEL, None)


@pytest.fixture
async def stage() -> Stage:
    return Stage()


# What is read


@pytest.mark.parametrize(("alive", "since"), [(0, -MARGIN.total_seconds()), (-1_000, 20 - SECONDS)])
async def test_what_is_asked_for_begins_shortly_before_it_was_last_alive_or_so_long_ago(
    stage: Stage, alive: float, since: float
) -> None:
    await stage.run(alive=alive)
    assert stage.backlog.asked == [id_at(NOON + timedelta(seconds=since))]
    stage.catch_up.hold_back()
    await stage.run(alive=200, now=210)  # of a connection it is known late that it was dead
    assert stage.backlog.asked[1:] == [id_at(NOON + timedelta(seconds=200) - MARGIN_CONNECTED)]


async def test_a_server_that_is_not_known_yet_leaves_all_due_until_it_is(stage: Stage) -> None:
    stage.backlog.is_complete = False
    await stage.run()
    assert not stage.catch_up.beat()
    stage.backlog.is_complete = True
    assert [stage.catch_up.available() for _ in range(2)] == [True, False]  # one run is enough
    await stage.catch_up.run()
    assert stage.catch_up.beat()
    assert not stage.catch_up.available()


async def test_those_used_last_are_reviewed_whose_last_messages_are_read_only_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("persistence.catchup.MOST_REVIEWED", 3)
    stage.snapshots.known = {CHANNEL + n: GUILD for n in range(20)}
    many = [posted(n / 10, number=n) for n in range(1, LIMIT + 1)]
    stage.backlog.channels = {CHANNEL: [posted(0)], OTHER: many}
    stage.newest = {CHANNEL: [posted(-900), posted(0)], OTHER: many}
    await stage.run()
    assert sorted(stage.reviewed) == [CHANNEL, OTHER, CHANNEL + 2]
    assert set(stage.backlog.read) == {OTHER}  # where more was said than the last messages show
    assert stage.taken.count(posted(0).id) == 1


def cuts(logs: Sequence[Any]) -> list[tuple[int, int, int]]:
    """What was logged of channels that were not read, or in part."""
    return [
        (e["channels_with_news"], e["read_whole"], e["requests"])
        for e in logs
        if e["event"] == "catch_up_cut" and e["log_level"] == "warning"
    ]


async def test_where_requests_are_too_few_what_goes_on_is_read_first_and_what_ends_with_our_words_last(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("persistence.catchup.MAX_REQUESTS", 12)
    channels = [CHANNEL + n for n in range(20)]
    stage.backlog.channels = {channel: [posted(n)] for n, channel in enumerate(channels)}
    live, ours = channels[1], channels[-1]
    stage.bench.clock.now = NOON
    stage.bench.conversations.start(live, [said(ANNA, "hello")])
    answer = replace(said(ANNA, "hello"), message_id=posted(19).id, is_bot=True)
    stage.bench.conversations.start(ours, [answer])
    await stage.left(Unfinished((stage.bench.question(stage.backlog.record(posted(0))),)))
    with capture_logs() as logs:
        await stage.run()
    first_asked = [CHANNEL, CHANNEL]  # for its question, and for what is new
    assert sorted(stage.backlog.read) == [*first_asked, live, *channels[-11:-1]]
    assert set(stage.backlog.read[:3]) == {CHANNEL, live, channels[-2]}
    assert stage.backlog.most_reading == AT_ONCE
    assert cuts(logs) == [(20, 12, 12)]


async def test_a_channel_is_read_to_its_end_while_there_are_requests(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = [posted(1, number=n) for n in range(250)]
    stage.backlog.channels = {CHANNEL: [*talk]}
    with capture_logs() as logs:
        await stage.run()
    assert stage.taken == [message.id for message in talk]
    assert not cuts(logs)
    monkeypatch.setattr("persistence.catchup.MAX_REQUESTS", 2)
    stage.taken.clear()
    stage.catch_up.hold_back()
    with capture_logs() as logs:
        await stage.run()
    assert stage.taken == [message.id for message in talk[:200]]
    assert cuts(logs) == [(1, 0, 2)]


async def test_only_a_channel_that_could_not_be_read_is_read_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("persistence.unfinished_questions.RETRY_SECONDS", (0.0, 0.0))
    stage.backlog.channels = {CHANNEL: [posted(1)], OTHER: [posted(2)]}
    stage.backlog.unreachable = {OTHER}
    with capture_logs() as logs:
        await stage.run()
    assert sorted(stage.backlog.read) == [CHANNEL, OTHER, OTHER, OTHER]
    assert cuts(logs) == [(2, 1, 4)]


async def test_a_store_that_is_away_meanwhile_is_asked_again(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("persistence.unfinished_questions.RETRY_SECONDS", (0.0, 0.0))
    stage.backlog.channels = {CHANNEL: [posted(1)]}
    stage.snapshots.outages = 2
    await stage.run()
    assert stage.taken == [posted(1).id]


async def test_while_the_store_is_away_for_long_what_was_missed_stays_due(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("persistence.unfinished_questions.RETRY_SECONDS", (0.0, 0.0))
    stage.backlog.channels = {CHANNEL: [posted(1)]}
    stage.snapshots.outages = 3
    with pytest.raises(StoreError):
        await stage.run()
    assert not stage.catch_up.beat()
    await stage.catch_up.run()
    assert stage.taken == [posted(1).id]
    assert stage.catch_up.beat()


async def test_what_is_known_in_one_way_or_another_is_not_taken_again(stage: Stage) -> None:
    messages = [posted(1, number=n) for n in range(5)]
    stage.backlog.channels = {CHANNEL: [*messages]}
    stage.snapshots.transcript = [stage.backlog.record(messages[0])]
    stage.backlog.answered = {messages[1].id}
    stage.bench.pending.asked(stage.bench.question(stage.backlog.record(messages[2])))
    await stage.run()
    assert stage.taken == [message.id for message in messages[3:]]


async def test_at_the_very_first_start_nothing_is_looked_for(stage: Stage) -> None:
    stage.backlog.channels = {CHANNEL: [posted(1)]}
    await stage.run(alive=None)
    assert stage.backlog.asked == stage.taken == []


async def test_a_channel_that_cannot_be_read_or_breaks_costs_the_others_nothing(stage: Stage) -> None:
    stage.backlog.channels = {CHANNEL: [posted(1)], OTHER: [posted(2)], OTHER + 1: [posted(3)]}
    stage.backlog.broken = {CHANNEL}
    with capture_logs() as logs:
        await stage.run()
    assert sorted(stage.taken) == [posted(2).id, posted(3).id]
    assert ("catch_up_broken", CHANNEL) in [(entry["event"], entry.get("channel")) for entry in logs]
    assert not stage.gate.is_closed(CHANNEL, GUILD)


@pytest.mark.parametrize("goes_on", [True, False])
async def test_a_conversation_goes_on_where_it_was_alive_then_or_is_dropped_from_what_is_stored(
    stage: Stage, goes_on: bool
) -> None:
    earlier = said(ANNA, "hello", message_id=posted(-5).id)
    stage.bench.clock.now = NOON
    stage.bench.conversations.start(CHANNEL, [earlier])
    stored = stage.bench.conversations.stored(CHANNEL)
    stage.bench.conversations.end(CHANNEL)
    stage.snapshots.transcript = [earlier]
    stage.bench.clock.now = NOON + timedelta(seconds=200)  # its timeout is 60
    await stage.catch_up.restore_conversation(CHANNEL, stored)
    stage.backlog.channels = {CHANNEL: [posted(50), posted(55)] if goes_on else []}
    await stage.run(now=200)
    assert stage.active == ([True, True] if goes_on else [])
    assert stage.snapshots.purged == [CHANNEL]  # it is stored again as it is
    assert (stage.bench.conversations.stored(CHANNEL) is not None) == goes_on
    assert (stage.bench.conversations.get(CHANNEL) is not None) == goes_on


# What was begun


async def test_what_was_begun_is_finished_and_what_waited_behind_it_comes_next(stage: Stage) -> None:
    first, second = (stage.bench.question(said(who, text)) for who, text in ((ANNA, "one"), (BEN, "two")))
    await stage.left(Unfinished((first, second), Begun((first.message.message_id,), (77,))))
    stage.bench.wire.standing[77] = "Half an"
    await stage.run(alive=None)
    await stage.bench.idle()
    assert [[m.content for m in request.questions] for request in stage.bench.agent.requests] == [["one"], ["two"]]
    # A kill can have come before they stood in the transcript.
    assert [record.content for record in stage.snapshots.transcript] == ["one", "two"]
    assert stage.bench.wire.standing[77] == "the answer"
    assert len(stage.bench.wire.standing) == 2
    assert stage.bench.pending.of(CHANNEL) == NOTHING


async def test_what_was_begun_is_finished_and_what_was_missed_taken_up_also_where_no_review_is_possible(
    stage: Stage,
) -> None:
    begun, missed = posted(1, number=1), posted(2, number=2)
    stage.backlog.channels, stage.reviews_fail = {CHANNEL: [begun, missed]}, True
    stage.snapshots.known = {CHANNEL: GUILD}
    await stage.left(Unfinished((stage.bench.question(stage.backlog.record(begun)),)))
    with capture_logs() as logs:
        await stage.run()
    await stage.bench.idle()
    assert len(stage.bench.agent.requests) == 1
    assert stage.taken == [missed.id]
    assert [e["channel"] for e in logs if e["event"] == "review_failed"] == [CHANNEL]


async def test_an_edited_question_is_answered_and_kept_in_its_new_words_alone(stage: Stage) -> None:
    message = posted(1, "old words")
    question = stage.bench.question(stage.backlog.record(message))
    stage.backlog.channels = {CHANNEL: [replace(message, content="new words")]}
    await stage.left(Unfinished((question,)))
    await stage.run(alive=None)
    await stage.bench.idle()
    assert [m.content for m in stage.bench.agent.requests[0].questions] == ["new words"]
    assert [record.content for record in stage.snapshots.revisions] == ["new words"]
    assert stage.snapshots.purged == [CHANNEL]


@pytest.mark.parametrize("is_gone", [False, True])
async def test_what_a_question_quotes_is_not_told_where_it_goes_while_the_question_is_read_again(
    stage: Stage, is_gone: bool
) -> None:
    message = posted(1)
    quoting = replace(stage.backlog.record(message), reply_to_id=7, reply_to_author_id=BEN, reply_to_text="a secret")

    async def read(_message: Message) -> MessageRecord:
        stage.bench.pending.requoted(CHANNEL, lambda _: is_gone)
        return quoting

    stage.backlog.to_record = read  # type: ignore
    stage.backlog.channels = {CHANNEL: [message]}
    await stage.left(Unfinished((stage.bench.question(quoting),)))
    await stage.run(alive=None)
    await stage.bench.idle()
    assert [m.reply_to_text for m in stage.bench.agent.requests[0].questions] == ["" if is_gone else "a secret"]


async def test_a_deleted_question_is_told_of_and_one_that_stands_costs_nothing(stage: Stage) -> None:
    stands, gone = posted(1, number=1), posted(1, number=2)
    questions = tuple(stage.bench.question(stage.backlog.record(m)) for m in (stands, gone))
    stage.backlog.channels = {CHANNEL: [stands]}
    await stage.left(Unfinished(questions))
    await stage.run(alive=None)
    await stage.bench.idle()
    assert stage.gone == {CHANNEL: {gone.id}}
    assert [len(request.questions) for request in stage.bench.agent.requests] == [1]
    assert not stage.snapshots.revisions


async def test_where_the_channel_cannot_be_read_the_question_is_answered_as_it_was(stage: Stage) -> None:
    question = stage.bench.question(said(ANNA, "one"))
    stage.backlog.channels = {CHANNEL: None}
    await stage.left(Unfinished((question,)))
    await stage.run(alive=None)
    await stage.bench.idle()
    assert stage.bench.wire.texts == ["the answer"]
    assert not stage.gone


async def test_what_is_too_old_is_dropped_and_logged(stage: Stage) -> None:
    question = stage.bench.question(said(ANNA, "one"))
    await stage.left(Unfinished((question,)))
    with capture_logs() as logs:
        await stage.run(alive=None, now=SECONDS + 1)
    assert [(e["event"], e["message"]) for e in logs] == [("question_dropped", question.message.message_id)]
    assert stage.bench.pending.of(CHANNEL) == NOTHING
    assert not stage.backlog.read


# Who waits


async def waits(stage: Stage, channel_id: int) -> bool:
    turn = asyncio.ensure_future(stage.gate.wait(channel_id, GUILD))
    for _ in range(5):
        await asyncio.sleep(0)
    is_waiting = not turn.done()
    turn.cancel()
    return is_waiting


async def test_from_the_start_all_wait_and_then_those_whose_channels_are_read(stage: Stage) -> None:
    assert not await waits(stage, CHANNEL)
    stage.catch_up.hold_back()
    assert await waits(stage, CHANNEL)
    assert await waits(stage, OTHER)
    stage.backlog.gate = asyncio.Event()
    stage.backlog.channels = {CHANNEL: [posted(1)]}
    running = asyncio.create_task(stage.run())
    assert await waits(stage, CHANNEL)
    assert not await waits(stage, OTHER)
    assert not stage.catch_up.beat()
    stage.backlog.gate.set()
    await running
    assert not await waits(stage, CHANNEL)
    assert stage.catch_up.beat()


@pytest.mark.parametrize("how", ["twice at once", "cut off"])
async def test_two_runs_at_once_or_one_that_is_cut_off_leave_nobody_waiting(stage: Stage, how: str) -> None:
    """Another connection was lost while what the first had missed was taken up; or the process ends."""
    stage.backlog.gate = asyncio.Event()
    stage.backlog.channels = {CHANNEL: [posted(1)]}
    stage.catch_up.hold_back()
    runs = [asyncio.create_task(stage.run()) for _ in range(2 if how == "twice at once" else 1)]
    assert await waits(stage, CHANNEL)
    if how == "cut off":
        runs[0].cancel()
    stage.backlog.gate.set()
    await asyncio.gather(*runs, return_exceptions=True)
    assert not await waits(stage, CHANNEL)
    assert not stage.gate.is_closed(CHANNEL, GUILD)


@pytest.mark.parametrize("is_found", [False, True])
async def test_what_is_said_in_a_session_that_begins_meanwhile_waits_for_what_was_missed_before(
    stage: Stage, *, is_found: bool
) -> None:
    """Which begins while channels are read, or while it is found out which."""
    stage.backlog.gate = asyncio.Event()
    stage.backlog.channels = {CHANNEL: [posted(1)]}
    stage.catch_up.hold_back()
    running = asyncio.create_task(stage.run())
    if is_found:
        assert not await waits(stage, OTHER)
    else:
        await asyncio.sleep(0)
        assert not stage.backlog.read
    stage.catch_up.hold_back()
    assert await waits(stage, OTHER)
    stage.backlog.gate.set()
    await running
    assert await waits(stage, CHANNEL)
    assert await waits(stage, OTHER)
    assert not stage.catch_up.beat()
    await stage.catch_up.run()
    assert not await waits(stage, CHANNEL)
    assert not await waits(stage, OTHER)


@pytest.mark.parametrize("outages", [1, 4])
async def test_while_the_store_is_away_the_new_wait_behind_what_was_begun_and_missed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, outages: int
) -> None:
    """At the beginning, or where each channel is read."""
    monkeypatch.setattr("persistence.unfinished_questions.RETRY_SECONDS", (0.0, 0.0))
    begun, missed = posted(1, number=1), posted(2)
    stage.backlog.channels = {CHANNEL: [begun, missed]}
    stage.snapshots.kept_are_away, stage.snapshots.outages = outages == 1, outages - 1
    await stage.left(Unfinished((stage.bench.question(stage.backlog.record(begun)),)))
    stage.catch_up.hold_back()
    running = asyncio.create_task(stage.run())
    new = asyncio.create_task(stage.gate.wait(CHANNEL, GUILD))
    with pytest.raises(StoreError):
        await running
    assert await waits(stage, CHANNEL)
    assert not new.done()
    stage.snapshots.kept_are_away = False
    await stage.catch_up.run()
    await stage.bench.idle()
    await new
    assert len(stage.bench.agent.requests) == 1
    assert stage.taken == [missed.id]


async def test_where_the_store_stays_away_the_new_are_taken_and_what_was_begun_is_finished_once(stage: Stage) -> None:
    begun = stage.bench.question(said(ANNA, "one"))
    stage.snapshots.kept_are_away = True
    await stage.left(Unfinished((begun,)))
    stage.catch_up.hold_back()
    for now in (20, 20 + HELD.total_seconds()):
        assert await waits(stage, CHANNEL)
        with pytest.raises(StoreError):
            await stage.run(now=now)
    assert not await waits(stage, CHANNEL)
    stage.bench.turns.submit(stage.bench.question(said(BEN, "two")))
    stage.snapshots.kept_are_away = False
    await stage.catch_up.run()
    await stage.bench.idle()
    assert [m.content for request in stage.bench.agent.requests for m in request.questions] == ["one", "two"]


# When it was last alive


async def test_it_is_alive_from_what_it_has_seen_and_not_before(stage: Stage) -> None:
    assert not stage.catch_up.beat()
    first = stage.by_shard.snapshot(0)  # of the very first process there is to be something before it sees anything
    assert first
    after_a_kill = Stage()
    after_a_kill.by_shard.restore(0, orjson.loads(first()))
    assert after_a_kill.catch_up.alive_at == NOON
    assert stage.catch_up.alive_at is None
    await stage.run(alive=None, now=20)
    assert stage.catch_up.alive_at == NOON + timedelta(seconds=20)
    stage.bench.clock.advance(5)
    assert stage.catch_up.beat()
    later = Stage()
    snapshot = stage.by_shard.snapshot(0)
    assert snapshot
    later.by_shard.restore(0, orjson.loads(snapshot()))
    assert later.catch_up.alive_at == NOON + timedelta(seconds=25)


@pytest.mark.parametrize("ending", ["killed", "told to stop", "another connection"])
async def test_what_was_still_to_be_taken_up_is_so_for_the_next_in_time_as_well(stage: Stage, ending: str) -> None:
    stage.backlog.channels = {CHANNEL: [posted(10)]}
    stage.backlog.gate = asyncio.Event()
    running = asyncio.create_task(stage.run(alive=0, now=200))
    assert await waits(stage, CHANNEL)
    assert not stage.catch_up.beat()
    if ending == "killed":
        running.cancel()
    elif ending == "told to stop":
        stage.gate.is_shutting_down = True
    else:
        stage.catch_up.hold_back()
    stage.backlog.gate.set()
    await asyncio.gather(running, return_exceptions=True)
    assert not stage.catch_up.beat()
    assert stage.taken == ([posted(10).id] if ending == "another connection" else [])
    later, snapshot = Stage(), stage.by_shard.snapshot(0)
    assert snapshot
    later.by_shard.restore(0, orjson.loads(snapshot()))
    later.backlog.channels = {CHANNEL: [posted(10), posted(300)]}
    later.bench.clock.now = NOON + timedelta(seconds=400)
    await later.catch_up.run()
    assert later.taken == [posted(10).id, posted(300).id]
    assert later.catch_up.beat()
    done = later.by_shard.snapshot(0)
    assert done
    assert isinstance(orjson.loads(done()), str)


async def test_however_often_it_dies_nothing_is_taken_up_that_is_more_than_twice_as_old(stage: Stage) -> None:
    stage.by_shard.restore(0, [NOON.isoformat(), NOON.isoformat()])
    stage.bench.clock.now = NOON + timedelta(seconds=2 * SECONDS + 50)
    stage.backlog.channels = {CHANNEL: [posted(40), posted(60)]}
    await stage.catch_up.run()
    assert stage.taken == [posted(60).id]


async def test_nonsense_is_refused(stage: Stage) -> None:
    values: list[Any] = ["x", [], {}, "2026-03-02T12:00:00"]
    for nonsense in values:
        with pytest.raises(ValueError):  # noqa: PT011 - pydantic's own text
            stage.by_shard.restore(0, nonsense)
    assert stage.catch_up.alive_at is None
