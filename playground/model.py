"""The values of the playground's world: people, channels, messages, and what happens to them."""

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
THREADS_ONLY = (FORUM, MEDIA)  # channels in which nothing but posts, which are threads, stands
THREAD_KINDS = {TEXT: (PUBLIC_THREAD, PRIVATE_THREAD), ANNOUNCEMENT: (ANNOUNCEMENT_THREAD,)}  # which begin where
# Message types
RECIPIENT_ADD, RECIPIENT_REMOVE, NAME_CHANGE, PINS_ADD, THREAD_CREATED, REPLY, THREAD_STARTER = 1, 2, 4, 6, 18, 19, 21
VOICE_MESSAGE = 1 << 13  # message flag
HAS_THREAD = 1 << 5  # message flag: a thread was begun at it
SILENT = 1 << 12  # message flag: it notifies nobody (Discord: SUPPRESS_NOTIFICATIONS)
_MAX_ID_DIGITS = 20  # of 64 bits


def snowflake(value: object) -> int | None:
    """An id from the wire, a string or an int; None for anything else."""
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MAX_ID_DIGITS else None


@dataclass(frozen=True, slots=True)
class User:
    """A person, a bot, or a webhook in a message's author place. `color` is for the page: "#rrggbb"."""

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
    """An uploaded attachment's bytes, served under /attachments. One with a waveform makes a voice message."""

    filename: str
    content_type: str
    data: bytes
    description: str | None = None
    duration_secs: float | None = None
    waveform: str | None = None  # base64 of up to 256 loudnesses


@dataclass(frozen=True, slots=True)
class Reference:
    """What a message points at: a reply (type 0) or a forward (type 1); without `message_id` a channel."""

    message_id: int | None
    channel_id: int
    type: int = 0


@dataclass(frozen=True, slots=True)
class Reaction:
    """One emoji under a message (a character, or "name:id") and who put it there, first to last."""

    emoji: str
    users: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a message is to be made of."""

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
    recipient_id: int | None = None  # who was added or removed, in a message that says so


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A posted message as it stands. `created` and `edited` are wall-clock seconds. `pinged` is who was
    notified: nobody by a silent one. `poll` is as polls.py checked it. `pinned_at` is set while it is pinned."""

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
        """The id of the message that it answers or forwards."""
        return self.reference.message_id if self.reference else None


@dataclass(slots=True, kw_only=True)
class Thread:
    """What only a thread has. `members` are who joined it, and when; `archived_at` changes with `archived`."""

    owner_id: int
    created: float
    archived_at: float
    auto_archive_minutes: int
    invitable: bool = True
    archived: bool = False
    locked: bool = False
    sent: int = 0  # messages, those deleted since too
    tags: tuple[str, ...] = ()  # the ids of those of its forum that it has
    members: dict[int, float] = field(default_factory=dict)


@dataclass(slots=True)
class Channel:
    """A channel, thread or category and what stands in it.

    `recipient_id` is set in a direct-message channel only, `thread` in a thread, `parent_id` in a thread and in a
    channel of a category, `tags` in a forum, `group` in a group's direct messages, which the bot is not in; `guild_id`
    is None in all direct messages; `nsfw` where it is age-restricted.
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
        """What is pinned, the last pinned first."""
        pinned = [(message.pinned_at, message) for message in self.messages.values() if message.pinned_at is not None]
        return [message for _, message in sorted(pinned, key=lambda pair: pair[0], reverse=True)]


@dataclass(slots=True)
class Guild:
    """A server. Everybody in the world is in it, with the roles of its own that they were given there.

    The role of everyone has the guild's id; `bot_role_id` is that of the bot's own.
    """

    id: int
    name: str
    bot_role_id: int
    roles: dict[int, Role]
    member_roles: dict[int, frozenset[int]]
    channels: dict[int, Channel] = field(default_factory=dict)
    bot_is_member: bool = True

    def roles_of(self, user_id: int) -> list[Role]:
        """What a member was given, lowest first; of "@everyone" nothing is said."""
        own = [self.roles[one] for one in self.member_roles.get(user_id, ())]
        return sorted(own, key=lambda role: role.position)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A change, named as Discord's gateway names it. Which fields are set depends on the name; see wire.payload.

    `guild` is set where the change is the guild's, not one channel's.
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
