"""evals/decisions.py as a process: predictions on stdout, faults on stderr."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from evals.decisions import predict
from evals.examples import Example, read_examples
from followup.model import Eagerness
from tests.evals.examples import example, past, write
from tests.support.command import run_main

ROOT = Path(__file__).parents[2]
TO_OTHERS: dict[str, Any] = {
    "context": [past(2, "U2", "<@U3> lunch?"), past(1, "U3", "<@U2> sure, when?")],
    "bot_to_author": None,
    "msgs_since_bot": 40,
    "s_since_bot": 500,
}
EXAMPLES = [
    example(1, "<@BOT> and now?"),
    example(2),
    example(3, "<@U2> at noon", **TO_OTHERS),
    example(4, "thanks"),
    example(5, "at noon", **TO_OTHERS),
    example(6, "is it good?"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "examples.jsonl", *EXAMPLES)


def run_as_process(*arguments: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "evals.decisions", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=False)


def predictions(path: Path, eagerness: Eagerness = Eagerness.BALANCED) -> dict[int, dict[str, Any]]:
    lines = map(orjson.loads, predict(read_examples(path), eagerness))
    return {int(line["id"], 16): line for line in lines}


@pytest.mark.slow
def test_there_is_one_prediction_for_each_example_and_nothing_else(path: Path) -> None:
    ended = run_as_process(path)
    assert (ended.returncode, ended.stderr) == (0, b"")
    lines = [orjson.loads(line) for line in ended.stdout.splitlines()]
    assert [line["id"] for line in lines] == [line["id"] for line in EXAMPLES]
    for line in lines:
        assert line.keys() == {"id", "respond", "score"}
        assert isinstance(line["respond"], bool)
        assert 0 <= line["score"] <= 1
    assert [line["respond"] for line in lines[:4]] == [True, True, False, False]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (orjson.dumps(example(1)) + b"\n{\n", b"line 2, field the whole line"),
        (orjson.dumps(example(1)) + b"\n" + orjson.dumps(example(2) | {"t": "x"}), b"line 2, field t"),
        (b"\xff", b"cannot be read"),
        (None, b"other.jsonl cannot be read"),
    ],
)
def test_a_fault_ends_it_with_exit_code_2_and_one_sentence(tmp_path: Path, content: bytes | None, told: bytes) -> None:
    path = tmp_path / "other.jsonl"
    if content is not None:
        path.write_bytes(content)
    ended = run_main("evals.decisions", path)
    assert ended.returncode == 2
    assert told in ended.stderr
    assert ended.stderr.count(b"\n") == 1
    assert all(orjson.loads(line)["id"] for line in ended.stdout.splitlines())
    assert run_main("evals.decisions", path, "--eagerness", "loud").returncode == 2


def test_eagerness_changes_what_is_answered_but_no_score(tmp_path: Path) -> None:
    """Messages to somebody whom the bot answered longer and longer ago: some lie between the thresholds."""
    lines = [
        example(
            number,
            text,
            context=[
                past(ago, "BOT", "The newest kernel is fine.", to=[to]),
                *(past(i) for i in range(ago - 1, 0, -1)),
            ],
            msgs_since_bot=ago - 1,
            s_since_bot=5 * ago,
            bot_to_author={"ago": ago, "dt": 5 * ago} if to == "U3" else None,
        )
        for number, (ago, to, text) in enumerate(
            (ago, to, text)
            for ago in range(1, 12)
            for to in ("U3", "U2")
            for text in ("it is a good kernel", "I do not know", "what a day", "that did not work for me")
        )
    ]
    path = write(tmp_path / "examples.jsonl", *lines)
    quiet, balanced, eager = (predictions(path, eagerness) for eagerness in Eagerness)
    for number in quiet:
        assert quiet[number]["score"] == balanced[number]["score"] == eager[number]["score"]
        assert quiet[number]["respond"] <= balanced[number]["respond"] <= eager[number]["respond"]
    answered = [sum(line["respond"] for line in points.values()) for points in (quiet, balanced, eager)]
    assert answered[0] < answered[2]


def test_the_score_is_the_models_where_a_rule_decides(path: Path) -> None:
    """A bare thanks right after the bot's answer is silence by rule, but likely said to it; a question the reverse."""
    found = predictions(path)
    assert not found[4]["respond"]
    assert found[4]["score"] > 0.5
    assert found[6]["respond"]
    assert found[6]["score"] < 1


def test_each_example_is_predicted_by_itself(path: Path) -> None:
    alone = [orjson.loads(next(predict([Example.model_validate(line)], Eagerness.BALANCED))) for line in EXAMPLES]
    assert alone == list(predictions(path).values())
    assert alone[0] == {"id": f"{1:016x}", "respond": True, "score": 1.0}  # it mentions the bot
