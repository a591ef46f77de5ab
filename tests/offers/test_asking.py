"""offers/asking.py: a question that anybody could answer, and the same once more."""

from __future__ import annotations

from typing import Any

import pytest

from offers.asking import asks_again, is_question, is_same_question
from tests.support.people import ANNA, BEN, said

QUESTIONS = [
    "How do I mount an NTFS drive?",
    "how would I get a package into the repository?",
    "is there a good FTP client for linux?",
    "why can't I see my files?",
    "Where can I find more about the certificate? The LPI one?",
    "does anyone know how to autologin on xubuntu",
    "anyone here know a good FTP client",
    "hi all, can anybody here help me with a printer",
    "what happens if you delete the last branch?",
    "what are you supposed to do with a dead battery?",
    "who is the president of France?",
    "I installed the driver and now it is slow. What did I do wrong?",
    "¿cómo puedo instalar python en windows?",
    "Wie kann ich Python installieren?",
    "what does this do?\n```c\nint *p;\n```",
]
IDLE = [
    "",
    "what?",
    "lol?",
    "why though?",
    "python or ruby?",
    "I like that very much",
    "when I was young I had a drive",
    "nice weather today, isn't it?",
    "nice weather today, isn’t it?",
    "so that is it then, right?",
    "that went well, eh?",
    "who cares about that anyway?",
    "what could possibly go wrong here?",
    "how cool is that thing?",
    "guess what I did today?",
    "how are you all doing?",
    "hey guys, how's everyone doing today?",
    "what's up with you people?",
    "anyone up for a game?",
    "is anyone around right now?",
    "who wants to play tonight?",
    "who's up for some lunch?",
    "are we still on for tonight?",
    "did you see the game yesterday?",
    "do you guys like pizza?",
    "can anyone help me please?",
    "does anyone have any ideas?",
    "see https://example.org/?q=what for more of the same",
    "here is code:\n```\na ? b : c ? d : e\n```\nfor you all",
    "!ask how do I mount a drive?",
]


@pytest.mark.parametrize("text", QUESTIONS)
def test_a_question_is_known(text: str) -> None:
    assert is_question(said(ANNA, text))


@pytest.mark.parametrize("text", IDLE)
def test_small_talk_rhetoric_and_statements_are_none(text: str) -> None:
    assert not is_question(said(ANNA, text))


@pytest.mark.parametrize(
    ("text", "more"),
    [
        (f"<@{BEN}> how do I mount an NTFS drive?", {}),
        (f"how do I mount what <@{BEN}> has?", {"mentioned": frozenset()}),
        ("how do I mount an NTFS drive?", {"mentioned": frozenset({BEN})}),
        ("how do I mount an NTFS drive?", {"mentions_group": True}),
        ("how do I mount an NTFS drive?", {"reply_to_id": 5, "reply_to_author_id": BEN}),
        ("how do I mount an NTFS drive?", {"reply_to_id": 5}),
    ],
)
def test_a_question_to_somebody_is_none_of_ours(text: str, more: dict[str, Any]) -> None:
    assert not is_question(said(ANNA, text, **more))


def test_who_replies_to_their_own_words_speaks_to_nobody() -> None:
    assert is_question(said(ANNA, "How do I mount an NTFS drive?", reply_to_id=5, reply_to_author_id=ANNA))


NUDGES = [
    "anyone?",
    "anybody",
    "Anyone??",
    "bump",
    "help",
    "any ideas?",
    "does anyone know?",
    "can someone help me pls",
]


@pytest.mark.parametrize("text", [*NUDGES, "help me please!", "hello, anyone there?"])
def test_who_only_nudges_asks_again(text: str) -> None:
    assert asks_again(said(ANNA, text))
    assert not is_question(said(ANNA, text))


@pytest.mark.parametrize(
    "text", ["", "hello?", "what?", "anyone can do that", "no idea", "help " * 20, "!help", "thanks"]
)
def test_anything_more_is_no_nudge(text: str) -> None:
    assert not asks_again(said(ANNA, text))


def test_a_nudge_for_somebody_is_none_of_ours() -> None:
    assert not asks_again(said(ANNA, f"<@{BEN}> any ideas?"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("how do I exit vim?", "How do I exit vim??"),
        ("how do I mount an ntfs drive?", "anyone know how to mount my NTFS drive on ubuntu 22.04?"),
        ("does anyone know how to autologin on xubuntu?", "can anyone tell me how to autologin in xubuntu, please"),
        ("which package provides libtermcap.so ?", "which package provides libtermcap.so.2 ?"),
        ("where can i get an mp3 plugin for totem?", "where can i find an mp3 plugin for totem?"),
        ("how can i set a usb with low_latency by default?", "how to set an usb port with low_latency by default"),
        ("how do I instal docker compose?", "how do I install docker compose?"),
        ("why?", "why?"),
    ],
)
def test_the_same_question_is_known(one: str, other: str) -> None:
    assert is_same_question(one, other)
    assert is_same_question(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("how do I install python?", "how do I install docker?"),
        ("how can i install pgp?", "how can i install GnuPG?"),
        ("why python?", "which editor is best for python?"),
        ("what is it?", "what is it about python decorators?"),
        ("how do I exit vim?", "how do I quit emacs?"),
        ("is it possible to rip a cd to mp3?", "is it possible to burn a dvd?"),
        ("anyone know how to enable 3d acceleration?", "anyone know how to enable wireless networking?"),
    ],
)
def test_another_question_is_told_from_it(one: str, other: str) -> None:
    assert not is_same_question(one, other)
