"""evals/free_run.py: what is counted where the bot's own decisions shape the room, and the points chosen by it."""

from __future__ import annotations

import pytest

from decider import ResponseDecider, TrainedFollowup
from evals.declining_rooms import Declining, declining
from evals.free_run import BUTTS_IN, DEAF, STEPS, Counts, counted, points_of, swept
from evals.rooms import Room
from followup.model import Eagerness
from tests.evals.rooms import a_room, answers, generated, says
from tests.support.models import a_model, a_stump

ASKS = a_stump("asks", 0.5, -2, 2)  # sums of -4 and 4: whoever asks is answered
ROOM = Room.model_validate(
    a_room(
        says(0, "Ben", "is anyone there?"),
        says(2, "Anna", "@Parley which train?", "BOT"),
        answers(5, "Anna", 1),
        says(10, "Anna", "and when?", "BOT"),
        answers(13, "Anna", 3),
        says(20, "Ben", "what did you eat?", "Anna"),
        says(30, "Anna", "tell me the price", "BOT"),
        says(40, "Cleo", "good night"),
        says(50, "Ben", "is that true?", "room", "either"),
    )
)


def test_what_calls_the_bot_and_what_is_open_to_taste_is_not_counted() -> None:
    """Nor is what was said before anybody had called it."""
    counts = counted([ROOM], ResponseDecider(followup=TrainedFollowup(a_model(ASKS, ASKS))))
    assert counts == Counts(right=1, butts=1, deaf=1, left_alone=1)
    assert (counts.butts_in, counts.is_deaf) == (0.5, 0.5)


def test_each_threshold_is_played_for_itself() -> None:
    found = swept([ROOM], a_model(a_stump("asks", 0.5, -0.25, 0.25)))
    assert list(found) == list(STEPS)
    answered = {step: counts.right + counts.butts for step, counts in found.items()}
    assert (answered[0.02], answered[0.5], answered[0.95]) == (4, 2, 0)


def swept_as(butts_in: dict[float, float], deaf: dict[float, float]) -> dict[float, Counts]:
    """What thresholds come to, by shares of 1,000 messages each."""
    return {
        step: Counts(
            right=round(1_000 * (1 - deaf[step])),
            deaf=round(1_000 * deaf[step]),
            butts=round(1_000 * butts_in[step]),
            left_alone=round(1_000 * (1 - butts_in[step])),
        )
        for step in STEPS
    }


def test_a_point_lies_where_what_it_promises_is_crossed() -> None:
    butts_in = {step: 0.4 * (1 - step) for step in STEPS}
    points = points_of([swept_as(butts_in, {step: 0.5 * step for step in STEPS})])
    assert points["quiet"] == pytest.approx(1 - BUTTS_IN[Eagerness.QUIET] / 0.4, abs=0.01)
    assert points["balanced"] == pytest.approx(1 - BUTTS_IN[Eagerness.BALANCED] / 0.4, abs=0.01)
    assert points["eager"] == pytest.approx(DEAF / 0.5, abs=0.01)
    assert points["balanced"] < points["quiet"] < points["certain"]


def test_what_is_never_crossed_gives_the_outermost_threshold() -> None:
    for share, point in ((0.0, STEPS[0]), (0.5, STEPS[-1])):
        points = points_of([swept_as(dict.fromkeys(STEPS, share), dict.fromkeys(STEPS, 1.0))])
        assert points["quiet"] == points["balanced"] == points["certain"] == point
    # A model that hardly ever is deaf could be held back for the sake of its promise.
    points = points_of([swept_as({step: 0.2 * (1 - step) for step in STEPS}, {step: 0.1 * step for step in STEPS})])
    assert points["eager"] == points["balanced"]


# An agent that may decline


def test_an_agent_that_agrees_with_the_labels_answers_what_was_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evals.declining_rooms.AT_RANDOM", 0)
    model = a_model(thresholds=dict.fromkeys(Eagerness, 0.3))  # everything is doubtful
    found = declining([ROOM], model)
    # What is open to taste is declined, too: that costs a call, and counts for nothing else.
    assert found == Declining(Counts(right=2, left_alone=2), answers=3, declined=3)
    assert found.declined_per_answer == 1


def test_an_agent_that_tosses_a_coin_errs_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evals.declining_rooms.AT_RANDOM", 1)
    rooms = [Room.model_validate(room) for room in generated("coin", 30)]
    found = declining(rooms, a_model(thresholds=dict.fromkeys(Eagerness, 0.3)))
    assert 0.3 < found.counts.is_deaf < 0.7
    assert 0.3 < found.counts.butts_in < 0.7
