"""From the names in the settings to the models themselves, built once."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.settings import ModelSettings

from agents.bounded_client import bound
from agents.demo import demo_model
from agents.plain_client import send_as_is
from files.reading import Sight

DEMO = "demo"
# The clients' own default is 2; one retry keeps the person who waits from waiting long.
SETTINGS = ModelSettings(max_retries=1)
FETCHING_HOSTS = frozenset({"api.openai.com", "api.anthropic.com"})
RESPONSES = re.compile(r"openai(-responses)?:")


class UnusableModelError(ValueError):
    """A model that cannot be built. Its text is one sentence: variable, value, remedy."""


def build_model(variable: str, names: str) -> Model:
    """The model for one or several names by comma, each tried where the one before fails.

    variable: the setting the names come from. Raises UnusableModelError for an unknown provider or a missing key.
    """
    models = [_build_one(variable, name.strip()) for name in names.split(",")]
    return models[0] if len(models) == 1 else FallbackModel(*models)


def sight_of(model: Model) -> Sight:
    """How a model is shown pictures: by their address only where its provider, a public one, fetches them."""
    models = model.models if isinstance(model, FallbackModel) else [model]
    if any(m.model_name == DEMO or not m.profile.get("supports_image_input", True) for m in models):
        return Sight.NONE
    hosts = {urlsplit(getattr(m, "base_url", None) or "").hostname for m in models}
    return Sight.BY_ADDRESS if hosts <= FETCHING_HOSTS else Sight.BY_BYTES


def _build_one(variable: str, name: str) -> Model:
    if name.lower() == DEMO:
        return demo_model()
    try:
        if name.endswith(":"):
            raise UserError("no model named")
        if RESPONSES.match(name):
            from pydantic_ai.models.openai import (  # noqa: PLC0415 - slow
                OpenAIResponsesModel,
                OpenAIResponsesModelSettings,
            )

            # It keeps what it is sent unless it is told not to.
            settings = OpenAIResponsesModelSettings(openai_store=False)
            model: Model = OpenAIResponsesModel(RESPONSES.sub("", name, count=1), settings=settings)
        else:
            model = infer_model(name)
    except (UserError, ValueError) as error:
        if key := re.search(r"`([A-Z0-9_]+_KEY)`", str(error)):
            raise UnusableModelError(f"{variable} {name!r} cannot be used without its key: set {key[1]}.") from None
        raise UnusableModelError(
            f"{variable} {name!r} cannot be used: no such model; use provider:name, such as openai:gpt-5, or demo."
        ) from None
    except ImportError:
        raise UnusableModelError(
            f"{variable} {name!r} cannot be used: its provider's package is not installed; "
            "use an openai:, openai-chat: or anthropic: model, or install pydantic-ai-slim with that provider."
        ) from None
    client = getattr(model, "client", None)
    send_as_is(client)
    bound(client)
    return model


def thinks(model: Model) -> bool:
    """Whether a model, or one that stands in for it, thinks without being told to, of which not all need be shown."""
    models = model.models if isinstance(model, FallbackModel) else [model]
    return any(one.profile.get("thinking_enabled_by_default", False) for one in models)
