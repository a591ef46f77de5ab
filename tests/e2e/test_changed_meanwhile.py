"""Words that change while a question waits, or while it is answered: what the model is told then, and what not."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.scene import Scene
from tests.support.stub_model import Call, Reply

CLOCK = (Call("current_time", "{}", "call-clock"),)


@pytest.mark.parametrize("whose", ["Ada", "Chloe"])
async def test_an_answer_with_a_note_goes_on_whatever_is_edited_while_tools_run(scene: Scene, whose: str) -> None:
    """The note goes where it is made of what was edited."""
    scene.stub.default, gate = lambda _: Reply("I see."), asyncio.Event()
    asked = scene.mention("Chloe", "what is the weather in Osaka?")
    await scene.answer_to(asked)
    scene.stub.replies.append(Reply("Let me see.", before=gate, calls=CLOCK))
    followed = scene.mention("Chloe", "and on Tuesday?")
    await scene.until(lambda: len(scene.stub.requests) == 2)
    assert "weather in Osaka on Tuesday" in scene.told()
    later = scene.say("Ada", "hello everybody")
    await scene.decision(later)
    await scene.edit(later if whose == "Ada" else asked, "never mind")
    gate.set()
    assert (await scene.answer_to(followed)).content == "Let me see.\n\nI see."
    assert ("weather in Osaka on Tuesday" in scene.told()) == (whose == "Ada")
