"""What the trip planner comes back to: how a venue was, or what was a must there."""

from __future__ import annotations

from datetime import timedelta

from miniapps.base import FollowUp
from miniapps.trips import escaped
from miniapps.venues import Venue, clean

AFTER = timedelta(hours=4)
MAX_SHOWN = 80  # characters of names in the line; escaped they may be twice as many, and the line has 200


def of_venue(venue: Venue) -> FollowUp:
    return _follow_up(f"How was {_shown(venue.title, MAX_SHOWN)}? I can note it on your list.", venue)


def of_must_try(venue: Venue, content: str) -> FollowUp:
    what, where = (_shown(name, MAX_SHOWN // 2) for name in (content, venue.title))
    return _follow_up(f"How was {what} at {where}?", venue)


def _follow_up(text: str, venue: Venue) -> FollowUp:
    """The venue is known by `about`: names are people's words, and not every one would be read out of the query."""
    return FollowUp(text, f"add a note for {clean(venue.title, MAX_SHOWN)}", AFTER, about=venue.id)


def _shown(name: str, limit: int) -> str:
    return escaped(clean(name, limit))
