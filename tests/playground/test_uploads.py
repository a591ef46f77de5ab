"""What is attached, by people and by the bot, and what other bots, webhooks and forwards bring."""

import base64
import io
import struct

import aiohttp
import discord
import pytest

from playground.errors import ApiError
from playground.model import File
from playground.server import Playground
from playground.uploads import attachment_object, named_type
from tests.playground.support import Api, Bot

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", 640, 480)
GIF = b"GIF89a" + struct.pack("<HH", 640, 480)
JPEG = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08" + struct.pack(">HH", 480, 640)
WEBP = b"RIFF\0\0\0\0WEBPVP8 " + bytes(10) + struct.pack("<HH", 640, 480)
LOSSLESS = b"RIFF\0\0\0\0WEBPVP8L" + bytes(5) + (639 | 479 << 14).to_bytes(4, "little")
EXTENDED = b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("a.txt", "é".encode(), "text/plain; charset=utf-8"),
        ("a.txt", "é".encode("utf-16"), "text/plain; charset=UTF-16"),
        ("A.LOG", "é".encode("latin-1"), "text/plain; charset=ISO-8859-1"),
        ("a.py", b"", "text/x-python; charset=utf-8"),
        ("a.pdf", b"%PDF", "application/pdf"),
        ("a.unheardof", b"x", ""),
        ("noending", b"x", ""),
    ],
)
def test_a_files_type_is_told_by_its_name_and_its_charset_by_what_it_holds(name: str, data: bytes, kind: str) -> None:
    assert named_type(File(name, "image/png", data)).content_type == kind
    assert ("content_type" in attachment_object(1, "", named_type(File(name, "", data)))) is bool(kind)


@pytest.mark.parametrize("data", [PNG, GIF, JPEG, WEBP, LOSSLESS, EXTENDED])
def test_pictures_have_a_size(data: bytes) -> None:
    told = attachment_object(1, "", File("a", "image/png", data))
    assert (told["width"], told["height"]) == (640, 480)
    cut = attachment_object(1, "", File("a", "image/png", data[:9]))
    assert "width" not in cut


async def test_files_of_the_bot_have_their_descriptions_and_their_limits(pg: Playground, bot: Bot) -> None:
    channel = bot.text_channel(pg.channel("general"))
    sent = await channel.send(file=discord.File(io.BytesIO(b"print()"), "answer.py", description="the answer"))
    [attachment] = sent.attachments
    assert attachment.content_type == "text/x-python; charset=utf-8"
    assert (attachment.filename, attachment.description, attachment.size) == ("answer.py", "the answer", 7)
    assert await attachment.read() == b"print()"
    for sizes in ([pg.world.upload_limit + 1], [9 << 20] * 3):
        files = [discord.File(io.BytesIO(bytes(size)), "big.bin") for size in sizes]
        with pytest.raises(discord.HTTPException) as refused:
            await channel.send(files=files)
        assert (refused.value.status, refused.value.code) == (413, 40005)
    pg.world.upload_limit = 20 << 20
    await channel.send(file=discord.File(io.BytesIO(bytes(11 << 20)), "big.bin"))


async def test_a_message_holds_ten_files(pg: Playground, api: Api) -> None:
    path, many = f"/channels/{pg.channel('general')}/messages", aiohttp.FormData()
    for number in range(11):
        many.add_field(f"files[{number}]", b"x", filename="x.txt")
    response = await api.response("POST", path, data=many)
    assert response.status == 400
    with pytest.raises(ApiError, match="attachments"):
        pg.post(pg.channel("general"), pg.person("Ada"), attachments=[File("x", "", b"")] * 11)
    with pytest.raises(ApiError, match="too large"):
        pg.post(pg.channel("general"), pg.person("Ada"), attachments=[File("x", "", bytes(10 << 20 | 1))])


async def test_a_voice_message_arrives_as_one(pg: Playground, bot: Bot) -> None:
    spoken = File(
        "voice-message.ogg", "audio/ogg", b"OggS", duration_secs=2.5, waveform=base64.b64encode(b"x").decode()
    )
    pg.post(pg.channel("general"), pg.person("Ada"), attachments=[spoken])
    heard = await bot.event("message")
    [attachment] = heard.attachments
    assert (heard.flags.voice, attachment.is_voice_message(), attachment.duration) == (True, True, 2.5)
    assert attachment.waveform == b"x"


async def test_other_bots_and_webhooks_speak(pg: Playground, bot: Bot) -> None:
    channel = pg.channel("general")
    ci, hook = pg.add_bot("CI"), pg.add_webhook("GitHub")
    pg.post(channel, ci, "Build 77 failed", embeds=[{"title": "log"}])
    pg.post(channel, hook, "Ada pushed")
    pg.post(pg.open_thread(channel, pg.person("Ada"), "talk"), hook, "in a thread")
    await bot.event("message", 4)
    built, pushed, _, threaded = bot.all("message")
    assert (built.author.name, built.author.bot, built.webhook_id) == ("CI", True, None)
    assert (pushed.author.name, pushed.author.id, pushed.webhook_id) == ("GitHub", hook, hook)
    assert (threaded.content, threaded.webhook_id) == ("in a thread", hook)
    assert [one.name for one in pg.world.people] == ["Ada", "Ben", "Chloe"]


async def test_a_forward_shows_the_message_with_its_files(pg: Playground, bot: Bot) -> None:
    original = pg.post(
        pg.channel("help"), pg.person("Ben"), "see", attachments=[File("a.txt", "text/plain", b"the plan")]
    )
    pg.post(pg.channel("general"), pg.person("Ada"), forward=original)
    await bot.event("message", 2)
    forward = bot.all("message")[1]
    [snapshot] = forward.message_snapshots
    assert (forward.content, snapshot.content) == ("", "see")
    assert forward.reference.channel_id == pg.channel("help")
    assert await snapshot.attachments[0].read() == b"the plan"
