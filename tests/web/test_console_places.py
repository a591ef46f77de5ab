"""What the console shows of servers, their channels, and what people used."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from decision import NOTHING
from place_settings.fields import Level
from state.spending import Payer, Purpose, Spent
from tests.support.clock import NOON, FakeClock
from tests.support.people import ANNA, BEN, BOT, CHANNEL, CLEO, GUILD, said
from tests.web.console_support import CATEGORY, PLACES, THREAD, MadeUp, made_up
from web.console.places import PlaceRow, guild_rows, people, place_row
from web.shown import Shown


@pytest.fixture
async def shown(tmp_path: Path) -> AsyncIterator[Shown]:
    async with made_up(tmp_path, FakeClock()) as parts:
        yield parts


def used(shown: Shown, *people: int, micros: int = 1_000, channel_id: int = CHANNEL) -> None:
    payer = Payer(GUILD, frozenset(people), channel_id=channel_id)
    shown.limits.spend(Spent("openai:gpt", 100, 20, micros=micros), NOON, payer, Purpose.ANSWER)
    shown.limits.ledger.answered(payer, "openai:gpt")


def seen(shown: Shown, *, shows_content: bool = False) -> list[PlaceRow]:
    return [place_row(shown, GUILD, place, shows_content=shows_content) for place in PLACES]


async def test_servers_stand_in_the_order_of_their_names_with_what_goes_on_in_them(shown: Shown) -> None:
    shown = replace(shown, servers=MadeUp({GUILD: PLACES, 9: (), 80: ()}))
    shown.conversations.start(THREAD, [said(ANNA)])
    used(shown, ANNA)
    shown.decisions.add(1, CHANNEL, ANNA, NOTHING, GUILD)
    shown.guild_settings.pause(GUILD)
    found, count = guild_rows(shown, 0, 1)
    assert (count, len(found)) == (3, 1)
    row = found[0]
    assert (row.name, row.channels, row.live, row.is_paused) == ("Guild 70", 2, 1, True)
    assert (row.today.micros, sum(row.tally.silences.values())) == (1_000, 1)
    assert [one.name for one in guild_rows(shown, 1, 9)[0]] == ["Guild 80", "Guild 9"]


async def test_a_place_tells_what_is_set_for_it_and_where_that_comes_from(shown: Shown) -> None:
    for level, place_id, values in (
        (Level.GUILD, GUILD, {"eagerness": "quiet", "budget": "$1 a day"}),
        (Level.CATEGORY, CATEGORY, {"blocked_users": {ANNA}, "offers": True}),
        (Level.CHANNEL, CHANNEL, {"blocked_users": {BEN}, "budget": "$2 a day"}),
    ):
        shown.guild_settings.change(GUILD, place_id, level, values, by=BOT, now=NOON)
    lines = {(one.label, one.value): one.source for one in seen(shown)[1].lines}
    assert lines == {
        ("Blocked members", "2 members"): "from this category and this channel",
        ("Eagerness", "quiet"): "from this server",
        ("Offers of help", "on"): "from this category",
        ("Budget", "$2 a day"): "set here",
        ("Budget", "$1 a day"): "from this server",
    }


async def test_a_place_tells_what_goes_on_there_and_what_is_wrong(shown: Shown) -> None:
    shown.conversations.start(CHANNEL, [said(ANNA), said(BEN)])
    used(shown, ANNA)
    lacking = MadeUp(lacking={THREAD: ("Send Messages in Threads",)})
    category, channel, thread = seen(replace(shown, servers=lacking))
    assert (category.wrong, category.today) == ("", None)
    assert (channel.doing, channel.is_live) == ("in a conversation of 2 messages", True)
    assert channel.today
    assert channel.today.micros == 1_000
    assert (thread.doing, thread.wrong, thread.is_live) == ("", "lacks Send Messages in Threads", False)
    shown.guild_settings.pause(GUILD)
    assert [row.wrong for row in seen(shown)] == ["", "paused", "paused"]


async def test_the_title_of_a_thread_is_content_and_nothing_of_whoever_opted_out(shown: Shown) -> None:
    assert [row.name for row in seen(shown)] == ["Lobby", "general", "thread …0701"]
    assert seen(shown, shows_content=True)[2].name == "cats"
    shown.opted_out.add(ANNA)
    assert seen(shown, shows_content=True)[2].name == "thread …0701"


async def test_people_are_counts_by_id_and_named_only_with_content_but_for_those_who_opted_out(shown: Shown) -> None:
    shown.conversations.start(CHANNEL, [said(who) for who in (ANNA, BEN, CLEO)])
    used(shown, ANNA, micros=10)
    used(shown, BEN, micros=20)
    used(shown, CLEO, micros=30)
    shown.opted_out.add(CLEO)
    found, count = people(shown, 0, 10, shows_content=False)
    assert [(row.person_id, row.name, row.used.micros) for row in found] == [(BEN, "", 20), (ANNA, "", 10)]
    assert count == 2
    found, _ = people(shown, 1, 10, shows_content=True)
    assert [row.name for row in found] == ["Anna"]


def test_to_rank_many_people_sets_off_no_walk_through_all_that_is_kept(shown: Shown) -> None:
    """What is made for each of them at a time has Python collect garbage, all of the bot's memory in the end."""
    for person in range(1, 1_001):
        shown.limits.spend(Spent("m", person % 7, 1), NOON, Payer(GUILD, frozenset({person}), CHANNEL), Purpose.ANSWER)
    seen: list[str] = []
    before = gc.get_threshold()
    gc.collect(0)
    gc.callbacks.append(lambda phase, _: seen.append(phase))
    gc.set_threshold(400, 10, 10)
    try:
        _, count = people(shown, 0, 100, shows_content=False)
    finally:
        gc.set_threshold(*before)
        gc.callbacks.pop()
    assert (count, seen) == (1_000, [])
