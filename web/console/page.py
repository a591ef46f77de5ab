"""A page of the console: what it is drawn with and by, and what it may look at."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from aiohttp import web
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from health import Health
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
    """What there is to see of the bot that is connected; none before the first one is made."""

    @property
    def shown(self) -> Shown | None: ...

    @property
    def health(self) -> Health: ...


class Console:
    """What the pages share. password: None: whoever reaches it may look. shows_content: also what people wrote."""

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
    """The bot of the moment. Raises HTTPServiceUnavailable where there is none yet."""
    found = request.app[CONSOLE].source.shown
    if found is None:
        raise web.HTTPServiceUnavailable(text="The bot is starting: look again in some seconds.")
    return found


def part(request: web.Request, template: str, **values: Any) -> Markup:
    """A template's HTML, as a page includes it."""
    return Markup(request.app[CONSOLE].templates.get_template(template).render(**values))  # noqa: S704 - it is escaped


def render(request: web.Request, template: str, *, status: int = 200, **values: Any) -> web.Response:
    """A whole page. Beside these values its template has `csrf`, `pages` and `path`."""
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
    """With a narrow space between thousands, short from 100,000 on."""
    if value >= 1e5:
        return f"{value / 1e6:,.2f} M"
    return f"{value:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def money(micros: int) -> str:
    """Micro-dollars in dollars: with cents, or with as much as tells a small amount from none, or in whole ones."""
    dollars = micros / 1e6
    digits = 0 if dollars >= 100 else 2 if dollars >= 0.1 or not micros else 4
    return f"${dollars:,.{digits}f}"


class Costing(Protocol):
    """Figures of the ledger. unpriced: the tokens of calls whose price nobody knows."""

    @property
    def micros(self) -> int: ...

    @property
    def unpriced(self) -> int: ...


def cost(used: Costing) -> str:
    """What is known of it; that something costs nothing is not said of what has no known price."""
    return money(used.micros) if used.micros or not used.unpriced else "price not known"


def size(count: int) -> str:
    """Bytes."""
    value, unit = float(count), "bytes"
    for unit in ("bytes", "KB", "MB", "GB"):
        if value < 1_000 or unit == "GB":
            break
        value /= 1_000
    return f"{value:.0f} {unit}" if unit == "bytes" or value >= 100 else f"{value:.1f} {unit}"


def span(seconds: float | timedelta | None) -> str:
    """A stretch of time; a dash where it is not known."""
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
    """A time in UTC, which the browser turns into its own."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
