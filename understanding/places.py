"""Places that a text names: known ones, and words where only a place can stand.

Known are the cities and countries of the time zone database. A place counts only with a capital letter and after a
preposition. A missed place costs little; a wrong one is passed on to other agents.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from understanding.enrichment import TIME

REGIONS = ("Africa/", "America/", "Asia/", "Atlantic/", "Australia/", "Europe/", "Indian/", "Pacific/")
# Usual names of places that the database names differently, or lacks.
USUAL = """africa|america|asia|britain|england|europe|great britain|new york city|north korea|scotland|south korea
uk|united kingdom|us|usa|wales""".replace("\n", "|")
# Names in the database that mostly mean something else: a person, a system, a direction, a holiday.
DOUBTFUL = frozenset(
    """act adak canary center chad chatham christmas darwin dominica easter georgia jersey jordan knox lhi marengo
    midway monticello norfolk north nsw oral petersburg phoenix regina resolute rosario salta samara santiago sofia
    south stanley victoria virgin wake west""".split()
)
# Words that stand where a place can stand: "the weather in German, please".
NO_PLACES = frozenset(
    """arabic celsius chinese czech danish dutch english fahrenheit finnish french german greek hebrew hindi hungarian
    italian japanese korean latin norwegian polish portuguese russian spanish swedish turkish ukrainian""".split()
)
WORD = r"(?!I\b)[A-ZÀ-ÖØ-Þ][\w’-]*"
NAME = rf"(?:St\. )?{WORD}(?: (?:(?:of|de|del|am|upon|es) )?{WORD}){{0,3}}(?![\w'’-]|\.\w| {WORD})"
KNOWN = re.compile(rf"\b(?:[Ii]n|[Tt]o|[Ff]rom|[Nn]ear) (?:the )?({NAME})")
WEATHER = r"\b(?i:weather(?: forecast)?|rain|raining|snow|snowing)(?: be| like| today| tomorrow| tonight| now){0,2}"
TRAVEL = r"\b(?i:trip|flight|fly|flying|flew|travel|travell?ing|travell?ed)s?"
LIVING = r"\b(?i:i|we|he|she|they)(?: used to| was| were| am| are| is)? (?:live|lives|lived|living|born)"
LODGING = r"\b(?i:hotel|hostel|restaurant|museum|airport)s?"
SURE = re.compile(
    rf"(?:{WEATHER} (?:in|for)|{LIVING} in|{LODGING} (?:in|near)|{TRAVEL} (?:from {NAME} )?to|{TRAVEL} from"
    rf"|\b(?:capital|population|city|town|village|island) of) (?:the )?({NAME})"
)


def last_place(text: str) -> str | None:
    """The last place that a text names, as written there. None: it names none for certain."""
    known = {match.start(1): match[1] for match in KNOWN.finditer(text) if match[1].casefold() in _known_places()}
    sure = {
        match.start(1): match[1]
        for match in SURE.finditer(text)
        if match[1].casefold() not in NO_PLACES and not TIME.search(f"in {match[1]}")
    }
    found = known | sure
    return found[max(found)] if found else None


@cache
def _known_places() -> frozenset[str]:
    """Names of cities and countries, case-folded."""
    data = files("tzdata")
    zones = (data / "zones").read_text(encoding="utf-8").split()
    cities = {zone.rpartition("/")[2].replace("_", " ") for zone in zones if zone.startswith(REGIONS)}
    rows = (data / "zoneinfo" / "iso3166.tab").read_text(encoding="utf-8").splitlines()
    countries = {row.partition("\t")[2] for row in rows if not row.startswith("#")}
    return frozenset(name.casefold() for name in cities | countries | set(USUAL.split("|"))) - DOUBTFUL
