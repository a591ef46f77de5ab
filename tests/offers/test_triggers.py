"""offers/triggers.py: what is due in a channel, and when it no longer is."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from offers.offer import LINK, Note
from offers.offer_channels import OfferChannel
from offers.offer_limits import OfferLimits
from offers.triggers import TRIGGERS, AskedAgain, FollowUpNote, PastedError, Trigger, UnansweredQuestion
from state.message import MessageRecord
from state.optout import redacted
from state.proactive import SessionState
from tests.support.clock import NOON
from tests.support.people import ANNA, BEN, BOT, CHANNEL, CLEO, GUILD, said

QUESTION = "How do I mount an NTFS drive?"
ERROR = "```\nTraceback (most recent call last):\nKeyError: 'id'\n```"
NOTE = Note("n1", "dining", "How was the burger?", "burger", "Mel's", ANNA, 5, NOON)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def empty() -> OfferChannel:
    return OfferChannel(CHANNEL, GUILD, SessionState(), OfferLimits())


def noted(*notes: Note) -> OfferChannel:
    channel = empty()
    channel.notes = list(notes)
    return channel


def channel(*said_at: tuple[float, int, str], **more: Any) -> OfferChannel:
    """Who said what when, in seconds from noon; their ids are 1, 2, 3 ...; more: of the last message."""
    made = empty()
    for number, (seconds, who, text) in enumerate(said_at, start=1):
        extra = more if number == len(said_at) else {}
        hear(made, said(who, text, at(seconds), message_id=number, **extra), at(seconds))
    return made


def hear(channel: OfferChannel, message: MessageRecord, now: datetime) -> None:
    channel.recent.heard(message, now)
    for trigger in TRIGGERS:
        channel.look_for(trigger.id, message.message_id, trigger.looks(message))


TALK = (-60, BEN, "so that is done")


def due(trigger: Trigger, given: OfferChannel, seconds: float) -> int | None:
    """The id of the message that there is an opportunity about."""
    found = trigger.due(given, at(seconds))
    return found.subject.message_id if found and found.subject else None


@pytest.mark.parametrize(
    ("trigger", "text", "wait"),
    [
        (UnansweredQuestion(), QUESTION, 90),
        (UnansweredQuestion(), "lol?", None),
        (UnansweredQuestion(), ERROR, None),
        (UnansweredQuestion(), f"<@{BEN}> {QUESTION}", None),
        (UnansweredQuestion(), "", None),
        (AskedAgain(), QUESTION, 30),
        (AskedAgain(), "anyone?", 30),
        (AskedAgain(), "I see", None),
        (PastedError(), ERROR, 90),
        (PastedError(), f"<@{BEN}> {ERROR}", None),
        (PastedError(), QUESTION, None),
        (PastedError(), "", None),
        (FollowUpNote(), QUESTION, None),
    ],
)
def test_a_trigger_says_when_to_look(trigger: Trigger, text: str, wait: float | None) -> None:
    assert trigger.looks(said(ANNA, text)) == (None if wait is None else at(wait))


@pytest.mark.parametrize(
    ("trigger", "text", "wait"),
    [(UnansweredQuestion(), QUESTION, 90), (PastedError(), ERROR, 90)],
    ids=["question", "error"],
)
class TestWhatIsSaidOnce:
    """A question and a pasted error alike."""

    def test_it_is_due_after_its_wait_and_while_it_is_fresh(self, trigger: Trigger, text: str, wait: float) -> None:
        given = channel(TALK, (0, ANNA, text))
        assert due(trigger, given, wait - 0.001) is None
        assert due(trigger, given, wait) == 2
        assert due(trigger, given, 15 * 60) == 2
        assert due(trigger, given, 15 * 60 + 0.001) is None

    def test_the_opportunity_tells_whom_and_why_without_their_words(
        self, trigger: Trigger, text: str, wait: float
    ) -> None:
        given = channel(TALK, (0, ANNA, text))
        found = trigger.due(given, at(wait))
        assert found is not None
        assert (found.trigger, found.user_id, found.subject, found.note) == (
            trigger.id,
            ANNA,
            given.recent.messages[1],
            None,
        )
        assert f"({LINK})" in found.line
        assert f"<@{ANNA}>" in found.line
        assert "\n" not in found.line
        assert f"{wait} s ago" in found.evidence
        for words in ("NTFS", "KeyError", "Anna", "Ben"):
            assert words not in found.line + found.evidence

    @pytest.mark.parametrize(
        "then",
        [
            (BEN, "ntfs-3g"),
            (BEN, "same here, anybody?"),
            (BEN, ""),
            (BEN, f"<@{ANNA}> ntfs-3g"),
            (BEN, f"<@{CLEO}> <@{ANNA}> look"),
            (ANNA, "nvm"),
            (ANNA, "thanks"),
            (ANNA, "found it"),
        ],
    )
    def test_it_is_not_due_once_it_is_answered(
        self, trigger: Trigger, text: str, wait: float, then: tuple[int, str]
    ) -> None:
        assert due(trigger, channel(TALK, (0, ANNA, text), (20, *then)), wait) is None

    @pytest.mark.parametrize("then", [(BEN, f"<@{CLEO}> lunch?"), (BEN, f"<@{BOT}> hi"), (ANNA, "I tried ntfs-3g")])
    def test_it_is_due_where_others_talk_to_others(
        self, trigger: Trigger, text: str, wait: float, then: tuple[int, str]
    ) -> None:
        assert due(trigger, channel(TALK, (0, ANNA, text), (20, *then)), wait) == 2

    def test_a_name_of_somebody_there_is_to_somebody(self, trigger: Trigger, text: str, wait: float) -> None:
        assert due(trigger, channel(TALK, (0, ANNA, f"Ben, {text}")), wait) is None
        assert due(trigger, channel(TALK, (0, ANNA, f"Zoe, {text}")), wait) == 2

    def test_the_newest_comes_first(self, trigger: Trigger, text: str, wait: float) -> None:
        assert due(trigger, channel(TALK, (0, ANNA, text), (30, ANNA, text)), wait + 30) == 3

    def test_who_is_not_read_has_none(self, trigger: Trigger, text: str, wait: float) -> None:
        given = channel(TALK)
        hear(given, redacted(said(ANNA, text, NOON, message_id=2)), NOON)
        assert due(trigger, given, wait) is None

    def test_it_is_not_due_when_the_clock_jumps(self, trigger: Trigger, text: str, wait: float) -> None:
        for jump in (3_600, -3_600, 400 * 86_400, -400 * 86_400):
            assert due(trigger, channel(TALK, (0, ANNA, text)), wait + jump) is None


@pytest.mark.parametrize(
    ("before", "is_due"),
    [
        ((-1, BEN, "hi"), True),
        ((-30 * 60, BEN, "hi"), True),
        ((-30 * 60 - 1, BEN, "hi"), False),
        ((-1, BEN, ""), True),
        ((-1, ANNA, "hi"), False),
        ((0, BEN, "hi"), False),
    ],
)
def test_a_question_is_due_where_others_were_talking(before: tuple[float, int, str], *, is_due: bool) -> None:
    assert due(UnansweredQuestion(), channel(before, (0, ANNA, QUESTION)), 90) == (2 if is_due else None)


def test_the_evidence_of_a_question_counts_those_who_were_there() -> None:
    one = UnansweredQuestion().due(channel(TALK, (0, ANNA, QUESTION)), at(100))
    two = UnansweredQuestion().due(channel((-90, CLEO, "hm"), TALK, (0, ANNA, QUESTION)), at(100))
    assert one is not None
    assert two is not None
    assert one.evidence == (
        "a question was asked 100 s ago, and nobody has answered; 1 other had spoken in the half hour before"
    )
    assert two.evidence.endswith("2 others had spoken in the half hour before")


def test_an_error_is_due_without_others() -> None:
    assert due(PastedError(), channel((0, ANNA, ERROR)), 90) == 1


ONCE_MORE = "anyone know how to mount my NTFS drive?"


def test_a_question_asked_again_is_due_30_s_later() -> None:
    given = channel((0, ANNA, QUESTION), (120, ANNA, ONCE_MORE))
    assert due(AskedAgain(), given, 149) is None
    assert due(AskedAgain(), given, 150) == 2
    assert due(AskedAgain(), given, 120 + 15 * 60) == 2
    assert due(AskedAgain(), given, 121 + 15 * 60) is None
    found = AskedAgain().due(given, at(150))
    assert found is not None
    assert (found.trigger, found.user_id) == ("asked_again", ANNA)
    assert found.line == f"<@{ANNA}> has asked [this]({LINK}) twice and has had no answer yet. Shall I try?"
    assert found.evidence == "somebody asked twice, the last time 30 s ago, and nobody has answered"


@pytest.mark.parametrize("nudge", ["anyone?", "bump", "any ideas?"])
def test_a_nudge_asks_again_for_the_question_before_it(nudge: str) -> None:
    given = channel((0, ANNA, QUESTION), (60, ANNA, "I see"), (120, ANNA, nudge))
    assert due(AskedAgain(), given, 150) == 1
    assert due(AskedAgain(), channel((0, ANNA, "I see"), (120, ANNA, nudge)), 150) is None


@pytest.mark.parametrize(
    "messages",
    [
        [(0, ANNA, QUESTION)],
        [(0, ANNA, QUESTION), (120, BEN, ONCE_MORE)],
        [(0, ANNA, QUESTION), (120, ANNA, "how do I unpack a zip file?")],
        [(0, ANNA, QUESTION), (29, ANNA, ONCE_MORE)],
        [(-3_500, ANNA, QUESTION), (120, ANNA, ONCE_MORE)],
        [(0, ANNA, QUESTION), (60, BEN, "ntfs-3g"), (120, ANNA, ONCE_MORE)],
        [(0, ANNA, QUESTION), (119, ANNA, ONCE_MORE), (120, BEN, "ntfs-3g")],
        [(0, ANNA, QUESTION), (110, ANNA, ONCE_MORE), (115, ANNA, "nvm")],
        [(0, ANNA, f"<@{BEN}> {QUESTION}"), (120, ANNA, ONCE_MORE)],
        [(-1, BEN, f"<@{CLEO}> hi"), (0, ANNA, QUESTION), (120, ANNA, f"Ben, {ONCE_MORE}")],
        [(-1, BEN, f"<@{CLEO}> hi"), (0, ANNA, f"Ben, {QUESTION}"), (120, ANNA, ONCE_MORE)],
        [(0, ANNA, ""), (120, ANNA, "")],
    ],
)
def test_what_is_no_asking_again(messages: list[tuple[float, int, str]]) -> None:
    assert due(AskedAgain(), channel(*messages), 155) is None


@pytest.mark.parametrize(
    ("seconds", "is_due"), [(-1, False), (0, True), (3_600, True), (86_400, True), (86_401, False)]
)
def test_a_note_is_due_for_a_day(seconds: float, *, is_due: bool) -> None:
    found = FollowUpNote().due(noted(NOTE), at(seconds))
    assert (found is not None) is is_due


def test_the_opportunity_of_a_note_is_its_text_with_whom_it_is_for() -> None:
    later = replace(NOTE, id="n2", due=at(5))
    found = FollowUpNote().due(noted(later, NOTE), at(10))
    assert found is not None
    assert (found.trigger, found.user_id, found.line, found.note, found.subject) == (
        "follow_up_note",
        ANNA,
        f"<@{ANNA}>, How was the burger?",
        NOTE,
        None,
    )
    assert found.evidence == "dining left a note to come back to it"
