"""The chat page in a real browser: subcommands, private cards, silent messages, links to messages, polls, pins."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import discord
import pytest
from discord import app_commands
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from playground.scenes import read_script
from playground.server import Playground
from tests.playground.support import Bot
from tests.support.browser import LAST, console_errors, needs_browser, open_browser, when, write

PICKER = "#picker [role=option] strong"


class Offer(discord.ui.View):
    """Buttons of all styles, on and off; the first one takes the buttons away."""

    def __init__(self) -> None:
        super().__init__(timeout=None)
        styles = discord.ButtonStyle
        for style in (styles.primary, styles.secondary, styles.success, styles.danger):
            for off in (False, True):
                self.add_item(discord.ui.Button(label=style.name, style=style, disabled=off, custom_id=f"{style}{off}"))
        self.add_item(discord.ui.Button(label="link", url="https://example.com/"))
        self.add_item(discord.ui.Button(label="no link", url="https://example.com/", disabled=True))

    async def interaction_check(self, interaction: discord.Interaction) -> bool:
        await interaction.response.edit_message(content="Taken.", view=None)
        return False


@pytest.fixture
async def commands(bot: Bot) -> None:
    """/offers on, /offers for who; for those who manage the channel. And /tour, for everybody: a private card."""
    offers = app_commands.Group(
        name="offers", description="Offers", default_permissions=discord.Permissions(manage_channels=True)
    )

    @offers.command(description="Switch them on")
    async def on(interaction: discord.Interaction) -> None:
        await interaction.response.send_message("On.")

    @offers.command(name="for", description="Say for whom")
    async def for_whom(interaction: discord.Interaction, who: discord.Member) -> None:
        await interaction.response.send_message(f"For {who.mention}, by </offers for:1>.")

    bot.tree.add_command(offers)

    @bot.tree.command(description="Show me round")
    async def tour(interaction: discord.Interaction) -> None:
        await interaction.response.send_message("Round here.", view=Offer(), ephemeral=True)

    await bot.tree.sync()


@needs_browser
@pytest.mark.usefixtures("commands")
async def test_subcommands_and_cards_are_used_on_the_page(pg: Playground, tmp_path: Path) -> None:
    await asyncio.to_thread(_use_commands, pg.url, tmp_path)
    used = [one.data["options"][0]["name"] for one in pg.interactions.recent() if one.data.get("name") == "offers"]
    assert used == ["on", "for", "for"]


@needs_browser
async def test_a_scene_is_watched_on_the_page_also_after_a_reload(pg: Playground, tmp_path: Path) -> None:
    await asyncio.to_thread(_watch, pg.url, tmp_path)
    assert pg._stage.playing(pg.channel("general")) is None


def _watch(address: str, profile: Path) -> None:
    title = read_script()[0].title
    with open_browser(profile) as browser:
        browser.get(address)
        _play(browser, title)
        when(browser, f"document.querySelector('#scene:not([hidden]) #scene-text')?.textContent.includes('{title}')")
        when(browser, f"{LAST}?.textContent.includes('@Parley we land in Tokyo')")
        _play(browser, title)
        when(browser, "document.querySelector('#error:not([hidden])')?.textContent.includes('is being played here')")
        browser.get_log("browser")  # type: ignore[no-untyped-call]  # the refusal is logged there
        browser.refresh()
        when(browser, "document.querySelector('#scene:not([hidden]) button')")
        browser.find_element(By.CSS_SELECTOR, "#scene button").click()
        when(browser, "document.querySelector('#scene').hidden")
        assert len(browser.find_elements(By.CSS_SELECTOR, "#messages .message")) == 1
        assert not console_errors(browser)


@needs_browser
async def test_a_scene_is_played_where_all_can_speak(pg: Playground, tmp_path: Path) -> None:
    thread = pg.open_thread(pg.channel("random"), pg.person("Ada"), "Just me", private=True)
    title = read_script()[0].title

    def play() -> None:
        with open_browser(tmp_path) as browser:
            browser.get(pg.url)
            for place, stage in (("#direct", "general"), (f"[data-channel-id='{thread}']", "random")):
                when(browser, f'document.querySelector("{place} .channel-label")?.textContent')
                browser.find_element(By.CSS_SELECTOR, place).click()
                when(browser, f"document.querySelector('#channel-name').textContent !== '{stage}'")
                _play(browser, title)
                when(browser, f"document.querySelector('#channel-name').textContent === '{stage}'")
                when(browser, f"{LAST}?.textContent.includes('@Parley we land in Tokyo')")
            assert not console_errors(browser)

    await asyncio.to_thread(play)


def _play(browser: webdriver.Chrome, title: str) -> None:
    when(browser, "document.querySelector('.channel')")
    browser.find_element(By.ID, "try").click()
    when(browser, "document.activeElement.matches('#popover [role=menuitem]')")
    browser.find_element(By.CSS_SELECTOR, f"#popover [aria-label^='{title}']").click()


def _use_commands(address: str, profile: Path) -> None:
    with open_browser(profile) as browser:
        browser.get(address)
        when(browser, "document.querySelector('#bot-state.online')")
        assert _suggested(browser, "/") == ["offers on", "offers for", "tour"]
        assert _suggested(browser, "/offers f") == ["offers for"]
        assert _suggested(browser, "/offers x") == []
        assert _suggested(browser, "/tour ") == ["tour"]
        _use_subcommands(browser)
        _use_card(browser)
        browser.find_element(By.CSS_SELECTOR, ".speaker:has([aria-label='Ben'])").click()
        when(browser, f"!{LAST}.matches('.ephemeral')")
        assert _suggested(browser, "/") == ["tour"]
        assert not console_errors(browser)


def _use_subcommands(browser: webdriver.Chrome) -> None:
    write(browser, "/offers on")
    when(browser, f"{LAST}?.querySelector('.content').textContent === 'On.'")
    assert _last(browser, ".reference") == "A\nAda\nused /offers on"
    write(browser, "/offers for")
    form = browser.find_element(By.ID, "command-form")
    assert form.find_element(By.TAG_NAME, "strong").text == "/offers for"
    Select(form.find_element(By.NAME, "who")).select_by_visible_text("Ben")
    form.find_element(By.CSS_SELECTOR, ".primary").click()
    when(browser, f"{LAST}.querySelector('.content').textContent === 'For @Ben, by /offers for.'")
    write(browser, "/offers for who:Chloe")
    when(browser, "document.activeElement.matches('#command-form .primary')")
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    when(browser, f"{LAST}.querySelector('.content').textContent === 'For @Chloe, by /offers for.'")


def _use_card(browser: webdriver.Chrome) -> None:
    write(browser, "/tour")
    when(browser, f"{LAST}.matches('.ephemeral')")
    buttons = browser.find_elements(By.CSS_SELECTOR, ".ephemeral .components .button")
    styles = ("primary", "secondary", "success", "danger")
    looks = [(one.text, str(one.get_dom_attribute("class")), one.is_enabled()) for one in buttons[:8]]
    assert looks == [(style, f"button {style}", on) for style in styles for on in (True, False)]
    assert [(one.tag_name, one.is_enabled()) for one in buttons[8:]] == [("a", True), ("button", False)]
    buttons[0].click()
    when(browser, f"{LAST}.querySelector('.content').textContent.startsWith('Taken.')")
    when(browser, f"{LAST}.matches('.ephemeral') && !{LAST}.querySelector('.components *')")


def _suggested(browser: webdriver.Chrome, typed: str) -> list[str]:
    box = browser.find_element(By.ID, "composer")
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys(typed)
    found = [one.text for one in browser.find_elements(By.CSS_SELECTOR, PICKER)]
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys(Keys.DELETE)
    return found


def _last(browser: webdriver.Chrome, part: str) -> str:
    return str(browser.find_element(By.CSS_SELECTOR, f"#messages .message:last-child {part}").text)


@needs_browser
@pytest.mark.usefixtures("commands")
async def test_a_command_appears_once_its_permissions_are_there(pg: Playground, tmp_path: Path) -> None:
    def speak_as_ben(browser: webdriver.Chrome) -> None:
        browser.get(pg.url)
        when(browser, "document.querySelector('#bot-state.online')")
        browser.find_element(By.CSS_SELECTOR, ".speaker:has([aria-label='Ben'])").click()

    def first_and_then(loop: asyncio.AbstractEventLoop) -> list[list[str]]:
        with open_browser(tmp_path) as browser:
            speak_as_ben(browser)
            first = _suggested(browser, "/")
            loop.call_soon_threadsafe(let_him)
            when(browser, "document.querySelector('#messages .message')")
            return [first, _suggested(browser, "/")]

    def let_him() -> None:
        pg.allow(pg.channel("general"), "manage_channels", member=pg.person("Ben"))
        pg.post(pg.channel("general"), pg.person("Ada"), "now you may")

    seen = await asyncio.to_thread(first_and_then, asyncio.get_running_loop())
    assert seen == [["tour"], ["offers on", "offers for", "tour"]]


@needs_browser
async def test_silent_messages_are_marked_and_links_to_messages_lead_there(
    pg: Playground, bot: Bot, tmp_path: Path
) -> None:
    help_channel, ada = pg.channel("help"), pg.person("Ada")
    asked = [pg.post(help_channel, ada, f"question {number}") for number in range(100)][50]
    general = bot.get_channel(pg.channel("general"))
    assert isinstance(general, discord.TextChannel)
    link = f"https://discord.com/channels/{pg.guild_id}/{asked.channel_id}/{asked.id}"
    await general.send("Loud.")
    here = link.replace("https://discord.com", pg.url)
    await general.send(f"About [that question]({link}) of <@{ada}>, {here}", silent=True, view=Offer())
    await general.send("And silent again.", silent=True)
    await asyncio.to_thread(_follow_the_links, pg.url, tmp_path, asked.id)


def _follow_the_links(address: str, profile: Path, asked_id: int) -> None:
    with open_browser(profile) as browser:
        browser.get(address)
        when(browser, f"{LAST}?.textContent.includes('And silent again')")
        rows = browser.find_elements(By.CSS_SELECTOR, "#messages .message")
        marks = [[mark.get_dom_attribute("title") for mark in _marks(row)] for row in rows]
        assert marks == [[], ["This was a silent message"], []]  # the third stands below the second's name
        assert [row.get_dom_attribute("class") for row in rows] == ["message", "message mentioned", "message grouped"]
        links = [(link.text, link.get_dom_attribute("class")) for link in rows[1].find_elements(By.TAG_NAME, "a")]
        assert links[:2] == [("that question", None), ("#help › 💬", "pill")]
        assert rows[1].find_element(By.CSS_SELECTOR, ".content .pill").text == "@Ada"
        for number in (0, 1):
            browser.find_element(By.CSS_SELECTOR, "#channels li:first-child button").click()
            when(browser, f"{LAST}?.textContent.includes('And silent again')")
            browser.find_elements(By.CSS_SELECTOR, "#messages .content a")[number].click()
            when(browser, f"document.querySelector('[data-message-id=\"{asked_id}\"]')?.matches('.flash')")
            assert browser.execute_async_script(IN_VIEW, str(asked_id))
        assert len(browser.window_handles) == 1
        assert not console_errors(browser)


@needs_browser
async def test_polls_and_pins_are_shown(pg: Playground, bot: Bot, tmp_path: Path) -> None:
    pg.allow(pg.channel("general"), "pin_messages")
    channel = bot.get_channel(pg.channel("general"))
    assert isinstance(channel, discord.TextChannel)
    poll = discord.Poll("Which **day**?", timedelta(hours=3)).add_answer(text="Monday").add_answer(text="<b>Friday")
    await (await channel.send(poll=poll)).pin()
    await asyncio.to_thread(_see_poll, pg.url, tmp_path)


def _see_poll(address: str, profile: Path) -> None:
    with open_browser(profile) as browser:
        browser.get(address)
        when(browser, f"{LAST}?.textContent.includes('Pinned a message in this channel.')")
        poll = browser.find_element(By.CSS_SELECTOR, ".message .poll")
        lines = poll.text.splitlines()
        assert lines[:3] == ["Which **day**?", "Monday", "<b>Friday"]
        assert lines[3].startswith("One answer each, until ")
        assert poll.find_element(By.XPATH, "following-sibling::div").text == "Pinned"
        assert not console_errors(browser)


# Asked two frames later, when the page had its chance to scroll elsewhere.
IN_VIEW = """
const [id, done] = arguments;
requestAnimationFrame(() => requestAnimationFrame(() => {
  const row = document.querySelector(`[data-message-id="${id}"]`).getBoundingClientRect();
  done(row.top >= 0 && row.bottom <= innerHeight);
}));
"""


def _marks(row: Any) -> list[Any]:
    return list(row.find_elements(By.CSS_SELECTOR, ".silent-mark"))
