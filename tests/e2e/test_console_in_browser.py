"""The console in a real browser, beside a bot that answers: login, live figures, every page in each theme and width."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from health import Health
from tests.support.accessibility import accessibility_faults
from tests.support.browser import console_errors, look_as, needs_browser, open_browser, when
from tests.support.scene import Scene, running
from web.site import Site

PASSWORD = "correct horse"
PAGES = ("", "/errors", "/storage")
ANSWERS = "[...document.querySelectorAll('#figures dt')].find((name) => name.textContent === 'Answers')"


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[webdriver.Chrome]:
    with open_browser(tmp_path / "browser") as opened:
        yield opened


def log_in(browser: webdriver.Chrome, password: str) -> None:
    browser.find_element(By.ID, "password").send_keys(password, Keys.ENTER)


@needs_browser
async def test_whoever_runs_the_bot_logs_in_and_sees_an_answer_arrive(scene: Scene, browser: webdriver.Chrome) -> None:
    health = Health()
    health.gateway_up()
    site = Site(health, password=PASSWORD)
    async with running(scene), site.served(0, "127.0.0.1") as address:
        site.show(scene.bot.shown)
        scene.pg.add_channel("<script>alert(1)</script>", "")
        console = f"{address}/console"

        def enter() -> None:
            browser.get(console)
            log_in(browser, PASSWORD)
            when(browser, f"{ANSWERS}?.nextElementSibling.textContent === '0'")

        await asyncio.to_thread(enter)
        await scene.ask("Ada", "who are you?")
        await asyncio.to_thread(when, browser, f"{ANSWERS}?.nextElementSibling.textContent === '1'")
        await asyncio.to_thread(_look_at_all, browser, console)
        await asyncio.to_thread(_fail_to_log_in, browser)


def _look_at_all(browser: webdriver.Chrome, console: str) -> None:
    for theme in ("light", "dark"):
        for width in (1280, 390):
            look_as(browser, theme, width)
            for page in PAGES:
                browser.get(console + page)
                assert accessibility_faults(browser) == [], (page, theme, width)
    assert not console_errors(browser)


def _fail_to_log_in(browser: webdriver.Chrome) -> None:
    browser.find_element(By.XPATH, "//button[text()='Log out']").click()
    for _ in range(5):
        log_in(browser, "wrong")
        when(browser, "document.querySelector('#problem')?.textContent.startsWith('That is not the password')")
        browser.execute_script("document.querySelector('#problem').remove()")
    log_in(browser, PASSWORD)
    when(browser, "document.querySelector('#problem')?.textContent.startsWith('There were too many wrong')")
    assert accessibility_faults(browser) == []
