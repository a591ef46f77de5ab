"""Checks by Discord's API: token, application, intents, servers, permissions, commands, and the clock."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import discord

from discord_io.permissions import ESSENTIAL, invite_link, missing, shown
from doctor.discord_rest import DiscordRest, RefusedError, UnreachableError
from doctor.findings import SECONDS, Finding, NotCheckedError, State, fault, ok, skipped, warning

PORTAL = "https://discord.com/developers/applications"
LATE_SECONDS, WRONG_SECONDS = 30.0, 300.0  # skew of the clock: a warning, a fault
MOST_GUILDS, MOST_NAMED = 50, 10
PAGE = 200  # servers in one response
FORUMS = (15, 16)
SPOKEN_IN = (0, 2, 5, 13, *FORUMS)
REFUSED = 401
LOOK_SECONDS = SECONDS - 3.0  # to look at the channels of all servers


@dataclass(frozen=True, slots=True)
class Application:
    """The bot's application. reads_content: whether the message content intent is on; site: address of Discord's
    client, for the invitation."""

    id: int
    name: str
    bot_id: int
    bot_name: str
    reads_content: bool
    site: str

    @property
    def invite(self) -> str:
        return invite_link(self.id, self.site)


def no_token() -> Finding:
    return warning(
        "token",
        "DISCORD_TOKEN is not set: the bot starts in the playground, a Discord on this machine.",
        f"Create an application at {PORTAL}, reset and copy the token under Bot, and set DISCORD_TOKEN to it in .env.",
    )


async def check_application(rest: DiscordRest) -> tuple[list[Finding], Application | None]:
    """Checks token, application, intents and clock. Returns findings, and the application if the token is valid."""
    try:
        async with asyncio.timeout(SECONDS):
            user = await rest.get("/users/@me")
            application = await rest.get("/applications/@me")
        # Discord may leave the flags out if there are none.
        value = application["flags"] if "flags" in application else 0  # noqa: SIM401 - a response that is no object has no get()
        flags = discord.ApplicationFlags._from_value(value)  # noqa: SLF001 - as discord.py does itself
        known = Application(
            int(application["id"]),
            str(application["name"]),
            int(user["id"]),
            str(user["username"]),
            flags.gateway_message_content or flags.gateway_message_content_limited,
            rest.site,
        )
    except NotCheckedError as error:
        found = fault("token", error.says, error.fix)
        if isinstance(error, RefusedError) and error.status == REFUSED:
            fix = f"Reset the token under Bot at {PORTAL}, and set DISCORD_TOKEN to the whole new one."
            found = fault("token", "Discord refuses DISCORD_TOKEN.", fix)
        return [found, *check_clock(rest.skew)], None
    except TimeoutError:
        late = UnreachableError(f"no answer within {SECONDS:g} s")
        return [fault("token", late.says, late.fix)], None
    except (KeyError, TypeError, ValueError):
        other = UnreachableError("what answers is not Discord")
        return [fault("token", other.says, other.fix)], None
    return [
        ok("token", f"Discord accepts the token: it is {known.bot_name}'s."),
        ok("application", f"Its id is {known.id}; whoever manages a server adds it with {known.invite}"),
        content_intent(is_on=known.reads_content, application_id=known.id),
        *check_endpoint(known.id, is_set=bool(application.get("interactions_endpoint_url"))),
        *check_clock(rest.skew),
    ], known


def content_intent(*, is_on: bool, application_id: int | None) -> Finding:
    if is_on:
        return ok("intents", "The Message Content Intent is on.")
    return fault(
        "intents",
        "The Message Content Intent is off: the bot sees only messages that mention it or reply to it.",
        f"Switch on Message Content Intent at {PORTAL}{f'/{application_id}' if application_id else ''}/bot, save, and "
        "restart the bot.",
    )


def check_endpoint(application_id: int, *, is_set: bool) -> list[Finding]:
    """Warns of an Interactions Endpoint URL. is_set: Discord sends commands and clicks there, not to the bot."""
    if not is_set:
        return []
    return [
        warning(
            "interactions",
            "An Interactions Endpoint URL is set: commands and clicks go there, and not to the bot, "
            'and people read "This interaction failed".',
            f"Empty Interactions Endpoint URL at {PORTAL}/{application_id}/information, and save.",
        )
    ]


def check_clock(skew: float | None) -> list[Finding]:
    """Checks this machine's clock. skew: seconds that it is ahead of Discord's; None: not known."""
    if skew is None:
        return [skipped("clock", "Discord did not say what time it is.")]
    if abs(skew) < LATE_SECONDS:
        return [ok("clock", "This machine's clock agrees with Discord's.")]
    much = f"{abs(skew):.0f} s" if abs(skew) < WRONG_SECONDS else f"{abs(skew) / 60:.0f} min"
    says = f"This machine's clock is {much} {'ahead of' if skew > 0 else 'behind'} Discord's."
    fix = "Let the machine set its clock by NTP, for example with timedatectl set-ntp true."
    return [fault("clock", says, fix) if abs(skew) >= WRONG_SECONDS else warning("clock", says, fix)]


async def check_commands(
    rest: DiscordRest, application: Application, wanted: Sequence[Mapping[str, Any]]
) -> list[Finding]:
    """Whether Discord has the commands that the bot would register. wanted: the bot's, as it would send them."""
    there = {_known(one): _form(one) for one in await rest.get(f"/applications/{application.id}/commands")}
    ours = {_known(one): _form(one) for one in wanted}
    if there == ours:
        return [ok("commands", f"All {len(ours)} commands are registered.")]
    others = sorted({name for _, name in there.keys() ^ ours.keys() | {k for k in ours if there.get(k) != ours[k]}})
    named = _listed(others)
    says = f"The commands that Discord knows are not this version's: {named}." if there else "No command is registered."
    return [warning("commands", says, "Start the bot once: it registers its commands at every start.")]


def _known(command: Mapping[str, Any]) -> tuple[int, str]:
    return int(command.get("type", 1)), str(command["name"])


def _form(command: Mapping[str, Any]) -> str:
    """A command in a form that can be compared: without ids, and without default values."""
    own = {
        "description": command.get("description") or "",
        "options": [_option(option) for option in command.get("options") or []],
        "permissions": str(command.get("default_member_permissions")),
    }
    return json.dumps(own, sort_keys=True)


def _option(option: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("type", "name", "description", "required", "autocomplete", "min_value", "max_value", "min_length")
    own: dict[str, Any] = {name: option[name] for name in (*kept, "max_length") if option.get(name)}
    own["choices"] = [(one["name"], one["value"]) for one in option.get("choices") or []]
    own["options"] = [_option(one) for one in option.get("options") or []]
    return own


async def check_guilds(
    rest: DiscordRest, application: Application, channels: Collection[int] = (), threads: str = "join"
) -> list[Finding]:
    """Checks the bot's servers, and its permissions in their channels. channels, threads: the settings."""
    guilds: list[dict[str, Any]] = []
    while len(page := await rest.get(f"/users/@me/guilds?limit={PAGE}&after={guilds[-1]['id'] if guilds else 0}")):
        guilds += page
        if len(page) < PAGE:
            break
    if not guilds:
        return [warning("servers", "The bot is in no server.", f"Add it to yours: open {application.invite}")]
    looked = guilds[:MOST_GUILDS]
    per_guild = await _done([_lacks(rest, guild, application.bot_id, channels, threads) for guild in looked])
    found = [one for one in per_guild if one]
    names = _listed([str(guild["name"]) for guild in guilds])
    beyond = len(guilds) - len(found)
    unlooked = f"; the channels of {beyond} of them were not checked" if beyond else ""
    lacks = [lack for one in found for lack in one.lacks]
    silenced = [one.guild for one in found if one.is_timed_out]
    findings = [ok("servers", f"It is in {names}{unlooked}."), *timed_out(silenced), *lacking(lacks)]
    unseen = sorted(set(channels) - {lack.channel_id for lack in lacks})[:MOST_GUILDS]
    hidden = await asyncio.gather(*(_is_hidden(rest, one) for one in unseen))
    if any(hidden):
        named = _listed([str(one) for one, is_hidden in zip(unseen, hidden, strict=True) if is_hidden])
        says = f"CHANNELS has ids that are not channels of the bot's servers, or that it cannot see: {named}."
        findings.append(fault("channels", says, "Correct the ids in CHANNELS, or add the bot to their server."))
    return findings


@dataclass(frozen=True, slots=True)
class Looked:
    """Result for one server. lacks: in its channels; empty if the bot is timed out, as they are not checked then."""

    guild: str
    lacks: list[Lack]
    is_timed_out: bool = False


async def _done(work: Sequence[Coroutine[Any, Any, Looked | None]]) -> list[Looked | None]:
    """The result of each coroutine. None: it took longer than LOOK_SECONDS."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        await asyncio.wait(tasks, timeout=LOOK_SECONDS)
        return [task.result() if task.done() else None for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def timed_out(guilds: Sequence[str]) -> list[Finding]:
    """The finding that moderators have timed out the bot. guilds: names of the servers; empty: no finding."""
    if not guilds:
        return []
    says = f"The bot is timed out in {_listed(guilds)}: it cannot write there."
    return [
        fault("timeout", says, "Have a moderator remove the timeout from the bot, in the server's list of members.")
    ]


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel in which the bot could speak. ours, others: permissions there of the bot, and of members without a
    role; is_listed: whether CHANNELS names it."""

    id: int
    name: str
    ours: discord.Permissions
    others: discord.Permissions
    is_forum: bool
    is_listed: bool


@dataclass(frozen=True, slots=True)
class Lack:
    """A permission that the bot lacks in a channel. matters: whether that is probably a mistake."""

    permission: str
    channel_id: int
    channel: str
    matters: bool

    @property
    def is_read_only(self) -> bool:
        """Whether the channel is read-only for everybody."""
        return self.permission in ESSENTIAL and not self.matters


def lacks_of(places: Sequence[Channel], threads: str) -> list[Lack]:
    """The permissions that the bot lacks in a server's channels. threads: the setting.

    Private channels without the bot are taken as intended, as long as there is any channel in which it can speak.
    """
    lacked = [(place, missing(place.ours, is_forum=place.is_forum, threads=threads)) for place in places]
    is_mute = all(set(ESSENTIAL) & set(names) for _, names in lacked)
    found = []
    for place, names in lacked:
        matters = place.is_listed or is_mute
        if "view_channel" in names:  # without it the other permissions do not matter
            names = ["view_channel"] if matters or place.others.view_channel else []  # noqa: PLW2901
        found += [Lack(name, place.id, place.name, matters or getattr(place.others, name)) for name in names]
    return found


def lacking(lacks: Sequence[Lack]) -> list[Finding]:
    """One finding for each missing permission, with its channels; or one finding that none is missing."""
    by_permission: dict[str, list[Lack]] = defaultdict(list)
    for lack in lacks:
        if not lack.is_read_only:
            by_permission[lack.permission].append(lack)
    findings = []
    for permission, found in by_permission.items():
        state = State.FAULT if permission in ESSENTIAL else State.WARNING
        says = f"The bot lacks {shown(permission)} in {_listed([lack.channel for lack in found])}."
        fix = (
            f"Allow {shown(permission)} to the bot's role in these channels' permissions, unless that is what you want."
        )
        findings.append(Finding("permissions", state, says, fix))
    if read_only := list(dict.fromkeys(lack.channel for lack in lacks if lack.is_read_only)):
        findings.append(ok("permissions", f"It may not write, and neither may others, in {_listed(read_only)}."))
    return findings or [ok("permissions", "It has every permission it needs, in every channel where it may take part.")]


async def _lacks(
    rest: DiscordRest, guild: Mapping[str, Any], me: int, listed: Collection[int], threads: str
) -> Looked | None:
    """Checks one server. None: Discord refuses to answer."""
    path = f"/guilds/{guild['id']}"
    try:
        roles, channels, member = await asyncio.gather(
            rest.get(f"{path}/roles"), rest.get(f"{path}/channels"), rest.get(f"{path}/members/{me}")
        )
    except RefusedError:
        return None
    until = discord.utils.parse_time(member.get("communication_disabled_until"))
    if until and until > discord.utils.utcnow():
        return Looked(str(guild["name"]), [], is_timed_out=True)
    granted = {int(role["id"]): int(role["permissions"]) for role in roles}
    everyone, own = int(guild["id"]), {int(one) for one in member["roles"]}
    places = []
    for channel in channels:
        is_listed = bool({int(channel["id"]), int(channel.get("parent_id") or 0)} & set(listed))
        if channel["type"] in SPOKEN_IN and (is_listed or not listed):
            ours = allowed_in(channel, everyone, granted, own, me)
            others = allowed_in(channel, everyone, granted, set(), 0)
            name, is_forum = f"#{channel['name']} ({guild['name']})", channel["type"] in FORUMS
            places.append(Channel(int(channel["id"]), name, ours, others, is_forum, is_listed))
    return Looked(str(guild["name"]), lacks_of(places, threads))


def allowed_in(
    channel: Mapping[str, Any], everyone: int, granted: Mapping[int, int], roles: Collection[int], member: int
) -> discord.Permissions:
    """Permissions of a member with these roles in a channel, by the algorithm in Discord's documentation.

    granted: role id -> its permissions; everyone: id of the @everyone role.
    """
    base = granted.get(everyone, 0)
    for role in roles:
        base |= granted.get(role, 0)
    if discord.Permissions(base).administrator:
        return discord.Permissions.all()
    overwrites = {int(one["id"]): (int(one["allow"]), int(one["deny"])) for one in channel["permission_overwrites"]}
    for group in ([everyone], [role for role in roles if role != everyone], [member]):
        pairs = [overwrites[one] for one in group if one in overwrites]
        for _, deny in pairs:
            base &= ~deny
        for allow, _ in pairs:
            base |= allow
    return discord.Permissions(base if discord.Permissions(base).view_channel else 0)


async def _is_hidden(rest: DiscordRest, channel_id: int) -> bool:
    """Whether Discord refuses to show a channel to the bot."""
    try:
        await rest.get(f"/channels/{channel_id}")
    except RefusedError:
        return True
    return False


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
