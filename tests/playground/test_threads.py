"""Threads and forum posts, by raw requests and by an unmodified discord.py."""

from typing import Any

import discord
import orjson
import pytest

from playground.errors import ApiError
from playground.model import ANNOUNCEMENT, FORUM, STAGE, VOICE, Message
from playground.server import Playground
from tests.playground.support import Api, Bot, connected, contents


@pytest.fixture
def general(pg: Playground) -> int:
    return pg.channel("general")


@pytest.fixture
def starter(pg: Playground, general: int) -> Message:
    return pg.post(general, pg.person("Ada"), "ramen?")


async def opened(api: Api, channel_id: int, **body: Any) -> int:
    status, thread = await api.call("POST", f"/channels/{channel_id}/threads", {"name": "talk", "type": 11} | body)
    assert status == 200
    return int(thread["id"])


async def test_a_thread_begun_at_a_message_shares_its_id_and_begins_with_it(
    pg: Playground, bot: Bot, general: int
) -> None:
    starter = pg.post(general, pg.person("Ada"), "ramen?")
    thread = await (await bot.event("message")).create_thread(name="Ramen")
    assert (thread.id, thread.parent_id, thread.owner_id, thread.member_count) == (starter.id, general, pg.bot_id, 1)
    first = await bot.event("message", 2)
    assert (first.type, first.content) == (discord.MessageType.thread_starter_message, "")
    assert (first.reference.resolved.content, first.mentions) == ("ramen?", [])
    fetched = await first.channel.parent.fetch_message(starter.id)
    assert (fetched.thread.name, fetched.flags.has_thread) == ("Ramen", True)
    answer = await thread.send("Ichiran")
    pg.post(thread.id, pg.person("Ben"), "yes", reply_to=answer.id)
    heard = await bot.event("message", 4)
    assert (heard.content, heard.channel, heard.reference.resolved.content) == ("yes", thread, "Ichiran")
    assert contents(pg.messages(thread.id)) == ["", "Ichiran", "yes"]
    assert contents([one async for one in thread.history(oldest_first=True)])[1:] == ["Ichiran", "yes"]
    await answer.add_reaction("🍜")
    await answer.edit(content="Ippudo")
    assert (await thread.fetch_message(answer.id)).content == "Ippudo"


async def test_a_thread_without_a_message_is_announced_in_its_channel(pg: Playground, bot: Bot, general: int) -> None:
    thread = await bot.text_channel(general).create_thread(name="Plans", type=discord.ChannelType.public_thread)
    announced = await bot.event("message")
    assert (announced.type, announced.content) == (discord.MessageType.thread_created, "Plans")
    assert announced.reference.channel_id == thread.id
    assert pg.messages(thread.id) == []


async def test_what_is_active_is_there_from_the_start(pg: Playground, general: int) -> None:
    ada = pg.person("Ada")
    public = pg.open_thread(general, ada, "open")
    pg.open_thread(general, ada, "hidden", private=True)
    joined = pg.open_thread(general, ada, "with the bot", private=True, members=[pg.bot_id])
    archived = pg.open_thread(general, ada, "old")
    pg.change_thread(archived, archived=True)
    async with connected(pg) as bot:
        assert {one.id for one in bot.guilds[0].threads} == {public, joined}
        assert bot.guilds[0].get_thread(joined).me is not None  # type: ignore[union-attr]


async def test_a_message_unarchives_a_thread_but_no_locked_one(pg: Playground, bot: Bot, general: int) -> None:
    ben = pg.person("Ben")
    thread = pg.open_thread(general, ben, "talk")
    here = await bot.event("thread_create")
    said = await here.send("one")
    pg.change_thread(thread, archived=True)
    assert (await bot.event("raw_thread_update")).data["thread_metadata"]["archived"]
    for act in (said.edit(content="two"), said.add_reaction("👍"), here.add_user(discord.Object(ben)), here.leave()):
        with pytest.raises(discord.HTTPException) as refused:
            await act
        assert refused.value.code == 50083
    await said.delete()
    await here.send("awake")
    assert pg.world.channel(thread).thread.archived is False  # type: ignore[union-attr]
    assert [one.sent for one in [pg.world.channel(thread).thread] if one] == [2]
    pg.change_thread(thread, locked=True)
    pg.change_thread(thread, name="closed", archived=True)
    with pytest.raises(discord.HTTPException) as refused:
        await here.send("three")
    assert refused.value.code == 50083
    with pytest.raises(ApiError, match="archived"):
        pg.post(thread, ben, "me neither")
    pg.post(thread, pg.person("Ada"), "the owner of the guild may")
    with pytest.raises(discord.HTTPException) as refused:
        await here.send("four")
    assert refused.value.code == 160005


REFUSED = """
POST /channels/{general}/threads {"name":"","type":11} 400 50035
POST /channels/{general}/threads {"name":"x","type":11,"auto_archive_duration":7} 400 50035
POST /channels/{general}/threads {"name":"x","type":10} 400 50024
POST /channels/{news}/threads {"name":"x","type":11} 400 50024
POST /channels/{voice}/threads {"name":"x","type":11} 400 50024
POST /channels/{voice}/messages/{message}/threads {"name":"x"} 400 50024
POST /channels/{general}/messages/1/threads {"name":"x"} 404 10008
POST /channels/{general}/messages/{started}/threads {"name":"x"} 400 160004
POST /channels/{general}/messages/{system}/threads {"name":"x"} 400 50068
POST /channels/{forum}/messages {"content":"x"} 400 50008
POST /channels/{forum}/threads {"name":"x"} 400 50035
POST /channels/{forum}/threads {"name":"x","message":{"content":"x"}} 400 40067
POST /channels/{forum}/threads {"name":"x","message":{"content":"x"},"applied_tags":["1"]} 400 50035
POST /channels/{forum}/threads {"name":"x","message":{},"applied_tags":["{tag}"]} 400 50006
GET /channels/{private} {} 403 50001
POST /channels/{private}/messages {"content":"x"} 403 50001
PATCH /channels/{started} {"name":"x"} 403 50013
PATCH /channels/{started} {"locked":true} 403 50013
PATCH /channels/{general} {"name":"x"} 403 50013
DELETE /channels/{started} {} 403 50013
DELETE /channels/{general} {} 403 50013
DELETE /channels/{started}/thread-members/{ben} {} 403 50013
GET /channels/{started}/thread-members/{bot} {} 404 10007
GET /channels/{started}/thread-members {} 403 50001
GET /channels/{general}/thread-members/{ben} {} 400 50024
PUT /channels/{general}/thread-members/@me {} 400 50024
GET /guilds/1/threads/active {} 403 50001
GET /channels/{general}/threads/archived/private {} 403 50013
GET /channels/{general}/threads/archived/public?before=x {} 400 50035
"""


async def test_what_discord_refuses(api: Api, pg: Playground, starter: Message, general: int) -> None:
    ben = pg.person("Ben")
    forum = pg.add_channel("questions", type=FORUM, tags=["python"], needs_tag=True)
    voice = pg.add_channel("lounge", type=VOICE)
    known: dict[str, object] = {
        "general": general,
        "forum": forum,
        "tag": pg.world.channel(forum).tags[0]["id"],
        "news": pg.add_channel("news", type=ANNOUNCEMENT),
        "voice": voice,
        "message": pg.post(voice, ben, "hello").id,
        "started": pg.open_thread(general, ben, "talk", message=starter),
        "private": pg.open_thread(general, ben, "secret", private=True),
        "system": pg.post(general, ben, type=7).id,
        "ben": ben,
        "bot": pg.bot_id,
    }
    for line in REFUSED.strip().splitlines():
        method, path, given, status, code = line.split()
        for name, place in known.items():
            path, given = path.replace(f"{{{name}}}", str(place)), given.replace(f"{{{name}}}", str(place))
        answer = await api.code(method, path, orjson.loads(given))
        assert answer == (int(status), int(code)), line
    for permission, path, asked in [
        ("create_public_threads", f"/channels/{general}/threads", {"name": "x", "type": 11}),
        ("create_private_threads", f"/channels/{general}/threads", {"name": "x"}),
        ("send_messages_in_threads", f"/channels/{known['started']}/messages", {"content": "x"}),
    ]:
        pg.deny(general, permission)
        assert await api.code("POST", path, asked) == (403, 50013)
    pg.deny(general, "send_messages")
    pg.allow(general, "send_messages_in_threads")
    assert (await api.call("POST", f"/channels/{known['started']}/messages", {"content": "x"}))[0] == 200


async def test_so_many_threads_may_be_active(
    api: Api, pg: Playground, general: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("playground.threads.MAX_ACTIVE", 2)
    first, _ = await opened(api, general), await opened(api, general)
    body = {"name": "x", "type": 11}
    assert await api.code("POST", f"/channels/{general}/threads", body) == (400, 160006)
    pg.change_thread(first, archived=True)
    await opened(api, general)
    assert await api.code("PATCH", f"/channels/{first}", {"archived": False}) == (400, 160006)


async def test_the_owner_of_a_thread_renames_and_archives_it_and_who_may_write_wakes_it(
    api: Api, pg: Playground, general: int
) -> None:
    own = await opened(api, general)
    _, changed = await api.call("PATCH", f"/channels/{own}", {"name": "new", "archived": True})
    assert (changed["name"], changed["thread_metadata"]["archived"]) == ("new", True)
    assert await api.code("PATCH", f"/channels/{own}", {"name": "newer"}) == (400, 50083)
    other = pg.open_thread(general, pg.person("Ben"), "Ben's")
    pg.change_thread(other, archived=True)
    _, changed = await api.call("PATCH", f"/channels/{other}", {"archived": False})
    assert changed["thread_metadata"]["archived"] is False
    pg.change_thread(other, archived=True, locked=True)
    assert await api.code("PATCH", f"/channels/{other}", {"archived": False}) == (400, 160005)
    pg.allow(general, "manage_threads")
    assert (await api.call("PATCH", f"/channels/{other}", {"archived": False, "locked": False}))[0] == 200
    await api.call("PATCH", f"/channels/{other}", {"name": "ours"})
    assert [(one.type, one.content) for one in pg.messages(other)] == [(4, "ours")]
    assert (await api.call("DELETE", f"/channels/{other}"))[0] == 200
    with pytest.raises(ApiError, match="Unknown Channel"):
        pg.messages(other)


async def test_a_private_thread_is_there_for_its_members(pg: Playground, bot: Bot, general: int) -> None:
    ben = pg.person("Ben")
    thread = pg.open_thread(general, ben, "secret", private=True)
    pg.post(thread, ben, "nobody hears")
    with pytest.raises(ApiError, match="Missing Permissions"):
        pg.post(thread, pg.person("Chloe"), "let me in")
    pg.post(thread, ben, f"<@{pg.bot_id}> join us")
    heard = await bot.event("message")
    assert heard.content.endswith("join us")
    assert [one.id for one in bot.all("thread_join")] == [thread, thread]
    assert heard.channel.me is not None
    assert (await bot.event("message", 2)).type == discord.MessageType.recipient_add
    assert (await heard.channel.fetch_member(ben)).id == ben
    pg.leave_thread(thread, pg.bot_id, by=ben)
    await bot.event("thread_remove")
    pg.post(thread, ben, "gone?")
    pg.post(general, ben, "yes")
    assert (await bot.event("message", 3)).content == "yes"


async def test_joining_and_leaving(api: Api, pg: Playground, bot: Bot, general: int) -> None:
    thread = pg.open_thread(general, pg.person("Ben"), "talk")
    here = await bot.event("thread_create")
    assert here.me is None
    await here.join()
    await bot.event("thread_join")
    await here.add_user(discord.Object(pg.person("Chloe")))
    assert (await api.call("GET", f"/channels/{thread}/thread-members/@me"))[0] == 200
    await here.leave()
    await bot.event("thread_remove")
    assert [one.mentions for one in pg.messages(thread)] == [(pg.person("Chloe"),)]
    assert set(pg.world.channel(thread).thread.members) == {  # type: ignore[union-attr]
        pg.person("Ben"),
        pg.person("Chloe"),
    }


async def test_a_forum_post_is_a_thread_with_its_first_message_inside(pg: Playground, bot: Bot) -> None:
    forum_id = pg.add_channel("questions", type=FORUM, tags=["python", "rust"], needs_tag=True)
    pg.forum_post(forum_id, pg.person("Ada"), "Sorting", "how do I sort?", tags=["python"])
    thread = await bot.event("thread_create")
    first = await bot.event("message")
    assert ([tag.name for tag in thread.applied_tags], first.id, first.channel) == (["python"], thread.id, thread)
    assert (first.content, thread.parent.flags.require_tag) == ("how do I sort?", True)
    with pytest.raises(ApiError, match="tag is required"):
        pg.forum_post(forum_id, pg.person("Ada"), "Sorting", "how do I sort?")
    rust = thread.parent.available_tags[1]
    made = await thread.parent.create_thread(name="Mine", content="a post", applied_tags=[rust])
    assert (made.thread.id, made.message.id) == (made.message.id, made.thread.id)
    assert (await made.thread.fetch_message(made.thread.id)).content == "a post"


async def test_channels_of_every_kind_arrive_as_such(pg: Playground, bot: Bot) -> None:
    kinds = [discord.VoiceChannel, discord.StageChannel, discord.TextChannel]
    for number, (kind, given) in enumerate(zip(kinds, (VOICE, STAGE, ANNOUNCEMENT), strict=True), start=1):
        channel_id = pg.add_channel(f"kind-{given}", type=given)
        channel = await bot.event("guild_channel_create", number)
        assert isinstance(channel, kind)
        pg.post(channel_id, pg.person("Ada"), "hello")
        await (await bot.event("message", 2 * number - 1)).reply("hi")
        await bot.event("message", 2 * number)
    announced = pg.open_thread(channel_id, pg.person("Ada"), "news")
    assert (await bot.event("thread_create")).type == discord.ChannelType.news_thread
    assert pg.world.channel(announced).parent_id == channel_id


async def test_a_deleted_channel_takes_its_threads_with_it(pg: Playground, bot: Bot, general: int) -> None:
    alone, inside = pg.open_thread(general, pg.person("Ada"), "a"), pg.open_thread(general, pg.person("Ada"), "b")
    await bot.event("thread_create", 2)
    pg.delete_channel(alone)
    assert (await bot.event("raw_thread_delete")).thread_id == alone
    pg.delete_channel(general)
    await bot.event("guild_channel_delete")
    assert (await bot.event("raw_thread_delete", 2)).thread_id == inside
    with pytest.raises(discord.NotFound):
        await bot.fetch_channel(inside)


async def test_gaining_access_to_a_channel_brings_its_threads(pg: Playground, bot: Bot, general: int) -> None:
    pg.deny(general, "view_channel")
    thread = pg.open_thread(general, pg.person("Ada"), "talk")
    pg.allow(general, "view_channel")
    assert (await bot.event("thread_join")).id == thread
    assert bot.all("thread_create") == []


async def test_lists_of_threads(api: Api, pg: Playground, bot: Bot, general: int) -> None:
    ada = pg.person("Ada")
    threads = [pg.open_thread(general, ada, str(number)) for number in range(3)]
    private = pg.open_thread(general, ada, "private", private=True, members=[pg.bot_id])
    _, active = await api.call("GET", f"/guilds/{pg.guild_id}/threads/active")
    assert [one["name"] for one in active["threads"]] == ["0", "1", "2", "private"]
    assert [one["id"] for one in active["members"]] == [str(private)]
    for thread in (*threads, private):
        pg.change_thread(thread, archived=True)
    channel = bot.text_channel(general)
    assert [one.name async for one in channel.archived_threads(limit=None)] == ["2", "1", "0"]
    _, page = await api.call("GET", f"/channels/{general}/threads/archived/public?limit=2")
    assert ([one["name"] for one in page["threads"]], page["has_more"]) == (["2", "1"], True)
    joined = channel.archived_threads(private=True, joined=True)
    assert [one.name async for one in joined] == ["private"]
