"""discord_io/streamed_reply.py: two processes with one token answer the same question, as in a deploy that overlaps."""

from __future__ import annotations

import asyncio
from itertools import pairwise, product

import pytest

from discord_io.channel_wire import Posted, PostError, Problem
from discord_io.sent_texts import MAX_TEXTS, SentTexts
from discord_io.streamed_reply import TYPING_DELAY_SECONDS
from tests.discord_io.posting import CARD, Posting, words
from tests.support.fake_wire import FakeWire
from tests.support.virtual_time import settle, until

pytestmark = pytest.mark.virtual_time

BEGUN = "It is a kind of"
WHOLE = "It is a kind of bird that cannot fly."
OTHER = "Penguins are birds."


@pytest.fixture
async def posting() -> Posting:
    return Posting()


async def shown(text: str, posting: Posting) -> int:
    """Has it shown, and gives the id of its message."""
    posting.post.show(text)
    await until(lambda: posting.wire.standing)
    await settle()
    return posting.last_id


async def gives_way(posting: Posting) -> None:
    """It stops without a further call, whatever it has still to say."""
    calls = len(posting.wire.calls)
    await asyncio.wait({posting.post.broken}, timeout=0.1)
    assert posting.post.broken.done()
    assert posting.wire.typing == 0
    with pytest.raises(PostError) as refused:
        await posting.post.finish("the end", CARD)
    assert refused.value.problem is Problem.ELSEWHERE
    await settle()
    assert len(posting.wire.calls) == calls
    assert posting.wire.typing == 0


# What a nonce gives


async def test_a_message_that_another_sent_with_our_nonce_is_never_edited(posting: Posting) -> None:
    await posting.wire.send(OTHER, nonce="500-0", reply_to=500)
    posting.post.show(BEGUN)
    await asyncio.wait({posting.post.broken})
    await gives_way(posting)
    assert posting.wire.texts == [OTHER]
    assert posting.recorded == []


async def test_a_later_part_that_another_sent_ends_the_posting_too(posting: Posting) -> None:
    await posting.wire.send(OTHER, nonce="500-1", reply_to=None)
    with pytest.raises(PostError) as refused:
        await posting.post.finish(words(600))
    assert refused.value.problem is Problem.ELSEWHERE
    assert posting.wire.done("edit") == posting.wire.done("delete") == []


@pytest.mark.parametrize("card", [None, CARD])
async def test_an_earlier_try_of_ours_that_did_arrive_is_edited_to_the_newest_text(
    posting: Posting, card: object
) -> None:
    posting.wire.problems["send"].extend([Problem.UNREACHABLE] * 2)
    posting.wire.arrives_anyway = True
    posting.post.show(BEGUN)
    await until(lambda: posting.wire.standing)
    message_id = await posting.post.finish(WHOLE, CARD if card else None)
    assert posting.wire.texts == [WHOLE]
    assert posting.wire.cards == ({message_id: CARD} if card else {})


async def test_an_earlier_try_without_its_card_gets_it(posting: Posting) -> None:
    posting.wire.problems["send"].append(Problem.UNREACHABLE)
    posting.wire.arrives_anyway = True
    posting.post.show("Which one?")
    await until(lambda: posting.wire.standing)
    message_id = await posting.post.finish("Which one?", CARD)
    assert posting.wire.cards == {message_id: CARD}
    assert [call.kind for call in posting.wire.calls] == ["send", "find", "edit"]


async def test_a_try_that_arrived_is_heard_of_before_it_is_made_again(posting: Posting) -> None:
    posting.wire.problems["send"].append(Problem.UNREACHABLE)
    posting.post.show(BEGUN)
    await until(lambda: posting.wire.calls)
    posting.post.overheard(9_000, BEGUN, reply_to=500)
    await posting.post.finish(WHOLE)
    assert posting.wire.texts == [WHOLE]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("Hello  there", "Hello there"),
        ("Hello\r\nthere", "Hello\nthere"),
        ("Hello\u200b there", "Hello there"),
        ("Hello <:wave:123456789012345678> there", "Hello :wave: there"),
        ("Hello <a:wave:123456789012345678> there", "Hello :wave: there"),
        ("Hello there", ""),
    ],
)
async def test_what_discord_makes_of_our_text_is_ours(
    posting: Posting, sent: str, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = posting.wire.send

    async def alters(text: str, **how: object) -> Posted:
        posted = await send(text, **how)  # type: ignore[arg-type]
        return Posted(posted.message_id, posted.at, kept)

    monkeypatch.setattr(posting.wire, "send", alters)
    message_id = await posting.post.finish(sent)
    assert message_id is not None
    for _ in range(3):
        posting.post.overheard(message_id, kept, None)
        await settle()
    assert [call.kind for call in posting.wire.calls] == ["send"]
    assert not posting.post.broken.exception()


# What the gateway tells: another was quicker


async def test_it_gives_way_to_another_reply_before_it_has_posted_any(posting: Posting) -> None:
    await asyncio.sleep(TYPING_DELAY_SECONDS)
    await settle()
    assert posting.wire.typing == 1
    posting.post.overheard(8_000, OTHER, reply_to=500)
    await gives_way(posting)
    assert posting.wire.texts == []


@pytest.mark.parametrize("reply_to", [None, 499])
async def test_it_goes_on_beside_what_replies_to_something_else(posting: Posting, reply_to: int | None) -> None:
    posting.post.overheard(8_000, OTHER, reply_to)
    await posting.post.finish(WHOLE)
    assert posting.wire.texts == [WHOLE]


async def test_it_goes_on_where_another_replies_after_it_has(posting: Posting) -> None:
    await shown(BEGUN, posting)
    posting.post.overheard(8_000, OTHER, reply_to=500)
    await posting.post.finish(WHOLE)
    assert posting.wire.texts == [WHOLE]


# What the gateway tells: another edits our message


@pytest.mark.parametrize("seconds_later", [0, 0.5, 30])
async def test_it_gives_way_to_one_that_has_said_more_there(posting: Posting, seconds_later: float) -> None:
    message_id = await shown(BEGUN, posting)
    posting.post.show(WHOLE[:20])  # which waits until it may be edited
    await asyncio.sleep(seconds_later)
    await posting.wire.edit(message_id, OTHER * 2)
    await gives_way(posting)
    assert posting.wire.texts == [OTHER * 2]


async def test_it_sends_no_further_part_once_it_gives_way(posting: Posting) -> None:
    message_id = await shown(BEGUN, posting)
    await asyncio.sleep(1)
    posting.wire.seconds_per_call = 5
    posting.post.show(words(600))
    await until(lambda: posting.wire.done("edit"))
    posting.post.overheard(message_id, "x" * 2_000, None)
    with pytest.raises(PostError):
        await posting.post.finish(words(600))
    assert [call.kind for call in posting.wire.calls] == ["send", "edit"]


async def test_it_gives_way_while_it_waits_to_try_again(posting: Posting) -> None:
    message_id = await shown(BEGUN, posting)
    posting.wire.problems["edit"].append(Problem.UNREACHABLE)
    posting.post.show(WHOLE)
    await asyncio.sleep(1.5)
    assert posting.wire.done("edit")
    posting.post.overheard(message_id, OTHER * 3, None)
    await gives_way(posting)


async def test_it_stops_taking_back_when_it_hears_of_another(posting: Posting) -> None:
    posting.post.show(words(1_000))
    await until(lambda: len(posting.wire.standing) == 3)
    posting.wire.seconds_per_call = 5
    ending = asyncio.create_task(posting.post.finish(""))
    await until(lambda: posting.wire.done("delete"))
    posting.post.overheard(next(iter(posting.wire.standing)), "x" * 2_000, None)
    with pytest.raises(PostError):
        await ending
    assert len(posting.wire.done("delete")) == 1


async def test_it_goes_on_where_the_other_has_said_less_and_puts_its_own_text_back(posting: Posting) -> None:
    message_id = await shown(WHOLE, posting)
    await posting.wire.edit(message_id, OTHER)
    await asyncio.sleep(2)
    assert posting.wire.texts == [WHOLE]
    assert await posting.post.finish(WHOLE) == message_id


async def test_a_shorter_text_that_comes_while_ours_is_under_way_is_put_right(posting: Posting) -> None:
    message_id = await shown(BEGUN, posting)
    await asyncio.sleep(1)
    posting.wire.seconds_per_call = 5
    posting.post.show(WHOLE)
    await until(lambda: posting.wire.done("edit"))
    posting.post.overheard(message_id, OTHER, None)
    await posting.post.finish(WHOLE)
    assert [call.text for call in posting.wire.done("edit")] == [WHOLE, WHOLE]


async def test_a_text_that_was_overruled_once_is_not_fought_over(posting: Posting) -> None:
    """Whatever Discord might make of a text: that must not become an edit a second for ever."""
    message_id = await shown(WHOLE, posting)
    for _ in range(10):
        posting.post.overheard(message_id, OTHER, None)
        await asyncio.sleep(2)
    assert len(posting.wire.done("edit")) == 1


async def test_the_events_of_its_own_edits_are_no_conflict_however_late(posting: Posting) -> None:
    texts = [words(n).strip() for n in range(1, MAX_TEXTS - 5)]
    for text in texts:
        posting.post.show(text)
        await asyncio.sleep(1)
    await posting.post.finish("Sorry.")
    for text in texts:
        posting.post.overheard(posting.last_id, text, None)
    await posting.post.finish("Sorry.")
    assert posting.wire.texts == ["Sorry."]


@pytest.mark.parametrize("content", [WHOLE, f" {WHOLE}\n", BEGUN, ""])
async def test_an_unfurled_link_is_no_conflict(posting: Posting, content: str) -> None:
    message_id = await shown(BEGUN, posting)
    await asyncio.sleep(1)
    posting.post.show(WHOLE)
    await settle()
    posting.post.overheard(message_id, content, None)
    await asyncio.sleep(5)
    await posting.post.finish(WHOLE)
    assert [call.kind for call in posting.wire.calls] == ["send", "edit"]


async def test_what_happens_to_other_messages_is_no_conflict(posting: Posting) -> None:
    message_id = await shown(BEGUN, posting)
    posting.post.overheard(message_id + 1, OTHER * 2, None)
    await posting.post.finish(WHOLE)
    assert posting.wire.texts == [WHOLE]


# What was sent


def of(*texts: str) -> SentTexts:
    said = SentTexts()
    for text in texts:
        said.add(text)
    return said


def test_only_the_last_text_is_its_end() -> None:
    said = of("a", "ab")
    said.overrule("b")
    assert said.ends_with("ab")
    assert not said.ends_with("a")
    assert not said.ends_with("b")
    assert "b" in said


def test_of_two_texts_of_one_length_exactly_one_falls_short() -> None:
    assert of("ab").falls_short_of("ac")
    assert not of("ab").falls_short_of("a b")
    assert not of("ac").falls_short_of("ab")


def test_it_forgets_what_was_said_long_ago() -> None:
    said = of(*(f"<{n}>" for n in range(10_000)))
    assert "<9999>" in said
    assert f"<{10_000 - MAX_TEXTS}>" in said
    assert f"<{10_000 - MAX_TEXTS - 1}>" not in said


# Two at once


def growing(text: str) -> list[str]:
    """The text as it grows."""
    ends = range(5, len(text) + 5, 5)
    return [text[:end].strip() for end in ends]


async def make(posting: Posting, texts: list[str], seconds: float) -> Problem | None:
    """One process's whole answer, as a turn has it posted."""
    for text in texts:
        posting.post.show(text)
        await asyncio.wait({posting.post.broken}, timeout=seconds)
    try:
        await posting.post.finish(texts[-1])
    except PostError as error:
        return error.problem
    return None


@pytest.mark.parametrize(
    ("one", "two"),
    [
        pytest.param(WHOLE * 5, WHOLE * 5, id="the same"),
        pytest.param(WHOLE * 5, f"It is{OTHER * 5}", id="the same beginning"),
        pytest.param(f"It is{OTHER * 5}", WHOLE * 5, id="the same beginning, the other way round"),
        pytest.param(WHOLE * 5, OTHER * 5, id="not the same"),
        pytest.param(WHOLE * 5, "It is.", id="the same beginning of a shorter one"),
    ],
)
async def test_two_that_answer_at_once_make_one_message_and_do_not_edit_it_in_turns(one: str, two: str) -> None:
    for delay, latency in product((0.0, 0.01, 0.3, 2.0), (0.0, 0.05, 0.4)):
        await rival(one, two, delay, latency)


async def rival(one: str, two: str, delay: float, latency: float) -> None:
    wire = FakeWire()
    wire.seconds_per_call = latency
    first, second = Posting(wire), Posting(wire)

    async def later() -> Problem | None:
        await asyncio.sleep(delay)
        return await make(second, growing(two), 0.23)

    problems = await asyncio.gather(make(first, growing(one), 0.2), later())
    assert len(wire.standing) == 1
    assert set(problems) <= {None, Problem.ELSEWHERE}
    assert None in problems
    texts = [call.text for call in wire.calls if call.kind == "edit"]
    turns = [a != b for a, b in pairwise(text in growing(one) for text in texts)]
    assert sum(turns) <= 2
    assert wire.texts[0] in (one, two)
