"""followup/model.py: the model file, read and walked; followup/evidence.py: its estimates in words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from followup.evidence import ASPECT_OF, WORDS, Aspect
from followup.features import feature_names
from followup.model import FORMAT, MAX_DEPTH, MODEL_FILE, Eagerness, ModelFile, ModelFileError, Nodes, load_model
from tests.support.followups import after, look_at, shipped_model
from tests.support.people import ANNA, BEN, BOT, CLEO, replied, said

Raw = dict[str, Any]
QUIET_CHANNEL = [said(ANNA, f"<@{BOT}> which laptop is best?"), replied(ANNA, "What do you need it for?", after(5))]


def nodes_of_one_leaf(value: float = 0.0) -> Nodes:
    return Nodes(feature=[0], threshold=[0.0], below=[0], above=[0], value=[value])


def a_stump(feature: int, threshold: float, below: float, above: float) -> Nodes:
    return Nodes(
        feature=[feature, 0, 0], threshold=[threshold, 0, 0], below=[1, 1, 2], above=[2, 1, 2], value=[0, below, above]
    )


def a_chain(depth: int) -> Nodes:
    """A tree in which each node's one child is a leaf and the other the next node."""
    inner = [(2 * i + 1, 2 * i + 2) for i in range(depth)]
    leaves = {place for pair in inner for place in pair} - set(range(0, 2 * depth, 2))
    children = {2 * i: pair for i, pair in enumerate(inner)} | {leaf: (leaf, leaf) for leaf in leaves}
    below, above = zip(*(children[place] for place in range(2 * depth + 1)), strict=True)
    nothing = [0.0] * len(below)
    return Nodes(feature=[0] * len(below), threshold=nothing, below=list(below), above=list(above), value=nothing)


def a_file(nodes: Nodes | None = None, **more: Any) -> Raw:
    """A small model file as it would be written, its digest right."""
    fields: Raw = {
        "format": FORMAT,
        "about": {"data": "none"},
        "features": feature_names(),
        "slope": 1.0,
        "intercept": 0.0,
        "thresholds": {Eagerness.QUIET: 0.8, Eagerness.BALANCED: 0.5, Eagerness.EAGER: 0.2},
        "roots": [0],
        "nodes": nodes or nodes_of_one_leaf(),
        "digest": "",
    }
    file = ModelFile(**{**fields, **more})
    return file.model_copy(update={"digest": file.digest_of_rest()}).model_dump(mode="json")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.json"


def written(path: Path, raw: Raw) -> Path:
    path.write_bytes(orjson.dumps(raw))
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


# The file that is shipped


def test_the_shipped_model_is_of_these_features() -> None:
    assert ModelFile.model_validate_json(MODEL_FILE.read_bytes()).features == feature_names()
    assert shipped_model().thresholds.keys() == set(Eagerness)
    assert 0 < shipped_model().trees.depth <= MAX_DEPTH


def test_the_shipped_model_says_what_it_was_trained_on() -> None:
    assert {"question", "data", "target", "trained"} <= shipped_model().about.keys()


def test_every_feature_has_an_aspect_and_every_aspect_has_words() -> None:
    assert ASPECT_OF.keys() == set(feature_names())
    assert set(ASPECT_OF.values()) == WORDS.keys() == set(Aspect)
    found = look_at(said(ANNA, "Parley, thanks", after(10)), *QUIET_CHANNEL)
    assert all(WORDS[aspect](found) for aspect in Aspect)


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
    estimate = shipped_model().estimate(look_at(said(ANNA, text, after(15)), *QUIET_CHANNEL))
    assert 0.6 < estimate.probability < 1


@pytest.mark.parametrize("text", ["Ben, see you at lunch", "ben: see you at lunch", f"<@{BEN}> see you at lunch"])
def test_what_calls_somebody_else_is_surely_not_for_the_bot(text: str) -> None:
    earlier = [said(CLEO, "hello all"), *QUIET_CHANNEL, said(BEN, f"<@{ANNA}> lunch at noon?", after(10))]
    assert 0 < shipped_model().estimate(look_at(said(ANNA, text, after(15)), *earlier)).probability < 0.2


def test_two_others_who_talk_to_each_other_do_not_talk_to_the_bot() -> None:
    lunch = [said(BEN, f"<@{CLEO}> lunch today?", after(10)), said(CLEO, f"<@{BEN}> sure, when", after(20))]
    estimate = shipped_model().estimate(look_at(said(BEN, "at noon", after(30)), *QUIET_CHANNEL, *lunch))
    assert estimate.probability < 0.3


def test_an_answer_that_is_due_is_likelier_than_any_other_words() -> None:
    due, others = (
        shipped_model().estimate(look_at(said(who, "mostly for writing", after(15)), *QUIET_CHANNEL)).probability
        for who in (ANNA, BEN)
    )
    assert due > others


def test_evidence_names_three_things() -> None:
    evidence = shipped_model().estimate(look_at(said(ANNA, "for work", after(15)), *QUIET_CHANNEL)).evidence
    assert len(evidence.split(", ")) == 3


# How trees are walked


def estimated(path: Path, raw: Raw, **values: float) -> float:
    model = load_model(written(path, raw))
    return model.estimate(dict.fromkeys(feature_names(), 0.0) | values).probability


def test_a_value_at_the_threshold_goes_below(path: Path) -> None:
    raw = a_file(a_stump(feature_names().index("words"), 3.0, -2.0, 2.0))
    low, at, high = (estimated(path, raw, words=words) for words in (2, 3, 3.01))
    assert low == at == pytest.approx(0.1192, abs=1e-4)
    assert high == pytest.approx(0.8808, abs=1e-4)


def test_the_trees_are_summed_and_calibrated(path: Path) -> None:
    raw = a_file(nodes_of_one_leaf(1.5), roots=[0, 0], slope=2.0, intercept=-6.0)
    assert estimated(path, raw) == pytest.approx(0.5)


def test_trees_of_different_depths_stand_side_by_side(path: Path) -> None:
    stump = a_stump(0, 0.0, -1.0, 1.0)
    both = Nodes(**{name: [*column, 0] for name, column in stump.model_dump().items()})
    both = both.model_copy(
        update={"below": [*stump.below, 3], "above": [*stump.above, 3], "value": [*stump.value, 1.0]}
    )
    assert estimated(path, a_file(both, roots=[0, 3])) == pytest.approx(0.5)


@pytest.mark.parametrize(("value", "probability"), [(1e6, 1.0), (-1e6, 0.0), (1e300, 1.0), (-1e300, 0.0)])
def test_no_margin_is_too_large(path: Path, value: float, probability: float) -> None:
    assert estimated(path, a_file(nodes_of_one_leaf(value))) == probability


def test_the_evidence_begins_with_what_moved_the_estimate_most(path: Path) -> None:
    model = load_model(written(path, a_file(a_stump(feature_names().index("asks"), 0.5, -2.0, 2.0))))
    for text, clause in (("is it far?", "you asked a question"), ("it is far", "it was no question")):
        assert model.estimate(look_at(said(ANNA, text, after(15)), *QUIET_CHANNEL)).evidence.startswith(clause)


# Files that cannot be used


def test_a_small_file_can_be_used(path: Path) -> None:
    assert load_model(written(path, a_file())).thresholds[Eagerness.QUIET] == 0.8


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
        b'{"format": 1',
        b'{"format": 1, "slope": NaN}',
        b'{"format": 1, "slope": -Infinity}',
        b'{"format": 1, "slope": 1e999}',
        b"[" * 10_000 + b"]" * 10_000,
        b'{"format": 1, "about": ' + b'{"left": ' * 10_000 + b"1" + b"}" * 10_001,
        MODEL_FILE.read_bytes()[:-100],
    ],
)
def test_what_is_no_json(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert "is damaged: it is no JSON" in fault(path)


@pytest.mark.parametrize("content", [b"null", b"[]", b'"model"', b"1", b"{}"])
def test_json_of_something_else(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert "is damaged" in fault(path)


@pytest.mark.parametrize("number", [0, 2, -1])
def test_another_format(path: Path, number: int) -> None:
    assert f"has format {number}; this version reads format 1" in fault(written(path, a_file() | {"format": number}))


def test_a_format_that_is_no_number(path: Path) -> None:
    nested: Any = []
    for _ in range(200):
        nested = [nested]
    assert "format" in fault(written(path, a_file() | {"format": nested}))


@pytest.mark.parametrize("change", [{"slope": 1.0001}, {"about": {}}, {"digest": ""}, {"roots": [0, 0]}])
def test_content_that_is_not_what_the_digest_was_of(path: Path, change: Raw) -> None:
    assert "digest" in fault(written(path, a_file() | change))


def test_a_digest_holds_whatever_the_order_of_the_fields(path: Path) -> None:
    turned = load_model(written(path, dict(reversed(a_file().items()))))
    assert turned.thresholds == load_model(written(path, a_file())).thresholds


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
    assert "other features" in fault(written(path, a_file(features=change(feature_names()))))


@pytest.mark.parametrize("point", Eagerness)
def test_a_missing_operating_point(path: Path, point: Eagerness) -> None:
    thresholds = {other: 0.5 for other in Eagerness if other is not point}
    assert "operating point" in fault(written(path, a_file(thresholds=thresholds)))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"colour": "green"}, "colour"),
        ({"nodes": nodes_of_one_leaf().model_dump() | {"gain": [1]}}, "nodes.gain"),
        ({"thresholds": {"loud": 0.5}}, "thresholds.loud"),
        ({"thresholds": {"quiet": 1.5}}, "thresholds.quiet"),
        ({"slope": None}, "slope"),
        ({"slope": "NaN"}, "slope"),
        ({"intercept": "Infinity"}, "intercept"),
        ({"roots": []}, "roots"),
        ({"roots": [0.5]}, "roots.0"),
        ({"roots": [1e30]}, "roots.0"),
        ({"nodes": nodes_of_one_leaf().model_dump() | {"value": ["NaN"]}}, "nodes.value.0"),
        ({"nodes": nodes_of_one_leaf().model_dump() | {"threshold": ["-inf"]}}, "nodes.threshold.0"),
        ({"nodes": []}, "nodes"),
    ],
)
def test_a_field_that_is_unknown_or_of_no_use(path: Path, change: Raw, field: str) -> None:
    assert f"is damaged: {field}" in fault(written(path, a_file() | change))


@pytest.mark.parametrize("field", list(a_file()))
def test_a_field_that_is_missing(path: Path, field: str) -> None:
    raw = a_file()
    del raw[field]
    assert f"is damaged: {field}" in fault(written(path, raw))


@pytest.mark.parametrize("feature", [-1, len(feature_names()), 2**62])
def test_a_tree_that_asks_for_a_feature_there_is_not(path: Path, feature: int) -> None:
    assert "a feature there is not" in fault(written(path, a_file(a_stump(feature, 0.0, -1.0, 1.0))))


@pytest.mark.parametrize("root", [-1, 1, 2**62])
def test_a_tree_that_begins_nowhere(path: Path, root: int) -> None:
    assert "begins where no node is" in fault(written(path, a_file(roots=[root])))


@pytest.mark.parametrize(("below", "above"), [(0, 2), (1, 3), (-1, 2), (1, 2**62), (2, 0)])
def test_a_node_that_leads_nowhere_or_back(path: Path, below: int, above: int) -> None:
    nodes = a_stump(0, 0.0, -1.0, 1.0).model_copy(update={"below": [below, 1, 2], "above": [above, 1, 2]})
    assert "node 0 leads nowhere" in fault(written(path, a_file(nodes)))


@pytest.mark.parametrize("field", Nodes.model_fields)
def test_fields_of_nodes_that_differ_in_length(path: Path, field: str) -> None:
    nodes = a_stump(0, 0.0, -1.0, 1.0)
    shorter = nodes.model_copy(update={field: getattr(nodes, field)[:-1]})
    assert "differ in length" in fault(written(path, a_file(shorter)))


def test_no_tree_is_deeper_than_it_may_be(path: Path) -> None:
    assert load_model(written(path, a_file(a_chain(MAX_DEPTH)))).trees.depth == MAX_DEPTH
    assert f"{MAX_DEPTH + 1} nodes deep" in fault(written(path, a_file(a_chain(MAX_DEPTH + 1))))
    assert "10000 nodes deep" in fault(written(path, a_file(a_chain(10_000))))
