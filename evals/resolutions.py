"""`python -m evals.resolutions TASK ROWS.jsonl > PREDICTIONS.json`: how the bot understands each row's reply.

One JSON object from a row's id to what the bot makes of it, by the very functions that it runs. selection: the option's
index, from 0, or null; confirmation: true, false or null; cancel: true or false; incomplete: {"incomplete": bool,
"rewrite": str}. The task's name may have a suffix, as its file may: "selection_more". Labels in the rows are not read.
"""

from __future__ import annotations

import argparse
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path

import orjson
from pydantic import BaseModel, ConfigDict

from evals.examples import ExampleError, read_lines
from understanding.cancel import calls_off
from understanding.confirmation import confirm
from understanding.enrichment import enrich
from understanding.selection import choose

Prediction = int | bool | dict[str, bool | str] | None


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class Row(_Frozen, ABC):
    """One reply, and what came before it."""

    id: str
    utterance: str

    @abstractmethod
    def predict(self) -> Prediction:
        """What the bot makes of it."""


class SelectionRow(Row):
    """options: as they were shown, in that order."""

    options: list[str]

    def predict(self) -> int | None:
        return choose(self.utterance, self.options)


class ConfirmationRow(Row):
    """prompt: the question, where it is known."""

    prompt: str | None = None

    def predict(self) -> bool | None:
        return confirm(self.utterance, self.prompt or "")


class CancelRow(Row):
    """Nothing but the reply."""

    def predict(self) -> bool:
        return calls_off(self.utterance)


class PastMessage(_Frozen):
    """role: user, assistant, or topic for a title that stands over it all."""

    role: str
    text: str


class IncompleteRow(Row):
    """history: oldest first."""

    history: list[PastMessage]

    def predict(self) -> dict[str, bool | str]:
        messages = [{"role": said.role, "content": said.text} for said in self.history]
        enriched = enrich(self.utterance, messages)
        return {"incomplete": enriched.incomplete, "rewrite": enriched.query}


TASKS: Mapping[str, type[Row]] = {
    "selection": SelectionRow,
    "confirmation": ConfirmationRow,
    "cancel": CancelRow,
    "incomplete": IncompleteRow,
}


def read_rows(path: Path, task: str) -> list[Row]:
    """The rows of a file, `.gz` or not. Raises ExampleError where it cannot be read, at the first broken line."""
    return list(read_lines(path, TASKS[task]))


def predict(rows: Iterable[Row]) -> dict[str, Prediction]:
    """By the rows' ids."""
    return {row.id: row.predict() for row in rows}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m evals.resolutions", description=__doc__)
    parser.add_argument("task", type=lambda name: name.partition("_")[0], choices=list(TASKS))
    parser.add_argument("rows", type=Path, help="one JSON object a line")
    arguments = parser.parse_args()
    try:
        rows = read_rows(arguments.rows, arguments.task)
    except ExampleError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.buffer.write(orjson.dumps(predict(rows)) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
