"""A purse that allows all calls or none, and notes what they used."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from state.spending import Spent


class NotingPurse:
    """spent: the tokens of each call that used any."""

    def __init__(self, spent: list[int] | None = None, *, is_full: bool = True) -> None:
        self.spent: list[int] = [] if spent is None else spent
        self._is_full = is_full

    async def call(self, _tokens: int, _output: int, _models: Sequence[str]) -> Callable[[Spent], object] | None:
        if not self._is_full:
            return None
        return lambda spent: self.spent.append(spent.tokens) if spent.tokens else None
