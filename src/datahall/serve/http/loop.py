"""The event loop: uvloop where it is installed, as it halves what a request costs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")
TICK_S = 0.001  # that a timer of a loop may ring early or late: uvloop rounds to it, epoll up to it


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(work)


def nap_s(left_s: float) -> float:
    """How long to sleep so as to be awake at a moment that is so far away; 0 shortly before it, to yield until then.

    >>> nap_s(0.25), nap_s(0.0004)
    (0.249, 0.0)
    """
    return max(0.0, left_s - TICK_S)
