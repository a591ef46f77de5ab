"""followup/removals.py: what is to go is merged, and stays small."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from followup.removals import Deletion, Erasure, Expiry, Forgetting, GuildForgetting, Removal, Removals
from tests.support.people import ANNA, BEN, CHANNEL, GUILD


@pytest.mark.parametrize(
    ("added", "taken"),
    [
        ([], []),
        ([Deletion(frozenset({1})), Deletion(frozenset({1, 2}))], [Deletion(frozenset({1, 2}))]),
        ([Deletion(frozenset())], []),
        ([Forgetting(CHANNEL, ANNA, 5), Forgetting(CHANNEL, ANNA, 3)], [Forgetting(CHANNEL, ANNA, 5)]),
        (
            [Forgetting(CHANNEL, ANNA, 5), Forgetting(None, ANNA, 3), Forgetting(CHANNEL, None, 4)],
            [Forgetting(CHANNEL, ANNA, 5), Forgetting(None, ANNA, 3), Forgetting(CHANNEL, None, 4)],
        ),
        ([GuildForgetting(GUILD, 3), GuildForgetting(GUILD, 5)], [GuildForgetting(GUILD, 5)]),
        ([Expiry(7.0), Expiry(9.0), Expiry(8.0)], [Expiry(9.0)]),
        ([Forgetting(None, BEN, 1), Erasure()], [Erasure(), Forgetting(None, BEN, 1)]),
    ],
)
def test_what_means_the_same_is_one(added: list[Removal], taken: list[Removal]) -> None:
    removals = Removals()
    for removal in added:
        removals.add(removal)
    assert bool(len(removals)) is bool(taken)
    assert removals.take() == taken
    assert (len(removals), removals.take()) == (0, [])


@pytest.mark.parametrize(
    "of", [lambda n: Deletion(frozenset({n})), lambda n: Forgetting(n, None, 1), lambda n: GuildForgetting(n, 1)]
)
def test_beyond_the_bound_all_goes(of: Callable[[int], Removal]) -> None:
    removals = Removals(most=8)
    for number in range(20):
        removals.add(of(number))
        assert len(removals) <= 8
    assert removals.take()[0] == Erasure()


def test_at_the_bound_nothing_else_goes() -> None:
    removals = Removals(most=8)
    removals.add(Deletion(frozenset(range(8))))
    assert removals.take() == [Deletion(frozenset(range(8)))]
