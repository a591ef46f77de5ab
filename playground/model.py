"""The values of the playground's world: users, roles, channels, messages, guilds and events."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from playground.mentions import ANY, AllowedMentions
from playground.permissions import Overwrite

Wire = dict[str, Any]
Clock = Callable[[], float]

# Channel types
TEXT, DM, VOICE, GROUP_DM, CATEGORY, ANNOUNCEMENT, STAGE, FORUM, MEDIA = 0, 1, 2, 3, 4, 5, 13, 15, 16
ANNOUNCEMENT_THREAD, PUBLIC_THREAD, PRIVATE_THREAD = 10, 11, 12
THREADS_ONLY = (FORUM, MEDIA)  # channels without messages: they hold only posts, which are threads
THREAD_KINDS = {TEXT: (PUBLIC_THREAD, PRIVATE_THREAD), ANNOUNCEMENT: (ANNOUNCEMENT_THREAD,)}  # types by channel type
# Message types
RECIPIENT_ADD, RECIPIENT_REMOVE, NAME_CHANGE, PINS_ADD, THREAD_CREATED, REPLY, THREAD_STARTER = 1, 2, 4, 6, 18, 19, 21
VOICE_MESSAGE = 1 << 13  # message flag
HAS_THREAD = 1 << 5  # message flag: a thread was started from it
SILENT = 1 << 12  # message flag: it notifies nobody (Discord: SUPPRESS_NOTIFICATIONS)
_MAX_ID_DIGITS = 20  # of 64 bits


def snowflake(value: object) -> int | None:
    """An id from JSON, a string or an int. None: anything else."""
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MAX_ID_DIGITS else None


@dataclass(frozen=True, slots=True)
class User:
    """A person, a bot, or a webhook as the author of a message. `color`: for the page, "#rrggbb"."""

    id: int
    name: str
    bot: bool = False
    color: str = ""


@dataclass(frozen=True, slots=True)
class Role:
    """A role of a guild. `permissions` is Discord's integer; the bot's own role is `managed`."""

    id: int
    name: str
    permissions: int
    position: int
    color: int = 0  # 0xrrggbb; 0 is none
    mentionable: bool = False
    managed: bool = False


@dataclass(frozen=True, slots=True)
class File:
    """An uploaded attachment, served under /attachments. With a waveform it is a voice message."""

    filename: str
    content_type: str
    data: bytes
    description: str | None = None
    duration_secs: float | None = None
    waveform: str | None = None  # base64 of up to 256 volume samples


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to a message, in a reply (type 0) or a forward (type 1); without `message_id` to a channel."""

    message_id: int | None
    channel_id: int
    type: int = 0


@dataclass(frozen=True, slots=True)
class Reaction:
    """An emoji under a message (a character, or "name:id"), and the ids of those who reacted, in order."""

    emoji: str
    users: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The parts of a message to be posted."""

    content: str = ""
    embeds: Sequence[Wire] = ()
    components: Sequence[Wire] = ()
    attachments: Sequence[Wire] = ()
    stickers: Sequence[Wire] = ()
    snapshots: Sequence[Wire] = ()
    reference: Reference | None = None
    allowed: AllowedMentions = ANY
    nonce: str | int | None = None
    flags: int = 0
    type: int = 0
    webhook_id: int | None = None
    interaction: Wire | None = None
    poll: Wire | None = None
    recipient_id: int | None = None  # in a system message: who was added or removed


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A posted message. `created` and `edited` are wall-clock seconds. `pinged`: who was notified; a silent message
    notifies nobody. `poll`: as polls.py checked it. `pinned_at`: None: not pinned."""

    id: int
    channel_id: int
    author: User
    content: str
    created: float
    edited: float | None = None
    type: int = 0
    flags: int = 0
    reference: Reference | None = None
    embeds: tuple[Wire, ...] = ()
    components: tuple[Wire, ...] = ()
    attachments: tuple[Wire, ...] = ()
    stickers: tuple[Wire, ...] = ()
    snapshots: tuple[Wire, ...] = ()
    mentions: tuple[int, ...] = ()
    mention_roles: tuple[int, ...] = ()
    mention_everyone: bool = False
    pinged: frozenset[int] = frozenset()
    reactions: tuple[Reaction, ...] = ()
    nonce: str | int | None = None
    webhook_id: int | None = None
    interaction: Wire | None = None
    poll: Wire | None = None
    pinned_at: float | None = None

    @property
    def points_at(self) -> int | None:
        """Id of the message that it replies to or forwards."""
        return self.reference.message_id if self.reference else None


@dataclass(slots=True, kw_only=True)
class Thread:
    """The fields of a thread only. `members`: user id -> time of joining; `archived_at`: last change of `archived`."""

    owner_id: int
    created: float
    archived_at: float
    auto_archive_minutes: int
    invitable: bool = True
    archived: bool = False
    locked: bool = False
    sent: int = 0  # number of messages, including deleted ones
    tags: tuple[str, ...] = ()  # ids of its forum's tags that it has
    members: dict[int, float] = field(default_factory=dict)


@dataclass(slots=True)
class Channel:
    """A channel, thread or category, with its messages.

    `recipient_id` is set only in a direct-message channel, `thread` in a thread, `parent_id` in a thread and in a
    channel of a category, `tags` in a forum, `group` in a group's direct messages, without the bot; `guild_id` is None
    in all direct messages; `nsfw`: age-restricted.
    """

    id: int
    name: str
    topic: str = ""
    type: int = TEXT
    position: int = 0
    guild_id: int | None = None
    recipient_id: int | None = None
    last_message_id: int | None = None
    messages: dict[int, Message] = field(default_factory=dict)
    overwrites: dict[int, Overwrite] = field(default_factory=dict)
    parent_id: int | None = None
    thread: Thread | None = None
    tags: tuple[Wire, ...] = ()
    needs_tag: bool = False
    nsfw: bool = False
    group: tuple[int, ...] = ()

    @property
    def pinned(self) -> list[Message]:
        """The pinned messages, the last pinned first."""
        pinned = [(message.pinned_at, message) for message in self.messages.values() if message.pinned_at is not None]
        return [message for _, message in sorted(pinned, key=lambda pair: pair[0], reverse=True)]


@dataclass(slots=True)
class Guild:
    """A server. Everybody in the world is a member, with the roles that they were given there.

    The id of the @everyone role is the guild's; `bot_role_id` is the id of the bot's own role. joined: when those came
    back who had left.
    """

    id: int
    name: str
    bot_role_id: int
    roles: dict[int, Role]
    member_roles: dict[int, frozenset[int]]
    channels: dict[int, Channel] = field(default_factory=dict)
    bot_is_member: bool = True
    joined: dict[int, float] = field(default_factory=dict)

    def roles_of(self, user_id: int) -> list[Role]:
        """A member's roles, lowest first, without @everyone."""
        own = [self.roles[one] for one in self.member_roles.get(user_id, ())]
        return sorted(own, key=lambda role: role.position)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A change, named as Discord's gateway names it. Which fields are set depends on the name; see wire.payload.

    `guild` is set if the change is one of the guild, not of a channel.
    """

    name: str
    guild: Guild | None = None
    channel: Channel | None = None
    message: Message | None = None
    user_id: int | None = None
    emoji: str = ""
    ids: tuple[int, ...] = ()
    at: float = 0.0
    data: Wire | None = None
    role: Role | None = None
