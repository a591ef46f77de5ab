"""The chat page in a real browser: cards with menus, forms with every input, autocomplete, roles and categories."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import discord
import pytest
from discord import app_commands
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from playground.server import Playground
from tests.playground.support import Bot
from tests.support import samples
from tests.support.accessibility import accessibility_faults
from tests.support.browser import LAST, console_errors, look_as, needs_browser, open_browser, when, write

MENUS = "#messages .message:last-child .components"


class Card(discord.ui.View):
    """A menu of one channel, one of many roles, and a button that opens a form."""

    @discord.ui.select(cls=discord.ui.ChannelSelect, placeholder="Where", custom_id="where")
    async def where(self, interaction: discord.Interaction, menu: discord.ui.ChannelSelect[Any]) -> None:
        await interaction.response.edit_message(content=f"In {menu.values[0]}.")

    @discord.ui.select(
        cls=discord.ui.RoleSelect, placeholder="Who may talk", custom_id="who", min_values=0, max_values=2
    )
    async def who(self, interaction: discord.Interaction, menu: discord.ui.RoleSelect[Any]) -> None:
        menu.default_values = menu.values
        await interaction.response.edit_message(content=f"For {', '.join(map(str, menu.values))}.", view=self)

    @discord.ui.button(label="More", custom_id="more")
    async def more(self, interaction: discord.Interaction, _: discord.ui.Button[Any]) -> None:
        await interaction.response.send_modal(More())


class More(discord.ui.Modal, title="How it talks"):
    """An input of each kind."""

    persona = discord.ui.TextInput[Any](label="Persona", style=discord.TextStyle.paragraph, max_length=2_000)

    def __init__(self) -> None:
        super().__init__()
        options = discord.RadioGroupOption
        self.parts: list[Any] = [
            discord.ui.UserSelect(custom_id="users", max_values=2, required=False),
            discord.ui.RadioGroup(
                options=[options(label="Quick", description="At once"), options(label="Slow")], required=False
            ),
            discord.ui.CheckboxGroup(
                options=[discord.CheckboxGroupOption(label=one, default=one == "Tools") for one in ("Judge", "Tools")],
                min_values=1,
            ),
            discord.ui.Checkbox(),
        ]
        names = ("Blocked", "Pace", "Switches", "Threads")
        for name, part in zip(names, self.parts, strict=True):
            self.add_item(discord.ui.Label(text=name, description=f"About {name}", component=part))

    async def on_submit(self, interaction: discord.Interaction) -> None:
        users, pace, switches, threads = self.parts
        said = [self.persona.value, [one.name for one in users.values], pace.value, switches.values, threads.value]
        await interaction.response.edit_message(content=repr(said))


@pytest.fixture
async def cards(pg: Playground, bot: Bot) -> None:
    """/card with a picture, for those who manage the guild, and /model with autocomplete, for everybody."""
    pg.add_channel("website", category=pg.add_category("Projects"))
    pg.add_role("Helpers", members=[pg.person("Ben")])
    pg.add_role("Managers", "manage_guild", members=[pg.person("Chloe")])
    for number in range(12):
        pg.add_role(f"Guild of {number}")

    @bot.tree.command(description="Settings")
    @app_commands.default_permissions(manage_guild=True)
    async def card(interaction: discord.Interaction) -> None:
        embed = discord.Embed(title="Settings").set_image(url="attachment://chart.png")
        file = discord.File(io.BytesIO(samples.picture("PNG", (320, 120))), "chart.png")
        await interaction.response.send_message("Here.", embed=embed, file=file, view=Card(), ephemeral=True)

    @bot.tree.command(description="Choose a model")
    async def model(interaction: discord.Interaction, name: str, role: discord.Role | None = None) -> None:
        await interaction.response.send_message(f"{name} for {role}")

    @model.autocomplete("name")
    async def names(_: discord.Interaction, typed: str) -> list[app_commands.Choice[str]]:
        return [app_commands.Choice(name=f"Number {one} of {typed}", value=f"{typed}-{one}") for one in range(3)]

    await bot.tree.sync()


@needs_browser
@pytest.mark.usefixtures("cards")
@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 360)])
async def test_cards_and_forms_are_used_by_mouse_and_keyboard(
    pg: Playground, tmp_path: Path, theme: str, width: int
) -> None:
    await asyncio.to_thread(_use_card, pg.url, tmp_path, theme, width)


def _use_card(address: str, profile: Path, theme: str, width: int) -> None:
    with open_browser(profile) as browser:
        look_as(browser, theme, width)
        browser.get(address)
        when(browser, "document.querySelector('#bot-state.online')")
        standing = [one.text for one in browser.find_elements(By.CSS_SELECTOR, ".speaker .standing")]
        assert standing == ["Owner", "Helpers", "Managers"]
        browser.find_element(By.CSS_SELECTOR, ".speaker:has([aria-label='Chloe'])").click()
        write(browser, "/card")
        when(browser, f"{LAST}?.matches('.ephemeral') && {LAST}.querySelector('img')?.naturalWidth === 320")
        _choose(browser)
        assert not accessibility_faults(browser)
        _fill(browser)
        _complete(browser)
        assert not console_errors(browser)


def _choose(browser: webdriver.Chrome) -> None:
    """One channel by its native menu, two roles by search, mouse and keyboard."""
    menu = browser.find_element(By.CSS_SELECTOR, f"{MENUS} select")
    assert "Projects (category)" in menu.text
    Select(menu).select_by_visible_text("#website")
    when(browser, f"{LAST}.querySelector('.content').textContent.startsWith('In website')")
    browser.find_element(By.CSS_SELECTOR, f"{MENUS} summary").click()
    search = browser.find_element(By.CSS_SELECTOR, f"{MENUS} [type=search]")
    search.send_keys("helpers")
    shown = [one for one in browser.find_elements(By.CSS_SELECTOR, f"{MENUS} .choice") if one.is_displayed()]
    assert [one.text for one in shown] == ["@Helpers"]
    shown[0].click()
    search.clear()
    search.send_keys("guild of 7", Keys.TAB, Keys.SPACE)
    assert len(browser.find_elements(By.CSS_SELECTOR, f"{MENUS} .choice :disabled")) == 14  # two of them, no more
    browser.find_element(By.CSS_SELECTOR, f"{MENUS} details button").send_keys(Keys.ENTER)
    when(browser, f"{LAST}.querySelector('.content').textContent.startsWith('For Helpers, Guild of 7')")
    assert browser.find_element(By.CSS_SELECTOR, f"{MENUS} summary").text == "Who may talk (2 chosen)"
    browser.find_element(By.CSS_SELECTOR, f"{MENUS} summary").send_keys(Keys.ENTER)


def _fill(browser: webdriver.Chrome) -> None:
    browser.find_element(By.CSS_SELECTOR, "[data-custom-id=more]").click()
    when(browser, "document.querySelector('#form').open && document.activeElement.matches('#form textarea')")
    browser.switch_to.active_element.send_keys("A pirate.")
    form = browser.find_element(By.ID, "form")
    for label in ("Ben", "Quick", "Tools"):
        form.find_element(By.XPATH, f".//label[contains(., '{label}')]").click()
    form.find_element(By.CSS_SELECTOR, ".form-check").click()
    assert not accessibility_faults(browser)
    form.find_element(By.CSS_SELECTOR, ".primary").click()
    when(browser, "document.querySelector('.form-error').textContent === 'Switches: choose at least 1.'")
    form.find_element(By.XPATH, ".//label[contains(., 'Judge')]/input").send_keys(Keys.SPACE)
    form.find_element(By.TAG_NAME, "textarea").submit()
    wanted = "['A pirate.', ['Ben'], 'Quick', ['Judge'], True]"
    when(browser, f'{LAST}.querySelector(".content").textContent.startsWith("{wanted}")')


def _complete(browser: webdriver.Chrome) -> None:
    write(browser, "/model")
    when(browser, "document.activeElement.matches('#command-form [name=name]')")
    browser.switch_to.active_element.send_keys("gpt")
    when(browser, "document.querySelector('#picker [role=option]')?.textContent === 'Number 0 of gpt'")
    assert not browser.find_element(By.ID, "composer").is_displayed()
    assert not accessibility_faults(browser)
    browser.switch_to.active_element.send_keys(Keys.ARROW_DOWN, Keys.ENTER)
    assert browser.switch_to.active_element.get_property("value") == "Number 1 of gpt"
    Select(browser.find_element(By.NAME, "role")).select_by_visible_text("@Helpers")
    browser.find_element(By.CSS_SELECTOR, "#command-form .primary").click()
    when(browser, f"{LAST}.querySelector('.content').textContent === 'gpt-1 for Helpers'")
