"""The program is killed at five moments of a busy day; and what counts the damage of such a day counts right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bench.kill.busy import spend_busy_hour
from bench.kill.day import spend_day
from bench.kill.findings import Asked, Evidence, count
from bench.kill.marked_model import answer, asked_in
from playground.model import Message, Reference, User

KILLS, SEED, SLOWEST_SECONDS = 5, 7, 1.0
CHANNEL = 1
BOT = User(9, "Parley", bot=True)
FIRST = Asked(100, CHANNEL, reply_to=100, is_accepted=True, mark=1)
SECOND = Asked(101, CHANNEL, reply_to=101, is_accepted=True, mark=2)
CLICK = Asked(102, CHANNEL, reply_to=50, is_accepted=True)


@pytest.mark.slow
async def test_five_kills_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    day = await spend_day(tmp_path, kills=KILLS, seed=SEED, slowest=SLOWEST_SECONDS)
    result = day.count()
    assert not any(result), "\n".join(day.report(result))
    assert len(day.crowd.said) > KILLS


@pytest.mark.slow
async def test_one_that_dies_while_it_catches_up_on_a_busy_server_leaves_no_question(tmp_path: Path) -> None:
    assert await spend_busy_hour(tmp_path, seed=SEED) == ([], [])


def said(message_id: int, content: str, reply_to: int | None = None) -> Message:
    """A message of the bot's."""
    reference = Reference(reply_to, CHANNEL) if reply_to else None
    return Message(id=message_id, channel_id=CHANNEL, author=BOT, content=content, created=0.0, reference=reference)


def parts(number: int, marks: Sequence[int]) -> tuple[str, str]:
    """An answer in two halves, as Discord's limit may cut it."""
    words = answer(number, marks, 4).split()
    return " ".join(words[:20]), " ".join(words[20:])


def numbers(*standing: Message, asked: Sequence[Asked] = (FIRST, SECOND)) -> tuple[int, int]:
    """How many questions are lost, and answered twice."""
    result = count(Evidence(asked, {CHANNEL: standing}))
    return len(result.lost), len(result.doubled)


BOTH, ONE, OTHER = answer(1, [1, 2], 3), answer(2, [1], 3), answer(3, [2], 3)
START, REST = parts(4, [1, 2])


@pytest.mark.parametrize(
    ("standing", "expected"),
    [
        ((), (2, 0)),
        ((said(200, BOTH, 101),), (0, 0)),
        ((said(200, ONE, 100), said(201, OTHER, 101)), (0, 0)),
        ((said(200, ONE, 100),), (1, 0)),
        ((said(200, START, 101), said(201, REST)), (0, 0)),
        ((said(200, START, 101),), (2, 0)),
        # Each its own answer, after one to both.
        ((said(200, BOTH, 101), said(201, ONE, 100)), (0, 1)),
        ((said(200, BOTH, 101), said(201, answer(5, [1, 2], 2), 101)), (0, 2)),
        # The answer to the first was told of the second as something said meanwhile.
        ((said(200, BOTH, 100), said(201, OTHER, 101)), (0, 0)),
        ((said(200, BOTH, 100),), (1, 0)),
        # A part that was posted twice, and one that is left of an answer that was replaced.
        ((said(200, START, 101), said(201, REST), said(202, REST)), (0, 2)),
        ((said(200, BOTH, 101), said(201, REST)), (0, 1)),
        # A mini-app's answers name nothing; the model is told of its question later.
        ((said(200, "Added! ✓", 100), said(201, BOTH, 101)), (0, 0)),
        ((said(200, "Added! ✓", 100), said(201, "Added! ✓", 100), said(202, OTHER, 101)), (0, 1)),
    ],
)
def test_a_question_counts_as_answered_once_twice_or_never(
    standing: tuple[Message, ...], expected: tuple[int, int]
) -> None:
    assert numbers(*standing) == expected


def test_what_nobody_had_to_answer_is_not_lost_but_can_be_answered_twice() -> None:
    chatter = replace(FIRST, is_accepted=False)
    assert numbers(asked=[chatter]) == (0, 0)
    assert numbers(said(200, BOTH, 101), said(201, OTHER, 102), asked=[chatter]) == (0, 0)
    assert numbers(said(200, "No.", 100), said(201, "No.", 100), asked=[chatter]) == (0, 1)


def test_a_click_is_answered_by_a_reply_to_its_card() -> None:
    assert numbers(said(50, "Which one?"), asked=[CLICK]) == (1, 0)
    assert numbers(said(50, "Which one?"), said(200, "Added! ✓", 50), asked=[CLICK]) == (0, 0)
    assert numbers(said(200, "Added! ✓", 50), said(201, "Added! ✓", 50), asked=[CLICK]) == (0, 1)


def test_all_that_was_heard_and_said_has_to_be_in_the_channels_session() -> None:
    evidence = Evidence([], {CHANNEL: [said(200, "Here."), said(201, "And here.")]}, {(CHANNEL, 100), (CHANNEL, 101)})
    assert {finding.id for finding in count(evidence).missing} == {100, 101, 200, 201}
    elsewhere = replace(evidence, recorded={CHANNEL: {100, 200}, CHANNEL + 1: {101, 201}})
    assert {finding.id for finding in count(elsewhere).missing} == {101, 201}
    assert not count(replace(evidence, recorded={CHANNEL: {100, 101, 200, 201}})).missing
    told = Evidence([], {CHANNEL: [said(200, "About b1k7 b1k8: so it is. e1k7 e1k8")]})
    assert [finding.id for finding in count(told).missing] == [200]
    assert not count(replace(told, deleted={8})).missing


def test_the_model_answers_what_is_new_and_not_answered_yet() -> None:
    prompt = "New in the channel:\nBen (replying to Ada: 'and k1?'): is k3 late?\nAda: and k4?\n(Note: it is k2)\n"
    assert asked_in(["", prompt], lambda _number, _mark: True) == [3, 4]
    assert asked_in([answer(1, [3], 1), prompt], lambda _number, _mark: True) == [4]
    assert asked_in([answer(1, [3], 1), prompt], lambda _number, _mark: False) == [3, 4]
    assert asked_in([answer(1, [3], 1)[:20], prompt], lambda _number, _mark: True) == [3, 4]
    assert asked_in([answer(1, [3, 4], 1), prompt], lambda _number, _mark: True) == [3, 4]
