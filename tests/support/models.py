"""Small models of the follow-up tier, made by hand: a leaf, or a few questions about features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from followup.features import feature_names
from followup.model import (
    FORMAT,
    LEAVES,
    LEVELS,
    Calibration,
    Eagerness,
    Estimator,
    FollowupModel,
    Forest,
    ModelFile,
    Question,
    build,
    packed,
)
from followup.text_features import SIZE

Raw = dict[str, Any]
THRESHOLDS = {Eagerness.QUIET: 0.8, Eagerness.BALANCED: 0.5, Eagerness.EAGER: 0.2}
NO_WORDS = packed(np.zeros(SIZE, np.int8))
NOTHING_ABOVE = 1e30


def a_tree(levels: Sequence[tuple[int | str, float]], leaves: Sequence[float]) -> Forest:
    """A tree of these features and thresholds, level by level. As much came to each leaf, if it is one of these."""
    missing = LEVELS - len(levels)
    places = [feature_names().index(feature) if isinstance(feature, str) else feature for feature, _ in levels]
    filled = np.zeros((2, LEAVES))
    filled[:, : len(leaves)] = leaves, np.ones(len(leaves))
    return Forest(
        feature=[*places, *[0] * missing],
        threshold=[*(threshold for _, threshold in levels), *[NOTHING_ABOVE] * missing],
        leaves=packed(filled[0].astype("<f4")),
        weights=packed(filled[1].astype("<f2")),
    )


def a_leaf(value: float = 0.0) -> Forest:
    return a_tree([], [value])


def a_stump(feature: int | str, threshold: float, below: float, above: float) -> Forest:
    """One question and its two leaves."""
    return a_tree([(feature, threshold)], [below, above])


def an_estimator(trees: Forest | None = None, **more: Any) -> Estimator:
    """What its trees say, and no word of the message counts."""
    fields: Raw = {"words": NO_WORDS, "scale": 1.0, "bias": 0.0, "trees": trees or a_leaf()}
    return Estimator(**{**fields, **more})


def a_file(by_said: Estimator | None = None, by_wants: Estimator | None = None, **more: Any) -> ModelFile:
    """A file, its digest right. The sum of the trees of each question is what it goes by."""
    fields: Raw = {
        "format": FORMAT,
        "about": {"data": "none"},
        "features": feature_names(),
        "thresholds": THRESHOLDS,
        "certain": 0.9,
        "said": Calibration(said=1, wants=0, bias=0),
        "answer": Calibration(said=1, wants=1, bias=0),
        "estimators": {Question.SAID: by_said or an_estimator(), Question.WANTS: by_wants or an_estimator()},
        "digest": "",
    }
    file = ModelFile(**{**fields, **more})
    return file.model_copy(update={"digest": file.digest_of_rest()})


def a_model(
    said: Forest | None = None, wants: Forest | None = None, thresholds: Mapping[Eagerness, float] = THRESHOLDS
) -> FollowupModel:
    return build(a_file(an_estimator(said), an_estimator(wants), thresholds=thresholds))
