"""Proactive offers: tracks channels and checks every 5 s.

One loop checks all channels. What a round costs depends on how many have something due, not on how many there are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol, TypeVar

import structlog

from conversation import MessageRecord
from offers.offer import Ending, Note, Opportunity
from offers.offer_channels import ANY, RETRY, OfferChannel, OfferChannels
from offers.offer_limits import of_the_last_day
from offers.open_offers import OpenOffers
from offers.recent_messages import RecentMessages, as_kept
from offers.triggers import NOTE_FRESH, UNANSWERED, Trigger
from state.proactive import AgentStateV2, ConversationEventType
from state.spending import PAYER, Payer

log = structlog.get_logger()

PULSE_SECONDS = 5.0
NOT_READY, OVER_BUDGET = "not_ready", "over_budget"
PASSING = (NOT_READY, OVER_BUDGET)  # why the bot may not speak for a while only

T = TypeVar("T")

Answerable = Callable[[MessageRecord, Sequence[MessageRecord]], Awaitable[bool]]
"""(a question, what was said in the channel lately) -> whether the bot can answer it."""


@dataclass(frozen=True, slots=True)
class OffersStatus:
    """How things stand with offers in a channel.

    made_today, per_day: how many were made in the last 24 hours, and how many at most. is_open: one awaits an answer.
    earliest: when the next can be made at the earliest (aware), None: now. may_speak: the bot may write there.
    quiet_hours: when it makes none, in words; empty: no such hours.
    """

    is_on: bool = True
    made_today: int = 0
    per_day: int = 3
    is_open: bool = False
    earliest: datetime | None = None
    may_speak: bool = True
    quiet_hours: str = ""


class Wishes(Protocol):
    """Where offers are wanted, which is a setting of places."""

    def wants_offers(self, channel_id: int) -> bool | None:
        """None where it is not known."""

    def has_judge(self, channel_id: int) -> bool:
        """Whether a judge is asked first there."""

    def is_blocked(self, channel_id: int, user_id: int) -> bool:
        """Whether somebody is not answered there, whichever roles they have."""

    def switch_offers(self, channel_id: int, guild_id: int, *, on: bool, by: int) -> None: ...


class ProactiveOffers:
    """Is told what happens in the channels, and makes offers. offers: those that are open. wishes: where they are on.

    forbids: (guild id, channel id) -> why the bot may not speak there now, None where it may. still_stands: (mini-app,
    channel id, about) -> whether what a note was about is still so. answerable: None to do without.
    """

    def __init__(
        self,
        channels: OfferChannels,
        offers: OpenOffers,
        wishes: Wishes,
        *,
        triggers: Sequence[Trigger],
        forbids: Callable[[int, int], str | None],
        still_stands: Callable[[str, int, str], bool],
        answerable: Answerable | None = None,
    ) -> None:
        self._channels = channels
        self._offers = offers
        self._wishes = wishes
        self._triggers = triggers
        self._forbids = forbids
        self._still_stands = still_stands
        self._answerable = answerable

    # What happens in a channel

    def listens(self, channel_id: int) -> bool:
        """Whether all that people say there is to be heard."""
        channel = self._channels.get(channel_id)
        return channel is not None and channel.is_on

    def follows(self, channel_id: int, guild_id: int, parent_id: int = 0, *, is_on: bool) -> bool:
        """The same, as soon as somebody says something there. is_on: as is set for it; parent_id: of a thread, its
        channel."""
        channel = self._channels.get(channel_id)
        if channel is None and not is_on:
            return False
        self._set(channel or self._channels.open(channel_id, guild_id), parent_id, is_on=is_on)
        return is_on

    def _set(self, channel: OfferChannel, parent_id: int = 0, *, is_on: bool) -> None:
        """Follows what is set: where offers are off nothing stays of what was heard."""
        channel.parent_id = channel.parent_id or parent_id
        if channel.is_on is is_on:
            return
        channel.is_on = is_on
        if not is_on:
            self._offers.end(channel, Ending.NOT_HERE)
            channel.recent, channel.notes, channel.looks = RecentMessages(), [], []
        if not (is_on and channel.parent_id):  # of a thread nothing is kept before something is heard there
            self._channels.changed(channel)

    def heard(self, channel_id: int, message: MessageRecord) -> None:
        """Somebody said something where offers are on."""
        channel = self._channels.open(channel_id)
        self._offers.tick(channel)
        if not self._offers.reply_of(channel_id, message):  # "no thanks" is no word on the question
            channel.recent.heard(message, self._channels.clock())
            self._plan_looks(channel, message)

    def _plan_looks(self, channel: OfferChannel, message: MessageRecord) -> None:
        for trigger in self._triggers:
            if at := _tried(trigger, trigger.looks, message):
                channel.look_at(at, trigger.id)
        if message.message_id == channel.channel_id:  # what opens a post is a question, however it is put
            channel.look_at(message.timestamp + UNANSWERED)
        self._end_if_answered(channel)
        self._channels.plan(channel)

    def dealt_with(self, channel_id: int, message_id: int) -> None:
        """Somebody whom we do not listen to has answered a message: another bot, or people in a thread."""
        if channel := self._channels.get(channel_id):
            channel.recent.mark_answered(message_id)
            self._end_if_answered(channel)

    def _end_if_answered(self, channel: OfferChannel) -> None:
        if channel.offer and channel.offer.opportunity.subject and channel.offer.subject_id in channel.recent.answered:
            self._offers.end(channel, Ending.OVERTAKEN)

    def answered(self, channel_id: int, guild_id: int, message: MessageRecord) -> None:
        """We answer a message there."""
        channel = self._talk(channel_id, guild_id)
        channel.recent.mark_answered(message.message_id)
        if channel.offer and channel.offer.user_id == message.author_id:
            self._offers.end(channel, Ending.OVERTAKEN)
        channel.link(ConversationEventType.REPLY_EXISTING)
        self._channels.changed(channel)

    def clicked(self, channel_id: int, guild_id: int) -> None:
        """Somebody answered a question of ours on its card."""
        self._channels.changed(self._talk(channel_id, guild_id))

    def toured(self, channel_id: int, guild_id: int) -> None:
        """Somebody is shown the tour, which runs until nobody has done anything for the machine's timeout."""
        channel = self._talk(channel_id, guild_id)
        channel.machine.set_visual_guidance(True)
        self._channels.changed(channel)

    def _talk(self, channel_id: int, guild_id: int) -> OfferChannel:
        """Somebody talks with us, which never waits for the machine."""
        channel = self._channels.open(channel_id, guild_id)
        self._offers.tick(channel)
        if channel.machine.current_state is AgentStateV2.THINKING:
            channel.machine.transition_to_reactive()
        else:
            channel.machine.record_user_interaction()
        return channel

    def reacted(self, channel_id: int) -> None:
        """Somebody reacted to one of our messages."""
        if channel := self._channels.get(channel_id):
            self._offers.tick(channel)
            channel.machine.record_reaction()
            self._channels.changed(channel)

    def note(self, channel_id: int, note: Note) -> None:
        """A mini-app wants to come back to something, which it may where offers are on."""
        channel = self._channels.get(channel_id)
        if channel and channel.is_on:
            channel.note(note)
            self._channels.changed(channel)

    # Whether offers are wanted

    async def switch(self, channel_id: int, guild_id: int, *, on: bool, by: int = 0) -> bool:
        """Has offers made in the channel and its threads, or no more. by: whose id.

        Returns whether that changed anything.

        Raises OSError where it could not be stored.
        """
        has_changed = self._switch(channel_id, guild_id, on=on, by=by)
        if not await self._channels.settled():
            raise OSError("what was switched could not be written")
        return has_changed

    def switch_off(self, channel_id: int, *, by: int = 0) -> bool:
        """As switch, without waiting; of a thread, for its channel."""
        asked = self._channels.open(channel_id)
        return self._switch(asked.parent_id or channel_id, asked.guild_id, on=False, by=by)

    def _switch(self, channel_id: int, guild_id: int, *, on: bool, by: int) -> bool:
        channel = self._channels.open(channel_id, guild_id)
        was_on = channel.is_on or bool(self._wishes.wants_offers(channel_id))
        self._wishes.switch_offers(channel_id, channel.guild_id, on=on, by=by)
        for place in (channel, *([] if on else self._channels.threads_of(channel_id))):
            was_on = was_on or place.is_on
            self._set(place, is_on=on)
            self._channels.changed(place)
        return was_on is not on

    def status(self, channel_id: int) -> OffersStatus:
        channel, limits, now = self._channels.open(channel_id), self._channels.limits, self._channels.clock()
        self._offers.tick(channel)
        self._renew(channel)
        hours = limits.quiet_hours
        status = OffersStatus(
            channel.is_on,
            len(of_the_last_day(channel.made, now)),
            limits.per_day,
            channel.offer is not None,
            channel.earliest(now),
            self._forbids(channel.guild_id, channel_id) in (None, *PASSING),
            f"{hours[0]:%H:%M} to {hours[1]:%H:%M} {hours[2].key}" if hours else "",
        )
        self._channels.plan(channel)
        return status

    # What is taken back

    def revised(self, channel_id: int, message: MessageRecord) -> bool:
        """Follows an edit. What was offered is about the words that stand now. Returns whether it was about that."""
        if (channel := self._channels.get(channel_id)) is None:
            return False
        channel.recent.revise(message)
        offer = channel.offer
        is_subject = bool(offer and offer.opportunity.subject and offer.subject_id == message.message_id)
        if offer and is_subject:
            subject = as_kept(message)
            channel.offer = replace(offer, opportunity=replace(offer.opportunity, subject=subject))
            self._channels.changed(channel)
            own = [trigger for trigger in self._triggers if trigger.id == offer.opportunity.trigger]
            if offer.subject_id != channel_id and not any(_tried(t, t.looks, subject) for t in own):
                self._offers.end(channel, Ending.WITHDRAWN)  # there is nothing to offer any more
        self._plan_looks(channel, message)
        return is_subject

    def messages_gone(self, channel_id: int, message_ids: Collection[int]) -> None:
        """Follows a deletion."""
        if channel := self._channels.get(channel_id):
            channel.recent.remove(message_ids)
            self._drop_notes(channel, lambda note: note.source_id in message_ids)
            if channel.offer and channel.offer.subject_id in message_ids:
                self._offers.end(channel, Ending.WITHDRAWN)
            elif channel.offer and channel.offer.message_id in message_ids:  # somebody did not want it there
                self._offers.end(channel, Ending.DECLINED, stays=True)

    def forget(self, channel_id: int, author_id: int | None) -> None:
        """Drops what one person said, or, with None, all; and what was to be offered about it."""
        if channel := self._channels.get(channel_id):
            channel.recent.forget(author_id)
            self._drop_notes(channel, lambda note: author_id in (None, note.user_id))
            if channel.offer and author_id in (None, channel.offer.user_id):
                self._offers.end(channel, Ending.WITHDRAWN)

    def expire(self, channel_id: int, before: int) -> None:
        """Drops notes that go back to messages with lower ids."""
        if channel := self._channels.get(channel_id):
            self._drop_notes(channel, lambda note: note.source_id < before)

    def leave(self, channel_id: int) -> None:
        """The channel is gone with its threads, or we are."""
        for gone in (channel_id, *(thread.channel_id for thread in self._channels.threads_of(channel_id))):
            self._channels.drop(gone)

    def leave_guild(self, guild_id: int) -> None:
        """We are not there any more."""
        for channel in self._channels.of_guild(guild_id):
            self._channels.drop(channel.channel_id)

    def _drop_notes(self, channel: OfferChannel, is_gone: Callable[[Note], bool]) -> None:
        """Also those that are about something which the mini-apps do not keep any more, and the offer that is."""

        def stands(note: Note) -> bool:
            return not is_gone(note) and self._still_stands(note.miniapp_id, channel.channel_id, note.about)

        if channel.offer and (offered := channel.offer.opportunity.note) and not stands(offered):
            self._offers.end(channel, Ending.WITHDRAWN)
        kept = [*filter(stands, channel.notes)]
        if len(kept) < len(channel.notes):
            channel.notes = kept
            self._channels.changed(channel)

    # The checks

    async def keep(self) -> None:
        """Checks every few seconds the channels where something is due. Until cancelled."""
        while True:
            await asyncio.sleep(PULSE_SECONDS)
            self.pulse()

    def pulse(self) -> None:
        """Checks the channels where something is due: offers are made, those that were ignored go."""
        now = self._channels.clock()
        for channel in self._channels.due(now):
            try:
                self._check(channel, now)
            except Exception:
                # The outermost edge of a check: the other channels are checked all the same.
                log.exception("look_broken", channel=channel.channel_id)
                self._channels.wake(channel, now + RETRY)

    def _renew(self, channel: OfferChannel) -> None:
        """Follows what is set by now."""
        is_on = self._wishes.wants_offers(channel.channel_id)
        if is_on is not None:
            self._set(channel, is_on=is_on)

    def _check(self, channel: OfferChannel, now: datetime) -> None:
        self._offers.tick(channel)
        self._renew(channel)
        due = channel.looked(now)
        if channel.notes:
            self._drop_notes(channel, lambda note: note.due < now - NOTE_FRESH)
        offer = channel.offer
        if channel.is_busy:
            channel.look_at(now + RETRY)
        elif offer and offer.message_id is None:
            self._begin(channel, self._offers.resume(channel, offer))
        elif offer and channel.is_unread and offer.opportunity.subject:
            self._begin(channel, self._offers.reread(channel, offer))
        elif channel.is_on and (opportunity := self._opportunity(channel, now, due)):
            if refusal := self._refusal(channel, now):
                self._put_off(channel, opportunity, refusal)
            else:
                self._begin(channel, self._make(channel, opportunity))
        self._channels.plan(channel)

    def _opportunity(self, channel: OfferChannel, now: datetime, due: Collection[str] = (ANY,)) -> Opportunity | None:
        """The first opportunity of a trigger that is to look now; there may always be one among the notes."""
        asked = (t for t in self._triggers if channel.notes or ANY in due or t.id in due)
        return next((found for trigger in asked if (found := _tried(trigger, trigger.due, channel, now))), None)

    def _refusal(self, channel: OfferChannel, now: datetime) -> str | None:
        """As of the channel; what is offered in its threads counts among a channel's offers of the day."""
        parent = self._channels.get(channel.parent_id)
        if parent and len(of_the_last_day(parent.made, now)) >= parent.limits.per_day:
            return "daily_cap"
        return channel.refusal(now)

    def _put_off(self, channel: OfferChannel, opportunity: Opportunity, why: str) -> None:
        log.debug("offer_refused", channel=channel.channel_id, trigger=opportunity.trigger, reason=why)
        channel.look_at(self._channels.clock() + RETRY, opportunity.trigger)

    def _begin(self, channel: OfferChannel, work: Coroutine[Any, Any, None]) -> None:
        async def busily() -> None:
            try:
                await work
            finally:
                channel.is_busy = False
                self._channels.plan(channel)

        channel.is_busy = True
        self._offers.spawn(busily())

    async def _make(self, channel: OfferChannel, opportunity: Opportunity) -> None:
        """Makes an offer, if it can be answered and nothing has come between."""
        subject = opportunity.subject
        if why := self._forbids(channel.guild_id, channel.channel_id):
            self._put_off(channel, opportunity, why)
            return
        if self._wishes.is_blocked(channel.channel_id, opportunity.user_id):  # since they were heard
            if subject:
                channel.not_again(subject.message_id)
            self._put_off(channel, opportunity, "not_answered")
            return
        parent_id = channel.parent_id
        thread_id = channel.channel_id if parent_id else 0
        PAYER.set(Payer(channel.guild_id, channel_id=parent_id or channel.channel_id, thread_id=thread_id))
        judge = self._answerable if self._wishes.has_judge(channel.channel_id) else None
        if judge and subject and not await judge(subject, channel.messages):
            channel.not_again(subject.message_id)
            channel.look_at(self._channels.clock())  # there may be another opportunity behind it
            log.info("offer_refused", channel=channel.channel_id, trigger=opportunity.trigger, reason="not_answerable")
            return
        # It may have been answered or deleted since, or offers set off, while the judge thought about it.
        self._offers.tick(channel)
        if self._wishes.wants_offers(channel.channel_id) is False:
            self._set(channel, is_on=False)
        now = self._channels.clock()
        current = self._opportunity(channel, now)
        why = self._refusal(channel, now) or self._forbids(channel.guild_id, channel.channel_id)
        # Its words may have changed: they tell for how long nobody has answered.
        is_same = current and (current.trigger, current.note) == (opportunity.trigger, opportunity.note)
        if self._wishes.is_blocked(channel.channel_id, opportunity.user_id):
            why = "not_answered"
        if why is None and current and is_same and current.subject == subject:
            if channel.parent_id:
                parent = self._channels.open(channel.parent_id, channel.guild_id)
                parent.made = [*parent.made, now]
                self._channels.changed(parent)
            await self._offers.make(channel, current)
        else:
            self._put_off(channel, opportunity, why or "not_any_more")


def _tried(trigger: Trigger, ask: Callable[..., T | None], *given: Any) -> T | None:
    """What a trigger's method gives; None where it raises: one that is broken must not take the others with it."""
    try:
        return ask(*given)
    except Exception:
        log.exception("trigger_broken", trigger=trigger.id)
        return None
