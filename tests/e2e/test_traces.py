"""Traces over OTLP: they come, and nothing that anybody said is in them."""

from __future__ import annotations

import sys
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from structlog.testing import capture_logs

from agents import tracing
from agents.otlp import otlp_provider
from agents.tracing import ENDPOINTS, traced_calls
from tests.support.scene import open_scene
from tests.support.stub_model import Call, Reply, StubModel

KEY = "key-of-the-receiver"
MOST_SAID = 1_000


class Receiver:
    """Takes traces as a collector does, in a thread. gate: waited for before it answers. says: what it answers
    again and again, MOST_SAID times at most; said: how often it did; cookies: how many long ones it sets."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.paths: set[str] = set()
        self.keys: set[str | None] = set()
        self.status = 200
        self.says, self.said, self.cookies = b"", 0, 0
        self.gate = Event()
        self.gate.set()

    @contextmanager
    def running(self) -> Iterator[str]:
        """Its address."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver.paths.add(self.path)
                receiver.keys.add(self.headers["x-key"])
                receiver.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
                receiver.gate.wait()
                self.send_response(receiver.status)
                self.send_header("Location", "/elsewhere")  # which counts if the status is a redirection
                for _ in range(receiver.cookies):
                    self.send_header("Set-Cookie", "a=b" + ";c" * 32_000)
                self.end_headers()
                with suppress(ConnectionError):
                    while receiver.says and receiver.said < MOST_SAID:
                        self.wfile.write(receiver.says)
                        receiver.said += 1

            def log_message(self, *_: Any) -> None: ...

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            serving = Thread(target=server.serve_forever, args=(0.01,))  # so often it looks whether it is to end
            serving.start()
            try:
                yield f"http://127.0.0.1:{server.server_address[1]}"
            finally:
                self.gate.set()
                server.shutdown()
                serving.join()

    @property
    def spans(self) -> list[Span]:
        requests = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        return [
            s for r in requests for resource in r.resource_spans for scope in resource.scope_spans for s in scope.spans
        ]


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    receiver = Receiver()
    with receiver.running() as address:
        monkeypatch.setenv(ENDPOINTS[0], address)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"x-key={KEY}")
        yield receiver


async def test_the_calls_of_an_answer_come_together_without_a_word_of_what_was_said(
    stub: StubModel, receiver: Receiver
) -> None:
    calls = (
        Call("react", '{"emoji": "marmot"}'),
        Call("marmot", "{}", "call-2"),
        Call("pin", '{"marmot": 1}', "call-3"),
    )
    stub.replies += [Reply("marmot", calls=calls), Reply("A marmot in the answer.")]
    with traced_calls():
        async with open_scene(stub, instructions="Speak of the owner's marmots.") as scene:
            await scene.ask("Ada", "a marmot in the question")
            stub.replies.append(Reply(status=400, words="a marmot in the error"))
            await scene.ask("Ada", "once more a marmot")
            people = [str(scene.pg.person("Ada")), str(scene.pg.channel("general")), "Ada", "general"]
    assert (receiver.paths, receiver.keys) == ({"/v1/traces"}, {KEY})
    first, *_ = (span for span in receiver.spans if span.name == "answer")
    together = Counter(span.name for span in receiver.spans if span.trace_id == first.trace_id)
    assert (together["answer"], together["chat stub"], together["execute_tool react"]) == (1, 2, 1)
    sent = b"".join(receiver.bodies)
    assert b"parley" in sent
    assert [word for word in ("marmot", "key-of-the-stub", KEY, *people) if word.encode() in sent] == []


def test_an_endpoint_that_hangs_holds_up_no_stop(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "FLUSH_SECONDS", 0.01)
    receiver.gate.clear()
    with traced_calls(), tracing.span("answer"):
        pass
    assert not receiver.gate.is_set()


def test_without_the_packages_it_says_once_what_to_install(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "agents.otlp", None)
    with capture_logs() as logs, traced_calls(), tracing.span("answer"):
        pass
    assert [entry["event"] for entry in logs] == ["traces_off"]
    assert ".[otel]" in logs[0]["remedy"]
    assert not receiver.bodies


@pytest.mark.usefixtures("receiver")
def test_a_variable_that_cannot_be_is_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "-1")
    with capture_logs() as logs, traced_calls():
        pass
    assert [entry["event"] for entry in logs] == ["traces_off"]


@pytest.mark.parametrize("status", [200, 307])
def test_nothing_is_read_of_an_answer_without_end(receiver: Receiver, status: int) -> None:
    receiver.status, receiver.says = status, bytes(65_536)
    provider = otlp_provider()
    with capture_logs() as logs:
        provider.get_tracer("test").start_span("answer").end()
        provider.force_flush()
    provider.shutdown()
    assert (len(receiver.spans), logs) == (1, [])
    assert receiver.said < MOST_SAID


def test_no_cookies_of_an_answer_are_read(receiver: Receiver) -> None:
    receiver.cookies = 90
    provider = otlp_provider()
    provider.get_tracer("test").start_span("answer").end()
    tracemalloc.start()
    provider.force_flush()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    provider.shutdown()
    assert len(receiver.spans) == 1
    assert peak < 80_000_000  # it was 200 MB, of which the server's own are 6


def test_an_outage_is_logged_once(receiver: Receiver) -> None:
    provider = otlp_provider()
    with capture_logs() as logs:
        for receiver.status in (403, 403, 200, 200):
            provider.get_tracer("test").start_span("answer").end()
            provider.force_flush()
    provider.shutdown()
    assert [entry["event"] for entry in logs] == ["traces_failed", "traces_resumed"]
    assert len(receiver.spans) == 4
