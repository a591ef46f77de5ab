"""A purse without a bottom, which notes what calls used."""

from __future__ import annotations

from collections.abc import Callable


class NotingPurse:
    """spent: the tokens of each call that used any."""

    def __init__(self, spent: list[int] | None = None) -> None:
        self.spent: list[int] = [] if spent is None else spent

    def call(self, _tokens: int) -> Callable[[int], object]:
        return lambda used: self.spent.append(used) if used else None
