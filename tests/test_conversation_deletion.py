"""What is deleted or edited is so everywhere: in records, in replies that quote it, and in what the model reads."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic_ai.messages import ModelResponse, TextPart

from conversation import MAX_TAKEN_BACK, ChannelConversation, ConversationManager, MessageRecord
from llm_history import FORGOTTEN
from state.message import Source, sources_of, sources_of_reading
from tests.support.clock import FakeClock
from tests.support.histories import model_reads, turn
from tests.support.people import ANNA, BEN, CHANNEL, CLEO, replied, said


@pytest.fixture
def manager() -> ConversationManager:
    return ConversationManager(60, clock=FakeClock(), max_messages=3)


@pytest.fixture
def secret() -> MessageRecord:
    return said(ANNA, "my secret")


@pytest.fixture
def conversation(manager: ConversationManager, secret: MessageRecord) -> ChannelConversation:
    """One in which the secret was told to the model."""
    started = manager.start(CHANNEL, [secret])
    manager.record_bot_response(CHANNEL, turn(secret))
    return started


def test_what_is_deleted_while_the_next_turn_runs_stays_deleted(
    manager: ConversationManager, conversation: ChannelConversation, secret: MessageRecord
) -> None:
    manager.record_message(CHANNEL, asked := said(BEN, "next"))
    being_made = [*conversation.llm_history, *turn(asked)]
    manager.forget_messages(CHANNEL, {secret.message_id})
    manager.record_bot_response(CHANNEL, being_made)
    assert "secret" not in model_reads(conversation.llm_history)
    assert "next" in model_reads(conversation.llm_history)


def test_what_is_edited_while_the_next_turn_runs_stays_edited(
    manager: ConversationManager, conversation: ChannelConversation, secret: MessageRecord
) -> None:
    manager.record_message(CHANNEL, asked := said(BEN, "next"))
    being_made = [*conversation.llm_history, *turn(asked)]
    manager.revise(CHANNEL, replace(secret, content="harmless"))
    manager.record_bot_response(CHANNEL, being_made)
    assert "secret" not in model_reads(conversation.llm_history)
    assert "harmless" in model_reads(conversation.llm_history)


def fill(manager: ConversationManager, secret: MessageRecord) -> None:
    """Until the cap has trimmed the secret from the records."""
    for _ in range(4):
        manager.record_message(CHANNEL, said(BEN))
    conversation = manager.get(CHANNEL)
    assert conversation
    assert conversation.find(secret.message_id) is None
    assert "secret" in model_reads(conversation.llm_history)


def test_a_deletion_reaches_what_the_cap_has_trimmed(
    manager: ConversationManager, conversation: ChannelConversation, secret: MessageRecord
) -> None:
    fill(manager, secret)
    manager.forget_messages(CHANNEL, {secret.message_id})
    assert "secret" not in model_reads(conversation.llm_history)


def test_forgetting_a_person_reaches_what_the_cap_has_trimmed(
    manager: ConversationManager, conversation: ChannelConversation, secret: MessageRecord
) -> None:
    fill(manager, secret)
    manager.forget_author(CHANNEL, ANNA)
    assert "secret" not in model_reads(conversation.llm_history)


def test_replies_no_longer_quote_what_was_deleted(manager: ConversationManager, secret: MessageRecord) -> None:
    reply = said(
        BEN,
        "oh",
        reply_to_id=secret.message_id,
        reply_to_author_id=ANNA,
        reply_to_author="Anna",
        reply_to_text="my secret",
    )
    conversation = manager.start(CHANNEL, [secret, reply])
    manager.record_bot_response(CHANNEL, turn(secret, reply))
    manager.forget_messages(CHANNEL, {secret.message_id})
    assert "secret" not in model_reads(conversation.llm_history) + repr(conversation.messages)
    assert "oh" in model_reads(conversation.llm_history)


def test_trimming_while_a_turn_runs_deletes_nothing_from_its_history(manager: ConversationManager) -> None:
    first = said(ANNA, "the first")
    conversation = manager.start(CHANNEL, [first])
    being_made = turn(first)
    for _ in range(4):
        manager.record_message(CHANNEL, said(BEN))
    manager.record_bot_response(CHANNEL, being_made)
    assert "first" in model_reads(conversation.llm_history)


def answers(conversation: ChannelConversation) -> list[str]:
    """What the model is told that it said."""
    said = (part for message in conversation.llm_history for part in message.parts)
    return [part.content for part in said if isinstance(part, TextPart)]


def test_forgetting_a_person_drops_what_was_answered_to_them(
    manager: ConversationManager, conversation: ChannelConversation
) -> None:
    manager.record_message(CHANNEL, asked := said(BEN, "next"))
    manager.record_bot_response(CHANNEL, [*conversation.llm_history, *turn(asked, answer="to Ben")])
    manager.forget_author(CHANNEL, ANNA)
    assert answers(conversation) == [FORGOTTEN, "to Ben"]


def test_with_a_forgotten_persons_messages_go_the_answers_to_them(manager: ConversationManager) -> None:
    conversation = manager.start(CHANNEL, [said(ANNA, "tea, please"), ours := said(BEN, "and you?")])
    manager.record_message(CHANNEL, replied(ANNA, "You like tea."))
    manager.forget_author(CHANNEL, ANNA)
    assert conversation.messages == [ours]


def test_what_was_answered_to_a_forgotten_person_stays_dropped_when_a_turn_ends_later(
    manager: ConversationManager, conversation: ChannelConversation
) -> None:
    manager.record_bot_response(CHANNEL, turn(said(ANNA, "who am I?"), answer="you are Anna"))
    manager.record_message(CHANNEL, asked := said(BEN, "next"))
    being_made = [*conversation.llm_history, *turn(asked, answer="to Ben")]
    manager.forget_author(CHANNEL, ANNA)
    manager.record_bot_response(CHANNEL, being_made)
    assert answers(conversation) == [FORGOTTEN, "to Ben"]


def test_forgetting_a_person_leaves_what_is_answered_to_them_later(
    manager: ConversationManager, conversation: ChannelConversation
) -> None:
    manager.forget_author(CHANNEL, ANNA)
    manager.record_message(CHANNEL, asked := said(ANNA, "and now?"))
    manager.record_bot_response(CHANNEL, [*conversation.llm_history, *turn(asked, answer="later")])
    assert answers(conversation) == [FORGOTTEN, "later"]


def test_with_the_bots_own_message_goes_what_the_model_is_told_that_it_said(
    manager: ConversationManager, conversation: ChannelConversation, secret: MessageRecord
) -> None:
    answer = replied(ANNA)
    manager.record_message(CHANNEL, replace(answer, reply_to_id=secret.message_id))
    manager.forget_messages(CHANNEL, {answer.message_id})
    assert answers(conversation) == [FORGOTTEN]


def test_with_a_mini_apps_message_goes_no_answer_of_the_models(
    manager: ConversationManager, conversation: ChannelConversation, secret: MessageRecord
) -> None:
    card = replace(replied(ANNA), reply_to_id=secret.message_id)
    manager.record_message(CHANNEL, card, by_model=False)
    manager.forget_messages(CHANNEL, {card.message_id})
    assert answers(conversation) == ["yes"]


def held(conversation: ChannelConversation) -> list[object]:
    """What the agent keeps for itself."""
    return [m.metadata for m in conversation.llm_history if isinstance(m, ModelResponse)]


def keep_words_of(manager: ConversationManager, message: MessageRecord) -> dict[str, object]:
    """The agent answers Ben, and keeps words of the message for itself."""
    metadata: dict[str, object] = {"ask_id": "a", "words_of": sources_of(message), "so": message.content}
    manager.record_message(CHANNEL, asked := said(BEN, "next"))
    prompt, response = turn(asked)
    manager.record_bot_response(CHANNEL, [prompt, replace(response, metadata=metadata)])  # the older turn is trimmed
    return metadata


def test_what_the_agent_keeps_goes_with_whose_words_it_holds_though_they_are_trimmed(
    manager: ConversationManager, conversation: ChannelConversation, secret: MessageRecord
) -> None:
    keep_words_of(manager, secret)
    for _ in range(4):
        manager.record_message(CHANNEL, said(BEN))
    manager.forget_author(CHANNEL, ANNA)
    assert held(conversation) == [None]


def test_what_the_agent_keeps_stays_where_others_words_change(
    manager: ConversationManager, conversation: ChannelConversation, secret: MessageRecord
) -> None:
    other = said(BEN, "hm", reply_to_id=secret.message_id, reply_to_author_id=ANNA, reply_to_author="Anna")
    manager.record_message(CHANNEL, other)
    metadata = keep_words_of(manager, other)
    manager.revise(CHANNEL, replace(secret, content="harmless"))
    assert held(conversation) == [metadata]
    manager.revise(CHANNEL, replace(other, content="hmm"))
    assert held(conversation) == [None]


@pytest.mark.parametrize("is_before", [True, False], ids=["before it", "meanwhile"])
def test_what_was_edited_before_the_turn_began_it_read_as_it_is(
    manager: ConversationManager, conversation: ChannelConversation, secret: MessageRecord, *, is_before: bool
) -> None:
    manager.revise(CHANNEL, replace(secret, content="harmless"))
    if is_before:
        conversation.begin_turn()
    metadata = keep_words_of(manager, secret)
    assert held(conversation) == [metadata if is_before else None]


@pytest.mark.parametrize("gone", [("message", 7), ("person", CLEO), ("channel", CHANNEL + 1)])
@pytest.mark.parametrize("is_meanwhile", [True, False])
def test_what_it_keeps_of_other_channels_goes_too(
    manager: ConversationManager, conversation: ChannelConversation, gone: Source, *, is_meanwhile: bool
) -> None:
    read = sources_of_reading(said(CLEO, "elsewhere", message_id=7), CHANNEL + 1)
    prompt, response = turn(said(BEN, "next"))
    history = [prompt, replace(response, metadata={"ask_id": "a", "words_of": read})]
    if is_meanwhile:
        with manager.hold(CHANNEL):
            assert manager.take_back(gone) == []
            manager.record_bot_response(CHANNEL, history)
    else:
        manager.record_bot_response(CHANNEL, history)
        assert manager.take_back(("message", 8), ("person", BEN), ("channel", CHANNEL)) == []
        assert manager.take_back(gone) == [CHANNEL]
    assert held(conversation) == [None]
    assert not conversation.waits


def test_what_is_taken_back_while_a_turn_is_made_is_bounded(conversation: ChannelConversation) -> None:
    conversation.take_back(("message", number) for number in range(MAX_TAKEN_BACK + 5))
    assert len(conversation.taken_back) == MAX_TAKEN_BACK
    conversation.begin_turn()
    assert not conversation.taken_back


def test_forgetting_a_person_reaches_others_replies_that_quote_them(manager: ConversationManager) -> None:
    reply = said(BEN, "oh", reply_to_id=5, reply_to_author_id=ANNA, reply_to_author="Anna", reply_to_text="my secret")
    conversation = manager.start(CHANNEL, [reply])
    manager.record_bot_response(CHANNEL, turn(reply))
    manager.forget_author(CHANNEL, ANNA)
    assert "secret" not in model_reads(conversation.llm_history) + repr(conversation.messages)
    assert "oh" in model_reads(conversation.llm_history)
