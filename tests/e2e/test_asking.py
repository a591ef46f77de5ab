"""The agent asks by its tools, in the channel, and goes on with the answer."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from tests.e2e.test_trip import current
from tests.support.scene import Scene, choices
from tests.support.stub_model import Body, Call, Reply
from understanding.choice_text import Option
from understanding.selection import choose

DRINK = Call("ask_choice", json.dumps({"question": "Which drink?", "options": ["tea", "coffee", "mate"]}))


def tool_results(body: Body) -> list[str]:
    return [m["content"] for m in body["messages"] if m["role"] == "tool"]


async def test_a_choice_is_clicked_and_the_run_goes_on(scene: Scene) -> None:
    scene.stub.replies.extend([Reply(calls=(DRINK,)), Reply("Coffee it is.")])
    card = await scene.ask("Ada", "something to drink, please")
    assert card.content == "Which drink?\n\n1. tea\n2. coffee\n3. mate"
    assert [label for label, _, _ in choices(card)] == ["1. tea", "2. coffee", "3. mate"]
    scene.press("Ada", card, "2.")
    answer = await scene.shows("Coffee it is.")
    assert answer.reference
    assert answer.reference.message_id == card.id
    assert not (await current(scene, card, "✓ coffee")).components
    assert tool_results(scene.stub.requests[-1]) == ["coffee"]


async def test_a_choice_is_typed_while_others_talk_with_the_bot(scene: Scene) -> None:
    scene.stub.replies.extend([Reply(calls=(DRINK,)), Reply("Hello Ben."), Reply("Mate it is.")])
    await scene.ask("Ada", "something to drink, please")
    await scene.ask("Ben", "hello")
    answer = await scene.answer_to(scene.say("Ada", "the last one"))
    assert answer.content == "Mate it is."
    assert tool_results(scene.stub.requests[-1]) == ["mate"]
    assert tool_results(scene.stub.requests[1]) == []


async def test_what_is_answered_but_chooses_nothing_is_compared_with_the_options_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[str] = []

    def choose_noted(reply: str, options: Sequence[Option]) -> int | None:
        compared.append(reply)
        return choose(reply, options)

    scene.stub.replies.extend([Reply(calls=(DRINK,)), Reply("It is sunny."), Reply("Coffee it is.")])
    await scene.ask("Ada", "something to drink, please")
    monkeypatch.setattr("state.resolution.choose", choose_noted)
    await scene.ask("Ada", "how is the weather?")
    assert compared == ["how is the weather?"]
    assert (await scene.answer_to(scene.say("Ada", "coffee"))).content == "Coffee it is."


async def test_a_confirmation_and_a_text(scene: Scene) -> None:
    sure = Call("ask_confirmation", '{"question": "Are you sure?"}')
    name = Call("ask_text", '{"question": "What is it called?"}')
    scene.stub.replies.extend([Reply(calls=(sure,)), Reply(calls=(name,)), Reply("Done.")])
    await scene.ask("Ada", "make a new one")
    await scene.answer_to(scene.say("Ada", "yes"))
    opener = scene.press("Ada", await scene.card("What is it called?"), "Answer")
    await scene.until(lambda: opener.form)
    scene.pg.submit(opener, {"text": "Bluebell"})
    await scene.shows("Done.")
    await scene.at_rest()
    assert tool_results(scene.stub.requests[-1])[-1] == "Bluebell"


async def test_a_forgotten_question_is_not_resumed_with_its_words(scene: Scene) -> None:
    scene.stub.replies.extend([Reply(calls=(DRINK,)), Reply("I do not know.")])
    card = await scene.ask("Ada", "something to drink, please")
    await scene.at_rest()
    await scene.bot.privacy.forget_person(scene.pg.person("Ada"), card.id)
    await scene.ask("Ben", "what did Ada want?")
    assert "drink, please" not in scene.told()
    assert "mate" not in scene.told()


async def test_a_typed_choice_that_is_edited_before_it_is_answered_counts_as_it_stands(scene: Scene) -> None:
    scene.stub.replies.append(Reply(calls=(DRINK,)))
    await scene.ask("Ada", "something to drink, please")
    scene.held("Mate it is.")
    scene.stub.replies.append(Reply("Tea it is."))
    reply = scene.say("Ada", "the last one")
    await scene.until(lambda: len(scene.stub.requests) == 2)
    await scene.edit(reply, "the first one")
    assert (await scene.answer_to(reply)).content == "Tea it is."
    assert "the first one" in scene.told()
    assert "the last one" not in scene.told()
