"""Processes that answer side by side, each kept for the next question; one whose question nobody waits for is ended.

A process that has answered has loaded what the next question needs.  New ones are forked from one that has loaded it
already.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.context import ForkServerProcess
from typing import TypeVar

import msgspec

from datahall.studio.task import OURS, Message, Progress, Refused, Task
from datahall.studio.work import work

WARM = "datahall.studio.warm"
MOST_WAITING = 64
LEAVING_S = 0.25  # that a question may still take whose client has left, before its process is ended
Result = TypeVar("Result")


class Full(Exception):
    """So many questions wait that another would wait too long."""


class Worker:
    """One process, and the pipe to it."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([WARM])
        self._pipe, theirs = context.Pipe()
        self._process: ForkServerProcess = context.Process(target=work, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def tell(self, task: Task) -> None:
        """Ask."""
        self._pipe.send_bytes(msgspec.msgpack.encode(task))

    def hear(self) -> Message:
        """What it says next; a process that ended without a word was ended, or is a mistake of ours."""
        try:
            message: Message = msgspec.msgpack.decode(self._pipe.recv_bytes(), type=Message)
        except (EOFError, OSError):
            return Refused(OURS, {"code": "bug", "message": "the process that answers has ended"})
        return message

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def end(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.join()
        self._pipe.close()


class Bench:
    """So many processes, started when they are needed; a question takes one that is free."""

    def __init__(self, num_workers: int, start: Callable[[], Worker] = Worker) -> None:
        self.num_waiting = 0
        self._start = start
        self._places = asyncio.Semaphore(num_workers)
        self._threads = ThreadPoolExecutor(num_workers + 1, "studio")
        self._idle: list[Worker] = []
        self._all: set[Worker] = set()
        self._leaving: set[asyncio.Task[None]] = set()

    async def warm(self) -> None:
        """Have a process ready before anybody asks."""
        await self._places.acquire()
        self._give_back(await self._worker())

    async def answer(self, task: Task) -> AsyncIterator[Message]:
        """How far it is, again and again, and at last the answer; who leaves the iteration ends the work."""
        if self.num_waiting >= MOST_WAITING:
            raise Full
        self.num_waiting += 1
        try:
            await self._places.acquire()
        finally:
            self.num_waiting -= 1
        worker = await self._worker()
        hearing: asyncio.Future[Message] = self._in_thread(partial(_asked, worker, task))
        try:
            while isinstance(message := await asyncio.shield(hearing), Progress):
                hearing = self._in_thread(worker.hear)
                yield message
            yield message
        finally:
            leaving = asyncio.ensure_future(self._left(worker, hearing))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)

    async def close(self) -> None:
        """End all processes, whatever they do."""
        for worker in self._all:
            worker.end()
        if self._leaving:
            await asyncio.wait(self._leaving)
        self._threads.shutdown(cancel_futures=True)

    async def _worker(self) -> Worker:
        if self._idle:
            return self._idle.pop()
        try:
            worker = await self._in_thread(self._start)
        except BaseException:
            self._places.release()
            raise
        self._all.add(worker)
        return worker

    async def _left(self, worker: Worker, hearing: asyncio.Future[Message]) -> None:
        """Keep a process that has answered, or does so soon; end one that does not."""
        while not hearing.done() or isinstance(hearing.result(), Progress):
            if hearing.done():
                hearing = self._in_thread(worker.hear)
            done, _ = await asyncio.wait([hearing], timeout=LEAVING_S)
            if not done:
                break
        if hearing.done() and worker.is_alive:
            self._give_back(worker)
            return
        self._all.discard(worker)
        worker.end()
        self._places.release()

    def _give_back(self, worker: Worker) -> None:
        self._idle.append(worker)
        self._places.release()

    def _in_thread(self, work: Callable[[], Result]) -> asyncio.Future[Result]:
        return asyncio.get_running_loop().run_in_executor(self._threads, work)


def _asked(worker: Worker, task: Task) -> Message:
    worker.tell(task)
    return worker.hear()
