"""Discord's JSON for interactions: user, place and permissions, and the objects that options name."""

from collections.abc import Iterable, Sequence
from typing import Any

from playground import choices, commands, errors, options, permissions, wire
from playground.model import Channel, Message, Role, User, Wire
from playground.world import World

_USER, _CHANNEL, _ROLE, _MENTIONABLE = 6, 7, 8, 9  # option types


def resolved(world: World, channel: Channel, user_id: int, data: Wire, target_id: int | None) -> Wire:
    """The objects that a command's options or target name. ApiError if one does not exist."""
    if data["type"] == commands.MESSAGE:
        message = world.message(channel.id, target_id or 0)
        return {"messages": {str(message.id): wire.message_object(world, message)}}
    if data["type"] == commands.USER:
        return named(world, channel, user_id, users=[target_id or 0])
    given = {kind: options.ids(data["options"], kind) for kind in (_USER, _CHANNEL, _ROLE, _MENTIONABLE)}
    known = _roles(world, channel)
    roles = [one for one in given[_MENTIONABLE] if one in known]
    users = [one for one in given[_MENTIONABLE] if one not in known]
    return named(world, channel, user_id, [*given[_USER], *users], [*given[_ROLE], *roles], given[_CHANNEL])


def chosen(world: World, channel: Channel, user_id: int, given: Iterable[tuple[Wire, Any]]) -> Wire:
    """The people, roles and channels chosen in menus. ApiError if one is not offered there."""
    objects = choices.of_objects(given)
    for part, one in objects:
        if part["type"] != choices.CHANNEL:
            continue
        picked = world.channel(one)
        types = part.get("channel_types") or [picked.type]
        if picked.guild_id != (channel.guild_id or world.guild.id) or picked.type not in types:
            raise errors.wrong_channel_type()
        if not world.may(picked, user_id, "view_channel"):
            raise errors.missing_access()
    channels = [one for part, one in objects if part["type"] == choices.CHANNEL]
    others = [(part["type"], one) for part, one in objects if part["type"] != choices.CHANNEL]
    known = _roles(world, channel)
    roles = [one for kind, one in others if kind == choices.ROLE or (kind != choices.USER and one in known)]
    users = [one for kind, one in others if kind == choices.USER or (kind != choices.ROLE and one not in known)]
    return named(world, channel, user_id, users, roles, channels)


def _roles(world: World, channel: Channel) -> dict[int, Role]:
    """The roles of the channel's guild; in direct messages those of the first guild."""
    return (world.guild_of(channel) or world.guild).roles


def named(
    world: World,
    channel: Channel,
    user_id: int,
    users: Sequence[int] = (),
    roles: Sequence[int] = (),
    channels: Sequence[int] = (),
) -> Wire:
    """The objects with these ids, in the form of interactions. ApiError if one does not exist."""
    people = [world.user(one) for one in users]
    members = {str(one.id): _member(world, channel, one) for one in people}
    return {
        "users": {str(one.id): wire.user_object(one) for one in people},
        "members": {
            of: {name: value for name, value in one.items() if name not in ("user", "deaf", "mute")}
            for of, one in members.items()
        },
        "roles": {str(one): wire.role_object(world, world.role(one)) for one in roles},
        "channels": {str(one): _partial_channel(world, world.channel(one), user_id) for one in channels},
    }


def _partial_channel(world: World, channel: Channel, user_id: int) -> Wire:
    return wire.channel_object(world, channel) | {"permissions": str(world.permissions(channel, user_id))}


def _member(world: World, channel: Channel, user: User) -> Wire:
    """A member in the form of interactions: with its permissions in the channel, including overwrites."""
    member = wire.member_object(world, world.guild_of(channel), user)
    return member | {"permissions": str(world.permissions(channel, user.id))}


def interaction_object(world: World, channel: Channel, user: User, own: Wire, source: Message | None) -> Wire:
    """The `d` of INTERACTION_CREATE. `own`: the fields of this interaction alone; `source`: a component's message."""
    context = commands.context(channel)
    app_permissions = world.permissions(channel, world.bot.id)
    if context != 0 or channel.id in world.elsewhere:
        app_permissions = permissions.ELSEWHERE | (permissions.BITS["use_external_emojis"] if context == 1 else 0)
    payload = own | {
        "application_id": str(world.bot.id),
        "version": 1,
        "channel_id": str(channel.id),
        "channel": _partial_channel(world, channel, user.id),
        "locale": "en-US",
        "app_permissions": str(app_permissions),
        "context": context,
        "entitlements": [],
        "attachment_size_limit": world.upload_limit,
    }
    if source is not None:
        payload["message"] = wire.message_object(world, source)
    if channel.guild_id is None:
        return payload | {"user": wire.user_object(user)}
    guild_id = str(channel.guild_id)
    return payload | {
        "guild_id": guild_id,
        "guild": {"id": guild_id, "features": [], "locale": "en-US"},
        "guild_locale": "en-US",
        "member": _member(world, channel, user),
    }
