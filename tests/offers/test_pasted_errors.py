"""offers/pasted_errors.py: what programs print when they fail, and what people say of it."""

from __future__ import annotations

from pathlib import Path

from offers.pasted_errors import pastes_error
from tests.support.phrases import labelled

TABLE = [
    (line.replace("\\n", "\n").replace("\\t", "\t"), label)
    for line, label in labelled(Path(__file__).with_name("pasted_errors.txt"))
]
FORMS = ("{}", "hi, I get this:\n```\n{}\n```\nany ideas?", "> {}", "```{}```", "so\n{}\n\nhm")


def test_what_a_program_printed_is_known_also_within_a_message() -> None:
    printed = [form.format(text) for text, label in TABLE if label == "printed" for form in FORMS]
    assert len(printed) > 100
    assert [text for text in printed if not pastes_error(text)] == []


def test_what_people_say_is_none() -> None:
    assert [text for text, label in TABLE if label == "said" and pastes_error(text)] == []
    assert not pastes_error("")


def test_only_so_much_is_read() -> None:
    assert not pastes_error("x" * 4_000 + "\nnpm ERR! code ERESOLVE")
