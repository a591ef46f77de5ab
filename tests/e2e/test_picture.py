"""The pictures of the docs, which `make picture` draws anew: their conversations, held with the bot.

README's is the first scene of the playground's script, with the demo model.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By

from decider import Decision
from playground.scenes import BOT, Await, read_script
from tests.support.browser import console_errors, needs_browser, open_browser, when
from tests.support.scene import Scene, open_scene
from tests.support.stub_model import Reply, StubModel

WANTED = {
    "@Parley we land in Tokyo on Friday and want ramen": True,
    "and on Saturday?": True,
    "Ada, shall we take the train?": False,
    "yes, the early one": False,
}
# Of the quick start's.
ANSWERS = (
    "Hello Ada! I answer when you mention me, and go on with you when you do not. Ask me anything, or have me sum up "
    "what was said here.",
    "Yes: attach text, a PDF or a picture, and I read it. `/tour` shows what else I do in this channel.",
)
WIDTH, HEIGHT = 1180, 960
FIRST_TOP = "document.querySelector('#messages .message').getBoundingClientRect().top"


@pytest.fixture
async def demo(stub: StubModel) -> AsyncIterator[Scene]:
    """The bot with the demo model."""
    async with open_scene(stub, model="demo") as opened:
        yield opened


async def replay(demo: Scene) -> dict[str, Decision]:
    """Says each line once the one before is decided, and answered where the script waits for that: the decisions."""
    decisions: dict[str, Decision] = {}
    message = None
    for line in read_script()[0].lines:
        if message and line.awaits is Await.ANSWER:
            await demo.answer_to(message)
        message = demo.say(line.speaker, line.text.replace(f"@{BOT}", f"<@{demo.pg.bot_id}>"))
        decisions[line.text] = decision = await demo.decision(message)
        # As the running program does it.
        words = decision.in_words()
        demo.pg.annotate(message.id, respond=decision.respond, reason=decision.reason, text=words)
    await demo.at_rest()
    return decisions


async def test_the_conversation_goes_as_the_picture_shows(demo: Scene) -> None:
    decisions = await replay(demo)
    assert {text: decision.respond for text, decision in decisions.items()} == WANTED
    assert [message.content.partition("\n")[0] for message in demo.said()] == [
        "Ada, you said “we land in Tokyo on Friday and want ramen”.",
        "Ada, you said “and on Saturday”; before that you said “we land in Tokyo on Friday and want ramen”.",
    ]


@needs_browser
async def test_the_picture_shows_all_of_it(demo: Scene, tmp_path: Path) -> None:
    """With PICTURES=FOLDER in the environment it is kept there."""
    await replay(demo)
    shown = await asyncio.to_thread(_draw, demo.pg.url, tmp_path, "playground.png", HEIGHT)
    assert shown == ["answered", "answered", "silent", "silent"]


@needs_browser
async def test_the_first_answer_is_a_reply_and_the_next_needs_no_mention(scene: Scene, tmp_path: Path) -> None:
    """The picture of the quick start."""
    scene.stub.replies.extend(map(Reply, ANSWERS))
    for text in ("hello! What can you do?", "and files?"):
        asked = scene.say("Ada", text if scene.said() else f"<@{scene.pg.bot_id}> {text}")
        await scene.answer_to(asked)
    await scene.at_rest()
    assert [message.content for message in scene.said()] == list(ANSWERS)
    await asyncio.to_thread(_draw, scene.pg.url, tmp_path, "first-answer.png", HEIGHT - 260)


def _draw(address: str, folder: Path, name: str, height: int) -> list[str]:
    """Draws the page, with the whole conversation in view: how each message of a person was decided."""
    picture = Path(os.environ.get("PICTURES") or folder) / name
    with open_browser(folder / "browser") as browser:
        browser.set_window_size(WIDTH, height)
        dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
        browser.get(address)
        when(browser, f"document.querySelector('#bot-state.online') && {FIRST_TOP} > 0")
        assert browser.save_screenshot(str(picture))
        assert not console_errors(browser)
        return [chip.text.partition(":")[0] for chip in browser.find_elements(By.CSS_SELECTOR, "[data-annotation]")]
