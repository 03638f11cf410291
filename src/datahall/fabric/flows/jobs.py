"""From jobs to flows: collectives on chosen endpoints, spread over paths, in the order their steps demand."""

from __future__ import annotations

import msgspec
import numpy as np

from datahall.errors import ScenarioError
from datahall.fabric.collectives.algorithms.steps import Phase
from datahall.fabric.flows.congestion import Carrier
from datahall.fabric.flows.detours import FlowRoutes, LearnedFabric, detours_of, kept, ways_of
from datahall.fabric.flows.order import JOIN, alike_order, folded, full_order
from datahall.fabric.flows.simulate import Flows, Rounds
from datahall.fabric.routing.policies import Rule, Spread, rule_of, spread
from datahall.fabric.routing.pooling import pools
from datahall.fabric.topology.graph import Fabric, Floats, Ints, Longs, Paths, select
from datahall.scenario.words import SPLITTING, Collective, FlowDetail, Policy

Level = FlowDetail
MOST_FLOWS = 6_000_000  # about 4 GB


class Routing(msgspec.Struct, frozen=True):
    """How flows choose their paths: the policy, and how many queue pairs a flow is split into."""

    policy: Policy
    num_parts: int = 1

    @property
    def rule(self) -> Rule:
        """What the policy is and needs."""
        return rule_of(self.policy)


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Phases that run one after the other on `hosts`, `repeat` times, with `pause_s` between."""

    name: str
    hosts: Ints  # the endpoint of each rank
    phases: tuple[Phase, ...]
    start_s: float = 0.0
    repeat: int = 1
    pause_s: float = 0.0
    message_s: float = 0.0  # software, per message


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What a job was asked as: the collective, the algorithm and its size [B]."""

    collective: Collective
    algorithm: str
    size_bytes: float


class Burst(msgspec.Struct, frozen=True, kw_only=True):
    """Flows that nobody waits for: background."""

    name: str
    source: Ints
    target: Ints
    num_bytes: Floats
    start_s: Floats


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """All flows of a scenario; `flows.label` is the number of the job or burst in `names`."""

    flows: Flows
    names: tuple[str, ...]
    source: Ints  # endpoint of each flow, -1 for a join, which carries nothing
    target: Ints
    phase: Ints  # number of the phase in its job
    pause_s: Floats  # between two runs of a job, before the flows of the second
    head_of_line: bool
    kept_fraction: float = (
        1.0  # of the bytes on the wire, or of the rate, what the transport leaves for new data
    )


class Net(msgspec.Struct, frozen=True, kw_only=True):
    """What flows pass through: the fabric, how they choose paths, how the transport behaves."""

    fabric: Fabric
    routing: Routing
    carrier: Carrier = Carrier()
    seed: int = 0
    steady: bool = True  # no link changes while flows are under way
    known_later: tuple[LearnedFabric, ...] = ()  # of failures under way, by routing

    @property
    def pool(self) -> Ints | None:
        """The link that stands for each link where packets are spread over pools."""
        return pools(self.fabric, self.routing.policy) if self.steady else None


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """The flows of one job or burst, before they are put together."""

    routes: Spread
    row: Longs  # of the routes, past the last for a join
    paths: Paths
    share_fraction: Floats | None
    num_bytes: Floats
    start_s: Floats
    delay_s: Floats
    source: Ints
    target: Ints
    phase: Ints
    pause_s: Floats
    after: Ints
    after_offsets: Longs
    kept_fraction: float
    num_alike: Floats  # flows that one row stands for
    num_times: Ints  # rounds in which it is sent
    again_delay_s: Floats
    sender: Ints
    receiver: Ints


def traffic(
    net: Net,
    jobs: tuple[Job, ...],
    bursts: tuple[Burst, ...] = (),
    level: Level = "symmetric",
    *,
    in_step: bool = False,
) -> Traffic:
    """Write down the flows of all jobs and bursts; `in_step` with each round for itself at the symmetric level."""
    _check_size(net, jobs, bursts)
    routes = _routes(net, jobs, bursts)
    parts = [_job(net, job, level, ways, in_step) for job, ways in zip(jobs, routes, strict=False)]
    parts += [_burst(net, burst, ways) for burst, ways in zip(bursts, routes[len(jobs) :], strict=True)]
    sizes = [part.num_bytes.size for part in parts]
    first = np.cumsum([0, *sizes])[:-1]
    tables = [
        [
            FlowRoutes(ways, part.row, int(start))
            for ways, part, start in zip(every, parts, first, strict=True)
        ]
        for every in _in_time(net, jobs, bursts, routes)
    ]
    shares = [part.share_fraction for part in parts if part.share_fraction is not None]
    flows = Flows(
        paths=Paths(
            _end_to_end([part.paths.links for part in parts]), _ends([part.paths.offsets for part in parts])
        ),
        num_bytes=np.concatenate([np.empty(0), *(part.num_bytes for part in parts)]),
        start_s=np.concatenate([np.empty(0), *(part.start_s for part in parts)]),
        delay_s=np.concatenate([np.empty(0), *(part.delay_s for part in parts)]),
        share_fraction=np.concatenate(shares) if shares else None,
        after=_end_to_end([part.after + np.int32(shift) for part, shift in zip(parts, first, strict=True)]),
        after_offsets=_ends([part.after_offsets for part in parts]),
        label=np.repeat(np.arange(len(parts), dtype=np.int32), sizes),
        weight=np.concatenate([np.empty(0), *(part.num_alike for part in parts)]),
        rounds=_rounds(parts),
        ways=ways_of(tables[0]),
        detours=detours_of([later.at_s for later in net.known_later], tables),
    )  # fmt: skip
    return Traffic(
        flows=flows,
        names=(*(job.name for job in jobs), *(burst.name for burst in bursts)),
        source=_end_to_end([part.source for part in parts]),
        target=_end_to_end([part.target for part in parts]),
        phase=_end_to_end([part.phase for part in parts]),
        pause_s=np.concatenate([np.empty(0), *(part.pause_s for part in parts)]),
        head_of_line=net.carrier.head_of_line,
        kept_fraction=_kept_fraction(parts),
    )


def _routes(
    net: Net, jobs: tuple[Job, ...], bursts: tuple[Burst, ...], *, partial: bool = False
) -> list[Spread]:
    """The routes of each job and burst, drawn with the seed."""
    rngs = np.random.default_rng(net.seed).spawn(len(jobs) + len(bursts))
    pairs = [(_sources(job), _targets(job)) for job in jobs]
    pairs += [(burst.source, burst.target) for burst in bursts]
    how = net.routing
    return [
        spread(net.fabric, *ends, how.policy, rng, how.num_parts, pool=net.pool, partial=partial)
        for ends, rng in zip(pairs, rngs, strict=True)
    ]


def _in_time(
    net: Net, jobs: tuple[Job, ...], bursts: tuple[Burst, ...], routes: list[Spread]
) -> list[list[Spread]]:
    """The same at first and from each moment on at which routing learns something."""
    found = [routes]
    for later in net.known_later:
        after = msgspec.structs.replace(net, fabric=later.fabric)
        now = _routes(after, jobs, bursts, partial=True)
        found.append([kept(one, other) for one, other in zip(found[-1], now, strict=True)])
    return found


def _rounds(parts: list[_Part]) -> Rounds | None:
    """What is sent several times; the ranks of each job are others."""
    if all((part.num_times == 1).all() for part in parts):
        return None
    ranks = [int(max(part.sender.max(initial=-1), part.receiver.max(initial=-1))) + 1 for part in parts]
    shift = np.cumsum([0, *ranks])[:-1]

    def numbered(columns: list[Ints]) -> Ints:
        return _end_to_end(
            [np.where(ends >= 0, ends + more, -1) for ends, more in zip(columns, shift, strict=True)]
        )

    return Rounds(
        num_rounds=_end_to_end([part.num_times for part in parts]),
        delay_s=np.concatenate([part.again_delay_s for part in parts]),
        sender=numbered([part.sender for part in parts]),
        receiver=numbered([part.receiver for part in parts]),
    )


def _kept_fraction(parts: list[_Part]) -> float:
    """Over all flows, those that carry more count more."""
    wire = [float(part.num_bytes.sum()) for part in parts]
    new = sum(part.kept_fraction * sent for part, sent in zip(parts, wire, strict=True))
    return new / sum(wire) if sum(wire) else 1.0


def _check_size(net: Net, jobs: tuple[Job, ...], bursts: tuple[Burst, ...]) -> None:
    total = sum(burst.source.size for burst in bursts)
    for job in jobs:
        for phase in job.phases:
            total += phase.source.size * job.repeat
    total *= net.routing.num_parts
    if total > MOST_FLOWS:
        raise ScenarioError(
            f"{total:,} flows; {MOST_FLOWS:,} are as many as fit",
            hint="fewer ranks or repeats, or all-to-all as pairwise",
        )


def _job(net: Net, job: Job, level: Level, routes: Spread, in_step: bool) -> _Part:
    """The flows of one job: a table of the flows of its phases, and rows of that table in order."""
    parts = net.routing.num_parts if net.routing.policy in SPLITTING else 1
    split = [
        msgspec.structs.replace(
            phase,
            source=np.repeat(phase.source, parts),
            target=np.repeat(phase.target, parts),
            num_bytes=phase.num_bytes / parts,
        )
        for phase in job.phases
    ]
    source, target = _sources(job), _targets(job)
    each = np.repeat([phase.num_bytes for phase in split], [phase.source.size for phase in split])
    rounds = np.repeat([phase.num_rounds for phase in split], [phase.source.size for phase in split])
    latency = latency_s(net.fabric, routes)
    effect = net.carrier.effect(each * rounds, _line(net.fabric), latency)
    table, num_alike = np.arange(each.size), np.ones(each.size)
    if level == "full":
        split, table, num_alike = folded(split, routes.paths)
        order = full_order(split, job.hosts.size, job.repeat, job.pause_s)
    else:
        order = alike_order(split, job.repeat, job.pause_s, in_step=in_step)
    start = np.cumsum([0, *(phase.source.size for phase in split)])
    row = np.append(table, each.size)[
        np.where(order.phase == JOIN, table.size, start[order.phase] + order.member)
    ]
    message_s = latency + job.message_s + effect.message_s
    many = np.where(order.phase == JOIN, 1.0, np.append(num_alike, 1.0)[row])
    return _Part(
        routes=routes,
        row=row,
        paths=select(_with_join(routes.paths), row),
        share_fraction=_shares(routes, row),
        num_bytes=_at(each / (effect.efficiency * routes.efficiency), row) * order.num_rounds * many,
        start_s=np.full(row.size, job.start_s),
        delay_s=order.wait_s + order.num_rounds * _at(message_s, row) + _at(effect.start_up_s, row),
        source=_end_of(np.repeat(source, parts), row),
        target=_end_of(np.repeat(target, parts), row),
        phase=order.phase,
        pause_s=order.wait_s,
        after=order.after,
        after_offsets=order.after_offsets,
        kept_fraction=effect.efficiency,
        num_alike=many,
        num_times=order.num_times,
        again_delay_s=_at(message_s, row),
        sender=order.sender,
        receiver=order.receiver,
    )


def _sources(job: Job) -> Ints:
    return _end_to_end([job.hosts[phase.source] for phase in job.phases])


def _targets(job: Job) -> Ints:
    return _end_to_end([job.hosts[phase.target] for phase in job.phases])


def _burst(net: Net, burst: Burst, routes: Spread) -> _Part:
    parts = net.routing.num_parts if net.routing.policy in SPLITTING else 1
    latency = latency_s(net.fabric, routes)
    num_bytes = np.repeat(burst.num_bytes / parts, parts)
    effect = net.carrier.effect(num_bytes, _line(net.fabric), latency)
    return _Part(
        routes=routes,
        row=np.arange(routes.paths.num_flows),
        paths=routes.paths,
        share_fraction=routes.share_fraction,
        num_bytes=num_bytes / (effect.efficiency * routes.efficiency),
        start_s=np.repeat(burst.start_s, parts),
        delay_s=latency + effect.message_s + effect.start_up_s,
        source=np.repeat(burst.source, parts),
        target=np.repeat(burst.target, parts),
        phase=np.zeros(num_bytes.size, np.int32),
        pause_s=np.zeros(num_bytes.size),
        after=np.empty(0, np.int32),
        after_offsets=np.zeros(num_bytes.size + 1, np.int64),
        kept_fraction=effect.efficiency,
        num_alike=np.ones(num_bytes.size),
        num_times=np.ones(num_bytes.size, np.int32),
        again_delay_s=np.zeros(num_bytes.size),
        sender=np.full(num_bytes.size, -1, np.int32),
        receiver=np.full(num_bytes.size, -1, np.int32),
    )


def latency_s(fabric: Fabric, routes: Spread) -> Floats:
    """One-way latency of each way [s], of a sprayed flow the mean of its paths."""
    each = fabric.link_latency_s[routes.paths.links]
    if routes.share_fraction is not None:
        each = each * routes.share_fraction
    # summed flow by flow: differences of one long sum would make alike flows differ in the last digit
    return np.bincount(routes.paths.owners(), each, routes.paths.num_flows).astype(np.float64)


def _line(fabric: Fabric) -> float:
    return float(fabric.link_bytes_per_s.max(initial=1.0))


def _with_join(paths: Paths) -> Paths:
    return Paths(paths.links, np.append(paths.offsets, paths.offsets[-1]))


def _shares(routes: Spread, row: Longs) -> Floats | None:
    if routes.share_fraction is None:
        return None
    offsets = _with_join(routes.paths).offsets
    lengths = np.diff(offsets)[row]
    shift = np.repeat(offsets[row] - (np.cumsum(lengths) - lengths), lengths)
    return routes.share_fraction[shift + np.arange(shift.size)]


def _at(column: Floats, row: Longs) -> Floats:
    """The values of some rows, 0 for a join."""
    return np.append(column, 0.0)[row]


def _end_of(hosts: Ints, row: Longs) -> Ints:
    return np.append(hosts, np.int32(JOIN))[row]


def _end_to_end(columns: list[Ints]) -> Ints:
    return np.concatenate([np.empty(0, np.int32), *columns]).astype(np.int32, copy=False)


def _ends(offsets: list[Longs]) -> Longs:
    """The offsets of several CSR tables as those of one."""
    return np.concatenate(
        [np.zeros(1, np.int64), np.cumsum(np.concatenate([np.empty(0, np.int64), *map(np.diff, offsets)]))]
    )


__all__ = [
    "Ask",
    "Burst",
    "Job",
    "Level",
    "Net",
    "Routing",
    "Traffic",
    "latency_s",
    "traffic",
]
