"""understanding/enrichment.py: which queries are incomplete, which of them are completed, and which are left."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.support.phrases import labelled
from understanding.enrichment import MAX_LENGTH, Enrichment, enrich


def history(*said: str) -> list[dict[str, str]]:
    """What was said, by turns of a user and us."""
    return [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(said)]


WEATHER = history("What's the weather in Tokyo?", "Sunny in Tokyo, 24 degrees.")
PEOPLE = [{"role": "user", "content": text} for text in ("who is up for chess tonight", "me, after eight")]
TOMORROW = "What's the weather in Tokyo tomorrow?"


def test_the_table_of_incomplete_and_complete_queries_holds() -> None:
    table = list(labelled(Path(__file__).with_name("queries.txt")))
    for said in (WEATHER, PEOPLE):
        assert [row for row in table if enrich(row[0], said).incomplete is not (row[1] == "incomplete")] == []
    assert not any(enrich(text, said).incomplete for text in ("", "👍") for said in (WEATHER, PEOPLE))


def test_the_table_of_completions_holds() -> None:
    wrong = []
    for line, said in labelled(Path(__file__).with_name("completions.txt")):
        query, _, full = line.partition(" = ")
        found = enrich(query, history(*said.split(" | ")))
        if found != Enrichment(full or query, incomplete=True):
            wrong.append((said, line, found))
    assert wrong == []


def test_nothing_is_incomplete_where_nothing_was_said() -> None:
    assert enrich("And tomorrow?", []) == Enrichment("And tomorrow?", incomplete=False)


def test_roles_it_does_not_know_are_passed_over() -> None:
    recent = [*WEATHER, {"role": "system", "content": "What's the time in Rome?"}, {"role": "tool"}]
    assert enrich("And tomorrow?", recent).query == TOMORROW


def test_a_long_query_before_is_none_to_build_on() -> None:
    recent = history("What's the weather in Tokyo " + "and further on " * MAX_LENGTH + "?")
    assert enrich("And tomorrow?", recent) == Enrichment("And tomorrow?", incomplete=True)


def test_only_the_beginning_of_a_long_query_is_read() -> None:
    assert not enrich("a cat " * 2 * MAX_LENGTH + "and why is it there?", WEATHER).incomplete


OPENINGS = ("and ", "what about ", "How about ", "why", "is it ", "are they ", "tell me more", "")


@given(st.sampled_from(OPENINGS), st.text(max_size=300), st.lists(st.text(max_size=80), max_size=4))
def test_any_text_after_any_history_gets_a_query(opening: str, text: str, said: list[str]) -> None:
    found = enrich(opening + text, history(*said))
    assert found.incomplete or found.query == opening + text
