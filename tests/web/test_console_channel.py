"""What the console shows of a channel: decisions, what answers came to, and of whom nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from activity import Ending, TurnEnded
from decision import ALONE_TOGETHER, EXPLICIT, NOTHING, Decision, Reason
from persistence.holders import Forget
from place import Place
from state.spending import Spent
from tests.support.clock import NOON, FakeClock
from tests.support.people import ANNA, BEN, BOT, CHANNEL, GUILD, said
from tests.web.console_support import made_up
from turns.turn import Question
from web.console.channel import Row, State, rows
from web.console.feed import MOST, Feed
from web.shown import Shown

HIDDEN = 987_654_321_000_000_000  # an id that is part of no other number


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def shown(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Shown]:
    async with made_up(tmp_path, clock) as parts:
        yield parts


def turn(*message_ids: int, channel_id: int = CHANNEL, ending: Ending = Ending.ANSWERED) -> TurnEnded:
    spent = (Spent("openai:gpt", 100, 20, micros=1_500), Spent("openai:gpt", 5, 1))
    return TurnEnded(
        GUILD, channel_id, message_ids, ending, ending.value, NOON, 2.5, 0.4, "general", "gpt", ("search",), spent
    )


def last(shown: Shown, *, shows_content: bool = True) -> Row:
    return rows(shown, CHANNEL, shows_content=shows_content)[-1]


async def test_a_mention_goes_from_deciding_to_its_answer_with_what_that_came_to(shown: Shown) -> None:
    asked = said(ANNA, f"<@{BOT}> which cats?", NOON)
    shown.conversations.start(CHANNEL, [asked])
    assert last(shown).state is State.DECIDING
    shown.decisions.add(asked.message_id, CHANNEL, ANNA, EXPLICIT, GUILD)
    question = Question(asked, Place(GUILD, CHANNEL))
    shown.turns.pending.asked(question)
    shown.turns.pending.begun(CHANNEL, [question])
    assert last(shown).state is State.ANSWERING
    shown.turns.pending.done(CHANNEL)
    shown.conversations.record_message(CHANNEL, said(BOT, "Tabbies.", reply_to_id=asked.message_id))
    shown.activity.turn_ended(turn(asked.message_id))
    row, answer = rows(shown, CHANNEL, shows_content=True)
    assert (row.state, row.micros, row.tokens) == (State.ANSWERED, 1_500, 126)
    assert (row.who, row.text) == ("Anna", "@Parley which cats?")
    assert row.why
    assert row.why.in_words == "answered: you mentioned me or replied to me"
    assert (answer.who, answer.text, answer.is_bot) == ("Parley", "Tabbies.", True)


async def test_without_content_neither_words_nor_names_nor_what_a_model_said_of_them_are_shown(shown: Shown) -> None:
    message = said(ANNA, "my secret")
    shown.conversations.start(CHANNEL, [message])
    judged = Decision(False, Reason.LLM_JUDGE, tier=3, evidence="Anna told her secret", contrary="Ben's", partner=BEN)
    shown.decisions.add(message.message_id, CHANNEL, ANNA, judged, GUILD)
    assert "secret" in str(last(shown))
    hidden = last(shown, shows_content=False)
    assert hidden.text is None
    assert hidden.state is State.SILENT
    assert not [word for word in ("Anna", "Ben", "secret") if word in str(hidden)]


async def test_of_whoever_opted_out_nothing_is_shown_nor_what_may_quote_them(shown: Shown) -> None:
    asked, other = said(HIDDEN, f"<@{BOT}> my address?", author="Cleo"), said(ANNA, f"<@{HIDDEN}> hello")
    shown.conversations.start(CHANNEL, [asked])
    answer = said(BOT, "Elm Street.", reply_to_id=asked.message_id, addressees=frozenset({HIDDEN}))
    for record in (answer, other, said(BOT, "It was Elm Street.", addressees=frozenset({ANNA}))):
        shown.conversations.record_message(CHANNEL, record)
    shown.decisions.add(asked.message_id, CHANNEL, HIDDEN, EXPLICIT, GUILD)
    guess = replace(NOTHING, tier=2, evidence="you were talking with somebody else", partner=HIDDEN)
    shown.decisions.add(other.message_id, CHANNEL, ANNA, guess, GUILD)
    shown.opted_out.add(HIDDEN)
    found = rows(shown, CHANNEL, shows_content=True)
    assert [(row.who, row.text) for row in found] == [("Anna", "@somebody hello"), ("Parley", None), ("Parley", None)]
    told = str([replace(row, turn=None) for row in found])
    assert not [word for word in ("Cleo", "Elm", str(HIDDEN)) if word in told]


async def test_what_is_deleted_or_forgotten_vanishes_and_an_edit_is_followed(shown: Shown) -> None:
    first, second = said(ANNA, "first"), said(BEN, "second")
    shown.conversations.start(CHANNEL, [first, second])
    shown.activity.turn_ended(turn(first.message_id, second.message_id))
    shown.conversations.revise(CHANNEL, replace(second, content="edited"))
    assert last(shown).text == "edited"
    shown.conversations.forget_messages(CHANNEL, [second.message_id])
    shown.feed.forget(Forget([CHANNEL], message_ids=frozenset({second.message_id})))
    assert last(shown).text == "first"
    assert (shown.feed.find(second.message_id), len(shown.feed)) == (None, 1)
    shown.conversations.forget_author(CHANNEL, ANNA)
    shown.feed.forget(Forget([CHANNEL], author_id=ANNA))
    assert (rows(shown, CHANNEL, shows_content=True), len(shown.feed)) == ([], 0)


async def test_what_was_said_before_a_restart_waits_for_no_decision(shown: Shown, clock: FakeClock) -> None:
    shown.conversations.start(CHANNEL, [said(ANNA, "hello", NOON)])
    clock.advance(31)
    assert last(shown).state is State.HEARD


async def test_a_decision_outside_any_conversation_is_shown_without_its_message(shown: Shown) -> None:
    shown.decisions.add(5 << 40, CHANNEL, ANNA, NOTHING, GUILD, is_ignored=True)
    row = last(shown)
    assert (row.text, row.state, row.who) == (None, State.SILENT, f"person …{ANNA:04}")
    shown.decisions.add(6 << 40, CHANNEL, ANNA, ALONE_TOGETHER, GUILD)
    assert last(shown).at > row.at


def test_the_feed_keeps_so_much_and_no_more() -> None:
    feed = Feed()
    for message_id in range(MOST + 5):
        feed.turn_ended(turn(message_id, channel_id=message_id % 7))
    assert len(feed) == MOST
    assert feed.find(4) is None
    assert feed.find(5)
