"""What happened between two looks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from datahall.serve.top.latency import Latency
from datahall.serve.top.reading import Left, Reading, Total, Upstream

HOUR_S = 3600.0
Name = TypeVar("Name")


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """How a model, a key or all of them do."""

    requests_per_s: float
    failed_per_s: float
    tokens_per_s: float
    output_tokens_per_s: float
    charged_usd_per_hour: float
    charged_usd: float  # since the gateway began
    first: Latency
    whole: Latency

    @classmethod
    def between(cls, before: Total, after: Total, took_s: float) -> Rate:
        done = after.since(before)
        return cls(
            requests_per_s=done.num_requests / took_s,
            failed_per_s=done.num_failed / took_s,
            tokens_per_s=done.tokens / took_s,
            output_tokens_per_s=done.output_tokens / took_s,
            charged_usd_per_hour=done.charged_usd / took_s * HOUR_S,
            charged_usd=after.charged_usd,
            first=done.first,
            whole=done.whole,
        )


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """A gateway between two looks."""

    took_s: float
    up_s: float
    all: Rate
    models: Mapping[str, Rate]
    keys: Mapping[tuple[str, str], Rate]
    customers: Mapping[str, Rate]  # by all of their keys
    left: Mapping[str, Left]  # of what customers may use
    refused_per_s: float
    refused_for_per_s: Mapping[str, float]  # by why
    upstreams: Mapping[str, Upstream]
    num_waiting: float
    num_waiting_for: Mapping[str, float]  # by model
    num_open: float
    memory_bytes: float
    is_unwritten: bool


def between(before: Reading, after: Reading, now_s: float) -> Moment:
    """What happened; `now_s` is the time since 1970. A model that is new in the second look began with nothing."""
    took_s = after.at_s - before.at_s
    refused_for_per_s = {
        code: (count - before.num_refused_for.get(code, 0.0)) / took_s
        for code, count in after.num_refused_for.items()
    }
    return Moment(
        took_s=took_s,
        up_s=max(now_s - after.began_s, 0.0),
        all=Rate.between(_whole(before.models.values()), _whole(after.models.values()), took_s),
        models=_rates(before.models, after.models, took_s),
        keys=_rates(before.keys, after.keys, took_s),
        customers=_rates(_by_customer(before.keys), _by_customer(after.keys), took_s),
        left=after.customers,
        refused_per_s=sum(refused_for_per_s.values(), 0.0),
        refused_for_per_s=refused_for_per_s,
        upstreams=after.upstreams,
        num_waiting=sum(after.num_waiting_for.values()),
        num_waiting_for=after.num_waiting_for,
        num_open=after.num_open,
        memory_bytes=after.memory_bytes,
        is_unwritten=after.is_unwritten,
    )


def _rates(before: Mapping[Name, Total], after: Mapping[Name, Total], took_s: float) -> dict[Name, Rate]:
    """What was asked most stands first."""
    found = {name: Rate.between(before.get(name, Total()), total, took_s) for name, total in after.items()}
    return dict(sorted(found.items(), key=lambda one: -one[1].requests_per_s))


def _by_customer(keys: Mapping[tuple[str, str], Total]) -> dict[str, Total]:
    found: dict[str, list[Total]] = {}
    for (_, customer), total in keys.items():
        found.setdefault(customer, []).append(total)
    return {customer: _whole(totals) for customer, totals in found.items()}


def _whole(totals: Iterable[Total]) -> Total:
    found = [*totals]
    return Total(
        num_requests=sum(one.num_requests for one in found),
        num_failed=sum(one.num_failed for one in found),
        tokens=sum(one.tokens for one in found),
        output_tokens=sum(one.output_tokens for one in found),
        charged_usd=sum(one.charged_usd for one in found),
        first=_together(one.first for one in found),
        whole=_together(one.whole for one in found),
    )


def _together(some: Iterable[Latency]) -> Latency:
    counts: dict[float, float] = {}
    for one in some:
        for bound_s, count in one.num_below:
            counts[bound_s] = counts.get(bound_s, 0.0) + count
    return Latency(tuple(sorted(counts.items())))
