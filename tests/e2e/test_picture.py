"""README's picture, which `make picture` draws anew: its conversation, held against the bot with the demo model.

The conversation is the first scene of the playground's script.
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
from tests.support.stub_model import StubModel

WANTED = {
    "@Parley we land in Tokyo on Friday and want ramen": True,
    "and on Saturday?": True,
    "Ada, shall we take the train?": False,
    "yes, the early one": False,
}
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
    """With PICTURE=FILE in the environment it is kept there."""
    await replay(demo)
    picture = Path(os.environ.get("PICTURE") or tmp_path / "picture.png")
    shown = await asyncio.to_thread(_draw, demo.pg.url, tmp_path / "browser", picture)
    assert shown == ["answered", "answered", "silent", "silent"]


def _draw(address: str, profile: Path, picture: Path) -> list[str]:
    """Draws the page, with the whole conversation in view: how each message of a person was decided."""
    with open_browser(profile) as browser:
        browser.set_window_size(WIDTH, HEIGHT)
        dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
        browser.get(address)
        when(browser, f"document.querySelector('#bot-state.online') && {FIRST_TOP} > 0")
        assert browser.save_screenshot(str(picture))
        assert not console_errors(browser)
        return [chip.text.partition(":")[0] for chip in browser.find_elements(By.CSS_SELECTOR, "[data-annotation]")]
