"""Processes that answer: who leaves ends the work, who answered is kept, and too many are told to come again."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable

import pytest

from datahall.studio import bench as room
from datahall.studio.bench import Bench, Full
from datahall.studio.task import Done, Message, Progress, Task

TASK = Task(verb="show fit")
DONE = Done("text/plain", b"yes")


class Worker:
    """Says what a test puts in."""

    def __init__(self) -> None:
        self.says: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.asked: list[Task] = []
        self.is_alive = True

    def tell(self, task: Task) -> None:
        self.asked.append(task)

    def hear(self) -> Message:
        return self.says.get()

    def end(self) -> None:
        self.is_alive = False
        self.says.put(DONE)  # so that its thread ends


def made(num: int) -> tuple[Bench, list[Worker]]:
    started: list[Worker] = []

    def start() -> Worker:
        started.append(Worker())
        return started[-1]

    factory: Callable[[], room.Worker] = start  # type: ignore[assignment]
    return Bench(num, factory), started


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(5.0):
        while not condition():
            await asyncio.sleep(0.001)


async def all_of(bench: Bench) -> list[Message]:
    return [message async for message in bench.answer(TASK)]


def test_how_far_it_is_comes_before_the_answer_and_the_process_is_kept() -> None:
    async def work() -> None:
        bench, started = made(2)
        first = asyncio.ensure_future(all_of(bench))
        await until(lambda: started and started[0].asked)
        for message in (Progress("half"), DONE):
            started[0].says.put(message)
        assert await first == [Progress("half"), DONE]
        again = asyncio.ensure_future(all_of(bench))
        await until(lambda: len(started[0].asked) == 2)
        started[0].says.put(DONE)
        assert await again == [DONE]
        assert len(started) == 1
        await bench.close()
        assert not started[0].is_alive

    asyncio.run(work())


def test_a_question_that_nobody_waits_for_is_ended_and_the_next_has_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(room, "LEAVING_S", 0.01)

    async def work() -> None:
        bench, started = made(1)
        first = asyncio.ensure_future(all_of(bench))
        await until(lambda: started and started[0].asked)
        first.cancel()
        await until(lambda: not started[0].is_alive)
        second = asyncio.ensure_future(all_of(bench))
        await until(lambda: len(started) == 2 and started[1].asked)
        started[1].says.put(DONE)
        assert await second == [DONE]
        await bench.close()

    asyncio.run(work())


def test_a_question_that_ends_soon_after_its_client_has_left_keeps_its_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(room, "LEAVING_S", 5.0)

    async def work() -> None:
        bench, started = made(1)
        first = asyncio.ensure_future(all_of(bench))
        await until(lambda: started and started[0].asked)
        first.cancel()
        for message in (Progress("nearly"), DONE):
            started[0].says.put(message)
        second = asyncio.ensure_future(all_of(bench))
        await until(lambda: len(started[0].asked) == 2)
        started[0].says.put(DONE)
        assert await second == [DONE]
        assert started[0].is_alive
        await bench.close()

    asyncio.run(work())


def test_more_than_may_wait_are_told_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST_WAITING", 1)

    async def work() -> None:
        bench, started = made(1)
        first = asyncio.ensure_future(all_of(bench))
        await until(lambda: started and started[0].asked)
        second = asyncio.ensure_future(all_of(bench))
        await until(lambda: bench.num_waiting == 1)
        with pytest.raises(Full):
            await all_of(bench)
        second.cancel()
        await until(lambda: bench.num_waiting == 0)
        started[0].says.put(DONE)
        assert await first == [DONE]
        await bench.close()

    asyncio.run(work())


def test_a_process_that_cannot_be_started_takes_no_place() -> None:
    def fails() -> room.Worker:
        raise OSError("no more processes")

    async def work() -> None:
        bench = Bench(1, fails)
        for _ in range(2):
            with pytest.raises(OSError, match="no more"):
                await all_of(bench)
        await bench.close()

    asyncio.run(work())
