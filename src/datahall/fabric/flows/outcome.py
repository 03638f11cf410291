"""Jobs, background, failures and stalls on one fabric, and what a simulation makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import msgspec
import numpy as np

from datahall.fabric.design.asked import fabric_of
from datahall.fabric.flows.asked import Stall, burst_of, changes_of, job_of, stall_of
from datahall.fabric.flows.congestion import Carrier, pause_storm, paused
from datahall.fabric.flows.detours import LearnedFabric, fabrics_known, reroute_s
from datahall.fabric.flows.early import check_network, check_sent
from datahall.fabric.flows.failures import Bools, compared, failed, links_of
from datahall.fabric.flows.jobs import Ask, Burst, Job, Level, Net, Routing, Traffic, traffic
from datahall.fabric.flows.simulate import NO_CHANGES, Changes, Flows, Run, simulate
from datahall.fabric.flows.symmetry import simulate_folded
from datahall.fabric.routing.paths import CutOffError
from datahall.fabric.routing.pooling import pooled, shared_out
from datahall.fabric.topology.graph import Fabric, Floats, Ints
from datahall.scenario.kinds import Numbers
from datahall.scenario.scenario import Attempts, Scenario
from datahall.scenario.sections.fabric import Background, FabricDesign, FabricJob, Network
from datahall.scenario.sections.fabric import Stall as StallSection
from datahall.scenario.sections.failure import Failure, check_once

MANY_FLOWS = 50_000  # above it, ends that lie within GRAIN of a flow's own time are taken together
GRAIN = 0.01
NUMBERS = Numbers("", ranks=True)


class FlowScenario(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a run needs."""

    net: Net
    wired: Fabric  # before anything failed
    jobs: tuple[Job, ...]
    asks: tuple[Ask, ...]
    bursts: tuple[Burst, ...] = ()
    changes: Changes = NO_CHANGES
    stalls: tuple[Stall, ...] = ()


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario that was simulated at one level."""

    scenario: FlowScenario
    level: Level
    traffic: Traffic
    run: Run
    grain_fraction: float = 0.0  # how far apart ends may lie that were taken together
    in_step: bool = (
        False  # at the symmetric level: each round is simulated, and begins when all have the one before
    )


def flow_scenario(scenario: Scenario) -> FlowScenario:
    """What a question means on its fabric; all its problems are raised together, each with its place."""
    tries = Attempts(scenario)
    tries.make(partial(check_sent, scenario))
    tries.make(partial(check_network, scenario))
    carrier = None if tries.errors else _carrier(scenario)
    fabric = tries.make(lambda: fabric_of(scenario.one(FabricDesign), scenario.catalog), field="on")
    if fabric is None or carrier is None:
        tries.finish()
    assert fabric is not None
    assert carrier is not None
    wired, later = _failing(tries, scenario.all(Failure), fabric)
    changes = changes_of(later, wired.link_bytes_per_s)
    seed = scenario.root.seed
    jobs = [
        tries.make(partial(job_of, one, index, wired), index=index, section="job")
        for index, one in enumerate(scenario.all(FabricJob))
    ]
    bursts = [
        tries.make(partial(burst_of, one, index, wired, seed), index=index, section="background")
        for index, one in enumerate(scenario.all(Background))
    ]
    stalls = [
        tries.make(partial(stall_of, one, wired), index=index, section="stall")
        for index, one in enumerate(scenario.all(StallSection))
    ]
    tries.finish()
    network = scenario.one(Network)
    return FlowScenario(
        wired=fabric,
        net=Net(
            fabric=wired,
            routing=Routing(network.routing, network.paths),
            carrier=carrier,
            seed=seed,
            steady=not changes.at_s.size and not stalls,
            known_later=_known_later(scenario, later, wired),
        ),
        jobs=tuple(made[0] for made in jobs if made is not None),
        asks=tuple(made[1] for made in jobs if made is not None),
        bursts=tuple(burst for burst in bursts if burst is not None),
        changes=changes,
        stalls=tuple(stall for stall in stalls if stall is not None),
    )


def _known_later(
    scenario: Scenario, later: list[tuple[Failure, Bools]], fabric: Fabric
) -> tuple[LearnedFabric, ...]:
    """What routing learns of failures while flows are under way."""
    network = scenario.one(Network)
    transport = scenario.catalog.transport(network.transport)
    known = [(failure, hit, reroute_s(failure, transport, scenario.catalog)) for failure, hit in later]
    return fabrics_known(known, fabric, network.routing)


def _failing(
    tries: Attempts, failures: tuple[Failure, ...], fabric: Fabric
) -> tuple[Fabric, list[tuple[Failure, Bools]]]:
    """The fabric without what is out from the beginning, and what fails later with the links that it takes."""
    wired = fabric
    later: list[tuple[Failure, Bools]] = []
    for index, failure in enumerate(failures):
        tries.make(partial(check_once, failures, index), index=index, section="failure")
        if failure.is_lasting:
            after = tries.make(partial(failed, wired, failure), index=index, section="failure")
            wired = wired if after is None else after
        else:
            hit = tries.make(partial(links_of, fabric, failure), index=index, section="failure")
            later += [] if hit is None else [(failure, hit)]
    return wired, later


def _carrier(scenario: Scenario) -> Carrier:
    network = scenario.one(Network)
    return Carrier(
        transport=scenario.catalog.transport(network.transport),
        virtual_lanes=network.lanes,
        loss_fraction=network.loss_fraction,
        selective_repeat=network.selective_repeat,
        watchdog_s=network.watchdog_s,
    )


def simulate_flows(scenario: FlowScenario, level: Level = "symmetric") -> Outcome:
    """Run a scenario, folding alike flows at the symmetric level where nothing forbids it.

    Of what changes while rounds are under way each feels another part: then each is simulated for itself.  At the
    symmetric level they stay in step, as they are where nothing changes, so that the two can be compared.
    """
    outcome = _simulated(scenario, level)
    return _simulated(scenario, level, in_step=True) if level == "symmetric" and is_felt(outcome) else outcome


def _without_lost(scenario: FlowScenario, error: CutOffError) -> str:
    """The jobs without the chips that reach nobody, where only those are in the way."""
    lost = compared(scenario.wired, scenario.net.fabric).cut_off
    left = {
        job.name: job.hosts[~np.isin(job.hosts, lost)]
        for job in scenario.jobs
        if np.isin(job.hosts, lost).any()
    }
    apart = ~np.isin(error.source, lost) & ~np.isin(error.target, lost)
    if apart.any() or not left or min(hosts.size for hosts in left.values()) < 2:
        return ""
    ranks = ", ".join(
        f"ranks={NUMBERS.write(tuple(hosts.tolist()))} of {name}" for name, hosts in left.items()
    )
    return f"leave out what is cut off: {ranks}"


def _simulated(scenario: FlowScenario, level: Level, *, in_step: bool = False) -> Outcome:
    try:
        flows = traffic(scenario.net, scenario.jobs, scenario.bursts, level, in_step=in_step)
    except CutOffError as error:
        if scenario.net.fabric is not scenario.wired:
            error.field = "failure"
            error.hint = _without_lost(scenario, error) or error.hint
        raise
    pool = scenario.net.pool
    capacity = pooled(pool, scenario.net.fabric.link_bytes_per_s)
    storms = [
        pause_storm(
            flows.flows.paths, stall.link, capacity, at_s=stall.start_s, until_s=stall.end_s,
            watchdog_s=scenario.net.carrier.stuck_s,
        )
        for stall in scenario.stalls
    ]  # fmt: skip
    changes = paused(scenario.changes, storms, capacity)
    grain = GRAIN if flows.flows.num_flows > MANY_FLOWS else 0.0
    alike = flows.flows.ways is None and flows.flows.detours is None  # else what they take tells them apart
    if level == "symmetric" and not in_step and not flows.head_of_line and alike:
        run = simulate_folded(flows.flows, capacity, changes=changes, grain_fraction=grain)
    else:
        run = simulate(
            flows.flows, capacity, changes=changes, grain_fraction=grain, head_of_line=flows.head_of_line
        )
    run = msgspec.structs.replace(
        run,
        link_bytes=shared_out(pool, run.link_bytes),
        link_peak_bytes_per_s=shared_out(pool, run.link_peak_bytes_per_s),
    )
    return Outcome(
        scenario=scenario, level=level, traffic=flows, run=run, grain_fraction=grain, in_step=in_step
    )


def is_felt(outcome: Outcome) -> bool:
    """Whether rounds of a job differ: a link changes while they are under way, or each finds other ways left."""
    scenario = outcome.scenario
    if not any(phase.num_rounds > 1 for job in scenario.jobs for phase in job.phases):
        return False
    if scenario.net.routing.rule.chooses_late and not scenario.net.fabric.whole:
        return True  # each round chooses anew among the ways that are left
    if scenario.net.steady:
        return False
    every = np.arange(scenario.net.fabric.num_links, dtype=np.int32)
    lost = lost_links(scenario.changes, scenario.net.fabric, every)
    stalls = ((one.link, one.start_s, one.end_s) for one in scenario.stalls)
    return any(meets(outcome, *one) for one in (*lost, *stalls))


def meets(outcome: Outcome, link: int, start_s: float, end_s: float) -> bool:
    """Whether a flow may move bytes over a link in some time.

    Folded rounds wait between their bytes, not before them, and the last of them ends with its phase.
    """
    flows, run = outcome.traffic.flows, outcome.run
    over = _passing(flows, link)[run.flow]
    each = outcome.level == "full" or outcome.in_step
    waiting_s = run.delay_s if each else outcome.traffic.pause_s[run.flow]
    begin_s = run.ready_s[over] + waiting_s[over]
    last_s = run.end_s[over] + (run.times[over] - 1) * run.every_s[over]
    if not each:
        last_s = np.maximum(last_s, _ends_of_rounds(outcome)[over])
    return bool(((begin_s < end_s) & (last_s > start_s)).any())


def _ends_of_rounds(outcome: Outcome) -> Floats:
    """When the last round that each flow stands for may end: with all that its job began at the same time [s]."""
    label, run = outcome.traffic.flows.label, outcome.run
    assert label is not None
    together = np.unique(np.stack([label[run.flow], run.ready_s]), axis=1, return_inverse=True)[1].ravel()
    ends = np.zeros(run.flow.size)
    np.maximum.at(ends, together, run.end_s)
    return np.asarray(ends[together])


def _passing(flows: Flows, link: int) -> Bools:
    """Which flows may take a link; with changes under way nothing is pooled."""
    passes = np.zeros(flows.num_flows, np.bool_)
    passes[flows.paths.owners()[flows.paths.links == link]] = True
    if flows.ways is not None:
        way = flows.ways.paths.owners()[flows.ways.paths.links == link]
        passes[np.searchsorted(flows.ways.offsets, way, side="right") - 1] = True
    return passes


def lost_links(changes: Changes, fabric: Fabric, used: Ints) -> Iterator[tuple[int, float, float]]:
    """Links that flows use and failures narrow, each from when until when."""
    for link in np.intersect1d(changes.link, used).tolist():
        mine = changes.link == link
        order = np.argsort(changes.at_s[mine], kind="stable")
        times, rates = changes.at_s[mine][order], changes.bytes_per_s[mine][order]
        for start_s, rate, end_s in zip(times, rates, [*times[1:], np.inf], strict=True):
            if rate < fabric.link_bytes_per_s[link]:
                yield link, start_s, end_s
