"""miniapps/trip_commands.py: what is a command, and what is conversation that must not be captured."""

from __future__ import annotations

import pytest

from miniapps.trip_commands import MAX_COMMAND, Command, CommandKind, certainty, plain, read_command
from miniapps.trip_planner import TripPlanner

THRESHOLD = TripPlanner.threshold
IN_TRIP = {"last_action": "added_venue", "last_item_id": "sample-1", "source_miniapp_id": "trip_planner"}

WANTED = """
start a trip
new trip
plan a trip to Tokyo
Can you plan a trip to New York City, please?
let's plan a trip
I want to create a new trip
create a trip called Tokyo 2024
new trip: Hamburg in May
start another trip named Easter
rename the trip to Kyoto 2025
call our trip The Big One
save the old mill to our trip
change the trip name to Spring
add shake shack
Add Shake Shack!
please add shake shack in shibuya
can you add the tokyo tower?
add shake shak
add shake shack to the trip
add Joe's Pizza to our trip
put the old lighthouse on our trip list
<@123456> add shake shack
Parley, add shake shack
hey parley add shake shack please
hey add shake shack too
Shake Shack
<@123456> Shake Shack?
list venues
list our trip venues
show our trip
show me the trip so far
what's on our trip?
what venues do we have
trip list
remove shake shack
remove shake shack from the trip
take the lighthouse off our trip
remove number 2 from the trip
delete all venues
remove all the places from our list
clear the trip
delete our trip
export the trip
export our trip as text
""".strip().splitlines()

WANTED_IN_TRIP = """
add Joe's Pizza
add the old lighthouse to the list
put blue bottle on our list
include Blue Bottle in the itinerary
and add the night market too
tokyo tower
the Louvre Museum!
what's on the list?
show me the list
what do we have so far
add a tip: get the shroom burger
add a tip
add another note that it closes at nine
add a tip for shake shack
tip: sit upstairs
note: cash only
must try: the fries
best for: families
remove the lighthouse
remove number 2
delete the last one
take the lighthouse off the list
delete all
clear the list
remove everything
export it as text
copy the itinerary
rename it to Spring
""".strip().splitlines()

CONVERSATION = """
add two numbers
add 2 and 3
add 17 to 25
add me on steam
add me to the trip
add it to our trip
add Ben to the group
can you add logging to this function
add error handling
add a comment to every line
add a dark mode
add some emojis
add more details please
add that to your memory
add sugar to the coffee
add tests for the parser
add up these prices
add milk to the shopping list
add an element to the list
append 5 to the list
list the prime numbers
list all prime numbers below 100
list three good restaurants in Rome
list files in a folder
show me how to reverse a list
show me a picture of a cat
what's on your mind?
what's on the list of best films?
what's the weather in Tokyo?
what is a trip wire?
remove the background from this picture
remove duplicates from the list
remove the last element
delete all my messages
delete all comments in this file
delete my account
drop me a line
clear the cache
clear the chat
how do I add a venue to my calendar?
how do I start a trip?
have you been to Tokyo Tower?
we added shake shack yesterday
don't add shake shack
did you add shake shack?
I had a great trip
the trip was long
call the trip off
call the trip advisor
call my trip insurance about the delay
name the trip you liked most
save money on the trip
take a train trip
take a break from the trip
call our trip a success
add lunch to the itinerary
remove the last paragraph from the itinerary
help me write a trip report
plan a 5 day trip to Japan with a budget of 2000 euros
plan a trip to Paris for two people with small kids
plan my week
create a function called trip
start a timer
start a new game
new phone who dis
export the data as csv
export this function
copy that
rename this variable to total
note: this is only my opinion
tip: always lock your screen
must try: vim
Big Ben
burger
lol
thanks
yes
nevermind
add
trip
```add shake shack```
""".strip().splitlines()

CONVERSATION_IN_TRIP = """
add two numbers
tower
add 2 and 3
add me on steam
add it
can you add logging to this function
add a comment to every line
add more details please
add sugar to the coffee
delete cookies
add semicolons
delete all my messages
remove the background from this picture
list the prime numbers
get the shroom burger
it's cozy
great for families
how far is it from the station?
what should we eat there?
is it open on Sundays?
lol
thanks
nice one
yes
2
nevermind
tell me a joke
how do I add a venue?
I like the list
the trip will be fun
""".strip().splitlines()


@pytest.mark.parametrize("text", WANTED)
def test_a_clear_command_is_wanted_anywhere(text: str) -> None:
    assert certainty(text, {}) >= THRESHOLD
    assert certainty(text, IN_TRIP) >= THRESHOLD


@pytest.mark.parametrize("text", WANTED_IN_TRIP)
def test_a_vague_command_is_wanted_only_where_the_talk_is_of_a_trip(text: str) -> None:
    assert certainty(text, IN_TRIP) >= THRESHOLD
    assert certainty(text, {}) < THRESHOLD


@pytest.mark.parametrize("text", CONVERSATION)
def test_free_conversation_is_left_alone(text: str) -> None:
    assert certainty(text, {}) < THRESHOLD


@pytest.mark.parametrize("text", CONVERSATION_IN_TRIP)
def test_free_conversation_is_left_alone_while_a_trip_is_planned(text: str) -> None:
    assert certainty(text, IN_TRIP) < THRESHOLD


@pytest.mark.parametrize(
    "soft_context",
    [{"last_action": "drew_card"}, {**IN_TRIP, "source_miniapp_id": "recipes"}, {"last_action": ["added_venue"]}],
)
def test_the_soft_context_of_another_mini_app_lifts_nothing(soft_context: dict[str, object]) -> None:
    assert certainty("what's on the list?", soft_context) < THRESHOLD


def test_clear_commands_are_surer_than_vague_ones_and_these_than_a_bare_name() -> None:
    texts = ("add shake shack to the trip", "add shake shack", "shake shack")
    clear, vague, bare = (certainty(text, IN_TRIP) for text in texts)
    assert 1 >= clear > vague > bare >= THRESHOLD


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("new trip", Command(CommandKind.CREATE, is_clear=True)),
        ("Create a trip called Tokyo 2024.", Command(CommandKind.CREATE, is_clear=True, name="Tokyo 2024")),
        ("plan a trip to Tokyo", Command(CommandKind.CREATE, is_clear=True, name="Tokyo")),
        ('rename our trip to "Spring"', Command(CommandKind.RENAME, is_clear=True, name="Spring")),
        ("add Shake Shack to the trip", Command(CommandKind.ADD, is_clear=True, name="Shake Shack")),
        ("add  <@5>  the\ttokyo tower, please!", Command(CommandKind.ADD, is_clear=False, name="the tokyo tower")),
        ("take the old inn off our trip", Command(CommandKind.REMOVE, is_clear=True, name="the old inn")),
        ("remove number 2", Command(CommandKind.REMOVE, is_clear=False, name="number 2")),
        ("delete all venues", Command(CommandKind.CLEAR, is_clear=True)),
        ("list venues", Command(CommandKind.LIST, is_clear=True)),
        ("export the trip as markdown", Command(CommandKind.EXPORT, is_clear=True)),
        ("add a tip: cash only", Command(CommandKind.NOTE, is_clear=False, note_kind="note", note="cash only")),
        ("must-try: fries", Command(CommandKind.NOTE, is_clear=False, note_kind="must_try", note="fries")),
        (
            "add a tip for Shake Shack Shibuya: sit upstairs",
            Command(
                CommandKind.NOTE, is_clear=False, name="Shake Shack Shibuya", note_kind="note", note="sit upstairs"
            ),
        ),
    ],
)
def test_a_command_is_read_with_the_users_words(text: str, command: Command) -> None:
    read = read_command(text)
    assert read
    assert (read.kind, read.is_clear, read.name, read.note) == (
        command.kind,
        command.is_clear,
        command.name,
        command.note,
    )
    assert read.note_kind == (command.note_kind or "note")


@pytest.mark.parametrize("text", ["add " * 1_000, "add " + "a" * 4_000, "hey " * 900 + "add x", "\u202e" * 4_000, " "])
def test_long_and_hostile_texts_are_no_commands(text: str) -> None:
    assert read_command(text) is None
    assert certainty(text, IN_TRIP) == 0


@pytest.mark.parametrize("text", ["shake shack" + "!" * 490, "shake shack" + " " * 490 + "and an egg"])
def test_a_long_text_is_conversation_whatever_it_begins_with(text: str) -> None:
    assert certainty(text, IN_TRIP) == 0


@pytest.mark.parametrize("text", ["shake shack" + " ," * 200_000 + "x", "please " * 60_000, "<@" * 200_000])
def test_of_a_text_without_end_only_the_beginning_is_read(text: str) -> None:
    assert len(plain(text)) <= MAX_COMMAND


def test_marks_and_politeness_around_a_command_are_dropped() -> None:
    assert plain("  add the inn , thank \n you !?") == "add the inn"
    assert plain("add the inn, as well.") == "add the inn"
    assert plain("add tattoo") == "add tattoo"
