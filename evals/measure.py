"""`make eval`: the decider on the development examples, at each operating point and beside simple rules.

Prints the table of docs/measurements.md. Exits with 1 below the floor, and with 0 where the examples are not there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from subprocess import run
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import orjson
from sklearn.calibration import calibration_curve

from decider import looks_like_followup
from evals import WHERE_TO_GET
from evals.decisions import predict
from evals.examples import Example, ExampleError, read_examples
from followup.model import Eagerness, ModelFileError

HEURISTIC_SECONDS = 60
BINS = 5
FLOOR = {  # of the row `directed`; what is learnt for rooms costs some of what a model of IRC alone had
    (Eagerness.BALANCED, "ap"): 0.88,
    (Eagerness.BALANCED, "f1"): 0.72,
    (Eagerness.QUIET, "precision"): 0.86,
    (Eagerness.QUIET, "recall"): 0.59,
}

Rule = Callable[[Example], bool]
SIMPLE_RULES: dict[str, Rule] = {
    "always": lambda example: True,  # noqa: ARG005
    "never": lambda example: example.explicit,
    "document 003's heuristic": lambda example: (
        example.explicit or (example.state.s_since_bot < HEURISTIC_SECONDS and looks_like_followup(example.text))
    ),
}


class Scorer:
    """The score.py that comes with the data."""

    def __init__(self, folder: Path) -> None:
        self._script = folder / "score.py"
        self.examples = folder / "dev.jsonl"

    def rows(self, predictions: Iterable[bytes]) -> dict[str, dict[str, Any]]:
        """Its rows by name: all, non-explicit, directed."""
        with TemporaryDirectory() as folder:
            path = Path(folder) / "predictions.jsonl"
            path.write_bytes(b"".join(predictions))
            command = [sys.executable, str(self._script), str(self.examples), str(path), "--json"]
            done = run(command, check=True, capture_output=True)  # noqa: S603
        return {row["subset"]: row for row in orjson.loads(done.stdout)}


def by_rule(examples: Iterable[Example], rule: Rule) -> list[bytes]:
    return [orjson.dumps({"id": example.id, "respond": rule(example)}) + b"\n" for example in examples]


def line(name: str, row: dict[str, Any]) -> str:
    ap = "" if row["ap"] is None else f"{row['ap']:.3f}"
    return f"| {name} | {row['precision']:.3f} | {row['recall']:.3f} | {row['f1']:.3f} | {ap} |"


def reliability(examples: Iterable[Example], predictions: Iterable[bytes]) -> list[str]:
    """How often a message was said to the bot, among those to which the model gave about the same probability."""
    pairs = zip(examples, map(orjson.loads, predictions), strict=True)
    judged = [(example.is_directed, made["score"]) for example, made in pairs if not example.explicit]
    directed, scores = zip(*judged, strict=True)
    shares, means = calibration_curve(directed, scores, n_bins=BINS)
    counts = np.histogram(scores, bins=BINS, range=(0, 1))[0]
    counts = counts[counts > 0]
    return [f"| {m:.2f} | {s:.2f} | {n} |" for m, s, n in zip(means, shares, counts, strict=True)]


def report(folder: Path) -> int:
    """Prints the tables. Returns how many of the floors are not held. Raises ExampleError, ModelFileError."""
    scorer = Scorer(folder)
    examples = list(read_examples(scorer.examples))
    made = {eagerness: list(predict(examples, eagerness)) for eagerness in Eagerness}
    rows = {eagerness: scorer.rows(predictions) for eagerness, predictions in made.items()}
    simple = {name: scorer.rows(by_rule(examples, rule)) for name, rule in SIMPLE_RULES.items()}
    for subset in ("directed", "non-explicit", "all"):
        print(f"\n{subset}\n\n| | precision | recall | F1 | AP |\n|---|---|---|---|---|")
        print("\n".join(line(name, of[subset]) for name, of in (*simple.items(), *rows.items())))
    print("\nreliability\n\n| probability | share said to the bot | messages |\n|---|---|---|")
    print("\n".join(reliability(examples, made[Eagerness.BALANCED])))
    below = [
        f"{measure} at the {eagerness} point: {rows[eagerness]['directed'][measure]:.3f}, the floor is {floor}"
        for (eagerness, measure), floor in FLOOR.items()
        if rows[eagerness]["directed"][measure] < floor
    ]
    print("\n" + ("\n".join(below) or "All floors hold."))
    return len(below)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m evals.measure", description=__doc__)
    parser.add_argument("folder", type=Path, help="holds dev.jsonl and score.py")
    folder = parser.parse_args().folder
    if not (folder / "dev.jsonl").exists():
        print(f"There are no examples in {folder}: nothing was measured. {WHERE_TO_GET}")
        return 0
    try:
        return 1 if report(folder) else 0
    except (ExampleError, ModelFileError) as error:
        sys.stderr.write(f"{error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
