"""A trip as an immutable value: its venues, the notes on them, and its text. Changes return a new trip."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from miniapps.base import FollowUp
from miniapps.venues import Venue, clean

UNNAMED = "Trip"
MAX_STOPS = 100
MAX_NOTES = 20
MAX_NOTE = 300
MAX_LIST = 3_800  # characters: two messages of Discord's
MAX_EXPORT = 9_500  # five of them
FOLLOW_UP_AFTER = timedelta(hours=4)
MAX_SHOWN = 80  # characters of names in a follow-up's line of 200; escaping may double them
MARKUP = re.compile(r"([\\*_~`|<>\[\]])")
PHRASES = {"must_try": "must try {}", "vibe": "vibe: {}", "best_for": "best for {}"}


@dataclass(frozen=True, slots=True)
class Attribution:
    """The author and the message of something said. parts: earlier messages of the author that have some of it."""

    author_id: int
    author: str
    message_id: int
    parts: tuple[int, ...] = ()

    @property
    def message_ids(self) -> tuple[int, ...]:
        return self.message_id, *self.parts


@dataclass(frozen=True, slots=True)
class Note:
    """A note about a venue. kind: the document's metadata_type."""

    kind: str
    content: str
    said: Attribution

    def __str__(self) -> str:
        return PHRASES.get(self.kind, "{}").format(self.content)


@dataclass(frozen=True, slots=True)
class Stop:
    """A venue on the list. said: who added it; None: forgotten. is_typed: its name was typed, not looked up."""

    venue: Venue
    said: Attribution | None
    is_typed: bool = False
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Trip:
    """A channel's trip. said: who named it."""

    name: str = UNNAMED
    said: Attribution | None = None
    stops: tuple[Stop, ...] = ()

    def find(self, venue_id: object) -> Stop | None:
        return next((stop for stop in self.stops if stop.venue.id == venue_id), None)

    @property
    def all_said(self) -> Iterator[Attribution]:
        """The attributions of its name, its venues and its notes."""
        notes = (note for stop in self.stops for note in stop.notes)
        yield from filter(None, (self.said, *(stop.said for stop in self.stops), *(note.said for note in notes)))

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
        """The trip without the words that are gone: its name, notes, typed venues. Venues that were looked up stay."""
        trip = self if self.said is None or not is_gone(self.said) else replace(self, name=UNNAMED, said=None)
        stops = []
        for stop in self.stops:
            is_unsaid = stop.said is not None and is_gone(stop.said)
            if not (stop.is_typed and is_unsaid):
                notes = tuple(note for note in stop.notes if not is_gone(note.said))
                stops.append(replace(stop, said=None if is_unsaid else stop.said, notes=notes))
        return replace(trip, stops=tuple(stops))


def as_list(trip: Trip) -> str:
    """The trip in Discord's markdown: numbered venues, with the notes below each."""
    return "\n".join([f"**{escaped(trip.name)}** ({venues(len(trip.stops))})", *_lines(trip, escaped, MAX_LIST)])


def as_text(trip: Trip) -> str:
    """The trip as plain text in a code block, to be copied."""
    fenced = "\n".join([trip.name, *_lines(trip, str, MAX_EXPORT)]).replace("`", "'")
    return f"```text\n{fenced}\n```"


def _lines(trip: Trip, form: Callable[[str], str], limit: int) -> list[str]:
    """One block for each stop: as many as fit in `limit` characters, and a line that counts the rest."""
    blocks: list[str] = []
    room = limit
    for number, stop in enumerate(trip.stops, 1):
        by = f" (added by {stop.said.author})" if stop.said else ""
        place = ", ".join(filter(None, (stop.venue.title, stop.venue.city)))
        block = "\n".join([f"{number}. {form(place + by)}", *(f"   - {form(str(note))}" for note in stop.notes)])
        room -= len(block) + 1
        if room < 0:
            return [*blocks, f"… and {venues(len(trip.stops) - len(blocks))} more"]
        blocks.append(block)
    return blocks


def venues(count: int) -> str:
    return "1 venue" if count == 1 else f"{count} venues"


def escaped(text: str) -> str:
    """The text with Discord's markdown escaped."""
    return MARKUP.sub(r"\\\1", text)


def follow_up(venue: Venue, must_try: str = "") -> FollowUp:
    """The follow-up hours later: how the venue was, or the thing that had to be tried there.

    `about` identifies the venue: names are people's words, and not every name could be parsed from the query.
    """
    limit = MAX_SHOWN // 2 if must_try else MAX_SHOWN
    title = escaped(clean(venue.title, limit))
    text = f"How was {title}? I can note it on your list."
    if must_try:
        text = f"How was {escaped(clean(must_try, limit))} at {title}?"
    return FollowUp(text, f"add a note for {clean(venue.title, MAX_SHOWN)}", FOLLOW_UP_AFTER, about=venue.id)
