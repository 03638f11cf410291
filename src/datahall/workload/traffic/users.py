"""Closed loop: a fixed number of users, each of whom asks again only after the answer and a pause."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from datahall.errors import ScenarioError, option
from datahall.events import stream
from datahall.workload.traffic.conversation import Think
from datahall.workload.traffic.requests import CHUNK_ROWS, Floats


class Users(msgspec.Struct, frozen=True, kw_only=True):
    """So many people (or connections) at once; each takes the next session when the one before has ended.

    The rows that a simulation of users reads have in `arrival_s` the pause before the request: the first `num`
    sessions start that long after time 0, later ones that long after the user's last answer.  A pause of 0 keeps
    `num` requests in flight, as a benchmark with fixed concurrency does.
    """

    num: int
    think: Think = Think()

    def __post_init__(self) -> None:
        if self.num < 1:
            raise ScenarioError(f"{self.num} users", field="users", hint="at least 1")
        if min(self.think.mean_s, self.think.variation_ratio) < 0:
            raise ScenarioError(f"a think time of {self.think.mean_s:g} s", field="think", hint='e.g. "30s"')

    def most_sessions(self, duration_s: float) -> int:
        """Sessions that these users can start in that time even if answers take none, with 10 % to spare."""
        if self.think.mean_s == 0:
            raise ScenarioError(
                "users who never pause, for a duration",
                field="users",
                hint=f"how many requests that makes depends on the service: say how many at most, e.g. "
                f"{option('requests', 1000)}",
            )
        return int(self.num * (1.1 * duration_s / self.think.mean_s + 1)) + 1

    def pauses(self, seed: int, num: int) -> Iterator[Floats]:
        """The pause before each session, in columns of at most 65,536."""
        random = stream(seed, "arrivals", "think")
        for start in range(0, num, CHUNK_ROWS):
            yield np.asarray(self.think.draw(random, min(CHUNK_ROWS, num - start)))
