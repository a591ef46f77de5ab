"""discord_io/sent_texts.py: what of a message is ours."""

from __future__ import annotations

import pytest

from discord_io.sent_texts import MAX_TEXTS, SentTexts


def of(*texts: str) -> SentTexts:
    said = SentTexts()
    for text in texts:
        said.add(text)
    return said


def test_all_that_was_sent_is_known() -> None:
    said = of("a", "ab", "abc")
    assert all(text in said for text in ("a", "ab", "abc"))
    assert "b" not in said


@pytest.mark.parametrize("text", [" ab\n", "a b", "a\u200bb", "a\r\nb"])
def test_white_space_and_what_cannot_be_seen_make_no_difference(text: str) -> None:
    assert text in of("ab")
    assert of("ab").ends_with(text)
    assert not of("ab").falls_short_of(text)


@pytest.mark.parametrize(
    ("text", "same"), [("<:ok:12>", True), ("<a:ok:12>", True), ("<:no:12>", False), ("ok", False)]
)
def test_an_emoji_that_the_bot_may_not_use_loses_its_number(text: str, same: bool) -> None:
    assert (text in of(":ok:")) is same


def test_only_the_last_text_is_its_end() -> None:
    said = of("a", "ab")
    said.overrule("b")
    assert said.ends_with("ab")
    assert not said.ends_with("a")
    assert not said.ends_with("b")
    assert "b" in said


@pytest.mark.parametrize(
    ("ours", "theirs", "short"), [("ab", "abc", True), ("ab", "xyz", True), ("abc", "ab", False), ("ab", "ab", False)]
)
def test_the_longer_text_says_more(ours: str, theirs: str, short: bool) -> None:
    assert of("a much longer one before", ours).falls_short_of(theirs) is short


def test_of_two_texts_of_one_length_exactly_one_falls_short() -> None:
    assert of("ab").falls_short_of("ac")
    assert not of("ac").falls_short_of("ab")


def test_an_empty_text_is_anybodys() -> None:
    assert "" in of("ab")
    assert of("ab").ends_with("")


def test_it_forgets_what_was_said_long_ago() -> None:
    said = of(*(f"<{n}>" for n in range(10_000)))
    assert "<9999>" in said
    assert f"<{10_000 - MAX_TEXTS}>" in said
    assert f"<{10_000 - MAX_TEXTS - 1}>" not in said
