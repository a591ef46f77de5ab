"""The trained model of two questions: was this said to me, and would an attentive person in my place answer it?

Both were learnt from IRC and from rooms as on Discord; the decision is by both. The file is JSON: a head that says
what it was trained on, the features it expects in their order, the operating points, the calibrations, and for each
question the weights of the message's own words and the trees. evals/train.py writes it.
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
from followup.evidence import ASPECT_OF, Aspect, in_words
from followup.features import Features, before_it, feature_names, features
from followup.text_features import SIZE, groups
from state.message import MessageRecord

MODEL_FILE = Path(__file__).with_name("model.json")
FORMAT = 3
LEVELS = 6  # of a tree
LEAVES = 1 << LEVELS
WORDS = "words_score"  # the feature that the weights of the words give

MAX_FIELD = 80  # characters of a field's name that are told

Share = Annotated[float, Field(ge=0, le=1)]
Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]


class Eagerness(StrEnum):
    """The operating points: how sure the bot must be that a message was said to it and wants an answer."""

    QUIET = "quiet"
    BALANCED = "balanced"
    EAGER = "eager"


class Question(StrEnum):
    """What is estimated. SAID: whether it was said to the bot; WANTS: whether it wants the bot's answer."""

    SAID = "said"
    WANTS = "wants"


class ModelFileError(ValueError):
    """The model file cannot be used; the text says why."""


class Forest(BaseModel):
    """Trees that ask the same question of a message on each level, LEVELS of them (oblivious trees, as CatBoost grows
    them): which of a tree's leaves a message comes to is a number of LEVELS bits, and all trees are walked at once.

    feature, threshold: tree by tree, level by level; a bit is set where the feature lies above the threshold, the first
    level's is the lowest. leaves: what each leaf adds, float32; weights: the share of what was trained on
    that came to each, float16; both little-endian, as base64 of zlib.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    feature: list[int] = Field(min_length=1)
    threshold: list[FiniteFloat]
    leaves: str
    weights: str


class Estimator(BaseModel):
    """What answers one question. words: the weights of hashed words, 1 byte each, as base64 of zlib; scale: of one
    step of theirs; bias: what they start from."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    words: str
    scale: FiniteFloat
    bias: FiniteFloat
    trees: Forest


class Calibration(BaseModel):
    """How the sums of both questions become a probability: the logistic function of their weighted sum and a bias."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    said: FiniteFloat
    wants: FiniteFloat
    bias: FiniteFloat

    def probability(self, said: float, wants: float) -> float:
        # The logistic function, written so that no sum is too large for it.
        return (1 + math.tanh((self.said * said + self.wants * wants + self.bias) / 2)) / 2


class ModelFile(BaseModel):
    """The file. said: whether it was said to the bot, answer: whether the bot answers. certain: from this probability
    on an agent that may decline is not asked whether it wants to. digest: of all the rest.
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
    """probability: that the bot is to answer; said: that it was said to the bot at all; both calibrated. moved: by how
    much each aspect of evidence.py raised it; features: of the message."""

    probability: float
    said: float
    moved: Sequence[float]
    features: Features

    @property
    def names_others(self) -> bool:
        """Whether the message names a person other than the bot, be it without a mention."""
        return self.features["names_others"] > 0

    def in_words(self) -> tuple[str, str]:
        """What raised it most, and what lowered it."""
        return in_words(self.moved, self.features)


@dataclass(frozen=True, slots=True)
class Trees:
    """All trees of both questions. feature, threshold: of each test that any of them makes; tests: of each tree's
    levels, filled up to 8; first_leaves: each tree's first; ones: one for each. sums: (leaves, 2 + aspects): what a
    leaf adds to each question, and how far each aspect moved both."""

    feature: Places
    threshold: Floats
    tests: Places
    first_leaves: Places
    ones: npt.NDArray[np.float32]
    sums: npt.NDArray[np.float32]

    def sum(self, values: Floats) -> list[float]:
        """What the leaves that these values of the features lead to add up to."""
        above = values.take(self.feature, mode="clip") > self.threshold
        # A byte for each tree: the number of the leaf.
        numbers = np.packbits(above.take(self.tests, mode="clip"), bitorder="little")
        # Quicker than sum(axis=0), as is "clip" than to look whether each place is there.
        total: list[float] = (self.ones @ self.sums.take(numbers + self.first_leaves, axis=0, mode="clip")).tolist()
        return total


@dataclass(frozen=True, slots=True)
class FollowupModel:
    """words: (places, questions): weights of the hashed words; biases: what they start from."""

    about: Mapping[str, Any]
    thresholds: Mapping[Eagerness, float]
    certain: float
    words: npt.NDArray[np.float32]
    biases: Sequence[float]
    trees: Trees
    said: Calibration
    answer: Calibration

    def estimate(self, message: MessageRecord, conversation: ChannelConversation, bot_user_id: int) -> Estimate:
        """The estimate of a message, whether it is recorded in the conversation already or not."""
        found = features(message, conversation, bot_user_id)
        values = np.array([*found.values(), *self.scores_of_words(message, found)], dtype=np.float64)
        said, wants, *moved = self.trees.sum(values)
        return Estimate(self.answer.probability(said, wants), self.said.probability(said, wants), moved, found)

    def scores_of_words(self, message: MessageRecord, found: Features) -> list[float]:
        """What the message's own words say of each question."""
        places: list[int] = []
        starts, weights = [], []
        for members, weight in groups(message.wording, message.content, before_it(found)):
            if members:
                starts.append(len(places))
                weights.append(weight)
                places += members
        sums = np.add.reduceat(
            self.words.take(places, axis=0, mode="clip"), starts
        ).tolist()  # there is one place at least
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
    """The model of a file. Raises ModelFileError where that is damaged or of other features."""
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
    """An array as the file has it."""
    return base64.b64encode(zlib.compress(values.tobytes(), 9)).decode()


def steps_of(weights: Floats) -> tuple[npt.NDArray[np.int8], float]:
    """Weights of hashed words in steps, and what a step comes to."""
    scale = float(np.abs(weights).max()) / 127 or 1.0
    return np.round(weights / scale).astype(np.int8), scale


def _unpacked(text: str, dtype: str, count: int, what: str) -> npt.NDArray[Any]:
    """Raises ModelFileError where it is not an array of so many finite numbers. what: it is, for people."""
    size = count * np.dtype(dtype).itemsize
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(base64.b64decode(text), size + 1)  # there may be gigabytes more
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
    """shares: how much each question counts in the decision, and so in what moved it. Raises ModelFileError."""
    features, sums = [], []
    for number, (estimator, share) in enumerate(zip(estimators, shares, strict=True)):
        forest = estimator.trees
        if len(forest.feature) % LEVELS or len(forest.threshold) != len(forest.feature):
            raise ModelFileError(f"{name} is damaged: its trees have not {LEVELS} levels each.")
        if min(forest.feature) < 0 or max(forest.feature) > len(names):  # the last is that of the words
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
    made = {pair: place for place, pair in enumerate(dict.fromkeys(pairs))}  # most by several trees
    return Trees(
        feature=np.array([feature for feature, _ in made], dtype=np.intp),
        threshold=np.array([threshold for _, threshold in made]),
        tests=np.array([made[pair] for pair in pairs]),
        first_leaves=np.arange(0, len(every), LEAVES),
        ones=np.ones(len(every) // LEAVES, np.float32),
        sums=every,
    )


def _filled(of_trees: npt.NDArray[Any], filling: float) -> list[float]:
    """What stands at the levels of each tree, with this at two levels more."""
    filled = np.pad(of_trees.reshape(-1, LEVELS), ((0, 0), (0, 8 - LEVELS)), constant_values=filling)
    return list(filled.ravel().tolist())


def _moved(leaves: Floats, weights: Floats, aspects: Places) -> Floats:
    """(trees, leaves, aspects): how far each aspect moved the sum on the way to each leaf.

    What the sum would be if a tree ended above a level is the mean of the leaves below, as much came to each."""
    count = len(leaves)
    moved = np.zeros((count, LEAVES, len(Aspect)))
    weights = weights.astype(float) + 1e-6  # a level that nothing came to has a mean, too
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
