"""Prices of models: by the owner's table (PRICES), else by genai-prices, which pydantic-ai depends on.

Makes no requests: the prices are those that the installed genai-prices package contains.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from setting_values import MOST_MICROS
from state.spending import TOKENS_PER_SECOND, Lost, Spent

FREE = "demo"
SOUND_AN_HOUR = 3600 * TOKENS_PER_SECOND
MOST_DOLLARS = 100_000  # a million tokens
WHAT_WORKS = 'a TOML table for each model, such as ["openai:gpt-5-mini"] with input = 0.25, cached = 0.025, output = 2'


class PricesError(ValueError):
    """Prices that cannot be used. Its text is one sentence for the owner that names file, model and remedy."""


class Rates(BaseModel):
    """Dollars per million tokens. input: sent; output: written by the model; cached: of those sent, read from the
    provider's cache; None: as input."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: Decimal = Field(ge=0, le=MOST_DOLLARS)
    output: Decimal = Field(ge=0, le=MOST_DOLLARS)
    cached: Decimal | None = Field(None, ge=0, le=MOST_DOLLARS)

    def dollars(self, spent: Spent) -> Decimal:
        cached = self.input if self.cached is None else self.cached
        rest = spent.tokens_in - spent.cached
        return (rest * self.input + spent.cached * cached + spent.tokens_out * self.output) / 1_000_000


@dataclass(frozen=True, slots=True)
class Prices:
    """table: rates by a model's name, with or without its provider; it takes precedence over genai-prices."""

    table: Mapping[str, Rates] | None = None

    def priced(self, spent: Spent) -> Spent:
        """Returns it with its cost, unless that is set already or no price is known. What was lost costs as much as
        the dearest of its models bills for it."""
        if lost := spent.lost:
            tokens_in = spent.tokens_in - sum(one.tokens_in for one in lost)
            tokens_out = spent.tokens_out - sum(one.tokens_out for one in lost)
            answer = replace(spent, tokens_in=tokens_in, tokens_out=tokens_out, lost=())
            costs = [self.priced(answer).micros, *map(self._of_lost, lost)]
            known = [cost for cost in costs if cost is not None]
            return replace(spent, micros=sum(known) if known else None, lost=())
        if spent.micros is not None:
            return spent
        cost = self._dollars(spent)
        return spent if cost is None else replace(spent, micros=in_micros(cost))

    def _of_lost(self, lost: Lost) -> int | None:
        calls = (Spent(model, lost.tokens_in, lost.tokens_out, audio=lost.audio) for model in lost.models)
        return max((micros for call in calls if (micros := self.priced(call).micros) is not None), default=None)

    def dearest(self, models: Sequence[str], tokens_in: int, tokens_out: int, *, is_sound: bool = False) -> int:
        """The most that a call answered by one of these models can cost, in micro-dollars; 0 if no price is known.

        All of tokens_in may be written to a cache, which may cost more. is_sound: tokens_in is audio.
        """
        audio = tokens_in if is_sound else 0
        calls = (Spent(m, tokens_in, tokens_out, 0, w, audio) for m in models for w in (0, tokens_in))
        return max((self.priced(call).micros or 0 for call in calls), default=0)

    def unknown(self, models: Iterable[str]) -> list[str]:
        """The models without a known price."""
        return [model for model in dict.fromkeys(models) if self._dollars(Spent(model, 1, 1)) is None]

    def _dollars(self, spent: Spent) -> Decimal | None:
        provider, _, name = spent.model.partition(":")
        table = self.table or {}
        if rates := table.get(spent.model) or table.get(name):
            return rates.dollars(spent)
        if spent.model == FREE:
            return Decimal(0)
        if not (provider and name and _is_listed(provider, name)):
            return None
        from genai_prices import Usage, calc_price  # noqa: PLC0415 - a list of all models there are

        usage = Usage(
            input_tokens=spent.tokens_in,
            output_tokens=spent.tokens_out,
            cache_read_tokens=spent.cached or None,
            cache_write_tokens=spent.written or None,
            input_audio_tokens=spent.audio or None,
        )
        try:
            cost = calc_price(usage, name, provider_id=provider)
        except (LookupError, ValueError):  # impossible counts
            return None
        hourly = getattr(cost.model_price, "input_audio_hours", None)  # calc_price ignores it
        return hourly * spent.audio / SOUND_AN_HOUR if hourly and not cost.total_price else cost.total_price


@lru_cache(1_000)
def _is_listed(provider: str, name: str) -> bool:
    """Whether genai-prices has a model. For one that it has not it goes through its whole list, in up to 0.25 ms."""
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - as above

    try:
        get_snapshot().find_provider_model(name, None, provider, None)
    except LookupError:
        return False
    return True


def in_micros(dollars: Decimal) -> int:
    """Micro-dollars, rounded up, so that never less is counted than was billed; at most MOST_MICROS."""
    return int(min(dollars * 1_000_000, Decimal(MOST_MICROS)).to_integral_value(ROUND_CEILING))


def load_prices(source: Path | str, _environ: Mapping[str, str]) -> tuple[tuple[str, Rates], ...]:
    """The prices by models' names. source: the file, or its text. Raises PricesError."""
    where = "PRICES" if isinstance(source, str) else f"The price table {source}"
    try:
        text = source if isinstance(source, str) else source.read_text(encoding="utf-8-sig")
        tables = tomllib.loads(text, parse_float=Decimal)
    except OSError as error:
        raise PricesError(f"{where} cannot be read ({error.strerror}): name a file that can.") from None
    except (ValueError, RecursionError) as error:  # no UTF-8 is a ValueError too
        raise PricesError(
            f"{where} is not valid TOML ({' '.join(str(error).split())[:120]}): use {WHAT_WORKS}."
        ) from None
    prices = []
    for model, rates in tables.items():
        provider, colon, name = model.partition(":")
        # In calls, the provider is the same with each of OpenAI's protocols.
        is_openai = colon and provider in ("openai-chat", "openai-responses")
        prices.append((f"openai:{name}" if is_openai else model, _rates(where, model, rates)))
    return tuple(prices)


def _rates(where: str, model: str, rates: Any) -> Rates:
    try:
        return Rates.model_validate(rates)
    except ValidationError as error:
        first = error.errors()[0]
        what = f"{first['loc'][0]}: " if first["loc"] else ""
        shown = model if len(model) <= 80 else f"{model[:80]}…"
        raise PricesError(f"{where}, model {shown!r}: {what}{first['msg']}; use {WHAT_WORKS}.") from None
