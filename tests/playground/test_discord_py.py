"""An unmodified discord.py lives on the playground."""

import asyncio
from collections.abc import Callable
from functools import partial

import aiohttp
import discord
import pytest

from playground.errors import ApiError
from playground.limits import Limits
from playground.model import File
from playground.server import Playground
from tests.playground.support import INTENTS, Bot, connected, contents, point_discord_at


async def test_sees_guild_channels_its_own_role_and_members(pg: Playground, bot: Bot) -> None:
    [guild] = bot.guilds
    assert [channel.name for channel in guild.text_channels] == ["general", "help", "random"]
    assert guild.self_role is not None
    assert guild.self_role.id == pg.bot_role_id
    assert guild.me.guild_permissions.value & 309238025280 == 309238025280
    assert (await bot.application_info()).flags.gateway_message_content_limited
    channel, ben = bot.text_channel(pg.channel("general")), pg.person("Ben")
    pg.allow(channel.id, "manage_messages", member=ben)
    await bot.event("guild_channel_update")
    member = await channel.guild.fetch_member(ben)
    assert member.display_name == "Ben"
    allowed = channel.permissions_for(member)
    assert (allowed.manage_messages, allowed.send_polls, allowed.pin_messages) == (True, True, False)


async def test_receives_a_message_and_replies_and_edits(pg: Playground, bot: Bot) -> None:
    asked = pg.post(pg.channel("general"), pg.person("Ada"), f"  <@{pg.bot_id}> hello  ")
    message = await bot.event("message")
    assert (message.content, message.author.display_name) == (f"<@{pg.bot_id}> hello", "Ada")
    assert message.mentions == [bot.get_guild(pg.guild_id).me]  # type: ignore[union-attr]
    reply = await message.reply("hi")
    await reply.edit(content="hi Ada")
    posted = pg.messages(pg.channel("general"))[-1]
    assert (posted.content, posted.reference and posted.reference.message_id) == ("hi Ada", asked.id)
    assert posted.pinged == {pg.person("Ada")}
    own = await bot.event("message", 2)
    assert (own.author, own.nonce) == (bot.user, posted.nonce)
    pg.post(asked.channel_id, pg.person("Ben"), "second", reply_to=asked.id, ping=False)
    answer = await bot.event("message", 3)
    assert answer.reference.resolved.content == asked.content
    assert answer.mentions == []
    pg.delete(asked)
    await bot.event("raw_message_delete")
    fetched = await answer.channel.fetch_message(answer.id)
    assert isinstance(fetched.reference.resolved, discord.DeletedReferencedMessage)
    pg.duplicate(pg.messages(asked.channel_id)[-1])
    assert (await bot.event("message", 4)).id == answer.id


async def test_history_pages_in_every_direction(pg: Playground, bot: Bot) -> None:
    posted = [pg.post(pg.channel("help"), pg.person("Ada"), str(number)) for number in range(10)]
    channel = bot.text_channel(pg.channel("help"))
    middle = discord.Object(posted[5].id)
    assert contents([one async for one in channel.history(limit=3)]) == ["9", "8", "7"]
    assert contents([one async for one in channel.history(limit=2, before=middle)]) == ["4", "3"]
    assert contents([one async for one in channel.history(limit=2, after=middle, oldest_first=True)]) == ["6", "7"]
    assert sorted(contents([one async for one in channel.history(limit=3, around=middle)])) == ["4", "5", "6"]


async def test_typing_reactions_edits_and_deletes_travel_both_ways(pg: Playground, bot: Bot) -> None:
    channel, ada = pg.channel("general"), pg.person("Ada")
    message = pg.post(channel, ada, "one")
    pg.typing(channel, ada)
    assert (await bot.event("raw_typing")).user_id == ada
    pg.react(message, ada, "👍")
    reaction = await bot.event("raw_reaction_add")
    assert (reaction.emoji.name, reaction.message_author_id) == ("👍", ada)
    seen = await bot.event("message")
    await seen.add_reaction("🎉")
    assert [one.emoji for one in pg.messages(channel)[0].reactions] == ["👍", "🎉"]
    await bot.event("raw_reaction_add", 2)
    assert bot.user in [user async for user in discord.utils.get(seen.reactions, emoji="🎉").users()]
    await seen.remove_reaction("🎉", bot.user)
    pg.react(message, ada, "👍", add=False)
    removed = await bot.event("raw_reaction_remove", 2)
    # Discord tells neither whose message it was nor the member when a reaction is taken back.
    assert (removed.message_author_id, removed.member, removed.user_id) == (None, None, ada)
    assert pg.messages(channel)[0].reactions == ()
    pg.edit(message, "two")
    assert (await bot.event("raw_message_edit")).message.content == "two"
    async with seen.channel.typing():
        assert any(sent.path.endswith("/typing") and sent.status == 204 for sent in pg.requests)
    pg.world.delete_bulk(channel, [message.id])
    assert (await bot.event("raw_bulk_message_delete")).message_ids == {message.id}
    own = await seen.channel.send("mine")
    await own.delete()
    assert pg.messages(channel) == []


async def test_uploads_and_attachments_can_be_read_back(pg: Playground, bot: Bot) -> None:
    pg.post(pg.channel("general"), pg.person("Ada"), attachments=[File("a.png", "image/png", b"picture")])
    message = await bot.event("message")
    assert await message.attachments[0].read() == b"picture"
    sent = await message.channel.send("here", file=discord.File(__file__, "b.py"))
    assert b"read_back" in await sent.attachments[0].read()
    await sent.edit(content="gone", attachments=[])
    assert pg.messages(pg.channel("general"))[-1].attachments == ()


async def test_stickers_forwards_webhooks_and_other_bots_arrive_as_such(pg: Playground, bot: Bot) -> None:
    channel, ada = pg.channel("general"), pg.person("Ada")
    pg.post(channel, ada, stickers=["wave"])
    pg.post(channel, ada, snapshot="forwarded words")
    pg.post(channel, ada, "hook", webhook=True)
    pg.post(channel, ada, "beep", bot=True)
    pg.post(channel, ada, type=7)
    await bot.event("message", 5)
    sticker, forward, hook, other, joined = bot.all("message")
    assert sticker.stickers[0].name == "wave"
    assert forward.message_snapshots[0].content == "forwarded words"
    assert (hook.webhook_id, other.author.bot, joined.is_system()) == (ada, True, True)


async def test_direct_messages_both_ways(pg: Playground, bot: Bot) -> None:
    user = await bot.fetch_user(pg.person("Ada"))
    await user.send("psst")
    pg.post(pg.dm(user.id), user.id, "yes?")
    answer = await bot.event("message", 2)
    assert (answer.content, answer.guild) == ("yes?", None)
    assert contents(pg.messages(pg.dm(user.id))) == ["psst", "yes?"]


async def test_a_wrong_token_is_a_login_failure(pg: Playground, monkeypatch: pytest.MonkeyPatch) -> None:
    point_discord_at(pg, monkeypatch)
    async with Bot() as client:
        with pytest.raises(discord.LoginFailure):
            await client.start("wrong")


async def test_a_switched_off_intent_ends_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Playground(message_content=False) as pg, Bot() as client:
        point_discord_at(pg, monkeypatch)
        with pytest.raises(discord.PrivilegedIntentsRequired):
            await client.start(pg.token)


async def test_without_the_intent_only_what_concerns_the_bot_is_readable(pg: Playground) -> None:
    async with connected(pg, discord.Intents(guilds=True, guild_messages=True)) as client:
        channel, ada = pg.channel("general"), pg.person("Ada")
        pg.post(channel, ada, "secret", embeds=[{"title": "secret"}])
        pg.post(channel, ada, f"<@{pg.bot_id}> open")
        own = await client.text_channel(channel).send("own")
        pg.post(channel, ada, "answer", reply_to=own.id)
        pg.post(channel, ada, "quiet answer", reply_to=own.id, ping=False)
        await client.event("message", 5)
        seen = client.all("message")
        assert contents(seen) == ["", f"<@{pg.bot_id}> open", "own", "answer", ""]
        assert seen[0].embeds == []
        pg.typing(channel, ada)
        pg.post(channel, ada, f"<@{pg.bot_id}> last")
        await client.event("message", 6)
        assert client.all("raw_typing") == []


async def test_resumes_and_misses_nothing(pg: Playground, bot: Bot) -> None:
    channel, ada = pg.channel("general"), pg.person("Ada")
    troubles: tuple[Callable[[], None], ...] = (
        pg.cut,
        pg.reconnect,
        pg.disconnect,
        partial(pg.invalidate, resumable=True),
    )
    [session] = pg.sessions
    for number, trouble in enumerate(troubles, start=1):
        before = session.connection
        trouble()
        pg.post(channel, ada, f"meanwhile {number}")
        await bot.event("resumed", number)
        assert pg.sessions == [session]
        assert session.connection not in (None, before)
        pg.post(channel, ada, f"after {number}")
        await bot.event("message", 2 * number)
    said = [f"{when} {number}" for number in range(1, 5) for when in ("meanwhile", "after")]
    assert contents(bot.all("message")) == said
    pg.invalidate(resumable=False)
    await pg.wait_for(lambda: pg.sessions and pg.sessions[0].id != session.id)
    await bot.event("ready", 2)
    pg.post(channel, ada, "again")
    assert (await bot.event("message", 9)).content == "again"


async def test_two_instances_of_one_bot_both_hear(pg: Playground, bot: Bot) -> None:
    async with connected(pg) as other:
        pg.post(pg.channel("general"), pg.person("Ada"), "hello")
        assert (await bot.event("message")).id == (await other.event("message")).id


async def test_an_auto_sharded_client_gets_the_guild_on_one_shard(
    pg: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    point_discord_at(pg, monkeypatch)
    ready, heard = asyncio.Event(), asyncio.Queue[str]()

    class Sharded(discord.AutoShardedClient):
        async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None: ...

        async def on_ready(self) -> None:
            ready.set()

        async def on_message(self, message: discord.Message) -> None:
            await heard.put(message.content)

    async with Sharded(intents=INTENTS, shard_count=2, guild_ready_timeout=0.01) as client:
        task = asyncio.create_task(client.start(pg.token))
        await asyncio.wait_for(ready.wait(), 5)
        pg.post(pg.channel("general"), pg.person("Ada"), "once")
        pg.post(pg.channel("general"), pg.person("Ada"), "twice")
        assert [await heard.get(), await heard.get()] == ["once", "twice"]
        assert len(pg.sessions) == 2
        await client.close()
        await task


@pytest.mark.usefixtures("impatient")
async def test_a_500_after_the_effect_is_retried_and_posted_once(pg: Playground, bot: Bot) -> None:
    fault = pg.faults.add("POST", "/messages$", status=500, after_effect=True)
    channel = bot.text_channel(pg.channel("general"))
    message = await channel.send("only once", nonce="question-1")
    assert fault.hits == 1
    assert [one.id for one in pg.messages(channel.id)] == [message.id]
    assert [sent.status for sent in pg.requests if sent.path.endswith("/messages")] == [500, 200]


async def test_rate_limits_delay_but_do_not_lose() -> None:
    async with Playground(limits=Limits().scaled(0.02)) as pg, connected(pg) as client:
        channel = client.text_channel(pg.channel("general"))
        await asyncio.gather(*(channel.send(str(number)) for number in range(8)))
        assert sorted(contents(pg.messages(channel.id))) == [str(number) for number in range(8)]
        pg.faults.add("POST", "/messages$", status=429, retry_after=0.01)
        await channel.send("in the end")
        assert contents(pg.messages(channel.id))[-1] == "in the end"


async def test_an_answer_can_be_held_back_and_a_line_cut(pg: Playground, bot: Bot) -> None:
    go = asyncio.Event()
    pg.faults.add("POST", "/messages$", delay_event=go, after_effect=True)
    channel = bot.text_channel(pg.channel("general"))
    sending = asyncio.create_task(channel.send("held"))
    await pg.wait_for(lambda: pg.messages(channel.id))
    assert not sending.done()
    go.set()
    assert (await sending).content == "held"
    pg.faults.add("PATCH", "/messages/", drop=True)
    with pytest.raises(aiohttp.ClientError):
        await sending.result().edit(content="never")
    assert contents(pg.messages(channel.id)) == ["held"]


async def test_denied_permissions_reach_the_client_and_bind_it(pg: Playground, bot: Bot) -> None:
    pg.deny(pg.channel("general"), "send_messages")
    await bot.event("guild_channel_update")
    channel = bot.text_channel(pg.channel("general"))
    assert not channel.permissions_for(channel.guild.me).send_messages
    with pytest.raises(discord.Forbidden) as refused:
        await channel.send("hello")
    assert refused.value.code == 50013
    pg.deny(channel.id, "view_channel")
    pg.post(channel.id, pg.person("Ada"), "hidden")
    pg.allow(channel.id, "view_channel", "send_messages")
    pg.post(channel.id, pg.person("Ada"), "seen")
    assert (await bot.event("message")).content == "seen"


async def test_being_removed_from_the_guild_and_let_in_again(pg: Playground, bot: Bot) -> None:
    @bot.tree.command(description="Hello")
    async def hello(interaction: discord.Interaction) -> None:
        await interaction.response.send_message("hello")

    await bot.tree.sync()
    channel = bot.text_channel(pg.channel("general"))
    pg.remove_bot()
    assert (await bot.event("guild_remove")).id == pg.guild_id
    assert not bot.guilds
    with pytest.raises(discord.Forbidden, match="Missing Access"):
        await channel.send("still here?")
    with pytest.raises(discord.Forbidden):
        await channel.guild.fetch_member(pg.person("Ben"))
    with pytest.raises(ApiError, match="Missing Access"):
        pg.command(channel.id, pg.person("Ada"), "hello")
    pg.post(channel.id, pg.person("Ada"), "in private")
    pg.invite_bot()
    guild = await bot.event("guild_join")
    assert [one.name for one in guild.text_channels] == ["general", "help", "random"]
    pg.post(channel.id, pg.person("Ada"), "hello again")
    assert (await bot.event("message")).content == "hello again"
