"""offers/limits.py: how long a cooldown is, when it is quiet, and how many offers a day has had."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from offers.offer_limits import OfferLimits, of_the_last_day
from setting_values import QuietHours
from tests.support.clock import NOON

BERLIN, NEPAL = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kathmandu")
WEEK = 7 * 86_400
HOUR = timedelta(hours=1)


def test_each_setback_doubles_the_cooldown_up_to_a_week() -> None:
    given = (0, 1, 2, 3, 8, 9, 10_000)
    assert [OfferLimits().cooldown_after(setbacks) for setbacks in given] == [
        *(1_800, 3_600, 7_200, 14_400, 460_800),
        *(WEEK, WEEK),
    ]


def test_a_cooldown_of_more_than_a_week_stays_as_it_is() -> None:
    for setbacks in (0, 1, 60):
        assert OfferLimits(cooldown_seconds=2.0 * WEEK).cooldown_after(setbacks) == 2 * WEEK


def quiet(start: str, end: str, zone: ZoneInfo = BERLIN) -> OfferLimits:
    hours: QuietHours = (time.fromisoformat(start), time.fromisoformat(end), zone)
    return OfferLimits(quiet_hours=hours)


def test_without_quiet_hours_it_is_never_quiet() -> None:
    assert not any(OfferLimits().is_quiet(NOON + i * HOUR) for i in range(24))


def test_quiet_hours_have_a_beginning_and_an_end() -> None:
    for start, end, at, is_quiet in (
        ("13:00", "15:00", "12:59:59.999999", False),
        ("13:00", "15:00", "13:00", True),
        ("13:00", "15:00", "14:59:59.999999", True),
        ("13:00", "15:00", "15:00", False),
        ("22:00", "07:00", "21:59:59", False),
        ("22:00", "07:00", "22:00", True),
        ("22:00", "07:00", "23:59:59", True),
        ("22:00", "07:00", "00:00", True),
        ("22:00", "07:00", "06:59:59", True),
        ("22:00", "07:00", "07:00", False),
        ("22:00", "07:00", "12:00", False),
        ("00:00", "23:59", "23:58", True),
        ("00:00", "23:59", "23:59", False),
        ("22:00", "00:00", "23:00", True),
        ("22:00", "00:00", "00:00", False),
    ):
        now = datetime.combine(NOON.date(), time.fromisoformat(at), BERLIN)
        assert quiet(start, end).is_quiet(now) is is_quiet, (start, end, at)
        assert quiet(start, end).is_quiet(now.astimezone(UTC)) is is_quiet, "whatever clock the moment is told by"


def test_quiet_hours_follow_the_clock_of_their_place_over_the_change_to_summer_time() -> None:
    for utc, is_quiet in (
        ("2026-03-28T21:30", True),  # 22:30, winter time
        ("2026-03-28T20:30", False),
        ("2026-03-29T00:30", True),  # 01:30, before the clock is put forward
        ("2026-03-29T01:30", True),  # 03:30, after it
        ("2026-03-29T04:59", True),  # 06:59, summer time: the night was an hour shorter
        ("2026-03-29T05:00", False),
        ("2026-03-29T20:00", True),
        ("2026-10-25T00:30", True),  # 02:30
        ("2026-10-25T01:30", True),  # 02:30 once more
        ("2026-10-25T05:30", True),  # 06:30: the night was an hour longer
        ("2026-10-25T06:00", False),
    ):
        assert quiet("22:00", "07:00").is_quiet(datetime.fromisoformat(utc).replace(tzinfo=UTC)) is is_quiet, utc


def test_a_days_count_is_of_24_hours_and_outlasts_a_clock_that_is_set_back() -> None:
    for hours in (0, -23.99, 1, 23.99):
        assert of_the_last_day([NOON + hours * HOUR], NOON), hours
    for hours in (-24, -25, 24, 1_000):
        assert not of_the_last_day([NOON + hours * HOUR], NOON), hours
