"""The chat page in a real browser, for everybody: contrast in both themes, roles, and a phone's width."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import discord
import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from playground.server import Playground
from tests.playground.support import Bot
from tests.support.accessibility import accessibility_faults
from tests.support.browser import LAST, console_errors, look_as, needs_browser, open_browser, when, write


@pytest.fixture
async def talk(pg: Playground, bot: Bot) -> None:
    """Every kind of row: plain, mentioned, decided on, answered, and a command for a private one."""
    general = pg.channel("general")
    asked = pg.post(general, pg.person("Ben"), "hello <@1> `code` https://example.com ||hidden||")
    pg.annotate(asked.id, respond=True, reason="explicit_trigger", text="answered: you mentioned me")
    told = pg.post(
        general, pg.person("Chloe"), f"<@{pg.person('Ada')}>, <#{general}> https://example.com", reply_to=asked.id
    )
    why = f"silent: you were talking with <@{pg.person('Ada')}>, I think"
    pg.annotate(told.id, respond=False, reason="no_trigger", text=why)
    embed = discord.Embed(title="Title", description="[link](https://example.com)").set_footer(text="footer")
    await bot.text_channel(general).send(f"-# small\n> quoted\n<@{pg.person('Ada')}>", embed=embed, view=Buttons())

    @bot.tree.command(description="Show me round")
    async def tour(interaction: discord.Interaction) -> None:
        await interaction.response.send_message("Round **here**.\n-# small https://example.com", ephemeral=True)

    await bot.tree.sync()


class Buttons(discord.ui.View):
    def __init__(self) -> None:
        super().__init__(timeout=None)
        styles = discord.ButtonStyle
        for style in (styles.primary, styles.secondary, styles.success, styles.danger):
            self.add_item(discord.ui.Button(label=style.name, style=style, custom_id=style.name))


@needs_browser
@pytest.mark.usefixtures("talk")
@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 360)])
async def test_everything_can_be_read_and_used(pg: Playground, tmp_path: Path, theme: str, width: int) -> None:
    await asyncio.to_thread(_read, pg.url, tmp_path, theme, width)


def _read(address: str, profile: Path, theme: str, width: int) -> None:
    with open_browser(profile) as browser:
        look_as(browser, theme, width)
        browser.get(address)
        when(browser, f"document.querySelector('#bot-state.online') && {LAST}?.textContent.includes('small')")
        drawers = () if width > 500 else (_channels,)
        for look in (_talk, _marked_rows, _suggestions, _menu, *drawers, _removal):
            look(browser)
            assert (look.__name__, accessibility_faults(browser)) == (look.__name__, [])
        assert not console_errors(browser)


def _talk(browser: webdriver.Chrome) -> None:
    *_, chip = browser.find_elements(By.CSS_SELECTOR, "[data-annotation]")
    assert chip.text == "silent: you were talking with @Ada, I think"
    write(browser, "/tour")
    when(browser, f"{LAST}.matches('.ephemeral')")


def _marked_rows(browser: webdriver.Chrome) -> None:
    """Rows that are replied to and jumped at, which they are one after the other."""
    browser.execute_script(
        "const [one, other] = document.querySelectorAll('.message');"
        "one.classList.add('flash'); other.focus(); other.querySelector('[data-action=reply]').click()"
    )
    when(browser, "document.querySelector('.message.replying') && document.querySelector('.message.flash')")


def _suggestions(browser: webdriver.Chrome) -> None:
    browser.find_element(By.ID, "composer").send_keys("/")
    when(browser, "document.querySelector('#picker [aria-selected=true]')")


def _menu(browser: webdriver.Chrome) -> None:
    browser.find_element(By.ID, "composer").send_keys(Keys.BACKSPACE)
    browser.find_element(By.ID, "try").click()
    when(browser, "document.activeElement.matches('#popover [role=menuitem]')")


def _channels(browser: webdriver.Chrome) -> None:
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    browser.find_element(By.ID, "menu").click()
    when(browser, "document.activeElement.matches('#channels [aria-current=page]')")


def _removal(browser: webdriver.Chrome) -> None:
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    if (people := browser.find_element(By.ID, "people")).is_displayed():
        people.click()
    browser.find_element(By.CSS_SELECTOR, ".membership").click()
    when(browser, "document.querySelector('#removal').open")


@needs_browser
async def test_the_welcome_is_read_from_its_top(pg: Playground, tmp_path: Path) -> None:
    await asyncio.to_thread(_read_the_welcome, pg.url, tmp_path)


def _read_the_welcome(address: str, profile: Path) -> None:
    with open_browser(profile) as browser:
        look_as(browser, "light", 360)
        browser.get(address)
        when(browser, "document.querySelector('.welcome h2')")
        scroller = "document.querySelector('#scroller')"
        assert browser.execute_script(f"return {scroller}.scrollHeight > {scroller}.clientHeight")
        when(browser, f"{scroller}.scrollTop === 0")
        write(browser, "hello")
        when(browser, f"{LAST}?.textContent.includes('hello') && {scroller}.scrollTop > 0")
        browser.find_element(By.CSS_SELECTOR, ".welcome li:last-child button").click()
        when(browser, "document.querySelector('#messages').ariaLabel === 'Messages in help'")
        when(browser, "document.querySelector('#composer').value === '/offers on'")


@needs_browser
@pytest.mark.usefixtures("bot")
async def test_on_a_phone_channels_and_members_are_drawers(pg: Playground, tmp_path: Path) -> None:
    await asyncio.to_thread(_use_drawers, pg.url, tmp_path)


def _use_drawers(address: str, profile: Path) -> None:
    with open_browser(profile) as browser:
        look_as(browser, "light", 360)
        browser.get(address)
        when(browser, "document.querySelector('#bot-state.online')")
        for button, drawer, label, beside in (("menu", "sidebar", "random", 340), ("people", "members", "Chloe", 20)):
            choice = f"//*[@id='{drawer}']//button[contains(., '{label}')]"
            shown = browser.find_element(By.XPATH, choice).is_displayed
            assert not shown()
            _open(browser, button, drawer)
            assert shown()
            _stays_within(browser, drawer)
            browser.switch_to.active_element.send_keys(Keys.ESCAPE)
            _is_closed(browser, button, shown)
            _open(browser, button, drawer)
            _click_at(browser, beside)
            _is_closed(browser, button, shown)
            _open(browser, button, drawer)
            browser.find_element(By.CSS_SELECTOR, f"#{drawer} .close").click()
            _is_closed(browser, button, shown)
            _open(browser, button, drawer)
            browser.find_element(By.XPATH, choice).click()
            when(browser, "document.querySelector('#channel-name').textContent === 'random'")
            assert browser.switch_to.active_element == browser.find_element(By.ID, "composer")
            assert browser.find_element(By.ID, button).get_dom_attribute("aria-expanded") == "false"
        assert browser.find_element(By.ID, "composer").get_property("value") == "@Chloe "
        assert not console_errors(browser)


def _open(browser: webdriver.Chrome, button: str, drawer: str) -> None:
    browser.find_element(By.ID, button).send_keys(Keys.ENTER)
    when(browser, f"document.querySelector('#{drawer}').contains(document.activeElement)")


def _is_closed(browser: webdriver.Chrome, button: str, shown: Callable[[], bool]) -> None:
    when(browser, f"document.activeElement === document.querySelector('#{button}')")
    assert not shown()


def _click_at(browser: webdriver.Chrome, x: int) -> None:
    """Clicks beside what lies over the page, wherever that is."""
    chain = ActionChains(browser)
    chain.w3c_actions.pointer_action.move_to_location(x, 400).click()  # type: ignore[no-untyped-call]
    chain.perform()


def _stays_within(browser: webdriver.Chrome, drawer: str) -> None:
    """The tab key does not lead behind the drawer, all the way round."""
    for _ in browser.find_elements(By.CSS_SELECTOR, f"#{drawer} button"):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        inside = f"document.querySelector('#{drawer}').contains(document.activeElement)"
        assert browser.execute_script(f"return document.activeElement === document.body || {inside}")


@needs_browser
@pytest.mark.usefixtures("bot")
async def test_the_theme_is_chosen_and_remembered(pg: Playground, tmp_path: Path) -> None:
    await asyncio.to_thread(_choose_the_theme, pg.url, tmp_path)


def _choose_the_theme(address: str, profile: Path) -> None:
    with open_browser(profile) as browser:
        look_as(browser, "light", 1280)
        for system, press, shown in (
            ("light", False, "light"),
            ("light", True, "dark"),  # another than the system's: it stays
            ("dark", False, "dark"),
            ("light", False, "dark"),
            ("light", True, "light"),  # the system's: it is followed again
            ("dark", False, "dark"),
        ):
            look_as(browser, system, 1280)
            browser.get(address)
            if press:
                browser.find_element(By.ID, "theme").click()
            ground = browser.execute_script("return getComputedStyle(document.body.parentElement).backgroundColor")
            assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(49, 51, 56)"}[shown], (system, press)
            pressed = browser.find_element(By.ID, "theme").get_dom_attribute("aria-pressed")
            assert pressed == str(shown == "dark").lower()
        assert not console_errors(browser)
