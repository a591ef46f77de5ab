"""What one channel has to do with offers: its machine, whether they are wanted, what is open, what was made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from pydantic import AwareDatetime, TypeAdapter

from conversation import MessageRecord
from offers.occasion import Note
from offers.offer import Offer
from offers.restraint import DAY, Restraint, of_the_last_day
from offers.ring import MAX_AGE, Ring, is_fast_exchange
from state.proactive import AgentStateV2, SessionState

log = structlog.get_logger()

RETRY = timedelta(seconds=30)
MAX_NOTES = 20
MAX_OFFERED = 50
MAX_STANDING = 6  # times the timeout: people who react to it do not keep an offer there for ever
MAX_LOOKS = 100
ANY = ""
WEEK = timedelta(days=7)  # so long a cooldown can be
MOMENT = timedelta(milliseconds=1)  # a timeout is over only once it is exceeded


@dataclass(frozen=True, slots=True)
class StoredChannel:
    """What is stored of a channel. machine: its snapshot."""

    is_on: bool
    guild_id: int
    machine: dict[str, Any]
    offer: Offer | None = None
    notes: tuple[Note, ...] = ()
    made: tuple[AwareDatetime, ...] = ()
    offered: tuple[int, ...] = ()
    setbacks: int = 0

    def to_json(self) -> bytes:
        return STORED.dump_json(self)


STORED = TypeAdapter(StoredChannel)


@dataclass(slots=True)
class Channel:
    """Mutable. What triggers see of it is offers.occasion.Channel.

    made: when offers were made in the last week; offered: ids of the messages that the last ones were about; setbacks:
    how many in a row were ignored or declined. looks: when which trigger is to look at it. is_busy: an offer is being
    made; is_kept: it may be stored; is_unread: what became of the open offer's question while we were away
    is not known yet. shown: the message of the last offer that was seen to stand.
    """

    channel_id: int
    guild_id: int
    machine: SessionState
    is_on: bool = False
    offer: Offer | None = None
    notes: list[Note] = field(default_factory=list)
    made: list[datetime] = field(default_factory=list)
    offered: list[int] = field(default_factory=list)
    setbacks: int = 0
    ring: Ring = field(default_factory=Ring)
    looks: list[tuple[datetime, str]] = field(default_factory=list)
    is_busy: bool = False
    is_kept: bool = False
    is_unread: bool = False
    shown: int = 0

    @property
    def messages(self) -> Sequence[MessageRecord]:
        return self.ring.messages

    @property
    def unanswered(self) -> Sequence[MessageRecord]:
        """Newest first, but for those that were offered about already."""
        done = {*self.ring.answered, *self.offered}
        return [m for m in reversed(self.ring.messages) if m.message_id not in done]

    @property
    def is_at_rest(self) -> bool:
        """Whether it is as if nothing had ever happened there."""
        is_idle = self.machine.can_deliver_proactive()[0]
        # What was made counts, too, where somebody switches offers off and on again.
        return is_idle and not (self.is_on or self.offer or self.is_busy or self.made)

    @property
    def destination(self) -> int:
        """Where an offer goes."""
        machine = self.machine
        return (
            int(machine.conversation_id) if machine.conversation_linked and machine.conversation_id else self.channel_id
        )

    def tick(self) -> bool:
        """Has the machine notice the time. Returns whether it has come back to thinking by that: what was open is over.

        back_off() is to follow.
        """
        was_active = self.machine.current_state is not AgentStateV2.THINKING
        self.machine.tick()
        return was_active and self.machine.current_state is AgentStateV2.THINKING

    def is_overdue(self, restraint: Restraint, now: datetime) -> bool:
        """Whether the open offer has had its time: nobody took notice of it, or it stood long enough all the same."""
        if self.offer is None:
            return False
        longest = MAX_STANDING * timedelta(seconds=restraint.timeout_seconds)
        return self.machine.current_state is not AgentStateV2.PROACTIVE or abs(now - self.offer.made_at) > longest

    def back_off(self, restraint: Restraint) -> None:
        """The cooldown that begins is as long as the setbacks have made it."""
        self.machine.thinking.active_cooldown_period_s = restraint.cooldown_after(self.setbacks)

    def refusal(self, restraint: Restraint, now: datetime) -> str | None:
        """Why no offer may be made now; None where one may. To be asked after a tick."""
        may_offer, why = self.machine.can_deliver_proactive()
        if not self.is_on:
            return "off"
        if self.offer:
            return "offer_open"
        if not may_offer:
            return why
        if len(of_the_last_day(self.made, now)) >= restraint.per_day:
            return "daily_cap"
        if restraint.is_quiet(now):
            return "quiet_hours"
        return "fast_exchange" if is_fast_exchange(self.messages, now) else None

    def earliest(self, restraint: Restraint, now: datetime) -> datetime | None:
        """Before when the machine and the daily cap let no offer be made; None where they let one be made now."""
        made = sorted(of_the_last_day(self.made, now))
        times = [made[-restraint.per_day] + DAY] if len(made) >= restraint.per_day > 0 else []
        if change := self._machine_changes(restraint):
            is_active = self.machine.current_state is not AgentStateV2.THINKING
            times.append(change + timedelta(seconds=restraint.cooldown_after(self.setbacks)) if is_active else change)
        return max(times, default=None)

    def next_look(self, restraint: Restraint, now: datetime) -> datetime | None:
        """When it is to be looked at next."""
        times = [*(at for at, _ in self.looks), *(note.due for note in self.notes if note.due > now)]
        if self.messages:
            times.append(self.messages[0].timestamp + MAX_AGE)
        if self.made:
            times.append(self.made[0] + WEEK)
        if self.offer:
            times.append(self.offer.made_at + MAX_STANDING * timedelta(seconds=restraint.timeout_seconds) + MOMENT)
        if change := self._machine_changes(restraint):
            times.append(change)
        return min(times, default=None)

    def _machine_changes(self, restraint: Restraint) -> datetime | None:
        """When the machine leaves its state by itself, if nothing happens; its cooldown ends then, if there is one."""
        machine, thinking = self.machine, self.machine.thinking
        if machine.current_state is not AgentStateV2.THINKING:
            return _moment(machine.last_interaction_at + restraint.timeout_seconds) + MOMENT
        if not thinking.cooldown_active:
            return None
        seconds = thinking.active_cooldown_period_s
        return _moment(thinking.cooldown_started_at + (restraint.cooldown_seconds if seconds is None else seconds))

    def look_at(self, at: datetime, trigger: str = ANY) -> None:
        """A trigger is to look at it then. There is no more to look at than the ring has messages."""
        self.looks = [*self.looks[-MAX_LOOKS:], (at, trigger)]

    def looked(self, now: datetime) -> set[str]:
        """Drops what has grown old. Returns which triggers were to look until now, ANY for all of them."""
        due = {trigger for at, trigger in self.looks if at <= now}
        self.looks = [look for look in self.looks if look[0] > now]
        self.made = [at for at in self.made if abs(now - at) < WEEK]
        self.ring.expire(now)
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
        if subject := offer.occasion.subject:  # whoever asked it before in other words is not offered twice either
            for message in self.messages:
                if message.author_id == subject.author_id and message.message_id < subject.message_id:
                    self.not_again(message.message_id)
        self.notes = [note for note in self.notes if note != offer.occasion.note]

    def not_again(self, message_id: int) -> None:
        """Nothing is offered about this message any more."""
        self.offered = [*self.offered, message_id][-MAX_OFFERED:]

    def talk(self) -> None:
        """Somebody talks with us, which never waits for the machine."""
        if self.machine.current_state is AgentStateV2.THINKING:
            self.machine.transition_to_reactive()
        else:
            self.machine.record_user_interaction()

    def silence(self) -> None:
        """Nothing of what was said is kept, nor what would be offered."""
        self.ring, self.notes, self.looks = Ring(), [], []

    def stored(self) -> StoredChannel | None:
        """For `restored`; None where nothing is to be kept."""
        if self.is_at_rest:
            return None
        self.is_kept = True
        return StoredChannel(
            self.is_on,
            self.guild_id,
            self.machine.to_dict(),
            self.offer,
            tuple(self.notes),
            tuple(self.made),
            tuple(self.offered),
            self.setbacks,
        )


def restored(
    channel_id: int, stored: Any, clock: Callable[[], float], fresh: Callable[[], SessionState], restraint: Restraint
) -> Channel:
    """The channel as it was stored, but under the restraint of now; without its machine where that cannot be read.

    A question of which an offer is open is in the ring again, so that it can be seen to be answered. Raises ValueError
    for what cannot be read at all.
    """
    kept = STORED.validate_python(stored, strict=False)
    try:
        machine = _machine(channel_id, kept.machine, clock, restraint)
    except (ValueError, OverflowError) as error:
        log.error("machine_refused", channel=channel_id, detail=str(error))
        machine = fresh()
    channel = Channel(
        channel_id,
        kept.guild_id,
        machine,
        kept.is_on,
        kept.offer,
        list(kept.notes),
        list(kept.made),
        list(kept.offered),
        kept.setbacks,
    )
    now = _moment(clock())
    if kept.offer and kept.offer.occasion.subject:
        channel.ring.heard(kept.offer.occasion.subject, now)
        channel.is_unread = True
    channel.look_at(now)
    channel.is_kept = True
    return channel


def _machine(
    channel_id: int, snapshot: dict[str, Any], clock: Callable[[], float], restraint: Restraint
) -> SessionState:
    """Raises ValueError or OverflowError for what is none, one of another channel, and times beyond all time."""
    machine = SessionState.from_dict(snapshot, clock=clock)
    machine.interaction_timeout_s = restraint.timeout_seconds
    machine.cooldown_period_s = restraint.cooldown_seconds
    if machine.session_id != str(channel_id) or machine.conversation_id not in (None, str(channel_id)):
        raise ValueError("it is of another channel")
    Channel(channel_id, 0, machine).earliest(restraint, _moment(clock()))
    return machine


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
