"""Every page of the console in a real browser, for everybody: in both themes, and as narrow as a phone."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from health import Health
from tests.support.accessibility import accessibility_faults
from tests.support.browser import arrive, console_errors, look_as, needs_browser, open_browser
from tests.support.scene import Scene
from tests.support.stub_model import Reply
from web.console.page import PAGES
from web.site import Site

PASSWORD = "correct horse"
# At once: one by one they would be asked of elements that a live page has meanwhile drawn anew.
LINKS = """return [...document.querySelectorAll("a[href*='/console']")].map((link) => link.href)"""
ID = re.compile(r"\d{15,}")
BELOW = {"/console/places/ID", "/console/places/ID/ID"}  # pages that only others lead to


@pytest.fixture
async def site(scene: Scene) -> Site:
    """Of a bot that answered, failed, kept silent, and is in a channel with a name like markup."""
    scene.pg.add_channel("<script>alert(1)</script>")
    await scene.ask("Ada", "which cats?")
    await scene.decision(scene.say("Ben", "Ada, shall we have lunch at noon?"))
    scene.stub.replies.extend([Reply(status=500)] * 3)
    await scene.outcome(scene.mention("Chloe", "and dogs?", channel="help"))
    scene.stub.replies.clear()
    site = Site(Health(), password=PASSWORD, shows_content=True)
    site.shown = scene.bot.shown
    return site


@needs_browser
@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 360)])
async def test_every_page_can_be_read_and_used(site: Site, tmp_path: Path, theme: str, width: int) -> None:
    with open_browser(tmp_path) as browser:
        look_as(browser, theme, width)
        async with site.served(0, "127.0.0.1") as address:
            seen = await asyncio.to_thread(_look, browser, address)
    assert seen >= {page for page, _ in PAGES} | BELOW


def _look(browser: webdriver.Chrome, address: str) -> set[str]:
    """Logs in, and goes wherever links lead, and to what everybody sees, to one page of each kind: these kinds."""
    browser.get(f"{address}/console")
    assert accessibility_faults(browser) == []
    _log_in(browser, "wrong", "document.querySelector('[role=alert]')")
    assert accessibility_faults(browser) == []
    browser.get_log("browser")  # type: ignore[no-untyped-call]  # the refusal is logged there
    _log_in(browser, PASSWORD, "document.querySelector('nav')")
    waiting, seen = deque([f"{address}/console", f"{address}/privacy"]), set[str]()
    while waiting:
        page = waiting.popleft()
        kind = ID.sub("ID", page.removeprefix(address))
        if kind in seen:
            continue
        seen.add(kind)
        browser.get(page)
        browser.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
        assert (kind, accessibility_faults(browser), console_errors(browser)) == (kind, [], [])
        waiting.extend(link.partition("#")[0] for link in browser.execute_script(LINKS))
    return seen


def _log_in(browser: webdriver.Chrome, password: str, shown: str) -> None:
    arrive(browser, lambda: browser.find_element(By.NAME, "password").send_keys(password, Keys.ENTER), shown)
