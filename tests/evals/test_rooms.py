"""evals/rooms.py: rooms as the running bot would take them, with the past of the file or with its own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from decider import ResponseDecider
from evals import rooms
from evals.examples import BOT, FIRST_DAY, PEOPLE, ExampleError
from evals.rooms import NEUTRAL, Moment, Room, decide, play, read_rooms
from state.message import MessageRecord
from tests.evals.examples import write
from tests.evals.rooms import Line, a_room, answers, says
from tests.support.followups import FixedTier
from tests.support.models import a_model, a_stump

ANNA, BEN, CLEO = PEOPLE, PEOPLE + 1, PEOPLE + 2
ASKED = says(0, "Anna", "@Parley which train?", "BOT")
TALK = [
    ASKED,
    answers(4, "Anna", 0),
    says(10, "Ben", "are you coming?", "Anna"),
    says(20, "Anna", "what does it cost?", "BOT"),
    answers(24, "Anna", 3, "Ten."),
    says(30, "Anna", "then I take the bus home", "BOT", "no"),
]

Run = Callable[..., tuple[int, list[Line], str]]


def room_of(*messages: Line, **more: Any) -> Room:
    return Room.model_validate(a_room(*messages, **more))


def messages(moment: Moment) -> list[MessageRecord]:
    assert moment.conversation
    return moment.conversation.messages


def contents(moment: Moment) -> list[str]:
    return [message.content for message in messages(moment)]


def played(room: Room, *answered: int) -> list[Moment]:
    """The room played free, in which the bot answers these messages."""
    found = []
    for moment in play(room, free=True):
        moment.responds = moment.index in answered
        found.append(moment)
    return found


# Files


def test_a_broken_line_names_file_line_and_field(tmp_path: Path) -> None:
    lines: list[tuple[Line, str]] = [
        *((says(t, "Anna", "hi"), "field messages.0.t: .+") for t in (-1, 1e300)),
        (says(0, "Anna", "hi", answer="perhaps"), "field messages.0.answer: .+"),
        (says(0, "Anna", "hi") | {"mood": "good"}, "field messages.0.mood: .+"),
        (says(0, "Anna", "hi") | {"to": "BOT"}, "field messages.0.to: .+"),
        ({"t": 0, "from": "Anna", "text": "hi"}, "field messages.0.to: .+"),
        (says(1, "Zoe", "hi"), "message 0: its author is none of the people.*"),
        ({"t": 1, "from": "Ben", "text": "hi", "to": []}, "message 0: .* no answer label"),
        *((says(1, "Ben", "hi", reply_to=to), "message 0: it replies to no earlier message") for to in (0, -1)),
    ]
    for line, told in lines:
        path = write(tmp_path / "a.jsonl", a_room(ASKED), a_room(line))
        with pytest.raises(ExampleError, match=rf"a\.jsonl, line 2, .*{told}\.$"):
            read_rooms(path)


# Messages


def test_people_have_names_of_their_own(tmp_path: Path) -> None:
    for name in ("BOT", "parley", "anna", "Anna", "", " "):
        path = write(tmp_path / "rooms.jsonl", a_room(says(0, "Anna", "hi"), people=["Anna", name]))
        with pytest.raises(ExampleError, match="people: two have one name"):
            read_rooms(path)


def test_mentions_become_ids_and_names_without_a_sign_stay_words() -> None:
    people = ["Ann", "Anna", "Ben", "Cleo", "Ali"]
    room = room_of(
        says(3, "Cleo", "@PARLEY and @Ann and @ben, ask Anna"), says(4, "Ann", "@Anna hi, @ALİ"), people=people
    )
    record = room.record(0)
    assert record.content == f"<@{BOT}> and <@{PEOPLE}> and <@{PEOPLE + 2}>, ask Anna"
    assert record.mentions == {BOT, PEOPLE, PEOPLE + 2}
    assert (record.author, record.author_id, record.timestamp) == ("Cleo", PEOPLE + 3, FIRST_DAY + timedelta(seconds=3))
    assert (
        room.record(1).content == f"<@{PEOPLE + 1}> hi, @ALİ"
    )  # the longer name; a letter that folds to two is in none


def test_everyone_is_mentioned_with_a_sign_only() -> None:
    for text, mentions in (("@everyone hi", True), ("@here hi", True), ("everyone hi", False)):
        assert room_of(says(0, "Anna", text)).record(0).mentions_group is mentions


def test_replies_point_to_the_message_and_its_author() -> None:
    room = room_of(ASKED, answers(4, "Anna", 0), says(5, "Ben", "no", "BOT", reply_to=1))
    answer, reply = room.record(1), room.record(2)
    assert (answer.reply_to_id, answer.reply_to_author_id) == (room.record(0).message_id, ANNA)
    assert (reply.reply_to_id, reply.reply_to_author_id) == (answer.message_id, BOT)
    assert (answer.is_bot, answer.addressees, answer.mentions) == (True, frozenset({ANNA}), frozenset())
    assert (reply.is_bot, reply.addressees) == (False, frozenset())


# Conversations


def test_a_conversation_begins_at_the_first_mention_with_what_was_said_before() -> None:
    room = room_of(says(0, "Ben", "morning"), says(5, "Anna", "hm"), *[line | {"t": line["t"] + 10} for line in TALK])
    moments = list(play(room))
    assert [moment.conversation is not None for moment in moments] == [False, False, True, True, True, True]
    assert [moment.is_open for moment in moments] == [False, False, False, True, True, True]
    assert contents(moments[2])[:3] == ["morning", "hm", f"<@{BOT}> which train?"]


def test_what_is_longer_ago_than_an_hour_or_twenty_messages_is_not_read() -> None:
    old = says(0, "Ben", "of old")
    many = [says(4_000 + i, "Ben", f"number {i}") for i in range(30)]
    *_, last = play(room_of(old, *many[:3], ASKED | {"t": 4_100}))
    assert contents(last) == ["number 0", "number 1", "number 2", f"<@{BOT}> which train?"]
    *_, last = play(room_of(*many, ASKED | {"t": 4_100}))
    assert contents(last)[:1] == ["number 10"]


@pytest.mark.parametrize(("seconds", "goes_on"), [(119, True), (121, False)])
def test_a_conversation_ends_when_it_was_silent_for_two_minutes(seconds: float, goes_on: bool) -> None:
    *_, last = play(room_of(ASKED, answers(4, "Anna", 0), says(4 + seconds, "Anna", "and back?", "BOT")))
    assert (last.conversation is not None) is goes_on
    assert last.is_open  # it was for the bot, whether that can hear it or not


def test_outside_a_conversation_only_a_call_is_answered() -> None:
    decider = ResponseDecider(followup=FixedTier(1.0))
    late = [says(0, "Ben", "and you?"), ASKED | {"t": 5}, says(500, "Anna", "and back?", "BOT")]
    assert [decision.respond for _, decision in decide([room_of(*late)], decider)] == [False, True, False]


# The bot's past


def test_teacher_forced_the_past_is_that_of_the_file_whatever_was_decided() -> None:
    moments = []
    for moment in play(room_of(*TALK)):
        moment.responds = False
        moments.append(moment)
    assert contents(moments[-1])[-6:] == [f"<@{BOT}> which train?", *[line["text"] for line in TALK[1:]]]


def test_played_free_scripted_words_appear_only_where_it_decided_to_answer() -> None:
    assert contents(played(room_of(*TALK), 0)[-1]) == [
        f"<@{BOT}> which train?",
        "Take the early train.",
        "are you coming?",
        "what does it cost?",
        "then I take the bus home",
    ]
    assert "Ten." in contents(played(room_of(*TALK), 0, 3)[-1])


def test_scripted_words_answer_what_the_same_person_asked_just_before_too() -> None:
    room = room_of(ASKED, says(3, "Anna", "or a bus?", "BOT"), answers(8, "Anna", 1), says(20, "Anna", "hm"))
    for answered, is_said in (((0,), True), ((1,), True), ((), False)):
        assert ("Take the early train." in contents(played(room, *answered)[-1])) is is_said


def test_a_neutral_line_stands_where_it_should_not_have_answered_before_what_is_said_next() -> None:
    *_, after_it, last = played(room_of(*TALK), 0, 2)
    assert after_it.index == 3
    neutral = next(m for m in messages(last) if m.content in NEUTRAL)
    assert (neutral.is_bot, neutral.addressees, neutral.reply_to_author_id) == (True, frozenset({BEN}), BEN)
    assert (neutral.timestamp - FIRST_DAY).total_seconds() == 14
    heard = messages(played(room_of(ASKED, says(1, "Ben", "lol"), says(2, "Cleo", "hm")), 1)[-1])
    assert [message.content in NEUTRAL for message in heard] == [False, False, True, False]
    assert heard == sorted(heard, key=lambda message: message.timestamp)


def test_what_is_decided_is_what_the_room_hears() -> None:
    answering = ResponseDecider(followup=FixedTier(1.0))
    silent = ResponseDecider(followup=FixedTier(0.0))
    for decider, said in ((answering, True), (silent, False)):
        *_, (last, _) = decide([room_of(*TALK)], decider, free=True)
        assert ("Ten." in contents(last)) is said


# End to end


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Run:
    """`python -m evals.rooms`, with a model that takes questions as said to it."""
    monkeypatch.setattr(rooms, "load_model", lambda: a_model(a_stump("asks", 0.5, -0.5, 2)))

    def run(*arguments: object) -> tuple[int, list[Line], str]:
        monkeypatch.setattr(sys, "argv", ["rooms", *map(str, arguments)])
        code = rooms.main()
        out, error = capsysbinary.readouterr()
        return code, [orjson.loads(line) for line in out.splitlines()], error.decode()

    return run


def test_each_message_of_a_person_is_one_line(run: Run, tmp_path: Path) -> None:
    early = [says(0, "Ben", "anyone?"), *[line | {"t": line["t"] + 5} for line in TALK[:1]]]
    path = write(tmp_path / "a.jsonl", a_room(*TALK), a_room(*early, name="a-2"))
    code, lines, error = run(path)
    assert (code, error) == (0, "")
    assert [(line["c"], line["i"]) for line in lines] == [*(("a-1", i) for i in (0, 2, 3, 5)), ("a-2", 0), ("a-2", 1)]
    assert all(line.keys() == {"c", "i", "respond", "reason", "score", "said"} for line in lines)
    assert [line["respond"] for line in lines] == [True, True, True, False, False, True]
    call, question, _, silence, outside, _ = lines
    assert (call["reason"], call["score"], call["said"]) == ("explicit_trigger", 1, 1)
    assert (question["reason"], question["said"]) == ("recent_followup", pytest.approx(0.8808, abs=1e-4))
    assert (silence["reason"], silence["score"]) == ("no_trigger", pytest.approx(0.3775, abs=1e-4))
    assert (outside["reason"], outside["score"], outside["said"]) == ("no_trigger", 0, 0)


def test_eagerness_moves_the_decision_and_not_the_score(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", a_room(*TALK))
    (_, balanced, _), (_, eager, _) = run(path), run(path, "--eagerness", "eager")
    assert [line["score"] for line in balanced] == [line["score"] for line in eager]
    assert [line["respond"] for line in eager] == [True] * 4


def test_played_free_its_own_answers_count(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on with whomever it has just answered, and it answers Ben, for which the file has no words."""
    monkeypatch.setattr(rooms, "load_model", lambda: a_model(a_stump("is_due", 0.5, -0.1, 2)))
    path = write(tmp_path / "a.jsonl", a_room(*TALK[:3], says(12, "Ben", "I mean the train", "Anna")))
    (_, forced, _), (_, free, _) = run(path, "--eagerness", "eager"), run(path, "--eagerness", "eager", "--free")
    assert forced[-1]["score"] < 0.5 < free[-1]["score"]


def test_a_broken_file_ends_the_command_with_a_sentence(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", a_room(ASKED | {"t": "soon"}))
    code, lines, error = run(path)
    assert (code, lines) == (2, [])
    assert error.startswith(f"{path}, line 1, field messages.0.t: ")
