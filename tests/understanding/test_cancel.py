"""understanding/cancel.py: what calls a flow off, and what only sounds like it; how a reply is cut."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.support.phrases import labelled
from understanding.cancel import Clause, calls_off, clauses, plain

# Document 000's CANCEL_PATTERNS.
PATTERNS = (
    "cancel|skip|nevermind|never mind|nvm|forget it|forget that|stop|quit|exit|no thanks|no thank you|nah|nope"
    "|changed my mind|actually no|actually never mind"
).split("|")
FORMS = ("{}", "{}!", "ok, {}", "oh {}", "{}, man", "<@42> {}")


def test_every_pattern_of_the_document_calls_off() -> None:
    replies = [form.format(pattern) for pattern in PATTERNS for form in FORMS]
    assert [reply for reply in replies if not (calls_off(reply) and calls_off(reply.upper()))] == []


def test_the_table_of_cancels_and_near_misses_holds() -> None:
    table = labelled(Path(__file__).with_name("cancels.txt"))
    assert [row for row in table if calls_off(row[0]) is not (row[1] == "call off")] == []
    assert not calls_off("")


def test_no_long_text_calls_off() -> None:
    assert not calls_off("stop " * 800)


@given(st.text(max_size=300))
def test_any_text_is_read_and_always_alike(text: str) -> None:
    assert calls_off(text) is calls_off(text)
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
