"""Triggers of offers: what each waits for in a channel, and when it is due.

Triggers are stateless. Each reads the channel's recent messages and notes, and returns what an offer can be made about
now: never a message that was answered or deleted, or has no text.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Protocol

from offers.offer import LINK, Opportunity
from offers.offer_channels import OfferChannel
from offers.pasted_errors import pastes_error
from offers.questions import asks_again, called, is_question, is_same_question, is_to_nobody
from state.message import MessageRecord

UNANSWERED = timedelta(seconds=90)
UNANSWERED_AGAIN = timedelta(seconds=30)
FRESH = timedelta(minutes=15)  # after that nobody waits for an answer any more
TALKING = timedelta(minutes=30)  # before a question; in that time somebody else must have spoken
ASKED_APART = timedelta(seconds=30)  # sooner it is one question, posted twice or corrected
ASKED_WITHIN = timedelta(hours=1)
NOTE_FRESH = timedelta(hours=24)


class Trigger(Protocol):
    """One kind of opportunity."""

    @property
    def id(self) -> str: ...

    def looks(self, message: MessageRecord) -> datetime | None:
        """When to check the channel because of this message. None: no need."""

    def due(self, channel: OfferChannel, now: datetime) -> Opportunity | None:
        """What an offer can be made about now; None: nothing. Has no side effects."""


class AskedAgain:
    """A question that somebody asked twice within an hour, both times without an answer, the second for 30 s.

    A bare "anyone?" is a second time, too; the subject is then the question before it.
    """

    id = "asked_again"

    def looks(self, message: MessageRecord) -> datetime | None:
        return message.timestamp + UNANSWERED_AGAIN if is_question(message) or asks_again(message) else None

    def due(self, channel: OfferChannel, now: datetime) -> Opportunity | None:
        asked = {
            m.message_id: m for m in channel.unanswered if is_question(m) and not called(m, channel.recent.messages)
        }
        for again in _waiting(channel, now, UNANSWERED_AGAIN):
            is_nudge = asks_again(again)
            if not (is_nudge or again.message_id in asked):
                continue
            soonest, latest = again.timestamp - ASKED_WITHIN, again.timestamp - ASKED_APART
            before = (m for m in asked.values() if m.author_id == again.author_id and soonest <= m.timestamp <= latest)
            if is_nudge:
                subject = next(before, None)
            else:
                subject = again if any(is_same_question(again.wording, m.wording) for m in before) else None
            if subject:
                line = f"<@{subject.author_id}> has asked [this]({LINK}) twice and has had no answer yet. Shall I try?"
                evidence = f"somebody asked twice, the last time {_age(again, now)} ago, and nobody has answered"
                return Opportunity(self.id, subject.author_id, line, evidence, subject)
        return None


class PastedError:
    """A pasted error message or stack trace that nobody has answered for 90 s."""

    id = "pasted_error"

    def looks(self, message: MessageRecord) -> datetime | None:
        is_candidate = pastes_error(message.content) and is_to_nobody(message)
        return message.timestamp + UNANSWERED if is_candidate else None

    def due(self, channel: OfferChannel, now: datetime) -> Opportunity | None:
        causes = channel.causes.get(self.id, ())  # to read all messages again would block the event loop
        for message in _waiting(channel, now, UNANSWERED):
            if message.message_id in causes:
                to = message.author_id
                line = f"Nobody has said anything to [this error]({LINK}) of <@{to}> yet. Shall I have a look?"
                evidence = f"an error message was pasted {_age(message, now)} ago, and nobody has answered"
                return Opportunity(self.id, to, line, evidence, message)
        return None


class UnansweredQuestion:
    """A question to nobody in particular that nobody has answered for 90 s, in a channel where people were talking.

    People were talking if somebody else spoke in the 30 minutes before it. The first message of a forum post, whose id
    is the post's, counts as a question to everybody, even if it is none.
    """

    id = "unanswered_question"

    def looks(self, message: MessageRecord) -> datetime | None:
        return message.timestamp + UNANSWERED if is_question(message) else None

    def due(self, channel: OfferChannel, now: datetime) -> Opportunity | None:
        for message in _waiting(channel, now, UNANSWERED):
            to, end = message.author_id, message.timestamp
            others = {m.author_id for m in channel.recent.messages if end - TALKING <= m.timestamp < end} - {to}
            is_post = message.message_id == channel.channel_id
            if is_post and is_to_nobody(message) and all(m.author_id == to for m in channel.recent.messages):
                line = f"Nobody has said anything to [this]({LINK}) yet, <@{to}>. Shall I try?"
                evidence = f"the post was opened {_age(message, now)} ago, and nobody has answered"
                return Opportunity(self.id, to, line, evidence, message)
            if others and is_question(message):
                line = f"Nobody has answered [this question]({LINK}) of <@{to}> yet. Shall I try?"
                evidence = (
                    f"a question was asked {_age(message, now)} ago, and nobody has answered; {len(others)} "
                    f"{'other had' if len(others) == 1 else 'others had'} spoken in the half hour before"
                )
                return Opportunity(self.id, to, line, evidence, message)
        return None


class FollowUpNote:
    """A mini-app's note that is due, until 24 hours later."""

    id = "follow_up_note"

    def looks(self, message: MessageRecord) -> datetime | None:  # noqa: ARG002 - no message triggers it
        return None

    def due(self, channel: OfferChannel, now: datetime) -> Opportunity | None:
        notes = (note for note in channel.notes if note.due <= now <= note.due + NOTE_FRESH)
        note = min(notes, key=attrgetter("due"), default=None)
        if note is None:
            return None
        line, evidence = f"<@{note.user_id}>, {note.text}", f"{note.miniapp_id} left a note to come back to it"
        return Opportunity(self.id, note.user_id, line, evidence, note=note)


TRIGGERS: tuple[Trigger, ...] = (AskedAgain(), PastedError(), UnansweredQuestion(), FollowUpNote())
"""In the order in which they are asked, the most certain first."""


def _waiting(channel: OfferChannel, now: datetime, wait: timedelta) -> Iterator[MessageRecord]:
    """Messages without an answer for `wait`, at most 15 minutes old, that call nobody by name; newest first."""
    start, end = now - FRESH, now - wait
    return (m for m in channel.unanswered if start <= m.timestamp <= end and not called(m, channel.recent.messages))


def _age(message: MessageRecord, now: datetime) -> str:
    return f"{(now - message.timestamp).total_seconds():.0f} s"
