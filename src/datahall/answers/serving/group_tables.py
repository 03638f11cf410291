"""What streams, regions, a cache of answers, failures and autoscaling did, in tables."""

from __future__ import annotations

from collections.abc import Sequence

from datahall.answer import Axis, Cell, Column, LineChart, Series, Table
from datahall.counted import counted
from datahall.inference.fleet.service import Outcome
from datahall.inference.fleet.summary import (
    GroupLatency,
    failure_latencies,
    recomputed_tokens,
    region_latencies,
    scaling_use,
    stream_latencies,
    tier_uses,
)
from datahall.inference.simulation.run import Scaling

CACHE_TIERS = ("none: on to the model", "in the process", "shared", "by meaning")


def group_tables(outcome: Outcome) -> tuple[Table, ...]:
    """A table for each thing that the service has beside a plain fleet."""
    service = outcome.service
    tables: list[Table] = []
    if len(service.streams) > 1:
        note = "measured requests, those from a cache included"
        tables.append(_latency_table("traffic", "stream", stream_latencies(outcome), note))
    if service.regions:
        rows, away, served = region_latencies(outcome)
        note = f"by where requests come from; {away:,} of {served:,} were served in another region"
        tables.append(_latency_table("regions", "from", rows, note))
    if service.cache is not None:
        tables.append(_cache_table(outcome))
    if service.fleet.outages:
        tables.append(_failure_table(outcome))
    return tuple(tables)


def _latency_table(title: str, head: str, rows: Sequence[GroupLatency], note: str) -> Table:
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
        rows=tuple(tuple(row) for row in rows),
        note=note,
    )


def _cache_table(outcome: Outcome) -> Table:
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
        rows=tuple((CACHE_TIERS[use.tier], *use[1:]) for use in tier_uses(outcome)),
        note="expected: of first turns; after: until the answer, or until a request goes on",
    )


def _failure_table(outcome: Outcome) -> Table:
    again = recomputed_tokens(outcome.run)
    num = outcome.run.num_rerouted
    note = f"{counted(num, 'request')} {'was' if num == 1 else 'were'} sent to another replica"
    if again is not None:
        note += f"; {again:,} prompt tokens were computed again, preemptions included"
    return _latency_table("failures", "requests that came", failure_latencies(outcome), note)


def scaling_table(outcome: Outcome, scaling: Scaling) -> Table:
    """How many replicas there were, and what waiting for a new one meant."""
    rule = outcome.service.fleet.autoscaling
    assert rule is not None
    row: tuple[Cell, ...] = (*scaling_use(outcome, scaling), rule.cold_start_s)
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
        rows=(row,),
        note=f"replicas of the first pool, {rule.least} to {rule.most} allowed; their time includes the cold start",
    )


def scaling_charts(scaling: Scaling) -> tuple[LineChart, LineChart]:
    """Replicas over time, and the load that they were for, each on an axis of its own."""
    time_s = tuple(map(float, scaling.time_s))

    def line(name: str, values: Sequence[int], dashed: bool = False) -> Series:
        return Series(name, time_s, tuple(map(float, values)), dashed)

    replicas = (
        line("replicas that serve", scaling.num_active.tolist()),
        line("starting", scaling.num_starting.tolist(), True),
    )
    load = (line("requests in the system", scaling.num_requests.tolist()),)
    return (
        LineChart(title="replicas over time", x=Axis("time", "s"), y=Axis("replicas"), series=replicas),
        LineChart(title="load over time", x=Axis("time", "s"), y=Axis("requests in the system"), series=load),
    )
