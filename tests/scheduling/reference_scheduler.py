"""A scheduler as one would write it on a page: chips are a number, every policy a few lines, nothing is quick.

It shares no code with the loop: time goes from event to event, and plans are laid anew from sets of intervals.
"""

from __future__ import annotations

from typing import NamedTuple


class Ask(NamedTuple):
    """A job of one-chip nodes."""

    submit: float
    run: float
    limit: float
    chips: int


class Promise(NamedTuple):
    start: float
    job: int


def starts(jobs: list[Ask], total: int, policy: str) -> list[float]:
    """When each job starts under fifo, gang, backfill or conservative."""
    return Reference(jobs, total, policy).play()


class Reference:
    def __init__(self, jobs: list[Ask], total: int, policy: str) -> None:
        self.jobs, self.total, self.policy = jobs, total, policy
        self.start: dict[int, float] = {}
        self.promised: dict[int, float] = {}
        self.first_promise: dict[int, float] = {}
        self.head_promises: list[tuple[float, int, float]] = []  # when, to whom, for when

    def play(self) -> list[float]:
        while len(self.start) < len(self.jobs):
            self.step(self.next_time())
        return [self.start[index] for index in range(len(self.jobs))]

    def next_time(self) -> float:
        ends = {self.start[index] + self.jobs[index].run for index in self.start}
        times = sorted({job.submit for job in self.jobs} | ends)
        return next(time for time in times if time > getattr(self, "now", -1.0))

    def step(self, now: float) -> None:
        self.now = now
        waiting = [i for i, job in enumerate(self.jobs) if job.submit <= now and i not in self.start]
        getattr(self, f"_{self.policy}")(waiting, now)

    def running(self, now: float) -> list[int]:
        return [i for i, start in self.start.items() if start <= now < start + self.jobs[i].run]

    def free(self, now: float) -> int:
        return self.total - sum(self.jobs[i].chips for i in self.running(now))

    def _fifo(self, waiting: list[int], now: float) -> None:
        for index in waiting:
            if self.jobs[index].chips > self.free(now):
                return
            self.start[index] = now

    def _gang(self, waiting: list[int], now: float) -> None:
        for index in waiting:
            if self.jobs[index].chips <= self.free(now):
                self.start[index] = now

    def _backfill(self, waiting: list[int], now: float) -> None:
        while waiting and self.jobs[waiting[0]].chips <= self.free(now):
            self.start[waiting.pop(0)] = now
        if not waiting:
            return
        head, *others = waiting
        shadow, extra = self.shadow(head, now)
        self.head_promises.append((now, head, shadow))
        for index in others:
            job = self.jobs[index]
            if job.chips > self.free(now):
                continue
            if now + job.limit <= shadow:
                self.start[index] = now
            elif job.chips <= extra:
                self.start[index] = now
                extra -= job.chips

    def shadow(self, head: int, now: float) -> tuple[float, int]:
        """When the first can start at the latest, and the chips that it leaves then."""
        free = self.free(now)
        ends = sorted((self.start[i] + self.jobs[i].limit, self.jobs[i].chips) for i in self.running(now))
        for place, (end, chips) in enumerate(ends):
            free += chips
            if free >= self.jobs[head].chips and (place + 1 == len(ends) or ends[place + 1][0] > end):
                return end, free - self.jobs[head].chips
        raise AssertionError("it never fits")

    def _conservative(self, waiting: list[int], now: float) -> None:
        for index in waiting:
            self.promised.pop(index, None) if self.promised.get(index) is None else None
            others = [(p, i) for i, p in self.promised.items() if i != index and i not in self.start]
            self.promised[index] = self.earliest(index, now, others)
            self.first_promise.setdefault(index, self.promised[index])
            if self.promised[index] == now:
                self.start[index] = now

    def earliest(self, index: int, now: float, promises: list[tuple[float, int]]) -> float:
        job = self.jobs[index]
        taken = [(now, self.start[i] + self.jobs[i].limit, self.jobs[i].chips) for i in self.running(now)]
        taken += [(p, p + self.jobs[i].limit, self.jobs[i].chips) for p, i in promises]
        times = sorted({now} | {end for _, end, _ in taken if end > now} | {start for start, _, _ in taken})
        for time in times:
            inside = [time] + [start for start, _, _ in taken if time < start < time + job.limit]
            if all(
                job.chips + sum(c for start, end, c in taken if start <= moment < end) <= self.total
                for moment in inside
            ):
                return time
        raise AssertionError("it never fits")
