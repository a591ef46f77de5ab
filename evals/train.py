"""`python -m evals.train TRAIN.jsonl.gz`: trains the follow-up model anew and writes followup/model.json.

Deterministic; some 2 minutes on two cores. Needs the extra `evals`. Whatever is chosen here (calibration, thresholds)
is chosen by cross-validation within the training data, whole logs left out at a time.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import numpy.typing as npt
import orjson
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, precision_recall_curve
from sklearn.model_selection import GroupKFold

from decider import FollowupRules, ResponseDecider, is_explicit_trigger
from evals.examples import BOT, Example, ExampleError, conversation_of, message_of, read_examples
from followup.features import feature_names, features
from followup.model import FORMAT, MODEL_FILE, Eagerness, ModelFile, Nodes

Array = npt.NDArray[np.float64]

FOLDS = 5
ROUNDS = 260
SEED = 0
EXPLICIT_WEIGHT = 0.2  # those that name the bot only teach what a name is worth: they are never left to the model
PARAMETERS = {
    "objective": "binary",
    "learning_rate": 0.05,
    "num_leaves": 31,
    "max_depth": 7,
    "min_data_in_leaf": 60,
    "lambda_l2": 5.0,
    "feature_fraction": 0.4,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "seed": SEED,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 2,
    "verbosity": -1,
}
# The points' precision is meant against what a message was, the labels are what one annotator linked. Against the
# adjudicated reading one annotator scores F1 0.88 to 0.92 (README of the data): of what was said to the bot, so much
# carries a label, and a decider that is right can seem no more precise than that.
ANNOTATED = 0.92
PRECISION = {Eagerness.QUIET: 0.95, Eagerness.EAGER: 0.60}


@dataclass(frozen=True, slots=True)
class Row:
    """One example, ready to train on. forced: what a rule decides; None: nothing. explicit: never left to the model."""

    values: list[float]
    is_directed: bool
    is_explicit: bool
    forced: bool | None
    log: str


RULES = ResponseDecider(followup=FollowupRules())


def row(example: Example) -> Row:
    message, conversation = message_of(example), conversation_of(example)
    rule = RULES.rule(message, conversation, BOT)
    return Row(
        values=[float(value) for value in features(message, conversation, BOT).values()],
        is_directed=example.is_directed,
        is_explicit=is_explicit_trigger(message, BOT),
        forced=rule.respond if rule else None,
        log=example.log,
    )


def train(values: Array, directed: Array, weights: Array) -> lightgbm.Booster:
    return lightgbm.train(PARAMETERS, lightgbm.Dataset(values, directed, weight=weights), ROUNDS)


def left_out_margins(values: Array, directed: Array, weights: Array, logs: Sequence[str]) -> Array:
    """Each example's margin by a model that saw nothing of its log."""
    margins = np.zeros(len(directed))
    for seen, unseen in GroupKFold(FOLDS).split(values, groups=logs):
        model = train(values[seen], directed[seen], weights[seen])
        margins[unseen] = model.predict(values[unseen], raw_score=True)
    return margins


def operating_points(probabilities: Array, rows: Sequence[Row]) -> dict[Eagerness, float]:
    """Thresholds of the whole decider, its rules included, each with the highest recall at its precision."""
    scores = np.array(
        [
            probability if r.forced is None else float(r.forced)
            for probability, r in zip(probabilities, rows, strict=True)
        ]
    )
    precision, recall, thresholds = precision_recall_curve([r.is_directed for r in rows], scores)
    precision, recall = precision[:-1], recall[:-1]
    f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-9)
    points = {Eagerness.BALANCED: float(thresholds[np.argmax(f1)])}
    for eagerness, wanted in PRECISION.items():
        reached = np.flatnonzero((precision >= wanted * ANNOTATED) & (thresholds < 1))
        if not len(reached):
            raise ExampleError(
                f"No threshold reaches a precision of {wanted}: there are too few examples, or no pattern."
            )
        points[eagerness] = float(thresholds[reached[0]])
    return points


def flat(roots: Iterable[dict[str, Any]]) -> tuple[list[int], Nodes]:
    """LightGBM's dump of trees as the model file has them."""
    nodes = Nodes(feature=[], threshold=[], below=[], above=[], value=[])
    return [_append(root, nodes) for root in roots], nodes


def _append(node: dict[str, Any], nodes: Nodes) -> int:
    """Adds a node and what follows it. Gives its place."""
    place = len(nodes.feature)
    is_leaf = "leaf_value" in node
    nodes.feature.append(0 if is_leaf else node["split_feature"])
    nodes.threshold.append(0.0 if is_leaf else _short(node["threshold"]))
    nodes.value.append(_short(node["leaf_value" if is_leaf else "internal_value"]))
    nodes.below.append(place)
    nodes.above.append(place)
    if not is_leaf:
        nodes.below[place] = _append(node["left_child"], nodes)
        nodes.above[place] = _append(node["right_child"], nodes)
    return place


def _short(number: float) -> float:
    return float(f"{number:.7g}")


def trained(path: Path) -> ModelFile:
    """The model of the examples of a file. Raises ExampleError."""
    with Pool(os.cpu_count()) as pool:
        rows = pool.map(row, read_examples(path), chunksize=500)
    values = np.array([r.values for r in rows])
    directed = np.array([float(r.is_directed) for r in rows])
    judged = np.array([not r.is_explicit for r in rows])
    weights = np.where(judged, 1.0, EXPLICIT_WEIGHT)
    margins = left_out_margins(values, directed, weights, [r.log for r in rows])
    platt = LogisticRegression(C=1e6).fit(margins[judged, None], directed[judged])
    probabilities = platt.predict_proba(margins[judged, None])[:, 1]
    points = operating_points(probabilities, [r for r in rows if not r.is_explicit])
    dump = train(values, directed, weights).dump_model()
    roots, nodes = flat(info["tree_structure"] for info in dump["tree_info"])
    file = ModelFile(
        format=FORMAT,
        about={
            "question": "Was this message, which does not mention the bot, said to it?",
            "data": f"{path.name}: {len(rows)} messages of {len({r.log for r in rows})} logs of #ubuntu, adapted from "
            "Kummerfeld et al., A Large-Scale Corpus for Conversation Disentanglement, ACL 2019, CC BY 4.0",
            "target": "label or cont",
            "trained": f"{datetime.now(UTC):%Y-%m-%d}",
            "lightgbm": lightgbm.__version__,
            "average precision, logs left out": round(
                float(average_precision_score(directed[judged], probabilities)), 4
            ),
        },
        features=feature_names(),
        slope=_short(platt.coef_[0][0]),
        intercept=_short(platt.intercept_[0]),
        thresholds={eagerness: _short(points[eagerness]) for eagerness in Eagerness},
        roots=roots,
        nodes=nodes,
        digest="",
    )
    return file.model_copy(update={"digest": file.digest_of_rest()})


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m evals.train", description=__doc__)
    parser.add_argument("examples", type=Path, help="training examples, one JSON object a line; .gz or not")
    parser.add_argument("--out", type=Path, default=MODEL_FILE)
    arguments = parser.parse_args()
    try:
        file = trained(arguments.examples)
    except ExampleError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    arguments.out.write_bytes(orjson.dumps(file.model_dump(mode="json")) + b"\n")
    print(
        orjson.dumps(
            {**file.about, "thresholds": dict(file.model_dump(mode="json")["thresholds"])}, option=orjson.OPT_INDENT_2
        ).decode()
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
