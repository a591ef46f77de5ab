"""state/optout.py: who does not want to be read, and what is left of their messages."""

from __future__ import annotations

from dataclasses import replace

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
