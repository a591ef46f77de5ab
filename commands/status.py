"""/status: the bot's health and what it did today in a server, for those who manage it."""

from __future__ import annotations

import discord
from discord import app_commands
from discord.utils import format_dt

from clock import Clock
from commands.model_command import answering
from commands.place_edge import PlaceEdge
from commands.usage import in_words
from counts import Counts, Faults, Tally
from discord_io.interactions import whisper
from health import Health
from shards import Shards
from state.ledger import total
from state.limits import Limits

NOT_THEIRS = "Only those who manage this server can see how I am doing in it."
PAUSED = "Paused in this server by my owner: I answer nobody here."
OF_PROCESS = " (Figures of the process that serves this server; I run as several, and its shards are {}.)"
MOST_SILENCES, MOST_FAULTS = 4, 3


class Status:
    """Writes the response of /status. edge: knows the model and whether the bot is paused; shards: this process's."""

    def __init__(
        self,
        counts: Counts,
        faults: Faults,
        limits: Limits,
        health: Health,
        edge: PlaceEdge,
        shards: Shards,
        clock: Clock,
    ) -> None:
        self._counts = counts
        self._faults = faults
        self._limits = limits
        self._health = health
        self._edge = edge
        self._shards = shards
        self._clock = clock
        self._started = clock()

    def in_words(self, guild_id: int, interaction: discord.Interaction) -> str:
        """The text of /status, about this server only."""
        now = self._clock()
        self._limits.begin_day(now)
        today = self._counts.today(guild_id)
        used = total(self._limits.ledger.today.guilds.get(guild_id, {}).values())
        problem = self._health.problem()
        process = "" if self._shards.are_all else OF_PROCESS.format(self._shards.in_words)
        wrong = [*([PAUSED] if self._edge.settings.is_paused(guild_id) else []), *([f"{problem}."] if problem else [])]
        faults = [
            f"- {format_dt(fault.at, 'R')}{f' in <#{fault.channel_id}>' if fault.channel_id else ''}: {fault.says}"
            for fault in self._faults.last(MOST_FAULTS, guild_id)
        ]
        return "\n".join(
            [
                "**How I am doing in this server** (today is a day of UTC)",
                f"- Health: {' '.join(wrong) or 'well.'} I was started {format_dt(self._started, 'R')}.{process}",
                f"- {answering(self._edge, interaction)}",
                f"- Today: {_turns(today)}",
                f"- Kept silent: {_silences(today)}",
                f"- Models used today: {in_words(used)}",
                *(["**What went wrong last**", *faults] if faults else ["- Nothing went wrong lately."]),
            ]
        )


def add_status(tree: app_commands.CommandTree, status: Status) -> None:
    @tree.command(
        name="status",
        description="How am I doing here? Health, answers, cost, errors. For those who manage this server.",
    )
    @app_commands.guild_only()
    @app_commands.default_permissions(manage_guild=True)
    async def show(interaction: discord.Interaction) -> None:
        if interaction.guild_id is None or not interaction.permissions.manage_guild:
            await whisper(interaction, NOT_THEIRS)
        else:
            await whisper(interaction, status.in_words(interaction.guild_id, interaction))


def _turns(today: Tally) -> str:
    counts = [(today.answered, "answer", ""), (today.declined, "question", " declined"), (today.failed, "failure", "")]
    said = ", ".join(f"{count:,} {what}{'' if count == 1 else 's'}{more}" for count, what, more in counts)
    half, most = today.first_text(0.5), today.first_text(0.95)
    if half is None or most is None:
        return said
    return f"{said}; half began within {half:.1f} s, nearly all within {most:.1f} s"


def _silences(today: Tally) -> str:
    silences = [*today.silences.items()]
    said = "; ".join(f"{count:,} × {reason.silent}" for reason, count in silences[:MOST_SILENCES])
    rest = sum(count for _, count in silences[MOST_SILENCES:])
    return f"{said or 'never'}{f'; {rest:,} × for other reasons' if rest else ''}"
