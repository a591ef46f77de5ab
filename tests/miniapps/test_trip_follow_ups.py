"""The trip planner asks later how it was, and a Yes asks what to note."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discord_io.split import length
from miniapps.base import FollowUp, MiniAppResponse
from miniapps.trip_planner import GONE, TripPlanner
from miniapps.trips import MAX_NOTES, follow_up
from miniapps.venues import Venue, clean
from state.prompts import AwaitingType
from tests.miniapps.support import chosen, resolved, said, told
from tests.support.people import BEN, CHANNEL

ODD_NAMES = [
    "Joe's Bar",
    "Bar: Nine",
    "Add & Co.",
    "the list",
    "note",
    "Shake `Shack`",
    "**bold** <@99> [link](http://x)",
    "two\nlines\u2028and \u202ethree",
    "half \ud83d",
    "寿司",
    "\U0001f363" * 100,
    "*" * 100,
    "x" * 400,
]


class Places:
    """A look-up that finds what the test says."""

    source = "the test"

    def __init__(self, *found: Venue) -> None:
        self.found = found

    async def find(self, query: str, limit: int) -> Sequence[Venue]:  # noqa: ARG002 - the test knows
        return self.found


async def noted(planner: TripPlanner, question: MiniAppResponse, text: str, kind: str) -> MiniAppResponse:
    return await planner.handle(resolved(question, text, BEN, type="metadata", metadata_type=kind, content=text))


async def taken_up(planner: TripPlanner, left: MiniAppResponse) -> MiniAppResponse:
    assert left.follow_up
    return await planner.handle(told(left.follow_up.query, about=left.follow_up.about))


# When one is left


async def test_a_venue_that_is_added_is_come_back_to_hours_later() -> None:
    planner = TripPlanner()
    which = await said(planner, "add shake shack")
    assert which.follow_up is None
    added = await planner.handle(chosen(which, 1))
    assert added.follow_up == FollowUp(
        "How was Shake Shack Shibuya? I can note it on your list.",
        "add a note for Shake Shack Shibuya",
        timedelta(hours=4),
        about="sample-1",
    )
    assert added.ask
    assert (await said(planner, "add shake shack shibuya")).follow_up is None


async def test_a_must_try_is_come_back_to_and_other_notes_are_not() -> None:
    planner = TripPlanner()
    added = await said(planner, "add tokyo tower")
    must = await noted(planner, added, "the shroom burger", "must_try")
    assert must.follow_up == FollowUp(
        "How was the shroom burger at Tokyo Tower Minato?",
        "add a note for Tokyo Tower Minato",
        timedelta(hours=4),
        about="sample-6",
    )
    said_later = await said(planner, "must try: the lift", soft_context=added.soft_context)
    assert said_later.follow_up
    assert said_later.follow_up.text == "How was the lift at Tokyo Tower Minato?"
    for kind in ("note", "vibe", "best_for"):
        assert (await noted(planner, added, "early", kind)).follow_up is None


# What a Yes leads to


@pytest.mark.parametrize("name", ODD_NAMES, ids=count())
async def test_a_yes_asks_what_to_note_about_that_venue_whatever_its_name(name: str) -> None:
    places = Places(Venue("other", clean(f"the other {name}")))
    planner = TripPlanner(places)
    await said(planner, "add the other")
    places.found = (Venue("this", clean(name), "Mitte"),)
    question = await taken_up(planner, await said(planner, "add this"))
    assert question.message.startswith("What shall I note about ")
    assert question.ask
    assert question.ask.awaiting_type is AwaitingType.METADATA
    assert question.ask.context["target_item_id"] == "this"
    assert (await noted(planner, question, "very cozy", "vibe")).message == "noted - vibe: very cozy!"
    stops = planner._trips[CHANNEL].stops
    assert [(stop.venue.id, len(stop.notes)) for stop in stops] == [("other", 0), ("this", 1)]


async def test_what_is_said_after_a_yes_is_not_come_back_to_again() -> None:
    planner = TripPlanner()
    question = await taken_up(planner, await said(planner, "add tokyo tower"))
    assert (await noted(planner, question, "the lift", "must_try")).follow_up is None
    asked = await said(planner, "add a note for tokyo tower")
    assert (await noted(planner, asked, "the stairs", "must_try")).follow_up is not None


async def test_a_yes_for_a_venue_that_was_removed_meanwhile_notes_nothing() -> None:
    planner = TripPlanner()
    added = await said(planner, "add tokyo tower")
    await said(planner, "remove tokyo tower")
    assert (await taken_up(planner, added)).message == GONE


# Whether it still stands


async def test_it_stands_while_the_venue_is_on_the_list_of_that_channel() -> None:
    planner = TripPlanner()
    await said(planner, "add tokyo tower")
    assert planner.still_stands(CHANNEL, "sample-6")
    assert not planner.still_stands(CHANNEL, "sample-7")
    assert not planner.still_stands(CHANNEL, "")
    assert not planner.still_stands("elsewhere", "sample-6")
    await said(planner, "remove tokyo tower")
    assert not planner.still_stands(CHANNEL, "sample-6")


async def test_it_does_not_stand_where_no_other_note_fits() -> None:
    planner = TripPlanner()
    added = await said(planner, "add tokyo tower")
    for _ in range(MAX_NOTES):
        assert planner.still_stands(CHANNEL, "sample-6")
        await noted(planner, added, "go early", "note")
    assert not planner.still_stands(CHANNEL, "sample-6")


async def test_it_does_not_stand_once_the_message_with_the_venues_name_was_deleted() -> None:
    planner = TripPlanner()
    question = await said(planner, "add the hideout to the trip", message_id=3)
    added = await planner.handle(resolved(question, "yes", BEN, type="confirmation", confirmed=True))
    assert added.follow_up
    assert planner.still_stands(CHANNEL, added.follow_up.about)
    planner.retract(CHANNEL, {3})
    assert not planner.still_stands(CHANNEL, added.follow_up.about)


# The line


@settings(max_examples=40)
@given(name=st.sampled_from(ODD_NAMES) | st.text(), content=st.sampled_from(ODD_NAMES) | st.text())
@example("Joe's Bar", "the shroom burger")
def test_the_line_is_one_and_fits_whatever_the_names(name: str, content: str) -> None:
    venue = Venue("this", name, name[::-1])
    for later in (follow_up(venue), follow_up(venue, content)):
        assert later.text.splitlines() == [later.text]
        assert length(later.text) <= 200
        assert later.text.startswith("How was ")


def test_names_are_shown_as_they_are() -> None:
    venue = Venue("this", "**bold** <@99>")
    assert follow_up(venue).text == "How was \\*\\*bold\\*\\* \\<@99\\>? I can note it on your list."
    assert follow_up(replace(venue, name="_x_", district="`y`"), "[z](http://z)").text == (
        "How was \\[z\\](http://z) at \\_x\\_ \\`y\\`?"
    )


# Through the router
