"""`make eval`: the decider in rooms as on Discord, each file scored by a model that has not seen it.

Prints the table of score.py for each file, simple rules beside it, and what the operating points come to when the
bot's own decisions count. Exits with 1 below the floor, and with 0 where the rooms are not there.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add as plus
from pathlib import Path
from subprocess import run
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.metrics import average_precision_score

from decider import ResponseDecider, TrainedFollowup
from evals import WHERE_TO_GET
from evals.declining_rooms import Declining, declining
from evals.examples import BOT, ExampleError
from evals.free_run import Counts, add, counted
from evals.rooms import Moment, Room, decide, play, predict, read_rooms
from followup.model import Eagerness, FollowupModel, ModelFileError, load_model

BINS = 10
Rule = Callable[[Moment], bool]
LeftOut = Mapping[Path, tuple[list[Room], FollowupModel]]

SIMPLE_RULES: Mapping[str, Rule] = {
    "always": lambda moment: True,  # noqa: ARG005
    "the one just answered": lambda moment: bool(
        moment.conversation and moment.conversation.engagement_at(moment.message).is_answer_due(moment.message)
    ),
    "a question mark": lambda moment: "?" in moment.message.content,
}


@dataclass
class Figures:
    """What is held against the floor, by name; and which are to be at most so much, or at least."""

    found: dict[str, float] = field(default_factory=dict)
    most: dict[str, float] = field(default_factory=dict)
    least: dict[str, float] = field(default_factory=dict)

    def at_most(self, name: str, found: float, bound: float) -> None:
        self.found[name], self.most[name] = found, bound

    def at_least(self, name: str, found: float, bound: float) -> None:
        self.found[name], self.least[name] = found, bound

    def missed(self) -> list[str]:
        over = [name for name, bound in self.most.items() if self.found[name] > bound]
        return over + [name for name, bound in self.least.items() if self.found[name] < bound]

    def lines(self) -> Iterable[str]:
        yield "| | | bound |\n|---|---|---|"
        for name, found in self.found.items():
            bound = f"at most {self.most[name]:g}" if name in self.most else f"at least {self.least[name]:g}"
            yield f"| {name} | {found:.3f} | {bound} |"


def scored(folder: Path, rooms: Path, predictions: Iterable[bytes]) -> str:
    """What the score.py of the data prints."""
    with TemporaryDirectory() as place:
        path = Path(place) / "predictions.jsonl"
        path.write_bytes(b"".join(predictions))
        command = [sys.executable, str(folder / "score.py"), str(rooms), str(path)]
        return run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603


def by_rule(rooms: Sequence[Room], rule: Rule) -> Counts:
    """What a rule comes to with the bot's past as it is in the file."""
    counts = Counts()
    for room in rooms:
        for moment in play(room):
            moment.responds = moment.conversation is not None and rule(moment)
            counts = add(counts, moment)
    return counts


def slice_of(moment: Moment) -> str:
    """How the author stands with the bot, as score.py has it."""
    before = moment.room.messages[: moment.index]
    spoken_to = [line.to for line in before if line.is_bot]
    speaker = moment.line.speaker
    if spoken_to and speaker in spoken_to[-1]:
        return "just answered"
    return "answered before" if any(speaker in to for to in spoken_to) else "never answered"


def estimates(left_out: LeftOut) -> tuple[list[tuple[float, bool]], list[tuple[float, bool]], list[tuple[float, bool]]]:
    """Of open messages how sure the decider is and whether an answer was wanted; and the same of being spoken to, of
    open messages and of those with which somebody calls the bot."""
    answers, said, calls = [], [], []
    for rooms, model in left_out.values():
        for moment, decision in decide(rooms, ResponseDecider(followup=TrainedFollowup(model))):
            if moment.is_direct:
                calls.append((1.0, moment.line.is_to_bot))
            elif moment.is_open:
                is_said = model.estimate(moment.message, moment.conversation, BOT).said if moment.conversation else 0.0
                said.append((is_said, moment.line.is_to_bot))
                if moment.line.answer != "either":
                    answers.append((decision.score, moment.line.answer == "yes"))
    return answers, said, calls


def average_precision(pairs: Sequence[tuple[float, bool]]) -> float:
    if {wanted for _, wanted in pairs} != {True, False}:
        raise ExampleError("The rooms have no open message that is for the bot, or none that is not.")
    scores, wanted = zip(*pairs, strict=True)
    return float(average_precision_score(wanted, scores))


def calibration_error(pairs: Sequence[tuple[float, bool]]) -> float:
    """The expected calibration error over ten bins."""
    scores, wanted = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    bins = np.minimum((scores * BINS).astype(int), BINS - 1)
    gaps = (abs(scores[bins == b].mean() - wanted[bins == b].mean()) * (bins == b).mean() for b in {*bins})
    return float(sum(gaps))


def free_runs(left_out: LeftOut, eagerness: Eagerness) -> Counts:
    deciders = [
        (rooms, ResponseDecider(followup=TrainedFollowup(model, eagerness))) for rooms, model in left_out.values()
    ]
    return reduce(plus, (counted(rooms, decider) for rooms, decider in deciders))


def slices(left_out: LeftOut) -> dict[str, Counts]:
    """What the balanced point comes to for whom, in free runs."""
    found: defaultdict[str, Counts] = defaultdict(Counts)
    for rooms, model in left_out.values():
        for moment, _ in decide(rooms, ResponseDecider(followup=TrainedFollowup(model)), free=True):
            name = slice_of(moment)
            found[name] = add(found[name], moment)
    return found


def figures_of(left_out: LeftOut) -> Figures:
    figures = Figures()
    answers, said, calls = estimates(left_out)
    figures.at_least("average precision", average_precision(answers), 0.85)
    figures.at_most("calibration error", calibration_error(answers), 0.05)
    figures.at_least("said to it, by itself: average precision, calls included", average_precision(said + calls), 0.88)
    figures.at_least("the same without them", average_precision(said), 0.88)
    quiet, balanced, eager = (free_runs(left_out, eagerness) for eagerness in Eagerness)
    figures.at_most("quiet, free run: butts in", quiet.butts_in, 0.04)
    figures.at_most("balanced, free run: butts in", balanced.butts_in, 0.10)
    figures.at_most("balanced, free run: deaf", balanced.is_deaf, 0.25)
    figures.at_most("eager, free run: deaf", eager.is_deaf, 0.10)
    figures.at_most("eager, free run: lets pass of the others", eager.butts_in, 0.22)
    by_slice = slices(left_out)
    figures.at_most("just answered: butts in", by_slice["just answered"].butts_in, 0.20)
    figures.at_most("answered before: butts in", by_slice["answered before"].butts_in, 0.15)
    figures.at_most("never answered: deaf", by_slice["never answered"].is_deaf, 0.45)
    found = reduce(plus, (declining(rooms, model) for rooms, model in left_out.values()), Declining())
    figures.at_most("an agent that may decline: butts in", found.counts.butts_in, 0.03)
    figures.at_most("an agent that may decline: deaf", found.counts.is_deaf, 0.15)
    figures.at_most("declined for each answer", found.declined_per_answer, 1.0)
    return figures


def report(folder: Path, models: Path) -> int:
    """Prints the tables. Returns how many bounds are not held. Raises ExampleError, ModelFileError."""
    left_out = {
        path: (read_rooms(path), load_model(models / f"{path.stem}.json")) for path in sorted(folder.glob("*.jsonl"))
    }
    for path, (rooms, model) in left_out.items():
        print(f"\n{path.stem}, the bot's past as in the file\n")
        print(scored(folder, path, predict(rooms, model, Eagerness.BALANCED)))
    every = [room for rooms, _ in left_out.values() for room in rooms]
    print("| all files | butts in | deaf |\n|---|---|---|")
    for name, rule in SIMPLE_RULES.items():
        counts = by_rule(every, rule)
        print(f"| {name} | {counts.butts_in:.3f} | {counts.is_deaf:.3f} |")
    alone = load_model(models / "irc.json")
    counts = counted(every, ResponseDecider(followup=TrainedFollowup(alone)), free=False)
    print(f"| a model of IRC alone | {counts.butts_in:.3f} | {counts.is_deaf:.3f} |")
    figures = figures_of(left_out)
    print("\n".join(["", *figures.lines()]))
    missed = figures.missed()
    print("\nNot held: " + ", ".join(missed) if missed else "\nAll bounds hold.")
    return len(missed)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m evals.measure_rooms", description=__doc__)
    parser.add_argument("folder", type=Path, help="holds the files of rooms and score.py")
    parser.add_argument("models", type=Path, help="the folder that evals.train --left-out has written")
    arguments = parser.parse_args()
    if not any(arguments.folder.glob("*.jsonl")):
        print(f"There are no rooms in {arguments.folder}: nothing was measured. {WHERE_TO_GET}")
        return 0
    try:
        return 1 if report(arguments.folder, arguments.models) else 0
    except (ExampleError, ModelFileError) as error:
        sys.stderr.write(f"{error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
