"""What calls of models use, by what for and by whom, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from setting_values import Scope

Account = tuple[Scope, int]
TOKENS_PER_SECOND = 10  # of sound, about


class Purpose(StrEnum):
    """What a model is called for. DECLINED: to answer, where it then kept silent."""

    ANSWER = "answers"
    DECLINED = "declined"
    JUDGE = "judging"
    OFFER = "offers"
    COORDINATION = "coordination"
    REWRITING = "rewriting"
    TRANSCRIPTION = "transcription"
    SUMMARY = "summaries"


class Amount(NamedTuple):
    """Tokens, and micro-dollars."""

    tokens: int = 0
    micros: int = 0


@dataclass(frozen=True, slots=True)
class Spent:
    """What a call used. model: as provider:name, empty where it is not known.

    tokens_in: all that it was sent; cached, written, audio: of these, what was read from the provider's cache, written
    to it, and sound. micros: micro-dollars; None: as prices say, or, where none is known, counted in tokens alone.
    """

    model: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    cached: int = 0
    written: int = 0
    audio: int = 0
    micros: int | None = None

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out


@dataclass(frozen=True, slots=True)
class Payer:
    """Who pays for a call: a guild and its channel, and in equal parts the people who are answered.

    thread_id: where it was asked in a thread of that channel. exempt: those of the people whom their roles free of
    budgets of a person, and, where all are, of those that the guild has set itself.
    """

    guild_id: int = 0
    people: frozenset[int] = frozenset()
    channel_id: int = 0
    thread_id: int = 0
    exempt: frozenset[int] = frozenset()

    @property
    def is_exempt(self) -> bool:
        """Whether no budget that the guild has set limits them."""
        return bool(self.people) and self.people <= self.exempt

    def accounts(self) -> Iterator[tuple[Account, int]]:
        """The accounts that pay, and among how many what they pay is divided."""
        yield (Scope.TOTAL, 0), 1
        if self.guild_id:
            yield (Scope.GUILD, self.guild_id), 1
            if self.channel_id:
                yield (Scope.CHANNEL, self.channel_id), 1
            if self.thread_id:
                yield (Scope.THREAD, self.thread_id), 1
        for person in self.people - self.exempt:
            yield (Scope.PERSON, person), len(self.people)


LONG_ANSWER = 4_000  # tokens: two to three times what Discord's longest messages take
NOBODY = Payer()
PAYER: ContextVar[Payer] = ContextVar("payer", default=NOBODY)
"""For whom the calls beside a turn's own are made here: the judge's, and the like."""


@dataclass(frozen=True, slots=True, eq=False)
class Reserved:
    """What was set aside for a call that has not ended. output: how many of the tokens are the model's own."""

    payer: Payer
    amount: Amount
    output: int = 0
    model: str = ""
    purpose: Purpose = Purpose.ANSWER

    @property
    def interrupted(self) -> Spent:
        """What counts of a call that a kill cut off, of which nobody can tell what it used: all that it was sent, and
        of the model's own as much as a long answer takes."""
        sent = self.amount.tokens - self.output
        audio = sent if self.purpose is Purpose.TRANSCRIPTION else 0
        return Spent(self.model, sent, min(self.output, LONG_ANSWER), audio=audio)

    def used(self, tokens: int) -> Spent:
        """As if it used so many, of which as many as can be are what it was sent."""
        sent = min(tokens, self.amount.tokens - self.output)
        return Spent(self.model, sent, tokens - sent)


def share(amount: int, among: int) -> int:
    """One part of an amount, rounded up."""
    return -(-amount // among)
