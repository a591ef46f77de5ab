"""Servers, their channels, and people as the console shows them: settings, current activity, today's figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from counts import Tally
from place import SeenPlace
from place_settings.document import PAUSED
from place_settings.fields import ABOUT, Combining, Level
from place_settings.inheritance import InForce, source_in_words
from state.ledger import Figures, total
from web.shown import Shown

LONGEST = 200  # characters of a value
KINDS = {"channels": "channel", "roles": "role", "users": "member"}


@dataclass(frozen=True, slots=True)
class GuildRow:
    """A server. channels: number of them, with threads; live: number of conversations; today, tally: since 0:00 UTC."""

    guild_id: int
    name: str
    channels: int
    live: int
    today: Figures
    tally: Tally
    is_paused: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A setting's value in force. source: where it comes from, in words."""

    label: str
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """A category, channel or thread. doing: what the bot does there, in words; wrong: what keeps it from answering.

    lines: its settings that differ from the owner's defaults, its own and inherited ones. today: None: no channel.
    """

    seen: SeenPlace
    name: str
    is_live: bool
    doing: str
    wrong: str
    lines: Sequence[Line]
    today: Figures | None


def guild_rows(shown: Shown, first: int, count: int) -> tuple[list[GuildRow], int]:
    """One page of the servers by name, and the number of all."""
    guilds = sorted(shown.servers.guilds().items(), key=lambda item: (item[1].casefold(), item[0]))
    shown.limits.begin_day(shown.clock())
    rows = []
    for guild_id, name in guilds[first : first + count]:
        places = [place for place in shown.servers.places(guild_id) if place.level is not Level.CATEGORY]
        live = sum(shown.conversations.get(place.place_id) is not None for place in places)
        today = total(shown.limits.ledger.today.guilds.get(guild_id, {}).values())
        tally, is_paused = shown.counts.today(guild_id), shown.guild_settings.is_paused(guild_id)
        rows.append(GuildRow(guild_id, name, len(places), live, today, tally, is_paused))
    return rows, len(guilds)


def is_live(shown: Shown, place: SeenPlace) -> bool:
    return shown.turns.is_busy(place.place_id) or shown.conversations.get(place.place_id) is not None


def place_row(shown: Shown, guild_id: int, place: SeenPlace, *, shows_content: bool) -> PlaceRow:
    conversation, held = shown.conversations.get(place.place_id), held_at(shown, guild_id, place)
    doing = f"in a conversation of {len(conversation.messages)} messages" if conversation else ""
    if shown.turns.is_busy(place.place_id):
        doing = "answering"
    lacks = shown.servers.lacks(guild_id, place.place_id)
    wrong = f"lacks {' and '.join(lacks)}" if lacks else ""
    if held.silenced and place.level is not Level.CATEGORY:
        wrong = "paused" if held.silenced.name == PAUSED else f"answers nobody: {held.silenced.in_words}"
    channels = shown.limits.ledger.today.channels.get(guild_id, {})
    return PlaceRow(
        place,
        name_of(shown, place, shows_content=shows_content),
        is_live(shown, place),
        doing,
        wrong,
        [*lines(held, place.level, changed_only=True)],
        channels.get(place.place_id, Figures()) if place.level is Level.CHANNEL else None,
    )


def held_at(shown: Shown, guild_id: int, place: SeenPlace) -> InForce:
    """The settings in force there; of a category those of its channels that set nothing themselves."""
    if place.level is Level.CATEGORY:
        return shown.guild_settings.in_channel(guild_id, 0, None, place.place_id)
    return shown.guild_settings.in_channel(guild_id, place.place_id, place.parent_id, place.category_id)


def name_of(shown: Shown, place: SeenPlace, *, shows_content: bool) -> str:
    """The place's name. A thread's name is somebody's words, and not always shown."""
    if place.level is not Level.THREAD:
        return place.name
    is_told = shows_content and place.name and place.owner_id not in shown.opted_out
    return place.name if is_told else f"thread …{place.place_id % 10_000:04}"


def lines(held: InForce, here: Level, *, changed_only: bool = False) -> Iterator[Line]:
    """The settings in force. changed_only: without the owner's defaults."""
    for name, about in ABOUT.items():
        each: list[tuple[tuple[Level, ...], Any]] = [(held.sources[name], getattr(held.settings, name, None))]
        if about.combining is Combining.EACH:
            each = [((layer.level,), getattr(layer.settings, name)) for layer in reversed(held.layers)]
        for levels, value in each:
            if value is not None and not (changed_only and set(levels) <= {Level.OWNER}):
                yield Line(about.label, in_words(name, value), source_in_words(levels, here))
    for layer in held.layers:
        for name in layer.unread:
            label = ABOUT[name].label if name in ABOUT else name
            yield Line(label, "set in a form that this version cannot read", source_in_words((layer.level,), here))


def in_words(name: str, value: Any) -> str:
    listed = ABOUT[name].listed
    if listed:
        return f"{len(value)} {KINDS[listed.value]}{'' if len(value) == 1 else 's'}"
    text = ("on" if value else "off") if isinstance(value, bool) else str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


# People


@dataclass(frozen=True, slots=True)
class PersonRow:
    """A person's use of models this month. name: empty: not shown."""

    person_id: int
    name: str
    used: Figures


def people(shown: Shown, first: int, count: int, *, shows_content: bool) -> tuple[list[PersonRow], int]:
    """One page of the people who used models this month, highest cost first, and the number of all.

    People who have opted out are left out.
    """
    now = shown.clock()
    shown.limits.begin_day(now)
    month = now.year, now.month
    days = [kept.people for day, kept in shown.limits.ledger.days(now.day) if (day.year, day.month) == month]
    # Plain numbers, since an object for each of many people would trigger a full garbage collection.
    micros: dict[int, int] = {}
    tokens: dict[int, int] = {}
    for day in days:
        for person, used in day.items():
            micros[person] = micros.get(person, 0) + used.micros
            tokens[person] = tokens.get(person, 0) + used.tokens
    found = sorted(person for person in micros if person not in shown.opted_out)
    found.sort(key=tokens.__getitem__, reverse=True)
    found.sort(key=micros.__getitem__, reverse=True)
    some = found[first : first + count]
    names = shown.conversations.names_of(some) if shows_content else {}
    rows = [PersonRow(one, names.get(one, ""), total(day[one] for day in days if one in day)) for one in some]
    return rows, len(found)
