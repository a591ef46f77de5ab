"""understanding/places.py: what is taken for a place, and what is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understanding.places import last_place


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("What's the weather in Paris?", "Paris"),
        ("I'm in Paris. It is nice", "Paris"),
        ("it is in New York City I think", "New York City"),
        ("Near Rio de Janeiro? No, near London", "London"),
        ("how do I get from Berlin to Rome", "Rome"),
        ("a flight from Munich to Bergen", "Bergen"),
        ("a trip from Graz next week", "Graz"),
        ("is it snowing tomorrow in Osaka", "Osaka"),
        ("the weather forecast for Osaka on Friday", "Osaka"),
        ("the weather in Paris, Texas", "Paris"),
        ("we used to live in St. Gallen", "St. Gallen"),
        ("the population of Stoke-on-Trent", "Stoke-on-Trent"),
        ("hotels near the Colosseum", "Colosseum"),
        ("what about in the UK or the Netherlands", "UK"),
        ("in the United States", "United States"),
        ("the weather in Phoenix", "Phoenix"),
        ("in Ürümqi, or in Zürich: the weather in Łódź, in Wien? no, the weather in Århus", "Århus"),
    ],
)
def test_a_place_is_found_as_it_is_written(text: str, place: str) -> None:
    assert last_place(text) == place


@pytest.mark.parametrize(
    "text",
    [
        "",
        "it is written in Python, and was in Perl",
        "in January, in May, in Summer",
        "say it in French, please",
        "the weather in German, please",
        "what about in General",
        "I was born in March",
        "in paris",
        "Paris is nice",
        "the Paris office",
        "in Paris Hilton's house",
        "in Paris's streets",
        "in Paris-based firms",
        "London Calling, in London Calling",
        "a question from Jordan, and one to Santiago",
        "it crashes in Phoenix and in Darwin",
        "give it to Anna",
        "the code lives in Utils",
        "set it to True, from None",
        "I'm in I think",
        "the capital of 12",
    ],
)
def test_ordinary_talk_has_no_place(text: str) -> None:
    assert last_place(text) is None


@given(st.text("inI to PraAbczé.’-\n ", max_size=60))
def test_a_place_is_a_name_of_one_line_that_stands_in_the_text(text: str) -> None:
    place = last_place(f"the weather in {text}")
    assert place is None or (place in text and "\n" not in place and place[0].isupper())
