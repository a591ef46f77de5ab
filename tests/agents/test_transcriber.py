"""agents/transcriber.py, over real HTTP: what is said in a voice message, and what that took."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

from agents.models import UnusableModelError
from agents.transcriber import Transcriber, build_transcriber
from files.reading import FileProblem
from tests.support.ears import Ears, listening
from tests.support.purse import NotingPurse
from tests.support.samples import OGG

INFINITE = '{"text": "Hello", "usage": {"type": "duration", "seconds": Infinity}}'


class Bench:
    """The transcriber, the server and what was spent."""

    def __init__(self, transcriber: Transcriber, ears: Ears, purse: NotingPurse) -> None:
        self.transcribe = transcriber
        self.ears = ears
        self.spent = purse.spent


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    async with listening() as (ears, url):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-stub")
        purse = NotingPurse()
        async with build_transcriber("openai:whisper-1", purse) as transcriber:
            yield Bench(transcriber, ears, purse)


async def test_what_is_said_and_what_it_took(bench: Bench) -> None:
    assert await bench.transcribe("voice-message.ogg", OGG, 12.0) == "buy  some\nmilk"
    assert bench.ears.heard == [{"name": "voice-message.ogg", "data": OGG, "model": "whisper-1"}]
    assert bench.spent == [77]


async def test_half_an_emoji_in_what_is_said_is_no_text_for_a_model(bench: Bench) -> None:
    bench.ears.says = r'{"text": "so \ud83d there"}'
    assert await bench.transcribe("a.ogg", OGG, 12.0) == "so ? there"


async def test_what_the_server_does_not_count_is_estimated_by_its_length(bench: Bench) -> None:
    bench.ears.usage = None
    await bench.transcribe("a.ogg", OGG, 12.0)
    await bench.transcribe("a.mp3", bytes(80_000), 0.25)
    assert bench.spent == [120, 3]


async def test_the_length_that_the_server_found_counts(bench: Bench) -> None:
    bench.ears.usage = {"type": "duration", "seconds": 600}
    await bench.transcribe("a.ogg", OGG, 1.0)
    assert bench.spent == [6_000]


async def test_a_server_that_fails_costs_nothing_and_is_said(bench: Bench) -> None:
    bench.ears.status = 400
    with pytest.raises(FileProblem, match="unheard"):
        await bench.transcribe("a.ogg", OGG, 12.0)
    assert bench.spent == []


async def test_what_was_heard_before_the_line_broke_counts(bench: Bench) -> None:
    bench.ears.hangs_up = True
    with pytest.raises(FileProblem, match="unheard"):
        await bench.transcribe("a.ogg", OGG, 12.0)
    assert bench.spent == [240]  # the client asked once more


@pytest.mark.parametrize("says", ['{"te', "null", "[1]", '{"text": null}', '{"text": 5}'])
async def test_an_answer_without_words_is_no_silence(bench: Bench, says: str) -> None:
    bench.ears.says = says
    with pytest.raises(FileProblem, match="unheard"):
        await bench.transcribe("a.ogg", OGG, 12.0)
    assert bench.spent == [120]


async def test_a_count_that_is_none_is_not_taken(bench: Bench) -> None:
    for count in (-5, "many", 10**30):
        bench.ears.usage = {"type": "tokens", "total_tokens": count}
        await bench.transcribe("a.ogg", OGG, 12.0)
    assert bench.spent == [120, 120, 120]


async def test_without_tokens_nothing_is_sent(bench: Bench) -> None:
    class Empty:
        async def call(self, _tokens: int, _output: int, _models: Sequence[str]) -> None:
            return None

    bench.transcribe._purse = Empty()
    with pytest.raises(FileProblem, match="budget"):
        await bench.transcribe("a.ogg", OGG, 12.0)
    assert not bench.ears.heard


def test_a_model_that_cannot_be_used_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name, why in (
        ("openai:whisper-1", "without its key: set OPENAI_API_KEY"),
        ("whisper-1", "use provider:name of a provider"),
        ("nobody:x", "use provider:name of a provider"),
    ):
        with pytest.raises(UnusableModelError, match=why):
            build_transcriber(name, NotingPurse())
