"""understanding/acknowledgements.py: what asks for no answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understanding.acknowledgements import Remark, bare_remark


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        ("thanks", Remark.THANKS),
        ("Thank you so much!", Remark.THANKS),
        ("ok thanks", Remark.THANKS),
        ("lol thanks", Remark.THANKS),
        ("thx :)", Remark.THANKS),
        ("THANKS A LOT <@12>", Remark.THANKS),
        ("thanks for the help", Remark.THANKS),
        ("ok", Remark.CONSENT),
        ("Okay, cool.", Remark.CONSENT),
        ("oh great", Remark.CONSENT),
        ("got it, perfect", Remark.CONSENT),
        ("lol", Remark.LAUGHTER),
        ("haha that's it", Remark.LAUGHTER),
        ("ok lol", Remark.LAUGHTER),
        ("xD", Remark.LAUGHTER),
        ("👍", Remark.EMOJI),
        ("👍🏽 🎉", Remark.EMOJI),
        ("👩‍💻", Remark.EMOJI),
        ("❤️!", Remark.EMOJI),
        (":)", Remark.EMOJI),
        (":-D ;)", Remark.EMOJI),
        ("<:party:123>", Remark.EMOJI),
        ("<a:party:123> <:x_y:4>", Remark.EMOJI),
    ],
)
def test_a_bare_remark_is_known(text: str, remark: Remark) -> None:
    assert bare_remark(text) is remark


@pytest.mark.parametrize(
    "text",
    [
        "thanks, and how far is it",
        "thanks?",
        "ok?",
        "lol?",
        "ok so what now",
        "no",
        "yes",
        "nice train",
        "it is",
        "that's all",
        "got it",
        "you",
        "",
        "   ",
        "...",
        "!",
        "<@12>",
        "12:30",
        "1 👍 from me",
        "👍?",
        "https://cdn.example/thanks",
        "```thanks```",
        "ok " * 9,
        "thanks" + "!" * 95,
    ],
)
def test_what_says_more_or_nothing_is_no_bare_remark(text: str) -> None:
    assert bare_remark(text) is None


@pytest.mark.parametrize(
    "piece", ["stop ", "thanks ", "👍", ":)", "<a:b:1>", "talking ", "?", "😀\u200d", "ok ", "not "]
)
@pytest.mark.parametrize("times", [20, 100_000])
def test_hostile_length_is_no_remark_and_takes_no_time(piece: str, times: int) -> None:
    text = piece * times
    if len(text) > 100:
        assert bare_remark(text) is None


@given(st.text(max_size=120))
def test_any_text_can_be_read(text: str) -> None:
    assert bare_remark(text) in (None, *Remark)


@pytest.mark.parametrize("text", ["is that right", "is it good", "are you all right"])
def test_a_question_without_its_mark_is_no_remark(text: str) -> None:
    assert bare_remark(text) is None
