"""A trip as a value: its venues, what people noted about them, and how it reads. What changes it gives a new one."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from miniapps.venues import Venue

UNNAMED = "Trip"
MAX_STOPS = 100
MAX_NOTES = 20
MAX_NOTE = 300
MAX_LIST = 3_800  # characters: two messages of Discord's
MAX_EXPORT = 9_500  # five of them
MARKUP = re.compile(r"([\\*_~`|<>\[\]])")
PHRASES = {"must_try": "must try {}", "vibe": "vibe: {}", "best_for": "best for {}"}


@dataclass(frozen=True, slots=True)
class Attribution:
    """Who said something, and in which message."""

    author_id: int
    author: str
    message_id: int


@dataclass(frozen=True, slots=True)
class Note:
    """What somebody said of a venue. kind: the document's metadata_type."""

    kind: str
    content: str
    said: Attribution

    def __str__(self) -> str:
        return PHRASES.get(self.kind, "{}").format(self.content)


@dataclass(frozen=True, slots=True)
class Stop:
    """A venue on the list. said: who added it, None once that is forgotten. is_typed: its name is their words."""

    venue: Venue
    said: Attribution | None
    is_typed: bool = False
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Trip:
    """What a channel has planned. said: who named it."""

    name: str = UNNAMED
    said: Attribution | None = None
    stops: tuple[Stop, ...] = ()

    def find(self, venue_id: object) -> Stop | None:
        return next((stop for stop in self.stops if stop.venue.id == venue_id), None)

    def named(self, name: str, said: Attribution) -> Trip:
        return replace(self, name=name, said=said)

    def with_stop(self, stop: Stop) -> Trip:
        return replace(self, stops=(*self.stops, stop))

    def without_stops(self, venue_ids: Collection[object]) -> Trip:
        return replace(self, stops=tuple(stop for stop in self.stops if stop.venue.id not in venue_ids))

    def with_note(self, venue_id: str, note: Note) -> Trip:
        stops = (replace(s, notes=(*s.notes, note)) if s.venue.id == venue_id else s for s in self.stops)
        return replace(self, stops=tuple(stops))

    def without(self, is_gone: Callable[[Attribution], bool]) -> Trip:
        """Without the words that are gone: notes, names that were typed; a venue that was looked up stays."""
        trip = self if self.said is None or not is_gone(self.said) else replace(self, name=UNNAMED, said=None)
        left = (stop for stop in self.stops if not (stop.is_typed and stop.said and is_gone(stop.said)))
        return replace(trip, stops=tuple(_unsaid(stop, is_gone) for stop in left))


def _unsaid(stop: Stop, is_gone: Callable[[Attribution], bool]) -> Stop:
    said = None if stop.said is None or is_gone(stop.said) else stop.said
    return replace(stop, said=said, notes=tuple(note for note in stop.notes if not is_gone(note.said)))


def as_list(trip: Trip) -> str:
    """The trip as it is shown, in Discord's markdown: venues with their numbers, and below each what was noted."""
    blocks = [
        "\n".join([f"{number}. {escaped(_line(stop))}", *(f"   - {escaped(str(note))}" for note in stop.notes)])
        for number, stop in enumerate(trip.stops, 1)
    ]
    return "\n".join([f"**{escaped(trip.name)}** ({venues(len(trip.stops))})", *_cut(blocks, MAX_LIST)])


def as_text(trip: Trip) -> str:
    """The trip as plain text in a code block, to be copied."""
    blocks = [
        "\n".join([f"{number}. {_line(stop)}", *(f"   - {note}" for note in stop.notes)])
        for number, stop in enumerate(trip.stops, 1)
    ]
    text = "\n".join([trip.name, *_cut(blocks, MAX_EXPORT)])
    fenced = text.replace("`", "'")
    return f"```text\n{fenced}\n```"


def venues(count: int) -> str:
    return "1 venue" if count == 1 else f"{count} venues"


def escaped(text: str) -> str:
    """A text that Discord shows as it is."""
    return MARKUP.sub(r"\\\1", text)


def _line(stop: Stop) -> str:
    by = f" (added by {stop.said.author})" if stop.said else ""
    return f"{', '.join(filter(None, (stop.venue.title, stop.venue.city)))}{by}"


def _cut(blocks: list[str], limit: int) -> list[str]:
    """As many whole blocks as fit, and how many more there are."""
    length = 0
    for index, block in enumerate(blocks):
        length += len(block) + 1
        if length > limit:
            return [*blocks[:index], f"… and {venues(len(blocks) - index)} more"]
    return blocks
