"""agents/models.py: from the names in the settings to models, or to the one sentence why not."""

from __future__ import annotations

import pytest
from pydantic_ai.models.fallback import FallbackModel

from agents.models import UnusableModelError, build_model, thinks


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


@pytest.mark.parametrize("name", ["google:gemini-2.5-pro", "mistral:large"])
def test_a_provider_whose_package_is_missing_costs_one_sentence(name: str) -> None:
    with pytest.raises(UnusableModelError) as error:
        build_model("MODEL", name)
    assert str(error.value).startswith(f"MODEL {name!r} cannot be used")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("names", "expected"),
    [("openai:gpt-5", True), ("openai:gpt-4o", False), ("openai:gpt-4o, openai:gpt-5", True), ("demo", False)],
)
def test_it_is_known_which_models_think_unasked(monkeypatch: pytest.MonkeyPatch, names: str, *, expected: bool) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    assert thinks(build_model("MODEL", names)) is expected
