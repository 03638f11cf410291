"""Traffic on its way into the simulation: chunks of requests as rows of the kernel's own kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from datahall.errors import ScenarioError
from datahall.inference.simulation.state import NONE, ROW, Records
from datahall.workload.traffic.requests import Requests

CHUNK = 65_536  # rows that are in memory at once, where conversations do not tie them together

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Piece: TypeAlias = tuple[Records, Records, Ints]


class Feed:
    """Rows in the order of their arrival, and the turns that follow some of them."""

    def __init__(
        self,
        traffic: Requests | Iterable[Requests],
        *,
        cached_tokens: NDArray[np.generic] | None = None,
        answer_s: Floats | None = None,
        region: Ints | None = None,
        open_loop: bool = True,
        luck: np.random.Generator | None = None,
        picks: np.random.Generator | None = None,
    ) -> None:
        self._chunks = iter((traffic,) if isinstance(traffic, Requests) else traffic)
        self._beside = {"cached": cached_tokens, "answer_s": answer_s, "region": region}
        self._open = open_loop
        self._luck, self._picks = luck, picks  # draws for speculation and for routing, where either takes any
        self._num_seen = 0
        self._last_s = -np.inf
        self._pieces: list[Piece] = []  # of the chunk that was read last, the next at the end
        self.keys = np.zeros(1, np.int64)
        self.explicit_tokens = 0
        self.any_priority = False

    def next_rows(self) -> Piece | None:
        """Rows that come on their own, rows that follow another, and the place of each one's predecessor.

        A place counts the rows that come on their own first, then those that follow.
        """
        while not self._pieces:
            requests = next(self._chunks, None)
            if requests is None:
                return None
            self._pieces = self._cut(requests)
        return self._pieces.pop()

    def _cut(self, requests: Requests) -> list[Piece]:
        """A chunk in pieces, the last first; a generator would hold the feed that holds it, and all its rows."""
        rows = self._rows(requests)
        follows = requests.after >= 0
        if not follows.any():
            starts = range(0, len(requests), CHUNK)
            return [(rows[one : one + CHUNK], rows[:0], requests.after[:0]) for one in reversed(starts)]
        place = np.empty(len(requests), np.int64)
        place[~follows] = np.arange((~follows).sum())
        place[follows] = (~follows).sum() + np.arange(follows.sum())
        return [(rows[~follows], rows[follows], place[requests.after[follows]])]

    def _rows(self, requests: Requests) -> Records:
        num, start = len(requests), self._num_seen
        check(requests)
        rows = np.zeros(num, ROW)
        for name in ("arrival_s", "prompt", "output", "group", "shared", "session", "priority"):
            rows[name] = getattr(requests, name)
        rows["row"], rows["child"], rows["answer_s"] = np.arange(start, start + num), NONE, -1.0
        if requests.cached.size:
            rows["cached"] = requests.cached
        for name, column in self._beside.items():
            if column is not None:
                if column.size < start + num:
                    raise ScenarioError(
                        f"{name}: {column.size:,} values for at least {start + num:,} requests",
                        hint="one for each request",
                    )
                rows[name] = column[start : start + num]
        if requests.blocks.size:
            ends = np.append(requests.block_start, requests.blocks.size)[: num + 1]
            rows["key_start"], rows["key_count"] = ends[:-1] + self.keys.size, np.diff(ends)
            self.keys = np.concatenate([self.keys, requests.blocks])
            self.explicit_tokens = requests.block_tokens
        if self._luck is not None:
            rows["luck"] = self._luck.standard_normal(num)
        if self._picks is not None:
            rows["pick"] = self._picks.integers(0, 1 << 62, num)
        self._num_seen += num
        alone = requests.arrival_s[requests.after < 0]
        if self._open and alone.size:
            if alone[0] < self._last_s or np.any(np.diff(alone) < 0):
                raise ScenarioError(
                    "requests are not in the order of their arrival", hint="sort them by arrival_s"
                )
            self._last_s = float(alone[-1])
        self.any_priority |= bool(np.any(requests.priority != 0))
        return rows


def shares_prefixes(requests: Requests) -> bool:
    """Whether any two requests begin with the same tokens."""
    return bool(
        requests.blocks.size
        or np.any(requests.after >= 0)
        or np.any((requests.group >= 0) & (requests.shared > 0))
        or _again(requests.session)
    )


def _again(session: Ints) -> bool:
    """Whether a session comes twice; numbers that only rise need no sorting."""
    return not np.all(np.diff(session) > 0) and np.unique(session).size < session.size


def check(requests: Requests) -> None:
    """Lengths and times that make sense."""
    for name, least in (("prompt", 1), ("output", 1), ("arrival_s", 0)):
        column = getattr(requests, name)
        wrong = np.flatnonzero(~(column >= least))
        if wrong.size:
            raise ScenarioError(
                f"request {wrong[0]} has {name} = {column[wrong[0]]}",
                hint=f"{name} of {least} or more in each request",
            )
