"""The way of a request, whole:

    authenticate → read → recall → admit → route → ask (again, hedged, elsewhere) → pass on → keep → settle

Whatever happens on it, what was admitted is settled exactly once: in full, for what was delivered, or not at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import time_ns
from typing import TYPE_CHECKING

from datahall.serve.gateway.attempts import Answer, Attempts
from datahall.serve.gateway.keeping import Answers, Keeping
from datahall.serve.gateway.model import Model
from datahall.serve.gateway.passage import Passage
from datahall.serve.gateway.question import BYTES_PER_TOKEN, FEWEST_TOKENS, Kind, Question, read_question
from datahall.serve.gateway.refusing import Refused
from datahall.serve.gateway.speech.inference import CALLS, Call, read_call
from datahall.serve.gateway.speech.translation import Translation
from datahall.serve.gateway.usage import usage_of
from datahall.serve.http import Exchange, Failure, Request
from datahall.serve.http.sse import event
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
    finally:
        way.settle()


class Way:
    """One request on its way, and what is known of it so far."""

    __slots__ = (
        "_answer", "_attempts", "_began_ns", "_code", "_exchange", "_first_ns", "_gateway", "_is_hurried",
        "_is_settled", "_keeping", "_kind", "_latest_s", "_model", "_models", "_passage", "_question", "_reservation",
        "_result", "_saved_nano_usd", "_served", "_status", "_trace", "_usage", "key", "request_id",
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
        self._served = ""
        self._status = 0
        self._usage = NOTHING
        self._result: Result = "cancelled"
        self._code = ""
        self._first_ns = 0
        self._latest_s = 0.0  # in the loop's time
        self._is_hurried = False  # by the client
        self._saved_nano_usd = 0
        self._is_settled = False
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
        deadline_s, wait_s = self._models[0].deadline_s, patience_s(request)
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
            self._latest_s,
        )  # fmt: skip
        self._keeping = keeping
        if kept is None or keeping is None:
            return False
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
            question = self._question = self._held_to_length(question, key, model)
        reservation = gateway.ledger.admit(key, question.model, question.estimate, self._began_ns, others)
        if isinstance(reservation, Refusal):
            raise Refused.by_ledger(reservation)
        self._reservation = reservation

    def _held_to_length(self, question: Question, key: Key, model: Model) -> Question:
        """A length for an answer that has none said; of a key whose means have an end, what they allow."""
        longest = model.longest_tokens
        room = self._gateway.ledger.room(
            key, model.name, question.estimate.prompt, self._began_ns, model.others
        )
        if room is None:
            return question.of_length(longest, is_sent=False)
        length = max(min(FEWEST_TOKENS, longest), min(longest, room // question.num_open))
        if length < longest and self._keeping is not None:  # nobody else is to have so short an answer
            self._keeping.end(is_left=True)
            self._keeping = None
        return question.of_length(length, is_sent=True)

    async def ask(self) -> None:
        """Have it answered by an upstream, and pass on what it says."""
        gateway, question = self._gateway, self._question
        assert question is not None
        gateway.budget.pay()
        traced = () if self._trace is None else (("traceparent", self._trace.header()),)
        self._attempts = Attempts(
            question, self._latest_s, gateway.budget, gateway.random, gateway.loop, traced, self._is_hurried
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
                usage = question.believed(said)
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
        translation = answer.translation
        hides = not question.wants_usage and question.kind != "messages"
        passage = self._passage = Passage(hides_usage=hides)
        self._status = response.status
        self._first_ns = time_ns()
        exchange.start(response.status, [*self._headers(), *STREAMED])
        piece = answer.first
        keeping = self._keeping if answer.model == question.model else None
        try:
            while piece:
                self._pass_on(passage.feed(piece), translation, keeping)
                if exchange.must_wait:
                    async with asyncio.timeout_at(self._latest_s):
                        await exchange.drain()
                piece = await response.piece()
            self._pass_on(passage.rest(), translation, keeping)
        except TimeoutError:  # who does not read cannot be told so
            self._code = "deadline_exceeded"
            self.settle()
            exchange.abort()
            return
        except Failure as failure:
            self._result = "failed"
            broken = Refused(502, f"the answer broke off: {failure}", "upstream_failed")
            named = "error" if question.kind == "messages" else ""
            exchange.write(event(broken.body(question.kind), named))
        else:
            self._result = "answered"
            if keeping is not None and passage.usage is not None:
                keeping.keep_stream(question.believed(passage.usage), self._began_ns)
        self.settle()
        exchange.end()

    def _pass_on(self, events: bytes, translation: Translation | None, keeping: Keeping | None) -> None:
        if translation is not None:
            events = translation.events(events)
        if events:
            self._exchange.write(events)
            if keeping is not None:
                keeping.add(events)

    def refuse(self, refused: Refused) -> None:
        """Say why there is no answer."""
        self._status, self._code = refused.status, refused.code
        self._result = "failed"
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
        if self._passage is not None and self._question is not None:
            self._usage = self._question.believed(self._passage.delivered(self._question.estimate))
        charged_nano_usd = 0
        if reservation is not None:
            wasted = attempts.wasted if attempts is not None else []
            if answer is None and attempts is not None and attempts.num_sent and self._result == "cancelled":
                wasted.append((reservation.model, Usage(reservation.usage.prompt)))
            outcome = OUTCOMES.get(self._result, "failed")
            charged_nano_usd = self._gateway.ledger.settle(
                reservation, self._usage, outcome, self._served, wasted
            )
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
        headers = [("x-request-id", self.request_id), ("x-served-model", self._served)]
        headers += self._gateway.ledger.headers(self.key, self._began_ns)
        return headers


def unknown(model: str) -> Refused:
    return Refused(404, f"the model {model[:200]!r} does not exist", "model_not_found", param="model")


def patience_s(request: Request) -> float:
    """How long the client is willing to wait, where it says so."""
    text = request.headers.get("x-request-timeout")
    if text is None:
        return 1e9
    try:
        wait_s = float(text)
    except ValueError:
        wait_s = -1.0
    if not 0 < wait_s < 1e9:
        raise Refused(400, "x-request-timeout is seconds, more than 0", "invalid_value")
    return wait_s
