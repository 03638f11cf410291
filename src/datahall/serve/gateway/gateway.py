"""The gateway as one handler: which path asks what, who is let in, and which models there are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from secrets import token_hex
from time import time_ns
from typing import Any

import msgspec

from datahall.serve.gateway import way
from datahall.serve.gateway.described import KINDS, MODELS, description
from datahall.serve.gateway.keeping import Answers
from datahall.serve.gateway.model import Model
from datahall.serve.gateway.question import Kind
from datahall.serve.gateway.refusing import Refused, unknown
from datahall.serve.gateway.speech import inference
from datahall.serve.http import Exchange, Request
from datahall.serve.http.browsers import is_from_elsewhere
from datahall.serve.ledger.account import Refusal
from datahall.serve.ledger.key import Key
from datahall.serve.ledger.ledger import Ledger
from datahall.serve.openapi import PATH
from datahall.serve.telemetry.metrics import CONTENT_TYPE
from datahall.serve.telemetry.telemetry import Telemetry
from datahall.serve.telemetry.told import Told
from datahall.serve.upstreams.retry_budget import RetryBudgets


class Gateway:
    """Answers for models, by those who have them."""

    def __init__(
        self,
        ledger: Ledger,
        models: Sequence[Model],
        random: Random,
        *,
        anybody: Key | None = None,
        answers: Answers | None = None,
        telemetry: Telemetry | None = None,
        kept_fraction: float = 0.0,
        has_open_metrics: bool = True,
    ) -> None:
        self.ledger = ledger
        self.random = random
        self.answers = answers
        self.offer(models)
        self.budgets = RetryBudgets()
        self.loop = asyncio.get_running_loop()
        self.tell: Callable[[Told], None] | None = None if telemetry is None else telemetry.tell
        self.kept_fraction = kept_fraction  # of traces, where nobody has decided before
        self.is_draining = False
        self._anybody = anybody  # whose account is used where no key is asked for
        self._telemetry = telemetry
        self._has_open_metrics = has_open_metrics
        self._first_id = f"req_{token_hex(6)}"
        self._num_ids = 0
        self._streams: set[asyncio.Task[None]] = set()

    def __call__(self, exchange: Exchange) -> Coroutine[Any, Any, None] | None:
        """Answer one request; only what asks an upstream takes time."""
        path = exchange.request.path
        is_inference = path == inference.ROOT or path.startswith(f"{inference.ROOT}/")
        kind = KINDS.get(path) or ("infer" if is_inference and inference.is_call(path) else None)
        if kind is not None:
            return way.answer(self, exchange, kind)
        try:
            if is_inference:
                return inference.answer(self, exchange)
            self._answer(exchange)
        except Refused as refused:
            refused.send(exchange, self.next_id(), "infer" if is_inference else None)
        return None

    def watch(self, exchange: Exchange) -> None:
        """Answer who watches over the gateway, on an address of its own."""
        if exchange.request.path == "/metrics":
            self._show_metrics(exchange)
        else:
            self._health(exchange, exchange.request.path)

    def offer(self, models: Sequence[Model]) -> None:
        """Answer for these models from now on; who has asked is answered by those of then."""
        self.models = {model.name: model for model in models}
        if self.answers is not None:
            self.answers.cache.clear()

    def led_on(self, stream: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Let a stream go on that several hear, whoever of them leaves."""
        task = self.loop.create_task(stream)
        self._streams.add(task)
        task.add_done_callback(self._streams.discard)
        return task

    async def end_streams(self) -> None:
        """Wait until streams that nobody hears any more are settled."""
        if self._streams:
            await asyncio.wait(self._streams, timeout=1.0)

    def lets_in(self, head: Request) -> bool:
        """Whether the body behind a head is worth gathering: of nobody's it is not."""
        try:
            self.known(head, KINDS.get(head.path), time_ns())
        except Refused:
            return False
        return True

    def known(self, request: Request, kind: Kind | None, now_ns: int) -> Key:
        """Whose request it is; refused where nobody's."""
        headers = request.headers
        said = headers.get("authorization", "")
        secret = said[7:].strip() if said[:7].lower() == "bearer " else headers.get("x-api-key", "")
        if not secret:
            if self._anybody is not None:
                return self._anybody
            message = "no key: say it as Authorization: Bearer KEY"
            raise Refused(401, message, "invalid_api_key")
        if self._anybody is not None and not secret.startswith("dh-"):
            return self._anybody
        found = self.ledger.authenticate(secret.encode("latin-1"), kind or "", now_ns)
        if isinstance(found, Refusal):
            raise Refused.by_ledger(found)
        return found

    def chain(self, model: Model) -> Sequence[Model]:
        """The models that are asked, in their order."""
        first = model
        if model.relief and model.pool.num_waiting >= model.relief_at:
            first = self.models[model.relief]
        if not model.fallbacks:
            return (first,)
        return (first, *(self.models[name] for name in model.fallbacks))

    def next_id(self) -> str:
        """What a request is called in answers, logs and traces."""
        self._num_ids += 1
        return f"{self._first_id}{self._num_ids:x}"

    def _answer(self, exchange: Exchange) -> None:
        request = exchange.request
        path = request.path
        if path in ("/health", "/health/live", "/health/ready", "/metrics", MODELS, PATH) or path.startswith(
            f"{MODELS}/"
        ):
            if request.method not in ("GET", "HEAD"):
                raise Refused(405, f"{path[:100]} is asked by GET", "method_not_allowed")
            if path.startswith("/health"):
                self._health(exchange, path)
            elif path == "/metrics":
                self._metrics(exchange)
            elif path == PATH:
                exchange.send(200, description())
            else:
                self._models(exchange, path.removeprefix(MODELS).removeprefix("/"))
            return
        raise Refused(404, f"nothing is at {path[:100]}", "not_found")

    def _health(self, exchange: Exchange, path: str) -> None:
        now_s = self.loop.time()
        well = {
            name: any(target.upstream.is_ready(now_s) for target in model.pool.targets)
            for name, model in self.models.items()
        }
        trouble = self.ledger.trouble
        is_ready = not self.is_draining
        status = (
            "draining" if self.is_draining else "degraded" if trouble or not all(well.values()) else "healthy"
        )
        body = msgspec.json.encode({"status": status, "models": well})
        exchange.send(200 if is_ready or path == "/health/live" else 503, body)

    def _metrics(self, exchange: Exchange) -> None:
        if not self._has_open_metrics or is_from_elsewhere(exchange.request, "localhost"):
            raise Refused(404, "nothing is at /metrics here", "not_found")
        self._show_metrics(exchange)

    def _show_metrics(self, exchange: Exchange) -> None:
        page = b"" if self._telemetry is None else self._telemetry.instruments.exposed()
        exchange.send(200, page, content_type=CONTENT_TYPE)

    def _models(self, exchange: Exchange, name: str) -> None:
        key = self.known(exchange.request, None, time_ns())
        names = [model for model in self.models if key.may_use(model)]
        if name and name not in names:
            raise unknown(name)
        cards = [
            {"id": model, "object": "model", "created": 0, "owned_by": "datahall"}
            for model in names
            if name in ("", model)
        ]
        exchange.send(200, msgspec.json.encode(cards[0] if name else {"object": "list", "data": cards}))
