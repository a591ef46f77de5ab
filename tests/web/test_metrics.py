"""web/metrics.py: what is counted and for how long, within a bounded number of series; and who may read it."""

from __future__ import annotations

import random
from base64 import b64encode
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from activity import Activity, Ending, Fault, FaultKind, TurnEnded
from decision import Decision, LoggedDecision, Reason
from health import Health
from shards import Shards
from state.metrics import Metrics as Figures
from state.spending import NOBODY, Purpose, Spent
from web.metrics import MOST_MODELS, Metrics
from web.site import Site

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
SECRET = "correct horse 🐎 battery"


def shown() -> Any:
    """A bot, as far as its figures go."""
    figures = Figures()
    return SimpleNamespace(
        activity=Activity(),
        states=SimpleNamespace(get_metrics=figures.figures, add=figures.add),
        slots=type("Slots", (), {"running": 2, "__len__": lambda _self: 3})(),
        turns=SimpleNamespace(pending=SimpleNamespace(waiting=4)),
        conversations=range(5),
        shards=Shards(16, [3, 7]),
        servers=SimpleNamespace(latencies=lambda: {3: 0.04}),
        cluster=SimpleNamespace(leases=SimpleNamespace(are_sure=False)),
    )


def turn(ending: Ending, seconds: float, first_text: float | None = None) -> TurnEnded:
    return TurnEnded(1, 2, (3,), ending, "answered", NOW, seconds, first_text)


def decision(reason: Reason, *, respond: bool) -> LoggedDecision:
    return LoggedDecision(10**18, 10**17, 10**16, Decision(respond, reason), 10**15)


def read(metrics: Metrics) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return parsed(cast(bytes, metrics.response("").body).decode())


def parsed(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples}


def value(metrics: Metrics, name: str, **labels: str) -> float:
    return read(metrics)[f"parley_{name}", frozenset(labels.items())]


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(Health())


def test_what_is_told_is_counted_with_its_labels(metrics: Metrics) -> None:
    bot = shown()
    metrics.show(bot)
    for _ in range(3):
        bot.activity.decided(decision(Reason.NO_TRIGGER, respond=False))
    bot.activity.decided(decision(Reason.EXPLICIT_TRIGGER, respond=True))
    bot.activity.turn_ended(turn(Ending.ANSWERED, 4.0, 1.5))
    bot.activity.turn_ended(turn(Ending.DECLINED, 0.5))
    bot.activity.called(NOBODY, Purpose.ANSWER, Spent("openai:gpt-5", 900, 100, micros=2_500))
    bot.activity.called(NOBODY, Purpose.JUDGE, Spent("demo", 10, 1))
    bot.activity.failed(Fault(FaultKind.MODEL, "late", "The model did not answer in time.", NOW))
    bot.activity.stored("write", 0.002)
    assert value(metrics, "decisions_total", reason="no_trigger", respond="false") == 3
    assert value(metrics, "decisions_total", reason="explicit_trigger", respond="true") == 1
    assert value(metrics, "turns_total", outcome="answered") == value(metrics, "turns_total", outcome="declined") == 1
    assert value(metrics, "turns_total", outcome="failed") == 0  # is there before the first
    assert value(metrics, "first_text_seconds_sum") == 1.5
    assert (value(metrics, "answer_seconds_count"), value(metrics, "answer_seconds_sum")) == (1, 4.0)
    of_answer = {"model": "openai:gpt-5", "purpose": "answers"}
    assert value(metrics, "model_calls_total", **of_answer) == 1
    assert value(metrics, "model_tokens_total", **of_answer, direction="in") == 900
    assert value(metrics, "model_tokens_total", **of_answer, direction="out") == 100
    assert value(metrics, "model_cost_dollars_total", **of_answer) == pytest.approx(0.0025)
    assert ("parley_model_cost_dollars_total", frozenset({("model", "demo"), ("purpose", "judging")})) not in read(
        metrics
    )
    assert value(metrics, "faults_total", kind="model") == 1
    assert value(metrics, "store_seconds_count", operation="write") == 1
    assert [value(metrics, f"turns_{name}") for name in ("running", "waiting")] == [2, 3]
    assert (value(metrics, "questions_waiting"), value(metrics, "conversations")) == (4, 5)


def test_a_bot_that_is_made_anew_goes_on_counting(metrics: Metrics) -> None:
    for _ in range(2):
        bot = shown()
        metrics.show(bot)
        bot.activity.decided(decision(Reason.NO_TRIGGER, respond=False))
        bot.states.add(0.25, routed_to_miniapp=True, cache_hits=True)
        bot.states.add(0.75)
    assert value(metrics, "decisions_total", reason="no_trigger", respond="false") == 2
    assert value(metrics, "messages_routed_to_miniapp_total") == value(metrics, "messages_routed_to_agent_total") == 2
    assert value(metrics, "message_read_seconds_count") == 4
    assert value(metrics, "message_read_seconds_sum") == pytest.approx(2.0)
    assert value(metrics, "messages_cache_misses_total") == 2
    assert value(metrics, "cache_hit_ratio") == value(metrics, "miniapp_route_ratio") == 0.5
    assert value(metrics, "enrichment_ratio") == 0


def test_a_gateway_that_is_connected_again_counts_as_a_reconnect() -> None:
    metrics = Metrics(health := Health())
    health.gateway_up()
    health.gateway_up()  # resumed
    assert value(metrics, "gateway_reconnects_total") == 0
    health.gateway_down()
    assert value(metrics, "healthy") == 0
    health.gateway_up()
    assert value(metrics, "gateway_reconnects_total") == value(metrics, "healthy") == 1


def test_one_of_several_processes_tells_which_part_of_the_bot_it_is(metrics: Metrics) -> None:
    assert value(metrics, "shards_held") == 0  # it waits for its first
    metrics.show(shown())
    assert value(metrics, "shards_held") == 2
    assert value(metrics, "shards") == 16
    assert value(metrics, "shard_latency_seconds", shard="3") == 0.04
    assert value(metrics, "leases_sure") == 0


def test_a_week_of_50_channels_and_10_000_names_of_models_leaves_few_series(metrics: Metrics) -> None:
    bot, chance = shown(), random.Random(1)
    metrics.show(bot)
    for number, reason in zip(range(20_000), _endless(Reason), strict=False):
        channel = 10**17 + number % 50
        entry = LoggedDecision(10**18 + number, channel, 10**16 + number, Decision(chance.random() < 0.5, reason))
        bot.activity.decided(entry)
        if number % 2:
            model = f'any:{number}\ud800 \n"{"x" * (number % 500)}'
            bot.activity.called(NOBODY, chance.choice([*Purpose]), Spent(model, 10, 10, micros=10))
            bot.activity.turn_ended(turn(chance.choice([*Ending]), number / 10, number / 20))
            bot.activity.failed(Fault(chance.choice([*FaultKind]), f"code {number}", "Something.", NOW, channel))
            bot.activity.stored(chance.choice(["read", "write", "sync"]), number / 1e4)
    samples = read(metrics)
    models = {dict(labels)["model"] for _, labels in samples if "model" in dict(labels)}
    assert len(models) == MOST_MODELS + 1
    assert "other" in models
    by_model = len(models) * len(Purpose) * 4
    assert len(samples) < by_model + 2 * len(Reason) + 250
    assert not [labels for _, labels in samples if "1000000" in str(labels)]


def _endless(reasons: type[Reason]) -> Iterator[Reason]:
    while True:
        yield from reasons


# Who may read it


async def get(site: Site, headers: Mapping[str, str] | None = None) -> tuple[int, Mapping[str, str], str]:
    """Status, headers and text of what it answers."""
    async with (
        site.served(0) as address,
        aiohttp.ClientSession() as client,
        client.get(f"{address}/metrics", headers=headers) as response,
    ):
        return response.status, response.headers, await response.text()


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (f"Bearer {SECRET}", 200),
        (f"Basic {b64encode(f'any:{SECRET}'.encode()).decode()}", 200),
        ("", 401),
        ("Bearer", 401),
        ("Bearer wrong", 401),
        (f"Bearer {'x' * 8_000}", 401),
        ("Basic", 401),
        ("Basic äöü", 401),
        (f"Basic {b64encode(SECRET.encode()).decode()}", 401),  # without a user
        (f"Basic {b64encode(bytes([255] * 9)).decode()}", 401),
        (f"Digest {SECRET}", 401),
    ],
)
@pytest.mark.parametrize("is_local", [False, True])
async def test_the_password_opens_the_metrics(header: str, status: int, is_local: bool) -> None:
    got, headers, text = await get(Site(Health(), password=SECRET, is_local=is_local), {"Authorization": header})
    assert got == status
    assert ("Basic" in headers.get("WWW-Authenticate", "")) is (status == 401)
    assert SECRET not in text


@pytest.mark.parametrize(("is_local", "status"), [(False, 404), (True, 200)])
async def test_without_a_password_they_are_open_on_loopback_only(is_local: bool, status: int) -> None:
    assert (await get(Site(Health(), is_local=is_local)))[0] == status


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("application/openmetrics-text; version=1.0.0", "application/openmetrics-text"),
        ("text/html, */*", "text/plain"),
        ("text/plain; version=none", "text/plain"),
        ("application/openmetrics-text; version=none", "application/openmetrics-text"),
    ],
)
def test_the_format_is_the_one_that_is_asked_for_where_it_is_known(
    metrics: Metrics, accept: str, content_type: str
) -> None:
    response = metrics.response(accept)
    assert response.headers["Content-Type"].startswith(content_type)
    assert response.body
