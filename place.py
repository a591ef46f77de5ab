"""Where something is said: a channel of a server, a thread or a post with its parent, or a direct message."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from place_settings.fields import Level
from place_settings.inheritance import NOTHING_SET, InForce


class PlaceKind(StrEnum):
    """What a place is."""

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
    """Where a message was said, and as whom the bot is there.

    guild_id: 0 where there is no server. channel_id: the place's own id, by which all that is kept of it is found; a
    thread is a channel of its own. parent_id: of a thread, the channel whose settings count there, too. guild, channel,
    parent: their names. people: how many people are in a thread that the bot is in; None: that is not known, or it is
    none. is_opener: whether the author of the message opened the thread. titled_by: whose words a thread's title is,
    where that may be told; 0: nobody's. opens_threads: whether a longer conversation may go on in a thread of the
    channel. category_id: the category that it, or the channel that it is a thread of, stands in. held: what is set
    there, as of when something was said; it is not stored.
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
        """Without the title of a thread, which is somebody's words."""
        return replace(self, channel="", titled_by=0) if self.is_thread else self

    @property
    def in_words(self) -> str:
        """By its name and its server's, for whoever runs the bot; without a thread's title."""
        if self.kind is PlaceKind.DIRECT:
            return "direct message"
        name = f"a thread of #{self.parent}" if self.is_thread else f"#{self.channel}"
        return f"{name} ({self.guild})"

    @property
    def is_with_one(self) -> bool:
        """Whether nobody is there but the bot and whoever speaks."""
        return self.kind is PlaceKind.DIRECT or self.people == 1

    @property
    def above(self) -> Place:
        """The channel that it is a thread of."""
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

    level: which of these it is. kind: Discord's word for it. name: empty where it may not be told. parent_id,
    category_id: as of Place. owner_id: who opened a thread.
    """

    place_id: int
    level: Level
    kind: str
    name: str
    parent_id: int | None = None
    category_id: int | None = None
    owner_id: int = 0
