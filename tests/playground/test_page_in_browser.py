"""The chat page in a real browser: cards, private lines and files, what nobody answers, and the bot's leaving."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import discord
import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from discord_io.card import Card, Chosen, Press, Written
from discord_io.discord_wire import DiscordWire
from discord_io.interactions import read_click, settle, show_form, whisper
from playground import interactions
from playground.server import Playground
from state.prompts import AwaitingType
from tests.playground.support import Bot
from tests.support.browser import LAST, console_errors, needs_browser, open_browser, when, write

CARDS = (
    Card("place", AwaitingType.SELECTION, ("Shibuya", "Shinjuku", "Harajuku")),
    Card("letter", AwaitingType.SELECTION, tuple("abcdefgh")),
    Card("name", AwaitingType.INPUT),
)


@pytest.fixture
async def cards(pg: Playground, bot: Bot) -> None:
    """Three cards in the channel. The bot answers Ada's clicks, whispers to Ben, and is silent on Shibuya."""

    async def on_interaction(interaction: discord.Interaction[Any]) -> None:
        click = read_click(interaction)
        assert click
        if click.user_id != pg.person("Ada"):
            await whisper(interaction, "That one is for Ada.")
        elif click.action is Press.OPEN_FORM:
            await show_form(
                interaction, click.prompt_id, "Your answer", "What shall the trip to Japan be called, and why so?"
            )
        elif isinstance(click.action, Written):
            await settle(interaction, f"It is called {click.action.text}")
        elif click.action != Chosen(0):
            await settle(interaction, f"You chose {click.action}")

    bot.on_interaction = on_interaction  # type: ignore[attr-defined]
    wire = DiscordWire(bot, pg.guild_id, pg.channel("general"))
    for card in CARDS:
        await wire.send(f"The {card.prompt_id}?", nonce=card.prompt_id, reply_to=None, card=card)


@needs_browser
@pytest.mark.usefixtures("cards")
async def test_cards_are_used_on_the_page(pg: Playground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interactions, "_ANSWER_SECONDS", 0.5)
    await asyncio.to_thread(_use, pg.url, tmp_path)
    assert [message.content for message in pg.messages(pg.channel("general"))] == [
        "You chose Chosen(index=1)",
        "You chose Chosen(index=7)",
        "It is called Spring in Tokyo",
    ]


@needs_browser
async def test_a_private_file_is_shown_and_the_bot_is_removed_and_added(
    pg: Playground, bot: Bot, tmp_path: Path
) -> None:
    @bot.tree.command(description="Give me a file")
    async def give(interaction: discord.Interaction) -> None:
        await interaction.response.defer(ephemeral=True, thinking=True)
        await interaction.edit_original_response(attachments=[discord.File(io.BytesIO(b"[]"), "messages.json")])

    await bot.tree.sync()
    await asyncio.to_thread(_take_the_file_and_remove_the_bot, pg.url, tmp_path)
    assert [event for event, _ in bot.seen if event in ("guild_remove", "guild_join")] == ["guild_remove", "guild_join"]


@needs_browser
async def test_the_rehearsal_does_not_promise_decisions(tmp_path: Path) -> None:
    """The bot of `python -m playground` runs elsewhere, so nothing annotates the messages."""

    def look(address: str) -> tuple[str, bool]:
        with open_browser(tmp_path) as browser:
            browser.get(address)
            when(browser, "document.querySelector('.welcome')")
            switch = browser.find_element(By.ID, "decisions").find_element(By.XPATH, "..")
            return browser.find_element(By.CSS_SELECTOR, ".welcome > p").text, switch.is_displayed()

    async with Playground() as shown, Playground(decisions=False) as rehearsal:
        text, has_switch = await asyncio.to_thread(look, shown.url)
        assert ("The line under each message shows" in text, has_switch) == (True, True)
        text, has_switch = await asyncio.to_thread(look, rehearsal.url)
        assert ("The line under each message shows" in text, "/why" in text, has_switch) == (False, True, False)


@needs_browser
async def test_a_message_is_deleted_once_that_is_confirmed(pg: Playground, tmp_path: Path) -> None:
    await asyncio.to_thread(_delete, pg.url, tmp_path)
    assert not pg.messages(pg.channel("general"))


def _delete(address: str, profile: Path) -> None:
    with open_browser(profile) as browser:
        browser.get(address)
        write(browser, "not for long")
        when(browser, f"{LAST}?.textContent.includes('not for long')")
        for button, count in (("secondary", 1), ("danger", 0)):
            browser.execute_script(f"{LAST}.focus(); {LAST}.querySelector('[data-action=delete]').click()")
            when(browser, "document.querySelector('#deletion').open")
            browser.find_element(By.CSS_SELECTOR, f"#deletion .{button}").click()
            when(browser, "!document.querySelector('#deletion').open")
            when(browser, f"document.querySelectorAll('#messages .message').length === {count}")
        assert not console_errors(browser)


def _take_the_file_and_remove_the_bot(address: str, profile: Path) -> None:
    with open_browser(profile) as browser:
        browser.get(address)
        when(browser, "document.querySelector('#bot-state.online')")
        write(browser, "/give")
        when(browser, f"{LAST}?.matches('.ephemeral') && {LAST}.textContent.includes('messages.json')")
        for button, waits_for in (("secondary", "online"), ("danger", "not here")):
            browser.find_element(By.CSS_SELECTOR, ".membership").click()
            when(browser, "document.querySelector('#removal').open")
            browser.find_element(By.CSS_SELECTOR, f"#removal .{button}").click()
            when(browser, "!document.querySelector('#removal').open")
            when(browser, f"document.querySelector('#bot-state').textContent.includes('{waits_for}')")
        assert not browser.find_elements(By.CSS_SELECTOR, "#members [aria-label^='Mention Parley']")
        browser.find_element(By.CSS_SELECTOR, ".membership").click()
        when(browser, "document.querySelector('#bot-state.online')")
        assert not console_errors(browser)


def _use(address: str, profile: Path) -> None:
    with open_browser(profile) as browser:
        browser.get(address)
        when(browser, f"{LAST}?.textContent.includes('The name?')")
        _press_buttons(browser)
        _choose_from_the_menu(browser)
        _fill_in_the_form(browser)
        assert not console_errors(browser)


def _press_buttons(browser: webdriver.Chrome) -> None:
    _button(browser, "place:0").click()
    when(browser, f"{_message(1)}.querySelector('.failed').textContent === 'This interaction failed'")
    _speak_as(browser, "Ben")
    when(browser, f"{_message(1)}.querySelector('.failed').textContent === ''")
    _button(browser, "place:1").click()
    when(browser, f"{LAST}.matches('.ephemeral') && {LAST}.textContent.includes('That one is for Ada.')")
    _speak_as(browser, "Ada")
    when(browser, f"!{LAST}.matches('.ephemeral')")
    _button(browser, "place:1").click()
    when(browser, f"{_message(1)}.textContent.includes('You chose') && !{_message(1)}.querySelector('.components *')")


def _choose_from_the_menu(browser: webdriver.Chrome) -> None:
    Select(browser.find_element(By.CSS_SELECTOR, "select")).select_by_visible_text("8. h")
    when(browser, f"{_message(2)}.textContent.includes('You chose') && !{_message(2)}.querySelector('.components *')")


def _fill_in_the_form(browser: webdriver.Chrome) -> None:
    _button(browser, "name:form").click()
    when(browser, "document.querySelector('#form').open")
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    when(browser, "!document.querySelector('#form').open")

    _button(browser, "name:form").click()
    when(browser, "document.querySelector('#form').open")
    send = browser.find_element(By.CSS_SELECTOR, "#form .primary")
    send.click()  # nothing is written yet
    browser.switch_to.active_element.send_keys("Spring in Tokyo")
    send.click()
    when(browser, f"{LAST}.textContent.includes('It is called Spring in Tokyo')")
    when(browser, f"!document.querySelector('#form').open && !{LAST}.querySelector('.components *')")


def _message(number: int) -> str:
    return f"document.querySelector('#messages .message:nth-of-type({number + 1})')"  # the day comes before them


def _button(browser: webdriver.Chrome, end: str) -> Any:
    return browser.find_element(By.CSS_SELECTOR, f"[data-custom-id$=':{end}']")


def _speak_as(browser: webdriver.Chrome, name: str) -> None:
    browser.find_element(By.CSS_SELECTOR, f".speaker:has([aria-label='{name}'])").click()
