"""The console's places in a real browser: a mention becomes an answer, its decision is opened, the bot is paused."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from decider import Reason
from health import Health
from tests.support.accessibility import accessibility_faults
from tests.support.browser import arrive, console_errors, needs_browser, open_browser, when
from tests.support.scene import Scene
from web.site import Site

PASSWORD = "correct horse"
BUTTON = "document.querySelector('.titled button span')"
TOLD = "document.querySelector('#feed').textContent.includes('{}')"


@needs_browser
@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
async def test_a_mention_becomes_an_answer_while_one_looks_and_a_pause_ends_that(
    scene: Scene, tmp_path: Path, theme: str, width: int
) -> None:
    site = Site(Health(), password=PASSWORD, shows_content=True)
    site.shown = scene.bot.shown
    with open_browser(tmp_path / "profile") as browser:
        async with site.served(0, "127.0.0.1") as address:
            media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
            size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            await asyncio.to_thread(_log_in, browser, address)
            await asyncio.to_thread(_open, browser, "general")
            gate = scene.held("Tabbies <b>of all</b> kinds.")
            question = scene.mention("Ada", "which cats?")
            await asyncio.to_thread(when, browser, TOLD.format("answering"))
            gate.set()
            await asyncio.to_thread(_answered, browser)
            await scene.answer_to(question)
            await asyncio.to_thread(_press, browser, "Pause")
            silent = await scene.decision(scene.mention("Ada", "and dogs?"))
            assert silent.reason is Reason.PAUSED
            await asyncio.to_thread(_press, browser, "Resume")
            scene.held("Dogs, too.").set()
            assert (await scene.ask("Ada", "and dogs now?")).content == "Dogs, too."
            assert not await asyncio.to_thread(console_errors, browser)


def _log_in(browser: webdriver.Chrome, address: str) -> None:
    browser.get(f"{address}/console")
    form = browser.find_element(By.NAME, "password")
    arrive(browser, lambda: form.send_keys(PASSWORD, Keys.ENTER), "document.querySelector('nav a')")


def _open(browser: webdriver.Chrome, channel: str) -> None:
    for name in ("People", "Places", "Playground", channel):
        _follow(browser, name)
        assert accessibility_faults(browser) == []
    when(browser, TOLD.format("Nothing has been said here"))


def _answered(browser: webdriver.Chrome) -> None:
    when(browser, TOLD.format("Tabbies <b>of all</b> kinds."))
    when(browser, "document.querySelector('#feed .badge.answered') && document.querySelector('#feed .figures')")
    browser.execute_script("document.querySelector('#feed summary').focus()")
    ActionChains(browser).send_keys(Keys.ENTER).perform()  # to what has the focus, although it be drawn anew
    when(browser, "document.querySelector('#feed details[open]')?.textContent.includes('explicit_trigger')")
    assert accessibility_faults(browser) == []
    assert not browser.find_elements(By.CSS_SELECTOR, "#feed :is(script, .text b)")


def _press(browser: webdriver.Chrome, label: str) -> None:
    _follow(browser, "Places")
    pressed = browser.find_element(By.XPATH, f"//button[span='{label}']")
    arrive(browser, pressed.click, f"!['{label}', undefined].includes({BUTTON}?.textContent)")
    assert accessibility_faults(browser) == []


def _follow(browser: webdriver.Chrome, link: str) -> None:
    """To the page with a heading that begins with the link's text."""
    heading = f"document.querySelector('h1')?.textContent.startsWith('{link}')"
    arrive(browser, browser.find_element(By.LINK_TEXT, link).click, heading)
