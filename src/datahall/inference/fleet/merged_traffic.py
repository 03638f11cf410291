"""Several streams of requests as one, in the order of their arrival."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.errors import ScenarioError
from datahall.workload.traffic.requests import COLUMNS, Requests

Ints = NDArray[np.int64]


def merge(streams: Sequence[Iterator[Requests]]) -> Iterator[tuple[Requests, Ints]]:
    """Chunks of all streams together, and the stream of each row; sessions and groups stay apart.

    Each stream has one chunk in hand.  What begins before the earliest end of these chunks is sure to come next; a
    later turn stands behind the turn that it follows, so a chunk is cut where a session begins.
    """
    if len(streams) == 1:  # arrivals of users are pauses, which do not rise
        yield from ((chunk, np.zeros(len(chunk), np.int64)) for chunk in streams[0])
        return
    hands: list[Requests | None] = [next(one, None) for one in streams]
    while any(hand is not None for hand in hands):
        there = [(place, hand) for place, hand in enumerate(hands) if hand is not None]
        until_s = min(float(hand.arrival_s[hand.after < 0][-1]) for _, hand in there)
        ready: list[tuple[int, Requests]] = []
        for place, hand in there:
            late = np.flatnonzero((hand.after < 0) & (hand.arrival_s > until_s))
            cut = int(late[0]) if late.size else len(hand)
            if cut:
                ready.append((place, hand.rows(0, cut)))
            hands[place] = hand.rows(cut, len(hand)) if cut < len(hand) else next(streams[place], None)
        yield _woven(ready, len(streams))


def _woven(parts: list[tuple[int, Requests]], num_streams: int) -> tuple[Requests, Ints]:
    """Rows of several chunks sorted by the start of their session, the turns of each behind it."""
    if any(part.blocks.size for _, part in parts):
        raise ScenarioError(
            "a trace with block keys cannot be mixed with other traffic",
            where="traffic",
            hint="simulate it alone, or take its keys out",
        )
    columns = {name: np.concatenate([getattr(part, name) for _, part in parts]) for name in COLUMNS}
    sizes = np.array([len(part) for _, part in parts])
    stream = np.repeat(np.array([place for place, _ in parts], np.int64), sizes)
    before = np.repeat(np.cumsum(sizes) - sizes, sizes)
    follows = columns["after"] >= 0
    columns["after"] = np.where(follows, columns["after"] + before, -1)
    columns["session"] = columns["session"] * num_streams + stream
    columns["group"] = np.where(columns["group"] >= 0, columns["group"] * num_streams + stream, -1)
    order = np.argsort(_start_s(columns["arrival_s"], follows), kind="stable")
    position = np.empty(order.size, np.int64)
    position[order] = np.arange(order.size)
    columns = {name: column[order] for name, column in columns.items()}
    columns["after"] = np.where(columns["after"] >= 0, position[columns["after"]], -1)
    return Requests(**columns, block_tokens=0), stream[order]


def _start_s(arrival_s: NDArray[np.float64], follows: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The latest start at or before each row: that of its session, or of one that began between its turns."""
    begins = np.flatnonzero(~follows)
    latest = begins[np.cumsum(~follows) - 1]
    return np.asarray(arrival_s[latest])


def with_priority(requests: Requests, priority: int) -> Requests:
    """The same requests, all as urgent as that; lower goes first."""
    return msgspec.structs.replace(requests, priority=requests.priority + priority) if priority else requests
