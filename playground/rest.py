"""The playground's REST server: authentication, rate limits, injected faults and a record of the bot's requests.

The endpoints themselves are in endpoints.py.
"""

import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any

import orjson
from aiohttp import web

from playground import body, errors
from playground.changes import Changes
from playground.errors import ApiError
from playground.faults import Fault, Faults
from playground.limits import Limiter, Standing, retry_body
from playground.model import Clock, File, snowflake

_MAX_RECORDED = 2_000


@dataclass(frozen=True, slots=True)
class Sent:
    """A request that the bot sent. `path`: without /api/v10; `status`: 0 if the connection was cut instead."""

    method: str
    path: str
    status: int
    body: Any


@dataclass(slots=True)
class Call:
    """A request for an endpoint: variables of the path, query, JSON and files."""

    match: dict[str, str]
    query: dict[str, str]
    json: Any = None
    files: tuple[File, ...] = ()

    def id(self, name: str) -> int:
        """A snowflake in the path. ApiError 50035 for anything else."""
        value = snowflake(self.match[name])
        if value is None:
            raise errors.invalid_form(name, "NUMBER_TYPE_COERCE", "Value is not snowflake.")
        return value

    def number(self, name: str, default: int) -> int:
        """A number in the query. ApiError 50035 for anything else."""
        value = snowflake(self.query.get(name, default))
        if value is None:
            raise errors.invalid_form(name, "NUMBER_TYPE_COERCE", "Value is not int.")
        return value

    def limit(self, default: int, most: int = 100) -> int:
        """How many results are asked for. ApiError 50035 for none, or more than `most`."""
        limit = self.number("limit", default)
        if not 1 <= limit <= most:
            raise errors.invalid_form("limit", "NUMBER_TYPE_MAX", f"int value should be between 1 and {most}.")
        return limit


Endpoint = Callable[[Call], Any]


@dataclass(frozen=True, slots=True)
class Route:
    """An endpoint's route. `limit`: its rate limit, a field of Limits; `public`: needs no token in the header."""

    method: str
    path: str
    endpoint: Endpoint
    limit: str | None = None
    public: bool = False


@dataclass(slots=True)
class Answer:
    """A response. content: None: status 204; cut: the connection is cut instead."""

    status: int = 200
    content: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False


class Rest:
    """Serves the routes, and records the requests."""

    def __init__(self, token: str, limiter: Limiter, faults: Faults, changes: Changes, wall: Clock = time.time) -> None:
        self.requests: deque[Sent] = deque(maxlen=_MAX_RECORDED)
        self._token = token
        self._limiter = limiter
        self._faults = faults
        self._changes = changes
        self._wall = wall

    def app(self, routes: Sequence[Route]) -> web.Application:
        """The application to mount under /api/v10."""
        app = web.Application(middlewares=[self._not_found])
        app.router.add_routes([web.route(one.method, one.path, self._handler(one)) for one in routes])
        return app

    @web.middleware
    async def _not_found(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Converts aiohttp's own errors to Discord's."""
        try:
            return await handler(request)
        except web.HTTPRequestEntityTooLarge:
            return self._respond(request, _refusal(errors.too_large()), None)
        except (web.HTTPNotFound, web.HTTPMethodNotAllowed) as refused:
            content = {"message": f"{refused.status}: {refused.reason}", "code": 0}
            return self._respond(request, Answer(refused.status, content), None)

    def _handler(self, route: Route) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            call = Call(dict(request.match_info), dict(request.query))
            answer = await self._answer(route, request, call)
            if answer.cut and request.transport is not None:
                request.transport.abort()
            return self._respond(request, answer, call.json)

        return handle

    def _respond(self, request: web.Request, answer: Answer, json: Any) -> web.Response:
        status = 204 if answer.status == 200 and answer.content is None else answer.status
        self.requests.append(Sent(request.method, _path(request), 0 if answer.cut else status, json))
        self._changes.notify()
        headers = {"Date": formatdate(self._wall(), usegmt=True), **answer.headers}
        if status == 204:
            return web.Response(status=204, headers=headers)
        # discord.py reads a body as JSON only if the type is exactly this, without a charset.
        return web.Response(
            status=status,
            body=orjson.dumps(answer.content),
            headers=headers,
            content_type="application/json",
        )

    async def _answer(self, route: Route, request: web.Request, call: Call) -> Answer:
        try:
            call.json, call.files = await body.read(request)
        except ApiError as error:
            return _refusal(error)
        fault = self._faults.take(request.method, _path(request))
        if fault is not None:
            self._changes.notify()  # a test may wait for it
        if fault is not None and not fault.after_effect and (failed := await _fail(fault)):
            return failed
        answer = self._take_effect(route, request, call)
        if fault is not None and fault.after_effect and (failed := await _fail(fault)):
            return failed
        return answer

    def _take_effect(self, route: Route, request: web.Request, call: Call) -> Answer:
        headers: dict[str, str] = {}
        try:
            if not route.public and request.headers.get("Authorization") != f"Bot {self._token}":
                raise errors.unauthorized()
            everything = None if route.public else self._limiter.take_global()
            if everything is not None and everything.retry_after is not None:
                return _too_many(everything)
            bucket = None if route.limit is None else self._limiter.take(route.limit, call.match["channel"])
            if bucket is not None:
                headers |= bucket.headers(time.time())
                if bucket.retry_after is not None:
                    return _too_many(bucket)
            return Answer(content=route.endpoint(call), headers=headers)
        except ApiError as error:
            answer = _refusal(error)
            answer.headers = headers
            return answer


def _path(request: web.Request) -> str:
    return request.path.removeprefix("/api/v10")


def _refusal(error: ApiError) -> Answer:
    return Answer(error.status, error.body())


def _too_many(standing: Standing) -> Answer:
    wait = standing.retry_after or 0.0
    content = retry_body(wait, is_global=standing.is_global)
    return Answer(429, content, standing.headers(time.time()))


async def _fail(fault: Fault) -> Answer | None:
    """Waits if the fault says so; then its response, or None to go on."""
    if fault.delay_event is not None:
        await fault.delay_event.wait()
    if fault.drop:
        return Answer(500, {}, cut=True)
    answer = fault.answer()
    return None if answer is None else Answer(*answer)
