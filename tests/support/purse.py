"""A purse without a bottom, which notes what calls used."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from state.spending import Spent


class NotingPurse:
    """spent: the tokens of each call that used any."""

    def __init__(self, spent: list[int] | None = None) -> None:
        self.spent: list[int] = [] if spent is None else spent

    async def call(self, _tokens: int, _output: int, _models: Sequence[str]) -> Callable[[Spent], object]:
        return lambda spent: self.spent.append(spent.tokens) if spent.tokens else None
