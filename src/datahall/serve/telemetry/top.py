"""What a gateway does now: rates, latencies, tokens and money by model and by key, from two looks at its metrics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import inf, nan

import msgspec

from datahall.serve.telemetry.exposition import Shown

Counters = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class OfModel(msgspec.Struct, frozen=True, kw_only=True):
    """One model between two looks; NaN where nothing was seen."""

    model: str
    requests_per_s: float
    failed_fraction: float
    cached_fraction: float
    duration_p50_s: float
    duration_p99_s: float
    ttft_p50_s: float
    ttft_p99_s: float
    output_tokens_per_s: float
    charged_usd_per_hour: float
    saved_usd_per_hour: float


class OfKey(msgspec.Struct, frozen=True, kw_only=True):
    """One key between two looks, and what it was charged since the gateway began."""

    key: str
    customer: str
    requests_per_s: float
    tokens_per_s: float
    charged_usd_per_hour: float
    charged_usd: float


class Top(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    span_s: float
    num_open: int
    is_unwritten: bool
    refused_per_s: float
    models: tuple[OfModel, ...]
    keys: tuple[OfKey, ...]


def top_of(before: Iterable[Shown], after: Iterable[Shown], span_s: float) -> Top:
    """What happened from one look to another, so many seconds apart; none before: since the gateway began."""
    first, last = _counters(before), _counters(after)
    # a counter that has fallen began anew with its process
    grown = {
        key: value - first.get(key, 0.0) if value >= first.get(key, 0.0) else value
        for key, value in last.items()
    }
    models = sorted({dict(labels)["model"] for name, labels in last if name == "datahall_requests_total"})
    keys = sorted(
        (dict(labels)["key"], dict(labels)["customer"])
        for name, labels in last
        if name == "datahall_key_requests_total"
    )
    return Top(
        span_s=span_s,
        num_open=int(_sum(last, "datahall_open_requests")),
        is_unwritten=bool(_sum(last, "datahall_ledger_unwritten")),
        refused_per_s=_sum(grown, "datahall_refused_total") / span_s,
        models=tuple(_of_model(model, grown, span_s) for model in models),
        keys=tuple(_of_key(key, customer, grown, last, span_s) for key, customer in keys),
    )


def _of_model(model: str, grown: Counters, span_s: float) -> OfModel:
    results = {
        result: _sum(grown, "datahall_requests_total", model=model, result=result)
        for result in ("answered", "cached", "cancelled", "failed", "refused")
    }
    requests = sum(results.values())
    duration = _buckets(grown, "gen_ai_server_request_duration_seconds", model)
    first = _buckets(grown, "gen_ai_server_time_to_first_token_seconds", model)
    tokens = _sum(grown, "datahall_tokens_total", model=model, kind="completion")
    return OfModel(
        model=model,
        requests_per_s=requests / span_s,
        failed_fraction=results["failed"] / requests if requests else nan,
        cached_fraction=results["cached"] / requests if requests else nan,
        duration_p50_s=quantile(duration, 0.5),
        duration_p99_s=quantile(duration, 0.99),
        ttft_p50_s=quantile(first, 0.5),
        ttft_p99_s=quantile(first, 0.99),
        output_tokens_per_s=tokens / span_s,
        charged_usd_per_hour=_sum(grown, "datahall_charged_usd_total", model=model) * 3600 / span_s,
        saved_usd_per_hour=_sum(grown, "datahall_saved_usd_total", model=model) * 3600 / span_s,
    )


def _of_key(key: str, customer: str, grown: Counters, last: Counters, span_s: float) -> OfKey:
    def of(name: str, among: Counters) -> float:
        return _sum(among, name, key=key, customer=customer)

    return OfKey(
        key=key,
        customer=customer,
        requests_per_s=of("datahall_key_requests_total", grown) / span_s,
        tokens_per_s=of("datahall_key_tokens_total", grown) / span_s,
        charged_usd_per_hour=of("datahall_key_charged_usd_total", grown) * 3600 / span_s,
        charged_usd=of("datahall_key_charged_usd_total", last),
    )


def quantile(buckets: Sequence[tuple[float, float]], share: float) -> float:
    """A quantile of counts below bounds, straight between them as Prometheus does it; NaN where nothing was counted.

    >>> quantile([(1.0, 5.0), (2.0, 10.0), (float("inf"), 10.0)], 0.75)
    1.5
    """
    if not buckets or not buckets[-1][1]:
        return nan
    rank, low, below = share * buckets[-1][1], 0.0, 0.0
    for bound, count in buckets:
        if count >= rank:
            if bound == inf:
                return low
            return low + (bound - low) * (rank - below) / (count - below) if count > below else bound
        low, below = bound, count
    return low


def _buckets(counters: Counters, name: str, model: str) -> list[tuple[float, float]]:
    found: dict[float, float] = defaultdict(float)
    for (one, labels), value in counters.items():
        said = dict(labels)
        if one == f"{name}_bucket" and said.get("model") == model:
            found[float(said["le"])] += value
    return sorted(found.items())


def _counters(lines: Iterable[Shown]) -> Counters:
    return {(line.name, tuple(sorted(line.labels.items()))): line.value for line in lines}


def _sum(counters: Counters, name: str, **labels: str) -> float:
    """All of a name that has some labels."""
    wanted: Mapping[str, str] = labels
    return sum(
        value
        for (one, said), value in counters.items()
        if one == name and wanted.items() <= dict(said).items()
    )
