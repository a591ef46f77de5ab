"""/usage: use of models and its cost; for everybody their own, for those who manage the server all of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from io import BytesIO
from typing import Literal

import discord
from discord import app_commands
from discord.utils import format_dt

from clock import Clock
from commands.answers import Outcome, carry_out, channel_of
from discord_io.interactions import whisper
from setting_values import Period, Scope, dollars
from state.ledger import Figures, K, by, count, total
from state.limits import Limits, Reached
from state.spending import Account, Payer

NOT_THEIRS = "Only those who manage this server can see what it uses; /usage shows your own."
NO_SERVER = "This is not a server; /usage shows your own use."
UNPRICED = "-# {tokens:,} of the tokens have no cost here, as I do not know the price of their model."
BY_ALL = "- I run in several processes, and this one has counted only its own share. All together: {used}"
WHEN = {Period.DAY: "today", Period.MONTH: "this month"}
CHART_DAYS, MOST_CHANNELS, MOST_ROWS = 14, 5, 10
CHART_NAME = "usage.png"
WHOSE = {Scope.GUILD: "This server", Scope.CHANNEL: "This channel", Scope.THREAD: "This thread", Scope.PERSON: "You"}

# The chart has its own background, so that it looks the same in Discord's light and dark theme.
SIZE, MARGIN, HEAD, FOOT = (720, 260), 20, 56, 34
BACKGROUND, INK, FAINT, BAR, TODAY = "#1e1f22", "#f2f3f5", "#a9adb8", "#7f8df5", "#f0b232"


class Usage:
    """Writes the response of /usage from the ledger and the limits."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock

    async def mine(self, user_id: int) -> Outcome:
        now = self._clock()
        standing = await self._limits.looked_up(now, Payer(people=frozenset({user_id})))
        days = [(day, kept.people.get(user_id, Figures())) for day, kept in self._limits.ledger.days(31)]
        by_all = await self._by_all(now, (Scope.PERSON, user_id))
        lines = ["**What you have used of my models** (days of UTC)", *_sums(days, now), *by_all]
        left = _left(standing, {Scope.PERSON}, "You have no budget of your own.")
        return await _with_chart([*lines, *left], days, "What you have used")

    async def server(self, guild_id: int, channel_id: int, thread_id: int) -> Outcome:
        now = self._clock()
        standing = await self._limits.looked_up(now, Payer(guild_id, channel_id=channel_id, thread_id=thread_id))
        kept = [*self._limits.ledger.days(31)]
        days = [(day, total(one.guilds.get(guild_id, {}).values())) for day, one in kept]
        month = [one for day, one in kept if day.month == now.month]
        rows = _added(one.guilds.get(guild_id, {}) for one in month)
        channels = _added(one.channels.get(guild_id, {}) for one in month)
        most = sorted(channels.items(), key=lambda item: (item[1].micros, item[1].tokens), reverse=True)
        lines = [
            "**What this server has used of my models** (days of UTC)",
            *_sums(days, now),
            *await self._by_all(now, (Scope.GUILD, guild_id)),
            *_table("By model, this month", by(rows, 0)),
            *_table("By purpose, this month", by(rows, 1)),
            *_table("By channel, this month", {f"<#{one}>": f for one, f in most[:MOST_CHANNELS]}),
            *_left(standing, {Scope.GUILD, Scope.CHANNEL, Scope.THREAD}, "This server has no budget of its own."),
            *(_of_all(reached) for reached in standing if reached.limit.scope is Scope.TOTAL),
        ]
        return await _with_chart(lines, days, "What this server has used")

    async def _by_all(self, now: datetime, account: Account) -> list[str]:
        """A line with what all processes have counted, if there are several: all else is this process's own."""
        used = await self._limits.looked_up_by_all(now, account)
        said = [f"{WHEN[period]} {dollars(amount.micros)}, {amount.tokens:,} tokens" for period, amount in used.items()]
        return [BY_ALL.format(used="; ".join(said))] if said else []


def add_usage(tree: app_commands.CommandTree, usage: Usage) -> None:
    @tree.command(name="usage", description="What have my models been used for, what did it cost, and what is left?")
    @app_commands.describe(of="Whose use: your own, or this server's, for those who manage it")
    @app_commands.allowed_contexts(guilds=True, dms=True)
    async def show(interaction: discord.Interaction, of: Literal["me", "server"] = "me") -> None:
        if of == "me":
            await carry_out(interaction, usage.mine(interaction.user.id), failed="usage_not_shown")
        elif interaction.guild_id is None:
            await whisper(interaction, NO_SERVER)
        elif not interaction.permissions.manage_guild:
            await whisper(interaction, NOT_THEIRS)
        else:
            here, channel = interaction.channel_id or 0, channel_of(interaction)
            work = usage.server(interaction.guild_id, channel, here if here != channel else 0)
            await carry_out(interaction, work, failed="usage_not_shown")


def in_words(figures: Figures) -> str:
    """Figures in words, with the cost as far as it is known."""
    if not figures.calls:
        return "nothing"
    answers = f"{figures.answers:,} answer{'' if figures.answers == 1 else 's'}"
    cached = f", {figures.cached:,} of them from a cache" if figures.cached else ""
    cost = [dollars(figures.micros)] if figures.micros or not figures.unpriced else []
    return ", ".join(
        [
            *cost,
            answers,
            f"{figures.calls:,} call{'' if figures.calls == 1 else 's'}",
            f"{figures.tokens:,} tokens{cached}",
        ]
    )


def _sums(days: Sequence[tuple[date, Figures]], now: datetime) -> list[str]:
    month = total(figures for day, figures in days if (day.year, day.month) == (now.year, now.month))
    lines = [
        f"- Today: {in_words(days[-1][1])}",
        f"- Yesterday: {in_words(days[-2][1])}",
        f"- This month: {in_words(month)}",
    ]
    return [*lines, UNPRICED.format(tokens=month.unpriced)] if month.unpriced else lines


def _table(title: str, rows: Mapping[str, Figures]) -> list[str]:
    shown = {name: figures for name, figures in rows.items() if figures.calls}
    lines = [f"- {name or 'before this was recorded'}: {in_words(f)}" for name, f in [*shown.items()][:MOST_ROWS]]
    return [f"**{title}**", *lines] if lines else []


def _left(standing: Iterable[Reached], scopes: set[Scope], none: str) -> list[str]:
    lines = []
    for reached in standing:
        limit = reached.limit
        if limit.scope in scopes:
            left, again = limit.words(max(0, limit.amount - reached.used)), format_dt(reached.resets_at, "R")
            lines.append(f"- {WHOSE[limit.scope]}: {left} of {limit.in_words()}, renewed {again}")
    return ["**What is left**", *lines] if lines else [none]


def _of_all(reached: Reached) -> str:
    """A line on the owner's budget for all servers together, as a percentage only."""
    share = min(100, 100 * reached.used // reached.limit.amount)
    period = "today" if reached.limit.period is Period.DAY else "this month"
    of, again = "money" if reached.limit.in_money else "tokens", format_dt(reached.resets_at, "R")
    return f"- My budget in {of} for everybody together: {share}% of {period}'s is used, renewed {again}"


def _added(parts: Iterable[Mapping[K, Figures]]) -> dict[K, Figures]:
    sums: dict[K, Figures] = {}
    for part in parts:
        for key, figures in part.items():
            count(sums, key, figures)
    return sums


# The chart


async def _with_chart(lines: Sequence[str], days: Sequence[tuple[date, Figures]], title: str) -> Outcome:
    """The lines, with a chart of the last 14 days if anything was used in them."""
    days = days[-CHART_DAYS:]
    if not any(figures.calls for _, figures in days):
        return "\n".join(lines)
    in_money = any(figures.micros for _, figures in days)
    amounts = [(day, figures.micros if in_money else figures.tokens) for day, figures in days]
    image = await asyncio.to_thread(chart, amounts, title, in_money=in_money)
    alt = alt_text(amounts, title, in_money=in_money)
    return "\n".join(lines), [discord.File(BytesIO(image), CHART_NAME, description=alt)]


def alt_text(amounts: Sequence[tuple[date, int]], title: str, *, in_money: bool) -> str:
    """Alternative text of the chart."""
    most_on, most = max(amounts, key=lambda one: one[1])
    words = [f"{title} a day from {amounts[0][0]} to {amounts[-1][0]}: most on {most_on}, {_amount(most, in_money)};"]
    words += [f"{day.day}.: {_amount(amount, in_money)}" for day, amount in amounts]
    return " ".join(words)[:1_000]


def chart(amounts: Sequence[tuple[date, int]], title: str, *, in_money: bool) -> bytes:
    """The bar chart as a PNG: one bar a day, today last."""
    from PIL import Image, ImageDraw, ImageFont  # noqa: PLC0415 - slow, and seldom needed

    image = Image.new("RGB", SIZE, BACKGROUND)
    draw, large, small = ImageDraw.Draw(image), ImageFont.load_default(18), ImageFont.load_default(14)
    (width, height), most = SIZE, max(amount for _, amount in amounts) or 1
    draw.text((MARGIN, 14), f"{title}, by day (UTC)", fill=INK, font=large)
    draw.text((width - MARGIN, 16), f"most: {_amount(most, in_money)}", fill=FAINT, font=small, anchor="ra")
    base, step = height - FOOT, (width - 2 * MARGIN) / len(amounts)
    for number, (day, amount) in enumerate(amounts):
        left, is_today = MARGIN + number * step, number == len(amounts) - 1
        tall = round((base - HEAD) * amount / most)
        bar = (left + step * 0.15, base - max(tall, 2 if amount else 0), left + step * 0.85, base)
        if amount:
            draw.rectangle(bar, fill=TODAY if is_today else BAR)
        name = "today" if is_today else f"{day.day}"
        draw.text((left + step / 2, base + 8), name, fill=INK if is_today else FAINT, font=small, anchor="ma")
    draw.line((MARGIN, base, width - MARGIN, base), fill=FAINT)
    packed = BytesIO()
    image.save(packed, "PNG")
    return packed.getvalue()


def _amount(amount: int, in_money: bool) -> str:
    return dollars(amount) if in_money else f"{amount:,} tokens"
