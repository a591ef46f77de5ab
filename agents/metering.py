"""Converts what providers report about the use of a call to the form that budgets count."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

import structlog
from pydantic_ai.messages import ModelResponse
from pydantic_ai.usage import RequestUsage, RunUsage

from agents.models import names_of
from state.prices import Prices, in_micros
from state.spending import Lost, Spent

log = structlog.get_logger()

# Of one call: a report of more is not believed. No model takes more than 10 million tokens.
MOST_OF_A_CALL, MOST_DOLLARS = 2 * 10**7, 10**4


def spent_by(names: tuple[str, ...], usage: RequestUsage | RunUsage, response: ModelResponse | None) -> Spent | None:
    """The use of a call of one of these models; None: its provider does not report it, or reports impossible numbers.
    response: the call's."""
    told = (
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.input_audio_tokens,
    )
    if not any(told[:2]) or not all(isinstance(one, int) and 0 <= one <= MOST_OF_A_CALL for one in told):
        return None
    tokens_in, tokens_out, cached, written, audio = told
    if response is None and len(names) > 1:
        return Lost(names, tokens_in, tokens_out).alone()
    failed = (response and response.failed_attempts) or ()  # models have other names in responses than in the settings
    cached = min(cached, tokens_in)
    details = (response and response.provider_details) or {}
    costs = [details.get("cost")]
    if details.get("is_byok") is True:  # OpenRouter bills its fee, if any, and the model's provider the owner's own key
        costs = [details.get("cost", 0), details.get("upstream_inference_cost")]
    is_told = all(isinstance(c, int | float) and not isinstance(c, bool) and 0 <= c <= MOST_DOLLARS for c in costs)
    return Spent(
        names[len(failed)],
        tokens_in,
        tokens_out,
        cached,
        min(written, tokens_in - cached),
        audio,
        in_micros(sum(map(Decimal, map(str, costs)), Decimal())) if is_told else None,
    )


def counted(tokens: float) -> int:
    """A provider's count, which may be any number, as an int that can be added up and stored."""
    return int(min(max(0, tokens), MOST_OF_A_CALL))  # NaN is not more than 0


def warn_unpriced(prices: Prices, models: Iterable[object]) -> None:
    """Logs the models without a known price, which budgets in money cannot limit."""
    if unknown := prices.unknown(name for model in models for name in names_of(model)):
        log.info(
            "price_unknown",
            models=unknown,
            meaning="what they use is counted in tokens, so budgets in money do not limit it",
            remedy="set in PRICES what a million of their tokens cost",
        )
