"""Whole conversations with models by way of servers that speak as Ollama and OpenRouter do."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from pydantic_ai.providers.openrouter import OpenRouterProvider

from place_settings.fields import Level
from tests.support.clock import NOON
from tests.support.scene import open_scene
from tests.support.stub_model import Call, Reply, StubModel
from tests.support.stub_wires import TOOLLESS, StubOllama, StubOpenRouter

CHOICE = Call("ask_choice", json.dumps({"question": "Which tea?", "options": ["green", "black"]}))


@pytest.fixture
async def ollama(stub: StubModel, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StubOllama]:
    assert stub.url  # whose fixture puts back what the bot sets for the process
    server = StubOllama()
    await server.start()
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("OLLAMA_BASE_URL", server.url)
    yield server
    await server.stop()


@pytest.fixture
async def openrouter(stub: StubModel, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StubOpenRouter]:
    assert stub.url
    server = StubOpenRouter()
    await server.start()
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("OPENROUTER_API_KEY", "key-of-the-stub")
    monkeypatch.setattr(OpenRouterProvider, "base_url", server.url)
    yield server
    await server.stop()


async def test_ollama_answers_asks_and_thinks_apart(ollama: StubOllama) -> None:
    async with open_scene(ollama, model="ollama:qwen3") as scene:
        ollama.replies += [
            Reply("Hello.", thoughts="they greet me", chunk=5),
            Reply(thoughts="ask them", calls=(CHOICE,)),
            Reply("Green it is."),
        ]
        assert (await scene.ask("Ada", "hello")).content == "Hello."
        scene.mention("Ada", "make tea")
        scene.press("Ada", await scene.card("Which tea?"), "1.")
        await scene.shows("Green it is.")
        assert "they greet me" not in json.dumps(ollama.requests) + str([r.body for r in scene.pg.requests])


@pytest.mark.usefixtures("rules_of_thumb")
async def test_a_model_of_ollamas_without_tools_answers_without_and_is_not_offered_them_again(
    ollama: StubOllama,
) -> None:
    async with open_scene(ollama, model=f"ollama:{TOOLLESS}") as scene:
        ollama.replies += [Reply("Hello."), Reply("Still here.")]
        assert (await scene.ask("Ada", "hello")).content == "Hello."
        assert ["tools" in body for body in ollama.requests] == [True, False]
        assert (await scene.ask("Ada", "and now?")).content == "Still here."
        assert ["tools" in body for body in ollama.requests] == [True, False, False]
        assert [entry["model"] for entry in scene.journal.find("model_without_tools")] == [f"ollama:{TOOLLESS}"]
        ollama.replies.append(Reply("[silent]"))
        assert await scene.outcome(scene.say("Ben", "I would rather take the train")) == "declined"


async def test_a_model_without_tools_is_told_no_calls_of_the_one_before_it(ollama: StubOllama) -> None:
    name = f"ollama:{TOOLLESS}"
    async with open_scene(ollama, model="ollama:qwen3", models=(name,)) as scene:
        ollama.replies += [Reply(calls=(Call("current_time", "{}"),)), Reply("It is noon.")]
        assert (await scene.ask("Ada", "what time is it?")).content == "It is noon."
        settings, ada = scene.bot.parts.guild_settings, scene.pg.person("Ada")
        settings.change(scene.pg.guild_id, scene.pg.guild_id, Level.GUILD, {"model": name}, by=ada, now=NOON)
        for words in ("Hello.", "Still here."):
            ollama.replies.append(Reply(words))
            assert (await scene.ask("Ada", "hello")).content == words
        assert ["tools" in body for body in ollama.requests] == [True, True, True, False, False]


async def test_openrouter_answers_and_says_what_it_took(openrouter: StubOpenRouter) -> None:
    async with open_scene(openrouter, model="openrouter:vendor/model") as scene:
        openrouter.replies += [
            Reply("Hello.", thoughts="they greet me", tokens=40),
            Reply(thoughts="ask them", calls=(CHOICE,)),
            Reply("Green it is."),
        ]
        question = scene.mention("Ada", "hello")
        assert (await scene.answer_to(question)).content == "Hello."
        assert scene.journal.find("turn_ended", message=question.id)[0]["tokens"] == 40
        scene.mention("Ada", "make tea")
        scene.press("Ada", await scene.card("Which tea?"), "1.")
        await scene.shows("Green it is.")
        assert "they greet me" not in json.dumps(openrouter.requests) + str([r.body for r in scene.pg.requests])


@pytest.mark.parametrize("text", ["", "First words"])
async def test_an_error_of_a_provider_behind_openrouter_costs_one_sentence(
    openrouter: StubOpenRouter, text: str
) -> None:
    error = {"code": 502, "message": "Provider returned error: sk-secret", "metadata": {"provider_name": "X"}}
    async with open_scene(openrouter, model="openrouter:vendor/model") as scene:
        openrouter.replies.append(Reply(text, error=error))
        question = scene.mention("Ada", "hello")
        answer = await scene.answer_to(question)
        assert answer.content.startswith(text)
        assert "Provider returned" not in answer.content
        assert await scene.outcome(question) == "unavailable"
        assert (await scene.ask("Ada", "and now?")).content.startswith("You said: ")


async def test_a_model_of_openrouters_without_tools_answers_without(openrouter: StubOpenRouter) -> None:
    async with open_scene(openrouter, model="openrouter:toolless/model") as scene:
        for words in ("Hello.", "Still here."):
            openrouter.replies.append(Reply(words))
            assert (await scene.ask("Ada", "hello")).content == words
        assert ["tools" in body for body in openrouter.requests] == [True, False, False]
