"""conversation.py: which messages are a remote agent's business, and what that agent needs back."""

from __future__ import annotations

import pytest

from conversation import MAX_REMOTE, ChannelConversation, StoredConversation
from state.agent_state import GENERAL, UMSState
from tests.support.clock import NOON
from tests.support.people import ANNA, BEN, BOT, CHANNEL, said

STATE = UMSState(ums_conversation_id="conv-1")


@pytest.fixture
def conversation() -> ChannelConversation:
    """Anna asked the agent docs something, which it answered; Ben said something to nobody."""
    question, answer = said(ANNA, "docs: where?", message_id=1), said(BOT, "page 12", message_id=2)
    conversation = ChannelConversation(CHANNEL, NOON, NOON, [question, answer, said(BEN, "tea?", message_id=3)])
    conversation.asked("docs", [1, 2])
    conversation.states["docs"] = STATE
    return conversation


def test_the_general_agent_is_not_told_what_another_was_asked(conversation: ChannelConversation) -> None:
    assert [m.message_id for m in conversation.untold()] == [3]
    assert [conversation.agent_of(i) for i in (2, 3)] == ["docs", GENERAL]


def test_it_is_stored_and_comes_back(conversation: ChannelConversation) -> None:
    stored = StoredConversation.from_json(conversation.stored().to_json())
    assert (stored.remote, stored.states) == ({1: "docs", 2: "docs"}, {"docs": STATE})


def test_a_conversation_stored_before_there_were_agents_has_none(conversation: ChannelConversation) -> None:
    conversation.remote, conversation.states = {}, {}
    earlier = conversation.stored().to_json().replace(b'"remote":{},"states":{},', b"")
    assert b"remote" not in earlier
    assert StoredConversation.from_json(earlier) == conversation.stored()


def test_what_is_trimmed_can_still_be_deleted(conversation: ChannelConversation) -> None:
    conversation.trim(1, 10_000)
    assert conversation.states == {"docs": STATE}
    conversation.remove([1])
    assert conversation.states == {}


def test_an_edit_ends_it_too(conversation: ChannelConversation) -> None:
    conversation.revise(said(ANNA, "docs: something else?", message_id=1))
    assert conversation.states == {}


def test_what_is_known_of_others_messages_is_bounded(conversation: ChannelConversation) -> None:
    conversation.asked("docs", range(10, 10_000))
    assert len(conversation.remote) == MAX_REMOTE


@pytest.mark.parametrize("gone", [1, 2])
def test_what_is_deleted_ends_the_agents_conversation(conversation: ChannelConversation, gone: int) -> None:
    conversation.remove([gone])
    assert conversation.states == {}
    assert "docs" in conversation.left


def test_what_others_delete_does_not(conversation: ChannelConversation) -> None:
    conversation.remove([3])
    conversation.forget(BEN)
    assert conversation.states == {"docs": STATE}


def test_whoever_is_forgotten_ends_it(conversation: ChannelConversation) -> None:
    conversation.forget(ANNA)
    assert conversation.states == {}
