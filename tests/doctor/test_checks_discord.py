"""What the doctor asks Discord: each fault is planted in a loopback Discord, found, and named with its fix."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from discord_io.permissions import INVITED, invite_link
from doctor.checks_discord import check_application, check_commands, check_guilds
from doctor.checks_shards import check_gateway
from doctor.discord_rest import DiscordRest
from doctor.findings import Finding, State, bounded, exit_code
from playground import permissions
from playground.limits import Limits
from playground.server import Playground
from tests.test_docs import ROOT

COMMAND = {"name": "why", "description": "Why it spoke", "options": [{"type": 3, "name": "of", "description": "Whom"}]}


async def diagnosis(pg: Playground, *, token: str = "", shard_count: int | None = None, **how: Any) -> list[Finding]:
    async with DiscordRest(token or pg.token, pg.api_base) as rest:
        findings, application = await check_application(rest)
        if application:
            findings += await bounded("gateway", check_gateway(rest, shard_count))
            findings += await bounded("servers", check_guilds(rest, application, **how))
            findings += await bounded("commands", check_commands(rest, application, []))
    return findings


def bad(findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.state is not State.OK]


def nothing(_pg: Playground) -> None:
    """All is well."""


def leave(pg: Playground) -> None:
    pg.remove_bot()


def mute(pg: Playground) -> None:
    pg.deny(pg.channel("help"), "send_messages")


def hide(pg: Playground) -> None:
    pg.deny(pg.channel("help"), "view_channel")


def read_only(pg: Playground) -> None:
    pg.deny(pg.channel("help"), "send_messages", "send_messages_in_threads", member=pg.guild_id)
    pg.deny(pg.channel("help"), "send_messages", "send_messages_in_threads")


def nowhere(pg: Playground) -> None:
    """Who has no role sees no channel, and the bot was let into none."""
    for name in ("general", "help", "random"):
        pg.deny(pg.channel(name), "view_channel", member=pg.guild_id)


def without_files(pg: Playground) -> None:
    pg.deny(pg.channel("help"), "attach_files")


def private(pg: Playground) -> None:
    pg.deny(pg.channel("help"), "view_channel", member=pg.guild_id)


def twelve(pg: Playground) -> None:
    for number in range(12):
        pg.deny(pg.add_channel(f"room-{number:02}"), "send_messages")


def no_starts(pg: Playground) -> None:
    pg._gateway.identified = 1_000


def few_starts(pg: Playground) -> None:
    """Fewer than a start of all shards takes."""
    pg._gateway.identified = 995


def another_ear(pg: Playground) -> None:
    pg.world.interactions_endpoint_url = "https://bot.example/interactions"


Plant = Callable[[Playground], object]
FAULTS: list[tuple[Mapping[str, Any], Plant, Mapping[str, Any], int, str, str, str]] = [
    ({}, nothing, {"token": "wrong"}, 2, "token", "Discord refuses DISCORD_TOKEN", "Reset the token"),
    ({"message_content": False}, nothing, {}, 2, "intents", "Message Content Intent is off", "Switch on Message"),
    ({}, another_ear, {}, 1, "interactions", "and not to the bot", "Empty Interactions Endpoint URL"),
    ({"wall": lambda: time.time() - 3600}, nothing, {}, 2, "clock", "60 min ahead of Discord's", "NTP"),
    ({"wall": lambda: time.time() + 60}, nothing, {}, 1, "clock", " s behind Discord's", "NTP"),
    ({}, leave, {}, 1, "servers", "in no server", "permissions=2815059004869696"),
    ({}, mute, {}, 2, "permissions", "lacks Send Messages in #help (Playground).", "Allow Send Messages"),
    ({}, hide, {}, 2, "permissions", "lacks View Channels in #help", "Allow View Channels"),
    ({}, nowhere, {}, 2, "permissions", "lacks View Channels in #general", "unless that is what you want"),
    ({}, without_files, {}, 1, "permissions", "lacks Attach Files in #help", "Allow Attach Files"),
    ({}, twelve, {}, 2, "permissions", "#room-09 (Playground) and 2 more.", "Allow Send Messages"),
    ({}, nothing, {"channels": {12345}}, 2, "channels", "CHANNELS has ids that are not channels", "Correct the ids"),
    ({}, no_starts, {}, 2, "gateway", "only 0 more times in the next 24.0 hours, of 1,000", "where else it runs"),
    ({"shards": 8}, few_starts, {}, 2, "gateway", "only 5 more times", "where else it runs"),
    (
        {"shards": 8},
        nothing,
        {"shard_count": 4},
        1,
        "shards",
        "bot 4 shards, and Discord recommends 8.",
        "to 8 or more",
    ),
    ({"shards": 8}, nothing, {"shard_count": 2}, 2, "shards", "2,500 servers on one are refused", "to 8 or more"),
]


@pytest.mark.parametrize(("world", "plant", "how", "code", "check", "says", "fix"), FAULTS)
async def test_what_is_wrong_in_discord_is_named_with_its_fix(
    world: Mapping[str, Any], plant: Plant, how: Mapping[str, Any], code: int, check: str, says: str, fix: str
) -> None:
    async with Playground(limits=Limits.off(), **world) as pg:
        plant(pg)
        findings = await diagnosis(pg, **how)
    (finding,) = bad(findings)
    assert (finding.check, exit_code(findings)) == (check, code)
    assert says in finding.says
    assert fix in finding.fix


@pytest.mark.parametrize("plant", [nothing, private, read_only])
async def test_where_all_is_well_nothing_is_found(plant: Plant) -> None:
    """A private channel that nobody let it into, or one that everybody only reads, is as it is meant to be."""
    async with Playground(limits=Limits.off()) as pg:
        plant(pg)
        findings = await diagnosis(pg)
    assert not bad(findings)
    assert exit_code(findings) == 0


async def test_links_lead_to_the_server_that_was_asked() -> None:
    async with Playground(limits=Limits.off()) as pg:
        leave(pg)
        findings = await diagnosis(pg)
    (invited,) = [finding for finding in findings if finding.check == "application"]
    (alone,) = [finding for finding in findings if finding.check == "servers"]
    assert f"adds it with {pg.url}/oauth2/authorize?" in invited.says
    assert f"open {pg.url}/oauth2/authorize?" in alone.fix


async def test_a_private_channel_that_the_owner_names_is_one_it_must_see() -> None:
    async with Playground(limits=Limits.off()) as pg:
        private(pg)
        (finding,) = bad(await diagnosis(pg, channels={pg.channel("help")}))
    assert (finding.state, finding.check) == (State.FAULT, "permissions")


async def test_nobody_who_answers_is_a_fault() -> None:
    async with Playground() as pg:
        base = pg.api_base
    async with DiscordRest("token", base) as rest:
        findings, application = await check_application(rest)
    assert application is None
    assert [(f.check, f.state) for f in findings] == [("token", State.FAULT), ("clock", State.SKIPPED)]
    assert "cannot be reached" in findings[0].says


async def test_what_answers_and_is_not_discord_is_a_fault() -> None:
    async with Playground() as pg, DiscordRest(pg.token, pg.url) as rest:  # its page, not its API
        findings, application = await check_application(rest)
    assert application is None
    assert findings[0].state is State.FAULT


async def test_commands_that_discord_does_not_know_are_named() -> None:
    async with Playground(limits=Limits.off()) as pg, DiscordRest(pg.token, pg.api_base) as rest:
        application = (await check_application(rest))[1]
        assert application
        (none,) = await check_commands(rest, application, [COMMAND])
        pg.commands.overwrite([COMMAND, {"name": "old", "description": "It was"}])
        (others,) = await check_commands(rest, application, [COMMAND | {"description": "Another"}])
        pg.commands.overwrite([COMMAND])
        (same,) = await check_commands(rest, application, [COMMAND])
    assert "No command is registered" in none.says
    assert "not this version's: old, why." in others.says
    assert "Start the bot" in others.fix
    assert same.state is State.OK


def test_the_invitation_is_the_quick_starts_and_the_playgrounds() -> None:
    assert INVITED.value == permissions.INVITED & ~permissions.BITS["use_external_emojis"]
    link = invite_link(1).replace("client_id=1&", "client_id=YOUR_APPLICATION_ID&")
    assert link in (ROOT / "docs/quickstart.md").read_text("utf-8")
