"""The console's web application: routes, access checks, error pages and headers."""

from __future__ import annotations

import asyncio

from aiohttp import web
from aiohttp.typedefs import Handler

from setting_values import is_loopback
from web.console.access import SESSION_SECONDS, Password, address_of, host_of
from web.console.errors import errors, errors_stream
from web.console.overview import overview, overview_stream
from web.console.page import CONSOLE, HERE, SESSION, Console, Source, render
from web.console.place_pages import PLACE_ROUTES
from web.console.storage import storage
from web.console.stream import OPEN, end_streams

COOKIE = "parley_console"
LOGIN = "/console/login"
PLAYGROUND = HERE.parents[1] / "playground" / "page"
STATIC = {
    "console.css": (HERE / "static" / "console.css", "text/css"),
    "console.js": (HERE / "static" / "console.js", "text/javascript"),
    "theme.css": (PLAYGROUND / "theme.css", "text/css"),
    "theme.js": (PLAYGROUND / "theme.js", "text/javascript"),
    "icon.svg": (PLAYGROUND / "icon.svg", "image/svg+xml"),
}
STATIC_PREFIX = "/console/static/"
FORM_SECONDS = 20.0  # to receive the rest of a form


async def login_page(request: web.Request) -> web.StreamResponse:
    if request.get(SESSION):
        raise web.HTTPSeeOther("/console")
    return render(request, "login.html", problem="")


async def login(request: web.Request) -> web.StreamResponse:
    """Logs in. Always starts a new session, whatever cookie the browser sent."""
    console = request.app[CONSOLE]
    if console.password is None:
        raise web.HTTPSeeOther("/console")
    address = address_of(request)
    if seconds := console.password.seconds_to_wait(address):
        problem = f"There were too many wrong passwords: try again in {seconds} seconds."
        refused = render(request, "login.html", status=429, problem=problem)
        refused.headers["Retry-After"] = str(seconds)
        return refused
    if not console.password.accepts(str((await request.post()).get("password", "")), address):
        return render(request, "login.html", status=403, problem="That is not the password set in CONSOLE_PASSWORD.")
    if before := request.get(SESSION):
        console.sessions.end(before)
    entered = web.HTTPSeeOther("/console")
    _set_cookie(request, entered, console.sessions.begin()[0])
    raise entered


async def logout(request: web.Request) -> web.StreamResponse:
    request.app[CONSOLE].sessions.end(request[SESSION])
    left = web.HTTPSeeOther(LOGIN)
    left.del_cookie(COOKIE, path="/console")
    raise left


async def static(request: web.Request) -> web.StreamResponse:
    """Serves the files named in STATIC, and no others."""
    path, content_type = STATIC.get(request.match_info["name"], (None, ""))
    if path is None:
        raise web.HTTPNotFound
    response = web.Response(body=path.read_bytes(), content_type=content_type, charset="utf-8")
    response.headers["Cache-Control"] = "max-age=300"
    return response


ROUTES = (
    web.get("", overview),
    web.get("/live", overview_stream, allow_head=False),
    web.get("/errors", errors),
    web.get("/errors/live", errors_stream, allow_head=False),
    web.get("/storage", storage),
    web.get("/login", login_page),
    web.post("/login", login),
    web.post("/logout", logout),
    web.get("/static/{name}", static),
    *PLACE_ROUTES,
)


def console_app(source: Source, *, password: Password | None, shows_content: bool) -> web.Application:
    """The console's application, to be mounted at /console. password: None: no login is needed."""
    app = web.Application(middlewares=[explained, guarded])
    app[CONSOLE] = Console(source, password=password, shows_content=shows_content)
    app[OPEN] = set()
    app.add_routes(ROUTES)
    app.on_shutdown.append(end_streams)
    return app


@web.middleware
async def explained(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Shows errors as a page, and keeps pages out of caches."""
    try:
        response = await handler(request)
    except web.HTTPRedirection:
        raise
    except web.HTTPException as error:
        own = error.text if error.text and not error.text.startswith(f"{error.status}:") else None
        says = own or _WORDS.get(error.status, error.reason)
        response = render(request, "problem.html", status=error.status, says=says)
        response.headers.update({name: error.headers[name] for name in BEARS if name in error.headers})
    if not response.prepared:
        response.headers.setdefault("Cache-Control", "no-store")
    return response


BEARS = ("Allow", "Retry-After")
_WORDS = {
    404: "There is no such page.",
    405: "This page cannot be requested in that way.",
    413: "That is larger than any form of the console.",
}


@web.middleware
async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Requires a login, and accepts only forms of the console's own pages."""
    console = request.app[CONSOLE]
    session, begun = console.sessions.find(request.cookies.get(COOKIE)), None
    if session is None and console.password is None and request.path == "/console":
        begun, session = console.sessions.begin()
    if session:
        request[SESSION] = session
    if request.method not in ("GET", "HEAD"):
        await _check_form(request)
    is_open = request.path == LOGIN or request.path.startswith(STATIC_PREFIX)
    if session is None and not is_open:
        if request.headers.get("Accept") == "text/event-stream":
            raise web.HTTPUnauthorized(text="Your session has ended: log in again.")
        raise web.HTTPSeeOther(LOGIN if console.password else "/console")
    response = await handler(request)
    if begun and not response.prepared:
        _set_cookie(request, response, begun)
    return response


async def _check_form(request: web.Request) -> None:
    """Raises an HTTPException for a request that is no form of the console's own pages."""
    # aiohttp's own parser may take 0.5 s for what follows the type, and some encodings take long to decode.
    kind, _, parameters = request.headers.get("Content-Type", "").replace(" ", "").lower().partition(";")
    if kind != "application/x-www-form-urlencoded":
        raise web.HTTPUnsupportedMediaType(text="The console accepts only forms.")
    if parameters not in ("", "charset=utf-8"):
        raise web.HTTPBadRequest(text="That form cannot be read.")
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin", "")
    is_own = site == "same-origin" if site else not origin or origin.partition("://")[2] == request.host
    try:
        async with asyncio.timeout(FORM_SECONDS):
            form = await request.post()  # here, so that no await comes between limit and attempt
    except TimeoutError:
        raise web.HTTPRequestTimeout(text="That form took too long to arrive: send it again.") from None
    except (LookupError, ValueError, web.RequestPayloadError):  # an unknown or a wrong encoding
        raise web.HTTPBadRequest(text="That form cannot be read.") from None
    session = request.get(SESSION)
    is_bound = request.path == LOGIN or (session is not None and session.sent(form.get("csrf")))
    if not (is_own and is_bound):
        raise web.HTTPForbidden(text="That form did not come from this console, or is out of date: reload the page.")


def _set_cookie(request: web.Request, response: web.StreamResponse, value: str) -> None:
    is_secure = request.headers.get("X-Forwarded-Proto") == "https" or not is_loopback(host_of(request))
    response.set_cookie(
        COOKIE, value, max_age=int(SESSION_SECONDS), path="/console", httponly=True, samesite="Strict", secure=is_secure
    )
