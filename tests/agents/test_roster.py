"""agents/roster.py: the AGENTS file, and what in it is refused with which words."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from agents.roster import MAX_AGENTS, AgentEntry, RosterError, load_roster
from tests.support.phrases import labelled

SECRET = "s3cret-of-the-docs"
ENVIRON = {"DOCS_TOKEN": SECRET, "EMPTY": "", "TWO_LINES": f"{SECRET}\n", "ACCENTED": "sésame"}
DOCS = {
    "name": '"docs"',
    "kind": '"ums"',
    "url": '"https://agents.example/docs"',
    "about": '"Knows the handbook."',
}
Write = Callable[[str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(content: str | bytes) -> Path:
        path = tmp_path / "agents.toml"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return written


def table(**fields: str | None) -> str:
    """An agent in TOML; a field that is None is left out."""
    lines = [f"{key} = {value}" for key, value in {**DOCS, **fields}.items() if value is not None]
    return "\n".join(["[[agent]]", *lines, ""])


def fault(path: Path) -> str:
    with pytest.raises(RosterError) as caught:
        load_roster(path, ENVIRON)
    told = str(caught.value)
    assert str(path) in told
    assert "\n" not in told
    assert told.endswith(".")
    assert SECRET not in told
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or not caught.value.__context__
    return told.replace(str(path), "FILE")


# What is read


def test_all_agents_are_read_in_order(write: Write) -> None:
    path = write(table() + table(name='"Users-2"', url='"http://127.0.0.1:8000/"', about='"Users & groups."'))
    assert load_roster(path, {}) == (
        AgentEntry("docs", "ums", "https://agents.example/docs", "Knows the handbook."),
        AgentEntry("Users-2", "ums", "http://127.0.0.1:8000", "Users & groups."),
    )


def test_the_text_is_read_as_the_file_is_and_sentences_name_the_variable() -> None:
    assert [entry.name for entry in load_roster(table(), {})] == ["docs"]
    for text, told in (
        (table(kind=None), "In AGENTS, agent 1 ('docs'): kind is missing"),
        ("[[agent", "AGENTS is not valid TOML "),
    ):
        with pytest.raises(RosterError, match=re.escape(told)):
            load_roster(text, {})


@pytest.mark.parametrize("content", ["", "# nobody yet\n", "agent = []"])
def test_a_file_without_agents_names_none(write: Write, content: str) -> None:
    assert load_roster(write(content), {}) == ()


def test_a_byte_order_mark_is_no_fault(write: Write) -> None:
    assert len(load_roster(write(b"\xef\xbb\xbf" + table().encode()), {})) == 1


@pytest.mark.parametrize("name", ["x", "büro", "a_b-c", "_2", "x" * 40, "generals", "your-self", "docs-agent"])
def test_a_name_is_a_word(write: Write, name: str) -> None:
    assert load_roster(write(table(name=f'"{name}"')), {})[0].name == name


@pytest.mark.parametrize(
    "url",
    [
        "https://agents.example",
        "http://localhost:8000/x",
        "http://127.1.2.3",
        "http://[::1]:8000",
        "https://bücher.example/ä",
    ],
)
def test_a_url_is_encrypted_or_on_this_machine(write: Write, url: str) -> None:
    assert load_roster(write(table(url=f'"{url}"')), {})[0].url == url


def test_headers_are_filled_in_from_the_environment(write: Write) -> None:
    headers = '{ Authorization = "Bearer ${DOCS_TOKEN}", X-Two = "${DOCS_TOKEN}/${A}", X-Plain = "$5, {x}" }'
    entry = load_roster(write(table(headers=headers)), ENVIRON | {"A": "b"})[0]
    assert entry.headers == {
        "Authorization": f"Bearer {SECRET}",
        "X-Two": f"{SECRET}/b",
        "X-Plain": "$5, {x}",
    }


def test_an_entry_is_fixed_and_does_not_show_its_headers(write: Write) -> None:
    entry = load_roster(write(table(headers='{ Authorization = "Bearer ${DOCS_TOKEN}" }')), ENVIRON)[0]
    assert SECRET not in f"{entry!r} {entry}"
    with pytest.raises(FrozenInstanceError):
        entry.url = "https://elsewhere.example"  # type: ignore[misc]
    with pytest.raises(TypeError):
        entry.headers["X"] = "y"  # type: ignore[index]


# What is refused: the file


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert fault(tmp_path / "none.toml").startswith("The agents file FILE cannot be read (No such file or directory)")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"[[agent]]\nname = 'caf\xe9'\n", "The agents file FILE is not UTF-8: save it as such."),
        ("[[agent]\n", "The agents file FILE is not valid TOML ("),
        ('[[agent]]\nname = "docs"\nname = "docs"\n', "The agents file FILE is not valid TOML ("),
        ("{}", "The agents file FILE is not valid TOML ("),
        (f"x = {'[' * 20_000}", "The agents file FILE is not valid TOML ("),
        (f"{table()}x = {'1' * 5_000}", "The agents file FILE is not valid TOML ("),
        ('[agent]\nname = "docs"\n', "agent is not a list of tables: begin each with [[agent]]."),
        ("agent = 5", "agent is not a list of tables: begin each with [[agent]]."),
        ("agent = [1]", "agent is not a list of tables: begin each with [[agent]]."),
        ("[[agents]]\n", "'agents' is unknown: use [[agent]] only."),
        (f"timeout = 5\n{table()}", "'timeout' is unknown: use [[agent]] only."),
    ],
)
def test_a_file_of_another_form_is_refused(write: Write, content: str | bytes, told: str) -> None:
    assert told in fault(write(content))


@pytest.mark.parametrize("depth", [2, 50, 200, 400, 900])
def test_what_is_nested_is_no_text(write: Write, depth: int) -> None:
    told = fault(write(table(headers=f"{{ X = {'[' * depth}{']' * depth} }}")))
    assert re.search(r"is not valid TOML \(maximum recursion depth|headers cannot be used: use a table", told)


@pytest.mark.parametrize("count", [MAX_AGENTS + 1, 2_000])
def test_there_are_not_too_many(write: Write, count: int) -> None:
    path = write("".join(table(name=f'"d{number}"') for number in range(count)))
    assert fault(path) == f"The agents file FILE names {count} agents: keep 50 at most."


# What is refused: an agent


@pytest.mark.parametrize("key", ["name", "kind", "url", "about"])
def test_what_is_missing_is_named(write: Write, key: str) -> None:
    which = "agent 1" if key == "name" else "agent 1 ('docs')"
    assert fault(write(table(**{key: None}))).startswith(f"In the agents file FILE, {which}: {key} is missing: use ")


def test_what_cannot_be_used_is_named_with_the_remedy(write: Write) -> None:
    for value, label in labelled(Path(__file__).with_name("wrong_agents.txt")):
        key, _, remedy = label.partition(": ")
        told = fault(write(table(**{key: value.replace("SECRET", SECRET)})))
        assert f": {key} cannot be used: use " in told, value
        assert remedy in told, value


def test_the_agent_is_named_by_its_place_and_its_name(write: Write) -> None:
    assert fault(write(table() + table(name='"users"', kind='"x"'))).startswith(
        "In the agents file FILE, agent 2 ('users'): kind cannot be used"
    )


def test_an_unknown_key_is_refused(write: Write) -> None:
    told = fault(write(table(headres='{ X = "y" }')))
    assert told.endswith("'headres' is unknown: use name, kind, url, about, headers.")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("docs", "Docs"),
        ("STRASSE", "straße"),
        ("docs", "docs-agent"),
        ("Docs_Agent", "docs"),
        ("do-cs", "do_cs"),
    ],
)
def test_no_two_names_are_said_alike(write: Write, first: str, second: str) -> None:
    path = write(table(name=f'"{first}"') + table(name='"users"') + table(name=f'"{second}"'))
    told = f"agent 3 ('{second}'): name is said like '{first}', another agent's: give each its own."
    assert fault(path) == f"In the agents file FILE, {told}"


@pytest.mark.parametrize("about", ["Größe, 天気 & «more»\u00a0!", "It's 🙂 \U0001fae8.", "{agents}"])
def test_any_text_on_one_line_says_what_it_is_for(write: Write, about: str) -> None:
    assert load_roster(write(table(about=f'"{about}"')), {})[0].about == about


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ('{ Authorization = "Bearer ${NONE}" }', "the header Authorization needs the variable 'NONE': set it in"),
        ('{ Authorization = "${DOCS_TOKEN}${EMPTY}" }', "the header Authorization needs the variable 'EMPTY': set"),
        ('{ X = "${}" }', "the header X has ${...} without a variable: write ${NAME} with a variable's name."),
        (
            f'{{ X = "${{{SECRET}}}" }}',
            "the header X has ${...} without a variable: write ${NAME} with a variable's name.",
        ),
        ('{ X = "${TWO_LINES}" }', "the value of the header X cannot be sent: use ASCII characters on one line."),
        ('{ X = "${ACCENTED}" }', "the value of the header X cannot be sent: use ASCII characters on one line."),
        ('{ X = "a\\r\\nY: b" }', "the value of the header X cannot be sent: use ASCII characters on one line."),
        ('{ X = "a\\u0000" }', "the value of the header X cannot be sent: use ASCII characters on one line."),
        ('{ "X\\r\\nY" = "b" }', r"the header 'X\r\nY' cannot be sent: use a name such as Authorization."),
        ('{ "X Y" = "b" }', "the header 'X Y' cannot be sent: use a name such as Authorization."),
        ('{ "" = "b" }', "the header '' cannot be sent: use a name such as Authorization."),
        ('{ content-Length = "5" }', "the header 'content-Length' cannot be sent: use a name such as Authorization."),
    ],
)
def test_a_header_that_cannot_be_sent_is_named_without_its_value(write: Write, headers: str, told: str) -> None:
    assert told in fault(write(table(headers=headers)))
