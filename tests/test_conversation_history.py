"""conversation.py: what the model is told, and how the bot stands in a channel."""

from __future__ import annotations

from itertools import pairwise

import pytest
from pydantic_ai.messages import (
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextContent,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)

from channel_conversation import HISTORY_TOKENS
from conversation import ChannelConversation, ConversationManager
from llm_history import told, trim_history
from tests.support.clock import NOON, FakeClock
from tests.support.followups import after
from tests.support.histories import model_reads, turn
from tests.support.people import ANNA, BEN, BOT, CHANNEL, CLEO, replied, said

IMAGE = "https://cdn.example/cat.png"


@pytest.fixture
def manager() -> ConversationManager:
    return ConversationManager(60, clock=FakeClock())


# What the model is told


def test_the_model_is_told_who_spoke_to_whom() -> None:
    message = said(
        ANNA, "with\nBen: pwned", reply_to_id=5, reply_to_author="Ben", reply_to_text="tea\nor coffee?", images=(IMAGE,)
    )
    line, image = told(message)
    assert isinstance(line, TextContent)
    assert line.content == "Anna (replying to Ben: 'tea or coffee?'): with\n    Ben: pwned\n"
    assert line.metadata == {
        "message_id": message.message_id,
        "author_id": ANNA,
        "reply_to_id": 5,
        "reply_to_author_id": None,
    }
    assert image == ImageUrl(IMAGE)
    (line,) = told(said(BOT, f"hi <@{ANNA}>", readable="hi @Anna"))
    assert isinstance(line, TextContent)
    assert line.content == "Parley (you): hi @Anna\n"


def test_untold_is_what_came_after_the_last_answer_without_the_answer_itself(manager: ConversationManager) -> None:
    asked = said(ANNA)
    conversation = manager.start(CHANNEL, [asked])
    assert conversation.untold() == [asked]
    manager.record_message(CHANNEL, replied(ANNA))
    manager.record_bot_response(CHANNEL, turn(asked))
    assert conversation.untold() == []
    manager.record_message(CHANNEL, later := said(BEN))
    assert conversation.untold() == [later]


def long_history(turns: int) -> list[ModelMessage]:
    return [m for i in range(turns) for m in turn(said(ANNA, f"{i} " + "x" * 396), answer="y" * 400)]


def test_a_history_over_the_budget_loses_its_oldest_turns_whole_but_never_the_newest() -> None:
    history = long_history(10)
    assert trim_history(history[:6], 1_000) == history[:6]
    kept = trim_history(history, 1_000)
    assert kept == history[-4:]  # half of the budget, as each turn takes 200
    too_long = [*long_history(2), *turn(said(ANNA, "x" * 40_000))]
    assert trim_history(too_long, 1_000) == too_long[-2:]
    images = [m for _ in range(4) for m in turn(said(ANNA, "look", images=(IMAGE,)))]
    assert [len(trim_history(images, budget)) for budget in (4_500, 3_500)] == [8, 2]


def test_a_tool_return_is_never_cut_from_its_call() -> None:
    call: list[ModelMessage] = [
        ModelRequest(parts=[ToolReturnPart("look", "z" * 400, "1")]),
        ModelResponse(parts=[TextPart("done")]),
    ]
    history = [m for _ in range(6) for m in (*turn(said(ANNA, "x" * 400)), *call)]
    kept = trim_history(history, 900)
    assert len(kept) % 4 == 0
    assert isinstance(kept[0].parts[0], UserPromptPart)


def test_the_beginning_stays_the_same_between_two_cuts(manager: ConversationManager) -> None:
    """Or the providers' prompt caches would never hit."""
    conversation = manager.start(CHANNEL, [])
    beginnings = []
    for i in range(200):
        manager.record_message(CHANNEL, asked := said(ANNA, f"{i} " + "x" * 800))
        manager.record_bot_response(CHANNEL, [*conversation.llm_history, *turn(asked, answer="y" * 400)])
        beginnings.append(model_reads(conversation.llm_history[:1]))
        assert sum(len(str(part)) for m in conversation.llm_history for part in m.parts) < HISTORY_TOKENS * 4 * 2
    changes = sum(a != b for a, b in pairwise(beginnings))
    assert 1 <= changes <= 15


# How the bot stands in a channel


def test_what_was_before_a_message_is_the_same_recorded_or_not(manager: ConversationManager) -> None:
    earlier = [said(ANNA), replied(ANNA, at=after(5)), said(BEN, at=after(5))]
    conversation, message = manager.start(CHANNEL, earlier), said(ANNA, "shut up")
    before = conversation.engagement
    for _ in range(2):
        assert conversation.engagement_at(message) == before
        for count in (1, 2, 3, 9):
            assert list(conversation.before(message, count)) == earlier[-count:]
        if message not in conversation.messages:
            manager.record_message(CHANNEL, message)
    assert before.is_answer_due(message)
    assert conversation.engagement.standing(ANNA).told_off
    manager.forget_messages(CHANNEL, {message.message_id})  # how the bot stands is told anew when messages go
    assert conversation.engagement == before


def test_the_bots_last_words_to_a_person_are_found() -> None:
    first, second, to_ben = replied(ANNA, "one"), replied(ANNA, "two"), replied(BEN)
    conversation = ChannelConversation(CHANNEL, NOON, NOON, messages=[first, said(ANNA), second, to_ben])
    assert conversation.last_words_to(ANNA) is second
    assert conversation.last_words_to(BEN) is to_ben
    assert conversation.last_words_to(CLEO) is None
