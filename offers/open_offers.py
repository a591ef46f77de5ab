"""Open offers: how one is posted, answered and ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Protocol
from uuid import uuid4

import structlog

from conversation import MessageRecord
from discord_io.channel_wire import Posted, PostError, Problem
from offers.offer import LABELS, LINK, Ending, Offer, Opportunity, Reply, read_reply
from offers.offer_channels import RETRY, OfferChannel, OfferChannels
from offers.questions import called
from offers.recent_messages import as_kept
from state.message import without_call
from state.proactive import ConversationEventType
from understanding.links import DISCORD, message_link

log = structlog.get_logger()

POST_WITHIN = timedelta(minutes=1)  # a nonce is remembered for a few minutes
SETBACKS = (Ending.DECLINED, Ending.IGNORED)


class Wire(Protocol):
    """The way into one channel. Raises PostError."""

    async def offer(self, text: str, offer_id: str, labels: Mapping[str, str], *, nonce: str) -> Posted:
        """Posts an offer with its quick replies, which are given by their names; nobody is notified."""

    async def find_offer(self, offer_id: str, after: int) -> Posted | None:
        """What stands of an offer, posted after the message with this id; None where there is none."""

    async def words_of(self, message_id: int) -> str | None:
        """A message's content; None where it is gone."""

    async def settle(self, message_id: int, text: str) -> None: ...

    async def delete(self, message_id: int) -> None: ...


class Wires(Protocol):
    """Who the bot is, and ways into channels."""

    def bot(self) -> tuple[str, int]:
        """Its name and id."""

    def open(self, guild_id: int, channel_id: int) -> Wire: ...


class OpenOffers:
    """The open offers, one in a channel at most. stands: told of an offer that was posted, with its channel.

    site: where links to messages lead.
    """

    def __init__(
        self,
        channels: OfferChannels,
        wires: Wires,
        *,
        stands: Callable[[int, Offer, Posted], None],
        site: str = DISCORD,
    ) -> None:
        self._channels = channels
        self._wires = wires
        self._stands = stands
        self._site = site
        self._work: set[asyncio.Task[None]] = set()

    def tick(self, channel: OfferChannel) -> None:
        """Has the channel notice the time, before anything else is done with it."""
        is_over = channel.tick()
        if channel.is_overdue(self._channels.clock()):
            self.end(channel, Ending.IGNORED)
        if is_over:  # the cooldown that begins is as long as the setbacks have made it
            channel.machine.thinking.active_cooldown_period_s = channel.limits.cooldown_after(channel.setbacks)
            self._channels.changed(channel)

    # From an opportunity to an offer

    async def make(self, channel: OfferChannel, opportunity: Opportunity) -> None:
        """Makes an offer, where the channel's machine lets it."""
        if not channel.machine.transition_to_proactive(opportunity.trigger):
            return
        about = opportunity.subject.message_id if opportunity.subject else 0
        link = message_link(self._site, channel.guild_id, channel.channel_id, about)
        now = self._channels.clock()
        text, parent_id = opportunity.line.replace(LINK, link), channel.parent_id
        offer = Offer(uuid4().hex, opportunity, now, channel.guild_id, text, parent_id=parent_id)
        channel.made_one(offer, now)
        self._channels.changed(channel)
        await self._channels.settled()  # so that a kill cannot have it made twice
        await self._post(channel, offer)

    async def resume(self, channel: OfferChannel, offer: Offer) -> None:
        """An earlier process may have posted it, or not. Posted once more soon, it is the same message."""
        is_fresh = self._channels.clock() - offer.made_at < POST_WITHIN
        try:
            posted = await self._wires.open(channel.guild_id, channel.channel_id).find_offer(offer.id, offer.subject_id)
        except PostError as error:
            if not is_fresh:
                self._retry(channel, error)
                return
            posted = None
        if posted:
            self._posted(channel, offer, posted)
        elif is_fresh:
            await self._post(channel, offer)
        elif _is_open(channel, offer):
            self.end(channel, Ending.WITHDRAWN)

    async def reread(self, channel: OfferChannel, offer: Offer) -> None:
        """What was edited or deleted while we were away is not offered about any more."""
        try:
            words = await self._wires.open(channel.guild_id, channel.channel_id).words_of(offer.subject_id)
        except PostError as error:
            self._retry(channel, error)
            return
        channel.is_unread = False
        subject = channel.offer.opportunity.subject if channel.offer else None
        if _is_open(channel, offer) and subject and as_kept(replace(subject, content=words or "")) != subject:
            self.end(channel, Ending.WITHDRAWN)

    def _retry(self, channel: OfferChannel, error: PostError) -> None:
        log.info("offer_not_read", channel=channel.channel_id, problem=error.problem, detail=str(error))
        channel.look_at(self._channels.clock() + RETRY)

    async def _post(self, channel: OfferChannel, offer: Offer) -> None:
        if not _is_open(channel, offer):
            return
        try:
            nonce = f"offer-{offer.subject_id}"[:25]
            posted = await self._wires.open(channel.guild_id, channel.channel_id).offer(
                offer.text, offer.id, LABELS, nonce=nonce
            )
        except PostError as error:
            log.warning("offer_failed", channel=channel.channel_id, problem=error.problem, detail=str(error))
            if error.problem is Problem.UNREACHABLE:  # it may have arrived all the same
                channel.look_at(self._channels.clock() + RETRY)
            elif _is_open(channel, offer):
                self.end(channel, Ending.WITHDRAWN)
        else:
            self._posted(channel, offer, posted)

    def _posted(self, channel: OfferChannel, offer: Offer, posted: Posted) -> None:
        if _is_open(channel, offer):
            self._shown(channel, posted)
        elif channel.shown != posted.message_id:  # it ended before it was known to stand
            self.remove(channel.guild_id, channel.channel_id, posted.message_id)

    def _shown(self, channel: OfferChannel, posted: Posted) -> None:
        """The open offer stands in the channel; told once, by Discord's answer or by a click that came before it."""
        if channel.offer is None or channel.offer.message_id is not None:
            return
        offer = channel.offer = replace(channel.offer, message_id=posted.message_id)
        channel.shown = posted.message_id
        channel.link(ConversationEventType.NEW)
        log.info("offered", about=offer.subject_id, **_ids(channel, offer))
        self._stands(channel.channel_id, offer, posted)
        self._channels.changed(channel)

    # What people answer

    def find(self, channel_id: int, offer_id: str, posted: Posted) -> Offer | None:
        """The open offer that a click was made on; None where it is over. posted: the message with the click."""
        channel = self._channels.get(channel_id)
        if channel is None:
            return None
        self.tick(channel)
        if channel.offer is None or channel.offer.id != offer_id:
            return None
        self._shown(channel, posted)
        return channel.offer

    def is_last(self, channel_id: int, message_id: int) -> bool:
        """Whether this message shows the channel's last offer, of which we know how it ends."""
        channel = self._channels.get(channel_id)
        return channel is not None and channel.shown == message_id

    def is_open(self, channel_id: int) -> bool:
        channel = self._channels.get(channel_id)
        return channel is not None and channel.offer is not None

    def reply_of(self, channel_id: int, message: MessageRecord) -> Reply | None:
        """What a message answers to the channel's open offer."""
        channel = self._channels.get(channel_id)
        offer = channel.offer if channel else None
        if channel is None or offer is None or offer.message_id is None:
            return None
        if message.author_id != offer.user_id or message.message_id < offer.message_id:
            return None
        name, me = self._wires.bot()
        if message.reply_to_id is not None:
            is_meant = message.reply_to_id == offer.message_id
        elif message.mentions == {me}:
            is_meant = True
        elif message.addressed or message.mentions_group or called(message, channel.messages):
            is_meant = False
        else:  # a bare "yes" is one to the offer where nobody else has spoken since
            since = (m for m in channel.messages if m.message_id >= offer.message_id)
            is_meant = all(m.author_id == message.author_id for m in since)
        return read_reply(without_call(message.content, me, message.calls_bot or name)) if is_meant else None

    def accept(self, channel_id: int) -> Offer | None:
        """Takes the channel's offer up; gives it, or None where there is none any more."""
        return self._reply(channel_id, Ending.ACCEPTED, stays=True)

    def decline(self, channel_id: int) -> None:
        self._reply(channel_id, Ending.DECLINED)

    def _reply(self, channel_id: int, ending: Ending, *, stays: bool = False) -> Offer | None:
        channel = self._channels.get(channel_id)
        if channel is None or (offer := channel.offer) is None:
            return None
        channel.machine.record_option_click()
        self.end(channel, ending, stays=stays)
        return offer

    # How it ends

    def end(self, channel: OfferChannel, ending: Ending, *, stays: bool = False) -> None:
        """The open offer, if there is one, is over. stays: what was posted of it is left as it is."""
        offer, channel.offer = channel.offer, None
        if offer is None:
            return
        channel.setbacks = 0 if ending is Ending.ACCEPTED else channel.setbacks + (ending in SETBACKS)
        log.info("offer_ended", outcome=ending, **_ids(channel, offer))
        if offer.message_id and not stays:
            self.remove(channel.guild_id, channel.channel_id, offer.message_id)
        self._channels.changed(channel)

    def settle(self, channel_id: int, offer: Offer) -> None:
        """Has an offer that was taken up say so."""
        wire = self._wires.open(offer.guild_id, channel_id)
        self.spawn(self._finish(channel_id, wire.settle(offer.message_id or 0, offer.taken_up)))

    def remove(self, guild_id: int, channel_id: int, message_id: int) -> None:
        """Has the message of an offer that is over deleted."""
        self.spawn(self._finish(channel_id, self._wires.open(guild_id, channel_id).delete(message_id)))

    async def _finish(self, channel_id: int, change: Awaitable[None]) -> None:
        try:
            await change
        except PostError as error:
            log.warning("offer_left_behind", channel=channel_id, problem=error.problem, detail=str(error))
            if channel := self._channels.get(channel_id):
                channel.shown = 0  # the next click on it has it removed

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)


def _is_open(channel: OfferChannel, offer: Offer) -> bool:
    return channel.offer is not None and channel.offer.id == offer.id


def _ids(channel: OfferChannel, offer: Offer) -> dict[str, Any]:
    where = {"guild": channel.guild_id, "channel": channel.channel_id}
    return where | {"message": offer.message_id, "trigger": offer.opportunity.trigger}
