"""Requests that are over."""

from __future__ import annotations

from typing import Any

from datahall.serve.ledger.money import Usage
from datahall.serve.telemetry.told import Told
from datahall.serve.telemetry.trace import Trace

BEGAN_NS = 1_795_000_000 * 10**9
MS = 10**6
TRACE = Trace("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", "53995c3f42cd8ad8", True)


def told(**fields: Any) -> Told:
    usual: dict[str, Any] = {
        "request_id": "req-1",
        "route": "chat",
        "result": "answered",
        "status": 200,
        "began_ns": BEGAN_NS,
        "first_ns": BEGAN_NS + 30 * MS,
        "ended_ns": BEGAN_NS + 230 * MS,
        "key": "team",
        "customer": "acme",
        "model": "small",
        "served": "small",
        "upstream": "vllm-0",
        "usage": Usage(100, 40, 11),
        "charged_nano_usd": 1_500_000,
        "num_attempts": 1,
    }
    return Told(**usual | fields)
