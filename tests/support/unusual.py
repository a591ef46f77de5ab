"""Messages that the playground's people cannot post: of other roles, in threads, and while the bot hears nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import discord

from playground.model import Channel, Draft, Event, Message
from tests.support.scene import Scene

if TYPE_CHECKING:
    from discord.types.role import Role
    from discord.types.threads import Thread


def said_unheard(scene: Scene, who: str, text: str, *, channel: str = "general") -> Message:
    """A message that stands in the channel although the bot was never told of it."""
    message = _compose(scene, who, text, channel)
    scene.pg.world.channel(message.channel_id).messages[message.id] = message
    return message


def removed_unheard(scene: Scene, message: Message) -> None:
    """The message is gone, and the bot has not heard of that."""
    del scene.pg.world.channel(message.channel_id).messages[message.id]


def mention_of_role(scene: Scene, who: str, text: str) -> Message:
    """A message that mentions a role which is not the bot's."""
    guild = scene.bot.get_guild(scene.pg.guild_id)
    assert guild
    role_id = scene.pg.world.next_id()
    data: Role = {
        "id": role_id, "name": "crew", "color": 0, "hoist": False, "position": 1, "permissions": "0",
        "managed": False, "mentionable": True, "flags": 0,
        "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
    }  # fmt: skip
    guild._add_role(discord.Role(guild=guild, state=scene.bot._connection, data=data))
    message = _compose(scene, who, f"<@&{role_id}> {text}", "general")
    return _emit(scene, replace(message, mention_roles=(role_id,)), scene.pg.world.channel(message.channel_id))


def said_in_thread(scene: Scene, who: str, text: str) -> Message:
    """A message in a thread of #general."""
    guild, parent = scene.bot.get_guild(scene.pg.guild_id), scene.pg.channel("general")
    assert guild
    thread_id = scene.pg.world.next_id()
    data: Thread = {
        "id": thread_id, "guild_id": guild.id, "parent_id": parent, "owner_id": scene.pg.bot_id, "name": "a thread",
        "type": 11, "member_count": 1, "message_count": 0, "total_message_sent": 0, "flags": 0,
        "rate_limit_per_user": 0,
        "thread_metadata": {"archived": False, "auto_archive_duration": 60, "archive_timestamp": "2026-01-01T00:00:00"},
    }  # fmt: skip
    guild._add_thread(discord.Thread(guild=guild, state=scene.bot._connection, data=data))
    message = replace(_compose(scene, who, text, "general"), channel_id=thread_id)
    return _emit(scene, message, Channel(thread_id, "a thread", type=11))


def _compose(scene: Scene, who: str, text: str, channel: str) -> Message:
    world = scene.pg.world
    author = world.user(scene.pg.person(who))
    return world.compose(world.channel(scene.pg.channel(channel)), author, Draft(content=text))


def _emit(scene: Scene, message: Message, channel: Channel) -> Message:
    scene.pg.world.emit(Event(name="MESSAGE_CREATE", channel=channel, message=message))
    return message
