"""`python -m evals.report LOG`: what the decision log says of how the bot did, as a table and as curves.

An outcome is a sign, no proof: most people who are left out or interrupted say nothing, so that complaints are rare.
What an unprompted answer was worth shows in whether anybody took it up. The rates compare settings, models, channels
and weeks with each other; they are no measure of all mistakes.
"""

from __future__ import annotations

import argparse
import math
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from config import SettingError, load_settings
from decider import Reason
from decision import PROMPTED
from followup.decision_file import DecisionFile
from followup.learning import BUTTED_IN, Entry, Outcome
from persistence.open_store import find_seal
from storage.store import StoreError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FOLLOWUP_TIER = 2
GUESSED = frozenset({Reason.FOLLOWUP, Reason.NO_TRIGGER, Reason.ANSWER_DUE})  # not by rule, whose scores are none
BINS = 10
TAKEN_UP_SECONDS = 300.0
HEADER = (
    "",
    "decisions",
    "answers",
    "unprompted",
    "taken up",
    "butted in",
    "missed",
    "conversations",
    "answers in each",
)
NOTE = (
    "An unprompted answer was taken up where somebody replied or reacted to it, or whoever was answered went on\n"
    "with the bot or thanked it within 5 minutes. It butted in where somebody told it off, deleted the answer or\n"
    "disliked it; complaints are rare, as most people who are interrupted say nothing: what drew neither was not\n"
    "welcome because nobody complained."
)
MOST_NAME = 60  # characters
MOST_DAYS = 14  # that have a row each; more are put together in weeks


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    count: int
    total: int

    def __str__(self) -> str:
        return f"{100 * self.count / self.total:.1f} % ({self.count} of {self.total})" if self.total else "-"


@dataclass(frozen=True, slots=True)
class Figures:
    """How the bot did. taken_up, butted_in: of its unprompted answers; missed: of its silences."""

    decisions: int
    answers: int
    taken_up: Share
    butted_in: Share
    missed: Share
    conversations: int

    @classmethod
    def of(cls, entries: Sequence[Entry], welcome: Set[int]) -> Figures:
        """welcome: the messages whose unprompted answers somebody took up."""
        unprompted = [entry for entry in entries if _is_unprompted(entry)]
        silences = [entry for entry in entries if not entry.respond]
        return cls(
            decisions=len(entries),
            answers=sum(entry.respond for entry in entries),
            taken_up=Share(sum(entry.message_id in welcome for entry in unprompted), len(unprompted)),
            butted_in=Share(sum(entry.outcome in BUTTED_IN for entry in unprompted), len(unprompted)),
            missed=Share(sum(entry.outcome is Outcome.MISSED for entry in silences), len(silences)),
            conversations=len({(entry.channel_id, entry.conversation) for entry in entries}),
        )

    def row(self, name: str) -> list[str]:
        mean = f"{self.answers / self.conversations:.2f}" if self.conversations else "-"
        counts = (self.decisions, self.answers, self.taken_up.total)
        return [name, *map(str, (*counts, self.taken_up, self.butted_in, self.missed, self.conversations, mean))]

    @property
    def in_words(self) -> str:
        """What came of its unprompted answers."""
        if not (total := self.taken_up.total):
            return "It gave no unprompted answer."
        neither = Share(total - self.taken_up.count - self.butted_in.count, total)
        return (
            f"Of {total} unprompted answers people took up {self.taken_up}, complained of {self.butted_in}, "
            f"and said nothing to {neither}."
        )


def _is_unprompted(entry: Entry) -> bool:
    """Whether it is an answer although nobody had called the bot, or been asked by it."""
    return entry.respond and entry.reason not in PROMPTED


def taken_up(entries: Sequence[Entry]) -> frozenset[int]:
    """The messages whose unprompted answers somebody replied or reacted to, or whose authors went on with the bot.

    They did where they called it, were answered again and did not mind that, or thanked it, within 5 minutes. What
    butted in was not taken up, whoever replied.
    """
    welcome, went_on_at = set(), dict[tuple[int, int], float]()
    for entry in reversed(entries):
        who = entry.channel_id, entry.author_id
        if _is_unprompted(entry) and entry.outcome not in BUTTED_IN:
            went_on = went_on_at.get(who, math.inf) - entry.at <= TAKEN_UP_SECONDS
            if went_on or entry.outcome is Outcome.TAKEN_UP:
                welcome.add(entry.message_id)
        if (entry.respond and entry.outcome not in BUTTED_IN) or entry.reason == Reason.ACKNOWLEDGEMENT:
            went_on_at[who] = entry.at
    return frozenset(welcome)


@dataclass(frozen=True, slots=True)
class Guess:
    """How likely the follow-up tier held it that a message was meant for the bot, and whether it was."""

    score: float
    meant: bool


@dataclass(frozen=True, slots=True)
class Bin:
    """Guesses of about the same score. score: their mean; meant: the share that was meant for the bot."""

    score: float
    meant: float
    size: int


@dataclass(frozen=True, slots=True)
class Point:
    """What a threshold gives. precision: the share that was meant of what it answers; recall: the reverse."""

    threshold: float
    precision: float
    recall: float


def guesses(entries: Iterable[Entry]) -> list[Guess]:
    """The follow-up tier's decisions. Meant were the answers that nobody minded, and the silences that were missed."""
    return [
        Guess(entry.score, entry.outcome not in BUTTED_IN if entry.respond else entry.outcome is Outcome.MISSED)
        for entry in entries
        if entry.tier == FOLLOWUP_TIER and entry.reason in GUESSED
    ]


def reliability(guessed: Iterable[Guess]) -> list[Bin]:
    """In ten bins of equal width, the empty ones left out."""
    bins: dict[int, list[Guess]] = defaultdict(list)
    for guess in guessed:
        bins[min(int(guess.score * BINS), BINS - 1)].append(guess)
    return [
        Bin(sum(g.score for g in bins[n]) / len(bins[n]), sum(g.meant for g in bins[n]) / len(bins[n]), len(bins[n]))
        for n in sorted(bins)
    ]


def thresholds(guessed: Iterable[Guess]) -> list[Point]:
    """A point for each score that occurs, lowest first. Nothing where nothing was meant."""
    descending = sorted(guessed, key=lambda guess: -guess.score)
    all_meant = sum(guess.meant for guess in descending)
    meant, points = 0, {}
    for count, guess in enumerate(descending, start=1):
        meant += guess.meant
        if all_meant:
            # The last one with this score counts: by then all of them are in.
            points[guess.score] = Point(guess.score, meant / count, meant / all_meant)
    return list(points.values())[::-1]


def report(entries: Sequence[Entry]) -> str:
    """All that is printed of these, oldest first: when it was, what came of it, and the table."""
    if not entries:
        return f"No decisions are logged.\n\n{table(entries)}"
    first, last = (_day(entries[n]).strftime("%-d %B %Y") for n in (0, -1))
    span = first if first == last else f"{first} to {last}"
    words = Figures.of(entries, taken_up(entries)).in_words
    return f"{span} (UTC). {words}\n\n{table(entries)}"


def table(entries: Sequence[Entry]) -> str:
    """All figures: of the whole, by day or week, by reason and by channel, most decisions first. entries: oldest first.

    Channels have the names that they had last.
    """
    welcome = taken_up(entries)
    names = {entry.channel_id: _name(entry) for entry in entries}
    days = {_day(entry) for entry in entries}
    is_daily = len(days) <= MOST_DAYS
    begun = {day: str(day if is_daily else day - timedelta(days=day.weekday())) for day in days}
    rows = [
        list(HEADER),
        Figures.of(entries, welcome).row("all"),
        *_by("day" if is_daily else "week from", lambda e: begun[_day(e)], entries, welcome, in_order=True),
        *_by("reason", lambda entry: entry.reason, entries, welcome),
        *_by("channel", lambda entry: names[entry.channel_id], entries, welcome),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *cells in rows:  # the name to the left, the figures to the right
        figures = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        lines.append("  ".join([name.ljust(widths[0]), *figures]).rstrip())
    return "\n".join(lines)


def _by(
    what: str, key: Callable[[Entry], str], entries: Iterable[Entry], welcome: Set[int], *, in_order: bool = False
) -> list[list[str]]:
    """in_order: by the key itself, in place of the most decisions first."""
    groups: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[key(entry)].append(entry)
    ordered = sorted(groups.items(), key=lambda group: (0 if in_order else -len(group[1]), group[0]))
    blank = [""] * (len(HEADER) - 1)
    return [
        ["", *blank],
        [f"by {what}", *blank],
        *(Figures.of(group, welcome).row(f"  {name}") for name, group in ordered),
    ]


def _day(entry: Entry) -> date:
    return datetime.fromtimestamp(entry.at, UTC).date()


def _name(entry: Entry) -> str:
    """The channel's name with its id, by which channels of one name are told apart; nothing that moves a cursor."""
    shown = "".join(character if character.isprintable() else " " for character in entry.place)
    return f"{shown[:MOST_NAME]} {entry.channel_id}".strip()


def draw(guessed: Sequence[Guess], path: Path) -> None:
    """Both curves beside each other, as a PNG. Raises ImportError without matplotlib, and OSError."""
    import matplotlib as mpl  # noqa: PLC0415 - an extra, for the curves only
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context({"font.size": 11}):
        figure = Figure(figsize=(12, 5.5), layout="constrained")
        left, right = figure.subplots(1, 2)
        bins, points = reliability(guessed), thresholds(guessed)
        left.plot([0, 1], [0, 1], linestyle="--", color="grey", label="as predicted")
        left.plot([b.score for b in bins], [b.meant for b in bins], marker="o", label="as it turned out")
        for b in bins:
            left.annotate(f"n={b.size}", (b.score, b.meant), xytext=(6, -14), textcoords="offset points", fontsize=9)
        _label(left, "Reliability", "predicted score (mean of each bin)", "share meant for the bot")
        at, style = [p.threshold for p in points], {"drawstyle": "steps-pre", "ms": 2}
        right.plot(at, [p.precision for p in points], marker=".", label="precision", **style)
        right.plot(at, [p.recall for p in points], marker=".", ls="-.", label="recall", **style)
        _label(right, "Thresholds", "answer from this score on", "share")
        figure.suptitle(f"Follow-up tier: {len(guessed)} decisions, {sum(g.meant for g in guessed)} meant for the bot")
        figure.savefig(path, format="png", dpi=120)


def _label(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set(title=title, xlabel=x, ylabel=y, xlim=(-0.02, 1.02), ylim=(-0.05, 1.05))
    axes.grid(alpha=0.3)
    axes.legend(loc="best")


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table and draws the curves. Returns the exit code: 2 for what cannot be read or drawn."""
    parser = argparse.ArgumentParser(prog="python -m evals.report", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("log", type=Path, metavar="LOG", help="the decision log, such as .parley/decisions.sqlite3")
    parser.add_argument("--png", type=Path, default=Path("curves.png"), help="where the curves go (%(default)s)")
    given = parser.parse_args(arguments)
    if not given.log.is_file():
        return _fail(f"{given.log} is no file: name the decision log, such as .parley/decisions.sqlite3.")
    try:
        settings = load_settings()
        redis_url, keys = (s.get_secret_value() if s else None for s in (settings.redis_url, settings.state_key))
        entries = DecisionFile(given.log, find_seal(given.log.parent, redis_url, keys)).read()
    except (SettingError, ValueError) as error:
        return _fail(str(error))
    except (sqlite3.Error, StoreError) as error:
        return _fail(f"{given.log} cannot be read as a decision log: {error}.")
    print(f"{report(entries)}\n\n{NOTE}")
    if not (guessed := guesses(entries)):
        print("\nNo decisions by the follow-up tier: there is nothing to draw.")
        return 0
    try:
        draw(guessed, given.png)
    except ImportError:
        return _fail("The curves need matplotlib: install the extra evals (pip install -e '.[evals]').")
    except OSError as error:
        return _fail(f"{given.png} cannot be written ({error.strerror}): name another file by --png.")
    print(f"\nThe curves are in {given.png}.")
    return 0


def _fail(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
