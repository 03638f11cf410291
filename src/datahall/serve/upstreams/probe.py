"""Asks upstreams how they are, now and then: whether they answer, and how much waits in their own queues."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

from datahall.serve.http import Failure, Timeouts
from datahall.serve.upstreams.upstream import Upstream

EVERY_S = 5.0
TIMEOUTS = Timeouts(connect_s=2.0, first_byte_s=2.0, between_s=2.0, total_s=4.0)
MOST_BYTES = 4_000_000
# of vLLM, SGLang and what speaks their names: what waits, and how much of the cache is in use
WAITING = re.compile(
    rb"^(?:vllm:num_requests_waiting|sglang:num_queue_reqs)(?:\{[^\n]*\})? (\d+(?:\.\d+)?(?:e[+-]?\d+)?)",
    re.M,
)
KV_USED = re.compile(
    rb"^(?:vllm:(?:gpu|kv)_cache_usage_perc|sglang:token_usage)(?:\{[^\n]*\})? (\d+(?:\.\d+)?(?:e[+-]?\d+)?)",
    re.M,
)


def read_gauges(page: bytes) -> tuple[float, float]:
    """Requests that wait, and the share of the cache that is used, from a page of metrics.

    >>> read_gauges(b'vllm:num_requests_waiting{model_name="m"} 3.0\\nvllm:kv_cache_usage_perc{} 0.25\\n')
    (3.0, 0.25)
    """
    used = [float(value) for value in KV_USED.findall(page)]
    return sum(float(value) for value in WAITING.findall(page)), max(used, default=0.0)


async def probe(upstream: Upstream) -> None:
    """Ask one upstream once."""
    if upstream.health_path:
        answer = await _ask(upstream, upstream.health_path)
        upstream.is_well = answer is not None
    if upstream.metrics_path and upstream.is_well:
        page = await _ask(upstream, upstream.metrics_path)
        upstream.num_waiting, upstream.kv_used_fraction = read_gauges(page or b"")


async def watch(upstreams: Sequence[Upstream], every_s: float = EVERY_S) -> None:
    """Ask all that can be asked, until cancelled."""
    asked = [one for one in upstreams if one.health_path or one.metrics_path]
    while asked:
        await asyncio.gather(*(probe(one) for one in asked))
        await asyncio.sleep(every_s)


async def _ask(upstream: Upstream, path: str) -> bytes | None:
    """A page of an upstream; nothing where it cannot be had."""
    try:
        answer = await upstream.reach.request("GET", path, headers=upstream.headers, timeouts=TIMEOUTS)
        page = await answer.read(MOST_BYTES)
    except Failure:
        return None
    return page if answer.status < 400 else None
