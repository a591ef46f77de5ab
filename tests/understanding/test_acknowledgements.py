"""understanding/acknowledgements.py: what asks for no answer."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.support.phrases import labelled
from understanding.acknowledgements import Acknowledgement, bare_acknowledgement


def test_the_table_of_acknowledgements_holds() -> None:
    table = labelled(Path(__file__).with_name("acknowledged.txt"))
    assert [row for row in table if (bare_acknowledgement(row[0]) or "none") != row[1]] == []
    long = ["ok " * 9, "thanks" + "!" * 95, "👍" * 100_000, ":)" * 100_000, "talking " * 100_000]
    assert not any(map(bare_acknowledgement, ("", "   ", *long)))


@given(st.text(max_size=120))
def test_any_text_can_be_read(text: str) -> None:
    assert bare_acknowledgement(text) in (None, *Acknowledgement)
