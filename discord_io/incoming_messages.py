"""The one place that reads a discord.Message: decides which ones count, and makes Incomings and MessageRecords."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from sys import intern
from typing import TypeGuard

import discord

from conversation import ChannelConversation, MessageRecord
from discord_io.places import Places, category_of
from discord_io.who_may_read import has_rules, is_read_by_all_of, may_read
from incoming import Incoming
from llm_history import REPLY_EXCERPT
from place import Place, PlaceKind
from state.consent import Consent
from state.message import NOBODY, AttachedFile
from understanding.name_calls import called_as, may_call

SAID_BY_PEOPLE = frozenset({discord.MessageType.default, discord.MessageType.reply})
SAID_BY_BOTS = SAID_BY_PEOPLE | {discord.MessageType.chat_input_command, discord.MessageType.context_menu_command}
# By how much a system message changes the number of members of a thread.
STEPS = {discord.MessageType.recipient_add: 1, discord.MessageType.recipient_remove: -1}
MAX_SECONDS = 1e9
MAX_IMAGES = 4
MAX_IMAGE_BYTES = 8_000_000
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
MAX_EXTRA_CHARACTERS = 1_500
MAX_BOT_CHARACTERS = 4_000  # of another bot's embeds and the like, which are all that most bots post
MAX_NAME_CHARACTERS = 40
AN_ID = timedelta(milliseconds=1)  # the resolution of ids: within it, they do not tell which message came first
MARKS = re.compile('[:()"\u202a-\u202e\u2066-\u2069]')  # with the characters that change the direction of text
KINDS: dict[object, PlaceKind] = {
    discord.ChannelType.voice: PlaceKind.VOICE,
    discord.ChannelType.stage_voice: PlaceKind.STAGE,
    discord.ChannelType.public_thread: PlaceKind.THREAD,
    discord.ChannelType.news_thread: PlaceKind.THREAD,
    discord.ChannelType.private_thread: PlaceKind.PRIVATE_THREAD,
    discord.ChannelType.private: PlaceKind.DIRECT,
}


def bot_of(client: discord.Client) -> tuple[str, int]:
    """The bot's name and id."""
    user = client.user
    return (user.name, user.id) if user else ("Parley", 0)


class MessageReader:
    """Reads messages and clicks. places: the settings of places; consent: decides whose titles may be shown to the
    model; name_calls: whether the bot can be called by its names."""

    def __init__(
        self,
        client: discord.Client,
        places: Places,
        consent: Consent,
        *,
        name_calls: bool,
        clock: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._places = places
        self._consent = consent
        self._name_calls = name_calls
        self._clock = clock

    def has_offers(self, channel: object) -> bool:
        """Whether offers are on there."""
        return self._places.has_offers(channel)

    def hears(self, message: discord.Message) -> bool:
        """Whether a person posted it in a channel, a thread or a direct message."""
        return is_persons(message) and _is_place(message.channel)

    def may_concern_us(self, message: discord.Message) -> bool:
        """Whether a message may mention the bot, call it by name or reply to it, or nobody else is there.

        If not, it starts no conversation, and is not read any further.
        """
        channel = message.channel
        if is_direct(channel):
            return True
        if isinstance(channel, discord.Thread) and self._people_in(channel, message.author.id, message.created_at) == 1:
            return True
        if (names := self._names(message.guild)) and may_call(message.content, names):
            return True
        if message.role_mentions or self._client.user in message.mentions:
            return True
        if message.reference is None:
            return False
        replied_to = message.reference.resolved
        return not isinstance(replied_to, discord.Message) or replied_to.author == self._client.user

    def is_other_bots(self, message: discord.Message) -> bool:
        """Whether another bot or a webhook posted it where people's messages are read."""
        return is_other_bots(message, bot_of(self._client)[1]) and _is_place(message.channel)

    def own_quoted(self, message: discord.Message) -> int | None:
        """The id of the bot's message that it replies to; None: it replies to none."""
        replied_to = message.reference.resolved if message.reference else None
        is_own = isinstance(replied_to, discord.Message) and replied_to.author == self._client.user
        return replied_to_id(message) if is_own else None

    def count(self, message: discord.Message) -> None:
        """Counts people who are added to a thread or removed: Discord tells the bot only by this system message."""
        step = STEPS.get(message.type)
        if step and isinstance(message.channel, discord.Thread) and self._client.user not in message.mentions:
            message.channel.member_count += step

    def counted(self, updated: discord.RawThreadUpdateEvent) -> None:
        """Updates a changed thread's member count, which discord.py does not."""
        if updated.thread and isinstance(count := updated.data.get("member_count"), int):
            updated.thread.member_count = count

    def record(self, message: discord.Message) -> MessageRecord:
        return to_record(message, bot_of(self._client)[1], self._names(message.guild))

    def incoming(self, message: discord.Message, conversation: ChannelConversation | None) -> Incoming:
        _, bot_id = bot_of(self._client)
        guild, channel, author = message.guild, message.channel, message.author
        me = guild.me if guild else None  # as far as the cache knows
        allowed = channel.permissions_for(me) if me and has_permissions(channel) else discord.Permissions.all()
        authors = _permissions_of(author, channel)
        record = to_record(message, bot_id, self._names(guild))
        place = self._place(channel, guild, author.id, record.timestamp)
        if place.held.settings.threads == "open" and isinstance(channel, discord.TextChannel):
            may_open = allowed.create_public_threads and allowed.send_messages_in_threads
            place = replace(place, opens_threads=may_open and allowed.read_message_history)
        return Incoming(
            record,
            conversation,
            place,
            bot_id,
            self._clock(),
            may_send=may_send(channel, allowed),
            may_react=allowed.add_reactions and not _is_locked(channel, allowed),
            manages=authors is not None and authors.manage_messages,
            reads_history=_reads_history(channel, authors),
            role_ids=_role_ids(guild, author),
        )

    def clicked(
        self, interaction: discord.Interaction, words: str, conversation: ChannelConversation | None
    ) -> Incoming:
        """A click as if its user had said `words` in reply to the card."""
        _, bot_id = bot_of(self._client)
        card, is_label = interaction.message, interaction.type is not discord.InteractionType.modal_submit
        told = conversation.find(card.id) if conversation and card else None
        people = told.drew_on | told.addressees if told else conversation.people_told_of() if conversation else NOBODY
        record = MessageRecord(
            author=_name(interaction.user),
            author_id=interaction.user.id,
            content=words,
            timestamp=interaction.created_at,
            is_bot=False,
            message_id=interaction.id,
            mentioned=NOBODY,
            reply_to_id=card.id if card else None,
            reply_to_author_id=bot_id,
            reply_to_author=_name(card.author) if card else "",
            reply_to_text=card.clean_content[:REPLY_EXCERPT] if card else "",
            drew_on=frozenset(people) if is_label else NOBODY,
            is_label=is_label,
            is_form=not is_label,
            is_direct=is_direct(interaction.channel),
        )
        return Incoming(
            record,
            conversation,
            self._place(interaction.channel, interaction.guild, interaction.user.id, interaction.created_at),
            bot_id,
            self._clock(),
            reads_history=_reads_history(interaction.channel, _permissions_of(interaction.user, interaction.channel)),
            role_ids=_role_ids(interaction.guild, interaction.user),
        )

    def _place(
        self,
        channel: discord.abc.MessageableChannel | discord.interactions.InteractionChannel | None,
        guild: discord.Guild | None,
        author_id: int,
        at: datetime,
    ) -> Place:
        """The place where somebody says something, as far as it is in the cache. at: when they do."""
        kind = KINDS.get(getattr(channel, "type", None), PlaceKind.TEXT)
        guild_id, channel_id, category_id = guild.id if guild else 0, channel.id if channel else 0, category_of(channel)
        parent_id = channel.parent_id if isinstance(channel, discord.Thread) else None
        place = Place(
            guild_id,
            channel_id,
            kind,
            bot_of(self._client)[0],
            guild=guild.name if guild else "",
            channel=getattr(channel, "name", None) or "",
            parent_id=parent_id,
            category_id=category_id,
            held=self._places.settings.in_channel(guild_id, channel_id, parent_id, category_id),
        )
        if not isinstance(channel, discord.Thread):
            return place
        parent, title = channel.parent, self.title(channel)
        return replace(
            place,
            kind=PlaceKind.POST if isinstance(parent, discord.ForumChannel) else kind,
            channel=title,
            parent=parent.name if parent else "",
            people=self._people_in(channel, author_id, at),
            is_opener=channel.owner_id == author_id,
            titled_by=channel.owner_id if title else 0,
        )

    def title(self, thread: discord.Thread) -> str:
        """A thread's title, if the model may be shown it; empty for one that the bot opened, as that is somebody's
        question."""
        if thread.owner_id == bot_of(self._client)[1]:
            return ""
        at = discord.utils.snowflake_time(thread.id)
        told = self._consent.tellable(
            thread.id, MessageRecord("", thread.owner_id, thread.name, at, is_bot=False, message_id=thread.id)
        )
        return told.content if told else ""

    def renewed(self, place: Place) -> Place:
        """The place with its current category and settings, as far as they are in the cache."""
        channel = self._client.get_channel(place.parent_id or place.channel_id)
        now = replace(place, category_id=category_of(channel)) if channel else place
        return replace(now, held=self._places.settings.at(now))

    def _people_in(self, thread: discord.Thread, author_id: int, at: datetime) -> int | None:
        """How many people are in a thread; None: the bot was not in it at that time.

        Discord sends the number when the bot joins, when people are added, and when the thread is changed. Others are
        known by their messages, or by a mention, which adds them.
        """
        if thread.me is None or thread.me.joined_at - at > AN_ID:  # a message from before it joined is not for the bot
            return None
        known = {author_id, thread.owner_id} - {bot_of(self._client)[1]}
        if max(thread.member_count - 1, len(known)) == 1:
            said = (m for m in self._client.cached_messages if m.channel.id == thread.id and m.type in SAID_BY_PEOPLE)
            known |= {user.id for m in said for user in (m.author, *m.mentions) if not (user.bot or m.webhook_id)}
        return max(thread.member_count - 1, len(known))

    def _names(self, guild: discord.Guild | None) -> tuple[str, ...]:
        """The names by which the bot can be called there."""
        user = self._client.user
        if not (self._name_calls and user):
            return ()
        me = guild.me if guild else None
        return (me.display_name, user.name) if me else (user.name,)


def has_permissions(channel: object) -> TypeGuard[discord.abc.GuildChannel | discord.Thread]:
    """Whether permissions in it are known; not those in a thread whose parent is not in the cache."""
    is_thread = isinstance(channel, discord.Thread) and channel.parent is not None
    return is_thread or isinstance(channel, discord.abc.GuildChannel)


def may_send(channel: object, allowed: discord.Permissions) -> bool:
    """Whether somebody with these permissions may write there."""
    if not isinstance(channel, discord.Thread | discord.ForumChannel):  # in a forum one can only write in posts
        return allowed.send_messages
    return allowed.send_messages_in_threads and not _is_locked(channel, allowed)


def why_mute(client: discord.Client, places: Places, channel_id: int) -> str | None:
    """Why the bot may not write unasked in a place, in a word; None: it may."""
    channel = client.get_channel(channel_id)
    if not has_permissions(channel):
        return "no_channel"
    if places.held(channel).refuses_unasked:
        return "not_listed"
    allowed = channel.permissions_for(channel.guild.me)
    return None if allowed.view_channel and may_send(channel, allowed) else "missing_permission"


def _role_ids(guild: discord.Guild | None, author: discord.abc.User) -> frozenset[int] | None:
    """The roles of somebody in a guild; None: unknown, as for a message that is read later."""
    if guild is None:
        return frozenset()
    return frozenset(role.id for role in author.roles) if isinstance(author, discord.Member) else None


def _is_place(channel: object) -> bool:
    return isinstance(channel, discord.abc.GuildChannel | discord.Thread) or is_direct(channel)


def _is_locked(channel: object, allowed: discord.Permissions) -> bool:
    return isinstance(channel, discord.Thread) and channel.locked and not allowed.manage_threads


def _permissions_of(user: discord.abc.User, channel: object) -> discord.Permissions | None:
    """Somebody's permissions there; None: unknown."""
    if isinstance(user, discord.Member) and has_permissions(channel):
        return channel.permissions_for(user)
    return None


def _reads_history(channel: object, authors: discord.Permissions | None) -> bool:
    """Whether the author may read the history there. authors: their permissions; None: unknown."""
    if not has_rules(channel):
        return True
    if authors is not None:
        return may_read(channel, authors)
    return is_read_by_all_of(channel, channel)  # a message that is read later does not have its author's roles


def is_persons(message: discord.Message) -> bool:
    """Whether a person posted it: no bot, no webhook, no system message."""
    return not _is_automatic(message) and message.type in SAID_BY_PEOPLE


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
    reference = message.reference if message.type is discord.MessageType.reply else None
    found = (reference.resolved or reference.cached_message) if reference else None
    replied_to = found if isinstance(found, discord.Message) else None
    reply_author = replied_to.author if replied_to else None
    own_role = message.guild.self_role if message.guild and message.role_mentions else None  # it looks at all roles
    names_own_role = own_role in message.role_mentions
    is_bot, is_other_bot = message.author.id == bot_user_id, is_other_bots(message, bot_user_id)
    return MessageRecord(
        author=_name(message.author),
        author_id=_one(message.author.id),
        content=message.content,
        timestamp=message.created_at,
        is_bot=is_bot,
        message_id=message.id,
        mentioned=_all_of(frozenset([user.id for user in message.mentions] + [bot_user_id] * names_own_role)),
        mentions_group=message.mention_everyone or len(message.role_mentions) > names_own_role,
        reply_to_id=replied_to_id(message),
        reply_to_author_id=reply_author.id if reply_author else None,
        reply_to_author=_name(reply_author) if reply_author else "",
        reply_to_text=_excerpt(replied_to) if replied_to else "",
        readable=_readable(message),
        images=(images := _images(message)),
        files=tuple(file for file in map(_file, _attachments(message)) if file.url not in images),
        reply_files=tuple(map(_file, _attachments(replied_to))) if replied_to else (),
        addressees=frozenset({reply_author.id}) if is_bot and reply_author else NOBODY,
        calls_bot="" if is_bot or is_other_bot else called_as(message.content, names),
        is_other_bot=is_other_bot,
        is_direct=is_direct(message.channel) and not message.author.bot,
    )


def replied_to_id(message: discord.Message) -> int | None:
    """The id of the message that it replies to."""
    return message.reference.message_id if message.reference and message.type is discord.MessageType.reply else None


def _name(user: discord.abc.User) -> str:
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
    return f"{title}{message.clean_content}\n{shown}".strip()


def _title(message: discord.Message) -> str:
    """The title of a post, for its first message, which has the post's id; empty for any other message."""
    channel = message.channel
    if not isinstance(channel, discord.Thread) or channel.id != message.id:
        return ""
    return f"{channel.name}\n" if isinstance(channel.parent, discord.ForumChannel) else ""


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


def _excerpt(message: discord.Message) -> str:
    """The excerpt of a message for a quote: its text, or its embeds and the like in words."""
    return (message.clean_content or _readable(message))[:REPLY_EXCERPT]


def _attachments(message: discord.Message) -> list[discord.Attachment]:
    """Its own attachments, and those of messages that it forwards."""
    return [*message.attachments, *(a for snapshot in message.message_snapshots for a in snapshot.attachments)]


def _file(attachment: discord.Attachment) -> AttachedFile:
    kind = (attachment.content_type or "").partition(";")[0]
    seconds = min(max(0.0, attachment.duration or 0.0), MAX_SECONDS)  # NaN, which JSON cannot hold, becomes 0
    return AttachedFile(attachment.filename, kind, attachment.size, attachment.url, seconds)


def _is_shown(file: AttachedFile) -> bool:
    """Whether it counts as a picture, by its type and size."""
    return file.kind in IMAGE_TYPES and file.size <= MAX_IMAGE_BYTES


def _images(message: discord.Message) -> tuple[str, ...]:
    return tuple(file.url for file in map(_file, _attachments(message)) if _is_shown(file))[:MAX_IMAGES]
