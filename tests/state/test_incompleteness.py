"""state/incompleteness.py: which queries need what was said before, and which do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.incompleteness import MAX_LENGTH, evidence, is_incomplete, read_query, read_said

WEATHER = (
    {"role": "user", "content": "What's the weather in Tokyo?"},
    {"role": "assistant", "content": "Sunny in Tokyo, 24 degrees."},
)
PEOPLE = (
    {"role": "user", "content": "who is up for chess tonight"},
    {"role": "user", "content": "me, after eight"},
)


def found(query: str, *said: str) -> frozenset[str]:
    return evidence(read_query(query), read_said([{"role": "user", "content": text} for text in said]))


@pytest.mark.parametrize("history", [WEATHER, PEOPLE])
@pytest.mark.parametrize(
    "query",
    [
        "And tomorrow?",
        "and in Osaka",
        "what about Paris?",
        "How about next week",
        "why?",
        "Where?",
        "why not?",
        "tell me more",
        "what else?",
        "what do you mean?",
        "is it safe there?",
        "how tall is he?",
        "can you explain that?",
        "which one is cheaper?",
        "do they have wifi?",
        "give me another example",
        "what's the price?",
        "who wrote it?",
        "can you make it shorter?",
    ],
)
def test_what_points_back_is_incomplete(query: str, history: tuple[dict[str, str], ...]) -> None:
    assert is_incomplete(query, history)


@pytest.mark.parametrize("history", [WEATHER, PEOPLE])
@pytest.mark.parametrize(
    "query",
    [
        "what is the capital of France?",
        "how do I reverse a list in python?",
        "can you recommend a good book about the Roman Empire?",
        "what time is it in London?",
        "is it raining in Berlin?",
        "write a haiku about autumn",
        "what is a monad?",
        "what does idempotent mean?",
        "tell me a joke",
        "tell me about black holes",
        "does anyone know a good pizza place in Boston?",
        "why is the sky blue?",
        "how do I install docker on ubuntu?",
        "who won the world cup in 2018?",
        "create a trip called Summer 2031",
        "<@42> what is the population of Norway?",
        "can you teach me some French?",
        "could you proofread an essay for me?",
        "may I borrow somebody for a minute?",
        "do you like jazz?",
        "how heavy is the moon?",
        "who invented the bicycle?",
        "what's the quickest way to learn the flute?",
        "which rules apply in this channel?",
        "it's snowing, which boots should I wear?",
        "do you mind it when people whistle?",
        "how about we watch a film?",
        "what do you think about olives?",
    ],
)
def test_a_complete_question_or_request_is_left_alone(query: str, history: tuple[dict[str, str], ...]) -> None:
    assert not is_incomplete(query, history)


@pytest.mark.parametrize(
    "text",
    [
        "thanks a lot!",
        "hello everyone",
        "ok",
        "yes please",
        "sounds good",
        "lol",
        "I love this game",
        "that's great",
        "we should meet on Friday",
        "no, that's all. Thank you for your help!",
        "",
        "👍",
        "<@42>",
    ],
)
def test_a_statement_a_greeting_or_a_thanks_is_complete(text: str) -> None:
    assert not is_incomplete(text, WEATHER)


def test_nothing_is_incomplete_where_nothing_was_said() -> None:
    assert not is_incomplete("And tomorrow?", [])


def test_a_name_before_a_pronoun_is_what_it_points_at() -> None:
    assert "person" in found("did she sell the house?")
    assert "person" not in found("did Mira sell her house?")


def test_an_earlier_sentence_is_what_a_pronoun_points_at() -> None:
    assert "it" in found("How do I clean it?")
    assert "it" not in found("My old espresso machine leaks. How do I clean it?")


@pytest.mark.parametrize(
    "query", ["what time is it?", "does it take long to boil an egg?", "is it true that cats purr?"]
)
def test_an_it_that_stands_for_nothing_does_not_point(query: str) -> None:
    assert "it" not in found(query)


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("who plays this week?", "these"),
        ("what is this server for?", "these"),
        ("is there a bakery?", "there"),
        ("find a shop that sells tea", "that"),
    ],
)
def test_a_word_that_only_looks_like_a_pointer_is_none(query: str, pointer: str) -> None:
    assert pointer not in found(query)


def test_a_noun_of_something_is_bare_until_it_is_said_of_what() -> None:
    assert "relation_bare" in found("what is the price?")
    assert "relation_complete" in found("what is the price of saffron?")
    assert not {"relation_bare", "relation_complete"} & found("what is Ada's address?")


def test_a_noun_that_one_of_the_talkers_owns_is_not_bare() -> None:
    assert "relation_bare" not in found("what is your address?")


def test_who_is_talked_to_is_seen_to_be_addressed() -> None:
    assert "addressing" in found("can you dance?")
    assert "addressing" not in found("can penguins dance?")


@pytest.mark.parametrize(
    "query", ["can you tell me the price?", "could you repeat that?", "do you know their address?"]
)
def test_a_question_to_somebody_may_still_point_back(query: str) -> None:
    assert is_incomplete(query, WEATHER)


def test_a_definite_noun_is_known_when_it_was_said_in_any_form() -> None:
    assert "definite_known" in found("who founded the bands?", "They were a band from Leeds")
    assert "definite_new" in found("who founded the bands?", "Lovely contraband")


def test_an_announced_topic_is_seen_to_be_named_or_not() -> None:
    said = read_said([{"role": "topic", "content": "Ada Lovelace — Childhood"}, {"role": "user", "content": "hi"}])
    assert "topic_none" in evidence(read_query("what happened in 1828?"), said)
    assert "topic_all" in evidence(read_query("what did Ada Lovelace write?"), said)


def test_words_are_looked_for_in_the_first_message_and_the_last_six() -> None:
    history = [{"role": "user", "content": f"word{index:02}"} for index in range(10)]
    text = read_said(history).text
    assert [word in text for word in ("word00", "word03", "word04", "word09")] == [True, False, True, True]


def test_only_the_beginning_of_a_long_query_is_read() -> None:
    assert not is_incomplete("a cat " * MAX_LENGTH + "and why is it there?", WEATHER)


@given(st.text(max_size=300), st.lists(st.text(max_size=100), max_size=4))
def test_any_text_gets_an_answer(text: str, history: list[str]) -> None:
    recent = [{"role": "user", "content": said} for said in history]
    assert is_incomplete(text, recent) in (True, False)
