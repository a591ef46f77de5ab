"""The console in a real browser, beside a bot that answers: login, live figures, every page in each theme and width."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from activity import Ending, Fault, FaultKind, TurnEnded
from bot import Parley, create_bot
from config import Settings
from decision import ACKNOWLEDGED, EXPLICIT, NOT_OURS, NOTHING, TOLD_OFF, Decision, LoggedDecision, Reason
from health import Health
from place import SeenPlace
from place_settings.fields import Level
from state.spending import Payer, Spent
from tests.support.accessibility import accessibility_faults
from tests.support.browser import arrive, console_errors, look_as, needs_browser, open_browser, when
from tests.support.clock import NOON, FakeClock
from tests.support.scene import Scene
from web.site import Site

PASSWORD = "correct horse"
FOLLOWED = Decision(True, Reason.FOLLOWUP, tier=2, score=0.9)
SILENCES = (NOTHING, NOT_OURS, ACKNOWLEDGED, TOLD_OFF)
PAGES = ("", "/people", "/errors", "/storage")
PERSON = 157_418_795_159_047_373  # an id as long as Discord's
# Figures of tables that are one word, and stand in several lines.
BROKEN = r"""
return [...document.querySelectorAll("td.figure")].filter((cell) => {
  const words = document.createRange();
  words.selectNodeContents(cell);
  return !/\s/.test(cell.innerText) && words.getClientRects().length > 1;
}).map((cell) => cell.innerText);
"""
ANSWERS = "[...document.querySelectorAll('#today dt')].find((name) => name.textContent === 'Answers')"


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[webdriver.Chrome]:
    with open_browser(tmp_path / "browser") as opened:
        yield opened


class OneServer:
    """As the bot sees it; its names are hostile."""

    def guilds(self) -> dict[int, str]:
        return {7: "Tea & <b>cake</b>"}

    def places(self, guild_id: int) -> list[SeenPlace]:
        return [SeenPlace(5, Level.CHANNEL, "text", "<script>alert(1)</script>")] if guild_id == 7 else []

    def latencies(self) -> dict[int, float]:
        return {}

    def lacks(self, guild_id: int, place_id: int) -> list[str]:  # noqa: ARG002
        return []


def log_in(browser: webdriver.Chrome, password: str) -> None:
    """Sends the form, and waits for the page behind it."""
    arrive(browser, lambda: browser.find_element(By.ID, "password").send_keys(password, Keys.ENTER))


@needs_browser
async def test_whoever_runs_the_bot_logs_in_and_sees_an_answer_arrive(scene: Scene, browser: webdriver.Chrome) -> None:
    health = Health()
    health.gateway_up()
    site = Site(health, password=PASSWORD)
    async with site.served(0, "127.0.0.1") as address:
        site.show(scene.bot.shown)
        console = f"{address}/console"

        def enter() -> None:
            browser.get(console)
            log_in(browser, PASSWORD)
            when(browser, f"{ANSWERS}?.nextElementSibling.textContent === '0'")

        await asyncio.to_thread(enter)
        await scene.ask("Ada", "who are you?")
        await asyncio.to_thread(when, browser, f"{ANSWERS}?.nextElementSibling.textContent === '1'")
        assert not console_errors(browser)
        await asyncio.to_thread(_fail_to_log_in, browser)


@needs_browser
async def test_a_week_of_figures_is_read_in_each_theme_and_width(
    browser: webdriver.Chrome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock(NOON - timedelta(days=6))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    bot = create_bot(Settings(model="openai:gpt-5-mini", state_dir=tmp_path), clock=clock)
    a_week(bot, clock)
    site = Site(bot.health, is_local=True)
    site.show(replace(bot.shown, servers=OneServer()))
    bot.health.gateway_up()
    async with site.served(0, "127.0.0.1") as address:
        await asyncio.to_thread(_look_at_all, browser, f"{address}/console")
    await bot.close()


def a_week(bot: Parley, clock: FakeClock) -> None:
    """Figures of a bot that some use, and others talk beside."""
    chance, told = Random(20), bot.shown.activity
    for hour in range(6 * 24 + 1):
        for _ in range(chance.randrange(2, 9) if 7 < clock().hour < 23 else 1):
            seconds = chance.lognormvariate(0.7, 0.6)
            answer = TurnEnded(7, 5, (1,), Ending.ANSWERED, "answered", clock(), seconds * 2, seconds)
            told.turn_ended(answer)
            bot.parts.limits.spend(Spent("openai:gpt-5-mini", 4_000, 300), clock(), Payer(7, frozenset({PERSON}), 5))
            told.decided(LoggedDecision(1, 5, 9, EXPLICIT if chance.random() < 0.4 else FOLLOWED, 7))
            for silence in chance.choices(SILENCES, [40, 9, 3, 1], k=9):
                told.decided(LoggedDecision(1, 5, 9, silence, 7))
        if hour % 11 == 0:
            told.turn_ended(replace(answer, ending=Ending.DECLINED))
        if hour % 47 == 0:
            told.turn_ended(replace(answer, ending=Ending.FAILED))
            says = "The model did not answer in time." if hour else "<script>alert(1)</script> & <b>bold</b>"
            told.failed(Fault(FaultKind.MODEL, "timeout", says, clock(), 7, 5))
        clock.advance(3600)


def _look_at_all(browser: webdriver.Chrome, console: str) -> None:
    for theme in ("light", "dark"):
        for width in (1280, 390):
            look_as(browser, theme, width)
            for page in PAGES:
                browser.get(console + page)
                assert accessibility_faults(browser) == [], (page, theme, width)
                assert browser.execute_script(BROKEN) == [], (page, theme, width)
                assert not browser.execute_script("return document.querySelector('main script, main b')")
                if page == "" and (theme, width) == ("light", 1280) and (picture := os.environ.get("PICTURE")):
                    browser.save_screenshot(picture)
    assert not console_errors(browser)


def _fail_to_log_in(browser: webdriver.Chrome) -> None:
    arrive(browser, browser.find_element(By.XPATH, "//button[text()='Log out']").click)
    for _ in range(5):
        log_in(browser, "wrong")
        assert browser.find_element(By.ID, "problem").text.startswith("That is not the password")
    log_in(browser, PASSWORD)
    assert browser.find_element(By.ID, "problem").text.startswith("There were too many wrong passwords")
    assert accessibility_faults(browser) == []
