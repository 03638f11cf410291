"""The tables of a simulated service."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from datahall.answer import Axis, Cell, Column, LineChart, Series, Table
from datahall.answers.serving.words import percent
from datahall.inference.closed_form.steady_state import State
from datahall.inference.fleet.service import Outcome
from datahall.inference.fleet.summary import crosschecks, pool_uses
from datahall.inference.simulation.histogram import E2E, ITL, QUEUE, TPOT, TTFT
from datahall.inference.simulation.run import PERCENTILES, ServingRun, Watched
from datahall.scenario.sections.wanted.promise import Promise
from datahall.units import fmt

SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
BELOW = (
    Column("host full", "fraction", key="host_cache_fraction"),
    Column("drives full", "fraction", key="drive_cache_fraction"),
)


def known(value: float) -> float | None:
    """A number, or None where there is none."""
    return value if isfinite(value) else None


def latency_table(run: ServingRun, promise: Promise) -> Table:
    """Percentiles of what a user feels."""
    measures = (
        ("time to first token (TTFT)", run.ttft_s, TTFT, promise.ttft_s),
        ("time per output token (TPOT)", run.tpot_s, TPOT, promise.tpot_s),
        ("between tokens (ITL)", run.itl_s, ITL, float("inf")),
        ("end to end (E2E)", run.e2e_s, E2E, float("inf")),
        ("waiting for a first step", run.queue_s, QUEUE, float("inf")),
    )
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            known(run.mean_s(index)),
            *(known(percentile(share)) for share in SHARES.values()),
            known(limit_s),
        )
        for name, percentile, index, limit_s in measures
    ]
    return Table(
        title="latency",
        columns=(
            Column("measure"),
            Column("mean", "s"),
            *(Column(fmt(share, "percentile"), "s") for share in SHARES.values()),
            Column(f"limit at {fmt(promise.percentile, 'percentile')}", "s", key="limit_s"),
        ),
        rows=tuple(rows),
        note="percentiles over requests; of ITL over tokens",
    )


def latency_chart(run: ServingRun) -> LineChart:
    """Each latency over the share of requests, or of tokens, that stay below it."""
    shares = PERCENTILES
    measures = {"E2E": run.e2e_s, "TTFT": run.ttft_s, "TPOT": run.tpot_s, "ITL": run.itl_s}
    lines = {name: tuple(map(measure, shares)) for name, measure in measures.items()}
    return LineChart(
        title="how many wait how long",
        x=Axis("share that waits less", "fraction"),
        y=Axis("time", "s", log=True),
        series=tuple(
            Series(name, shares, times)
            for name, times in lines.items()
            if all(isfinite(time) and time > 0 for time in times)
        ),
    )


def queue_charts(watched: Watched) -> tuple[LineChart, LineChart]:
    """Requests that wait and run as time goes on, and how full caches are."""
    time_s = tuple(map(float, watched.time_s))

    def line(name: str, values: Sequence[float], dashed: bool = False) -> Series:
        return Series(name, time_s, tuple(map(float, values)), dashed)

    requests = (
        line("running", watched.num_running.tolist()),
        line("waiting", watched.num_waiting.tolist(), True),
    )
    used = (line("cache used", watched.cache_fraction.tolist()),)
    return (
        LineChart(title="queue and load over time", x=Axis("time", "s"), y=Axis("requests"), series=requests),
        LineChart(
            title="caches over time", x=Axis("time", "s"), y=Axis("cache used", "fraction"), series=used
        ),
    )


def pool_name(outcome: Outcome, place: int) -> str:
    """Role and region, or the chip where neither says anything."""
    service = outcome.service
    pool = service.fleet.pools[place]
    region = service.regions[pool.region] if service.regions else ""
    role = "" if pool.role == "both" else pool.role
    words = " ".join(word for word in (role, region) if word)
    if len(service.fleet.pools) == 1:
        return words or "all"
    return f"{words or place + 1}: {pool.replica.chip.name}"


def replica_table(outcome: Outcome) -> Table:
    """Each pool: the mean replica and the busiest."""
    pools = outcome.service.fleet.pools
    below = any(pool.replica.host_cache_bytes or pool.replica.drive_cache_bytes for pool in pools)
    rows: list[tuple[Cell, ...]] = []
    for use in pool_uses(outcome):
        *usual, host, drive = use[1:]
        rows.append((pool_name(outcome, use.place), *usual, *((host, drive) if below else ())))
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
        note="means of the time that is measured; waiting: requests in front of one replica",
    )


def crosscheck_table(outcome: Outcome, steady: State) -> Table:
    """The closed form beside what was simulated."""
    rows = tuple((f"mean {row.name}", *row[1:]) for row in crosschecks(outcome))
    ranks = outcome.service.fleet.num_ranks
    where, whose = ("the one rank", "it holds") if ranks == 1 else (f"each of {ranks:,} ranks", "they hold")
    decoding = f"{float(f'{steady.decoding:.3g}'):,g}"
    note = f"the closed form has {decoding} sequences decoding on {where}; {percent(steady.use)} of the "
    note += f"most requests/s that {whose} come"
    if steady.near_saturation:
        note += "; this near to it the closed form only bounds the wait"
    return Table(
        title="closed form beside it",
        columns=(
            Column("figure"),
            Column("simulated", "s"),
            Column("closed form", "s"),
            Column("difference", "fraction"),
        ),
        rows=rows,
        note=note,
    )
