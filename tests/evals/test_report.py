"""evals/report.py: the figures, the curves' points, and what comes of a log that cannot be read."""

from __future__ import annotations

import sys
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
    not_taken_up,
    reliability,
    table,
    thresholds,
)
from followup.decision_file import FILE_NAME, DecisionFile
from followup.learning import Entry, Outcome
from storage.sealing import read_keys
from tests.storage.conftest import KEY
from tests.support.people import ANNA, CHANNEL, GUILD

SEAL = read_keys(KEY)
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
        figures = Figures.of([unasked(outcome=outcome), unasked(), unasked(), asked(outcome=outcome), entry()], set())
        assert figures.butted_in == Share(1, 3)
        assert (figures.decisions, figures.answers) == (5, 4)
    missed = [entry(outcome=Outcome.MISSED), entry(), entry(reason="names_others"), asked(), unasked()]
    assert Figures.of(missed, set()).missed == Share(1, 3)
    places = [(1, 1.0), (1, 1.0), (1, 2.0), (2, 1.0)]
    figures = Figures.of([unasked(channel_id=channel, conversation=start) for channel, start in places], set())
    assert (figures.conversations, figures.row("all")[-2:]) == (3, ["3", "1.33"])


def test_an_answer_is_not_taken_up_where_nobody_is_answered_there_within_five_minutes() -> None:
    entries = [
        unasked(message_id=1, at=1000.0),  # by the next one
        asked(message_id=2, at=1300.0),  # itself asked for
        unasked(message_id=3, at=1400.0),  # only silence follows, and an answer elsewhere
        entry(message_id=4, at=1410.0),
        asked(message_id=5, at=1420.0, channel_id=CHANNEL + 1),
        asked(message_id=6, at=1701.0),  # too late for it
        unasked(message_id=7, at=1710.0),  # followed by another unasked one, which is the last
        unasked(message_id=8, at=1720.0),
    ]
    ignored = not_taken_up(entries)
    assert ignored == {3, 8}
    assert Figures.of(entries, ignored).not_taken_up == Share(2, 4)


def test_the_table_shows_the_whole_each_reason_and_each_channel() -> None:
    entries = [
        asked(message_id=1, channel_id=5),
        unasked(message_id=2, channel_id=5),
        unasked(message_id=3, channel_id=6, outcome=Outcome.DELETED),
        entry(message_id=4, channel_id=6, outcome=Outcome.MISSED),
        entry(message_id=5, channel_id=6),
    ]
    lines = [" ".join(line.split()) for line in table(entries).splitlines()]
    assert lines == [
        "decisions answers butted in not taken up missed conversations answers in each",
        "all 5 3 50.0 % (1 of 2) 100.0 % (2 of 2) 50.0 % (1 of 2) 2 1.50",
        "",
        "by reason",
        "followup 2 2 50.0 % (1 of 2) 100.0 % (2 of 2) - 2 1.00",
        "no_trigger 2 0 - - 50.0 % (1 of 2) 1 0.00",
        "explicit_trigger 1 1 - - - 1 1.00",
        "",
        "by channel",
        "6 3 1 100.0 % (1 of 1) 100.0 % (1 of 1) 50.0 % (1 of 2) 1 1.00",
        "5 2 2 0.0 % (0 of 1) 100.0 % (1 of 1) - 1 2.00",
    ]


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
    assert out == f"{table(entries)}\n\n{NOTE}\n\nThe curves are in {png}.\n"
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
    assert " ".join(out.splitlines()[1].split()) == "all 0 0 - - - 0 -"
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
    assert out.startswith(table([entry()]))
    assert "install the extra evals" in err
