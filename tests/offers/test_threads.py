"""Offers in threads: on as in their channel, within its cap, and kept no longer than they matter."""

from __future__ import annotations

from datetime import timedelta

from offers.offer_limits import OfferLimits
from tests.support.offers import Desk
from tests.support.people import ANNA, CHANNEL, GUILD, said

THREADS = (CHANNEL + 1, CHANNEL + 2, CHANNEL + 3)


async def opened(desk: Desk, thread: int) -> bool:
    """Anna opens a post, nobody answers. Returns whether it is heard."""
    if not desk.proactive_offers.follows(thread, GUILD, CHANNEL, is_on=desk.proactive_offers.listens(CHANNEL)):
        return False
    desk.proactive_offers.heard(thread, said(ANNA, "the printer smokes", desk.clock(), message_id=thread))
    await desk.wait(90)
    return True


async def test_the_offers_in_threads_are_among_the_offers_of_their_channel() -> None:
    desk = Desk(OfferLimits(600, 10, per_day=2))
    assert not await opened(desk, THREADS[0])
    await desk.on()
    assert [await opened(desk, thread) for thread in THREADS] == [True] * 3
    assert [len(desk.open(GUILD, thread).offered) for thread in THREADS] == [1, 1, 0]
    assert desk.proactive_offers.status(CHANNEL).made_today == 2


async def test_off_in_a_thread_is_off_in_its_channel_and_all_its_threads() -> None:
    desk = Desk()
    await desk.on()
    for thread in THREADS[:2]:
        await opened(desk, thread)
    desk.proactive_offers.switch_off(THREADS[0])
    assert not any(desk.proactive_offers.listens(place) for place in (CHANNEL, *THREADS))
    assert not await opened(desk, THREADS[2])


async def test_of_a_channel_that_is_gone_no_thread_is_kept() -> None:
    desk = Desk()
    await desk.on()
    assert await opened(desk, THREADS[0])
    assert desk.open(GUILD, THREADS[0]).offered
    desk.proactive_offers.leave(CHANNEL)
    assert (len(desk.offer_channels), desk.disk) == (0, {})


async def test_of_a_thread_in_which_nothing_is_said_nothing_is_kept() -> None:
    desk = Desk()
    await desk.on()
    for thread in THREADS:
        await opened(desk, thread)
    desk.offer_channels.open(CHANNEL).made.clear()
    for _ in range(9 * 24):
        await desk.wait(timedelta(hours=1).total_seconds())
    assert (len(desk.offer_channels), [*desk.disk]) == (1, [CHANNEL])
