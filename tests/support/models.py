"""Small models of the follow-up tier, made by hand: a leaf, or one question about one feature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from followup.features import feature_names
from followup.model import (
    FORMAT,
    Calibration,
    Eagerness,
    Estimator,
    FollowupModel,
    ModelFile,
    Nodes,
    Question,
    build,
    packed,
)
from followup.text_features import SIZE

Raw = dict[str, Any]
THRESHOLDS = {Eagerness.QUIET: 0.8, Eagerness.BALANCED: 0.5, Eagerness.EAGER: 0.2}
NO_WORDS, _ = packed(np.zeros(SIZE))


def a_leaf(value: float = 0.0) -> Nodes:
    return Nodes(feature=[0], threshold=[0.0], below=[0], above=[0], value=[value])


def a_stump(feature: int | str, threshold: float, below: float, above: float) -> Nodes:
    """A node and its two leaves."""
    place = feature_names().index(feature) if isinstance(feature, str) else feature
    return Nodes(
        feature=[place, 0, 0], threshold=[threshold, 0, 0], below=[1, 1, 2], above=[2, 1, 2], value=[0, below, above]
    )


def an_estimator(nodes: Nodes | None = None, **more: Any) -> Estimator:
    """What its trees say, and no word of the message counts."""
    fields: Raw = {"words": NO_WORDS, "scale": 1.0, "bias": 0.0, "roots": [0], "nodes": nodes or a_leaf()}
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
    said: Nodes | None = None, wants: Nodes | None = None, thresholds: Mapping[Eagerness, float] = THRESHOLDS
) -> FollowupModel:
    return build(a_file(an_estimator(said), an_estimator(wants), thresholds=thresholds))
