"""evals/train.py: what is trained is what the bot walks."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import orjson
import pytest

from decider import ResponseDecider, TrainedFollowup
from evals import train
from evals.examples import BOT, Example, ExampleError, conversation_of, message_of, read_examples
from followup.features import feature_names, features
from followup.model import MAX_DEPTH, Eagerness, ModelFile, load_model
from tests.evals.examples import Line, example, past, write

LOGS, EXAMPLES, ROUNDS = 6, 600, 12


def generated(number: int, chance: random.Random) -> Line:
    """Whom the bot answered goes on, the more surely the shorter; who talks with others does not; some mention it."""
    is_due = chance.random() < 0.5
    words = chance.choices(
        ["kernel", "it", "works", "you", "lunch", "ok", "is", "newest", "why", "?"], k=chance.randrange(3, 20)
    )
    text = " ".join(words)
    is_explicit = chance.random() < 0.1
    label = is_explicit or chance.random() < ((0.97 if len(words) < 12 else 0.8) if is_due else 0.04)
    answer = past(3, "BOT", "The newest kernel.", to=["U3" if is_due else "U9"])
    lunch = [past(2, "U2", "<@U4> lunch?"), past(1, "U4", "<@U2> at noon")]
    return example(
        number,
        f"<@BOT> {text}" if is_explicit else text,
        log=f"log-{number % LOGS}",
        label=int(label),
        explicit=is_explicit,
        context=[answer, *lunch],
        bot_to_author={"ago": 3, "dt": 15} if is_due else None,
        msgs_since_bot=2,
        s_since_bot=15,
        bot_msgs_since_author=chance.randrange(4),
        authors_5m=chance.randrange(2, 12),
    )


@dataclass
class Training:
    """What came of one training. boosters: what LightGBM made in it, the last of them of all the examples."""

    file: ModelFile
    path: Path
    examples: list[Example]
    boosters: list[lightgbm.Booster] = field(default_factory=list)


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Training:
    chance = random.Random(5)
    folder = tmp_path_factory.mktemp("training")
    data = write(folder / "train.jsonl", *(generated(number, chance) for number in range(EXAMPLES)))
    boosters: list[lightgbm.Booster] = []
    original = train.train

    def noted(*arguments: Any) -> lightgbm.Booster:
        boosters.append(original(*arguments))
        return boosters[-1]

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(train, "ROUNDS", ROUNDS)
        monkeypatch.setattr(train, "train", noted)
        file = train.trained(data)
    path = folder / "model.json"
    path.write_bytes(orjson.dumps(file.model_dump(mode="json")))
    return Training(file, path, list(read_examples(data)), boosters)


def test_what_is_trained_can_be_loaded(training: Training) -> None:
    model = load_model(training.path)
    assert training.file.features == feature_names()
    assert len(training.file.roots) == ROUNDS
    assert 1 <= model.trees.depth <= train.PARAMETERS["max_depth"] < MAX_DEPTH  # type: ignore[operator]
    assert model.about["data"].startswith(f"train.jsonl: {EXAMPLES} messages of {LOGS} logs")


def test_the_estimates_are_lightgbms_own_calibrated(training: Training) -> None:
    model, booster = load_model(training.path), training.boosters[-1]
    rows = [train.row(line) for line in training.examples]
    margins = booster.predict(np.array([r.values for r in rows]), raw_score=True)
    seen = set()
    for line, margin in zip(training.examples, np.asarray(margins).tolist(), strict=True):
        found = model.estimate(features(message_of(line), conversation_of(line), BOT)).probability
        expected = 1 / (1 + math.exp(-(model.slope * margin + model.intercept)))
        assert found == pytest.approx(expected, abs=1e-4)
        seen.add(round(found, 3))
    assert len(seen) > 5


def test_what_there_was_to_learn_is_learnt(training: Training) -> None:
    model = load_model(training.path)
    due = [
        model.estimate(features(message_of(line), conversation_of(line), BOT)).probability
        for line in training.examples
        if line.state.bot_to_author and not line.explicit
    ]
    assert sum(due) / len(due) > 0.8
    assert training.file.about["average precision, logs left out"] > 0.8


def test_calibration_comes_from_models_that_saw_nothing_of_a_log(training: Training) -> None:
    assert len(training.boosters) == train.FOLDS + 1


def test_the_operating_points_stand_in_their_order(training: Training) -> None:
    quiet, balanced, eager = (training.file.thresholds[eagerness] for eagerness in Eagerness)
    assert 0 < eager <= balanced <= 1
    assert 0 < eager <= quiet <= 1
    decider = ResponseDecider(followup=TrainedFollowup(load_model(training.path), Eagerness.EAGER))
    line = next(line for line in training.examples if line.state.bot_to_author)
    assert decider.guess(message_of(line), conversation_of(line), BOT).tier == 2


def test_the_same_examples_give_the_same_model(training: Training, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "ROUNDS", ROUNDS)
    again = train.trained(training.path.with_name("train.jsonl"))
    assert again.model_dump(exclude={"about", "digest"}) == training.file.model_dump(exclude={"about", "digest"})


def test_a_broken_example_ends_the_training(tmp_path: Path) -> None:
    path = write(tmp_path / "train.jsonl", example(1), example(2) | {"t": "x"})
    with pytest.raises(ExampleError, match="line 2, field t"):
        train.trained(path)


def test_a_row_tells_what_rules_decide() -> None:
    texts = {
        "<@BOT> hi": (True, None),
        "thanks": (False, False),
        "and the price?": (False, True),
        "for work": (False, None),
    }
    rows = {text: train.row(Example.model_validate(example(text=text))) for text in texts}
    assert {text: (row.is_explicit, row.forced) for text, row in rows.items() if not row.is_explicit} == {
        text: found for text, found in texts.items() if not found[0]
    }
    assert rows["<@BOT> hi"].is_explicit
