"""evals/examples.py: examples read, and turned into what the bot would have seen."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import orjson
import pytest

from evals.examples import (
    BOT,
    BOT_NAME,
    NUMBER,
    PEOPLE,
    Example,
    ExampleError,
    conversation_of,
    message_of,
    read_examples,
)
from state.engagement import RECENT, Mark
from tests.evals.examples import Line, example, past, write

U2, U3, U4 = PEOPLE + 2, PEOPLE + 3, PEOPLE + 4


def parsed(line: Line) -> Example:
    return Example.model_validate(line)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "examples.jsonl"


def fault(path: Path) -> str:
    with pytest.raises(ExampleError) as caught:
        list(read_examples(path))
    assert "\n" not in str(caught.value)
    return str(caught.value)


# The message and what came before it


def test_the_message_is_the_persons() -> None:
    message = message_of(parsed(example(text="<@U2> and <@U44>, look")))
    assert (message.author, message.author_id, message.is_bot) == ("U3", U3, False)
    assert message.content == f"<@{U2}> and <@{PEOPLE + 44}>, look"
    assert message.mentions == frozenset()
    assert message.named == {U2, PEOPLE + 44}
    assert message_of(parsed(example(text="<@BOT> and <@U2>"))).mentions == {BOT}


def test_the_conversation_is_what_the_context_shows() -> None:
    line = parsed(example())
    conversation = conversation_of(line)
    assert [m.content for m in conversation.messages] == [
        "good morning",
        f"<@{BOT}> which laptop is best?",
        "What do you need it for?",
    ]
    assert [(m.author_id, m.is_bot) for m in conversation.messages] == [(U2, False), (U3, False), (BOT, True)]
    assert [(line.now - m.timestamp).total_seconds() for m in conversation.messages] == [15, 10, 5]
    assert [m.message_id for m in conversation.messages] == [NUMBER - 3, NUMBER - 2, NUMBER - 1]
    assert conversation.messages[2].addressees == {U3}
    assert conversation.engagement.is_answer_due(message_of(line))
    assert conversation.engagement.bot_spoke == Mark(NUMBER - 1, conversation.messages[2].timestamp)
    assert (conversation.engagement.bot, conversation.engagement.bot_name) == (BOT, BOT_NAME)


def test_messages_that_were_left_out_count_all_the_same() -> None:
    line = parsed(
        example(
            msgs_since_bot=39,
            s_since_bot=200,
            bot_to_author={"ago": 40, "dt": 200},
            context=[past(40, "BOT", to=["U3"], dt=200), past(12, "U2"), past(1, "U4")],
        )
    )
    engagement = conversation_of(line).engagement
    assert engagement.number == NUMBER
    assert engagement.bot_spoke == engagement.standing(U3).spoken_to
    assert engagement.bot_spoke == Mark(NUMBER - 40, line.now - timedelta(seconds=200))
    assert [engagement.standing(who).spoke for who in (U2, U4)] == [
        Mark(NUMBER - 12, conversation_of(line).messages[1].timestamp),
        Mark(NUMBER - 1, conversation_of(line).messages[2].timestamp),
    ]


def test_what_the_context_cannot_show_comes_from_the_counters() -> None:
    line = parsed(
        example(
            context=[past(1, "U2")],
            msgs_since_bot=500,
            s_since_bot=250,
            bot_to_author={"ago": 700, "dt": 900},
            bot_msgs_since_author=2,
            authors_since_bot=6,
            authors_5m=9,
            bot_msgs_5m=1,
        )
    )
    engagement, now = conversation_of(line).engagement, line.now
    author = engagement.standing(U3)
    assert engagement.bot_spoke == Mark(NUMBER - 501, now - timedelta(seconds=250))
    assert author.spoken_to == Mark(NUMBER - 700, now - timedelta(seconds=900))
    assert author.spoke
    assert author.spoke.number == 0
    assert engagement.bot_messages - author.bot_messages == 2
    since = [person for person in engagement.people.values() if person.spoke and person.spoke.number > NUMBER - 501]
    assert len(since) == 6
    assert len(engagement.people_since(now - RECENT)) == 8  # the bot is one of the nine


def test_an_author_who_is_new_has_not_spoken() -> None:
    line = parsed(example(bot_to_author=None, bot_msgs_since_author=None, context=[past(1, "BOT", to=["U2"])]))
    standing = conversation_of(line).engagement.standing(U3)
    assert (standing.spoke, standing.spoken_to) == (None, None)


@pytest.mark.parametrize(("label", "cont", "directed"), [(0, False, False), (1, False, True), (0, True, True)])
def test_what_goes_on_with_words_to_the_bot_is_said_to_it_too(label: int, cont: bool, directed: bool) -> None:
    assert parsed(example(label=label, cont=cont)).is_directed is directed


# Files


def test_examples_are_read_from_plain_files_and_packed_ones(path: Path, tmp_path: Path) -> None:
    write(path, example(1), example(2))
    path.write_bytes(path.read_bytes() + b"\n\n")
    packed = tmp_path / "examples.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert list(read_examples(path)) == list(read_examples(packed))
    assert [line.id[-1] for line in read_examples(path)] == ["1", "2"]


FAULTS: list[tuple[Callable[[Line], Line], str]] = [
    *(
        (lambda line, name=name, value=value: line | {name: value}, name)
        for name, value in {"colour": "green", "text": 5, "explicit": 1, "t": "5", "label": 2, "author": "BOT"}.items()
    ),
    (lambda line: {name: value for name, value in line.items() if name != "author"}, "author"),
    (lambda line: line | {"t": -1}, "t"),
    (lambda line: line | {"author": "U" + "9" * 30}, "author"),
    *(
        (lambda line, name=name, value=value: line | {"state": line["state"] | {name: value}}, f"state.{name}")
        for name, value in {"mood": 1, "msgs_since_bot": None}.items()
    ),
    (lambda line: line | {"state": line["state"] | {"bot_to_author": {"ago": 0, "dt": 1}}}, "state.bot_to_author.ago"),
    (lambda line: line | {"context": [past(1), past(1) | {"author": "nobody"}]}, "context.1.author"),
    (lambda line: line | {"context": [{**past(1), "extra": 1}]}, "context.0.extra"),
]


def test_a_fault_is_told_by_file_line_and_field(path: Path) -> None:
    for change, field in FAULTS:
        write(path, example(1), example(2), change(example(3)))
        assert fault(path).startswith(f"{path}, line 3, field {field}: ")
    for text in (b"{", b"nothing", b"[]", b"5", b"[" * 10_000, b'{"id": "\\ud800"}'):
        path.write_bytes(orjson.dumps(example(7)) + b"\n" + text + b"\n")
        assert fault(path).startswith(f"{path}, line 2, field ")
        assert next(iter(read_examples(path))).id == f"{7:016x}"


def test_a_file_that_cannot_be_read_is_told_by_its_name(path: Path, tmp_path: Path) -> None:
    assert fault(path) == f"{path} cannot be read: No such file or directory."
    assert "cannot be read" in fault(path.parent)
    path.write_bytes(b"\xff\xfe{}\n")
    assert fault(path).startswith(f"{path} cannot be read: ")
    packed = gzip.compress(b"".join(orjson.dumps(example(i)) + b"\n" for i in range(50)))
    altered = packed[:20] + bytes(255 - byte for byte in packed[20:60]) + packed[60:]
    path = tmp_path / "examples.jsonl.gz"
    for broken in (packed[:-20], altered, b"{}\n", b"\x1f\x8b"):
        path.write_bytes(broken)
        assert fault(path).startswith(f"{path} cannot be read: ")
