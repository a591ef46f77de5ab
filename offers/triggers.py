"""The occasions there are: what to wait for in a channel, and when it is due.

Each is a small value without memory. It reads what the channel keeps, and tells what an offer can be made about now. It
never has an occasion in a message that was answered or is gone, nor in one without words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import ClassVar

from offers.answers import called
from offers.asking import asks_again, is_question, is_same_question, is_to_nobody
from offers.occasion import LINK, Channel, Occasion, Trigger
from offers.pasted import pastes_error
from state.message import MessageRecord

UNANSWERED = timedelta(seconds=90)
UNANSWERED_AGAIN = timedelta(seconds=30)
FRESH = timedelta(minutes=15)  # later nobody waits for an answer any more
TALKING = timedelta(minutes=30)  # in which others have spoken before a question
ASKED_APART = timedelta(seconds=30)  # sooner it is one asking, posted twice or put right
ASKED_WITHIN = timedelta(hours=1)
NOTE_FRESH = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class AskedAgain:
    """Somebody asks a second time within the hour, and both questions have had no answer, the second for 30 s.

    A bare "anyone?" asks again, too; the subject is then the question before it.
    """

    id: ClassVar[str] = "asked_again"

    def looks(self, message: MessageRecord) -> datetime | None:
        return message.timestamp + UNANSWERED_AGAIN if is_question(message) or asks_again(message) else None

    def due(self, channel: Channel, now: datetime) -> Occasion | None:
        waiting = channel.unanswered
        for again in _due(waiting, now, UNANSWERED_AGAIN):
            if subject := _asked_twice(again, waiting, channel):
                line = f"{_to(subject)} has asked [this]({LINK}) twice and has had no answer yet. Shall I try?"
                evidence = f"somebody asked twice, the last time {_age(again, now)} ago, and nobody has answered"
                return Occasion(self.id, subject.author_id, line, evidence, subject)
        return None


def _asked_twice(again: MessageRecord, waiting: Sequence[MessageRecord], channel: Channel) -> MessageRecord | None:
    """What is asked again by this message; None: nothing."""
    if not (is_question(again) or asks_again(again)) or called(again, channel.messages):
        return None
    soonest, latest = again.timestamp - ASKED_WITHIN, again.timestamp - ASKED_APART
    own = (m for m in waiting if m.author_id == again.author_id and soonest <= m.timestamp <= latest)
    before = (m for m in own if is_question(m) and not called(m, channel.messages))
    if asks_again(again):
        return next(before, None)
    return again if any(is_same_question(again.content, m.content) for m in before) else None


@dataclass(frozen=True, slots=True)
class PastedError:
    """An error message or a stack trace that somebody pasted, and nobody has answered for 90 s."""

    id: ClassVar[str] = "pasted_error"

    def looks(self, message: MessageRecord) -> datetime | None:
        is_candidate = pastes_error(message.content) and is_to_nobody(message)
        return message.timestamp + UNANSWERED if is_candidate else None

    def due(self, channel: Channel, now: datetime) -> Occasion | None:
        for message in _due(channel.unanswered, now, UNANSWERED):
            if self.looks(message) and not called(message, channel.messages):
                line = f"Nobody has said anything to [this error]({LINK}) of {_to(message)} yet. Shall I have a look?"
                evidence = f"an error message was pasted {_age(message, now)} ago, and nobody has answered"
                return Occasion(self.id, message.author_id, line, evidence, message)
        return None


@dataclass(frozen=True, slots=True)
class UnansweredQuestion:
    """A question to nobody in particular that nobody has answered for 90 s, in a channel where people were talking.

    They were where anybody else has spoken in the 30 minutes before it.
    """

    id: ClassVar[str] = "unanswered_question"

    def looks(self, message: MessageRecord) -> datetime | None:
        return message.timestamp + UNANSWERED if is_question(message) else None

    def due(self, channel: Channel, now: datetime) -> Occasion | None:
        for message in _due(channel.unanswered, now, UNANSWERED):
            others = _others_before(message, channel.messages) if is_question(message) else 0
            if others and not called(message, channel.messages):
                line = f"Nobody has answered [this question]({LINK}) of {_to(message)} yet. Shall I try?"
                evidence = (
                    f"a question was asked {_age(message, now)} ago, and nobody has answered; "
                    f"{others} {'other had' if others == 1 else 'others had'} spoken in the half hour before"
                )
                return Occasion(self.id, message.author_id, line, evidence, message)
        return None


def _others_before(message: MessageRecord, messages: Sequence[MessageRecord]) -> int:
    """How many other people had spoken in the 30 minutes before a message."""
    start, end = message.timestamp - TALKING, message.timestamp
    return len({m.author_id for m in messages if start <= m.timestamp < end} - {message.author_id})


@dataclass(frozen=True, slots=True)
class FollowUpNote:
    """A note of a mini-app whose time has come, for 24 hours."""

    id: ClassVar[str] = "follow_up_note"

    def looks(self, message: MessageRecord) -> datetime | None:  # noqa: ARG002 - no message brings it about
        return None

    def due(self, channel: Channel, now: datetime) -> Occasion | None:
        notes = (note for note in channel.notes if note.due <= now <= note.due + NOTE_FRESH)
        note = min(notes, key=attrgetter("due"), default=None)
        if note is None:
            return None
        line, evidence = f"<@{note.user_id}>, {note.text}", f"{note.miniapp_id} left a note to come back to it"
        return Occasion(self.id, note.user_id, line, evidence, note=note)


TRIGGERS: tuple[Trigger, ...] = (AskedAgain(), PastedError(), UnansweredQuestion(), FollowUpNote())
"""The most certain first."""


def _due(waiting: Sequence[MessageRecord], now: datetime, wait: timedelta) -> Iterator[MessageRecord]:
    """Those that have waited for this long, and are fresh."""
    start, end = now - FRESH, now - wait
    return (m for m in waiting if start <= m.timestamp <= end)


def _to(message: MessageRecord) -> str:
    return f"<@{message.author_id}>"


def _age(message: MessageRecord, now: datetime) -> str:
    return f"{(now - message.timestamp).total_seconds():.0f} s"
