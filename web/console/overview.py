"""The overview: whether the bot is well, what it did today and in the week, and what that cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from aiohttp import web

from state.ledger import Day, Figures, total
from web.console.page import money, number, part, render, shown, span
from web.console.stream import stream
from web.shown import Shown

WEEK = 7


@dataclass(frozen=True, slots=True)
class Chart:
    """rows: label, value, and the value in words. key: an element's id."""

    key: str
    title: str
    rows: Sequence[tuple[str, float, str]]
    about: str = ""


async def overview(request: web.Request) -> web.StreamResponse:
    return render(request, "overview.html", **_parts(request))


async def overview_stream(request: web.Request) -> web.StreamResponse:
    return await stream(request, lambda: _parts(request))


def _parts(request: web.Request) -> dict[str, Any]:
    bot = shown(request)
    return {
        "now": part(request, "overview_now.html", problem=bot.health.problem(), facts=_facts(bot)),
        "figures": part(request, "overview_figures.html", **_figures(bot)),
    }


def _facts(bot: Shown) -> list[tuple[str, str]]:
    return [
        ("Model", bot.model),
        ("In service for", span(bot.clock() - bot.started_at)),
        ("Conversations", number(len(bot.conversations))),
        ("Answers being made", number(len(bot.turns) - len(bot.slots))),
        ("Waiting", number(len(bot.slots))),
    ]


def _figures(bot: Shown) -> dict[str, object]:
    kept = dict(bot.limits.ledger.days(WEEK))
    dates = [bot.clock().date() - timedelta(days=back) for back in reversed(range(WEEK))]
    days = [(day, _sum(kept.get(day, Day()))) for day in dates]
    today = days[-1][1]
    return {
        "day": f"{bot.clock():%d %B}",
        "today": [
            ("Answers", number(today.answers)),
            ("Calls of models", number(today.calls)),
            ("Tokens", number(today.tokens)),
            ("Cost", money(today.micros)),
        ],
        "days": [
            Chart("answers", "Answers", [(f"{day:%a}", sums.answers, number(sums.answers)) for day, sums in days]),
            Chart("tokens", "Tokens", [(f"{day:%a}", sums.tokens, number(sums.tokens)) for day, sums in days]),
            Chart("cost", "Cost", [(f"{day:%a}", sums.micros, money(sums.micros)) for day, sums in days]),
        ],
        "rows": [],
    }


def _sum(day: Day) -> Figures:
    return total(figures for rows in day.guilds.values() for figures in rows.values())
