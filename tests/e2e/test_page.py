"""The chat page in a real browser, served by the real program, with the demo model in it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.by import By

from tests.support.browser import LAST, console_errors, needs_browser, open_browser, when, write
from tests.support.process import program


@needs_browser
async def test_a_newcomer_talks_with_the_bot_on_the_page(tmp_path: Path) -> None:
    async with program(tmp_path, PLAYGROUND_PORT="0") as running:
        address = (await running.printed()).split()[1]
        await asyncio.to_thread(_talk, address, tmp_path / "browser")
        running.terminate()
        assert await running.ended() == 0


def _talk(address: str, profile: Path) -> None:
    with open_browser(profile) as browser:
        browser.get(address)
        when(browser, "document.querySelector('#members .online')?.textContent.includes('P')")
        browser.find_element(By.CSS_SELECTOR, "#members [aria-label='Mention Parley']").click()
        write(browser, "my cat is called Tim")
        when(browser, f"{LAST}?.textContent.includes('you said “my cat is called Tim”')")
        assert _chips(browser) == ["answered: you mentioned me or replied to me"]

        write(browser, "what did I say before?")
        when(browser, f"{LAST}.textContent.includes('before that you said “my cat is called Tim”')")

        browser.find_element(By.CSS_SELECTOR, "[data-person-id]:nth-of-type(2)").click()
        write(browser, "@Chloe shall we have lunch at noon?")
        when(browser, f"{LAST}.querySelector('[data-annotation=names_others]')")
        assert _chips(browser)[-1] == "silent: it was addressed to somebody else"
        assert len(browser.find_elements(By.CSS_SELECTOR, "#messages .message")) == 5
        assert not console_errors(browser)


def _chips(browser: webdriver.Chrome) -> list[str]:
    return [chip.text for chip in browser.find_elements(By.CSS_SELECTOR, "[data-annotation]")]
