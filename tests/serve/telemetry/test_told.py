"""Traces, the log, and that none of what is told has a secret or a prompt in it."""

from __future__ import annotations

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.serve.cache.answers import STREAM, USAGE
from tests.serve.ledger.books import START_NS, TEN, key_in, opened
from tests.serve.telemetry.requests import TRACE, told

from datahall.errors import ServingError
from datahall.serve.cache.asked import asked_of
from datahall.serve.cache.exact import Bounds, ExactCache
from datahall.serve.cache.kept import kept_stream
from datahall.serve.ledger.accounts import Reservation
from datahall.serve.ledger.key import Key
from datahall.serve.telemetry import log as log_module
from datahall.serve.telemetry.log import Log, line_of
from datahall.serve.telemetry.metrics import Family
from datahall.serve.telemetry.otlp import MOST_WAITING, Exporter, spans_of
from datahall.serve.telemetry.readings import of_cache, of_ledger
from datahall.serve.telemetry.telemetry import Telemetry
from datahall.serve.telemetry.trace import Trace, trace_of

KEPT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Collector(BaseHTTPRequestHandler):
    """Takes spans, and answers as it is told to."""

    def do_POST(self) -> None:
        server: Answering = self.server  # type: ignore[assignment]
        server.bodies.append(self.rfile.read(int(self.headers["content-length"])))
        server.paths.append(self.path)
        self.send_response(server.status)
        self.send_header("location", "http://127.0.0.1:1/")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


class Answering(HTTPServer):
    status = 200

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Collector)
        self.bodies: list[bytes] = []
        self.paths: list[str] = []


@pytest.fixture
def collector():  # type: ignore[no-untyped-def]
    server = Answering()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def exporter_to(collector: Answering) -> Exporter:
    return Exporter(f"http://127.0.0.1:{collector.server_port}/", "gateway", {"authorization": "Bearer x"})


def attributes(span: dict[str, object]) -> dict[str, object]:
    return {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}  # type: ignore[attr-defined,index]


@pytest.mark.parametrize(
    ("header", "is_kept"), [(KEPT, True), (KEPT[:-1] + "0", False), ("01" + KEPT[2:] + "-more", True)]
)
def test_a_trace_that_was_begun_elsewhere_goes_on(header: str, is_kept: bool) -> None:
    trace = trace_of(header, 0.0)
    assert trace is not None
    assert (trace.trace_id, trace.parent_id, trace.is_kept) == (KEPT[3:35], KEPT[36:52], is_kept)
    assert trace.span_id not in ("", trace.parent_id)
    assert trace_of(trace.header(), 0.0).parent_id == trace.span_id  # type: ignore[union-attr]
    assert trace.header()[-2:] == ("01" if is_kept else "00")


@pytest.mark.parametrize(
    "header",
    [
        "",
        "x",
        KEPT.upper(),
        KEPT + "-more",
        "ff" + KEPT[2:],
        "00-" + "0" * 32 + KEPT[35:],
        KEPT[:36] + "0" * 16 + "-01",
    ],
)
def test_a_header_that_is_none_begins_nothing_but_by_lot(header: str) -> None:
    assert trace_of(header, 0.0) is None
    begun = trace_of(header, 1.0)
    assert begun is not None
    assert (begun.parent_id, begun.is_kept, len(begun.trace_id)) == ("", True, 32)


def test_a_share_of_traces_is_kept() -> None:
    assert 200 < len([1 for _ in range(1000) if trace_of("", 0.3) is not None]) < 400


def test_spans_are_what_a_collector_takes(collector: Answering) -> None:
    exporter = exporter_to(collector)
    exporter.add(told(trace=TRACE))
    exporter.add(told(trace=Trace("a" * 32, "b" * 16)))  # not kept
    exporter.add(told())
    exporter.flush()
    assert (collector.paths, exporter.num_sent, exporter.num_dropped) == (["/v1/traces"], 1, 0)
    (resource,) = json.loads(collector.bodies[0])["resourceSpans"]
    assert attributes(resource["resource"]) == {"service.name": "gateway"}
    (span,) = resource["scopeSpans"][0]["spans"]
    assert (span["traceId"], span["spanId"], span["parentSpanId"]) == (
        TRACE.trace_id,
        TRACE.span_id,
        TRACE.parent_id,
    )
    assert span["name"] == "chat small"
    assert int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"]) == 230 * 10**6
    said = attributes(span)
    assert said["gen_ai.operation.name"] == "chat"
    assert said["gen_ai.usage.output_tokens"] == "11"
    assert said["datahall.charged_usd"] == 0.0015


@pytest.mark.parametrize(
    ("status", "sent", "dropped", "again"), [(503, 0, 0, True), (400, 0, 1, False), (302, 0, 1, False)]
)
def test_what_a_collector_cannot_take_now_waits_and_what_it_refuses_does_not(
    collector: Answering, status: int, sent: int, dropped: int, again: bool
) -> None:
    collector.status = status
    exporter = exporter_to(collector)
    exporter.add(told(trace=TRACE))
    exporter.flush()
    assert (exporter.num_sent, exporter.num_dropped) == (sent, dropped)
    collector.status = 200
    exporter.flush()
    assert exporter.num_sent == int(again)


def test_a_collector_that_is_gone_costs_bounded_memory() -> None:
    exporter = Exporter("http://127.0.0.1:9", "gateway")
    for _ in range(MOST_WAITING + 10):
        exporter.add(told(trace=TRACE))
    exporter.flush()
    assert exporter.num_dropped == 10


@pytest.mark.parametrize("endpoint", ["", "127.0.0.1:4318", "file:///etc/passwd", "http://"])
def test_an_endpoint_that_is_none_is_refused(endpoint: str) -> None:
    with pytest.raises(ServingError, match="no endpoint of a collector"):
        Exporter(endpoint, "gateway")


def test_an_error_is_one_in_its_span() -> None:
    body = json.loads(
        spans_of([told(trace=TRACE, status=502, code="upstream_failed", result="failed")], "gateway")
    )
    (span,) = body["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert span["status"] == {"code": 2, "message": "upstream_failed"}
    assert attributes(span)["error.type"] == "upstream_failed"


def test_a_line_says_what_applies() -> None:
    line = json.loads(line_of(told(trace=TRACE)))
    assert (line["trace_id"], line["charged_usd"], line["ttft_s"]) == (TRACE.trace_id, 0.0015, 0.03)
    refused = json.loads(
        line_of(told(result="refused", status=401, code="invalid_api_key", key="", model="", first_ns=0))
    )
    assert not {"key", "model", "trace_id", "ttft_s"} & set(refused)


def test_lines_that_a_disk_does_not_take_are_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with open("/dev/full", "wb", buffering=0) as full:
        log = Log(full.fileno())
        log.add(told())
        log.flush()
        assert log.num_lost == 1
    monkeypatch.setattr(log_module, "MOST_WAITING", 2)
    with (tmp_path / "log").open("wb") as file:
        log = Log(file.fileno())
        for _ in range(3):
            log.add(told())
        assert log.num_lost == 1


def test_a_log_that_nobody_reads_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "LAST_S", 0.01)
    reader, writer = os.pipe()
    telemetry = Telemetry(Log(writer))
    for _ in range(1000):
        telemetry.tell(told())
    telemetry.stop()
    os.close(writer)
    with open(reader, "rb") as file:
        lines = file.read().count(b"\n")
    (lost,) = [value for family in telemetry.instruments.families for value in lost_of(family)]
    assert 0 < lines < 1000
    assert lines + lost == 1000


def lost_of(family: Family) -> list[float]:
    """How many lines the family of what is lost counts, if it is that."""
    return [
        float(line.rpartition(" ")[2])
        for line in family.lines()
        if family.name == "datahall_telemetry_lost_total"
    ]


def test_a_log_that_is_read_slowly_comes_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "LAST_S", 30.0)
    reader, writer = os.pipe()
    telemetry = Telemetry(Log(writer))
    for number in range(1000):
        telemetry.tell(told(request_id=str(number)))

    def stop() -> None:
        telemetry.stop()
        os.close(writer)

    ending = threading.Thread(target=stop)
    ending.start()
    with open(reader, "rb") as file:
        found = [json.loads(line)["request_id"] for line in file]
    ending.join()
    assert found == [str(number) for number in range(1000)]


def test_no_secret_and_no_prompt_is_in_anything_that_is_told_or_kept(
    tmp_path: Path, collector: Answering
) -> None:
    """Planted in a key, a prompt and an answer, and looked for in metrics, traces, log and every file of the state."""
    prompt, said = b"CANARY-of-a-prompt", b"CANARY-of-an-answer"
    _, secret = key_in(tmp_path)
    ledger, cache = opened(tmp_path), ExactCache(Bounds())
    file = (tmp_path / "log").open("ab")
    telemetry = Telemetry(Log(file.fileno()), exporter_to(collector), (*of_ledger(ledger), *of_cache(cache)))
    key = ledger.authenticate(secret.encode(), "chat", START_NS)
    assert isinstance(key, Key)
    body = b'{"model": "small", "messages": [{"role": "user", "content": "%b"}]}' % prompt
    asked = asked_of(key.customer, "small@1", "chat", body)
    assert asked is not None
    one = ledger.admit(key, "small", TEN, START_NS)
    assert isinstance(one, Reservation)
    kept = kept_stream(key.customer, "chat", USAGE, STREAM.replace(b"Par", said))
    assert kept is not None
    cache.put(asked, kept, START_NS)
    ledger.settle(one, TEN, "answered")
    telemetry.tell(told(trace=TRACE, key=key.name, customer=key.customer))
    page = telemetry.instruments.exposed()
    telemetry.stop()
    file.close()
    ledger.commit(START_NS)
    files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    ledger.close(START_NS)
    everything = page + b"".join(collector.bodies) + files + repr(key).encode()
    assert b"datahall_open_requests" in everything
    assert b"acme" in everything
    for canary in (prompt, said, secret.encode(), secret[12:].encode()):
        assert canary not in everything
