"""Tries a model with one tiny question: how long it took, what it used, or what is wrong, in one word."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from enum import StrEnum

import structlog
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import AgentRunError, ModelAuthenticationError, ModelHTTPError
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models import Model

from agents.failures import explained
from agents.gateway import FailureKind
from agents.metering import spent_by
from agents.models import SETTINGS, names_of
from state.spending import Spent

log = structlog.get_logger()

QUESTION = "Answer with the one word: ready"
KEY_STATUSES = (401, 403)


class Trouble(StrEnum):
    """What is wrong with a model, in terms that help whoever set it up."""

    KEY = "key"
    NAME = "name"
    CREDIT = "credit"
    BUSY = "busy"
    UNREACHABLE = "unreachable"
    LATE = "late"
    REJECTED = "rejected"
    EMPTY = "empty"


TROUBLES = {
    FailureKind.MISCONFIGURED: Trouble.NAME,
    FailureKind.NO_CREDIT: Trouble.CREDIT,
    FailureKind.BUSY: Trouble.BUSY,
    FailureKind.UNAVAILABLE: Trouble.UNREACHABLE,
    FailureKind.EMPTY: Trouble.EMPTY,
}


class ModelTrialError(Exception):
    """The model did not answer. Does not contain the provider's text, which may have parts of a key."""

    def __init__(self, trouble: Trouble, status: int | None = None) -> None:
        super().__init__(trouble)
        self.trouble = trouble
        self.status = status


@dataclass(frozen=True, slots=True)
class Trial:
    """A model's answer. spent: None: its provider does not say what it used."""

    seconds: float
    spent: Spent | None


async def try_model(model: Model, seconds: float) -> Trial:
    """Asks the model by a stream, as the general agent does. seconds: the timeout. Raises ModelTrialError."""
    began = time.monotonic()
    try:
        async with (
            asyncio.timeout(seconds),
            model,
            model_request_stream(model, [ModelRequest.user_text_prompt(QUESTION)], model_settings=SETTINGS) as stream,
        ):
            async for _ in stream:
                pass
            response = stream.get()
            spent = spent_by(names_of(model), stream.usage, response)
    except TimeoutError:
        raise ModelTrialError(Trouble.LATE) from None
    except AgentRunError as error:
        status = error.status_code if isinstance(error, ModelHTTPError) else None
        is_key = isinstance(error, ModelAuthenticationError) or status in KEY_STATUSES
        trouble = Trouble.KEY if is_key else TROUBLES.get(explained(error)[0], Trouble.REJECTED)
        raise ModelTrialError(trouble, status) from None
    except UnicodeEncodeError:  # such as a key that was copied with typographic quotes
        raise ModelTrialError(Trouble.KEY) from None
    except Exception as error:  # noqa: BLE001 - with a wrong address or answer a client may raise anything
        log.warning("model_trial_broken", error=type(error).__name__)  # its text may have parts of a key
        raise ModelTrialError(Trouble.UNREACHABLE) from None
    if not (response.text or response.thinking):
        raise ModelTrialError(Trouble.EMPTY)
    return Trial(time.monotonic() - began, spent)
