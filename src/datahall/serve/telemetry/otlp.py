"""Traces as OpenTelemetry's collectors take them over HTTP in JSON, sent by a thread of their own.

Attributes are those of the conventions for generative AI; none of them says what was asked or answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

import msgspec

from datahall.errors import ServingError
from datahall.serve.telemetry.told import Told

MOST_WAITING = 4096  # spans; later ones are dropped, and counted
MOST_AT_ONCE = 512
TIMEOUT_S = 5.0
AGAIN = (429, 502, 503, 504)  # a collector says by these that it may have them later
SERVER, FAILED = 2, 2  # kind of a span, and status of one
OPERATIONS = {
    "chat": "chat", "messages": "chat", "responses": "chat", "completions": "text_completion",
    "embeddings": "embeddings",
}  # fmt: skip


class Exporter:
    """Requests that are over, on their way to a collector."""

    def __init__(self, endpoint: str, service: str, headers: Mapping[str, str] | None = None) -> None:
        url = urlsplit(endpoint)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ServingError(
                f"{endpoint!r} is no endpoint of a collector",
                hint="e.g. http://127.0.0.1:4318",
                field="traces",
            )
        self._connect = HTTPSConnection if url.scheme == "https" else HTTPConnection
        self._host, self._port = url.hostname, url.port
        self._path = url.path.rstrip("/") + "/v1/traces"
        self._headers = {"content-type": "application/json", **(headers or {})}
        self._service = service
        self._waiting: deque[Told] = deque()
        self.num_dropped = 0
        self.num_sent = 0

    def add(self, told: Told) -> None:
        """Have a request sent, if its trace is kept."""
        if told.trace is None or not told.trace.is_kept:
            return
        if len(self._waiting) >= MOST_WAITING:
            self.num_dropped += 1
        else:
            self._waiting.append(told)

    def flush(self) -> None:
        """Send what waits; what a collector cannot take now waits on, and what it refuses is dropped."""
        while self._waiting:
            some = [self._waiting.popleft() for _ in range(min(MOST_AT_ONCE, len(self._waiting)))]
            status = self._post(spans_of(some, self._service))
            if status in AGAIN or status == 0:
                self._waiting.extendleft(reversed(some))
                return
            if status < 300:
                self.num_sent += len(some)
            else:
                self.num_dropped += len(some)

    def _post(self, body: bytes) -> int:
        """The status that a collector answers by; 0: none came."""
        connection = self._connect(self._host, self._port, timeout=TIMEOUT_S)
        try:
            connection.request("POST", self._path, body, self._headers)
            return connection.getresponse().status
        except (OSError, HTTPException):
            return 0
        finally:
            connection.close()


def spans_of(some: list[Told], service: str) -> bytes:
    """The body of an export."""
    resource = {"attributes": _attributes({"service.name": service})}
    scope = {"scope": {"name": "datahall"}, "spans": [_span(told) for told in some]}
    return msgspec.json.encode({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]})


def _span(told: Told) -> dict[str, object]:
    assert told.trace is not None
    operation = OPERATIONS.get(told.route, told.route)
    usage = told.usage
    said: dict[str, str | int | float | None] = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": told.upstream,
        "gen_ai.request.model": told.model,
        "gen_ai.response.model": told.served,
        "gen_ai.usage.input_tokens": usage.prompt,
        "gen_ai.usage.cache_read.input_tokens": usage.cached,
        "gen_ai.usage.output_tokens": usage.completion,
        "gen_ai.response.time_to_first_chunk": told.ttft_s if told.first_ns else None,
        "http.response.status_code": told.status,
        "error.type": told.code,
        "datahall.request.id": told.request_id,
        "datahall.key": told.key,
        "datahall.customer": told.customer,
        "datahall.result": told.result,
        "datahall.charged_usd": told.charged_nano_usd / 1e9,
        "datahall.attempts": told.num_attempts,
    }
    span: dict[str, object] = {
        "traceId": told.trace.trace_id,
        "spanId": told.trace.span_id,
        "name": f"{operation} {told.model}".rstrip(),
        "kind": SERVER,
        "startTimeUnixNano": str(told.began_ns),
        "endTimeUnixNano": str(told.ended_ns),
        "attributes": _attributes(said),
        "status": {"code": FAILED, "message": told.code} if told.status >= 500 else {},
    }
    if told.trace.parent_id:
        span["parentSpanId"] = told.trace.parent_id
    return span


def _attributes(said: Mapping[str, str | int | float | None]) -> list[dict[str, object]]:
    """Those that say something, each with its type, as OTLP writes JSON: whole numbers are text."""
    found: list[dict[str, object]] = []
    for key, value in said.items():
        if isinstance(value, str) and value:
            found.append({"key": key, "value": {"stringValue": value}})
        elif isinstance(value, int):
            found.append({"key": key, "value": {"intValue": str(value)}})
        elif isinstance(value, float):
            found.append({"key": key, "value": {"doubleValue": value}})
    return found
