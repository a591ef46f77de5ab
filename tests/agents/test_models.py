"""agents/models.py: from the names in the settings to models, or to the one sentence why not."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.providers import infer_provider_class

from agents.models import NamedModel, UnusableModelError, build_model
from agents.providers import PROVIDERS


@pytest.mark.parametrize("name", ["openai:gpt-5", "openai-chat:gpt-5", "openai-chat:never-heard-of"])
def test_a_known_provider_with_its_key_is_enough(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any form will do")
    assert build_model("MODEL", name).model_name == name.split(":")[1]


def test_several_names_are_tried_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    model = build_model("MODEL", "openai-chat:one , openai-chat:two,demo")
    assert isinstance(model, FallbackModel)
    assert [m.model_name for m in model.models] == ["one", "two", "demo"]


@pytest.mark.parametrize(
    ("names", "key"),
    [
        ("openai:gpt-5", "OPENAI_API_KEY"),
        ("openai-chat:gpt-5", "OPENAI_API_KEY"),
        pytest.param("anthropic:claude-sonnet-4-5", "ANTHROPIC_API_KEY", marks=pytest.mark.slow),  # loads its client
        ("demo,openai:gpt-5", "OPENAI_API_KEY"),
    ],
)
def test_a_missing_key_is_named(names: str, key: str) -> None:
    with pytest.raises(UnusableModelError) as error:
        build_model("MODEL", names)
    name = names.removeprefix("demo,")
    assert str(error.value) == f"MODEL {name!r} cannot be used without its key: set {key}."


@pytest.mark.parametrize("name", ["nobody:gpt", "gpt", "", ":", "openai", "demo:1", "openai gpt-5"])
def test_an_unknown_provider_costs_one_sentence(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    with pytest.raises(UnusableModelError) as error:
        build_model("JUDGE_MODEL", name)
    assert str(error.value).startswith(f"JUDGE_MODEL {name!r} cannot be used: ")
    assert "provider:name" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.slow  # loads each one's client
@pytest.mark.parametrize("prefix", PROVIDERS)
@pytest.mark.filterwarnings("default")  # their packages' own
def test_each_provider_of_the_table_is_built_without_a_network_or_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    provider = PROVIDERS[prefix]
    for variable in provider.variables:
        monkeypatch.setenv(variable, "2025-01-01")
    if provider.address:
        monkeypatch.setenv(provider.variables[0], provider.address)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")  # where Bedrock's client looks for keys
    monkeypatch.setattr(socket.socket, "connect", None)
    name = f"{prefix}:{provider.example}"
    try:
        infer_provider_class(prefix)
    except ImportError:
        with pytest.raises(UnusableModelError) as error:
            build_model("MODEL", name)
        assert str(error.value) == (
            f"MODEL {name!r} cannot be used: its provider's package is not installed; "
            f"run .venv/bin/pip install -c constraints.txt -e '.[{provider.extra}]'."
        )
        return
    model = build_model("MODEL", name)
    assert model.model_name == provider.example
    assert NamedModel(name, model).sight


def test_the_table_names_the_extras_that_there_are() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    named = {provider.extra or "all" for provider in PROVIDERS.values()}
    assert named == {"google", "groq", "all"}
    assert named <= set(extras)
    pinned = (Path(__file__).parents[2] / "constraints.txt").read_text(encoding="utf-8")
    for package in "google-genai groq mistralai cohere boto3 xai-sdk huggingface-hub".split():
        assert f"\n{package}==" in pinned


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("ollama:llama3", ": set OLLAMA_BASE_URL (such as http://localhost:11434/v1)."),
        ("vllm:qwen", ": set VLLM_BASE_URL (such as http://localhost:8000/v1)."),
        ("litellm:gpt-5", ": set OPENAI_BASE_URL (such as http://localhost:4000/v1)."),
        (
            "azure:gpt-5",
            ": set AZURE_OPENAI_ENDPOINT (such as https://yours.openai.azure.com) and AZURE_OPENAI_API_KEY and "
            "OPENAI_API_VERSION.",
        ),
        ("openrouter:x/y", " without its key: set OPENROUTER_API_KEY."),
        ("deepseek:deepseek-chat", " without its key: set DEEPSEEK_API_KEY."),
        ("google-gla:gemini-2.5-pro", ": google-gla: is google: now; use google:gemini-2.5-pro."),
        ("google-vertex:gemini-2.5-pro", ": google-vertex: is google-cloud: now; use google-cloud:gemini-2.5-pro."),
        ("grok:grok-4", ": grok: is xai: now; use xai:grok-4."),
        ("gpt-5-mini", ": did you mean openai:gpt-5-mini?"),
        ("o3", ": did you mean openai:o3?"),
        ("claude-sonnet-4-5", ": did you mean anthropic:claude-sonnet-4-5?"),
        ("gemini-2.5-pro", ": did you mean google:gemini-2.5-pro?"),
        ("anthropc:x", ": did you mean anthropic:x?"),
        ("OpenAI:gpt-5", ": did you mean openai:gpt-5?"),
        ("open-ai:gpt-5", ": did you mean openai:gpt-5?"),
        ("openai/gpt-5", ": did you mean openai:gpt-5?"),
        ("qwen/qwen3-8b", ": did you mean openrouter:qwen/qwen3-8b?"),
    ],
)
def test_what_is_missing_or_misspelt_is_named(monkeypatch: pytest.MonkeyPatch, name: str, why: str) -> None:
    for variable in [name for name in os.environ if name.endswith(("_KEY", "_URL", "_ENDPOINT"))]:
        monkeypatch.delenv(variable)
    with pytest.raises(UnusableModelError) as error:
        build_model("MODEL", name)
    assert str(error.value) == f"MODEL {name!r} cannot be used{why}"


def test_openrouters_models_are_named_with_their_vendor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-of-nobody")
    with pytest.raises(UnusableModelError) as error:
        build_model("MODEL", "openrouter:gpt-5")
    assert "OpenRouter's models are named vendor/model, such as openrouter:" in str(error.value)


@pytest.mark.parametrize("name", ["{key}", "openai:{key}", "anthropic:{key}"])
def test_a_key_in_place_of_a_model_is_not_shown(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(UnusableModelError, match="that is a key") as error:
        build_model("MODEL", name.format(key=key))
    assert key not in str(error.value)


@pytest.mark.parametrize(
    ("names", "expected"),
    [("openai:gpt-5", True), ("openai:gpt-4o", False), ("openai:gpt-4o, openai:gpt-5", True), ("demo", False)],
)
def test_it_is_known_which_models_think_unasked(monkeypatch: pytest.MonkeyPatch, names: str, *, expected: bool) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    assert NamedModel(names, build_model("MODEL", names)).thinks is expected


@pytest.mark.slow
def test_a_model_is_built_without_reading_all_the_prices_there_are() -> None:
    program = (
        "import sys; from agents.models import build_model; from state.prices import Prices\n"
        "build_model('MODEL', 'openai-chat:gpt-5-mini, demo')\n"
        "assert 'genai_prices.data' not in sys.modules, 'they are read already'\n"
        "assert Prices().unknown(['openai:gpt-5-mini', 'openai:none']) == ['openai:none']"
    )
    environment = {**os.environ, "OPENAI_API_KEY": "nobodys"}
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2], env=environment)
