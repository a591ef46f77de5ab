"""Sends spans by OTLP over HTTP, in a thread of its own. Needs the extra otel."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import requests.adapters
import structlog
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

log = structlog.get_logger()

# The library's own log, with a line for each attempt.
LIBRARY = logging.getLogger("opentelemetry.exporter")
# Even without content, pydantic-ai's other attributes have tool names that models make up, and all tools' definitions.
SENT = (
    "error.type",
    "gen_ai.agent.name",
    "gen_ai.aggregated_usage.",
    "gen_ai.client.",
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.request.model",
    "gen_ai.response.finish_reasons",
    "gen_ai.response.model",
    "gen_ai.tool.name",
    "gen_ai.usage.",
    "operation.cost",
    "server.",
)


class BareSpans(BatchSpanProcessor):
    """Sends of each span only its times, whether it failed, and attributes that contain nobody's words."""

    def on_end(self, span: ReadableSpan) -> None:
        super().on_end(
            ReadableSpan(
                span.name,
                span.context,
                span.parent,
                span.resource,
                {name: value for name, value in (span.attributes or {}).items() if name.startswith(SENT)},
                kind=span.kind,
                status=span.status,
                start_time=span.start_time,
                end_time=span.end_time,
                instrumentation_scope=span.instrumentation_scope,
            )
        )


class Exporter(OTLPSpanExporter):
    """Sends spans. Drops those that cannot be sent, and logs that once for each outage, with the library's reason."""

    _is_failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        LIBRARY.setLevel(logging.CRITICAL if self._is_failing else logging.ERROR)
        result = super().export(spans)
        was_failing, self._is_failing = self._is_failing, result is not SpanExportResult.SUCCESS
        if self._is_failing and not was_failing:
            log.warning(
                "traces_failed",
                meaning="traces cannot be sent, and are dropped until they can; the bot goes on",
                remedy="check OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS",
            )
        elif was_failing and not self._is_failing:
            log.info("traces_resumed")
        return result


class WithoutCookies(requests.adapters.HTTPAdapter):
    """Drops a response's cookies, which would be read twice: those of 6 MB of headers take 230 MB."""

    def build_response(self, req: requests.PreparedRequest, resp: Any) -> requests.Response:
        del resp._original_response.msg["Set-Cookie"]  # noqa: SLF001 - requests has no other way
        return super().build_response(req, resp)


class Unread(requests.Session):
    """Reads nothing of a response but its status and headers: it may be packed, or have no end. Keeps no cookies."""

    def __init__(self) -> None:
        super().__init__()
        self.stream = True
        for scheme in ("http://", "https://"):
            self.mount(scheme, WithoutCookies())

    def get_redirect_target(self, resp: requests.Response) -> None:
        """None for a redirection, too, which is not followed anyway: else its body would be read."""


def otlp_provider() -> TracerProvider:
    """The provider as OpenTelemetry's variables configure it. Raises ValueError for invalid ones."""
    resource = Resource({"service.name": "parley"}).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BareSpans(Exporter(session=Unread())))
    return provider
