"""miniapps/trip_planner.py: the whole flow, at the level of the mini-app."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from miniapps.base import MiniAppResponse
from miniapps.trip_planner import ASK_NAME, EMPTY, LOST, MAX_CHOICES, MAX_TRIPS, TripPlanner
from miniapps.trips import MAX_NOTE, MAX_NOTES, MAX_STOPS
from miniapps.venues import Venue, VenueProblem
from state.prompts import AwaitingType
from tests.miniapps.support import chosen, resolved, said, told
from tests.support.people import ANNA, BEN, CHANNEL

WHICH_ONE = "Which one?\n1. Shibuya\n2. Shinjuku\n3. Harajuku"


@pytest.fixture
def planner() -> TripPlanner:
    return TripPlanner()


class Places:
    """A look-up that finds what the test says."""

    source = "the test"

    def __init__(self, found: Sequence[Venue] | VenueProblem = ()) -> None:
        self.found = found
        self.asked: list[tuple[str, int]] = []

    async def find(self, query: str, limit: int) -> Sequence[Venue] | VenueProblem:
        self.asked.append((query, limit))
        return self.found


async def answered(planner: TripPlanner, question: MiniAppResponse, *, yes: bool) -> MiniAppResponse:
    return await planner.handle(resolved(question, "yes" if yes else "no", type="confirmation", confirmed=yes))


async def noted(planner: TripPlanner, added: MiniAppResponse, text: str, kind: str, content: str) -> MiniAppResponse:
    assert added.ask
    target = added.ask.context["target_item_id"]
    reply = resolved(added, text, type="metadata", metadata_type=kind, content=content, target_item_id=target)
    return await planner.handle(reply)


async def listed(planner: TripPlanner) -> list[str]:
    """The list's own lines: the first is the trip's name, the last one says where venues are from."""
    return (await said(planner, "show our trip")).message.splitlines()[:-1]


# The document's flows


async def test_the_documents_flow_of_a_choice_a_venue_and_a_note(planner: TripPlanner) -> None:
    which = await said(planner, "Shake Shack")
    assert which.message == WHICH_ONE
    assert which.ask
    assert which.ask.awaiting_type is AwaitingType.SELECTION
    assert which.ask.context == {"original_query": "Shake Shack", "selection_type": "venue"}
    assert which.ask.source_handler == "trip_planner._add_single_venue"
    assert [(option["name"], option["district"]) for option in which.ask.options if isinstance(option, dict)] == [
        ("Shake Shack", "Shibuya"),
        ("Shake Shack", "Shinjuku"),
        ("Shake Shack", "Harajuku"),
    ]
    assert which.ask.labels == ("Shake Shack (Shibuya)", "Shake Shack (Shinjuku)", "Shake Shack (Harajuku)")

    added = await planner.handle(chosen(which, 1, "in Shibuya"))
    assert added.message == "Added Shake Shack Shibuya! ✓"
    assert added.ask
    assert added.ask.awaiting_type is AwaitingType.METADATA
    assert added.ask.source_handler == "trip_planner._finalize_venue_add"
    item = {"target_item_id": "sample-1", "target_item_name": "Shake Shack Shibuya"}
    assert added.ask.context == item
    last = {"last_item_id": "sample-1", "last_item_name": "Shake Shack Shibuya"}
    assert added.soft_context == {"last_action": "added_venue", **last}

    note = await noted(planner, added, "get the shroom burger", "must_try", "shroom burger")
    assert note.message == "noted - must try the shroom burger!"
    assert note.ask is None
    assert note.soft_context == {"last_action": "added_note", **last}
    assert await listed(planner) == [
        "**Trip** (1 venue)",
        "1. Shake Shack Shibuya, Tokyo (added by Anna)",
        "   - must try the shroom burger",
    ]


async def test_the_documents_flow_that_is_called_off_adds_nothing(planner: TripPlanner) -> None:
    which = await said(planner, "add shake shack")
    assert which.message == WHICH_ONE
    assert len(planner) == 0


# The trip


async def test_a_trip_is_asked_for_its_name(planner: TripPlanner) -> None:
    question = await said(planner, "start a trip")
    assert question.message == ASK_NAME == "What's your trip name?"
    assert question.ask
    assert question.ask.awaiting_type is AwaitingType.INPUT
    created = await planner.handle(resolved(question, "Tokyo Trip 2024", type="input", content="Tokyo Trip 2024"))
    assert created.message.startswith("Created Tokyo Trip 2024! ✓")
    assert "the small sample of places that I come with" in created.message
    assert created.soft_context == {"last_action": "created_trip"}
    assert (await said(planner, "show our trip")).message == f"**Tokyo Trip 2024**\n{EMPTY}"


@pytest.mark.parametrize("text", ["create a trip called Tokyo 2024", "plan a trip to Tokyo 2024"])
async def test_a_trip_whose_name_is_given_is_created_at_once(planner: TripPlanner, text: str) -> None:
    assert (await said(planner, text)).message.startswith("Created Tokyo 2024! ✓")


async def test_a_name_without_anything_visible_is_asked_for_again(planner: TripPlanner) -> None:
    question = await said(planner, "new trip")
    again = await planner.handle(resolved(question, "\u200b", type="input", content="\u200b"))
    assert again.message == ASK_NAME
    assert again.ask == question.ask


async def test_a_list_without_a_name_takes_the_name_that_comes_later(planner: TripPlanner) -> None:
    await said(planner, "add tokyo tower")
    assert "keeps the 1 venue" in (await said(planner, "create a trip called Tokyo")).message
    assert (await listed(planner))[0] == "**Tokyo** (1 venue)"


async def test_a_new_trip_drops_a_named_one_only_once_confirmed(planner: TripPlanner) -> None:
    await said(planner, "create a trip called Tokyo")
    await said(planner, "add tokyo tower")
    question = await said(planner, "create a trip called Paris")
    assert question.message == "Your trip Tokyo has 1 venue. Drop it and start a new one?"
    assert question.ask
    assert question.ask.awaiting_type is AwaitingType.CONFIRMATION
    await answered(planner, question, yes=False)
    assert (await listed(planner))[0] == "**Tokyo** (1 venue)"
    assert (await answered(planner, question, yes=True)).message.startswith("Created Paris! ✓")
    assert (await said(planner, "show our trip")).message == f"**Paris**\n{EMPTY}"


async def test_a_trip_is_renamed_at_once_or_by_asking(planner: TripPlanner) -> None:
    assert (await said(planner, "rename the trip to Spring")).message == "Your trip is called Spring now. ✓"
    question = await said(planner, "rename the trip")
    assert question.message == ASK_NAME
    renamed = await planner.handle(resolved(question, "Autumn", type="input", content="Autumn"))
    assert renamed.message == "Your trip is called Autumn now. ✓"


async def test_each_channel_has_its_own_trip_and_all_who_are_there_share_it(planner: TripPlanner) -> None:
    await said(planner, "add tokyo tower", ANNA)
    await said(planner, "add eiffel tower", BEN)
    await said(planner, "add hyde park", chat_guid="elsewhere")
    assert await listed(planner) == [
        "**Trip** (2 venues)",
        "1. Tokyo Tower Minato, Tokyo (added by Anna)",
        "2. Eiffel Tower Champ de Mars, Paris (added by Ben)",
    ]


# Adding


async def test_the_look_up_is_asked_for_the_bare_name() -> None:
    places = Places([Venue("1", "Blue Bottle", "Kiyosumi")])
    added = await said(TripPlanner(places), "<@1> please add Blue  Bottle to our trip!")
    assert places.asked == [("Blue Bottle", MAX_CHOICES)]
    assert added.message == "Added Blue Bottle Kiyosumi! ✓"


async def test_venues_of_several_names_are_listed_with_name_and_city(planner: TripPlanner) -> None:
    which = await said(planner, "add tower")
    assert which.message == (
        "Which one?\n1. Tokyo Tower Minato, Tokyo\n2. Eiffel Tower Champ de Mars, Paris\n"
        "3. Tower Bridge Southwark, London"
    )
    assert (await planner.handle(chosen(which, 3))).message == "Added Tower Bridge Southwark! ✓"


async def test_what_is_on_the_list_already_is_not_added_twice(planner: TripPlanner) -> None:
    await said(planner, "add tokyo tower")
    again = await said(planner, "add tokyo tower")
    assert again.message == "Tokyo Tower Minato is on the list already."
    assert again.ask is None
    assert again.soft_context["last_item_id"] == "sample-6"
    assert len(await listed(planner)) == 2


async def test_a_venue_that_nobody_knows_is_added_by_its_name_once_confirmed(planner: TripPlanner) -> None:
    question = await said(planner, "add Joe's Bar")
    assert question.message == (
        "I cannot find Joe's Bar in the small sample of places that I come with. Shall I add it by name only?"
    )
    assert question.ask
    assert question.ask.awaiting_type is AwaitingType.CONFIRMATION
    assert (await answered(planner, question, yes=False)).message == "Okay, everything stays as it is."
    assert len(planner) == 0
    added = await answered(planner, question, yes=True)
    assert added.message == "Added Joe's Bar! ✓"
    assert added.ask
    assert added.ask.awaiting_type is AwaitingType.METADATA
    assert (await said(planner, "add tokyo tower")).message == "Added Tokyo Tower Minato! ✓"
    assert "1. Joe's Bar (added by Anna)" in await listed(planner)


async def test_where_the_look_up_fails_the_name_alone_is_offered() -> None:
    question = await said(TripPlanner(Places(VenueProblem.UNREACHABLE)), "add shake shack")
    assert question.message == ("The place search cannot be reached right now. Shall I add it by name only?")


async def test_a_full_list_takes_no_more() -> None:
    places = Places()
    planner = TripPlanner(places)
    for number in range(MAX_STOPS + 1):
        places.found = [Venue(str(number), f"Place {number}")]
        last = await said(planner, f"add place {number}")
    assert last.message == "The list has 100 venues, which is the most I keep. Remove one first."
    assert last.ask is None
    shown = (await said(planner, "show our trip")).message
    assert len(shown) < 4_000
    assert "more\n" in shown or "100. Place 99" in shown
    assert "100. Place 99" in (await said(planner, "export our trip")).message


# Notes


@pytest.mark.parametrize(
    ("text", "kind", "content", "reply"),
    [
        ("get the shroom burger", "must_try", "shroom burger", "noted - must try the shroom burger!"),
        ("try ramen", "must_try", "ramen", "noted - must try ramen!"),
        ("it's very cozy!", "vibe", "very cozy!", "noted - vibe: very cozy!"),
        ("great for families.", "best_for", "families.", "noted - best for families!"),
        ("closes at nine", "note", "closes at nine", "noted - closes at nine!"),
        ("ask for *Ben* @everyone", "note", "ask for *Ben* @everyone", "noted - ask for \\*Ben\\* @everyone!"),
    ],
)
async def test_a_note_is_said_back(planner: TripPlanner, text: str, kind: str, content: str, reply: str) -> None:
    added = await said(planner, "add tokyo tower")
    assert (await noted(planner, added, text, kind, content)).message == reply


async def test_a_later_note_goes_to_the_last_venue_or_to_the_one_that_is_named(planner: TripPlanner) -> None:
    await said(planner, "add tokyo tower")
    added = await said(planner, "add eiffel tower")
    soft = added.soft_context
    note = await said(planner, "add a tip: go at night", soft_context=soft)
    assert note.message == "noted - go at night!"
    await said(planner, "must try: the lift", soft_context=note.soft_context)
    await said(planner, "add a note for Tokyo Tower: closes at nine", soft_context=soft)
    assert await listed(planner) == [
        "**Trip** (2 venues)",
        "1. Tokyo Tower Minato, Tokyo (added by Anna)",
        "   - closes at nine",
        "2. Eiffel Tower Champ de Mars, Paris (added by Anna)",
        "   - go at night",
        "   - must try the lift",
    ]


async def test_a_tip_without_words_is_asked_for(planner: TripPlanner) -> None:
    added = await said(planner, "add tokyo tower")
    question = await said(planner, "add a tip", soft_context=added.soft_context)
    assert question.message == "What shall I note about Tokyo Tower Minato?"
    assert (await noted(planner, question, "go early", "note", "go early")).message == "noted - go early!"


@pytest.mark.parametrize("text", ["add a tip: go early", "add a tip for the moon: go early", "add a tip for tower: go"])
async def test_a_note_that_could_be_about_anything_is_asked_back(planner: TripPlanner, text: str) -> None:
    await said(planner, "add tokyo tower")
    await said(planner, "add eiffel tower")
    assert (await said(planner, text)).message.startswith("For which venue?")


async def test_a_note_for_a_venue_that_was_removed_meanwhile_is_declined(planner: TripPlanner) -> None:
    added = await said(planner, "add tokyo tower")
    await said(planner, "remove tokyo tower")
    note = await noted(planner, added, "go early", "note", "go early")
    assert note.message == "That venue is no longer on the list, so I noted nothing."


async def test_notes_are_bounded_in_number_and_length(planner: TripPlanner) -> None:
    added = await said(planner, "add tokyo tower")
    long = (await noted(planner, added, "x" * 900, "note", "x" * 900)).message
    assert len(long) < MAX_NOTE + 20
    for number in range(MAX_NOTES - 1):
        await noted(planner, added, f"tip {number}", "note", f"tip {number}")
    over = await noted(planner, added, "one more", "note", "one more")
    assert over.message == "There are 20 notes on Tokyo Tower Minato already, which is the most I keep."
    blank = await noted(planner, added, "!", "note", "!")
    assert blank.message == "There is nothing in that for me to note."


# Removing


@pytest.mark.parametrize(
    "text", ["remove tokyo tower", "remove number 1", "remove the first one", "remove tokio tower"]
)
async def test_a_venue_is_removed_by_name_number_or_position(planner: TripPlanner, text: str) -> None:
    await said(planner, "add tokyo tower")
    added = await said(planner, "add hyde park")
    removed = await said(planner, text, soft_context=added.soft_context)
    assert removed.message == "Removed Tokyo Tower Minato. ✓"
    assert removed.soft_context == {**added.soft_context, "last_action": "removed_venue"}
    assert await listed(planner) == ["**Trip** (1 venue)", "1. Hyde Park Westminster, London (added by Anna)"]


async def test_of_several_the_one_to_remove_is_asked_for(planner: TripPlanner) -> None:
    which = await said(planner, "add shake shack")
    for number in (1, 2):
        await planner.handle(chosen(which, number))
    question = await said(planner, "remove shake shack")
    assert question.message == "Which one?\n1. Shibuya\n2. Shinjuku"
    assert question.ask
    assert question.ask.context == {"original_query": "shake shack", "selection_type": "removal"}
    removed = await planner.handle(chosen(question, 2))
    assert removed.message == "Removed Shake Shack Shinjuku. ✓"
    assert (await planner.handle(chosen(question, 2))).message == "That venue is no longer on the list."


@pytest.mark.parametrize("text", ["remove number 7", "remove the moon", "remove hyde park"])
async def test_what_is_not_on_the_list_is_not_removed(planner: TripPlanner, text: str) -> None:
    await said(planner, "add tokyo tower")
    assert "on the list, which has 1 venue." in (await said(planner, text)).message
    assert len(await listed(planner)) == 2


async def test_all_venues_are_deleted_once_confirmed(planner: TripPlanner) -> None:
    await said(planner, "add tokyo tower")
    question = await said(planner, "delete all venues")
    assert question.message == "Delete all venues?"
    assert question.ask
    assert question.ask.awaiting_type is AwaitingType.CONFIRMATION
    await answered(planner, question, yes=False)
    assert len(await listed(planner)) == 2
    assert (await answered(planner, question, yes=True)).message == "Deleted 1 venue. ✓"
    assert (await said(planner, "show our trip")).message == EMPTY
    again = await answered(planner, question, yes=True)
    assert again.message == "Those venues are no longer on the list, so there was nothing to delete."


async def test_what_was_added_after_the_question_is_not_deleted(planner: TripPlanner) -> None:
    await said(planner, "add tokyo tower")
    question = await said(planner, "delete all venues")
    await said(planner, "add hyde park", BEN)
    deleted = await answered(planner, question, yes=True)
    assert deleted.message == "Deleted 1 venue. ✓ I kept 1 venue, added since I asked."
    assert (await listed(planner))[1:] == ["1. Hyde Park Westminster, London (added by Ben)"]


@pytest.mark.parametrize("text", ["show our trip", "export the trip", "delete all venues", "remove tokyo tower"])
async def test_an_empty_list_says_so(planner: TripPlanner, text: str) -> None:
    response = await said(planner, text)
    assert response.message == EMPTY
    assert response.ask is None


# Export and hostile words


async def test_a_trip_is_exported_as_text_that_can_be_copied(planner: TripPlanner) -> None:
    name = "*Tokyo* ```2024```"
    await planner.handle(resolved(await said(planner, "new trip"), name, type="input", content=name))
    added = await said(planner, "add tokyo tower")
    await noted(planner, added, "go at *night*", "note", "go at *night*")
    assert (await said(planner, "export the trip as text")).message.splitlines() == [
        "```text",
        "*Tokyo* '''2024'''",
        "1. Tokyo Tower Minato, Tokyo (added by Anna)",
        "   - go at *night*",
        "```",
        "-# I look places up in the small sample of places that I come with.",
    ]


async def test_an_export_is_never_longer_than_five_messages(planner: TripPlanner) -> None:
    planner = TripPlanner(places := Places())
    for number in range(10):
        places.found = [Venue(str(number), f"Place {number}")]
        added = await said(planner, f"add place {number}")
        for _ in range(MAX_NOTES):
            await noted(planner, added, "x" * 300, "note", "x" * 300)
    text = (await said(planner, "export our trip")).message
    assert len(text) < 10_000
    assert "\n… and 9 venues more\n```" in text


async def test_hostile_names_are_one_clipped_line_that_discord_shows_as_it_is(planner: TripPlanner) -> None:
    name = "**bold**\n# head\u202e <@99> `code` [link](http://x)" + "y" * 4_000
    question = await said(planner, "new trip")
    created = await planner.handle(resolved(question, name, type="input", content=name))
    shown = created.message.partition("! ✓")[0]
    assert "\n" not in shown
    assert "\u202e" not in shown
    assert shown.startswith("Created \\*\\*bold\\*\\* # head \\<@99\\> \\`code\\` \\[link\\](http://x)yyy")
    assert len(shown) < 130


async def test_an_answer_to_a_question_that_it_never_asked_is_declined(planner: TripPlanner) -> None:
    for resolution in ({"type": "confirmation", "confirmed": True}, {"type": "dance"}):
        context = told("yes", focus_resolution=resolution, source_handler="trip_planner._unknown")
        assert (await planner.handle(context)).message == LOST


# What is kept


async def test_what_a_person_said_is_forgotten(planner: TripPlanner) -> None:
    await said(planner, "create a trip called Anna's", ANNA)
    added = await said(planner, "add tokyo tower", ANNA)
    await noted(planner, added, "go early", "note", "go early")
    await answered(planner, await said(planner, "add my aunt Erna"), yes=True)
    await answered(planner, await said(planner, "add Erna's flat to the trip"), yes=True)
    await said(planner, "add a note for tokyo tower: take Ben", BEN)
    planner.forget(CHANNEL, ANNA)
    assert await listed(planner) == ["**Trip** (1 venue)", "1. Tokyo Tower Minato, Tokyo", "   - take Ben"]
    planner.forget(CHANNEL, None)
    assert len(planner) == 0
    planner.forget(CHANNEL, ANNA)


async def test_what_a_deleted_message_said_is_gone(planner: TripPlanner) -> None:
    await said(planner, "create a trip called Secret", message_id=1)
    added = await said(planner, "add tokyo tower", message_id=2)
    await answered(planner, await said(planner, "add the hideout to the trip", message_id=3), yes=True)
    await said(planner, "tip: knock twice", message_id=4, soft_context=added.soft_context)
    await said(planner, "tip: smile", message_id=5, soft_context=added.soft_context)
    planner.retract(CHANNEL, {1, 3, 4})
    assert await listed(planner) == [
        "**Trip** (1 venue)",
        "1. Tokyo Tower Minato, Tokyo (added by Anna)",
        "   - smile",
    ]
    planner.retract("nowhere", {1})


async def test_only_the_trips_used_last_are_kept(planner: TripPlanner) -> None:
    await said(planner, "add tokyo tower", chat_guid=0)
    for channel in range(1, MAX_TRIPS):
        planner.restore(channel, planner.stored(0))
    await said(planner, "show our trip", chat_guid=0)
    await said(planner, "add tokyo tower", chat_guid=MAX_TRIPS)
    assert len(planner) == MAX_TRIPS
    assert "Tokyo Tower" in (await said(planner, "show our trip", chat_guid=0)).message
    assert (await said(planner, "show our trip", chat_guid=1)).message == EMPTY
