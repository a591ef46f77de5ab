"""commands/privacy_commands.py: what people can have done with what is kept of them, over a loopback Discord."""

from __future__ import annotations

import asyncio
import io
import json
import zipfile

import aiohttp
import pytest
from structlog.testing import capture_logs

from commands import answers, privacy_commands
from playground.model import Message
from playground.server import Playground
from tests.commands.support import FakePrivacy, answer, use

PRIVACY_COMMANDS = ("forget", "optout", "optin", "export")


async def download(reply: Message) -> bytes:
    async with aiohttp.ClientSession() as http, http.get(reply.attachments[0]["url"]) as response:
        return await response.read()


async def test_forget_concerns_the_person_everywhere(pg: Playground, privacy: FakePrivacy) -> None:
    used = use(pg, "forget")
    assert (await pg.reply_to(used)).content == privacy_commands.FORGOTTEN
    assert privacy.done == [("forget_person", pg.person("Ben"), used.id)]


async def test_forget_everything_concerns_the_channel_and_needs_its_managers(
    pg: Playground, privacy: FakePrivacy
) -> None:
    assert (await answer(pg, "forget", everything=True)).content == privacy_commands.NOT_A_MANAGER
    assert privacy.done == []
    pg.allow(pg.channel("general"), "manage_channels", member=pg.person("Ben"))
    used = use(pg, "forget", everything=True)
    assert (await pg.reply_to(used)).content == privacy_commands.CHANNEL_FORGOTTEN
    assert privacy.done == [("forget_channel", pg.channel("general"), used.id)]


async def test_privacy_says_what_the_settings_come_to_and_where_all_of_it_stands(pg: Playground) -> None:
    text = (await answer(pg, "privacy")).content
    assert r"- **Who receives it**: gpt\_5 \*of\* OpenAI" in text
    assert "/forget" in text
    assert text.endswith("<https://parley.example/privacy>")


async def test_opting_out_and_in_says_what_is_so_already(pg: Playground) -> None:
    await answer(pg, "optout", "Ada")  # which is nobody else's choice
    texts = [(await answer(pg, name)).content for name in ("optin", "optout", "optout", "optin", "optin")]
    assert texts == [
        privacy_commands.IN_ALREADY,
        privacy_commands.OPTED_OUT,
        privacy_commands.OUT_ALREADY,
        privacy_commands.OPTED_IN,
        privacy_commands.IN_ALREADY,
    ]


async def test_opting_out_again_forgets_again_for_the_first_time_may_have_failed(
    pg: Playground, privacy: FakePrivacy
) -> None:
    privacy.error = OSError("no space left")
    assert (await answer(pg, "optout")).content == answers.INCOMPLETE
    privacy.error = None
    await answer(pg, "optout")
    assert [done[0] for done in privacy.done] == ["opt_out", "opt_out"]


async def test_what_is_kept_comes_as_a_file(pg: Playground, privacy: FakePrivacy) -> None:
    privacy.kept = json.dumps([{"text": "naïve 🐈"}], ensure_ascii=False).encode()
    reply = await answer(pg, "export")
    assert (reply.content, reply.attachments[0]["filename"]) == (privacy_commands.EXPORTED, "messages.json")
    assert await download(reply) == privacy.kept


async def test_a_large_file_comes_zipped_and_what_is_too_large_for_discord_is_said_to_be(
    pg: Playground, privacy: FakePrivacy, monkeypatch: pytest.MonkeyPatch
) -> None:
    privacy.kept = json.dumps(["chatter"] * 150_000).encode()
    reply = await answer(pg, "export")
    assert reply.attachments[0]["filename"] == "messages.json.zip"
    with zipfile.ZipFile(io.BytesIO(await download(reply))) as archive:
        assert archive.namelist() == ["messages.json"]
        assert archive.read("messages.json") == privacy.kept
    monkeypatch.setattr(privacy_commands, "_zipped", lambda _name, content: content)
    privacy.kept = bytes(11_000_000)
    reply = await answer(pg, "export")
    assert (reply.content, reply.attachments) == (privacy_commands.TOO_LARGE, ())


async def test_what_waits_for_a_part_of_the_bot_is_said_to_be_under_way(pg: Playground, privacy: FakePrivacy) -> None:
    privacy.is_everywhere = False
    texts = [(await answer(pg, name)).content for name in ("forget", "optout", "optin")]
    assert texts == [privacy_commands.UNDER_WAY] * 3
    assert (await answer(pg, "export")).content == f"{privacy_commands.EXPORTED}{privacy_commands.MAY_LACK}"
    privacy.kept = b""
    assert (await answer(pg, "export")).content == f"{privacy_commands.NOTHING_KEPT}{privacy_commands.MAY_LACK}"


@pytest.mark.parametrize("name", PRIVACY_COMMANDS)
async def test_discord_hears_at_once_that_it_takes_a_while_and_a_failing_disk_costs_one_sentence(
    pg: Playground, privacy: FakePrivacy, name: str
) -> None:
    privacy.error = OSError("no space left")
    privacy.out = {pg.person("Ben")}
    privacy.gate.clear()
    used = use(pg, name)
    await pg.wait_for(lambda: used.callback is not None)
    assert used.reply is None
    with capture_logs() as entries:
        privacy.gate.set()
        assert (await pg.reply_to(used)).content == answers.INCOMPLETE
    (entry,) = entries
    assert (entry["event"], entry["log_level"], entry["command"]) == ("privacy_failed", "error", name)
    assert (entry["guild"], entry["channel"], entry["user"]) == (pg.guild_id, pg.channel("general"), pg.person("Ben"))
    assert entry["detail"] == "no space left"


@pytest.mark.parametrize(("method", "path", "failures"), [("POST", "/callback$", 2), ("PATCH", "/@original$", 1)])
async def test_it_is_done_also_where_discord_takes_no_answer(
    pg: Playground, privacy: FakePrivacy, method: str, path: str, failures: int
) -> None:
    pg.faults.add(method, path, status=403, times=9)
    with capture_logs() as entries:
        use(pg, "forget")
        async with asyncio.timeout(10):
            while len(entries) < failures:  # noqa: ASYNC110 - no event of the playground tells of it
                await asyncio.sleep(0)
    assert len(privacy.done) == 1
    assert [(e["event"], e["log_level"]) for e in entries] == [("interaction_failed", "warning")] * failures
