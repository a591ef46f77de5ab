"""An application that may not read message content: said in the log, and the bot runs on mentions and replies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from playground.limits import Limits
from playground.server import Playground
from service import serve
from tests.support.scene import Scene, make_bot, notify, recorded
from tests.support.stub_model import Reply, StubModel


@pytest.fixture(params=["", "whose line is gone by then"])
async def unread(
    request: pytest.FixtureRequest, stub: StubModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Scene]:
    """The bot in service where Discord refuses it the message content intent."""
    if request.param:
        close = aiohttp.ClientWebSocketResponse.close

        async def close_what_is_gone(self: aiohttp.ClientWebSocketResponse, **how: Any) -> bool:
            is_closed = await close(self, **how)
            self._close_code = 1006  # what aiohttp calls an end that it cannot acknowledge
            return is_closed

        monkeypatch.setattr(aiohttp.ClientWebSocketResponse, "close", close_what_is_gone)
    async with Playground(limits=Limits.off(), message_content=False) as pg, recorded(pg) as journal:
        scene = Scene(pg, stub, journal, tmp_path)
        stub.on_request = lambda: notify(pg)
        service = asyncio.create_task(serve(partial(make_bot, scene), pg.token, None))
        await scene.until(lambda: journal.find("ready"))
        yield scene
        service.cancel()
        await asyncio.gather(service, return_exceptions=True)


async def test_the_log_explains_it_and_it_answers_mentions_and_replies_alone(unread: Scene) -> None:
    (entry,) = unread.journal.find("message_content_refused", level="warning")
    assert "MESSAGE CONTENT INTENT" in entry["remedy"]
    unread.stub.default = lambda _: Reply("I see.")
    first = await unread.ask("Ada", "hello")
    assert "Ada: @Parley hello" in unread.told()
    assert not (await unread.decision(unread.say("Ada", "Ben, lunch at noon?"))).respond
    await unread.answer_to(unread.say("Ben", "are you sure?", reply_to=first.id))
    assert "are you sure?" in unread.told()
    assert len(unread.said()) == len(unread.stub.requests) == 2
