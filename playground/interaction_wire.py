"""Discord's JSON for interactions: who did it where and with which permissions, and what the options name."""

from playground import commands, options, permissions, wire
from playground.model import Channel, Message, User, Wire
from playground.world import World


def resolved(world: World, channel: Channel, user_id: int, data: Wire, target_id: int | None) -> Wire:
    """The objects that a command's options or target name. ApiError for one that is not there."""
    if data["type"] == commands.MESSAGE:
        message = world.message(channel.id, target_id or 0)
        return {"messages": {str(message.id): wire.message_object(world, message)}}
    users = [target_id or 0] if data["type"] == commands.USER else options.ids(data["options"], 6)
    people = [world.user(one) for one in users]
    channels = [world.channel(one) for one in options.ids(data["options"], 7)]
    return {
        "users": {str(one.id): wire.user_object(one) for one in people},
        "members": {
            str(one.id): {k: v for k, v in _member(world, channel, one).items() if k not in ("user", "deaf", "mute")}
            for one in people
        },
        "channels": {str(one.id): _partial_channel(world, one, user_id) for one in channels},
    }


def _partial_channel(world: World, channel: Channel, user_id: int) -> Wire:
    return wire.channel_object(world, channel) | {"permissions": str(world.permissions(channel, user_id))}


def _member(world: World, channel: Channel, user: User) -> Wire:
    """A member as interactions carry it: with its permissions in the channel, overwrites included."""
    return wire.member_object(world, user) | {"permissions": str(world.permissions(channel, user.id))}


def interaction_object(world: World, channel: Channel, user: User, own: Wire, source: Message | None) -> Wire:
    """The `d` of INTERACTION_CREATE: `own` is what only this interaction has, `source` the message of a component."""
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
