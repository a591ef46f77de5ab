"""Checks of the models in the settings: whether they can be built and answer, how fast, and at what cost."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from contextlib import suppress

from agents.models import DEMO, UnusableModelError, build_model, names_of
from agents.providers import provider_of
from agents.transcriber import build_transcriber
from agents.trying import ModelTrialError, Trouble, try_model
from doctor.findings import SECONDS, Finding, fault, of_sentence, ok, warning
from setting_values import BudgetLimit, dollars
from state.prices import Prices

LISTED = "docs/models.md lists the providers and how their models are named."


async def check_models(variable: str, names: str, prices: Prices) -> list[Finding]:
    """Tries each model with one tiny call. variable: the setting; names: its value, separated by commas."""
    return list(await asyncio.gather(*(_check(variable, name.strip(), prices) for name in names.split(","))))


async def _check(variable: str, name: str, prices: Prices) -> Finding:
    if name.lower() == DEMO:
        says = "This is the demo model, which only repeats what was said."
        return warning(variable, says, f"Set {variable} to a real one and its provider's key in .env; {LISTED}")
    try:
        model = build_model(variable, name)
        trial = await try_model(model, SECONDS)
    except UnusableModelError as error:
        return of_sentence(variable, error)
    except ModelTrialError as error:
        return fault(variable, *_in_words(variable, name, error))
    used = ", and did not say how much it used"
    if trial.spent:
        micros = prices.priced(trial.spent).micros
        price = f"for {dollars(micros)}" if micros is not None else "at an unknown price"
        used = f" with {trial.spent.tokens} tokens, {price}"
    return ok(variable, f"{name} answered in {trial.seconds:.1f} s{used}.")


def _in_words(variable: str, name: str, error: ModelTrialError) -> tuple[str, str]:
    provider = provider_of(name)
    key = next(iter(provider.variables), "its key") if provider else "its key"
    status = f" (HTTP {error.status})" if error.status else ""
    whose = f"The provider of {name}"
    match error.trouble:
        case Trouble.KEY:
            return f"{whose} refuses the key{status}.", f"Copy the key again from the provider into {key}."
        case Trouble.NAME:
            return f"{whose} does not know this model, or not for this key{status}.", f"Correct {variable}; {LISTED}"
        case Trouble.CREDIT:
            return f"The account for {name} has no credit left{status}.", "Add credit in the provider's billing page."
        case Trouble.BUSY:
            return (
                f"{whose} says that there are too many requests, or that the account's limit is reached{status}.",
                f"Wait, raise the limit at the provider, or name a fallback after a comma in {variable}.",
            )
        case Trouble.UNREACHABLE:
            return (
                f"{whose} cannot be reached, or fails{status}.",
                f"Look at the network, at the address that is set, and at the provider's status; a fallback in "
                f"{variable} bridges that.",
            )
        case Trouble.LATE:
            return (
                f"{name} did not answer within {SECONDS:g} s.",
                "Try again, as a model on your own machine has to load first; otherwise choose a faster one.",
            )
        case Trouble.EMPTY:
            return f"{name} answered without any text.", f"Choose a chat model for {variable}."
        case Trouble.REJECTED:
            return f"{whose} rejects a plain question{status}.", f"Choose a chat model for {variable}."


def names_in(settings: Iterable[str]) -> list[str]:
    """All models in these settings that can be built, by the names that prices use."""
    found: list[str] = []
    for name in (part.strip() for names in settings for part in names.split(",")):
        with suppress(UnusableModelError):
            found += names_of(build_model("MODEL", name))
    return found


def check_built(variable: str, names: str) -> Finding:
    """Whether models can be built, without calling them."""
    try:
        build_model(variable, names)
    except UnusableModelError as error:
        return of_sentence(variable, error)
    return ok(variable, f"{names} can be used; it was not called.")


def check_transcriber(name: str) -> Finding:
    """Whether TRANSCRIBE_MODEL can be built, without calling it."""
    try:
        build_transcriber(name, _NoPurse())
    except UnusableModelError as error:
        return of_sentence("TRANSCRIBE_MODEL", error)
    return ok("TRANSCRIBE_MODEL", f"{name} can be used; it was not called.")


class _NoPurse:
    """Purse of a model that is never called."""

    async def call(self, *_: object) -> None: ...


def check_budgets(budgets: Collection[BudgetLimit], tokens: int, unpriced: Collection[str]) -> Finding:
    """Whether anything limits the cost of models. tokens: DAILY_TOKENS; unpriced: models whose price is not known."""
    if not (budgets or tokens):
        return warning("budgets", "Nothing limits what models may cost.", "Set BUDGETS, such as to $1 a day.")
    if unpriced and any(limit.in_money for limit in budgets):
        says = f"Budgets in money do not limit models without a known price: {', '.join(sorted(unpriced))}."
        return warning("budgets", says, "Set in PRICES what a million of their tokens cost; docs/budgets.md says how.")
    limits = [
        f"{limit.in_words()} {'in all' if limit.scope == 'total' else f'for a {limit.scope}'}" for limit in budgets
    ]
    return ok("budgets", f"Models may use at most {'; '.join(limits or [f'{tokens:,} tokens a day'])}.")
