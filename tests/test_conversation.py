"""conversation.py: what lives how long, and what is kept of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from sys import getsizeof

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channel_conversation import LONG_ANSWERS
from conversation import ChannelConversation, ConversationManager, MessageRecord, StoredConversation, Unwelcome
from remote_memory import MAX_REMOTE, RemoteMemory
from state.agent_state import UMSState
from state.message import WORDED
from tests.support.clock import NOON, FakeClock
from tests.support.discord_payloads import a_bot, a_message
from tests.support.histories import turn
from tests.support.people import ANNA, BEN, BOT, CHANNEL, CLEO, DAN, replied, said


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def manager(clock: FakeClock) -> ConversationManager:
    return ConversationManager(60, clock=clock)


def test_whoever_told_the_bot_to_keep_out_is_left_alone_where_it_goes_on_in_a_thread(
    clock: FakeClock,
) -> None:
    """Also where that message is trimmed, and where nobody wanted the last answer."""
    manager = ConversationManager(60, clock=clock, max_messages=4)
    manager.start(CHANNEL, [replace(said(ANNA, "nobody asked you"), tells_off=True)])
    for _ in range(5):
        manager.record_message(CHANNEL, said(BEN))
    before = manager.get(CHANNEL)
    assert before
    before.unwelcome = Unwelcome.DISLIKED
    manager.move(CHANNEL, CHANNEL + 1)
    thread = manager.get(CHANNEL + 1)
    assert thread
    assert thread.engagement.standing(ANNA).told_off
    assert thread.unwelcome is Unwelcome.DISLIKED


# Document 003's own


def test_conversation_expires_after_timeout() -> None:
    manager = ConversationManager(timeout_seconds=60)
    conv = manager.start(channel_id=123, initial_messages=[])

    # Simulate time passing
    conv.last_activity = datetime.now(timezone.utc) - timedelta(seconds=61)  # noqa: UP017

    assert manager.get(123) is None


def test_message_bumps_timeout() -> None:
    manager = ConversationManager(timeout_seconds=60)
    conv = manager.start(channel_id=123, initial_messages=[])

    original_activity = conv.last_activity

    manager.record_message(123, MessageRecord("Anna", ANNA, "hello", datetime.now(UTC), is_bot=False))

    assert conv.last_activity > original_activity


def test_bot_messages_filtered() -> None:
    """Bot's own messages don't trigger conversation logic."""
    # Verify on_message early-returns for bot's own messages
    bot = a_bot()
    own = a_message(bot, author_id=BOT, content=f"I am <@{BOT}>", mentions=[BOT])

    asyncio.run(bot.on_message(own))

    assert (len(bot.conversations), len(bot.decisions), len(bot.turns)) == (0, 0, 0)


# Living and expiring


def test_a_conversation_lives_until_the_timeout_has_passed(manager: ConversationManager, clock: FakeClock) -> None:
    conversation = manager.start(CHANNEL, [])
    clock.advance(60)
    assert manager.get(CHANNEL) is conversation
    clock.advance(0.001)
    assert manager.get(CHANNEL) is None
    assert len(manager) == 0


def test_any_message_and_any_answer_keeps_it_alive(manager: ConversationManager, clock: FakeClock) -> None:
    conversation = manager.start(CHANNEL, [])
    for message in (said(BEN), replied(BEN)):
        clock.advance(50)
        manager.record_message(CHANNEL, message)
    clock.advance(50)
    manager.record_bot_response(CHANNEL, [])
    clock.advance(50)
    assert manager.get(CHANNEL) is conversation


def test_a_message_after_the_end_is_not_recorded(manager: ConversationManager, clock: FakeClock) -> None:
    conversation = manager.start(CHANNEL, [])
    clock.advance(61)
    manager.record_message(CHANNEL, said(ANNA))
    manager.record_bot_response(CHANNEL, turn(said(ANNA)))
    assert manager.get(CHANNEL) is None
    assert (conversation.messages, conversation.llm_history) == ([], [])


def test_the_sweep_frees_what_nobody_touches(manager: ConversationManager, clock: FakeClock) -> None:
    for channel_id in range(1_000):
        manager.start(channel_id, [said(ANNA)])
    clock.advance(40)
    manager.start(2_000, [])
    clock.advance(40)
    assert (manager.sweep(), manager.get(1), len(manager)) == (1_000, None, 1)


def test_a_held_channels_conversation_does_not_expire(manager: ConversationManager, clock: FakeClock) -> None:
    """Holds count, and end with an exception, too."""
    with manager.hold(CHANNEL):
        conversation = manager.start(CHANNEL, [])
        with pytest.raises(KeyError), manager.hold(CHANNEL):
            raise KeyError
        clock.advance(600)
        assert (manager.get(CHANNEL), manager.sweep()) == (conversation, 0)
    clock.advance(60)
    assert manager.get(CHANNEL) is conversation
    clock.advance(1)
    assert manager.get(CHANNEL) is None


# What is kept


@given(st.lists(st.integers(0, 400) | st.just(4_000), max_size=60))
def test_beyond_the_caps_the_oldest_go_down_to_three_quarters_but_never_the_newest(lengths: list[int]) -> None:
    manager = ConversationManager(60, clock=FakeClock(), max_messages=8, max_characters=2_000)
    conversation = manager.start(CHANNEL, [])
    for length in lengths:
        before = [*conversation.messages]
        manager.record_message(CHANNEL, last := said(ANNA, "x" * length))
        kept, size = conversation.messages, sum(m.size for m in conversation.messages)
        assert kept == [*before, last][-len(kept) :]
        assert (conversation.size, conversation.participants) == (size, {ANNA})
        assert len(kept) <= 8
        assert size <= 2_000 or kept == [last]
        if len(kept) <= len(before):
            assert len(kept) <= 6
            assert size <= 1_500 or kept == [last]
            oldest = before[-len(kept)]
            assert len(kept) == 6 or size + oldest.size > 1_500


def _keeps(message: MessageRecord, name: str) -> bool:
    """Whether what was found in a message is kept, without finding it."""
    if name == "grams":
        return _keeps(message, "wording") and _has(message.wording, name)
    return _has(message, name)


def _has(found: object, name: str) -> bool:
    try:
        getattr(type(found), name).__get__(found)
    except AttributeError:
        return False
    return True


def test_a_message_takes_no_dict_and_no_more_than_is_kept_of_each() -> None:
    """With a dict for what is found in it when it is asked for it takes 1.5 kB more. A conversation has 500 of them."""
    message = said(ANNA, "ben, are you coming?")
    assert (message.calls, message.wording.count) == (frozenset({"ben", "are you coming"}), 4)
    assert not hasattr(message, "__dict__")
    assert getsizeof(message) <= 264


def test_a_conversation_has_no_empty_sets_of_its_own() -> None:
    """Each takes 216 bytes, and most conversations have nothing to put into them."""
    question = said(ANNA)
    conversation, fresh = (ChannelConversation(CHANNEL, NOON, NOON, messages=[question]) for _ in range(2))
    conversation.precede([said(BEN, message_id=1)])
    conversation.begin_turn()
    answer = replied(ANNA)
    conversation.add(answer)
    conversation.add(replace(answer, content="There you are."))
    conversation.answered(turn(question))
    assert conversation.own == {answer.message_id}
    for name in ("passed_over", "unsaid", "tainted"):
        assert getattr(conversation, name) is getattr(fresh, name), name


def test_only_the_newest_messages_keep_how_they_are_worded(manager: ConversationManager, clock: FakeClock) -> None:
    conversation = manager.start(CHANNEL, [])
    for number in range(1, 3 * WORDED):
        conversation.add(said(ANNA, "I had pasta for lunch today", clock(), message_id=number))
        assert conversation.messages[-1].wording.grams
    kept = [_keeps(message, "wording") or _keeps(message, "grams") for message in conversation.messages]
    assert not any(kept[:-WORDED])
    assert all(kept[-WORDED:])


def test_what_somebody_said_last_keeps_how_it_is_worded_twice_as_long(
    manager: ConversationManager, clock: FakeClock
) -> None:
    conversation, people = manager.start(CHANNEL, []), range(100, 120)
    for number in range(3 * len(people)):
        author = people[number % len(people)]
        before = next((m for m in reversed(conversation.messages) if m.author_id == author), None)
        conversation.add(said(author, "I had pasta for lunch today", clock(), message_id=number + 1))
        assert before is None or _keeps(before, "wording")
        assert conversation.messages[-1].wording.grams
    kept = [_keeps(message, "wording") for message in conversation.messages]
    assert not any(kept[: -2 * WORDED])
    assert all(kept[-len(people) :])
    assert [_keeps(message, "grams") for message in conversation.messages[-WORDED - 1 :]] == [False, *[True] * WORDED]


def test_participants_are_the_people_who_spoke_and_the_bots_words_are_replaced_as_they_grow(
    manager: ConversationManager,
) -> None:
    conversation = manager.start(CHANNEL, [said(ANNA), said(BEN)])
    for text in ("One", "One two"):
        manager.record_message(CHANNEL, replied(ANNA, text, message_id=42))
    assert [m.content for m in conversation.messages] == ["hello", "hello", "One two"]
    assert (conversation.participants, conversation.names) == ({ANNA, BEN}, {ANNA: "Anna", BEN: "Ben"})


def test_another_bots_message_keeps_the_conversation_open_and_takes_no_part(
    manager: ConversationManager, clock: FakeClock
) -> None:
    spoken = [said(ANNA), replied(ANNA), said(BEN)]
    conversation = manager.start(CHANNEL, spoken)
    before = conversation.engagement
    clock.advance(59)
    manager.record_message(CHANNEL, said(DAN, f"<@{BOT}> Ben: done", is_other_bot=True))
    clock.advance(59)
    assert manager.get(CHANNEL) is conversation
    assert (conversation.participants, conversation.names) == ({ANNA, BEN}, {ANNA: "Anna", BEN: "Ben"})
    assert conversation.engagement == before
    assert list(conversation.before(said(CLEO), 3)) == spoken


def test_what_was_said_before_is_put_in_front_once(manager: ConversationManager) -> None:
    asked = said(ANNA)
    before = [said(BEN, at=NOON - timedelta(minutes=1)), asked]
    conversation = manager.start(CHANNEL, [asked])
    conversation.precede(before)
    conversation.precede(before)
    assert conversation.messages == before
    assert conversation.participants == {ANNA, BEN}
    assert conversation.engagement.last_author == ANNA


# To whom each message is


def test_to_whom_a_message_is_is_kept_with_it(manager: ConversationManager) -> None:
    messages = [
        said(BEN, "hi", message_id=1),
        said(ANNA, "ben are you coming"),
        said(CLEO, f"<@{ANNA}> and you?"),
        said(BEN, "no", reply_to_id=7, reply_to_author_id=CLEO),
        said(CLEO, "no", reply_to_id=1),  # a reply that came without its message
        said(BEN, "ben is late"),
    ]
    conversation = manager.start(CHANNEL, messages)
    assert [conversation.heard.named.get(m.message_id) for m in messages] == [None, {BEN}, {ANNA}, {CLEO}, {BEN}, None]
    assert conversation.engagement.standing(BEN).addressed
    conversation.revise(replace(messages[1], content="are you coming"))
    assert messages[1].message_id not in conversation.heard.named


def test_the_answer_that_makes_a_conversation_long_counts_before_it_is_posted_and_once(
    manager: ConversationManager,
) -> None:
    conversation = manager.start(CHANNEL, [])
    questions = [said(ANNA, f"question {number}?") for number in range(LONG_ANSWERS)]
    for question in questions[:-1]:
        conversation.add(replied(ANNA, reply_to_id=question.message_id))
    assert not conversation.asks_for_thread(questions[0].message_id)
    assert conversation.asks_for_thread(questions[-1].message_id)
    assert not conversation.asks_for_thread(questions[-1].message_id)


def test_whoever_is_renamed_is_called_by_the_new_name(manager: ConversationManager) -> None:
    conversation = manager.start(CHANNEL, [said(BEN, "hi"), said(BEN, "hi", author="Maximilian")])
    for text in ("maximilian are you coming", "max, Maximilian"):
        conversation.add(message := said(ANNA, text))
        assert conversation.heard.named[message.message_id] == {BEN}


def test_names_and_targets_go_with_the_messages(manager: ConversationManager) -> None:
    conversation = manager.start(CHANNEL, [said(BEN, "hi"), *(said(ANNA, "ben hi") for _ in range(10))])
    conversation.trim(8, 10_000)
    assert conversation.called == {"anna": ANNA}
    assert conversation.heard.named.keys() == {m.message_id for m in conversation.messages}
    conversation.forget(ANNA)
    assert (conversation.called, conversation.heard.named) == ({}, {})


# What is a remote agent's business

STATE = UMSState(ums_conversation_id="conv-1")


def with_docs(manager: ConversationManager | None = None) -> ChannelConversation:
    """Anna asked the agent docs something, which it answered; Ben said something to nobody."""
    question, answer = said(ANNA, "docs: where?", message_id=1), said(BOT, "page 12", message_id=2)
    manager = ConversationManager() if manager is None else manager
    conversation = manager.start(CHANNEL, [question, answer, said(BEN, "tea?", message_id=3)])
    conversation.remote.ask("docs", [1, 2])
    conversation.remote.states["docs"] = STATE
    return conversation


def test_the_general_agent_is_not_told_what_another_was_asked() -> None:
    conversation = with_docs()
    assert [m.message_id for m in conversation.untold()] == [3]
    assert conversation.remote.asked == {1: "docs", 2: "docs"}
    conversation.remote.ask("docs", range(10, 10_000))
    assert len(conversation.remote.asked) <= MAX_REMOTE
    assert not conversation.remote.states


def test_what_another_agent_was_asked_is_stored_and_was_not_before_there_were_any(
    manager: ConversationManager,
) -> None:
    conversation = with_docs(manager)
    kept = manager.stored(CHANNEL)
    assert kept
    stored = StoredConversation.from_json(kept.to_json())
    assert (stored.remote, stored.states) == ({1: "docs", 2: "docs"}, {"docs": STATE})
    conversation.remote = RemoteMemory()
    now = manager.stored(CHANNEL)
    assert now
    earlier = now.to_json().replace(b'"remote":{},"states":{},', b"")
    assert b"remote" not in earlier
    assert StoredConversation.from_json(earlier) == now


@pytest.mark.parametrize(
    ("change", "is_over"),
    [
        (lambda conversation: conversation.remove([1]), True),
        (lambda conversation: conversation.remove([2]), True),
        (lambda conversation: conversation.remove([3]), False),
        (lambda conversation: conversation.forget(ANNA), True),
        (lambda conversation: conversation.forget(BEN), False),
        (lambda conversation: conversation.revise(said(ANNA, "docs: something else?", message_id=1)), True),
        (lambda conversation: conversation.trim(1, 10_000), False),
        (lambda conversation: (conversation.trim(1, 10_000), conversation.remove([1])), True),
        (lambda conversation: (conversation.trim(1, 10_000), conversation.forget(CLEO)), True),
    ],
)
def test_what_is_deleted_or_edited_of_it_ends_the_agents_conversation(
    change: Callable[[ChannelConversation], object], is_over: bool
) -> None:
    """Of a message that was trimmed it is not known whose it was."""
    conversation = with_docs()
    change(conversation)
    assert (conversation.remote.states, conversation.remote.left) == (
        ({}, frozenset({"docs"})) if is_over else ({"docs": STATE}, frozenset())
    )
