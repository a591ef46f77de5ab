"""What a model thinks is posted nowhere, kept nowhere and given back to nobody, however its server tells it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from tests.support.scene import Scene, open_scene
from tests.support.stub_model import Call, Reply, StubModel

SECRET = "swordfish"


@pytest.fixture
async def scene(stub: StubModel) -> AsyncIterator[Scene]:
    async with open_scene(stub) as opened:
        yield opened


def posted(scene: Scene) -> str:
    """All that was ever sent to Discord."""
    return "\n".join(str(request.body) for request in scene.pg.requests)


def kept(scene: Scene) -> str:
    """What stands in the conversations, and in what is stored of them."""
    channel = scene.bot.conversations.get(scene.pg.channel("general"))
    assert channel
    return f"{channel.llm_history} {[m.content for m in channel.messages]}"


@pytest.mark.parametrize(
    ("text", "chunk", "answer"),
    [
        ("<think>swordfish</think>\n\nHello.", 3, "Hello."),
        ("<THINKING>\nswordfish\n</THINKING>Hello.", 200, "Hello."),
        ("Well, <think>swordfish</think>hello.", 7, "Well, hello."),
        ("Hello. <think>swordfish, never closed", 1, "Hello."),
    ],
)
async def test_bare_thoughts_are_neither_posted_nor_kept_nor_given_back(
    scene: Scene, text: str, chunk: int, answer: str
) -> None:
    scene.stub.replies.append(Reply(text, chunk=chunk))
    assert (await scene.ask("Ada", "hello")).content == answer
    await scene.ask("Ada", "and now?")
    assert SECRET not in json.dumps(scene.stub.requests)
    assert SECRET not in posted(scene)
    assert SECRET not in kept(scene)


async def test_an_answer_of_nothing_but_thoughts_costs_one_sentence(scene: Scene) -> None:
    scene.stub.replies.append(Reply("<think>swordfish"))
    question = scene.mention("Ada", "hello")
    assert SECRET not in (await scene.answer_to(question)).content
    assert await scene.outcome(question) == "empty"


async def test_thoughts_that_no_tag_opened_go_once_they_are_known_and_are_not_shown_again(scene: Scene) -> None:
    scene.stub.replies.append(Reply("swordfish</think>Hello."))
    assert (await scene.ask("Ada", "hello")).content == "Hello."
    assert scene.journal.find("model_opens_no_thoughts", model="openai-chat:stub")
    before = len(scene.pg.requests)
    scene.stub.replies.append(Reply(f"{SECRET} once more</think>Hello again.", chunk=5))
    assert (await scene.ask("Ada", "and now?")).content == "Hello again."
    assert SECRET not in "\n".join(str(request.body) for request in [*scene.pg.requests][before:])
    assert SECRET not in kept(scene)
    # One that was only made to say so is not held back for good.
    scene.stub.replies.append(Reply("No thought at all."))
    assert (await scene.ask("Ada", "and now?")).content == "No thought at all."
    gate = scene.halted("As it comes, word by word.")
    scene.mention("Ada", "and now?")
    await scene.shows("As it comes")
    gate.set()


async def test_thoughts_between_tools_are_not_given_back_and_not_kept_while_it_waits(scene: Scene) -> None:
    arguments = json.dumps({"question": "Which tea?", "options": ["green", "black"]})
    scene.stub.replies += [
        Reply("<think>swordfish</think>Let me see.", calls=(Call("current_time", "{}"),)),
        Reply("<think>swordfish", thoughts="swordfish", calls=(Call("ask_choice", arguments, id="call-2"),)),
        Reply("<think>swordfish</think>Green it is."),
    ]
    scene.mention("Ada", "make tea")
    card = await scene.card("Which tea?")
    assert SECRET not in json.dumps(scene.stub.requests)
    await scene.at_rest()
    assert SECRET not in kept(scene)
    scene.press("Ada", card, "1.")
    await scene.shows("Green it is.")
    assert SECRET not in posted(scene)


async def test_tags_that_are_quoted_as_code_are_words(scene: Scene) -> None:
    words = "Models write `<think>` first."
    scene.stub.replies.append(Reply(words, chunk=3))
    assert (await scene.ask("Ada", "how?")).content == words
