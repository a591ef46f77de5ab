"""The page in threads, forums and direct messages, with files and other bots, in a real browser."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from playground.model import FORUM
from playground.server import Playground
from tests.support.accessibility import accessibility_faults
from tests.support.browser import LAST, console_errors, needs_browser, open_browser, when, write

# Puts a file of this name on the page, as a person who drops or pastes it.
DROP = """
const [kind, name] = arguments, files = new DataTransfer();
files.items.add(new File(["print()"], name, {type: "text/plain"}));
const given = kind === "drop" ? {dataTransfer: files} : {clipboardData: files};
const event = kind === "drop" ? new DragEvent("drop", {...given, bubbles: true}) : new ClipboardEvent("paste", given);
document.dispatchEvent(event);
"""


@pytest.fixture
def forum(pg: Playground) -> int:
    return pg.add_channel("questions", type=FORUM, tags=["code", "cooking"])


@needs_browser
@pytest.mark.usefixtures("bot", "forum")
async def test_every_place_is_used_by_keyboard_and_mouse(pg: Playground, tmp_path: Path) -> None:
    await asyncio.to_thread(_use, pg.url, tmp_path)
    thread, post = pg.channel("Ramen tonight"), pg.channel("How to sort?")
    assert [one["filename"] for one in pg.messages(thread)[1].attachments] == ["chosen.py", "dropped.py", "pasted.py"]
    assert pg.world.thread(pg.world.channel(thread)).archived
    assert pg.messages(post)[0].content == f"A list of people, <@{pg.bot_id}>."
    assert len(pg.world.thread(pg.world.channel(post)).tags) == 1
    assert [one.content for one in pg.messages(pg.dm(pg.person("Ben")))] == ["psst"]
    assert [one.author.name for one in pg.messages(pg.channel("general"))] == ["Ada", "CI"]


def _use(address: str, profile: Path) -> None:
    with open_browser(profile) as browser:
        browser.get(address)
        when(browser, "document.querySelector('#bot-state.online')")
        for use in (
            _begin_a_thread,
            _send_files,
            _leave_a_draft,
            _archive,
            _post_in_the_forum,
            _write_directly,
            _speak_as_another_bot,
        ):
            use(browser, profile)
            assert (use.__name__, accessibility_faults(browser)) == (use.__name__, [])
        assert not console_errors(browser)


def _begin_a_thread(browser: webdriver.Chrome, _: Path) -> None:
    write(browser, "ramen?")
    when(browser, f"{LAST}?.textContent.includes('ramen?')")
    browser.execute_script(f"{LAST}.focus()")
    browser.find_element(By.CSS_SELECTOR, "[data-action=thread]").click()
    _fill_in(browser, "Ramen tonight")
    when(browser, "document.querySelector('#channel-name').textContent === 'Ramen tonight'")
    when(browser, f"{LAST}?.querySelector('.content').textContent === 'ramen?'")


def _fill_in(browser: webdriver.Chrome, name: str, *more: str) -> None:
    when(browser, "document.querySelector('#naming').open && document.activeElement.name === 'name'")
    browser.switch_to.active_element.send_keys(Keys.CONTROL, "a")
    browser.switch_to.active_element.send_keys(name, *more, Keys.ENTER)
    when(browser, "!document.querySelector('#naming').open")


def _send_files(browser: webdriver.Chrome, profile: Path) -> None:
    chosen = profile / "chosen.py"
    chosen.write_text("print()")
    browser.find_element(By.ID, "files").send_keys(str(chosen))
    for kind, name in (("drop", "dropped.py"), ("paste", "pasted.py"), ("drop", "unwanted.py")):
        browser.execute_script(DROP, kind, name)
    when(browser, "document.querySelectorAll('#uploads .upload').length === 4")
    browser.find_element(By.CSS_SELECTOR, "[aria-label='Remove unwanted.py']").click()
    write(browser, "")
    when(browser, f"{LAST}.querySelectorAll('.file a').length === 3 && document.querySelector('#uploads').hidden")


def _leave_a_draft(browser: webdriver.Chrome, _: Path) -> None:
    """What is written in one channel and not sent is not in the next, and there again."""
    box = browser.find_element(By.ID, "composer")
    box.send_keys("with egg, or")
    _choose(browser, "Go to #general")
    when(browser, "document.querySelector('#channel-name').textContent === 'general'")
    when(browser, "document.querySelector('#composer').value === ''")
    browser.find_element(By.CSS_SELECTOR, ".thread-link").click()
    when(browser, "document.querySelector('#composer').value === 'with egg, or'")
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys(Keys.DELETE)


def _archive(browser: webdriver.Chrome, _: Path) -> None:
    _choose(browser, "Archive")
    when(browser, "document.querySelector('#channel-topic').textContent === 'in #general, archived'")
    _choose(browser, "Go to #general")
    when(browser, "document.querySelector('#channel-name').textContent === 'general'")
    when(browser, "!document.querySelector('.channel.thread')")
    browser.find_element(By.CSS_SELECTOR, ".thread-link").click()
    when(browser, "document.querySelector('.channel.thread')")


def _choose(browser: webdriver.Chrome, label: str) -> None:
    browser.find_element(By.ID, "threads").click()
    when(browser, "document.activeElement.matches('#popover [role=menuitem]')")
    browser.find_element(By.CSS_SELECTOR, f"#popover [aria-label='{label}']").click()


def _post_in_the_forum(browser: webdriver.Chrome, _: Path) -> None:
    browser.find_element(By.XPATH, "//button[contains(., 'questions')]").click()
    when(browser, "document.querySelector('#compose-row').hidden")
    _choose(browser, "New post")
    _fill_in(browser, "How to sort?", Keys.TAB, "A list of people, @Parley.", Keys.TAB, Keys.SPACE)
    when(browser, "document.querySelector('#channel-topic').textContent === 'in #questions, code'")
    _choose(browser, "Go to #questions")
    when(browser, "document.querySelector('.posts .post')?.textContent === 'How to sort?codeby Ada'")


def _write_directly(browser: webdriver.Chrome, _: Path) -> None:
    browser.find_element(By.ID, "direct").click()
    when(browser, "document.querySelector('#channel-topic').textContent === 'Direct messages of Ada'")
    browser.find_element(By.CSS_SELECTOR, ".speaker:has([aria-label='Ben'])").click()
    when(browser, "document.querySelector('#channel-topic').textContent === 'Direct messages of Ben'")
    write(browser, "psst")
    when(browser, f"{LAST}?.textContent.includes('psst')")


def _speak_as_another_bot(browser: webdriver.Chrome, _: Path) -> None:
    browser.find_element(By.CSS_SELECTOR, "#channels li:first-child button").click()
    when(browser, "document.querySelector('#channel-name').textContent === 'general'")
    browser.find_element(By.XPATH, "//button[.='Add another bot']").click()
    _fill_in(browser, "CI")
    when(browser, "document.querySelector(\".speaker [aria-label='CI']\")")
    browser.find_element(By.CSS_SELECTOR, ".speaker:has([aria-label='CI'])").click()
    write(browser, "Build 77 failed")
    when(browser, f"{LAST}.querySelector('.app-tag') && {LAST}.textContent.includes('Build 77')")


@needs_browser
@pytest.mark.usefixtures("bot")
async def test_a_thread_fits_a_phone_and_is_left_when_it_is_deleted(pg: Playground, tmp_path: Path) -> None:
    name = "A thread with quite a long name that does not fit the width of a phone"
    pg.open_thread(pg.channel("general"), pg.person("Ada"), name)

    def open_and_delete() -> Any:
        with open_browser(tmp_path) as browser:
            size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            browser.get(pg.url)
            when(browser, "document.querySelector('#bot-state.online')")
            browser.find_element(By.CSS_SELECTOR, ".thread-link").click()
            when(browser, f"document.querySelector('#channel-name').textContent === '{name}'")
            width = browser.execute_script("return document.documentElement.scrollWidth")
            bottom = browser.execute_script("return document.querySelector('#people').getBoundingClientRect().right")
            for answer in ("Cancel", "Delete"):
                _choose(browser, "Delete")
                when(browser, "document.querySelector('#deletion').open")
                assert browser.find_element(By.ID, "deletion-title").text == "Delete this thread?"
                browser.find_element(By.XPATH, f"//*[@id='deletion']//button[.='{answer}']").click()
                when(browser, "!document.querySelector('#deletion').open")
            when(browser, "document.querySelector('#channel-name').textContent === 'general'")
            assert not console_errors(browser)
            return width, bottom <= 390

    assert await asyncio.to_thread(open_and_delete) == (390, True)


@needs_browser
@pytest.mark.usefixtures("bot")
async def test_another_speaker_sees_no_more_than_they_may(pg: Playground, tmp_path: Path) -> None:
    general, ada = pg.channel("general"), pg.person("Ada")
    pg.open_thread(general, ada, "Everybody")
    pg.open_thread(general, ada, "Just me", private=True)
    pg.add_bot("CI")
    await asyncio.to_thread(_change_speakers, pg.url, tmp_path)


def _change_speakers(address: str, profile: Path) -> None:
    with open_browser(profile) as browser:
        browser.get(address)
        for thread, shown in (("Everybody", "Everybody"), ("Just me", "general")):
            when(
                browser,
                f"[...document.querySelectorAll('.channel-label')].some((one) => one.textContent === '{thread}')",
            )
            browser.find_element(By.XPATH, f"//ul[@id='channels']//button[contains(., '{thread}')]").click()
            for speaker in ("Ben", "CI", "Ada"):
                browser.find_element(By.CSS_SELECTOR, f".speaker:has([aria-label='{speaker}'])").click()
                when(browser, f"document.querySelector('#channel-name').textContent === '{shown}'")
        browser.find_element(By.ID, "direct").click()
        when(browser, "document.querySelector('#channel-topic').textContent === 'Direct messages of Ada'")
        browser.switch_to.active_element.send_keys(Keys.ALT, "4")  # where CI is elsewhere
        browser.switch_to.active_element.send_keys(Keys.ALT, "2")
        when(browser, "document.querySelector('#channel-topic').textContent === 'Direct messages of Ben'")
        assert not console_errors(browser)
