"""The trained model of two questions: was this said to me, and would an attentive person in my place answer it?

Both were trained on IRC and on rooms as on Discord, and both count in the decision. The file is JSON, written by
evals/train.py: what it was trained on, the expected features in order, the operating points, the calibrations, and for
each question the trees, and the weights of the message's own words.
"""

from __future__ import annotations

import base64
import hashlib
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import orjson
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from conversation import ChannelConversation
from followup.evidence import ASPECT_OF, Aspect
from followup.features import Features, before_it, feature_names, features
from followup.text_features import SIZE, groups
from state.message import MessageRecord

MODEL_FILE = Path(__file__).with_name("model.json")
FORMAT = 3
LEVELS = 6  # of each tree
LEAVES = 1 << LEVELS
WORDS = "words_score"  # the feature that is computed by the weights of the words

MAX_FIELD = 80  # characters of a field's name in an error

Share = Annotated[float, Field(ge=0, le=1)]
Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]


class Eagerness(StrEnum):
    """The operating points: how sure the bot must be that a message was said to it and wants an answer."""

    QUIET = "quiet"
    BALANCED = "balanced"
    EAGER = "eager"


class Question(StrEnum):
    """The two estimates. SAID: whether it was said to the bot; WANTS: whether it wants the bot's answer."""

    SAID = "said"
    WANTS = "wants"


class ModelFileError(ValueError):
    """The model file cannot be used; the text says why."""


class Forest(BaseModel):
    """Oblivious trees, as CatBoost grows them: all nodes of a level make the same test. A message's leaf in a tree thus
    is a number of LEVELS bits, and all trees are evaluated at once.

    feature, threshold: of each tree and level; the bit is 1 where the feature is above the threshold; the first level's
    bit is the lowest. leaves: the value of each leaf, float32; weights: the share of the training data in each leaf,
    float16; both little-endian, as base64 of zlib.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    feature: list[int] = Field(min_length=1)
    threshold: list[FiniteFloat]
    leaves: str
    weights: str


class Estimator(BaseModel):
    """The estimator of one question. words: weights of the hashed words, 1 byte each, as base64 of zlib; scale: the
    weight of 1 in these; bias: added to the sum of the weights."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    words: str
    scale: FiniteFloat
    bias: FiniteFloat
    trees: Forest


class Calibration(BaseModel):
    """Turns the sums of both questions into a probability: the logistic function of their weighted sum and a bias."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    said: FiniteFloat
    wants: FiniteFloat
    bias: FiniteFloat

    def probability(self, said: float, wants: float) -> float:
        # The logistic function, in a form that cannot overflow.
        return (1 + math.tanh((self.said * said + self.wants * wants + self.bias) / 2)) / 2


class ModelFile(BaseModel):
    """The model file. said: calibration of whether a message was said to the bot; answer: of whether the bot answers.
    certain: from this probability on the agent must not decline. digest: of everything else in the file.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[3]
    about: dict[str, Any]
    features: list[str]
    thresholds: dict[Eagerness, Share]
    certain: Share
    said: Calibration
    answer: Calibration
    estimators: dict[Question, Estimator]
    digest: str

    def digest_of_rest(self) -> str:
        rest = self.model_dump(mode="json", exclude={"digest"})
        return hashlib.sha256(orjson.dumps(rest, option=orjson.OPT_SORT_KEYS)).hexdigest()


@dataclass(frozen=True, slots=True)
class Estimate:
    """The model's estimate of a message. probability: that the bot is to answer; said: that it was said to the bot;
    both calibrated. moved: how much each Aspect raised it, in log odds; features: of the message."""

    probability: float
    said: float
    moved: Sequence[float]
    features: Features


@dataclass(frozen=True, slots=True)
class Trees:
    """The trees of both questions. feature, threshold: of each different test; tests: indexes of each tree's tests by
    level, padded to 8; first_leaves: index of each tree's first leaf; ones: a 1 for each tree. sums: (leaves, 2 +
    aspects): the value of a leaf for each question, and each aspect's contribution to the decision."""

    feature: Places
    threshold: Floats
    tests: Places
    first_leaves: Places
    ones: npt.NDArray[np.float32]
    sums: npt.NDArray[np.float32]

    def sum(self, values: Floats) -> list[float]:
        """The sum over the leaves for these values of the features."""
        above = values.take(self.feature, mode="clip") > self.threshold
        # One byte for each tree: the number of its leaf.
        numbers = np.packbits(above.take(self.tests, mode="clip"), bitorder="little")
        # The product is faster than sum(axis=0), and "clip" faster than checking each index.
        total: list[float] = (self.ones @ self.sums.take(numbers + self.first_leaves, axis=0, mode="clip")).tolist()
        return total


@dataclass(frozen=True, slots=True)
class FollowupModel:
    """A model in memory. words: (places, questions): weights of the hashed words; biases: added to their sums."""

    about: Mapping[str, Any]
    thresholds: Mapping[Eagerness, float]
    certain: float
    words: npt.NDArray[np.float32]
    biases: Sequence[float]
    trees: Trees
    said: Calibration
    answer: Calibration

    def estimate(self, message: MessageRecord, conversation: ChannelConversation, bot_user_id: int) -> Estimate:
        """The estimate of a message, whether or not it is already recorded in the conversation."""
        found = features(message, conversation, bot_user_id)
        values = np.array([*found.values(), *self.scores_of_words(message, found)], dtype=np.float64)
        said, wants, *moved = self.trees.sum(values)
        return Estimate(self.answer.probability(said, wants), self.said.probability(said, wants), moved, found)

    def scores_of_words(self, message: MessageRecord, found: Features) -> list[float]:
        """The sum of the weights of the message's own words, for each question."""
        places: list[int] = []
        starts, weights = [], []
        for members, weight in groups(message.wording, message.content, before_it(found)):
            if members:
                starts.append(len(places))
                weights.append(weight)
                places += members
        sums = np.add.reduceat(
            self.words.take(places, axis=0, mode="clip"), starts
        ).tolist()  # there is always at least one place
        said, wants = self.biases
        for weight, (of_said, of_wants) in zip(weights, sums, strict=True):
            said += weight * of_said
            wants += weight * of_wants
        return [said, wants]


def load_model(path: Path = MODEL_FILE) -> FollowupModel:
    """Reads a model file. Raises ModelFileError where it is missing, damaged, of another format or other features."""
    try:
        raw = orjson.loads(path.read_bytes())
    except OSError as error:
        raise ModelFileError(f"{path.name} cannot be read: {error.strerror}.") from None
    except orjson.JSONDecodeError:
        raise ModelFileError(f"{path.name} is damaged: it is no JSON.") from None
    if isinstance(raw, dict) and isinstance(raw.get("format"), int) and raw["format"] != FORMAT:
        raise ModelFileError(f"{path.name} has format {raw['format']}; this version reads format {FORMAT}.")
    try:
        file = ModelFile.model_validate(raw)
    except ValidationError as error:
        where = " ".join(".".join(map(str, error.errors()[0]["loc"])).split())[:MAX_FIELD] or "the whole"
        raise ModelFileError(f"{path.name} is damaged: {where}: {error.errors()[0]['msg']}.") from None
    return build(file, path.name)


def build(file: ModelFile, name: str = "the model") -> FollowupModel:
    """Builds the model of a file. Raises ModelFileError where it is damaged or of other features."""
    if file.digest != file.digest_of_rest():
        raise ModelFileError(f"{name} is damaged: its digest is not that of its content.")
    if file.thresholds.keys() != set(Eagerness) or file.estimators.keys() != set(Question):
        raise ModelFileError(f"{name} lacks the threshold of an operating point, or a question.")
    points = [file.thresholds[point] for point in reversed(Eagerness)]
    if [*points, file.certain] != sorted([*points, file.certain]):
        raise ModelFileError(f"{name} is damaged: a quieter operating point has a lower threshold.")
    if file.features != feature_names():
        raise ModelFileError(f"{name} was trained with other features than this version's.")
    estimators = [file.estimators[question] for question in Question]
    what = f"{name} is damaged: the weights of its words"
    steps = [_unpacked(estimator.words, "i1", SIZE, what).astype(np.float32) for estimator in estimators]
    trees = _trees(estimators, (file.answer.said, file.answer.wants), file.features, name)
    with np.errstate(over="ignore", invalid="ignore"):
        words = np.stack([of * np.float32(by.scale) for of, by in zip(steps, estimators, strict=True)], axis=1)
        if not np.isfinite([np.abs(words).sum(), np.abs(trees.sums).sum()]).all():
            raise ModelFileError(f"{name} is damaged: its weights are too large to be summed.")
    return FollowupModel(
        about=file.about,
        thresholds=file.thresholds,
        certain=file.certain,
        words=words,
        biases=[estimator.bias for estimator in estimators],
        trees=trees,
        said=file.said,
        answer=file.answer,
    )


def packed(values: npt.NDArray[Any]) -> str:
    """An array as it is written in the file."""
    return base64.b64encode(zlib.compress(values.tobytes(), 9)).decode()


def steps_of(weights: Floats) -> tuple[npt.NDArray[np.int8], float]:
    """Weights of hashed words as whole numbers from -127 to 127, and the scale: the weight of 1."""
    scale = float(np.abs(weights).max()) / 127 or 1.0
    return np.round(weights / scale).astype(np.int8), scale


def _unpacked(text: str, dtype: str, count: int, what: str) -> npt.NDArray[Any]:
    """Reads an array of `count` finite numbers. Raises ModelFileError for anything else. what: its name in errors."""
    size = count * np.dtype(dtype).itemsize
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(base64.b64decode(text), size + 1)  # limited, as it could unpack to gigabytes
    except (ValueError, zlib.error):
        raise ModelFileError(f"{what} cannot be read.") from None
    if len(raw) <= size and not unpacker.eof:
        raise ModelFileError(f"{what} cannot be read.")
    if len(raw) != size:
        raise ModelFileError(f"{what} are {'more' if len(raw) > size else 'fewer'} than {count}.")
    values = np.frombuffer(raw, dtype=dtype)
    if not np.isfinite(values).all():
        raise ModelFileError(f"{what} are not all finite.")
    return values


def _trees(estimators: Sequence[Estimator], shares: Sequence[float], names: Sequence[str], name: str) -> Trees:
    """Builds the trees of both questions. shares: each question's weight in the decision. Raises ModelFileError."""
    features, sums = [], []
    for number, (estimator, share) in enumerate(zip(estimators, shares, strict=True)):
        forest = estimator.trees
        if len(forest.feature) % LEVELS or len(forest.threshold) != len(forest.feature):
            raise ModelFileError(f"{name} is damaged: its trees have not {LEVELS} levels each.")
        if min(forest.feature) < 0 or max(forest.feature) > len(names):  # len(names) stands for the words' score
            raise ModelFileError(f"{name} is damaged: a tree asks for a feature there is not.")
        feature = np.array(forest.feature, dtype=np.intp)
        count = len(feature) // LEVELS
        leaves, weights = (
            _unpacked(text, kind, count * LEAVES, f"{name} is damaged: {what} of its trees").reshape(count, LEAVES)
            for text, kind, what in ((forest.leaves, "<f4", "the leaves"), (forest.weights, "<f2", "the weights"))
        )
        if weights.min() < 0:
            raise ModelFileError(f"{name} is damaged: less than nothing came to a leaf of its trees.")
        aspects = np.array([ASPECT_OF[known] for known in (*names, WORDS)])[feature].reshape(count, LEVELS)
        own = np.zeros((count, LEAVES, len(estimators)))
        own[:, :, number] = leaves
        sums.append(np.concatenate([own, share * _moved(leaves, weights, aspects)], axis=2).reshape(count * LEAVES, -1))
        features.append(np.where(feature == len(names), len(names) + number, feature))
    every = np.concatenate(sums).astype(np.float32)
    thresholds = np.concatenate([estimator.trees.threshold for estimator in estimators])
    pairs = list(zip(_filled(np.concatenate(features), 0), _filled(thresholds, math.inf), strict=True))
    made = {pair: place for place, pair in enumerate(dict.fromkeys(pairs))}  # each test once: trees share most of them
    return Trees(
        feature=np.array([feature for feature, _ in made], dtype=np.intp),
        threshold=np.array([threshold for _, threshold in made]),
        tests=np.array([made[pair] for pair in pairs]),
        first_leaves=np.arange(0, len(every), LEAVES),
        ones=np.ones(len(every) // LEAVES, np.float32),
        sums=every,
    )


def _filled(of_trees: npt.NDArray[Any], filling: float) -> list[float]:
    """The values at each tree's levels, padded with this to 8 levels."""
    filled = np.pad(of_trees.reshape(-1, LEVELS), ((0, 0), (0, 8 - LEVELS)), constant_values=filling)
    return list(filled.ravel().tolist())


def _moved(leaves: Floats, weights: Floats, aspects: Places) -> Floats:
    """(trees, leaves, aspects): how much each aspect changed the sum on the way to each leaf.

    At a level the sum is the mean of the leaves below, weighted by how much training data came to each."""
    count = len(leaves)
    moved = np.zeros((count, LEAVES, len(Aspect)))
    weights = weights.astype(float) + 1e-6  # so that a branch without training data has a mean, too
    place = np.arange(LEAVES)
    before = np.zeros((count, LEAVES))
    for level in range(LEVELS + 1):
        below = (count, LEAVES >> level, 1 << level)
        means = (leaves * weights).reshape(below).sum(axis=1) / weights.reshape(below).sum(axis=1)
        after = means[:, place & ((1 << level) - 1)]
        if level:
            moved[np.arange(count), :, aspects[:, level - 1]] += after - before
        before = after
    return moved
