"""state/cancel.py: what calls a flow off, and what only sounds like it; how a reply is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.cancel import Clause, calls_off, clauses, plain

# Document 000's CANCEL_PATTERNS.
PATTERNS = (
    "cancel|skip|nevermind|never mind|nvm|forget it|forget that|stop|quit|exit|no thanks|no thank you|nah|nope"
    "|changed my mind|actually no|actually never mind"
).split("|")


@pytest.mark.parametrize("reply", PATTERNS)
@pytest.mark.parametrize("form", ["{}", "{}!", "ok, {}", "oh {}", "{}, man", "<@42> {}"])
def test_every_pattern_of_the_document_calls_off(reply: str, form: str) -> None:
    assert calls_off(form.format(reply))
    assert calls_off(form.format(reply).upper())


@pytest.mark.parametrize(
    "reply",
    [
        "forget the whole thing",
        "Never mind, thanks, bye",
        "never mind, I found it",
        "let's drop it",
        "cancel that please",
        "please cancel the last command",
        "could you please stop what you're doing",
        "I'd like you to stop now",
        "I want to quit",
        "can we stop here?",
        "abort the current task",
        "kindly refrain from carrying out that request",
        "stop talking",
        "please don't continue",
        "I don't want to do this anymore",
        "I no longer need it",
        "call the whole thing off",
        "I've changed my mind about it",
        "that's enough",
        "be quiet please",
        "shut up",
        "oh just leave it",
        "that would be all",
        "we're done",
        "talk to you later",
        "wait, cancel",
        "no, cancel that",
        "STOOOOP",
        "Robo, stop",
        "robo please stop",
        "shut up robo",
        "hey robo would you stop it",
        "may we stop?",
        "forget it, ok?",
        "never mind 👍",
        "nvm, gotta go",
        "cancel, bye",
        "abbrechen",
        "Laisse tomber, merci",
        "basta",
        "отмена",
        "stop. yes, stop",
        "yes, cancel",
    ],
)
def test_calling_off_as_people_say_it(reply: str) -> None:
    assert calls_off(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "cancel my reservation",
        "please cancel the table at the Lantern",
        "I booked a table yesterday, please cancel it",
        "I don't need the table anymore",
        "how do I cancel my order?",
        "stop at the bakery",
        "what stop is next",
        "bus stop",
        "don't stop",
        "never",
        "skip the museum",
        "skip to the second",
        "forget the museum, add the park",
        "never mind, I take the first one",
        "nope, the second",
        "I want to leave today",
        "drop it off at noon",
        "drop it off",
        "quit smoking tips",
        "don't forget the dumplings",
        "no, don't do that!",
        "no",
        "yes",
        "all",
        "that",
        "it",
        "quiet",
        "quiet place",
        "basta pasta",
        "close to the station",
        "end of March",
        "turn it up",
        "2",
        "Shibuya",
        "wait",
        "thanks",
        "",
        "?!",
        "abort?",
        "should I quit?",
        "should we stop here",
        "do I cancel?",
        "never mind?",
        "forget it, yes",
        "no thanks, oh well, yes",
        "nvm, go ahead",
        "no no no hello goodbye",
        "gotta go, bye",
        "I have to go, see you tomorrow",
        "good night",
    ],
)
def test_what_only_sounds_like_it_calls_nothing_off(reply: str) -> None:
    assert not calls_off(reply)


def test_no_long_text_calls_off() -> None:
    assert not calls_off("stop " * 800)


@given(st.text(max_size=300))
def test_any_text_is_read_and_always_alike(text: str) -> None:
    assert calls_off(text) is calls_off(text)


@given(st.text(max_size=300))
def test_clauses_hold_words(text: str) -> None:
    assert all(clause.words and clause.words == clause.words.strip() for clause in clauses(plain(text)))


def test_a_reply_is_cut_at_marks_and_conjunctions_and_keeps_its_reservations() -> None:
    assert clauses(plain("Yes, that’s it; and now? Well, but not TODAY 👍🏽")) == [
        Clause("yes", asks=False),
        Clause("thats it", asks=False),
        Clause("now", asks=True),
        Clause("well", asks=False),
        Clause("but not today", asks=False),
        Clause("yes", asks=False),
    ]
