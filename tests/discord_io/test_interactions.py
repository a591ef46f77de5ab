"""Cards on Discord: posted, clicked, answered and settled, over the loopback server with a discord.py client."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import discord
import pytest
from structlog.testing import capture_logs

from discord_io import interactions
from discord_io.card import Card, Chosen, Click, Press, Written
from discord_io.discord_wire import DiscordWire
from discord_io.interactions import read_click, settle, show_form, whisper
from playground.body import EPHEMERAL, SUPPRESS_EMBEDS
from playground.interactions import Interaction
from playground.model import Message
from playground.server import Playground
from state.prompts import AwaitingType
from tests.playground.support import Bot, point_discord_at

THREE = Card("p1", AwaitingType.SELECTION, ("Shibuya", "Shinjuku", "Harajuku"))
TEN = Card("p2", AwaitingType.SELECTION, tuple("abcdefghij"))
SURE = Card("p3", AwaitingType.CONFIRMATION)
NAME = Card("p4", AwaitingType.INPUT)
NOTE = Card("p5", AwaitingType.METADATA)
SENDS, EDITS, CALLBACKS = r"/messages$", r"/messages/\d+$", "/callback$"


class Table:
    """A channel in which the bot puts cards, and people who click on them."""

    def __init__(self, pg: Playground, bot: Bot) -> None:
        self.pg = pg
        self.bot = bot
        self.channel = pg.channel("general")
        self.wire = DiscordWire(bot, pg.guild_id, self.channel)

    @property
    def stands(self) -> Message:
        """The only message in the channel."""
        [message] = self.pg.messages(self.channel)
        return message

    @property
    def labels(self) -> list[str]:
        return [part["label"] for row in self.stands.components for part in row["components"]]

    async def put(self, card: Card, text: str = "Which one?") -> int:
        return (await self.wire.send(text, nonce=card.prompt_id, reply_to=None, card=card)).message_id

    def click(self, who: str, what: str, values: tuple[str, ...] = ()) -> Interaction:
        """what: the end of the custom_id."""
        ids = [part["custom_id"] for row in self.stands.components for part in row["components"]]
        return self.pg.click(self.stands, self.pg.person(who), next(i for i in ids if i.endswith(f":{what}")), values)

    async def heard(self, count: int = 1) -> discord.Interaction[Any]:
        """What the bot heard of the latest click."""
        interaction: discord.Interaction[Any] = await self.bot.event("interaction", count)
        return interaction


@pytest.fixture
def table(pg: Playground, bot: Bot) -> Table:
    return Table(pg, bot)


async def test_a_clicked_option_is_read_and_settles_the_card(table: Table) -> None:
    await table.put(THREE)
    assert table.labels == ["1. Shibuya", "2. Shinjuku", "3. Harajuku"]
    table.click("Ada", "1")
    interaction = await table.heard()
    assert read_click(interaction) == Click("p1", table.pg.person("Ada"), Chosen(1))
    assert await settle(interaction, "Which one?\n-# Shinjuku")
    assert (table.stands.content, table.stands.components) == ("Which one?\n-# Shinjuku", ())


async def test_an_option_is_chosen_from_a_menu(table: Table) -> None:
    await table.put(TEN)
    table.click("Ben", "menu", ("9",))
    interaction = await table.heard()
    assert read_click(interaction) == Click("p2", table.pg.person("Ben"), Chosen(9))
    assert await settle(interaction, "j")
    assert table.stands.components == ()


@pytest.mark.parametrize(
    ("card", "what", "press"),
    [(SURE, "yes", Press.YES), (SURE, "no", Press.NO), (NOTE, "cancel", Press.CANCEL), (NOTE, "form", Press.OPEN_FORM)],
)
async def test_other_buttons_are_read_as_what_they_say(table: Table, card: Card, what: str, press: Press) -> None:
    await table.put(card)
    table.click("Ada", what)
    assert read_click(await table.heard()) == Click(card.prompt_id, table.pg.person("Ada"), press)


async def test_a_form_is_opened_written_and_sent(table: Table) -> None:
    await table.put(NAME)
    opener = table.click("Ada", "form")
    assert await show_form(await table.heard(), "p4", "Your answer", "What is the trip called?")
    table.pg.submit(opener, {"text": "  Spring in Tokyo\n"})
    interaction = await table.heard(2)
    assert read_click(interaction) == Click("p4", table.pg.person("Ada"), Written("Spring in Tokyo"))
    assert await settle(interaction, "Spring in Tokyo")
    assert (table.stands.content, table.stands.components) == ("Spring in Tokyo", ())


async def test_only_who_clicked_is_whispered_to_and_the_card_stays(table: Table) -> None:
    await table.put(THREE)
    made = table.click("Ben", "0")
    assert await whisper(await table.heard(), "That one is for <@1> @everyone.")
    reply = await table.pg.reply_to(made)
    assert (reply.content, reply.pinged) == ("That one is for <@1> @everyone.", frozenset())
    assert reply.flags == EPHEMERAL | SUPPRESS_EMBEDS
    assert len(table.labels) == 3


async def test_a_card_comes_by_an_edit_and_later_edits_leave_it(table: Table) -> None:
    posted = await table.wire.send("Sure", nonce="1", reply_to=None)
    await table.wire.edit(posted.message_id, "Sure?", SURE)
    assert table.labels == ["Yes", "No"]
    await table.wire.edit(posted.message_id, "Really sure?")
    assert (table.stands.content, table.labels) == ("Really sure?", ["Yes", "No"])


async def test_clicks_on_a_card_from_before_a_restart_are_read(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    await table.put(THREE)
    await table.bot.close()
    point_discord_at(table.pg, monkeypatch)
    later = Bot()
    running = asyncio.create_task(later.start(table.pg.token))
    await later.ready.wait()
    table.click("Ada", "2")
    interaction = await later.event("interaction")
    assert read_click(interaction) == Click("p1", table.pg.person("Ada"), Chosen(2))
    assert await settle(interaction, "Harajuku")
    await later.close()
    await running


async def test_the_library_keeps_no_card_and_no_form(table: Table) -> None:
    await table.put(NAME)
    for count, who in enumerate(["Ada", "Ben"], 1):  # only Ben sends the form
        opener = table.click(who, "form")
        await show_form(await table.heard(count), "p4", "Your answer", "What is it called?")
    table.pg.submit(opener, {"text": "x"})
    await settle(await table.heard(3), "x")
    for number in range(100):
        card = Card(f"many-{number}", AwaitingType.SELECTION, ("a", "b") * (1 + number % 10))
        posted = await table.wire.send("?", nonce=card.prompt_id, reply_to=None, card=card)
        await table.wire.edit(posted.message_id, "?!", card)
    store = table.bot._connection._view_store
    kept = [store._views, store._synced_message_views, store._modals, store._dynamic_items]
    assert not any(kept)


@pytest.mark.parametrize("times", [1, 2])
async def test_a_card_that_discord_refuses_costs_neither_the_text_nor_the_reply(table: Table, times: int) -> None:
    question = table.pg.post(table.channel, table.pg.person("Ada"), "where?")
    fault = table.pg.faults.add("POST", SENDS, status=400, code=50035, times=times)
    await table.wire.send("Which one?", nonce="1", reply_to=question.id, card=THREE)
    answer = table.pg.messages(table.channel)[-1]
    assert answer.content == "Which one?"
    # With one refusal it was the card's fault, with two it was the reply's.
    assert (bool(answer.reference), bool(answer.components)) == ((True, False) if times == 1 else (False, True))
    assert fault.hits == times


async def test_a_card_refused_at_an_edit_does_not_cost_the_edit(table: Table) -> None:
    posted = await table.wire.send("Sure", nonce="1", reply_to=None)
    table.pg.faults.add("PATCH", EDITS, status=400, code=50035)
    await table.wire.edit(posted.message_id, "Sure?", SURE)
    assert (table.stands.content, table.stands.components) == ("Sure?", ())


@pytest.mark.parametrize("fault", [{"status": 404, "code": 10062}, {"status": 403}, {"drop": True}])
async def test_an_answer_that_discord_does_not_take_is_only_logged(table: Table, fault: dict[str, Any]) -> None:
    await table.put(THREE)
    table.click("Ada", "0")
    table.pg.faults.add("POST", CALLBACKS, times=9, **fault)
    with capture_logs() as logged:
        assert not await settle(await table.heard(), "Shibuya")
    assert [entry["event"] for entry in logged] == ["interaction_failed"]
    assert len(table.labels) == 3


async def test_an_answer_is_given_up_once_discord_would_not_take_it_any_more(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interactions, "ANSWER_SECONDS", 0.02)
    await table.put(THREE)
    table.click("Ada", "0")
    never = asyncio.Event()
    table.pg.faults.add("POST", CALLBACKS, delay_event=never)
    with capture_logs() as logged:
        assert not await settle(await table.heard(), "Shibuya")
    never.set()
    assert logged[0]["detail"] == "TimeoutError"


def told(kind: discord.InteractionType, data: Any) -> discord.Interaction[Any]:
    return cast("discord.Interaction[Any]", SimpleNamespace(type=kind, data=data, user=SimpleNamespace(id=7)))


NOT_IDS = (
    None,
    "yes",
    "other:prompt:p1:yes",
    *(f"parley:prompt:{of}" for of in ("", "yes", ":yes", "p1:", "p1:maybe")),
)
NO_OPTIONS = ("p1:-1", "p1:25", "p1:menu", "p1:text")
NOT_VALUES: tuple[Any, ...] = (None, [], ["1", "2"], ["25"], ["-1"], ["yes"], [None])
NOT_BOXES: tuple[Any, ...] = (None, "x", {"custom_id": "text"}, {"custom_id": "x", "value": "x"})


def test_what_is_no_click_on_our_cards_is_not_read() -> None:
    component, form = discord.InteractionType.component, discord.InteractionType.modal_submit
    sent = {"components": [{"component": {"custom_id": "text", "value": "x"}}]}
    given: list[tuple[discord.InteractionType, Any]] = [
        *((component, data) for data in (None, {}, {"name": "ask"})),
        *((component, {"custom_id": one}) for one in NOT_IDS),
        *((component, {"custom_id": f"parley:prompt:{one}", "components": []}) for one in NO_OPTIONS),
        *((component, {"custom_id": "parley:prompt:p1:menu", "values": values}) for values in NOT_VALUES),
        *((form, {"custom_id": "parley:prompt:p1:text", "components": [{"component": box}]}) for box in NOT_BOXES),
        (form, {"custom_id": "parley:prompt:p1:text"}),
        (form, {"custom_id": "parley:prompt:p1:text", "components": []}),
        (form, {"custom_id": "parley:prompt:p1:yes", **sent}),
        (discord.InteractionType.application_command, {"custom_id": "parley:prompt:p1:yes"}),
    ]
    assert [case for case in given if read_click(told(*case)) is not None] == []
    assert read_click(told(form, {"custom_id": "parley:prompt:a:b:text", **sent})) == Click("a:b", 7, Written("x"))
