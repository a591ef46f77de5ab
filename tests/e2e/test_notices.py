"""NOTICE_CHANNEL: what its owner is told of a bot, and how often."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from decision import Reason
from playground.model import Message
from tests.e2e.test_place_settings import set_guild
from tests.support.clock import FakeClock
from tests.support.lives import life, open_stage
from tests.support.scene import Scene
from tests.support.stub_model import Reply, StubModel

MINUTE, HOUR, DAY = 60, 3_600, 86_400


@pytest.fixture
async def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def stage(stub: StubModel, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Scene]:
    async with open_stage(stub, tmp_path / "state", clock=clock) as opened:
        yield opened


@asynccontextmanager
async def noticing(stage: Scene, **settings: object) -> AsyncIterator[None]:
    async with life(stage, notice_channel=stage.pg.channel("help"), **settings):
        yield


async def notices(stage: Scene, count: int) -> list[Message]:
    """As many as there are to be."""
    return await stage.until(lambda: found if len(found := stage.said("help")) == count else [])


async def fails(stage: Scene) -> None:
    stage.stub.replies.append(Reply(status=401))
    await stage.ask("Ben", "and now?")


async def test_a_budget_is_told_at_four_fifths_and_when_it_is_spent(stage: Scene, clock: FakeClock) -> None:
    async with noticing(stage, budgets="1000 tokens a day", guild_tokens=0):
        await stage.ask("Ada", "hello")
        stage.stub.replies.append(Reply("Much.", tokens=820))
        await stage.ask("Ada", "tell me all")
        (near,) = await notices(stage, 1)
        assert near.content.startswith(
            "**A budget is nearly spent.** Four fifths of 1,000 tokens a day for everybody together are used, "
            "and I answer only those who call me. It is renewed <t:"
        )
        assert not near.mentions
        clock.advance(2 * HOUR)
        stage.stub.replies.append(Reply("More.", tokens=400))
        await stage.ask("Ada", "and the rest?")
        _, spent = await notices(stage, 2)
        assert spent.content.startswith("**A budget is spent.** All of 1,000 tokens a day for everybody together")
        clock.advance(DAY)
        stage.stub.replies.append(Reply("Anew.", tokens=900))
        await stage.ask("Ada", "and today?")
        assert (await notices(stage, 3))[-1].content.startswith("**A budget is nearly spent.**")


async def test_a_model_that_fails_for_five_minutes_is_told_once_an_hour(stage: Scene, clock: FakeClock) -> None:
    async with noticing(stage):
        await fails(stage)
        clock.advance(4 * MINUTE)
        await stage.ask("Ada", "hello")  # which is answered
        clock.advance(4 * MINUTE)
        await fails(stage)
        assert not stage.said("help")
        for minutes in (6, 6, 60):
            clock.advance(minutes * MINUTE)
            await fails(stage)
        first, second = await notices(stage, 2)
        assert first.content == (
            "**The model fails.** No question was answered for 6 minutes. The model's provider refused the key or the "
            "model's name: check MODEL and its key. `python bot.py doctor` asks it, and says more."
        )
        assert "for 72 minutes" in second.content


async def test_a_permission_that_is_lost_where_it_answers_is_told(stage: Scene) -> None:
    async with noticing(stage):
        general, random = stage.pg.channel("general"), stage.pg.channel("random")
        stage.pg.deny(random, "send_messages")  # where it has never answered
        assert (
            await stage.decision(stage.mention("Ada", "hello", channel="random"))
        ).reason is Reason.MISSING_PERMISSION
        await stage.ask("Ada", "hello")
        stage.pg.deny(general, "send_messages")
        for _ in range(2):
            asked = stage.mention("Ada", "hello?")
            assert (await stage.decision(asked)).reason is Reason.MISSING_PERMISSION
        (notice,) = await notices(stage, 1)
        assert notice.content == (
            "**A permission is missing.** Discord does not let the bot post in this channel: give it View Channel and "
            f"Send Messages. It is about <#{general}>."
        )


async def test_of_servers_budgets_only_the_owners_are_told(stage: Scene) -> None:
    async with noticing(stage, budgets="guild 100 tokens a day", guild_tokens=0):
        set_guild(stage, budget="14 tokens a day")
        await stage.ask("Ada", "hello")
        set_guild(stage, budget=None)
        stage.stub.replies.append(Reply("Much.", tokens=90))
        await stage.ask("Ada", "tell me all")
        (notice,) = await notices(stage, 1)
        where = f"the server of <#{stage.pg.channel('general')}>"
        assert f"All of 100 tokens a day for {where} is used, and I answer nobody there." in notice.content


async def test_a_restart_repeats_none(stage: Scene, clock: FakeClock) -> None:
    for hours in (0, 0, 2):  # also later than in an hour, as long as the budget is the same
        clock.advance(hours * HOUR)
        async with noticing(stage, budgets="10000 tokens a day", guild_tokens=0):
            stage.stub.replies.append(Reply("Much.", tokens=8_100 if len(stage.said("help")) == 0 else 10))
            await stage.ask("Ada", "tell me all")
            await notices(stage, 1)
    assert len(stage.said("help")) == 1


async def test_a_notice_that_discord_did_not_take_is_posted_an_hour_later(stage: Scene, clock: FakeClock) -> None:
    async with noticing(stage, budgets="10000 tokens a day", guild_tokens=0):
        stage.pg.deny(stage.pg.channel("help"), "send_messages")
        stage.stub.replies.append(Reply("Much.", tokens=8_100))
        await stage.ask("Ada", "tell me all")
        await stage.until(lambda: stage.journal.find("notice_not_posted"))
        stage.pg.allow(stage.pg.channel("help"), "send_messages")
        await stage.ask("Ada", "and now?")
        clock.advance(HOUR)
        assert not stage.said("help")
        await stage.ask("Ada", "and later?")
        await notices(stage, 1)


async def test_a_channel_that_is_gone_costs_one_line(stage: Scene) -> None:
    async with noticing(stage, budgets="100 tokens a day", guild_tokens=0):
        stage.pg.delete_channel(stage.pg.channel("help"))
        stage.stub.replies.append(Reply("Much.", tokens=90))
        await stage.ask("Ada", "tell me all")
        (line,) = await stage.until(lambda: stage.journal.find("notice_not_posted"))
        assert line["problem"] == "gone"
        assert (await stage.ask("Ada", "are you there?")).content
