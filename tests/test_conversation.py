"""conversation.py: what lives how long, and what is kept of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversation import (
    ConversationManager,
    MessageRecord,
)
from tests.support.clock import NOON, FakeClock
from tests.support.discord_payloads import a_bot, a_message
from tests.support.histories import model_reads, turn
from tests.support.people import ANNA, BEN, BOT, CHANNEL, CLEO, replied, said

IMAGE = "https://cdn.example/cat.png"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def manager(clock: FakeClock) -> ConversationManager:
    return ConversationManager(60, clock=clock)


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
    manager.start(1, [])
    clock.advance(40)
    manager.start(2, [])
    clock.advance(40)
    assert manager.sweep() == 1
    assert (manager.get(1), len(manager)) == (None, 1)


def test_ten_thousand_channels_later_all_is_freed(manager: ConversationManager, clock: FakeClock) -> None:
    for channel_id in range(10_000):
        manager.start(channel_id, [said(ANNA)])
    assert len(manager) == 10_000
    clock.advance(61)
    assert manager.sweep() == 10_000
    assert len(manager) == 0


def test_a_held_conversation_does_not_expire(manager: ConversationManager, clock: FakeClock) -> None:
    conversation = manager.start(CHANNEL, [])
    with manager.hold(CHANNEL):
        clock.advance(600)
        assert manager.get(CHANNEL) is conversation
        assert manager.sweep() == 0
    clock.advance(60)
    assert manager.get(CHANNEL) is conversation
    clock.advance(1)
    assert manager.get(CHANNEL) is None


def test_holds_count_and_end_with_an_exception_too(manager: ConversationManager, clock: FakeClock) -> None:
    conversation = manager.start(CHANNEL, [])
    with manager.hold(CHANNEL):
        with pytest.raises(KeyError), manager.hold(CHANNEL):
            raise KeyError
        clock.advance(600)
        assert manager.get(CHANNEL) is conversation
    clock.advance(61)
    assert manager.get(CHANNEL) is None


def test_a_conversation_that_begins_in_a_held_channel_is_held_too(
    manager: ConversationManager, clock: FakeClock
) -> None:
    with manager.hold(CHANNEL):
        conversation = manager.start(CHANNEL, [])
        clock.advance(600)
        assert manager.get(CHANNEL) is conversation


# What is kept


def test_messages_beyond_the_cap_drop_the_oldest_down_to_three_quarters(clock: FakeClock) -> None:
    manager = ConversationManager(60, clock=clock, max_messages=8)
    conversation = manager.start(CHANNEL, [])
    messages = [said(ANNA, str(i)) for i in range(9)]
    for message in messages[:8]:
        manager.record_message(CHANNEL, message)
    assert conversation.messages == messages[:8]
    manager.record_message(CHANNEL, messages[8])
    assert conversation.messages == messages[3:]


def test_characters_beyond_the_cap_drop_the_oldest_but_never_the_newest(clock: FakeClock) -> None:
    manager = ConversationManager(60, clock=clock, max_characters=3_000)
    conversation = manager.start(CHANNEL, [said(ANNA, "x" * 1_000), said(BEN, "y" * 1_000)])
    manager.record_message(CHANNEL, last := said(CLEO, "z" * 4_000))
    assert conversation.messages == [last]
    assert conversation.participants == {CLEO}
    assert conversation.size == last.size


@given(st.lists(st.integers(0, 400), max_size=60))
def test_however_much_is_said_the_caps_hold(lengths: list[int]) -> None:
    manager = ConversationManager(60, clock=FakeClock(), max_messages=10, max_characters=2_000)
    conversation = manager.start(CHANNEL, [])
    for length in lengths:
        manager.record_message(CHANNEL, last := said(ANNA, "x" * length))
        assert conversation.messages[-1] is last
        assert len(conversation.messages) <= 10
        assert conversation.size <= 2_000
        assert conversation.size == sum(m.size for m in conversation.messages)


def test_participants_are_the_people_who_spoke(manager: ConversationManager) -> None:
    conversation = manager.start(CHANNEL, [said(ANNA), replied(ANNA)])
    manager.record_message(CHANNEL, said(BEN))
    assert conversation.participants == {ANNA, BEN}
    assert conversation.names == {ANNA: "Anna", BEN: "Ben"}


def test_the_bots_own_message_is_replaced_as_it_grows(manager: ConversationManager) -> None:
    conversation = manager.start(CHANNEL, [said(ANNA)])
    for text in ("One", "One two"):
        manager.record_message(CHANNEL, replied(ANNA, text, message_id=42))
    assert [m.content for m in conversation.messages] == ["hello", "One two"]


def test_what_was_said_before_is_put_in_front_once(manager: ConversationManager) -> None:
    asked = said(ANNA)
    before = [said(BEN, at=NOON - timedelta(minutes=1)), asked]
    conversation = manager.start(CHANNEL, [asked])
    conversation.precede(before)
    conversation.precede(before)
    assert conversation.messages == before
    assert conversation.participants == {ANNA, BEN}
    assert conversation.engagement.last_author == ANNA


def test_mentions_are_those_discord_names_or_else_those_in_the_text() -> None:
    text = f"<@{BEN}> and <@!{CLEO}>, <@&5> <@x>"
    assert said(ANNA, text).mentions == {BEN, CLEO}
    assert said(ANNA, text, mentioned=frozenset({BEN})).mentions == {BEN}
    assert said(ANNA, text, mentioned=frozenset()).mentions == frozenset()


# Edits and deletions


def test_an_edit_reaches_the_record_and_what_the_model_is_told(manager: ConversationManager) -> None:
    asked, other = said(ANNA, "I like tea", images=(IMAGE,)), said(BEN, "me too")
    conversation = manager.start(CHANNEL, [asked, other])
    manager.record_bot_response(CHANNEL, turn(asked, other))
    manager.revise(CHANNEL, replace(asked, content="I like coffee", images=()))
    assert [m.content for m in conversation.messages] == ["I like coffee", "me too"]
    assert model_reads(conversation.llm_history) == "Anna: I like coffee\nBen: me too\n"
    assert conversation.size == sum(m.size for m in conversation.messages)


def test_an_edit_of_an_unknown_message_changes_nothing(manager: ConversationManager) -> None:
    conversation = manager.start(CHANNEL, [asked := said(ANNA)])
    manager.revise(CHANNEL, said(ANNA, "something else"))
    manager.revise(CHANNEL + 1, asked)
    assert conversation.messages == [asked]


def test_a_deletion_takes_text_and_images_from_everywhere(manager: ConversationManager) -> None:
    secret, other = said(ANNA, "my secret", images=(IMAGE,)), said(BEN, "so?")
    conversation = manager.start(CHANNEL, [secret, other])
    manager.record_bot_response(CHANNEL, turn(secret, other))
    manager.forget_messages(CHANNEL, {secret.message_id})
    assert conversation.messages == [other]
    assert conversation.participants == {BEN}
    assert model_reads(conversation.llm_history) == "Ben: so?\n"


def test_what_is_deleted_or_edited_while_the_bot_answers_does_not_come_back(manager: ConversationManager) -> None:
    secret, wrong, fine = said(ANNA, "my secret", images=(IMAGE,)), said(BEN, "wrong"), said(CLEO, "fine")
    conversation = manager.start(CHANNEL, [secret, wrong, fine])
    being_made = turn(secret, wrong, fine)
    manager.forget_messages(CHANNEL, {secret.message_id})
    manager.revise(CHANNEL, replace(wrong, content="right"))
    manager.record_bot_response(CHANNEL, being_made)
    assert model_reads(conversation.llm_history) == "Ben: right\nCleo: fine\n"


def test_forgetting_a_person_leaves_the_others(manager: ConversationManager) -> None:
    first, other, second = said(ANNA, "one"), said(BEN, "two"), said(ANNA, "three")
    conversation = manager.start(CHANNEL, [first, other, second])
    manager.record_bot_response(CHANNEL, turn(first, other, second))
    manager.forget_author(CHANNEL, ANNA)
    assert conversation.messages == [other]
    assert conversation.participants == {BEN}
    assert model_reads(conversation.llm_history) == "Ben: two\n"


def test_whoever_told_the_bot_off_long_ago_is_left_alone_whatever_is_edited_since(clock: FakeClock) -> None:
    manager = ConversationManager(60, clock=clock, max_messages=8)
    conversation = manager.start(CHANNEL, [said(ANNA, f"<@{BOT}> hi"), replied(ANNA)])
    for author in (BEN, CLEO):
        manager.record_message(CHANNEL, said(author, "shut up", tells_off=True))
    manager.record_message(CHANNEL, said(CLEO, f"<@{BOT}> sorry"))
    for number in range(20):
        newest = said(ANNA, f"number {number}")
        manager.record_message(CHANNEL, newest)
    manager.revise(CHANNEL, replace(newest, content="edited"))
    assert [who for who in (ANNA, BEN, CLEO) if conversation.engagement.standing(who).told_off] == [BEN]
    manager.record_message(CHANNEL, said(BEN, f"<@{BOT}> sorry"))
    manager.revise(CHANNEL, newest)
    assert not conversation.engagement.standing(BEN).told_off
    manager.record_message(CHANNEL, said(BEN, "shut up", tells_off=True))
    conversation.trim(1, 10_000)
    manager.forget_author(CHANNEL, BEN)
    assert not conversation.engagement.standing(BEN).told_off


def test_a_trimmed_message_stays_in_what_the_model_was_told(clock: FakeClock) -> None:
    """Only deletion takes words out of the history; the record's cap is about memory."""
    manager = ConversationManager(60, clock=clock, max_messages=2)
    conversation = manager.start(CHANNEL, [first := said(ANNA, "the first")])
    manager.record_bot_response(CHANNEL, turn(first))
    for _ in range(3):
        manager.record_message(CHANNEL, said(BEN))
    manager.record_bot_response(CHANNEL, [*conversation.llm_history, *turn(*conversation.untold())])
    assert first not in conversation.messages
    assert "the first" in model_reads(conversation.llm_history)


# To whom each message is


def test_to_whom_a_message_is_is_kept_with_it(manager: ConversationManager) -> None:
    messages = [
        said(BEN, "hi"),
        said(ANNA, "ben are you coming"),
        said(CLEO, f"<@{ANNA}> and you?"),
        said(BEN, "no", reply_to_id=7, reply_to_author_id=CLEO),
        said(BEN, "ben is late"),
    ]
    conversation = manager.start(CHANNEL, messages)
    assert [conversation.named[m.message_id] for m in messages] == [set(), {BEN}, {ANNA}, {CLEO}, set()]
    assert conversation.engagement.standing(BEN).addressed


def test_a_reply_that_came_without_its_message_is_to_that_messages_author(manager: ConversationManager) -> None:
    conversation = manager.start(CHANNEL, [asked := said(BEN, "hi"), reply := said(ANNA, reply_to_id=asked.message_id)])
    assert conversation.named[reply.message_id] == {BEN}


def test_whoever_is_renamed_is_called_by_the_new_name(manager: ConversationManager) -> None:
    conversation = manager.start(CHANNEL, [said(BEN, "hi"), said(BEN, "hi", author="Maximilian")])
    for text in ("maximilian are you coming", "max, Maximilian"):
        conversation.add(message := said(ANNA, text))
        assert conversation.named[message.message_id] == {BEN}


def test_an_edit_can_change_to_whom_a_message_is(manager: ConversationManager) -> None:
    conversation = manager.start(CHANNEL, [said(BEN, "hi"), message := said(ANNA, "ben are you coming")])
    conversation.revise(replace(message, content="are you coming"))
    assert conversation.named[message.message_id] == set()


def test_names_and_targets_go_with_the_messages(manager: ConversationManager) -> None:
    conversation = manager.start(CHANNEL, [said(BEN, "hi"), *(said(ANNA, "ben hi") for _ in range(10))])
    conversation.trim(8, 10_000)
    assert conversation.called == {"anna": ANNA}
    assert conversation.named.keys() == {m.message_id for m in conversation.messages}
    conversation.forget(ANNA)
    assert (conversation.called, conversation.named) == ({}, {})
