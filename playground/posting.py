"""The bot's posts, edits, deletions and reactions by Discord's rules: permissions, replies, uploads, nonces."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from playground import errors
from playground.body import EPHEMERAL, SUPPRESS_EMBEDS, Body
from playground.errors import invalid_form
from playground.limits import Nonces
from playground.model import (
    CATEGORY,
    REPLY,
    THREADS_ONLY,
    Channel,
    Draft,
    File,
    Guild,
    Message,
    Reference,
    Wire,
    snowflake,
)
from playground.uploads import MOST_FILES, attachment_object
from playground.world import World

_REPLYABLE = frozenset((0, 19, 20, 23))  # Discord: system messages cannot be replied to


class Posting:
    """The bot's actions in channels. `files_url`: address under which uploads are served."""

    def __init__(self, world: World, nonces: Nonces) -> None:
        self.files_url = ""
        self._world = world
        self._nonces = nonces

    def guild(self, guild_id: int) -> Guild:
        """A guild of the bot. ApiError 50001: the bot is not in it."""
        guild = self._world.guilds.get(guild_id)
        if guild is None or not guild.bot_is_member:
            raise errors.missing_access()
        return guild

    def visible(self, channel_id: int, *needed: str) -> Channel:
        """A channel. ApiError 50001: the bot cannot see it; 50013: it lacks a needed permission."""
        channel = self._world.channel(channel_id)
        if not self._may(channel, "view_channel"):
            raise errors.missing_access()
        if not self._may(channel, *needed):
            raise errors.missing_permissions()
        return channel

    def _may(self, channel: Channel, *names: str) -> bool:
        return self._world.may(channel, self._world.bot.id, *names)

    def writable(self, channel_id: int) -> Channel:
        """A channel in which the bot may send messages, else ApiError."""
        channel = self.visible(channel_id)
        self.check_writable(channel, self._world.bot.id)
        return channel

    def check_writable(self, channel: Channel, user_id: int) -> None:
        """ApiError if a user may not send messages there. Sending unarchives a thread, unless it is locked."""
        if channel.type in (*THREADS_ONLY, CATEGORY):
            raise errors.not_a_text_channel()
        # A direct message may be undeliverable.
        if channel.recipient_id in self._world.blocking:
            raise errors.blocked()
        shared = self._world.bot_shares(channel) or channel.recipient_id in self._world.installed
        if channel.recipient_id is not None and user_id == self._world.bot.id and not shared:
            raise errors.no_mutual_guild()
        sending = "send_messages" if channel.thread is None else "send_messages_in_threads"
        if not self._world.may(channel, user_id, sending):
            raise errors.missing_permissions()
        thread = channel.thread
        if thread is not None and thread.locked and not self._world.may(channel, user_id, "manage_threads"):
            raise errors.thread_archived() if thread.archived else errors.thread_locked()

    def changeable(self, channel_id: int, *needed: str) -> Channel:
        """A channel as `visible`. ApiError 50083: an archived thread, in which messages can only be deleted."""
        channel = self.visible(channel_id, *needed)
        if channel.thread is not None and channel.thread.archived:
            raise errors.thread_archived()
        return channel

    def send(self, channel_id: int, body: Body) -> Message:
        channel = self.writable(channel_id)
        if body.empty:
            raise errors.empty_message()
        self.check_rich(channel, body)
        if body.enforce_nonce and body.nonce is not None:
            earlier = self._nonces.find(self._world.bot.id, channel.id, body.nonce)
            if earlier is not None:
                return self._world.message(channel.id, earlier)  # ApiError 10008 if it was deleted since
        reference = self._reference(channel, body.reference) if body.reference is not None else None
        draft = self.draft(channel, body, reference=reference, type=REPLY if reference else 0)
        draft = replace(draft, flags=draft.flags & ~EPHEMERAL)  # for responses to interactions only
        message = self._world.post(channel, self._world.bot, draft)
        if body.nonce is not None:
            self._nonces.note(self._world.bot.id, channel.id, body.nonce, message.id)
        return message

    def check_rich(self, channel: Channel, body: Body) -> None:
        """ApiError 50013 if the body has embeds, files or a poll that the bot may not send there."""
        if body.embeds and not self._may(channel, "embed_links"):
            raise errors.missing_permissions()
        if body.files and not self._may(channel, "attach_files"):
            raise errors.missing_permissions()
        if body.poll and not self._may(channel, "send_polls"):
            raise errors.missing_permissions()

    def draft(self, channel: Channel, body: Body, **more: Any) -> Draft:
        """The draft of a checked body. `more`: further fields of Draft."""
        embeds, attachments = _pictured(body.embeds, self.upload(channel.id, body.files))
        return Draft(
            content=body.content,
            embeds=embeds,
            components=body.components,
            attachments=attachments,
            stickers=sticker_objects(body.stickers),
            allowed=body.allowed,
            flags=body.flags,
            nonce=body.nonce,
            poll=body.poll,
            **more,
        )

    def _reference(self, channel: Channel, given: Wire) -> Reference | None:
        if given.get("type") not in (None, 0):
            raise invalid_form("message_reference.type", "BASE_TYPE_CHOICES", "Value must be one of {0}.")
        message_id = snowflake(given.get("message_id"))
        if message_id is None:
            raise invalid_form("message_reference.message_id", "NUMBER_TYPE_COERCE", "Value is not snowflake.")
        if str(given.get("channel_id", channel.id)) != str(channel.id):
            text = "Cannot reply to a message in a different channel"
            raise invalid_form("message_reference", "REPLIES_CANNOT_REFERENCE_OTHER_CHANNEL", text)
        if not self._may(channel, "read_message_history"):
            raise errors.reply_needs_history()
        replied = channel.messages.get(message_id)
        if replied is None and given.get("fail_if_not_exists") is not False:
            raise invalid_form("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
        if replied is None:
            return None
        if replied.type not in _REPLYABLE:
            text = "Cannot reply to a system message"
            raise invalid_form("message_reference", "REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE", text)
        return Reference(message_id, channel.id)

    def edit(self, channel_id: int, message_id: int, body: Body) -> Message:
        channel = self.changeable(channel_id)
        message = self._world.message(channel_id, message_id)
        if message.author.id != self._world.bot.id:
            raise errors.not_your_message()
        if message.poll is not None:
            raise errors.poll_stands()
        self.check_rich(channel, body)
        return self._world.edit(message, self.changes(message, body), body.allowed)

    def changes(self, message: Message, body: Body) -> Wire:
        """The fields of a message that a body changes. ApiError 50006: the message would be empty."""
        changes: Wire = {
            name: getattr(body, name) for name in ("content", "embeds", "components") if name in body.given
        }
        if "flags" in body.given:  # Discord: changes of other flags are ignored without error
            changes["flags"] = message.flags & ~SUPPRESS_EMBEDS | body.flags & SUPPRESS_EMBEDS
        if "attachments" in body.given:
            kept = tuple(one for one in message.attachments if int(one["id"]) in body.kept)
            embeds, new = _pictured(body.embeds, self.upload(message.channel_id, body.files))
            changes |= {"attachments": kept + new} | ({"embeds": embeds} if "embeds" in body.given else {})
        left = ("content", "embeds", "components", "attachments", "stickers")
        if not any(changes.get(name, getattr(message, name)) for name in left):
            raise errors.empty_message()
        return changes

    def delete(self, channel_id: int, message_id: int) -> None:
        channel = self.visible(channel_id)
        message = self._world.message(channel_id, message_id)
        foreign = message.author.id != self._world.bot.id
        if foreign and channel.guild_id is None:
            raise errors.not_in_direct_messages()
        if foreign and not self._may(channel, "manage_messages"):
            raise errors.missing_permissions()
        self._world.delete(message)

    def react(self, channel_id: int, message_id: int, emoji: str) -> None:
        channel = self.changeable(channel_id, "read_message_history")
        message = self._world.message(channel_id, message_id)
        check_emoji(emoji)
        if not any(one.emoji == emoji for one in message.reactions) and not self._may(channel, "add_reactions"):
            raise errors.missing_permissions()
        self._world.react(message, self._world.bot.id, emoji, add=True)

    def unreact(self, channel_id: int, message_id: int, emoji: str, user_id: int) -> None:
        own = user_id == self._world.bot.id
        self.changeable(channel_id, *(() if own else ("manage_messages",)))
        self._world.react(self._world.message(channel_id, message_id), user_id, check_emoji(emoji), add=False)

    def upload(self, channel_id: int, files: Iterable[File]) -> tuple[Wire, ...]:
        """Keep files and return their attachment objects. ApiError if they are too many, or one is too large."""
        files = tuple(files)
        if len(files) > MOST_FILES:
            raise errors.too_many_files(MOST_FILES)
        attachments = []
        for file in files:
            file_id = self._world.keep_file(file)
            url = f"{self.files_url}/{channel_id}/{file_id}/{quote(file.filename, safe='')}"
            attachments.append(attachment_object(file_id, url, file))
        return tuple(attachments)


def _pictured(embeds: Sequence[Wire], uploads: Sequence[Wire]) -> tuple[tuple[Wire, ...], tuple[Wire, ...]]:
    """The embeds, with attachment://name replaced by uploaded pictures, and the uploads that no embed uses."""
    urls = {f"attachment://{one['filename']}": one for one in uploads}
    used, pictured = set(), []
    for embed in embeds:
        found = {name: urls.get(str((embed.get(name) or {}).get("url"))) for name in ("image", "thumbnail")}
        used |= {one["id"] for one in found.values() if one}
        pictures = {
            name: {field: one[field] for field in ("url", "proxy_url", "width", "height") if field in one}
            for name, one in found.items()
            if one
        }
        pictured.append(embed | pictures)
    return tuple(pictured), tuple(one for one in uploads if one["id"] not in used)


def sticker_objects(names: Iterable[str]) -> tuple[Wire, ...]:
    return tuple({"id": str(number), "name": name, "format_type": 1} for number, name in enumerate(names, start=1))


def check_emoji(emoji: str) -> str:
    """An emoji in a path. ApiError 10014 for plain text."""
    name, _, emoji_id = emoji.partition(":")
    custom = bool(name) and emoji_id.isdecimal()
    if not custom and (emoji.isascii() or len(emoji) > 16):
        raise errors.unknown_emoji()
    return emoji
