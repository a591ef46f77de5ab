"""What several processes store in one Redis: each reads and writes what is of its shards, and none of it twice."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from itertools import count
from typing import Any

import pytest

from persistence.channel_guilds import GUILD_OF
from persistence.holders import Holder
from persistence.snapshots import Snapshots
from persistence.stored_state import SHARD_COUNT as COUNTED
from persistence.stored_state import Encode, StoredState, as_json
from shards import Shards
from state.consent import Consent, Forgotten
from state.message import Appended
from state.optout import OptOut
from storage.redis_store import RedisStore
from storage.store import Key, Row
from tests.support.people import BEN, said

SHARD_COUNT = 4
GUILDS = [(number << 22) + 7 for number in range(SHARD_COUNT)]  # by their shards
CHANNELS = [100 + number for number in range(SHARD_COUNT)]
DIRECT = 99


class Process(Holder):
    """Keeps what it is told, and how much it has counted."""

    def __init__(self, url: str, prefix: str, shards: Shards) -> None:
        self.shards = shards
        guilds = dict(zip(CHANNELS, GUILDS, strict=True)) | {DIRECT: 0}
        self.kept: dict[int, Any] = {}
        self.counted = 0
        self.alive: dict[int, list[Any]] = {}
        self.snapshots = Snapshots(
            lambda: RedisStore(url, prefix),
            Consent(OptOut(), Forgotten()),
            shards=shards,
            look_up_guild=guilds.get,
        )
        self.snapshots.register(self, of_channels="things")
        self.snapshots.register(self, of_guilds="settings")
        self.snapshots.register(Counted(self), of_process="counted")
        self.snapshots.register(Alive(self), of_shards="alive")

    def snapshot(self, channel_id: int) -> Encode | None:
        return as_json(self.kept.get(channel_id))

    def restore(self, channel_id: int, stored: Any) -> None:
        self.kept[channel_id] = stored

    def leave(self, channel_id: int) -> None: ...

    async def take(self, *shard_ids: int) -> StoredState:
        """Has these, too."""
        for shard_id in shard_ids:
            self.shards.add(shard_id)
        kept = await self.snapshots.load(None if self.shards.are_all else shard_ids)
        self.snapshots.restore_process(kept)
        for channel_id, by_kind in kept.channels.items():
            self.snapshots.restore(channel_id, by_kind)
        return kept

    def keep(self, channel_id: int, what: Any, kind: str = "things") -> None:
        self.kept[channel_id] = what
        self.snapshots.touch(kind, channel_id)

    def count(self, more: int) -> None:
        self.counted += more
        self.snapshots.touch("counted")


class Counted(Holder):
    def __init__(self, process: Process) -> None:
        self.process = process

    def snapshot(self, _: int) -> Encode | None:
        return as_json(self.process.counted)

    def restore(self, _: int, stored: int) -> None:
        self.process.counted += stored

    def leave(self, channel_id: int) -> None: ...


class Alive(Holder):
    def __init__(self, process: Process) -> None:
        self.process = process

    def snapshot(self, shard_id: int) -> Encode | None:
        return as_json(f"of {shard_id}")

    def restore(self, shard_id: int, stored: str) -> None:
        self.process.alive.setdefault(shard_id, []).append(stored)

    def leave(self, channel_id: int) -> None: ...


numbers = count()
Start = Callable[..., Process]
"""Gives a process with these shards; with none, one that has all."""


@pytest.fixture
async def start(redis_url: str) -> AsyncIterator[Start]:
    started: list[Process] = []
    prefix = f"shards{next(numbers)}"

    def begin(*, shard_count: int = SHARD_COUNT, alone: bool = False) -> Process:
        process = Process(redis_url, prefix, Shards() if alone else Shards(shard_count, ()))
        started.append(process)
        return process

    yield begin
    for process in started:
        await process.snapshots.close()


async def rows(process: Process, kind: str) -> list[int]:
    return [row.id for row in await process.snapshots.rows(kind)]


async def test_what_another_begins_to_keep_meanwhile_is_not_taken_for_a_direct_channels(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = start(), start()
    await first.take(1)
    read = RedisStore.read

    def read_while_the_other_writes(store: RedisStore, kind: str, *args: Any, **how: Any) -> list[Row]:
        rows = read(store, kind, *args, **how)
        if kind == GUILD_OF:
            store.write({Key(GUILD_OF, CHANNELS[1]): str(GUILDS[1]).encode(), Key("things", CHANNELS[1]): b'"of 1"'})
        return rows

    monkeypatch.setattr(RedisStore, "read", read_while_the_other_writes)
    assert (await second.take(0)).channels == {}
    assert (await second.take(1)).channels == {CHANNELS[1]: {"things": "of 1"}}


async def test_each_reads_what_is_of_its_shards_and_more_when_it_takes_more(start: Start) -> None:
    first = start()
    await first.take(0, 1, 2, 3)
    for guild, channel in zip(GUILDS, CHANNELS, strict=True):
        first.keep(channel, f"of {channel}")
        first.keep(guild, "set", "settings")
        first.snapshots.append(Appended(channel, guild, said(BEN, "hello")))
    first.keep(DIRECT, "direct")
    assert await first.snapshots.settled()

    second = start()
    kept = await second.take(1)
    assert kept.channels == {CHANNELS[1]: {"things": f"of {CHANNELS[1]}"}, GUILDS[1]: {"settings": "set"}}
    assert kept.transcripts == {CHANNELS[1]: GUILDS[1]}
    assert await second.snapshots.known_channels() == {CHANNELS[1]: GUILDS[1], GUILDS[1]: 0}
    kept = await second.take(0)
    assert set(kept.channels) == {CHANNELS[0], GUILDS[0], DIRECT}
    assert set(second.snapshots.channels) == {*CHANNELS[:2], *GUILDS[:2], DIRECT}
    assert [second.snapshots.guild_of(channel) for channel in CHANNELS[:2]] == GUILDS[:2]


async def test_what_a_process_without_shards_of_its_own_stored_is_shard_0s_but_settings(start: Start) -> None:
    alone = start(alone=True)
    await alone.take()
    for number in (0, 3):
        alone.keep(CHANNELS[number], "x")
        alone.keep(GUILDS[number], "set", "settings")
    assert await alone.snapshots.settled()
    assert await alone.snapshots.rows("guild_of") == []
    assert set((await start().take(0)).channels) == {CHANNELS[0], CHANNELS[3], GUILDS[0]}
    assert set((await start().take(3)).channels) == {GUILDS[3]}


async def test_what_tells_its_guild_itself_is_of_the_shard_of_that(start: Start) -> None:
    alone = start(alone=True)
    await alone.take()
    alone.keep(CHANNELS[3], {"guild_id": GUILDS[3], "made": 1})
    assert await alone.snapshots.settled()
    first, second = start(), start()
    assert not (await first.take(0)).channels
    assert set((await second.take(3)).channels) == {CHANNELS[3]}
    assert second.snapshots.guild_of(CHANNELS[3]) == GUILDS[3]
    second.keep(CHANNELS[3], {"guild_id": GUILDS[3], "made": 2})
    assert await second.snapshots.settled()
    assert {row.channel for row in second.snapshots._writer.store.read("guild_of")} == {CHANNELS[3]}


async def test_what_is_of_a_channel_goes_with_it(start: Start) -> None:
    process = start()
    await process.take(1)
    process.keep(CHANNELS[1], "x")
    assert await process.snapshots.settled()
    process.keep(CHANNELS[1], None)
    assert await process.snapshots.settled()
    assert [key.kind for key in RedisRows(process)] == [COUNTED]


async def test_what_is_of_a_shard_that_was_given_away_is_not_written_any_more(start: Start) -> None:
    first, second = start(), start()
    await first.take(1, 2)
    for number in (1, 2):
        first.keep(CHANNELS[number], "before")
    first.count(5)
    assert await first.snapshots.settled()
    give_away(first, 1)
    first.snapshots.flush()
    assert await first.snapshots.settled()
    await second.take(1)
    assert second.counted == 0  # it goes on with the shard that the first still has
    second.keep(CHANNELS[1], "of the second")
    assert await second.snapshots.settled()
    first.keep(CHANNELS[1], "late")
    first.snapshots.append(Appended(CHANNELS[1], GUILDS[1], said(BEN, "late")))
    first.keep(CHANNELS[2], "after")
    assert await first.snapshots.settled()
    third = start()
    await third.take(1, 2)
    assert third.kept == {CHANNELS[1]: "of the second", CHANNELS[2]: "after"}
    assert await third.snapshots.recent(CHANNELS[1], 0) == []
    assert third.counted == 5


async def test_each_shard_has_when_it_was_alive_and_a_new_one_what_all_others_have(start: Start) -> None:
    first = start()
    await first.take(0, 2)
    first.snapshots.touch("alive")
    assert await first.snapshots.settled()
    second = start()
    await second.take(2)
    await second.take(3)
    assert second.alive == {2: ["of 2"], 3: ["of 0", "of 2"]}
    assert await second.snapshots.settled()
    fewer = start(shard_count=2)
    await fewer.take(0)
    assert fewer.alive == {0: ["of 0", "of 2"]}
    assert await fewer.snapshots.settled()
    assert [id_ for id_ in await rows(fewer, "alive") if id_ % 2 == 0] == [0]


@pytest.mark.parametrize(("before", "after"), [(16, 8), (8, 12), (4, 3), (3, 4)])
async def test_where_there_are_more_or_fewer_shards_each_has_what_all_have_that_had_its_servers(
    start: Start, before: int, after: int
) -> None:
    first = start(shard_count=before)
    await first.take(*range(before))
    first.snapshots.touch("alive")
    assert await first.snapshots.settled()
    for ids in ([0], range(1, after)):  # as of two processes, one after the other
        later = start(shard_count=after)
        await later.take(*ids)
        for id_ in ids:
            had = {f"of {guild % before}" for guild in range(before * after) if guild % after == id_}
            assert had == set(later.alive[id_]) or (id_ >= before and had < set(later.alive[id_]))
        later.snapshots.touch("alive")
        assert await later.snapshots.settled()
    assert sorted(await rows(later, "alive")) == [*range(after)]
    again = start(shard_count=after)
    await again.take(*range(after))
    assert again.alive == {id_: [f"of {id_}"] for id_ in range(after)}


async def test_a_shard_that_is_new_has_what_was_stored_before_any_other_was_taken(start: Start) -> None:
    alone = start(alone=True)
    await alone.take()
    alone.snapshots.touch("alive")
    assert await alone.snapshots.settled()
    first = start()
    await first.take(1)
    assert await first.snapshots.settled()
    assert first.alive == {1: ["of 0"]}
    await first.take(0)
    first.snapshots.touch("alive")
    assert await first.snapshots.settled()
    again = start()
    await again.take(1, 3)
    assert again.alive == {1: ["of 1"], 3: ["of 0"]}
    assert await again.snapshots.settled()
    assert 7 not in await rows(again, "alive")


async def test_what_is_stored_of_a_shard_is_not_overwritten_before_it_is_taken_over(start: Start) -> None:
    first, second = start(), start()
    await first.take(0)
    first.snapshots.touch("alive")
    first.count(5)
    assert await first.snapshots.settled()
    second.shards.add(0)
    second.snapshots.touch("alive")
    second.count(1)
    assert await second.snapshots.settled()
    await second.take(0)
    second.count(1)
    assert await second.snapshots.settled()
    third = start()
    await third.take(0)
    assert (second.alive, third.counted) == ({0: ["of 0"]}, 7)


@pytest.mark.parametrize("seed", range(8))
async def test_whoever_dies_and_takes_over_nothing_that_was_counted_is_lost_or_doubled(start: Start, seed: int) -> None:
    chance, living, counted = random.Random(seed), [start()], 0
    free = list(range(SHARD_COUNT))
    for _ in range(40):
        match chance.choice(["take", "take", "count", "count", "start", "die", "give", "all"]):
            case "start":
                living.append(start())
            case "take" if free and living:
                shard_id = free.pop(chance.randrange(len(free)))
                await chance.choice(living).take(shard_id)
            case "count" if able := [each for each in living if each.shards.ids]:
                more = chance.randrange(1, 9)
                chance.choice(able).count(more)
                counted += more
            case "die" if living:  # as it is killed: what it had stored by then stays
                dead = living.pop(chance.randrange(len(living)))
                assert await dead.snapshots.settled()
                free += dead.shards.ids
            case "give" if able := [each for each in living if each.shards.ids]:
                giver = chance.choice(able)
                assert await giver.snapshots.settled()
                free.append(give_away(giver, chance.choice(giver.shards.ids)))
                giver.snapshots.flush()
                assert await giver.snapshots.settled()
                if not giver.shards.ids:
                    living.remove(giver)
            case _:
                continue
    for each in living:
        assert await each.snapshots.settled()
    alone = start(alone=True)
    await alone.take()
    assert alone.counted == counted
    assert await alone.snapshots.settled()
    assert await rows(alone, "counted") in ([0], [])


def give_away(process: Process, shard_id: int) -> int:
    del process.shards._ids[shard_id]  # type: ignore[union-attr]
    return shard_id


class RedisRows:
    def __init__(self, process: Process) -> None:
        self.store = process.snapshots._writer.store

    def __iter__(self) -> Any:
        return iter([Key(kind, row.channel, row.id) for kind in self.store.kinds() for row in self.store.read(kind)])
