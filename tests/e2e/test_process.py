"""The real program: how it starts, what it says when it cannot, and how it ends."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import aiohttp
import pytest
from aiohttp.test_utils import unused_port

from playground.limits import Limits
from playground.server import Playground
from tests.support.process import PROGRAM, Program, command, finished, program
from tests.support.scene import Scene, recorded
from tests.support.stub_model import Reply, StubModel

pytestmark = pytest.mark.slow

SECRET = "sk-a-secret-that-nobody-may-see"
# What is wrong, and what the one sentence must name.
UNUSABLE: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "unknown provider": ({"MODEL": "nonesuch:x"}, ("MODEL", "nonesuch:x")),
    "key missing": ({"MODEL": "openai:gpt-5"}, ("MODEL", "OPENAI_API_KEY")),
    "bad number": ({"CONVERSATION_TIMEOUT_SECONDS": "soon"}, ("CONVERSATION_TIMEOUT_SECONDS", "soon", "120")),
    "shard beyond their number": ({"SHARD_COUNT": "4", "SHARD_IDS": "2-4"}, ("SHARD_IDS", "4", "SHARD_COUNT=4")),
    "bad secret": ({"REDIS_URL": SECRET}, ("REDIS_URL", "redis://")),
}


@pytest.mark.parametrize("name", UNUSABLE)
async def test_a_setting_that_cannot_work_ends_the_start_with_one_sentence(tmp_path: Path, name: str) -> None:
    wrong, named = UNUSABLE[name]
    code, ended = await finished(tmp_path, PLAYGROUND_PORT="0", DISCORD_TOKEN=SECRET, **wrong)
    assert code == 2
    (sentence,) = ended.other
    assert all(word in sentence for word in named)
    assert SECRET not in f"{sentence}{ended.log}{ended.out}"


async def test_where_no_more_files_can_be_opened_it_ends_with_one_sentence(tmp_path: Path) -> None:
    start = ["sh", "-c", f"ulimit -n 7; exec {sys.executable} {PROGRAM}"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PLAYGROUND_PORT": "0"}
    async with command(tmp_path, start, environment) as running:
        assert await running.ended() == 1
    (sentence,) = running.other
    assert "ulimit -n" in sentence


async def test_a_token_that_is_refused_ends_it_with_one_sentence(tmp_path: Path) -> None:
    async with Playground() as pg:
        code, ended = await finished(tmp_path, **_at(pg), DISCORD_TOKEN=SECRET)
    assert code == 2
    (sentence,) = ended.other
    assert "DISCORD_TOKEN" in sentence
    assert SECRET not in f"{sentence}{ended.log}{ended.out}"


async def test_a_discord_that_is_not_there_is_tried_again_until_the_end(tmp_path: Path) -> None:
    port = unused_port()
    nowhere = {
        "DISCORD_API_BASE": f"http://127.0.0.1:{port}/api/v10",
        "DISCORD_GATEWAY_URL": f"ws://127.0.0.1:{port}/gateway",
    }
    async with program(tmp_path, **nowhere, DISCORD_TOKEN=SECRET, PORT="0") as running:
        await running.logged("discord_unreachable")
        status, reason = await _health(running)
        assert (status, "gateway" in reason) == (503, True)
        running.terminate()
        assert await running.ended() == 0
    assert not running.other


@pytest.mark.parametrize("gateway", ["nobody listens", "refuses", "goes away"])
async def test_a_gateway_that_refuses_is_a_line_each_time_and_no_traceback(tmp_path: Path, gateway: str) -> None:
    async with Playground() as pg:
        refusing = pg.url.replace("http", "ws") if gateway == "refuses" else f"ws://127.0.0.1:{unused_port()}"
        at = _at(pg) if gateway == "goes away" else _at(pg) | {"DISCORD_GATEWAY_URL": f"{refusing}/nowhere"}
        async with program(tmp_path, **at, DISCORD_TOKEN=pg.token) as running:
            if gateway == "goes away":
                await running.logged("ready")
                await pg.stop()
            event = "Attempting a reconnect for shard ID 0" if gateway == "goes away" else "discord_unreachable"
            told = await running.logged(event)
            running.terminate()
            assert await running.ended() == 0
    assert told["level"] == "warning"
    assert not [line for line in running.log if "exception" in line or line["level"] == "error"]
    assert not running.other


async def test_without_a_token_it_opens_the_playground(tmp_path: Path) -> None:
    async with program(tmp_path, PLAYGROUND_PORT="0", PORT="0") as running:
        address = (await running.printed()).split()[1]
        assert address.startswith("http://127.0.0.1:")
        await running.logged("demo_model", level="warning")
        await running.logged("playground ready")
        assert await _health(running) == (200, "ok")
        async with aiohttp.ClientSession() as session, session.get(address) as page:
            assert (page.status, page.content_type) == (200, "text/html")
        running.terminate()
        assert await running.ended() == 0
    assert not running.other
    assert [line.split()[0] for line in running.out] == ["Open", "Console:"]


async def test_a_misspelt_token_is_named_and_is_no_service(tmp_path: Path) -> None:
    misspelt = {"DISCORD_TOKN": SECRET, "PLAYGROUND_PORT": "0", "PORT": "0"}
    async with program(tmp_path, **misspelt) as running:
        await running.logged(
            "unknown_setting", level="warning", variable="DISCORD_TOKN", likely_meaning="DISCORD_TOKEN"
        )
        running.terminate()
        assert await running.ended() == 0
    code, ended = await finished(tmp_path, **misspelt, RAILWAY_ENVIRONMENT_NAME="production")
    assert code == 2
    (sentence,) = ended.other
    assert all(word in sentence for word in ("DISCORD_TOKEN is not set", "DISCORD_TOKN "))
    assert not ended.out
    assert SECRET not in f"{sentence}{ended.log}{running.log}"


async def test_a_stop_midstream_lets_the_answer_be_finished(tmp_path: Path, stub: StubModel) -> None:
    gate = asyncio.Event()
    stub.replies.append(Reply("First words, and the rest.", gate=gate, chunk=12))
    async with Playground(limits=Limits.off()) as pg, recorded(pg) as journal:
        scene = Scene(pg, stub, journal, tmp_path)
        model = {"MODEL": "openai-chat:stub", "OPENAI_BASE_URL": stub.url, "OPENAI_API_KEY": SECRET}
        async with program(tmp_path, **_at(pg), **model, DISCORD_TOKEN=pg.token, PORT="0") as running:
            await scene.until(lambda: pg.connected)
            scene.mention("Ada", "hello")
            assert (await scene.streaming()).content == "First words,"
            running.terminate()
            await _refused_because_it_stops(scene, running)
            gate.set()
            assert await running.ended() == 0
        assert [message.content for message in scene.said()] == ["First words, and the rest."]
        assert SECRET not in str(running.log)
        assert not running.other


async def test_it_ends_well_with_its_counts_after_messages_that_it_left_alone(tmp_path: Path, stub: StubModel) -> None:
    async with Playground(limits=Limits.off()) as pg, recorded(pg) as journal:
        scene = Scene(pg, stub, journal, tmp_path)
        async with program(tmp_path, **_at(pg), DISCORD_TOKEN=pg.token, LOG_LEVEL="debug") as running:
            await scene.until(lambda: pg.connected)
            ignored = scene.say("Ada", "lovely weather today")
            await running.logged("decided", level="debug", message=ignored.id)
            running.terminate()
            assert await running.ended() == 0
        assert (await running.logged("metrics"))["not_started"] == {"no_trigger": 1}
        assert not running.other


async def _refused_because_it_stops(scene: Scene, running: Program) -> None:
    """Asks elsewhere until the bot says that it is shutting down: then it has taken notice of the signal."""
    while True:
        question = scene.mention("Ben", "hello", channel="help")
        if (await running.logged("decided", message=question.id))["reason"] == "shutting_down":
            return


def _at(pg: Playground) -> dict[str, str]:
    return {"DISCORD_API_BASE": pg.api_base, "DISCORD_GATEWAY_URL": pg.gateway_url}


async def _health(running: Program) -> tuple[int, str]:
    """What its health address says."""
    address = (await running.logged("listening"))["address"]
    async with aiohttp.ClientSession() as session, session.get(f"{address}/healthz") as response:
        return response.status, await response.text()
