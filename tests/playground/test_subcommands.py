"""Subcommands and their groups, and who may use a command: with discord.py, and Discord's rules by raw requests."""

from typing import Any

import discord
import pytest
from discord import app_commands

from playground import options
from playground.errors import ApiError, Form
from playground.interactions import Interaction
from playground.server import Playground
from tests.playground.support import Api, Bot


class Offers(app_commands.Group):
    """/offers on, /offers for who, /offers quiet from hour: as discord.py registers them."""

    quiet = app_commands.Group(name="quiet", description="The quiet hours")

    @app_commands.command(description="Switch them on")
    async def on(self, interaction: discord.Interaction) -> None:
        await interaction.response.send_message("on", ephemeral=True)

    @app_commands.command(name="for", description="Say for whom")
    async def for_whom(self, interaction: discord.Interaction, who: discord.Member, loud: bool = False) -> None:
        await interaction.response.send_message(f"for {who.display_name} {loud}")

    @quiet.command(name="from", description="From when on")
    async def quiet_from(self, interaction: discord.Interaction, hour: int) -> None:
        await interaction.response.send_message(f"quiet from {hour}")


@pytest.fixture
async def offers(bot: Bot) -> app_commands.Group:
    group = Offers(name="offers", description="Offers")
    bot.tree.add_command(group)
    await bot.tree.sync()
    return group


@pytest.mark.usefixtures("offers")
async def test_a_subcommand_is_used(pg: Playground) -> None:
    ben = str(pg.person("Ben"))
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({"on": {}}, "on", "offers on"),
        ({"for": {"who": ben}}, "for Ben False", "offers for"),
        ({"for": {"who": ben, "loud": True}}, "for Ben True", "offers for"),
        ({"quiet": {"from": {"hour": 22}}}, "quiet from 22", "offers quiet from"),
    ]
    for chosen, answer, shown in cases:
        reply = await pg.reply_to(pg.command(pg.channel("general"), pg.person("Ada"), "offers", chosen))
        assert reply.content == answer
        assert reply.interaction
        assert (reply.interaction["type"], reply.interaction["name"]) == (2, shown)


@pytest.mark.usefixtures("offers")
async def test_what_is_not_exactly_one_subcommand_with_its_options_is_refused(pg: Playground) -> None:
    odd: list[dict[str, Any]] = [{}, {"from": {}}, {"from": {"hour": "22"}}, {"to": {}}]
    wrong: list[dict[str, Any]] = [
        {},
        {"on": {}, "for": {}},
        {"off": {}},
        *({"on": value} for value in (True, {"who": "1"})),
        *({"for": value} for value in ({}, {"loud": True}, {"who": "1"})),
        *({"quiet": value} for value in odd),
    ]
    for chosen in wrong:
        with pytest.raises(ApiError):
            pg.command(pg.channel("general"), pg.person("Ada"), "offers", chosen)
    assert pg.interactions.recent() == []


def part(kind: int, name: str = "x", *inside: Any, **more: Any) -> dict[str, Any]:
    return {"type": kind, "name": name, "description": "x", "options": list(inside)} | more


def wrong(*inside: Any) -> dict[str, Any]:
    """What a command with these options is refused for; empty where it is not."""
    form = Form()
    options.check(form, "0", part(1, "x", *inside))
    return form.error().errors or {}


def choices(count: int) -> list[dict[str, Any]]:
    return [{"name": str(number), "value": str(number)} for number in range(count)]


REFUSED: list[list[Any]] = [
    [part(1), part(3, "y")],
    [part(3), part(1, "y")],
    [part(2), part(3, "y")],
    *([part(2, "x", inside)] for inside in (part(2), part(3), part(1, "x", part(1)), part(1, "two words"))),
    *([part(1, "x", inside)] for inside in (part(1), part(2), "y", part(3, description=""))),
    [part(3, "x", part(3))],
    [part(1, "Upper")],
    [part(1), part(1)],
    [part(1), part(1, "y"), part(2)],
    [part(1, "x", part(3), part(4))],
    [part(3), part(3, "y", required=True)],
    [part(1, "x", part(3), part(3, "y", required=True))],
    [part(1, str(number)) for number in range(26)],
    [part(1, "x", *(part(3, str(number)) for number in range(26)))],
    [part(3, choices=choices(26))],
    [part(5, choices=[{"name": "yes", "value": True}])],
]
TAKEN: list[list[Any]] = [
    [],
    [part(1), part(1, "y")],
    [part(1), part(2, "y", part(1))],
    [part(2, "x", part(1, "x", part(3, required=True), part(4, "y")))],
    [part(1, "on", part(3)), part(1, "off", part(3))],
    [part(1, str(number)) for number in range(25)],
    [part(3, choices=choices(25))],
]


def test_options_that_discord_would_refuse_are_refused_and_others_taken() -> None:
    for inside in REFUSED:
        assert wrong(*inside)["0"]["options"], inside
    for inside in TAKEN:
        assert wrong(*inside) == {}, inside


async def test_a_mix_is_refused_in_discords_words(api: Api, pg: Playground) -> None:
    command = {"name": "x", "description": "x", "options": [part(1), part(3, "y")]}
    status, body = await api.call("PUT", f"/applications/{pg.bot_id}/commands", [command])
    [error] = body["errors"]["0"]["options"]["1"]["_errors"]
    assert (status, error["code"]) == (400, "APPLICATION_COMMAND_OPTIONS_TYPE_INVALID")
    assert pg.commands.all() == []


# Who may use a command


@pytest.fixture
async def restricted(bot: Bot) -> None:
    """/manage for those who manage the channel, /rule for administrators, /all for everybody."""

    @bot.tree.command(description="Manage")
    @app_commands.default_permissions(manage_channels=True)
    async def manage(interaction: discord.Interaction) -> None:
        await interaction.response.send_message("managed")

    @bot.tree.command(description="Rule")
    @app_commands.default_permissions(discord.Permissions.none())
    async def rule(interaction: discord.Interaction) -> None:
        await interaction.response.send_message("ruled")

    @bot.tree.command(name="all", description="All")
    async def everybody(interaction: discord.Interaction) -> None:
        await interaction.response.send_message("all")

    await bot.tree.sync()


def use(pg: Playground, person: str, name: str, channel: str = "general") -> Interaction:
    return pg.command(pg.channel(channel), pg.person(person), name)


@pytest.mark.usefixtures("restricted")
async def test_the_owner_may_use_every_command_others_those_they_have_the_permissions_for(pg: Playground) -> None:
    for name in ("manage", "rule", "all"):
        use(pg, "Ada", name)
    use(pg, "Ben", "all")
    for name in ("manage", "rule"):
        with pytest.raises(ApiError, match="Missing Permissions"):
            use(pg, "Ben", name)


@pytest.mark.usefixtures("restricted")
async def test_the_permissions_are_those_in_the_channel(pg: Playground) -> None:
    pg.allow(pg.channel("general"), "manage_channels", member=pg.person("Ben"))
    use(pg, "Ben", "manage")
    for name, channel in (("Ben", "help"), ("Chloe", "general")):
        with pytest.raises(ApiError, match="Missing Permissions"):
            use(pg, name, "manage", channel=channel)
    pg.allow(pg.channel("general"), "manage_channels", member=pg.guild_id)  # the id of the role @everyone
    use(pg, "Chloe", "manage")
    pg.deny(pg.channel("general"), "use_application_commands", member=pg.person("Ben"))
    with pytest.raises(ApiError, match="Missing Permissions"):
        use(pg, "Ben", "manage")
    made = pg.command(pg.dm(pg.person("Ben")), pg.person("Ben"), "manage")
    assert (await pg.reply_to(made)).content == "managed"


@pytest.mark.usefixtures("restricted")
async def test_the_needed_permissions_come_back_as_discord_writes_them(pg: Playground, bot: Bot) -> None:
    needed = {one["name"]: one["default_member_permissions"] for one in pg.commands.all()}
    assert needed == {"manage": "16", "rule": "0", "all": None}
    fetched = {one.name: one.default_member_permissions for one in await bot.tree.fetch_commands()}
    assert fetched == {
        "manage": discord.Permissions(manage_channels=True),
        "rule": discord.Permissions.none(),
        "all": None,
    }


async def test_malformed_permissions_are_refused(api: Api, pg: Playground) -> None:
    malformed: list[Any] = ["x", -1, [], "", 1.5]
    for needed in malformed:
        command = {"name": "x", "description": "x", "default_member_permissions": needed}
        status, body = await api.call("PUT", f"/applications/{pg.bot_id}/commands", [command])
        assert (status, list(body["errors"]["0"])) == (400, ["default_member_permissions"])


async def test_members_and_channels_among_the_options_bring_their_permissions(pg: Playground, bot: Bot) -> None:
    seen: list[Any] = []

    @bot.tree.command(description="Look")
    async def look(
        interaction: discord.Interaction, who: discord.Member, place: app_commands.AppCommandChannel
    ) -> None:
        seen.extend((interaction.permissions, interaction.app_permissions, who.resolved_permissions, place.permissions))
        await interaction.response.send_message("ok")

    await bot.tree.sync()
    general, ben = pg.channel("general"), pg.person("Ben")
    pg.allow(general, "manage_messages", member=pg.bot_id)
    pg.allow(general, "manage_channels", member=pg.person("Chloe"))
    pg.deny(pg.channel("help"), "send_messages", member=ben)
    given = {"who": str(pg.person("Chloe")), "place": str(pg.channel("help"))}
    await pg.reply_to(pg.command(general, ben, "look", given))
    person, app, other, place = seen
    assert (person.manage_channels, person.send_messages, person.administrator) == (False, True, False)
    assert (app.manage_messages, app.manage_channels) == (True, False)
    assert other.manage_channels
    assert (place.send_messages, place.view_channel) == (False, True)
