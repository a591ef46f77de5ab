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
FORMAT = 2
MAX_LEAVES = 64  # of a tree: a bit each
ALL_LEAVES = np.uint64(2**64 - 1)
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


class Nodes(BaseModel):
    """The nodes of all trees, field by field; a node's place is the same in each. What follows a node stands behind it.

    A message goes to `below` where its `feature` is at most `threshold`, else to `above`; a leaf leads to itself.
    value: what the sum would be if the tree ended there.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    feature: list[int]
    threshold: list[FiniteFloat]
    below: list[int]
    above: list[int]
    value: list[FiniteFloat]


class Estimator(BaseModel):
    """What answers one question. words: the weights of hashed words, 1 byte each, as base64 of zlib; scale: of one
    step of theirs; bias: what they start from. roots: the places of the trees' first nodes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    words: str
    scale: FiniteFloat
    bias: FiniteFloat
    roots: list[int] = Field(min_length=1)
    nodes: Nodes


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

    format: Literal[2]
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
    """probability: that the bot is to answer; said: that it was said to the bot at all; both calibrated. evidence: what
    moved it most, in words."""

    probability: float
    said: float
    evidence: str


@dataclass(frozen=True, slots=True)
class Trees:
    """All trees of both questions side by side, found out without walking them (Lucchese et al., QuickScorer, 2015).

    A node whose feature lies above its threshold rules out the leaves below it: its mask has their bits unset, and the
    lowest bit that all such masks of a tree leave is the leaf. feature, threshold, masks: of all inner nodes, tree by
    tree; starts: each tree's first of them; first_leaves: each tree's first leaf. sums: (leaves, 2 + aspects): what a
    leaf adds to each question, and how far each aspect moved both.
    """

    feature: Places
    threshold: Floats
    masks: npt.NDArray[np.uint64]
    starts: Places
    first_leaves: Places
    sums: Floats

    def sum(self, values: Floats) -> list[float]:
        """What the leaves that these values of the features lead to add up to."""
        above = values.take(self.feature) > self.threshold
        left = np.bitwise_and.reduceat(np.where(above, self.masks, ALL_LEAVES), self.starts)
        lowest = (left & (~left + np.uint64(1))).astype(np.float64)
        leaves = np.frexp(lowest)[1] - 1 + self.first_leaves
        total: list[float] = self.sums.take(leaves, axis=0).sum(axis=0).tolist()
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
        return Estimate(
            probability=self.answer.probability(said, wants),
            said=self.said.probability(said, wants),
            evidence=in_words(dict(zip(Aspect, moved, strict=True)), found),
        )

    def scores_of_words(self, message: MessageRecord, found: Features) -> list[float]:
        """What the message's own words say of each question."""
        total = np.array(self.biases)
        for places, weight in groups(message.wording, message.content, before_it(found)):
            total += weight * self.words.take(places, axis=0).sum(axis=0)
        scores: list[float] = total.tolist()
        return scores


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
    if problem := next(filter(None, (_problem(e.nodes, e.roots, len(file.features)) for e in estimators)), None):
        raise ModelFileError(f"{name} is damaged: {problem}.")
    words = np.stack([_weights(estimator, name) for estimator in estimators], axis=1)
    trees = _trees(estimators, (file.answer.said, file.answer.wants), file.features)
    with np.errstate(over="ignore", invalid="ignore"):
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


def packed(weights: npt.NDArray[np.float64]) -> tuple[str, float]:
    """Weights of hashed words as the file has them, and the scale of their steps."""
    scale = float(np.abs(weights).max()) / 127 or 1.0
    steps = np.round(weights / scale).astype(np.int8)
    return base64.b64encode(zlib.compress(steps.tobytes(), 9)).decode(), scale


def _weights(estimator: Estimator, name: str) -> npt.NDArray[np.float32]:
    unpacker = zlib.decompressobj()
    try:
        packed_steps = unpacker.decompress(base64.b64decode(estimator.words), SIZE + 1)  # there may be gigabytes more
    except (ValueError, zlib.error):
        raise ModelFileError(f"{name} is damaged: the weights of its words cannot be read.") from None
    steps = np.frombuffer(packed_steps, dtype=np.int8)
    if len(steps) <= SIZE and not unpacker.eof:
        raise ModelFileError(f"{name} is damaged: the weights of its words cannot be read.")
    if len(steps) != SIZE:
        more = " or more" if len(steps) > SIZE else ""
        raise ModelFileError(
            f"{name} is damaged: it has weights for {len(steps)}{more} hashed words, and not for {SIZE}."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        return steps.astype(np.float32) * np.float32(estimator.scale)


def _problem(nodes: Nodes, roots: Sequence[int], features_count: int) -> str | None:
    """Why trees cannot be used, if so."""
    count = len(nodes.feature)
    if any(len(column) != count for column in (nodes.threshold, nodes.below, nodes.above, nodes.value)):
        return "its nodes' fields differ in length"
    if not all(0 <= feature <= features_count for feature in nodes.feature):  # the last is that of the words
        return "a node asks for a feature there is not"
    if not all(0 <= root < count for root in roots):
        return "a tree begins where no node is"
    for place, children in enumerate(zip(nodes.below, nodes.above, strict=True)):
        is_leaf = children == (place, place)
        if not is_leaf and not all(place < child < count for child in children):
            return f"node {place} leads nowhere"
    if any(len(_leaves(nodes, root, MAX_LEAVES + 1)) > MAX_LEAVES for root in roots):
        return f"a tree has more than {MAX_LEAVES} leaves"
    return None


def _leaves(nodes: Nodes, root: int, most: int) -> list[int]:
    """A tree's leaves from below to above, so many at most."""
    found: list[int] = []
    waiting = [root]
    while waiting and len(found) < most:
        place = waiting.pop()
        if nodes.below[place] == place:
            found.append(place)
        else:
            waiting += (nodes.above[place], nodes.below[place])
    return found


def _trees(estimators: Sequence[Estimator], shares: Sequence[float], names: Sequence[str]) -> Trees:
    """shares: how much each question counts in the decision, and so in what moved it."""
    feature: list[int] = []
    threshold: list[float] = []
    masks: list[int] = []
    starts: list[int] = []
    first_leaves: list[int] = []
    sums: list[list[float]] = []
    for number, (estimator, share) in enumerate(zip(estimators, shares, strict=True)):
        nodes, words = estimator.nodes, len(names) + number
        moved = _moved(nodes, names)
        for root in estimator.roots:
            starts.append(len(feature))
            first_leaves.append(len(sums))
            leaves = _leaves(nodes, root, MAX_LEAVES)
            place_of = {leaf: place for place, leaf in enumerate(leaves)}
            inner = _inner(nodes, root) or [root]
            for place in inner:
                is_leaf = nodes.below[place] == place  # a tree of one leaf has a node that rules nothing out
                ruled_out = sum(1 << place_of[leaf] for leaf in _leaves(nodes, nodes.below[place], MAX_LEAVES))
                feature.append(words if nodes.feature[place] == len(names) else nodes.feature[place])
                threshold.append(math.inf if is_leaf else nodes.threshold[place])
                masks.append(int(ALL_LEAVES) & ~ruled_out)
            for leaf in leaves:
                own = [0.0] * len(estimators)
                own[number] = nodes.value[leaf]
                sums.append([*own, *(share * aspect for aspect in moved[leaf])])
    return Trees(
        feature=np.array(feature, dtype=np.intp),
        threshold=np.array(threshold),
        masks=np.array(masks, dtype=np.uint64),
        starts=np.array(starts, dtype=np.intp),
        first_leaves=np.array(first_leaves, dtype=np.intp),
        sums=np.array(sums),
    )


def _inner(nodes: Nodes, root: int) -> list[int]:
    found: list[int] = []
    waiting = [root]
    while waiting:
        place = waiting.pop()
        if nodes.below[place] != place:
            found.append(place)
            waiting += (nodes.above[place], nodes.below[place])
    return found


def _moved(nodes: Nodes, names: Sequence[str]) -> list[list[float]]:
    """How far each aspect moved the sum on the way to each node."""
    moved = [[0.0] * len(Aspect) for _ in nodes.feature]
    for place, feature in enumerate(nodes.feature):
        aspect = ASPECT_OF[names[feature] if feature < len(names) else WORDS]
        for child in {nodes.below[place], nodes.above[place]} - {place}:
            moved[child] = moved[place].copy()
            moved[child][aspect] += nodes.value[child] - nodes.value[place]
    return moved
