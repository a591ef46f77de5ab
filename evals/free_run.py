"""What the decider does in rooms where its own decisions count, and the operating points that are chosen by that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise

from decider import ResponseDecider, TrainedFollowup
from evals.rooms import Moment, Room, decide
from followup.model import Eagerness, FollowupModel

STEPS = (
    0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.18, 0.22, 0.26, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65,
    0.7, 0.75, 0.8, 0.85, 0.9, 0.95,
)  # fmt: skip
# What the points promise, with room for rooms of others: see docs/measurements.md.
BUTTS_IN = {Eagerness.QUIET: 0.032, Eagerness.BALANCED: 0.085}
DEAF = 0.092
CERTAIN_BUTTS_IN = 0.005

Point = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Counts:
    """Of the open messages of rooms, without those that are open to taste: what was answered and what was not."""

    right: int = 0
    butts: int = 0
    deaf: int = 0
    left_alone: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.right + other.right,
            self.butts + other.butts,
            self.deaf + other.deaf,
            self.left_alone + other.left_alone,
        )

    @property
    def butts_in(self) -> float:
        """The share of what should be left alone that was answered."""
        return self.butts / max(self.butts + self.left_alone, 1)

    @property
    def is_deaf(self) -> float:
        """The share of what was for the bot that was left alone."""
        return self.deaf / max(self.deaf + self.right, 1)


def add(counts: Counts, moment: Moment) -> Counts:
    """With what became of one more message."""
    if not moment.is_open or moment.line.answer == "either":
        return counts
    if moment.line.answer == "yes":
        return counts + (Counts(right=1) if moment.responds else Counts(deaf=1))
    return counts + (Counts(butts=1) if moment.responds else Counts(left_alone=1))


def counted(rooms: Iterable[Room], decider: ResponseDecider, *, free: bool = True) -> Counts:
    """What the decider makes of the rooms."""
    return reduce(add, (moment for moment, _ in decide(rooms, decider, free=free)), Counts())


def swept(rooms: Sequence[Room], model: FollowupModel) -> dict[float, Counts]:
    """What each threshold comes to."""
    found = {}
    for step in STEPS:
        at_step = replace(model, thresholds=dict.fromkeys(Eagerness, step))
        found[step] = counted(rooms, ResponseDecider(followup=TrainedFollowup(at_step)))
    return found


def points_of(sweeps: Sequence[Mapping[float, Counts]]) -> dict[str, float]:
    """The operating points by what came of each threshold in several files together."""
    total = {step: sum((sweep[step] for sweep in sweeps), Counts()) for step in STEPS}
    points: dict[str, float] = {
        eagerness: _crossing(total, lambda counts: counts.butts_in, most) for eagerness, most in BUTTS_IN.items()
    }
    points["certain"] = _crossing(total, lambda counts: counts.butts_in, CERTAIN_BUTTS_IN)
    eager = _crossing(total, lambda counts: -counts.is_deaf, -DEAF)
    points[Eagerness.EAGER] = min(eager, points[Eagerness.BALANCED])  # it may hear more than it promises, not less
    return points


def _crossing(total: Mapping[float, Counts], measure: Callable[[Counts], float], wanted: float) -> float:
    """The threshold at which a measure that falls with it comes to what is wanted, between two steps in proportion."""
    steps = list(total)
    for low, high in pairwise(steps):
        above, below = measure(total[low]), measure(total[high])
        if above >= wanted >= below:
            return low + (high - low) * (above - wanted) / max(above - below, 1e-9)
    return steps[0] if measure(total[steps[0]]) < wanted else steps[-1]
