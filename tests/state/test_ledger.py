"""state/ledger.py: what was used on each day."""

from __future__ import annotations

import json
from datetime import date, timedelta

import pytest
from pydantic import JsonValue

from setting_values import Period, Scope
from state.ledger import DAYS_KEPT, Figures, Ledger, Used, by, total
from state.optout import OptOut
from state.spending import Amount, Payer, Purpose, Spent
from tests.support.people import ANNA, BEN

MAY = date(2026, 5, 30)
BOTH = Payer(7, frozenset({ANNA, BEN}), channel_id=70)
CALL = Spent("openai:a", 100, 11, cached=50, micros=9)


def ledger_of(day: date, opted_out: OptOut | None = None) -> Ledger:
    ledger = Ledger(opted_out)
    ledger.begin(day)
    return ledger


def restarted(ledger: Ledger) -> Ledger:
    later = Ledger()
    later.restore(json.loads(ledger.to_store()()))
    assert ledger.day
    later.resume(ledger.day, ledger.today)
    return later


def test_a_call_is_counted_by_guild_model_and_purpose_by_channel_and_shared_among_people() -> None:
    ledger = ledger_of(MAY)
    ledger.add(BOTH, Purpose.ANSWER, CALL)
    ledger.add(BOTH, Purpose.JUDGE, Spent("openai:b", 5, 5))
    ledger.answered(BOTH, CALL.model)
    day = ledger.today
    assert day.guilds == {
        7: {
            ("openai:a", "answers"): Figures(1, 1, 100, 11, 50, 9, 0),
            ("openai:b", "judging"): Figures(1, 0, 5, 5, 0, 0, 10),
        }
    }
    assert day.channels == {7: {70: Figures(2, 1, 105, 16, 50, 9, 10)}}
    assert day.people == {who: Figures(2, 1, 53, 9, 25, 5, 5) for who in (ANNA, BEN)}
    assert [*by(day.guilds[7], 0)] == ["openai:a", "openai:b"]
    assert total(day.guilds[7].values()).tokens == 121


@pytest.mark.parametrize(
    "wrong", [date(1970, 1, 1), MAY - timedelta(days=2), MAY + timedelta(days=40), MAY + timedelta(days=400)]
)
def test_a_clock_that_goes_wrong_for_a_while_renews_no_budget(wrong: date) -> None:
    ledger = ledger_of(MAY - timedelta(days=1))
    for day in (MAY, wrong):
        ledger.add(BOTH, Purpose.ANSWER, CALL)
        ledger.begin(day)
    later = restarted(restarted(ledger))
    later.begin(MAY)
    later.add(BOTH, Purpose.ANSWER, CALL)
    for account in ((Scope.TOTAL, 0), (Scope.GUILD, 7), (Scope.CHANNEL, 70)):
        assert [later.used(account, period).tokens for period in Period] == [222, 333]
    for _ in range(2 * DAYS_KEPT):
        assert later.day
        later.begin(later.day + timedelta(days=1))
    assert len(later._days) <= DAYS_KEPT


def test_what_was_used_to_decline_is_no_answer() -> None:
    ledger = ledger_of(MAY)
    ledger.add(BOTH, Purpose.ANSWER, CALL)
    ledger.declined(BOTH, [CALL])
    ledger.declined(BOTH, [CALL])  # of yesterday, say: what is not among today's is not taken from them
    rows = ledger.today.guilds[7]
    assert rows["openai:a", Purpose.DECLINED] == Figures(1, 0, 100, 11, 50, 9, 0)
    assert rows["openai:a", Purpose.ANSWER] == Figures()
    assert ledger.used((Scope.TOTAL, 0), Period.DAY) == Amount(111, 9)


def test_what_has_no_known_price_is_told_of_every_day_also_after_a_restart() -> None:
    ledger = ledger_of(MAY)
    for day in (MAY, MAY + timedelta(1)):
        ledger.begin(day)
        ledger.add(BOTH, Purpose.ANSWER, Spent("openai:b", 50, 10))
        ledger.answered(BOTH, "openai:b")
        ledger.declined(BOTH, [Spent("openai:b", 50, 10)])
    for each in (ledger, restarted(ledger)):
        assert [*dict(each.amounts(2)).values()] == [Used(60, 0, 60)] * 2


def test_days_and_charges_outlive_a_restart_until_their_time_is_over() -> None:
    ledger = ledger_of(MAY)
    for day in (MAY, MAY + timedelta(1), MAY + timedelta(2)):  # the last is in June
        ledger.begin(day)
        ledger.add(BOTH, Purpose.ANSWER, CALL)
        ledger = restarted(ledger)
        guild = Scope.GUILD, 7
        assert ledger.used(guild, Period.DAY) == Amount(111, 9)
        month = 2 if day.day == 31 else 1
        assert ledger.used(guild, Period.MONTH) == Amount(111 * month, 9 * month)
    assert [total(day.guilds.get(7, {}).values()).calls for _, day in ledger.days(4)] == [0, 1, 1, 1]
    assert [*dict(ledger.amounts(4)).values()] == [Used(), *[Used(111, 9)] * 3]
    ledger.begin(MAY + timedelta(DAYS_KEPT))  # the 31st of July
    assert next(each for each, _ in ledger.days(DAYS_KEPT)) == MAY + timedelta(1)
    assert sum(len(day.guilds) for _, day in ledger.days(99)) == 2
    assert sum(len(day.people) for _, day in ledger.days(99)) == 2  # those of June
    for later in (365, 366):  # that it was off for a year, and no clock is wrong, shows on the second day
        ledger.begin(MAY + timedelta(later))
    empty: dict[str, list[object]] = {"rows": [], "channels": [], "people": [], "charged": []}
    assert json.loads(ledger.to_store()()) == {f"{MAY + timedelta(365)}": empty}


def test_the_forgotten_and_those_who_opted_out_have_no_figures_but_their_budgets_hold() -> None:
    opted_out = OptOut()
    ledger = ledger_of(MAY, opted_out)
    for day in (MAY, MAY + timedelta(1)):
        ledger.begin(day)
        ledger.add(BOTH, Purpose.ANSWER, CALL)
    ledger.forget(ANNA)
    opted_out.add(BEN)
    ledger.add(BOTH, Purpose.ANSWER, CALL)
    assert [sorted(day.people) for _, day in ledger.days(2)] == [[BEN], [ANNA, BEN]]
    assert ledger.today.people[BEN].calls == 1
    assert ledger.used((Scope.PERSON, ANNA), Period.DAY).tokens == 2 * 56
    assert ledger.used((Scope.GUILD, 7), Period.MONTH).tokens == 3 * 111


def test_what_are_no_stored_days_is_refused_and_changes_nothing() -> None:
    ledger = ledger_of(MAY)
    ledger.add(BOTH, Purpose.ANSWER, CALL)
    days: list[JsonValue] = [{"people": [[1, [1, 2]]]}, {"people": [[1, [-1] * 7]]}, {"rows": [["a"]]}]
    wrong: list[JsonValue] = [None, [], {"soon": {}}, *({"2026-05-01": day} for day in days)]
    for stored in wrong:
        with pytest.raises(ValueError, match="validation error"):
            ledger.restore(stored)
    assert ledger.used((Scope.TOTAL, 0), Period.MONTH).tokens == 111
