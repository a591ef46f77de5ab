"""Cards that one person alone sees: walked through by their buttons, as they stand now, gone when deleted."""

from typing import Any

import discord
import pytest

from playground.errors import ApiError
from playground.interactions import Interaction
from playground.model import Message
from playground.server import Playground
from tests.playground.support import Api, Bot
from tests.playground.test_interactions import answer, labelled

EPHEMERAL = 64
STEPS = ("one", "two", "three")


class Tour(discord.ui.View):
    """Back, Next and Done on a card. What a button leads to stands in its custom_id."""

    def __init__(self, step: int) -> None:
        super().__init__(timeout=None)
        for label, target in (("Back", step - 1), ("Next", step + 1), ("Done", None)):
            off = target is not None and not 0 <= target < len(STEPS)
            self.add_item(discord.ui.Button(label=label, custom_id=f"tour:{label}:{target}", disabled=off))


@pytest.fixture
async def card(pg: Playground, bot: Bot) -> Message:
    """The first step of a tour that the bot leads Ada through, whatever is clicked."""

    @bot.tree.command(description="Show me round")
    async def tour(interaction: discord.Interaction) -> None:
        await interaction.response.send_message(STEPS[0], view=Tour(0), ephemeral=True)

    async def on_interaction(interaction: discord.Interaction[Any]) -> None:
        if interaction.type is not discord.InteractionType.component:
            return
        data: Any = interaction.data
        target = data["custom_id"].split(":")[2]
        if target == "None":
            await interaction.response.edit_message(content="That was it.", view=None)
        else:
            await interaction.response.edit_message(content=STEPS[int(target)], view=Tour(int(target)))

    bot.on_interaction = on_interaction  # type: ignore[attr-defined]
    await bot.tree.sync()
    return await pg.reply_to(pg.command(pg.channel("general"), pg.person("Ada"), "tour"))


async def click(pg: Playground, card: Message, custom_id: str) -> Message:
    return await pg.reply_to(pg.click(card, pg.person("Ada"), custom_id))


async def test_a_card_is_walked_through_and_its_last_step_takes_the_buttons_away(pg: Playground, card: Message) -> None:
    walked = [await click(pg, card, one) for one in ("tour:Next:1", "tour:Next:2", "tour:Back:1", "tour:Done:None")]
    assert [one.content for one in walked] == ["two", "three", "two", "That was it."]
    assert {(one.id, one.flags) for one in walked} == {(card.id, EPHEMERAL)}
    assert [bool(one.components) for one in walked] == [True, True, True, False]
    assert pg.messages(card.channel_id) == []
    with pytest.raises(ApiError, match="Invalid Form Body"):
        pg.click(card, pg.person("Ada"), "tour:Next:1")


async def test_only_the_buttons_that_stand_there_now_can_be_pressed(pg: Playground, card: Message) -> None:
    with pytest.raises(ApiError):
        pg.click(card, pg.person("Ada"), "tour:Back:-1")  # disabled
    await click(pg, card, "tour:Next:1")
    with pytest.raises(ApiError):
        pg.click(card, pg.person("Ada"), "tour:Next:1")  # of the step before
    with pytest.raises(ApiError, match="Unknown Message"):
        pg.click(card, pg.person("Ben"), "tour:Next:2")  # somebody else's


def webhook(pg: Playground, made: Interaction) -> str:
    return f"/webhooks/{pg.bot_id}/{made.token}/messages/@original"


async def test_an_older_interaction_reaches_the_card_as_it_stands(
    pg: Playground, bot: Bot, api: Api, card: Message
) -> None:
    opener = pg.interactions.recent()[0]
    await click(pg, card, "tour:Next:1")
    await click(pg, card, "tour:Done:None")
    told = [(one.message.content, one.message.flags.ephemeral) for one in bot.all("interaction") if one.message]
    assert told == [("one", True), ("two", True)]
    status, edited = await api.call("PATCH", webhook(pg, opener), {"content": "Bye."})
    assert (status, edited["content"], edited["components"]) == (200, "Bye.", [])
    assert (await api.call("GET", webhook(pg, opener)))[1]["content"] == "Bye."


async def test_a_deleted_card_is_gone_for_all_of_its_interactions(pg: Playground, api: Api, card: Message) -> None:
    opener = pg.interactions.recent()[0]
    await click(pg, card, "tour:Next:1")
    assert (await api.call("DELETE", webhook(pg, pg.interactions.recent()[-1])))[0] == 204
    with pytest.raises(ApiError, match="Unknown Message"):
        pg.click(card, pg.person("Ada"), "tour:Next:2")
    assert await api.code("PATCH", webhook(pg, opener), {"content": "x"}) == (404, 10008)


async def test_a_card_changes_after_a_deferral_and_by_a_form(pg: Playground, api: Api) -> None:
    await api.call("PUT", f"/applications/{pg.bot_id}/commands", [{"name": "card", "description": "x"}])
    general, ada = pg.channel("general"), pg.person("Ada")
    button = {"type": 2, "style": 1, "label": "ok", "custom_id": "ok"}
    opener = pg.command(general, ada, "card")
    shown = {"content": "a", "flags": EPHEMERAL, "components": [{"type": 1, "components": [button]}]}
    assert (await answer(api, opener, 4, shown))[0] == 204
    card = await pg.reply_to(opener)
    clicked = pg.click(card, ada, "ok")
    assert (await answer(api, clicked, 6))[0] == 204
    assert (await api.call("PATCH", webhook(pg, clicked), {"content": "b"}))[1]["content"] == "b"
    form = {"title": "x", "custom_id": "x", "components": [labelled({"type": 23, "custom_id": "on"})]}
    clicked = pg.click(card, ada, "ok")
    assert (await answer(api, clicked, 9, form))[0] == 204
    sent = pg.submit(clicked, {"on": True})
    assert (await answer(api, sent, 7, {"content": "c"}))[0] == 204
    standing = pg.interactions.ephemeral(card.id, ada)
    assert standing is not None
    assert (standing.content, standing.components, pg.messages(general)) == ("c", card.components, [])


async def test_nobody_waits_where_the_channel_was_deleted(pg: Playground, api: Api) -> None:
    await api.call("PUT", f"/applications/{pg.bot_id}/commands", [{"name": "card", "description": "x"}])
    used = pg.command(pg.channel("help"), pg.person("Ada"), "card")
    pg.delete_channel(used.channel_id)
    pg.interactions._give_up(used)
    status, refused = await answer(api, used, 4, {"content": "late"})
    assert (status, refused["code"]) == (404, 10003)


async def test_cards_are_bounded(pg: Playground) -> None:
    channel, ada = pg.world.channel(pg.channel("general")), pg.person("Ada")
    shown = [pg.post(channel.id, ada, str(number)) for number in range(1_003)]
    for message in shown:
        pg.interactions._ephemerals.show(channel, ada, message)
    assert len(pg.interactions._ephemerals._standing) == 1_000
    assert pg.interactions.ephemeral(shown[2].id, ada) is None
    assert pg.interactions.ephemeral(shown[3].id, ada) is shown[3]
