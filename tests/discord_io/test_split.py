"""discord_io/split.py: a text as messages that Discord takes."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from discord_io.split import MAX_LENGTH, clipped, is_blank, length, split

PIECES = (
    *("word ", "a longer stretch of words. ", "\n", "\n\n", "   ", "x" * 70, "é", "\u200b", "שלום ", "👩‍👩‍👧"),
    *("```", "```python\n", "\n```\n", "````\n", "\n````\n", "`code`", "~~~\n"),
)
# Nine backticks and more are no fence here.
texts = st.lists(st.sampled_from(PIECES), max_size=60).map("".join).filter(lambda text: "`" * 9 not in text)
limits = st.integers(80, 200)
FENCE_LINE = re.compile(r"^[ \t]*`{3,}[^`\n]*$", re.MULTILINE)


def letters(text: str) -> str:
    """What must not be lost: everything but white space, backticks and, alone in a message, invisible characters."""
    return re.sub(r"[\s`\u200b]", "", text)


def open_block(text: str) -> bool:
    """Whether a code block is left open, by the markdown rule: closed by as many backticks at least, and no word."""
    marker = ""
    for line in FENCE_LINE.findall(text):
        ticks, word = re.fullmatch(r"\s*(`{3,})\s*(.*?)\s*", line, re.DOTALL).groups()  # type: ignore[union-attr]
        if not marker:
            marker = ticks
        elif ticks.startswith(marker) and not word:
            marker = ""
    return bool(marker)


@given(texts, limits)
def test_every_part_fits_and_none_is_blank(text: str, limit: int) -> None:
    for part in split(text, limit):
        assert length(part) <= limit
        assert not is_blank(part)


@given(texts, limits)
def test_nothing_is_lost_but_white_space_and_added_is_a_language_a_part_at_most(text: str, limit: int) -> None:
    parts = split(text, limit)
    posted = letters("".join(parts))
    remaining = iter(posted)
    assert all(letter in remaining for letter in letters(text))
    assert len(posted) - len(letters(text)) <= 32 * max(0, len(parts) - 1)


@given(st.lists(st.sampled_from([piece for piece in PIECES if "`" not in piece]), max_size=60).map("".join), limits)
def test_where_there_is_no_code_nothing_is_added_either(text: str, limit: int) -> None:
    assert letters("".join(split(text, limit))) == letters(text)


@given(texts, limits)
def test_every_code_block_is_closed_in_the_part_where_it_stands(text: str, limit: int) -> None:
    assert not any(map(open_block, split(text, limit)))


@given(texts, limits, st.data())
def test_as_the_text_grows_only_the_last_part_changes(text: str, limit: int, data: st.DataObject) -> None:
    shown = split(text[: data.draw(st.integers(0, len(text)))], limit)
    whole = split(text, limit)
    assert whole[: len(shown[:-1])] == shown[:-1]
    assert len(whole) >= len(shown)


@given(
    st.sampled_from(["", "````\n", "```\n", "x\n\n"]),
    st.sampled_from(["word ", "x", "👍", "a line\n"]),
    st.integers(45, 85),
    st.text("`````\n\n a", max_size=25),
)
@example("````\n", "word word word word word word a longer stretch of words. ```python\n", 67, "\n````\n")
def test_a_full_part_stays_as_it_is_with_every_character_of_a_fence_at_the_limit(
    opening: str, filling: str, size: int, rest: str
) -> None:
    begun = opening + (filling * size)[:size]
    full: list[str] = []
    for end in range(len(rest) + 1):
        parts = split(begun + rest[:end], 80)
        assert parts[: len(full)] == full
        full = parts[:-1]


@pytest.mark.parametrize("text", ["", "   \n\n ", "\u200b\u200d", "\n\u2060\n"])
def test_a_blank_text_is_no_message(text: str) -> None:
    assert split(text) == []


def test_a_short_text_is_one_message_without_the_space_around_it() -> None:
    assert split("  hello\n\nworld \n") == ["hello\n\nworld"]


def test_exactly_the_limit_is_one_message_and_one_more_is_two() -> None:
    assert split("x" * MAX_LENGTH) == ["x" * MAX_LENGTH]
    assert len(split("x" * (MAX_LENGTH + 1))) == 2


@pytest.mark.parametrize(
    ("border", "text"),
    [
        ("paragraph", f"{'a' * 60}\n\n{'b' * 20}\n{'c' * 60}"),
        ("line", f"{'a' * 60}\n{'b' * 10}. {'c' * 60}"),
        ("sentence", f"{'a' * 59}. {'b' * 10} {'c' * 60}"),
        ("word", f"{'a' * 60} {'b' * 60}"),
    ],
)
def test_it_is_cut_at_the_best_border_there_is(border: str, text: str) -> None:
    first = split(text, 100)[0]
    assert set(first) - {"."} == {"a"} if border != "word" else first == "a" * 60


def test_a_border_that_wastes_half_a_message_is_passed_over() -> None:
    first = split(f"{'a' * 10}\n\n{'b ' * 80}", 100)[0]
    assert length(first) > 50


def test_a_code_block_goes_on_in_its_language() -> None:
    code = "\n".join(f"line_{i} = {i}" for i in range(20))
    first, second, *_ = split(f"See:\n```python\n{code}\n```\nDone.", 120)
    assert first.startswith("See:\n```python\nline_0 = 0\n")
    assert first.endswith("\n```")
    assert second.startswith("```python\nline_")


def test_code_keeps_its_indentation_across_a_cut() -> None:
    code = "\n".join("    indented" for _ in range(30))
    parts = split(f"```\n{code}\n```", 150)
    assert all(line in ("    indented", "```") for part in parts for line in part.splitlines())


def test_a_joined_emoji_is_not_cut_apart() -> None:
    family = "👩‍👩‍👧‍👦"
    parts = split(family * 40, 100)
    assert all(part.replace(family, "") == "" for part in parts)


def test_characters_beyond_the_basic_plane_count_twice() -> None:
    assert length("a👍") == 3
    assert len(split("👍" * 1_001)) == 2


def test_a_fence_that_never_ends_is_not_searched_anew_at_every_space() -> None:
    text = "```" + " " * 200_000 + "`"
    assert split(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("just fits!", "just fits!"),
        ("does not fit", "does not…"),
        ("trailing  space", "trailing…"),
        ("😀😀😀😀😀", "😀😀😀😀😀"),
        ("😀😀😀😀😀😀", "😀😀😀😀…"),
    ],
)
def test_a_clipped_text_ends_in_an_ellipsis_where_something_is_left_out(text: str, shown: str) -> None:
    assert clipped(text, 10) == shown


@pytest.mark.parametrize("text", ["word " * 2_400, "👍" * 6_000])
def test_it_does_not_count_character_by_character(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = 0

    def count(text: str) -> int:
        nonlocal counted
        counted += 1
        return length(text)

    monkeypatch.setattr("discord_io.split.length", count)
    assert len(split(text)) > 5
    assert counted < 200
