"""What the doctor makes of answers that Discord gives when it is not well, or that are another's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from doctor.checks_discord import Application, check_application, check_guilds
from doctor.discord_rest import DiscordRest
from doctor.findings import Finding, State

Answer = Callable[[str], web.Response]
USER, APPLICATION = {"id": "5", "username": "Parley"}, {"id": "6", "name": "Parley", "flags": 1 << 18}


def json(body: Any, status: int = 200, **headers: str) -> web.Response:
    return web.json_response(body, status=status, headers=headers)


def html(status: int, **headers: str) -> web.Response:
    return web.Response(text="<html>", content_type="text/html", status=status, headers=headers)


@asynccontextmanager
async def discord_that(answers: Answer) -> AsyncIterator[DiscordRest]:
    async def handle(request: web.Request) -> web.Response:
        return answers(request.path)

    application = web.Application()
    application.router.add_get("/{path:.*}", handle)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with DiscordRest("a-token", f"http://127.0.0.1:{runner.addresses[0][1]}") as rest:
            yield rest
    finally:
        await runner.cleanup()


async def told(answers: Answer) -> list[Finding]:
    async with discord_that(answers) as rest:
        return (await check_application(rest))[0]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda: json({"retry_after": 3600}, 429), "HTTP 429: it asks to wait 3600 s"),
        (lambda: html(429, **{"Retry-After": "1800"}), "HTTP 429: it asks to wait 1800 s"),
        (lambda: html(502), "HTTP 502: Bad Gateway"),
        (lambda: json({"message": "Internal"}, 500), "HTTP 500: Internal"),
        (lambda: html(200), "what answers is not Discord"),
        (lambda: json([]), "what answers is not Discord"),
    ],
)
async def test_what_is_no_answer_is_named_by_what_it_is(answer: Callable[[], web.Response], says: str) -> None:
    first = (await told(lambda _: answer()))[0]
    assert (first.check, first.state) == ("token", State.FAULT)
    assert says in first.says


@pytest.mark.parametrize("wait", [-5, "soon", None, 0.01])
@pytest.mark.virtual_time
async def test_it_waits_as_discord_asks_and_never_not_at_all(wait: object) -> None:
    asked: list[str] = []

    def answers(path: str) -> web.Response:
        asked.append(path)
        return json({"retry_after": wait}, 429)

    assert "no answer within 10 s" in (await told(answers))[0].says
    assert 1 < len(asked) <= 101


async def test_an_application_without_flags_has_its_intent_off() -> None:
    bare = {name: value for name, value in APPLICATION.items() if name != "flags"}
    findings = await told(lambda path: json(USER if path == "/users/@me" else bare))
    assert [finding.check for finding in findings if finding.state is State.FAULT] == ["intents"]


def of_guilds(path: str, **member: object) -> web.Response:
    """Two servers with a channel each, in which the bot is such a member."""
    if path.endswith("/guilds"):
        return json([{"id": "100", "name": "Here"}, {"id": "200", "name": "There"}])
    if path.endswith("/roles"):
        return json([{"id": path.split("/")[2], "permissions": "0"}])
    if path.endswith("/channels"):
        return json([{"id": "7", "name": "general", "type": 0, "permission_overwrites": []}])
    return json({"roles": [], **member})


async def looked(answers: Answer) -> list[Finding]:
    async with discord_that(answers) as rest:
        return await check_guilds(
            rest, Application(6, "Parley", 5, "Parley", reads_content=True, site="https://discord.com")
        )


async def test_a_timeout_is_told_as_one_and_not_as_permissions_that_are_missing() -> None:
    _, timeout, permissions = await looked(
        lambda path: of_guilds(path, communication_disabled_until="2999-01-01T00:00:00+00:00")
    )
    assert (timeout.check, timeout.state) == ("timeout", State.FAULT)
    assert timeout.says == "The bot is timed out in Here, There: it cannot write there."
    assert permissions.state is State.OK
    over = await looked(lambda path: of_guilds(path, communication_disabled_until="2020-01-01T00:00:00+00:00"))
    assert [finding.check for finding in over if finding.state is State.FAULT] == ["permissions"]


async def test_of_servers_that_take_too_long_the_others_are_still_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doctor.checks_discord.LOOK_SECONDS", 0.3)

    def answers(path: str) -> web.Response:
        return json({"retry_after": 4}, 429) if path == "/guilds/200/roles" else of_guilds(path)

    servers, permissions = await looked(answers)
    assert servers.says == "It is in Here, There; the channels of 1 of them were not checked."
    assert permissions.says == "The bot lacks View Channels in #general (Here)."
