"""The studio served until somebody says that it is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from datahall.planner.sweep.processes import num_cores
from datahall.serve.ending import serve_until_told
from datahall.serve.http import Limits, serve
from datahall.serve.http.browsers import guarded
from datahall.studio.app import Studio
from datahall.studio.bench import Bench

GRACE_S = 1.0
LIMITS = Limits(body_bytes=1_000_000, num_connections=256)
LEAST_WORKERS, MOST_WORKERS = 2, 8  # one that searches, one that answers what moves meanwhile


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """Where it is served, and by how many processes."""

    host: str
    port: int
    version: str
    num_workers: int = 0  # 0: one a core


async def run_studio(told: Told, when_ready: Callable[[str], None]) -> bool:
    """Serve until SIGTERM or SIGINT; whether every request had ended within the grace."""
    num = told.num_workers or min(max(num_cores(), LEAST_WORKERS), MOST_WORKERS)
    bench = Bench(num)
    server = await serve(guarded(Studio(bench, told.version), told.host), (told.host, told.port), LIMITS)
    warming = asyncio.ensure_future(bench.warm())
    host = f"[{told.host}]" if ":" in told.host else told.host
    try:
        return await serve_until_told(
            server, GRACE_S, when_ready=lambda: when_ready(f"http://{host}:{server.port}")
        )
    finally:
        warming.cancel()
        await bench.close()
