"""The playground's guilds with their channels and roles, its people, and uploads."""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from playground import errors, permissions, uploads
from playground.model import (
    CATEGORY,
    DM,
    GROUP_DM,
    TEXT,
    Channel,
    Clock,
    Event,
    File,
    Guild,
    Message,
    Role,
    User,
    Wire,
)

_EPOCH_MS = 1_420_070_400_000  # Discord's snowflakes count from the start of 2015
_MAX_FILES = 100
_COLORS = ("#e67e22", "#3498db", "#9b59b6", "#1abc9c", "#e91e63", "#f1c40f", "#2ecc71", "#e74c3c")
_BOT_COLOR = "#5865f2"


class Places:
    """Guilds, their channels, and the bot and people in them. `guild` is the first guild."""

    def __init__(
        self, channels: Iterable[str], people: Iterable[str], *, bot_name: str, now: Clock, history: int = 5_000
    ) -> None:
        """history: number of messages that a channel keeps."""
        self._now = now
        self.history = history
        self._last_id = 0
        self._listeners: list[Callable[[Event], None]] = []
        self.bot = User(self.next_id(), bot_name, bot=True, color=_BOT_COLOR)
        self.interactions_endpoint_url: str | None = None  # of the bot's application
        self.created = now()
        self.owner_id = self.bot.id  # until the first person is added, who owns the guilds
        self.users: dict[int, User] = {self.bot.id: self.bot}
        self.guild = self._new_guild(self.next_id(), "Playground")
        self.guilds: dict[int, Guild] = {self.guild.id: self.guild}
        self.channels: dict[int, Channel] = {}  # of all guilds
        self.threads: dict[int, Channel] = {}
        self.dms: dict[int, Channel] = {}
        self.elsewhere: dict[int, Channel] = {}  # channels without the bot: of groups, of other servers
        self.blocking: set[int] = set()  # ids of people who block the bot's direct messages
        self.installed: set[int] = set()  # ids of people who installed the bot's application
        self.files: OrderedDict[int, File] = OrderedDict()
        self.upload_limit = uploads.LIMIT
        self.webhooks: dict[int, User] = {}
        for name in channels:
            self.add_channel(name)
        for name in people:
            self.add_person(name)

    # Ids, listeners, look-ups

    def next_id(self) -> int:
        """A new snowflake, always greater than the last one."""
        milliseconds = int(self._now() * 1000) - _EPOCH_MS
        self._last_id = max(self._last_id + 1, milliseconds << 22)
        return self._last_id

    def listen(self, listener: Callable[[Event], None]) -> None:
        self._listeners.append(listener)

    def emit(self, event: Event) -> None:
        for listener in self._listeners:
            listener(event)

    def channel(self, channel_id: int) -> Channel:
        """A channel, thread or direct-message channel. ApiError 10003: there is none."""
        for channels in self._every_channel:
            if channel_id in channels:
                return channels[channel_id]
        raise errors.unknown_channel()

    @property
    def _every_channel(self) -> tuple[dict[int, Channel], ...]:
        return self.channels, self.threads, self.dms, self.elsewhere

    def category(self, category_id: int | None) -> Channel | None:
        """The category with this id; None for None. ApiError 50035: the channel is no category."""
        if category_id is None:
            return None
        found = self.channel(category_id)
        if found.type != CATEGORY:
            raise errors.invalid_form("parent_id", "CHANNEL_PARENT_INVALID_TYPE", "Not a category")
        return found

    def guild_of(self, channel: Channel) -> Guild | None:
        """The channel's guild. None: direct messages, or a server without the bot."""
        return self.guilds.get(channel.guild_id or 0)

    def guild_with(self, role_id: int) -> Guild:
        """The guild that has this role. ApiError 10011: there is none."""
        for guild in self.guilds.values():
            if role_id in guild.roles:
                return guild
        raise errors.unknown_role()

    def role(self, role_id: int) -> Role:
        """A role of any guild. ApiError 10011: there is none."""
        return self.guild_with(role_id).roles[role_id]

    @property
    def bot_is_member(self) -> bool:
        """Whether the bot is in any guild."""
        return any(guild.bot_is_member for guild in self.guilds.values())

    def bot_shares(self, channel: Channel) -> bool:
        """Whether the bot is in the channel's guild; for its direct messages, in any guild."""
        if channel.guild_id is None:
            return self.bot_is_member and channel.id not in self.elsewhere
        guild = self.guild_of(channel)
        return guild is not None and guild.bot_is_member

    def user(self, user_id: int) -> User:
        """A person or bot. ApiError 10013: there is none."""
        try:
            return self.users[user_id]
        except KeyError:
            raise errors.unknown_user() from None

    def message(self, channel_id: int, message_id: int) -> Message:
        """A message of a channel. ApiError 10003: no such channel; 10008: no such message."""
        try:
            return self.channel(channel_id).messages[message_id]
        except KeyError:
            raise errors.unknown_message() from None

    def find_message(self, message_id: int) -> Message:
        """A message by its id alone. ApiError 10008: there is none."""
        for channel in (channel for channels in self._every_channel for channel in channels.values()):
            if message_id in channel.messages:
                return channel.messages[message_id]
        raise errors.unknown_message()

    def threads_in(self, guild: Guild) -> list[Channel]:
        """The threads of a guild, oldest first."""
        return [one for one in self.threads.values() if one.guild_id == guild.id]

    def threads_of(self, parent: Channel) -> list[Channel]:
        """The threads of a channel, oldest first."""
        return [one for one in self.threads.values() if one.parent_id == parent.id]

    def channels_of(self, category: Channel) -> list[Channel]:
        """The channels of a category, oldest first."""
        guild = self.guild_of(category)
        return [one for one in guild.channels.values() if one.parent_id == category.id] if guild else []

    @property
    def people(self) -> list[User]:
        return [user for user in self.users.values() if not user.bot]

    # Growing

    def _new_guild(self, guild_id: int, name: str) -> Guild:
        everyone = Role(guild_id, "@everyone", permissions.EVERYONE, position=0)
        own = Role(self.next_id(), self.bot.name, permissions.INVITED, position=1, managed=True)
        roles = {one.id: one for one in (everyone, own)}
        return Guild(guild_id, name, own.id, roles, {self.bot.id: frozenset({own.id})})

    def add_guild(self, name: str) -> Guild:
        """Add a guild, which the bot joins. Its id is a millisecond older than the last, so that shards alternate."""
        guild = self._new_guild(self.guild.id - (len(self.guilds) << 22), name)
        self.guilds[guild.id] = guild
        self.emit(Event(name="GUILD_CREATE", guild=guild))
        return guild

    def add_person(self, name: str) -> User:
        color = _COLORS[(len(self.users) - 1) % len(_COLORS)]
        user = User(self.next_id(), name, color=color)
        if len(self.users) == 1:
            self.owner_id = user.id
        self.users[user.id] = user
        self.emit(Event(name="PEOPLE"))
        return user

    def add_bot(self, name: str) -> User:
        """Add another bot to the guilds."""
        bot = User(self.next_id(), name, bot=True, color=_BOT_COLOR)
        self.users[bot.id] = bot
        self.emit(Event(name="PEOPLE"))
        return bot

    def add_webhook(self, name: str) -> User:
        """Add a webhook, which can be an author, but is no member."""
        webhook = User(self.next_id(), name, bot=True, color=_BOT_COLOR)
        self.webhooks[webhook.id] = webhook
        return webhook

    def add_channel(
        self,
        name: str,
        topic: str = "",
        *,
        type: int = TEXT,  # noqa: A002 - Discord's word
        tags: Iterable[Wire] = (),
        needs_tag: bool = False,
        category_id: int | None = None,
        guild: Guild | None = None,
    ) -> Channel:
        """Add a channel or category to a guild, by default the first. It gets the overwrites of its category."""
        category, guild = self.category(category_id), guild or self.guild
        channel = Channel(
            self.next_id(),
            name,
            topic,
            type,
            len(guild.channels),
            guild_id=guild.id,
            tags=tuple(tags),
            needs_tag=needs_tag,
            parent_id=category_id,
            overwrites=dict(category.overwrites) if category else {},
        )
        self.channels[channel.id] = guild.channels[channel.id] = channel
        self.emit(Event(name="CHANNEL_CREATE", channel=channel))
        return channel

    def change_channel(self, channel: Channel, **changes: Any) -> None:
        """Set fields of a channel, such as `name`, or `parent_id` to move it. Its overwrites stay."""
        self.category(changes.get("parent_id"))
        for field, value in changes.items():
            setattr(channel, field, value)
        self.emit(Event(name="CHANNEL_UPDATE", channel=channel))

    def delete_channel(self, channel: Channel) -> None:
        """Delete a channel with its threads, a category without its channels, or a thread.

        As in Discord, the threads of a deleted channel get no event.
        """
        if self.channels.pop(channel.id, None) is not None and (guild := self.guild_of(channel)):
            del guild.channels[channel.id]
        for thread in self.threads_of(channel):
            del self.threads[thread.id]
        for inside in self.channels_of(channel):
            self.change_channel(inside, parent_id=None)
        is_thread = self.threads.pop(channel.id, None) is not None
        self.emit(Event(name="THREAD_DELETE" if is_thread else "CHANNEL_DELETE", channel=channel))

    def let_bot_in(self, guild: Guild, is_member: bool) -> None:
        """Makes the bot join or leave a guild. Its messages stay."""
        if is_member != guild.bot_is_member:
            guild.bot_is_member = is_member
            self.emit(Event(name="GUILD_CREATE" if is_member else "GUILD_DELETE", guild=guild))

    def open_dm(self, user_id: int) -> Channel:
        """The bot's direct-message channel with a person; creates it if there is none yet."""
        user = self.user(user_id)
        for channel in self.dms.values():
            if channel.recipient_id == user.id:
                return channel
        channel = Channel(self.next_id(), "", type=DM, recipient_id=user.id)
        self.dms[channel.id] = channel
        return channel

    def add_elsewhere(self, name: str, group: Iterable[int] = ()) -> Channel:
        """Add the direct messages of a group, or, without a group, a channel of a server without the bot."""
        members = tuple(self.user(one).id for one in group)
        guild_id = None if members else self.next_id()
        kind = GROUP_DM if members else TEXT
        channel = Channel(self.next_id(), name, type=kind, guild_id=guild_id, group=members)
        self.elsewhere[channel.id] = channel
        return channel

    def keep_file(self, file: File) -> int:
        """Keeps an upload, of the last 100, and returns its id. ApiError 40005: larger than `upload_limit`."""
        if len(file.data) > self.upload_limit:
            raise errors.too_large()
        file_id = self.next_id()
        self.files[file_id] = file
        while len(self.files) > _MAX_FILES:
            self.files.popitem(last=False)
        return file_id
