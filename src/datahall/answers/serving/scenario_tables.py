"""What regions, a cache, outages and autoscaling did, in tables."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from datahall.answer import Axis, Cell, Column, LineChart, Series, Table
from datahall.inference.fleet.response_cache import hit_rates
from datahall.inference.scenario import ServingOutcome
from datahall.inference.simulation.run import STATUS_NAMES, Records, Scaling, ServingRun

FINISHED, ANSWERED = STATUS_NAMES.index("finished"), STATUS_NAMES.index("answered from a cache")
TIERS = ("none: on to the model", "in the process", "shared", "by meaning")

Mask = NDArray[np.bool_]


def measured(outcome: ServingOutcome) -> tuple[Records, Mask]:
    """What was recorded, and which of it counts: ended well, and not of the warm-up."""
    records = outcome.run.records
    assert records is not None
    ended = (records.status == FINISHED) | (records.status == ANSWERED)
    return records, ended & (records.arrival_s >= outcome.scenario.warmup_s)


def _group_table(
    title: str, head: str, groups: Sequence[tuple[str, Mask]], outcome: ServingOutcome, note: str
) -> Table:
    """Latency of each group of requests."""
    records, counted = measured(outcome)
    slo = outcome.scenario.slo
    tpot_s = np.nan_to_num(records.tpot_s)
    good = (records.ttft_s <= slo.ttft_s) & (tpot_s <= slo.tpot_s)
    rows: list[tuple[Cell, ...]] = []
    for name, own in groups:
        kept = counted & own
        several = kept & (records.output > 1) & (records.status == FINISHED)
        rows.append(
            (
                name,
                int(kept.sum()),
                _share(records.ttft_s[kept], 0.5),
                _share(records.ttft_s[kept], 0.99),
                float(tpot_s[several].mean()) if several.any() else None,
                _share(records.e2e_s[kept], 0.99),
                float(good[kept].mean()) if kept.any() else None,
            )
        )
    return Table(
        title=title,
        columns=(
            Column(head),
            Column("requests", "count"),
            Column("TTFT P50", "s"),
            Column("TTFT P99", "s"),
            Column("mean TPOT", "s"),
            Column("E2E P99", "s"),
            Column("within limits", "fraction"),
        ),
        rows=tuple(rows),
        note=note,
    )


def _share(values: NDArray[np.float64], share: float) -> float | None:
    return float(np.quantile(values, share)) if values.size else None


def traffic_table(outcome: ServingOutcome) -> Table:
    """Each stream of requests."""
    records, _ = measured(outcome)
    stream = outcome.stream[records.row]
    groups = [(one.traffic.name, stream == place) for place, one in enumerate(outcome.scenario.streams)]
    return _group_table(
        "traffic", "stream", groups, outcome, "measured requests, those from a cache included"
    )


def region_table(outcome: ServingOutcome) -> Table:
    """Each region that requests come from, and how many of them its own replicas served."""
    records, _ = measured(outcome)
    region = outcome.region[records.row]
    groups = [(name, region == place) for place, name in enumerate(outcome.scenario.regions)]
    served = records.replica >= 0
    stands = np.array([pool.region for pool in outcome.scenario.fleet.pools])[outcome.run.replicas.pool]
    away = served & (stands[np.maximum(records.replica, 0)] != region)
    note = f"by where requests come from; {int(away.sum()):,} of {int(served.sum()):,} were served in another region"
    return _group_table("regions", "from", groups, outcome, note)


def cache_table(outcome: ServingOutcome) -> Table:
    """Each tier in front of the model: what it answers, how soon, and what the fleet need not compute."""
    cache = outcome.scenario.cache
    assert cache is not None
    records, _ = measured(outcome)
    tier = outcome.tier[records.row]
    rates = hit_rates(cache)
    expected = (rates.process_fraction, rates.shared_fraction, rates.semantic_fraction)
    there = (cache.process.num_entries, cache.shared.num_entries, cache.semantic.hit_fraction)
    rows: list[tuple[Cell, ...]] = []
    for place in (1, 2, 3, 0):
        if place and not there[place - 1]:
            continue
        own = tier == place
        rows.append(
            (
                TIERS[place],
                int(own.sum()),
                float(own.mean()) if own.size else None,
                expected[place - 1] if place else 1.0 - rates.total_fraction,
                float(cache.tier_s[place]),
                int(records.prompt[own].sum()) if place else None,
                int(records.output[own].sum()) if place else None,
            )
        )
    return Table(
        title="cache of answers",
        columns=(
            Column("tier"),
            Column("requests", "count"),
            Column("share", "fraction"),
            Column("expected", "fraction"),
            Column("after", "s"),
            Column("prompt saved", "tokens"),
            Column("output saved", "tokens"),
        ),
        rows=tuple(rows),
        note="expected: of first turns; after: until the answer, or until a request goes on",
    )


def outage_table(outcome: ServingOutcome) -> Table:
    """Requests that came while replicas were out, beside the others."""
    records, _ = measured(outcome)
    during: list[tuple[str, Mask]] = []
    out = np.zeros(records.row.size, bool)
    spans: dict[tuple[float, float, bool], int] = {}
    for one in outcome.scenario.fleet.outages:
        key = (one.start_s, one.duration_s, one.drain)
        spans[key] = spans.get(key, 0) + 1
    for (start_s, duration_s, drain), num in spans.items():
        own = (records.arrival_s >= start_s) & (records.arrival_s < start_s + duration_s)
        words = f"{num} {'drained' if drain else 'lost'} from {start_s:g} s to {start_s + duration_s:g} s"
        during.append((words, own))
        out |= own
    again = recomputed_tokens(outcome.run)
    note = f"{outcome.run.num_rerouted:,} requests were sent to another replica"
    if again is not None:
        note += f"; {again:,} prompt tokens were computed again, preemptions included"
    return _group_table("outages", "requests that came", [*during, ("at other times", ~out)], outcome, note)


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


def scaling_table(outcome: ServingOutcome, scaling: Scaling) -> Table:
    """How many replicas there were, and what waiting for a new one meant."""
    rule, use = outcome.scenario.fleet.autoscaling, outcome.run.replicas
    assert rule is not None
    first = use.pool == 0
    paid_s, span_s = float(use.active_s[first].sum()), outcome.run.duration_s
    rows: tuple[tuple[Cell, ...], ...] = (
        (
            int(scaling.num_active.min()),
            paid_s / span_s if isfinite(span_s) and span_s > 0 else None,
            int(scaling.num_active.max()),
            paid_s,
            float(use.busy_fraction[first & (use.active_s > 0)].mean())
            if np.any(use.active_s[first] > 0)
            else None,
            int(scaling.num_requests.max()),
            rule.cold_start_s,
        ),
    )
    return Table(
        title="autoscaling",
        columns=(
            Column("least", "count"),
            Column("mean", "count"),
            Column("most", "count"),
            Column("replica time", "s"),
            Column("busy", "fraction"),
            Column("most requests", "count"),
            Column("cold start", "s"),
        ),
        rows=rows,
        note=f"replicas of the first pool, {rule.least} to {rule.most} allowed; their time includes the cold start",
    )


def scaling_chart(scaling: Scaling) -> LineChart:
    """Replicas and load over time."""
    time_s = tuple(float(one) for one in scaling.time_s)

    def line(name: str, values: NDArray[np.int64], dashed: bool = False) -> Series:
        return Series(name, time_s, tuple(float(one) for one in values), dashed)

    return LineChart(
        title="replicas and load",
        x=Axis("time", "s"),
        y=Axis("count"),
        series=(
            line("replicas that serve", scaling.num_active),
            line("starting", scaling.num_starting, True),
            line("requests in the system", scaling.num_requests),
        ),
    )
