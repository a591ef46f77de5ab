"""miniapps/trip_commands.py: what is a command, and what is conversation that must not be captured."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from miniapps.trip_commands import MAX_COMMAND, Command, CommandKind, plain, read_command
from miniapps.trip_planner import TripPlanner
from tests.support.phrases import labelled

THRESHOLD = TripPlanner.threshold
IN_TRIP = {"last_action": "added_venue", "last_item_id": "sample-1", "source_miniapp_id": "trip_planner"}

# By the label of a line: whether it is wanted anywhere, and whether while a trip is planned; None: either will do.
WANTED: Mapping[str, tuple[bool | None, bool | None]] = {
    "wanted anywhere": (True, True),
    "wanted while a trip is planned": (False, True),
    "conversation": (False, None),
    "conversation while a trip is planned": (None, False),
}


def test_commands_are_wanted_and_free_conversation_is_left_alone() -> None:
    for text, label in labelled(Path(__file__).with_name("trip_commands.txt")):
        for soft_context, wanted in zip(({}, IN_TRIP), WANTED[label], strict=True):
            assert wanted is None or (TripPlanner().wants(text, soft_context) >= THRESHOLD) is wanted, (label, text)


@pytest.mark.parametrize(
    "soft_context",
    [{"last_action": "drew_card"}, {**IN_TRIP, "source_miniapp_id": "recipes"}, {"last_action": ["added_venue"]}],
)
def test_the_soft_context_of_another_mini_app_lifts_nothing(soft_context: dict[str, object]) -> None:
    assert TripPlanner().wants("what's on the list?", soft_context) < THRESHOLD


def test_clear_commands_are_surer_than_vague_ones_and_these_than_a_bare_name() -> None:
    texts = ("add shake shack to the trip", "add shake shack", "shake shack")
    clear, vague, bare = (TripPlanner().wants(text, IN_TRIP) for text in texts)
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
    assert TripPlanner().wants(text, IN_TRIP) == 0


@pytest.mark.parametrize("text", ["shake shack" + "!" * 490, "shake shack" + " " * 490 + "and an egg"])
def test_a_long_text_is_conversation_whatever_it_begins_with(text: str) -> None:
    assert TripPlanner().wants(text, IN_TRIP) == 0


@pytest.mark.parametrize("text", ["shake shack" + " ," * 200_000 + "x", "please " * 60_000, "<@" * 200_000])
def test_of_a_text_without_end_only_the_beginning_is_read(text: str) -> None:
    assert len(plain(text)) <= MAX_COMMAND


def test_marks_and_politeness_around_a_command_are_dropped() -> None:
    assert plain("  add the inn , thank \n you !?") == "add the inn"
    assert plain("add the inn, as well.") == "add the inn"
    assert plain("add tattoo") == "add tattoo"
