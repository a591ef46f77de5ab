"""discord_io/streamed_reply.py: one answer on its way into a channel. Time is the event loop's, and skips."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import pairwise

import pytest

from discord_io.channel_wire import PostError, Problem
from discord_io.streamed_reply import DELIVERY_SECONDS, TYPING_DELAY_SECONDS
from tests.discord_io.posting import CARD, QUESTION, Posting, words
from tests.support.clock import NOON
from tests.support.people import ANNA, BEN, BOT
from tests.support.virtual_time import settle, until

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def posting() -> Posting:
    return Posting()


def growing(steps: int) -> Iterator[str]:
    return (words(n).strip() for n in range(1, steps + 1))


async def test_it_types_at_once_and_until_the_first_text_stands(posting: Posting) -> None:
    await asyncio.sleep(TYPING_DELAY_SECONDS)
    await settle()
    assert posting.wire.typing == 1
    posting.post.show("Hello")
    await until(lambda: posting.wire.standing)
    await settle()
    assert posting.wire.typing == 0


async def test_a_message_is_edited_once_a_second_at_most_with_the_newest_text(posting: Posting) -> None:
    texts = list(growing(50))
    for text in texts:
        posting.post.show(text)
        await asyncio.sleep(0.1)
    await posting.post.finish(texts[-1])
    edits = posting.wire.done("edit")
    times = [call.at for call in (*posting.wire.done("send"), *edits)]
    assert all(later - earlier >= 1 - 1e-6 for earlier, later in pairwise(times))
    assert 4 <= len(edits) <= 5
    assert posting.wire.texts == [texts[-1]]


async def test_a_text_that_becomes_shorter_is_shown_so(posting: Posting) -> None:
    posting.post.show("Hello there")
    await until(lambda: posting.wire.standing)
    posting.post.show("Hello")
    await asyncio.sleep(2)
    assert posting.wire.texts == ["Hello"] == [posting.post.shown]


async def test_texts_that_come_while_discord_is_slow_are_taken_together(posting: Posting) -> None:
    posting.wire.seconds_per_call = 5
    for text in growing(20):
        posting.post.show(text)
        await asyncio.sleep(0.25)
    await posting.post.finish("the end")
    assert posting.wire.calls[0].text == "word"
    assert len(posting.wire.calls) <= 3
    assert posting.wire.texts == ["the end"]


async def test_what_stands_already_is_not_sent_again(posting: Posting) -> None:
    posting.post.show("done")
    await asyncio.sleep(5)
    assert await posting.post.finish("done") == posting.last_id
    assert [call.kind for call in posting.wire.calls] == ["send"]


async def test_a_long_answer_is_split_with_a_nonce_for_each_part_and_a_reply_from_the_first_only(
    posting: Posting,
) -> None:
    assert await posting.post.finish(words(1_000)) == posting.last_id
    assert len(posting.wire.standing) == 3
    sends = posting.wire.done("send")
    assert [call.nonce for call in sends] == ["500-0", "500-1", "500-2"]
    assert [call.reply_to for call in sends] == [500, None, None]
    assert all(len(text) <= 2_000 for text in posting.wire.texts)
    assert " ".join(posting.wire.texts).split() == words(1_000).split()


async def test_the_limit_on_edits_holds_for_each_message_by_itself(posting: Posting) -> None:
    first = "x" * 1_999
    posting.post.show(first)
    await until(lambda: posting.wire.standing)
    posting.post.show(f"{first}\n\nmore")
    await until(lambda: len(posting.wire.standing) == 2)
    assert posting.wire.calls[-1].at == 0


async def test_an_empty_end_takes_back_what_stands(posting: Posting) -> None:
    posting.post.show(words(1_000))
    await until(lambda: len(posting.wire.standing) == 3)
    assert await posting.post.finish("") is None
    assert posting.wire.texts == []
    assert len(posting.wire.done("delete")) == 3


async def test_an_empty_end_of_nothing_posts_nothing_and_stops_typing(posting: Posting) -> None:
    await asyncio.sleep(TYPING_DELAY_SECONDS)
    await settle()
    assert await posting.post.finish("") is None
    await settle()
    assert posting.wire.calls == []
    assert (posting.wire.typed, posting.wire.typing) == (True, 0)


@pytest.mark.parametrize("problem", [p for p in Problem if p is not Problem.UNREACHABLE])
async def test_a_refused_send_ends_the_posting_and_the_typing(posting: Posting, problem: Problem) -> None:
    posting.wire.problems["send"].append(problem)
    posting.post.show("Hello")
    await asyncio.wait({posting.post.broken})
    with pytest.raises(PostError) as refused:
        await posting.post.finish("Hello there")
    assert refused.value.problem is problem
    await settle()
    assert posting.wire.typing == 0
    assert posting.recorded == []


async def test_each_outage_is_tried_again_with_the_same_nonce(posting: Posting) -> None:
    posting.wire.problems["send"].extend([Problem.UNREACHABLE] * 2)
    posting.wire.problems["edit"].extend([Problem.UNREACHABLE] * 2)
    posting.post.show("Hello")
    await until(lambda: posting.wire.calls)
    await asyncio.sleep(10)
    assert posting.wire.texts == ["Hello"]
    await posting.post.finish("Hello there")
    assert posting.wire.texts == ["Hello there"]
    assert len({call.nonce for call in posting.wire.done("send")}) == 1


async def test_what_is_whole_waits_ten_minutes_for_discord_and_the_waits_grow_to_half_a_minute(
    posting: Posting,
) -> None:
    posting.wire.problems["send"].extend([Problem.UNREACHABLE] * 99)
    posting.post.show("Hel")
    await asyncio.sleep(DELIVERY_SECONDS)
    assert not posting.post.broken.done()
    whole_at = asyncio.get_running_loop().time()
    posting.wire.problems["find"].extend([Problem.UNREACHABLE] * 99)
    with pytest.raises(PostError) as refused:
        await posting.post.finish("Hello")
    assert refused.value.problem is Problem.UNREACHABLE
    assert DELIVERY_SECONDS <= asyncio.get_running_loop().time() - whole_at <= DELIVERY_SECONDS + 30
    waits = [later.at - earlier.at for earlier, later in pairwise(posting.wire.done("send"))]
    assert waits[:6] == [2, 4, 8, 16, 30, 30]
    await settle()
    assert posting.wire.typing == 0


@pytest.mark.parametrize(("retry_after", "waits"), [(90.0, [90, 90]), (3_600.0, [30, 30])])
async def test_discord_is_left_alone_as_long_as_it_says_unless_that_is_too_long(
    posting: Posting, retry_after: float, waits: list[float]
) -> None:
    posting.wire.retry_after = retry_after
    posting.wire.problems["edit"].extend([Problem.UNREACHABLE] * 2)
    posting.post.show("Hel")
    await until(lambda: posting.wire.standing)
    await posting.post.finish("Hello")
    assert [later.at - earlier.at for earlier, later in pairwise(posting.wire.done("edit"))] == waits
    assert posting.wire.texts == ["Hello"]


@pytest.mark.parametrize(("seconds_per_call", "sends"), [(1.0, 2), (200.0, 1)])
async def test_where_the_history_may_not_be_read_a_send_is_repeated_only_while_its_nonce_is_known(
    posting: Posting, seconds_per_call: float, sends: int
) -> None:
    posting.wire.problems["send"].append(Problem.UNREACHABLE)
    posting.wire.problems["find"].extend([Problem.FORBIDDEN] * 9)
    posting.wire.seconds_per_call = seconds_per_call
    await asyncio.wait({asyncio.create_task(posting.post.finish("Hello"))})
    assert len(posting.wire.done("send")) == sends


async def test_a_deletion_that_fails_is_made_later(posting: Posting) -> None:
    posting.wire.problems["delete"].extend([Problem.UNREACHABLE] * 2)
    posting.post.show(words(1_000))
    await until(lambda: len(posting.wire.standing) == 3)
    await posting.post.finish("Hello")
    assert posting.wire.texts == ["Hello"]


async def test_a_refused_edit_ends_the_posting(posting: Posting) -> None:
    posting.wire.problems["edit"].append(Problem.GONE)
    posting.post.show("Hel")
    await until(lambda: posting.wire.standing)
    with pytest.raises(PostError):
        await posting.post.finish("Hello")
    assert posting.wire.texts == ["Hel"]


async def test_a_refused_deletion_is_reported(posting: Posting) -> None:
    posting.wire.problems["delete"].append(Problem.FORBIDDEN)
    posting.post.show("Hello")
    await until(lambda: posting.wire.standing)
    with pytest.raises(PostError):
        await posting.post.finish("")


async def test_each_part_is_recorded_as_it_stands_with_whom_it_answers(posting: Posting) -> None:
    posting.post.show("Hel")
    await until(lambda: posting.recorded)
    await posting.post.finish("Hello")
    first, last = posting.recorded
    assert (first.content, last.content) == ("Hel", "Hello")
    assert first.message_id == last.message_id == next(iter(posting.wire.standing))
    assert (last.author, last.author_id, last.is_bot, last.timestamp) == ("Parley", BOT, True, NOON)
    assert last.addressees == {ANNA, BEN}
    assert last.reply_to_id == QUESTION.message_id
    assert last.mentions == frozenset()


async def test_what_stands_can_be_asked_for(posting: Posting) -> None:
    assert posting.post.standing == []
    posting.post.show(words(1_000))
    await until(lambda: len(posting.wire.standing) == 3)
    await posting.post.finish(words(600))
    assert [record.content for record in posting.post.standing] == posting.wire.texts
    assert [record.message_id for record in posting.post.standing] == list(posting.wire.standing)
    assert posting.recorded[-1] in posting.post.standing


async def test_a_card_comes_with_the_message_where_nothing_stood_before(posting: Posting) -> None:
    message_id = await posting.post.finish("Which one?", CARD)
    assert [(call.kind, call.card) for call in posting.wire.calls] == [("send", CARD)]
    assert posting.wire.cards == {message_id: CARD}


async def test_a_card_comes_by_an_edit_where_the_whole_text_stood_before(posting: Posting) -> None:
    posting.post.show("Which one?")
    await until(lambda: posting.wire.standing)
    assert await posting.post.finish("Which one?", CARD) == posting.last_id
    assert [(call.kind, call.card) for call in posting.wire.calls] == [("send", None), ("edit", CARD)]
    assert posting.wire.calls[1].at >= 1


async def test_only_the_last_of_several_messages_has_the_card(posting: Posting) -> None:
    posting.post.show(words(500))
    await until(lambda: len(posting.wire.standing) == 2)
    posting.post.show(words(600))
    message_id = await posting.post.finish(words(1_000), CARD)
    assert len(posting.wire.standing) == 3
    assert posting.wire.cards == {message_id: CARD} == {posting.last_id: CARD}
    assert [call.message_id for call in posting.wire.calls if call.card] == [message_id]


async def test_an_end_shorter_than_what_stands_has_the_card_on_what_is_left(posting: Posting) -> None:
    posting.post.show(words(1_000))
    await until(lambda: len(posting.wire.standing) == 3)
    message_id = await posting.post.finish("Which one?", CARD)
    assert posting.wire.texts == ["Which one?"]
    assert posting.wire.cards == {message_id: CARD}


@pytest.mark.parametrize("kind", ["send", "edit"])
async def test_a_card_that_an_outage_swallows_is_put_there_later(posting: Posting, kind: str) -> None:
    posting.wire.problems[kind].extend([Problem.UNREACHABLE] * 2)
    if kind == "edit":
        posting.post.show("Which one?")
        await until(lambda: posting.wire.standing)
    message_id = await posting.post.finish("Which one?", CARD)
    assert posting.wire.cards == {message_id: CARD}
    assert len(posting.wire.standing) == 1


async def test_an_answer_that_was_taken_back_while_it_arrived_leaves_no_card(posting: Posting) -> None:
    posting.wire.problems["send"].append(Problem.UNREACHABLE)
    posting.wire.arrives_anyway = True
    finishing = asyncio.create_task(posting.post.finish("Hello.", CARD))
    await asyncio.sleep(0.1)
    assert posting.wire.cards
    assert posting.post.take_back(is_finished=True)
    with pytest.raises(PostError):
        await finishing
    await posting.post.finish("Hello.")
    assert posting.wire.texts == ["Hello."]
    assert not posting.wire.cards
