"""Discord's JSON for the playground's values: users, members, channels, messages, guild, and gateway payloads.

Ids are ints in the world, and strings here.
"""

import datetime as dt
from collections.abc import Iterable, Sequence

from playground.model import (
    PINS_ADD,
    STAGE,
    THREADS_ONLY,
    VOICE,
    Channel,
    Event,
    Guild,
    Message,
    Reaction,
    Reference,
    Role,
    Thread,
    User,
    Wire,
)
from playground.polls import poll_object
from playground.world import World


def iso(seconds: float) -> str:
    """Wall-clock seconds in Discord's time format."""
    return dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat()


def payload(world: World, event: Event) -> Wire:
    """The `d` of the event's gateway frame."""
    channel, message = event.channel, event.message
    match event.name:
        case "CHANNEL_CREATE" | "CHANNEL_UPDATE" | "CHANNEL_DELETE" | "CHANNEL_PINS_UPDATE" if channel:
            pins = {"last_pin_timestamp": next(map(pinned_at, channel.pinned), None)}
            is_pinned = event.name == "CHANNEL_PINS_UPDATE"
            return _placed(channel, pins) if is_pinned else channel_object(world, channel)
        case "MESSAGE_CREATE" | "MESSAGE_UPDATE" if channel and message:
            return _posted(world, channel, message)
        case "MESSAGE_DELETE" if channel:
            return _placed(channel, {"id": str(event.ids[0])})
        case "MESSAGE_DELETE_BULK" if channel:
            return _placed(channel, {"ids": [str(one) for one in event.ids]})
        case "MESSAGE_REACTION_ADD" | "MESSAGE_REACTION_REMOVE" if channel and message:
            return _reacted(world, event, channel, message)
        case "MESSAGE_REACTION_REMOVE_ALL" if channel and message:
            return _placed(channel, {"message_id": str(message.id)})
        case "TYPING_START" if channel:
            return _with_member(world, event, channel) | {"timestamp": int(event.at)}
    if channel is not None and event.name.startswith("THREAD_"):
        return _thread_payload(world, event, channel)
    return event.data or {} if event.guild is None else _guild_payload(world, event, event.guild)


def _thread_payload(world: World, event: Event, channel: Channel) -> Wire:
    place: Wire = {"id": str(channel.id), "guild_id": str(channel.guild_id)}
    match event.name:
        case "THREAD_DELETE":
            return place | {"parent_id": str(channel.parent_id), "type": channel.type}
        case "THREAD_LIST_SYNC":
            synced = active_threads(world, world.threads_of(channel))
            return {"guild_id": str(channel.guild_id), "channel_ids": [str(channel.id)]} | synced
        case "THREAD_MEMBER_UPDATE":
            return place | (thread_member(channel, event.user_id or 0) or {})
        case "THREAD_MEMBERS_UPDATE":
            joined = [(one, thread_member(channel, one)) for one in event.ids]
            guild = world.guild_of(channel)
            added = [one | {"member": member_object(world, guild, world.user(who))} for who, one in joined if one]
            removed = [str(who) for who, one in joined if not one]
            count = channel_object(world, channel)["member_count"]
            return place | {"member_count": count, "added_members": added, "removed_member_ids": removed}
    return channel_object(world, channel) | (event.data or {})


def _guild_payload(world: World, event: Event, guild: Guild) -> Wire:
    """The payload of a guild's event, without `unavailable`, which Discord sets only in an outage."""
    place = {"guild_id": str(guild.id)}
    if event.role is not None:
        deleted = event.name == "GUILD_ROLE_DELETE"
        return place | ({"role_id": str(event.role.id)} if deleted else {"role": role_object(world, event.role)})
    if event.name == "GUILD_MEMBER_UPDATE":
        return place | member_object(world, guild, world.user(event.user_id or 0))
    if event.name == "GUILD_DELETE":
        return {"id": str(guild.id)}
    return {name: value for name, value in guild_object(world, guild).items() if name != "unavailable"}


def pinned_at(message: Message) -> str | None:
    """The time of pinning, in Discord's format. None: not pinned."""
    return None if message.pinned_at is None else iso(message.pinned_at)


def _placed(channel: Channel, data: Wire) -> Wire:
    data["channel_id"] = str(channel.id)
    if channel.guild_id is not None:
        data["guild_id"] = str(channel.guild_id)
    return data


def _posted(world: World, channel: Channel, message: Message) -> Wire:
    wire = _placed(channel, message_object(world, message))
    if channel.guild_id is None:
        return wire
    guild = world.guild_of(channel)
    if message.webhook_id is None:
        wire["member"] = _member_fields(world, guild, message.author)
    for mentioned, user_id in zip(wire["mentions"], message.mentions, strict=True):
        mentioned["member"] = _member_fields(world, guild, world.users[user_id])
    return wire


def _reacted(world: World, event: Event, channel: Channel, message: Message) -> Wire:
    wire: Wire = {
        "user_id": str(event.user_id),
        "message_id": str(message.id),
        "emoji": emoji_object(event.emoji),
        "burst": False,
        "type": 0,
    }
    if event.name == "MESSAGE_REACTION_ADD":
        wire = _with_member(world, event, channel) | wire | {"message_author_id": str(message.author.id)}
    return _placed(channel, wire)


def _with_member(world: World, event: Event, channel: Channel) -> Wire:
    wire = _placed(channel, {"user_id": str(event.user_id)})
    if channel.guild_id is not None and event.user_id is not None:
        wire["member"] = member_object(world, world.guild_of(channel), world.user(event.user_id))
    return wire


def user_object(user: User) -> Wire:
    return {
        "id": str(user.id),
        "username": user.name,
        "global_name": None if user.bot else user.name,
        "discriminator": "0",
        "avatar": None,
        "bot": user.bot,
        "public_flags": 0,
    }


def member_object(world: World, guild: Guild | None, user: User) -> Wire:
    """A guild member with its user. guild: None: a server without the bot, whose roles are not known."""
    return {"user": user_object(user)} | _member_fields(world, guild, user)


def _member_fields(world: World, guild: Guild | None, user: User) -> Wire:
    return {
        "roles": [str(role.id) for role in guild.roles_of(user.id)] if guild else [],
        "joined_at": iso(guild.joined.get(user.id, world.created) if guild else world.created),
        "nick": None,
        "avatar": None,
        "deaf": False,
        "mute": False,
        "flags": 0,
        "pending": False,
        "premium_since": None,
        "communication_disabled_until": None,
    }


def channel_object(world: World, channel: Channel) -> Wire:
    last = str(channel.last_message_id) if channel.last_message_id else None
    wire: Wire = {"id": str(channel.id), "type": channel.type, "last_message_id": last}
    if channel.recipient_id is not None:
        return wire | {"recipients": [user_object(world.user(channel.recipient_id))]}
    if channel.group:
        recipients = [user_object(world.user(one)) for one in channel.group]
        return wire | {"name": channel.name, "icon": None, "owner_id": str(channel.group[0]), "recipients": recipients}
    wire |= {"guild_id": str(channel.guild_id), "name": channel.name, "rate_limit_per_user": 0}
    if channel.thread is not None:
        return wire | _thread_fields(world, channel, channel.thread)
    return (
        wire
        | _KIND_FIELDS.get(channel.type, {})
        | _forum_fields(channel)
        | {
            "topic": channel.topic or None,
            "position": channel.position,
            "nsfw": channel.nsfw,
            "parent_id": str(channel.parent_id) if channel.parent_id else None,
            "permission_overwrites": [
                {"id": str(one.id), "type": int(one.member), "allow": str(one.allow), "deny": str(one.deny)}
                for one in channel.overwrites.values()
            ],
        }
    )


_MOST_COUNTED = 50  # Discord: members of a thread
_VOICE_FIELDS: Wire = {"bitrate": 64_000, "user_limit": 0, "rtc_region": None, "video_quality_mode": 1}
_KIND_FIELDS = {VOICE: _VOICE_FIELDS, STAGE: _VOICE_FIELDS}
_NEEDS_TAG = 1 << 4  # channel flag


def _forum_fields(channel: Channel) -> Wire:
    if channel.type not in THREADS_ONLY:
        return {}
    return {
        "available_tags": channel.tags,
        "flags": _NEEDS_TAG if channel.needs_tag else 0,
        "default_reaction_emoji": None,
        "default_sort_order": None,
        "default_forum_layout": 0,
    }


def _thread_fields(world: World, channel: Channel, thread: Thread) -> Wire:
    wire: Wire = {
        "parent_id": str(channel.parent_id),
        "owner_id": str(thread.owner_id),
        "message_count": sum(one.id != channel.id for one in channel.messages.values()),
        "total_message_sent": thread.sent,
        "member_count": min(len(thread.members), _MOST_COUNTED),
        "flags": 0,
        "thread_metadata": {
            "archived": thread.archived,
            "archive_timestamp": iso(thread.archived_at),
            "auto_archive_duration": thread.auto_archive_minutes,
            "locked": thread.locked,
            "invitable": thread.invitable,
            "create_timestamp": iso(thread.created),
        },
    }
    if thread.tags:
        wire["applied_tags"] = thread.tags
    own = thread_member(channel, world.bot.id)
    return wire | {"member": own} if own else wire


def thread_member(channel: Channel, user_id: int) -> Wire | None:
    """A thread member object. None: the user has not joined."""
    joined = channel.thread.members.get(user_id) if channel.thread is not None else None
    if joined is None:
        return None
    return {"id": str(channel.id), "user_id": str(user_id), "join_timestamp": iso(joined), "flags": 0}


def active_threads(world: World, threads: Iterable[Channel]) -> Wire:
    """Those threads that are active and visible to the bot, and its own memberships."""
    active = [one for one in threads if not world.thread(one).archived]
    return thread_list(world, [one for one in active if world.may(one, world.bot.id, "view_channel")])


def thread_list(world: World, threads: Sequence[Channel]) -> Wire:
    """Threads, and the bot's own memberships in them."""
    members = [own for one in threads if (own := thread_member(one, world.bot.id))]
    return {"threads": [channel_object(world, one) for one in threads], "members": members}


def message_object(world: World, message: Message, *, deep: bool = True) -> Wire:
    """Discord's message object. `deep` adds the message replied to, null if that was deleted."""
    wire: Wire = {
        "id": str(message.id),
        "channel_id": str(message.channel_id),
        "type": message.type,
        "author": user_object(message.author),
        "content": message.content,
        "timestamp": iso(message.created),
        "edited_timestamp": None if message.edited is None else iso(message.edited),
        "tts": False,
        "pinned": message.pinned_at is not None,
        "flags": message.flags,
        "mention_everyone": message.mention_everyone,
        "mentions": [user_object(world.users[one]) for one in message.mentions],
        "mention_roles": [str(one) for one in message.mention_roles],
        "attachments": message.attachments,
        "embeds": message.embeds,
        "components": message.components,
    }
    _add_rare_fields(world, wire, message)
    if message.reference is not None:
        _add_reference(world, wire, message, message.reference, deep=deep and message.type != PINS_ADD)
    return wire


def _add_rare_fields(world: World, wire: Wire, message: Message) -> None:
    if message.reactions:
        wire["reactions"] = [_count_object(world, reaction) for reaction in message.reactions]
    if message.nonce is not None:
        wire["nonce"] = message.nonce
    thread = world.threads.get(message.id)
    if thread is not None and thread.parent_id == message.channel_id:
        wire["thread"] = channel_object(world, thread)
    if message.stickers:
        wire["sticker_items"] = message.stickers
    if message.snapshots:
        wire["message_snapshots"] = message.snapshots
    if message.webhook_id is not None:
        wire["webhook_id"] = str(message.webhook_id)
    if message.poll is not None:
        wire["poll"] = poll_object(message.poll, iso(message.created + message.poll["duration"] * 3600))
    if message.interaction is not None:
        wire |= {"interaction_metadata": message.interaction, "application_id": str(world.bot.id)}


def _add_reference(world: World, wire: Wire, message: Message, reference: Reference, *, deep: bool) -> None:
    wire["message_reference"] = {
        "type": reference.type,
        "channel_id": str(reference.channel_id),
    }
    # A forward names the server of the original, which may be another, or none.
    known = (each.get(reference.channel_id) for each in (world.channels, world.threads, world.dms))
    guild_id = (next(filter(None, known), None) or world.channel(message.channel_id)).guild_id
    if guild_id is not None:
        wire["message_reference"]["guild_id"] = str(guild_id)
    if reference.message_id is None:
        return
    wire["message_reference"]["message_id"] = str(reference.message_id)
    if deep and reference.type == 0:
        replied = world.channel(reference.channel_id).messages.get(reference.message_id)
        wire["referenced_message"] = None if replied is None else message_object(world, replied, deep=False)


_CONTENT_FIELDS = {"content": "", "embeds": (), "attachments": (), "components": (), "message_snapshots": ()}


def redacted(world: World, message: Wire) -> Wire:
    """A message object as an application without the message content intent sees it.

    The content fields are empty, except in its own messages, direct messages, and those that mention it. The same holds
    for the message replied to.
    """
    shown, bot_id = message, str(world.bot.id)
    concerns_bot = bot_id in (message["author"]["id"], *(user["id"] for user in message["mentions"]))
    if not concerns_bot and int(message["channel_id"]) not in world.dms:
        shown = message | {name: empty for name, empty in _CONTENT_FIELDS.items() if name in message}
        shown.pop("poll", None)  # Discord: left out, not empty
    replied = message.get("referenced_message")
    return shown | {"referenced_message": redacted(world, replied)} if replied else shown


def emoji_object(emoji: str) -> Wire:
    """A character, or "name:id" of a custom emoji."""
    name, _, emoji_id = emoji.partition(":")
    return {"id": emoji_id or None, "name": name}


def _count_object(world: World, reaction: Reaction) -> Wire:
    count = len(reaction.users)
    return {
        "emoji": emoji_object(reaction.emoji),
        "count": count,
        "count_details": {"burst": 0, "normal": count},
        "me": world.bot.id in reaction.users,
        "me_burst": False,
        "burst_colors": [],
    }


def application_object(world: World, *, message_content: bool) -> Wire:
    """The bot's application. A flag says whether it has the message content intent."""
    return {
        "id": str(world.bot.id),
        "name": world.bot.name,
        "icon": None,
        "description": "",
        "bot_public": False,
        "bot_require_code_grant": False,
        "verify_key": "",
        "flags": _CONTENT_FLAG if message_content else 0,
        "bot": user_object(world.bot),
        "owner": user_object(world.user(world.owner_id)),
        "team": None,
        "redirect_uris": [],
        "interactions_endpoint_url": world.interactions_endpoint_url,
        "role_connections_verification_url": None,
    }


_CONTENT_FLAG = 1 << 19  # Discord: GATEWAY_MESSAGE_CONTENT_LIMITED, for applications in fewer than 100 guilds


def partial_guild_object(world: World, guild: Guild) -> Wire:
    """A guild in the list of the bot's guilds."""
    granted = 0
    for role in (guild.roles[guild.id], *guild.roles_of(world.bot.id)):
        granted |= role.permissions
    return {
        "id": str(guild.id),
        "name": guild.name,
        "icon": None,
        "banner": None,
        "owner": world.owner_id == world.bot.id,
        "permissions": str(granted),
        "features": [],
    }


def guild_object(world: World, guild: Guild) -> Wire:
    """GUILD_CREATE: a guild with its roles and channels; of the members only the bot (no members intent)."""
    empty = "features emojis stickers voice_states presences stage_instances guild_scheduled_events"
    zero = "verification_level default_message_notifications explicit_content_filter mfa_level nsfw_level premium_tier"
    wire: Wire = {name: [] for name in empty.split()} | dict.fromkeys(zero.split(), 0)
    return wire | {
        "large": False,
        "unavailable": False,
        "preferred_locale": "en-US",
        "system_channel_flags": 0,
        "id": str(guild.id),
        "name": guild.name,
        "owner_id": str(world.owner_id),
        "member_count": len(world.users),
        "joined_at": iso(world.created),
        "roles": [role_object(world, role) for role in guild.roles.values()],
        "members": [member_object(world, guild, world.bot)],
        "channels": [channel_object(world, channel) for channel in guild.channels.values()],
        "threads": active_threads(world, world.threads_in(guild))["threads"],
    }


def role_object(world: World, role: Role) -> Wire:
    wire: Wire = {
        "id": str(role.id),
        "name": role.name,
        "permissions": str(role.permissions),
        "position": role.position,
        "colors": {"primary_color": role.color, "secondary_color": None, "tertiary_color": None},
        "color": role.color,
        "hoist": False,
        "managed": role.managed,
        "mentionable": role.mentionable,
        "flags": 0,
    }
    return wire | {"tags": {"bot_id": str(world.bot.id)}} if role.managed else wire
