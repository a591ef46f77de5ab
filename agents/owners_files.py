"""Shared by the readers of the owner's files, which are given as a Path, or as their text in a str."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from yarl import URL

from setting_values import is_loopback

Form = TypeVar("Form", bound=BaseModel)

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
        raise fault(sentence(f"{where} cannot be read ({error.strerror}): name a file that can be read.")) from None
    except UnicodeDecodeError:
        raise fault(sentence(f"{where} is not UTF-8: save it as such.")) from None
    except (ValueError, RecursionError) as error:  # the parser's own, or int()'s for too many digits
        raise fault(sentence(f"{where} is not valid {form} ({error}): correct it there.")) from None


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def checked(form: type[Form], fields: object, environ: Mapping[str, str] | None = None) -> Form:
    """Reads an entry of this form, in which a field's description completes the sentence "use ...". environ: for the
    form's own checks, as their context. Raises EntryError."""
    try:
        return form.model_validate(fields, context=environ)
    except ValidationError as error:
        kind, key = error.errors()[0]["type"], str(error.errors()[0]["loc"][0])
        if kind == "extra_forbidden":
            raise EntryError(f"{shown(key)} is unknown: use {', '.join(form.model_fields)}") from None
        wrong = "is missing" if kind == "missing" else "cannot be used"
        raise EntryError(f"{key} {wrong}: use {form.model_fields[key].description}") from None


def header_name(name: str) -> str:
    if not HEADER_NAME.fullmatch(name) or name.lower() in HTTPS_OWN:
        raise EntryError(f"the header {shown(name)} cannot be sent: use a name such as Authorization")
    return name


def header_value(name: str, value: str) -> str:
    """Checks a header's value, which is secret, so that no error shows it."""
    if not HEADER_VALUE.fullmatch(value):
        raise EntryError(f"the value of the header {name} cannot be sent: use ASCII characters on one line")
    return value


def filled(value: str, environ: Mapping[str, str], where: str) -> str:
    """Fills in the variables. where: where the value stands, which begins the error."""
    for variable in VARIABLE.findall(value):
        if not variable.isidentifier():  # it may be the secret itself, so it is not shown
            raise EntryError(f"{where} has ${{...}} without a variable: write ${{NAME}} with a variable's name")
        if not environ.get(variable):
            raise EntryError(f"{where} needs the variable {shown(variable)}: set it in the environment")
    return VARIABLE.sub(lambda found: environ[found[1]], value)


def checked_url(value: str) -> str:
    """Checks a URL. Credentials and people's words are sent there, so it must be encrypted, or on this machine. Parsed
    by yarl, as aiohttp does."""
    url = URL(value)
    is_safe = url.scheme == "https" or (url.scheme == "http" and is_loopback(url.host))
    if not url.host or url.raw_user or url.raw_password or not is_safe:
        raise ValueError("not encrypted, and not loopback")
    return value


def shown(text: str) -> str:
    """A text of the file for use in a sentence: in quotes, and cut."""
    return repr(text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…")
