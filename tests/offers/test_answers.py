"""offers/answers.py: which later message answers an earlier one."""

from __future__ import annotations

from typing import Any

import pytest

from offers.answers import answered_by, is_marked_solved, settles
from state.optout import redacted
from tests.support.people import ANNA, BEN, BOT, CLEO, DAN, said


def answers(by: int, text: str, **more: Any) -> bool:
    """Whether this answers Anna's question, where Anna, Ben, Cleo and Dan have spoken."""
    present = [said(who) for who in (BEN, CLEO, DAN)]
    question = said(ANNA, "How do I mount an NTFS drive?", message_id=5)
    return answered_by(said(by, text, **more), [question], [*present, question]) == {5}


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("With ntfs-3g.", {"reply_to_id": 5, "reply_to_author_id": ANNA}),
        ("With ntfs-3g.", {"reply_to_id": 5}),
        ("See above.", {"reply_to_id": 4, "reply_to_author_id": ANNA}),
        (f"<@{ANNA}> with ntfs-3g", {}),
        (f"<@{CLEO}> <@{ANNA}> it is ntfs-3g", {}),
        ("anna, try ntfs-3g", {}),
        ("try ntfs-3g, Anna", {}),
        ("just use ntfs-3g", {}),
        ("same here, anybody?", {}),
        ("lol", {}),
        ("👍", {}),
        ("", {}),
        ("!tag ntfs", {}),
        ("@everyone lunch", {"mentions_group": True}),
        ("well, what I do is ntfs-3g", {}),
        ("as I said", {"reply_to_id": 4, "reply_to_author_id": BEN}),
    ],
)
def test_what_somebody_else_says_answers(text: str, more: dict[str, Any]) -> None:
    assert answers(BEN, text, **more)


@pytest.mark.parametrize(
    ("text", "more"),
    [
        (f"<@{CLEO}> lunch?", {}),
        (f"<@{BOT}> what is the weather?", {}),
        ("silently", {"mentioned": frozenset({CLEO})}),
        (f"about <@{CLEO}>", {"mentioned": frozenset()}),
        ("indeed", {"reply_to_id": 4, "reply_to_author_id": CLEO}),
        ("indeed", {"reply_to_id": 4}),
        ("cleo, lunch?", {}),
        ("lunch, Cleo?", {}),
    ],
)
def test_what_is_clearly_for_another_does_not(text: str, more: dict[str, Any]) -> None:
    assert not answers(BEN, text, **more)


def test_a_name_that_nobody_has_or_that_is_not_to_be_known_calls_nobody() -> None:
    question = said(ANNA, "How do I mount it?", message_id=5)
    hidden = redacted(said(CLEO, "secret"))
    assert answered_by(said(BEN, "somebody, help"), [question], [hidden, question]) == {5}
    assert answered_by(said(BEN, "Zoe, help"), [question], [hidden, question]) == {5}


def test_a_message_answers_several_people_at_once() -> None:
    earlier = [said(ANNA, message_id=1), said(BEN, message_id=2), said(CLEO, message_id=3), said(BEN, message_id=4)]
    assert answered_by(said(DAN, "both of you do X"), earlier, earlier) == {1, 2, 3, 4}
    assert answered_by(said(DAN, f"<@{BEN}> do X"), earlier, earlier) == {2, 4}
    assert answered_by(said(BEN, "do X"), earlier, earlier) == {1, 3}
    assert answered_by(said(BEN, "nvm, do X"), earlier, earlier) == {1, 2, 3, 4}


SETTLING = [
    "nvm",
    "NVM!",
    "never mind",
    "Nevermind, I'll use docker",
    "oh nvm found it",
    "solved",
    "Solved it, was a typo",
    "fixed",
    "it's fixed now",
    "ok I fixed it",
    "found it",
    "figured it out",
    "got it working",
    "works now",
    "it works",
    "that worked",
    "that’s sorted, then",
    "thanks",
    "thanks!",
    "ok thank you so much",
    "thx",
    "all good",
    "my bad, wrong window",
    "forget it",
    "found it! why is it so hidden?",
]
GOING_ON = [
    "",
    "hello?",
    "anyone?",
    "I tried that already",
    "it is not fixed",
    "still not solved",
    "I never found it",
    "I need this fixed by noon",
    "is this fixed?",
    "how do I get this fixed",
    "has anybody solved this?",
    "thanks in advance",
    "thanks for any help",
    "how do I do that? thanks",
    "nothing works",
    "the drive was found by the kernel",
    "I fixed one thing. " + "The rest of it goes on and on. " * 8,
]


@pytest.mark.parametrize("text", SETTLING)
def test_who_asked_settles_it(text: str) -> None:
    assert settles(text)
    assert answers(ANNA, text)


@pytest.mark.parametrize("text", GOING_ON)
def test_who_asked_goes_on(text: str) -> None:
    assert not settles(text)
    assert not answers(ANNA, text)


@pytest.mark.parametrize(
    "text",
    [
        "[SOLVED] how do I mount it?",
        "(solved) how do I mount it?",
        "**Solved:** how do I mount it?",
        "How do I mount it?\nEDIT: found it, was a typo",
        "How do I mount it? Update - works now",
        "How do I mount it? (edit: nvm)",
    ],
)
def test_an_edit_can_mark_a_question_as_solved(text: str) -> None:
    assert is_marked_solved(text)


@pytest.mark.parametrize("text", ["How do I edit a file?", "how is this solved?", "edit: it is an external drive", ""])
def test_an_edit_that_only_tells_more_does_not(text: str) -> None:
    assert not is_marked_solved(text)
