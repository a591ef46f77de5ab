"""The card of /parley settings, over a loopback Discord: what it shows, what it sets, and for whom."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

import discord
import pytest
from structlog.testing import capture_logs

from commands.place_edge import ELSEWHERE, GONE, NOT_THE_CHANNELS, NOT_THE_SERVERS
from commands.settings_card import PREFIX
from commands.settings_clicks import UNKNOWN
from place_settings.fields import ABOUT, HOW, About, Level, PlaceSettings
from place_settings.guild_settings import GuildSettings
from playground.interactions import Interaction
from playground.model import Message
from playground.server import Playground
from tests.commands.support import EPHEMERAL, Commanded, FakeModels, labels_of, line_of, words_of
from tests.playground.support import Bot
from tests.support.controls import fill, pick, run


async def card_of(pg: Playground, who: str = "Ada", **options: Any) -> Message:
    card = await pg.reply_to(run(pg, who, "parley settings", **options))
    assert card.flags & EPHEMERAL
    return card


def click(pg: Playground, who: str, card: Message, label: str) -> Interaction:
    parts = [part for row in card.components for part in row["components"]]
    custom_id = next(part["custom_id"] for part in parts if str(part.get("label")).startswith(label))
    return pg.click(card, pg.person(who), custom_id)


async def shown_anew(pg: Playground, card: Message, who: str, text: str) -> Message:
    """The card as it stands once these words are on it."""

    def found() -> Message | None:
        standing = pg.interactions.ephemeral(card.id, pg.person(who))
        return standing if standing and text in words_of(standing) else None

    message = await pg.wait_for(found, 10)
    assert message is not None
    return message


def own(settings: GuildSettings, pg: Playground, place: str = "general") -> PlaceSettings:
    return settings.own(pg.guild_id, pg.channel(place), Level.CHANNEL).settings


async def test_it_shows_what_is_set_here_what_holds_and_where_that_comes_from(pg: Playground) -> None:
    await pg.reply_to(run(pg, "Ada", "parley set", setting="eagerness", value="eager", where=int(Level.GUILD)))
    await pg.reply_to(run(pg, "Ada", "parley set", setting="judge", value="on"))
    card = await card_of(pg)
    assert line_of(card, "Eagerness: ") == "eager · from this server"
    assert line_of(card, "Judge: ") == "**on** · set here"
    assert line_of(card, "When it answers: ") == "follow · default"
    assert "Not set: persona, language, tools" in words_of(card)
    assert "allowed channels" not in words_of(card)  # which is of the server only
    assert "allowed channels" in words_of(await card_of(pg, where=int(Level.GUILD)))


async def test_a_choice_is_made_in_a_form_where_what_stands_is_chosen(pg: Playground, settings: GuildSettings) -> None:
    clicked = pick(pg, "Ada", await card_of(pg), "Change", "Eagerness")
    options = (await pg.form_of(clicked))["components"][0]["component"]["options"]
    assert [option["label"] for option in options] == ["Inherit (balanced · default)", "quiet", "balanced", "eager"]
    assert [option["default"] for option in options] == [True, False, False, False]
    card = await pg.reply_to(await fill(pg, clicked, {"For": "quiet"}))
    assert line_of(card, "Eagerness: ") == "**quiet** · set here"
    assert card.content == "Eagerness, for this channel: quiet. This applies from the next message on."
    clicked = pick(pg, "Ada", card, "Change", "Judge")
    card = await pg.reply_to(await fill(pg, clicked, {"For": "on"}))
    clicked = pick(pg, "Ada", card, "Change", "Judge")
    options = (await pg.form_of(clicked))["components"][0]["component"]["options"]
    assert [option["label"] for option in options if option["default"]] == ["on"]
    card = await pg.reply_to(await fill(pg, clicked, {"For": "Inherit"}))
    assert line_of(card, "Judge: ") == "off · default"
    assert own(settings, pg).chosen == {"eagerness": "quiet"}


async def test_a_text_is_written_in_a_form_that_is_filled_with_what_stands(
    pg: Playground, settings: GuildSettings
) -> None:
    clicked = pick(pg, "Ada", await card_of(pg), "Change", "Persona")
    card = await pg.reply_to(await fill(pg, clicked, {"For": "A pirate.\n@everyone"}))
    assert own(settings, pg).persona == "A pirate.\n@everyone"
    clicked = pick(pg, "Ada", card, "Change", "Persona")
    field = (await pg.form_of(clicked))["components"][0]["component"]
    assert (field["value"], field["max_length"]) == ("A pirate.\n@everyone", 2_000)
    await pg.reply_to(await fill(pg, clicked, {"For": ""}))
    assert own(settings, pg).persona is None


async def test_roles_are_picked_in_discords_own_menu(pg: Playground, settings: GuildSettings) -> None:
    helpers, gone = pg.add_role("Helpers"), pg.add_role("Gone")
    page = await pg.reply_to(pick(pg, "Ada", await card_of(pg), "Change", "Blocked roles"))
    page = await pg.reply_to(pick(pg, "Ada", page, "Pick roles", "Helpers", "Gone"))
    assert own(settings, pg).blocked_roles == frozenset({helpers, gone})
    pg.delete_role(gone)
    page = await pg.reply_to(click(pg, "Ada", page, "All settings"))
    page = await pg.reply_to(pick(pg, "Ada", page, "Change", "Blocked roles"))
    assert page.components[0]["components"][0]["default_values"] == [{"id": str(helpers), "type": "role"}]
    page = await pg.reply_to(pick(pg, "Ada", page, "Pick roles"))
    assert own(settings, pg).blocked_roles == frozenset({gone})  # which opens nothing that was closed
    await pg.reply_to(click(pg, "Ada", page, "Inherit"))
    assert own(settings, pg).blocked_roles is None


async def test_a_list_of_more_than_25_has_pages(pg: Playground, settings: GuildSettings) -> None:
    roles = [pg.add_role(f"Role {number}") for number in range(30)]
    listed = " ".join(map(str, roles))
    await pg.reply_to(run(pg, "Ada", "parley set", setting="allowed_roles", value=listed))
    page = await pg.reply_to(pick(pg, "Ada", await card_of(pg), "Change", "Allowed roles"))
    assert len(page.components[0]["components"][0]["default_values"]) == 25
    page = await pg.reply_to(click(pg, "Ada", page, "Next 25"))
    page = await pg.reply_to(pick(pg, "Ada", page, "Pick roles", "Role 29"))  # and no longer 25 to 28
    assert own(settings, pg).allowed_roles == frozenset({*roles[:25], roles[29]})
    page = await pg.reply_to(click(pg, "Ada", page, "◀"))
    page = await pg.reply_to(pick(pg, "Ada", page, "Pick roles", *(f"Role {number}" for number in range(24))))
    assert own(settings, pg).allowed_roles == frozenset({*roles[:24], roles[29]})
    assert "Add more ▶" in labels_of(page)


async def test_a_new_setting_appears_by_itself(pg: Playground, monkeypatch: pytest.MonkeyPatch) -> None:
    about = About("Mood", "How it feels", HOW)

    class MoodySettings(PlaceSettings):
        mood: Annotated[Literal["sunny", "gloomy"] | None, about] = None

    monkeypatch.setitem(ABOUT, "mood", about)
    monkeypatch.setitem(PlaceSettings.model_fields, "mood", MoodySettings.model_fields["mood"])
    monkeypatch.setattr(PlaceSettings, "mood", None, raising=False)
    monkeypatch.setattr(
        PlaceSettings,
        "changed",
        lambda self, _level, values: MoodySettings(**{**self.model_dump(), **values}),
    )
    clicked = pick(pg, "Ada", await card_of(pg), "Change", "Mood")
    card = await pg.reply_to(await fill(pg, clicked, {"For": "gloomy"}))
    assert line_of(card, "Mood: ") == "**gloomy** · set here"
    assert line_of(await pg.reply_to(run(pg, "Ada", "parley show")), "Mood: ") == "gloomy · from this channel"


async def test_everything_is_inherited_again_once_that_is_confirmed(pg: Playground, settings: GuildSettings) -> None:
    await pg.reply_to(run(pg, "Ada", "parley set", setting="judge", value="on"))
    sure = await pg.reply_to(click(pg, "Ada", await card_of(pg), "Inherit everything"))
    assert own(settings, pg).judge is True
    card = await pg.reply_to(click(pg, "Ada", sure, "Inherit everything"))
    assert card.content == "All settings of this channel are inherited again. This applies from the next message on."
    assert own(settings, pg).chosen == {}


async def test_it_goes_from_the_channel_to_the_server(pg: Playground, settings: GuildSettings) -> None:
    card = await pg.reply_to(pick(pg, "Ada", await card_of(pg), "For", "For this server"))
    await pg.reply_to(await fill(pg, pick(pg, "Ada", card, "Change", "Threads"), {"For": "join"}))
    assert settings.own(pg.guild_id, pg.guild_id, Level.GUILD).settings.threads == "join"


async def test_who_manages_a_channel_sets_that_and_not_the_server(pg: Playground) -> None:
    assert words_of(await card_of(pg, "Ben")) == NOT_THE_CHANNELS
    assert words_of(await card_of(pg, "Ben", where=int(Level.GUILD))) == NOT_THE_SERVERS
    pg.allow(pg.channel("general"), "manage_channels", member=pg.person("Ben"))
    card = await card_of(pg, "Ben")
    [place] = card.components[1]["components"]
    assert [option["label"] for option in place["options"]] == ["For this channel, #general"]
    assert words_of(await card_of(pg, "Ben", where=int(Level.GUILD))) == NOT_THE_SERVERS
    pg.add_role("Managers", "manage_guild", members=[pg.person("Ben")])
    assert labels_of(await card_of(pg, "Ben", where=int(Level.GUILD)))


async def test_a_permission_that_is_taken_away_counts_for_an_open_card_and_form(
    pg: Playground, settings: GuildSettings
) -> None:
    ben = pg.person("Ben")
    pg.allow(pg.channel("general"), "manage_channels", member=ben)
    card = await card_of(pg, "Ben")
    form = pick(pg, "Ben", card, "Change", "Persona")
    await pg.form_of(form)
    pg.deny(pg.channel("general"), "manage_channels", member=ben)
    assert (await pg.reply_to(await fill(pg, form, {"For": "A pirate."}))).content == NOT_THE_CHANNELS
    assert (await pg.reply_to(pick(pg, "Ben", card, "Change", "Judge"))).content == NOT_THE_CHANNELS
    assert own(settings, pg).chosen == {}


async def test_the_last_of_two_wins_and_both_are_told(pg: Playground, settings: GuildSettings) -> None:
    ada, ben = pg.person("Ada"), pg.person("Ben")
    for channel in ("general", "random"):
        pg.allow(pg.channel(channel), "manage_channels", member=ben)
    adas = await card_of(pg, "Ada")
    await pg.reply_to(run(pg, "Ben", "parley set", setting="judge", value="on", channel="random"))  # is none of hers
    form = pick(pg, "Ada", adas, "Change", "Eagerness")
    await pg.form_of(form)
    await pg.reply_to(
        await fill(pg, pick(pg, "Ben", await card_of(pg, "Ben"), "Change", "Eagerness"), {"For": "eager"})
    )
    adas = await shown_anew(pg, adas, "Ada", f"<@{ben}> changed Eagerness for this channel a moment ago.")
    assert line_of(adas, "Eagerness: ") == "**eager** · set here"
    card = await pg.reply_to(await fill(pg, form, {"For": "quiet"}))
    assert f"Before you, <@{ben}> had changed Eagerness <t:" in card.content
    assert own(settings, pg).eagerness == "quiet"
    assert f"<@{ada}>" not in card.content
    assert len([request for request in pg.requests if request.method == "PATCH"]) == 1  # and none for that in #random


async def test_a_card_of_a_place_that_is_gone_or_moved_says_so(pg: Playground) -> None:
    category, other = pg.add_category("Help"), pg.add_category("Other")
    for where, said in ((other, ELSEWHERE), (None, GONE)):
        pg.move_channel(pg.channel("general"), category)
        card = await card_of(pg, where=int(Level.CATEGORY))
        assert "Help" in words_of(card)
        pg.move_channel(pg.channel("general"), where)
        if where is None:
            pg.delete_channel(category)
        assert (await pg.reply_to(pick(pg, "Ada", card, "Change", "Judge"))).content == said


async def test_a_card_of_a_deleted_channel_is_let_go_without_a_fault(pg: Playground, bot: Commanded) -> None:
    hall = pg.add_channel("hall")
    await card_of(pg, channel="hall")
    pg.add_role("Managers", "manage_guild", members=[pg.person("Chloe")])
    pg.delete_channel(hall)
    with capture_logs() as logs:
        await pg.reply_to(run(pg, "Chloe", "parley set", setting="judge", value="on", where=int(Level.GUILD)))
        await asyncio.gather(*bot.clicks._cards._tasks)
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("card_not_shown_anew", "debug")]
    assert len(bot.clicks._cards) == 0


async def forged(pg: Playground, bot: Bot, what: str) -> tuple[int, str]:
    """A message of the bot's, seen by all, with a button whose custom_id is made up; and that."""
    view = discord.ui.View()
    custom_id = f"{PREFIX}{what.format(pg.channel('general'))}"
    view.add_item(discord.ui.Button(label="Forged", custom_id=custom_id))
    view.stop()
    sent = await bot.text_channel(pg.channel("general")).send("A card", view=view)
    return sent.id, custom_id


async def test_somebody_elses_click_sets_nothing(pg: Playground, bot: Bot, settings: GuildSettings) -> None:
    await pg.reply_to(run(pg, "Ada", "parley set", setting="judge", value="on"))
    sent, custom_id = await forged(pg, bot, "3:{}:1:reset_all_surely")
    assert (await pg.reply_to(pg.click(sent, pg.person("Ben"), custom_id))).content == NOT_THE_CHANNELS
    assert own(settings, pg).judge is True


@pytest.mark.parametrize(
    "what",
    ["", "x:y:z", "9:1:0:overview", "3:{}:0:nothing", "3:{}:0:reset:token", "3:{}:0:page:judge:1", "3:{}:0:save:judge"],
)
async def test_a_forged_click_sets_nothing(pg: Playground, bot: Bot, settings: GuildSettings, what: str) -> None:
    sent, custom_id = await forged(pg, bot, what)
    answered = await pg.reply_to(pg.click(sent, pg.person("Ada"), custom_id))
    assert answered.content == UNKNOWN
    assert settings.revision(pg.guild_id) == 0


async def test_a_model_that_was_taken_from_the_list_is_named(pg: Playground, models: FakeModels) -> None:
    clicked = pick(pg, "Ada", await card_of(pg), "Change", "Model")
    await pg.reply_to(await fill(pg, clicked, {"For": "test:small"}))
    models.names = ["test:large"]
    said = "“test:small” can no longer be chosen, so the default answers: test:large."
    assert said in words_of(await card_of(pg))
    assert said in words_of(await pg.reply_to(run(pg, "Ben", "parley show")))


async def test_of_more_models_than_a_menu_holds_one_is_written(
    pg: Playground, settings: GuildSettings, models: FakeModels
) -> None:
    models.names = [f"test:{number}-{'m' * 80}" for number in range(60)]
    form = pick(pg, "Ada", await card_of(pg), "Change", "Model")
    await pg.form_of(form)
    refused = (await pg.reply_to(await fill(pg, form, {"For": "test:none"}))).content
    assert refused.startswith("“test:none” is not among my models: use test:0-")
    assert refused.endswith(" or another.\nYou wrote:\ntest:none")
    form = pick(pg, "Ada", await card_of(pg), "Change", "Model")
    await pg.reply_to(await fill(pg, form, {"For": models.names[-1]}))
    assert own(settings, pg).model == models.names[-1]


async def test_what_cannot_be_read_of_a_whole_server_is_told_on_its_card_and_goes_by_it(
    pg: Playground, settings: GuildSettings
) -> None:
    settings.restore(pg.guild_id, "damaged")
    card = await card_of(pg, where=int(Level.GUILD))
    assert "Set in a form that I cannot read, and kept until it is set again or reset: settings." in words_of(card)
    sure = await pg.reply_to(click(pg, "Ada", card, "Inherit everything"))
    await pg.reply_to(click(pg, "Ada", sure, "Inherit everything"))
    assert settings.in_channel(pg.guild_id, pg.channel("general")).silenced is None
