"""What bench.shards tells of a run: what became of each question, and how long each shard was with nobody."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import aiohttp
import orjson
import pytest

from bench.kill.findings import doubled, lost
from bench.kill.marked_model import answer
from bench.shards import __main__ as bench
from bench.shards.crowd import Crowd
from bench.shards.loopback import Loopback
from bench.shards.outages import Outages
from bench.shards.world import _read
from playground.model import Draft, Reference
from tests.playground.support import Wire

SHARDS = 4


@pytest.fixture
async def pg() -> AsyncIterator[Loopback]:
    async with Loopback(servers=8, shards=SHARDS, max_concurrency=SHARDS) as loopback:
        yield loopback


def say(pg: Loopback, asked: int, text: str) -> None:
    """The bot answers a message with this id."""
    channel = pg.world.channel(pg.world.find_message(asked).channel_id)
    pg.world.post(channel, pg.world.bot, Draft(content=text, type=19, reference=Reference(asked, channel.id)))


async def test_a_question_without_an_answer_is_lost_and_one_with_two_is_doubled() -> None:
    pg = Loopback(servers=8, shards=SHARDS, max_concurrency=1)
    crowd = Crowd(pg, Random(1), asked_share=0.0)
    for shard_id in range(SHARDS):
        crowd.ask_on(shard_id)
    once, twice, silent, never = (crowd.asked_by(mark) for mark in range(1, SHARDS + 1))
    say(pg, once, answer(1, [1], 2))
    say(pg, twice, answer(2, [2], 2))
    say(pg, twice, answer(3, [2], 2))
    evidence = crowd.evidence(followed=())
    assert [finding.id for finding in lost(evidence)] == [silent, never]
    assert [finding.id for finding in doubled(evidence)] == [twice]
    assert [finding.id for finding in lost(crowd.evidence((), failed=[silent]))] == [never]
    assert crowd.counted == {"sent": 4, "asked": 4, "answered": 2}
    assert len(crowd.first_texts) == 2


async def test_two_connections_of_a_shard_are_counted_but_of_a_process_that_stands_still(pg: Loopback) -> None:
    pg._gateway.max_concurrency = None
    outages = Outages(pg, lambda _: None)
    async with aiohttp.ClientSession() as http, Wire(pg, http) as first, Wire(pg, http) as second:
        await first.identify(shard=[2, SHARDS])
        outages.kill(is_still=True)
        await second.identify(shard=[2, SHARDS])
        assert outages.more_than_one == 0
        await first.close(1000)
        await pg.wait_for(lambda: pg.connected_shards == [2])
        async with Wire(pg, http) as third:
            await third.identify(shard=[2, SHARDS])
            assert outages.more_than_one == 1


async def test_what_a_log_says_of_questions_is_read_up_to_where_a_kill_came(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    lines = (
        {"event": "decided", "message": 1, "decision": "respond"},
        {"event": "decided", "message": 2, "decision": "silent"},
        {"event": "agent_failed", "messages": [3, 4]},
    )
    log.write_bytes(b"\n".join(map(orjson.dumps, lines)) + b'\n{"event":"agent_failed","messages":[5')
    assert _read([str(log)]) == ({1}, {3, 4})


async def test_a_shard_is_served_again_once_the_bot_says_something_there(pg: Loopback) -> None:
    asked: list[int] = []
    outages = Outages(pg, asked.append)
    async with aiohttp.ClientSession() as http:
        async with Wire(pg, http) as first:
            await first.identify(shard=[2, SHARDS])
            outages.kill()
        await pg.wait_for(lambda: not pg.connected_shards)
        assert list(outages.open) == [2]
        pg._gateway.max_concurrency = None  # nobody waits for its turn here
        async with Wire(pg, http) as second:
            await second.identify(shard=[2, SHARDS])
            assert (asked, list(outages.open)) == ([2], [2])
            for shard_id in (1, 2):
                assert outages.after_kills == []
                pg.typing(next(iter(pg.guilds_on(shard_id)[0].channels)), pg.bot_id)
            assert (len(outages.after_kills), outages.open) == (1, {})


@pytest.mark.slow
def test_one_process_that_is_killed_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    options = "--processes 1 --servers 30 --shards 1 --rate 20 --asked 0.1 --minutes 0.4 --kill-every 15"
    monkeypatch.setattr(sys, "argv", ["bench.shards", *options.split(), "--redis-restarts", "0", "--seed", "7"])
    assert bench.main() == 0
