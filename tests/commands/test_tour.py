"""commands/tour.py: /tour and the clicks on its card, over a loopback Discord."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

import delivery.clicks
from commands import Tours
from commands.answers import IN_THREAD
from commands.tour import NO_SUCH_STEP
from delivery.tour import CLOSING
from playground.interactions import Interaction
from playground.model import Message
from playground.server import Playground
from tests.commands.support import EPHEMERAL, Client, FakeGuide, answer
from tests.playground.support import point_discord_at

STEPS = 6
CALLBACKS = "/callback$"


def buttons(card: Message) -> dict[str, Any]:
    return {part["label"]: part for row in card.components for part in row["components"]}


def click(pg: Playground, card: Message, label: str) -> Interaction:
    return pg.click(card, pg.person("Ben"), buttons(card)[label]["custom_id"])


async def after(pg: Playground, card: Message, label: str) -> Message:
    """The same card, once it was clicked."""
    shown = await pg.reply_to(click(pg, card, label), timeout=10)
    assert (shown.id, shown.flags & EPHEMERAL) == (card.id, EPHEMERAL)
    return shown


def renamed(card: Message, what: str) -> None:
    """Its Next button names another step, as one from another version of the bot does."""
    buttons(card)["Next"]["custom_id"] = f"parley:tour:{what}"


async def test_it_leads_through_all_steps_and_back_and_ends(pg: Playground, guide: FakeGuide) -> None:
    card = await answer(pg, "tour")
    there = [card.content]
    for _ in range(STEPS - 1):
        card = await after(pg, card, "Next")
        there.append(card.content)
    assert [text.splitlines()[-1] for text in there] == [f"-# Step {n} of {STEPS}" for n in range(1, STEPS + 1)]
    back = [card.content]
    for _ in range(STEPS - 1):
        card = await after(pg, card, "Back")
        back.append(card.content)
    assert back == there[::-1]
    ended = await after(pg, card, "Done")
    assert (ended.content, ended.components) == (CLOSING, ())
    here = pg.channel("general")
    assert guide.told == [("began", here), *[("stepped", here)] * (2 * STEPS - 2), ("ended", here)]
    assert pg.messages(here) == []


async def test_there_is_no_way_back_from_the_first_step_nor_on_from_the_last(pg: Playground) -> None:
    card = await answer(pg, "tour")
    labels = list(buttons(card))
    assert labels == ["Back", "Next", "Done"]
    assert [label for label in labels if buttons(card)[label].get("disabled")] == ["Back"]
    card = await after(pg, card, "Next")
    assert not any(button.get("disabled") for button in buttons(card).values())
    for _ in range(STEPS - 2):
        card = await after(pg, card, "Next")
    assert [label for label in labels if buttons(card)[label].get("disabled")] == ["Next"]


async def test_it_can_be_done_with_at_any_step(pg: Playground, guide: FakeGuide) -> None:
    card = await after(pg, await answer(pg, "tour"), "Next")
    assert (await after(pg, card, "Done")).content == CLOSING
    assert [what for what, _ in guide.told] == ["began", "stepped", "ended"]


@pytest.mark.parametrize("step", ["6", "99", "100", "-1", "", "x", "1 ", "²", "9" * 60, "prompt:1"])
async def test_a_step_that_there_is_not_costs_one_sentence(pg: Playground, guide: FakeGuide, step: str) -> None:
    card = await answer(pg, "tour")
    renamed(card, step)
    told = await pg.reply_to(click(pg, card, "Next"))
    assert (told.content, told.flags & EPHEMERAL) == (NO_SUCH_STEP, EPHEMERAL)
    assert told.id != card.id
    assert [what for what, _ in guide.told] == ["began"]


async def test_a_card_from_before_a_restart_goes_on(
    pg: Playground,
    bot: Client,
    tours: Tours,
    guide: FakeGuide,
    of_tour: asyncio.Queue[bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    card = await answer(pg, "tour")
    await bot.close()
    point_discord_at(pg, monkeypatch)
    later = Client(tours, of_tour)
    running = asyncio.create_task(later.start(pg.token))
    await later.ready.wait()
    assert (await after(pg, card, "Next")).content.endswith(f"Step 2 of {STEPS}")
    await later.close()
    await running
    assert [what for what, _ in guide.told] == ["began", "stepped"]


async def test_the_library_keeps_nothing_of_it(pg: Playground, bot: Client) -> None:
    for _ in range(20):
        card = await answer(pg, "tour")
        await after(pg, card, "Next")
    store = bot._connection._view_store
    kept = [store._views, store._synced_message_views, store._dynamic_items]
    assert not any(kept)


@pytest.mark.usefixtures("_in_a_thread")
async def test_in_a_thread_it_says_that_it_takes_no_part_there(pg: Playground, guide: FakeGuide) -> None:
    assert (await answer(pg, "tour")).content == IN_THREAD
    assert guide.told == []


async def test_only_clicks_on_its_card_are_its_own(pg: Playground, of_tour: asyncio.Queue[bool]) -> None:
    card = await answer(pg, "tour")
    await after(pg, card, "Next")
    await after(pg, card, "Done")
    await answer(pg, "export")
    assert [await of_tour.get() for _ in range(4)] == [False, True, True, False]


@pytest.mark.parametrize("label", ["Next", "Done"])
@pytest.mark.parametrize("fault", [{"status": 404, "code": 10062}, {"status": 403}, {"drop": True}])
async def test_an_answer_that_discord_does_not_take_is_only_logged(
    pg: Playground, of_tour: asyncio.Queue[bool], fault: dict[str, Any], label: str
) -> None:
    card = await answer(pg, "tour")
    assert not await of_tour.get()
    pg.faults.add("POST", CALLBACKS, times=9, **fault)
    with capture_logs() as logged:
        click(pg, card, label)
        assert await of_tour.get()
    assert [entry["event"] for entry in logged] == ["click_unanswered"]


async def test_a_step_is_given_up_once_discord_would_not_take_it_any_more(
    pg: Playground, of_tour: asyncio.Queue[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery.clicks, "ANSWER_SECONDS", 0.02)
    card = await answer(pg, "tour")
    assert not await of_tour.get()
    never = asyncio.Event()
    pg.faults.add("POST", CALLBACKS, delay_event=never)
    with capture_logs() as logged:
        click(pg, card, "Next")
        async with asyncio.timeout(2):
            assert await of_tour.get()
    never.set()
    assert logged[0]["error"] == "TimeoutError"
