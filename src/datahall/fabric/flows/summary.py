"""What a fabric simulation found, as rows: jobs, links, steps, the last flow, rates over time and a trace."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from datahall.breakdown import Breakdown, quotient, simulated, total
from datahall.errors import ScenarioError, option
from datahall.events import new_trace, perfetto
from datahall.fabric.collectives.algorithms.bus import bus_factor
from datahall.fabric.flows.congestion import buffer_cycle
from datahall.fabric.flows.outcome import FlowScenario, Outcome
from datahall.fabric.topology.graph import SCALE_UP_TIER, Fabric, Floats, Ints, Longs

NUM_TIMES = 200  # points of the rate over time
MOST_TRACED = 6_000_000  # messages
LABEL = 1_000_000  # more than the phases of any job


class JobRow(NamedTuple):
    """A job or a burst of background."""

    name: str
    size_bytes: float  # the whole array of a job, one flow of background
    num_flows: int
    start_s: float
    time_s: float | None  # of all its runs; None: it never ends
    num_runs: int
    run_s: float | None  # one of them, on average
    bus_bytes_per_s: float | None
    mean_fraction: float
    slowest_fraction: float


class LinkRow(NamedTuple):
    """A link and what it carried."""

    name: str
    num_bytes: float
    load_fraction: float
    peak_fraction: float | None
    bytes_per_s: float


class StepRow(NamedTuple):
    """A step of a job."""

    job: str
    step: str
    num_flows: int
    start_s: float | None
    end_s: float | None


class LastFlow(NamedTuple):
    """The flow that ended last."""

    source: int
    target: int
    job: str
    ready_s: float
    delay_s: float
    end_s: float
    num_bytes: float

    @property
    def ends(self) -> bool:
        """Whether it ended at all."""
        return bool(np.isfinite(self.end_s))

    @property
    def time_s(self) -> float:
        """From when it could start to its end."""
        return self.end_s - self.ready_s

    @property
    def mean_bytes_per_s(self) -> float:
        """Bytes over the time from its first to its last."""
        moving = self.time_s - self.delay_s
        return self.num_bytes / moving if moving > 0 else np.inf

    @property
    def figure(self) -> Breakdown:
        """When it ended: when it could start, its latency, its bytes at the rate it had."""
        sent = simulated("bytes on the wire", self.num_bytes, "bytes", "with what the transport sends again")
        rate = simulated("mean rate", self.mean_bytes_per_s, "bytes_per_s", "max-min fair share, over time")
        return total(
            f"end of the last flow, chip {self.source} → {self.target} of {self.job}",
            [
                simulated("until it could start", self.ready_s, "s", "its turn, or what it waited for"),
                simulated("latency and start-up", self.delay_s, "s", "of all its rounds"),
                quotient("transfer", sent, rate, "s"),
            ],
            note="flows share links max-min fairly, event by event",
        ).with_note(basis="datasheet only")


class RateCurve(NamedTuple):
    """Bytes per second that all flows of a job move, over time."""

    name: str
    time_s: tuple[float, ...]
    bytes_per_s: tuple[float, ...]


class Sent:
    """Flows that carry something: the rate of each from first byte to last, and as a share of what its ports
    allow.

    Ports allow a flow its part of the first and the last link among the flows of its own step; what is
    missing from 100 % is lost inside the fabric or to others.
    """

    def __init__(self, outcome: Outcome) -> None:
        flows, run = outcome.traffic.flows, outcome.run
        assert flows.label is not None
        sends = (outcome.traffic.source >= 0) & (np.diff(flows.paths.offsets) > 0)
        self.real = np.flatnonzero(sends[run.flow])
        flow = run.flow[self.real]
        self.label = flows.label[flow]
        self.num_each: Longs = run.num_each[self.real]
        self.num_bytes: Floats = flows.num_bytes[flow] / run.num_alike[self.real]
        self.begin_s: Floats = run.ready_s[self.real] + run.delay_s[self.real]
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = self.num_bytes / (run.end_s[self.real] - self.begin_s)
        self.rate: Floats = np.where(np.isfinite(rate), rate, 0.0)
        self.fraction: Floats = np.minimum(1.0, self.rate / self._allowed(outcome)[flow])

    @property
    def num_flows(self) -> int:
        return int(self.num_each.sum())

    @property
    def mean_fraction(self) -> float:
        return mean(self.fraction, self.num_each)

    @property
    def slowest_fraction(self) -> float:
        return least(self.fraction)

    @property
    def mean_bytes_per_s(self) -> float:
        return mean(self.rate, self.num_each)

    @property
    def slowest_bytes_per_s(self) -> float:
        return least(self.rate)

    def _allowed(self, outcome: Outcome) -> Floats:
        traffic, fabric = outcome.traffic, outcome.scenario.net.fabric
        paths = traffic.flows.paths
        owner, share = paths.owners(), traffic.flows.share_fraction
        port = fabric.link_source[paths.links] == traffic.source[owner]
        port |= fabric.link_target[paths.links] == traffic.target[owner]
        owner, link = owner[port], paths.links[port].astype(np.int64)
        part = np.ones(link.size) if share is None else share[port]
        assert traffic.flows.label is not None
        assert traffic.flows.weight is not None
        step = traffic.flows.label.astype(np.int64) * LABEL + traffic.phase
        _, which = np.unique(step[owner] * fabric.num_links + link, return_inverse=True)
        many = part * traffic.flows.weight[owner]
        together = np.bincount(which, many)[which] / _turns(outcome)[owner]
        allowed = np.full(traffic.source.size, np.inf)
        np.minimum.at(allowed, owner, fabric.link_bytes_per_s[link] / np.maximum(part, together))
        return allowed


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
        turns[mine] = scenario.jobs[index].repeat
    return turns


def mean(values: Floats, num_each: Longs) -> float:
    """The mean of values that each stand for so many, 0 of nothing."""
    return float((values * num_each).sum() / num_each.sum()) if values.size else 0.0


def least(values: Floats) -> float:
    """The least, 0 of nothing."""
    return float(values.min()) if values.size else 0.0


def load(outcome: Outcome) -> Floats:
    """Bytes over what the link could have carried in the time; 0 where it can carry nothing."""
    run, capacity = outcome.run, outcome.scenario.net.fabric.link_bytes_per_s
    ends = run.end_s[np.isfinite(run.end_s)]
    could = capacity * (float(ends.max()) if ends.size else 0.0)
    return np.divide(run.link_bytes, could, out=np.zeros_like(could), where=could > 0)


def makespan_s(outcome: Outcome) -> float | None:
    """When the last flow ended; None where one never does."""
    return _finite(outcome.run.makespan_s)


def job_rows(outcome: Outcome, sent: Sent) -> tuple[JobRow, ...]:
    """Every job and burst."""
    scenario, label = outcome.scenario, outcome.traffic.flows.label
    assert label is not None
    label = label[outcome.run.flow]
    rows = []
    for index, name in enumerate(outcome.traffic.names):
        mine = sent.label == index
        end = outcome.run.end_s[label == index].max(initial=0.0)
        job = scenario.jobs[index] if index < len(scenario.jobs) else None
        start = job.start_s if job else float(np.nanmin(outcome.run.ready_s[label == index], initial=end))
        seconds = float(end) - start if np.isfinite(end) else None
        num_runs, pause_s = (job.repeat, job.pause_s) if job else (1, 0.0)
        each_s = (seconds - (num_runs - 1) * pause_s) / num_runs if seconds is not None else None
        rows.append(
            JobRow(
                name, _size_bytes(scenario, index), int(sent.num_each[mine].sum()), start, seconds,
                num_runs, each_s, _bus(scenario, index, each_s),
                mean(sent.fraction[mine], sent.num_each[mine]), least(sent.fraction[mine]),
            )
        )  # fmt: skip
    return tuple(rows)


def _size_bytes(scenario: FlowScenario, index: int) -> float:
    if index < len(scenario.asks):
        return scenario.asks[index].size_bytes
    return float(scenario.bursts[index - len(scenario.asks)].num_bytes.max(initial=0.0))


def _bus(scenario: FlowScenario, index: int, run_s: float | None) -> float | None:
    if index >= len(scenario.jobs) or not run_s:
        return None
    job, ask = scenario.jobs[index], scenario.asks[index]
    return float(bus_factor(ask.collective, float(job.hosts.size))) * ask.size_bytes / run_s


def link_rows(outcome: Outcome, most: int) -> tuple[tuple[LinkRow, ...], int]:
    """The fullest links, and how many are in use."""
    run, fabric, busy = outcome.run, outcome.scenario.net.fabric, load(outcome)
    used = np.flatnonzero(run.link_bytes > 0)
    top = used[np.lexsort((used, -busy[used]))][:most]
    rows = []
    for link in top.tolist():
        capacity, peak = float(fabric.link_bytes_per_s[link]), float(run.link_peak_bytes_per_s[link])
        rows.append(
            LinkRow(
                link_name(fabric, link), float(run.link_bytes[link]), float(busy[link]),
                peak / capacity if capacity else None, capacity,
            )
        )  # fmt: skip
    return tuple(rows), int(used.size)


def fullest(outcome: Outcome) -> LinkRow | None:
    """The link that was busy for the largest part of the time."""
    rows, _ = link_rows(outcome, 1)
    return rows[0] if rows else None


def link_name(fabric: Fabric, link: int) -> str:
    """A link by its two ends, e.g. "chip 3 → tier 1 switch 0"."""
    return f"{_node(fabric, int(fabric.link_source[link]))} → {_node(fabric, int(fabric.link_target[link]))}"


def _node(fabric: Fabric, node: int) -> str:
    if node < fabric.num_hosts:
        return f"chip {node}"
    tier = int(fabric.node_tier[node])
    first = int(np.argmax(fabric.node_tier == tier))
    return f"{'domain' if tier == SCALE_UP_TIER else f'tier {tier} switch'} {node - first}"


def step_rows(outcome: Outcome, most: int) -> tuple[tuple[StepRow, ...], int]:
    """The first steps in the order they come, and how many there are."""
    run, traffic = outcome.run, outcome.traffic
    label = traffic.flows.label
    assert label is not None
    key = np.where(traffic.source >= 0, label.astype(np.int64) * LABEL + traffic.phase, -1)  # -1: a join
    kinds, first, which = np.unique(key, return_index=True, return_inverse=True)
    start, end = np.full(kinds.size, np.inf), np.zeros(kinds.size)
    step_of = which[run.flow]
    count = np.bincount(step_of, run.num_each, kinds.size).astype(np.int64)
    np.fmin.at(start, step_of, run.ready_s)
    np.maximum.at(end, step_of, run.end_s)
    order = np.argsort(first, kind="stable")
    order = order[kinds[order] >= 0]
    rows = []
    for step in order[:most].tolist():
        job, phase = divmod(int(kinds[step]), LABEL)
        inside = job < len(outcome.scenario.jobs)
        name = outcome.scenario.jobs[job].phases[phase].name if inside else "background"
        rows.append(
            StepRow(traffic.names[job], name, int(count[step]), _finite(start[step]), _finite(end[step]))
        )
    return tuple(rows), int(order.size)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def last_flow(outcome: Outcome) -> LastFlow | None:
    """The flow that ended last; a join, which carries nothing, only ends with it."""
    flows, traffic, run = outcome.traffic.flows, outcome.traffic, outcome.run
    real = np.flatnonzero(traffic.source[run.flow] >= 0)
    if not real.size:
        return None
    last = int(real[run.end_s[real].argmax()])
    flow = int(run.flow[last])
    assert flows.label is not None
    return LastFlow(
        int(traffic.source[flow]),
        int(traffic.target[flow]),
        traffic.names[int(flows.label[flow])],
        float(run.ready_s[last]),
        float(run.delay_s[last]),
        float(run.end_s[last]),
        float(flows.num_bytes[flow] / run.num_alike[last]),
    )


def num_locked(outcome: Outcome) -> int:
    """Links that wait for each other in a circle, where one lane can lock up."""
    net = outcome.scenario.net
    if not net.carrier.head_of_line:
        return 0
    return int(buffer_cycle(outcome.traffic.flows.paths, net.fabric.num_links).size)


def rate_curves(outcome: Outcome, sent: Sent) -> tuple[RateCurve, ...]:
    """What each job moves over time."""
    run = outcome.run
    edges = np.linspace(0.0, run.makespan_s, NUM_TIMES + 1)
    curves = []
    for index, name in enumerate(outcome.traffic.names):
        mine = sent.label == index
        moved = np.zeros(edges.size)
        begin_s, rate, each = sent.begin_s[mine], sent.rate[mine], sent.num_bytes[mine]
        many, times, every_s = (column[sent.real][mine] for column in (run.num_alike, run.times, run.every_s))
        for edge in range(edges.size):
            passed_s = edges[edge] - begin_s
            before = _comings(passed_s, times, every_s)  # of each message, those that are over or under way
            now = np.clip((passed_s - np.maximum(before - 1, 0) * every_s) * rate, 0.0, each)
            moved[edge] = (many * (np.maximum(before - 1, 0) * each + now)).sum()
        speed = np.diff(moved) / np.diff(edges)
        curves.append(RateCurve(name, tuple(edges[:-1].tolist()), tuple(speed.tolist())))
    return tuple(curves)


def _comings(passed_s: Floats, times: Ints, every_s: Floats) -> Floats:
    """How often a message that comes several times has begun, so long after it first did."""
    apart = np.where(every_s > 0, every_s, np.inf)
    return np.clip(np.floor(passed_s / apart) + 1.0, 0.0, times)


def trace_of(outcome: Outcome) -> bytes:
    """The run as a Perfetto trace: a track per sending chip, a slice per message."""
    flows, run, traffic = outcome.traffic.flows, outcome.run, outcome.traffic
    assert flows.label is not None
    sent = (traffic.source[run.flow] >= 0) & np.isfinite(run.end_s) & np.isfinite(run.ready_s)
    if run.num_each[sent].sum() > MOST_TRACED:
        raise ScenarioError(
            f"a trace of {int(run.num_each[sent].sum()):,} messages; {MOST_TRACED:,} are as many as fit",
            hint=f"{option('detail', 'symmetric')} has one slice for all rounds of a flow",
        )
    whole = np.flatnonzero(sent)
    kept = np.repeat(whole, run.num_each[whole])
    copy = np.arange(kept.size) - np.searchsorted(
        kept, kept
    )  # alike ones after one another, then the next round
    flow, late_s = run.flow[kept], copy // run.num_alike[kept] * run.every_s[kept]
    trace = new_trace(kept.size)
    trace.num_recorded[0] = kept.size
    rows = trace.kept[: kept.size]
    rows["time_s"], rows["duration_s"] = run.ready_s[kept] + late_s, run.end_s[kept] - run.ready_s[kept]
    rows["kind"], rows["a"], rows["b"] = flows.label[flow], traffic.source[flow], traffic.target[flow]
    rows["x"] = flows.num_bytes[flow] / run.num_alike[kept]
    chips = {int(chip): f"chip {chip}" for chip in np.unique(traffic.source[flow])}
    return perfetto(trace, dict(enumerate(traffic.names)), chips)
