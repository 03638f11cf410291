"""One version of a model in memory: its runner, the batcher before it, and how long its answers took."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import TypeAlias

import numpy as np

from datahall.serve.modelserver.batcher import Batcher, Batching, Ticket
from datahall.serve.modelserver.refused import BadInput, Refused
from datahall.serve.modelserver.runners.runner import Arrays, Runner
from datahall.serve.modelserver.tensor import ANY, DATATYPES, Array

KEPT_LATENCIES = 100
Done: TypeAlias = Callable[[Arrays | BaseException], None]


class Version:
    """A model that answers. Rows of many clients run together where the model takes rows, else one by one."""

    def __init__(self, name: str, version: str, runner: Runner, batching: Batching) -> None:
        self.name = name
        self.version = version
        self.runner = runner
        self.latencies_s: deque[float] = deque(maxlen=KEPT_LATENCIES)
        self.batcher: Batcher[Arrays, Arrays] = Batcher(self._run, batching)

    def submit(self, arrays: Arrays, done: Done) -> Asked:
        """Ask; more rows than a batch has are asked in pieces, and answered as one."""
        if not self.runner.has_rows:
            return Asked(self, [self.batcher.submit(arrays, done)])
        rows = _rows(arrays)
        key = tuple((array.dtype.str, array.shape[1:]) for array in arrays.values())
        most = self.batcher.batching.most_rows
        if rows <= most:
            return Asked(self, [self.batcher.submit(arrays, done, rows=rows, key=key)])
        if rows > (room := self.batcher.batching.most_queued):
            raise BadInput(f"{rows} rows in one request, where the queue has room for {room}")
        whole = Gathered(-(-rows // most), done)
        asked = Asked(self, [])
        for place, start in enumerate(range(0, rows, most)):
            piece = {name: array[start : start + most] for name, array in arrays.items()}
            try:
                ticket = self.batcher.submit(piece, whole.listener(place), rows=_rows(piece), key=key)
            except Refused:
                asked.cancel()
                raise
            asked.tickets.append(ticket)
        return asked

    @property
    def mean_latency_s(self) -> float:
        """Of the last answers."""
        return sum(self.latencies_s) / len(self.latencies_s) if self.latencies_s else 0.0

    async def warm_up(self) -> None:
        """Run one row of zeros, then a full batch, so that no client pays for what the first call sets up."""
        most_rows = self.batcher.batching.most_rows
        for rows in (1, most_rows) if self.runner.has_rows else (1,):
            zeros = self._zeros(rows)
            if zeros is not None:
                with ThreadPoolExecutor(1) as thread:
                    # a model may refuse zeros: that says nothing about what clients will send
                    call = asyncio.wrap_future(thread.submit(self.runner.run, zeros))
                    await asyncio.gather(call, return_exceptions=True)

    async def close(self) -> None:
        """Answer what is queued, then let the model go."""
        await self.batcher.close()

    def _zeros(self, rows: int) -> Arrays | None:
        """Input of zeros; nothing where the model does not say how large its rows are."""
        zeros = {}
        for one in self.runner.inputs:
            shape = (rows, *one.shape[1:]) if self.runner.has_rows else one.shape
            if one.is_open or ANY in shape or one.datatype == "BYTES":
                return None
            zeros[one.name] = np.zeros(shape, DATATYPES[one.datatype])
        return zeros

    def _run(self, items: list[Arrays]) -> Sequence[Arrays]:
        """One call for all; on a thread of the batcher."""
        if not self.runner.has_rows:
            return [self.runner.run(items[0])]
        joined = items[0] if len(items) == 1 else {
            name: np.concatenate([item[name] for item in items]) for name in items[0]
        }  # fmt: skip
        outputs = self.runner.run(joined)
        rows = _rows(joined)
        for name, array in outputs.items():
            if array.shape[:1] != (rows,):
                raise ValueError(f"{name} of the model has shape {array.shape} after {rows} rows were sent")
        ends = np.cumsum([_rows(item) for item in items]).tolist()
        return [
            {name: array[end - _rows(item) : end] for name, array in outputs.items()}
            for item, end in zip(items, ends, strict=True)
        ]


class Asked:
    """A request on its way through a version; whoever sent it may leave."""

    __slots__ = ("_version", "asked_s", "tickets")

    def __init__(self, version: Version, tickets: list[Ticket[Arrays, Arrays]]) -> None:
        self._version = version
        self.tickets = tickets
        self.asked_s = perf_counter()

    def cancel(self) -> None:
        for ticket in self.tickets:
            self._version.batcher.cancel(ticket)


class Gathered:
    """The pieces of a request that was larger than a batch; who asked hears once, of all or of the first failure."""

    def __init__(self, num_pieces: int, done: Done) -> None:
        self._pieces: list[Arrays | None] = [None] * num_pieces
        self._done: Done | None = done

    def listener(self, place: int) -> Done:
        def hear(answer: Arrays | BaseException) -> None:
            if self._done is None:
                return
            if isinstance(answer, BaseException):
                self._finish(answer)
                return
            self._pieces[place] = answer
            pieces = [piece for piece in self._pieces if piece is not None]
            if len(pieces) == len(self._pieces):
                self._finish({name: np.concatenate([one[name] for one in pieces]) for name in pieces[0]})

        return hear

    def _finish(self, answer: Arrays | BaseException) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(answer)


def _rows(arrays: Arrays) -> int:
    """Rows of a request, of which all inputs have as many."""
    counts = {_first(array) for array in arrays.values()}
    if len(counts) != 1:
        raise BadInput(f"inputs of {' and '.join(map(str, sorted(counts)))} rows in one request")
    (rows,) = counts
    if not rows:
        raise BadInput("no rows")
    return rows


def _first(array: Array) -> int:
    return int(array.shape[0])
