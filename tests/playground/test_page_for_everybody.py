"""The chat page in a real browser, for everybody: contrast in both themes, roles, and a phone's width."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import discord
import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from playground.server import Playground
from tests.playground.support import Bot
from tests.support.browser import LAST, console_errors, look_as, needs_browser, open_browser, when, write

# Texts that stand out from the ground by less than WCAG's 4.5 to 1 (axe's rule color-contrast): what, and by how much.
# Colours are read from a canvas, which knows every notation; what is decoration, covered or switched off is left out.
FAINT = """
const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
const rgba = (color) => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = color;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
};
const over = ([r, g, b, a], below) => [r, g, b].map((value, at) => value * a + below[at] * (1 - a));
const ground = (node) => {
  const color = rgba(getComputedStyle(node).backgroundColor);
  if (color[3] === 1) return color.slice(0, 3);
  return over(color, node.parentElement ? ground(node.parentElement) : [255, 255, 255]);
};
const luminance = (color) => {
  const [r, g, b] = color.map((v) => (v /= 255, v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (one, other) => {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
};
const isRead = (node) =>
  node.checkVisibility({visibilityProperty: true, opacityProperty: true}) &&
  !node.closest("[aria-hidden='true'], :disabled, .spoiler");
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const found = new Set();
while (texts.nextNode()) {
  const node = texts.currentNode.parentElement;
  const words = texts.currentNode.data.trim();
  if (!words || !isRead(node)) continue;
  const below = ground(node);
  const ratio = contrast(over(rgba(getComputedStyle(node).color), below), below);
  if (ratio < 4.5) found.add(`${ratio.toFixed(2)} ${words.slice(0, 40)}`);
}
return [...found];
"""
# By axe's rules list and aria-allowed-attr, and that what has a button's or a box's role has a name.
ROLES = """
const names = (node) => node.ariaLabel || node.title || node.textContent.trim() || node.labels?.length;
return [
  ...document.querySelectorAll("ol > :not(li), ul > :not(li), :is(ol, ul) > li[role]"),
  ...document.querySelectorAll("textarea[aria-expanded]"),
  ...[...document.querySelectorAll("button, input, textarea, select")].filter((node) => !names(node)),
].map((node) => node.outerHTML.slice(0, 100));
"""


@pytest.fixture
async def talk(pg: Playground, bot: Bot) -> None:
    """Every kind of row: plain, mentioned, decided on, answered, and a command for a private one."""
    general = pg.channel("general")
    asked = pg.post(general, pg.person("Ben"), "hello <@1> `code` https://example.com ||hidden||")
    pg.annotate(asked.id, respond=True, reason="explicit_trigger", text="answered: you mentioned me")
    told = pg.post(
        general, pg.person("Chloe"), f"<@{pg.person('Ada')}>, <#{general}> https://example.com", reply_to=asked.id
    )
    pg.annotate(told.id, respond=False, reason="addressed_to_other", text="silent: it was for somebody else")
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
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_everything_can_be_read_in_either_theme(pg: Playground, tmp_path: Path, theme: str) -> None:
    grounds = await asyncio.to_thread(_read, pg.url, tmp_path, theme)
    assert (grounds == "rgb(255, 255, 255)") is (theme == "light")


def _read(address: str, profile: Path, theme: str) -> str:
    with open_browser(profile) as browser:
        media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        browser.get(address)
        when(browser, f"document.querySelector('#bot-state.online') && {LAST}?.textContent.includes('small')")
        for look in (_talk, _marked_rows, _suggestions, _menu, _removal):
            look(browser)
            faint, wrong = browser.execute_script(FAINT), browser.execute_script(ROLES)
            assert (look.__name__, faint, wrong) == (look.__name__, [], [])
        assert not console_errors(browser)
        return str(browser.execute_script("return getComputedStyle(document.documentElement).backgroundColor"))


def _talk(browser: webdriver.Chrome) -> None:
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


def _removal(browser: webdriver.Chrome) -> None:
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    browser.find_element(By.CSS_SELECTOR, ".membership").click()
    when(browser, "document.querySelector('#removal').open")


@needs_browser
@pytest.mark.usefixtures("bot")
async def test_a_phone_shows_the_members(pg: Playground, tmp_path: Path) -> None:
    await asyncio.to_thread(_mention_from_the_list, pg.url, tmp_path)


def _mention_from_the_list(address: str, profile: Path) -> None:
    with open_browser(profile) as browser:
        size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get(address)
        when(browser, "document.querySelector('#bot-state.online')")
        assert browser.execute_script("return document.documentElement.scrollWidth") == 390
        chloe = browser.find_element(By.CSS_SELECTOR, "#members [aria-label='Mention Chloe']")
        assert not chloe.is_displayed()
        ways: tuple[Callable[[], object], ...] = (
            lambda: browser.switch_to.active_element.send_keys(Keys.ESCAPE),
            chloe.click,
        )
        for close in ways:
            browser.find_element(By.ID, "people").click()
            when(browser, "document.querySelector('#people').ariaExpanded === 'true'")
            assert chloe.is_displayed()
            close()
            when(browser, "document.querySelector('#people').ariaExpanded === 'false'")
            assert not chloe.is_displayed()
        assert browser.find_element(By.ID, "composer").get_property("value") == "@Chloe "
        assert not console_errors(browser)


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
