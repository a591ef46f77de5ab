"""The chat page in a real browser, served by the real program, with the demo model in it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.support.process import program
from tests.support.scene import PATIENCE_SECONDS

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-quic --disable-dev-shm-usage --window-size=1280,900"
)
# Tells once the condition holds: asked now and each time the page has changed.
WHEN = """
const done = arguments[arguments.length - 1];
const holds = () => %s;
if (holds()) { done(true); return; }
const watch = new MutationObserver(() => { if (holds()) { watch.disconnect(); done(true); } });
watch.observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
"""
LAST = "[...document.querySelectorAll('#messages .message')].at(-1)"


@pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver")
async def test_a_newcomer_talks_with_the_bot_on_the_page(tmp_path: Path) -> None:
    async with program(tmp_path, PLAYGROUND_PORT="0") as running:
        address = (await running.printed()).split()[1]
        await asyncio.to_thread(_talk, address, tmp_path / "browser")
        running.terminate()
        assert await running.ended() == 0


def _talk(address: str, profile: Path) -> None:
    with _browser(profile) as browser:
        browser.get(address)
        _when(browser, "document.querySelector('#members .online')?.textContent.includes('P')")
        browser.find_element(By.CSS_SELECTOR, "#members [aria-label='Mention Parley']").click()
        _type(browser, "my cat is called Tim")
        _when(browser, f"{LAST}?.textContent.includes('you said “my cat is called Tim”')")
        assert _chips(browser) == ["answered: you mentioned me or replied to me"]

        _type(browser, "what did I say before?")
        _when(browser, f"{LAST}.textContent.includes('Before that, Ada said “my cat is called Tim”')")

        browser.find_element(By.CSS_SELECTOR, "[data-person-id]:nth-of-type(2)").click()
        _type(browser, "@Chloe shall we have lunch at noon?")
        _when(browser, f"{LAST}.querySelector('[data-annotation=names_others]')")
        assert _chips(browser)[-1] == "silent: it was addressed to somebody else"
        assert len(browser.find_elements(By.CSS_SELECTOR, "#messages .message")) == 5
        assert not [entry for entry in _console(browser) if entry["level"] == "SEVERE"]


def _type(browser: webdriver.Chrome, text: str) -> None:
    """Writes into the message box as a person does, and sends it."""
    browser.find_element(By.ID, "composer").send_keys(text, Keys.ENTER)


def _when(browser: webdriver.Chrome, condition: str) -> None:
    assert browser.execute_async_script(WHEN % condition)


def _console(browser: webdriver.Chrome) -> list[dict[str, Any]]:
    return list(browser.get_log("browser"))  # type: ignore[no-untyped-call]


def _chips(browser: webdriver.Chrome) -> list[str]:
    return [chip.text for chip in browser.find_elements(By.CSS_SELECTOR, "[data-annotation]")]


@contextmanager
def _browser(profile: Path) -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for flag in (*FLAGS.split(), f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(service=Service(DRIVER), options=options)
    browser.set_script_timeout(PATIENCE_SECONDS)
    try:
        yield browser
    finally:
        browser.quit()
