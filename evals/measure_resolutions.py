"""`make eval`, its second half: how the bot understands replies and incomplete queries, beside simple rules.

Prints one table for each task, in per cent. Exits with 1 where a bound is not held, and with 0 where the rows are not
there.
"""

from __future__ import annotations

import argparse
import re
import runpy
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from operator import methodcaller
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

from rapidfuzz import fuzz, process, utils

from evals import WHERE_TO_GET
from evals.examples import ExampleError
from evals.resolutions import (
    TASKS,
    CancelRow,
    ConfirmationRow,
    IncompleteRow,
    Prediction,
    Row,
    SelectionRow,
    read_rows,
)
from understanding.wording import words_of

BOT = "Parley"
NUMBER_ALONE = re.compile(r"\W*(\d+)\W*")
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
ALIKE = 80  # of 100
YES = frozenset("yes yeah yep yup y sure ok okay correct right confirm confirmed absolutely definitely".split())
NO = frozenset("no nope nah n not don't never wrong".split())
CANCELS = (  # document 000's
    "cancel|skip|nevermind|never mind|nvm|forget it|forget that|stop|quit|exit|no thanks|no thank you|nah|nope"
    "|changed my mind|actually no|actually never mind"
)
GAIN = "gain_over_unchanged"  # of the rewrites' token F1
STARTERS = re.compile(r"(?:and|also|what about|how about|why|but) ", re.IGNORECASE)  # document 003's
FEW_WORDS = 4

Labelled = Mapping[str, Any]
Rule = Callable[[Any], Prediction]  # a row of its task
Figures = Mapping[str, float | None]
Score = Callable[[Sequence[Labelled], Mapping[str, Prediction]], Figures]


def by_position(row: SelectionRow) -> int | None:
    """A number alone, else an ordinal word, else the first option whose name occurs."""
    if number := NUMBER_ALONE.fullmatch(row.utterance):
        index = int(number[1]) - 1
        return index if 0 <= index < len(row.options) else None
    places = {word: index for index, word in enumerate(ORDINALS[: len(row.options)])} | {"last": len(row.options) - 1}
    named = (index for index, option in enumerate(row.options) if option.casefold() in row.utterance.casefold())
    return next((places[word] for word in words_of(row.utterance) if word in places), next(named, None))


def by_likeness(row: SelectionRow) -> int | None:
    best = process.extractOne(
        row.utterance, row.options, scorer=fuzz.token_set_ratio, processor=utils.default_process, score_cutoff=ALIKE
    )
    return best[2] if best else None


def by_exact_list(row: ConfirmationRow) -> bool | None:
    return _yes_or_no({" ".join(words_of(row.utterance))})


def by_first_word(row: ConfirmationRow) -> bool | None:
    return _yes_or_no(set(words_of(row.utterance)[:1]))


def by_any_word(row: ConfirmationRow) -> bool | None:
    return _yes_or_no(set(words_of(row.utterance)))


def _yes_or_no(words: set[str]) -> bool | None:
    """Yes comes first."""
    if words & YES:
        return True
    return False if words & NO else None


def by_exact_set(row: CancelRow) -> bool:
    return re.fullmatch(CANCELS, " ".join(words_of(row.utterance))) is not None


def by_containing(row: CancelRow) -> bool:
    return re.search(rf"\b(?:{CANCELS})\b", " ".join(words_of(row.utterance))) is not None


def by_splicing(row: IncompleteRow) -> dict[str, bool | str]:
    """A starter or under 4 words: what the user said before, and then the rest of this."""
    starter = STARTERS.match(row.utterance)
    before = [said.text for said in row.history if said.role == "user"]
    if not before or not (starter or len(row.utterance.split()) < FEW_WORDS):
        return unchanged(row)
    rest = row.utterance[starter.end() if starter else 0 :]
    return {"incomplete": True, "rewrite": f"{before[-1].rstrip(' ?.!')} {rest}"}


def unchanged(row: IncompleteRow) -> dict[str, bool | str]:
    return {"incomplete": False, "rewrite": row.utterance}


SIMPLE_RULES: Mapping[str, Mapping[str, Rule]] = {
    "selection": {
        "digits, ordinal words, substring": by_position,
        f"rapidfuzz token_set_ratio >= {ALIKE}": by_likeness,
    },
    "confirmation": {
        "exact word list": by_exact_list,
        "first word": by_first_word,
        "contains, yes list first": by_any_word,
    },
    "cancel": {"document 000's set": by_exact_set, "contains one of that set": by_containing},
    "incomplete": {"starters or under 4 words; splice": by_splicing, "left unchanged": unchanged},
}


class Bound(NamedTuple):
    """Between which values one of the figures must lie; one without limits is only shown."""

    figure: str
    at_least: float = -inf
    at_most: float = inf

    def holds(self, figures: Figures) -> bool:
        value = figures[self.figure]
        return value is not None and self.at_least <= value <= self.at_most

    def __str__(self) -> str:
        if self.at_most < inf:
            return f"<= {100 * self.at_most:.1f}"
        return f">= {100 * self.at_least:.1f}" if self.at_least > -inf else ""


@dataclass(frozen=True, slots=True)
class Table:
    """The figures on the rows of a task, or on those of them that it takes."""

    title: str
    task: str
    bounds: Sequence[Bound]
    takes: Callable[[Labelled], bool] = lambda _: True


TABLES = (
    Table(
        "selection, without the rows that need knowledge of the world",
        "selection",
        (Bound("accuracy", 0.93), Bound("wrong_pick", at_most=0.01), Bound("false_pick_on_null", at_most=0.015)),
        lambda row: row["kind"] != "semantic",
    ),
    Table("selection, all rows", "selection", (Bound("accuracy"), Bound("wrong_pick"), Bound("false_pick_on_null"))),
    Table(
        "confirmation",
        "confirmation",
        (Bound("accuracy", 0.82), Bound("FALSE_ACCEPT", at_most=0.006), Bound("yes_recall"), Bound("no_recall")),
    ),
    Table(
        "confirmation, rows that begin with a yes or no",
        "confirmation",
        (Bound("accuracy"), Bound("FALSE_ACCEPT"), Bound("yes_recall", 0.90), Bound("no_recall")),
        lambda row: row["style"] == "explicit",
    ),
    Table("cancel", "cancel", (Bound("precision", 0.97), Bound("recall", 0.80))),
    Table(
        "incomplete",
        "incomplete",
        (
            Bound("precision", 0.88),
            Bound("recall", 0.40),
            Bound("complete_left_untouched", 0.97),
            Bound("rewrite_tokenF1"),
            Bound(GAIN, at_least=0),
        ),
    ),
)


class Scorer:
    """The score.py that comes with the data."""

    def __init__(self, folder: Path) -> None:
        script = runpy.run_path(str(folder / "score.py"))
        self._scores: Mapping[str, Score] = script["SCORERS"]
        self._labelled: Mapping[str, Sequence[Labelled]] = {task: script["load"](task) for task in TASKS}

    def figures(self, table: Table, predictions: Mapping[str, Prediction]) -> Figures:
        """Its figures on a table's rows, as shares, and for rewrites by how much they are better than none."""
        found = self._scores[table.task](list(filter(table.takes, self._labelled[table.task])), predictions)
        if table.task != "incomplete":
            return found
        return {**found, GAIN: (found["rewrite_tokenF1"] or 0) - (found["tokenF1_if_unchanged"] or 0)}


def median_time(rows: Iterable[Row]) -> float:
    """The median of one prediction each, in us."""
    times = []
    for row in rows:
        start = perf_counter()
        row.predict()
        times.append(perf_counter() - start)
    return 1e6 * median(times)


def measured(table: Table, rows: Iterable[Row], scorer: Scorer) -> dict[str, Figures]:
    """The figures of the simple rules, and last of the bot, by their names."""
    rules: Mapping[str, Rule] = {**SIMPLE_RULES[table.task], BOT: methodcaller("predict")}
    return {name: scorer.figures(table, {row.id: rule(row) for row in rows}) for name, rule in rules.items()}


def lines(table: Table, figures: Mapping[str, Figures]) -> list[str]:
    """The table, in per cent."""
    names = [bound.figure for bound in table.bounds]
    head = f"| | {' | '.join(name.replace('_', ' ') for name in names)} |"
    body = {name: [_per_cent(made[figure]) for figure in names] for name, made in figures.items()}
    if any(map(str, table.bounds)):
        body["held to"] = list(map(str, table.bounds))
    cells = (f"| {name} | {' | '.join(values)} |" for name, values in body.items())
    return [table.title, "", head, "|---" * (len(names) + 1) + "|", *cells]


def broken(table: Table, figures: Figures) -> list[str]:
    """A sentence on each bound that is not held."""
    return [
        f"{table.title}: {bound.figure} is {_per_cent(figures[bound.figure])}, held to {bound}"
        for bound in table.bounds
        if not bound.holds(figures)
    ]


def _per_cent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}"


def report(folder: Path) -> int:
    """Prints the tables. Returns how many of the bounds are not held. Raises ExampleError."""
    rows = {task: read_rows(folder / f"{task}.jsonl", task) for task in TASKS}
    times = {task: median_time(of) for task, of in rows.items()}  # before any of them was seen
    scorer = Scorer(folder)
    below: list[str] = []
    for table in TABLES:
        figures = measured(table, rows[table.task], scorer)
        print("\n" + "\n".join(lines(table, figures)))
        below += broken(table, figures[BOT])
    print("\n| | median of one call, us |\n|---|---|")
    print("\n".join(f"| {task} | {time:.0f} |" for task, time in times.items()))
    print("\n" + ("\n".join(below) or "All bounds hold."))
    return len(below)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m evals.measure_resolutions", description=__doc__)
    parser.add_argument("folder", type=Path, help="holds score.py and a file of rows for each task")
    folder = parser.parse_args().folder
    if not (folder / "score.py").exists():
        print(f"There are no rows in {folder}: nothing was measured. {WHERE_TO_GET}")
        return 0
    try:
        return 1 if report(folder) else 0
    except ExampleError as error:
        sys.stderr.write(f"{error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
