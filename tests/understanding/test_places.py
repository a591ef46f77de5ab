"""understanding/places.py: what is taken for a place, and what is not."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.support.phrases import labelled
from understanding.places import last_place


def test_the_table_of_places_and_ordinary_talk_holds() -> None:
    lines = [line.partition(" = ") for line, _ in labelled(Path(__file__).with_name("placed.txt"))]
    assert len(lines) > 30
    assert [(text, place) for text, _, place in lines if (last_place(text) or "") != place] == []


@given(st.text("inI to PraAbczé.’-\n ", max_size=60))
def test_a_place_is_a_name_of_one_line_that_stands_in_the_text(text: str) -> None:
    place = last_place(f"the weather in {text}")
    assert place is None or (place in text and "\n" not in place and place[0].isupper())
