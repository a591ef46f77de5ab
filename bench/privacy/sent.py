"""Notes with each request of the bot up to which step it had been told of what people did when it made the request.

What it had not been told of by then, it cannot leave out: such a request is on its way. The machine's time says nothing
about that.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any
from unittest.mock import patch

from pydantic_ai import direct

from agents import bounded_client, fast
from bot import Parley

HEADER = "X-Told"
FAST = "judge", "coordinator", "rewriter", "summarizer"
_told_when_made: ContextVar[int | None] = ContextVar("told_when_made", default=None)


@contextmanager
def stamped(told: Callable[[], int]) -> Iterator[None]:
    """Gives each request to a model a header. told: the step up to which the bot has been told by now."""
    bound_http, model_request_stream, ruled_by = bounded_client.bound_http, direct.model_request_stream, fast.ruled_by

    async def stamp(request: Any) -> None:
        when_made = _told_when_made.get()
        request.headers[HEADER] = str(told() if when_made is None else when_made)

    def stamping(http: Any, *limits: Any, **named: Any) -> Any:
        http.event_hooks["request"].append(stamp)
        return bound_http(http, *limits, **named)

    @asynccontextmanager
    async def made(*request: Any, **how: Any) -> AsyncIterator[Any]:
        """From here on the agent does not change the request any more."""
        token = _told_when_made.set(told())
        try:
            async with model_request_stream(*request, **how) as stream:
                yield stream
        finally:
            _told_when_made.reset(token)

    async def ruled(*request: Any, **how: Any) -> Any:
        """As made(), of a request to a fast model, which is sent once what it may cost is stored as reserved."""
        token = _told_when_made.set(told())
        try:
            return await ruled_by(*request, **how)
        finally:
            _told_when_made.reset(token)

    with ExitStack() as patches:
        patches.enter_context(patch.object(bounded_client, "bound_http", stamping))
        patches.enter_context(patch("agents.general.model_request_stream", made))
        for module in FAST:
            patches.enter_context(patch(f"agents.{module}.ruled_by", ruled))
        yield


def stamp_of(headers: Mapping[str, str]) -> int | None:
    """What a request to a model says; None: nothing."""
    return int(headers[HEADER]) if HEADER in headers else None


def note_posts(bot: Parley, told: Callable[[], int], by_nonce: dict[str, int]) -> None:
    """Notes the same of each message that the bot posts, by its nonce."""
    request = bot.http.request

    async def noting(route: Any, **how: Any) -> Any:
        with_files = [json.loads(part["value"]) for part in how.get("form") or () if part["name"] == "payload_json"]
        for payload in (how.get("json"), *with_files):
            if isinstance(payload, dict) and "nonce" in payload:
                by_nonce[str(payload["nonce"])] = told()
        return await request(route, **how)

    bot.http.request = noting  # type: ignore[method-assign]
