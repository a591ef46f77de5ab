"""understanding/acknowledgements.py: what asks for no answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understanding.acknowledgements import Acknowledgement, bare_acknowledgement


@pytest.mark.parametrize(
    ("text", "acknowledgement"),
    [
        ("thanks", Acknowledgement.THANKS),
        ("Thank you so much!", Acknowledgement.THANKS),
        ("ok thanks", Acknowledgement.THANKS),
        ("lol thanks", Acknowledgement.THANKS),
        ("thx :)", Acknowledgement.THANKS),
        ("THANKS A LOT <@12>", Acknowledgement.THANKS),
        ("thanks for the help", Acknowledgement.THANKS),
        ("ok", Acknowledgement.CONSENT),
        ("Okay, cool.", Acknowledgement.CONSENT),
        ("oh great", Acknowledgement.CONSENT),
        ("got it, perfect", Acknowledgement.CONSENT),
        ("lol", Acknowledgement.LAUGHTER),
        ("haha that's it", Acknowledgement.LAUGHTER),
        ("ok lol", Acknowledgement.LAUGHTER),
        ("xD", Acknowledgement.LAUGHTER),
        ("👍", Acknowledgement.EMOJI),
        ("👍🏽 🎉", Acknowledgement.EMOJI),
        ("👩‍💻", Acknowledgement.EMOJI),
        ("❤️!", Acknowledgement.EMOJI),
        (":)", Acknowledgement.EMOJI),
        (":-D ;)", Acknowledgement.EMOJI),
        ("<:party:123>", Acknowledgement.EMOJI),
        ("<a:party:123> <:x_y:4>", Acknowledgement.EMOJI),
    ],
)
def test_a_bare_acknowledgement_is_known(text: str, acknowledgement: Acknowledgement) -> None:
    assert bare_acknowledgement(text) is acknowledgement


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
def test_what_says_more_or_nothing_is_no_bare_acknowledgement(text: str) -> None:
    assert bare_acknowledgement(text) is None


@pytest.mark.parametrize(
    "piece", ["stop ", "thanks ", "👍", ":)", "<a:b:1>", "talking ", "?", "😀\u200d", "ok ", "not "]
)
@pytest.mark.parametrize("times", [20, 100_000])
def test_hostile_length_is_no_acknowledgement_and_takes_no_time(piece: str, times: int) -> None:
    text = piece * times
    if len(text) > 100:
        assert bare_acknowledgement(text) is None


@given(st.text(max_size=120))
def test_any_text_can_be_read(text: str) -> None:
    assert bare_acknowledgement(text) in (None, *Acknowledgement)


@pytest.mark.parametrize("text", ["is that right", "is it good", "are you all right"])
def test_a_question_without_its_mark_is_no_acknowledgement(text: str) -> None:
    assert bare_acknowledgement(text) is None
