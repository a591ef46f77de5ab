"""The trained model of one question, "was this said to me?": its file, and how it is walked.

The file is JSON: a head that says what it was trained on and how it scored, the features it expects in their order, the
calibration, the thresholds of the operating points, and the nodes of all trees. evals/train.py writes it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import orjson
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from followup.evidence import ASPECT_OF, Aspect, in_words
from followup.features import Features, feature_names

MODEL_FILE = Path(__file__).with_name("model.json")
FORMAT = 1
MAX_DEPTH = 64

Share = Annotated[float, Field(ge=0, le=1)]
Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]


class Eagerness(StrEnum):
    """The operating points: how sure the bot must be that a message was said to it."""

    QUIET = "quiet"
    BALANCED = "balanced"
    EAGER = "eager"


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


class ModelFile(BaseModel):
    """The file. roots: the places of the trees' first nodes. digest: of all the rest."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1]
    about: dict[str, Any]
    features: list[str]
    slope: FiniteFloat
    intercept: FiniteFloat
    thresholds: dict[Eagerness, Share]
    roots: list[int] = Field(min_length=1)
    nodes: Nodes
    digest: str

    def digest_of_rest(self) -> str:
        rest = self.model_dump(mode="json", exclude={"digest"})
        return hashlib.sha256(orjson.dumps(rest, option=orjson.OPT_SORT_KEYS)).hexdigest()


@dataclass(frozen=True, slots=True)
class Estimate:
    """probability: that the message was said to the bot, calibrated; evidence: what moved it most, in words."""

    probability: float
    evidence: str


@dataclass(frozen=True, slots=True)
class Trees:
    """All trees side by side. sums: (nodes, 1 + aspects): a node's value, and how far each aspect moved it so far.

    A node's place in roots and children is twice its number, feature and threshold stand there twice: behind a node at
    2n, children has first the one below and then the one above.
    """

    roots: Places
    depth: int
    feature: Places
    threshold: Floats
    children: Places
    sums: Floats

    def sum(self, values: Floats) -> list[float]:
        """The sums of the leaves that these values of the features lead to, one of each tree."""
        at = self.roots
        for _ in range(self.depth):
            at = self.children.take(at + (values.take(self.feature.take(at)) > self.threshold.take(at)))
        total: list[float] = self.sums.take(at // 2, axis=0).sum(axis=0).tolist()
        return total


@dataclass(frozen=True, slots=True)
class FollowupModel:
    """Boosted trees over the features; their sum, calibrated, is a probability."""

    about: Mapping[str, Any]
    thresholds: Mapping[Eagerness, float]
    trees: Trees
    slope: float
    intercept: float

    def estimate(self, features: Features) -> Estimate:
        margin, *moved = self.trees.sum(np.array(list(features.values()), dtype=np.float64))
        # The logistic function, written so that no margin is too large for it.
        probability = (1 + math.tanh((self.slope * margin + self.intercept) / 2)) / 2
        return Estimate(probability, in_words(dict(zip(Aspect, moved, strict=True)), features))


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
        where = ".".join(map(str, error.errors()[0]["loc"])) or "the whole"
        raise ModelFileError(f"{path.name} is damaged: {where}: {error.errors()[0]['msg']}.") from None
    return _built(file, path.name)


def _built(file: ModelFile, name: str) -> FollowupModel:
    if file.digest != file.digest_of_rest():
        raise ModelFileError(f"{name} is damaged: its digest is not that of its content.")
    if file.thresholds.keys() != set(Eagerness):
        raise ModelFileError(f"{name} lacks the threshold of an operating point.")
    if file.features != feature_names():
        raise ModelFileError(f"{name} was trained with other features than this version's.")
    if problem := _problem(file):
        raise ModelFileError(f"{name} is damaged: {problem}.")
    trees = _trees(file)
    if trees.depth > MAX_DEPTH:
        raise ModelFileError(f"{name} is damaged: a tree is {trees.depth} nodes deep, where {MAX_DEPTH} is the most.")
    return FollowupModel(file.about, file.thresholds, trees, file.slope, file.intercept)


def _problem(file: ModelFile) -> str | None:
    """Why the trees cannot be walked, if so."""
    nodes, count = file.nodes, len(file.nodes.feature)
    if any(len(column) != count for column in (nodes.threshold, nodes.below, nodes.above, nodes.value)):
        return "its nodes' fields differ in length"
    if not all(0 <= feature < len(file.features) for feature in nodes.feature):
        return "a node asks for a feature there is not"
    if not all(0 <= root < count for root in file.roots):
        return "a tree begins where no node is"
    for place, children in enumerate(zip(nodes.below, nodes.above, strict=True)):
        is_leaf = children == (place, place)
        if not is_leaf and not all(place < child < count for child in children):
            return f"node {place} leads nowhere"
    return None


def _trees(file: ModelFile) -> Trees:
    nodes = file.nodes
    depths = [0] * len(nodes.feature)
    sums = [[value] + [0.0] * len(Aspect) for value in nodes.value]
    for place, feature in enumerate(nodes.feature):
        aspect = ASPECT_OF[file.features[feature]]
        for child in {nodes.below[place], nodes.above[place]} - {place}:
            depths[child] = depths[place] + 1
            sums[child][1:] = sums[place][1:]
            sums[child][1 + aspect] += nodes.value[child] - nodes.value[place]
    return Trees(
        roots=2 * np.array(file.roots, dtype=np.intp),
        depth=max(depths),
        feature=np.array(nodes.feature, dtype=np.intp).repeat(2),
        threshold=np.array(nodes.threshold).repeat(2),
        children=2 * np.array([nodes.below, nodes.above], dtype=np.intp).T.ravel(),
        sums=np.array(sums),
    )
