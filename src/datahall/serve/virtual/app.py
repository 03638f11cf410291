"""The virtual engine as one handler: OpenAI's chat and completions, health, vLLM's metrics, and failures on request."""

from __future__ import annotations

from math import inf
from urllib.parse import parse_qs

import msgspec

from datahall.serve.http import Exchange, error_body
from datahall.serve.modelserver.answering import Routes, live, metrics, nowhere, ready, retry_after, routed
from datahall.serve.modelserver.refused import Refused
from datahall.serve.virtual.engine import Engine
from datahall.serve.virtual.speech import read

MOST_OUT_S = 86400.0


class VirtualServer:
    """One model, as a fleet would serve it."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.engine = engine
        self.name = name
        self._routes: Routes = {
            "/v1/chat/completions": {"POST": lambda exchange: self._ask(exchange, is_chat=True)},
            "/v1/completions": {"POST": lambda exchange: self._ask(exchange, is_chat=False)},
            "/v1/models": {"GET": self._models},
            "/health": {"GET": lambda exchange: exchange.send(200, b"")},
            "/health/live": {"GET": live},
            "/health/ready": {"GET": lambda exchange: ready(exchange, is_ready=True)},
            "/metrics": {"GET": self._metrics},
            "/virtual/fail": {"POST": self._fail},
        }

    def __call__(self, exchange: Exchange) -> None:
        """Answer one request, as time passes."""
        try:
            if not routed(self._routes, exchange):
                nowhere(exchange)
        except Refused as refusal:
            code = "model_not_found" if refusal.status == 404 else ""
            body = error_body(refusal.status, refusal.message, code=code)
            exchange.send(refusal.status, body, retry_after(refusal.retry_after_s))

    def _ask(self, exchange: Exchange, *, is_chat: bool) -> None:
        asked = read(exchange.request.body, is_chat=is_chat)
        if asked.model != self.name:
            raise Refused(404, f"The model `{asked.model}` does not exist; this is {self.name}")
        self.engine.ask(exchange, asked)

    def _models(self, exchange: Exchange) -> None:
        pools = self.engine.course.state.pools
        model = {
            "id": self.name,
            "object": "model",
            "created": 0,
            "owned_by": "datahall",
            "max_model_len": int(pools["max_context"].min()),
        }
        exchange.send(200, msgspec.json.encode({"object": "list", "data": [model]}))

    def _metrics(self, exchange: Exchange) -> None:
        self.engine.wake()
        metrics(exchange, self.engine.meter.exposition(self.engine.course, self.name))

    def _fail(self, exchange: Exchange) -> None:
        """`POST /virtual/fail?replica=0&seconds=30&drain=true`: simulated seconds; without them for good."""
        asked = parse_qs(exchange.request.query, keep_blank_values=True)
        unknown = sorted(asked.keys() - {"replica", "seconds", "drain"})
        if unknown:
            raise Refused(400, f"unknown key {unknown[0][:100]}; known: replica, seconds, drain")
        drain = asked.get("drain", ["false"])[0]
        if drain not in ("true", "false"):
            raise Refused(400, "drain is true or false")
        number, seconds = asked.get("replica", [""])[0], asked.get("seconds", [""])[0]
        most = len(self.engine.course.state.replicas)
        if not (number.isdecimal() and len(number) < 7 and int(number) < most):
            raise Refused(400, f"replica is a number of 0 to {most - 1}")
        try:
            duration_s = float(seconds) if seconds else inf
        except ValueError:
            duration_s = 0.0
        if not (0.0 < duration_s <= MOST_OUT_S or (duration_s == inf and not seconds)):
            raise Refused(400, f"seconds are more than 0 and at most {MOST_OUT_S:g}")
        self.engine.take_out(int(number), duration_s, drain=drain == "true")
        exchange.send(200, b"{}")
