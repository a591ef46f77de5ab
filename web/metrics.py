"""`/metrics`: figures of this process for Prometheus. No label names a person or a place, or quotes anybody."""

from __future__ import annotations

import asyncio
import platform
from collections import Counter as Counts
from collections.abc import AsyncIterator, Iterable
from importlib.metadata import PackageNotFoundError, version

from aiohttp import web
from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from activity import Ending, Fault, FaultKind, Observer, TurnEnded
from decision import LoggedDecision
from health import TICK_SECONDS, Health
from state.spending import Payer, Purpose, Spent
from web.shown import Shown

MOST_MODELS = 20  # with their own name in labels: a provider may report any number of names
OTHER = "other"
OPENMETRICS = "application/openmetrics-text"
MODEL_CHARACTERS = 100
MICRO = 1e-6
ANSWER_BUCKETS = (0.25, 0.5, 1, 2, 3, 5, 8, 13, 20, 30, 60, 120, 300)
LAG_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 10)
STORE_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)
# Document 000's figures, by their names in get_metrics(); rates and means are derived from sums.
READ = {
    "routed_to_miniapp": "Messages that went to a mini-app",
    "routed_to_agent": "Messages that went to an agent",
    "awaiting_resolutions": "Messages that resolved an open prompt",
    "soft_context_hits": "Messages that continued what a conversation was about",
    "queries_enriched": "Messages that were completed by what was said before",
    "cache_hits": "Messages whose channel's state was in memory",
    "cache_misses": "Messages whose channel's state was not in memory",
}
RATES = {"miniapp_route": "routed_to_miniapp", "enrichment": "queries_enriched", "cache_hit": "cache_hits"}

disable_created_metrics()  # type: ignore[no-untyped-call] # or each counter has another series: since when it counts


class Metrics(Observer, Collector):
    """Figures of the whole process: they go on when a bot is replaced, as after a broken connection.

    Figures that a bot counts itself are read from the current one, and added to those of its predecessors.
    """

    def __init__(self, health: Health) -> None:
        self._health = health
        self._shown: Shown | None = None
        self._earlier: Counts[str] = Counts()
        self._decisions: Counts[tuple[str, bool]] = Counts()
        self._models: set[str] = set()
        self.registry = registry = CollectorRegistry()
        self._turns = Counter("parley_turns", "Turns that ended, by how", ["outcome"], registry=registry)
        self._faults = Counter("parley_faults", "What went wrong, by where", ["kind"], registry=registry)
        self._first_text = Histogram(
            "parley_first_text_seconds",
            "From the start of a turn until the first of its answer was in the channel",
            buckets=ANSWER_BUCKETS,
            registry=registry,
        )
        self._answer = Histogram(
            "parley_answer_seconds",
            "From the start of a turn until its answer was complete",
            buckets=ANSWER_BUCKETS,
            registry=registry,
        )
        by_model = ["model", "purpose"]
        self._calls = Counter("parley_model_calls", "Calls of models", by_model, registry=registry)
        self._tokens = Counter("parley_model_tokens", "Tokens", [*by_model, "direction"], registry=registry)
        self._cost = Counter("parley_model_cost_dollars", "What model calls cost", by_model, registry=registry)
        self._lag = Histogram(
            "parley_event_loop_lag_seconds",
            "How late the event loop woke a task that asked for it once a second",
            buckets=LAG_BUCKETS,
            registry=registry,
        )
        self._store = Histogram(
            "parley_store_seconds",
            "How long the store took",
            ["operation"],
            buckets=STORE_BUCKETS,
            registry=registry,
        )
        for ending in Ending:
            self._turns.labels(ending)
        for kind in FaultKind:
            self._faults.labels(kind)
        registry.register(self)
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)

    def show(self, shown: Shown) -> None:
        """Watches this bot from now on."""
        if self._shown:
            self._earlier += _read(self._shown)
        self._shown = shown
        shown.activity.watch(self)

    # Events

    def decided(self, entry: LoggedDecision) -> None:
        decision = entry.decision
        self._decisions[decision.reason, decision.respond] += 1

    def turn_ended(self, turn: TurnEnded) -> None:
        self._turns.labels(turn.ending).inc()
        if turn.first_text is not None:
            self._first_text.observe(turn.first_text)
        if turn.ending is Ending.ANSWERED:
            self._answer.observe(turn.seconds)

    def called(self, payer: Payer, purpose: Purpose, spent: Spent) -> None:  # noqa: ARG002 - not counted by person
        name = spent.model.encode(errors="replace").decode()[:MODEL_CHARACTERS]  # JSON can hold what UTF-8 cannot
        if name not in self._models and len(self._models) < MOST_MODELS:
            self._models.add(name)
        model = name if name in self._models else OTHER
        self._calls.labels(model, purpose).inc()
        self._tokens.labels(model, purpose, "in").inc(spent.tokens_in)
        self._tokens.labels(model, purpose, "out").inc(spent.tokens_out)
        if spent.micros is not None:
            self._cost.labels(model, purpose).inc(spent.micros * MICRO)

    def failed(self, fault: Fault) -> None:
        self._faults.labels(fault.kind).inc()

    def stored(self, operation: str, seconds: float) -> None:
        self._store.labels(operation).observe(seconds)

    async def measure_lag(self, _app: web.Application) -> AsyncIterator[None]:
        """Measures the event loop's lag as long as the app runs."""
        measuring = asyncio.create_task(self._measure_lag())
        yield
        measuring.cancel()

    async def _measure_lag(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + TICK_SECONDS
            await asyncio.sleep(TICK_SECONDS)
            self._lag.observe(max(0.0, loop.time() - due))

    # The response

    def response(self, accept: str) -> web.Response:
        """All figures, as OpenMetrics if the Accept header names that, else in Prometheus' text format."""
        # Not given the header itself: the library fails on invalid versions in it.
        encode, content_type = choose_encoder(OPENMETRICS if OPENMETRICS in accept else "")
        return web.Response(body=encode(self.registry), headers={"Content-Type": content_type})

    def collect(self) -> Iterable[Metric]:
        """Figures that other parts keep, or that are counted as plain numbers, to cost little for each message."""
        info = {"version": _version("parley"), "python": platform.python_version()}
        libraries = {"discord_py": _version("discord.py"), "pydantic_ai": _version("pydantic-ai-slim")}
        yield InfoMetricFamily("parley_build", "What runs", value=info | libraries)
        decisions = CounterMetricFamily("parley_decisions", "Decisions on messages", labels=["reason", "respond"])
        for (reason, respond), count in self._decisions.copy().items():
            decisions.add_metric([reason, str(respond).lower()], count)
        yield decisions
        yield CounterMetricFamily("parley_gateway_reconnects", "Connections after the first", self._health.reconnects)
        is_well = self._health.problem() is None
        yield GaugeMetricFamily("parley_healthy", "1 where /healthz says ok", is_well)
        held = len(self._shown.shards.ids) if self._shown else 0
        yield GaugeMetricFamily("parley_shards_held", "Shards of this process", held)
        if shown := self._shown:
            yield GaugeMetricFamily("parley_shards", "Shards of the bot, in all its processes", shown.shards.count or 1)
            says = "How long Discord's gateway took to answer the last heartbeat"
            latencies = GaugeMetricFamily("parley_shard_latency_seconds", says, labels=["shard"])
            for shard_id, seconds in shown.servers.latencies().items():
                latencies.add_metric([str(shard_id)], seconds)
            yield latencies
            if shown.cluster:
                is_sure = shown.cluster.leases.are_sure
                yield GaugeMetricFamily("parley_leases_sure", "1 while no other process can have one of them", is_sure)
            yield GaugeMetricFamily("parley_turns_running", "Answers in the making", shown.slots.running)
            yield GaugeMetricFamily(
                "parley_turns_waiting",
                "Turns that wait for TURNS_AT_ONCE, or for what others have reserved of a budget",
                len(shown.slots),
            )
            waiting = shown.turns.pending.waiting
            yield GaugeMetricFamily("parley_questions_waiting", "Questions behind their channel's turn", waiting)
            yield GaugeMetricFamily("parley_conversations", "Open conversations", len(shown.conversations))
            yield from _figures(self._earlier + _read(shown))


def _read(shown: Shown) -> Counts[str]:
    """Document 000's figures as sums, which can be added up."""
    figures = {name: float(value) for name, value in shown.states.get_metrics().items() if not isinstance(value, str)}
    counts = Counts[str]({name: int(figures[name]) for name in ("total_processed", *READ)})
    counts["microseconds"] = round(1000 * figures["avg_processing_time_ms"] * figures["total_processed"])
    return counts


def _figures(counts: Counts[str]) -> Iterable[Metric]:
    total = counts["total_processed"]
    yield SummaryMetricFamily(
        "parley_message_read_seconds",
        "Messages that were read for what they mean, and how long that took",
        count_value=total,
        sum_value=counts["microseconds"] * MICRO,
    )
    for name, meaning in READ.items():
        yield CounterMetricFamily(f"parley_messages_{name}", meaning, counts[name])
    for rate, part in RATES.items():
        share = counts[part] / total if total else 0.0
        yield GaugeMetricFamily(f"parley_{rate}_ratio", f"Of the messages read: {part}", share)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # it runs from a checkout, and is not installed
        return "unknown"
