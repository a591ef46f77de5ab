"""The settings of the places of all guilds: storage, changes, and the settings in force in a place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

import structlog

from place_settings.document import MAX_EDITS, WHOLE, Document, Edit, Node, Own
from place_settings.fields import ABOUT, WHO, Combining, Level, Listed, PlaceSettings, SettingRefusedError
from place_settings.inheritance import InForce, Layer, in_force
from setting_values import BudgetLimit, Scope, budget_limits

log = structlog.get_logger()

BUDGETED = Level.GUILD, Level.CHANNEL, Level.THREAD
MAX_PLACES = 1_000  # in one guild, with settings of their own
MAX_KNOWN = 5_000  # places whose settings in force are cached
MOVED_WITH_SECONDS = 60.0
"""A channel that left its category at most this long before its deletion counts as in it.

Discord sends the events of both in any order.
"""


class Place(Protocol):
    """A channel or thread. parent_id: the channel of a thread; guild_id: 0 in a direct message."""

    @property
    def guild_id(self) -> int: ...
    @property
    def channel_id(self) -> int: ...
    @property
    def parent_id(self) -> int | None: ...
    @property
    def category_id(self) -> int | None: ...


Categories = Mapping[int, int | None]
"""Id of each channel and category of a guild -> id of the category it is in, or None."""


@dataclass(frozen=True, slots=True)
class Changed:
    """The result of a change. revision: the new one; overtaken: edits of others there since the revision `seen`."""

    guild_id: int
    node: Node
    settings: PlaceSettings
    revision: int
    names: tuple[str, ...]
    by: int
    at: datetime
    overtaken: tuple[Edit, ...] = ()


class GuildSettings:
    """Settings of all places. Mutable.

    owner: the settings of the bot's owner. on_change: called with the id of a guild whose document is to be stored.
    categories: returns the current Categories of a guild; None: not known. listener: called with each change.
    """

    def __init__(
        self,
        owner: PlaceSettings,
        on_change: Callable[[int], None] = lambda _guild_id: None,
        categories: Callable[[int], Categories | None] = lambda _guild_id: None,
    ) -> None:
        self._owner = Layer(Level.OWNER, 0, owner)
        in_no_channel = owner.model_copy(update={"allowed_channels": None, "blocked_channels": None})
        self._in_direct_messages = in_force([Layer(Level.OWNER, 0, in_no_channel)], ())
        self._on_change = on_change
        self._categories = categories
        self._documents: dict[int, Document] = {}
        self._known: dict[tuple[int, int, int | None, int | None], InForce] = {}
        self._budgets: dict[tuple[int, int, int], tuple[BudgetLimit, ...]] = {}
        is_by_channel = owner.allowed_channels is not None or owner.blocked_channels is not None
        everywhere = [in_force([self._owner], (), is_thread=is_thread) for is_thread in (False, True)]
        self._where_nothing_is_set = [] if is_by_channel else everywhere  # in a channel, in a thread
        self.listener: Callable[[Changed], None] | None = None

    # Settings in force

    def at(self, place: Place) -> InForce:
        """The settings in force in a place; in a direct message the owner's."""
        return self.in_channel(place.guild_id, place.channel_id, place.parent_id, place.category_id)

    def in_channel(
        self, guild_id: int, channel_id: int, parent_id: int | None = None, category_id: int | None = None
    ) -> InForce:
        """The settings in force in a place, by ids. parent_id: the channel of a thread; None: no thread."""
        if not guild_id:
            return self._in_direct_messages
        if guild_id not in self._documents and self._where_nothing_is_set:
            return self._where_nothing_is_set[parent_id is not None]
        place = guild_id, channel_id, parent_id, category_id  # a moved channel has another key
        held = self._known.get(place)
        if held is None:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            held = self._known[place] = self._combined(*place)
        return held

    def _unlearn(self, guild_id: int) -> None:
        """Drops the cached settings of a guild's places after a change."""
        self._known = {place: held for place, held in self._known.items() if place[0] != guild_id}
        self._budgets = {where: limits for where, limits in self._budgets.items() if where[0] != guild_id}

    def _combined(self, guild_id: int, channel_id: int, parent_id: int | None, category_id: int | None) -> InForce:
        is_thread = parent_id is not None
        path = [one for one in (channel_id, parent_id, category_id) if one is not None]
        document = self._documents.get(guild_id)
        if document is None:
            return in_force([self._owner], path, is_thread=is_thread)
        nodes = [
            Node(Level.GUILD, guild_id),
            Node(Level.CATEGORY, category_id or 0),
            Node(Level.CHANNEL, channel_id if parent_id is None else parent_id),
            *([Node(Level.THREAD, channel_id)] if is_thread else []),
        ]
        layers = [replace(self._owner, is_paused=document.is_paused)]
        for node in nodes:
            own = document.places.get(node, Own())
            unread, closed_by = tuple(own.unread), own.closed_by
            if node.level is Level.GUILD and document.unread:
                unread, closed_by = (*unread, WHOLE), closed_by or WHOLE
            if unread or not own.is_empty:
                layers.append(Layer(node.level, node.place_id, own.settings, unread, closed_by))
        return in_force(layers, path, is_thread=is_thread)

    # Own settings and changes

    def own(self, guild_id: int, place_id: int, level: Level) -> Own:
        """The settings of a place itself, without inherited ones."""
        document = self._documents.get(guild_id)
        return document.places.get(Node(level, place_id), Own()) if document else Own()

    def budgets(self, guild_id: int, channel_id: int, thread_id: int) -> tuple[BudgetLimit, ...]:
        """The budgets that a guild, its channel and the channel's thread have set; each counts by itself."""
        if guild_id not in self._documents:
            return ()
        where = guild_id, channel_id, thread_id
        if (found := self._budgets.get(where)) is None:
            if len(self._budgets) >= MAX_KNOWN:
                self._budgets.clear()
            places = zip((Scope.GUILD, Scope.CHANNEL, Scope.THREAD), BUDGETED, where, strict=True)
            texts = ((scope, self.own(guild_id, one, level).settings.budget) for scope, level, one in places)
            found = tuple(limit for scope, text in texts if text for limit in budget_limits(text, of=scope))
            self._budgets[where] = found
        return found

    def revision(self, guild_id: int) -> int:
        """The revision of a guild's settings, to be passed as `seen` of a change."""
        document = self._documents.get(guild_id)
        return document.revision if document else 0

    def change(
        self,
        guild_id: int,
        place_id: int,
        level: Level,
        values: Mapping[str, Any],
        *,
        by: int,
        now: datetime,
        seen: int | None = None,
        parent_id: int = 0,
    ) -> Changed:
        """Sets values; None: inherit. Raises SettingRefusedError.

        by: id of the user. seen: the revision that they saw. parent_id: the channel of a thread, whose settings are
        deleted with that channel.
        """
        node = Node(level, place_id)
        before = self.own(guild_id, place_id, level)
        after = before.with_settings(before.settings.changed(level, values), values, parent_id)
        return self._put(guild_id, node, before, after, by=by, now=now, seen=seen)

    def adopt_offers(self, guild_id: int, channel_id: int, *, on: bool, now: datetime) -> None:
        """Sets a channel's `offers` to what was stored before that was a setting, unless it is set already."""
        if guild_id and self.own(guild_id, channel_id, Level.CHANNEL).settings.offers is None:
            self.change(guild_id, channel_id, Level.CHANNEL, {"offers": on}, by=0, now=now)

    def reset(
        self, guild_id: int, place_id: int, level: Level, *, by: int, now: datetime, seen: int | None = None
    ) -> Changed:
        """Makes a place inherit everything. Settings of it that could not be read are dropped, too."""
        before = self.own(guild_id, place_id, level)
        return self._put(guild_id, Node(level, place_id), before, Own(), by=by, now=now, seen=seen, is_reset=True)

    def _put(
        self,
        guild_id: int,
        node: Node,
        before: Own,
        after: Own,
        *,
        by: int,
        now: datetime,
        seen: int | None,
        is_reset: bool = False,
    ) -> Changed:
        document = self._documents.get(guild_id) or Document()
        if before.is_empty and not after.is_empty and len(document.places) >= MAX_PLACES:
            raise SettingRefusedError(
                f"{MAX_PLACES} places of this server have settings of their own, and no more can: reset one of them."
            )
        since = document.revision if seen is None else seen
        overtaken = tuple(e for e in document.edits if e.revision > since and e.node == node and e.by != by)
        old, new = before.settings.chosen | dict(before.unread), after.settings.chosen | dict(after.unread)
        if node.level is Level.GUILD and is_reset:  # drops unread places, too
            old, document.unread = document.unread | old, {}
        names = tuple(n for n in dict.fromkeys([*old, *new]) if (n in old, old.get(n)) != (n in new, new.get(n)))
        if names:
            self._set(document, node, after)
            document.revision += 1
            document.edits = [*document.edits, Edit(document.revision, node, by, now, names)][-MAX_EDITS:]
            self._documents[guild_id] = document
            self._follow(guild_id, document, now)
            self._unlearn(guild_id)
            self._on_change(guild_id)
        changed = Changed(guild_id, node, after.settings, document.revision, names, by, now, overtaken)
        if names and self.listener:
            self.listener(changed)
        return changed

    @staticmethod
    def _set(document: Document, node: Node, own: Own) -> None:
        if own.is_empty:
            document.places.pop(node, None)
        else:
            document.places[node] = own

    # Pauses, by the bot's owner, which leave the settings as they are

    def is_paused(self, guild_id: int) -> bool:
        """Whether nobody is answered in a guild until resumed."""
        return guild_id in self._documents and self._documents[guild_id].is_paused

    def pause(self, guild_id: int, *, on: bool = True) -> None:
        """Pauses the bot in a guild, so that it answers nobody there. on=False: resumes."""
        if self.is_paused(guild_id) is not on:
            self._documents.setdefault(guild_id, Document()).is_paused = on
            self._unlearn(guild_id)
            self._on_change(guild_id)

    # Deleted and moved places

    def rearranged(self, guild_id: int, now: datetime) -> None:
        """Follows deletions and moves of a guild's channels, also those while the bot was offline."""
        document = self._documents.get(guild_id)
        if document and self._follow(guild_id, document, now):
            self._unlearn(guild_id)
            self._on_change(guild_id)

    def _follow(self, guild_id: int, document: Document, now: datetime) -> bool:
        """Drops the settings of deleted channels. Returns whether that changed anything.

        The settings of a deleted category pass on to the channels that were in it.
        """
        categories = self._categories(guild_id)
        if not categories:
            return False
        before = document.to_stored()
        for category_id, members in list(document.members.items()):
            if category_id not in categories:
                is_recent = {c: not left or now.timestamp() - left < MOVED_WITH_SECONDS for c, left in members.items()}
                were_in = [c for c in members if is_recent[c] and c in categories and categories[c] is None]
                self._pass_on(document, category_id, were_in)
                del document.members[category_id]
        for node, own in list(document.places.items()):
            channel_id = own.parent_id if node.level is Level.THREAD else node.place_id
            if node.level is not Level.GUILD and channel_id and channel_id not in categories:
                del document.places[node]
        document.members = _members(document, categories, now.timestamp())
        return document.to_stored() != before

    @staticmethod
    def _pass_on(document: Document, category_id: int, channel_ids: Iterable[int]) -> None:
        """Gives channels the settings of their deleted category, and a place in lists that name it."""
        of_category = document.places.get(Node(Level.CATEGORY, category_id), Own())
        for channel_id in channel_ids:
            node = Node(Level.CHANNEL, channel_id)
            own = document.places.get(node, Own())
            kept = {**of_category.unread, **own.unread}
            joined = joined_settings(of_category.settings, own.settings)
            GuildSettings._set(document, node, Own(joined, 0, kept, own.closing | of_category.closing))
        for node, own in document.places.items():
            listing = {name: ids for name, ids in own.settings.chosen.items() if ABOUT[name].listed is Listed.CHANNELS}
            wider = {name: ids | frozenset(channel_ids) for name, ids in listing.items() if category_id in ids}
            if wider:
                document.places[node] = replace(own, settings=own.settings.model_copy(update=wider))

    def thread_deleted(self, guild_id: int, thread_id: int) -> None:
        document = self._documents.get(guild_id)
        if document and document.places.pop(Node(Level.THREAD, thread_id), None):
            self._unlearn(guild_id)
            self._on_change(guild_id)

    # Storage

    def stored(self, guild_id: int) -> dict[str, Any] | None:
        """What restore() reads. None: nothing to store."""
        document = self._documents.get(guild_id)
        return document.to_stored() if document and not document.is_empty else None

    def restore(self, guild_id: int, stored: Any) -> None:
        """Restores what stored() returned. Settings that cannot be read close the places that they may limit."""
        document = self._documents[guild_id] = Document.read(stored)
        self._unlearn(guild_id)
        if names := document.names_unread:
            closed = [own.closed_by for own in document.places.values() if own.closed_by]
            log.error(
                "place_settings_unread",
                guild=guild_id,
                settings=", ".join(names)[:300],
                meaning="a newer version set them, or they are damaged; they are kept, and where they may limit who "
                "is answered, nobody is answered",
                closed=len(closed) + bool(document.unread),
            )

    def forget_person(self, user_id: int) -> None:
        """Forgets who changed settings, of one person; the settings stay."""
        for guild_id, document in self._documents.items():
            kept = [edit for edit in document.edits if edit.by != user_id]
            if len(kept) < len(document.edits):
                document.edits = kept
                self._on_change(guild_id)

    def drop(self, guild_id: int) -> None:
        """Forgets a guild that the bot has left, except a pause: a new invitation must not end it."""
        if document := self.leave(guild_id):
            if document.is_paused:
                self._documents[guild_id] = Document(is_paused=True)
            self._on_change(guild_id)

    def leave(self, guild_id: int) -> Document | None:
        """Drops a guild from memory, as when another process takes it over. Returns its document."""
        self._unlearn(guild_id)
        return self._documents.pop(guild_id, None)


def joined_settings(above: PlaceSettings, own: PlaceSettings) -> PlaceSettings:
    """The settings of two levels as one, which allows only those whom both allow."""
    values = above.chosen | own.chosen
    is_limited_by_both = above.limits_people and own.limits_people
    for name, about in ABOUT.items():
        ours, theirs = getattr(own, name), getattr(above, name)
        if about.combining is Combining.ANY and ours and theirs:
            values[name] = ours | theirs
        if about.combining is Combining.EVERY and about.group == WHO and is_limited_by_both:
            values[name] = (ours or frozenset()) & (theirs or frozenset())
    return PlaceSettings.model_construct(**values)


def _members(document: Document, categories: Categories, now: float) -> dict[int, dict[int, float]]:
    """Document.members: of each category that is listed or has settings, its channels and those that just left it."""
    named = {node.place_id for node in document.places if node.level is Level.CATEGORY}
    for own in document.places.values():
        for ids in (own.settings.blocked_channels, own.settings.allowed_channels):
            named |= ids or frozenset()
    found: dict[int, dict[int, float]] = {}
    for category_id in named & categories.keys():
        before = document.members.get(category_id, {})
        inside = {channel_id: 0.0 for channel_id, within in categories.items() if within == category_id}
        left = {c: at or now for c, at in before.items() if c not in inside and now - (at or now) < MOVED_WITH_SECONDS}
        if inside or left:
            found[category_id] = inside | left
    return found
