"""Deadlines of many connections by one timer: a deadline is an attribute, so that setting one costs nothing."""

from __future__ import annotations

import asyncio
import math
from typing import Protocol

NEVER = math.inf
TICK_S = 0.05  # how late a deadline may be felt


class Watched(Protocol):
    """A thing with a deadline, in the loop's time, and what happens then."""

    deadline_s: float

    def expire(self) -> None: ...


class Deadlines:
    """Looks at everything that it watches every tick, and sleeps while there is nothing."""

    __slots__ = ("_loop", "_timer", "_watched")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._watched: set[Watched] = set()
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, one: Watched) -> None:
        self._watched.add(one)
        if self._timer is None:
            self._timer = self._loop.call_later(TICK_S, self._tick)

    def forget(self, one: Watched) -> None:
        self._watched.discard(one)
        if not self._watched and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self._timer = self._loop.call_later(TICK_S, self._tick)
        now_s = self._loop.time()
        for one in [one for one in self._watched if one.deadline_s <= now_s]:
            one.deadline_s = NEVER
            one.expire()
