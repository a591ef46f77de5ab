"""Roles, categories and what they allow: with discord.py, as it sees them, and the permissions that they make."""

import discord
import pytest

from playground.errors import ApiError
from playground.server import Playground
from tests.playground.support import Api, Bot


async def test_roles_are_made_changed_and_deleted_before_the_bots_eyes(pg: Playground, bot: Bot) -> None:
    [guild] = bot.guilds
    helpers = pg.add_role("Helpers", "manage_channels", mentionable=True)
    made = await bot.event("guild_role_create")
    assert (made.id, made.name, made.permissions.manage_channels, made.mentionable) == (helpers, "Helpers", True, True)
    pg.change_role(helpers, "Aides", "manage_messages")
    await bot.event("guild_role_update")
    role = guild.get_role(helpers)
    assert role is not None
    assert (role.name, role.permissions.manage_channels, role.permissions.manage_messages) == ("Aides", False, True)
    assert [one.name for one in await guild.fetch_roles()] == ["@everyone", "Parley", "Aides"]
    pg.deny(pg.channel("help"), "view_channel", member=helpers)
    pg.delete_role(helpers)
    await bot.event("guild_role_delete")
    await bot.event("guild_channel_update", 2)
    assert guild.get_role(helpers) is None
    assert bot.text_channel(pg.channel("help")).overwrites == {}
    for own in (pg.guild_id, pg.bot_role_id):
        with pytest.raises(ApiError, match="Invalid Role"):
            pg.delete_role(own)


async def test_who_has_a_role_comes_with_messages_and_interactions_only(pg: Playground, bot: Bot) -> None:
    seen = []

    @bot.tree.command(description="Who am I")
    async def whoami(interaction: discord.Interaction, who: discord.Member, what: discord.Role) -> None:
        assert isinstance(interaction.user, discord.Member)
        seen.append((interaction.user.roles[-1].name, who.roles[-1].name, what.name, what.id))
        await interaction.response.send_message("ok")

    await bot.tree.sync()
    general, ada, ben = pg.channel("general"), pg.person("Ada"), pg.person("Ben")
    helpers = pg.add_role("Helpers", members=[ben])
    pg.post(general, ben, "hello")
    message = await bot.event("message")
    assert [role.name for role in message.author.roles] == ["@everyone", "Helpers"]
    options = {"who": str(ben), "what": str(helpers)}
    await pg.reply_to(pg.command(general, ada, "whoami", options))
    pg.take_role(ben, helpers)
    pg.give_role(ada, helpers)
    await pg.reply_to(pg.command(general, ada, "whoami", options))
    assert seen == [("@everyone", "Helpers", "Helpers", helpers), ("Helpers", "@everyone", "Helpers", helpers)]
    assert bot.all("member_update") == []
    pg.give_role(pg.bot_id, helpers)
    assert (await bot.event("member_update")).id == pg.bot_id


def test_permissions_come_of_roles_and_of_channels() -> None:
    pg = Playground()
    general, ben, chloe = pg.channel("general"), pg.person("Ben"), pg.person("Chloe")
    channel = pg.world.channel(general)

    def may(user: int, *names: str) -> bool:
        return pg.world.may(channel, user, *names)

    managers, muted = pg.add_role("Managers", "manage_guild", members=[ben]), pg.add_role("Muted", members=[chloe])
    assert (may(ben, "manage_guild"), may(chloe, "manage_guild"), may(ben, "manage_channels")) == (True, False, False)
    pg.deny(general, "send_messages", member=pg.guild_id)
    pg.allow(general, "send_messages", member=managers)
    pg.deny(general, "send_messages", "add_reactions", member=muted)
    assert (may(ben, "send_messages"), may(chloe, "send_messages"), may(chloe, "add_reactions")) == (True, False, False)
    pg.give_role(chloe, managers)  # what one role allows, another does not deny
    assert (may(chloe, "send_messages"), may(chloe, "add_reactions")) == (True, False)
    pg.deny(general, "send_messages", member=chloe)  # but the member's own does
    assert not may(chloe, "send_messages")
    pg.give_role(chloe, pg.add_role("Admins", "administrator"))
    assert may(chloe, "send_messages", "manage_channels", "manage_guild")
    pg.change_role(pg.guild_id, "@everyone")
    assert not may(ben, "view_channel")


async def test_a_mentioned_role_pings_who_has_it_if_it_may_be_mentioned(pg: Playground, api: Api) -> None:
    general, ben = pg.channel("general"), pg.person("Ben")
    helpers = pg.add_role("Helpers", members=[ben])
    text = f"<@&{helpers}> help"
    assert pg.post(general, pg.person("Ada"), text).pinged == {ben}  # she may mention everyone
    pg.deny(general, "mention_everyone")
    _, quiet = await api.send(general, content=text)
    pg.world.change_role(helpers, mentionable=True)
    _, loud = await api.send(general, content=text)
    assert (quiet["mention_roles"], loud["mention_roles"]) == ([], [str(helpers)])


async def test_channels_stand_in_categories_and_move(pg: Playground, bot: Bot) -> None:
    [guild] = bot.guilds
    support, projects = pg.add_category("Support"), pg.add_category("Projects")
    pg.deny(support, "send_messages", member=pg.person("Ben"))
    desk = pg.add_channel("desk", category=support)
    await bot.event("guild_channel_create", 3)
    category = guild.get_channel(support)
    assert isinstance(category, discord.CategoryChannel)
    channel = bot.text_channel(desk)
    assert (channel.category, category.text_channels) == (category, [channel])
    assert channel.permissions_synced
    pg.deny(support, "view_channel", member=pg.guild_id)  # what is synced follows
    pg.move_channel(desk, projects)
    await bot.event("guild_channel_update", 4)
    assert channel.category_id == projects
    assert channel.overwrites_for(guild.default_role).view_channel is False
    pg.deny(projects, "add_reactions")  # it differs by now, and stays
    pg.delete_channel(projects)
    await bot.event("guild_channel_delete")
    await bot.event("guild_channel_update", 6)
    assert channel.category_id is None
    assert guild.get_channel(projects) is None
    assert not channel.permissions_synced
    assert {one.id for one in await guild.fetch_channels()} >= {support, desk}
    with pytest.raises(ApiError, match="Invalid Form Body"):
        pg.move_channel(desk, pg.channel("general"))
    with pytest.raises(discord.Forbidden):
        await channel.send("The bot does not see it.")


async def test_a_role_that_opens_a_channel_to_the_bot_tells_it_of_the_threads_there(pg: Playground, bot: Bot) -> None:
    general = pg.channel("general")
    pg.deny(general, "view_channel", member=pg.guild_id)
    thread = pg.open_thread(general, pg.person("Ada"), "inside")
    key = pg.add_role("Key")
    pg.allow(general, "view_channel", member=key)
    assert bot.guilds[0].get_thread(thread) is None
    pg.give_role(pg.bot_id, key)
    await bot.event("thread_join")
    assert bot.guilds[0].get_thread(thread) is not None
