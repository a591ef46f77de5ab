"""Traces of calls of models and tools by OpenTelemetry, if an endpoint is set; without anybody's words."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING

import structlog
from opentelemetry.trace import NoOpTracer, Tracer
from pydantic_ai import Agent
from pydantic_ai.models.instrumented import InstrumentationSettings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

log = structlog.get_logger()

# The SDK reads these itself, like all of OpenTelemetry's variables.
ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
FLUSH_SECONDS = 3.0

_tracer: Tracer = NoOpTracer()


@contextmanager
def traced_calls() -> Iterator[None]:
    """Traces all calls inside of it, if an endpoint is set. At its end, sending the rest may take 3 s."""
    global _tracer  # noqa: PLW0603 - as pydantic-ai's own setting is global
    provider = _provider() if any(map(os.environ.get, ENDPOINTS)) else None
    if provider is None:
        yield
        return
    _tracer = provider.get_tracer("parley")
    Agent.instrument_all(
        InstrumentationSettings(
            tracer_provider=provider,
            include_content=False,
            include_binary_content=False,
            include_model_request_parameters=False,
        )
    )
    try:
        yield
    finally:
        Agent.instrument_all(False)
        _tracer = NoOpTracer()
        # In a daemon thread, so that an endpoint that hangs does not hold up the stop.
        ending = Thread(target=provider.shutdown, name="traces", daemon=True)
        ending.start()
        ending.join(FLUSH_SECONDS)


@contextmanager
def span(name: str) -> Iterator[None]:
    """Groups the calls inside of it in one span."""
    with _tracer.start_as_current_span(name, record_exception=False, set_status_on_exception=False):
        yield


def _provider() -> TracerProvider | None:
    """The provider of traces; None: OpenTelemetry's packages are not installed, or reject its variables."""
    try:
        from agents.otlp import otlp_provider  # noqa: PLC0415 - an extra
    except ImportError:
        log.warning(
            "traces_off",
            meaning=f"{ENDPOINTS[0]} is set, but OpenTelemetry's packages are not installed: no traces are sent",
            remedy="run .venv/bin/pip install -c constraints.txt -e '.[otel]', or unset it",
        )
        return None
    try:
        return otlp_provider()
    except ValueError as error:
        log.warning(
            "traces_off", meaning=f"No traces are sent: {error}", remedy="correct the OTEL_* variable that it names"
        )
        return None
