"""Rooms in which the agent that would answer may decline: it judges as the labels do, but for some at random."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from decider import ResponseDecider, TrainedFollowup
from evals.free_run import Counts, add
from evals.rooms import Line, Room, decide
from followup.model import Eagerness, FollowupModel

AT_RANDOM = 0.1
NONE = Counts()


@dataclass(frozen=True, slots=True)
class Declining:
    """answers: given, to mentions too; declined: calls of the agent that came to nothing."""

    counts: Counts = NONE
    answers: int = 0
    declined: int = 0

    def __add__(self, other: Declining) -> Declining:
        return Declining(self.counts + other.counts, self.answers + other.answers, self.declined + other.declined)

    @property
    def declined_per_answer(self) -> float:
        return self.declined / max(self.answers, 1)


def declining(rooms: Sequence[Room], model: FollowupModel, eagerness: Eagerness = Eagerness.BALANCED) -> Declining:
    """What comes of rooms, played free."""
    chance = random.Random(1)
    counts, answers, declined = Counts(), 0, 0
    decider = ResponseDecider(followup=TrainedFollowup(model, eagerness), declines=True)
    for moment, decision in decide(rooms, decider, free=True):
        if decision.may_decline and not agrees(moment.line, chance):
            moment.responds = False
            declined += 1
            assert moment.conversation is not None
            conversation = moment.conversation
            conversation.declines = conversation.declines.after([moment.message.author_id], moment.message.timestamp)
        answers += moment.responds
        counts = add(counts, moment)
    return Declining(counts, answers, declined)


def agrees(line: Line, chance: random.Random) -> bool:
    """Whether the agent answers."""
    return chance.random() < 0.5 if chance.random() < AT_RANDOM else line.answer == "yes"
