"""Shared by the readers of the owner's files, which are given as a Path, or as their text in a str."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

MAX_SHOWN = 80
VARIABLE = re.compile(r"\$\{([^{}]*)\}")
# RFC 9110: a field's name is a token; a value should be ASCII.
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
HTTPS_OWN = frozenset("connection content-encoding content-length content-type expect host transfer-encoding".split())


class EntryError(Exception):
    """An entry that cannot be used. Its text says what is wrong, and what would be right."""


def named(source: Path | str, name: str, variable: str) -> str:
    """The name of a source in a sentence: the file, or, without its text, the variable."""
    return variable if isinstance(source, str) else f"the {name} file {source}"


def parsed(source: Path | str, where: str, form: str, parse: Callable[[str], Any], fault: type[Exception]) -> Any:
    """Parses a source. where: its name, from named(); form: the name of its format. Raises fault with a sentence."""
    try:
        return parse(source if isinstance(source, str) else source.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise fault(sentence(f"{where} cannot be read ({error.strerror}): name one that can.")) from None
    except UnicodeDecodeError:
        raise fault(sentence(f"{where} is not UTF-8: save it as such.")) from None
    except (ValueError, RecursionError) as error:  # the parser's own, or int()'s for too many digits
        raise fault(sentence(f"{where} is no {form} ({error}): correct it there.")) from None


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def check_header(name: str) -> None:
    if not HEADER_NAME.fullmatch(name) or name.lower() in HTTPS_OWN:
        raise EntryError(f"the header {shown(name)} cannot be sent: use a name such as Authorization")


def header_value(name: str, value: str) -> str:
    """Checks a header's value, which is secret, so that no error shows it."""
    check_header(name)
    if not HEADER_VALUE.fullmatch(value):
        raise EntryError(f"the value of the header {name} cannot be sent: use ASCII characters on one line")
    return value


def shown(text: str) -> str:
    """A text of the file for use in a sentence: in quotes, and cut."""
    return repr(text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…")
