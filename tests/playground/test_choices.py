"""Menus of people, roles and channels, forms that hold more than text, and autocomplete: with discord.py, and
Discord's rules by raw requests."""

import io
import struct
from typing import Any

import discord
import pytest
from discord import app_commands

from playground.errors import ApiError
from playground.interactions import Interaction
from playground.model import FORUM
from playground.server import Playground
from tests.playground.support import Api, Bot, contents
from tests.playground.test_interactions import answer, labelled, shown
from tests.support.controls import fill, pick, run, suggested

PICTURE = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 4, 3)  # as much of one as tells its size


class Menus(discord.ui.View):
    """A menu of each kind, which says what was chosen in it."""

    @discord.ui.select(cls=discord.ui.UserSelect, custom_id="users", max_values=2)
    async def users(self, interaction: discord.Interaction, menu: discord.ui.UserSelect[Any]) -> None:
        await say(interaction, [f"{type(one).__name__} {one.name}" for one in menu.values])

    @discord.ui.select(cls=discord.ui.RoleSelect, custom_id="roles", min_values=0, max_values=25)
    async def roles(self, interaction: discord.Interaction, menu: discord.ui.RoleSelect[Any]) -> None:
        await say(interaction, [f"{type(one).__name__} {one.name}" for one in menu.values])

    @discord.ui.select(cls=discord.ui.MentionableSelect, custom_id="both", max_values=2)
    async def both(self, interaction: discord.Interaction, menu: discord.ui.MentionableSelect[Any]) -> None:
        await say(interaction, [f"{type(one).__name__} {one.name}" for one in menu.values])

    @discord.ui.select(cls=discord.ui.ChannelSelect, custom_id="channels", channel_types=[discord.ChannelType.text])
    async def channels(self, interaction: discord.Interaction, menu: discord.ui.ChannelSelect[Any]) -> None:
        await say(interaction, [f"{type(one).__name__} {one.name}" for one in menu.values])


async def say(interaction: discord.Interaction, chosen: list[str]) -> None:
    await interaction.response.edit_message(content=", ".join(chosen) or "nothing")


async def test_people_roles_and_channels_are_chosen_in_menus(pg: Playground, bot: Bot) -> None:
    general, ada, ben = pg.channel("general"), pg.person("Ada"), pg.person("Ben")
    helpers, forum = pg.add_role("Helpers"), pg.add_channel("forum", type=FORUM)
    await bot.event("guild_role_create")
    asked = await bot.text_channel(general).send("who?", view=Menus())
    [card] = pg.messages(general)
    cases: list[tuple[str, list[str], str]] = [
        ("users", ["Ben", "Chloe"], "Member Ben, Member Chloe"),
        ("roles", ["Helpers", "@everyone"], "Role Helpers, Role @everyone"),
        ("roles", [], "nothing"),
        ("both", ["Helpers", "Ada"], "Member Ada, Role Helpers"),
        ("channels", ["help"], "AppCommandChannel help"),
    ]
    for menu, names, said in cases:
        assert (await pg.reply_to(pick(pg, "Ada", card, menu, *names))).content == said
    pg.deny(pg.channel("random"), "view_channel", member=ben)
    wrong: list[tuple[int, str, list[int]]] = [
        (ada, "users", []),
        (ada, "users", [ben, ben]),
        (ada, "users", [helpers]),
        (ada, "roles", [ben]),
        (ada, "both", [general]),
        (ada, "channels", [forum]),
        (ben, "channels", [pg.channel("random")]),
    ]
    for who, custom_id, values in wrong:
        with pytest.raises(ApiError):
            pg.click(asked.id, who, custom_id, [str(one) for one in values])


class Settings(discord.ui.Modal, title="Settings"):
    """A form with an input of each kind."""

    persona = discord.ui.Label[Any](
        text="Persona", component=discord.ui.TextInput(custom_id="persona", default="Kind.", required=False)
    )
    model = discord.ui.Label[Any](
        text="Model",
        component=discord.ui.Select(
            custom_id="model",
            required=False,
            options=[discord.SelectOption(label="a", default=True), discord.SelectOption(label="b")],
        ),
    )
    who = discord.ui.Label[Any](
        text="Who", component=discord.ui.RoleSelect(custom_id="who", max_values=2, required=True)
    )
    eager = discord.ui.Label[Any](
        text="Eager",
        component=discord.ui.RadioGroup(
            custom_id="eager",
            options=[discord.RadioGroupOption(label="More"), discord.RadioGroupOption(label="Less", default=True)],
        ),
    )
    switches = discord.ui.Label[Any](
        text="Switches",
        component=discord.ui.CheckboxGroup(
            custom_id="switches",
            required=False,
            min_values=0,
            options=[discord.CheckboxGroupOption(label=one, default=one == "tools") for one in ("judge", "tools")],
        ),
    )

    async def on_submit(self, interaction: discord.Interaction) -> None:
        parts: list[Any] = [one.component for one in self.walk_children() if isinstance(one, discord.ui.Label)]
        text, model, who, eager, switches = parts
        said = [text.value, model.values, [one.name for one in who.values], eager.value, switches.values]
        await interaction.response.send_message(repr(said), ephemeral=True)


async def test_a_form_holds_menus_radio_buttons_and_checkboxes(pg: Playground, bot: Bot) -> None:
    @bot.tree.command(description="Settings")
    async def settings(interaction: discord.Interaction) -> None:
        await interaction.response.send_modal(Settings())

    await bot.tree.sync()
    helpers, ada = str(pg.add_role("Helpers")), pg.person("Ada")
    made = run(pg, "Ada", "settings")
    kept = await pg.reply_to(await fill(pg, made, {"Who": ["Helpers"]}))
    assert kept.content == "['Kind.', ['a'], ['Helpers'], 'Less', ['tools']]"  # as it was shown
    made = run(pg, "Ada", "settings")
    everything = {"Persona": "", "Model": [], "Who": ["Helpers"], "Eager": "More", "Switches": ["judge", "tools"]}
    changed = await pg.reply_to(await fill(pg, made, everything))
    assert changed.content == "['', [], ['Helpers'], 'More', ['judge', 'tools']]"
    wrong: list[dict[str, Any]] = [
        {},
        {"who": helpers},
        {"who": [str(ada)]},
        *({"who": [helpers]} | more for more in ({"eager": None}, {"eager": "x"}, {"eager": ["More"]})),
        *({"who": [helpers]} | {"switches": values} for values in (["x"], "judge", [1])),
        {"who": [helpers], "model": ["a", "b"]},
    ]
    for values in wrong:
        with pytest.raises(ApiError):
            pg.submit(made, values)


COMMAND = [{"name": "ask", "description": "Ask"}]


@pytest.fixture
async def asked(api: Api, pg: Playground) -> Interaction:
    """A slash command that awaits its answer."""
    await api.call("PUT", f"/applications/{pg.bot_id}/commands", COMMAND)
    return pg.command(pg.channel("general"), pg.person("Ada"), "ask")


def group(kind: int, count: int, **more: Any) -> dict[str, Any]:
    options = [{"label": str(number), "value": str(number)} for number in range(count)]
    return {"type": kind, "custom_id": "x", "options": options} | more


async def test_a_checkbox_is_checked_or_not(api: Api, pg: Playground, asked: Interaction) -> None:
    box = {"type": 23, "custom_id": "on", "default": True}
    assert (await shown(api, asked, labelled(box)))[0] == 204
    for values, sent in (({}, True), ({"on": False}, False)):
        [part] = pg.submit(asked, values).data["components"]
        assert part["component"] == {"type": 23, "custom_id": "on", "value": sent}
    with pytest.raises(ApiError):
        pg.submit(asked, {"on": "yes"})


WRONG_IN_FORMS: list[tuple[dict[str, Any], str]] = [
    (group(21, 1), "options"),
    (group(21, 11), "options"),
    (group(22, 11), "options"),
    (group(22, 3, min_values=0), "min_values"),
    (group(22, 3, max_values=11), "max_values"),
    (group(22, 3, min_values=3, max_values=2), "min_values"),
    (group(21, 2, options=[{"label": "x" * 101, "value": "x"}, {"label": "y", "value": "y"}]), "options"),
    (group(21, 2, options=[{"label": one, "value": one, "default": True} for one in "xy"]), "options"),
    (group(3, 2, disabled=True), "disabled"),
    (group(3, 26), "options"),
    ({"type": 6, "custom_id": ""}, "custom_id"),
    ({"type": 23, "custom_id": "x" * 101}, "custom_id"),
    ({"type": 2, "custom_id": "x"}, "type"),
]
WRONG_MENUS: list[tuple[dict[str, Any], str]] = [
    (group(3, 2, max_values=3), "options"),
    (group(3, 2, min_values=2), "min_values"),
    ({"type": 6, "custom_id": "x", "default_values": [{"id": "1", "type": "user"}]}, "default_values"),
    ({"type": 6, "custom_id": "x", "default_values": [{"id": "x", "type": "role"}]}, "default_values"),
    ({"type": 7, "custom_id": "x", "default_values": [{"id": str(one), "type": "user"} for one in (1, 2)]}, "default"),
    ({"type": 5, "custom_id": "x", "channel_types": [0]}, "channel_types"),
    ({"type": 8, "custom_id": "x", "max_values": 26}, "max_values"),
    ({"type": 8, "custom_id": "x", "placeholder": "x" * 151}, "placeholder"),
    (group(21, 2), "type"),
]


async def test_what_discord_refuses_is_refused_at_its_place(api: Api, pg: Playground, asked: Interaction) -> None:
    for part, field in WRONG_IN_FORMS:
        status, body = await shown(api, asked, labelled(part))
        found = body["errors"]["data"]["components"]["0"]
        assert (status, body["code"]) == (400, 50035), part
        assert any(name.startswith(field) for name in found.get("component", found)), (part, found)
    for menu, field in WRONG_MENUS:
        row = {"type": 1, "components": [menu]}
        status, body = await api.send(pg.channel("general"), content="x", components=[row])
        assert (status, body["code"]) == (400, 50035), menu
        assert any(name.startswith(field) for name in body["errors"]["components"]["0"]["components"]["0"]), menu


async def test_options_are_completed_while_they_are_typed(pg: Playground, bot: Bot) -> None:
    seen: list[Any] = []
    parley = app_commands.Group(name="parley", description="Parley")
    rules = app_commands.Group(name="rules", description="Rules", parent=parley)

    @rules.command(name="set", description="Set one")
    async def set_rule(interaction: discord.Interaction, key: str, value: str, who: discord.Role | None = None) -> None:
        await interaction.response.send_message(f"{key} is {value} for {who}", ephemeral=True)

    @set_rule.autocomplete("value")
    async def values(interaction: discord.Interaction, typed: str) -> list[app_commands.Choice[str]]:
        seen.append((typed, interaction.namespace.key, interaction.permissions.manage_guild))
        return [app_commands.Choice(name=f"{typed} {number}", value=typed + str(number)) for number in range(25)]

    bot.tree.add_command(parley)
    await bot.tree.sync()
    general, ben = pg.channel("general"), pg.person("Ben")
    offered = await suggested(pg, "Ben", "parley rules set", "value", "gp", key="model")
    assert (len(offered), offered[1]) == (25, "gp 1")
    assert seen == [("gp", "model", False)]
    made = run(pg, "Ben", "parley rules set", key="model", value="gp1")
    assert (await pg.reply_to(made)).content == "model is gp1 for None"
    for focused, options in (("key", {"key": "x"}), ("value", {"key": "x"})):
        with pytest.raises(ApiError):
            pg.autocomplete(general, ben, "parley", {"rules": {"set": options}}, focused)


async def test_an_autocomplete_is_answered_with_choices_only(api: Api, pg: Playground) -> None:
    option = {"type": 4, "name": "count", "description": "x", "autocomplete": True, "max_value": 9}
    path = f"/applications/{pg.bot_id}/commands"
    command = {"name": "ask", "description": "Ask", "options": [option]}
    for wrong in ({"choices": [{"name": "1", "value": 1}]}, {"type": 6}):
        assert (await api.call("PUT", path, [command | {"options": [option | wrong]}]))[0] == 400
    await api.call("PUT", path, [command])
    general, ada = pg.channel("general"), pg.person("Ada")
    made = pg.autocomplete(general, ada, "ask", {"count": "1x"}, "count")
    assert made.data["options"] == [{"name": "count", "type": 4, "value": "1x", "focused": True}]
    one = {"name": "one", "value": 1}
    for kind, data in (
        (4, {"content": "x"}),
        (8, {"choices": [one] * 26}),
        (8, {"choices": [one | {"name": "x" * 101}]}),
        (8, {"choices": [one | {"value": "1"}]}),
    ):
        status, body = await answer(api, made, kind, data)
        assert (status, body["code"]) == (400, 50035)
    assert (await answer(api, made, 8, {"choices": [one]}))[0] == 204
    assert made.suggested == [one]
    used = pg.command(general, ada, "ask", {"count": 9})
    assert (await answer(api, used, 8, {"choices": [one]}))[0] == 400
    with pytest.raises(ApiError):
        pg.command(general, ada, "ask", {"count": 10})


async def test_a_picture_stands_in_a_private_card_and_goes_with_it(pg: Playground, bot: Bot) -> None:
    @bot.tree.command(description="Usage")
    async def usage(interaction: discord.Interaction) -> None:
        embed = discord.Embed(title="Usage").set_image(url="attachment://chart.png")
        file = discord.File(io.BytesIO(PICTURE), "chart.png")
        await interaction.response.send_message(embed=embed, file=file, ephemeral=True)

    await bot.tree.sync()
    card = await pg.reply_to(pg.command(pg.channel("general"), pg.person("Ben"), "usage"))
    [embed] = card.embeds
    assert (card.attachments, embed["image"]["width"], embed["image"]["height"]) == ((), 4, 3)
    assert embed["image"]["url"].startswith(pg.url)
    assert contents(pg.messages(card.channel_id)) == []
