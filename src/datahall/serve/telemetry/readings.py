"""What is read when a scraper asks: the cache, the ledger, the process and its event loop."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from time import process_time, time, time_ns

from datahall.serve.cache.exact import ExactCache
from datahall.serve.ledger.account import Standing
from datahall.serve.ledger.ledger import Ledger
from datahall.serve.ledger.money import usd
from datahall.serve.telemetry.instruments import MOST_KEYS
from datahall.serve.telemetry.metrics import Family, Read, Sample

_STATM, _DESCRIPTORS = Path("/proc/self/statm"), Path("/proc/self/fd")


def of_cache(cache: ExactCache) -> tuple[Family, ...]:
    """How full the cache of answers is, and what became of what was asked of it."""

    def results() -> Iterator[Sample]:
        counts = cache.counts
        for result in ("hits", "misses", "stored", "evicted", "expired"):
            yield (result,), getattr(counts, result)

    return (
        Read("datahall_cache_bytes", "What answers take in the cache.", _one(lambda: cache.size_bytes)),
        Read("datahall_cache_entries", "Answers in the cache.", _one(lambda: len(cache))),
        Read(
            "datahall_cache_events_total", "What became of what was asked of the cache.", results, ("event",), "counter"
        ),
    )  # fmt: skip


def of_ledger(ledger: Ledger) -> tuple[Family, ...]:
    """What is open, and whether what is used can be written down."""
    return (
        Read("datahall_open_requests", "Requests that are let in and not settled.", _one(lambda: ledger.num_open)),
        Read(
            "datahall_ledger_unwritten", "1 where what is used cannot be written to the disk, else 0.",
            _one(lambda: int(bool(ledger.trouble))),
        ),
    )  # fmt: skip


def of_customers(ledger: Ledger, clock_ns: Callable[[], int] = time_ns) -> tuple[Family, ...]:
    """What customers that have limits have used of them; the ledger has the others too."""

    def each(value: Callable[[Standing], float | None]) -> Callable[[], Iterator[Sample]]:
        def read() -> Iterator[Sample]:
            for name, standing in islice(ledger.customers(clock_ns()).items(), MOST_KEYS):
                found = value(standing)
                if found is not None:
                    yield (name,), found

        return read

    def money(nano_usd: Callable[[Standing], int]) -> Callable[[], Iterator[Sample]]:
        return each(lambda one: None if one.budget_nano_usd is None else usd(nano_usd(one)))

    by = ("customer",)
    return (
        Read(
            "datahall_customer_budget_usd", "What the keys of a customer may spend together, in dollars.",
            money(lambda one: one.budget_nano_usd or 0), by,
        ),
        Read(
            "datahall_customer_budget_left_usd", "Of it, what is neither spent nor held, in dollars.",
            money(lambda one: one.budget_left), by,
        ),
        Read(
            "datahall_customer_requests_left", "Requests that a customer may still send in this minute.",
            each(lambda one: None if one.request_limit is None else one.requests_left), by,
        ),
        Read(
            "datahall_customer_tokens_left", "Tokens that a customer may still take in this minute.",
            each(lambda one: None if one.token_limit is None else one.tokens_left), by,
        ),
    )  # fmt: skip


def of_process() -> tuple[Family, ...]:
    """What the process takes of its machine."""
    began = time() - process_time()
    return (
        Read("process_resident_memory_bytes", "Memory that is in use.", _one(_resident_bytes)),
        Read("process_cpu_seconds_total", "Time of processors.", _one(process_time), kind="counter"),
        Read("process_start_time_seconds", "When the process began, since 1970.", _one(lambda: began)),
        Read("process_open_fds", "Open files and connections.", _one(_num_descriptors)),
    )


def of_loop(loop: asyncio.AbstractEventLoop) -> tuple[Family, ...]:
    """What an event loop has under way."""
    return (
        Read("datahall_tasks", "Coroutines that are under way.", _one(lambda: len(asyncio.all_tasks(loop)))),
    )


def _one(read: Callable[[], float]) -> Callable[[], Iterator[Sample]]:
    return lambda: iter([((), read())])


def _resident_bytes() -> int:
    if _STATM.exists():
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # of a Mac, in bytes, and its most


def _num_descriptors() -> int:
    """Those of this process, without the one that looks; 0 where there is nowhere to look."""
    return len(os.listdir(_DESCRIPTORS)) - 1 if _DESCRIPTORS.exists() else 0
