"""state/enrichment.py: the shapes of incomplete queries that are completed, and those that are left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.enrichment import MAX_LENGTH, Enrichment, enrich


def history(*said: str) -> list[dict[str, str]]:
    """What was said, by turns of a user and us."""
    return [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(said)]


WEATHER = history("What's the weather in Tokyo?", "Sunny, 24 degrees.")


@pytest.mark.parametrize("recent", [WEATHER[:1], WEATHER])
def test_and_tomorrow_asks_the_last_question_for_tomorrow(recent: list[dict[str, str]]) -> None:
    assert enrich("And tomorrow?", recent) == Enrichment("What's the weather in Tokyo tomorrow?", incomplete=True)


@pytest.mark.parametrize(
    ("asked", "query", "complete"),
    [
        ("will it rain in Bergen on Thursday?", "and on Friday?", "will it rain in Bergen on Friday?"),
        ("can we meet today?", "How about tomorrow then?", "can we meet tomorrow?"),
        ("What should I wear in Norway?", "and in winter?", "What should I wear in Norway in winter?"),
        ("how's the weather in tokyo right now?", "and in osaka", "how's the weather in osaka right now?"),
        ("how do I install docker on ubuntu?", "what about on fedora?", "how do I install docker on fedora?"),
        ("show me flights from Oslo to Paris", "and to Rome?", "show me flights from Oslo to Rome"),
        ("Thanks! Who lives in Fjordby?", "and in Kelpham?", "Who lives in Kelpham?"),
        ("Did it rain in Bergen today?", "and yesterday?", "Did it rain in Bergen yesterday?"),
    ],
)
def test_a_time_or_place_takes_the_place_of_its_like(asked: str, query: str, complete: str) -> None:
    assert enrich(query, history(asked, "Let me see.")).query == complete


def test_joined_queries_build_on_each_other() -> None:
    recent = [*WEATHER, *history("And tomorrow?", "Rain.")]
    assert enrich("and in Osaka?", recent).query == "What's the weather in Osaka tomorrow?"


def test_another_kind_of_a_thing_is_wished_for_in_the_same_way() -> None:
    recent = history("Hi. I'm looking for a quiet place that serves Welsh food.", "There is none.")
    assert enrich("How about Thai food?", recent).query == "How about a quiet place that serves Thai food?"


@pytest.mark.parametrize(
    ("asked", "query", "complete"),
    [
        ("What is jet lag?", "Is it treatable?", "Is jet lag treatable?"),
        ("Tell me about Norway", "What’s its capital?", "What's Norway's capital?"),
        ("What are wasps?", "are they dangerous?", "are wasps dangerous?"),
        ("Who is Ada Lovelace?", "how old was she?", "how old was Ada Lovelace?"),
    ],
)
def test_a_pronoun_stands_for_what_the_last_question_named(asked: str, query: str, complete: str) -> None:
    assert enrich(query, history(asked)).query == complete


def test_a_bare_question_word_asks_the_last_question_anew() -> None:
    assert enrich("Where?", history("When did the shop open?", "1990")).query == "Where did the shop open?"
    assert enrich("and why?", history("Did the shop close?", "Yes, in May.")).query == "Why did the shop close?"


def test_a_bare_attribute_is_that_of_the_one_thing_our_answer_named() -> None:
    recent = history("any decent headphones?", "Sonora X2 is a solid pick.")
    assert enrich("What is the price, please?", recent).query == "What is the price of Sonora X2, please?"


@pytest.mark.parametrize(
    ("question", "query", "complete"),
    [
        ("What kind of music would you like?", "I don't care.", "I don't care about the kind of music."),
        ("Do you have a preference for the colour?", "no, I don't care", "no, I don't care about the colour"),
        ("Which area are you in?", "Any", "Any area"),
    ],
)
def test_what_one_does_not_care_about_is_what_was_asked(question: str, query: str, complete: str) -> None:
    assert enrich(query, history("find me something", question)).query == complete


@pytest.mark.parametrize(
    ("said", "query"),
    [
        (("I love Tokyo.",), "And tomorrow?"),
        (("When does the shop open?", "At nine."), "and tomorrow?"),
        (("What's today's date?", "The third."), "and tomorrow?"),
        (("Is it open from Monday to Friday?", "Yes."), "and Sunday?"),
        (("Is Paris bigger than Berlin?", "No."), "what about London?"),
        (("How warm is it in Bergen?", "Mild."), "and Ben?"),
        (("How warm is it in Bergen?", "Mild."), "what about Oslo?"),
        (("Who founded Fjordtech?", "Lia Sand."), "and Kelpworks?"),
        (("Who founded Fjordtech?", "Lia Sand."), "and tomorrow?"),
        (("Did it rain on Monday?", "Yes."), "and tomorrow?"),
        (("Will it rain on Monday?", "Yes."), "and yesterday?"),
        (("Recommend me a novel about Oslo", "Hunger."), "and tomorrow?"),
        (("What's in Bergen worth seeing?", "The harbour."), "and in Oslo?"),
        (("Don't tell me the weather in Bergen", "All right."), "what about in Oslo?"),
        (("Never show me the news today", "All right."), "and tomorrow?"),
        (("Is there a ferry to Bergen on Monday?", "Yes."), "how?"),
        (("Is there a ferry?", "Yes."), "where?"),
        (("Does the ferry leave on Monday?", "Yes."), "when?"),
        (("Does the ferry stop at Voss?", "Yes."), "where?"),
        (("Is the shop open?", "Yes."), "how?"),
        (("Didn't the shop close?", "Yes."), "why?"),
        (("How many people live in poverty?", "Many."), "and in Norway?"),
        (("how do I cook rice?", "Boil it."), "what about pasta?"),
        (("Who is the mayor?", "Lia Sand."), "what about the second one?"),
        (("When does it open?", "At noon."), "why?"),
        (("Where is Oslo?", "In Norway."), "when?"),
        (("Did the shop close?", "No."), "why?"),
        (("What is jet lag?", "A tiredness. Melatonin may help."), "is it safe?"),
        (("what's wrong?", "Nothing."), "is it bad?"),
        (("is Mira in?", "Mira is out. Tom is in."), "what is the address?"),
        (("help", "Docker is not running."), "what's the reason?"),
        (("book a table", "Which area and what day would you like?"), "I don't care"),
    ],
)
def test_where_it_is_not_sure_the_words_stay_and_are_flagged(said: tuple[str, ...], query: str) -> None:
    assert enrich(query, history(*said)) == Enrichment(query, incomplete=True)


@pytest.mark.parametrize("text", ["what is the capital of France?", "thanks!", "good morning all", "I like it here"])
def test_a_complete_message_stays_as_it_is(text: str) -> None:
    assert enrich(text, WEATHER) == Enrichment(text, incomplete=False)


def test_mentions_are_no_words() -> None:
    recent = history("<@7> What's the weather in Tokyo?", "Sunny.")
    assert enrich("<@7> and tomorrow?", recent).query == "What's the weather in Tokyo tomorrow?"


def test_roles_it_does_not_know_are_passed_over() -> None:
    recent = [*WEATHER, {"role": "system", "content": "What's the time in Rome?"}, {"role": "tool"}]
    assert enrich("And tomorrow?", recent).query == "What's the weather in Tokyo tomorrow?"


def test_a_long_query_before_is_none_to_build_on() -> None:
    recent = history("What's the weather in Tokyo " + "and further on " * MAX_LENGTH + "?")
    assert enrich("And tomorrow?", recent) == Enrichment("And tomorrow?", incomplete=True)


OPENINGS = ("and ", "what about ", "How about ", "why", "is it ", "what is the price", "I don't care", "any", "")


@given(st.sampled_from(OPENINGS), st.text(max_size=60), st.lists(st.text(max_size=80), max_size=4))
def test_any_text_after_any_history_gets_a_query(opening: str, text: str, said: list[str]) -> None:
    found = enrich(opening + text, history(*said))
    assert found.incomplete or found.query == opening + text
