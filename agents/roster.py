"""The AGENTS file: which agents there are besides the general one. It is TOML, with a table for each:

    [[agent]]
    name = "docs"                        # what people call it by
    kind = "ums"
    url = "https://agents.example/docs"
    about = "Knows the handbook."        # what it is for, in a line
    headers = { Authorization = "Bearer ${DOCS_TOKEN}" }

`${NAME}` in a header is an environment variable.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from agents.owners_files import (
    EntryError,
    checked,
    checked_url,
    filled,
    header_name,
    header_value,
    named,
    parsed,
    sentence,
    shown,
)
from agents.picking import YOURSELF, spoken
from state.agent_state import GENERAL

MAX_AGENTS = 50
MAX_ABOUT = 200
RESERVED = frozenset({GENERAL, YOURSELF, "agent", ""})  # in their spoken form; nobody can call ""
NOT_IN_A_LINE = frozenset({"Cc", "Cf", "Zl", "Zp"})  # Unicode's categories: control, format, line and paragraph marks


class RosterError(ValueError):
    """An AGENTS file that cannot be used. Its text is one sentence for the owner that names file, agent and remedy."""


@dataclass(frozen=True, slots=True)
class AgentEntry:
    """An agent as the file describes it. url: without a trailing slash; headers: with the variables' values."""

    name: str
    kind: Literal["ums"]
    url: str
    about: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def load_roster(source: Path | str, environ: Mapping[str, str]) -> tuple[AgentEntry, ...]:
    """Reads the agents, in order. source: the file, or its text. environ: for `${NAME}` in a header.

    Raises RosterError.
    """
    where = named(source, "agents", "AGENTS")
    content = parsed(source, where, "TOML", tomllib.loads, RosterError)
    tables: Any = content.pop("agent", [])
    if content:
        raise RosterError(f"In {where}, {shown(next(iter(content)))} is unknown: use [[agent]] only.")
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise RosterError(f"In {where}, agent is not a list of tables: begin each with [[agent]].")
    if len(tables) > MAX_AGENTS:
        raise RosterError(sentence(f"{where} names {len(tables)} agents: keep {MAX_AGENTS} at most."))
    entries: dict[str, AgentEntry] = {}
    for number, fields in enumerate(tables, 1):
        try:
            table = checked(_Table, fields)
            headers = {n: header_value(n, filled(v, environ, f"the header {n}")) for n, v in table.headers.items()}
            if other := entries.get(spoken(table.name)):
                raise EntryError(f"name is said like {shown(other.name)}, another agent's: give each its own")
        except EntryError as error:
            name = fields.get("name")
            which = f"agent {number} ({shown(name)})" if isinstance(name, str) else f"agent {number}"
            raise RosterError(f"In {where}, {which}: {error}.") from None
        url, about = table.url.rstrip("/"), table.about
        entries[spoken(table.name)] = AgentEntry(table.name, table.kind, url, about, MappingProxyType(headers))
    return tuple(entries.values())


def _name(value: str) -> str:
    if not re.fullmatch(r"[\w-]{1,40}", value) or spoken(value) in RESERVED:
        raise ValueError("no name")
    return value


def _about(value: str) -> str:
    if not value.strip() or any(unicodedata.category(character) in NOT_IN_A_LINE for character in value):
        raise ValueError("not one line")
    return value


class _Table(BaseModel):
    """One agent as written in the file, for checked()."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, AfterValidator(_name)] = Field(
        description="a word of letters, digits, - and _, of 40 characters at most, that has a letter or a digit and "
        "is not said like general, agent or yourself"
    )
    kind: Literal["ums"] = Field(description='"ums"')
    url: Annotated[str, AfterValidator(checked_url)] = Field(
        pattern=r"^[^\s\x00-\x1f\x7f?#]*$",
        description="an https:// (or loopback http://) address without user, query and fragment, "
        "such as https://agents.example/docs",
    )
    about: Annotated[str, AfterValidator(_about)] = Field(
        max_length=MAX_ABOUT,
        description=f"one line of {MAX_ABOUT} characters at most, without control and format characters, that says "
        "what it is for",
    )
    headers: dict[Annotated[str, AfterValidator(header_name)], str] = Field(
        {}, description='a table such as { Authorization = "Bearer ${NAME}" }'
    )
