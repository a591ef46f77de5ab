"""How a reply resolves each kind of prompt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from state.prompts import Ask, AwaitingType
from state.resolution import CALLED_OFF, MAX_CONTENT, chosen, given, resolve
from tests.support.phrases import labelled

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


def note(kind: str, content: str) -> dict[str, Any]:
    return {"type": "metadata", "metadata_type": kind, "content": content, "target_item_id": "v1"}


def test_a_selection_counts_from_one_and_brings_the_option() -> None:
    for reply, index in (("2", 2), ("in Shibuya", 1), ("the Shinjuku one", 2), ("the last one", 3)):
        expected = {"type": "selection", "selection_index": index, "selected_option": CHOICE.options[index - 1]}
        assert data(reply, CHOICE) == expected


def test_a_confirmation_is_yes_or_no_even_where_the_word_could_call_off() -> None:
    for reply, confirmed in (("yes", True), ("no", False), ("👍", True), ("nope", False), ("nah", False)):
        assert data(reply, YES_NO) == {"type": "confirmation", "confirmed": confirmed}


@pytest.mark.parametrize("ask", [CHOICE, NOTE, YES_NO, FREE], ids=lambda ask: ask.awaiting_type)
def test_every_kind_can_be_called_off(ask: Ask) -> None:
    for reply in ("cancel", "nevermind", "forget it", "Never mind!"):
        assert resolve(reply, ask) == CALLED_OFF
        assert data(reply, ask) == {"type": "cancel"}


def test_an_option_that_is_called_cancel_can_be_chosen() -> None:
    ask = Ask(AwaitingType.SELECTION, ("Keep it", "Cancel"))
    assert data("cancel", ask) == {"type": "selection", "selection_index": 2, "selected_option": "Cancel"}


def test_the_table_of_free_answers_holds() -> None:
    """Talk is a note only when it is said to the bot directly, and who asks for patience gives no input even then."""
    wrong = []
    for line, label in labelled(Path(__file__).with_name("free_answers.txt")):
        match label:
            case "talk":
                found: object = (data(line, NOTE), data(line, NOTE, is_direct=True))
                expected: object = (None, note("note", line))
            case "patience":
                found, expected = (resolve(line, FREE), resolve(line, FREE, is_direct=True)), (None, None)
            case "input":
                found, expected = data(line, FREE), {"type": "input", "content": line}
            case kind:
                reply, _, content = line.partition(" = ")
                found, expected = data(reply, NOTE), note(kind, content)
        if found != expected:
            wrong.append((line, label, found))
    assert wrong == []


@pytest.mark.parametrize("ask", [NOTE, FREE], ids=lambda ask: ask.awaiting_type)
def test_what_clearly_starts_something_else_is_no_free_answer(ask: Ask) -> None:
    for reply in ("what do they have?", "how far is it", "!play try this", "", "  ", "lol", "thanks"):
        assert resolve(reply, ask, is_direct=True) is None


def test_input_is_taken_without_the_space_around_it_and_bounded() -> None:
    assert data(" Tokyo Trip 2024 ", FREE) == {"type": "input", "content": "Tokyo Trip 2024"}
    assert len(given(FREE, "x" * 5_000).data["content"]) == MAX_CONTENT


def test_a_click_and_typed_words_resolve_to_the_same() -> None:
    assert resolve("2", CHOICE) == chosen(CHOICE, 1)
    assert resolve("it's cozy", NOTE) == given(NOTE, "it's cozy")
    assert resolve("Tokyo", FREE) == given(FREE, "Tokyo")


@pytest.mark.parametrize("ask", [CHOICE, YES_NO], ids=lambda ask: ask.awaiting_type)
def test_what_answers_nothing_resolves_nothing(ask: Ask) -> None:
    for reply in ("what's the weather in Tokyo?", "", "maybe", "<@13>"):
        assert resolve(reply, ask) is None
