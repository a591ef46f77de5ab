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
        ("you should definitely try the ramen", "must_try", "ramen"),
        ("and order the soup", "must_try", "soup"),
        ("must have dumplings", "must_try", "dumplings"),
        ("try spring rolls", "must_try", "spring rolls"),
        ("get 🍔", "must_try", "🍔"),
        ("it was raining, but don't miss the view", "must_try", "view"),
        ("we loved it! get the pie", "must_try", "pie"),
        ("this place is really good with kids", "best_for", "kids"),
        ("the place is quiet", "vibe", "quiet"),
        ("they are so charming", "vibe", "so charming"),
        ("it is a hidden gem", "vibe", "a hidden gem"),
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


TALK = """
I have a meeting at 3
we get the keys at noon
I'll try later
he can order the book
they have the wrong address
She said it's cozy
I went home and have the kids today
it's raining again
they’re closing the office
it's 5 already
it's late
It's Friday
they're down now
it's not my fault
it's what I said
it's fine
it's so
it works
just try restarting the server
try again
try it
get well soon
have fun
sorry, have a meeting
you must have forgotten
you have the wrong branch
don't get the fries
don't miss it
good for him
great, good with that
chill out
pre-order the book
https://example.org/get the
""".strip().splitlines()


@pytest.mark.parametrize("reply", TALK)
def test_talk_is_no_note_unless_it_is_said_to_the_bot_directly(reply: str) -> None:
    assert resolve(reply, NOTE) is None
    found = data(reply, NOTE, is_direct=True)
    assert found
    assert (found["metadata_type"], found["content"]) == ("note", reply)


@pytest.mark.parametrize("is_direct", [False, True])
@pytest.mark.parametrize(
    "reply",
    [
        *(
            "brb phone",
            "AFK",
            "one sec",
            "just a moment please",
            "gimme a minute",
            "hold on",
            "Wait...",
            "<@13> hang on",
        ),
        *("hmmm", "hm, let me think about it", "lemme check", "I'll be right back"),
    ],
)
def test_who_only_asks_for_patience_gives_no_input(reply: str, is_direct: bool) -> None:
    assert resolve(reply, FREE, is_direct=is_direct) is None


@pytest.mark.parametrize(
    "reply", ["Wait for Spring", "Hold On Tight", "2 minutes", "one minute", "I don't know", "Umbria"]
)
def test_an_input_that_resembles_it_is_taken(reply: str) -> None:
    assert data(reply, FREE) == {"type": "input", "content": reply}


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
