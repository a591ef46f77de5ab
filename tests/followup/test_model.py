"""followup/model.py: the model file, read and summed up; followup/evidence.py: its estimates in words."""

from __future__ import annotations

import base64
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from followup.evidence import ASPECT_OF, WORDS, Aspect, in_words
from followup.features import feature_names
from followup.model import (
    LEAVES,
    LEVELS,
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
from tests.support.models import a_file, a_leaf, a_model, a_stump, a_tree, an_estimator
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


def test_the_shipped_model_says_what_it_was_trained_on_and_asks_only_below_where_it_is_certain() -> None:
    model = shipped_model()
    assert {"question", "data", "rows", "trained"} <= model.about.keys()
    points = [model.thresholds[eagerness] for eagerness in reversed(Eagerness)]
    assert sorted({*points, model.certain}) == [*points, max(model.certain, points[-1])]
    assert points[1] < model.certain


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


@settings(max_examples=30)  # a tree of 63 questions and all features in each
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
    ("text", "clause"), [("is it far?", "you asked a question"), ("it is far", "it was not a question")]
)
def test_the_evidence_begins_with_what_moved_the_estimate_most(text: str, clause: str) -> None:
    model = a_model(a_stump("asks", 0.5, -2, 2), a_stump("words", 99, 0.5, 1))
    estimate = estimated(said(ANNA, text, after(15)), model)
    raised, lowered = in_words(estimate.moved, estimate.features)
    assert (raised if "?" in text else lowered).startswith(clause)


def test_what_moved_the_other_question_counts_as_much_as_that_counts_in_the_decision() -> None:
    asks, due = an_estimator(a_stump("asks", 0.5, -2, 2)), an_estimator(a_stump("is_due", 0.5, -1, 1))
    message = said(ANNA, "is it far?", after(15))
    for by_said, by_wants, clause in ((1, 1, "you asked a question"), (1, 3, "I had just answered you")):
        model = build(a_file(asks, due, answer=Calibration(said=by_said, wants=by_wants, bias=0)))
        estimate = estimated(message, model)
        assert in_words(estimate.moved, estimate.features)[0].startswith(clause)


def test_three_things_are_told_at_most_and_nothing_that_hardly_moved_it() -> None:
    found = look_at(said(ANNA, "Parley, thanks", after(15)), *QUIET_CHANNEL)
    moved = dict.fromkeys(Aspect, 0.04) | dict.fromkeys([*Aspect][:5], 1.0)
    raising, lowering = in_words([*(moved | {Aspect.OWN_WORDS: -1.0, Aspect.NAMES_OTHERS: -2.0}).values()], found)
    assert raising.count(", ") == 2
    assert lowering == "you spoke to nobody else by name, and you had spoken a little earlier"


@pytest.mark.parametrize(
    ("text", "moved", "clause"),
    [
        ("a laptop for writing", 1.0, "it used words of mine"),
        ("my garden needs water", -1.0, "it used other people's words"),
        ("zebras", -1.0, "it used no words of mine"),
        ("a laptop for writing", -1.0, ""),
    ],
)
def test_whose_words_were_taken_up_is_said_as_it_is(text: str, moved: float, clause: str) -> None:
    asked, answer = said(ANNA, f"<@{BOT}> hm"), replied(ANNA, "A laptop for writing letters.", after(5))
    found = look_at(said(ANNA, text, after(15)), asked, answer, said(BEN, "the garden needs water", after(8)))
    evidence = in_words([moved * (aspect is Aspect.OVERLAP) for aspect in Aspect], found)
    assert evidence == ((clause, "") if moved > 0 else ("", clause))


def test_that_the_bot_spoke_last_is_no_reason_to_keep_silent() -> None:
    asked, answer = said(ANNA, f"<@{BOT}> hm"), replied(ANNA, "A laptop.", after(5))
    lowered = [-1.0 * (aspect is Aspect.ANSWERED) for aspect in Aspect]
    last = look_at(said(BEN, "I would say blue", after(15)), asked, answer)
    assert in_words(lowered, last) == ("", "")
    for told, words in ((Aspect.SPEAKERS, "nobody had spoken since I did"), (Aspect.BOT_SPOKE, "I had spoken last")):
        moved = [1.0 * (aspect is told) for aspect in Aspect]
        assert (in_words(moved, last), in_words([-by for by in moved], last)) == ((words, ""), ("", ""))
    left = look_at(said(BEN, "I would say blue", after(15)), asked, answer, said(CLEO, "what a day", after(8)))
    assert in_words(lowered, left) == ("", "the conversation had moved on")


# Files that cannot be used


def in_place(inside: str, field: str, value: Any) -> Raw:
    """A small file with something else in this field."""
    content = place = raw()
    for key in filter(None, inside.split(".")):
        place = place[key]
    place[field] = value
    return content


def words_of(size: int) -> str:
    return base64.b64encode(zlib.compress(bytes(size))).decode()


def with_trees(trees: Forest, **change: Any) -> list[Raw]:
    """A file for each question, with these trees."""
    by = an_estimator(trees.model_copy(update=change))
    return [raw(by_said=by), raw(by_wants=by)]


NESTED: Any = b"[" * 200 + b"]" * 200
NAMES = feature_names()
HUGE = base64.b64encode(zlib.compress(b"\x7f" * SIZE)).decode()
POINTS = {Eagerness.QUIET: 0.5, Eagerness.BALANCED: 0.6, Eagerness.EAGER: 0.1}
OTHER_CONTENT: list[Raw] = [{"certain": 0.90001}, {"about": {}}, {"digest": ""}]
OTHER_LEVELS: list[Raw] = [{"feature": [0] * (LEVELS - 1)}, {"threshold": []}, {"threshold": [0.0] * 12}]
JSON_FAULTS = {
    "is damaged: it is no JSON": [
        b"",
        b"\xff\xfe",
        b'{"format": 3',
        *(b'{"format": 3, "certain": %s}' % number for number in (b"NaN", b"-Infinity", b"1e999")),
        b"[" * 10_000 + b"]" * 10_000,
        b'{"format": 3, "about": ' + b'{"left": ' * 10_000 + b"1" + b"}" * 10_001,
        orjson.dumps(raw())[:-100],
    ],
    "is damaged": [b"null", b"[]", b'"model"', b"1", b"{}"],
    "damaged: format": [b'{"format": ' + NESTED + b"}"],
    "is damaged: colour": [orjson.dumps(raw() | {"colour\n" * 1_000: "green"})],
}
FAULTS: dict[str, list[Raw]] = {
    **{f"has format {n}; this version reads format 3": [raw() | {"format": n}] for n in (0, 2, 4, -1)},
    "its digest is not that": [raw() | change for change in OTHER_CONTENT],
    "other features": [raw(features=names) for names in (NAMES[1:], [*NAMES, "phase_of_the_moon"], NAMES[::-1], [])],
    "operating point, or a question": [
        *(raw(thresholds={other: 0.5 for other in Eagerness if other is not point}) for point in Eagerness),
        *(raw(estimators={question: an_estimator()}) for question in Question),
    ],
    **{f"is damaged: {field}": [{k: v for k, v in raw().items() if k != field}] for field in ModelFile.model_fields},
    "the weights of its words cannot be read": [
        raw(by_said=an_estimator(words=words)) for words in ("!", "AAAA", words_of(SIZE)[:-40])
    ],
    f"the weights of its words are fewer than {SIZE}": [raw(by_wants=an_estimator(words=words_of(SIZE - 1)))],
    f"the weights of its words are more than {SIZE}": [raw(by_wants=an_estimator(words=words_of(SIZE + 1)))],
    "too large to be summed": [
        raw(by_said=an_estimator(side_by_side(a_leaf(value), a_leaf(value)), words=HUGE, scale=scale))
        for scale, value in ((1e300, 0.0), (1e38, 0.0), (1.0, 3e38))
    ],
    "a quieter operating point": [raw(thresholds=POINTS), raw(certain=0.1)],
    "a feature there is not": [
        file for feature in (-1, len(NAMES) + 1, 2**62) for file in with_trees(a_stump(feature, 0, -1, 1))
    ],
    f"its trees have not {LEVELS} levels each": [
        file for change in OTHER_LEVELS for file in with_trees(a_leaf(), **change)
    ],
    **{
        f"the {field} of its trees are {than} than {LEAVES}": with_trees(a_leaf(), **{field: packed(np.zeros(n, kind))})
        for field, kind in (("leaves", "<f4"), ("weights", "<f2"))
        for n, than in ((LEAVES - 1, "fewer"), (2 * LEAVES, "more"))
    },
    "the leaves of its trees are not all finite": [
        file for value in (np.nan, np.inf, -np.inf) for file in with_trees(a_leaf(value))
    ],
    "less than nothing": with_trees(a_leaf(), weights=packed(np.full(LEAVES, -1, "<f2"))),
}


@pytest.mark.parametrize("part", [*JSON_FAULTS, *FAULTS])
def test_a_file_that_cannot_be_used_is_told_in_one_short_sentence(path: Path, part: str) -> None:
    for content in JSON_FAULTS.get(part) or [orjson.dumps(file) for file in FAULTS[part]]:
        path.write_bytes(content)
        assert part in fault(path)


def test_a_file_that_cannot_be_read_is_told_so_and_the_order_of_its_fields_does_not_matter(
    path: Path,
) -> None:
    assert fault(path) == "model.json cannot be read: No such file or directory."
    turned = load_model(written(path, dict(reversed(raw().items()))))
    assert turned.thresholds == build(a_file()).thresholds
    path.unlink()
    path.mkdir()
    assert "cannot be read" in fault(path)


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
    content = in_place(inside, field, value)
    assert f"is damaged: {'.'.join(filter(None, (inside, field)))}" in fault(written(path, content))


def test_a_small_file_does_not_unpack_to_a_large_one(path: Path) -> None:
    words = base64.b64encode(zlib.compress(bytes(200 * SIZE))).decode()
    written(path, raw(by_wants=an_estimator(words=words)))
    tracemalloc.start()
    assert f"the weights of its words are more than {SIZE}" in fault(path)
    assert tracemalloc.get_traced_memory()[1] < 100 * SIZE
    tracemalloc.stop()
