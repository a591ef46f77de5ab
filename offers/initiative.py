"""When the bot speaks unasked: what happens in the channels is told to this, and on its pulse it makes offers.

All channels share one pulse. What it costs depends on how many channels have something due, not on how many there are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import structlog

from conversation import MessageRecord
from offers.book import Book
from offers.channel import ANY, RETRY, Channel
from offers.occasion import Note, Occasion, Trigger
from offers.offer import Ending, Offer
from offers.offers import Offers
from offers.restraint import of_the_last_day
from offers.ring import as_kept
from offers.triggers import NOTE_FRESH
from state.proactive import ConversationEventType

log = structlog.get_logger()

PULSE_SECONDS = 5.0
NOT_READY, OVER_BUDGET = "not_ready", "over_budget"
PASSING = (NOT_READY, OVER_BUDGET)  # why the bot may not speak for a while only

Answerable = Callable[[MessageRecord, Sequence[MessageRecord]], Awaitable[bool]]
"""(a question, what was said in the channel lately) -> whether the bot can answer it."""


@dataclass(frozen=True, slots=True)
class Status:
    """How it stands with offers in a channel. earliest: before when none is made; None: now. quiet_hours: in words."""

    is_on: bool
    made_today: int
    per_day: int
    is_open: bool
    earliest: datetime | None
    may_speak: bool
    quiet_hours: str


class Initiative:
    """What the bot does of itself. offers: those that are open.

    forbids: (guild id, channel id) -> why the bot may not speak there now, None where it may. still_stands: (mini-app,
    channel id, about) -> whether what a note was about is still so. settled: waits until what changed is stored; gives
    whether it is. answerable: None to do without.
    """

    def __init__(
        self,
        book: Book,
        offers: Offers,
        *,
        triggers: Sequence[Trigger],
        forbids: Callable[[int, int], str | None],
        still_stands: Callable[[str, int, str], bool],
        settled: Callable[[], Awaitable[bool]],
        answerable: Answerable | None = None,
    ) -> None:
        self._book = book
        self._offers = offers
        self._triggers = triggers
        self._forbids = forbids
        self._still_stands = still_stands
        self._settled = settled
        self._answerable = answerable

    # What happens in a channel

    def listens(self, channel_id: int) -> bool:
        """Whether all that people say there is to be heard."""
        channel = self._book.get(channel_id)
        return channel is not None and channel.is_on

    def heard(self, channel_id: int, message: MessageRecord) -> None:
        """Somebody said something where offers are on."""
        channel = self._book.open(channel_id)
        self._offers.tick(channel)
        if self._offers.reply_of(channel_id, message):
            return  # "no thanks" is no word on the question
        channel.ring.heard(message, self._book.clock())
        self._heed(channel, message)

    def _heed(self, channel: Channel, message: MessageRecord) -> None:
        for trigger in self._triggers:
            if at := _looks(trigger, message):
                channel.look_at(at, trigger.id)
        self._end_if_answered(channel)
        self._book.plan(channel)

    def dealt_with(self, channel_id: int, message_id: int) -> None:
        """Somebody whom we do not listen to has answered a message: another bot, or people in a thread."""
        if channel := self._book.get(channel_id):
            channel.ring.mark_answered(message_id)
            self._end_if_answered(channel)

    def _end_if_answered(self, channel: Channel) -> None:
        if channel.offer and channel.offer.occasion.subject and channel.offer.subject_id in channel.ring.answered:
            self._offers.end(channel, Ending.OVERTAKEN)

    def answered(self, channel_id: int, guild_id: int, message: MessageRecord) -> None:
        """We answer a message there."""
        channel = self._talk(channel_id, guild_id)
        channel.ring.mark_answered(message.message_id)
        if channel.offer and channel.offer.user_id == message.author_id:
            self._offers.end(channel, Ending.OVERTAKEN)
        self._book.link(channel, ConversationEventType.REPLY_EXISTING)
        self._book.changed(channel)

    def clicked(self, channel_id: int, guild_id: int) -> None:
        """Somebody answered a question of ours on its card, or took the tour."""
        self._book.changed(self._talk(channel_id, guild_id))

    def reacted(self, channel_id: int) -> None:
        """Somebody reacted to one of our messages."""
        if channel := self._book.get(channel_id):
            self._offers.tick(channel)
            channel.machine.record_reaction()
            self._book.changed(channel)

    def _talk(self, channel_id: int, guild_id: int = 0) -> Channel:
        channel = self._book.open(channel_id, guild_id)
        self._offers.tick(channel)
        channel.talk()
        return channel

    def note(self, channel_id: int, note: Note) -> None:
        """A mini-app wants to come back to something, which it may where offers are on."""
        channel = self._book.get(channel_id)
        if channel and channel.is_on:
            channel.note(note)
            self._book.changed(channel)

    # Whether offers are wanted

    async def switch(self, channel_id: int, guild_id: int, *, on: bool) -> bool:
        """Has offers made in the channel, or no more. Returns whether that changed anything.

        Raises OSError where it could not be stored.
        """
        has_changed = self._switch_on(channel_id, guild_id) if on else self.switch_off(channel_id)
        if not await self._settled():
            raise OSError("what was switched could not be written")
        return has_changed

    def _switch_on(self, channel_id: int, guild_id: int) -> bool:
        channel = self._book.open(channel_id, guild_id)
        was_on, channel.is_on = channel.is_on, True
        self._book.changed(channel)
        return not was_on

    def switch_off(self, channel_id: int) -> bool:
        """As switch, without waiting. Nothing stays of what was heard there."""
        channel = self._book.open(channel_id)
        was_on, channel.is_on = channel.is_on, False
        self._offers.end(channel, Ending.NOT_HERE)
        channel.silence()
        self._book.changed(channel)
        return was_on

    def status(self, channel_id: int) -> Status:
        channel, restraint, now = self._book.open(channel_id), self._book.restraint, self._book.clock()
        self._offers.tick(channel)
        hours = restraint.quiet_hours
        status = Status(
            channel.is_on,
            len(of_the_last_day(channel.made, now)),
            restraint.per_day,
            channel.offer is not None,
            channel.earliest(restraint, now),
            self._forbids(channel.guild_id, channel_id) in (None, *PASSING),
            f"{hours[0]:%H:%M} to {hours[1]:%H:%M} {hours[2].key}" if hours else "",
        )
        self._book.plan(channel)
        return status

    # What is taken back

    def revised(self, channel_id: int, message: MessageRecord) -> bool:
        """Follows an edit. What was offered is about the words that stand now. Returns whether it was about that."""
        if (channel := self._book.get(channel_id)) is None:
            return False
        channel.ring.revise(message)
        offer = channel.offer
        is_subject = bool(offer and offer.occasion.subject and offer.subject_id == message.message_id)
        if offer and is_subject:
            self._revise(channel, offer, as_kept(message))
        self._heed(channel, message)
        return is_subject

    def _revise(self, channel: Channel, offer: Offer, subject: MessageRecord) -> None:
        """Its subject may be no occasion any more."""
        channel.offer = replace(offer, occasion=replace(offer.occasion, subject=subject))
        self._book.changed(channel)
        trigger = next((t for t in self._triggers if t.id == offer.occasion.trigger), None)
        if trigger is None or _looks(trigger, subject) is None:
            self._offers.end(channel, Ending.WITHDRAWN)

    def messages_gone(self, channel_id: int, message_ids: Collection[int]) -> None:
        """Follows a deletion."""
        if channel := self._book.get(channel_id):
            channel.ring.remove(message_ids)
            self._drop_notes(channel, lambda note: note.source_id in message_ids)
            if channel.offer and channel.offer.subject_id in message_ids:
                self._offers.end(channel, Ending.WITHDRAWN)
            elif channel.offer and channel.offer.message_id in message_ids:  # somebody did not want it there
                self._offers.end(channel, Ending.DECLINED, stays=True)

    def forget(self, channel_id: int, author_id: int | None) -> None:
        """Drops what one person said, or, with None, all; and what was to be offered about it."""
        if channel := self._book.get(channel_id):
            channel.ring.forget(author_id)
            self._drop_notes(channel, lambda note: author_id in (None, note.user_id))
            if channel.offer and author_id in (None, channel.offer.user_id):
                self._offers.end(channel, Ending.WITHDRAWN)

    def expire(self, channel_id: int, before: int) -> None:
        """Drops notes that go back to messages with lower ids."""
        if channel := self._book.get(channel_id):
            self._drop_notes(channel, lambda note: note.source_id < before)

    def leave(self, channel_id: int) -> None:
        """The channel is gone, or we are."""
        self._book.drop(channel_id)

    def _drop_notes(self, channel: Channel, is_gone: Callable[[Note], bool]) -> None:
        """Also those that are about something which the mini-apps do not keep any more."""
        kept = [note for note in channel.notes if not is_gone(note) and self._holds(channel, note)]
        if len(kept) < len(channel.notes):
            channel.notes = kept
            self._book.changed(channel)

    def _holds(self, channel: Channel, note: Note) -> bool:
        return self._still_stands(note.miniapp_id, channel.channel_id, note.about)

    # The pulse

    async def keep(self) -> None:
        """Looks every few seconds at the channels where something is due. Until cancelled."""
        while True:
            await asyncio.sleep(PULSE_SECONDS)
            self.pulse()

    def pulse(self) -> None:
        """Looks at the channels where something is due: offers are made, those that were ignored go."""
        now = self._book.clock()
        for channel in self._book.due(now):
            try:
                self._look(channel, now)
            except Exception:
                # The outermost edge of a look: the other channels are looked at all the same.
                log.exception("look_broken", channel=channel.channel_id)
                self._book.wake(channel, now + RETRY)

    def _look(self, channel: Channel, now: datetime) -> None:
        self._offers.tick(channel)
        looking = channel.looked(now)
        if channel.notes:
            self._drop_notes(channel, lambda note: note.due < now - NOTE_FRESH)
        if channel.is_busy:
            channel.look_at(now + RETRY)
        elif channel.offer and channel.offer.message_id is None:
            self._begin(channel, self._offers.resume(channel, channel.offer))
        elif channel.offer and channel.is_unread and channel.offer.occasion.subject:
            self._begin(channel, self._offers.reread(channel, channel.offer))
        elif channel.is_on and (occasion := self._occasion(channel, now, looking)):
            if refusal := channel.refusal(self._book.restraint, now):
                self._put_off(channel, occasion, refusal, now)
            else:
                self._begin(channel, self._offer(channel, occasion))
        self._book.plan(channel)

    def _occasion(self, channel: Channel, now: datetime, looking: Collection[str] = (ANY,)) -> Occasion | None:
        """The first occasion of a trigger that is to look now; of those that look for notes there may always be one."""
        asked = (t for t in self._triggers if channel.notes or ANY in looking or t.id in looking)
        return next((found for trigger in asked if (found := _due(trigger, channel, now))), None)

    def _put_off(self, channel: Channel, occasion: Occasion, why: str, now: datetime) -> None:
        log.debug("offer_refused", channel=channel.channel_id, trigger=occasion.trigger, reason=why)
        channel.look_at(now + RETRY, occasion.trigger)

    def _begin(self, channel: Channel, work: Coroutine[Any, Any, None]) -> None:
        channel.is_busy = True
        self._offers.spawn(self._busily(channel, work))

    async def _busily(self, channel: Channel, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        finally:
            channel.is_busy = False
            self._book.plan(channel)

    async def _offer(self, channel: Channel, occasion: Occasion) -> None:
        if why := self._forbids(channel.guild_id, channel.channel_id):
            self._put_off(channel, occasion, why, self._book.clock())
        elif await self._is_answerable(channel, occasion):
            await self._offer_still(channel, occasion)

    async def _offer_still(self, channel: Channel, occasion: Occasion) -> None:
        """It may have been answered or deleted since, while the judge thought about it for one."""
        self._offers.tick(channel)
        now = self._book.clock()
        current, restraint = self._occasion(channel, now), self._book.restraint
        why = channel.refusal(restraint, now) or self._forbids(channel.guild_id, channel.channel_id)
        if current and current.is_about_same(occasion) and why is None:
            await self._offers.make(channel, current)
        else:
            self._put_off(channel, occasion, why or "not_any_more", now)

    async def _is_answerable(self, channel: Channel, occasion: Occasion) -> bool:
        subject = occasion.subject
        if self._answerable is None or subject is None or await self._answerable(subject, channel.messages):
            return True
        channel.not_again(subject.message_id)
        channel.look_at(self._book.clock())  # there may be another occasion behind it
        log.info("offer_refused", channel=channel.channel_id, trigger=occasion.trigger, reason="not_answerable")
        return False


def _looks(trigger: Trigger, message: MessageRecord) -> datetime | None:
    try:
        return trigger.looks(message)
    except Exception:
        # The outermost edge of a trigger: one that is broken must not take the others with it.
        log.exception("trigger_broken", trigger=trigger.id, message=message.message_id)
        return None


def _due(trigger: Trigger, channel: Channel, now: datetime) -> Occasion | None:
    try:
        return trigger.due(channel, now)
    except Exception:
        log.exception("trigger_broken", trigger=trigger.id, channel=channel.channel_id)
        return None
