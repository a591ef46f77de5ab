"""Where something is said: a channel of a server, a thread or a post with its parent, or a direct message."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from place_settings.fields import Level
from place_settings.inheritance import NOTHING_SET, InForce


class PlaceKind(StrEnum):
    """The kinds of places."""

    TEXT = "text"
    VOICE = "voice"
    STAGE = "stage"
    THREAD = "thread"
    PRIVATE_THREAD = "private_thread"
    POST = "post"
    DIRECT = "direct"


THREADS = frozenset({PlaceKind.THREAD, PlaceKind.PRIVATE_THREAD, PlaceKind.POST})


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message was said.

    guild_id: 0 for a direct message. channel_id: the place's own id, the key of everything kept of it; a thread has its
    own. bot_name: the bot's name there. parent_id: a thread's channel, whose settings hold in it too. guild, channel,
    parent: their names. people: number of people in a thread that the bot is in; None: unknown, or no thread.
    is_opener: whether the message's author opened the thread. titled_by: the author of a thread's title, 0: unknown, or
    the title must not be shown. opens_threads: whether a longer conversation may go on in a thread of the channel.
    category_id: the category of the channel, or of the thread's channel. held: the settings in force when the message
    was said; not stored.
    """

    guild_id: int = 0
    channel_id: int = 0
    kind: PlaceKind = PlaceKind.TEXT
    bot_name: str = ""
    parent_id: int | None = None
    guild: str = ""
    channel: str = ""
    parent: str = ""
    people: int | None = None
    is_opener: bool = False
    titled_by: int = 0
    opens_threads: bool = False
    category_id: int | None = None
    held: Annotated[InForce, Field(exclude=True)] = field(default=NOTHING_SET, compare=False, repr=False)

    @property
    def is_thread(self) -> bool:
        return self.kind in THREADS

    @property
    def untitled(self) -> Place:
        """The place without a thread's title, which is somebody's words."""
        return replace(self, channel="", titled_by=0) if self.is_thread else self

    @property
    def in_words(self) -> str:
        """The place's name and its server's, for whoever runs the bot; without a thread's title."""
        if self.kind is PlaceKind.DIRECT:
            return "direct message"
        name = f"a thread of #{self.parent}" if self.is_thread else f"#{self.channel}"
        return f"{name} ({self.guild})"

    @property
    def is_with_one(self) -> bool:
        """Whether nobody is there but the bot and the author."""
        return self.kind is PlaceKind.DIRECT or self.people == 1

    @property
    def above(self) -> Place:
        """The thread's parent channel."""
        return Place(
            self.guild_id,
            self.parent_id or 0,
            bot_name=self.bot_name,
            guild=self.guild,
            channel=self.parent,
            category_id=self.category_id,
        )


@dataclass(frozen=True, slots=True)
class SeenPlace:
    """A category, channel or thread of a server, as the bot sees it.

    level: category, channel or thread. kind: Discord's word for it. name: empty where it must not be shown. parent_id,
    category_id: as in Place. owner_id: who opened a thread.
    """

    place_id: int
    level: Level
    kind: str
    name: str
    parent_id: int | None = None
    category_id: int | None = None
    owner_id: int = 0
