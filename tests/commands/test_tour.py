"""commands/tour.py: what /tour says of a channel, over a loopback Discord."""

from __future__ import annotations

from itertools import product

from commands.tour import tour_card
from discord_io.split import length
from miniapps.trip_planner import TripPlanner
from offers.proactive_offers import OffersStatus
from playground.server import Playground
from tests.commands.support import FakeOffers, answer, answer_in_thread


def card(bot_name: str = "Parley", days: int = 30, **status: bool | int) -> str:
    return tour_card(bot_name, OffersStatus(**status), retention_days=days)  # type: ignore[arg-type]


async def test_it_says_what_holds_in_the_channel_and_counts_as_a_talk(pg: Playground, offers: FakeOffers) -> None:
    offers.stands = OffersStatus(per_day=2)
    shown = await answer(pg, "tour")
    assert shown.content == tour_card("Parley", offers.stands, retention_days=30)
    assert offers.asked_of == pg.channel("general")
    assert offers.clicks == [pg.channel("general")]


async def test_in_a_thread_it_says_what_holds_in_its_channel(pg: Playground, offers: FakeOffers) -> None:
    await answer_in_thread(pg, "tour")
    assert offers.asked_of == pg.channel("general")
    assert offers.clicks == [pg.channel("a thread")]


def test_it_fits_into_one_message_whatever_holds() -> None:
    for may_speak, is_on, per_day in product([True, False], [True, False], [1, 1_000]):
        assert length(card("_" * 32, 1_000, may_speak=may_speak, is_on=is_on, per_day=per_day)) <= 2_000


def test_it_says_what_holds_and_names_the_commands() -> None:
    for shown, there, not_there in (
        (card(), "@Parley what is", "may not write"),
        (card(may_speak=False), "I may not write in this channel at the moment", "may offer help and"),
        (card("Dr_No*"), r"@Dr\_No\* what is", "Parley"),
        (card(), "at most 3 times a day", "/offers on"),
        (card(per_day=1), "at most once a day", "1 times"),
        (card(is_on=False), "/offers on", "/offers off"),
        (card(), "for 30 days", "for a day"),
        (card(days=1), "for a day", "1 days"),
    ):
        assert there in shown
        assert not_there not in shown
    assert all(f"/{name}" in card() for name in ("forget", "optout", "optin", "export", "why", "offers off"))


def test_its_examples_are_what_the_trip_planner_takes() -> None:
    examples = [
        line.removeprefix("> ").removeprefix("@Parley ") for line in card().splitlines() if line.startswith("> ")
    ]
    of_trips = examples[examples.index("start a trip called Tokyo 2024") :]
    assert len(of_trips) == 4
    assert all(TripPlanner().wants(example, {}) >= TripPlanner.threshold for example in of_trips)
