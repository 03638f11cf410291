"""A circuit breaker: an upstream that fails again and again is left alone, then tried by one request at a time."""

from __future__ import annotations

from random import Random

FAILURES = 5  # one after another
FIRST_S, LONGEST_S = 1.0, 30.0  # that it stays open, doubled by each trial that fails
JITTER = 0.2  # so that gateways do not try all at once


class Breaker:
    """Closed: requests pass.  Open: none does, until a moment.  Then half open: one, and its outcome decides."""

    __slots__ = ("_failures", "_is_trying", "_open_s", "_random", "_until_s")

    def __init__(self, random: Random) -> None:
        self._random = random
        self._failures = 0
        self._open_s = 0.0  # how long it was opened for; 0: closed
        self._until_s = 0.0
        self._is_trying = False

    @property
    def is_closed(self) -> bool:
        return self._open_s == 0.0

    def allows(self, now_s: float) -> bool:
        """Whether a request may pass."""
        return self._open_s == 0.0 or (now_s >= self._until_s and not self._is_trying)

    def wait_s(self, now_s: float) -> float:
        """How long until one may."""
        return 0.0 if self._open_s == 0.0 else max(0.0, self._until_s - now_s)

    def begin(self) -> None:
        """A request passes."""
        self._is_trying = self._open_s > 0.0

    def succeed(self) -> None:
        self._failures = 0
        self._open_s = 0.0
        self._is_trying = False

    def fail(self, now_s: float) -> None:
        self._failures += 1
        if self._open_s > 0.0 and not self._is_trying:
            return  # it began before the breaker opened
        if self._is_trying or self._failures >= FAILURES:
            self._is_trying = False
            self._open_s = min(LONGEST_S, max(FIRST_S, 2 * self._open_s))
            self._until_s = now_s + self._open_s * (1 + JITTER * self._random.uniform(-1, 1))

    def give_up(self) -> None:
        """A request ended without a word about the upstream, as its client left."""
        self._is_trying = False
