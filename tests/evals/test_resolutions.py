"""evals/resolutions.py as a process: predictions on stdout, faults on stderr; and evals/measure_resolutions.py."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from evals import measure_resolutions, resolutions
from evals.measure_resolutions import (
    BOT,
    Bound,
    Figures,
    Table,
    broken,
    by_any_word,
    by_containing,
    by_exact_list,
    by_exact_set,
    by_first_word,
    by_likeness,
    by_position,
    by_splicing,
    lines,
    report,
    unchanged,
)
from evals.resolutions import CancelRow, ConfirmationRow, IncompleteRow, Prediction, SelectionRow, predict, read_rows
from tests.support.command import run_main
from understanding.enrichment import Enrichment

ROOT = Path(__file__).parents[2]
CAFES = ["Blue Door", "Red Lion", "Old Mill"]
WEATHER = [
    {"role": "topic", "text": "Japan"},
    {"role": "user", "text": "What's the weather in Tokyo?"},
    {"role": "assistant", "text": "Sunny."},
]
ROWS: Mapping[str, list[dict[str, Any]]] = {
    "selection": [
        {"id": "s1", "utterance": "2", "options": CAFES, "prompt": None, "kind": "digit", "expected_index": 1},
        {"id": "s2", "utterance": "somewhere by the sea", "options": CAFES, "kind": "semantic", "expected_index": None},
    ],
    "confirmation": [
        {"id": "y1", "utterance": "yes", "prompt": "Delete it?", "style": "explicit", "expected": True},
        {"id": "y2", "utterance": "no", "prompt": None, "style": "explicit", "expected": False},
        {"id": "y3", "utterance": "what is the time?", "style": "neither", "expected": None},
    ],
    "cancel": [
        {"id": "c1", "utterance": "never mind", "cancel": True},
        {"id": "c2", "utterance": "good morning", "cancel": False},
    ],
    "incomplete": [
        {"id": "i1", "utterance": "And tomorrow?", "history": WEATHER, "incomplete": True},
        {"id": "i2", "utterance": "Who wrote Hamlet?", "history": [], "incomplete": False},
    ],
}
MADE: Mapping[str, Mapping[str, Prediction]] = {
    "selection": {"s1": 1, "s2": None},
    "confirmation": {"y1": True, "y2": False, "y3": None},
    "cancel": {"c1": True, "c2": False},
    "incomplete": {
        "i1": {"incomplete": True, "rewrite": "What's the weather in Tokyo tomorrow?"},
        "i2": {"incomplete": False, "rewrite": "Who wrote Hamlet?"},
    },
}
TASKS = list(ROWS)


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path


def selection(utterance: str, options: list[str] = CAFES) -> SelectionRow:
    return SelectionRow(id="", utterance=utterance, options=options)


def confirmation(utterance: str) -> ConfirmationRow:
    return ConfirmationRow(id="", utterance=utterance)


def cancel(utterance: str) -> CancelRow:
    return CancelRow(id="", utterance=utterance)


def incomplete(utterance: str, history: Sequence[Mapping[str, str]] = WEATHER) -> IncompleteRow:
    return IncompleteRow.model_validate({"id": "", "utterance": utterance, "history": history})


# Predictions


def test_there_is_one_prediction_for_each_row_and_nothing_else(tmp_path: Path) -> None:
    for task in TASKS:
        ended = run_main("evals.resolutions", task, write(tmp_path / "rows.jsonl", ROWS[task]))
        assert (ended.returncode, ended.stderr) == (0, b"")
        assert orjson.loads(ended.stdout) == MADE[task]


@pytest.mark.slow
def test_a_task_may_have_a_suffix(tmp_path: Path) -> None:
    rows = write(tmp_path / "rows.jsonl", ROWS["cancel"])
    command = [sys.executable, "-m", "evals.resolutions", "cancel_more", str(rows)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=False)
    assert orjson.loads(ended.stdout) == MADE["cancel"]


def test_labels_change_nothing(tmp_path: Path) -> None:
    labels = {"expected_index", "expected", "cancel", "incomplete", "rewrite", "kind", "style"}
    for task in TASKS:
        bare = [{name: value for name, value in row.items() if name not in labels} for row in ROWS[task]]
        wrong = [row | dict.fromkeys(labels, "nonsense") for row in bare]
        for rows in (bare, wrong):
            assert predict(read_rows(write(tmp_path / "rows.jsonl", rows), task)) == MADE[task]


def test_a_query_is_completed_from_the_whole_history(monkeypatch: pytest.MonkeyPatch) -> None:
    def enrich(message: str, recent_messages: Sequence[Mapping[str, str]]) -> Enrichment:
        assert [(said["role"], said["content"]) for said in recent_messages] == [
            ("topic", "Japan"),
            ("user", "What's the weather in Tokyo?"),
            ("assistant", "Sunny."),
        ]
        return Enrichment(query=f"{message} indeed", incomplete=True)

    monkeypatch.setattr(resolutions, "enrich", enrich)
    assert incomplete("And now?").predict() == {"incomplete": True, "rewrite": "And now? indeed"}


# Faults


FAULTS: Sequence[tuple[str, bytes, bytes]] = (
    ("cancel", b"{", b"line 3, field the whole line"),
    ("cancel", b"[]", b"line 3, field the whole line"),
    ("cancel", b'{"id": "x"}', b"line 3, field utterance"),
    ("cancel", b'{"utterance": "stop"}', b"line 3, field id"),
    ("cancel", b'{"id": "x", "utterance": null}', b"line 3, field utterance"),
    ("selection", b'{"id": "x", "utterance": "2"}', b"line 3, field options"),
    ("selection", b'{"id": "x", "utterance": "2", "options": [1]}', b"line 3, field options.0"),
    ("confirmation", b'{"id": "x", "utterance": "2", "prompt": 5}', b"line 3, field prompt"),
    ("incomplete", b'{"id": "x", "utterance": "2"}', b"line 3, field history"),
    ("incomplete", b'{"id": "x", "utterance": "2", "history": [{"role": "user"}]}', b"field history.0.text"),
    ("cancel", b"\xff", b"cannot be read"),
)


def test_a_fault_ends_it_with_exit_code_2_and_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    missing = run_main("evals.resolutions", "cancel", path)
    assert (missing.returncode, missing.stdout) == (2, b"")
    assert missing.stderr.endswith(b"rows.jsonl cannot be read: No such file or directory.\n")
    for task, line, told in FAULTS:
        write(path, ROWS[task][:1])
        path.write_bytes(path.read_bytes() + b"\n" + line + b"\n")
        ended = run_main("evals.resolutions", task, path)
        assert (ended.returncode, ended.stdout, ended.stderr.count(b"\n")) == (2, b"", 1)
        assert told in ended.stderr
    assert run_main("evals.resolutions", "guessing", path).returncode == 2


# The simple rules beside which the bot is shown


def test_places_numbers_and_names_are_chosen_by_simple_rules() -> None:
    """By position: a number alone, an ordinal or a whole name; by likeness: what is most alike."""
    for utterance, index in {
        "2": 1,
        "4": None,
        "0.": None,
        "the third": 2,
        "the fourth": None,
        "the last, please": 2,
        "let us meet at the red lion": 1,
        "a table for 2": None,
    }.items():
        assert by_position(selection(utterance)) == index
    for utterance, index in {"the old mill!": 2, "Lion": 1, "by the sea": None, "": None}.items():
        assert by_likeness(selection(utterance)) == index


def test_yes_and_no_by_lists_of_words() -> None:
    for utterance, by_exact, by_first, by_any in (
        ("Yes!", True, True, True),
        ("nope", False, False, False),
        ("yes but not now", None, True, True),
        ("I am not sure", None, None, True),
        ("never heard of it", None, False, False),
        ("", None, None, None),
    ):
        row = confirmation(utterance)
        assert (by_exact_list(row), by_first_word(row), by_any_word(row)) == (by_exact, by_first, by_any)


def test_cancels_by_document_000s_set() -> None:
    for utterance, exact, contains in (
        ("Never mind.", True, True),
        ("cancel my table", False, True),
        ("unstoppable", False, False),
    ):
        assert (by_exact_set(cancel(utterance)), by_containing(cancel(utterance))) == (exact, contains)


def test_splicing_adds_to_what_the_user_said_before_and_leaves_a_long_query_and_a_first_one() -> None:
    for utterance, spliced in {
        "And tomorrow?": "What's the weather in Tokyo tomorrow?",
        "what about the day after tomorrow?": "What's the weather in Tokyo the day after tomorrow?",
        "in Osaka": "What's the weather in Tokyo in Osaka",
    }.items():
        assert by_splicing(incomplete(utterance)) == {"incomplete": True, "rewrite": spliced}
    for row in (incomplete("Who wrote it down?"), incomplete("And tomorrow?", [])):
        assert by_splicing(row) == unchanged(row) == {"incomplete": False, "rewrite": row.utterance}


# The tables

TABLE = Table("cancel", "cancel", (Bound("precision", 0.9), Bound("false", at_most=0.1), Bound("recall")))


def test_a_table_shows_each_rule_and_the_bounds_in_per_cent() -> None:
    figures: dict[str, Figures] = {
        "a rule": {"precision": None, "false": 0.0, "recall": 0.5},
        BOT: {"precision": 1.0, "false": 0.095, "recall": 1.0},
    }
    assert lines(TABLE, figures) == [
        "cancel",
        "",
        "| | precision | false | recall |",
        "|---|---|---|---|",
        "| a rule | - | 0.0 | 50.0 |",
        f"| {BOT} | 100.0 | 9.5 | 100.0 |",
        "| held to | >= 90.0 | <= 10.0 |  |",
    ]
    unbound = Table("cancel", "cancel", (Bound("recall"),))
    assert "held to" not in "".join(lines(unbound, {BOT: {"recall": 1.0}}))


SCORE = """
import json, pathlib

def load(task):
    return [json.loads(line) for line in pathlib.Path(__file__).with_name(task + ".jsonl").read_text().splitlines()]

def score(label):
    def figures(rows, made):
        right = sum(made[row["id"]] == row[label] for row in rows) / len(rows)
        return {"accuracy": right, "precision": right, "recall": right, "yes_recall": right, "no_recall": right,
            "wrong_pick": 0, "false_pick_on_null": 0, "FALSE_ACCEPT": FALSE_ACCEPT, "n": len(rows)}
    return figures

def completed(rows, made):
    right = sum(made[row["id"]]["incomplete"] is row["incomplete"] for row in rows) / len(rows)
    return {"precision": right, "recall": right, "complete_left_untouched": 1, "rewrite_tokenF1": REWRITTEN,
        "tokenF1_if_unchanged": 0.7}

SCORERS = {"selection": score("expected_index"), "confirmation": score("expected"), "cancel": score("cancel"),
    "incomplete": completed}
"""


def folder_of(path: Path, *, false_accept: float = 0.0, rewritten: float = 0.8) -> Path:
    for task, rows in ROWS.items():
        write(path / f"{task}.jsonl", rows)
    (path / "score.py").write_text(f"FALSE_ACCEPT = {false_accept}\nREWRITTEN = {rewritten}\n{SCORE}")
    return path


def test_the_report_shows_every_task_and_that_all_bounds_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(folder_of(tmp_path)) == 0
    out = capsys.readouterr().out
    assert out.endswith("All bounds hold.\n")
    assert all(f"\n{table.title}\n" in out for table in measure_resolutions.TABLES)
    assert out.count(f"| {BOT} |") == len(measure_resolutions.TABLES)
    assert all(f"| {rule} |" in out for rules in measure_resolutions.SIMPLE_RULES.values() for rule in rules)
    assert all(f"\n| {task} | " in out for task in TASKS)


def test_a_table_of_some_rows_is_of_those_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Likeness misses the row that is a digit, and is right on the one that needs knowledge, where null is right."""
    report(folder_of(tmp_path))
    without, all_rows = (part for part in capsys.readouterr().out.split("\n\n") if "token_set_ratio" in part)
    assert "token_set_ratio >= 80 | 0.0 |" in without
    assert "token_set_ratio >= 80 | 50.0 |" in all_rows


def test_the_report_ends_with_what_is_not_held(tmp_path: Path) -> None:
    assert run_main("evals.measure_resolutions", folder_of(tmp_path)).returncode == 0
    ended = run_main("evals.measure_resolutions", folder_of(tmp_path, false_accept=0.007, rewritten=0.69))
    assert ended.returncode == 1
    assert ended.stdout.decode().splitlines()[-2:] == [
        "confirmation: FALSE_ACCEPT is 0.7, held to <= 0.6",
        "incomplete: gain_over_unchanged is -1.0, held to >= 0.0",
    ]
    assert broken(TABLE, {"precision": 0.9, "false": 0.1, "recall": 0.0}) == []
    assert broken(TABLE, {"precision": 0.9, "false": 0.1, "recall": None}) == ["cancel: recall is -, held to "]


def test_where_there_are_no_rows_it_says_so_and_where_a_file_is_missing_it_ends_with_exit_code_2(
    tmp_path: Path,
) -> None:
    ended = run_main("evals.measure_resolutions", tmp_path / "nowhere")
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert b"nothing was measured. Where to get the data: docs/measurements.md" in ended.stdout
    (folder_of(tmp_path) / "cancel.jsonl").unlink()
    ended = run_main("evals.measure_resolutions", tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.endswith(b"cancel.jsonl cannot be read: No such file or directory.\n")
