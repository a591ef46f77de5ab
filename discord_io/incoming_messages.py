"""Reads discord.Messages and clicks: decides which messages count, and makes Incomings of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeGuard

import discord

from clock import Clock
from conversation import ChannelConversation, MessageRecord
from discord_io.message_records import (
    SAID_BY_PEOPLE,
    is_direct,
    is_other_bots,
    is_persons,
    name_of,
    quoted_by,
    to_record,
    with_names,
)
from discord_io.places import Places, category_of
from discord_io.who_may_read import has_rules, is_read_by_all_of, may_read
from incoming import Incoming
from place import Place, PlaceKind
from state.consent import Consent
from state.message import NOBODY, REPLY_EXCERPT
from understanding.name_calls import may_call

# By how much a system message changes the number of members of a thread.
STEPS = {discord.MessageType.recipient_add: 1, discord.MessageType.recipient_remove: -1}
AN_ID = timedelta(milliseconds=1)  # the resolution of ids: within it, they do not tell which message came first
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
        clock: Clock,
    ) -> None:
        self._client = client
        self._places = places
        self._consent = consent
        self._name_calls = name_calls
        self._clock = clock

    def hears(self, message: discord.Message) -> bool:
        """Whether a person posted it in a channel, a thread or a direct message."""
        return is_persons(message) and _is_place(message.channel)

    def may_concern_us(self, message: discord.Message) -> bool:
        """Whether a message may mention the bot, call it by name or reply to it, or nobody else is there.

        If not, it starts no conversation, and is not read any further.
        """
        channel = message.channel
        if message.guild is None:
            return True
        if isinstance(channel, discord.Thread) and self._people_in(channel, message.author.id, message.created_at) == 1:
            return True
        if (names := self._names(message.guild)) and may_call(message.content, names):
            return True
        if message.role_mentions or self._client.user in message.mentions:
            return True
        if message.reference is None or message.message_snapshots:  # a forward calls nobody
            return False
        replied_to = message.reference.resolved
        return not isinstance(replied_to, discord.Message) or replied_to.author == self._client.user

    def is_other_bots(self, message: discord.Message) -> bool:
        """Whether another bot or a webhook posted it where people's messages are read."""
        return is_other_bots(message, bot_of(self._client)[1]) and _is_place(message.channel)

    def own_quoted(self, message: discord.Message) -> int | None:
        """The id of the bot's message that it replies to; None: it replies to none."""
        replied_to = quoted_by(message)
        return replied_to.id if replied_to and replied_to.author == self._client.user else None

    def count(self, message: discord.Message) -> None:
        """Counts who is added to a thread or removed. Discord tells the bot only by this message, of one of STEPS."""
        if isinstance(message.channel, discord.Thread) and self._client.user not in message.mentions:
            message.channel.member_count += STEPS[message.type]

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
        allowed = discord.Permissions.all()
        if has_permissions(channel):
            allowed = channel.permissions_for(me) if me else allowed
        elif isinstance(channel, discord.Thread):  # of an unknown channel, whose category's settings are unknown, too
            allowed = discord.Permissions.none()
        authors = permissions_of(author, channel)
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
            reads_history=reads_history(channel, authors),
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
            author=name_of(interaction.user),
            author_id=interaction.user.id,
            content=words,
            timestamp=interaction.created_at,
            is_bot=False,
            message_id=interaction.id,
            mentioned=NOBODY,
            reply_to_id=card.id if card else None,
            reply_to_author_id=bot_id,
            reply_to_author=name_of(card.author) if card else "",
            reply_to_text=with_names(card)[:REPLY_EXCERPT] if card else "",
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
            reads_history=reads_history(interaction.channel, permissions_of(interaction.user, interaction.channel)),
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


def permissions_of(user: discord.abc.User, channel: object) -> discord.Permissions | None:
    """Somebody's permissions there; None: unknown."""
    if isinstance(user, discord.Member) and has_permissions(channel):
        return channel.permissions_for(user)
    return None


def reads_history(channel: object, authors: discord.Permissions | None) -> bool:
    """Whether the author may read the history there. authors: their permissions; None: unknown."""
    if not has_rules(channel):  # as in a thread whose channel is unknown
        return isinstance(channel, discord.abc.PrivateChannel) or is_direct(channel)
    if authors is not None:
        return may_read(channel, authors)
    return is_read_by_all_of(channel, channel)  # a message that is read later does not have its author's roles
