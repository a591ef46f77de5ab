"""miniapps/base.py: a response is checked at once, and what it asks for is read."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from miniapps.base import FollowUp, MiniAppResponse
from state.prompts import Ask, AwaitingType, ConversationStateError

OPTIONS = [{"name": "Shake Shack", "district": "Shibuya"}, {"name": "Shake Shack", "district": "Shinjuku"}]
SELECTION: Mapping[str, Any] = {
    "awaiting_type": "awaiting_selection",
    "options": OPTIONS,
    "context": {"original_query": "Shake Shack", "selection_type": "venue"},
    "source_handler": "trip_planner._add_single_venue",
}


def test_a_response_offers_what_it_asks_for() -> None:
    response = MiniAppResponse(message="Which one?\n1. Shibuya\n2. Shinjuku", conversation_state=SELECTION)
    assert response.ask == Ask(
        AwaitingType.SELECTION, tuple(OPTIONS), SELECTION["context"], "trip_planner._add_single_venue"
    )
    assert response.ask.labels == ("Shake Shack (Shibuya)", "Shake Shack (Shinjuku)")
    assert response.conversation_state == SELECTION
    assert response.soft_context == {}


def test_a_kind_of_response_may_have_slots_of_its_own() -> None:
    class Dated(MiniAppResponse):
        __slots__ = ("day",)

    assert Dated("hi").message == "hi"


def test_a_bare_message_asks_for_nothing() -> None:
    response = MiniAppResponse("Done.")
    assert (response.ask, response.conversation_state, response.soft_context) == (None, None, {})
    assert response.follow_up is None


def test_soft_context_is_that_within_the_state_and_over_it_the_one_given_by_itself() -> None:
    state = {"awaiting_type": "awaiting_input", "soft_context": {"last_action": "asked", "kept": 1}}
    response = MiniAppResponse("Your name?", conversation_state=state, soft_context={"last_action": "renamed"})
    assert response.soft_context == {"last_action": "renamed", "kept": 1}


def test_the_old_focus_state_means_the_same_and_warns_once_where_it_was_written() -> None:
    old = {
        "focus_type": "awaiting_selection",
        "context": {"options": OPTIONS, "original_query": "Shake Shack", "selection_type": "venue"},
        "source_handler": "trip_planner._add_single_venue",
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        response = MiniAppResponse("Which one?", focus_state=old)
    assert response.ask == MiniAppResponse("Which one?", conversation_state=SELECTION).ask
    assert response.conversation_state == SELECTION
    assert [(w.category, w.filename) for w in caught] == [(DeprecationWarning, __file__)]


def test_old_and_new_state_together_are_refused() -> None:
    with pytest.raises(ConversationStateError, match="not both"):
        MiniAppResponse("Which one?", conversation_state=SELECTION, focus_state={"focus_type": "awaiting_input"})


@pytest.mark.parametrize("message", ["", "  \n", "\u200b", "\ufeff", "\n\u2060\u200d", None, 7])
def test_a_message_without_text_is_refused(message: Any) -> None:
    with pytest.raises(ValueError, match="needs text"):
        MiniAppResponse(message)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"awaiting_type": "awaiting_miracle"}, "awaiting_type 'awaiting_miracle' cannot be used: use one of"),
        ({"options": []}, "needs at least one option"),
        ({"options": ["one", " "]}, "an option has no name"),
        ({"options": [{"name": 5}]}, "an option has no name"),
        ({"soft_context": {"last_item_name": "x" * 201}}, "over 200 characters"),
        ({"options": [str(number) for number in range(101)]}, "options"),
        ({"awaiting_type": "awaiting_input"}, "takes no options"),
        ({"timeout": 5}, "timeout"),
    ],
)
def test_a_state_that_cannot_be_awaited_is_refused_at_once_naming_the_handler(
    change: Mapping[str, Any], complaint: str
) -> None:
    with pytest.raises(ConversationStateError, match=complaint) as error:
        MiniAppResponse("Which one?", conversation_state={**SELECTION, **change})
    assert str(error.value).startswith("trip_planner._add_single_venue: ")


@pytest.mark.parametrize(
    "options",
    [["one"], ["same", "same"], [f"number {number}" for number in range(26)], ["x" * 81, "y" * 500]],
    ids=["one", "equal", "over 25", "over 80 characters"],
)
def test_unusual_options_can_be_awaited(options: list[str]) -> None:
    response = MiniAppResponse("Which one?", conversation_state={**SELECTION, "options": options})
    assert response.ask
    assert response.ask.options == tuple(options)


@pytest.mark.parametrize("soft_context", [{f"key {number}": 1 for number in range(21)}, {"last_item_name": "x" * 201}])
def test_soft_context_beyond_its_bounds_is_refused(soft_context: Mapping[str, Any]) -> None:
    with pytest.raises(ConversationStateError, match=r"^trip_planner\._add_single_venue: soft_context"):
        MiniAppResponse("Which one?", conversation_state=SELECTION, soft_context=soft_context)
    with pytest.raises(ConversationStateError, match=r"^a mini-app: soft_context"):
        MiniAppResponse("Done.", soft_context=soft_context)


def test_soft_context_within_and_beside_the_state_is_bounded_together() -> None:
    state = {**SELECTION, "soft_context": {f"key {number}": 1 for number in range(20)}}
    assert MiniAppResponse("Which one?", state, {"key 1": 2}).soft_context["key 1"] == 2
    with pytest.raises(ConversationStateError, match="21 keys"):
        MiniAppResponse("Which one?", state, {"one more": 2})


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"conversation_state": "awaiting_input"}, "conversation_state"),
        ({"soft_context": "listed"}, "soft_context"),
        ({"focus_state": "awaiting_input"}, "focus_state"),
        ({"focus_state": {"focus_type": "awaiting_input", "context": "abc"}}, "the context of focus_state"),
    ],
)
def test_what_is_no_mapping_is_refused_in_one_sentence_naming_the_mini_app(given: Any, name: str) -> None:
    with pytest.raises(ConversationStateError, match=rf"^a mini-app: {name} must be a mapping, and .* is none\.$"):
        MiniAppResponse("Well?", **given)


# What a mini-app wants to come back to

COMING_BACK: Mapping[str, Any] = {"text": "How was it?", "query": "add a note", "after": timedelta(hours=4)}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"about": "sample-1"},
        {"text": "\U0001f600" * 100, "query": "y" * 200, "about": "z" * 200},
        {"query": "two\nlines", "after": timedelta(minutes=10)},
        {"after": timedelta(days=3)},
    ],
)
def test_a_response_may_leave_a_follow_up(change: Mapping[str, Any]) -> None:
    follow_up = FollowUp(**{**COMING_BACK, **change})
    response = MiniAppResponse("Which one?", SELECTION, {"kept": 1}, follow_up=follow_up)
    assert response.follow_up == follow_up
    assert (response.ask, response.soft_context) == (MiniAppResponse("Which one?", SELECTION).ask, {"kept": 1})


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        *(({name: given}, f"the {name} .* must be text") for name in ("text", "query", "about") for given in (None, 7)),
        *(({name: "x" * 201}, f"the {name} .* up to 200") for name in ("text", "query", "about")),
        *(({name: "half \ud83d"}, f"the {name} .* must be text") for name in ("text", "query", "about")),
        *(({name: given}, f"the {name} .* is blank") for name in ("text", "query") for given in ("", " ", "\u200b")),
        ({"text": "\U0001f600" * 101}, "the text .* up to 200"),
        *(({"text": text}, "one line") for text in ("a\nb", "a\n", "\na", "a\rb", "a\u2028b", "a\x0bb")),
        ({"after": timedelta(minutes=10) - timedelta.resolution}, "10 minutes to 3 days"),
        ({"after": timedelta(days=3) + timedelta.resolution}, "10 minutes to 3 days"),
        ({"after": 14_400}, "must be a timedelta"),
    ],
)
def test_a_follow_up_that_cannot_be_kept_is_refused_in_one_sentence(change: Mapping[str, Any], complaint: str) -> None:
    with pytest.raises(ConversationStateError, match=complaint) as error:
        FollowUp(**{**COMING_BACK, **change})
    assert str(error.value).startswith("a mini-app: the ")
    assert str(error.value).endswith((" is none.", " is not.", " is blank."))
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("given", ["How was it?", COMING_BACK, FollowUp, 7])
def test_what_is_no_follow_up_is_refused(given: Any) -> None:
    with pytest.raises(ConversationStateError, match=r"^a mini-app: follow_up must be a FollowUp, and .* is none\.$"):
        MiniAppResponse("Done.", follow_up=given)
