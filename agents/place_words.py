"""Describes places in words for a model."""

from __future__ import annotations

from place import Place, PlaceKind

MAX_NAME_CHARACTERS = 100


def as_name(name: str) -> str:
    """A name without quotes and line breaks, so that it can be quoted in a prompt."""
    return " ".join(name.replace('"', "'").split())[:MAX_NAME_CHARACTERS]


def spot_of(place: Place) -> str:
    """The channel, thread or post of a guild. Without a thread's title, if that may not be shown."""
    channel, parent = as_name(place.channel), as_name(place.parent)
    if place.kind is PlaceKind.POST:
        return f'forum "{parent}", in ' + (f'the post titled "{channel}"' if channel else "a post")
    if place.is_thread:
        return f'channel named "{parent}", in ' + (f'the thread named "{channel}"' if channel else "a thread")
    return f'channel named "{channel}"'


def people_in(place: Place, author: str) -> str:
    """How many people are in a thread, and whether the author opened it, as a sentence; empty: unknown."""
    if not place.is_thread or place.people is None:
        return ""
    opened = f', which "{author}" opened' if place.is_opener else ""
    return f"{place.people} {'person is' if place.people == 1 else 'people are'} in this thread{opened}. "
