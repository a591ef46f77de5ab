"""Look-up of venues: the interface, the small bundled sample, and Nominatim where one is configured."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol
from urllib.parse import urlsplit

import structlog
from rapidfuzz.distance import OSA

from tls import tls_context

log = structlog.get_logger()

MAX_QUERY = 200
MAX_NAME = 100
MAX_TITLE = 200  # which the soft context can keep
MAX_WORDS = 16  # compared of a query, and of a name: each with each, of up to 100 places on a list
# The usage policy of Nominatim: at most one request a second, and a User-Agent that names the application.
REQUEST_INTERVAL_SECONDS = 1.0
MAX_WAIT_SECONDS = 4.0
REQUEST_TIMEOUT_SECONDS = 5.0
MAX_BODY_BYTES = 64 * 1024  # while it is parsed nothing else runs: 300,000 lists in 1 MB take 0.3 s
# Keys of Nominatim's address details; the first that an address has is taken.
DISTRICTS = "suburb city_district borough quarter neighbourhood hamlet county".split()
CITIES = "city town village municipality state country".split()

SMALL_WORDS = frozenset("the a an in at on of near by and to de".split())
LETTERS = re.compile(r"[^\W_]+")

# Well-known public places: name, district, city.
SAMPLE = """
Shake Shack | Shibuya | Tokyo
Shake Shack | Shinjuku | Tokyo
Shake Shack | Harajuku | Tokyo
Ichiran | Shibuya | Tokyo
Ichiran | Asakusa | Tokyo
Tokyo Tower | Minato | Tokyo
Tokyo Skytree | Sumida | Tokyo
Senso-ji | Asakusa | Tokyo
Meiji Shrine | Harajuku | Tokyo
Shibuya Crossing | Shibuya | Tokyo
Ueno Park | Ueno | Tokyo
Tokyo National Museum | Ueno | Tokyo
Tsukiji Outer Market | Tsukiji | Tokyo
Shinjuku Gyoen | Shinjuku | Tokyo
Fushimi Inari Shrine | Fushimi | Kyoto
Kinkaku-ji | Kita | Kyoto
Nishiki Market | Nakagyo | Kyoto
Eiffel Tower | Champ de Mars | Paris
Louvre Museum | Palais-Royal | Paris
Notre-Dame Cathedral | Île de la Cité | Paris
Musée d'Orsay | Saint-Germain | Paris
Sacré-Cœur | Montmartre | Paris
British Museum | Bloomsbury | London
Tower Bridge | Southwark | London
Borough Market | Southwark | London
Hyde Park | Westminster | London
Central Park | Manhattan | New York
Brooklyn Bridge | Brooklyn | New York
Katz's Delicatessen | Lower East Side | New York
Times Square | Manhattan | New York
Brandenburg Gate | Mitte | Berlin
Museum Island | Mitte | Berlin
Tempelhofer Feld | Tempelhof | Berlin
Sagrada Família | Eixample | Barcelona
Park Güell | Gràcia | Barcelona
"""


@dataclass(frozen=True, slots=True)
class Venue:
    """A place. id: unique within its look-up; district and city: empty where not known."""

    id: str
    name: str
    district: str = ""
    city: str = ""

    @property
    def title(self) -> str:
        """Its name with the district, to tell it from others of its name: "Shake Shack Shibuya"."""
        is_told = self.district.casefold() in self.name.casefold()
        return self.name if is_told else f"{self.name} {self.district}"[:MAX_TITLE]


class VenueProblem(Enum):
    """Why nothing could be looked up, in words for the user."""

    UNREACHABLE = "the place search cannot be reached right now"
    BUSY = "the place search is too busy right now"


class VenueLookup(Protocol):
    """Finds venues by name. source: where they are from, in words that follow "in"."""

    @property
    def source(self) -> str: ...

    async def find(self, query: str, limit: int) -> Sequence[Venue] | VenueProblem: ...


class SampleVenues:
    """The small sample of places that is bundled."""

    source = "the small sample of places that I come with"

    async def find(self, query: str, limit: int) -> Sequence[Venue]:
        return matching(query, SAMPLE_VENUES)[:limit]


class NominatimVenues:
    """Places of OpenStreetMap from a Nominatim server, with at most one request a second.

    url: of the server, `https://nominatim.openstreetmap.org` for the public one; user_agent: names the application, as
    its policy asks. Raises ValueError for an invalid URL.
    """

    source = "OpenStreetMap (© its contributors)"

    def __init__(self, url: str, user_agent: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError(f"{url!r} is no address of a Nominatim server: it begins with https:// or http://.")
        self._scheme, self._domain = parts.scheme, parts.netloc + parts.path
        self._user_agent = user_agent
        self._free_at = 0.0

    async def find(self, query: str, limit: int) -> Sequence[Venue] | VenueProblem:
        now = asyncio.get_running_loop().time()
        start = max(now, self._free_at)
        if start - now > MAX_WAIT_SECONDS:
            return VenueProblem.BUSY
        self._free_at = start + REQUEST_INTERVAL_SECONDS
        await asyncio.sleep(start - now)
        try:
            venues = _read(await self._places(query[:MAX_QUERY], limit))
            return [venue for venue in venues if venue.name][:limit]
        except Exception as error:  # noqa: BLE001 - it may answer anything, and geopy then raises anything
            log.warning("venue_lookup_failed", error=type(error).__name__, detail=str(error)[:200])
            return VenueProblem.UNREACHABLE

    async def _places(self, query: str, limit: int) -> list[Mapping[str, Any]]:
        """The server's raw results. Opens a session for each request: they are too rare to keep one open."""
        from geopy.geocoders import Nominatim  # type: ignore[import-untyped]  # noqa: PLC0415 - only with a server

        from miniapps.bounded_http import BoundedAdapter  # noqa: PLC0415 - as above

        async with Nominatim(
            scheme=self._scheme,
            domain=self._domain,
            user_agent=self._user_agent,
            timeout=REQUEST_TIMEOUT_SECONDS,
            ssl_context=tls_context(),
            adapter_factory=lambda **how: BoundedAdapter(MAX_BODY_BYTES, **how),
        ) as nominatim:
            found = await nominatim.geocode(query, exactly_one=False, limit=limit, addressdetails=True, language="en")
            return [place.raw for place in found or ()]


def clean(text: str, limit: int = MAX_NAME) -> str:
    """The text on one line, without invisible characters, cut to `limit` characters."""
    line = " ".join("".join(c for c in text if c.isprintable() or c.isspace() or c == "\u200d").split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def matching(query: str, venues: Sequence[Venue]) -> list[Venue]:
    """The venues whose full name the query has; if there is none, those whose name it has in part.

    Each word of the query must resemble one of the name, the district or the city, and at least one a word of the name.
    Accents, case and small words are ignored. Words of 4 letters may have one typing error, words of 8 two.
    """
    words = _words(query[:MAX_QUERY])
    known = [(venue, _known_by(venue)) for venue in venues]
    whole = [venue for venue, by in known if _names(words, by)]
    return whole or [venue for venue, by in known if _names_in_part(words, by)]


def is_known(text: str) -> bool:
    """Whether a text is a full name in the sample, with or without district and city, typing errors allowed."""
    words = _words(text[:MAX_QUERY])
    return any(_names(words, by) for by in SAMPLE_KNOWN_BY)


def is_name(text: str) -> bool:
    """Whether a text is exactly a name in the sample, alone or with its district."""
    return "".join(_words(text[:MAX_QUERY])) in NAMES


def is_chain(text: str) -> bool:
    """Whether a text is the bare name of several places in the sample."""
    return "".join(_words(text[:MAX_QUERY])) in CHAINS


@dataclass(frozen=True, slots=True)
class _KnownBy:
    """Words that name a venue. name: of its name; joined: these as one word; all: with district and city."""

    name: Sequence[str]
    joined: str
    all: Sequence[str]


def _known_by(venue: Venue) -> _KnownBy:
    name = _words(venue.name)
    return _KnownBy(name, "".join(name), (*name, *_words(venue.district), *_words(venue.city)))


def _names(words: Sequence[str], by: _KnownBy) -> bool:
    if _resembles("".join(words), by.joined):
        return True
    return _names_in_part(words, by) and all(any(_resembles(word, part) for word in words) for part in by.name)


def _names_in_part(words: Sequence[str], by: _KnownBy) -> bool:
    is_named = any(_resembles(word, part) for word in words for part in by.name)
    return is_named and all(any(_resembles(word, part) for part in by.all) for word in words)


def _resembles(word: str, other: str) -> bool:
    allowed = min(len(word) // 4, 2)
    if abs(len(word) - len(other)) > allowed:
        return False
    return word == other or (allowed > 0 and OSA.distance(word, other, score_cutoff=allowed) <= allowed)


def _words(text: str) -> list[str]:
    plain = text[: 2 * MAX_QUERY].casefold()
    if not plain.isascii():
        spelled_out = unicodedata.normalize("NFKD", plain)[: 2 * MAX_QUERY]  # one character may become eighteen
        plain = "".join(c for c in spelled_out if not unicodedata.combining(c))
    words = LETTERS.findall(re.sub(r"['’](?=s\b)", "", plain.replace("œ", "oe")))
    return ([word for word in words if word not in SMALL_WORDS] or words)[:MAX_WORDS]


def _read(places: Sequence[Mapping[str, Any]]) -> list[Venue]:
    """Reads Nominatim's places. Those with the same name, district and city get their road added, else are one."""
    venues, roads = [], []
    for place in places:
        address = place.get("address", {})
        name = place.get("name") or place["display_name"].partition(",")[0]
        district, city = (next((address[one] for one in kinds if one in address), "") for kinds in (DISTRICTS, CITIES))
        venues.append(Venue(*map(clean, (f"{place['osm_type']}-{place['osm_id']}", name, district, city))))
        roads.append(clean(str(address.get("road", ""))))
    count = Counter(map(_key, venues))
    for index, (venue, road) in enumerate(zip(venues, roads, strict=True)):
        if road and count[_key(venue)] > 1:
            venues[index] = replace(venue, district=clean(f"{road}, {venue.district}".removesuffix(", ")))
    return list({_key(venue): venue for venue in reversed(venues)}.values())[::-1]


def _key(venue: Venue) -> tuple[str, str, str]:
    return venue.name, venue.district, venue.city


SAMPLE_VENUES = tuple(
    Venue(f"sample-{number}", *(part.strip() for part in line.split("|")))
    for number, line in enumerate(SAMPLE.strip().splitlines(), 1)
)
SAMPLE_KNOWN_BY = tuple(map(_known_by, SAMPLE_VENUES))
NAMES = frozenset("".join(_words(name)) for venue in SAMPLE_VENUES for name in (venue.name, venue.title))
CHAINS = frozenset(name for name, count in Counter(by.joined for by in SAMPLE_KNOWN_BY).items() if count > 1)
