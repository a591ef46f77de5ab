"""Proactive offers: tracks channels and checks every 5 s.

One loop checks all channels. The cost of a round depends on how many are due, not on how many exist.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol, TypeVar

import structlog

from conversation import MessageRecord
from miniapps.router import MiniAppRouter
from offers.offer import Ending, Note, Opportunity
from offers.offer_channels import ANY, RETRY, OfferChannel, OfferChannels
from offers.offer_limits import of_the_last_day
from offers.open_offers import OpenOffers
from offers.recent_messages import as_kept
from offers.triggers import NOTE_FRESH, UNANSWERED, Trigger
from place import Place
from state.budget import charge_to
from state.message import told_to
from state.proactive import AgentStateV2, ConversationEventType
from state.spending import Payer

log = structlog.get_logger()

PULSE_SECONDS = 5.0
NOT_READY, OVER_BUDGET = "not_ready", "over_budget"
PASSING = (NOT_READY, OVER_BUDGET)  # reasons that soon pass

T = TypeVar("T")

Answerable = Callable[[MessageRecord, Sequence[MessageRecord]], Awaitable[bool]]
"""(a question, the channel's recent messages) -> whether the bot can answer it."""
Newcomers = Callable[[Place, Collection[int]], Awaitable[frozenset[int] | None]]
"""(a place, people) -> those of them who may not read its history now; None: unknown at the moment."""


@dataclass(frozen=True, slots=True)
class OffersStatus:
    """Status of offers in a channel.

    made_today, per_day: how many were made in the last 24 hours, and the most that are allowed. is_open: an offer
    awaits a reply. earliest: when the next can be made at the earliest (aware); None: now. may_speak: the bot may write
    there. quiet_hours: in words; empty: none.
    """

    is_on: bool = True
    made_today: int = 0
    per_day: int = 3
    is_open: bool = False
    earliest: datetime | None = None
    may_speak: bool = True
    quiet_hours: str = ""


class Wishes(Protocol):
    """Settings of places that concern offers."""

    def wants_offers(self, channel_id: int) -> bool | None:
        """Whether offers are on there. None: not known."""

    def has_judge(self, channel_id: int) -> bool:
        """Whether a model is asked there first if the bot can answer the question."""

    def is_blocked(self, channel_id: int, user_id: int) -> bool:
        """Whether somebody is among the blocked members there; roles are not looked at."""

    def switch_offers(self, channel_id: int, guild_id: int, *, on: bool, by: int) -> None: ...


class ProactiveOffers:
    """Tracks what happens in the channels, and makes offers. offers: the open ones. wishes: where they are on.

    forbids: (guild id, channel id) -> why the bot may not speak there now; None: it may. miniapps: know whether
    their notes still apply. answerable: None: no model is asked before an offer.
    """

    def __init__(
        self,
        channels: OfferChannels,
        offers: OpenOffers,
        wishes: Wishes,
        *,
        triggers: Sequence[Trigger],
        forbids: Callable[[int, int], str | None],
        miniapps: MiniAppRouter,
        newcomers: Newcomers,
        answerable: Answerable | None = None,
    ) -> None:
        self._channels = channels
        self._offers = offers
        self._wishes = wishes
        self._triggers = triggers
        self._forbids = forbids
        self._miniapps = miniapps
        self._newcomers = newcomers
        self._answerable = answerable

    # What happens in a channel

    def listens(self, channel_id: int) -> bool:
        """Whether offers are on there, so that it must be given all messages of people."""
        channel = self._channels.get(channel_id)
        return channel is not None and channel.is_on

    def follows(self, channel_id: int, guild_id: int, parent_id: int = 0, *, is_on: bool) -> bool:
        """Updates the channel from its settings when a message comes, and returns is_on.

        is_on: whether offers are on in its settings; parent_id: the channel of a thread; 0: no thread.
        """
        channel = self._channels.get(channel_id)
        if channel is None and not is_on:
            return False
        channel = channel or self._channels.open(channel_id, guild_id)
        channel.parent_id = channel.parent_id or parent_id
        if channel.is_on is not is_on:
            self._set(channel, is_on=is_on)
        return is_on

    def _set(self, channel: OfferChannel, *, is_on: bool) -> None:
        """Switches the channel on or off. Off drops its recent messages and notes."""
        if channel.is_on is is_on:
            return
        channel.is_on = is_on
        if not is_on:
            self._offers.end(channel, Ending.NOT_HERE)
            channel.drop_recent()
        if not (is_on and channel.parent_id):  # a thread is not stored before its first message
            self._channels.changed(channel)

    def heard(self, channel_id: int, message: MessageRecord) -> None:
        """Takes in a person's message in a channel where offers are on."""
        channel = self._channels.open(channel_id)
        self._offers.tick(channel)
        if not self._offers.reply_of(channel_id, message):  # "no thanks" to an offer does not answer the question
            channel.recent.heard(message, self._channels.clock())
            self._plan_looks(channel, message)

    def _plan_looks(self, channel: OfferChannel, message: MessageRecord) -> None:
        for trigger in self._triggers:
            channel.look_for(trigger.id, message.message_id, _tried(trigger, trigger.looks, message))
        if message.message_id == channel.channel_id:  # the first message of a forum post counts as a question
            channel.look_at(message.timestamp + UNANSWERED)
        self._end_if_answered(channel)
        self._channels.plan(channel)

    def dealt_with(self, channel_id: int, message_id: int) -> None:
        """Notes that a message was answered where it is not seen here: by another bot, or in a thread."""
        if channel := self._channels.get(channel_id):
            channel.recent.mark_answered(message_id)
            self._end_if_answered(channel)

    def _end_if_answered(self, channel: OfferChannel) -> None:
        if channel.offer and channel.offer.opportunity.subject and channel.offer.subject_id in channel.recent.answered:
            self._offers.end(channel, Ending.OVERTAKEN)

    def answered(self, channel_id: int, guild_id: int, message: MessageRecord) -> None:
        """Notes that the bot answers a message there."""
        channel = self._note_interaction(channel_id, guild_id)
        if channel.recent.messages:
            channel.recent.mark_answered(message.message_id)
        if channel.offer and channel.offer.user_id == message.author_id:
            self._offers.end(channel, Ending.OVERTAKEN)
        if not channel.machine.conversation_linked:
            channel.link(ConversationEventType.REPLY_EXISTING)
        self._channels.changed(channel)

    def clicked(self, channel_id: int, guild_id: int) -> None:
        """Notes that somebody clicked an answer on one of the bot's cards."""
        self._channels.changed(self._note_interaction(channel_id, guild_id))

    def toured(self, channel_id: int, guild_id: int) -> None:
        """Notes that somebody is shown the tour, which ends after the session timeout without an interaction."""
        channel = self._note_interaction(channel_id, guild_id)
        channel.machine.set_visual_guidance(True)
        self._channels.changed(channel)

    def _note_interaction(self, channel_id: int, guild_id: int) -> OfferChannel:
        """Notes an interaction with the bot. The machine allows those at any time, also during a cooldown."""
        channel = self._channels.open(channel_id, guild_id)
        self._offers.tick(channel)
        if channel.machine.current_state is AgentStateV2.THINKING:
            channel.machine.transition_to_reactive()
        else:
            channel.machine.record_user_interaction()
        return channel

    def reacted(self, channel_id: int) -> None:
        """Notes that somebody reacted to one of the bot's messages."""
        if channel := self._channels.get(channel_id):
            self._offers.tick(channel)
            channel.machine.record_reaction()
            self._channels.changed(channel)

    def note(self, channel_id: int, note: Note) -> None:
        """Keeps a mini-app's follow-up, if offers are on there."""
        channel = self._channels.get(channel_id)
        if channel and channel.is_on:
            channel.note(note)
            self._channels.changed(channel)

    # Whether offers are wanted

    async def switch(self, channel_id: int, guild_id: int, *, on: bool, by: int = 0) -> bool:
        """Switches offers on or off in the channel and its threads. by: id of the user who does.

        Returns whether that changed anything. Raises OSError if it could not be stored.
        """
        has_changed = self._switch(channel_id, guild_id, on=on, by=by)
        if not await self._channels.settled():
            raise OSError("what was switched could not be written")
        return has_changed

    def switch_off(self, channel_id: int, *, by: int = 0) -> bool:
        """Switches offers off without waiting until that is stored. In a thread it does so for the thread's channel."""
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

    def revised(self, channel_id: int, message: MessageRecord, *, is_reworded: bool = True) -> bool:
        """Follows an edit: an open offer is then about the new words. Returns whether the message is its subject.

        is_reworded: its author changed its words, which a mini-app's note may have.
        """
        if (channel := self._channels.get(channel_id)) is None:
            return False
        channel.recent.revise(message)
        if is_reworded:
            self._drop_notes(channel, lambda note: note.is_from(message.message_id))
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
            self._drop_notes(channel, lambda note: any(map(note.is_from, message_ids)))
            if channel.offer and channel.offer.subject_id in message_ids:
                self._offers.end(channel, Ending.WITHDRAWN)
            elif channel.offer and channel.offer.message_id in message_ids:  # somebody deleted the offer itself
                self._offers.end(channel, Ending.DECLINED, stays=True)

    def forget(self, channel_id: int, author_id: int | None) -> None:
        """Drops one person's messages and notes, or, with None, everybody's, and withdraws an open offer about them."""
        if channel := self._channels.get(channel_id):
            channel.recent.forget(author_id)
            self._drop_notes(channel, lambda note: author_id in (None, note.user_id))
            if channel.offer and author_id in (None, channel.offer.user_id):
                self._offers.end(channel, Ending.WITHDRAWN)

    def expire(self, channel_id: int, before: int) -> None:
        """Drops notes whose source message has a lower id than `before`."""
        if channel := self._channels.get(channel_id):
            self._drop_notes(channel, lambda note: note.source_id < before)

    def leave(self, channel_id: int) -> None:
        """Drops a channel and its threads, after it was deleted or the bot lost access."""
        for gone in (channel_id, *(thread.channel_id for thread in self._channels.threads_of(channel_id))):
            self._channels.drop(gone)

    def leave_guild(self, guild_id: int) -> None:
        """Drops the channels of a guild that the bot has left."""
        for channel in self._channels.of_guild(guild_id):
            self._channels.drop(channel.channel_id)

    def _drop_notes(self, channel: OfferChannel, is_gone: Callable[[Note], bool]) -> None:
        """Drops these notes, and those about what the mini-apps no longer keep; withdraws an open offer of one."""

        def stands(note: Note) -> bool:
            return not is_gone(note) and self._miniapps.still_stands(note.miniapp_id, channel.channel_id, note.about)

        if channel.offer and (offered := channel.offer.opportunity.note) and not stands(offered):
            self._offers.end(channel, Ending.WITHDRAWN)
        kept = [*filter(stands, channel.notes)]
        if len(kept) < len(channel.notes):
            channel.notes = kept
            self._channels.changed(channel)

    # The checks

    async def keep(self) -> None:
        """Checks the due channels every few seconds, until cancelled."""
        while True:
            await asyncio.sleep(PULSE_SECONDS)
            self.pulse()

    def pulse(self) -> None:
        """Checks the due channels: makes offers, and ends those that were ignored."""
        now = self._channels.clock()
        for channel in self._channels.due(now):
            try:
                self._check(channel, now)
            except Exception:
                # A fault in one channel must not keep the others from being checked.
                log.exception("look_broken", channel=channel.channel_id)
                self._channels.wake(channel, now + RETRY)

    def _renew(self, channel: OfferChannel) -> None:
        """Updates the channel from the current settings."""
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
        """The first opportunity that a due trigger finds. If there are notes, all triggers are asked."""
        asked = (t for t in self._triggers if channel.notes or ANY in due or t.id in due)
        return next((found for trigger in asked if (found := _tried(trigger, trigger.due, channel, now))), None)

    def _refusal(self, channel: OfferChannel, now: datetime) -> str | None:
        """Why no offer may be made; None: one may be. Offers in threads count towards their channel's daily cap."""
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
        """Makes an offer, if the bot can answer it and it still applies after the model was asked."""
        subject = opportunity.subject
        if why := self._forbids(channel.guild_id, channel.channel_id):
            self._put_off(channel, opportunity, why)
            return
        if self._wishes.is_blocked(channel.channel_id, opportunity.user_id):  # they may have been excluded since
            if subject:
                channel.exclude(subject.message_id)
            self._put_off(channel, opportunity, "not_answered")
            return
        parent_id = channel.parent_id
        thread_id = channel.channel_id if parent_id else 0
        whose = frozenset({opportunity.user_id})
        charge_to(Payer(channel.guild_id, whose, channel_id=parent_id or channel.channel_id, thread_id=thread_id))
        judge = self._answerable if self._wishes.has_judge(channel.channel_id) else None
        if judge and subject and not await self._is_answerable(judge, channel, subject):
            channel.exclude(subject.message_id)
            channel.look_at(self._channels.clock())  # there may be another opportunity after this one
            log.info("offer_refused", channel=channel.channel_id, trigger=opportunity.trigger, reason="not_answerable")
            return
        # While the judge was asked, the message may have been answered or deleted, or offers switched off.
        self._offers.tick(channel)
        if self._wishes.wants_offers(channel.channel_id) is False:
            self._set(channel, is_on=False)
        now = self._channels.clock()
        current = self._opportunity(channel, now)
        why = self._refusal(channel, now) or self._forbids(channel.guild_id, channel.channel_id)
        # Not compared by its line and evidence, which say how long nobody has answered.
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

    async def _is_answerable(self, judge: Answerable, channel: OfferChannel, subject: MessageRecord) -> bool:
        """Asks the judge, which is told of the channel only what whoever asked may read."""
        place = Place(channel.guild_id, channel.channel_id, parent_id=channel.parent_id or None)
        reads = await self._newcomers(place, [subject.author_id]) == frozenset()
        if subject not in (recent := channel.recent.messages):  # changed while Discord was asked for the author's roles
            return True  # the offer no longer applies
        return await judge(subject, recent if reads else [*told_to({subject.author_id}, recent).values()])


def _tried(trigger: Trigger, ask: Callable[..., T | None], *given: Any) -> T | None:
    """Calls a trigger's method. None if it raises: a broken trigger must not stop the others."""
    try:
        return ask(*given)
    except Exception:
        log.exception("trigger_broken", trigger=trigger.id)
        return None
