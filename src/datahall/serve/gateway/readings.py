"""What is read of upstreams and lines when a scraper asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from datahall.serve.gateway.model import Model
from datahall.serve.telemetry.metrics import Family, Read, Sample
from datahall.serve.upstreams.retry_budget import RetryBudgets
from datahall.serve.upstreams.upstream import Upstream


def of_upstreams(upstreams: Sequence[Upstream], now_s: Callable[[], float]) -> tuple[Family, ...]:
    """How each upstream is, and what it has to do."""

    def each(value: Callable[[Upstream], float]) -> Callable[[], Iterator[Sample]]:
        return lambda: (((one.name,), value(one)) for one in upstreams)

    by = ("upstream",)
    return (
        Read(
            "datahall_upstream_ready", "1 where an upstream may be asked now, else 0.",
            each(lambda one: int(one.is_ready(now_s()))), by,
        ),
        Read("datahall_upstream_open_requests", "Our requests at an upstream.", each(lambda one: one.num_open), by),
        Read(
            "datahall_upstream_waiting_requests", "Requests in an upstream's own queue, as it says.",
            each(lambda one: one.num_waiting), by,
        ),
        Read(
            "datahall_upstream_kv_used_ratio", "Share of an upstream's KV cache in use, as it says.",
            each(lambda one: one.kv_used_fraction), by,
        ),
        Read(
            "datahall_upstream_failures_total", "Calls that an upstream failed.",
            each(lambda one: one.num_failed), by, "counter",
        ),
    )  # fmt: skip


def of_lines(models: Sequence[Model], budgets: RetryBudgets) -> tuple[Family, ...]:
    """How many wait for room, and how often anything was asked again."""
    return (
        Read(
            "datahall_waiting_requests", "Requests that wait for room at an upstream.",
            lambda: (((one.name,), one.pool.num_waiting) for one in models), ("model",),
        ),
        Read(
            "datahall_retries_total", "What might have been asked again, and whether the budget let it.",
            lambda: ((("asked",), budgets.num_spent), (("refused",), budgets.num_refused)), ("result",), "counter",
        ),
    )  # fmt: skip
