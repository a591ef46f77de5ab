"""commands/offer_commands.py: /offers on, off and status, over a loopback Discord."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from commands.answers import INCOMPLETE
from commands.offer_commands import (
    MAY_NOT_SPEAK,
    NONE_AT_ALL,
    NOT_THEIRS,
    OFF,
    OFF_ALREADY,
    on_sentence,
    status_sentences,
)
from offers.proactive_offers import OffersStatus
from place_settings.fields import SettingRefusedError
from playground.server import Playground
from tests.commands.support import FakeOffers, answer, answer_in_thread, use

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


def test_switched_on_it_says_how_often_and_whether_it_may_write() -> None:
    for has_changed, begins in ((True, ON), (False, ALREADY)):
        sentence = on_sentence(OffersStatus(may_speak=False), has_changed=has_changed)
        assert sentence.startswith(begins)
        assert sentence.endswith(MAY_NOT_SPEAK)
    assert "at most once a day" in on_sentence(OffersStatus(per_day=1), has_changed=True)
    assert on_sentence(OffersStatus(per_day=0), has_changed=True) == NONE_AT_ALL


async def test_status_speaks_of_its_own_channel(pg: Playground, offers: FakeOffers) -> None:
    offers.stands = replace(offers.stands, made_today=1)
    assert await said(pg, "status") == status_sentences(offers.stands)
    assert offers.asked_of == pg.channel("general")


def test_status_says_how_many_were_made_and_when_the_next_can_come() -> None:
    begins = "I offer help in this channel: 0 of at most 3 offers in the last 24 hours. "
    later = "The next can come <t:1795284000:R> at the earliest."
    hours = "22:00-07:00 UTC"
    for status, rest in (
        (OffersStatus(), "The next can come at any time."),
        (OffersStatus(is_open=True), "One is waiting for an answer. The next can come once that one is over."),
        (OffersStatus(is_open=True, earliest=LATER), f"One is waiting for an answer. {later}"),
        (OffersStatus(may_speak=False, earliest=LATER), MAY_NOT_SPEAK),
        (
            OffersStatus(quiet_hours=hours, earliest=LATER),
            f"{later} Quiet hours, without offers: {hours}.",
        ),
    ):
        assert status_sentences(status) == begins + rest
    assert "2 of at most 5 offers in the last 24 hours" in status_sentences(OffersStatus(made_today=2, per_day=5))
    assert status_sentences(OffersStatus(per_day=0)) == NONE_AT_ALL
    for others in ({}, {"made_today": 2}, {"per_day": 0}, {"may_speak": False}):
        sentence = status_sentences(OffersStatus(is_on=False, **others))
        assert sentence == "I do not offer help in this channel. /offers on switches that on."


async def test_it_is_for_those_who_manage_the_channel_whatever_the_server_lets_people_use(
    pg: Playground, offers: FakeOffers
) -> None:
    pg.commands.find("offers")["default_member_permissions"] = None  # as set by the server
    assert [await said(pg, subcommand, "Ben") for subcommand in SUBCOMMANDS] == [NOT_THEIRS] * 3
    assert (offers.switched, offers.asked_of) == ({}, None)


async def test_in_a_thread_it_is_about_the_channel_of_it(pg: Playground, offers: FakeOffers) -> None:
    for subcommand in ("on", "status"):
        await answer_in_thread(pg, "offers", **{subcommand: {}})
    assert (offers.asked_of, [*offers.switched]) == (pg.channel("general"), [pg.channel("general")])


async def test_a_server_with_settings_of_too_many_places_is_told_so(pg: Playground, offers: FakeOffers) -> None:
    offers.error = SettingRefusedError("No more can.")
    assert (await answer(pg, "offers", "Ada", on={})).content == "No more can."


@pytest.mark.parametrize("subcommand", ["on", "off"])
async def test_discord_hears_at_once_that_it_takes_a_while_and_a_failing_disk_costs_one_sentence(
    pg: Playground, offers: FakeOffers, subcommand: str
) -> None:
    offers.error = OSError("no space left")
    offers.gate.clear()
    used = use(pg, "offers", "Ada", **{subcommand: {}})
    await pg.wait_for(lambda: used.callback is not None)
    assert used.reply is None
    with capture_logs() as entries:
        offers.gate.set()
        assert (await pg.reply_to(used)).content == INCOMPLETE
    (entry,) = entries
    assert (entry["event"], entry["log_level"]) == ("offers_not_switched", "error")
    assert (entry["command"], entry["detail"]) == (f"offers {subcommand}", "no space left")
    assert (entry["guild"], entry["channel"], entry["user"]) == (pg.guild_id, pg.channel("general"), pg.person("Ada"))
