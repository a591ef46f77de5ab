"""How a reply resolves each kind of prompt."""

from __future__ import annotations

from typing import Any

import pytest

from state.prompts import Ask, AwaitingType, ResolutionType
from state.resolution import MAX_CONTENT, Resolution, chosen, given, resolve

CHOICE = Ask(
    AwaitingType.SELECTION,
    tuple({"name": "Shake Shack", "district": district} for district in ("Shibuya", "Shinjuku", "Harajuku")),
)
NOTE = Ask(AwaitingType.METADATA, context={"target_item_id": "v1"})
YES_NO = Ask(AwaitingType.CONFIRMATION)
FREE = Ask(AwaitingType.INPUT)


def data(reply: str, ask: Ask, **how: Any) -> dict[str, Any] | None:
    found = resolve(reply, ask, **how)
    return dict(found.data) if found else None


@pytest.mark.parametrize(
    ("reply", "index"), [("2", 2), ("in Shibuya", 1), ("the Shinjuku one", 2), ("the last one", 3)]
)
def test_a_selection_counts_from_one_and_brings_the_option(reply: str, index: int) -> None:
    expected = {"type": "selection", "selection_index": index, "selected_option": CHOICE.options[index - 1]}
    assert data(reply, CHOICE) == expected


@pytest.mark.parametrize(
    ("reply", "confirmed"), [("yes", True), ("no", False), ("👍", True), ("nope", False), ("nah", False)]
)
def test_a_confirmation_is_yes_or_no_even_where_the_word_could_call_off(reply: str, confirmed: bool) -> None:
    assert data(reply, YES_NO) == {"type": "confirmation", "confirmed": confirmed}


@pytest.mark.parametrize("ask", [CHOICE, NOTE, YES_NO, FREE], ids=lambda ask: ask.awaiting_type)
@pytest.mark.parametrize("reply", ["cancel", "nevermind", "forget it", "Never mind!"])
def test_every_kind_can_be_called_off(ask: Ask, reply: str) -> None:
    found = resolve(reply, ask)
    assert found
    assert found.type is ResolutionType.CANCEL
    assert found.data == {"type": "cancel"}


def test_an_option_that_is_called_cancel_can_be_chosen() -> None:
    ask = Ask(AwaitingType.SELECTION, ("Keep it", "Cancel"))
    assert data("cancel", ask) == {"type": "selection", "selection_index": 2, "selected_option": "Cancel"}


@pytest.mark.parametrize(
    ("reply", "kind", "content"),
    [
        ("get the shroom burger", "must_try", "shroom burger"),
        ("You must have the fries", "must_try", "fries"),
        ("don't miss the concrete", "must_try", "concrete"),
        ("can’t skip shakes", "must_try", "shakes"),
        ("it's cozy", "vibe", "cozy"),
        ("they're very loud", "vibe", "very loud"),
        ("romantic, candles everywhere", "vibe", "romantic, candles everywhere"),
        ("perfect for a first date", "best_for", "a first date"),
        ("it's great for groups", "best_for", "groups"),
    ],
)
def test_metadata_is_known_by_its_pattern(reply: str, kind: str, content: str) -> None:
    expected = {"type": "metadata", "metadata_type": kind, "content": content, "target_item_id": "v1"}
    assert data(reply, NOTE) == expected


def test_other_words_are_a_note_only_when_said_to_the_bot_directly() -> None:
    assert data("closed on Mondays", NOTE) is None
    found = data("closed on Mondays", NOTE, is_direct=True)
    assert found
    assert (found["metadata_type"], found["content"]) == ("note", "closed on Mondays")


@pytest.mark.parametrize("ask", [NOTE, FREE], ids=lambda ask: ask.awaiting_type)
@pytest.mark.parametrize("reply", ["what do they have?", "how far is it", "!play try this", "", "  ", "lol", "thanks"])
def test_what_clearly_starts_something_else_is_no_free_answer(ask: Ask, reply: str) -> None:
    assert resolve(reply, ask, is_direct=True) is None


def test_input_is_taken_as_it_stands_and_bounded() -> None:
    assert data(" Tokyo Trip 2024 ", FREE) == {"type": "input", "content": "Tokyo Trip 2024"}
    assert len(given(FREE, "x" * 5_000).data["content"]) == MAX_CONTENT


def test_a_click_and_typed_words_resolve_to_the_same() -> None:
    assert resolve("2", CHOICE) == chosen(CHOICE, 1)
    assert resolve("it's cozy", NOTE) == given(NOTE, "it's cozy")
    assert resolve("Tokyo", FREE) == given(FREE, "Tokyo")


@pytest.mark.parametrize("ask", [CHOICE, YES_NO], ids=lambda ask: ask.awaiting_type)
@pytest.mark.parametrize("reply", ["what's the weather in Tokyo?", "", "maybe", "<@13>"])
def test_what_answers_nothing_resolves_nothing(ask: Ask, reply: str) -> None:
    assert resolve(reply, ask) is None


def test_a_resolution_is_a_value() -> None:
    assert given(FREE, "a") == Resolution(ResolutionType.INPUT, {"type": "input", "content": "a"})
