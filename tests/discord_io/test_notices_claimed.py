"""discord_io/notices.py where several processes would post the same."""

from __future__ import annotations

import asyncio
from typing import Any

from activity import Activity
from discord_io.channel_wire import PostError, Problem
from discord_io.notices import Notices
from setting_values import budget_limits
from state.limits import Limits
from state.spending import NOBODY, Purpose, Spent
from tests.support.clock import NOON, FakeClock


class Posts:
    """What is posted; at first so many posts fail."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.fails = 0

    def open(self, _guild_id: int, _channel_id: int) -> Any:
        return self

    async def send(self, text: str, **_: object) -> None:
        if self.fails:
            self.fails -= 1
            raise PostError(Problem.UNREACHABLE, "no")
        self.texts.append(text)


class Claimed:
    """Claims by what they are of, with how long they hold."""

    def __init__(self) -> None:
        self.seconds: dict[str, int] = {}

    async def claim(self, what: str, seconds: int) -> bool:
        return what not in self.seconds and bool(self.seconds.setdefault(what, seconds))

    async def give_up(self, what: str) -> None:
        del self.seconds[what]


async def test_of_several_processes_one_posts_a_notice_and_another_where_that_fails() -> None:
    posts, claimed, clock = Posts(), Claimed(), FakeClock()
    limits = Limits(turns_per_user_minute=9, daily_tokens=None, budgets=budget_limits("100 tokens a day"))
    limits.spend(Spent(tokens_in=90), NOON)
    processes = [Notices(1, posts, limits, Activity(clock), lambda: None, claimed) for _ in range(3)]
    keeping = [asyncio.create_task(process.keep()) for process in processes]
    posts.fails = 1
    for process in processes:
        process.called(NOBODY, Purpose.ANSWER, Spent())
        for _ in range(5):
            await asyncio.sleep(0)
    assert [text.split(".")[0] for text in posts.texts] == ["**A budget is nearly spent"]
    assert claimed.seconds == {"A budget is nearly spent:100 tokens a day:0": 12 * 3_600}
    for task in keeping:
        task.cancel()
    await asyncio.gather(*keeping, return_exceptions=True)
