"""The MCP file: which MCP servers lend the general agent their tools. It is JSON, in the usual form:

    {"mcpServers": {
        "files": {"command": "npx", "args": ["-y", "files-server", "data"], "env": {"API_KEY": "${FILES_KEY}"}},
        "wiki": {"url": "https://wiki.example/mcp", "headers": {"Authorization": "Bearer ${WIKI_TOKEN}"}}
    }}

`${NAME}` in any of these texts is an environment variable.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo

from agents.owners_files import (
    VARIABLE,
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

MAX_TOOL_BYTES = 16_384  # of a tool's name and schema, as JSON; a description is cut
MAX_SERVERS = 50
MAX_NAME = 40
# The environment variables that a server's process inherits. The mcp package adds LOGNAME, SHELL, TERM and USER.
INHERITED = ("HOME", "LANG", "PATH")
SECRET_NAME = re.compile("key|token|secret|passw|auth|credential", re.IGNORECASE)
# A shorter secret is not hidden, as it occurs in too many harmless texts.
MIN_SECRET = 6
UNFIT = re.compile("[\0\ud800-\udfff]")  # NUL and lone surrogates, which cannot be passed to a process
INSTALL = ".venv/bin/pip install -c constraints.txt -e '.[mcp]'"


class McpError(ValueError):
    """An MCP file that cannot be used. Its text is one sentence for the owner that names file, server and remedy."""


@dataclass(frozen=True, slots=True)
class McpServer:
    """A server as the file describes it, with the variables' values: a process to start (command, args, env, folder),
    or a server reached by HTTP (url, headers).

    env: the environment of the process, inherited and from the file. folder: its working directory. secrets: values to
    hide in all texts of the server.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    folder: Path = Path()
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)


def load_mcp(source: Path | str, environ: Mapping[str, str]) -> tuple[McpServer, ...]:
    """Reads the servers, in order. source: the file, or its text; in a text, paths are relative to the working
    directory.

    environ: for `${NAME}`, and for what processes inherit. Raises McpError, also for a missing package.
    """
    where, folder = named(source, "MCP", "MCP_CONFIG"), Path() if isinstance(source, str) else source.parent
    try:
        content = parsed(source, where, "JSON", partial(json.loads, object_pairs_hook=_unique), McpError)
    except EntryError as error:
        raise McpError(f"In {where}, {error}.") from None
    entries = content.get("mcpServers") if isinstance(content, dict) and len(content) == 1 else None
    if not isinstance(entries, dict):
        raise McpError(sentence(f'{where} has another form: use {{"mcpServers": {{"name": {{...}}}}}}.'))
    if len(entries) > MAX_SERVERS:
        raise McpError(sentence(f"{where} names {len(entries)} servers: keep {MAX_SERVERS} at most."))
    servers: list[McpServer] = []
    for name, fields in entries.items():
        try:
            servers.append(_server(name, fields, folder, environ))
        except EntryError as error:
            raise McpError(f"In {where}, server {shown(name)}: {error}.") from None
    if servers and find_spec("fastmcp") is None:
        raise McpError(sentence(f"{where} needs a package that is not installed: run {INSTALL}."))
    return tuple(servers)


def _fit(value: str, info: ValidationInfo) -> str:
    if UNFIT.search(value):
        raise EntryError(f"{info.field_name} has a NUL or half a character: take it out")
    return value


def _filled(value: str, info: ValidationInfo) -> str:
    """Fills in the variables. info.context: the environment."""
    return filled(value, info.context or {}, "it")


Text = Annotated[str, AfterValidator(_filled), AfterValidator(_fit)]


class _Process(BaseModel):
    """A server to be started, for checked()."""

    model_config = ConfigDict(extra="forbid", strict=True)

    command: Text = Field(description='the program\'s name or path, such as "npx"', min_length=1)
    args: list[Text] = Field([], description='a list of texts, such as ["-y", "files-server"]')
    env: dict[Annotated[str, AfterValidator(_fit)], Text] = Field(
        {}, description='an object with texts, such as {"API_KEY": "${NAME}"}'
    )
    cwd: Text = Field("", description="the path of a folder, relative to the file's")
    type: Literal["stdio"] = Field("stdio", description='"stdio", or leave it out')


class _Http(BaseModel):
    """A server to be reached, for checked()."""

    model_config = ConfigDict(extra="forbid", strict=True)

    url: Annotated[Text, AfterValidator(checked_url)] = Field(
        description="an https:// (or loopback http://) address without user and password"
    )
    headers: dict[Annotated[str, AfterValidator(header_name)], Text] = Field(
        {}, description='an object with texts, such as {"Authorization": "Bearer ${NAME}"}'
    )
    type: Literal["http", "streamable-http"] = Field("http", description='"http", or leave it out')


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for key, count in Counter(key for key, _ in pairs).items():
        if count > 1:
            raise EntryError(f"{shown(key)} appears twice: give each its own")
    return dict(pairs)


def _server(name: str, fields: Any, folder: Path, environ: Mapping[str, str]) -> McpServer:
    if not name.strip() or not name.isprintable() or len(name) > MAX_NAME:
        raise EntryError(f"its name cannot be used: use {MAX_NAME} visible characters at most")
    if not isinstance(fields, dict) or ("command" in fields) == ("url" in fields):
        raise EntryError('it needs either command or url: use {"command": ..., "args": [...]} or {"url": ...}')
    if "url" in fields:
        http = checked(_Http, fields, environ)
        headers = {header: header_value(header, value) for header, value in http.headers.items()}
        secrets = frozenset(_secrets(fields, environ))
        return McpServer(name, url=http.url, headers=MappingProxyType(headers), secrets=secrets)
    process = checked(_Process, fields, environ)
    env = {variable: environ[variable] for variable in INHERITED if variable in environ} | process.env
    where, secrets = folder / process.cwd, frozenset(_secrets(fields, environ))
    return McpServer(name, process.command, tuple(process.args), MappingProxyType(env), where, secrets=secrets)


def _secrets(value: Any, environ: Mapping[str, str], name: str = "") -> Iterator[str]:
    """The secrets: the variables' values, and texts whose name shows that they are secret."""
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _secrets(one, environ, str(key))
    elif isinstance(value, str):
        named = [environ.get(variable, "") for variable in VARIABLE.findall(value) if variable not in INHERITED]
        literal = value.split()[-1:] if SECRET_NAME.search(name) and not VARIABLE.search(value) else []
        yield from (secret for secret in (*named, *literal) if len(secret) >= MIN_SECRET)
