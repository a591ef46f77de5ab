"""evals/report.py: the figures, the curves' points, and what comes of a log that cannot be read."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evals.report import (
    NOTE,
    Bin,
    Figures,
    Guess,
    Point,
    Share,
    guesses,
    main,
    reliability,
    report,
    table,
    taken_up,
    thresholds,
)
from followup.decision_file import FILE_NAME, DecisionFile
from followup.learning import Entry, Outcome
from storage.sealing import read_keys
from tests.storage.conftest import KEY
from tests.support.people import ANNA, BEN, CHANNEL, GUILD

SEAL = read_keys(KEY)
DAY = datetime(2026, 3, 2, 12, tzinfo=UTC).timestamp()  # a Monday
PNG = b"\x89PNG\r\n\x1a\n"


def entry(message_id: int = 1, **more: Any) -> Entry:
    given: dict[str, Any] = {
        "channel_id": CHANNEL,
        "guild_id": GUILD,
        "author_id": ANNA,
        "conversation": 1.0,
        "at": 1.0,
        "respond": False,
        "reason": "no_trigger",
        "tier": 2,
        "score": 0.1,
        "evidence": "",
    }
    return Entry(message_id, **(given | more))


def asked(**more: Any) -> Entry:
    return entry(respond=True, reason="explicit_trigger", tier=1, score=1.0, **more)


def unasked(**more: Any) -> Entry:
    given: dict[str, Any] = {"respond": True, "reason": "followup", "score": 0.9}
    return entry(**(given | more))


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STATE_KEY", KEY)
    return tmp_path / FILE_NAME


# The figures


def test_it_butted_in_where_it_was_not_welcome_and_missed_where_it_was_mentioned_after_a_silence() -> None:
    for outcome in (Outcome.TOLD_OFF, Outcome.DELETED, Outcome.DISLIKED):
        entries = [unasked(outcome=outcome), unasked(), unasked(), asked(outcome=outcome), entry()]
        figures = Figures.of(entries, set())
        assert figures.butted_in == Share(1, 3)
        assert (figures.decisions, figures.answers) == (5, 4)
    missed = [entry(outcome=Outcome.MISSED), entry(), entry(reason="names_others"), asked(), unasked()]
    assert Figures.of(missed, set()).missed == Share(1, 3)
    places = [(1, 1.0), (1, 1.0), (1, 2.0), (2, 1.0)]
    figures = Figures.of([unasked(channel_id=channel, conversation=start) for channel, start in places], set())
    assert (figures.conversations, figures.row("all")[-2:]) == (3, ["3", "1.33"])


@pytest.mark.parametrize(
    ("later", "is_taken_up"),
    [
        ((), False),
        ((entry(at=1010.0),), False),  # silence: it was said to somebody else
        ((unasked(at=1300.0),), True),
        ((unasked(at=1301.0),), False),
        ((asked(at=1010.0),), True),
        ((entry(at=1010.0, reason="acknowledgement"),), True),
        ((asked(at=1010.0, author_id=BEN),), False),  # about whatever
        ((asked(at=1010.0, channel_id=CHANNEL + 1),), False),
        ((unasked(at=1010.0, outcome=Outcome.TOLD_OFF),), False),
    ],
)
def test_an_answer_is_taken_up_where_whoever_was_answered_goes_on_with_the_bot(
    later: tuple[Entry, ...], is_taken_up: bool
) -> None:
    assert (1 in taken_up([unasked(at=1000.0), *(replace(one, message_id=2) for one in later)])) is is_taken_up


def test_a_reply_or_a_reaction_takes_it_up_but_not_where_it_was_not_welcome_nor_what_was_asked_for() -> None:
    liked = {"outcome": Outcome.TAKEN_UP}
    entries = [unasked(message_id=1, **liked), asked(message_id=2, **liked), unasked(message_id=3, at=900.0)]
    assert taken_up(entries) == {1}
    told_off = unasked(message_id=1, at=1000.0, outcome=Outcome.TOLD_OFF)
    assert taken_up([told_off, asked(message_id=2, at=1010.0)]) == set()
    awaited = unasked(message_id=1, reason="awaited", **liked)
    assert taken_up([awaited]) == set()


def test_the_report_shows_dates_names_and_what_came_of_unprompted_answers() -> None:
    there, gone = {"channel_id": 5, "place": "#trains (Club)"}, {"channel_id": 6}
    entries = [
        asked(message_id=1, at=DAY, **(there | {"place": "#old-name (Club)"})),
        unasked(message_id=2, at=DAY + 10, **there),
        unasked(message_id=3, at=DAY + 86_400, outcome=Outcome.DELETED, **gone),
        entry(message_id=4, at=DAY + 86_400, outcome=Outcome.MISSED, **gone),
        entry(message_id=5, at=DAY + 86_400, author_id=BEN, **gone),
        unasked(message_id=6, at=DAY + 86_410, outcome=Outcome.TAKEN_UP, **there),
    ]
    lines = [" ".join(line.split()) for line in report(entries).splitlines()]
    assert lines == [
        "2 March 2026 to 3 March 2026 (UTC). Of 3 unprompted answers people took up 33.3 % (1 of 3), complained of "
        "33.3 % (1 of 3), and said nothing to 33.3 % (1 of 3).",
        "",
        "decisions answers unprompted taken up butted in missed conversations answers in each",
        "all 6 4 3 33.3 % (1 of 3) 33.3 % (1 of 3) 50.0 % (1 of 2) 2 2.00",
        "",
        "by day",
        "2026-03-02 2 2 1 0.0 % (0 of 1) 0.0 % (0 of 1) - 1 2.00",
        "2026-03-03 4 2 2 50.0 % (1 of 2) 50.0 % (1 of 2) 50.0 % (1 of 2) 2 1.00",
        "",
        "by reason",
        "followup 3 3 3 33.3 % (1 of 3) 33.3 % (1 of 3) - 2 1.50",
        "no_trigger 2 0 0 - - 50.0 % (1 of 2) 1 0.00",
        "explicit_trigger 1 1 0 - - - 1 1.00",
        "",
        "by channel",
        "#trains (Club) 5 3 3 2 50.0 % (1 of 2) 0.0 % (0 of 2) - 1 3.00",
        "6 3 1 1 0.0 % (0 of 1) 100.0 % (1 of 1) 50.0 % (1 of 2) 1 1.00",
    ]


def test_more_than_two_weeks_are_put_together_in_weeks() -> None:
    entries = [entry(message_id=day, at=DAY + 86_400 * day) for day in range(20)]
    shown = table(entries)
    weeks = [line.split()[0] for line in shown.splitlines() if line.startswith("  2026")]
    assert "by week from" in shown
    assert weeks == ["2026-03-02", "2026-03-09", "2026-03-16"]


def test_a_channels_name_moves_no_cursor() -> None:
    shown = table([entry(place="#\x1b[2J\n\u202eevil (Club)")])
    assert "\x1b" not in shown
    assert "\u202e" not in shown


# The points of the curves


def test_guesses_are_the_follow_up_tiers_own_choices_and_meant_what_nobody_minded_or_was_missed() -> None:
    assert guesses(
        [
            unasked(score=0.9),
            unasked(score=0.8, outcome=Outcome.TOLD_OFF),
            entry(score=0.3, outcome=Outcome.MISSED),
            entry(score=0.2),
        ]
    ) == [Guess(0.9, meant=True), Guess(0.8, meant=False), Guess(0.3, meant=True), Guess(0.2, meant=False)]
    others = [asked(), entry(tier=3), entry(tier=0), entry(reason="user_cap"), entry(reason="told_off")]
    by_rule = [entry(reason="names_others", score=0.0), unasked(reason="recent_followup", score=1.0)]
    assert guesses(others + by_rule) == []


def test_each_threshold_has_its_precision_and_recall_and_each_bin_its_share() -> None:
    guessed = [Guess(0.2, meant=False), Guess(0.8, meant=True), Guess(0.5, meant=True), Guess(0.5, meant=False)]
    assert thresholds(guessed) == [Point(0.2, 0.5, 1.0), Point(0.5, 2 / 3, 1.0), Point(0.8, 1.0, 0.5)]
    assert thresholds([Guess(0.5, meant=False)]) == []
    guessed = [Guess(0.0, meant=False), Guess(0.09, meant=True), Guess(0.95, meant=True), Guess(1.0, meant=True)]
    assert reliability(guessed) == [Bin(0.045, 0.5, 2), Bin(0.975, 1.0, 2)]


# The command


@pytest.mark.slow
@pytest.mark.parametrize("png", ["curves.png", "elsewhere.png"])
def test_it_prints_the_table_and_draws_the_curves(
    log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, png: str
) -> None:
    monkeypatch.chdir(log.parent)
    entries = [entry(n, score=n / 10, outcome=Outcome.MISSED if n % 3 else None) for n in range(1, 10)]
    DecisionFile(log, SEAL).write(entries)
    before = log.read_bytes()
    assert main([str(log), *(["--png", png] if png == "elsewhere.png" else [])]) == 0
    out, err = capsys.readouterr()
    assert out == f"{report(entries)}\n\n{NOTE}\n\nThe curves are in {png}.\n"
    assert err == ""
    assert Path(png).read_bytes().startswith(PNG)
    assert log.read_bytes() == before
    assert sorted(path.name for path in log.parent.iterdir()) == sorted([png, FILE_NAME])


@pytest.mark.parametrize("bytes_of_file", [b"", None])
def test_an_empty_log_is_all_zeros_and_draws_nothing(
    log: Path, capsys: pytest.CaptureFixture[str], bytes_of_file: bytes | None
) -> None:
    if bytes_of_file is None:
        DecisionFile(log, SEAL, max_rows=0).write([entry()])
    else:
        log.write_bytes(bytes_of_file)
    png = log.with_name("curves.png")
    assert main([str(log), "--png", str(png)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("No decisions are logged.\n")
    assert "all 0 0 0 - - - 0 -" in " ".join(out.split())
    assert out.endswith("there is nothing to draw.\n")
    assert err == ""
    assert not png.exists()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("nothing", "is no file"),
        (b"no database", "cannot be read as a decision log"),
        (b"no database at all " * 100, "cannot be read as a decision log"),
        ("a row", "--png"),
    ],
)
def test_what_cannot_be_read_or_written_costs_one_sentence(
    log: Path, capsys: pytest.CaptureFixture[str], content: str | bytes, told: str
) -> None:
    if isinstance(content, bytes):
        log.write_bytes(content)
    elif content == "a row":
        DecisionFile(log, SEAL).write([entry()])
    before = log.read_bytes() if log.exists() else None
    assert main([str(log), "--png", str(log.parent)]) == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.endswith(".\n")
    assert err.count("\n") == 1
    assert (log.read_bytes() if log.exists() else None) == before


def test_without_matplotlib_the_table_still_comes(
    log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    DecisionFile(log, SEAL).write([entry()])
    assert main([str(log)]) == 2
    out, err = capsys.readouterr()
    assert out.startswith(report([entry()]))
    assert "install the extra evals" in err
