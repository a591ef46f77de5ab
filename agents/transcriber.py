"""Transcribes voice messages with a model behind OpenAI's /audio/transcriptions, or a compatible API."""

from __future__ import annotations

import asyncio
import re
from math import ceil
from typing import TYPE_CHECKING, Any, Self

import structlog
from pydantic_ai.exceptions import UserError

from agents.bounded_client import OutdatedError, bound, noting_lost
from agents.fast import Purse
from agents.metering import MOST_OF_A_CALL
from agents.models import UnusableModelError
from files.reading import FileProblem
from state.spending import TOKENS_PER_SECOND, Lost, Spent

if TYPE_CHECKING:
    from openai import AsyncOpenAI

log = structlog.get_logger()

DEADLINE_SECONDS = 50.0
MOST_WRITTEN = 2_000  # tokens of a transcript: OpenAI's models write no more, and bill them beside those of the sound


class Transcriber:
    """model: its name without the provider; purse: what calls draw on; provider: the prefix of the model's name."""

    def __init__(self, client: AsyncOpenAI, model: str, purse: Purse, provider: str = "openai") -> None:
        self._client = client
        self.name = f"{provider}:{model}"
        self._model = model
        self._purse = purse

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def __call__(self, name: str, data: bytes, seconds: float) -> str:
        """The transcript of a sound. name: its file extension tells the format; seconds: its greatest possible length.
        Raises FileProblem."""
        from openai import APIStatusError, OpenAIError  # noqa: PLC0415 - only who sets it needs it

        lost: list[None] = []
        used = most = ceil(seconds * TOKENS_PER_SECOND)
        spent = Spent(self.name, used, audio=used)
        if (settle := await self._purse.call(used + MOST_WRITTEN, MOST_WRITTEN, (self.name,))) is None:
            raise FileProblem("budget")
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                with noting_lost(lambda: lost.append(None)):
                    heard = await self._client.audio.transcriptions.create(file=(name, data), model=self._model)
            said, usage = getattr(heard, "text", None), getattr(heard, "usage", None)
            counts = getattr(usage, "total_tokens", None), getattr(usage, "seconds", None)
            tokens, seconds = (count if isinstance(count, int | float) and count > 0 else 0 for count in counts)
            told = round(tokens or seconds * TOKENS_PER_SECOND)
            used = told if 0 < told <= MOST_OF_A_CALL else used
            output = getattr(usage, "output_tokens", 0)
            output = output if isinstance(output, int) and 0 <= output <= used else 0
            spent = Spent(self.name, used - output, output, audio=used - output)
            if not isinstance(said, str):
                raise ValueError("an answer without a text")
        # The last three: no JSON, infinite counts, and JSON nested too deep.
        except (OpenAIError, OutdatedError, TimeoutError, ValueError, OverflowError, RecursionError) as error:
            spent = Spent(self.name) if isinstance(error, APIStatusError | OutdatedError) else spent
            log.warning("transcription_failed", detail=type(error).__name__)
            raise FileProblem("unheard") from error
        finally:
            settle(spent.and_lost(len(lost), Lost((self.name,), most, 0, audio=most)))
        return said.encode(errors="replace").decode()  # as half an emoji cannot be sent to a model


def build_transcriber(name: str, purse: Purse) -> Transcriber:
    """Builds the model of TRANSCRIBE_MODEL, with the key and URL that its provider uses for MODEL, too.

    Raises UnusableModelError.
    """
    from pydantic_ai.providers import infer_provider  # noqa: PLC0415 - as above

    provider, _, model = name.partition(":")
    by: Any = None
    try:
        if model:
            by = infer_provider(provider)
    except (UserError, ValueError, ImportError) as error:
        if key := re.search(r"`([A-Z0-9_]+_KEY)`", str(error)):
            why = f"TRANSCRIBE_MODEL {name!r} cannot be used without its key: set {key[1]}."
            raise UnusableModelError(why) from None
    if not hasattr(getattr(by, "client", None), "audio"):
        raise UnusableModelError(
            f"TRANSCRIBE_MODEL {name!r} cannot be used: use provider:name of a provider that speaks OpenAI's protocol, "
            "such as openai:gpt-4o-mini-transcribe."
        )
    bound(by)
    spoken_by = "openai" if provider in ("openai-chat", "openai-responses") else provider
    return Transcriber(by.client.with_options(max_retries=1), model, purse, spoken_by)
