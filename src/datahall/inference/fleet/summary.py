"""What a simulated service did, by group: pools, streams, regions, tiers of the cache, failures, autoscaling."""

from __future__ import annotations

from math import ceil, isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from datahall.inference.fleet.fleet import Pool
from datahall.inference.fleet.response_cache import hit_rates
from datahall.inference.fleet.service import Outcome, Service
from datahall.inference.fleet.span import expected_s
from datahall.inference.memory.offload import lower_tiers
from datahall.inference.simulation.histogram import TPOT, TTFT
from datahall.inference.simulation.run import STATUS_NAMES, Records, ReplicaUse, Scaling, ServingRun

FINISHED, ANSWERED = STATUS_NAMES.index("finished"), STATUS_NAMES.index("answered from a cache")

SPARE_RATIO = 1.15  # replicas over what the rate held would need: a queue that has grown must also shrink
LONGEST_STAY_S = 3600.0  # of a request that somebody waits for
LEAST_PER_S = 1e-9  # of a fleet that served nothing

Mask = NDArray[np.bool_]


class PoolUse(NamedTuple):
    """The mean replica of a pool and the busiest; tiers below the chips are None where there are none."""

    place: int
    num_used: int
    busy_fraction: float
    cache_mean_fraction: float
    cache_peak_fraction: float
    num_waiting: float
    num_preempted: int
    host_fraction: float | None
    drive_fraction: float | None


class GroupLatency(NamedTuple):
    """Latencies of some of the measured requests; None where there are none."""

    name: str
    num_requests: int
    ttft_p50_s: float | None
    ttft_p99_s: float | None
    tpot_mean_s: float | None
    e2e_p99_s: float | None
    good_fraction: float | None


class TierUse(NamedTuple):
    """What one tier of the cache of answers did; tier 0 is what went on to the model."""

    tier: int
    num_requests: int
    share: float | None
    expected_fraction: float
    after_s: float
    prompt_tokens: int | None
    output_tokens: int | None


class ScalingUse(NamedTuple):
    """How many replicas there were of the pool that scales."""

    least: int
    mean: float | None
    most: int
    replica_s: float
    busy_fraction: float | None
    most_requests: int


def pool_uses(outcome: Outcome) -> list[PoolUse]:
    """Each pool that was used."""
    use, found = outcome.run.replicas, []
    for place, pool in enumerate(outcome.service.fleet.pools):
        own = use.pool == place
        used = own & (use.active_s > 0)
        if not np.any(used):
            continue
        host, drive = _held_below(pool, use, used)
        found.append(
            PoolUse(
                place=place,
                num_used=int(np.count_nonzero(used)),
                busy_fraction=float(use.busy_fraction[used].mean()),
                cache_mean_fraction=float(use.cache_mean_fraction[used].mean()),
                cache_peak_fraction=float(use.cache_peak_fraction[used].max()),
                num_waiting=float(use.queue_mean[used].mean()),
                num_preempted=int(use.num_preempted[own].sum()),
                host_fraction=host,
                drive_fraction=drive,
            )
        )
    return found


def _held_below(pool: Pool, use: ReplicaUse, used: Mask) -> tuple[float | None, float | None]:
    """How full the tiers below the chips are at the end."""
    host, drives = lower_tiers(pool.replica)
    return (
        float(use.host_blocks[used].mean()) / host.num_blocks if host.num_blocks else None,
        float(use.drive_blocks[used].mean()) / drives.num_blocks if drives.num_blocks else None,
    )


def mean_use(run: ServingRun) -> tuple[float, float, float]:
    """Of all replicas: busy, caches full on average, caches full at most."""
    use = run.replicas
    there = use.active_s > 0
    if not there.any():
        return 0.0, 0.0, 0.0
    return (
        float(use.busy_fraction[there].mean()),
        float(use.cache_mean_fraction[there].mean()),
        float(use.cache_peak_fraction.max()),
    )


def stream_latencies(outcome: Outcome) -> list[GroupLatency]:
    """Each stream of requests."""
    records = _records(outcome)
    stream = outcome.stream[records.row]
    streams = outcome.service.streams
    return [_latency(outcome, one.traffic.name, stream == place) for place, one in enumerate(streams)]


def region_latencies(outcome: Outcome) -> tuple[list[GroupLatency], int, int]:
    """Each region that requests come from; how many were served elsewhere, and how many by a replica at all."""
    records = _records(outcome)
    region = outcome.region[records.row]
    rows = [_latency(outcome, name, region == place) for place, name in enumerate(outcome.service.regions)]
    served = records.replica >= 0
    stands = np.array([pool.region for pool in outcome.service.fleet.pools])[outcome.run.replicas.pool]
    away = served & (stands[np.maximum(records.replica, 0)] != region)
    return rows, int(away.sum()), int(served.sum())


def failure_latencies(outcome: Outcome) -> list[GroupLatency]:
    """Requests that came while replicas were out, then the others."""
    records = _records(outcome)
    spans: dict[tuple[float, float, bool], int] = {}
    for outage in outcome.service.fleet.outages:
        key = (outage.start_s, outage.duration_s, outage.drain)
        spans[key] = spans.get(key, 0) + 1
    rows, out = [], np.zeros(records.row.size, bool)
    for (start_s, duration_s, drain), num in spans.items():
        own = (records.arrival_s >= start_s) & (records.arrival_s < start_s + duration_s)
        back = f"to {start_s + duration_s:g} s" if isfinite(duration_s) else "on"
        words = f"{num} {'drained' if drain else 'lost'} from {start_s:g} s {back}"
        rows.append(_latency(outcome, words, own))
        out |= own
    return [*rows, _latency(outcome, "at other times", ~out)]


def tier_uses(outcome: Outcome) -> list[TierUse]:
    """Each tier in front of the model, and what went on to it."""
    cache = outcome.service.cache
    assert cache is not None
    records = _records(outcome)
    tier = outcome.tier[records.row]
    rates = hit_rates(cache)
    expected = (
        1.0 - rates.total_fraction,
        rates.process_fraction,
        rates.shared_fraction,
        rates.semantic_fraction,
    )
    there = (True, cache.process.num_entries, cache.shared.num_entries, cache.semantic.hit_fraction)
    found = []
    for place in (1, 2, 3, 0):
        if not there[place]:
            continue
        own = tier == place
        found.append(
            TierUse(
                tier=place,
                num_requests=int(own.sum()),
                share=float(own.mean()) if own.size else None,
                expected_fraction=expected[place],
                after_s=float(cache.tier_s[place]),
                prompt_tokens=int(records.prompt[own].sum()) if place else None,
                output_tokens=int(records.output[own].sum()) if place else None,
            )
        )
    return found


def scaling_use(outcome: Outcome, scaling: Scaling) -> ScalingUse:
    """The pool that scales: its replicas over the run."""
    use = outcome.run.replicas
    first = use.pool == 0
    paid_s, span_s = float(use.active_s[first].sum()), outcome.run.duration_s
    served = first & (use.active_s > 0)
    return ScalingUse(
        least=int(scaling.num_active.min()),
        mean=paid_s / span_s if isfinite(span_s) and span_s > 0 else None,
        most=int(scaling.num_active.max()),
        replica_s=paid_s,
        busy_fraction=float(use.busy_fraction[served].mean()) if np.any(served) else None,
        most_requests=int(scaling.num_requests.max()),
    )


def is_scaled(scaling: Scaling) -> bool:
    """Whether the autoscaler ever started or stopped a replica."""
    return bool(scaling.num_starting.any() or scaling.num_active.min() < scaling.num_active.max())


def is_shrunk(scaling: Scaling) -> bool:
    """Whether the autoscaler ever stopped a replica."""
    return bool((np.diff(scaling.num_active) < 0).any())


def recomputed_tokens(run: ServingRun) -> int | None:
    """Prompt tokens computed beyond once for each request; None where some have not ended.

    At most so many: a request that was sent on finds part of its prompt in the other cache, which counts as computed.
    """
    records = run.records
    if records is None or run.num_unfinished:
        return None
    own = records.status == FINISHED
    once = int((records.prompt[own] - np.minimum(records.hit[own], records.prompt[own])).sum())
    return max(0, int(run.replicas.prompt_tokens.sum()) - once)


class Crosscheck(NamedTuple):
    """A mean latency as it was simulated, and in closed form; None where one of them has none."""

    name: str
    simulated_s: float | None
    closed_s: float | None
    difference_fraction: float | None  # of the closed form from what was simulated


def crosschecks(outcome: Outcome) -> list[Crosscheck]:
    """TPOT and TTFT of both fidelities; nothing where there is no closed form."""
    steady = outcome.service.steady
    if steady is None:
        return []
    pairs = (("TPOT", TPOT, steady.tpot_s), ("TTFT", TTFT, steady.ttft_s))
    found = []
    for name, measure, closed_s in pairs:
        simulated_s = outcome.run.mean_s(measure)
        both = isfinite(closed_s) and simulated_s > 0
        found.append(
            Crosscheck(
                name=name,
                simulated_s=simulated_s if isfinite(simulated_s) else None,
                closed_s=closed_s if isfinite(closed_s) else None,
                difference_fraction=closed_s / simulated_s - 1.0 if both else None,
            )
        )
    return found


def enough_replicas(outcome: Outcome) -> int | None:
    """Replicas that would hold what came to an overloaded fleet; None where it was not, or nobody knows what came."""
    run, traffic = outcome.run, outcome.service.traffic
    if run.stable or traffic.arrivals is None or not isfinite(run.sustained_per_s):
        return None
    offered_per_s = traffic.arrivals.rate_per_s * max(1.0, traffic.conversation.num_turns)
    now = outcome.service.fleet.num_replicas
    needed = now * offered_per_s / max(run.sustained_per_s, LEAST_PER_S)
    return max(now + 1, ceil(needed * SPARE_RATIO))


def all_ended_s(service: Service) -> float:
    """A time by which all requests of a service have come, and the last has had as long as any needs."""
    return max((expected_s(stream.traffic) for stream in service.streams), default=0.0) + LONGEST_STAY_S


def _records(outcome: Outcome) -> Records:
    assert outcome.run.records is not None
    return outcome.run.records


def _latency(outcome: Outcome, name: str, own: Mask) -> GroupLatency:
    """Of those that ended well, and not of the warm-up."""
    records, promise = _records(outcome), outcome.service.promise
    ended = (records.status == FINISHED) | (records.status == ANSWERED)
    kept = own & ended & (outcome.service.measures(records.arrival_s, records.row))
    tpot_s = np.nan_to_num(records.tpot_s)
    good = (records.ttft_s <= promise.ttft_s) & (tpot_s <= promise.tpot_s)
    several = kept & (records.output > 1) & (records.status == FINISHED)
    return GroupLatency(
        name=name,
        num_requests=int(kept.sum()),
        ttft_p50_s=_quantile(records.ttft_s[kept], 0.5),
        ttft_p99_s=_quantile(records.ttft_s[kept], 0.99),
        tpot_mean_s=float(tpot_s[several].mean()) if several.any() else None,
        e2e_p99_s=_quantile(records.e2e_s[kept], 0.99),
        good_fraction=float(good[kept].mean()) if kept.any() else None,
    )


def _quantile(values: NDArray[np.float64], share: float) -> float | None:
    return float(np.quantile(values, share)) if values.size else None
