"""followup/model.py: the model file, read and summed up; followup/evidence.py: its estimates in words."""

from __future__ import annotations

import base64
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from followup.evidence import ASPECT_OF, SHOWN, WORDS, Aspect, in_words
from followup.features import feature_names
from followup.model import (
    LEAVES,
    LEVELS,
    MODEL_FILE,
    Calibration,
    Eagerness,
    Estimate,
    FollowupModel,
    Forest,
    ModelFile,
    ModelFileError,
    Question,
    build,
    load_model,
    packed,
    steps_of,
)
from followup.text_features import SIZE, groups
from state.message import MessageRecord
from tests.support.followups import after, look_at, shipped_model, talk
from tests.support.models import NO_WORDS, a_file, a_leaf, a_model, a_stump, a_tree, an_estimator
from tests.support.people import ANNA, BEN, BOT, CLEO, replied, said

Raw = dict[str, Any]
QUIET_CHANNEL = [said(ANNA, f"<@{BOT}> which laptop is best?"), replied(ANNA, "What do you need it for?", after(5))]


def side_by_side(*forests: Forest) -> Forest:
    """The trees of all."""
    raw_leaves, raw_weights = (
        b"".join(zlib.decompress(base64.b64decode(getattr(forest, name))) for forest in forests)
        for name in ("leaves", "weights")
    )
    return Forest(
        feature=[place for forest in forests for place in forest.feature],
        threshold=[threshold for forest in forests for threshold in forest.threshold],
        leaves=packed(np.frombuffer(raw_leaves, "<f4")),
        weights=packed(np.frombuffer(raw_weights, "<f2")),
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.json"


def raw(**more: Any) -> Raw:
    """A small file as it is written."""
    return a_file(**more).model_dump(mode="json")


def written(path: Path, content: Raw) -> Path:
    path.write_bytes(orjson.dumps(content))
    return path


def with_trees(trees: Forest, question: Question = Question.SAID) -> Raw:
    return raw(**{f"by_{question}": an_estimator(trees)})


def fault(path: Path) -> str:
    """What is said of a file that cannot be used: one sentence, and short."""
    with pytest.raises(ModelFileError) as caught:
        load_model(path)
    sentence = str(caught.value)
    assert sentence.startswith(path.name)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert len(sentence) < 200
    return sentence


def estimated(message: MessageRecord, model: FollowupModel | None = None, *earlier: MessageRecord) -> Estimate:
    return (model or shipped_model()).estimate(message, talk(*(earlier or QUIET_CHANNEL)), BOT)


# The file that is shipped


def test_the_shipped_model_is_of_these_features() -> None:
    assert ModelFile.model_validate_json(MODEL_FILE.read_bytes()).features == feature_names()


def test_the_shipped_model_asks_the_agent_only_below_where_it_is_certain() -> None:
    thresholds = shipped_model().thresholds
    assert thresholds[Eagerness.EAGER] < thresholds[Eagerness.BALANCED] < thresholds[Eagerness.QUIET]
    assert thresholds[Eagerness.BALANCED] < shipped_model().certain


def test_the_shipped_model_says_what_it_was_trained_on() -> None:
    assert {"question", "data", "rows", "trained"} <= shipped_model().about.keys()


@pytest.mark.parametrize(
    "text",
    [
        "mostly for writing letters",
        "I need it for work and for travel",
        "it should be light, I travel a lot",
        "and is a big screen worth it?",
    ],
)
def test_what_follows_the_bots_question_in_a_quiet_channel_is_surely_for_the_bot(text: str) -> None:
    assert 0.6 < estimated(said(ANNA, text, after(15))).probability < 1


@pytest.mark.parametrize("text", ["Ben, see you at lunch", "ben: see you at lunch", f"<@{BEN}> see you at lunch"])
def test_what_calls_somebody_else_is_surely_not_for_the_bot(text: str) -> None:
    earlier = [said(CLEO, "hello all"), *QUIET_CHANNEL, said(BEN, f"<@{ANNA}> lunch at noon?", after(10))]
    assert 0 < estimated(said(ANNA, text, after(15)), None, *earlier).probability < 0.2


def test_an_answer_that_is_due_is_likelier_than_any_other_words() -> None:
    due, others = (estimated(said(who, "mostly for writing", after(15))).probability for who in (ANNA, BEN))
    assert due > others


# What the trees come to


@pytest.mark.parametrize(("text", "probability"), [("a b", 0.1192), ("a b c", 0.1192), ("a b c d", 0.8808)])
def test_a_value_at_the_threshold_goes_below(text: str, probability: float) -> None:
    model = a_model(a_stump("words", 3, -2, 2))
    assert estimated(said(ANNA, text), model).probability == pytest.approx(probability, abs=1e-4)


def test_the_trees_of_each_question_are_summed_and_calibrated_by_themselves() -> None:
    model = build(
        a_file(
            an_estimator(side_by_side(a_leaf(1.5), a_leaf(1.5))),
            an_estimator(a_leaf(-1.0)),
            said=Calibration(said=1, wants=0, bias=-3),
            answer=Calibration(said=2, wants=4, bias=-2),
        )
    )
    estimate = estimated(said(ANNA), model)
    assert estimate.said == pytest.approx(0.5)
    assert estimate.probability == pytest.approx(0.5)


def test_the_trees_of_a_question_stand_side_by_side() -> None:
    trees = side_by_side(a_leaf(1), a_stump("asks", 0.5, -1, 1))
    model = build(a_file(an_estimator(trees), an_estimator(a_stump("words", 3, -2, 2))))
    values = np.zeros(len(feature_names()) + len(Question))
    values[feature_names().index("asks")] = 1
    assert model.trees.sum(values)[:2] == [2, -2]


@given(
    st.lists(st.tuples(st.sampled_from(feature_names()), st.integers(-2, 2)), min_size=LEVELS, max_size=LEVELS),
    st.lists(st.integers(-3, 3), min_size=len(feature_names()), max_size=len(feature_names())),
)
def test_a_tree_leads_to_the_leaf_that_asking_level_by_level_comes_to(
    levels: list[tuple[str, float]], values: list[float]
) -> None:
    leaf = sum(
        (values[feature_names().index(feature)] > threshold) << level
        for level, (feature, threshold) in enumerate(levels)
    )
    model = a_model(a_tree(levels, range(LEAVES)))
    assert model.trees.sum(np.array([*values, 0.0, 0.0]))[0] == leaf


@pytest.mark.parametrize(("value", "probability"), [(1e6, 1.0), (-1e6, 0.0), (1e30, 1.0), (-1e30, 0.0)])
def test_no_sum_is_too_large(value: float, probability: float) -> None:
    assert estimated(said(ANNA), a_model(a_leaf(value))).probability == probability


# The message's own words


def test_each_question_weighs_the_words_for_itself() -> None:
    """A tree that asks for the feature behind all others asks what the words say of its own question."""
    message = said(ANNA, "zebra crossing")
    weights = np.zeros(SIZE)
    for places, _ in groups(message.wording, message.content, "a"):
        weights[places] = 1
    steps, scale = steps_of(weights)
    words = packed(steps)
    by_words = a_stump(len(feature_names()), 1.0, -1, 1)
    file = a_file(an_estimator(by_words, words=words, scale=scale), an_estimator(by_words, bias=0.5))
    found = build(file).scores_of_words(message, look_at(message, *QUIET_CHANNEL))
    assert found[0] > 1
    assert found[1] == 0.5
    values = np.array([*[0.0] * len(feature_names()), *found])
    assert build(file).trees.sum(values)[:2] == [1, -1]


@given(st.lists(st.integers(-5_000, 5_000), min_size=1, max_size=20))
def test_weights_of_words_are_within_half_a_step(thousandths: list[int]) -> None:
    weights = np.zeros(SIZE)
    weights[: len(thousandths)] = np.array(thousandths) / 1_000
    steps, scale = steps_of(weights)
    model = build(a_file(an_estimator(words=packed(steps), scale=scale)))
    assert np.abs(model.words[:, 0] - weights).max() <= scale / 2 * 1.0001


# The evidence


def test_every_feature_has_an_aspect_and_every_aspect_has_words() -> None:
    assert ASPECT_OF.keys() == {*feature_names(), "words_score"}
    assert set(ASPECT_OF.values()) == WORDS.keys() == set(Aspect)
    found = look_at(said(ANNA, "Parley, thanks", after(10)), *QUIET_CHANNEL)
    assert all(WORDS[aspect](found, True) or WORDS[aspect](found, False) for aspect in Aspect)


@pytest.mark.parametrize(
    ("text", "clause"), [("is it far?", "you asked a question"), ("it is far", "it was no question")]
)
def test_the_evidence_begins_with_what_moved_the_estimate_most(text: str, clause: str) -> None:
    model = a_model(a_stump("asks", 0.5, -2, 2), a_stump("words", 99, 0.5, 1))
    assert estimated(said(ANNA, text, after(15)), model).evidence.startswith(clause)


def test_what_moved_the_other_question_counts_as_much_as_that_counts_in_the_decision() -> None:
    asks, due = an_estimator(a_stump("asks", 0.5, -2, 2)), an_estimator(a_stump("is_due", 0.5, -1, 1))
    message = said(ANNA, "is it far?", after(15))
    for by_said, by_wants, clause in ((1, 1, "you asked a question"), (1, 3, "I had just answered you")):
        model = build(a_file(asks, due, answer=Calibration(said=by_said, wants=by_wants, bias=0)))
        assert estimated(message, model).evidence.startswith(clause)


def test_evidence_names_three_things() -> None:
    evidence = estimated(said(ANNA, "for work", after(15)), a_model(a_stump("asks", 0.5, -2, 2))).evidence
    assert evidence.count(", ") == SHOWN - 1
    assert ", and " in evidence


@pytest.mark.parametrize(
    ("text", "moved", "clause"),
    [
        ("a laptop for writing", 1.0, "it took up words of mine"),
        ("my garden needs water", -1.0, "it took up other people's words"),
        ("zebras", -1.0, "you changed the subject"),
    ],
)
def test_whose_words_were_taken_up_is_said_as_it_is(text: str, moved: float, clause: str) -> None:
    asked, answer = said(ANNA, f"<@{BOT}> hm"), replied(ANNA, "A laptop for writing letters.", after(5))
    found = look_at(said(ANNA, text, after(15)), asked, answer, said(BEN, "the garden needs water", after(8)))
    assert in_words([moved * (aspect is Aspect.OVERLAP) for aspect in Aspect], found).startswith(clause)


def test_who_takes_up_the_bots_words_is_not_said_to_have_changed_the_subject() -> None:
    found = look_at(said(ANNA, "what do you need it for", after(15)), *QUIET_CHANNEL)
    assert "subject" not in in_words([-1.0 * (aspect is Aspect.OVERLAP) for aspect in Aspect], found)


# Files that cannot be used


def test_a_small_file_can_be_used(path: Path) -> None:
    assert load_model(written(path, raw())).thresholds[Eagerness.QUIET] == 0.8


def test_a_missing_file(path: Path) -> None:
    assert fault(path) == "model.json cannot be read: No such file or directory."


def test_a_folder_in_the_files_place(path: Path) -> None:
    path.mkdir()
    assert "cannot be read" in fault(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no JSON",
        b"\xff\xfe",
        b'{"format": 3',
        b'{"format": 3, "certain": NaN}',
        b'{"format": 3, "certain": -Infinity}',
        b'{"format": 3, "certain": 1e999}',
        b"[" * 10_000 + b"]" * 10_000,
        b'{"format": 3, "about": ' + b'{"left": ' * 10_000 + b"1" + b"}" * 10_001,
        orjson.dumps(raw())[:-100],
    ],
)
def test_what_is_no_json(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert "is damaged: it is no JSON" in fault(path)


@pytest.mark.parametrize("content", [b"null", b"[]", b'"model"', b"1", b"{}"])
def test_json_of_something_else(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert "is damaged" in fault(path)


@pytest.mark.parametrize("number", [0, 1, 2, 4, -1])
def test_another_format(path: Path, number: int) -> None:
    assert f"has format {number}; this version reads format 3" in fault(written(path, raw() | {"format": number}))


def test_a_format_that_is_no_number(path: Path) -> None:
    nested: Any = []
    for _ in range(200):
        nested = [nested]
    assert "format" in fault(written(path, raw() | {"format": nested}))


@pytest.mark.parametrize("change", [{"certain": 0.90001}, {"about": {}}, {"digest": ""}])
def test_content_that_is_not_what_the_digest_was_of(path: Path, change: Raw) -> None:
    assert "digest" in fault(written(path, raw() | change))


def test_a_digest_holds_whatever_the_order_of_the_fields(path: Path) -> None:
    turned = load_model(written(path, dict(reversed(raw().items()))))
    assert turned.thresholds == build(a_file()).thresholds


@pytest.mark.parametrize(
    "change",
    [
        lambda names: names[1:],
        lambda names: [*names, "phase_of_the_moon"],
        lambda names: names[::-1],
        lambda _: [],
    ],
)
def test_other_features(path: Path, change: Callable[[list[str]], list[str]]) -> None:
    assert "other features" in fault(written(path, raw(features=change(feature_names()))))


@pytest.mark.parametrize("point", Eagerness)
def test_a_missing_operating_point(path: Path, point: Eagerness) -> None:
    thresholds = {other: 0.5 for other in Eagerness if other is not point}
    assert "operating point" in fault(written(path, raw(thresholds=thresholds)))


@pytest.mark.parametrize("question", Question)
def test_a_missing_question(path: Path, question: Question) -> None:
    estimators = {other: an_estimator() for other in Question if other is not question}
    assert "a question" in fault(written(path, raw(estimators=estimators)))


@pytest.mark.parametrize(
    ("inside", "field", "value"),
    [
        ("", "colour", "green"),
        ("", "certain", 1.5),
        ("", "certain", None),
        ("", "estimators", []),
        ("thresholds", "loud", 0.5),
        ("thresholds", "quiet", -0.5),
        ("said", "bias", "NaN"),
        ("answer", "wants", "Infinity"),
        ("estimators", "loves", {}),
        ("estimators.said", "words", None),
        ("estimators.said", "scale", "inf"),
        ("estimators.wants", "trees", []),
        ("estimators.wants.trees", "feature", []),
        ("estimators.wants.trees", "feature", [0.5]),
        ("estimators.said.trees", "gain", [1]),
        ("estimators.said.trees", "threshold", ["-inf"]),
        ("estimators.said.trees", "leaves", [1.0]),
    ],
)
def test_a_field_that_is_unknown_or_of_no_use(path: Path, inside: str, field: str, value: Any) -> None:
    content = raw()
    place = content
    for key in filter(None, inside.split(".")):
        place = place[key]
    place[field] = value
    assert f"is damaged: {'.'.join(filter(None, (inside, field)))}" in fault(written(path, content))


@pytest.mark.parametrize("field", list(ModelFile.model_fields))
def test_a_field_that_is_missing(path: Path, field: str) -> None:
    content = raw()
    del content[field]
    assert f"is damaged: {field}" in fault(written(path, content))


@pytest.mark.parametrize("words", ["!", "AAAA", base64.b64encode(zlib.compress(bytes(SIZE)))[:-40].decode()])
def test_words_whose_weights_cannot_be_read(path: Path, words: str) -> None:
    assert "the weights of its words cannot be read" in fault(written(path, raw(by_said=an_estimator(words=words))))


@pytest.mark.parametrize("size", [0, SIZE - 1, SIZE + 1])
def test_words_of_another_table(path: Path, size: int) -> None:
    words = base64.b64encode(zlib.compress(bytes(size))).decode()
    than = "more" if size > SIZE else "fewer"
    sentence = fault(written(path, raw(by_wants=an_estimator(words=words))))
    assert f"the weights of its words are {than} than {SIZE}" in sentence


def test_a_small_file_does_not_unpack_to_a_large_one(path: Path) -> None:
    words = base64.b64encode(zlib.compress(bytes(200 * SIZE))).decode()
    written(path, raw(by_wants=an_estimator(words=words)))
    tracemalloc.start()
    assert f"the weights of its words are more than {SIZE}" in fault(path)
    assert tracemalloc.get_traced_memory()[1] < 100 * SIZE
    tracemalloc.stop()


@pytest.mark.parametrize(("scale", "value"), [(1e300, 0.0), (1e38, 0.0), (1.0, 3e38)])
def test_weights_of_which_no_sum_can_be_made(path: Path, scale: float, value: float) -> None:
    words = base64.b64encode(zlib.compress(b"\x7f" * SIZE)).decode()
    estimator = an_estimator(side_by_side(a_leaf(value), a_leaf(value)), words=words, scale=scale)
    assert "too large to be summed" in fault(written(path, raw(by_said=estimator)))


@pytest.mark.parametrize(
    "change",
    [
        {"thresholds": {Eagerness.QUIET: 0.0, Eagerness.BALANCED: 0.5, Eagerness.EAGER: 1.0}},
        {"thresholds": {Eagerness.QUIET: 0.5, Eagerness.BALANCED: 0.6, Eagerness.EAGER: 0.1}},
        {"certain": 0.1},
    ],
)
def test_operating_points_in_the_wrong_order(path: Path, change: Raw) -> None:
    assert "a quieter operating point" in fault(written(path, raw(**change)))


def test_the_fault_is_one_short_sentence(path: Path) -> None:
    assert len(fault(written(path, raw() | {"colour\n" * 1_000: "green"}))) < 200
    assert "\n" not in fault(path)


@pytest.mark.parametrize("question", Question)
@pytest.mark.parametrize("feature", [-1, len(feature_names()) + 1, 2**62])
def test_a_tree_that_asks_for_a_feature_there_is_not(path: Path, feature: int, question: Question) -> None:
    assert "a feature there is not" in fault(written(path, with_trees(a_stump(feature, 0, -1, 1), question)))


@pytest.mark.parametrize("change", [{"feature": [0] * (LEVELS - 1)}, {"threshold": []}, {"threshold": [0.0] * 12}])
def test_a_tree_that_lacks_a_level(path: Path, change: Raw) -> None:
    trees = a_stump(0, 0, -1, 1).model_copy(update=change)
    assert f"its trees have not {LEVELS} levels each" in fault(written(path, with_trees(trees)))


@pytest.mark.parametrize("field", ["leaves", "weights"])
@pytest.mark.parametrize("count", [0, LEAVES - 1, 2 * LEAVES])
def test_trees_with_leaves_for_others(path: Path, field: str, count: int) -> None:
    values = packed(np.zeros(count, "<f4" if field == "leaves" else "<f2"))
    trees = a_leaf().model_copy(update={field: values})
    than = "more" if count > LEAVES else "fewer"
    assert f"the {field} of its trees are {than} than {LEAVES}" in fault(written(path, with_trees(trees)))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_leaf_that_adds_no_number(path: Path, value: float) -> None:
    assert "the leaves of its trees are not all finite" in fault(written(path, with_trees(a_leaf(value))))


def test_what_comes_to_a_leaf_cannot_be_less_than_nothing(path: Path) -> None:
    trees = a_leaf().model_copy(update={"weights": packed(np.full(LEAVES, -1, "<f2"))})
    assert "less than nothing" in fault(written(path, with_trees(trees)))


def test_a_table_without_words_is_of_the_right_size() -> None:
    assert len(zlib.decompress(base64.b64decode(NO_WORDS))) == SIZE
