"""Server-sent events for live pages, at most once a second. Costs nothing while no page is open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

import orjson
from aiohttp import web

from activity import Fault, Observer, TurnEnded
from decision import LoggedDecision
from state.spending import Payer, Purpose, Spent
from web.console.page import CONSOLE, SESSION, shown

MOST_STREAMS = 50
STREAM_SECONDS = 900.0  # after which the browser connects again
INTERVAL_SECONDS = 1.0
QUIET_SECONDS = 5.0  # until it is redrawn without an event, since shown durations grow
RETRY_SECONDS = 10
HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}

Draw = Callable[[], Mapping[str, str]]
"""Returns HTML by the id of the element that it replaces."""


class Watcher(Observer):
    """Sets `happened` on each event of the bot. channel_id: only for events there; 0: anywhere."""

    def __init__(self, channel_id: int = 0) -> None:
        self.happened = asyncio.Event()
        self._channel_id = channel_id

    def _note(self, channel_id: int) -> None:
        if self._channel_id in (0, channel_id):
            self.happened.set()

    def decided(self, entry: LoggedDecision) -> None:
        self._note(entry.channel_id)

    def turn_ended(self, turn: TurnEnded) -> None:
        self._note(turn.channel_id)

    def called(self, payer: Payer, purpose: Purpose, spent: Spent) -> None:  # noqa: ARG002
        self._note(payer.thread_id or payer.channel_id)

    def failed(self, fault: Fault) -> None:
        self._note(fault.channel_id)


OPEN = web.AppKey("open", set[asyncio.Task[object]])


async def stream(
    request: web.Request, draw: Draw, watcher: Watcher | None = None, *, quiet_seconds: float | None = None
) -> web.StreamResponse:
    """Sends what draw() returns whenever it has changed, until the browser, the session or the bot is gone.

    quiet_seconds: until it is redrawn without an event; None: QUIET_SECONDS.
    """
    looked_at, open_streams = shown(request), request.app[OPEN]
    if len(open_streams) >= MOST_STREAMS:
        raise web.HTTPServiceUnavailable(
            text=f"{MOST_STREAMS} pages are following the bot already, and no more can: close one.",
            headers={"Retry-After": str(RETRY_SECONDS)},
        )
    watcher = watcher or Watcher()
    response = web.StreamResponse(headers=HEADERS)
    task = asyncio.current_task()
    assert task  # noqa: S101 - a handler runs in one
    open_streams.add(task)
    looked_at.activity.watch(watcher)
    try:
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(STREAM_SECONDS):
                await response.prepare(request)
                await _follow(request, response, draw, watcher, quiet_seconds or QUIET_SECONDS)
    finally:
        open_streams.discard(task)
        looked_at.activity.unwatch(watcher)
    return response


async def _follow(
    request: web.Request, response: web.StreamResponse, draw: Draw, watcher: Watcher, quiet_seconds: float
) -> None:
    console, looked_at = request.app[CONSOLE], shown(request)
    sent: dict[str, str] = {}
    while console.sessions.holds(request[SESSION]) and console.source.shown is looked_at:
        watcher.happened.clear()
        drawn = draw()
        changed = {place: html for place, html in drawn.items() if sent.get(place) != html}
        sent.update(changed)
        await response.write(b"data: " + orjson.dumps(changed) + b"\n\n" if changed else b":\n\n")
        await asyncio.sleep(INTERVAL_SECONDS)
        with suppress(TimeoutError):
            await asyncio.wait_for(watcher.happened.wait(), quiet_seconds)


async def end_streams(app: web.Application) -> None:
    """Cancels all streams, so that the server can stop without waiting for them."""
    for task in [*app[OPEN]]:
        task.cancel()
