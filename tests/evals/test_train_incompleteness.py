"""evals/train_incompleteness.py: weights are learned from what the rules leave open, and from complete queries made."""

from __future__ import annotations

from typing import Any

from evals.train_incompleteness import SMALL_TALK, fit, judge, made_samples, sample, small_talk

ROWS: list[dict[str, Any]] = [
    {
        "id": "a",
        "source": "tea/one",
        "history": [{"role": "user", "text": "who sells green tea?"}],
        "utterance": "and the price?",
        "incomplete": True,
        "rewrite": "what is the price of green tea?",
    },
    {
        "id": "b",
        "source": "boats/one",
        "history": [{"role": "topic", "text": "Sailing"}, {"role": "user", "text": "how do boats turn?"}],
        "utterance": "what is a keel?",
        "incomplete": False,
        "rewrite": "what is a keel?",
    },
    {
        "id": "c",
        "source": "bread/one",
        "history": [{"role": "user", "text": "how is rye bread baked?"}],
        "utterance": "how long?",
        "incomplete": True,
        "rewrite": "how long is rye bread baked?",
    },
]


def test_evidence_of_incomplete_samples_weighs_for_and_that_of_complete_ones_against() -> None:
    samples = [
        sample("what is the price?", ROWS[0]["history"], incomplete=True),
        sample("what is a samovar?", ROWS[0]["history"]),
    ]
    bias, weights = fit(samples)
    assert weights["relation_bare"] > 0 > weights["definition"]
    assert [judge(each, bias, weights) for each in samples] == [True, False]


def test_what_the_rules_decide_is_not_left_to_weights() -> None:
    certain, closing = sample("why?", ROWS[0]["history"]), sample("thanks!", ROWS[0]["history"])
    assert judge(certain, -1000, {})
    assert not judge(closing, 1000, {})


def test_made_samples_are_complete_and_stay_in_the_fold_of_their_conversation() -> None:
    made = made_samples(ROWS)
    folds = {sample(row["utterance"], row["history"]).fold for row in ROWS}
    assert not any(each.incomplete for each in made)
    assert {each.fold for each in made} == folds


def test_small_talk_is_complete_after_every_history_without_an_announced_topic() -> None:
    made = small_talk(ROWS)
    assert not any(each.incomplete for each in made)
    assert len(made) == 2 * len(SMALL_TALK)


def test_a_sample_is_the_evidence_on_a_query_after_its_history() -> None:
    found = sample("who sells green teas?", ROWS[0]["history"]).found
    assert "known_2" in found
    assert "known_2" not in sample("who sells green teas?", ROWS[2]["history"]).found
