"""Builds the models from their names in the settings, once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlsplit

import structlog
from genai_prices.data_snapshot import DataSnapshot, set_custom_snapshot
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.providers import infer_provider_class
from pydantic_ai.settings import ModelSettings

from agents.bounded_client import PATIENCE_SECONDS, asks_another, bound, bound_parts
from agents.lighter_requests import adapt_once, bound_texts, leave_joiners, send_as_is
from agents.providers import RENAMED, meant, provider_of
from files.reading import Sight
from state.prices import FREE

log = structlog.get_logger()

DEMO = "demo"
# The clients' default is 2; with one retry, people do not wait long.
SETTINGS = ModelSettings(max_retries=1)
# For conversations, whose prompts are repeated: some providers, as Anthropic, only cache on request.
CACHED = ModelSettings(max_retries=1, cache=True)
OTHERS_WAIT = 2.0  # seconds that a server may say that it is busy for, before the next of several models is asked
HUGGING_FACE = "https://router.huggingface.co/v1"
FETCHING_HOSTS = frozenset({"api.openai.com", "api.anthropic.com"})
# Tags that no model writes itself; models understand them when thoughts that a provider separated are sent back.
OTHER_TAGS = ("<think>\N{WORD JOINER}", "</think>\N{WORD JOINER}")
RESPONSES = re.compile(r"openai(-responses)?:")
KEY = re.compile(r"\b(sk-|gsk_|xai-|hf_|AIza)[\w-]{20,}")  # the form of providers' keys


class UnusableModelError(ValueError):
    """A model that cannot be built. Its text is one sentence that names variable, value and remedy."""


def build_model(variable: str, names: str) -> Model:
    """Builds the model for a name, or for several separated by commas, each a fallback for the one before.

    variable: the setting with the names. Raises UnusableModelError for an unknown provider or a missing key.
    """
    # Or pydantic-ai loads all prices as it builds a model, which takes 0.1 s: a thread does that after the start.
    set_custom_snapshot(DataSnapshot([], from_auto_update=False))
    try:
        *others, last = names.split(",")
        models = [*(_build_one(variable, one.strip(), waits=OTHERS_WAIT) for one in others)]
        models.append(_build_one(variable, last.strip()))
        return models[0] if len(models) == 1 else FallbackModel(*models, fallback_on=asks_another)
    finally:
        set_custom_snapshot(None)


def parts_of(model: Model) -> Sequence[Model]:
    """The model itself, or a fallback model's models."""
    return model.models if isinstance(model, FallbackModel) else [model]


def names_of(model: object) -> tuple[str, ...]:
    """The names of an agent's model and its fallbacks, as provider:name."""
    models = parts_of(model) if isinstance(model, Model) else [model]
    return tuple(_name(one) if isinstance(one, Model) else str(one) for one in models)


def _name(model: Model) -> str:
    """The model as provider:name, with the provider by its URL if prices are known for that: many use the protocol of
    another one."""
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - a list of all models there are

    if model.model_name == FREE:
        return FREE
    if address := getattr(model, "base_url", None):
        try:
            return f"{get_snapshot().find_provider(None, None, str(address)).id}:{model.model_name}"
        except LookupError:
            pass
    return f"{model.system}:{model.model_name}"


@dataclass(frozen=True)
class NamedModel:
    """A model and its name in the settings, with what each turn needs to know of it."""

    name: str
    model: Model

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the model and its fallbacks, for their prices."""
        return names_of(self.model)

    @cached_property
    def sight(self) -> Sight:
        """How it is shown pictures: by their URL only if its provider is public and fetches them."""
        models = parts_of(self.model)
        if any(m.model_name == DEMO or not m.profile.get("supports_image_input", True) for m in models):
            return Sight.NONE
        hosts = {urlsplit(m.base_url or "").hostname for m in models}
        return Sight.BY_ADDRESS if hosts <= FETCHING_HOSTS else Sight.BY_BYTES

    @cached_property
    def thinks(self) -> bool:
        """Whether it, or one of its fallbacks, thinks by default; some of its thoughts may be hidden."""
        return any(one.profile.get("thinking_enabled_by_default", False) for one in parts_of(self.model))

    def that_said(self, response: ModelMessage) -> str:
        """The name of the model that gave a response, among the fallbacks."""
        if not isinstance(self.model, FallbackModel) or not isinstance(response, ModelResponse):
            return self.name
        names = [name.strip() for name in self.name.split(",")]
        return names[min(len(response.failed_attempts or ()), len(names) - 1)]  # it may be of an earlier start


class Models:
    """The models that answer, by their names; the first is the default. all: the same without names."""

    def __init__(self, by_name: Mapping[str, Model]) -> None:
        self._by_name = {name: NamedModel(name, model) for name, model in by_name.items()}
        self.names, self.all = [*by_name], [*by_name.values()]
        self.default = self.all[0]

    @classmethod
    def build(cls, default: str, others: Sequence[str]) -> Models:
        """Builds the models of MODEL and MODELS. Raises UnusableModelError."""
        by_name = {default: build_model("MODEL", default)}
        return cls(by_name | {name: build_model("MODELS", name) for name in others if name != default})

    def named(self, name: str | None) -> NamedModel:
        """The model of this name, or the default."""
        default = self.names[0]
        if name and name not in self._by_name:
            log.warning("model_not_listed", model=name, instead=default)
        return self._by_name.get(name or default, self._by_name[default])


def _build_one(variable: str, name: str, *, waits: float = PATIENCE_SECONDS) -> Model:
    if name.lower() == DEMO:
        from agents.demo import demo_model  # noqa: PLC0415 - it loads what no other model needs

        return demo_model()
    provider = provider_of(name)
    try:
        # What pydantic-ai would refuse later, or not at all.
        if provider and provider.extra:
            infer_provider_class(name.partition(":")[0])  # raises ImportError if its package is missing
        if KEY.search(name) or name.endswith(":") or (provider and provider.missing):
            raise UserError("not usable")
        if RESPONSES.match(name):
            from pydantic_ai.models.openai import (  # noqa: PLC0415 - slow
                OpenAIResponsesModel,
                OpenAIResponsesModelSettings,
            )

            # OpenAI stores responses unless told not to.
            settings = OpenAIResponsesModelSettings(openai_store=False)
            model: Model = OpenAIResponsesModel(RESPONSES.sub("", name, count=1), settings=settings)
        elif name.startswith("huggingface:"):
            from pydantic_ai.providers.huggingface import HuggingFaceProvider  # noqa: PLC0415 - an extra

            # Without a URL pydantic-ai fails at the first call.
            model = infer_model(name, lambda _: HuggingFaceProvider(base_url=HUGGING_FACE))
        else:
            model = infer_model(name)
    except (UserError, ValueError, ImportError) as error:
        shown = "of that form" if KEY.search(name) else repr(name)
        raise UnusableModelError(f"{variable} {shown} cannot be used{_why(name, error)}") from None
    # pydantic-ai recognises these tags only alone and in lower case; agents/thoughts.py handles them all.
    model.profile["thinking_tags"] = OTHER_TAGS
    adapt_once(model)
    leave_joiners(model)
    bound_texts(model)
    bound_parts(model)
    send_as_is(getattr(model, "client", None))
    if model.provider:
        bound(model.provider, waits=waits)
    return model


def _why(name: str, error: Exception) -> str:
    """Says what is missing for a model, and what would be right; never shows a variable's value."""
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
