"""discord_io/streamed_reply.py: an answer that was begun before our process died is finished in its place."""

from __future__ import annotations

import asyncio

import pytest

from discord_io.channel_wire import Posted, PostError, Problem
from tests.discord_io.posting import CARD, Posting, words
from tests.support.clock import NOON
from tests.support.fake_wire import FakeWire
from tests.support.virtual_time import until

pytestmark = pytest.mark.virtual_time

BEGUN = "It is a kind of"
WHOLE = "It is a kind of bird that cannot fly."


async def resumed(*texts: str, forgets_nonces: bool = False) -> Posting:
    """A post that goes on behind these texts, which another sent before."""
    wire = FakeWire()
    adopted = [await wire.send(text, nonce=f"500-{n}", reply_to=None) for n, text in enumerate(texts)]
    wire.calls.clear()
    wire.forgets_nonces = forgets_nonces
    return Posting(wire, adopted)


async def test_what_stands_is_edited_and_not_sent_again() -> None:
    posting = await resumed(BEGUN)
    assert await posting.post.finish(WHOLE) == posting.last_id
    assert [(call.kind, call.at) for call in posting.wire.calls] == [("edit", 0)]
    assert posting.wire.texts == [WHOLE]


async def test_what_stands_as_it_should_is_left_alone() -> None:
    posting = await resumed(WHOLE)
    posting.post.show(WHOLE)
    await asyncio.sleep(5)
    assert await posting.post.finish(WHOLE) == posting.last_id
    assert posting.wire.calls == []


async def test_what_is_missing_is_sent_with_its_own_nonce() -> None:
    posting = await resumed(words(300).strip())
    assert await posting.post.finish(words(1_000)) == posting.last_id
    assert [(call.kind, call.nonce) for call in posting.wire.calls] == [
        ("edit", ""),
        ("send", "500-1"),
        ("send", "500-2"),
    ]
    assert " ".join(posting.wire.texts).split() == words(1_000).split()


async def test_where_nothing_stands_yet_the_whole_answer_is_sent_as_a_reply() -> None:
    posting = await resumed()
    await posting.post.finish(words(600))
    assert [(call.nonce, call.reply_to) for call in posting.wire.done("send")] == [("500-0", 500), ("500-1", None)]


async def test_what_could_not_be_found_at_the_start_is_looked_for_before_anything_is_sent() -> None:
    wire = FakeWire()
    await wire.send(BEGUN, nonce="500-0", reply_to=500)
    wire.forgets_nonces = True
    posting = Posting(wire, adopted=[])
    await posting.post.finish(WHOLE)
    assert wire.texts == [WHOLE]


async def test_what_stands_too_much_is_taken_back() -> None:
    posting = await resumed(BEGUN, "and more", "and still more")
    assert await posting.post.finish(WHOLE) == next(iter(posting.wire.standing))
    assert posting.wire.texts == [WHOLE]


async def test_what_was_adopted_is_recorded_at_once_and_again_as_it_is_finished() -> None:
    posting = await resumed(BEGUN)
    [first] = posting.recorded
    assert (first.content, first.message_id, first.timestamp, first.is_bot) == (BEGUN, posting.last_id, NOON, True)
    await posting.post.finish(WHOLE)
    assert [record.content for record in posting.recorded] == [BEGUN, WHOLE]


async def test_less_than_what_stands_is_not_shown_until_the_end() -> None:
    posting = await resumed(BEGUN)
    for text in ("A", "A penguin", "A penguin is"):
        posting.post.show(text)
        await asyncio.sleep(2)
    assert posting.wire.calls == []
    assert posting.post.shown == BEGUN
    await posting.post.finish("A bird.")
    assert posting.wire.texts == ["A bird."]


async def test_of_several_messages_none_is_shortened_before_the_new_text_has_come_as_far() -> None:
    posting = await resumed(words(300).strip(), words(200).strip())
    posting.post.show(words(390))
    await asyncio.sleep(2)
    assert posting.wire.calls == []
    posting.post.show(words(600))
    await until(lambda: len(posting.wire.calls) == 2)
    assert len(posting.wire.standing) == 2
    assert " ".join(posting.wire.texts).split() == words(600).split()


async def test_what_a_nonce_gives_is_ours_from_before_and_is_edited() -> None:
    """The one that died had sent it, and nobody had found it in the channel."""
    posting = await resumed(BEGUN)
    again = Posting(posting.wire, adopted=())
    again.post.show("A")
    await asyncio.sleep(2)
    assert posting.wire.texts == [BEGUN]
    assert again.post.shown == BEGUN
    assert [record.content for record in again.recorded] == [BEGUN]
    assert await again.post.finish(WHOLE, CARD) == posting.last_id
    assert (posting.wire.texts, list(posting.wire.cards.values())) == ([WHOLE], [CARD])
    assert [call.kind for call in posting.wire.calls] == ["find", "send", "edit"]


async def test_a_card_sent_before_is_replaced_though_the_text_is_the_same() -> None:
    """It belongs to a prompt of the process that died."""
    posting = await resumed("Which one?")
    again = Posting(posting.wire, adopted=())
    message_id = await again.post.finish("Which one?", CARD)
    assert posting.wire.cards == {message_id: CARD}


async def test_a_message_that_replies_to_the_question_is_our_own_from_before() -> None:
    posting = await resumed()
    posting.post.overheard(8_000, BEGUN, reply_to=500)
    await posting.post.finish(WHOLE)
    assert posting.wire.texts == [WHOLE]


@pytest.mark.parametrize("late", ["It is a kind of bird, and swims, and has no use for wings in the air.", "It"])
async def test_an_edit_from_before_that_comes_late_is_our_own_too(late: str) -> None:
    posting = await resumed(BEGUN)
    await posting.wire.edit(posting.last_id, late)
    await posting.post.finish(WHOLE)
    assert posting.wire.texts == [WHOLE]


async def test_once_it_has_edited_what_it_adopted_it_gives_way_like_any_other() -> None:
    posting = await resumed(BEGUN)
    posting.post.show(WHOLE)
    await until(lambda: posting.wire.texts == [WHOLE])
    await posting.wire.edit(posting.last_id, WHOLE * 2)
    with pytest.raises(PostError) as refused:
        await posting.post.finish("the end")
    assert refused.value.problem is Problem.ELSEWHERE
    assert posting.wire.texts == [WHOLE * 2]


async def test_a_late_event_of_what_it_adopted_is_no_conflict() -> None:
    posting = await resumed(WHOLE)
    posting.post.show(WHOLE * 2)
    await until(lambda: posting.wire.calls)
    posting.post.overheard(posting.last_id, WHOLE, None)
    await asyncio.sleep(5)
    await posting.post.finish(WHOLE * 2)
    assert [call.text for call in posting.wire.calls] == [WHOLE * 2]


async def test_a_message_whose_text_is_not_known_is_edited() -> None:
    posting = await resumed(BEGUN)
    again = Posting(posting.wire, [Posted(posting.last_id, NOON)])
    await again.post.finish(WHOLE)
    assert posting.wire.texts == [WHOLE]
