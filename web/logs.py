"""Logs: one line per event on stderr, JSON unless that is a terminal, with every secret and what was said taken out."""

from __future__ import annotations

import logging
import re
import sys
import traceback
import warnings
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any, TextIO

import orjson
import structlog
from structlog.typing import EventDict, ExcInfo, Processor

from discord_io.split import clipped

HIDDEN = "[hidden]"
MAX_LINE = 2_000  # characters of what a traceback says of a frame or an error: some quote a whole response
# What pydantic quotes, shortened, of what it could not validate: it may be what people said.
QUOTED = re.compile(r"input_value=.{1,200}(?=, input_type=\w+\])")


def configure_logging(level: str, secrets: Collection[str], stream: TextIO = sys.stderr) -> None:
    """Sets up structlog, and standard logging of libraries in its format. level: debug, info, warning or error."""
    threshold = logging.getLevelNamesMapping()[level.upper()]
    rendering: list[Processor] = (
        # The default formatter shows each frame's variables if "rich" is installed: people's words, and secrets.
        [structlog.dev.ConsoleRenderer(exception_formatter=lambda out, info: print(_traceback(info), file=out))]
        if stream.isatty()
        else [_as_json]
    )
    rendering.append(_hide(secrets))
    structlog.configure(
        processors=[_with_head, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(stream)
    foreign = [_one_line_errors, structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering]
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=[_with_head], processors=foreign))
    logging.basicConfig(handlers=[handler], level=max(threshold, logging.INFO), force=True)
    ignore_warnings()
    for chatty in ("httpx", "httpx2", "openai", "anthropic", "aiohttp.access"):
        logging.getLogger(chatty).setLevel(max(threshold, logging.WARNING))


def ignore_warnings() -> None:
    """Ignores what libraries warn of, but for mistakes in code: pydantic-ai quotes what a server sent, and Python keeps
    each such text."""
    warnings.simplefilter("ignore")
    warnings.simplefilter("default", RuntimeWarning)


def _with_head(_logger: Any, level: str, event: EventDict) -> EventDict:
    """Puts time, level and event at the front of the line."""
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    return {"timestamp": now, "level": level, "event": event["event"], **event}


def _as_json(logger: Any, method: str, event: EventDict) -> str:
    """The line as JSON, an exception formatted. One processor, as each message in a conversation has a line."""
    if "exc_info" in event:
        event = _with_traceback(logger, method, event)
    return _json(event)


def _traceback(exc_info: ExcInfo) -> str:
    return "\n".join(clipped(line.rstrip("\n"), MAX_LINE) for line in traceback.format_exception(*exc_info))


_with_traceback = structlog.processors.ExceptionRenderer(_traceback)


def _json(value: Any) -> str:
    return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def _hide(secrets: Collection[str]) -> Processor:
    # Longest first: if one secret begins with another, its end must not be left.
    forms = sorted({form for secret in secrets for form in (secret, _json(secret)[1:-1])}, key=len, reverse=True)

    def hide(_logger: Any, _method: str, line: Any) -> str:
        for secret in forms:
            line = line.replace(secret, HIDDEN)
        return QUOTED.sub(f"input_value={HIDDEN}", line) if "input_value=" in line else str(line)

    return hide


def _one_line_errors(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Shortens a library's traceback of a lost connection to its last line, which says as much."""
    error = event.get("exc_info")
    reconnects = event["_record"].name == "discord.shard" and str(event["event"]).startswith("Attempting a reconnect")
    if reconnects:
        event["level"] = "warning"  # for discord.py it is an error
    if isinstance(error, tuple) and (reconnects or isinstance(error[1], OSError)):
        event["error"] = f"{type(error[1]).__name__}: {error[1]}"
        event["exc_info"] = None
    return event
