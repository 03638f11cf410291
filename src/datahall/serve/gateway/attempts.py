"""Asks upstreams until one answers: again where that is safe and affordable, a second one where the first is slow.

Nothing has been sent to the client yet, so whatever fails here can be asked elsewhere.  What is asked again is bounded
by the retry budget, and no upstream is asked before the moment that its Retry-After named.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from random import Random
from time import time

import msgspec

from datahall.serve.gateway.model import Model
from datahall.serve.gateway.passage import StreamFailed
from datahall.serve.gateway.question import Kind, Question
from datahall.serve.gateway.refusing import Refused
from datahall.serve.gateway.speech import can_answer, translation_of
from datahall.serve.gateway.speech.forms import is_json, is_told, message_of
from datahall.serve.gateway.speech.inference import Call
from datahall.serve.gateway.speech.translation import ODD, Translation, Untranslatable
from datahall.serve.http import CannotConnect, Failure, Interrupted, Response, TimedOut
from datahall.serve.ledger.money import Usage
from datahall.serve.upstreams.pool import NoTarget
from datahall.serve.upstreams.retry_after import retry_after_s
from datahall.serve.upstreams.retry_budget import RetryBudget, RetryBudgets
from datahall.serve.upstreams.routing import Target

PATHS: dict[Kind, str] = {
    "chat": "/chat/completions",
    "completions": "/completions",
    "embeddings": "/embeddings",
    "messages": "/messages",
}
JSON = (("content-type", "application/json"),)
BACKOFF_S = 0.05  # before an upstream is asked the second time, doubled each time
BUSY_S = 1.0  # what an upstream that is busy and says no more is left alone for
EARLY_S = 0.005  # that a timer may ring before its time
OURS = (401, 402, 403, 407)  # of our key or our account there, whoever asks what
MOST_ERROR_BYTES = 64 * 1024


class Answer:
    """An upstream's answer, of which the beginning is there: the whole body, or the first piece of a stream."""

    __slots__ = ("first", "is_stream", "model", "response", "target", "translation")

    def __init__(
        self,
        target: Target,
        model: str,
        response: Response,
        first: bytes,
        is_stream: bool,
        translation: Translation | None = None,
    ) -> None:
        self.target = target
        self.model = model
        self.response = response
        self.first = first
        self.is_stream = is_stream
        self.translation = translation  # of what comes, where the upstream speaks another language

    def broke_off(self, failure: Failure, now_s: float) -> None:
        """Its stream has no end, be it that the upstream said why; not where that is the question's own fault."""
        if not (isinstance(failure, StreamFailed) and failure.is_asked_for):
            self.target.upstream.did_fail(now_s)

    def close(self) -> None:
        """Nothing more is wanted of it."""
        self.response.close()
        self.target.upstream.end()


class _Failed(Exception):
    """One attempt brought no answer, and another upstream might."""

    def __init__(self, refused: Refused, has_cost: bool, is_barred: bool = False) -> None:
        super().__init__(refused.message)
        self.refused = refused
        self.has_cost = has_cost  # the upstream may have worked for it
        self.is_barred = is_barred  # to ask it again would change nothing


class _Course:
    """How far the asking of one model has come."""

    __slots__ = ("barred", "budget", "is_over", "model", "num_tries", "refused", "tried")

    def __init__(self, model: Model, budget: RetryBudget) -> None:
        self.model = model
        self.budget = budget
        self.tried: list[Target] = []  # in this round
        self.barred: list[Target] = []
        self.num_tries = 0
        self.refused: Refused | None = None  # what came last
        self.is_over = False

    def failed(self, target: Target, failed: _Failed) -> None:
        self.refused = failed.refused
        self.num_tries += 1
        self.tried.append(target)
        if failed.is_barred:
            self.barred.append(target)


class Attempts:
    """The asking of one question."""

    __slots__ = (
        "_budgets",
        "_headers",
        "_is_hurried",
        "_latest_s",
        "_loop",
        "_question",
        "_random",
        "failures",
        "num_sent",
        "wasted",
    )

    def __init__(
        self,
        question: Question,
        latest_s: float,
        budgets: RetryBudgets,
        random: Random,
        loop: asyncio.AbstractEventLoop,
        headers: tuple[tuple[str, str], ...] = (),
        is_hurried: bool = False,
    ) -> None:
        self._is_hurried = is_hurried  # by the client, who waits less long than the model may take
        self._question = question
        self._latest_s = latest_s
        self._budgets = budgets
        self._random = random
        self._loop = loop
        self._headers = (*JSON, *headers)
        self.num_sent = 0
        self.failures: list[str] = []  # of upstreams, as who runs the gateway is told
        self.wasted: list[tuple[str, Usage]] = []  # by model, what nobody had anything of

    async def answer(self, models: Sequence[Model]) -> Answer:
        """The answer of the first model that gives one, be it that it does not like the question.

        Every model has its turn before any of their upstreams is asked a second time.
        """
        courses = [_Course(model, self._budgets.of(model.name)) for model in models]
        for is_again in (False, True):
            for course in courses:
                answer = None if course.is_over else await self._by(course, is_again)
                if answer is not None:
                    return answer
        told = [course.refused for course in courses if course.refused is not None]
        raise next((one for one in told if one.target is not None), told[-1])

    async def _by(self, course: _Course, is_again: bool) -> Answer | None:
        """One model's turn: of upstreams that it has not asked, or of all anew but those that sent us away."""
        model = course.model
        while course.num_tries <= model.num_retries:
            is_round_over = len(course.tried) == len(model.pool.targets)
            if is_round_over:
                if not is_again:
                    return None
                course.tried = [*course.barred]
            if not course.num_tries:
                course.budget.pay()
            elif not (model.pool.has_ready(course.tried, self._loop.time()) and course.budget.take()):
                break
            if is_round_over:
                await self._back_off(course.num_tries)
            try:
                target = await self._target(model, course.tried)
            except NoTarget as none:
                if course.refused is None:
                    course.refused = Refused(503, none.message, "overloaded", retry_after_s=none.wait_s)
                break
            try:
                if model.hedge_s and len(model.pool.targets) > 1:
                    return await self._hedged(model, target)
                return await self._one(model, target)
            except _Failed as failed:
                course.failed(target, failed)
                self._waste(model, failed.has_cost)
            except Refused as refused:
                if refused.code == "deadline_exceeded":
                    raise
                course.refused = refused
                break
        course.is_over = True
        return None

    async def _target(self, model: Model, tried: Sequence[Target]) -> Target:
        question, now_s = self._question, self._loop.time()
        left_s = self._latest_s - now_s
        if left_s <= 0:
            raise Refused(504, "the deadline has passed", "deadline_exceeded")
        wait_s = min(model.queue_s, left_s)
        return await model.pool.take(question.hint, tried, question.priority, wait_s, now_s)

    async def _back_off(self, number: int) -> None:
        wait_s = BACKOFF_S * 2 ** (number - 1) * self._random.uniform(0.5, 1.5)
        await asyncio.sleep(min(wait_s, max(0.0, self._latest_s - self._loop.time())))

    def _waste(self, model: Model, has_cost: bool) -> None:
        if has_cost:
            self.wasted.append((model.name, Usage(self._question.estimate.prompt)))

    async def _one(self, model: Model, target: Target) -> Answer:
        """Ask one upstream, once."""
        question, upstream = self._question, target.upstream
        response: Response | None = None
        began_s = self._loop.time()
        timeouts = upstream.timeouts
        if began_s + timeouts.total_s > self._latest_s:
            left_s = max(0.0, self._latest_s - began_s)
            timeouts = msgspec.structs.replace(
                timeouts, total_s=left_s, connect_s=min(timeouts.connect_s, left_s)
            )
        translation = translation_of(question.kind, upstream.api, question.wants_usage, question.longest)
        kind = question.kind if translation is None else translation.kind
        is_kept = False
        try:
            body = self._body(target, translation)
            self.num_sent += 1
            response = await upstream.reach.request(
                "POST",
                upstream.base + (question.path(target.model) if isinstance(question, Call) else PATHS[kind]),
                body,
                (*self._headers, *upstream.headers),
                timeouts,
                partial(self._repeats, model, target),
            )
            if response.status >= 300:
                return await self._not_well(model, target, response, translation is not None)
            is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
            first = await (response.piece() if is_stream else response.read())
            if is_stream and not first:
                raise Interrupted("a stream of nothing")
            if not is_stream and not is_json(first):
                raise Interrupted("what came is no answer, or a part of one")
            if translation is not None and not is_stream:
                first = translation.answer(first)
            upstream.did_well(self._loop.time() - began_s)
            is_kept = True
            return Answer(target, model.name, response, first, is_stream, translation)
        except _Failed as failed:
            self.failures.append(failed.refused.message)
            raise
        except Failure as failure:
            self.failures.append(f"{upstream.name}: {failure}")
            if not (self._is_hurried and self._is_late()):
                upstream.did_fail(self._loop.time())
            raise _Failed(self._refused(target, failure), not isinstance(failure, CannotConnect)) from None
        finally:
            upstream.told_nothing()  # where nothing above has said how it is doing
            if not is_kept:
                upstream.end()
                if response is not None:
                    response.close()

    def _repeats(self, model: Model, target: Target) -> bool:
        """Whether a request goes to the same upstream again, by a new connection in place of one that broke.

        Where another can be asked that is the better use of the budget.
        """
        if model.num_retries and model.pool.has_ready((target,), self._loop.time()):
            return False
        may = self._budgets.of(model.name).take()
        self.num_sent += may
        return may

    def _body(self, target: Target, translation: Translation | None) -> bytes:
        question, upstream = self._question, target.upstream
        if not can_answer(question.kind, upstream.api):
            raise Refused(400, f"{upstream.name} has no {question.kind}", "not_offered")
        try:
            return question.for_model(target.model, None if translation is None else translation.question)
        except Untranslatable as part:
            raise Refused(400, f"{upstream.name} does not know {part}", "not_offered") from None
        except (Failure, *ODD):
            raise Refused(
                400, "a part of the question has not the form of its place", "invalid_value"
            ) from None

    def _is_late(self) -> bool:
        return self._loop.time() >= self._latest_s - EARLY_S

    def _refused(self, target: Target, failure: Failure) -> Refused:
        where = target.upstream.name
        if isinstance(failure, CannotConnect | TimedOut) and self._is_late():
            return Refused(504, "the deadline has passed", "deadline_exceeded", target=target)
        if isinstance(failure, CannotConnect):  # which says where: nothing that a client is told
            return Refused(502, f"{where} cannot be reached", "upstream_failed", target=target)
        if isinstance(failure, TimedOut):
            return Refused(504, f"{where} took too long: {failure}", "upstream_timeout", target=target)
        return Refused(502, f"{where} gave no answer: {failure}", "upstream_failed", target=target)

    async def _not_well(
        self, model: Model, target: Target, response: Response, is_translated: bool
    ) -> Answer:
        """An answer that is none: ask elsewhere, unless it is the question's own fault."""
        upstream, status = target.upstream, response.status
        try:
            body = await response.read(MOST_ERROR_BYTES)
        except Failure:  # the status says enough
            body = self._unread(upstream.name, status)
        wait_s = retry_after_s(response.headers, time())
        now_s = self._loop.time()
        if status == 429 or (status == 503 and wait_s is not None):
            upstream.asked_for_time(now_s, BUSY_S if wait_s is None else wait_s)
            raise _Failed(
                Refused(
                    status,
                    f"{upstream.name} is busy",
                    "upstream_busy",
                    retry_after_s=wait_s or BUSY_S,
                    target=target,
                ),
                has_cost=False,
            )
        is_own = status == 500 and isinstance(self._question, Call)  # what the model says of the rows
        if (status >= 500 or status == 408) and not is_own:
            upstream.did_fail(now_s)
            refused = Refused(502, f"{upstream.name} failed with {status}", "upstream_failed", target=target)
            raise _Failed(refused, has_cost=False)
        if status < 400 or status in OURS:
            upstream.did_fail(now_s)
            refused = Refused(
                502, f"{upstream.name} does not let us in ({status})", "upstream_refused", target=target
            )
            raise _Failed(refused, has_cost=False, is_barred=True)
        upstream.did_well(upstream.latency_s)
        has_form = is_json(body) if isinstance(self._question, Call) else is_told(body)
        if is_translated or not has_form:
            raise Refused(status, message_of(body), "upstream_refused", target=target)
        upstream.begin()  # ended by who closes the answer
        return Answer(target, model.name, response, body, is_stream=False)

    def _unread(self, name: str, status: int) -> bytes:
        """What a client is told in place of what could not be read."""
        refused = Refused(
            status, f"{name} refused with {status}; its reason cannot be read", "upstream_refused"
        )
        return refused.body(self._question.kind)

    async def _hedged(self, model: Model, target: Target) -> Answer:
        """Ask a second upstream when the first is slow, and take what comes first."""
        first = asyncio.ensure_future(self._one(model, target))
        asked: set[asyncio.Future[Answer]] = {first}
        try:
            done, _ = await asyncio.wait(asked, timeout=model.hedge_s)
            if not done:
                other = model.pool.free(self._question.hint, (target,), self._loop.time())
                if other is not None:
                    if self._budgets.of(model.name).take():
                        asked.add(asyncio.ensure_future(self._one(model, other)))
                    else:
                        other.upstream.told_nothing()
                        other.upstream.end()
            waiting = set(asked)
            while waiting:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for one in done:
                    if one.exception() is None:
                        asked.discard(one)
                        return one.result()
            return first.result()
        finally:
            for one in asked:
                if not one.done():
                    one.cancel()
                    self._waste(model, has_cost=True)
                elif not one.cancelled() and one.exception() is None:
                    one.result().close()
