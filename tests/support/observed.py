"""An observer that keeps all that it is told."""

from __future__ import annotations

from activity import Fault, Observer, TurnEnded
from decision import LoggedDecision
from state.spending import Payer, Purpose, Spent


class Observed(Observer):
    def __init__(self) -> None:
        self.decisions: list[LoggedDecision] = []
        self.turns: list[TurnEnded] = []
        self.calls: list[tuple[Payer, Purpose, Spent]] = []
        self.faults: list[Fault] = []

    def decided(self, entry: LoggedDecision) -> None:
        self.decisions.append(entry)

    def turn_ended(self, turn: TurnEnded) -> None:
        self.turns.append(turn)

    def called(self, payer: Payer, purpose: Purpose, spent: Spent) -> None:
        self.calls.append((payer, purpose, spent))

    def failed(self, fault: Fault) -> None:
        self.faults.append(fault)
