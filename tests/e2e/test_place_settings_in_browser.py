"""The cards of settings on the chat page, in a real browser: light, dark and as narrow as a phone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from tests.support.accessibility import accessibility_faults
from tests.support.browser import LAST, console_errors, look_as, needs_browser, open_browser, when, write
from tests.support.scene import Scene

CARD = "#messages .message:last-child .components"


@needs_browser
@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 360)])
async def test_a_channel_is_set_up_by_its_card(scene: Scene, tmp_path: Path, theme: str, width: int) -> None:
    scene.pg.add_role("Helpers", members=[scene.pg.person("Ben")])
    await asyncio.to_thread(_set_up, scene.pg.url, tmp_path / "profile", theme, width)
    await scene.ask("Chloe", "who are you?")
    assert "A pirate." in scene.told()
    assert not (await scene.decision(scene.mention("Ben", "hello?"))).respond


def _set_up(address: str, profile: Path, theme: str, width: int) -> None:
    with open_browser(profile) as browser:
        look_as(browser, theme, width)
        browser.get(address)
        when(browser, "document.querySelector('#bot-state.online')")
        browser.find_element(By.CSS_SELECTOR, ".speaker:has([aria-label='Ada'])").click()
        write(browser, "/parley settings")
        browser.find_element(By.XPATH, "//button[.='Run']").click()
        when(browser, f"{LAST}?.textContent.includes('Settings of this channel, #general')")
        assert not accessibility_faults(browser)
        _change(browser, "persona")
        when(browser, "document.querySelector('#form').open && document.activeElement.matches('#form textarea')")
        browser.switch_to.active_element.send_keys("A pirate.")
        assert not accessibility_faults(browser)
        browser.find_element(By.CSS_SELECTOR, "#form .primary").click()
        when(browser, f"{LAST}.textContent.includes('Persona, for this channel: “A pirate.”')")
        _change(browser, "blocked_roles")
        when(browser, f"{LAST}.textContent.includes('Blocked roles for this channel')")
        browser.find_element(By.CSS_SELECTOR, f"{CARD} summary").click()
        browser.find_element(By.XPATH, "//label[contains(., '@Helpers')]").click()
        assert not accessibility_faults(browser)
        browser.find_element(By.CSS_SELECTOR, f"{CARD} details button").send_keys(Keys.ENTER)
        when(browser, f"{LAST}.textContent.includes('Blocked roles, for this channel: @Helpers')")
        assert not console_errors(browser)


def _change(browser: webdriver.Chrome, name: str) -> None:
    Select(browser.find_element(By.CSS_SELECTOR, f"{CARD} select")).select_by_value(name)
