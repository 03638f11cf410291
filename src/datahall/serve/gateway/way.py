"""The way of a request, whole:

    authenticate → read → recall → admit → route → ask (again, hedged, elsewhere) → pass on → keep → settle

Whatever happens on it, what was admitted is settled exactly once: in full, for what was delivered, or not at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import time_ns
from typing import TYPE_CHECKING

from datahall.serve.cache.shared import Listener, Shared, TooSlow
from datahall.serve.gateway.attempts import Answer, Attempts
from datahall.serve.gateway.keeping import Answers, Keeping
from datahall.serve.gateway.model import Model
from datahall.serve.gateway.passage import Passage
from datahall.serve.gateway.question import BYTES_PER_TOKEN, Kind, Question, patience_s, read_question
from datahall.serve.gateway.refusing import Refused, unknown
from datahall.serve.gateway.speech.inference import CALLS, Call, read_call
from datahall.serve.gateway.usage import most_in, usage_of
from datahall.serve.http import Exchange, Failure
from datahall.serve.ledger.account import Refusal
from datahall.serve.ledger.accounts import Reservation
from datahall.serve.ledger.key import Key
from datahall.serve.ledger.ledger import Outcome
from datahall.serve.ledger.money import NOTHING, Usage
from datahall.serve.telemetry.told import Result, Told
from datahall.serve.telemetry.trace import trace_of

if TYPE_CHECKING:
    from datahall.serve.gateway.gateway import Gateway

OUTCOMES: dict[Result, Outcome] = {"answered": "answered", "cancelled": "cancelled"}
STREAMED = (("cache-control", "no-cache"), ("x-accel-buffering", "no"))


async def answer(gateway: Gateway, exchange: Exchange, kind: Kind) -> None:
    """Take one request from its key to its bill."""
    way = Way(gateway, exchange, kind)
    try:
        way.enter()
        if gateway.answers is None or not await way.recall(gateway.answers):
            way.admit()
            await way.ask()
    except Refused as refused:
        way.refuse(refused)
    except Exception:  # a mistake of ours, which the server answers and reports
        way.fail()
        raise
    finally:
        if not way.is_led_on:
            way.settle()


class Way:
    """One request on its way, and what is known of it so far."""

    __slots__ = (
        "_answer", "_attempts", "_began_ns", "_code", "_exchange", "_first_ns", "_gateway", "_hears", "_is_hurried",
        "_is_settled", "_keeping", "_kind", "_latest_s", "_model", "_models", "_passage", "_question", "_reservation",
        "_result", "_saved_nano_usd", "_served", "_status", "_trace", "_usage", "is_led_on", "key", "request_id",
    )  # fmt: skip

    def __init__(self, gateway: Gateway, exchange: Exchange, kind: Kind) -> None:
        self._gateway = gateway
        self._exchange = exchange
        self._kind: Kind = kind
        self._began_ns = time_ns()
        self.request_id = gateway.next_id()
        self.key: Key | None = None
        self._question: Question | None = None
        self._keeping: Keeping | None = None
        self._model: Model | None = None  # that was asked for, as it was then
        self._models: Sequence[Model] = ()
        self._reservation: Reservation | None = None
        self._attempts: Attempts | None = None
        self._answer: Answer | None = None
        self._passage: Passage | None = None
        self._hears: Shared | None = None  # the stream of another, in place of one of its own
        self._served = self._code = ""
        self._status = self._first_ns = self._saved_nano_usd = 0
        self._result: Result = "cancelled"
        self._usage, self._latest_s = NOTHING, 0.0  # in the loop's time
        self._is_hurried = self._is_settled = False  # hurried by the client
        self.is_led_on = False  # its stream goes on for others, and settles it when that ends
        header = exchange.request.headers.get("traceparent", "")
        self._trace = trace_of(header, gateway.kept_fraction) if header or gateway.kept_fraction else None

    def enter(self) -> None:
        """Know who asks, and for what."""
        gateway, request = self._gateway, self._exchange.request
        if request.method != "POST":
            raise Refused(405, f"{request.path} is asked by POST", "method_not_allowed")
        self.key = gateway.known(request, self._kind, self._began_ns)
        customer = self.key.customer
        if self._kind in CALLS:
            question: Question = read_call(self._kind, request, gateway, customer)
        else:
            question = read_question(self._kind, request.body, request.header, customer)
        self._question = question
        model = gateway.models.get(question.model)
        if model is None:
            raise unknown(question.model)
        self._model = model
        self._models = gateway.chain(model)
        deadline_s, wait_s = self._models[0].deadline_s, patience_s(request.header)
        self._is_hurried = wait_s < deadline_s
        self._latest_s = gateway.loop.time() + min(deadline_s, wait_s)

    async def recall(self, answers: Answers) -> bool:
        """Give again what the same tenant was answered to the same; whether there was anything."""
        question, key, request = self._question, self.key, self._exchange.request
        if isinstance(question, Call):
            return False
        assert question is not None
        assert key is not None
        kept, keeping = await answers.recall(
            key.customer, question.model, self._kind, request.body, request.header("cache-control"), self._began_ns,
            self._latest_s, leads=not self._is_hurried,
        )  # fmt: skip
        self._keeping = keeping
        if kept is None or keeping is None:
            return False
        if isinstance(kept, Shared):
            await self._hear(kept, key, question.model)
            return True
        refusal = self._gateway.ledger.hit(key, question.model, kept.usage, self._began_ns)
        if refusal is not None:
            raise Refused.by_ledger(refusal)
        self._served, self._status, self._result = question.model, 200, "cached"
        assert self._model is not None
        self._saved_nano_usd = self._model.price.cost_nano_usd(kept.usage)
        self.settle()
        kind = "text/event-stream" if question.is_stream else "application/json"
        self._exchange.send(200, keeping.given_again(kept), [*self._headers(), ("x-cache", "hit")], kind)
        return True

    def admit(self) -> None:
        """Hold what it may take."""
        gateway, question, key = self._gateway, self._question, self.key
        assert question is not None
        assert key is not None
        model = gateway.models.get(question.model)
        if model is None:
            raise unknown(question.model)
        if model is not self._model:  # the file was read anew while this waited for the answer to another
            self._model, self._models = model, gateway.chain(model)
        others = model.others
        if question.num_open:
            room = gateway.ledger.room(key, model.name, question.estimate.prompt, self._began_ns, others)
            question, is_short = question.held_to(model.longest_tokens, room)
            self._question = question
            if is_short and self._keeping is not None:  # nobody else is to have so short an answer
                self._keeping.end(is_left=True)
                self._keeping = None
        reservation = gateway.ledger.admit(key, question.model, question.estimate, self._began_ns, others)
        if isinstance(reservation, Refusal):
            raise Refused.by_ledger(reservation)
        self._reservation = reservation

    async def ask(self) -> None:
        """Have it answered by an upstream, and pass on what it says."""
        gateway, question = self._gateway, self._question
        assert question is not None
        traced = () if self._trace is None else (("traceparent", self._trace.header()),)
        self._attempts = Attempts(
            question, self._latest_s, gateway.budgets, gateway.random, gateway.loop, traced, self._is_hurried
        )
        answer = self._answer = await self._attempts.answer(self._models)
        self._served = answer.model
        if answer.is_stream:
            await self._pass_stream(answer, question)
        else:
            self._pass_whole(answer, question)

    def _pass_whole(self, answer: Answer, question: Question) -> None:
        status, body = answer.response.status, answer.first
        self._status = status
        if status < 400:
            if isinstance(question, Call):
                usage = question.estimate
            elif (said := usage_of(body)) is None:  # it does not say: what can be counted
                completion = min(len(body) // BYTES_PER_TOKEN, question.estimate.completion)
                usage = Usage(question.estimate.prompt, 0, completion)
            else:
                usage = question.believed(said, most_in(body))
                if self._keeping is not None and self._served == question.model:
                    self._keeping.keep_whole(usage, body, self._began_ns)
            self._usage = usage
            self._result = "answered"
        else:
            self._result = "failed"
        self.settle()
        self._exchange.send(status, body, self._headers())

    async def _pass_stream(self, answer: Answer, question: Question) -> None:
        exchange, response = self._exchange, answer.response
        passage = self._passage = Passage(not question.wants_usage and question.kind != "messages")
        self._begin_stream(response.status)
        keeping = self._keeping if answer.model == question.model else None
        shared = keeping.begin() if keeping is not None else None
        piece = answer.first
        try:
            while piece:
                events = self._events(passage.feed(piece))
                if events:
                    exchange.write(events)
                    if shared is not None:
                        shared.add(events)
                if exchange.must_wait:
                    async with asyncio.timeout_at(self._latest_s):
                        await (exchange.drain() if shared is None else shared.drain(exchange))
                if shared is not None and shared.listeners:
                    break
                piece = await response.piece()
            else:
                self._finish(shared)
                exchange.end()
                return
        except TimeoutError:  # who does not read cannot be told so
            self._code = "deadline_exceeded"
            self.settle()
            exchange.abort()
            return
        except Failure as failure:
            exchange.write(self._broken(failure, shared))
            exchange.end()
            return
        except asyncio.CancelledError:
            if shared is not None and shared.listeners:
                self._lead_on(shared)
            raise
        assert shared is not None
        listener = shared.join(from_now=True)
        self._lead_on(shared)
        await self._listen(shared, listener)

    def _begin_stream(self, status: int, *headers: tuple[str, str]) -> None:
        self._status = status
        self._first_ns = time_ns()
        self._exchange.start(status, [*self._headers(), *STREAMED, *headers])

    def _events(self, events: bytes) -> bytes:
        assert self._answer is not None
        translation = self._answer.translation
        return events if translation is None else translation.events(events)

    def _finish(self, shared: Shared | None) -> None:
        """The stream has come to its end: keep it, settle, and let all who hear it see the end."""
        passage, question = self._passage, self._question
        assert passage is not None
        assert question is not None
        events = self._events(passage.rest())
        if events and not self.is_led_on:
            self._exchange.write(events)
        if events and shared is not None:
            shared.add(events)
        self._result = "answered"
        usage = None if passage.usage is None else question.believed(passage.usage, passage.num_events)
        if shared is not None and self._keeping is not None and usage is not None:
            self._keeping.keep_stream(usage, self._began_ns)
        self.settle()

    def _broken(self, failure: Failure, shared: Shared | None) -> bytes:
        """The stream has broken off: settle, and say so to all who hear it."""
        self._result = "failed"
        if self._answer is not None:
            self._answer.broke_off(failure, self._gateway.loop.time())
        said = Refused(502, f"the answer broke off: {failure}", "upstream_failed").event(self._kind)
        if shared is not None:
            shared.add(said)
        self.settle()
        return said

    # a stream that several hear

    def _lead_on(self, shared: Shared) -> None:
        """Let the stream go on by itself, whether the client of this request stays or not."""
        self.is_led_on = True
        task = self._gateway.led_on(self._lead(shared))
        task.add_done_callback(lambda _: self.settle())
        shared.on_empty = task.cancel

    async def _lead(self, shared: Shared) -> None:
        answer, passage = self._answer, self._passage
        assert answer is not None
        assert passage is not None
        try:
            while piece := await answer.response.piece():
                if events := self._events(passage.feed(piece)):
                    shared.add(events)
            self._finish(shared)
        except Failure as failure:
            self._broken(failure, shared)

    async def _hear(self, shared: Shared, key: Key, model: str) -> None:
        """Be answered by another's stream, from its beginning on."""
        reservation = self._gateway.ledger.join(key, model, self._began_ns)
        if isinstance(reservation, Refusal):
            raise Refused.by_ledger(reservation)
        listener = shared.join()
        self._reservation, self._served, self._hears = reservation, model, shared
        self._begin_stream(200, ("x-cache", "hit"))
        await self._listen(shared, listener)

    async def _listen(self, shared: Shared, listener: Listener) -> None:
        exchange = self._exchange
        try:
            async with asyncio.timeout_at(self._latest_s):
                await listener.pass_to(exchange)
        except (TimeoutError, TooSlow) as slow:
            self._code = "deadline_exceeded" if isinstance(slow, TimeoutError) else "too_slow"
            exchange.abort()
            return
        finally:
            shared.leave(listener)
            if self._hears is not None:
                self._result = (
                    "cancelled" if not shared.is_over else "failed" if shared.usage is None else "cached"
                )
                self.settle()
        exchange.end()

    def fail(self) -> None:
        """There is no answer, and nobody but us is to blame."""
        self._result, self._code = "failed", "internal_error"
        self._status = self._status if self._first_ns else 500

    def refuse(self, refused: Refused) -> None:
        """Say why there is no answer."""
        self._status, self._code, self._result = refused.status, refused.code, "failed"
        if self._attempts is None or not self._attempts.num_sent:
            self._result = "refused"
            reservation, self._reservation = self._reservation, None
            if reservation is not None:
                self._gateway.ledger.release(reservation)
        self.settle()
        refused.send(self._exchange, self.request_id, self._kind)

    def settle(self) -> None:
        """Charge what was delivered and tell of it, before the client sees the end or when the way ends, but once."""
        if self._is_settled:
            return
        self._is_settled = True
        answer, attempts, reservation = self._answer, self._attempts, self._reservation
        if answer is not None:
            answer.close()
        if self._keeping is not None:
            self._keeping.end(is_left=self._result == "cancelled")
        if (passage := self._passage) is not None and (question := self._question) is not None:
            self._usage = question.believed(passage.delivered(question.estimate), passage.num_events)
        charged_nano_usd = 0
        if reservation is not None and self._hears is not None:
            saved = self._hears.usage if self._result == "cached" else None
            self._saved_nano_usd = self._gateway.ledger.spare(reservation, saved or NOTHING)
        elif reservation is not None:
            wasted = attempts.wasted if attempts is not None else []
            if answer is None and attempts is not None and attempts.num_sent and self._result == "cancelled":
                wasted.append((reservation.model, Usage(reservation.usage.prompt)))
            outcome = OUTCOMES.get(self._result, "failed")
            charged_nano_usd = self._gateway.ledger.settle(
                reservation, self._usage, outcome, self._served, wasted
            )
        if self._keeping is not None and self._keeping.stream is not None:
            self._keeping.stream.end(self._usage if self._result == "answered" else None)
        if self._gateway.tell is not None:
            self._gateway.tell(self._told(charged_nano_usd))

    def _told(self, charged_nano_usd: int) -> Told:
        key, question, attempts, answer = self.key, self._question, self._attempts, self._answer
        return Told(
            request_id=self.request_id,
            route=self._kind,
            result=self._result,
            status=self._status,
            began_ns=self._began_ns,
            ended_ns=time_ns(),
            first_ns=self._first_ns,
            key=key.name if key is not None else "",
            customer=key.customer if key is not None else "",
            model=question.model if question is not None and self._models else "",
            served=self._served,
            upstream=answer.target.upstream.name if answer is not None else "",
            code=self._code,
            usage=self._usage,
            charged_nano_usd=charged_nano_usd,
            saved_nano_usd=self._saved_nano_usd,
            num_attempts=attempts.num_sent if attempts is not None else 0,
            failures=tuple(attempts.failures) if attempts is not None else (),
            trace=self._trace,
        )

    def _headers(self) -> list[tuple[str, str]]:
        assert self.key is not None
        limits = self._gateway.ledger.headers(self.key, self._began_ns)
        return [("x-request-id", self.request_id), ("x-served-model", self._served), *limits]
