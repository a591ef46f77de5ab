"""From the names in the settings to the models themselves, built once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.providers import infer_provider_class
from pydantic_ai.settings import ModelSettings

from agents.bounded_client import bound
from agents.demo import demo_model
from agents.plain_client import send_as_is
from agents.providers import RENAMED, meant, provider_of
from files.reading import Sight

DEMO = "demo"
# The clients' own default is 2; one retry keeps the person who waits from waiting long.
SETTINGS = ModelSettings(max_retries=1)
HUGGING_FACE = "https://router.huggingface.co/v1"
FETCHING_HOSTS = frozenset({"api.openai.com", "api.anthropic.com"})
RESPONSES = re.compile(r"openai(-responses)?:")
KEY = re.compile(r"\b(sk-|gsk_|xai-|hf_|AIza)[\w-]{20,}")  # how providers' keys look


class UnusableModelError(ValueError):
    """A model that cannot be built. Its text is one sentence: variable, value, remedy."""


def build_model(variable: str, names: str) -> Model:
    """The model for one or several names by comma, each tried where the one before fails.

    variable: the setting the names come from. Raises UnusableModelError for an unknown provider or a missing key.
    """
    models = [_build_one(variable, name.strip()) for name in names.split(",")]
    return models[0] if len(models) == 1 else FallbackModel(*models)


def parts_of(model: Model) -> Sequence[Model]:
    """The model itself, or those that stand in for each other."""
    return model.models if isinstance(model, FallbackModel) else [model]


def sight_of(model: Model) -> Sight:
    """How a model is shown pictures: by their address only where its provider, a public one, fetches them."""
    models = parts_of(model)
    if any(m.model_name == DEMO or not m.profile.get("supports_image_input", True) for m in models):
        return Sight.NONE
    hosts = {urlsplit(m.base_url or "").hostname for m in models}
    return Sight.BY_ADDRESS if hosts <= FETCHING_HOSTS else Sight.BY_BYTES


def _build_one(variable: str, name: str) -> Model:
    if name.lower() == DEMO:
        return demo_model()
    try:
        _check(name)
        if RESPONSES.match(name):
            from pydantic_ai.models.openai import (  # noqa: PLC0415 - slow
                OpenAIResponsesModel,
                OpenAIResponsesModelSettings,
            )

            # It keeps what it is sent unless it is told not to.
            settings = OpenAIResponsesModelSettings(openai_store=False)
            model: Model = OpenAIResponsesModel(RESPONSES.sub("", name, count=1), settings=settings)
        elif name.startswith("huggingface:"):
            from pydantic_ai.providers.huggingface import HuggingFaceProvider  # noqa: PLC0415 - an extra

            # Without an address pydantic-ai fails once it is called.
            model = infer_model(name, lambda _: HuggingFaceProvider(base_url=HUGGING_FACE))
        else:
            model = infer_model(name)
    except (UserError, ValueError, ImportError) as error:
        shown = "of that form" if KEY.search(name) else repr(name)
        raise UnusableModelError(f"{variable} {shown} cannot be used{_why(name, error)}") from None
    client = getattr(model, "client", None)
    send_as_is(client)
    bound(client)
    return model


def _check(name: str) -> None:
    """Raises UserError, or ImportError, for what pydantic-ai would refuse later or not at all."""
    provider = provider_of(name)
    if provider and provider.extra:
        infer_provider_class(name.partition(":")[0])  # an ImportError where its package is missing
    if KEY.search(name) or name.endswith(":") or (provider and provider.missing):
        raise UserError("not usable")


def _why(name: str, error: Exception) -> str:
    """What is missing for a model, and what would be right; no value of any variable."""
    provider = provider_of(name)
    missing = provider.missing if provider else []
    if KEY.search(name):
        return ": that is a key; name a model here, and set the key in its provider's own variable."
    if isinstance(error, ImportError):
        install = f".venv/bin/pip install -c constraints.txt -e '.[{provider.extra if provider else 'all'}]'"
        also = f", and set {missing[0]}" if missing else ""
        return f": its provider's package is not installed; run {install}{also}."
    if provider and missing == [provider.variables[0]] and not provider.address:
        return f" without its key: set {missing[0]}."
    if provider and missing:
        first, *others = missing
        such = f" (such as {provider.address})" if first == provider.variables[0] else ""
        return f": set {' and '.join([first + such, *others])}."
    if name.startswith("openrouter:") and "/" not in name and provider:
        return f": OpenRouter's models are named vendor/model, such as openrouter:{provider.example}."
    if guess := meant(name):
        old = name.partition(":")[0]
        return f": {old}: is {RENAMED[old]}: now; use {guess}." if old in RENAMED else f": did you mean {guess}?"
    return ": no such model; use provider:name, such as openai:gpt-5, or demo."


def thinks(model: Model) -> bool:
    """Whether a model, or one that stands in for it, thinks without being told to, of which not all need be shown."""
    return any(one.profile.get("thinking_enabled_by_default", False) for one in parts_of(model))
