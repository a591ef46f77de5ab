"""conversation.py: what the model is told, and how the bot stands in a channel."""

from __future__ import annotations

from dataclasses import replace
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

from conversation import ChannelConversation, ConversationManager
from history_cut import as_context, context_of, cut
from llm_history import only, told, uses_tools
from state.message import AttachedFile
from state.optout import FORGOTTEN
from tests.support.clock import NOON, FakeClock
from tests.support.followups import after
from tests.support.histories import model_reads, turn
from tests.support.people import ANNA, BEN, BOT, CHANNEL, CLEO, replied, said

IMAGE = "https://cdn.example/cat.png"
FILE = AttachedFile("notes.txt", "text/plain", 10, "https://cdn.example/notes.txt")


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


def trimmed(history: list[ModelMessage], max_tokens: int, summary: str = "") -> list[ModelMessage]:
    made = cut(history, max_tokens)
    return made.after(history, as_context(summary, made.origin) if summary else []) if made else history


def test_a_history_over_the_budget_loses_its_oldest_turns_whole_but_never_the_newest() -> None:
    history = long_history(10)
    assert trimmed(history[:6], 1_000) == history[:6]
    kept = trimmed(history, 1_000)
    # Half of the budget, as each turn takes 200.
    assert [message.parts for message in kept] == [message.parts for message in history[-4:]]
    too_long = [*long_history(2), *turn(said(ANNA, "x" * 40_000))]
    assert [message.parts for message in trimmed(too_long, 1_000)] == [message.parts for message in too_long[-2:]]
    images = [m for _ in range(4) for m in turn(said(ANNA, "look", images=(IMAGE,)))]
    assert [len(trimmed(images, budget)) for budget in (4_500, 3_500)] == [8, 2]


def test_a_tool_return_is_never_cut_from_its_call() -> None:
    call: list[ModelMessage] = [
        ModelRequest(parts=[ToolReturnPart("look", "z" * 400, "1")]),
        ModelResponse(parts=[TextPart("done")]),
    ]
    history = [m for _ in range(6) for m in (*turn(said(ANNA, "x" * 400)), *call)]
    kept = trimmed(history, 900)
    assert len(kept) % 4 == 0
    assert isinstance(kept[0].parts[0], UserPromptPart)


def with_tools(answered: list[ModelMessage], characters: int) -> list[ModelMessage]:
    prompt, answer = answered
    return [prompt, replace(answer, metadata={"is_gpa": True, "gpa_messages": "z" * characters})]


def test_what_tools_gave_goes_before_any_dialogue() -> None:
    history = long_history(4)
    history = [*with_tools(history[:2], 5_000), *with_tools(history[2:4], 400), *with_tools(history[4:6], 400)]
    made = cut(history, 1_800)
    assert made
    kept = made.after(history, [])
    assert (len(kept), made.start) == (6, 0)
    assert [uses_tools(message) for message in kept[1::2]] == [False, True, True]


def test_a_summary_outlasts_the_dialogue_and_is_taken_up_by_the_next() -> None:
    once = trimmed(long_history(10), 1_000, summary="They count.")
    assert len(once) == 6
    origin = context_of(once)
    assert origin
    again = [*once, *long_history(8)]
    unsummed = trimmed(again, 1_000)
    assert (unsummed[:2], len(unsummed)) == (once[:2], 6), "better the old one than none"
    anew = context_of(trimmed(again, 1_000, summary="They go on counting."))
    assert anew
    assert (anew.since, anew.people) == (origin.since, frozenset({ANNA}))
    assert anew.through > origin.through


def test_a_summary_is_not_for_whoever_may_not_read_what_was_before() -> None:
    asked = said(ANNA, "before"), said(BEN, "since")
    made = cut([*turn(asked[0]), *turn(asked[1])], 1)
    assert made
    history = [*as_context("They met.", made.origin), *turn(asked[1])]
    assert model_reads(only(history, {asked[1].message_id: asked[1]}, {BEN})) == "Ben: since\n"


@pytest.mark.parametrize("how", ["edited", "file", "deleted", "answer", "forgotten", "meanwhile", "other"])
def test_a_summary_goes_with_what_it_was_made_of(manager: ConversationManager, how: str) -> None:
    conversation = manager.start(CHANNEL, [])
    for who in (ANNA, BEN, CLEO):
        manager.record_message(CHANNEL, asked := said(who, "x" * 2_000, files=(FILE,)))
        manager.record_message(CHANNEL, replied(who, reply_to_id=asked.message_id))
        manager.record_bot_response(CHANNEL, [*conversation.llm_history, *turn(asked)])
    conversation.begin_turn()
    made = conversation.cut(1_200)
    assert made
    if how == "meanwhile":
        manager.forget_author(CHANNEL, BEN)
    assert bool(conversation.shorten(made, "They shout.")) is (how != "meanwhile")
    first, answer, *_, last = conversation.messages
    match how:
        case "edited":
            manager.revise(CHANNEL, replace(first, content="y"))
        case "file":
            manager.revise(CHANNEL, replace(first, files=()))
        case "deleted":
            manager.forget_messages(CHANNEL, [first.message_id])
        case "answer":
            manager.forget_messages(CHANNEL, [answer.message_id])
        case "forgotten":
            manager.forget_author(CHANNEL, BEN)
        case "other":
            manager.forget_author(CHANNEL, CLEO)
            manager.forget_messages(CHANNEL, [last.message_id])
    words = [part.content for part in conversation.llm_history[1].parts if isinstance(part, TextPart)]
    assert words == {"other": ["They shout."], "meanwhile": [FORGOTTEN]}.get(how, [FORGOTTEN])
    assert (context_of(conversation.llm_history) is not None) is (how == "other")


@pytest.mark.parametrize("cuts", [1, 2])
def test_what_tools_gave_goes_with_what_was_cut_before_without_a_summary(
    manager: ConversationManager, cuts: int
) -> None:
    conversation = manager.start(CHANNEL, [])
    first = said(ANNA, "x" * 2_000)
    for count, asked in enumerate((first, said(BEN, "y" * 2_000), said(CLEO, "z"), said(CLEO, "z")), start=1):
        manager.record_message(CHANNEL, asked)
        answered = turn(asked) if count < 4 else with_tools(turn(asked), 40)
        manager.record_bot_response(CHANNEL, [*conversation.llm_history, *answered])
        if count in (2, 3)[:cuts]:
            made = conversation.cut(600 if count == 2 else 300)
            assert made
            assert made.start
            conversation.shorten(made)
    assert uses_tools(conversation.llm_history[-1])
    manager.forget_messages(CHANNEL, [said(ANNA, "another").message_id])
    assert uses_tools(conversation.llm_history[-1])
    manager.forget_messages(CHANNEL, [first.message_id])
    assert not uses_tools(conversation.llm_history[-1])


def test_an_answer_may_quote_those_whose_words_were_cut_and_trimmed() -> None:
    manager = ConversationManager(60, clock=FakeClock(), max_messages=4)
    conversation = manager.start(CHANNEL, [])
    for asked in (said(BEN, "x" * 4_000), said(ANNA), said(ANNA)):
        manager.record_message(CHANNEL, asked)
        manager.record_message(CHANNEL, replied(ANNA, reply_to_id=asked.message_id))
        manager.record_bot_response(CHANNEL, [*conversation.llm_history, *turn(asked)])
    made = conversation.cut(600)
    assert made
    conversation.shorten(made)
    for _ in range(4):
        manager.record_message(CHANNEL, said(ANNA, "chat"))
    assert not any(message.is_bot for message in conversation.messages)
    manager.record_message(CHANNEL, replied(ANNA))
    assert BEN in conversation.messages[-1].drew_on
    manager.forget_author(CHANNEL, BEN)
    assert not any(message.is_bot for message in conversation.messages)
    answers = [part.content for m in conversation.llm_history for part in m.parts if isinstance(part, TextPart)]
    assert set(answers) == {FORGOTTEN}


def test_the_beginning_stays_the_same_between_two_cuts(manager: ConversationManager) -> None:
    """Or the providers' prompt caches would never hit."""
    conversation = manager.start(CHANNEL, [])
    beginnings = []
    for i in range(200):
        manager.record_message(CHANNEL, asked := said(ANNA, f"{i} " + "x" * 800))
        manager.record_bot_response(CHANNEL, [*conversation.llm_history, *turn(asked, answer="y" * 400)])
        if made := conversation.cut(12_000):
            conversation.shorten(made)
        beginnings.append(model_reads(conversation.llm_history[:1]))
        assert sum(len(str(part)) for m in conversation.llm_history for part in m.parts) < 12_000 * 4 * 2
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
