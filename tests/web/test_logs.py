"""web/logs.py: one line per event, and no secret in any."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from pydantic import TypeAdapter, ValidationError

from decision import Reason
from web.logs import HIDDEN, configure_logging

SECRET = "MTk4NjIyNDgzNDcx.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    root, levels = logging.getLogger(), {}
    handlers, level = root.handlers[:], root.level
    for name in ("httpx", "httpx2", "openai", "anthropic", "aiohttp.access"):
        levels[name] = logging.getLogger(name).level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


def configured(level: str = "info", stream: io.StringIO | None = None) -> io.StringIO:
    stream = stream or io.StringIO()
    configure_logging(level, {SECRET}, stream)
    return stream


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_off_a_terminal_each_event_is_one_line_of_json() -> None:
    stream = configured()
    structlog.get_logger().info("decided", channel=5, reason="no_trigger", text="two\nlines")
    (line,) = lines(stream)
    assert line.pop("timestamp").endswith("Z")
    assert line == {"level": "info", "event": "decided", "channel": 5, "reason": "no_trigger", "text": "two\nlines"}


def test_on_a_terminal_it_is_for_people() -> None:
    stream = configured(stream=Terminal())
    structlog.get_logger().info("decided", token=SECRET)
    text = stream.getvalue()
    assert "decided" in text
    assert not text.startswith("{")
    assert SECRET not in text


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()], ids=["file", "terminal"])
def test_a_secret_is_hidden_wherever_it_stands(stream: io.StringIO) -> None:
    configured(stream=stream)
    structlog.get_logger().warning(f"sent {SECRET}", headers={"Authorization": f"Bot {SECRET}"})
    logging.getLogger("discord.http").warning("token %s", SECRET)
    try:
        raise ValueError(SECRET)
    except ValueError:
        structlog.get_logger().exception("broken")
        logging.getLogger("discord.client").exception("broken too")
    text = stream.getvalue()
    assert SECRET not in text
    assert text.count(HIDDEN) >= 5


def test_the_libraries_lines_look_like_ours() -> None:
    stream = configured()
    logging.getLogger("discord.gateway").warning("Shard ID %s is back", 3)
    (line,) = lines(stream)
    assert (line["event"], line["level"]) == ("Shard ID 3 is back", "warning")


def test_a_lost_connection_is_one_line_without_a_traceback() -> None:
    stream = configured()
    try:
        raise ConnectionResetError(104, "reset by peer")
    except OSError:
        logging.getLogger("discord.shard").exception("Attempting a reconnect")
    (line,) = lines(stream)
    assert line["error"] == "ConnectionResetError: [Errno 104] reset by peer"
    assert "Traceback" not in stream.getvalue()


def test_a_connection_that_is_tried_again_is_a_warning_in_one_line() -> None:
    stream = configured()
    try:
        raise RuntimeError("refused")
    except RuntimeError:
        logging.getLogger("discord.shard").exception("Attempting a reconnect for shard ID %s in %.2fs", 0, 1.5)
    (line,) = lines(stream)
    assert (line["level"], line["error"]) == ("warning", "RuntimeError: refused")
    assert "exception" not in line


def test_an_error_of_ours_keeps_its_traceback() -> None:
    stream = configured()
    try:
        _ = 1 / 0
    except ZeroDivisionError:
        structlog.get_logger().exception("turn_broken")
    (line,) = lines(stream)
    assert "ZeroDivisionError" in line["exception"]


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()], ids=["file", "terminal"])
def test_what_could_not_be_validated_is_not_quoted(stream: io.StringIO) -> None:
    configured(stream=stream)
    said = {"said": 'the "bluebell", input_type=x\nblooms'}
    try:
        TypeAdapter(dict[str, int]).validate_python(said)
    except ValidationError as error:
        structlog.get_logger().exception("run_failed")
        structlog.get_logger().warning("refused", detail=str(error))
        structlog.get_logger().warning("refused", detail=error.errors()[0]["msg"])
    text = stream.getvalue()
    assert text.count("unable to parse string as an integer") == 3
    assert text.count("input_value=[hidden]") == 2
    assert "blue" not in text
    assert "bloom" not in text


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()], ids=["file", "terminal"])
def test_what_an_error_quotes_at_length_is_cut(stream: io.StringIO) -> None:
    configured(stream=stream)
    try:
        try:
            raise AssertionError("bluebell " * 100_000)
        except AssertionError as error:
            raise ValueError("wrong") from error
    except ValueError:
        structlog.get_logger().exception("run_failed")
    text = stream.getvalue()
    assert text.count("bluebell") < 1_000
    assert "ValueError: wrong" in text


def test_a_traceback_on_a_terminal_shows_no_variables() -> None:
    stream = configured(stream=Terminal())
    words, headers = "bluebell", {"Authorization": f"Bearer {SECRET}" * 3}
    try:
        _ = len(words) / 0 if headers else 0
    except ZeroDivisionError:
        structlog.get_logger().exception("turn_broken")
    text = stream.getvalue()
    assert "ZeroDivisionError" in text
    assert "locals" not in text
    assert text.count("bluebell") == text.count("Bearer") == 0


@pytest.mark.parametrize(("level", "seen"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_the_level_is_a_threshold(level: str, seen: int) -> None:
    stream = configured(level)
    log = structlog.get_logger()
    for name in ("debug", "info", "warning", "error"):
        getattr(log, name)("said")
    assert len(lines(stream)) == seen


def test_chatty_libraries_speak_from_warnings_on_only() -> None:
    stream = configured("debug")
    for name in ("httpx", "openai", "aiohttp.access"):
        logging.getLogger(name).info("POST /v1/chat/completions")
    logging.getLogger("openai").warning("retrying")
    assert [line["event"] for line in lines(stream)] == ["retrying"]


def test_what_json_does_not_know_is_written_out() -> None:
    stream = configured()
    structlog.get_logger().info("odd", value={1, 2}.__class__)
    assert lines(stream)[0]["value"] == "<class 'set'>"


def test_a_secret_is_hidden_in_the_form_json_gives_it() -> None:
    stream = io.StringIO()
    configure_logging("info", {'pass"word\\1'}, stream)
    structlog.get_logger().info("connected", url='pass"word\\1')
    assert "word" not in stream.getvalue()


def test_counts_by_an_enumeration_or_by_a_number_are_written() -> None:
    stream = configured()
    structlog.get_logger().info("metrics", not_started={Reason.NO_TRIGGER: 3}, by_number={7: 1})
    [line] = lines(stream)
    assert (line["not_started"], line["by_number"]) == ({"no_trigger": 3}, {"7": 1})


def test_of_a_secret_that_begins_with_another_no_end_is_left() -> None:
    stream = io.StringIO()
    for _ in range(5):  # in whatever order they are
        configure_logging("info", [SECRET, f"{SECRET}-and-more"], stream)
        structlog.get_logger().warning("sent", header=f"{SECRET}-and-more")
    assert "and-more" not in stream.getvalue()
