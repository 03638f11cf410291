"""Requests as columns: what every source of traffic yields and every engine takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.errors import ScenarioError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CHUNK_ROWS = 65_536  # most rows of one chunk: ten columns of it are 5 MB, whatever the length of the run


class Requests(msgspec.Struct, frozen=True, kw_only=True):
    """Some requests, in the order of their arrival.

    Open loop: `arrival_s` is absolute and rises.  A turn of a conversation has the row of the turn before it in
    `after` and arrives `arrival_s` seconds after that one ended (think time); −1 where it waits for none.
    The first `shared` tokens of a prompt are those of every request of the same `group` (a system prompt); what
    follows is the request's own, or that of its `session`: the prompt of a later turn begins with the whole of the
    earlier turn and its answer.

    `after` counts the rows of these requests and points to an earlier one; a run in chunks is cut between sessions.
    Turns that are drawn stand behind each other, so only rows that wait for none rise in time.
    """

    arrival_s: Floats
    prompt: Ints  # tokens of the whole prompt, history included
    output: Ints  # tokens generated until it ends
    after: Ints
    group: Ints  # −1: shares nothing
    shared: Ints  # tokens of the group's prefix
    session: Ints  # requests of one session share their history; unique where there is none
    priority: Ints  # lower goes first
    cached: Ints = msgspec.field(
        default_factory=lambda: np.zeros(0, np.int64)
    )  # tokens of the prompt that caches hold from before the run; empty: none
    blocks: Ints = msgspec.field(
        default_factory=lambda: np.zeros(0, np.int64)
    )  # chained block keys of a trace, …
    block_start: Ints = msgspec.field(
        default_factory=lambda: np.zeros(0, np.int64)
    )  # … row by row; empty: from above
    block_tokens: int = 0  # tokens of one key of `blocks`

    def __len__(self) -> int:
        return int(self.arrival_s.size)

    @classmethod
    def of(cls, arrival_s: Floats, prompt: Ints, output: Ints, first_session: int = 0) -> Requests:
        """Independent requests that share nothing."""
        num = arrival_s.size
        alone = np.full(num, -1, np.int64)
        none = np.zeros(num, np.int64)
        return cls(
            arrival_s=arrival_s,
            prompt=prompt,
            output=output,
            after=alone,
            group=alone,
            shared=none,
            session=np.arange(first_session, first_session + num, dtype=np.int64),
            priority=none,
        )

    def rows(self, start: int, stop: int) -> Requests:
        """Some neighbouring rows, none of which waits for a row before them.

        `block_start` has one entry more than there are rows: the keys of row i are
        `blocks[block_start[i]:block_start[i + 1]]`.
        """
        start, stop = max(0, start), min(stop, len(self))
        columns = {name: getattr(self, name)[start:stop] for name in (*COLUMNS, "cached")}
        if start and np.any(columns["after"] >= 0):
            columns["after"] = np.where(columns["after"] >= 0, columns["after"] - start, -1)
            if columns["after"].min() < -1 or np.any((self.after[start:stop] >= 0) & (columns["after"] < 0)):
                raise ScenarioError(
                    f"rows {start} to {stop} begin within a session",
                    where="requests",
                    hint="cut with in_chunks",
                )
        if self.block_start.size:
            places = self.block_start[start : stop + 1]
            columns["blocks"] = self.blocks[places[0] : places[-1]]
            columns["block_start"] = places - places[0]
        return Requests(**columns, block_tokens=self.block_tokens)

    def chosen(self, kept: NDArray[np.bool_]) -> Requests:
        """Some of the rows, wherever they stand; with a turn also those that it waits for."""
        columns = {name: getattr(self, name)[kept] for name in COLUMNS}
        if self.cached.size:
            columns["cached"] = self.cached[kept]
        place = np.cumsum(kept) - 1
        columns["after"] = np.where(columns["after"] >= 0, place[columns["after"]], -1)
        if self.block_start.size:
            counts = np.diff(self.block_start)
            columns["blocks"] = self.blocks[np.repeat(kept, counts)]
            columns["block_start"] = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts[kept])))
        return Requests(**columns, block_tokens=self.block_tokens)


COLUMNS = ("arrival_s", "prompt", "output", "after", "group", "shared", "session", "priority")


def join(parts: Iterable[Requests]) -> Requests:
    """Chunks of one run as one; all have block keys, or none has, and so with what is cached."""
    chunks = list(parts)
    if not chunks:
        return Requests.of(np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64))
    columns = {
        name: np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in (*COLUMNS, "cached")
    }
    sizes = np.array([len(chunk) for chunk in chunks])
    before = np.repeat(np.cumsum(sizes) - sizes, sizes)
    columns["after"] = np.where(columns["after"] >= 0, columns["after"] + before, -1)
    if chunks[0].block_start.size:
        columns["blocks"] = np.concatenate([chunk.blocks for chunk in chunks])
        counts = np.concatenate([np.diff(chunk.block_start) for chunk in chunks])
        columns["block_start"] = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    return Requests(**columns, block_tokens=chunks[0].block_tokens)


def in_chunks(parts: Iterable[Requests], chunk_rows: int) -> Iterator[Requests]:
    """The same rows in pieces of at most `chunk_rows`, or of one session where that is longer."""
    for part in parts:
        if len(part) <= chunk_rows:
            if len(part):
                yield part
            continue
        cuts = _cuts(part)
        start = 0
        while start < len(part):
            place = int(np.searchsorted(cuts, start + chunk_rows, side="right")) - 1
            stop = int(cuts[place] if cuts[place] > start else cuts[place + 1])
            yield part.rows(start, stop)
            start = stop


def _cuts(requests: Requests) -> Ints:
    """Rows before which nothing waits for anything earlier: 0, the starts between sessions, and the end."""
    later = np.flatnonzero(requests.after >= 0)
    open_sessions = np.zeros(len(requests) + 2, np.int64)
    np.add.at(open_sessions, requests.after[later] + 1, 1)
    np.add.at(open_sessions, later + 1, -1)
    return np.flatnonzero(np.cumsum(open_sessions)[:-1] == 0)
