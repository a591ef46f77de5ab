"""delivery/tour.py: what the pages say, the buttons, and how clicks on them are read."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any, cast

import discord
import pytest

from delivery.split import length
from delivery.tour import TourFacts, TourPress, pages, read_tour_click, text_of, view_of
from miniapps.trip_commands import certainty
from miniapps.trip_planner import TripPlanner

FACTS = TourFacts("Parley", may_speak=True, offers_on=True, offers_per_day=3, can_plan_trips=True, retention_days=30)
ALL = [
    TourFacts("P" * 32, *flags, retention_days=1)
    for flags in product([True, False], [True, False], [1, 1_000], [True, False])
]
CLICK = discord.InteractionType.component


def said(facts: TourFacts) -> str:
    return "\n".join(page.text for page in pages(facts))


@pytest.mark.parametrize("facts", ALL)
def test_pages_are_always_as_many_and_short(facts: TourFacts) -> None:
    shown = pages(facts)
    assert [page.title for page in shown] == [page.title for page in pages(FACTS)]
    assert len(shown) == 6
    assert all(length(text_of(page, 0, 6)) < 800 for page in shown)


def test_a_page_says_where_in_the_tour_it_is() -> None:
    text = text_of(pages(FACTS)[1], 1, 6)
    assert text.startswith("**When I keep silent**\n")
    assert text.endswith("\n\n-# Step 2 of 6")


@pytest.mark.parametrize(
    ("facts", "there", "not_there"),
    [
        (FACTS, "@Parley what is", "may not write"),
        (replace(FACTS, may_speak=False), "In this channel I may not write at the moment", "may offer help and"),
        (replace(FACTS, bot_name="Dr_No*"), r"@Dr\_No\* what is", "Parley"),
        (FACTS, "at most 3 times a day", "/offers on"),
        (replace(FACTS, offers_per_day=1), "at most once a day", "1 times"),
        (replace(FACTS, offers_on=False), "/offers on", "/offers off"),
        (FACTS, "@Parley start a trip", "a trip called Paris"),
        (replace(FACTS, can_plan_trips=False), '"never mind"', "trip"),
        (FACTS, "for 30 days", "for a day"),
        (replace(FACTS, retention_days=1), "for a day", "1 days"),
    ],
)
def test_it_says_what_holds_in_the_channel(facts: TourFacts, there: str, not_there: str) -> None:
    assert there in said(facts)
    assert not_there not in said(facts)


@pytest.mark.parametrize("command", ["forget", "optout", "optin", "export", "why", "offers off"])
def test_it_names_the_commands(command: str) -> None:
    assert f"/{command}" in said(FACTS)


def test_its_examples_are_what_the_trip_planner_takes() -> None:
    examples = [line.removeprefix("> ").removeprefix("@Parley ") for line in pages(FACTS)[2].text.splitlines()]
    examples = examples[examples.index("start a trip called Tokyo 2024") :]
    assert len(examples) == 4
    assert all(certainty(example, {}) >= TripPlanner.threshold for example in examples)


async def test_custom_ids_differ_at_every_step() -> None:
    for step in range(6):
        ids = [part["custom_id"] for row in view_of(step, 6).to_components() for part in row["components"]]
        assert ids == [f"parley:tour:{step - 1}", f"parley:tour:{step + 1}", "parley:tour:done"]


def told(data: Any, kind: discord.InteractionType = CLICK) -> discord.Interaction[Any]:
    return cast("discord.Interaction[Any]", SimpleNamespace(type=kind, data=data))


@pytest.mark.parametrize(
    ("what", "read"), [("0", 0), ("5", 5), ("99", 99), ("done", TourPress.DONE), ("unknown", TourPress.UNKNOWN)]
)
def test_a_click_is_read_as_what_its_button_says(what: str, read: int | TourPress) -> None:
    assert read_tour_click(told({"custom_id": f"parley:tour:{what}"})) == read


@pytest.mark.parametrize("what", ["", "-1", "+1", "100", "9" * 5_000, "1.0", " 1", "1\n", "²", "٣", "Done", "done:1"])
def test_a_step_that_no_button_names_is_unknown(what: str) -> None:
    assert read_tour_click(told({"custom_id": f"parley:tour:{what}"})) is TourPress.UNKNOWN


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        {"name": "tour"},
        {"custom_id": None},
        {"custom_id": 1},
        {"custom_id": "1"},
        {"custom_id": "parley:tour"},
        {"custom_id": "parley:prompt:1:yes"},
        {"custom_id": "xparley:tour:1"},
    ],
)
def test_what_is_no_click_on_a_tour_is_not_read(data: Any) -> None:
    assert read_tour_click(told(data)) is None


@pytest.mark.parametrize("kind", [kind for kind in discord.InteractionType if kind is not CLICK])
def test_neither_is_what_is_no_click(kind: discord.InteractionType) -> None:
    assert read_tour_click(told({"custom_id": "parley:tour:1"}, kind)) is None
