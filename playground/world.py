"""The playground's world: one guild, its channels, people and messages, and every change to them.

All of it is synchronous and in memory. Whatever changes goes out once as an `Event` to those who listen (gateway,
page). Every collection has a bound; the oldest goes first.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from playground import errors, permissions
from playground.mentions import ANY, AllowedMentions, named
from playground.model import (
    DM,
    PINS_ADD,
    SILENT,
    TEXT,
    Channel,
    Clock,
    Draft,
    Event,
    File,
    Message,
    Reaction,
    Reference,
    User,
)
from playground.permissions import Overwrite

_EPOCH_MS = 1_420_070_400_000  # Discord's snowflakes count from the first second of 2015.
_MAX_MESSAGES = 5_000  # per channel
_MAX_FILES = 100
_COLORS = ("#e67e22", "#3498db", "#9b59b6", "#1abc9c", "#e91e63", "#f1c40f", "#2ecc71", "#e74c3c")
_BOT_COLOR = "#5865f2"


class World:
    """One guild and the bot in it. Ids are ints here and strings on the wire."""

    def __init__(self, channels: Iterable[str], people: Iterable[str], *, bot_name: str, now: Clock) -> None:
        self._now = now
        self._last_id = 0
        self._listeners: list[Callable[[Event], None]] = []
        self.guild_id = self.next_id()
        self.guild_name = "Playground"
        self.bot_role_id = self.next_id()
        self.bot = User(self.next_id(), bot_name, bot=True, color=_BOT_COLOR)
        self.bot_is_member = True
        self.created = now()
        self.owner_id = self.bot.id  # until there is a person; the first one owns the guild
        self.users: dict[int, User] = {self.bot.id: self.bot}
        self.channels: dict[int, Channel] = {}
        self.dms: dict[int, Channel] = {}
        self.files: OrderedDict[int, File] = OrderedDict()
        for name in channels:
            self.add_channel(name)
        for name in people:
            self.add_person(name)

    # Ids, listeners, look-ups

    def next_id(self) -> int:
        """A new snowflake, always above the last one."""
        milliseconds = int(self._now() * 1000) - _EPOCH_MS
        self._last_id = max(self._last_id + 1, milliseconds << 22)
        return self._last_id

    def listen(self, listener: Callable[[Event], None]) -> None:
        self._listeners.append(listener)

    def emit(self, event: Event) -> None:
        for listener in self._listeners:
            listener(event)

    def channel(self, channel_id: int) -> Channel:
        """ApiError 10003 for none."""
        channel = self.channels.get(channel_id) or self.dms.get(channel_id)
        if channel is None:
            raise errors.unknown_channel()
        return channel

    def user(self, user_id: int) -> User:
        """ApiError 10013 for none."""
        try:
            return self.users[user_id]
        except KeyError:
            raise errors.unknown_user() from None

    def message(self, channel_id: int, message_id: int) -> Message:
        """ApiError 10003 or 10008 for none."""
        try:
            return self.channel(channel_id).messages[message_id]
        except KeyError:
            raise errors.unknown_message() from None

    def find_message(self, message_id: int) -> Message:
        """A message by its id alone; ApiError 10008 for none."""
        for channel in (*self.channels.values(), *self.dms.values()):
            if message_id in channel.messages:
                return channel.messages[message_id]
        raise errors.unknown_message()

    @property
    def people(self) -> list[User]:
        return [user for user in self.users.values() if not user.bot]

    # Growing

    def add_person(self, name: str) -> User:
        color = _COLORS[(len(self.users) - 1) % len(_COLORS)]
        user = User(self.next_id(), name, color=color)
        if len(self.users) == 1:
            self.owner_id = user.id
        self.users[user.id] = user
        return user

    def add_channel(self, name: str, topic: str = "") -> Channel:
        channel = Channel(self.next_id(), name, topic, position=len(self.channels))
        self.channels[channel.id] = channel
        self.emit(Event(name="CHANNEL_CREATE", channel=channel))
        return channel

    def let_bot_in(self, is_member: bool) -> None:
        """Has the bot join the guild or leave it. What it said stays."""
        if is_member != self.bot_is_member:
            self.bot_is_member = is_member
            self.emit(Event(name="GUILD_CREATE" if is_member else "GUILD_DELETE"))

    def open_dm(self, user_id: int) -> Channel:
        """The bot's direct-message channel with a person, made when there is none yet."""
        user = self.user(user_id)
        for channel in self.dms.values():
            if channel.recipient_id == user.id:
                return channel
        channel = Channel(self.next_id(), "", type=DM, recipient_id=user.id)
        self.dms[channel.id] = channel
        return channel

    def keep_file(self, file: File) -> int:
        """Keeps an upload (the last 100 of them) and returns its id."""
        file_id = self.next_id()
        self.files[file_id] = file
        while len(self.files) > _MAX_FILES:
            self.files.popitem(last=False)
        return file_id

    # Permissions

    def permissions(self, channel: Channel, user_id: int) -> int:
        """The permission integer of a user in a channel. In direct messages and for the owner, everything."""
        if channel.type == DM or user_id == self.owner_id:
            return permissions.ALL
        if user_id == self.bot.id and not self.bot_is_member:
            return 0
        roles = (self.guild_id, self.bot_role_id) if user_id == self.bot.id else (self.guild_id,)
        base = permissions.EVERYONE | (permissions.INVITED if user_id == self.bot.id else 0)
        applying = [channel.overwrites[one] for one in (*roles, user_id) if one in channel.overwrites]
        return permissions.in_channel(base, applying)

    def may(self, channel: Channel, user_id: int, *names: str) -> bool:
        wanted = permissions.bits(names)
        return self.permissions(channel, user_id) & wanted == wanted

    def overwrite(self, channel_id: int, target_id: int, *, allow: int = 0, deny: int = 0) -> None:
        """Add to what a channel allows and denies to a member or role."""
        channel = self.channel(channel_id)
        old = channel.overwrites.get(target_id) or Overwrite(target_id, member=target_id in self.users)
        new = replace(old, allow=old.allow & ~deny | allow, deny=old.deny & ~allow | deny)
        channel.overwrites[target_id] = new
        self.emit(Event(name="CHANNEL_UPDATE", channel=channel))

    # Messages

    def compose(self, channel: Channel, author: User, draft: Draft) -> Message:
        """The message that a draft becomes, not yet posted."""
        mentioned = self._mentioned(channel, author, draft)
        return Message(
            id=self.next_id(),
            channel_id=channel.id,
            author=author,
            content=draft.content,
            created=self._now(),
            type=draft.type,
            flags=draft.flags,
            reference=draft.reference,
            embeds=tuple(draft.embeds),
            components=tuple(draft.components),
            attachments=tuple(draft.attachments),
            stickers=tuple(draft.stickers),
            snapshots=tuple(draft.snapshots),
            nonce=draft.nonce,
            webhook_id=draft.webhook_id,
            interaction=draft.interaction,
            poll=draft.poll,
            pinged=frozenset() if draft.flags & SILENT else self._pinged(channel, author, mentioned),
            **mentioned,
        )

    def post(self, channel: Channel, author: User, draft: Draft) -> Message:
        message = self.compose(channel, author, draft)
        channel.messages[message.id] = message
        channel.last_message_id = message.id
        if len(channel.messages) > _MAX_MESSAGES:
            del channel.messages[next(iter(channel.messages))]
        self.emit(Event(name="MESSAGE_CREATE", channel=channel, message=message))
        return message

    def revise(self, message: Message, changes: Mapping[str, Any], allowed: AllowedMentions = ANY) -> Message:
        """The message with other fields, marked as edited. An edit pings nobody anew."""
        edited = replace(message, **changes, edited=self._now())
        reference = message.reference if message.reference and message.reference.type == 0 else None
        draft = Draft(content=edited.content, reference=reference, allowed=allowed)
        mentioned = self._mentioned(self.channel(message.channel_id), message.author, draft)
        return replace(edited, **mentioned)

    def edit(self, message: Message, changes: Mapping[str, Any], allowed: AllowedMentions = ANY) -> Message:
        return self.replace_message(self.revise(message, changes, allowed))

    def replace_message(self, message: Message) -> Message:
        """Put a changed message in place of the one with its id, and say so."""
        channel = self.channel(message.channel_id)
        channel.messages[message.id] = message
        self.emit(Event(name="MESSAGE_UPDATE", channel=channel, message=message))
        return message

    def delete(self, message: Message) -> None:
        channel = self.channel(message.channel_id)
        channel.messages.pop(message.id, None)
        self.emit(Event(name="MESSAGE_DELETE", channel=channel, ids=(message.id,)))

    def delete_bulk(self, channel_id: int, message_ids: Iterable[int]) -> None:
        channel = self.channel(channel_id)
        gone = tuple(one for one in message_ids if channel.messages.pop(one, None))
        self.emit(Event(name="MESSAGE_DELETE_BULK", channel=channel, ids=gone))

    def repeat(self, message: Message) -> None:
        """Send a message's MESSAGE_CREATE once more."""
        channel = self.channel(message.channel_id)
        self.emit(Event(name="MESSAGE_CREATE", channel=channel, message=message))

    def react(self, message: Message, user_id: int, emoji: str, *, add: bool) -> Message:
        """Put or take back a reaction; nothing happens where it stands or is gone already."""
        counts = {reaction.emoji: reaction.users for reaction in message.reactions}
        users = counts.get(emoji, ())
        if (user_id in users) == add:
            return message
        counts[emoji] = (*users, user_id) if add else tuple(one for one in users if one != user_id)
        reactions = tuple(Reaction(name, ids) for name, ids in counts.items() if ids)
        channel = self.channel(message.channel_id)
        changed = channel.messages[message.id] = replace(message, reactions=reactions)
        name = "MESSAGE_REACTION_ADD" if add else "MESSAGE_REACTION_REMOVE"
        self.emit(Event(name=name, channel=channel, message=changed, user_id=user_id, emoji=emoji))
        return changed

    def clear_reactions(self, message: Message) -> None:
        channel = self.channel(message.channel_id)
        changed = channel.messages[message.id] = replace(message, reactions=())
        self.emit(Event(name="MESSAGE_REACTION_REMOVE_ALL", channel=channel, message=changed))

    def pin(self, message: Message, actor: User) -> None:
        """Pin a message, and say so in the channel as Discord does; nothing happens where it is pinned already."""
        if message.pinned_at is not None:
            return
        channel = self.channel(message.channel_id)
        self.replace_message(replace(message, pinned_at=self._now()))
        self.emit(Event(name="CHANNEL_PINS_UPDATE", channel=channel))
        nobody = replace(ANY, replied_user=False)
        self.post(channel, actor, Draft(type=PINS_ADD, reference=Reference(message.id, channel.id), allowed=nobody))

    def unpin(self, message: Message) -> None:
        if message.pinned_at is not None:
            self.replace_message(replace(message, pinned_at=None))
            self.emit(Event(name="CHANNEL_PINS_UPDATE", channel=self.channel(message.channel_id)))

    def typing(self, channel_id: int, user_id: int) -> None:
        channel = self.channel(channel_id)
        self.emit(Event(name="TYPING_START", channel=channel, user_id=self.user(user_id).id, at=self._now()))

    # Mentions

    def _mentioned(self, channel: Channel, author: User, draft: Draft) -> dict[str, Any]:
        names, allowed = named(draft.content), draft.allowed
        users = {one for one in names.users if one in self.users and allowed.lets_user(one)}
        replied = self._replied_author(draft.reference)
        ordered = [one for one in names.users if one in users]
        if replied is not None and allowed.replied_user and replied not in users:
            ordered.append(replied)
        roles = tuple(one for one in names.roles if one == self.bot_role_id and allowed.lets_role(one))
        everyone = names.everyone and allowed.everyone and self.may(channel, author.id, "mention_everyone")
        return {"mentions": tuple(ordered), "mention_roles": roles, "mention_everyone": everyone}

    def _replied_author(self, reference: Reference | None) -> int | None:
        if reference is None or reference.type != 0:
            return None
        try:
            author_id = self.message(reference.channel_id, reference.message_id).author.id
        except errors.ApiError:
            return None
        return author_id if author_id in self.users else None

    def _pinged(self, channel: Channel, author: User, mentioned: Mapping[str, Any]) -> frozenset[int]:
        pinged = set(mentioned["mentions"])
        if mentioned["mention_everyone"]:
            pinged |= set(self.users) if channel.type == TEXT else {self.bot.id, channel.recipient_id}
        if self.bot_role_id in mentioned["mention_roles"]:
            pinged.add(self.bot.id)
        return frozenset(pinged - {author.id})
