"""Maps errors of model requests to kinds of failure that people can be told."""

from __future__ import annotations

import re
from socket import gaierror
from textwrap import shorten

import httpx2
from pydantic_ai.exceptions import (
    AgentRunError,
    FallbackExceptionGroup,
    ModelAPIError,
    ModelAuthenticationError,
    ModelContextWindowExceededError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    UnexpectedModelBehavior,
)

from agents.gateway import FailureKind

KINDS: tuple[tuple[type[Exception], FailureKind], ...] = (
    (ModelRateLimitError, FailureKind.BUSY),
    (ModelQuotaExceededError, FailureKind.NO_CREDIT),
    (ModelContextWindowExceededError, FailureKind.TOO_LONG),
    (ModelAuthenticationError, FailureKind.MISCONFIGURED),
    (ModelNotFoundError, FailureKind.MISCONFIGURED),
    (ModelRequestRejectedError, FailureKind.REJECTED),
    (ModelAPIError, FailureKind.UNAVAILABLE),
    (UnexpectedModelBehavior, FailureKind.EMPTY),
)

# Failures that pass by themselves: of several failed models, one with such a failure may answer soon.
PASSING = (FailureKind.BUSY, FailureKind.UNAVAILABLE)
# For errors that pydantic-ai reports as a rate limit or a rejected request: patterns of the code or the text.
UNPAID = re.compile(r"billing|balance|credit|payment|insufficient", re.IGNORECASE)
# Anthropic's words for a spending limit that the owner has set; the code is that of any rejected request.
SAYS_UNPAID = re.compile(r"reached your specified (?:API )?usage limits", re.IGNORECASE)
NO_MODEL = re.compile(
    r"model\W{1,3}(?:[\w./:@-]{1,100}\W{1,3})?(?:(?:does )?not (?:exist|found)|has been decommissioned)"
    r"|not a valid model|(?:unknown|invalid|no such) model\b",
    re.IGNORECASE,
)
MAX_COMPLAINT = 2_000  # characters of it that are read
UNREACHED = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, ConnectionRefusedError, gaierror)
MAX_CAUSES = 10


def explained(error: AgentRunError | FallbackExceptionGroup) -> tuple[FailureKind, str]:
    """The kind, and one sentence for the log; of several failed models, the kind of one that may recover soon."""
    if isinstance(error, FallbackExceptionGroup):
        kinds = [_kind(one) for one in error.exceptions]
        kind = next((kind for kind in kinds if kind in PASSING), kinds[-1])
        return kind, "; ".join(map(describe, error.exceptions))
    return _kind(error), describe(error)


def _kind(error: Exception) -> FailureKind:
    kind = next((kind for types, kind in KINDS if isinstance(error, types)), FailureKind.UNAVAILABLE)
    if isinstance(error, ModelAPIError):
        code = f"{error.provider_error_code} {error.provider_error_type}"
        if kind in (FailureKind.BUSY, FailureKind.REJECTED) and UNPAID.search(code):
            return FailureKind.NO_CREDIT
        complaint = str(error.body)[:MAX_COMPLAINT] if kind is FailureKind.REJECTED else ""
        if SAYS_UNPAID.search(complaint):
            return FailureKind.NO_CREDIT
        if NO_MODEL.search(complaint):
            return FailureKind.MISCONFIGURED
    return kind


def may_be_billed(error: BaseException) -> bool:
    """Whether the provider may bill the failed request: it was reached, and did not refuse the request."""
    if isinstance(error, FallbackExceptionGroup):
        return any(map(may_be_billed, error.exceptions))
    if not isinstance(error, ModelAPIError):  # it answered something that cannot be used
        return True
    return getattr(error, "status_code", None) is None and was_sent(error)


def was_sent(error: BaseException | None) -> bool:
    """Whether the request that ended by this error may have reached somebody."""
    cause = error
    for _ in range(MAX_CAUSES):
        if isinstance(cause, UNREACHED):
            return False
        cause = cause and (cause.__cause__ or cause.__context__)
    return True


MAX_READ = 10_000  # characters of what an error says
# Behind it an error quotes people's words, or a model's, which may repeat them: in turn FastAPI, OpenRouter, Groq,
# pydantic (also that of a server), Ollama, llama.cpp, and pydantic-ai where it could not add something to an answer.
QUOTED = re.compile(
    r"""(['"](?:input|flagged_input|failed_generation)['"]:|input_value=|raw=|messages = |part=).*""", re.DOTALL
)


def describe(error: Exception) -> str:
    """Describes an error for the log. Cut between words, as the log does not recognise half a key as a secret."""
    try:
        said = str(error)
    except TypeError:  # pydantic-ai takes whatever a server calls its message
        said = "what it says is no text"
    text = QUOTED.sub(r"\1 [hidden] …", said[:MAX_READ])
    return f"{type(error).__name__}: {shorten(text, 300, placeholder=' …')}"
