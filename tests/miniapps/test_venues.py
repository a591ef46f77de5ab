"""miniapps/venues.py: the sample finds what people mean, and Nominatim is asked politely, over a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from miniapps import venues
from miniapps.venues import (
    MAX_NAME,
    MAX_TITLE,
    SAMPLE_VENUES,
    NominatimVenues,
    SampleVenues,
    Venue,
    VenueProblem,
    clean,
    is_chain,
    is_known,
    matching,
)

# The sample


async def districts(query: str) -> list[str]:
    return [venue.district for venue in await SampleVenues().find(query, 10)]


async def test_a_name_with_several_places_gives_them_in_their_order() -> None:
    assert await districts("Shake Shack") == ["Shibuya", "Shinjuku", "Harajuku"]


@pytest.mark.parametrize(
    "query",
    [
        "the SHAKE SHACK, Shibuya",
        "shake shak in shibuya",
    ],
)
async def test_a_name_with_its_district_gives_that_one(query: str) -> None:
    assert await districts(query) == ["Shibuya"]


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("sacre coeur", "Sacré-Cœur"),
        ("SAGRADA FAMILIA", "Sagrada Família"),
        ("park guell", "Park Güell"),
        ("sensoji", "Senso-ji"),
        ("timessquare", "Times Square"),
        ("katz", "Katz's Delicatessen"),
        ("the louvre", "Louvre Museum"),
        ("lourve museum", "Louvre Museum"),
        ("eifel tower paris", "Eiffel Tower"),
        ("brandenbrug gate", "Brandenburg Gate"),
        ("central park in new york", "Central Park"),
    ],
)
async def test_accents_parts_and_typing_errors_are_tolerated(query: str, name: str) -> None:
    assert [venue.name for venue in await SampleVenues().find(query, 10)] == [name]


async def test_part_of_several_names_gives_all_of_them_up_to_the_limit() -> None:
    found = await SampleVenues().find("tower", 10)
    assert [venue.name for venue in found] == ["Tokyo Tower", "Eiffel Tower", "Tower Bridge"]
    assert len(await SampleVenues().find("tower", 2)) == 2


@pytest.mark.parametrize(
    "query",
    [
        "!!!",
        "shibuya zoo",
        "manhattan",
        "shake shack in Berlin",
        "a " * 2_000,
        "東京",
    ],
)
async def test_what_the_sample_does_not_have_is_not_found(query: str) -> None:
    assert await SampleVenues().find(query, 10) == []


def test_each_place_of_the_sample_is_found_by_its_own_name_and_district() -> None:
    assert len(SAMPLE_VENUES) >= 30
    assert len({venue.id for venue in SAMPLE_VENUES}) == len(SAMPLE_VENUES)
    for venue in SAMPLE_VENUES:
        assert matching(venue.title, SAMPLE_VENUES) == [venue]
        assert is_known(venue.name)


def test_only_a_bare_name_of_several_places_is_a_chain() -> None:
    assert is_chain("Shake Shack")
    assert is_chain(" the shake shack!")
    assert not is_chain("Shake Shack Shibuya")
    assert not is_chain("Tokyo Tower")
    assert not is_chain("")


def test_a_venue_is_titled_with_its_district_unless_the_name_says_it() -> None:
    assert Venue("1", "Shake Shack", "Shibuya").title == "Shake Shack Shibuya"
    assert Venue("1", "Shibuya Crossing", "Shibuya").title == "Shibuya Crossing"
    assert Venue("1", "Joe's").title == "Joe's"


def test_a_text_is_cleaned_to_one_visible_line() -> None:
    assert clean("a\n\tb\u202e\x00\u200bc  d") == "a bc d"
    assert clean("👩‍👩‍👧 café") == "👩‍👩‍👧 café"
    assert clean("x" * 101) == "x" * 99 + "…"


# Nominatim


class Server:
    """Speaks /search?format=json. answer: what it gives, or the status it fails with; gate: what it waits for."""

    def __init__(self) -> None:
        self.answer: Any = []
        self.requests: list[web.Request] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def search(self, request: web.Request) -> web.Response:
        self.requests.append(request)
        await self.gate.wait()
        if isinstance(self.answer, int):
            return web.Response(status=self.answer)
        return self.answer if isinstance(self.answer, web.Response) else web.json_response(self.answer)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
async def nominatim(server: Server) -> AsyncIterator[NominatimVenues]:
    app = web.Application()
    app.router.add_get("/geo/search", server.search)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield NominatimVenues(f"http://127.0.0.1:{runner.addresses[0][1]}/geo", "parley-tests")
    await runner.cleanup()


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited before each request, without waiting."""
    waited: list[float] = []
    real = asyncio.sleep

    async def nap(seconds: float) -> None:
        waited.append(seconds)
        await real(0)

    monkeypatch.setattr(asyncio, "sleep", nap)
    return waited


def place(number: int, name: str, **address: str) -> dict[str, Any]:
    return {
        "osm_type": "node",
        "osm_id": number,
        "name": name,
        "display_name": f"{name}, Somewhere",
        "lat": "35.6",
        "lon": "139.7",
        "address": address,
    }


async def test_places_are_read_with_district_and_city(server: Server, nominatim: NominatimVenues) -> None:
    server.answer = [place(1, "Shake Shack", suburb="Shibuya", city="Tokyo"), place(2, "Shake Shack", town="Kamakura")]
    assert await nominatim.find("shake shack", 10) == [
        Venue("node-1", "Shake Shack", "Shibuya", "Tokyo"),
        Venue("node-2", "Shake Shack", "", "Kamakura"),
    ]
    (request,) = server.requests
    assert request.query["q"] == "shake shack"
    assert (request.query["format"], request.query["limit"], request.query["addressdetails"]) == ("json", "10", "1")
    assert request.headers["User-Agent"] == "parley-tests"


async def test_places_that_are_alike_are_told_apart_by_road_or_are_one(
    server: Server, nominatim: NominatimVenues
) -> None:
    here = {"suburb": "Shibuya", "city": "Tokyo"}
    server.answer = [
        place(1, "Cafe", road="Hill", **here),
        place(2, "Cafe", road="Hill", **here),
        place(3, "Cafe", **here),
    ]
    found = await nominatim.find("cafe", 10)
    assert not isinstance(found, VenueProblem)
    assert [(venue.id, venue.district) for venue in found] == [
        ("node-1", "Hill, Shibuya"),
        ("node-3", "Shibuya"),
    ]


async def test_of_long_roads_and_names_a_title_has_what_can_be_kept(server: Server, nominatim: NominatimVenues) -> None:
    """Each time a place is looked for on the list, accents would be sorted pair by pair."""
    marks = "a" + "\u0301\u0316" * 1_500
    server.answer = [place(n, "C" * 150, road=f"{marks}{n}", suburb=f"S{'x' * 150}") for n in range(2)]
    found = await nominatim.find("cafe", 10)
    assert not isinstance(found, VenueProblem)
    assert [len(venue.district) for venue in found] == [MAX_NAME]
    assert [len(venue.title) for venue in found] == [MAX_TITLE]


async def test_what_is_not_there_is_no_problem(nominatim: NominatimVenues) -> None:
    assert await nominatim.find("nowhere", 10) == []


@pytest.mark.parametrize(
    "answer",
    [
        500,
        429,
        web.Response(text="<html>", content_type="text/html"),
        {"error": "Bad Request"},
        [7],
        [{"display_name": "No Id"}],
        [{**place(1, "Odd"), "address": {"city": 7}}],
        [{**place(1, "Odd"), "lat": 10**400}],
        web.Response(text="[" * 100_000, content_type="application/json"),
        web.Response(body=b"\xff\xfe[]", content_type="application/json"),
    ],
    ids=str,
)
async def test_a_server_that_fails_or_talks_nonsense_is_a_problem_and_is_logged(
    answer: Any, server: Server, nominatim: NominatimVenues
) -> None:
    server.answer = answer
    with capture_logs() as logs:
        assert await nominatim.find("shake shack", 10) is VenueProblem.UNREACHABLE
    assert [entry["event"] for entry in logs] == ["venue_lookup_failed"]


async def test_no_more_places_come_than_were_asked_for_each_with_a_name_and_a_short_id(
    server: Server, nominatim: NominatimVenues
) -> None:
    server.answer = [place(0, "\u200b"), *(place(10**200 + number, f"Cafe {number}") for number in range(50))]
    found = await nominatim.find("cafe", 3)
    assert not isinstance(found, VenueProblem)
    assert [venue.name for venue in found] == ["Cafe 0", "Cafe 1", "Cafe 2"]
    assert all(len(venue.id) <= 100 for venue in found)


async def test_an_answer_without_end_is_cut_off(unused_tcp_port: int) -> None:
    cut_off = asyncio.Event()

    async def flood(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b" " * 100_000)
        finally:
            cut_off.set()

    app = web.Application()
    app.router.add_get("/search", flood)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
    with capture_logs() as logs:
        found = await NominatimVenues(f"http://127.0.0.1:{unused_tcp_port}", "parley-tests").find("cafe", 3)
    assert found is VenueProblem.UNREACHABLE
    assert "more than 65536 bytes" in logs[0]["detail"]
    await cut_off.wait()
    await runner.cleanup()


async def test_a_server_that_is_not_there_is_a_problem(unused_tcp_port: int) -> None:
    lookup = NominatimVenues(f"http://127.0.0.1:{unused_tcp_port}", "parley-tests")
    assert await lookup.find("shake shack", 10) is VenueProblem.UNREACHABLE


async def test_a_server_that_does_not_answer_is_a_problem(
    server: Server, nominatim: NominatimVenues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(venues, "REQUEST_TIMEOUT_SECONDS", 0.05)
    server.gate.clear()
    assert await nominatim.find("shake shack", 10) is VenueProblem.UNREACHABLE
    server.gate.set()


async def test_it_is_asked_once_a_second_and_no_queue_grows(
    server: Server, nominatim: NominatimVenues, naps: list[float]
) -> None:
    found = await asyncio.gather(*(nominatim.find(f"place {number}", 10) for number in range(8)))
    assert [round(seconds) for seconds in naps] == [0, 1, 2, 3, 4]
    assert found.count(VenueProblem.BUSY) == 3
    assert len(server.requests) == 5


@pytest.mark.parametrize("url", ["", "nominatim.example.org", "ftp://example.org", "https://", "http:///search"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="no address of a Nominatim server"):
        NominatimVenues(url, "parley-tests")
