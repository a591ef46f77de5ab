"""Rooms as they are on Discord, with an agent that may decline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.played_rooms import play
from evals.free_run import Counts
from evals.rooms import Line, Room, read_rooms
from tests.support.clock import FakeClock
from tests.support.followups import shipped_model
from tests.support.lives import life, open_stage
from tests.support.stub_model import Call, Reply, StubModel

ROOMS = Path(__file__).parents[2] / "evals" / "data" / "rooms.jsonl"
SOME = 12
SILENT = Reply(calls=(Call("stay_silent", '{"why": "friends talk"}'),))
AMONG_FRIENDS = (
    ("Ben", "that is longer than I thought"),
    ("Chloe", "told you so"),
    ("Ben", "you never did lol"),
    ("Ada", "I could sleep on the way"),
    ("Chloe", "you always sleep"),
    ("Ben", "remember the bus to Porto"),
    ("Ada", "never again"),
    ("Chloe", "my neck still hurts"),
)


def room(*messages: dict[str, Any]) -> Room:
    return Room(id="trains", kind="friends", people=["Ada", "Ben"], messages=[*map(Line.model_validate, messages)])


def said(t: float, speaker: str, text: str, *to: str, answer: str = "yes", **more: Any) -> dict[str, Any]:
    return {"t": t, "from": speaker, "text": text, "to": [*to], "answer": answer, **more}


def answered(t: float, text: str, reply_to: int, to: str) -> dict[str, Any]:
    return {"t": t, "from": "BOT", "text": text, "to": [to], "reply_to": reply_to}


@pytest.mark.slow
def test_in_rooms_the_bot_keeps_within_the_bounds_and_posts_nothing_but_what_its_model_says() -> None:
    played = play(read_rooms(ROOMS)[:SOME], shipped_model())
    assert played.is_within_bounds, played
    assert played.declining.declined
    assert played.declining.answers > SOME


def test_replies_and_mentions_in_a_room_are_those_of_its_file() -> None:
    played = play(
        [
            room(
                said(0, "Ada", "@Parley how far is it to Oslo?", "BOT"),
                answered(4, "Some 400 km.", 0, "Ada"),
                said(30, "Ben", "and by train?", "BOT", reply_to=1),
                answered(34, "Six hours.", 2, "Ben"),
                said(60, "Ben", "shall we?", "Ada", answer="no", reply_to=0),
                said(70, "Ada", "@Ben why not", "Ben", answer="no"),
            )
        ],
        shipped_model(),
    )
    assert not played.wrong
    assert played.declining.counts == Counts(left_alone=2)
    assert (played.declining.answers, played.declining.declined) == (2, 0)


def test_what_is_said_in_one_go_in_a_room_is_answered_once() -> None:
    played = play(
        [
            room(
                said(0, "Ada", "@Parley find me a train", "BOT"),
                said(0.5, "Ada", "to Lisbon", "BOT"),
                said(1, "Ada", "tomorrow", "BOT"),
                answered(5, "There is one at nine.", 2, "Ada"),
            )
        ],
        shipped_model(),
    )
    assert not played.wrong
    assert played.declining.counts == Counts(right=2)
    assert played.declining.answers == 1


async def friends_talk(stub: StubModel, folder: Path, talk: Sequence[tuple[str, str]]) -> int:
    """Friends talk after one answer, and the agent declines: how often it is asked. That one answer is all it posts."""
    clock = FakeClock()
    async with open_stage(stub, folder, clock=clock) as stage, life(stage):
        stub.replies.append(Reply("By train it takes 6 hours."))
        stub.default = lambda _: SILENT
        await stage.ask("Ada", "how long does it take to Lyon?")
        for who, text in talk:
            clock.advance(7)
            await stage.decision(stage.say(who, text))
            await stage.at_rest()
        assert len(stage.said()) == 1
        assert not stage.journal.find("agent_failed")
    return len(stub.requests) - 1


async def test_eight_messages_of_friends_get_no_answer_from_an_agent_that_declines(
    stub: StubModel, tmp_path: Path
) -> None:
    assert len(AMONG_FRIENDS) == 8
    await friends_talk(stub, tmp_path / "state", AMONG_FRIENDS)


@pytest.mark.usefixtures("rules_of_thumb")
async def test_nor_do_they_where_each_of_those_who_were_not_answered_is_doubtful(
    stub: StubModel, tmp_path: Path
) -> None:
    of_others = [("Ben" if who == "Ada" else who, text) for who, text in AMONG_FRIENDS]
    assert await friends_talk(stub, tmp_path / "state", of_others) == 3, "it declines three times in a row"
