"""offers/questions.py: what a question is that anybody could answer, the same again, and which message answers it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from offers.questions import answered_by, asks_again, is_marked_solved, is_question, is_same_question, settles
from state.optout import redacted
from tests.support.people import ANNA, BEN, BOT, CLEO, DAN, said
from tests.support.phrases import labelled
from understanding.wording import read

QUESTION = "how do I mount an NTFS drive?"
TO_SOMEBODY: list[tuple[str, dict[str, Any]]] = [
    (f"<@{BEN}> how do I mount an NTFS drive?", {}),
    (f"how do I mount what <@{BEN}> has?", {"mentioned": frozenset()}),
    ("how do I mount an NTFS drive?", {"mentioned": frozenset({BEN})}),
    ("how do I mount an NTFS drive?", {"mentions_group": True}),
    ("how do I mount an NTFS drive?", {"reply_to_id": 5, "reply_to_author_id": BEN}),
    ("how do I mount an NTFS drive?", {"reply_to_id": 5}),
]
SAME = [
    ("how do I exit vim?", "How do I exit vim??"),
    ("how do I mount an ntfs drive?", "anyone know how to mount my NTFS drive on ubuntu 22.04?"),
    ("does anyone know how to autologin on xubuntu?", "can anyone tell me how to autologin in xubuntu, please"),
    ("which package provides libtermcap.so ?", "which package provides libtermcap.so.2 ?"),
    ("where can i get an mp3 plugin for totem?", "where can i find an mp3 plugin for totem?"),
    ("how can i set a usb with low_latency by default?", "how to set an usb port with low_latency by default"),
    ("how do I instal docker compose?", "how do I install docker compose?"),
    ("why?", "why?"),
]
OTHER = [
    ("how do I install python?", "how do I install docker?"),
    ("how can i install pgp?", "how can i install GnuPG?"),
    ("why python?", "which editor is best for python?"),
    ("what is it?", "what is it about python decorators?"),
    ("how do I exit vim?", "how do I quit emacs?"),
    ("is it possible to rip a cd to mp3?", "is it possible to burn a dvd?"),
    ("anyone know how to enable 3d acceleration?", "anyone know how to enable wireless networking?"),
]
ANSWERS: list[tuple[str, dict[str, Any]]] = [
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
]
FOR_ANOTHER: list[tuple[str, dict[str, Any]]] = [
    (f"<@{CLEO}> lunch?", {}),
    (f"<@{BOT}> what is the weather?", {}),
    ("silently", {"mentioned": frozenset({CLEO})}),
    (f"about <@{CLEO}>", {"mentioned": frozenset()}),
    ("indeed", {"reply_to_id": 4, "reply_to_author_id": CLEO}),
    ("indeed", {"reply_to_id": 4}),
    ("cleo, lunch?", {}),
    ("lunch, Cleo?", {}),
]
SOLVED = [
    "[SOLVED] how do I mount it?",
    "(solved) how do I mount it?",
    "**Solved:** how do I mount it?",
    "How do I mount it?\nEDIT: found it, was a typo",
    "How do I mount it? Update - works now",
    "How do I mount it? (edit: nvm)",
]


def answers(by: int, text: str, **more: Any) -> bool:
    """Whether this answers Anna's question, where Anna, Ben, Cleo and Dan have spoken."""
    present = [said(who) for who in (BEN, CLEO, DAN)]
    question = said(ANNA, "How do I mount an NTFS drive?", message_id=5)
    return answered_by(said(by, text, **more), [question], [*present, question]) == {5}


def test_the_table_of_messages_holds() -> None:
    wrong = []
    for line, label in labelled(Path(__file__).with_name("messages.txt")):
        text = line.replace("\\n", "\n")
        message = said(ANNA, text)
        match label:
            case "question" | "talk":
                is_right = is_question(message) is (label == "question")
            case "nudge":
                is_right = asks_again(message) and not is_question(message)
            case "no nudge":
                is_right = not asks_again(message)
            case _:
                is_right = settles(text) is answers(ANNA, text) is (label == "settles")
        if not is_right:
            wrong.append((label, line))
    assert wrong == []


def test_a_message_without_words_is_nothing() -> None:
    empty = said(ANNA, "")
    assert [is_question(empty), asks_again(empty), settles(""), is_marked_solved("")] == [False] * 4


def test_a_question_to_somebody_is_none_of_ours() -> None:
    assert [text for text, more in TO_SOMEBODY if is_question(said(ANNA, text, **more))] == []
    assert not asks_again(said(ANNA, f"<@{BEN}> any ideas?"))


def test_who_replies_to_their_own_words_speaks_to_nobody() -> None:
    assert is_question(said(ANNA, QUESTION, reply_to_id=5, reply_to_author_id=ANNA))


def same(one: str, other: str) -> bool:
    return is_same_question(read(one), read(other))


def test_the_same_question_is_told_from_another() -> None:
    assert [pair for pair in SAME if not (same(*pair) and same(*pair[::-1]))] == []
    assert [pair for pair in OTHER if same(*pair)] == []


def test_what_somebody_else_says_answers_unless_it_is_clearly_for_another() -> None:
    assert [case for case in ANSWERS if not answers(BEN, case[0], **case[1])] == []
    assert [case for case in FOR_ANOTHER if answers(BEN, case[0], **case[1])] == []


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


def test_an_edit_can_mark_a_question_as_solved() -> None:
    assert [text for text in SOLVED if not is_marked_solved(text)] == []
    for text in ("How do I edit a file?", "how is this solved?", "edit: it is an external drive"):
        assert not is_marked_solved(text)
