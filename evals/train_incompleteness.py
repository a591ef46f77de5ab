"""`python -m evals.train_incompleteness ROWS.jsonl`: the weights of state/incompleteness.py, learned from rows.

ROWS: rows as those of `incomplete.jsonl`. Beside them it learns from complete queries made of them (see `made_samples`)
and from small talk. Prints BIAS and WEIGHTS as they stand in the module, and on stderr what precision and recall they
reach on conversations that they were not learned from (10 folds). Needs scikit-learn.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import orjson
from sklearn.linear_model import LogisticRegression

from state.incompleteness import CERTAIN, COMPLETE, evidence, read_query, read_said

INVERSE_REGULARISATION = 1.0
MADE_WEIGHT = 0.2  # of a made sample, beside a row's 1: they outnumber the complete rows
CHAT_WEIGHT = 0.012  # of a made sample of small talk: each comes after every history without an announced topic
FOLDS = 10
SMALL_TALK = (
    "can you dance?",
    "do you play any instruments?",
    "are you a robot?",
    "may I make a suggestion?",
    "could someone lend me a charger?",
    "would you proofread my letter?",
    "can you teach me chess?",
    "what's your favourite season?",
    "where do you live?",
    "who invented the bicycle?",
    "how big is the galaxy?",
    "how does the immune system work?",
    "what does the owl say?",
    "what's the easiest way to learn the violin?",
    "what are the symptoms of the measles?",
    "what are the rules of chess?",
    "what's the most popular sport?",
    "which weighs more, the whale or the elephant?",
    "tell me a riddle",
    "do you mind if people swear?",
)  # complete wherever they are said: they address somebody, or ask about what there is one of in the world
NEGLIGIBLE = 5  # hundredths: a weight below is not worth a line


@dataclass(frozen=True, slots=True)
class Sample:
    """The evidence on a query, what is true of it, and which conversation it is of."""

    found: frozenset[str]
    incomplete: bool
    weight: float
    fold: int

    @property
    def is_weighed(self) -> bool:
        """Whether the evidence is left to the weights."""
        return COMPLETE.isdisjoint(self.found) and CERTAIN.isdisjoint(self.found)


def sample(query: str, history: Sequence[dict[str, str]], *, incomplete: bool = False, weight: float = 1.0) -> Sample:
    said = read_said([{"role": message["role"], "content": message["text"]} for message in history])
    return Sample(evidence(read_query(query), said), incomplete, weight, _fold(history))


def made_samples(rows: Sequence[dict[str, Any]]) -> list[Sample]:
    """Complete queries after histories that they do not need.

    Rewrites of incomplete rows after their own history, and rewrites and the openings of conversations (which came
    after nothing) after the history of another source. An announced topic would tell those apart, so they get none.
    """
    samples = []
    for row in rows:
        rewrite, opening = row["rewrite"], row["history"][0]
        fold = _fold(row["history"])
        if row["incomplete"]:
            samples.append(sample(rewrite, row["history"], weight=MADE_WEIGHT))
        others = [other["history"] for other in rows if _may_precede(other, row)]
        history = others[crc32(row["id"].encode()) % len(others)]
        queries = {rewrite} if opening["role"] == "topic" else {rewrite, opening["text"]}
        samples += [replace(sample(query, history, weight=MADE_WEIGHT), fold=fold) for query in sorted(queries)]
    return samples


def small_talk(rows: Sequence[dict[str, Any]]) -> list[Sample]:
    """Complete questions of a chat, after the histories of rows without an announced topic."""
    histories = [row["history"] for row in rows if row["history"][0]["role"] != "topic"]
    return [sample(query, history, weight=CHAT_WEIGHT) for query in SMALL_TALK for history in histories]


def _may_precede(other: dict[str, Any], row: dict[str, Any]) -> bool:
    """Whether a history is of another source, and without an announced topic."""
    source, opening = other["source"].split("/")[0], other["history"][0]
    return bool(source != row["source"].split("/")[0] and opening["role"] != "topic")


def _fold(history: Sequence[dict[str, str]]) -> int:
    return crc32(history[0]["text"].encode()) % FOLDS


def fit(samples: Sequence[Sample]) -> tuple[int, dict[str, int]]:
    """The bias and the weights that count, in hundredths of log-odds."""
    weighed = [each for each in samples if each.is_weighed]
    names = sorted(frozenset().union(*(each.found for each in weighed)))
    table = np.array([[name in each.found for name in names] for each in weighed], dtype=float)
    model = LogisticRegression(C=INVERSE_REGULARISATION, max_iter=1000)
    model.fit(table, [each.incomplete for each in weighed], [each.weight for each in weighed])
    weights = {name: round(100 * weight) for name, weight in zip(names, model.coef_[0], strict=True)}
    return round(100 * model.intercept_[0]), {n: weight for n, weight in weights.items() if abs(weight) >= NEGLIGIBLE}


def judge(each: Sample, bias: int, weights: Mapping[str, int]) -> bool:
    """What `is_incomplete` would say with these weights."""
    if each.is_weighed:
        return bias + sum(weights.get(name, 0) for name in each.found) > 0
    return COMPLETE.isdisjoint(each.found)


def cross_validated(samples: Sequence[Sample], more: Sequence[Sample]) -> tuple[float, float]:
    """Precision and recall on samples, each judged by weights learned from other conversations and more."""
    hits = flags = 0
    for fold in range(FOLDS):
        bias, weights = fit([each for each in (*samples, *more) if each.fold != fold])
        flagged = [each for each in samples if each.fold == fold and judge(each, bias, weights)]
        flags += len(flagged)
        hits += sum(each.incomplete for each in flagged)
    return hits / flags, hits / sum(each.incomplete for each in samples)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m evals.train_incompleteness", description=__doc__)
    parser.add_argument("rows", type=Path)
    rows = [orjson.loads(line) for line in parser.parse_args().rows.read_bytes().splitlines()]
    samples = [sample(row["utterance"], row["history"], incomplete=row["incomplete"]) for row in rows]
    more = [*made_samples(rows), *small_talk(rows)]
    precision, recall = cross_validated(samples, more)
    print(f"cross-validated: precision {precision:.3f}, recall {recall:.3f}", file=sys.stderr)
    bias, weights = fit([*samples, *more])
    print(f"BIAS = {bias}")
    print("WEIGHTS: Mapping[str, int] = {")
    print(*(f'    "{name}": {weight},' for name, weight in weights.items()), "}", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
