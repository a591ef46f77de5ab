"""agents/mcp_file.py: the MCP file, and what in it is refused with which words."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from agents.mcp_file import INSTALL, MAX_SERVERS, McpError, McpServer, load_mcp

SECRET = "s3cret-of-the-wiki"
ENVIRON = {
    "WIKI_TOKEN": SECRET,
    "EMPTY": "",
    "ACCENTED": "sésame",
    "SHORT": "42",
    "PATH": "/bin:/usr/bin",
    "HOME": "/home/parley",
    "DISCORD_TOKEN": "not-for-servers",
    "OPENAI_API_KEY": "nor-this",
}
OURS = {"PATH": "/bin:/usr/bin", "HOME": "/home/parley"}
Write = Callable[[Any], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes bytes or text as they are, and anything else as JSON."""

    def written(content: Any) -> Path:
        path = tmp_path / "mcp.json"
        text = content if isinstance(content, str | bytes) else json.dumps(content)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return written


def one(fields: Any, name: str = "wiki") -> dict[str, Any]:
    return {"mcpServers": {name: fields}}


def fault(path: Path) -> str:
    with pytest.raises(McpError) as caught:
        load_mcp(path, ENVIRON)
    told = str(caught.value)
    assert str(path) in told
    assert "\n" not in told
    assert told.endswith(".")
    assert SECRET not in told
    assert caught.value.__suppress_context__ or not caught.value.__context__
    return told.replace(str(path), "FILE")


# What is read


def test_all_servers_are_read_in_order(write: Write, tmp_path: Path) -> None:
    files = {"command": "npx", "args": ["-y", "files-server"], "env": {"ROOT": "data"}}
    wiki = {"type": "http", "url": "https://wiki.example/mcp"}
    assert load_mcp(write({"mcpServers": {"files": files, "the wiki": wiki}}), ENVIRON) == (
        McpServer("files", "npx", ("-y", "files-server"), OURS | {"ROOT": "data"}, tmp_path),
        McpServer("the wiki", url="https://wiki.example/mcp"),
    )


def test_the_text_is_read_as_the_file_is_and_sentences_name_the_variable() -> None:
    (server,) = load_mcp(json.dumps(one({"command": "x", "cwd": "servers"})), {})
    assert server.folder == Path("servers")
    for text, told in ((json.dumps(one({})), "In MCP_CONFIG, server 'wiki': "), ("{", "MCP_CONFIG is not valid JSON ")):
        with pytest.raises(McpError, match=told):
            load_mcp(text, {})


def test_a_process_runs_in_the_folder_of_the_file_or_one_beside_it(write: Write, tmp_path: Path) -> None:
    (server,) = load_mcp(write(one({"command": "x", "type": "stdio", "cwd": "servers"})), {})
    assert server.folder == tmp_path / "servers"


def test_variables_are_filled_in_everywhere(write: Write) -> None:
    here = {"command": "${HOME}/run", "args": ["--token=${WIKI_TOKEN}"], "env": {"KEY": "${WIKI_TOKEN}"}}
    there = {"url": "https://wiki.example/${WIKI_TOKEN}", "headers": {"Authorization": "Bearer ${WIKI_TOKEN}"}}
    process, http = load_mcp(write({"mcpServers": {"here": here, "there": there}}), ENVIRON)
    assert (process.command, process.args) == ("/home/parley/run", (f"--token={SECRET}",))
    assert process.env == OURS | {"KEY": SECRET}
    assert (http.url, http.headers) == (f"https://wiki.example/{SECRET}", {"Authorization": f"Bearer {SECRET}"})


@pytest.mark.parametrize(
    ("env", "secrets"),
    [
        ({"A": "${WIKI_TOKEN}"}, {SECRET}),
        ({"A": "x-${WIKI_TOKEN}-${SHORT}"}, {SECRET}),
        ({"API_KEY": "literal-key"}, {"literal-key"}),
        ({"AUTHORIZATION": "Bearer literal-key"}, {"literal-key"}),
        ({"PASSWORD": "short"}, set()),
        ({"FOLDER": "${HOME}/data", "LEVEL": "warning"}, set()),
    ],
)
def test_what_is_secret_is_known(write: Write, env: dict[str, str], secrets: set[str]) -> None:
    (server,) = load_mcp(write(one({"command": "x", "env": env})), ENVIRON)
    assert server.secrets == secrets
    assert not any(secret in repr(server) for secret in (SECRET, "literal-key"))


@pytest.mark.parametrize("url", ["http://localhost:8000/mcp", "http://127.0.0.1/mcp", "http://[::1]:5/"])
def test_an_address_on_this_machine_needs_no_encryption(write: Write, url: str) -> None:
    assert load_mcp(write(one({"url": url})), {})[0].url == url


def test_no_servers_need_no_package(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastmcp", None)
    assert load_mcp(write({"mcpServers": {}}), {}) == ()


# What is refused


def test_a_missing_package_is_named(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastmcp", None)
    told = "needs a package that is not installed: run .venv/bin/pip install -c constraints.txt -e '.[mcp]'."
    assert fault(write(one({"command": "x"}))) == f"The MCP file FILE {told}"


def test_the_command_that_installs_it_stands_in_the_docs() -> None:
    assert f"`{INSTALL}`" in (Path(__file__).parents[2] / "docs" / "agents-and-tools.md").read_text(encoding="utf-8")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    told = "The MCP file FILE cannot be read (No such file or directory): name a file that can be read."
    assert fault(tmp_path / "none.json") == told


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"mcpServers": {"caf\xe9": {}}}', "The MCP file FILE is not UTF-8: save it as such."),
        ("{", "The MCP file FILE is not valid JSON ("),
        ("", "The MCP file FILE is not valid JSON ("),
        ("[" * 200_000, "The MCP file FILE is not valid JSON ("),
        *((content, "The MCP file FILE has another form: use ") for content in ("[]", "{}", "5", '{"mcpServers": []}')),
        ({"mcpServers": {}, "inputs": []}, "The MCP file FILE has another form: use "),
        ({"servers": {}}, "The MCP file FILE has another form: use "),
        ('{"mcpServers": {"a": {}, "a": {}}}', "In the MCP file FILE, 'a' appears twice: give each its own."),
    ],
)
def test_a_file_of_another_form_is_refused(write: Write, content: Any, told: str) -> None:
    assert fault(write(content)).startswith(told)


@pytest.mark.parametrize("count", [MAX_SERVERS + 1, 40_000])
def test_there_are_not_too_many(write: Write, count: int) -> None:
    path = write({"mcpServers": {f"s{number}": {"command": "x"} for number in range(count)}})
    began = time.process_time()
    assert fault(path) == f"The MCP file FILE names {count} servers: keep 50 at most."
    assert time.process_time() - began < 5


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 41])
def test_a_name_that_cannot_be_told_is_refused(write: Write, name: str) -> None:
    assert fault(write(one({"command": "x"}, name))).endswith("use 40 visible characters at most.")


@pytest.mark.parametrize("fields", [5, [], {}, {"args": []}, {"command": "x", "url": "https://wiki.example"}])
def test_a_server_is_a_process_or_an_address(write: Write, fields: Any) -> None:
    told = fault(write(one(fields)))
    assert told.startswith("In the MCP file FILE, server 'wiki': it needs either command or url: use ")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"command": ""}, "command cannot be used: use the program's name or path"),
        ({"command": ["npx"]}, "command cannot be used: use the program's name or path"),
        ({"command": "x", "args": "y"}, "args cannot be used: use a list of texts"),
        ({"command": "x", "args": [5]}, "args cannot be used: use a list of texts"),
        ({"command": "x", "env": {"A": 5}}, "env cannot be used: use an object with texts"),
        ({"command": "x", "type": "http"}, 'type cannot be used: use "stdio"'),
        ({"command": "x", "disabled": True}, "'disabled' is unknown: use command, args, env, cwd, type."),
        ({"url": "https://wiki.example", "type": "sse"}, 'type cannot be used: use "http"'),
        ({"url": "https://wiki.example", "env": {}}, "'env' is unknown: use url, headers, type."),
        ({"url": "https://wiki.example", "headers": []}, "headers cannot be used: use an object with texts"),
        *(
            ({"url": url}, "url cannot be used: use an https:// (or loopback http://) address")
            for url in (
                "http://10.0.0.1",
                "ftp://localhost",
                "https://",
                f"https://wiki:{SECRET}@wiki.example",
                5,
            )
        ),
        ({"url": "https://wiki.example", "headers": {"A B": "x"}}, "the header 'A B' cannot be sent: use a name such"),
        ({"url": "https://wiki.example", "headers": {"Host": "x"}}, "the header 'Host' cannot be sent: use a name"),
        ({"url": "https://wiki.example", "headers": {"X": "a\nb"}}, "the value of the header X cannot be sent: use"),
        ({"url": "https://wiki.example", "headers": {"X": "${ACCENTED}"}}, "the value of the header X cannot be sent"),
        ({"command": "x", "env": {"A": "${NONE}"}}, "it needs the variable 'NONE': set it in the environment."),
        ({"command": "x", "args": ["${EMPTY}"]}, "it needs the variable 'EMPTY': set it in the environment."),
        ({"command": f"${{{SECRET}}}"}, "it has ${...} without a variable: write ${NAME} with a variable's name."),
    ],
)
def test_what_cannot_be_used_is_named_with_the_remedy(write: Write, fields: Any, told: str) -> None:
    assert fault(write(one(fields))).startswith(f"In the MCP file FILE, server 'wiki': {told}")


@pytest.mark.parametrize(
    ("key", "fields"),
    [
        ("args", '{"command": "x", "args": DEEP}'),
        ("env", '{"command": "x", "env": {"A": DEEP}}'),
        ("headers", '{"url": "https://wiki.example", "headers": {"X": DEEP}}'),
    ],
)
def test_what_is_nested_is_no_text(write: Write, key: str, fields: str) -> None:
    for (opening, inner, closing), depth in product([("[", "", "]"), ('{"a":', '"b"', "}")], [2, 250, 500, 900, 950]):
        nested = opening * depth + inner + closing * depth
        told = fault(write(f'{{"mcpServers": {{"wiki": {fields.replace("DEEP", nested)}}}}}'))
        assert re.search(f"server 'wiki': {key} cannot be used: use |is not valid JSON .maximum recursion depth", told)


@pytest.mark.parametrize(
    ("key", "fields"),
    [
        ("command", {"command": "UNFIT"}),
        ("args", {"command": "x", "args": ["a", "UNFIT"]}),
        ("env", {"command": "x", "env": {"A": "UNFIT"}}),
        ("env", {"command": "x", "env": {"UNFIT": "a"}}),
        ("cwd", {"command": "x", "cwd": "UNFIT"}),
    ],
)
def test_what_no_process_can_be_given_is_refused(write: Write, key: str, fields: dict[str, Any]) -> None:
    for unfit in ("\0", "a\0b", "\ud800", "a\udfff"):
        told = fault(write(json.dumps(one(fields)).replace("UNFIT", json.dumps(unfit)[1:-1])))
        assert re.search(f"server 'wiki': {key} (has a NUL or half a character: take|cannot be used: use) ", told)


def test_nor_can_it_come_from_a_variable(write: Write) -> None:
    path = write(one({"command": "x", "args": ["${ODD}"]}))
    with pytest.raises(McpError, match="args has a NUL or half a character: take it out"):
        load_mcp(path, {"ODD": "/data/\udce9"})  # as os.environ has what is not UTF-8
