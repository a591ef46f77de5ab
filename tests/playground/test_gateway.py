"""The gateway's protocol, spoken by hand."""

import zlib

import aiohttp
import orjson
import pytest

from playground.limits import Limits
from playground.server import Playground
from tests.playground.support import Wire

BAD_FRAMES = [
    ('{"op": 77}', 4001),
    ('{"op": "hello"}', 4001),
    ("no json", 4002),
    ("[]", 4002),
    ('{"op": 2, "d": "%s"}' % ("x" * 5000), 4002),
    ('{"op": 2, "d": 3}', 4002),
    ('{"op": 3, "d": {}}', 4003),
    ('{"op": 2, "d": {"token": "wrong", "intents": 1}}', 4004),
    ('{"op": 6, "d": {"token": "wrong", "session_id": "x", "seq": 1}}', 4004),
    ('{"op": 6, "d": {"token": "playground", "session_id": "x", "seq": "one"}}', 4007),
    ('{"op": 2, "d": {"token": "playground", "intents": 1, "shard": [2, 2]}}', 4010),
    ('{"op": 2, "d": {"token": "playground", "intents": 1, "shard": "a"}}', 4010),
    ('{"op": 2, "d": {"token": "playground", "intents": -1}}', 4013),
    ('{"op": 2, "d": {"token": "playground"}}', 4013),
    ('{"op": 2, "d": {"token": "playground", "intents": 2}}', 4014),
]


@pytest.fixture
def wire(pg: Playground, http: aiohttp.ClientSession) -> Wire:
    return Wire(pg, http)


async def test_bad_frames_close_with_discords_codes(pg: Playground, http: aiohttp.ClientSession) -> None:
    for frame, code in BAD_FRAMES:
        async with Wire(pg, http) as wire:
            await wire.send_text(frame)
            assert await wire.close_code() == code, frame
    async with Wire(pg, http) as first, Wire(pg, http) as second:
        session_id = (await first.identify())["session_id"]
        await second.send(6, {"token": "playground", "session_id": session_id, "seq": 999})
        assert await second.close_code() == 4007
        await first.send(2, {"token": "playground", "intents": 1})
        assert await first.close_code() == 4005
    async with Playground(message_content=False) as blind, Wire(blind, http) as wire:
        await wire.send(2, {"token": "playground", "intents": 1 << 15})
        assert await wire.close_code() == 4014


async def test_the_121st_send_in_a_minute_closes_4008(http: aiohttp.ClientSession) -> None:
    now = 0.0
    async with Playground(limits=Limits.off(), clock=lambda: now) as pg, Wire(pg, http) as wire:
        for _ in range(120):
            await wire.send(1)
        for _ in range(120):
            assert (await wire.receive())["op"] == 11
        now = 60.0
        await wire.send(1)
        assert (await wire.receive())["op"] == 11
        now = 60.5
        for _ in range(120):
            await wire.send(1)
        assert await wire.close_code() == 4008


async def test_resume_replays_each_missed_event_once(pg: Playground, http: aiohttp.ClientSession) -> None:
    channel, ada = pg.channel("general"), pg.person("Ada")
    async with Wire(pg, http) as first:
        session_id = (await first.identify())["session_id"]
        pg.post(channel, ada, "seen")
        seen = await first.event("MESSAGE_CREATE")
        pg.cut()
    await pg.wait_for(lambda: not pg.connected)
    for text in ("missed 1", "missed 2"):
        pg.post(channel, ada, text)
    async with Wire(pg, http) as second:
        await second.send(6, {"token": "playground", "session_id": session_id, "seq": seen["s"]})
        frames = [await second.receive() for _ in range(3)]
    assert [(frame["s"] - seen["s"], frame["t"]) for frame in frames] == [
        (1, "MESSAGE_CREATE"),
        (2, "MESSAGE_CREATE"),
        (3, "RESUMED"),
    ]
    assert [frame["d"].get("content") for frame in frames] == ["missed 1", "missed 2", None]


async def test_an_unknown_session_is_invalid_and_may_identify_on_the_same_line(wire: Wire) -> None:
    async with wire:
        await wire.send(6, {"token": "playground", "session_id": "unknown", "seq": 3})
        frame = await wire.receive()
        assert (frame["op"], frame["d"]) == (9, False)
        assert (await wire.identify())["session_id"]


async def test_a_session_survives_a_restart_of_the_server(pg: Playground, http: aiohttp.ClientSession) -> None:
    async with Wire(pg, http) as wire:
        ready = await wire.identify(1 << 9)
        await pg.stop()
    address = pg.gateway_url
    pg.post(pg.channel("general"), pg.person("Ada"), "meanwhile")
    await pg.start()
    assert pg.gateway_url == address
    async with Wire(pg, http) as wire:
        await wire.send(6, {"token": "playground", "session_id": ready["session_id"], "seq": 1})
        assert [(await wire.receive())["t"] for _ in range(2)] == ["MESSAGE_CREATE", "RESUMED"]


async def test_a_client_that_closes_with_1000_gives_its_session_up_and_eight_others_are_kept(
    pg: Playground, http: aiohttp.ClientSession
) -> None:
    for code, kept in ((1000, 0), (1001, 0), *((4000, min(number, 8)) for number in range(1, 13))):
        async with Wire(pg, http) as wire:
            await wire.identify()
            await wire.close(code)
        await pg.wait_for(lambda: not pg.connected)
        assert len(pg.sessions) == kept


async def test_a_replay_that_reaches_too_far_back_is_refused(pg: Playground, http: aiohttp.ClientSession) -> None:
    async with Wire(pg, http) as wire:
        session_id = (await wire.identify(1 << 9))["session_id"]
        await wire.close(4000)
    await pg.wait_for(lambda: not pg.connected)
    for number in range(10_001):
        pg.typing(pg.channel("general"), pg.person("Ada"))
        pg.sessions[0].push("TYPING_START", b"%d" % number)
    async with Wire(pg, http) as wire:
        await wire.send(6, {"token": "playground", "session_id": session_id, "seq": 1})
        assert (await wire.receive())["op"] == 9


async def test_zlib_stream_is_one_stream_over_all_frames(pg: Playground, http: aiohttp.ClientSession) -> None:
    inflate = zlib.decompressobj()
    async with http.ws_connect(pg.gateway_url + "?v=10&encoding=json&compress=zlib-stream") as socket:
        await socket.send_json({"op": 2, "d": {"token": "playground", "intents": 1}})
        frames = []
        for _ in range(3):
            data = await socket.receive_bytes(timeout=5)
            assert data.endswith(b"\x00\x00\xff\xff")
            frames.append(orjson.loads(inflate.decompress(data)))
    assert [frame["t"] for frame in frames] == [None, "READY", "GUILD_CREATE"]


async def test_events_come_only_for_the_intents_asked_for(pg: Playground, wire: Wire) -> None:
    async with wire:
        await wire.identify(1 << 11)
        channel, ada = pg.channel("general"), pg.person("Ada")
        pg.react(pg.post(channel, ada, "hello"), ada, "👍")
        pg.post(pg.dm(ada), ada, "direct")
        pg.typing(channel, ada)
        assert (await wire.receive())["t"] == "TYPING_START"


async def test_a_guild_lives_on_one_shard_and_direct_messages_on_the_first(
    pg: Playground, http: aiohttp.ClientSession
) -> None:
    home = (pg.guild_id >> 22) % 3
    ada = pg.person("Ada")
    async with Wire(pg, http) as first, Wire(pg, http) as other:
        away = (home + 1) % 3
        await first.identify(shard=[home, 3])
        await other.identify(shard=[away, 3])
        assert (await first.receive())["t"] == "GUILD_CREATE"
        pg.post(pg.channel("general"), ada, "guild")
        pg.post(pg.dm(ada), ada, "direct")
        assert (await first.event("MESSAGE_CREATE"))["d"]["content"] == "guild"
        queued = [frame for session in pg.sessions for _, frame in session.events if b'"direct"' in frame]
        assert len(queued) == (0 in (home, away))


async def test_without_a_guild_nothing_comes_from_it(pg: Playground, wire: Wire) -> None:
    channel, ada = pg.channel("general"), pg.person("Ada")
    pg.remove_bot()
    async with wire:
        assert (await wire.identify())["guilds"] == []
        pg.post(channel, ada, "unseen")
        pg.add_channel("unseen")
        pg.post(pg.dm(ada), ada, "direct")
        assert (await wire.receive())["d"]["content"] == "direct"
        pg.invite_bot()
        assert (await wire.receive())["t"] == "GUILD_CREATE"
        pg.post(channel, ada, "seen")
        assert (await wire.receive())["d"]["content"] == "seen"


async def test_ready_tells_where_to_resume_and_what_the_application_may(pg: Playground, wire: Wire) -> None:
    async with wire:
        ready = await wire.identify()
        guild = (await wire.event("GUILD_CREATE"))["d"]
    assert (ready["resume_gateway_url"], ready["application"]["flags"]) == (pg.gateway_url, 1 << 19)
    [role] = [role for role in guild["roles"] if role["managed"]]
    assert role["tags"] == {"bot_id": str(pg.bot_id)}
    assert guild["members"][0]["roles"] == [str(pg.bot_role_id)]
    assert all(channel["last_message_id"] is None for channel in guild["channels"])
