"""The pages of servers, channels and people, and the button that pauses the bot in a server."""

from __future__ import annotations

from collections.abc import Mapping

import structlog
from aiohttp import web

from place import SeenPlace
from place_settings.fields import Level
from web.console.channel import Row, rows
from web.console.page import CONSOLE, part, render, shown
from web.console.places import PlaceRow, guild_rows, held_at, is_live, lines, people, place_row
from web.console.stream import Draw, Watcher, stream
from web.shown import Shown

log = structlog.get_logger()

PAGE_ROWS = 100
STORING_SECONDS = 3.0  # at most, to wait until a pause is stored
QUIET_SECONDS = 0.1  # new, edited and deleted messages are no events of the watcher, so the page is redrawn often


async def guilds_page(request: web.Request) -> web.StreamResponse:
    page = _page(request)
    found, count = guild_rows(shown(request), PAGE_ROWS * (page - 1), PAGE_ROWS)
    return render(request, "places.html", rows=found, count=count, page=page, pages_count=_pages(count), query="")


async def guild_page(request: web.Request) -> web.StreamResponse:
    """The places of one server; with `live` in the query only those with a conversation."""
    bot, (guild_id, name), page = shown(request), _guild(request), _page(request)
    places = bot.servers.places(guild_id)
    only_live = "live" in request.query
    if only_live:
        places = [place for place in places if is_live(bot, place)]
    some = places[PAGE_ROWS * (page - 1) : PAGE_ROWS * page]
    content = request.app[CONSOLE].shows_content
    return render(
        request,
        "guild.html",
        guild_id=guild_id,
        name=name,
        is_paused=bot.guild_settings.is_paused(guild_id),
        rows=[place_row(bot, guild_id, place, shows_content=content) for place in some],
        only_live=only_live,
        count=len(places),
        page=page,
        pages_count=_pages(len(places)),
        query="live&" if only_live else "",
    )


async def channel_page(request: web.Request) -> web.StreamResponse:
    bot, (guild_id, name), place = shown(request), _guild(request), _place(request)
    row = place_row(bot, guild_id, place, shows_content=request.app[CONSOLE].shows_content)
    held = [*lines(held_at(bot, guild_id, place), place.level)]
    drawn = _drawing(request, bot, guild_id, place)()
    return render(
        request,
        "channel.html",
        guild_id=guild_id,
        guild=name,
        row=row,
        lines=held,
        doing=drawn["doing"],
        feed=drawn["feed"],
    )


async def channel_stream(request: web.Request) -> web.StreamResponse:
    bot, (guild_id, _), place = shown(request), _guild(request), _place(request)
    watcher = Watcher(place.place_id)
    drawing = _drawing(request, bot, guild_id, place)
    return await stream(request, drawing, watcher, quiet_seconds=QUIET_SECONDS)


def _drawing(request: web.Request, bot: Shown, guild_id: int, place: SeenPlace) -> Draw:
    """A function that draws the state of a channel. It renders only after changes, since it is called each second."""
    content = request.app[CONSOLE].shows_content
    before: tuple[PlaceRow, list[Row]] | None = None
    drawn: dict[str, str] = {}

    def draw() -> Mapping[str, str]:
        nonlocal before, drawn
        now = (
            place_row(bot, guild_id, place, shows_content=content),
            rows(bot, place.place_id, shows_content=content),
        )
        if now != before:
            before = now
            drawn = {
                "doing": part(request, "channel_doing.html", row=now[0]),
                "feed": part(request, "channel_rows.html", rows=now[1], shows_content=content),
            }
        return drawn

    return draw


async def pause(request: web.Request) -> web.StreamResponse:
    """Pauses or resumes the bot in a server, by the form's field `on`."""
    bot, (guild_id, _) = shown(request), _guild(request)
    is_on = (await request.post()).get("on") == "1"
    bot.guild_settings.pause(guild_id, on=is_on)
    log.warning("paused" if is_on else "resumed_answering", guild=guild_id, by="console")
    await bot.noted(STORING_SECONDS)
    raise web.HTTPSeeOther(f"/console/places/{guild_id}")


async def people_page(request: web.Request) -> web.StreamResponse:
    bot, page, content = shown(request), _page(request), request.app[CONSOLE].shows_content
    found, count = people(bot, PAGE_ROWS * (page - 1), PAGE_ROWS, shows_content=content)
    return render(
        request,
        "people.html",
        rows=found,
        month=f"{bot.clock():%B %Y}",
        opted_out=len(bot.opted_out),
        count=count,
        page=page,
        pages_count=_pages(count),
        query="",
    )


def _guild(request: web.Request) -> tuple[int, str]:
    """Id and name of the server in the URL. Raises HTTPNotFound."""
    guild_id = int(request.match_info["guild"])
    name = shown(request).servers.guilds().get(guild_id)
    if name is None:
        raise web.HTTPNotFound(text="The bot is not in that server.")
    return guild_id, name


def _place(request: web.Request) -> SeenPlace:
    """The channel or thread in the URL. Raises HTTPNotFound."""
    place_id, there = int(request.match_info["place"]), shown(request).servers.places(int(request.match_info["guild"]))
    found = next((p for p in there if p.place_id == place_id and p.level is not Level.CATEGORY), None)
    if found is None:
        raise web.HTTPNotFound(text="The bot sees no such channel in this server.")
    return found


def _page(request: web.Request) -> int:
    """Number of the requested page, from 1 on."""
    page = request.query.get("page", "1")
    return max(1, int(page)) if page.isdecimal() and len(page) < 7 else 1


def _pages(count: int) -> int:
    return max(1, -(-count // PAGE_ROWS))


PLACE_ROUTES = (
    web.get("/places", guilds_page),
    web.get(r"/places/{guild:\d{1,20}}", guild_page),
    web.post(r"/places/{guild:\d{1,20}}/pause", pause),
    web.get(r"/places/{guild:\d{1,20}}/{place:\d{1,20}}", channel_page),
    web.get(r"/places/{guild:\d{1,20}}/{place:\d{1,20}}/live", channel_stream, allow_head=False),
    web.get("/people", people_page),
)
