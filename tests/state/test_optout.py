"""state/optout.py: who does not want to be read, and what is left of their messages."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from pydantic import JsonValue

from state.message import AttachedFile
from state.optout import UNREAD, OptOut, redacted, without_quote
from tests.support.people import ANNA, BEN, BOT, CLEO, said

SECRET = "the cat is called Tim"


def test_it_knows_who_opted_out() -> None:
    opted_out = OptOut([ANNA])
    opted_out.add(BEN)
    opted_out.add(BEN)
    assert (ANNA in opted_out, BEN in opted_out, CLEO in opted_out, len(opted_out)) == (True, True, False, 2)
    opted_out.discard(ANNA)
    opted_out.discard(CLEO)
    assert (ANNA in opted_out, BEN in opted_out, len(opted_out)) == (False, True, 1)


def test_it_survives_being_stored_as_json() -> None:
    ids = {ANNA, BEN, 2**63}
    restored = OptOut([CLEO])
    restored.restore(json.loads(json.dumps(OptOut(ids).stored())))
    assert {user_id for user_id in (*ids, CLEO) if user_id in restored} == ids


def test_nonsense_is_refused_and_changes_nothing() -> None:
    opted_out = OptOut([ANNA])
    nonsense: list[JsonValue] = [None, "11", 11, {"11": True}, ["11"], [1.5], [True], [-1], [0], [[11]]]
    for stored in nonsense:
        with pytest.raises(ValueError, match="validation error"):
            opted_out.restore(stored)
    assert opted_out.stored() == [ANNA]


FILE = AttachedFile("Tim.txt", "text/plain", 3, "https://host/Tim.txt")


def test_no_word_and_no_name_is_left_of_a_message_but_its_place_and_whom_it_addresses() -> None:
    message = said(
        ANNA,
        f"<@{BOT}> <@{BEN}> {SECRET}",
        mentions_group=True,
        reply_to_id=5,
        reply_to_author_id=CLEO,
        reply_to_author="Cleo",
        reply_to_text=SECRET,
        readable=f"@Parley @Ben {SECRET}",
        images=("https://host/cat.png",),
        files=(FILE,),
        reply_files=(FILE,),
    )
    left = redacted(message)
    assert "Tim" not in repr(left)
    assert "Anna" not in repr(left)
    assert (left.text, left.images, left.author) == (UNREAD, (), "somebody")
    assert (left.files, left.reply_files) == ((), ())
    for name in ("message_id", "author_id", "timestamp", "is_bot", "mentions", "mentions_group", "reply_to_id"):
        assert getattr(left, name) == getattr(message, name)
    assert left.addressed == {BOT, BEN, CLEO}


def test_a_reply_to_somebody_who_opted_out_keeps_its_own_words_only() -> None:
    reply = said(BEN, "nice name", reply_to_id=5, reply_to_author_id=ANNA, reply_to_author="Anna", reply_to_text=SECRET)
    assert without_quote(replace(reply, reply_files=(FILE,))) == replace(reply, reply_to_author="", reply_to_text="")
