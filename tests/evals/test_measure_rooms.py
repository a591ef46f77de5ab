"""evals/measure_rooms.py: what is measured in rooms, and what is held against a bound."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from evals import WHERE_TO_GET, measure, measure_rooms
from evals.examples import ExampleError
from evals.free_run import Counts
from evals.measure_rooms import (
    SIMPLE_RULES,
    Figures,
    average_precision,
    by_rule,
    calibration_error,
    estimates,
    figures_of,
    free_runs,
    slice_of,
    slices,
)
from evals.rooms import Room, play
from followup.model import Eagerness
from tests.evals.rooms import a_room, answers, generated, says
from tests.support.models import a_model, a_stump

pytestmark = pytest.mark.slow

ROOM = Room.model_validate(
    a_room(
        says(0, "Ben", "hi all"),
        says(1, "Ben", "@Parley which train?", "BOT"),
        answers(5, "Ben", 1),
        says(10, "Anna", "@Parley and a bus?", "BOT"),
        answers(14, "Anna", 3),
        says(20, "Anna", "what does it cost", "BOT"),
        says(30, "Ben", "did you eat?", "Anna"),
        says(40, "Cleo", "good night"),
    )
)
LEFT_OUT = {Path("a.jsonl"): ([ROOM], a_model(a_stump("asks", 0.5, -2, 2)))}


def test_simple_rules_are_counted_beside_it() -> None:
    assert [by_rule([ROOM], SIMPLE_RULES[rule]) for rule in ("always", "the one just answered", "a question mark")] == [
        Counts(right=1, butts=2),
        Counts(right=1, left_alone=1, butts=1),
        Counts(deaf=1, butts=1, left_alone=1),
    ]
    twice = {**LEFT_OUT, Path("b.jsonl"): LEFT_OUT[Path("a.jsonl")]}
    assert free_runs(twice, Eagerness.BALANCED) == Counts(deaf=2, butts=2, left_alone=2)


def test_people_are_told_apart_by_how_they_stand_with_the_bot() -> None:
    found = {moment.index: slice_of(moment) for moment in play(ROOM)}
    assert (found[0], found[5], found[6], found[7]) == (
        "never answered", "just answered", "answered before", "never answered",
    )  # fmt: skip
    assert slices(LEFT_OUT)["answered before"] == Counts(butts=1)


def test_estimates_are_of_open_messages_and_calls_stand_apart() -> None:
    answered, said, calls = estimates(LEFT_OUT)
    assert [wanted for _, wanted in answered] == [wanted for _, wanted in said] == [True, False, False]
    assert calls == [(1.0, True), (1.0, True)]
    assert answered[1][0] > 0.5 > answered[0][0]


def test_average_precision_and_calibration_error() -> None:
    assert average_precision([(0.9, True), (0.8, False), (0.7, True), (0.1, False)]) == pytest.approx((1 + 2 / 3) / 2)
    assert calibration_error([(1.0, True)] * 3 + [(0.0, False)] * 3) == 0
    # Ten of which each was thought as likely as not: eight were.
    assert calibration_error([(0.5, True)] * 8 + [(0.5, False)] * 2) == pytest.approx(0.3)
    assert calibration_error([(0.5, True), (0.05, True)]) == pytest.approx((0.5 + 0.95) / 2)
    for pairs in ([], [(0.9, True)], [(0.9, False), (0.1, False)]):
        with pytest.raises(ExampleError, match="no open message"):
            average_precision(pairs)


def test_what_is_over_or_under_its_bound_is_missed() -> None:
    figures = Figures()
    figures.at_most("butts in", 0.1, 0.1)
    figures.at_most("deaf", 0.3, 0.25)
    figures.at_least("precision", 0.84, 0.85)
    assert figures.missed() == ["deaf", "precision"]
    assert "| deaf | 0.300 | at most 0.25 |" in list(figures.lines())
    assert "| precision | 0.840 | at least 0.85 |" in list(figures.lines())


def test_every_promise_is_measured() -> None:
    rooms = [Room.model_validate(room) for room in generated("x", 3)]
    figures = figures_of({Path("x.jsonl"): (rooms, a_model(a_stump("asks", 0.5, -2, 2)))})
    assert figures.found.keys() == figures.most.keys() | figures.least.keys()
    assert len(figures.found) == 15
    assert all(found >= 0 for found in figures.found.values())


@pytest.mark.parametrize(("main", "folders"), [(measure_rooms.main, 2), (measure.main, 1)])
def test_without_the_data_nothing_is_measured_and_it_says_where_to_get_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    main: Callable[[], int],
    folders: int,
) -> None:
    monkeypatch.setattr(sys, "argv", ["measure", *[str(tmp_path)] * folders])
    assert main() == 0
    assert f"nothing was measured. {WHERE_TO_GET}" in capsys.readouterr().out
