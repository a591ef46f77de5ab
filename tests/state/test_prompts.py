"""What can be asked, and how a response says so."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from enum import Enum
from itertools import product
from typing import Any

import pytest

from state.prompts import Ask, AwaitingType, ConversationStateError, as_json, modernised, read_state

SHACKS = [
    {"id": "v1", "name": "Shake Shack", "district": "Shibuya"},
    {"id": "v2", "name": "Shake Shack", "district": "Shinjuku"},
]


def state(**changes: Any) -> dict[str, Any]:
    return {
        "awaiting_type": "awaiting_selection",
        "options": SHACKS,
        "context": {"original_query": "Shake Shack", "selection_type": "venue"},
        "source_handler": "trip_planner._add_single_venue",
        **changes,
    }


def test_a_conversation_state_is_read_with_all_its_parts() -> None:
    ask, soft_context = read_state(state(soft_context={"last_action": "searched"}), "trip_planner")
    assert ask.awaiting_type is AwaitingType.SELECTION
    assert list(ask.options) == SHACKS
    assert ask.context["selection_type"] == "venue"
    assert ask.source_handler == "trip_planner._add_single_venue"
    assert soft_context == {"last_action": "searched"}
    assert not ask.anyone


def test_equal_names_are_told_apart_by_what_differs_where_anything_does() -> None:
    def labels(*options: Any) -> tuple[str, ...]:
        return Ask(AwaitingType.SELECTION, options).labels

    assert labels(*SHACKS) == ("Shake Shack (Shibuya)", "Shake Shack (Shinjuku)")
    assert labels(*SHACKS, {"name": "Ramen Bar", "district": "Ebisu"})[2] == "Ramen Bar"
    assert labels("tea", "tea") == labels({"name": "tea"}, {"name": "tea"}) == ("tea", "tea")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"awaiting_type": "awaiting_magic"}, "use one of awaiting_selection, awaiting_metadata"),
        ({"awaiting_type": None}, "use one of awaiting_selection"),
        ({"options": []}, "needs at least one option"),
        ({"options": ["tea", " "]}, "an option has no name"),
        ({"options": [{"district": "Shibuya"}]}, "an option has no name"),
        ({"options": ["tea", {"name": 5}]}, "an option has no name"),
        ({"options": [{"name": ["x"]}]}, "an option has no name"),
        ({"soft_context": {str(number): 1 for number in range(21)}}, "soft_context has 21 keys: 20 are kept"),
        ({"soft_context": {"short": 1, "long": "x" * 201}}, "soft_context 'long' is over 200 characters"),
        ({"soft_context": {"list": list(range(100))}}, "soft_context 'list' is over 200"),
        ({"soft_context": {"k" * 201: 1}}, "is over 200"),
        ({"options": ["tea"] * 101}, "at most 100"),
        ({"awaiting_type": "awaiting_confirmation"}, "takes no options"),
        ({"optoins": []}, "optoins"),
    ],
)
def test_what_cannot_be_awaited_is_refused_and_names_who_asked(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ConversationStateError, match=why) as refused:
        read_state(state(**changes), "trip_planner")
    assert str(refused.value).startswith("trip_planner._add_single_venue: ")
    assert "\n" not in str(refused.value)


def test_the_asker_is_named_where_no_handler_is() -> None:
    with pytest.raises(ConversationStateError, match=r"^dice: "):
        read_state({"awaiting_type": "soon"}, "dice")


def test_the_old_focus_state_still_says_the_same_with_a_warning() -> None:
    old = {
        "focus_type": "awaiting_selection",
        "context": {"options": SHACKS, "original_query": "Shake Shack"},
        "source_handler": "trip_planner.x",
    }
    with pytest.warns(DeprecationWarning, match="conversation_state"):
        ask, _ = read_state(modernised(old), "trip_planner")
    assert list(ask.options) == SHACKS
    assert ask.context == {"original_query": "Shake Shack"}


# What JSON has no form for could not be asked for after a restart


@dataclass
class Dish:
    name: str = "soup"


class Kind(Enum):
    HOT = "hot"


CIRCLE: dict[str, Any] = {}
CIRCLE["itself"] = CIRCLE

NO_JSON = [{1, 2}, date(2026, 3, 2), b"tea", Dish(), object(), {5: "five"}, 2**64, "\ud800", {"\ud800": 1}, CIRCLE]


def test_what_has_no_form_in_json_is_refused_at_once_and_names_who_asked() -> None:
    for value, where in product(NO_JSON, ("context", "options", "soft_context")):
        given = [{"name": "tea", "is": value}] if where == "options" else {"nested": [value]}
        with pytest.raises(ConversationStateError, match=rf"{where}.* has no form in JSON") as refused:
            read_state(state(**{where: given}), "trip_planner")
        assert str(refused.value).startswith("trip_planner._add_single_venue: ")
        assert "\n" not in str(refused.value)


def test_what_can_be_stored_is_given_back_from_the_first_as_it_will_be_after_a_restart() -> None:
    values = [((1, (2,)), [1, [2]]), (Kind.HOT, "hot"), ({"a": [None, True, 1.5]}, {"a": [None, True, 1.5]})]
    for value, read in values:
        changes = {"context": {"is": value}, "options": [{"name": "tea", "is": value}], "soft_context": {"is": value}}
        ask, soft_context = read_state(state(**changes), "dice")
        assert (ask.context, ask.options, soft_context) == ({"is": read}, ({"name": "tea", "is": read},), {"is": read})
        assert json.loads(json.dumps(ask.context)) == ask.context


def test_what_is_read_is_a_copy() -> None:
    tags = ["hot"]
    ask, _ = read_state(state(context={"tags": tags}), "dice")
    tags.append("cold")
    assert ask.context == {"tags": ["hot"]}
    assert as_json(tags) == tags
    assert as_json(tags) is not tags
