"""offers/offer.py: what typed words answer to an offer, and what is no answer to it."""

from __future__ import annotations

from pathlib import Path

from offers.offer import LABELS, Offer, read_reply
from tests.support.clock import NOON
from tests.support.offers import note_at, opportunity
from tests.support.people import ANNA, GUILD, said
from tests.support.phrases import labelled


def test_the_table_of_replies_holds() -> None:
    table = labelled(Path(__file__).with_name("replies.txt"))
    assert [row for row in table if (read_reply(row[0]) or "none") != row[1]] == []
    assert [read_reply(words) for words in ("", " ", "?")] == [None] * 3


def test_each_quick_reply_can_be_typed() -> None:
    assert [read_reply(label) for label in LABELS.values()] == list(LABELS)


def test_whoever_says_more_says_something_else_too() -> None:
    for words in ("yes", "no", "not here"):
        assert read_reply(" ".join([words] * 30)) is None
        assert read_reply(words + " please" * 5_000) is None


def test_an_offer_is_about_its_question_or_about_what_its_note_goes_back_to() -> None:
    question = said(ANNA)
    about = Offer("o1", opportunity(question), NOON, GUILD, "Shall I try?")
    assert (about.subject_id, about.user_id) == (question.message_id, ANNA)
    note = note_at(NOON, source_id=77)
    assert Offer("o1", opportunity(note=note), NOON, GUILD, note.text).subject_id == 77
    assert Offer("o1", opportunity(), NOON, GUILD, "?").subject_id == 0


def test_an_offer_that_was_taken_up_still_says_what_it_was() -> None:
    offer = Offer("o1", opportunity(said(ANNA)), NOON, GUILD, "Shall I try?")
    assert offer.taken_up == "Shall I try?\n-# ✓ Yes, please"
