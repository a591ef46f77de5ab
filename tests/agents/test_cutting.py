"""agents/cutting.py: how much of what a tool gives is told to the model."""

from __future__ import annotations

import pytest

from agents.cutting import MAX_BYTES, cut

EURO = "€"  # three bytes


@pytest.mark.parametrize("text", ["", "a", "a" * MAX_BYTES, EURO * (MAX_BYTES // 3), "two\nlines\n"])
def test_what_fits_stays_as_it_is(text: str) -> None:
    assert cut(text) == text


@pytest.mark.parametrize("text", ["a" * (MAX_BYTES + 1), EURO * MAX_BYTES, "😀" * MAX_BYTES, "ab€" * 100_000])
def test_what_is_too_long_is_cut_with_a_note_and_fits_then(text: str) -> None:
    told = cut(text)
    kept, _, note = told.rpartition("\n")
    assert MAX_BYTES - 4 <= len(told.encode()) + 3 <= MAX_BYTES + 3
    assert text.startswith(kept)
    assert note == f"(cut: the first {len(kept.encode()):,} of {len(text.encode()):,} bytes)"


@pytest.mark.parametrize(("text", "told"), [("a\ud800b", "a?b"), ("\udfff", "?")])
def test_half_characters_are_not_told(text: str, told: str) -> None:
    assert cut(text) == told
    assert cut(text * MAX_BYTES).startswith(told)
