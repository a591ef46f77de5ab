"""commands/open_cards.py: who has a card open is known as long as it can be shown anew."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from commands.open_cards import MAX_CARDS, OpenCard, OpenCards
from place_settings.document import Node
from place_settings.fields import Level, PlaceSettings
from place_settings.guild_settings import Changed

ADA, BEN = 1, 2
BY_BEN = Changed(5, Node(Level.GUILD, 5), PlaceSettings(), 1, ("judge",), BEN, datetime.now(UTC))


class Shown:
    """Cards that note that they are shown anew."""

    def __init__(self, error: Exception | None = None) -> None:
        self.anew: list[Changed] = []
        self.expired = False
        self._error = error

    def card(self, user_id: int = ADA, guild_id: int = 5) -> OpenCard:
        interaction = SimpleNamespace(
            is_expired=lambda: self.expired, guild_id=guild_id, user=SimpleNamespace(id=user_id)
        )
        return OpenCard(cast(Any, interaction), self._show)

    async def _show(self, changed: Changed) -> None:
        self.anew.append(changed)
        if self._error:
            raise self._error


@pytest.fixture
def cards() -> OpenCards:
    return OpenCards()


async def test_all_in_the_server_are_shown_anew_but_those_of_whoever_changed_it(cards: OpenCards) -> None:
    shown, bens, elsewhere = Shown(), Shown(), Shown()
    cards.opened(1, shown.card())
    cards.opened(2, bens.card(BEN))
    cards.opened(3, elsewhere.card(guild_id=6))
    cards.changed(BY_BEN)
    await asyncio.gather(*cards._tasks)
    assert (shown.anew, bens.anew, elsewhere.anew) == ([BY_BEN], [], [])


async def test_they_are_few_and_none_is_kept_that_discord_no_longer_changes(cards: OpenCards) -> None:
    old, dismissed = Shown(), Shown(RuntimeError("unknown message"))
    cards.opened(1, old.card())
    cards.opened(2, dismissed.card())
    cards.changed(BY_BEN)
    await asyncio.gather(*cards._tasks)
    assert len(cards) == 1
    old.expired = True
    cards.changed(BY_BEN)
    assert len(cards) == 0
    for number in range(MAX_CARDS + 5):
        cards.opened(number, Shown().card())
    assert len(cards) == MAX_CARDS
