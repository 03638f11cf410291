"""The tables and the chart of a fabric simulation."""

from __future__ import annotations

import numpy as np

from datahall.answer import Axis, Cell, Column, LineChart, Series, Table
from datahall.fabric.collectives.algorithms.bus import COLLECTIVES, bus_factor
from datahall.fabric.flows.crosscheck import Crosscheck
from datahall.fabric.scenario import Outcome, Scenario
from datahall.fabric.topology.graph import SCALE_UP_TIER, Fabric, Floats

MOST_LINKS = 10
MOST_STEPS = 16
NUM_TIMES = 200  # points of the rate over time
LABEL = 1_000_000  # more than the phases of any job


class Sent:
    """Flows that carry something: the rate of each from first byte to last, and as a share of what its ports
    allow.

    Ports allow a flow its part of the first and the last link among the flows of its own step; what is
    missing from 100 % is lost inside the fabric or to others.
    """

    def __init__(self, outcome: Outcome) -> None:
        flows, run = outcome.traffic.flows, outcome.run
        assert flows.delay_s is not None
        assert flows.label is not None
        self.real = np.flatnonzero((outcome.traffic.source >= 0) & (np.diff(flows.paths.offsets) > 0))
        self.label = flows.label[self.real]
        self.begin_s: Floats = run.ready_s[self.real] + flows.delay_s[self.real]
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = flows.num_bytes[self.real] / (run.end_s[self.real] - self.begin_s)
        self.rate: Floats = np.where(np.isfinite(rate), rate, 0.0)
        self.fraction: Floats = np.minimum(1.0, self.rate / self._allowed(outcome))

    def _allowed(self, outcome: Outcome) -> Floats:
        traffic, fabric = outcome.traffic, outcome.scenario.net.fabric
        paths = traffic.flows.paths
        owner, share = paths.owners(), traffic.flows.share_fraction
        port = fabric.link_source[paths.links] == traffic.source[owner]
        port |= fabric.link_target[paths.links] == traffic.target[owner]
        owner, link = owner[port], paths.links[port].astype(np.int64)
        part = np.ones(link.size) if share is None else share[port]
        assert traffic.flows.label is not None
        step = traffic.flows.label.astype(np.int64) * LABEL + traffic.phase
        _, which = np.unique(step[owner] * fabric.num_links + link, return_inverse=True)
        together = np.bincount(which, part)[which] / _turns(outcome)[owner]
        allowed = np.full(traffic.source.size, np.inf)
        np.minimum.at(allowed, owner, fabric.link_bytes_per_s[link] / np.maximum(part, together))
        return allowed[self.real]


def _turns(outcome: Outcome) -> Floats:
    """How many flows of each flow's step between the same two ends come one after the other."""
    scenario, traffic = outcome.scenario, outcome.traffic
    turns = np.ones(traffic.source.size)
    for index in range(len(traffic.names)):
        mine = traffic.flows.label == index
        if index >= len(scenario.jobs):
            burst = scenario.bursts[index - len(scenario.jobs)]
            turns[mine] = np.inf if burst.start_s.size and np.ptp(burst.start_s) > 0 else 1.0
            continue
        job = scenario.jobs[index]
        rounds = np.array([1, *(phase.num_rounds if outcome.level == "full" else 1 for phase in job.phases)])
        turns[mine] = job.repeat * rounds[traffic.phase[mine] + 1]
    return turns


def mean(values: Floats) -> float:
    return float(values.mean()) if values.size else 0.0


def least(values: Floats) -> float:
    return float(values.min()) if values.size else 0.0


def load(outcome: Outcome) -> Floats:
    """Bytes over what the link could have carried in the time; 0 where it can carry nothing."""
    run, capacity = outcome.run, outcome.scenario.net.fabric.link_bytes_per_s
    ends = run.end_s[np.isfinite(run.end_s)]
    could = capacity * (float(ends.max()) if ends.size else 0.0)
    return np.divide(run.link_bytes, could, out=np.zeros_like(could), where=could > 0)


def job_table(outcome: Outcome) -> Table:
    rows, scenario = Sent(outcome), outcome.scenario
    label = outcome.traffic.flows.label
    assert label is not None
    lines: list[tuple[Cell, ...]] = []
    for index, name in enumerate(outcome.traffic.names):
        mine = rows.label == index
        end = outcome.run.end_s[label == index].max(initial=0.0)
        job = scenario.jobs[index] if index < len(scenario.jobs) else None
        start = job.start_s if job else float(np.nanmin(outcome.run.ready_s[label == index], initial=end))
        seconds = float(end) - start if np.isfinite(end) else None
        lines.append((
            name, int(mine.sum()), start, seconds, _bus(scenario, index, seconds),
            mean(rows.fraction[mine]), least(rows.fraction[mine]),
        ))  # fmt: skip
    columns = (
        Column("job"),
        Column("flows", "count"),
        Column("start", "s"),
        Column("time", "s"),
        Column("bus bandwidth", "bytes_per_s"),
        Column("mean flow", "fraction"),
        Column("slowest flow", "fraction"),
    )
    return Table(
        title="jobs and background; flows as a share of what their ports allow",
        columns=columns,
        rows=tuple(lines),
    )


def _bus(scenario: Scenario, index: int, seconds: float | None) -> float | None:
    if index >= len(scenario.jobs) or not seconds:
        return None
    job, ask = scenario.jobs[index], scenario.asks[index]
    collective = next(one for one in COLLECTIVES if one == ask.collective)
    each = (seconds - (job.repeat - 1) * job.pause_s) / job.repeat
    return float(bus_factor(collective, float(job.hosts.size))) * ask.size_bytes / each


def difference_table(other: Crosscheck) -> Table:
    columns = (
        Column("job"),
        Column(other.lower, "s"),
        Column(other.higher, "s"),
        Column("difference", "fraction"),
    )
    rows = tuple((job.name, job.lower_s, job.higher_s, job.difference_fraction) for job in other.jobs)
    return Table(title=f"cross-check: {other.lower} against {other.higher}", columns=columns, rows=rows)


def link_table(outcome: Outcome) -> Table:
    run, fabric, busy = outcome.run, outcome.scenario.net.fabric, load(outcome)
    used = np.flatnonzero(run.link_bytes > 0)
    top = used[np.lexsort((used, -busy[used]))][:MOST_LINKS]
    rows: list[tuple[Cell, ...]] = []
    for link in top.tolist():
        capacity = float(fabric.link_bytes_per_s[link])
        peak = float(run.link_peak_bytes_per_s[link])
        rows.append((
            link_name(fabric, link), float(run.link_bytes[link]), float(busy[link]),
            peak / capacity if capacity else None, capacity,
        ))  # fmt: skip
    columns = (
        Column("link"),
        Column("carried", "bytes"),
        Column("load", "fraction"),
        Column("peak", "fraction"),
        Column("capacity", "bytes_per_s"),
    )
    return Table(
        title=f"the fullest {len(rows)} of {used.size:,} links in use", columns=columns, rows=tuple(rows)
    )


def link_name(fabric: Fabric, link: int) -> str:
    """A link by its two ends, e.g. "chip 3 → tier 1 switch 0"."""
    return f"{_node(fabric, int(fabric.link_source[link]))} → {_node(fabric, int(fabric.link_target[link]))}"


def _node(fabric: Fabric, node: int) -> str:
    if node < fabric.num_hosts:
        return f"chip {node}"
    tier = int(fabric.node_tier[node])
    first = int(np.argmax(fabric.node_tier == tier))
    return f"{'domain' if tier == SCALE_UP_TIER else f'tier {tier} switch'} {node - first}"


def timeline(outcome: Outcome) -> Table:
    run, traffic = outcome.run, outcome.traffic
    label = traffic.flows.label
    assert label is not None
    real = np.flatnonzero(traffic.source >= 0)
    key = label[real].astype(np.int64) * LABEL + traffic.phase[real]
    kinds, first, which, count = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    start, end = np.full(kinds.size, np.inf), np.zeros(kinds.size)
    np.fmin.at(start, which, run.ready_s[real])
    np.maximum.at(end, which, run.end_s[real])
    rows: list[tuple[Cell, ...]] = []
    for step in np.argsort(first, kind="stable")[:MOST_STEPS].tolist():
        job, phase = divmod(int(kinds[step]), LABEL)
        inside = job < len(outcome.scenario.jobs)
        name = outcome.scenario.jobs[job].phases[phase].name if inside else "background"
        rows.append((
            traffic.names[job], name, int(count[step]), _finite(start[step]), _finite(end[step]),
        ))  # fmt: skip
    columns = (
        Column("job"),
        Column("step"),
        Column("flows", "count"),
        Column("first start", "s"),
        Column("last end", "s"),
    )
    more = kinds.size - len(rows)
    note = f"{more:,} more steps; -o run.perfetto-trace has them all" if more else ""
    return Table(title="timeline", columns=columns, rows=tuple(rows), note=note)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def chart(outcome: Outcome) -> LineChart:
    """Bytes per second that all flows of each job move, over time."""
    flows, run = outcome.traffic.flows, outcome.run
    rows = Sent(outcome)
    assert flows.delay_s is not None
    edges = np.linspace(0.0, run.makespan_s, NUM_TIMES + 1)
    begin = rows.begin_s
    series = []
    for index, name in enumerate(outcome.traffic.names):
        mine = rows.label == index
        moved = np.zeros(edges.size)
        for edge in range(edges.size):
            passed = (edges[edge] - begin[mine]) * rows.rate[mine]
            moved[edge] = np.clip(passed, 0.0, flows.num_bytes[rows.real][mine]).sum()
        speed = np.diff(moved) / np.diff(edges)
        series.append(Series(name, tuple(edges[:-1].tolist()), tuple(speed.tolist())))
    return LineChart(
        title="what the jobs move",
        x=Axis("time", "s"),
        y=Axis("rate", "bytes_per_s"),
        series=tuple(series),
    )
