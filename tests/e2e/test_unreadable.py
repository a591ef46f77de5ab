"""Discord, or what stands in its place, sends what has another form than it should: one line, and nothing is lost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

import service
from cluster.keeper import Keeper
from health import Health
from service import Ending, _connect, _first_shard
from tests.support.scene import PATIENCE_SECONDS, Scene, make_bot

EVENTS = [("MESSAGE_CREATE", b"[]"), ("MESSAGE_UPDATE", b'{"id":"1"}'), ("GUILD_CREATE", b"{}")]
LOGIN, GATEWAY = r"/users/@me$", r"/gateway/bot$"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """discord.py waits up to some seconds before it connects again; here it does not."""
    monkeypatch.setattr("discord.backoff.ExponentialBackoff.delay", lambda _backoff: 0.0)


async def test_an_event_that_cannot_be_read_is_left_out(scene: Scene) -> None:
    [session] = scene.pg._gateway.sessions.values()
    for name, body in EVENTS:
        session.push(name, body)
        await scene.ask("Ada", "are you there?")
    told = [(entry["name"], entry["level"]) for entry in scene.journal.find("event_unreadable")]
    assert told == [(name, "warning") for name, _ in EVENTS]
    assert scene.pg._gateway.identified == 1
    assert not scene.journal.find("resumed")


@pytest.mark.parametrize("frame", [b"<html>", b"[]", b'{"op":10,"d":[]}', b'{"op":0,"t":[],"d":{}}'])
async def test_what_is_no_event_costs_the_connection_and_the_session_goes_on(scene: Scene, frame: bytes) -> None:
    [session] = scene.pg._gateway.sessions.values()
    assert session.connection
    connection = session.connection
    connection.send(frame)
    question = scene.mention("Ada", "are you there?")
    await scene.answer_to(question)
    assert connection not in scene.pg._gateway.connections
    assert scene.pg._gateway.identified == 1
    assert len(scene.decisions[question.id]) == 1


async def test_a_beginning_that_cannot_be_read_is_asked_for_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = scene.pg._gateway
    ready, given = gateway._ready, list[Any]()

    def broken_at_first(*about: Any) -> dict[str, Any]:
        given.append(ready(*about))
        begun = {name: given[-1][name] for name in ("session_id", "resume_gateway_url")}
        return begun if len(given) == 1 else given[-1]

    monkeypatch.setattr(gateway, "_ready", broken_at_first)
    connected = scene.bot.wait_for("connect", timeout=PATIENCE_SECONDS)
    scene.pg.invalidate(resumable=False)
    await connected
    assert len(given) == 2
    await scene.ask("Ada", "are you there?")


@pytest.mark.parametrize("path", [LOGIN, GATEWAY])
async def test_an_answer_at_the_start_that_cannot_be_read_is_one_line(stage: Scene, path: str) -> None:
    bot = make_bot(stage)
    stage.pg.faults.add("GET", path, status=200)
    assert await _connect(bot, stage.pg.token) is Ending.UNREACHABLE
    await bot.close()
    assert not [entry for entry in stage.journal.entries if entry["level"] == "error"]
    [told] = stage.journal.find("connection_failed")
    assert "has another form than Discord's" in told["detail"]


@pytest.mark.parametrize("path", [LOGIN, GATEWAY])
async def test_one_of_several_processes_asks_again(stage: Scene, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make_bot(stage)  # which is told where this Discord is
    monkeypatch.setattr(service, "MAX_RETRY_SECONDS", 0.0)
    stage.pg.faults.add("GET", path, status=200)
    expected: list[tuple[int, int]] = []

    async def first() -> None: ...

    keeper = SimpleNamespace(
        expects=lambda count, most, _bot_id: expected.append((count, most)),
        shards=SimpleNamespace(ids=[0]),
        first=first,
    )
    await _first_shard(cast(Keeper, keeper), stage.pg.token, Health())
    assert expected == [(1, 1)]
    [told] = stage.journal.find("discord_unreachable")
    assert "has another form than Discord's" in told["detail"]
