"""What sends spans by OTLP over HTTP, in a thread of its own. Needs the extra otel."""

from __future__ import annotations

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

# What else pydantic-ai tells without content has names of tools that models make up, and all tools' definitions.
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
    """Sends of each span its times, whether it failed, and what is known to be no one's words."""

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


def otlp_provider() -> TracerProvider:
    """Where to, and with what key, OpenTelemetry's own variables say."""
    resource = Resource({"service.name": "parley"}).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BareSpans(OTLPSpanExporter()))
    return provider
