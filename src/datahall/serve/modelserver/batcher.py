"""Requests of many clients, laid into one call of a model.

A batch is released as soon as it is full, its first request is due, or the model is idle: what queued while it ran is
then the next batch, so that nobody waits for company while there is nothing to do.  A full one is handed over while
another runs.  All of it happens on the event loop, but for the call itself, which runs on a thread of the model's own.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from time import perf_counter
from typing import Generic, TypeVar

import msgspec

from datahall.serve.modelserver.meter import Meter
from datahall.serve.modelserver.refused import Refused

Item = TypeVar("Item")
Out = TypeVar("Out")


class Batching(msgspec.Struct, frozen=True, kw_only=True):
    """How requests are laid together; rows are counted, of which a request may have several."""

    most_rows: int = 32  # of a batch
    delay_s: float = 0.0  # the longest that the first waits for others while the model could run
    adaptive: bool = True  # an idle model starts at once, whatever the delay
    num_workers: int = 1  # batches of one model that run side by side
    most_queued: int = 2048  # rows


class Ticket(Generic[Item, Out]):
    """A request on its way: `done` hears its answer, or why there is none, unless it is cancelled before."""

    __slots__ = ("done", "is_cancelled", "item", "key", "queued_s", "rows")

    def __init__(
        self,
        item: Item,
        rows: int,
        key: Hashable,
        queued_s: float,
        done: Callable[[Out | BaseException], None],
    ) -> None:
        self.item = item
        self.rows = rows
        self.key = key
        self.queued_s = queued_s
        self.done = done
        self.is_cancelled = False


class _Line(Generic[Item, Out]):
    """Requests that may share a batch, first come first."""

    __slots__ = ("num_rows", "tickets")

    def __init__(self) -> None:
        self.tickets: OrderedDict[Ticket[Item, Out], None] = OrderedDict()
        self.num_rows = 0

    @property
    def since_s(self) -> float:
        return next(iter(self.tickets)).queued_s

    def add(self, ticket: Ticket[Item, Out]) -> None:
        self.tickets[ticket] = None
        self.num_rows += ticket.rows

    def drop(self, ticket: Ticket[Item, Out]) -> None:
        del self.tickets[ticket]
        self.num_rows -= ticket.rows

    def take(self, most_rows: int) -> list[Ticket[Item, Out]]:
        """The first requests that together have at most so many rows."""
        batch: list[Ticket[Item, Out]] = []
        rows = 0
        for ticket in self.tickets:
            if rows + ticket.rows > most_rows:
                break
            rows += ticket.rows
            batch.append(ticket)
        for ticket in batch:
            self.drop(ticket)
        return batch


class _Call(Generic[Item, Out]):
    """One call of the model, on its thread; who has left by then is left out."""

    __slots__ = ("batch", "is_again", "num_cancelled", "started_s")

    def __init__(self, batch: list[Ticket[Item, Out]], *, is_again: bool) -> None:
        self.batch = batch
        self.is_again = is_again
        self.num_cancelled = 0
        self.started_s = 0.0

    def __call__(self, run: Callable[[list[Item]], Sequence[Out]]) -> Sequence[Out]:
        here = [ticket for ticket in self.batch if not ticket.is_cancelled]
        self.num_cancelled = len(self.batch) - len(here)
        self.batch = here
        self.started_s = perf_counter()
        return run([ticket.item for ticket in here]) if here else ()


class Batcher(Generic[Item, Out]):
    """The queue before one model.  `run` answers a list of items with a list as long, in order."""

    def __init__(self, run: Callable[[list[Item]], Sequence[Out]], batching: Batching) -> None:
        self.batching = batching
        self.meter = Meter()
        self.num_queued = 0  # rows
        self._run = run
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(batching.num_workers, thread_name_prefix="model")
        self._lines: dict[Hashable, _Line[Item, Out]] = {}
        self._halves: deque[list[Ticket[Item, Out]]] = deque()  # of batches that failed
        self._num_running = 0
        self._is_woken = False
        self._timer: asyncio.TimerHandle | None = None
        self._closed: asyncio.Future[None] | None = None

    def submit(
        self, item: Item, done: Callable[[Out | BaseException], None], *, rows: int = 1, key: Hashable = None
    ) -> Ticket[Item, Out]:
        """Queue an item beside others of its key; `Refused` where the queue is full or the model is going."""
        if self._closed is not None:
            raise Refused(503, "the model is being unloaded", retry_after_s=1.0)
        if rows > self.batching.most_rows:
            raise ValueError(f"{rows} rows in a batch of at most {self.batching.most_rows}")
        if self.num_queued + rows > self.batching.most_queued:
            self.meter.num_refused += 1
            raise Refused(503, "the queue of the model is full", retry_after_s=self.backlog_s)
        ticket: Ticket[Item, Out] = Ticket(item, rows, key, perf_counter(), done)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line()
        line.add(ticket)
        self.num_queued += rows
        self._wake()
        return ticket

    def cancel(self, ticket: Ticket[Item, Out]) -> None:
        """Its client has left: it is not run, or nobody hears its answer."""
        if ticket.is_cancelled:
            return
        ticket.is_cancelled = True
        line = self._lines.get(ticket.key)
        if line is not None and ticket in line.tickets:
            line.drop(ticket)
            self.num_queued -= ticket.rows
            self.meter.num_cancelled += 1
            self._forget(ticket.key, line)
            self._check_closed()

    @property
    def backlog_s(self) -> float:
        """How long what is queued will run, by the batches so far."""
        ran = self.meter.run_s
        batch_s = ran.total / ran.num if ran.num else 0.1
        return batch_s * (1.0 + self.num_queued / self.batching.most_rows) / self.batching.num_workers

    async def close(self) -> None:
        """Take nothing more, answer what is queued, and end the threads."""
        if self._closed is None:
            self._closed = self._loop.create_future()
            self._check_closed()
        await asyncio.shield(self._closed)
        self._threads.shutdown(wait=False)

    def _wake(self) -> None:
        """Release after everything that came in the same turn of the loop has queued."""
        if not self._is_woken and self._num_running <= self.batching.num_workers:
            self._is_woken = True
            self._loop.call_soon(self._release)

    def _release(self) -> None:
        self._is_woken = False
        while self._num_running <= self.batching.num_workers:
            is_busy = self._num_running == self.batching.num_workers
            if self._halves and not is_busy:
                self._dispatch(self._halves.popleft(), "isolated")
                continue
            key, reason = self._chosen()
            # a full batch gets no fuller: it stands behind the one that runs, and starts when that ends
            if not reason or (is_busy and reason != "full"):
                return
            self._dispatch(self._taken(key), reason)

    def _chosen(self) -> tuple[Hashable, str]:
        """The line whose first request waits longest among those that may be released, and why it may."""
        by_age = sorted(self._lines, key=self._since_s) if len(self._lines) > 1 else self._lines
        for key in by_age:
            reason = self._reason(self._lines[key])
            if reason:
                return key, reason
        if self._lines and self._timer is None:
            due_s = min(map(self._since_s, self._lines)) + self.batching.delay_s - perf_counter()
            self._timer = self._loop.call_later(max(due_s, 0.0), self._due)
        return None, ""

    def _since_s(self, key: Hashable) -> float:
        return self._lines[key].since_s

    def _reason(self, line: _Line[Item, Out]) -> str:
        if line.num_rows >= self.batching.most_rows:
            return "full"
        if self.batching.adaptive and not self._num_running:
            return "idle"
        if perf_counter() - line.since_s >= self.batching.delay_s:
            return "due"
        return ""

    def _due(self) -> None:
        self._timer = None
        self._wake()

    def _taken(self, key: Hashable) -> list[Ticket[Item, Out]]:
        line = self._lines[key]
        batch = line.take(self.batching.most_rows)
        self.num_queued -= sum(ticket.rows for ticket in batch)
        self._forget(key, line)
        return batch

    def _forget(self, key: Hashable, line: _Line[Item, Out]) -> None:
        if not line.tickets:
            del self._lines[key]

    def _dispatch(self, batch: list[Ticket[Item, Out]], reason: str) -> None:
        self._num_running += 1
        self.meter.released[reason] += 1
        run = _Call(batch, is_again=reason == "isolated")
        call = self._threads.submit(run, self._run)
        call.add_done_callback(lambda ended: self._loop.call_soon_threadsafe(self._finish, run, ended))

    def _finish(self, run: _Call[Item, Out], call: Future[Sequence[Out]]) -> None:
        """Give each request its answer.  Where the call failed, halve the batch until who broke it stands alone."""
        self._num_running -= 1
        batch = run.batch
        self._count(run)
        error = call.exception() or _miscounted(call.result(), len(batch))
        if error is not None and len(batch) > 1:
            middle = len(batch) // 2
            self._halves += (batch[:middle], batch[middle:])
        self._release()  # before answers are written: the model has work meanwhile
        if error is None:
            for ticket, out in zip(batch, call.result(), strict=True):
                self._tell(ticket, out)
        elif len(batch) == 1:
            self.meter.num_failed += 1
            self._tell(batch[0], error)
        self._check_closed()

    def _count(self, run: _Call[Item, Out]) -> None:
        meter, batch = self.meter, run.batch
        meter.num_cancelled += run.num_cancelled
        if batch:
            meter.rows.observe(sum(ticket.rows for ticket in batch))
            meter.run_s.observe(perf_counter() - run.started_s)
        for ticket in () if run.is_again else batch:
            meter.wait_s.observe(run.started_s - ticket.queued_s)

    def _tell(self, ticket: Ticket[Item, Out], answer: Out | BaseException) -> None:
        """In a turn of its own: a listener that fails takes nobody's answer along."""
        if not ticket.is_cancelled:
            self._loop.call_soon(ticket.done, answer)

    def _check_closed(self) -> None:
        is_empty = not (self._num_running or self._lines)  # halves run at once, or something else does
        if self._closed is not None and is_empty and not self._closed.done():
            self._closed.set_result(None)


def _miscounted(answers: Sequence[object], num_items: int) -> ValueError | None:
    """A model that answers more or fewer than it was asked would swap the answers of its clients."""
    if len(answers) == num_items:
        return None
    return ValueError(f"the model answered {len(answers)} of {num_items} items")
