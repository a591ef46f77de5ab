"""What a call of a model used, as its provider says, in the form in which budgets count it."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

import structlog
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.usage import RequestUsage, RunUsage

from agents.models import parts_of
from state.prices import FREE, Prices, in_micros
from state.spending import Spent

log = structlog.get_logger()

MOST_OF_A_CALL, MOST_DOLLARS = 10**9, 10**5  # of one call: what says more does not say what it used


def names_of(model: object) -> tuple[str, ...]:
    """An agent's model as provider:name, and its fallbacks."""
    models = parts_of(model) if isinstance(model, Model) else [model]
    return tuple(_name(one) if isinstance(one, Model) else str(one) for one in models)


def spent_by(names: tuple[str, ...], usage: RequestUsage | RunUsage, response: ModelResponse | None) -> Spent | None:
    """What a call of one of these used; None where its provider does not say, or what cannot be. response: what it
    gave."""
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
    name = names[0]
    if response and response.model_name and len(names) > 1:  # which may say more exactly which one it is
        those = [one for one in names if response.model_name.startswith(one.partition(":")[2] or one)]
        name = max(those, key=lambda one: len(one.partition(":")[2]), default=name)  # gpt-5-mini is no gpt-5
    cached = min(cached, tokens_in)
    cost = (response.provider_details or {}).get("cost") if response else None
    is_told = isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost <= MOST_DOLLARS
    return Spent(
        name,
        tokens_in,
        tokens_out,
        cached,
        min(written, tokens_in - cached),
        audio,
        in_micros(Decimal(str(cost))) if is_told else None,
    )


def counted(tokens: float) -> int:
    """What a provider says it counted, which may be any number, as one that can be added up and stored."""
    return int(min(max(0, tokens), MOST_OF_A_CALL))  # NaN is not more than 0


def warn_unpriced(prices: Prices, models: Iterable[object]) -> None:
    """Says once which models no budget in money can limit."""
    if unknown := prices.unknown(name for model in models for name in names_of(model)):
        log.info(
            "price_unknown",
            models=unknown,
            meaning="what they use is counted in tokens: budgets in money do not limit it",
            remedy="name what a million tokens of them cost in PRICES",
        )


def _name(model: Model) -> str:
    """With the provider at its address, where prices of that are known: many speak another one's protocol."""
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - a list of all models there are

    if model.model_name == FREE:
        return FREE
    if address := getattr(model, "base_url", None):
        try:
            return f"{get_snapshot().find_provider(None, None, str(address)).id}:{model.model_name}"
        except LookupError:
            pass
    return f"{model.system}:{model.model_name}"
