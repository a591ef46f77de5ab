"""What is read of a terminal, and what is printed there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from doctor.terminal import Terminal


@pytest.mark.parametrize("first", [UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), "key-\udcff"])
def test_what_is_no_text_is_asked_for_again(
    first: str | UnicodeDecodeError, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: Iterator[str | UnicodeDecodeError] = iter([first, " a-key "])

    def reads(_: str) -> str:
        if isinstance(line := next(given), str):
            return line
        raise line

    monkeypatch.setattr("doctor.terminal.getpass", reads)
    assert Terminal().ask_secret("Key:") == "a-key"
    assert "UTF-8" in capsys.readouterr().out


def test_of_a_secret_that_begins_with_another_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal()
    for length in range(8, 20):
        terminal.hide("the-secret-of-mine-all"[:length])
    terminal.hide("the-secret-of-mine-all")
    terminal.say("It is the-secret-of-mine-all.")
    assert capsys.readouterr().out == "It is [hidden].\n"
