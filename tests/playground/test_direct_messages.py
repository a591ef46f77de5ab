"""Direct messages, and commands where the bot is not: in groups and on other servers."""

from typing import Any

import discord
import pytest

from playground.errors import ApiError
from playground.server import Playground
from tests.playground.support import Api, Bot

EVERYWHERE = {"name": "ask", "description": "Ask", "integration_types": [0, 1]}
HERE_ONLY = {"name": "here", "description": "Here", "contexts": [0]}


@pytest.fixture
def ada(pg: Playground) -> int:
    return pg.person("Ada")


async def test_a_blocked_bot_cannot_write_nor_one_without_a_common_server(
    pg: Playground, bot: Bot, api: Api, ada: int
) -> None:
    user = await bot.fetch_user(ada)
    pg.block(ada)
    with pytest.raises(discord.Forbidden) as refused:
        await user.send("psst")
    assert refused.value.code == 50007
    pg.block(ada, False)
    await user.send("psst")
    pg.remove_bot()
    assert await api.code("POST", f"/channels/{pg.dm(ada)}/messages", {"content": "x"}) == (403, 50278)
    pg.install(ada)
    assert (await api.call("POST", f"/channels/{pg.dm(ada)}/messages", {"content": "x"}))[0] == 200


async def test_in_direct_messages_nobody_manages_anything(pg: Playground, api: Api, ada: int) -> None:
    channel = pg.dm(ada)
    said = pg.post(channel, ada, "psst")
    assert await api.code("DELETE", f"/channels/{channel}/messages/{said.id}") == (400, 50003)
    assert await api.code("POST", f"/channels/{channel}/messages/{said.id}/threads", {"name": "x"}) == (400, 50024)
    assert (await api.call("PUT", f"/channels/{channel}/messages/pins/{said.id}"))[0] == 204
    with pytest.raises(ApiError, match="Missing Permissions"):
        pg.post(channel, pg.person("Ben"), "not mine")


async def test_commands_are_there_by_context_and_installation(pg: Playground, api: Api, ada: int) -> None:
    await api.call("PUT", f"/applications/{pg.bot_id}/commands", [EVERYWHERE, HERE_ONLY])
    ben, group, foreign = pg.person("Ben"), pg.group("friends", ada, pg.person("Ben")), pg.foreign_channel("lobby")
    pg.install(ada)
    general, direct = pg.channel("general"), pg.dm(ada)
    allowed = [
        (general, ada, "ask", {"0": str(pg.guild_id), "1": str(ada)}),
        (general, ben, "ask", {"0": str(pg.guild_id)}),
        (general, ada, "here", {"0": str(pg.guild_id)}),
        (direct, ada, "ask", {"0": "0", "1": str(ada)}),
        (group, ada, "ask", {"1": str(ada)}),
        (foreign, ada, "ask", {"1": str(ada)}),
    ]
    for channel, person, name, owners in allowed:
        assert pg.command(channel, person, name).owners == owners
    for channel, person, name in [
        (direct, ada, "here"),
        (group, ben, "ask"),
        (foreign, ben, "ask"),
        (foreign, ada, "here"),
    ]:
        with pytest.raises(ApiError, match="Unknown application command"):
            pg.command(channel, person, name)
    pg.remove_bot()
    assert pg.command(general, ada, "ask").owners == {"1": str(ada)}
    mistakes: list[dict[str, Any]] = [{"contexts": [3]}, {"contexts": []}, {"integration_types": ["x"]}]
    for wrong in mistakes:
        assert await api.code("PUT", f"/applications/{pg.bot_id}/commands", [EVERYWHERE | wrong]) == (400, 50035)


async def test_where_the_bot_is_not_only_its_answers_reach(pg: Playground, bot: Bot, api: Api, ada: int) -> None:
    seen: list[Any] = []

    @bot.tree.command(description="Ask")
    @discord.app_commands.allowed_installs(guilds=True, users=True)
    @discord.app_commands.allowed_contexts(guilds=True, dms=True, private_channels=True)
    async def ask(interaction: discord.Interaction) -> None:
        seen.append(interaction)
        await interaction.response.send_message("an answer", ephemeral=interaction.guild is not None)

    await bot.tree.sync()
    pg.install(ada)
    places = [pg.group("friends", ada, pg.person("Ben")), pg.foreign_channel("lobby"), pg.dm(ada)]
    for channel in places:
        pg.post(channel, ada, "hello")
        reply = await pg.reply_to(pg.command(channel, ada, "ask"))
        assert reply.content == "an answer"
    group, foreign = seen[:2]
    contexts = [(one.context.guild, one.context.dm_channel, one.context.private_channel) for one in seen]
    assert contexts == [(False, False, True), (True, False, False), (False, True, False)]
    assert ([one.id for one in group.channel.recipients], foreign.guild.me.id) == ([ada, pg.person("Ben")], pg.bot_id)
    assert (group.is_user_integration(), group.is_guild_integration()) == (True, False)
    assert not foreign.app_permissions.send_messages
    assert [one.id for one in bot.guilds] == [pg.guild_id]
    await bot.event("message", 2)
    assert [one.content for one in bot.all("message")] == ["hello", "an answer"]  # of the direct messages alone
    assert [len(pg.messages(channel)) for channel in places] == [2, 1, 2]
    for channel in places[:2]:
        assert await api.code("GET", f"/channels/{channel}") == (403, 50001)


async def test_answers_on_other_servers_are_private_without_the_permission_and_few(
    pg: Playground, api: Api, ada: int
) -> None:
    await api.call("PUT", f"/applications/{pg.bot_id}/commands", [EVERYWHERE])
    pg.install(ada)
    foreign = pg.foreign_channel("lobby")
    made = pg.command(foreign, ada, "ask")
    await api.call("POST", f"/interactions/{made.id}/{made.token}/callback", {"type": 4, "data": {"content": "x"}})
    path = f"/webhooks/{pg.bot_id}/{made.token}"
    answers = [await api.call("POST", path, {"content": "more"}) for _ in range(6)]
    assert [status for status, _ in answers] == [200] * 5 + [400]
    assert answers[-1][1]["code"] == 40094
    assert len(pg.messages(foreign)) == 6
    pg.deny(foreign, "use_external_apps", member=ada)
    made = pg.command(foreign, ada, "ask")
    await api.call("POST", f"/interactions/{made.id}/{made.token}/callback", {"type": 4, "data": {"content": "x"}})
    assert (await pg.reply_to(made)).flags == 64
