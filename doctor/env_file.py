"""Writes variables to `.env`. Everything else in the file is kept, and the file is replaced atomically."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

from dotenv import dotenv_values
from dotenv.parser import Binding, parse_stream

PLAIN = re.compile(r"[\w./:@%+,=~-]+", re.ASCII)  # Docker's --env-file takes quotes as part of a value
LINE = re.compile(
    r"""(?P<name>\s*(?:export\s+)?[^=\#\s]+[^\S\r\n]*=(?:[^\S\r\n]++(?!\s|\#))?)
    (?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|(?:\S++|[^\S\r\n]++(?![\#\s]|\Z))*+)
    (?P<rest>(?:[^\S\r\n]++\#[^\r\n]*+)?\s*+)""",
    re.VERBOSE | re.DOTALL,
)


class EnvFile:
    """The variables of a file, which may not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def values(self) -> dict[str, str]:
        """The variables that the file sets."""
        return {name: value for name, value in dotenv_values(self.path).items() if value}

    def set(self, values: Mapping[str, str]) -> None:
        """Sets variables in place, or at the end of the file, which then only its owner may read. Raises OSError."""
        try:
            target = self.path.resolve()  # the file that a link leads to
        except RuntimeError:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(self.path)) from None
        text = target.read_bytes().decode("utf-8-sig") if target.exists() else ""
        bindings = list(parse_stream(StringIO(text, newline="")))
        there = {binding.key for binding in bindings}
        kept = "".join(_line(binding, values) for binding in bindings)
        end = "\r\n" if "\r\n" in text else "\n"
        if kept and not kept.endswith("\n"):
            kept += end
        added = "".join(f"{name}={_quoted(value)}{end}" for name, value in values.items() if name not in there)
        handle, name = tempfile.mkstemp(prefix=".env.", dir=target.parent)  # with mode 600
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(f"{kept}{added}".encode())
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _line(binding: Binding, values: Mapping[str, str]) -> str:
    """The text of a variable in the file, with its new value, if it has one; all around the value stays."""
    line = binding.original.string
    if binding.key is None or binding.key not in values:
        return line
    quoted = _quoted(values[binding.key])
    if found := LINE.fullmatch(line):
        return f"{found['name']}{quoted}{found['rest']}"
    return f"{binding.key}={quoted}\n"


def _quoted(value: str) -> str:
    """The value quoted for python-dotenv. "${" is escaped, since it would begin the name of another variable."""
    if PLAIN.fullmatch(value):
        return value
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("${", "${:-$}{")
    return f"'{escaped}'"
