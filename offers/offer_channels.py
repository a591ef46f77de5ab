"""State of channels for offers: whether they are on, the session's state machine, the open offer, the next check."""

from __future__ import annotations

import heapq
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from pydantic import AwareDatetime, TypeAdapter

from clock import Clock
from conversation import MessageRecord
from offers.offer import Note, Offer
from offers.offer_limits import DAY, OfferLimits, of_the_last_day
from offers.recent_messages import MAX_AGE, RecentMessages, is_fast_exchange
from state.proactive import AgentStateV2, ConversationEventType, ConversationLink, SessionState

log = structlog.get_logger()

RETRY = timedelta(seconds=30)
MAX_NOTES = 20
MAX_OFFERED = 50
MAX_STANDING = 6  # timeouts: reactions prolong an offer, but not for ever
MAX_LOOKS = 100
ANY = ""
WEEK = timedelta(days=7)  # the longest cooldown
MOMENT = timedelta(milliseconds=1)  # a timeout is over only once it is exceeded
STEP_BACK = timedelta(seconds=1)
FEW = 10


@dataclass(frozen=True, slots=True)
class StoredChannel:
    """What is stored of a channel. machine: snapshot of its state machine.

    follows_settings: whether offers are on is read from the place's settings. Before 2026-11 is_on said so, and is_off
    said that they were off in its threads, too.
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

    is_on: whether offers are on, as last read from the place's settings. made: times of the offers of the last week;
    offered: ids of the messages that the latest offers were about; setbacks: how many offers in a row were ignored or
    declined. parent_id: the channel of a thread; 0: no thread. looks: at what time which trigger checks the channel;
    causes: by trigger, the ids of the recent messages because of which it does.
    is_busy: an offer is being made; is_kept: it may be in the store; is_unread: the open offer's question has not been
    fetched again since the restart. shown: message id of the latest offer known to be posted. planned: the next check.
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
    causes: dict[str, set[int]] = field(default_factory=dict)
    is_busy: bool = False
    is_kept: bool = False
    is_unread: bool = False
    shown: int = 0
    planned: datetime | None = None

    @property
    def unanswered(self) -> Sequence[MessageRecord]:
        """The recent messages that nobody has answered and no offer was about, newest first."""
        done = {*self.recent.answered, *self.offered}
        return [m for m in reversed(self.recent.messages) if m.message_id not in done]

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing of it needs to be kept: it is as if nothing had ever happened there."""
        # Past offers count against the daily cap, also after offers were switched off and on again.
        is_wanted = bool(self.recent.messages) if self.parent_id else self.is_on
        is_idle = not (is_wanted or self.offer or self.is_busy or self.made)
        return is_idle and self.machine.can_deliver_proactive()[0]

    def tick(self) -> bool:
        """Updates the machine to the current time. Returns whether the session timed out, which starts the cooldown."""
        was_active = self.machine.current_state is not AgentStateV2.THINKING
        self.machine.tick()
        return was_active and self.machine.current_state is AgentStateV2.THINKING

    def is_overdue(self, now: datetime) -> bool:
        """Whether the open offer has timed out by then, or has been open for the longest time allowed."""
        if self.offer is None:
            return False
        is_active = self.machine.current_state is AgentStateV2.PROACTIVE
        is_silent = now.timestamp() - self.machine.last_interaction_at > self.limits.timeout_seconds
        return not is_active or is_silent or abs(now - self.offer.made_at) > self._longest

    @property
    def _longest(self) -> timedelta:
        return MAX_STANDING * timedelta(seconds=self.limits.timeout_seconds)

    def link(self, event: ConversationEventType) -> None:
        """Tells the machine that the conversation is in this channel."""
        self.machine.on_conversation_linked(ConversationLink(str(self.channel_id), str(self.channel_id), event))

    # Whether and when an offer may be made

    def refusal(self, now: datetime) -> str | None:
        """Why no offer may be made now; None: one may be made. Call `tick` first."""
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
        return "fast_exchange" if is_fast_exchange(self.recent.messages, now) else None

    def earliest(self, now: datetime) -> datetime | None:
        """The earliest time at which the machine and the daily cap allow an offer. None: now."""
        made, per_day = sorted(of_the_last_day(self.made, now)), self.limits.per_day
        times = [made[-per_day] + DAY] if len(made) >= per_day > 0 else []
        if change := self._machine_changes():
            if self.machine.current_state is not AgentStateV2.THINKING:
                change += timedelta(seconds=self.limits.cooldown_after(self.setbacks))
            times.append(change)
        return max(times, default=None)

    def next_look(self, now: datetime) -> datetime | None:
        """When to check it next. None: no need."""
        times = [*(at for at, _ in self.looks), *(note.due for note in self.notes if note.due > now)]
        if self.recent.messages:
            times.append(self.recent.messages[0].timestamp + MAX_AGE)
        if self.made:
            times.append(self.made[0] + WEEK)
        if self.offer:
            times.append(self.offer.made_at + self._longest + MOMENT)
        if change := self._machine_changes():
            times.append(change)
        return min(times, default=None)

    def _machine_changes(self) -> datetime | None:
        """When the machine's timeout or cooldown ends if nothing happens. None: neither runs."""
        machine, thinking = self.machine, self.machine.thinking
        if machine.current_state is not AgentStateV2.THINKING:
            return datetime.fromtimestamp(machine.last_interaction_at + self.limits.timeout_seconds, UTC) + MOMENT
        if not thinking.cooldown_active:
            return None
        seconds = thinking.active_cooldown_period_s
        seconds = self.limits.cooldown_seconds if seconds is None else seconds
        return datetime.fromtimestamp(thinking.cooldown_started_at + seconds, UTC)

    def look_for(self, trigger: str, message_id: int, at: datetime | None) -> None:
        """Notes when a trigger checks the channel because of this message, and schedules that. None: it does not."""
        causes = self.causes.setdefault(trigger, set())
        causes.discard(message_id)
        if at:
            causes &= {m.message_id for m in self.recent.messages}
            causes.add(message_id)
            self.look_at(at, trigger)

    def drop_recent(self) -> None:
        """Drops the recent messages, and all that was to be checked because of them."""
        self.recent, self.notes, self.looks, self.causes = RecentMessages(), [], [], {}

    def look_at(self, at: datetime, trigger: str = ANY) -> None:
        """Schedules a trigger's check, ANY for all triggers. Keeps the last 100: recent messages are fewer."""
        self.looks = [*self.looks[-MAX_LOOKS:], (at, trigger)]

    def looked(self, now: datetime) -> set[str]:
        """Drops what has expired. Returns the triggers whose checks are due, ANY for all of them."""
        due = {trigger for at, trigger in self.looks if at <= now}
        self.looks = [look for look in self.looks if look[0] > now]
        self.made = [at for at in self.made if abs(now - at) < WEEK]
        self.recent.expire(now)
        return due

    # What is kept

    def note(self, note: Note) -> None:
        """Adds a note in place of one about the same thing; drops the oldest where there are more than MAX_NOTES."""
        kept = [n for n in self.notes if not note.about or (n.miniapp_id, n.about) != (note.miniapp_id, note.about)]
        self.notes = [*kept, note][-MAX_NOTES:]

    def add_offer(self, offer: Offer, now: datetime) -> None:
        self.offer = offer
        self.made = [*self.made, now]
        self.exclude(offer.subject_id)
        if subject := offer.opportunity.subject:  # the same person's earlier wordings of the question are not offered
            for message in self.recent.messages:
                if message.author_id == subject.author_id and message.message_id < subject.message_id:
                    self.exclude(message.message_id)
        self.notes = [note for note in self.notes if note != offer.opportunity.note]

    def exclude(self, message_id: int) -> None:
        """Notes that no further offer is made about this message."""
        self.offered = [*self.offered, message_id][-MAX_OFFERED:]


class OfferChannels:
    """All channels where offers are on, open, or in a cooldown, and when each is checked next.

    limits: those in force now; they also hold for channels stored under other limits. on_change: called with the id of
    a channel whose stored state changes. settled: waits until changes are stored, returns whether they are.
    """

    def __init__(
        self,
        limits: OfferLimits,
        *,
        clock: Clock,
        on_change: Callable[[int], None],
        settled: Callable[[], Awaitable[bool]],
    ) -> None:
        self.limits = limits
        self.clock = clock
        self.settled = settled
        self._on_change = on_change
        self._channels: dict[int, OfferChannel] = {}
        self._heap: list[tuple[datetime, int]] = []  # an entry is valid if it equals its channel's `planned`
        self._checked_at: datetime | None = None

    def __len__(self) -> int:
        return len(self._channels)

    def __iter__(self) -> Iterator[int]:
        return iter(self._channels)

    def get(self, channel_id: int) -> OfferChannel | None:
        return self._channels.get(channel_id)

    def open(self, channel_id: int, guild_id: int = 0) -> OfferChannel:
        """Returns the channel, and creates it if needed. guild_id: 0 where it is not known."""
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
        """Marks the channel as to be stored, and plans its next check."""
        self._on_change(channel.channel_id)
        self.plan(channel)

    def plan(self, channel: OfferChannel) -> None:
        """Schedules the next check of the channel, or frees the channel if it is at rest."""
        if not channel.is_at_rest:
            self.wake(channel, channel.next_look(self.clock()))
        elif self._channels.get(channel.channel_id) is channel:
            del self._channels[channel.channel_id]
            if channel.is_kept:
                self._on_change(channel.channel_id)

    def wake(self, channel: OfferChannel, at: datetime | None) -> None:
        """Schedules a check of the channel at that time at the latest. None: no need."""
        if at is None or (channel.planned is not None and channel.planned <= at):
            return
        channel.planned = at
        heapq.heappush(self._heap, (at, channel.channel_id))
        if len(self._heap) > 2 * len(self._channels) + FEW:  # most entries are outdated by earlier ones
            self._heap = [(c.planned, c.channel_id) for c in self._channels.values() if c.planned]
            heapq.heapify(self._heap)

    def due(self, now: datetime) -> list[OfferChannel]:
        """The channels to check now, earliest first. Its cost depends on how many are due, not on how many exist."""
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
        """What restore() reads. None: nothing to store."""
        channel = self._channels.get(channel_id)
        if channel is None or channel.is_at_rest:
            return None
        channel.is_kept = True
        lists = tuple(channel.notes), tuple(channel.made), tuple(channel.offered)
        return StoredChannel(
            channel.is_on,
            channel.guild_id,
            channel.machine.to_dict(),
            channel.offer,
            *lists,
            channel.setbacks,
            channel.parent_id,
            follows_settings=True,
        )

    def restore(self, channel_id: int, stored: Any) -> StoredChannel:
        """Restores and returns what stored() returned. A machine whose snapshot cannot be read is replaced.

        The subject of an open offer becomes a recent message again, so that an answer to it is recognised. Raises
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
        except (OverflowError, TypeError) as error:  # a time out of datetime's range, or without a time zone
            raise ValueError(f"it has a time that is none: {error}") from None
        self._channels[channel_id] = channel
        self.plan(channel)
        return kept

    def _read_machine(self, channel_id: int, snapshot: dict[str, Any]) -> SessionState:
        """The machine of a snapshot; a new one if it cannot be read, is another channel's, or has impossible times."""
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
