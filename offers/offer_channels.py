"""State of channels for offers: whether they are on, document 002's machine, the open offer, and when to check next."""

from __future__ import annotations

import heapq
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from pydantic import AwareDatetime, TypeAdapter

from conversation import MessageRecord
from offers.offer import Note, Offer
from offers.offer_limits import DAY, OfferLimits, of_the_last_day
from offers.recent_messages import MAX_AGE, RecentMessages, is_fast_exchange
from state.proactive import AgentStateV2, ConversationEventType, ConversationLink, SessionState

log = structlog.get_logger()

RETRY = timedelta(seconds=30)
MAX_NOTES = 20
MAX_OFFERED = 50
MAX_STANDING = 6  # times the timeout: people who react to it do not keep an offer there for ever
MAX_LOOKS = 100
ANY = ""
WEEK = timedelta(days=7)  # so long a cooldown can be
MOMENT = timedelta(milliseconds=1)  # a timeout is over only once it is exceeded
STEP_BACK = timedelta(seconds=1)
FEW = 10


@dataclass(frozen=True, slots=True)
class StoredChannel:
    """What is stored of a channel. machine: its snapshot.

    follows_settings: whether offers are on is a setting of the place; until 2026-11 is_on was that, and is_off that
    somebody did not want them in its threads either.
    """

    is_on: bool
    guild_id: int
    machine: dict[str, Any]
    offer: Offer | None = None
    notes: tuple[Note, ...] = ()
    made: tuple[AwareDatetime, ...] = ()
    offered: tuple[int, ...] = ()
    setbacks: int = 0
    parent_id: int = 0
    is_off: bool = False
    follows_settings: bool = False

    def to_json(self) -> bytes:
        return STORED.dump_json(self, by_alias=True)


STORED = TypeAdapter(StoredChannel)


@dataclass(slots=True)
class OfferChannel:
    """State of one channel. Mutable.

    made: when offers were made in the last week; offered: ids of the messages that the last ones were about; setbacks:
    how many in a row were ignored or declined. is_on: as is set for the place, as far as it is known by now.
    parent_id: of a thread, the channel that it is in. looks: when which
    trigger is to look at it. is_busy: an offer is being made; is_kept: it may be stored; is_unread: what became of the
    open offer's question while we were away is not known yet. shown: the message of the last offer that was seen to
    stand. planned: when it is checked next.
    """

    channel_id: int
    guild_id: int
    machine: SessionState
    limits: OfferLimits
    is_on: bool = False
    offer: Offer | None = None
    notes: list[Note] = field(default_factory=list)
    made: list[datetime] = field(default_factory=list)
    offered: list[int] = field(default_factory=list)
    setbacks: int = 0
    parent_id: int = 0
    recent: RecentMessages = field(default_factory=RecentMessages)
    looks: list[tuple[datetime, str]] = field(default_factory=list)
    is_busy: bool = False
    is_kept: bool = False
    is_unread: bool = False
    shown: int = 0
    planned: datetime | None = None

    @property
    def messages(self) -> Sequence[MessageRecord]:
        """People's, oldest first, those of the last hour at most."""
        return self.recent.messages

    @property
    def unanswered(self) -> Sequence[MessageRecord]:
        """Those of them that nobody has answered, nor we have offered to, newest first."""
        done = {*self.recent.answered, *self.offered}
        return [m for m in reversed(self.recent.messages) if m.message_id not in done]

    @property
    def is_at_rest(self) -> bool:
        """Whether it is as if nothing had ever happened there."""
        # What was made counts, too, where somebody switches offers off and on again.
        is_wanted = bool(self.messages) if self.parent_id else self.is_on
        is_idle = not (is_wanted or self.offer or self.is_busy or self.made)
        return is_idle and self.machine.can_deliver_proactive()[0]

    def tick(self) -> bool:
        """Has the machine notice the time. Returns whether what was open is over by that, and the cooldown begins."""
        was_active = self.machine.current_state is not AgentStateV2.THINKING
        self.machine.tick()
        return was_active and self.machine.current_state is AgentStateV2.THINKING

    def is_overdue(self, now: datetime) -> bool:
        """Whether the open offer has had its time: nobody took notice of it, or it stood long enough all the same."""
        if self.offer is None:
            return False
        return self.machine.current_state is not AgentStateV2.PROACTIVE or abs(now - self.offer.made_at) > self._longest

    @property
    def _longest(self) -> timedelta:
        return MAX_STANDING * timedelta(seconds=self.limits.timeout_seconds)

    def link(self, event: ConversationEventType) -> None:
        """Tells the machine that the channel is where we talk."""
        self.machine.on_conversation_linked(ConversationLink(str(self.channel_id), str(self.channel_id), event))

    # Whether and when an offer may be made

    def refusal(self, now: datetime) -> str | None:
        """Why no offer may be made now; None where one may. To be asked after a tick."""
        may_offer, why = self.machine.can_deliver_proactive()
        if not self.is_on:
            return "off"
        if self.offer:
            return "offer_open"
        if not may_offer:
            return why
        if len(of_the_last_day(self.made, now)) >= self.limits.per_day:
            return "daily_cap"
        if self.limits.is_quiet(now):
            return "quiet_hours"
        return "fast_exchange" if is_fast_exchange(self.messages, now) else None

    def earliest(self, now: datetime) -> datetime | None:
        """Before when the machine and the daily cap let no offer be made; None where they let one be made now."""
        made, per_day = sorted(of_the_last_day(self.made, now)), self.limits.per_day
        times = [made[-per_day] + DAY] if len(made) >= per_day > 0 else []
        if change := self._machine_changes():
            if self.machine.current_state is not AgentStateV2.THINKING:
                change += timedelta(seconds=self.limits.cooldown_after(self.setbacks))
            times.append(change)
        return max(times, default=None)

    def next_look(self, now: datetime) -> datetime | None:
        """When it is to be checked next."""
        times = [*(at for at, _ in self.looks), *(note.due for note in self.notes if note.due > now)]
        if self.messages:
            times.append(self.messages[0].timestamp + MAX_AGE)
        if self.made:
            times.append(self.made[0] + WEEK)
        if self.offer:
            times.append(self.offer.made_at + self._longest + MOMENT)
        if change := self._machine_changes():
            times.append(change)
        return min(times, default=None)

    def _machine_changes(self) -> datetime | None:
        """When the machine leaves its state by itself, if nothing happens; its cooldown ends then, if there is one."""
        machine, thinking = self.machine, self.machine.thinking
        if machine.current_state is not AgentStateV2.THINKING:
            return _moment(machine.last_interaction_at + self.limits.timeout_seconds) + MOMENT
        if not thinking.cooldown_active:
            return None
        seconds = thinking.active_cooldown_period_s
        return _moment(thinking.cooldown_started_at + (self.limits.cooldown_seconds if seconds is None else seconds))

    def look_at(self, at: datetime, trigger: str = ANY) -> None:
        """A trigger is to look at it then. There is no more to look at than there are recent messages."""
        self.looks = [*self.looks[-MAX_LOOKS:], (at, trigger)]

    def looked(self, now: datetime) -> set[str]:
        """Drops what has grown old. Returns which triggers were to look until now, ANY for all of them."""
        due = {trigger for at, trigger in self.looks if at <= now}
        self.looks = [look for look in self.looks if look[0] > now]
        self.made = [at for at in self.made if abs(now - at) < WEEK]
        self.recent.expire(now)
        return due

    # What is kept

    def note(self, note: Note) -> None:
        """Takes the place of one on the same matter; the oldest goes where there are too many."""
        kept = [n for n in self.notes if not note.about or (n.miniapp_id, n.about) != (note.miniapp_id, note.about)]
        self.notes = [*kept, note][-MAX_NOTES:]

    def made_one(self, offer: Offer, now: datetime) -> None:
        self.offer = offer
        self.made = [*self.made, now]
        self.not_again(offer.subject_id)
        if subject := offer.opportunity.subject:  # whoever asked it before in other words is not offered twice either
            for message in self.messages:
                if message.author_id == subject.author_id and message.message_id < subject.message_id:
                    self.not_again(message.message_id)
        self.notes = [note for note in self.notes if note != offer.opportunity.note]

    def not_again(self, message_id: int) -> None:
        """Nothing is offered about this message any more."""
        self.offered = [*self.offered, message_id][-MAX_OFFERED:]

    def stored(self) -> StoredChannel | None:
        """For OfferChannels.restore; None where nothing is to be kept."""
        if self.is_at_rest:
            return None
        self.is_kept = True
        lists = tuple(self.notes), tuple(self.made), tuple(self.offered)
        return StoredChannel(
            self.is_on,
            self.guild_id,
            self.machine.to_dict(),
            self.offer,
            *lists,
            self.setbacks,
            self.parent_id,
            follows_settings=True,
        )


class OfferChannels:
    """All channels where something is on, open or running, and when each is to be checked.

    limits: of now, also for what was stored under others. on_change: told a channel's id. settled: waits until what
    changed is stored; gives whether it is.
    """

    def __init__(
        self,
        limits: OfferLimits,
        *,
        clock: Callable[[], datetime],
        on_change: Callable[[int], None],
        settled: Callable[[], Awaitable[bool]],
    ) -> None:
        self.limits = limits
        self.clock = clock
        self.settled = settled
        self._on_change = on_change
        self._channels: dict[int, OfferChannel] = {}
        self._heap: list[tuple[datetime, int]] = []  # an entry counts where it is what its channel has planned
        self._checked_at: datetime | None = None

    def __len__(self) -> int:
        return len(self._channels)

    def __iter__(self) -> Iterator[int]:
        return iter(self._channels)

    def get(self, channel_id: int) -> OfferChannel | None:
        return self._channels.get(channel_id)

    def open(self, channel_id: int, guild_id: int = 0) -> OfferChannel:
        """The channel, made where there is none. guild_id: 0 where it is not known."""
        channel = self._channels.get(channel_id)
        if channel is None:
            machine = self._new_machine(channel_id)
            channel = self._channels[channel_id] = OfferChannel(channel_id, guild_id, machine, self.limits)
        channel.guild_id = channel.guild_id or guild_id
        return channel

    def threads_of(self, channel_id: int) -> list[OfferChannel]:
        return [channel for channel in self._channels.values() if channel.parent_id == channel_id]

    def of_guild(self, guild_id: int) -> list[OfferChannel]:
        return [channel for channel in self._channels.values() if channel.guild_id == guild_id]

    def drop(self, channel_id: int) -> None:
        if channel := self._channels.pop(channel_id, None):
            channel.offer, channel.is_on = None, False
            self._on_change(channel_id)

    def changed(self, channel: OfferChannel) -> None:
        """It is to be stored, and planned anew."""
        self._on_change(channel.channel_id)
        self.plan(channel)

    def plan(self, channel: OfferChannel) -> None:
        """It is checked when it has to be, and freed once it is at rest."""
        if not channel.is_at_rest:
            self.wake(channel, channel.next_look(self.clock()))
        elif self._channels.get(channel.channel_id) is channel:
            del self._channels[channel.channel_id]
            if channel.is_kept:
                self._on_change(channel.channel_id)

    def wake(self, channel: OfferChannel, at: datetime | None) -> None:
        """It is checked then at the latest; None: no need."""
        if at is None or (channel.planned is not None and channel.planned <= at):
            return
        channel.planned = at
        heapq.heappush(self._heap, (at, channel.channel_id))
        if len(self._heap) > 2 * len(self._channels) + FEW:  # most of it was overtaken by earlier times
            self._heap = [(c.planned, c.channel_id) for c in self._channels.values() if c.planned]
            heapq.heapify(self._heap)

    def due(self, now: datetime) -> list[OfferChannel]:
        """The channels to check now, earliest first. Costs by what is due, not by how many channels there are."""
        if self._checked_at and now < self._checked_at - STEP_BACK:  # the clock was set back
            self._heap = [(now, channel_id) for channel_id in self._channels]
            for channel in self._channels.values():
                channel.planned = now
        self._checked_at = now
        found = []
        while self._heap and self._heap[0][0] <= now:
            at, channel_id = heapq.heappop(self._heap)
            known = self._channels.get(channel_id)
            if known and known.planned == at:
                known.planned = None
                found.append(known)
        return found

    def stored(self, channel_id: int) -> StoredChannel | None:
        """For restore(); None where nothing is to be kept."""
        channel = self._channels.get(channel_id)
        return channel.stored() if channel else None

    def restore(self, channel_id: int, stored: Any) -> StoredChannel:
        """Takes back what stored() gave, and returns it; a machine that cannot be read apart: that begins anew.

        A question that an offer is open about is a recent message again, so that it can be seen to be answered. Raises
        ValueError for what cannot be read.
        """
        kept, now = STORED.validate_python(stored, strict=False), self.clock()
        machine = self._read_machine(channel_id, kept.machine)
        lists = list(kept.notes), list(kept.made), list(kept.offered)
        channel = OfferChannel(channel_id, kept.guild_id, machine, self.limits, kept.is_on, kept.offer, *lists)
        channel.setbacks, channel.parent_id, channel.is_kept = kept.setbacks, kept.parent_id, True
        channel.look_at(now)
        try:
            if kept.offer and kept.offer.opportunity.subject:
                channel.recent.heard(kept.offer.opportunity.subject, now)
                channel.is_unread = True
            channel.next_look(now)
        except (OverflowError, TypeError) as error:  # a time beyond all time, or without its zone
            raise ValueError(f"it has a time that is none: {error}") from None
        self._channels[channel_id] = channel
        self.plan(channel)
        return kept

    def _read_machine(self, channel_id: int, snapshot: dict[str, Any]) -> SessionState:
        """The machine of a snapshot; a new one where it is none, one of another channel, or has impossible times."""
        try:
            machine = SessionState.from_dict(snapshot, clock=self._seconds)
            machine.interaction_timeout_s = self.limits.timeout_seconds
            machine.cooldown_period_s = self.limits.cooldown_seconds
            if machine.session_id != str(channel_id) or machine.conversation_id not in (None, str(channel_id)):
                raise ValueError("it is of another channel")
            OfferChannel(channel_id, 0, machine, self.limits).earliest(self.clock())
        except (ValueError, OverflowError) as error:
            log.error("machine_refused", channel=channel_id, detail=str(error))
            return self._new_machine(channel_id)
        return machine

    def _new_machine(self, channel_id: int) -> SessionState:
        limits = self.limits
        return SessionState(
            limits.timeout_seconds, limits.cooldown_seconds, session_id=str(channel_id), clock=self._seconds
        )

    def _seconds(self) -> float:
        return self.clock().timestamp()


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
