"""cluster/accounts.py: how many answers a person got in the last minute, of all processes; against a real Redis."""

from __future__ import annotations

from datetime import timedelta

import pytest

from state.limits import Cap, Limits, Refusal
from tests.cluster.test_accounts import Line, Process, Start, start, url  # noqa: F401 - two are fixtures
from tests.support.people import ANNA, BEN, CHANNEL


def limited(process: Process) -> Process:
    """It gives a person three answers a minute."""
    process.limits = Limits(turns_per_user_minute=3, daily_tokens=None, ledger=process.ledger, totals=process.accounts)
    return process


async def asks(process: Process, person: int = ANNA, times: int = 1) -> list[Refusal | None]:
    """Somebody asks so often; what comes of it is told the others at once, as the process has it."""
    came_of_it = []
    for _ in range(times):
        came_of_it.append(process.limits.admit(person, CHANNEL, explicit=True, now=process.clock()))
        await process.accounts.send()
    return came_of_it


async def test_the_answers_of_all_processes_count_and_the_refusal_says_when_asking_helps(start: Start) -> None:  # noqa: F811
    one, other = limited(start("off")), limited(start("off"))
    assert await asks(one, times=2) == [None, None]
    admitted, refused = await asks(other, times=2)
    assert admitted is None
    assert refused
    assert refused.cap is Cap.USER
    seconds = (refused.resets_at - other.clock()).total_seconds()
    assert seconds == pytest.approx(60, abs=1)
    one.seconds += 2
    await one.accounts.send()
    (refused,) = await asks(one)
    assert refused
    assert await asks(one, BEN) == await asks(other, BEN) == [None]


async def test_one_that_was_not_given_counts_nowhere_and_a_minute_ends_everywhere(start: Start) -> None:  # noqa: F811
    one, other = limited(start("off")), limited(start("off"))
    await asks(one, times=2)
    one.limits.give_back(ANNA)
    await one.accounts.send()
    assert await asks(other, times=2) == [None, None]
    (refused,) = await asks(other)
    assert refused
    other.seconds += 60
    other.clock.advance(60)
    assert await asks(other) == [None]
    assert not one.accounts.others_answers(ANNA)  # it has not looked since
    other.seconds += 60
    await other.accounts.send()
    assert not other.accounts._others
    assert not other.accounts._answered


async def test_while_redis_is_away_those_of_the_process_and_what_is_known_of_others_count_on(start: Start) -> None:  # noqa: F811
    one, other = limited(start("off")), limited(start("off"))
    await asks(one)
    await asks(other)
    line = Line(other)
    for _ in range(2):
        line.breaks = "before"
        await asks(other)
    other.clock.now += timedelta(seconds=1)
    assert other.limits.admit(ANNA, CHANNEL, explicit=True, now=other.clock())
    await other.accounts.send()
    one.seconds += 2
    await one.accounts.send()
    assert len(one.accounts.others_answers(ANNA)) == 2  # once each, though it was sent anew
