"""commands/offer_commands.py: /offers on, off and status, over a loopback Discord."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from structlog.testing import capture_logs

from commands import INCOMPLETE
from commands.answers import IN_THREAD
from commands.offer_commands import MAY_NOT_SPEAK, NOT_THEIRS, OFF, OFF_ALREADY, on_sentence, status_sentences
from offers.proactive_offers import OffersStatus
from playground.interactions import Interaction
from playground.server import Playground
from tests.commands.support import EPHEMERAL, FakeOffers, answer, use

SUBCOMMANDS = ("on", "off", "status")
ON = "Done: I now offer help in this channel where a question stays unanswered, at most 3 times a day. "
ALREADY = "I offer help in this channel already, at most 3 times a day. "
LATER = datetime(2026, 11, 21, 18, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _ada_manages_the_channel(pg: Playground) -> None:
    pg.allow(pg.channel("general"), "manage_channels", member=pg.person("Ada"))


async def said(pg: Playground, subcommand: str, who: str = "Ada") -> str:
    return (await answer(pg, "offers", who, **{subcommand: {}})).content


async def test_it_is_switched_on_and_off_and_says_what_is_so_already(pg: Playground, offers: FakeOffers) -> None:
    assert await said(pg, "off") == OFF_ALREADY
    assert await said(pg, "on") == ON + "/offers off ends that."
    assert offers.switched == {pg.channel("general"): pg.guild_id}
    assert await said(pg, "on") == ALREADY + "/offers off ends that."
    assert await said(pg, "off") == OFF
    assert offers.switched == {}


@pytest.mark.parametrize("has_changed", [True, False])
def test_switched_on_where_it_may_not_write_it_says_so(has_changed: bool) -> None:
    sentence = on_sentence(OffersStatus(may_speak=False), has_changed=has_changed)
    assert sentence.endswith(MAY_NOT_SPEAK)
    assert sentence.startswith(ON if has_changed else ALREADY)


def test_once_a_day_is_said_so() -> None:
    assert "at most once a day" in on_sentence(OffersStatus(per_day=1), has_changed=True)


async def test_status_speaks_of_its_own_channel(pg: Playground, offers: FakeOffers) -> None:
    offers.stands = replace(offers.stands, made_today=1)
    assert await said(pg, "status") == status_sentences(offers.stands)
    assert offers.asked_of == pg.channel("general")


@pytest.mark.parametrize(
    ("status", "rest"),
    [
        (OffersStatus(), "The next can come at any time."),
        (OffersStatus(is_open=True), "One awaits an answer. The next can come once that one is done with."),
        (OffersStatus(earliest=LATER), "The next can come <t:1795284000:R> at the earliest."),
        (
            OffersStatus(is_open=True, earliest=LATER),
            "One awaits an answer. The next can come <t:1795284000:R> at the earliest.",
        ),
        (OffersStatus(may_speak=False), MAY_NOT_SPEAK),
        (OffersStatus(may_speak=False, earliest=LATER), MAY_NOT_SPEAK),
        (
            OffersStatus(quiet_hours="22:00-07:00 UTC"),
            "The next can come at any time. Quiet hours, without offers: 22:00-07:00 UTC.",
        ),
    ],
)
def test_status_says_when_the_next_can_come(status: OffersStatus, rest: str) -> None:
    assert (
        status_sentences(status) == f"I offer help in this channel: 0 of at most 3 offers in the last 24 hours. {rest}"
    )


def test_status_counts_todays() -> None:
    assert "2 of at most 5 offers in the last 24 hours" in status_sentences(OffersStatus(made_today=2, per_day=5))


@pytest.mark.parametrize("others", [{}, {"made_today": 2}, {"earliest": LATER}, {"may_speak": False}])
def test_status_of_a_channel_without_offers_is_one_thing(others: dict[str, Any]) -> None:
    assert (
        status_sentences(OffersStatus(is_on=False, **others))
        == "I offer no help in this channel. /offers on has me do so."
    )


@pytest.mark.parametrize("subcommand", SUBCOMMANDS)
async def test_it_is_for_those_who_manage_the_channel_whatever_the_server_lets_people_use(
    pg: Playground, offers: FakeOffers, subcommand: str
) -> None:
    pg.commands.find("offers")["default_member_permissions"] = None  # as set by the server
    assert await said(pg, subcommand, "Ben") == NOT_THEIRS
    assert offers.switched == {}
    assert offers.asked_of is None


@pytest.mark.usefixtures("_in_a_thread")
@pytest.mark.parametrize("subcommand", SUBCOMMANDS)
async def test_in_a_thread_it_says_that_it_takes_no_part_there(
    pg: Playground, offers: FakeOffers, subcommand: str
) -> None:
    assert await said(pg, subcommand) == IN_THREAD
    assert offers.switched == {}


@pytest.mark.parametrize("subcommand", ["on", "off"])
async def test_what_cannot_be_stored_costs_one_sentence_and_a_line_in_the_log(
    pg: Playground, offers: FakeOffers, subcommand: str
) -> None:
    offers.error = OSError("no space left")
    with capture_logs() as entries:
        assert await said(pg, subcommand) == INCOMPLETE
    (entry,) = entries
    assert (entry["event"], entry["log_level"]) == ("offers_not_switched", "error")
    assert (entry["command"], entry["detail"]) == (f"offers {subcommand}", "no space left")
    assert (entry["guild"], entry["channel"], entry["user"]) == (pg.guild_id, pg.channel("general"), pg.person("Ada"))


@pytest.mark.parametrize("subcommand", ["on", "off"])
async def test_discord_hears_at_once_that_it_takes_a_while(pg: Playground, offers: FakeOffers, subcommand: str) -> None:
    offers.gate.clear()
    used: Interaction = use(pg, "offers", "Ada", **{subcommand: {}})
    await pg.wait_for(lambda: used.callback is not None)
    assert used.reply is None
    offers.gate.set()
    assert (await pg.reply_to(used)).flags & EPHEMERAL
