"""evals/train.py: what is trained is what the bot walks, and each file is estimated by a model that has not seen it."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from catboost import CatBoost

from decider import ResponseDecider, TrainedFollowup
from evals import train
from evals.examples import BOT
from evals.free_run import STEPS
from evals.rooms import Room, decide, play, read_rooms
from evals.rows import Row, of_rooms
from evals.train import Data
from followup.model import Eagerness, Estimator, FollowupModel, Forest, Question, load_model
from tests.evals.examples import Line, example, past, write
from tests.evals.rooms import a_room, generated, says

pytestmark = pytest.mark.slow

LOGS, EXAMPLES, ROOMS = 6, 120, 8
QUICK = {question: {"iterations": 10, "learning_rate": 0.3} for question in Question}
FILES = ("x", "y", "z")


def of_a_log(number: int, chance: random.Random) -> Line:
    """Whom the bot answered goes on; who talks with others does not; some mention it."""
    is_due, is_explicit = chance.random() < 0.5, chance.random() < 0.1
    text = " ".join(
        chance.choices(["kernel", "it", "works", "you", "lunch", "is", "newest"], k=chance.randrange(3, 20))
    )
    answer = past(3, "BOT", "The newest kernel.", to=["U3" if is_due else "U9"])
    return example(
        number,
        f"<@BOT> {text}" if is_explicit else text,
        log=f"log-{number % LOGS}",
        label=int(is_explicit or is_due),
        explicit=is_explicit,
        context=[answer, past(2, "U2", "<@U4> lunch?"), past(1, "U4", "<@U2> at noon")],
        bot_to_author={"ago": 3, "dt": 15} if is_due else None,
        msgs_since_bot=2,
        s_since_bot=15,
    )


@dataclass
class Training:
    """What came of one training. seen, grown, made: for each estimator, in order."""

    irc: Path
    files: list[Path]
    out: Path
    left_out: Path
    seen: list[tuple[Data, Question]] = field(default_factory=list)
    grown: list[CatBoost] = field(default_factory=list)
    made: list[Estimator] = field(default_factory=list)

    @property
    def model(self) -> FollowupModel:
        return load_model(self.out)


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Training:
    chance = random.Random(5)
    folder = tmp_path_factory.mktemp("training")
    irc = write(folder / "train.jsonl", *(of_a_log(number, chance) for number in range(EXAMPLES)))
    files = [write(folder / f"{name}.jsonl", *generated(name, ROOMS)) for name in FILES]
    (folder / "data").mkdir()
    write(folder / "data" / "own.jsonl", *generated("own", 2))
    found = Training(irc, files, folder / "model.json", folder / "left out")
    export, estimate = train.forest_of, train.trained

    def noted_model(model: CatBoost) -> Forest:
        found.grown.append(model)
        return export(model)

    def noted(data: Data, question: Question) -> Estimator:
        found.seen.append((data, question))
        found.made.append(estimate(data, question))
        return found.made[-1]

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(train, "PARAMETERS", QUICK)
        monkeypatch.setitem(train.COMMON, "thread_count", 1)
        monkeypatch.setattr(train, "trained", noted)
        monkeypatch.setattr(train, "forest_of", noted_model)
        monkeypatch.setattr("evals.free_run.STEPS", STEPS[::8])
        monkeypatch.setattr(train, "__file__", str(folder / "train.py"))  # its own data lies beside it
        arguments = [str(irc), *map(str, files), "--out", str(found.out), "--left-out", str(found.left_out)]
        monkeypatch.setattr(sys, "argv", ["train", *arguments])
        assert train.main() == 0
    return found


def rows_of(files: list[Path]) -> list[Row]:
    return [row for path in files for row in of_rooms(read_rooms(path))]


def of_final(training: Training, question: Question) -> int:
    """Where the estimator of everything is among those that were made."""
    whole = max(len(data.said) for data, _ in training.seen)
    return next(i for i, (data, q) in enumerate(training.seen) if len(data.said) == whole and q is question)


def test_what_is_written_can_be_loaded_and_says_what_it_was_trained_on(training: Training) -> None:
    about = training.model.about
    assert "train.jsonl" in about["data"][0]
    assert f"x, y, z: {len(FILES) * ROOMS} rooms" in about["data"][1]
    assert about["points"].keys() == {*Eagerness, "certain"}
    assert about["rows"] > len(FILES) * ROOMS
    assert {path.name for path in training.left_out.iterdir()} == {"x.json", "y.json", "z.json", "irc.json"}
    for name in (*FILES, "irc"):
        assert load_model(training.left_out / f"{name}.json").about["left out"] == name


def test_a_model_that_is_left_out_has_seen_nothing_of_its_file(training: Training) -> None:
    seen = [{str(group).partition("-")[0] for group in data.groups} for data, _ in training.seen]
    left_out = [{*FILES, "own", "log"} - {name} for name in FILES for _ in Question]
    assert seen == [*left_out, *[{*FILES, "own", "log"} for _ in Question], {"log"}]


def test_the_trees_come_to_catboosts_own_sums(training: Training) -> None:
    """It takes values as float32: what lies right at a threshold may go the other way."""
    model, data = training.model, Data.of(rows_of(training.files))
    words = data.words @ model.words + np.array(model.biases)
    found = train.margins(model, data)
    for place, question in enumerate(Question):
        grown = training.grown[of_final(training, question)]
        values = np.column_stack([data.values, words[:, place]])
        expected = np.asarray(grown.predict(values, prediction_type="RawFormulaVal"))
        assert np.isclose(found[:, place], expected, atol=1e-4).mean() > 0.99
        assert len({*found[:, place].round(3)}) > 5


def test_the_bot_walks_what_was_trained(training: Training) -> None:
    """The same rows, from the running bot's side: the features, the words, and the calibration of both sums."""
    model, rooms = training.model, read_rooms(training.files[0])
    rows = [row for row in of_rooms(rooms[:1]) if row.is_judged]
    sums = train.margins(model, Data.of(rows))
    estimates = [
        model.estimate(moment.message, moment.conversation, BOT)
        for moment in play(rooms[0])
        if moment.is_open and moment.conversation
    ]
    assert len(estimates) > 3
    for estimate, (said, wants) in zip(estimates, sums, strict=True):
        assert estimate.said == pytest.approx(model.said.probability(said, wants), abs=1e-5)
        assert estimate.probability == pytest.approx(model.answer.probability(said, wants), abs=1e-5)


def test_words_are_learnt_from_rooms_and_not_from_irc(training: Training) -> None:
    assert training.model.words.any(axis=0).all()
    assert not load_model(training.left_out / "irc.json").words.any()


def test_words_are_scored_by_a_model_that_has_not_seen_the_room() -> None:
    """A word that only one room has says nothing of that room."""
    rooms = [generated(f"r{number}", 1)[0] for number in range(10)]
    marked = generated("marked", 1)[0]
    for line in marked["messages"]:
        if line["to"] == ["BOT"]:
            line["text"] += " xyzzyx"
    rooms.append(marked)
    rows = list(of_rooms([Room.model_validate(room) for room in rooms]))
    data = Data.of(rows)
    scores, weights, bias = train._scores_of_words(data, Question.SAID, np.ones(len(rows), dtype=bool))
    own = data.words @ weights + bias
    is_marked = (data.groups == "marked-0") & (data.said == 1)
    assert own[is_marked].mean() > scores[is_marked].mean() + 0.3


def test_what_there_was_to_learn_is_learnt(training: Training) -> None:
    """By a model that has not seen the file."""
    model = load_model(training.left_out / "x.json")
    decider = ResponseDecider(followup=TrainedFollowup(model))
    scores: dict[str, list[float]] = {"yes": [], "no": []}
    for moment, decision in decide(read_rooms(training.files[0]), decider):
        if moment.is_open and moment.line.answer in scores:
            scores[str(moment.line.answer)].append(decision.score)
    assert np.mean(scores["yes"]) > 0.7 > 0.3 > np.mean(scores["no"])


def test_calibration_makes_shares_of_sums() -> None:
    """Sums twice as sure as they should be, of which the second question's say nothing."""
    chance = np.random.default_rng(1)
    true = chance.normal(size=40_000)
    wanted = (chance.random(40_000) < 1 / (1 + np.exp(-true))).astype(float)
    rows = [Row([0.0], [], said=bool(w), wants=bool(w), group="x", is_judged=i % 4 > 0) for i, w in enumerate(wanted)]
    sums = np.column_stack([2 * true, chance.normal(size=40_000)])
    sums[::4] = 50  # these are not judged
    found = train.calibrated([sums], [Data.of(rows)])
    assert found.said.said == pytest.approx(0.5, abs=0.05)
    assert (found.answer.said, found.answer.wants, found.answer.bias) == pytest.approx((0.5, 0, 0), abs=0.1)
    assert found.said.wants == 0


def test_what_is_open_to_taste_teaches_nothing_of_what_is_wanted() -> None:
    rows = [Row([0.0], [], said=True, wants=wants, group="x") for wants in (True, False, None)]
    target, known = Data.of(rows).target(Question.WANTS)
    assert (target[known].tolist(), known.tolist()) == ([1, 0], [True, True, False])
    assert Data.of(rows).target(Question.SAID)[1].all()


def test_the_operating_points_stand_in_their_order(training: Training) -> None:
    for path in (training.out, *training.left_out.iterdir()):
        model = load_model(path)
        assert 0 < model.thresholds[Eagerness.EAGER] <= model.thresholds[Eagerness.BALANCED]
        assert model.thresholds[Eagerness.BALANCED] <= model.thresholds[Eagerness.QUIET] <= model.certain <= 1


def test_the_same_rows_give_the_same_estimator(training: Training, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "PARAMETERS", QUICK)
    monkeypatch.setitem(train.COMMON, "thread_count", 1)
    place = of_final(training, Question.WANTS)
    assert train.trained(*training.seen[place]) == training.made[place]


@pytest.mark.parametrize("broken", ["irc", "rooms"])
def test_a_broken_line_ends_the_training(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    irc = write(tmp_path / "irc.jsonl", example(1), example(2) | ({"t": "x"} if broken == "irc" else {}))
    files = [write(tmp_path / f"{name}.jsonl", a_room(says(0, "Anna", "hi"))) for name in "xy"]
    if broken == "rooms":
        write(files[1], a_room(says(0, "Anna", "hi")), a_room(says(-1, "Anna", "hi")))
    monkeypatch.setattr(train, "__file__", str(tmp_path / "train.py"))
    monkeypatch.setattr(sys, "argv", ["train", str(irc), *map(str, files), "--out", str(tmp_path / "model.json")])
    assert train.main() == 2
    where = "irc.jsonl, line 2, field t" if broken == "irc" else "y.jsonl, line 2, field messages.0.t"
    assert where in capsys.readouterr().err
    assert not (tmp_path / "model.json").exists()


def test_one_file_cannot_be_left_out_of_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["train", str(tmp_path / "irc.jsonl"), str(tmp_path / "a.jsonl")])
    with pytest.raises(SystemExit) as caught:
        train.main()
    assert caught.value.code == 2
    assert "at least two files of rooms" in capsys.readouterr().err
