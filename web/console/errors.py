"""The errors page: what went wrong last, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from activity import Fault, FaultKind
from agents.gateway import FailureKind
from place import SeenPlace
from web.console.page import CONSOLE, part, render, shown
from web.console.places import name_of
from web.console.stream import stream
from web.shown import Shown

REMEDIES = {
    FaultKind.MODEL: "If it goes on, look at the provider's status, and at MODEL's key and limits; "
    "python bot.py doctor makes a call and says what comes back.",
    FaultKind.DISCORD: "Discord refused or lost a request: if it goes on, look at discordstatus.com.",
    FaultKind.PERMISSION: "Give the bot's role the permission there; python bot.py doctor lists what is missing.",
    FaultKind.STORE: "Check that the disk has room and STATE_DIR can be written, or that Redis answers.",
    FaultKind.TOOL: "Check that the tool's server is running and can be reached; the agent answers without it.",
    FaultKind.GATEWAY: "The bot connects again by itself: if it goes on, look at discordstatus.com and the network.",
    FaultKind.INTERNAL: "This is a bug in the bot: its log says more at that time, and a restart may help.",
}
# Of the model's failures, those in which nothing is wrong with the provider, the key or the limits.
NOTHING_TO_DO = "Nothing needs to be done, unless it happens often: then another model may do better."
REMEDIES_BY_CODE: Mapping[str, str] = {
    FailureKind.TOO_LONG: NOTHING_TO_DO,
    FailureKind.EMPTY: NOTHING_TO_DO,
    FailureKind.WITHHELD: NOTHING_TO_DO,
    FailureKind.OUT_OF_ROOM: NOTHING_TO_DO,
    FailureKind.OVER_BUDGET: "If answers should cost more, raise the limit in BUDGETS.",
    FailureKind.TURN_CAP: "If answers should use more, raise TURN_TOKENS.",
}


@dataclass(frozen=True, slots=True)
class Shortcoming:
    """A fault as it is shown. where: its place in words."""

    fault: Fault
    where: str
    remedy: str


async def errors(request: web.Request) -> web.StreamResponse:
    return render(request, "errors.html", **_parts(request))


async def errors_stream(request: web.Request) -> web.StreamResponse:
    return await stream(request, lambda: _parts(request))


def _parts(request: web.Request) -> dict[str, Any]:
    bot, shows_content = shown(request), request.app[CONSOLE].shows_content
    found = bot.faults.last()
    guilds = bot.servers.guilds() if found else {}
    places = {
        place.place_id: place
        for guild_id in {fault.guild_id for fault in found} & guilds.keys()
        for place in bot.servers.places(guild_id)
    }
    faults = [
        Shortcoming(
            fault,
            _where(bot, fault, guilds, places, shows_content=shows_content),
            (fault.kind is FaultKind.MODEL and REMEDIES_BY_CODE.get(fault.code)) or REMEDIES[fault.kind],
        )
        for fault in found
    ]
    return {"errors": part(request, "errors_list.html", faults=faults, last_hour=bot.faults.last_hour())}


def _where(
    bot: Shown, fault: Fault, guilds: Mapping[int, str], places: Mapping[int, SeenPlace], *, shows_content: bool
) -> str:
    if not fault.channel_id and not fault.guild_id:
        return "everywhere"
    if not fault.guild_id:
        return "a direct message"
    guild = guilds.get(fault.guild_id, f"server …{fault.guild_id % 10_000:04}")
    if not fault.channel_id:
        return guild
    place = places.get(fault.channel_id)
    channel = name_of(bot, place, shows_content=shows_content) if place else f"channel …{fault.channel_id % 10_000:04}"
    return f"{channel} in {guild}"
