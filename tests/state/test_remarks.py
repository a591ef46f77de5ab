"""state/remarks.py: what asks for no answer, and what sends the bot away."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.remarks import Remark, bare_remark, tells_off


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
    "text",
    [
        "stop",
        "Stop it!",
        "please stop",
        "stop talking, please",
        "not you",
        "no, not you",
        "I'm not talking to you",
        "I am not talking to you, bot",
        "i wasn't asking you",
        "we're not speaking to you",
        "I didn’t ask you",
        "nobody asked",
        "who asked?",
        "shut up",
        "shut up, Parley",
        "Parley, SHUT UP!!",
        "hey Parley shut up please",
        "go away",
        "be quiet now",
        "leave us alone",
        "stay out of this",
        "mind your own business",
        "<@1> stop",
    ],
)
def test_telling_off_is_known(text: str) -> None:
    assert tells_off(text, "Parley")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Parley",
        "please",
        "I'm talking to you",
        "I am asking you",
        "talking to you",
        "how do I stop the server",
        "stop the server",
        "don't stop",
        "why did you stop?",
        "quiet",
        "silence",
        "the quiet car",
        "is it quiet there",
        "not you, the other one",
        "go away for a week",
        "Ben, shut up",
        "shut up Ben",
        "non-stop",
        "not your fault",
        "who asked for tea",
        "stop " * 9,
        "stop" + "!" * 97,
    ],
)
def test_what_only_sounds_like_it_is_no_telling_off(text: str) -> None:
    assert not tells_off(text, "Parley")


def test_the_bots_name_may_be_of_several_words_or_none() -> None:
    assert tells_off("Robo Cat, shut up", "Robo Cat")
    assert not tells_off("Robo Cat, shut up", "Parley")
    assert tells_off("shut up", "")
    assert tells_off("shut up", "🤖")


@pytest.mark.parametrize(
    "piece", ["stop ", "thanks ", "👍", ":)", "<a:b:1>", "talking ", "?", "😀\u200d", "ok ", "not "]
)
@pytest.mark.parametrize("times", [20, 100_000])
def test_hostile_length_is_no_remark_and_takes_no_time(piece: str, times: int) -> None:
    text = piece * times
    if len(text) > 100:
        assert bare_remark(text) is None
    assert not tells_off(text, "Parley")


@given(st.text(max_size=120), st.text(max_size=40))
def test_any_text_and_any_name_can_be_read(text: str, name: str) -> None:
    assert bare_remark(text) in (None, *Remark)
    assert tells_off(text, name) in (True, False)


@pytest.mark.parametrize("text", ["is that right", "is it good", "are you all right"])
def test_a_question_without_its_mark_is_no_remark(text: str) -> None:
    assert bare_remark(text) is None
