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

POST_WITHIN = timedelta(minutes=1)  # Discord remembers a nonce for a few minutes
SETBACKS = (Ending.DECLINED, Ending.IGNORED)


class Wire(Protocol):
    """Posts, reads and deletes messages of one channel. Its methods raise PostError."""

    async def offer(self, text: str, offer_id: str, labels: Mapping[str, str], *, nonce: str) -> Posted:
        """Posts an offer with its buttons, without notifying anybody. labels: the text of each button by its name."""

    async def find_offer(self, offer_id: str, after: int) -> Posted | None:
        """Finds a posted offer among the messages after this id. None: not there."""

    async def words_of(self, message_id: int) -> str | None:
        """A message's content. None: the message was deleted."""

    async def settle(self, message_id: int, text: str) -> None: ...

    async def delete(self, message_id: int) -> None: ...


class Wires(Protocol):
    """The bot's identity, and the wires of channels."""

    def bot(self) -> tuple[str, int]:
        """Its name and id."""

    def open(self, guild_id: int, channel_id: int) -> Wire: ...


class OpenOffers:
    """The open offers, one in a channel at most.

    stands: called with the channel's id for each offer that was posted. site: address that message links begin with.
    is_behind: whether messages of a channel are still to be read; until then its offer is kept, as one may accept it in
    time.
    """

    def __init__(
        self,
        channels: OfferChannels,
        wires: Wires,
        *,
        stands: Callable[[int, Offer, Posted], None],
        site: str = DISCORD,
        is_behind: Callable[[int], bool] = lambda _channel_id: False,
    ) -> None:
        self._is_behind = is_behind
        self._channels = channels
        self._wires = wires
        self._stands = stands
        self._site = site
        self._work: set[asyncio.Task[None]] = set()

    def tick(self, channel: OfferChannel) -> None:
        """Updates the channel to the current time. Call it before doing anything else with the channel."""
        if channel.offer and self._is_behind(channel.channel_id):
            return
        is_over = channel.tick()
        if channel.offer and channel.is_overdue(self._channels.clock()):
            self.end(channel, Ending.IGNORED)
        if is_over:  # ignored and declined offers lengthen the cooldown that starts now
            channel.machine.thinking.active_cooldown_period_s = channel.limits.cooldown_after(channel.setbacks)
            self._channels.changed(channel)

    # From an opportunity to an offer

    async def make(self, channel: OfferChannel, opportunity: Opportunity) -> None:
        """Makes an offer, if the channel's state machine allows it."""
        if not channel.machine.transition_to_proactive(opportunity.trigger):
            return
        about = opportunity.subject.message_id if opportunity.subject else 0
        link = message_link(self._site, channel.guild_id, channel.channel_id, about)
        now = self._channels.clock()
        text, parent_id = opportunity.line.replace(LINK, link), channel.parent_id
        offer = Offer(uuid4().hex, opportunity, now, channel.guild_id, text, parent_id=parent_id)
        channel.add_offer(offer, now)
        self._channels.changed(channel)
        await self._channels.settled()  # so that it is not made twice if the process is killed now
        await self._post(channel, offer)

    async def resume(self, channel: OfferChannel, offer: Offer) -> None:
        """Finds or posts an offer that may or may not have been posted before a restart.

        Posted again within a minute it stays one message, since Discord knows its nonce.
        """
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
        """Withdraws an offer whose subject was edited or deleted while the bot was offline."""
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
            if error.problem is Problem.UNREACHABLE:  # it may have been posted nevertheless
                channel.look_at(self._channels.clock() + RETRY)
            elif _is_open(channel, offer):
                self.end(channel, Ending.WITHDRAWN)
        else:
            self._posted(channel, offer, posted)

    def _posted(self, channel: OfferChannel, offer: Offer, posted: Posted) -> None:
        if _is_open(channel, offer):
            self._shown(channel, posted)
        elif channel.shown != posted.message_id:  # it ended before we knew that it was posted
            self.remove(channel.guild_id, channel.channel_id, posted.message_id)

    def _shown(self, channel: OfferChannel, posted: Posted) -> None:
        """Notes once that the open offer is posted: on Discord's response, or on a click that came before that."""
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
        """The open offer that was clicked; None: it has ended. posted: the message with the clicked button."""
        channel = self._channels.get(channel_id)
        if channel is None:
            return None
        self.tick(channel)
        if channel.offer is None or channel.offer.id != offer_id or channel.is_overdue(self._channels.clock()):
            return None
        self._shown(channel, posted)
        return channel.offer

    def is_last(self, channel_id: int, message_id: int) -> bool:
        """Whether this message is the channel's latest offer, which this process knows about."""
        channel = self._channels.get(channel_id)
        return channel is not None and channel.shown == message_id

    def is_open(self, channel_id: int) -> bool:
        channel = self._channels.get(channel_id)
        return channel is not None and channel.offer is not None

    def reply_of(self, channel_id: int, message: MessageRecord) -> Reply | None:
        """A message's reply to the channel's open offer. None: it is no reply to it."""
        channel = self._channels.get(channel_id)
        offer = channel.offer if channel else None
        if channel is None or offer is None or offer.message_id is None:
            return None
        if message.author_id != offer.user_id or message.message_id < offer.message_id:
            return None
        if channel.is_overdue(message.timestamp):
            return None
        name, me = self._wires.bot()
        if message.reply_to_id is not None:
            is_meant = message.reply_to_id == offer.message_id
        elif message.mentions == {me}:
            is_meant = True
        elif message.addressed or message.mentions_group or called(message, channel.recent.messages):
            is_meant = False
        else:  # a bare "yes" replies to the offer if nobody else has spoken since
            since = (m for m in channel.recent.messages if m.message_id >= offer.message_id)
            is_meant = all(m.author_id == message.author_id for m in since)
        return read_reply(without_call(message.content, me, message.calls_bot or name)) if is_meant else None

    def accept(self, channel_id: int) -> Offer | None:
        """Accepts and returns the channel's open offer. None: there is none any more."""
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
        """Ends the open offer, if there is one. stays: its message is left as it is."""
        offer, channel.offer = channel.offer, None
        if offer is None:
            return
        channel.setbacks = 0 if ending is Ending.ACCEPTED else channel.setbacks + (ending in SETBACKS)
        log.info("offer_ended", outcome=ending, **_ids(channel, offer))
        if offer.message_id and not stays:
            self.remove(channel.guild_id, channel.channel_id, offer.message_id)
        self._channels.changed(channel)

    def settle(self, channel_id: int, offer: Offer) -> None:
        """Edits the message of an accepted offer to say so."""
        wire = self._wires.open(offer.guild_id, channel_id)
        self.spawn(self._finish(channel_id, wire.settle(offer.message_id or 0, offer.taken_up)))

    def remove(self, guild_id: int, channel_id: int, message_id: int) -> None:
        """Deletes the message of an offer that has ended."""
        self.spawn(self._finish(channel_id, self._wires.open(guild_id, channel_id).delete(message_id)))

    async def _finish(self, channel_id: int, change: Awaitable[None]) -> None:
        try:
            await change
        except PostError as error:
            log.warning("offer_left_behind", channel=channel_id, problem=error.problem, detail=str(error))
            if channel := self._channels.get(channel_id):
                channel.shown = 0  # so that the next click on it removes it

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)


def _is_open(channel: OfferChannel, offer: Offer) -> bool:
    return channel.offer is not None and channel.offer.id == offer.id


def _ids(channel: OfferChannel, offer: Offer) -> dict[str, Any]:
    where = {"guild": channel.guild_id, "channel": channel.channel_id}
    return where | {"message": offer.message_id, "trigger": offer.opportunity.trigger}
