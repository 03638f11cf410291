"""The tables of a simulated service."""

from __future__ import annotations

from math import isfinite

import numpy as np
from numpy.typing import NDArray

from datahall.answer import Axis, Cell, Column, LineChart, Series, Table
from datahall.inference.closed_form.steady_state import State
from datahall.inference.engine.slo import Slo
from datahall.inference.fleet.fleet import Fleet, Pool
from datahall.inference.memory.offload import lower_tiers
from datahall.inference.simulation.lifecycle import E2E, ITL, QUEUE, TPOT, TTFT
from datahall.inference.simulation.run import ReplicaUse, ServingRun

SHARES = (0.5, 0.9, 0.95, 0.99)


def latency_table(run: ServingRun, slo: Slo) -> Table:
    """Percentiles of what a user feels."""
    measures = (
        ("time to first token (TTFT)", run.ttft_s, TTFT, slo.ttft_s),
        ("time per output token (TPOT)", run.tpot_s, TPOT, slo.tpot_s),
        ("between tokens (ITL)", run.itl_s, ITL, float("inf")),
        ("end to end (E2E)", run.e2e_s, E2E, float("inf")),
        ("waiting for a first step", run.queue_s, QUEUE, float("inf")),
    )
    rows: list[tuple[Cell, ...]] = []
    for name, percentile, index, limit_s in measures:
        rows.append(
            (
                name,
                _known(run.mean_s(index)),
                *(_known(percentile(share)) for share in SHARES),
                limit_s if isfinite(limit_s) else None,
            )
        )
    return Table(
        title="latency",
        columns=(
            Column("measure"),
            Column("mean", "s"),
            *(Column(f"P{share * 100:g}", "s") for share in SHARES),
            Column("limit", "s"),
        ),
        rows=tuple(rows),
        note="percentiles over requests; of ITL over tokens",
    )


def latency_chart(run: ServingRun) -> LineChart:
    """Each latency over the share of requests, or of tokens, that stay below it."""
    shares = tuple(place / 100 for place in range(1, 100))
    measures = {"E2E": run.e2e_s, "TTFT": run.ttft_s, "TPOT": run.tpot_s, "ITL": run.itl_s}
    lines = {name: tuple(map(measure, shares)) for name, measure in measures.items()}
    return LineChart(
        title="how many wait how long",
        x=Axis("share that waits less", "fraction"),
        y=Axis("time", "s", log=True),
        series=tuple(
            Series(name, shares, times)
            for name, times in lines.items()
            if all(isfinite(one) and one > 0 for one in times)
        ),
    )


def _known(value: float) -> float | None:
    return value if isfinite(value) else None


def replica_table(fleet: Fleet, run: ServingRun, names: tuple[str, ...] = ()) -> Table:
    """Each pool, by its role or a name: the mean replica and the busiest."""
    use = run.replicas
    below = any(pool.replica.host_cache_bytes or pool.replica.drive_cache_bytes for pool in fleet.pools)
    rows: list[tuple[Cell, ...]] = []
    for place, pool in enumerate(fleet.pools):
        own = use.pool == place
        used = own & (use.active_s > 0)
        if not np.any(used):
            continue
        rows.append(
            (
                names[place] if names else pool.role if len(fleet.pools) > 1 else "all",
                int(np.count_nonzero(used)),
                float(use.busy_fraction[used].mean()),
                float(use.cache_mean_fraction[used].mean()),
                float(use.cache_peak_fraction[used].max()),
                float(use.queue_mean[used].mean()),
                int(use.num_preempted[own].sum()),
                *(_held_below(pool, use, used) if below else ()),
            )
        )
    return Table(
        title="replicas",
        columns=(
            Column("pool"),
            Column("replicas", "count"),
            Column("busy", "fraction"),
            Column("cache used", "fraction"),
            Column("at most", "fraction", key="cache_peak_fraction"),
            Column("waiting", "count"),
            Column("preemptions", "count"),
            *BELOW[: 2 if below else 0],
        ),
        rows=tuple(rows),
        note="means over the run; waiting: requests in front of one replica",
    )


BELOW = (
    Column("host full", "fraction", key="host_cache_fraction"),
    Column("drives full", "fraction", key="drive_cache_fraction"),
)


def _held_below(pool: Pool, use: ReplicaUse, used: NDArray[np.bool_]) -> tuple[Cell, Cell]:
    """How full the tiers below the chips are at the end; nothing where there is none."""
    host, drives = lower_tiers(pool.replica)
    return (
        float(use.host_blocks[used].mean()) / host.num_blocks if host.num_blocks else None,
        float(use.drive_blocks[used].mean()) / drives.num_blocks if drives.num_blocks else None,
    )


def crosscheck_table(run: ServingRun, steady: State, fleet: Fleet) -> Table:
    """The closed form beside what was played."""
    pairs: list[tuple[str, float, float]] = [
        ("TPOT", run.mean_s(TPOT), steady.tpot_s),
        ("TTFT", run.mean_s(TTFT), steady.ttft_s),
    ]
    ranks = fleet.num_replicas * fleet.pools[0].replica.dp
    rows: list[tuple[Cell, ...]] = [
        (
            f"mean {name}",
            _known(played),
            _known(closed),
            closed / played - 1.0 if isfinite(closed) and played > 0 else None,
        )
        for name, played, closed in pairs
    ]
    note = f"the closed form has {steady.decoding:.3g} sequences decoding on each of {ranks:,} ranks, {steady.use:.0%} "
    note += "of the most they hold"
    if steady.near_saturation:
        note += "; this near to it the closed form only bounds the wait"
    return Table(
        title="closed form beside it",
        columns=(
            Column("figure"),
            Column("played", "s"),
            Column("closed form", "s"),
            Column("difference", "fraction"),
        ),
        rows=tuple(rows),
        note=note,
    )
