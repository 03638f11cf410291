"""One upstream: how it is reached, what it has to do, and how it has been doing."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Literal

from datahall.serve.http import Timeouts
from datahall.serve.upstreams.breaker import Breaker
from datahall.serve.upstreams.reach import Reach

Api = Literal["openai", "anthropic", "inference"]
INFERENCE: Api = "inference"
SMOOTHING_SHARE = 0.2  # of a new latency in the mean
NEVER_TRIED_S = 0.0


class Upstream:
    """A server that answers for models."""

    __slots__ = (
        "api", "base", "breaker", "headers", "health_path", "is_drained", "is_well", "kv_used_fraction", "latency_s",
        "metrics_path", "most", "name", "not_before_s", "num_failed", "num_open", "num_waiting", "on_room", "reach",
        "timeouts",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        reach: Reach,
        random: Random,
        *,
        api: Api = "openai",
        base: str = "/v1",
        timeouts: Timeouts | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        most: int = 0,
        health_path: str = "",
        metrics_path: str = "",
    ) -> None:
        self.name = name
        self.reach = reach
        self.api = api
        self.base = base  # path before those of its API
        self.timeouts = timeouts or Timeouts()
        self.headers = headers  # its key among them
        self.most = most  # requests at once; 0: any number
        self.health_path, self.metrics_path = health_path, metrics_path
        self.breaker = Breaker(random)
        self.is_well = True  # as its probe says
        self.is_drained = False  # as who runs the gateway says: nothing new is sent there
        self.not_before_s = 0.0  # as its Retry-After said
        self.num_open = 0  # our requests there
        self.num_waiting = 0.0  # requests of anybody in its own queue, as its gauges say
        self.kv_used_fraction = 0.0
        self.latency_s = NEVER_TRIED_S
        self.num_failed = 0
        self.on_room: list[Callable[[], None]] = []  # pools that may have requests waiting

    def is_ready(self, now_s: float) -> bool:
        """Whether it may be asked at all."""
        return (
            self.is_well and not self.is_drained and now_s >= self.not_before_s and self.breaker.allows(now_s)
        )

    def has_room(self) -> bool:
        return not self.most or self.num_open < self.most

    def wait_s(self, now_s: float) -> float:
        """How long until it may be asked again."""
        return max(self.not_before_s - now_s, self.breaker.wait_s(now_s), 0.0)

    def drain(self) -> None:
        """Send nothing new there; what has begun ends there."""
        self.is_drained = True

    def enable(self) -> None:
        """Send there again; who waits for room is told."""
        self.is_drained = False
        for tell in self.on_room:
            tell()

    # one request

    def begin(self) -> None:
        self.num_open += 1
        self.breaker.begin()

    def end(self) -> None:
        """A request is over, however it went."""
        self.num_open -= 1
        if self.most:
            for tell in self.on_room:
                tell()

    def did_well(self, latency_s: float) -> None:
        self.breaker.succeed()
        self.latency_s += (latency_s - self.latency_s) * (SMOOTHING_SHARE if self.latency_s else 1.0)

    def did_fail(self, now_s: float) -> None:
        self.num_failed += 1
        self.breaker.fail(now_s)

    def asked_for_time(self, now_s: float, wait_s: float) -> None:
        """It is well, and has too much to do."""
        self.breaker.give_up()
        self.not_before_s = max(self.not_before_s, now_s + wait_s)

    def told_nothing(self) -> None:
        """Who asked has left."""
        self.breaker.give_up()
