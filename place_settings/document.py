"""The settings of a guild's places as one stored document, which a newer version of the bot may have written.

What this version cannot read is kept and written back unchanged. If it may limit who is answered, or where, the place
is closed: nobody is answered there until the setting can be read, is set again, or is reset.
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
MAX_EDITS = 50  # of a guild; open cards show who changed what since they were opened
WHOLE = "settings"  # stands for the name of a setting if more than one setting cannot be read
NOTHING_SET = PlaceSettings()
PAUSED = "paused"  # stands for the name of a setting, and is the stored key, if the owner has paused a server
CLOSING = frozenset(name for name, about in ABOUT.items() if about.group in (WHERE, WHO))


class Node(NamedTuple):
    """A guild, category, channel or thread that can have settings."""

    level: Level
    place_id: int

    @property
    def text(self) -> str:
        return f"{self.level.name.lower()}:{self.place_id}"

    @staticmethod
    def of(text: str) -> Node:
        """Parses `text`. Raises ValueError."""
        level, _, place_id = text.partition(":")
        try:
            return Node(Level[level.upper()], int(place_id))
        except KeyError:
            raise ValueError(f"there is no level {level!r}") from None


@dataclass(frozen=True, slots=True)
class Own:
    """The settings of one place itself, without inherited ones.

    parent_id: the channel of a thread; 0: no thread. unread: name -> stored value that this version cannot read.
    closing: names of the settings, also of a newer version, that limit who is answered, or where.
    """

    settings: PlaceSettings = NOTHING_SET
    parent_id: int = 0
    unread: Mapping[str, Any] = field(default_factory=dict)
    closing: frozenset[str] = CLOSING

    @property
    def closed_by(self) -> str:
        """Name of an unread setting that may limit who is answered, or where; empty: none."""
        return next((name for name in self.unread if name in self.closing), "")

    @property
    def is_empty(self) -> bool:
        return not (self.settings.chosen or self.unread)

    def with_settings(self, settings: PlaceSettings, names: Mapping[str, Any], parent_id: int) -> Own:
        """The settings after a change of `names`, which also drops the unread values of these names."""
        unread = {name: value for name, value in self.unread.items() if name not in names}
        return Own(settings, parent_id or self.parent_id, unread, self.closing)

    def to_stored(self) -> dict[str, Any]:
        settings = self.settings.model_dump(mode="json", exclude_none=True) | dict(self.unread)
        closing = sorted(name for name in settings if name in self.closing)
        return {"settings": settings, "closing": closing} | ({"parent": self.parent_id} if self.parent_id else {})

    @staticmethod
    def read(stored: Mapping[str, Any]) -> Own:
        """Reads what to_stored() returned. Raises ValueError for another format.

        The stored "closing" names the settings that limit who is answered, or where; a newer version may have more.
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
    """A change of a place's settings. by: id of the user; names: of the changed settings."""

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

    revision: grows by one with each change. members: of each category that is listed or has settings, its channels and
    those that have just left it: channel id -> timestamp of leaving, 0: still in it. unread: places that this version
    cannot read, by their text; rest: other parts of the document. is_paused: the owner has paused the bot there.
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
        """Names of everything in it that this version cannot read."""
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
        """Reads what to_stored() returned, or as much as possible of a damaged document or another version's."""
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
        with suppress(*faults):  # without them, the settings of a deleted category do not pass on to its channels
            members = stored.get("members", {}).items()
            document.members = {int(one): {int(m): float(left) for m, left in of.items()} for one, of in members}
        with suppress(*faults):  # only open cards need the edits
            document.revision = int(stored.get("revision", 0))
            document.edits = [Edit.read(edit) for edit in stored.get("edits", ())][-MAX_EDITS:]
        return document
