"""A transcription server on loopback, by OpenAI's protocol: it hears the same in everything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web


class Ears:
    """usage: what it says that it took. status: an error instead of an answer. says: a body instead of it. hangs_up: it
    has heard it, and breaks off. gate: it answers once this is set."""

    def __init__(self) -> None:
        self.status = 200
        self.hangs_up = False
        self.gate: asyncio.Event | None = None
        self.says: str | None = None
        self.usage: dict[str, Any] | None = {"type": "tokens", "total_tokens": 77}
        self.heard: list[dict[str, Any]] = []

    async def answer(self, request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == "Bearer key-of-the-stub"
        form = await request.post()
        file = form["file"]
        assert isinstance(file, web.FileField)
        self.heard.append({"name": file.filename, "data": file.file.read(), "model": form["model"]})
        if self.gate:
            await self.gate.wait()
        if self.hangs_up and request.transport:
            request.transport.abort()
        if self.says is not None:
            return web.Response(text=self.says, content_type="application/json")
        return web.json_response({"text": "buy  some\nmilk", "usage": self.usage}, status=self.status)


@asynccontextmanager
async def listening() -> AsyncIterator[tuple[Ears, str]]:
    """The server, and its base URL."""
    ears, app = Ears(), web.Application()
    app.router.add_post("/v1/audio/transcriptions", ears.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    assert runner.addresses
    yield ears, f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    await runner.cleanup()
