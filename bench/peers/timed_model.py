"""A model that takes the same time for every bot, whether it is asked to stream or not."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from time import perf_counter

from tests.support.stub_model import Body, Reply, StubModel, texts

MARK = re.compile(r"\bk(\d+)\b")
FILLER = "The train is on time and stops at every station. "
FIRST_SECONDS = 0.2  # until its first chunk


@dataclass(frozen=True, slots=True)
class Length:
    """Of an answer: its characters, in so many chunks, each so many seconds after the one before."""

    characters: int
    chunks: int
    pause: float


SHORT = Length(300, chunks=6, pause=0.1)
LONG = Length(3_000, chunks=30, pause=0.15)


class TimedModel:
    """Answers the question with the mark k7 by a text that begins with b7 and ends with e7.

    asked: when it was first asked about each mark. lengths: of the answers that are not SHORT, by mark.
    """

    def __init__(self, stub: StubModel) -> None:
        self.asked: dict[int, float] = {}
        self.lengths: dict[int, Length] = {}
        stub.default = self._streamed
        stub.rewriter_says = self._whole  # so it is called with what is not streamed

    def _answer(self, body: Body) -> tuple[str, Length]:
        mark = next(int(marks[-1]) for text in reversed(texts(body)) if (marks := MARK.findall(text)))
        self.asked.setdefault(mark, perf_counter())
        length = self.lengths.get(mark, SHORT)
        return f"About b{mark}: {FILLER * (length.characters // len(FILLER))}That is all, e{mark}.", length

    def _streamed(self, body: Body) -> Reply:
        text, length = self._answer(body)

        async def pace(_text: str) -> None:
            await asyncio.sleep(length.pause)

        return Reply(text, before=_after(FIRST_SECONDS), chunk=-(-len(text) // length.chunks), pace=pace)

    def _whole(self, body: Body) -> Reply:
        text, length = self._answer(body)
        return Reply(text, before=_after(FIRST_SECONDS + length.chunks * length.pause))


def _after(seconds: float) -> asyncio.Event:
    over = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, over.set)
    return over
