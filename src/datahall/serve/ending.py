"""Serving until somebody says that it is over: what has begun ends within a grace, and a second word hurries it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from datahall.serve.http import Server


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
