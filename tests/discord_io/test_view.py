"""discord_io/view.py: cards as Discord's components, within its limits."""

from __future__ import annotations

from typing import Any

import pytest

from discord_io.card import Card
from discord_io.split import length
from discord_io.view import form_of, view_of
from state.prompts import AwaitingType

PROMPT = "p" * 40


def selection(*labels: str) -> Card:
    return Card(PROMPT, AwaitingType.SELECTION, labels)


def parts(card: Card) -> list[dict[str, Any]]:
    """The components in all rows, as Discord is told of them."""
    view = view_of(card)
    assert view is not None
    return [part for row in view.to_components() for part in row["components"]]


async def test_up_to_five_options_are_numbered_buttons() -> None:
    shown = parts(selection("Shibuya", "  two\nlines ", "3", "four", "five"))
    assert [part["label"] for part in shown] == ["1. Shibuya", "2. two lines", "3. 3", "4. four", "5. five"]
    assert {part["type"] for part in shown} == {2}


@pytest.mark.parametrize("count", [6, 25])
async def test_more_options_are_one_menu_of_which_one_is_chosen(count: int) -> None:
    [menu] = parts(selection(*map(str, range(1, count + 1))))
    assert (menu["type"], menu["min_values"], menu["max_values"]) == (3, 1, 1)
    assert [(o["label"], o["value"]) for o in menu["options"]] == [(f"{n + 1}. {n + 1}", str(n)) for n in range(count)]


@pytest.mark.parametrize("count", [0, 26, 100])
async def test_more_than_a_menu_holds_can_only_be_typed(count: int) -> None:
    assert view_of(selection(*map(str, range(count)))) is None


@pytest.mark.parametrize(("count", "most"), [(5, 80), (25, 100)])
@pytest.mark.parametrize("letter", ["x", "😀", "word "])
async def test_long_labels_are_cut_where_discord_counts_them_full(count: int, most: int, letter: str) -> None:
    shown = parts(selection(*[letter * 200] * count))
    for part in shown[0].get("options", shown):
        assert most - 6 < length(part["label"]) <= most
        assert part["label"].endswith("…")
        assert " …" not in part["label"]


async def test_a_confirmation_is_yes_and_no() -> None:
    shown = parts(Card(PROMPT, AwaitingType.CONFIRMATION))
    assert [(part["label"], part["style"]) for part in shown] == [("Yes", 3), ("No", 2)]


@pytest.mark.parametrize("kind", AwaitingType)
async def test_custom_ids_differ_and_fit(kind: AwaitingType) -> None:
    ids = [part["custom_id"] for part in parts(Card(PROMPT, kind, ("a", "b", "c", "d", "e")))]
    assert len(set(ids)) == len(ids)
    assert all(len(one) <= 100 for one in ids)


def described(question: str) -> str:
    [label] = form_of(PROMPT, "Title", question).to_dict()["components"]
    assert label["label"] == "Answer"
    return str(label["description"])


async def test_a_form_shows_the_question_behind_what_was_said_before_it() -> None:
    before = "Here is what I know so far about it. " * 4
    assert described(f"{before}\n\nWhich drink?\n") == "… Which drink?"
    assert described(f"{before}Which drink?").endswith("so far about it. Which drink?")


@pytest.mark.parametrize("text", ["word " * 60, "x" * 300, "😀" * 300, "👩‍👩‍👧" * 60, f"{'x' * 60}\n{'y' * 300}"])
async def test_the_end_of_a_long_question_is_cut_at_a_word_where_there_is_one(text: str) -> None:
    shown = described(text)
    assert 85 < length(shown) <= 100
    assert shown.startswith("… ")
    assert text.rstrip().endswith(shown.removeprefix("… "))
    assert not text.startswith("word") or shown.startswith("… word ")


async def test_a_form_says_a_short_question_once() -> None:
    [label] = form_of(PROMPT, "A name", "What is it called?").to_dict()["components"]
    assert label["label"] == "What is it called?"
    assert "description" not in label
