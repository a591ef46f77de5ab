"""The gate: nobody overtakes those who wait at it."""

from __future__ import annotations

import asyncio

from turns.gate import Gate

CHANNEL, GUILD, SHARD = 7, 1, 0


async def test_what_comes_as_the_gate_opens_does_not_overtake_what_waits() -> None:
    gate, passed = Gate(), list[int]()

    async def come(number: int) -> None:
        if gate.is_queued(CHANNEL, GUILD):
            await gate.wait(CHANNEL, GUILD)
        passed.append(number)

    gate.close(SHARD)
    waiting = [asyncio.create_task(come(number)) for number in (1, 2, 3)]
    await asyncio.sleep(0)  # they have come
    gate.open(SHARD)
    await come(4)
    await asyncio.gather(*waiting)
    assert passed == [1, 2, 3, 4]
    assert not gate.is_queued(CHANNEL, GUILD)  # so that later ones go through at once
