"""Requests sent as traffic says: by users, each after the last answer, or when they are due, whatever the others do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from random import Random
from time import perf_counter

import msgspec

from datahall.serve.http.loop import nap_s
from datahall.serve.load.prompt import prompt
from datahall.serve.load.target import Sample, Target
from datahall.workload.traffic.requests import Requests


class Drive(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent, and how."""

    requests: Requests
    users: int = 0  # 0: each when it is due
    until_s: float  # when nobody begins any more
    seed: int = 0
    salt: str = ""  # of one run, whose prompts no cache has seen in another


async def drive(target: Target, what: Drive) -> list[Sample]:
    """Send all, and wait for the last answer; samples are in the order of the requests."""
    random, start_s = Random(f"{what.seed} {what.salt}"), perf_counter()

    def now_s() -> float:
        return perf_counter() - start_s  # a loop's own clock may tick in milliseconds

    rows = _rows(target, what, random)
    if what.users:
        users = [_user(target, what, rows, now_s) for _ in range(what.users)]
        found = [sample for samples in await asyncio.gather(*users) for sample in samples]
        return sorted(found, key=lambda sample: sample.row)
    tasks: list[asyncio.Task[None]] = []
    samples: list[Sample] = []
    for row, pause_s, body in rows:
        if pause_s >= what.until_s:
            break
        await _until(pause_s, now_s)
        samples.append(_sample(what, row, pause_s))
        tasks.append(asyncio.ensure_future(target.ask(samples[-1], body, now_s)))
    await asyncio.gather(*tasks)
    return samples


def _rows(target: Target, what: Drive, random: Random) -> Iterator[tuple[int, float, bytes]]:
    """Number, arrival or pause, and body of each request, made as it is needed."""
    requests = what.requests
    for row in range(len(requests)):
        text = prompt(int(requests.prompt[row]), random)
        yield row, float(requests.arrival_s[row]), target.body(text, int(requests.output[row]))


def _sample(what: Drive, row: int, due_s: float) -> Sample:
    return Sample(row=row, due_s=due_s, prompt=int(what.requests.prompt[row]))


async def _until(due_s: float, now_s: Callable[[], float]) -> None:
    """Come back at that time, never before it, and no millisecond after it as a loop's own timers would."""
    while (left_s := due_s - now_s()) > 0.0:
        await asyncio.sleep(nap_s(left_s))


async def _user(
    target: Target, what: Drive, rows: Iterator[tuple[int, float, bytes]], now_s: Callable[[], float]
) -> list[Sample]:
    """One who asks, reads, thinks and asks again, until nothing is left to ask."""
    samples: list[Sample] = []
    for row, pause_s, body in rows:
        due_s = now_s() + pause_s
        if due_s >= what.until_s:
            break
        await _until(due_s, now_s)
        samples.append(_sample(what, row, due_s))
        await target.ask(samples[-1], body, now_s)
    return samples
