"""The settings of a guild's places as one stored document, and what of a newer version's document can be read.

What this version cannot read is kept as it is and written back whole. Where it may say who is answered, or where, that
place is closed: nobody is answered there until it is read, set anew, or reset.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pydantic import ValidationError

from place_settings.fields import ABOUT, WHERE, WHO, Level, PlaceSettings

VERSION = 1
MAX_EDITS = 50  # of a guild; an open card is told of who changed what since it was opened
WHOLE = "settings"  # what is named where it is not one setting that cannot be read
NOTHING_SET = PlaceSettings()
PAUSED = "paused"  # what is named, and stored, where whoever runs the bot has paused it in a server
CLOSING = frozenset(name for name, about in ABOUT.items() if about.group in (WHERE, WHO))


class Node(NamedTuple):
    """A guild, category, channel or thread: what settings are kept of."""

    level: Level
    place_id: int

    @property
    def text(self) -> str:
        return f"{self.level.name.lower()}:{self.place_id}"

    @staticmethod
    def of(text: str) -> Node:
        """Reads the text. Raises ValueError."""
        level, _, place_id = text.partition(":")
        try:
            return Node(Level[level.upper()], int(place_id))
        except KeyError:
            raise ValueError(f"there is no level {level!r}") from None


@dataclass(frozen=True, slots=True)
class Own:
    """What one place has set itself.

    parent_id: of a thread, its channel. unread: by name, what this version cannot read. closing: the names of settings,
    beside those that this version knows, that may say who is answered, or where.
    """

    settings: PlaceSettings = NOTHING_SET
    parent_id: int = 0
    unread: Mapping[str, Any] = field(default_factory=dict)
    closing: frozenset[str] = CLOSING

    @property
    def closed_by(self) -> str:
        """What of that which cannot be read may say who is answered, or where; empty: none of it does."""
        return next((name for name in self.unread if name in self.closing), "")

    @property
    def is_empty(self) -> bool:
        return not (self.settings.chosen or self.unread)

    def with_settings(self, settings: PlaceSettings, names: Mapping[str, Any], parent_id: int) -> Own:
        """After a change of these settings: what could not be read of them is gone."""
        unread = {name: value for name, value in self.unread.items() if name not in names}
        return Own(settings, parent_id or self.parent_id, unread, self.closing)

    def to_stored(self) -> dict[str, Any]:
        settings = self.settings.model_dump(mode="json", exclude_none=True) | dict(self.unread)
        closing = sorted(name for name in settings if name in self.closing)
        return {"settings": settings, "closing": closing} | ({"parent": self.parent_id} if self.parent_id else {})

    @staticmethod
    def read(stored: Mapping[str, Any]) -> Own:
        """Takes back what to_stored() gave. Raises ValueError for what has another form.

        closing: the names of those settings that say who is answered, or where, of which a newer version may have more.
        """
        settings, closing = stored.get("settings"), stored.get("closing")
        if not isinstance(settings, dict) or not isinstance(parent := stored.get("parent", 0), int):
            raise ValueError("no settings of a place")
        known: dict[str, Any] = {}
        unread: dict[str, Any] = {}
        for name, value in settings.items():
            try:
                known[name] = getattr(PlaceSettings.model_validate({name: value}), name)
            except ValidationError:
                unread[name] = value
        if not isinstance(closing, list) or not all(isinstance(name, str) for name in closing):
            closing = list(unread)
        return Own(PlaceSettings(**known), parent, unread, CLOSING | frozenset(closing))


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of a place's settings. by: whose id; names: of which settings."""

    revision: int
    node: Node
    by: int
    at: datetime
    names: tuple[str, ...]

    def to_stored(self) -> list[Any]:
        return [self.revision, self.node.text, self.by, int(self.at.timestamp()), list(self.names)]

    @staticmethod
    def read(stored: Any) -> Edit:
        revision, node, by, at, names = stored
        return Edit(int(revision), Node.of(node), int(by), datetime.fromtimestamp(at, UTC), tuple(map(str, names)))


@dataclass(slots=True)
class Document:
    """The settings of all places of a guild. Mutable.

    revision: grows by one with each change. members: of each category that is named or has settings, which channels are
    in it, and since when those are no longer that were last; 0: they are. rest: what this version cannot read of the
    document; unread: of its places. is_paused: whoever runs the bot has it answer nobody there.
    """

    places: dict[Node, Own] = field(default_factory=dict)
    revision: int = 0
    edits: list[Edit] = field(default_factory=list)
    members: dict[int, dict[int, float]] = field(default_factory=dict)
    unread: dict[str, Any] = field(default_factory=dict)
    rest: dict[str, Any] = field(default_factory=dict)
    is_paused: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.places or self.unread or self.rest or self.edits or self.is_paused)

    @property
    def names_unread(self) -> list[str]:
        """What cannot be read of it, by name."""
        names = [name for own in self.places.values() for name in own.unread]
        return sorted({*names, *self.unread, *self.rest})

    def to_stored(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            **self.rest,
            "revision": self.revision,
            "places": {node.text: own.to_stored() for node, own in self.places.items()} | self.unread,
            "members": {str(one): {str(m): left for m, left in of.items()} for one, of in self.members.items()},
            "edits": [edit.to_stored() for edit in self.edits],
        } | ({PAUSED: True} if self.is_paused else {})

    @staticmethod
    def read(stored: Any) -> Document:
        """Takes back what to_stored() gave, or as much of what another version or a fault left as can be read."""
        document = Document()
        if not isinstance(stored, dict) or not isinstance(stored.get("places"), dict):
            document.unread[WHOLE] = stored
            return document
        for text, value in stored["places"].items():
            try:
                document.places[Node.of(text)] = Own.read(value)
            except (ValueError, AttributeError):
                document.unread[text] = value
        document.is_paused = bool(stored.get(PAUSED))
        known = {"revision", "places", "members", "edits", PAUSED}
        document.rest = {k: v for k, v in stored.items() if k not in known and (k, v) != ("version", VERSION)}
        faults = (ValueError, TypeError, AttributeError, OverflowError)
        with suppress(*faults):  # without them it is not known what a category that is gone had closed
            members = stored.get("members", {}).items()
            document.members = {int(one): {int(m): float(left) for m, left in of.items()} for one, of in members}
        with suppress(*faults):  # who changed what is told to open cards only
            document.revision = int(stored.get("revision", 0))
            document.edits = [Edit.read(edit) for edit in stored.get("edits", ())][-MAX_EDITS:]
        return document
