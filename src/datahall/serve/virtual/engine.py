"""A simulated fleet under a clock: who asks is answered when the simulation says, and not before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from time import perf_counter, time

from datahall.serve.http import Exchange, error_body
from datahall.serve.http.loop import nap_s
from datahall.serve.modelserver.refused import Refused
from datahall.serve.virtual.course import Course, Told
from datahall.serve.virtual.meter import Meter
from datahall.serve.virtual.speech import Answering, Ask

FULL_S = 5.0  # after which to come again


class Engine:
    """Plays a course as time passes; `speed_ratio` is simulated seconds in a second."""

    def __init__(
        self,
        course: Course,
        *,
        usual_output: int,
        speed_ratio: float = 1.0,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self.course = course
        self.meter = Meter()
        self._usual_output = usual_output
        self._speed_ratio = speed_ratio
        self._clock = clock
        self._start_s = clock()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._wakes_s = float("inf")
        self._open: dict[int, _Turn] = {}
        self._later: list[tuple[float, int, Told]] = []  # on its way to clients
        self._order = count()

    def now_s(self) -> float:
        """Simulated time."""
        return (self._clock() - self._start_s) * self._speed_ratio

    def ask(self, exchange: Exchange, asked: Ask) -> None:
        """Take a request; it is answered as time passes."""
        if not self.course.has_room:
            raise Refused(503, "more requests are open than this engine keeps", retry_after_s=FULL_S)
        now_s = max(self.now_s(), self.course.now_s)
        row, told = self.course.arrive(now_s, asked.prompt, asked.output or self._usual_output)
        self._open[row] = _Turn(exchange, asked, row, now_s, self.meter)
        exchange.on_gone(lambda: self._leave(row))
        self._tell(told)
        if row in self._open:
            self.meter.prompt_tokens += asked.prompt
        self._sleep()

    def take_out(self, replica: int, duration_s: float, *, drain: bool) -> None:
        """A replica fails now, or is drained."""
        self.wake()
        self.course.take_out(replica, self.course.now_s, duration_s, drain=drain)
        self.wake()

    def wake(self) -> None:
        """Play what is due."""
        self._wakes_s = float("inf")
        self._tell(self.course.play(max(self.now_s(), self.course.now_s)))
        self._sleep()

    def close(self) -> None:
        """Nothing happens any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _leave(self, row: int) -> None:
        if self._open.pop(row, None) is not None:
            self.meter.ended["abort"] += 1
            self._tell(self.course.play(max(self.now_s(), self.course.now_s)))
            self.course.leave(row)
            self._sleep()

    def _tell(self, told: list[Told]) -> None:
        """Say what has arrived by now, in the order of its coming: what is on its way is said later."""
        for one in told:
            heappush(self._later, (one.at_s, next(self._order), one))
        while self._later and self._later[0][0] <= self.course.now_s:
            self._say(heappop(self._later)[2])

    def _say(self, one: Told) -> None:
        turn = self._open.get(one.row)
        if turn is None:
            return
        if one.is_last:
            del self._open[one.row]
        turn.hear(one)

    def _sleep(self) -> None:
        due_s = self.course.next_s()
        if self._later:
            due_s = min(due_s, self._later[0][0])
        if due_s == self._wakes_s:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._wakes_s = due_s
        if due_s < float("inf"):
            self._nap()

    def _nap(self) -> None:
        left_s = (self._wakes_s - self.now_s()) / self._speed_ratio
        self._timer = self._loop.call_later(nap_s(left_s), self._ring)

    def _ring(self) -> None:
        if self.now_s() < self._wakes_s:
            self._nap()
        else:
            self.wake()


class _Turn:
    """One request that is open."""

    def __init__(self, exchange: Exchange, asked: Ask, row: int, came_s: float, meter: Meter) -> None:
        kind = "chatcmpl" if asked.is_chat else "cmpl"
        self._exchange = exchange
        self._asked = asked
        self._answering = Answering(f"{kind}-{row:012x}", asked, int(time()))
        self._came_s = came_s
        self._first_s = self._last_s = -1.0
        self._said = 0
        self._meter = meter

    def hear(self, told: Told) -> None:
        """Tokens, the end, or a refusal."""
        if told.refused:
            self._meter.ended["error"] += 1
            code = "context_length_exceeded"
            self._exchange.send(400, error_body(400, f"the request is {told.refused}", code=code))
            return
        self._count(told)
        exchange, said = self._exchange, self._said
        self._said += told.num_tokens
        if self._asked.is_stream:
            if not exchange.is_started:
                exchange.start(200, (("Cache-Control", "no-cache"),))
            if told.num_tokens:
                exchange.write(self._answering.piece(said, told.num_tokens))
            if told.is_last:
                exchange.write(self._answering.last(self._said, told.hit))
                exchange.end()
        elif told.is_last:
            exchange.send(200, self._answering.whole(self._said, told.hit))

    def _count(self, told: Told) -> None:
        meter, num = self._meter, self._said + told.num_tokens
        meter.generation_tokens += told.num_tokens
        if told.num_tokens and self._first_s < 0.0:
            self._first_s = told.at_s
            meter.first_s.observe(told.at_s - self._came_s)
        elif told.num_tokens:
            meter.gap_s.observe(told.at_s - self._last_s)
        self._last_s = told.at_s
        if told.is_last:
            meter.ended["length"] += 1
            meter.end_s.observe(told.at_s - self._came_s)
            if num > 1:
                meter.token_s.observe((told.at_s - self._first_s) / (num - 1))
