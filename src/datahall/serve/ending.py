"""Serving until somebody says that it is over: what has begun ends within a grace, and a second word hurries it.

SIGHUP has what is served loaded anew.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from datahall.errors import DatahallError
from datahall.serve.http import Server

Say: TypeAlias = Callable[[str], None]


async def serve_until_told(
    server: Server,
    grace_s: float,
    *,
    when_ready: Callable[[], object],
    when_told: Callable[[], object] = lambda: None,
) -> bool:
    """Run until SIGTERM or SIGINT; whether every request had ended within the grace."""
    with _told() as told:
        when_ready()
        await told.wait()
        when_told()
        told.clear()
        closing = asyncio.ensure_future(server.close(grace_s))
        hurry = asyncio.ensure_future(told.wait())
        await asyncio.wait((closing, hurry), return_when=asyncio.FIRST_COMPLETED)
        if not closing.done():
            await server.close()
        hurry.cancel()
        return await closing


@contextmanager
def _told() -> Iterator[asyncio.Event]:
    """An event that SIGTERM and SIGINT set."""
    event, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, event.set)
    try:
        yield event
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


@contextmanager
def reloading(load: Callable[[], Coroutine[Any, Any, object]], say: Say, what: str) -> Iterator[None]:
    """On SIGHUP load anew; where that cannot be, all stays as it was."""
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()

    async def reload() -> None:
        try:
            await load()
        except DatahallError as error:
            say(f"{what} was not loaded anew: {error.message}")
        else:
            say(f"{what} was loaded anew")

    def begin() -> None:
        task = loop.create_task(reload())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    loop.add_signal_handler(signal.SIGHUP, begin)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
        for task in tasks:
            task.cancel()
