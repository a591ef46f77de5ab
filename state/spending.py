"""What calls of models use and cost, for which purpose, and who pays."""

from __future__ import annotations

import re
from contextvars import ContextVar
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from setting_values import Scope

Account = tuple[Scope, int]
TOKENS_PER_SECOND = 10  # of sound, about
CHARACTERS_PER_TOKEN = 4  # the usual estimate for English text
# Rare scripts, symbols and emoji, which may take a token a byte.
RARE = re.compile(
    "[^\x00-\xff\u0370-\u045f\u05d0-\u06ff\u0900-\u0e7f\u2010-\u2027\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff00-\uffef]+"
)


class Purpose(StrEnum):
    """What a model is called for. DECLINED: for an answer, but the model kept silent."""

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


class Lost(NamedTuple):
    """A request that may be billed, by one of these models: nobody knows by which. audio: sound, of the tokens sent."""

    models: tuple[str, ...]
    tokens_in: int
    tokens_out: int
    audio: int = 0

    def alone(self) -> Spent:
        """The use of this request."""
        return Spent(self.models[0] if self.models else "").and_lost(1, self)


@dataclass(frozen=True, slots=True)
class Spent:
    """What a call used. model: as provider:name; empty: unknown.

    tokens_in: all tokens sent; of these, cached: read from the provider's cache; written: written to it; audio: sound.
    micros: the cost in micro-dollars; None: not priced yet, or no price is known. lost: the part of the tokens whose
    cost is not in micros; empty: none.
    """

    model: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    cached: int = 0
    written: int = 0
    audio: int = 0
    micros: int | None = None
    lost: tuple[Lost, ...] = ()

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    def and_lost(self, count: int, lost: Lost) -> Spent:
        """Adds the use of so many such requests."""
        if not count:
            return self
        sums = self.tokens_in + count * lost.tokens_in, self.tokens_out + count * lost.tokens_out
        return replace(self, tokens_in=sums[0], tokens_out=sums[1], lost=(*self.lost, *[lost] * count))


@dataclass(frozen=True, slots=True)
class Payer:
    """Who pays for a call: a guild, its channel, and in equal shares the people who are answered.

    thread_id: the thread of that channel in which it was asked; 0: none. exempt: those of the people whose roles exempt
    them from the budgets of a person; if all people are exempt, so they are from the guild's own budgets.
    """

    guild_id: int = 0
    people: frozenset[int] = frozenset()
    channel_id: int = 0
    thread_id: int = 0
    exempt: frozenset[int] = frozenset()

    def accounts(self) -> list[tuple[Account, int]]:
        """The accounts that pay, each with the number by which the cost is divided for it."""
        accounts: list[tuple[Account, int]] = [((Scope.TOTAL, 0), 1)]
        if self.guild_id:
            accounts.append(((Scope.GUILD, self.guild_id), 1))
            if self.channel_id:
                accounts.append(((Scope.CHANNEL, self.channel_id), 1))
            if self.thread_id:
                accounts.append(((Scope.THREAD, self.thread_id), 1))
        accounts += [((Scope.PERSON, person), len(self.people)) for person in self.people - self.exempt]
        return accounts

    def shares(self, amount: Amount) -> list[tuple[Account, Amount]]:
        """What each account pays of an amount."""
        people = len(self.people) or 1
        of_each = Amount(share(amount.tokens, people), share(amount.micros, people))
        return [(account, amount if among == 1 else of_each) for account, among in self.accounts()]


LONG_ANSWER = 4_000  # tokens: two to three times what Discord's longest messages take
NOBODY = Payer()
PAYER: ContextVar[Payer] = ContextVar("payer", default=NOBODY)
"""Who pays for calls beside the answer's own, such as the judge's, in this context."""


@dataclass(frozen=True, slots=True, eq=False)
class Reserved:
    """What is reserved for a call that has not ended. output: the part of the tokens that the model may write.
    models: those that may answer it."""

    payer: Payer
    amount: Amount
    output: int = 0
    models: tuple[str, ...] = ()
    purpose: Purpose = Purpose.ANSWER

    @property
    def interrupted(self) -> Spent:
        """What is counted for a call that a kill interrupted, as its use is unknown: all tokens sent, and as many
        written as a long answer takes."""
        sent = self.amount.tokens - self.output
        audio = sent if self.purpose is Purpose.TRANSCRIPTION else 0
        return Lost(self.models, sent, min(self.output, LONG_ANSWER), audio).alone()

    def used(self, tokens: int) -> Spent:
        """The use of so many tokens: first those that were sent, the rest as written by the model."""
        sent = min(tokens, self.amount.tokens - self.output)
        return Lost(self.models, sent, tokens - sent).alone()


def share(amount: int, among: int) -> int:
    """One person's share of an amount, rounded up."""
    return -(-amount // among)


def rare_in(text: str) -> str:
    """The rare characters of a text, of which each byte may be a token."""
    return "" if text.isascii() else "".join(RARE.findall(text))


def estimated(text: str) -> int:
    """The tokens of a text, about; of rare characters the most that they can be."""
    return len(text) // CHARACTERS_PER_TOKEN + len(rare_in(text).encode(errors="surrogatepass")) + 1
