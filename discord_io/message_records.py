"""Converts a discord.Message into a MessageRecord, and tells people's messages from those of bots and the system."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from copy import copy
from functools import lru_cache
from itertools import islice
from sys import intern

import discord

from conversation import MessageRecord
from discord_io.who_may_read import is_seen_by_all_of
from state.message import NOBODY, REPLY_EXCERPT, AttachedFile
from understanding.name_calls import called_as

SAID_BY_PEOPLE = frozenset({discord.MessageType.default, discord.MessageType.reply})
SAID_BY_BOTS = SAID_BY_PEOPLE | {discord.MessageType.chat_input_command, discord.MessageType.context_menu_command}
MAX_SECONDS = 1e9
MAX_IMAGES = 4
MAX_IMAGE_BYTES = 8_000_000
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
MAX_EXTRA_CHARACTERS = 1_500
MAX_BOT_CHARACTERS = 4_000  # of another bot's embeds and the like, which are all that most bots post
MAX_NAME_CHARACTERS = 40
CHANNEL = re.compile(r"<#(\d{15,20})>")
UNNAMED = "#some-channel"
MAX_NAMED = 3  # channels of which it is looked up who sees them: 1 ms each with 250 roles and 1,000 overwrites
MARKS = re.compile('[:()"\u202a-\u202e\u2066-\u2069]')  # with the characters that change the direction of text


def is_persons(message: discord.Message) -> bool:
    """Whether a person posted it: no bot, no webhook, no system message."""
    return message.type in SAID_BY_PEOPLE and not message.author.bot and message.webhook_id is None


def is_other_bots(message: discord.Message, bot_user_id: int) -> bool:
    """Whether another bot or a webhook posted it."""
    return _is_automatic(message) and message.author.id != bot_user_id and message.type in SAID_BY_BOTS


def _is_automatic(message: discord.Message) -> bool:
    return message.author.bot or message.webhook_id is not None


def is_direct(channel: object) -> bool:
    """Whether it is a channel of direct messages; it may be a partial one, with its id only."""
    return getattr(channel, "type", None) is discord.ChannelType.private


def to_record(message: discord.Message, bot_user_id: int, names: tuple[str, ...] = ()) -> MessageRecord:
    """Converts a message to a MessageRecord. A mention of the bot's own managed role counts as one of the bot.

    names: those by which the bot can be called.
    """
    replied_to = quoted_by(message)
    reply_author = replied_to.author if replied_to else None
    own_role = message.guild.self_role if message.guild and message.role_mentions else None  # it looks at all roles
    names_own_role = own_role in message.role_mentions
    is_bot, is_other_bot = message.author.id == bot_user_id, is_other_bots(message, bot_user_id)
    files = [*map(_file, _attachments(message))]
    pictures = (file.url for file in files if file.kind in IMAGE_TYPES and file.size <= MAX_IMAGE_BYTES)
    images = tuple(islice(pictures, MAX_IMAGES))
    return MessageRecord(
        author=name_of(message.author),
        author_id=_one(message.author.id),
        content=message.content,
        timestamp=message.created_at,
        is_bot=is_bot,
        message_id=message.id,
        mentioned=_all_of(frozenset([user.id for user in message.mentions] + [bot_user_id] * names_own_role)),
        mentions_group=message.mention_everyone or len(message.role_mentions) > names_own_role,
        reply_to_id=replied_to_id(message),
        reply_to_author_id=reply_author.id if reply_author else None,
        reply_to_author=name_of(reply_author) if reply_author else "",
        reply_to_text=(with_names(replied_to) or _readable(replied_to))[:REPLY_EXCERPT] if replied_to else "",
        readable=_readable(message),
        images=images,
        files=tuple(file for file in files if file.url not in images),
        reply_files=tuple(map(_file, _attachments(replied_to))) if replied_to else (),
        addressees=frozenset({reply_author.id}) if is_bot and reply_author else NOBODY,
        calls_bot="" if is_bot or is_other_bot else called_as(message.content, names),
        is_other_bot=is_other_bot,
        is_direct=is_direct(message.channel) and not message.author.bot,
    )


def quoted_by(message: discord.Message) -> discord.Message | None:
    """The message that it replies to, as Discord sent it along, or else as it is in the cache."""
    reference = message.reference if message.type is discord.MessageType.reply else None
    found = (reference.resolved or reference.cached_message) if reference else None
    return found if isinstance(found, discord.Message) else None


def replied_to_id(message: discord.Message) -> int | None:
    """The id of the message that it replies to."""
    return message.reference.message_id if message.reference and message.type is discord.MessageType.reply else None


def name_of(user: discord.abc.User) -> str:
    """The display name, without what could pass for the marks around a name where the model is told of it."""
    return _without_marks(user.display_name)


@lru_cache(4_096)
def _without_marks(name: str) -> str:
    return intern(" ".join(MARKS.sub(" ", name).split())[:MAX_NAME_CHARACTERS]) or "somebody"


@lru_cache(4_096)
def _one(user_id: int) -> int:
    """One int object for all messages of a person: else each stored message has its own."""
    return user_id


@lru_cache(4_096)
def _all_of(user_ids: frozenset[int]) -> frozenset[int]:
    """The same of several people: most mention the same ones, or nobody, and each set takes 216 bytes and more."""
    return user_ids


def _readable(message: discord.Message) -> str:
    """The text with names in place of ids, and in words what is no text; empty where that is the content itself."""
    components = getattr(message, "components", ())  # which a payload may leave out
    title = _title(message)
    is_text = not (message.embeds or message.attachments or message.stickers or message.message_snapshots or components)
    if is_text and not title and "<" not in message.content:  # as nearly every message
        return ""
    extras: list[str] = []
    for snapshot in message.message_snapshots:
        extras += (f"[forwarded] {snapshot.content}", *map(_attachment, snapshot.attachments))
    for embed in message.embeds:
        fields = (f"{field.name}: {field.value}" for field in embed.fields)
        lines = filter(None, [embed.author.name, embed.title, embed.description, *fields])
        extras.append("[embed] " + "\n".join(lines))
    extras += _texts(components)
    extras += map(_attachment, message.attachments)
    extras += (f"[sticker: {sticker.name}]" for sticker in message.stickers)
    shown = "\n".join(extras)[: MAX_BOT_CHARACTERS if _is_automatic(message) else MAX_EXTRA_CHARACTERS]
    return f"{title}{with_names(message)}\n{shown}".strip()


def with_names(message: discord.Message) -> str:
    """The text of a message with names in place of ids, but for channels of which not all who read along see the name,
    and for threads, whose titles are somebody's words."""
    if "<#" not in message.content:
        return message.clean_content
    mentioned = list(dict.fromkeys(map(int, CHANNEL.findall(message.content))))[:MAX_NAMED]
    guild = message.guild
    named = {one for one in mentioned if guild and is_seen_by_all_of(guild.get_channel(one), message.channel)}
    shown = copy(message)  # whose clean_content is made of its own content
    shown.content = CHANNEL.sub(lambda found: found[0] if int(found[1]) in named else UNNAMED, message.content)
    return shown.clean_content


def _title(message: discord.Message) -> str:
    """The title of a post, for its first message, which has the post's id; empty for any other message."""
    channel = message.channel
    if not isinstance(channel, discord.Thread) or channel.id != message.id:
        return ""
    thread = channel.guild.get_thread(channel.id) or channel  # a cached message may have the thread as it was
    return f"{thread.name}\n" if isinstance(thread.parent, discord.ForumChannel) else ""


def _texts(components: Iterable[object]) -> Iterator[str]:
    """The texts in components, which bots use like embeds."""
    for component in components:
        if isinstance(component, discord.TextDisplay):
            yield component.content
        yield from _texts(getattr(component, "children", ()))


def _attachment(attachment: discord.Attachment) -> str:
    return (
        f"[attachment: {attachment.filename}, {attachment.content_type or 'unknown type'}, {attachment.size:,} bytes]"
    )


def _attachments(message: discord.Message) -> list[discord.Attachment]:
    """Its own attachments, and those of messages that it forwards."""
    return [*message.attachments, *(a for snapshot in message.message_snapshots for a in snapshot.attachments)]


def _file(attachment: discord.Attachment) -> AttachedFile:
    kind = (attachment.content_type or "").partition(";")[0]
    seconds = min(max(0.0, attachment.duration or 0.0), MAX_SECONDS)  # NaN, which JSON cannot hold, becomes 0
    return AttachedFile(attachment.filename, kind, attachment.size, attachment.url, seconds)
