"""The targets of one model, and the bounded line of requests that wait for room at one of them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from datahall.serve.upstreams.routing import Hint, Policy, Target

PRIORITIES = ("high", "normal", "low")
NORMAL = PRIORITIES.index("normal")
BUSY_S = 1.0  # what a request that finds the line full is told to wait


class NoTarget(Exception):
    """No upstream can take a request now; when one may."""

    def __init__(self, message: str, wait_s: float) -> None:
        super().__init__(message)
        self.message = message
        self.wait_s = wait_s


class _Waiting:
    """A request in the line, and the targets that it has tried."""

    __slots__ = ("hint", "place", "tried")

    def __init__(self, hint: Hint, tried: Sequence[Target], place: asyncio.Future[Target]) -> None:
        self.hint = hint
        self.tried = tried
        self.place = place


class Pool:
    """Gives targets to requests: at once, or in the order of their priorities and of their coming."""

    def __init__(self, model: str, targets: Sequence[Target], policy: Policy, most_waiting: int) -> None:
        self.model = model
        self.targets = tuple(targets)
        self._policy = policy
        self._most_waiting = most_waiting
        self._lines: tuple[deque[_Waiting], ...] = tuple(deque() for _ in PRIORITIES)
        self.num_waiting = 0
        self._is_retired = False
        for target in self.targets:
            target.upstream.on_room.append(self._give_room)

    def free(self, hint: Hint, tried: Sequence[Target], now_s: float) -> Target | None:
        """A target for a request, begun there; nothing where none that it has not tried is ready and has room."""
        if len(self.targets) == 1:
            ready: Sequence[Target] = self.targets
            upstream = ready[0].upstream
            if ready[0] in tried or not upstream.is_ready(now_s) or not upstream.has_room():
                return None
        else:
            ready = [
                target
                for target in self.targets
                if target.upstream.is_ready(now_s) and target.upstream.has_room() and target not in tried
            ]
            if not ready:
                return None
        target = ready[0] if len(ready) == 1 else self._policy(ready, hint)
        target.upstream.begin()
        return target

    def has_ready(self, tried: Sequence[Target], now_s: float) -> bool:
        """Whether a target that was not tried may be asked, be it after a wait."""
        return any(target.upstream.is_ready(now_s) for target in self.targets if target not in tried)

    async def take(
        self, hint: Hint, tried: Sequence[Target], priority: int, wait_s: float, now_s: float
    ) -> Target:
        """A target, as soon as there is room; raises where there is none to wait for, or the wait is too long."""
        if not self.num_waiting:
            target = self.free(hint, tried, now_s)
            if target is not None:
                return target
        left = [target for target in self.targets if target not in tried]
        if not left:
            raise NoTarget(f"every upstream of {self.model} was tried", BUSY_S)
        if not self.has_ready(tried, now_s):
            soonest_s = min(target.upstream.wait_s(now_s) for target in left)
            raise NoTarget(f"no upstream of {self.model} can be asked now", soonest_s or BUSY_S)
        if wait_s <= 0:
            raise NoTarget(f"all upstreams of {self.model} are busy", BUSY_S)
        if self.num_waiting >= self._most_waiting:
            self._shed(priority)
        waiting = _Waiting(hint, tried, asyncio.get_running_loop().create_future())
        self._lines[priority].append(waiting)
        self.num_waiting += 1
        try:
            async with asyncio.timeout(wait_s):
                return await waiting.place
        except TimeoutError:
            if waiting.place.done() and not waiting.place.cancelled() and waiting.place.exception() is None:
                return waiting.place.result()
            raise NoTarget(f"no upstream of {self.model} had room within {wait_s:.3g} s", BUSY_S) from None
        except asyncio.CancelledError:
            if waiting.place.done() and not waiting.place.cancelled() and waiting.place.exception() is None:
                waiting.place.result().upstream.told_nothing()
                waiting.place.result().upstream.end()
            raise
        finally:
            if waiting in self._lines[priority]:
                self._lines[priority].remove(waiting)
                self.num_waiting -= 1
            self._part()

    def retire(self) -> None:
        """Nobody new comes to this pool: whom it has waiting go on, and then it hears of no upstream any more."""
        self._is_retired = True
        self._part()

    def _part(self) -> None:
        if self._is_retired and not self.num_waiting:
            for target in self.targets:
                if self._give_room in target.upstream.on_room:
                    target.upstream.on_room.remove(self._give_room)

    def _shed(self, priority: int) -> None:
        """Make place for a request by sending away the last of the least, where that is less than this."""
        for line in reversed(self._lines[priority + 1 :]):
            if line:
                self.num_waiting -= 1
                line.pop().place.set_exception(NoTarget("gave way to a request of higher priority", BUSY_S))
                return
        raise NoTarget(f"{self.num_waiting} requests wait for {self.model} already", BUSY_S)

    def _give_room(self) -> None:
        """Something ended: who is first in line goes on."""
        now_s = asyncio.get_running_loop().time() if self.num_waiting else 0.0
        for line in self._lines:
            while line:
                first = line[0]
                if first.place.done():  # he has gone, and his task has not been told yet
                    line.popleft()
                    self.num_waiting -= 1
                    continue
                target = self.free(first.hint, first.tried, now_s)
                if target is None:
                    return
                line.popleft()
                self.num_waiting -= 1
                first.place.set_result(target)
