"""OpenAI's chat and completions over the engine, streaming and not: who asks waits for a slot, who leaves frees it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from time import perf_counter
from typing import TypeVar

import msgspec

from datahall.serve.http import Exchange, error_body
from datahall.serve.http.sse import DONE, event
from datahall.serve.modelserver.answering import retry_after
from datahall.serve.modelserver.llm import completion, events
from datahall.serve.modelserver.llm.completion import CompletionRequest, WholeText
from datahall.serve.modelserver.llm.engine import Engine
from datahall.serve.modelserver.llm.events import Event, Whole
from datahall.serve.modelserver.llm.meter import LlmMeter
from datahall.serve.modelserver.llm.request import ChatRequest, for_engine, read
from datahall.serve.modelserver.refused import Refused

MOST_QUEUED = 64  # beside those that have a slot
CONTEXT = "exceed_context_size_error"
Asked = TypeVar("Asked", ChatRequest, CompletionRequest)


class Chat:
    """One model, asked by conversations. Until it is loaded, and when it is going, it says when to come again."""

    def __init__(self, name: str, most_queued: int = MOST_QUEUED) -> None:
        self.name = name
        self.meter = LlmMeter()
        self._most_queued = most_queued
        self._engine: Engine | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._turns: set[_Turn] = set()

    @property
    def is_ready(self) -> bool:
        return self._engine is not None

    async def load(self, opened: Callable[[], Engine]) -> None:
        """Open the engine outside the loop; from then on it answers."""
        engine = await asyncio.get_running_loop().run_in_executor(None, opened)
        self._threads = ThreadPoolExecutor(engine.num_slots, thread_name_prefix="slot")
        self._engine = engine

    async def close(self) -> None:
        """Break off what still runs, and let the model go."""
        engine, threads = self._engine, self._threads
        self._engine = None
        for turn in [*self._turns]:
            turn.break_off(f"{self.name} is being unloaded")
        if engine is not None and threads is not None:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(None, threads.shutdown)
            await loop.run_in_executor(None, engine.close)

    def chat(self, exchange: Exchange) -> None:
        """`POST /v1/chat/completions`."""
        self._answer(exchange, read, for_engine, Whole)

    def complete(self, exchange: Exchange) -> None:
        """`POST /v1/completions`."""
        self._answer(exchange, completion.read, completion.for_engine, WholeText)

    def _answer(
        self,
        exchange: Exchange,
        read: Callable[[bytes], Asked],
        for_engine: Callable[[Asked], bytes],
        whole: Callable[[], Whole | WholeText],
    ) -> None:
        try:
            asked = read(exchange.request.body)
            if asked.model != self.name:
                raise Refused(404, f"model {asked.model} is not here; this is {self.name}")
            self._begin(exchange, asked, for_engine(asked), None if asked.stream else whole())
        except Refused as refusal:
            code = {404: "model_not_found", 503: "overloaded"}.get(refusal.status, "")
            body = error_body(refusal.status, refusal.message, code=code)
            exchange.send(refusal.status, body, retry_after(refusal.retry_after_s))

    def models(self, exchange: Exchange) -> None:
        """`GET /v1/models`."""
        model = {"id": self.name, "object": "model", "created": 0, "owned_by": "datahall"}
        exchange.send(200, msgspec.json.encode({"object": "list", "data": [model]}))

    def _begin(
        self,
        exchange: Exchange,
        asked: ChatRequest | CompletionRequest,
        body: bytes,
        whole: Whole | WholeText | None,
    ) -> None:
        engine, threads = self._engine, self._threads
        if engine is None or threads is None:
            raise Refused(503, f"{self.name} is not loaded", retry_after_s=1.0)
        if len(self._turns) >= engine.num_slots + self._most_queued:
            self.meter.num_refused += 1
            raise Refused(
                503, f"all slots of {self.name} are taken, and its queue is full", retry_after_s=5.0
            )
        turn = _Turn(exchange, asked, whole, self.meter)
        call = threads.submit(turn.run, engine, body)
        turn.call = call
        self._turns.add(turn)
        exchange.on_gone(turn.leave)
        call.add_done_callback(lambda ended: turn.loop.call_soon_threadsafe(self._end, turn, ended))

    def _end(self, turn: _Turn, call: Future[None]) -> None:
        self._turns.discard(turn)
        turn.finish(call)


class _Turn:
    """One request. The engine's thread says its events; the event loop writes them."""

    def __init__(
        self,
        exchange: Exchange,
        asked: ChatRequest | CompletionRequest,
        whole: Whole | WholeText | None,
        meter: LlmMeter,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.call: Future[None] | None = None
        self._exchange = exchange
        self._asked = asked
        self._meter = meter
        self._asked_s = perf_counter()
        self._whole = whole  # of an answer that does not stream
        self._is_gone = False
        self._has_slot = False
        self._has_spoken = False
        meter.num_waiting += 1

    def leave(self) -> None:
        """Nobody listens any more: the slot is free after the piece that is being computed."""
        self._is_gone = True
        if self.call is not None:
            self.call.cancel()

    def break_off(self, why: str) -> None:
        """The model goes: whoever still listens hears that this is not the whole answer."""
        if not self._is_gone and not self._exchange.is_ended:
            self._fail(503, why)
        self.leave()

    def run(self, engine: Engine, body: bytes) -> None:
        """On a thread: until the answer has ended, or its client has left."""
        if self._is_gone:
            return
        self.loop.call_soon_threadsafe(self._start)
        if isinstance(self._asked, ChatRequest):
            engine.chat(body, self._hear)
        else:
            engine.complete(body, self._hear)

    def finish(self, call: Future[None]) -> None:
        """The engine has let go of it."""
        error = None if call.cancelled() else call.exception()
        self._meter.end(was_cancelled=self._is_gone, had_slot=self._has_slot)
        if self._is_gone or self._exchange.is_ended:
            return
        if error is not None:  # the engine raises what is wrong in a request, before it says anything
            status = 400 if isinstance(error, (ValueError, RuntimeError)) else 500
            self._fail(status, str(error) or type(error).__name__)
        elif self._whole is not None:
            self._exchange.send(200, self._whole.body())
        elif self._exchange.is_started:
            self._exchange.write(DONE)
            self._exchange.end()
        else:
            self._fail(500, "the engine gave no answer")

    def _start(self) -> None:
        self._has_slot = True
        self._meter.start()

    def _hear(self, data: bytes) -> bool:
        """On the engine's thread; whether it may stop."""
        if not self._is_gone and data != b"[DONE]":
            self.loop.call_soon_threadsafe(self._say, data)
        return self._is_gone

    def _say(self, data: bytes) -> None:
        if self._is_gone or self._exchange.is_ended:
            return
        said = events.read(data)
        if said.error is not None:
            is_long = said.error.get("type") == CONTEXT
            code = "context_length_exceeded" if is_long else ""
            self._fail(
                int(said.error.get("code") or 500), str(said.error.get("message") or "it failed"), code
            )
            return
        if said.prompt_progress is not None:
            return
        if not self._has_spoken:
            self._has_spoken = True
            self._meter.first_token_s.observe(perf_counter() - self._asked_s)
        if said.usage is not None:
            self._meter.count(said.usage)
        if self._whole is not None:
            self._whole.add(data)
            return
        for piece in self._pieces(data, said):
            if not self._exchange.is_started:
                self._exchange.start(200, (("Cache-Control", "no-cache"),))
            self._exchange.write(event(piece))

    def _pieces(self, data: bytes, said: Event) -> list[bytes]:
        """What a client of a stream hears of an event."""
        wants_usage = self._asked.wants_usage
        if not isinstance(self._asked, ChatRequest):
            return completion.pieces(data, wants_usage)
        return [data] if said.choices or wants_usage else []

    def _fail(self, status: int, message: str, code: str = "") -> None:
        """An error as OpenAI's clients read it; within a stream it is an event, and the last."""
        self._meter.num_failed += status >= 500
        body = error_body(status, message, code=code)
        if not self._exchange.is_started:
            self._exchange.send(status, body)
            return
        self._exchange.write(event(body))
        self._exchange.end()
