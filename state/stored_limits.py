"""The stored form of the limits: today, the calls that had not ended, and the notices given."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime

from pydantic import NonNegativeInt, TypeAdapter

from setting_values import Scope
from state.ledger import Day, Figures, StoredDay
from state.spending import Amount, Payer, Purpose, Reserved


@dataclass(frozen=True, slots=True)
class StoredCall:
    """A call that had not ended. model: those that may have answered it, separated by commas."""

    guild: int
    channel: int
    thread: int
    people: list[int]
    exempt: list[int]
    tokens: NonNegativeInt
    micros: NonNegativeInt
    output: NonNegativeInt
    model: str
    purpose: Purpose

    @classmethod
    def of(cls, call: Reserved) -> StoredCall:
        payer = call.payer
        return cls(
            payer.guild_id, payer.channel_id, payer.thread_id, [*payer.people], [*payer.exempt],
            *call.amount, call.output, ",".join(call.models), call.purpose,
        )  # fmt: skip

    def reserved(self) -> Reserved:
        payer = Payer(self.guild, frozenset(self.people), self.channel, self.thread, frozenset(self.exempt))
        models = tuple(self.model.split(","))
        return Reserved(payer, Amount(self.tokens, self.micros), self.output, models, self.purpose)


@dataclass(frozen=True, slots=True)
class StoredLimits:
    """The limits as they are stored.

    guilds, people: tokens, in an older form without `today`; told_channels: also of an older form. calls: those that
    had not ended. told: the notices given, as: which, to whom, and until when it is not repeated. is_shared: all was
    charged to accounts that several processes share.
    """

    day: date | None
    tokens: NonNegativeInt
    told_channels: list[int]
    guilds: dict[int, NonNegativeInt] = field(default_factory=dict)
    people: dict[int, NonNegativeInt] = field(default_factory=dict)
    today: StoredDay | None = None
    calls: list[StoredCall] = field(default_factory=list)
    told: list[tuple[str, int, datetime]] = field(default_factory=list)
    is_shared: bool = False

    def counted_before(self) -> Day:
        """Today from the older form, which counted tokens only."""
        today = Day()
        today.charged = {(Scope.TOTAL, 0): Amount(self.tokens)}
        today.charged |= {(Scope.GUILD, one): Amount(tokens) for one, tokens in self.guilds.items()}
        today.charged |= {(Scope.PERSON, one): Amount(tokens) for one, tokens in self.people.items()}
        for one, tokens in {**self.guilds, 0: self.tokens - sum(self.guilds.values())}.items():
            if tokens > 0:
                today.count(Payer(one), "", Purpose.ANSWER, Figures(tokens_in=tokens, unpriced=tokens))
        return today


STORED = TypeAdapter(StoredLimits)
