"""The overview: the bot's health, and its answers, latency and cost of today and of the week."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from counts import Tally
from decision import Reason
from state.ledger import Used
from web.console.page import cost, number, part, render, shown, span
from web.console.stream import stream
from web.shown import Shown

WEEK, DAY_HOURS = 7, 24
MEDIAN, MOST = 0.5, 0.95
MOST_REASONS = 12


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart. rows: label, value, and the value in words; is_list: the labels are sentences; key: for element ids."""

    key: str
    title: str
    rows: Sequence[tuple[str, float, str]]
    about: str = ""
    is_list: bool = False


async def overview(request: web.Request) -> web.StreamResponse:
    charts = {chart.key: _drawn(request, chart) for chart in _charts(shown(request))}
    return render(request, "overview.html", charts=charts, **_parts(request))


async def overview_stream(request: web.Request) -> web.StreamResponse:
    return await stream(
        request,
        lambda: _parts(request) | {f"chart-{c.key}": _drawn(request, c) for c in _charts(shown(request))},
    )


def _parts(request: web.Request) -> dict[str, Any]:
    bot = shown(request)
    bot.limits.begin_day(bot.clock())
    lately = bot.faults.last(1) if bot.faults.last_hour() else ()
    facts = [
        ("Model", bot.model),
        ("Running for", span(bot.clock() - bot.started_at)),
        ("Servers", number(len(bot.servers.guilds()))),
        ("Conversations", number(len(bot.conversations))),
        ("Answers being made", number(bot.slots.running)),
        ("Waiting for their turn", number(len(bot.slots))),
        *([] if bot.shards.are_all else [("Shards of this process", bot.shards.in_words)]),
        *([("Processes, with this one", number(bot.cluster.leases.processes))] if bot.cluster else []),
    ]
    return {
        "now": part(request, "overview_now.html", problem=bot.health.problem(), faults=lately, facts=facts),
        "today": part(request, "overview_today.html", day=f"{bot.clock().day} {bot.clock():%B}", today=_today(bot)),
    }


def _drawn(request: web.Request, chart: Chart) -> str:
    return part(request, "chart.html", chart=chart)


def _charts(bot: Shown) -> list[Chart]:
    """The charts, each an element of its own, so that only changed ones are sent."""
    hours = [(f"{hour:%H}", tally.answered) for hour, tally in bot.counts.hours(DAY_HOURS)]
    days = [(f"{day:%a}", tally) for day, tally in bot.counts.days(WEEK)]
    used = dict(bot.limits.ledger.amounts(WEEK))
    amounts = [(f"{day:%a}", used.get(day, Used())) for day, _ in bot.counts.days(WEEK)]
    silent, answering = Counter[Reason](), Counter[Reason]()
    for _, tally in days:
        silent.update(tally.silences)
        answering.update(tally.answering)
    return [
        Chart("silent", "Why it kept silent", _ranked(silent, {r: r.silent for r in silent}), is_list=True),
        Chart("answering", "Why it answered", _ranked(answering, {r: r.answered for r in answering}), is_list=True),
        Chart("hours", "Answers by hour", _numbers(hours), "The last 24 hours, UTC."),
        Chart("answers", "Answers", _numbers([(day, tally.answered) for day, tally in days])),
        Chart("declines", "Declined by the model", _numbers([(day, tally.declined) for day, tally in days])),
        Chart("failures", "Failures", _numbers([(day, tally.failed) for day, tally in days])),
        Chart("median", "First text", _spans(days, MEDIAN), "Half of the answers began within this time."),
        Chart("most", "First text, at worst", _spans(days, MOST), "95 of 100 answers began within this time."),
        Chart("tokens", "Tokens", _numbers([(day, one.tokens) for day, one in amounts])),
        Chart("cost", "Cost", [(day, one.micros, cost(one)) for day, one in amounts]),
    ]


def _today(bot: Shown) -> list[tuple[str, str]]:
    today, [(_, used)] = bot.counts.today(), bot.limits.ledger.amounts(1)
    by_all = bot.limits.by_all(bot.clock())  # all other figures are this process's own
    of_all = by_all and [("Tokens, all processes", number(by_all.tokens)), ("Cost, all processes", cost(Used(*by_all)))]
    return [
        ("Answers", number(today.answered)),
        ("Silences", number(sum(today.silences.values()))),
        ("Declined by the model", number(today.declined)),
        ("Failures", number(today.failed)),
        ("First text, median", span(today.first_text(MEDIAN))),
        ("First text, 95th percentile", span(today.first_text(MOST))),
        ("Whole answer, median", span(today.whole(MEDIAN))),
        ("Whole answer, 95th percentile", span(today.whole(MOST))),
        ("Tokens", number(used.tokens)),
        ("Cost", cost(used)),
        *(of_all or ()),
    ]


def _numbers(values: Iterable[tuple[str, int]]) -> list[tuple[str, float, str]]:
    return [(label, value, number(value)) for label, value in values]


def _spans(days: Iterable[tuple[str, Tally]], part_of: float) -> list[tuple[str, float, str]]:
    times = [(day, tally.first_text(part_of)) for day, tally in days]
    return [(day, seconds or 0.0, span(seconds)) for day, seconds in times]


def _ranked(counts: Counter[Reason], words: Mapping[Reason, str]) -> list[tuple[str, float, str]]:
    return [(words[reason] or str(reason), value, number(value)) for reason, value in counts.most_common(MOST_REASONS)]
