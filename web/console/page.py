"""What the console's pages share: rendering, filters of templates, and access to the bot."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from aiohttp import web
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from web.console.access import Password, Session, Sessions
from web.shown import Shown

HERE = Path(__file__).parent
PAGES = (
    ("/console", "Overview"),
    ("/console/places", "Places"),
    ("/console/people", "People"),
    ("/console/errors", "Errors"),
    ("/console/storage", "Storage"),
)


class Source(Protocol):
    """The connected bot's parts for the pages. shown: None: the bot is still starting."""

    @property
    def shown(self) -> Shown | None: ...


class Console:
    """State shared by the pages. password: None: no login is needed; shows_content: whether to show people's words."""

    def __init__(self, source: Source, *, password: Password | None, shows_content: bool) -> None:
        self.source = source
        self.password = password
        self.shows_content = shows_content
        self.sessions = Sessions()
        self.templates = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.templates.filters |= {
            "number": number,
            "money": money,
            "cost": cost,
            "size": size,
            "span": span,
            "clock": clock,
        }


CONSOLE = web.AppKey("console", Console)
SESSION = web.RequestKey("session", Session)


def shown(request: web.Request) -> Shown:
    """The current bot. Raises HTTPServiceUnavailable while it starts."""
    found = request.app[CONSOLE].source.shown
    if found is None:
        raise web.HTTPServiceUnavailable(text="The bot is starting: try again in a few seconds.")
    return found


def part(request: web.Request, template: str, **values: Any) -> Markup:
    """A template's HTML, to be part of a page."""
    return Markup(request.app[CONSOLE].templates.get_template(template).render(**values))  # noqa: S704 - it is escaped


def render(request: web.Request, template: str, *, status: int = 200, **values: Any) -> web.Response:
    """A whole page. Besides these values its template gets csrf, pages, path, has_login and shows_content."""
    session = request.get(SESSION)
    console = request.app[CONSOLE]
    html = part(
        request,
        template,
        csrf=session.csrf if session else "",
        pages=PAGES if session else (),
        path=request.path,
        has_login=console.password is not None,
        shows_content=console.shows_content,
        **values,
    )
    return web.Response(text=html, content_type="text/html", status=status)


# Figures in words, as filters of the templates


def number(value: float) -> str:
    """A number with narrow spaces between thousands; in millions from 100,000 on."""
    if value >= 1e5:
        return f"{value / 1e6:,.2f} M"
    return f"{value:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def money(micros: int) -> str:
    """Micro-dollars as dollars with two digits; four below $0.10, none from $100 on."""
    dollars = micros / 1e6
    digits = 0 if dollars >= 100 else 2 if dollars >= 0.1 or not micros else 4
    return f"${dollars:,.{digits}f}"


class Costing(Protocol):
    """Figures of the ledger. unpriced: tokens of calls whose price is not known."""

    @property
    def micros(self) -> int: ...

    @property
    def unpriced(self) -> int: ...


def cost(used: Costing) -> str:
    """The cost as far as it is known: without a known price it is not said to be $0."""
    return money(used.micros) if used.micros or not used.unpriced else "price not known"


def size(count: int) -> str:
    """A number of bytes, with its unit."""
    value, unit = float(count), "bytes"
    for unit in ("bytes", "KB", "MB", "GB"):
        if value < 1_000 or unit == "GB":
            break
        value /= 1_000
    return f"{value:.0f} {unit}" if unit == "bytes" or value >= 100 else f"{value:.1f} {unit}"


def span(seconds: float | timedelta | None) -> str:
    """A duration in words; a dash if it is not known."""
    if seconds is None:
        return "–"
    value = seconds.total_seconds() if isinstance(seconds, timedelta) else seconds
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 60:
        return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"
    minutes = int(value // 60)
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min" if minutes < 2_880 else f"{minutes // 1440} days"


def clock(at: datetime) -> str:
    """A time in UTC, which the page's script converts to local time."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
