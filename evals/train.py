"""`python -m evals.train EXAMPLES.jsonl.gz ROOMS.jsonl...`: trains the follow-up model anew, followup/model.json.

Deterministic; some 20 minutes on two cores. Needs the extra `evals`. Calibration and operating points are chosen by
whole files of rooms left out in turn: what is estimated of a file is estimated by a model that has not seen it. The
rooms of evals/data are trained on only. With --left-out FOLDER the models without each file are written there, too.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import Pool
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import catboost
import numpy as np
import numpy.typing as npt
import orjson
from catboost import CatBoost
from catboost import Pool as Samples
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from evals.examples import Example, ExampleError, read_examples
from evals.free_run import Counts, Point, points_of, swept
from evals.rooms import Room, read_rooms
from evals.rows import Row, of_irc, of_rooms
from followup.features import feature_names
from followup.model import (
    FORMAT,
    LEAVES,
    LEVELS,
    MODEL_FILE,
    Calibration,
    Eagerness,
    Estimator,
    FollowupModel,
    Forest,
    ModelFile,
    Question,
    build,
    packed,
    steps_of,
)
from followup.text_features import SIZE

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

FOLDS = 5
SEED = 0
NOTHING_ABOVE = 1e30
ROOM_WEIGHT = {Question.SAID: 0.22, Question.WANTS: 6.0}  # a message of a room, beside one of IRC
COMMON = {
    "loss_function": "Logloss",
    "depth": LEVELS,
    "l2_leaf_reg": 6,
    "rsm": 0.3,
    "boosting_type": "Plain",
    "random_seed": SEED,
    "thread_count": 2,
    "logging_level": "Silent",
    "allow_writing_files": False,
}
PARAMETERS: Mapping[Question, Mapping[str, Any]] = {
    Question.SAID: {"iterations": 450, "learning_rate": 0.12},
    Question.WANTS: {"iterations": 600, "learning_rate": 0.07},
}
# Rooms alone would have it near 0; as it is, both must agree where a channel is unlike the rooms.
SAID_SHARE = 0.25
WORDS_C = {Question.SAID: 0.5, Question.WANTS: 0.5}


@dataclass(frozen=True, slots=True)
class Data:
    """Rows as arrays. wanted: 1 or 0, NaN where it is not known."""

    values: Array
    words: csr_matrix
    said: Array
    wanted: Array
    weights: Array
    groups: npt.NDArray[np.str_]
    is_room: Mask
    is_judged: Mask

    @staticmethod
    def of(rows: Sequence[Row]) -> Data:
        places, shares, ends = [], [], [0]
        for row in rows:
            for members, share in row.words:
                places += members
                shares += [share] * len(members)
            ends.append(len(places))
        words = csr_matrix((shares, places, ends), shape=(len(rows), SIZE))
        words.sum_duplicates()
        return Data(
            values=np.array([row.values for row in rows]),
            words=words,
            said=np.array([float(row.said) for row in rows]),
            wanted=np.array([np.nan if row.wants is None else float(row.wants) for row in rows]),
            weights=np.array([row.weight for row in rows]),
            groups=np.array([row.group for row in rows]),
            is_room=np.array([row.is_room for row in rows]),
            is_judged=np.array([row.is_judged for row in rows]),
        )

    def target(self, question: Question) -> tuple[Array, Mask]:
        """What is to be estimated, and of which rows it is known."""
        if question is Question.SAID:
            return self.said, np.ones(len(self.said), dtype=bool)
        return self.wanted, ~np.isnan(self.wanted)


def trained(data: Data, question: Question) -> Estimator:
    """The estimator of one question, not yet calibrated."""
    target, known = data.target(question)
    scores, weights, bias = _scores_of_words(data, question, known & data.is_room)  # IRC's words are of its own trade
    values = np.column_stack([data.values, scores])[known]
    shares = (data.weights * np.where(data.is_room, ROOM_WEIGHT[question], 1))[known]
    model = CatBoost({**COMMON, **PARAMETERS[question]}).fit(Samples(values, target[known], weight=shares))
    steps, scale = steps_of(weights)
    return Estimator(words=packed(steps), scale=scale, bias=_short(bias), trees=forest_of(model))


def _scores_of_words(data: Data, question: Question, seen_by_words: Mask) -> tuple[Array, Array, float]:
    """What the words of each row say of the question, by a model that was not trained on its group; and that of all:
    its weights, and its bias."""
    chosen = np.flatnonzero(seen_by_words)
    if not len(chosen):
        return np.zeros(len(seen_by_words)), np.zeros(SIZE), 0.0
    whole = _words(data, question, chosen)
    scores: Array = whole.decision_function(data.words)
    for seen, unseen in GroupKFold(FOLDS).split(chosen, groups=data.groups[chosen]):
        part = _words(data, question, chosen[seen])
        scores[chosen[unseen]] = part.decision_function(data.words[chosen[unseen]])
    return scores, whole.coef_[0], float(whole.intercept_[0])


def _words(data: Data, question: Question, rows: npt.NDArray[np.intp]) -> LogisticRegression:
    target, _ = data.target(question)
    model = LogisticRegression(C=WORDS_C[question], solver="liblinear", max_iter=400)
    return model.fit(data.words[rows], target[rows], sample_weight=data.weights[rows])


def forest_of(model: CatBoost) -> Forest:
    """CatBoost's trees as the model file has them. A tree of fewer levels gets some that nothing lies above."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        found = orjson.loads(path.read_bytes())
    trees = found["oblivious_trees"]
    feature, threshold = [], []
    leaves, weights = np.zeros((len(trees), LEAVES), "<f4"), np.zeros((len(trees), LEAVES), "<f2")
    for number, tree in enumerate(trees):
        splits = tree["splits"] or []
        missing = LEVELS - len(splits)
        feature += [split["float_feature_index"] for split in splits] + [0] * missing
        threshold += [split["border"] for split in splits] + [NOTHING_ABOVE] * missing
        leaves[number, : 1 << len(splits)] = tree["leaf_values"]
        weights[number, : 1 << len(splits)] = np.array(tree["leaf_weights"]) / sum(tree["leaf_weights"])
    scale, (bias,) = found["scale_and_bias"]
    return Forest(
        feature=feature,
        threshold=threshold,
        leaves=packed(leaves * scale + bias / len(trees)),
        weights=packed(weights),
    )


def _short(number: float) -> float:
    return float(f"{number:.7g}")


@dataclass(frozen=True, slots=True)
class Calibrations:
    """Of whether it was said to the bot, and of whether the bot answers."""

    said: Calibration
    answer: Calibration


BY_SAID = Calibration(said=1, wants=0, bias=0)
NOT_YET = Calibrations(BY_SAID, Calibration(said=0.5, wants=0.5, bias=0))


def file_of(
    estimators: Mapping[Question, Estimator],
    calibrations: Calibrations,
    about: Mapping[str, Any],
    point: Mapping[str, float],
) -> ModelFile:
    file = ModelFile(
        format=FORMAT,
        about=dict(about),
        features=feature_names(),
        thresholds={eagerness: _short(point[eagerness]) for eagerness in Eagerness},
        certain=_short(point["certain"]),
        said=calibrations.said,
        answer=calibrations.answer,
        estimators=dict(estimators),
        digest="",
    )
    return file.model_copy(update={"digest": file.digest_of_rest()})


def margins(model: FollowupModel, data: Data) -> Array:
    """(rows, questions): what the trees of a model that is not calibrated add up to."""
    words = data.words @ model.words + np.array(model.biases)
    rows = np.column_stack([data.values, words])
    return np.array([model.trees.sum(row)[: len(Question)] for row in rows])


def calibrated(margins_of: Sequence[Array], data_of: Sequence[Data]) -> Calibrations:
    """By what was estimated of files left out."""
    sums = np.concatenate([found[data.is_judged] for found, data in zip(margins_of, data_of, strict=True)])
    said = np.concatenate([data.said[data.is_judged] for data in data_of])
    wanted = np.concatenate([data.wanted[data.is_judged] for data in data_of])
    known = ~np.isnan(wanted)
    of_said, of_wants = _platt(sums[:, 0], said), _platt(sums[known, 1], wanted[known])
    both = SAID_SHARE * (of_said[0] * sums[known, 0]) + (1 - SAID_SHARE) * of_wants[0] * sums[known, 1]
    slope, bias = _platt(both, wanted[known])
    return Calibrations(
        said=Calibration(said=of_said[0], wants=0, bias=of_said[1]),
        answer=Calibration(
            said=_short(slope * SAID_SHARE * of_said[0]),
            wants=_short(slope * (1 - SAID_SHARE) * of_wants[0]),
            bias=bias,
        ),
    )


def _platt(sums: Array, right: Array) -> tuple[float, float]:
    """Slope and intercept of the logistic function that makes probabilities of sums."""
    found = LogisticRegression(C=1e6).fit(sums[:, None], right)
    return _short(found.coef_[0][0]), _short(found.intercept_[0])


ANY_POINT: Point = {**dict.fromkeys(map(str, Eagerness), 0.5), "certain": 0.9}


def train(irc: Path, files: Sequence[Path], own: Sequence[Path]) -> tuple[ModelFile, list[ModelFile]]:
    """The model of everything, and those without each file. Raises ExampleError."""
    rooms = {path.stem: read_rooms(path) for path in files}
    extra = [row for path in own for row in of_rooms(read_rooms(path))]
    with Pool(os.cpu_count()) as pool:
        of_examples = pool.imap(_rows_of_example, read_examples(irc), chunksize=400)
        common = [*extra, *(row for rows in of_examples for row in rows)]
    rows = {name: list(of_rooms(some)) for name, some in rooms.items()}
    data = {name: Data.of(some) for name, some in rows.items()}
    raw = {}
    for name in rooms:
        seen = Data.of([*common, *(row for other in rooms if other != name for row in rows[other])])
        raw[name] = {question: trained(seen, question) for question in Question}
        print(f"trained without {name}", file=sys.stderr)
    found = {name: margins(build(file_of(some, NOT_YET, {}, ANY_POINT)), data[name]) for name, some in raw.items()}
    models: dict[str, Calibrations] = {}
    sweeps: dict[str, dict[float, Counts]] = {}
    for name, some in rooms.items():
        others = [other for other in rooms if other != name]
        models[name] = calibrated([found[o] for o in others], [data[o] for o in others])
        sweeps[name] = swept(some, build(file_of(raw[name], models[name], {}, ANY_POINT)))
    # The points, three thresholds, are those of the bot, and so have seen what came of all files left out.
    point = points_of(list(sweeps.values()))
    left_out = [file_of(raw[name], models[name], {"left out": name}, point) for name in rooms]
    whole = Data.of([*common, *(row for name in rooms for row in rows[name])])
    final = {question: trained(whole, question) for question in Question}
    about = _about(irc, rooms, own, whole, point)
    # What one would have without rooms, to compare with: whatever is said to the bot is answered.
    said = dict.fromkeys(Question, trained(Data.of([row for row in common if not row.is_room]), Question.SAID))
    left_out.append(file_of(said, Calibrations(BY_SAID, BY_SAID), {"left out": "irc"}, ANY_POINT))
    return file_of(final, calibrated(list(found.values()), list(data.values())), about, point), left_out


def _rows_of_example(example: Example) -> list[Row]:
    return list(of_irc(example))


def _about(irc: Path, rooms: Mapping[str, list[Room]], own: Sequence[Path], data: Data, point: Point) -> dict[str, Any]:
    return {
        "question": "Was this message, which does not mention the bot, said to it, and does it want an answer?",
        "data": [
            f"{irc.name}: messages of #ubuntu, adapted from Kummerfeld et al., A Large-Scale Corpus for Conversation "
            "Disentanglement, ACL 2019, CC BY 4.0",
            f"{', '.join(rooms)}: {sum(map(len, rooms.values()))} rooms as on Discord, written by language models",
            *(f"{path.name}: rooms of the same kind" for path in own),
        ],
        "rows": len(data.said),
        "trained": f"{datetime.now(UTC):%Y-%m-%d}",
        "catboost": catboost.__version__,
        "points": {str(name): _short(threshold) for name, threshold in point.items()},
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m evals.train", description=__doc__)
    parser.add_argument("irc", type=Path, help="training examples of IRC, one JSON object a line; .gz or not")
    parser.add_argument("rooms", type=Path, nargs="+", help="files of rooms")
    parser.add_argument("--out", type=Path, default=MODEL_FILE)
    parser.add_argument("--left-out", type=Path, help="a folder for the models without each file of rooms")
    arguments = parser.parse_args()
    if len({path.stem for path in arguments.rooms}) < max(len(arguments.rooms), 2):
        parser.error("at least two files of rooms are needed, each of a name of its own: they are left out in turn")
    own = sorted(Path(__file__).with_name("data").glob("*.jsonl"))
    try:
        file, left_out = train(arguments.irc, arguments.rooms, own)
    except ExampleError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    _write(arguments.out, file)
    for model in left_out if arguments.left_out else ():
        arguments.left_out.mkdir(parents=True, exist_ok=True)
        _write(arguments.left_out / f"{model.about['left out']}.json", model)
    print(orjson.dumps(file.about, option=orjson.OPT_INDENT_2).decode())
    return 0


def _write(path: Path, file: ModelFile) -> None:
    path.write_bytes(orjson.dumps(file.model_dump(mode="json")) + b"\n")


if __name__ == "__main__":
    sys.exit(main())
