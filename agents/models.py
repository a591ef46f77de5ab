"""From the names in the settings to the models themselves, built once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import structlog
from genai_prices.data_snapshot import DataSnapshot, set_custom_snapshot
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.providers import infer_provider_class
from pydantic_ai.settings import ModelSettings

from agents.bounded_client import bound
from agents.demo import demo_model
from agents.plain_client import send_as_is
from agents.providers import RENAMED, meant, provider_of
from files.reading import Sight
from place import Place

log = structlog.get_logger()

DEMO = "demo"
# The clients' own default is 2; one retry keeps the person who waits from waiting long.
SETTINGS = ModelSettings(max_retries=1)
# Of a conversation, which is gone on with: where its provider caches only what it is told to, as Anthropic's.
CACHED = ModelSettings(max_retries=1, cache=True)
HUGGING_FACE = "https://router.huggingface.co/v1"
FETCHING_HOSTS = frozenset({"api.openai.com", "api.anthropic.com"})
# Like none that a model writes, and read as such where thoughts that a provider told apart are sent back to it.
OTHER_TAGS = ("<think>\N{WORD JOINER}", "</think>\N{WORD JOINER}")
RESPONSES = re.compile(r"openai(-responses)?:")
KEY = re.compile(r"\b(sk-|gsk_|xai-|hf_|AIza)[\w-]{20,}")  # how providers' keys look


class UnusableModelError(ValueError):
    """A model that cannot be built. Its text is one sentence: variable, value, remedy."""


def build_model(variable: str, names: str) -> Model:
    """The model for one or several names by comma, each tried where the one before fails.

    variable: the setting the names come from. Raises UnusableModelError for an unknown provider or a missing key.
    """
    with _prices_unread():
        models = [_build_one(variable, name.strip()) for name in names.split(",")]
        return models[0] if len(models) == 1 else FallbackModel(*models)


@contextmanager
def _prices_unread() -> Iterator[None]:
    """Keeps pydantic-ai from reading all the prices there are, 0.1 s, with a model: a thread does once it is ready."""
    set_custom_snapshot(DataSnapshot([], from_auto_update=False))
    try:
        yield
    finally:
        set_custom_snapshot(None)


def parts_of(model: Model) -> Sequence[Model]:
    """The model itself, or those that stand in for each other."""
    return model.models if isinstance(model, FallbackModel) else [model]


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model, and the name by which the settings know it."""

    name: str
    model: Model

    def that_said(self, response: ModelMessage) -> str:
        """The name of the one that gave a response, of several that stand in for each other."""
        names = [name.strip() for name in self.name.split(",")]
        responded = (isinstance(response, ModelResponse) and response.model_name) or ""
        # Providers answer by longer names, such as gpt-5-mini-2025-08-07.
        those = [(m.model_name, n) for m, n in zip(parts_of(self.model), names, strict=False)]
        return max((one for one in those if responded.startswith(one[0])), default=("", self.name))[1]


class Models:
    """The models that answer, by their names; the first is the default. chosen: by which name a place wants one."""

    def __init__(
        self, by_name: Mapping[str, Model], chosen: Callable[[Place], str | None] = lambda _place: None
    ) -> None:
        self._by_name = by_name
        self._chosen = chosen

    @classmethod
    def build(
        cls, default: str, others: Sequence[str], chosen: Callable[[Place], str | None] = lambda _place: None
    ) -> Models:
        """MODEL's, and those of MODELS. Raises UnusableModelError."""
        by_name = {default: build_model("MODEL", default)}
        return cls(by_name | {name: build_model("MODELS", name) for name in others if name != default}, chosen)

    @property
    def names(self) -> list[str]:
        return [*self._by_name]

    @property
    def default_name(self) -> str:
        return self.names[0]

    @property
    def default(self) -> Model:
        return self._by_name[self.default_name]

    @property
    def all(self) -> Sequence[Model]:
        return [*self._by_name.values()]

    def get(self, name: str) -> Model | None:
        """The model of this name; None: it is not on the list, or no longer."""
        return self._by_name.get(name)

    def named(self, name: str | None) -> NamedModel:
        """The model of this name, or the default."""
        if name and name not in self._by_name:
            log.warning("model_not_listed", model=name, instead=self.default_name)
        known = name if name and name in self._by_name else self.default_name
        return NamedModel(known, self._by_name[known])

    def at(self, place: Place) -> str:
        """The name of the one that answers there."""
        return self.named(self._chosen(place)).name


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
    # pydantic-ai knows the tags only where they come alone and in lower case; agents/thoughts.py does the rest.
    model.profile["thinking_tags"] = OTHER_TAGS
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
