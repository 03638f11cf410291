"""From what somebody asks to what is simulated: jobs, background, changes of links and stalls of a fabric."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from datahall.errors import ScenarioError, option
from datahall.events import stream
from datahall.fabric.collectives.algorithms.steps import algorithms, phases
from datahall.fabric.flows.early import check_endpoints, check_joined, check_stall
from datahall.fabric.flows.failures import Bools
from datahall.fabric.flows.jobs import Ask, Burst, Job
from datahall.fabric.flows.simulate import NO_CHANGES, Changes, merged
from datahall.fabric.routing.policies import permutation
from datahall.fabric.topology.graph import Fabric, Floats, Ints
from datahall.scenario.sections.fabric import Background, FabricJob
from datahall.scenario.sections.fabric import Stall as StallSection
from datahall.scenario.sections.failure import Failure
from datahall.units import fmt

MOST_BACKGROUND = 2_000_000


class Stall(msgspec.Struct, frozen=True):
    """A chip that stops draining its port, from start_s to end_s."""

    link: int
    start_s: float
    end_s: float


def job_of(asked: FabricJob, index: int, fabric: Fabric) -> tuple[Job, Ask]:
    """A collective on some endpoints, and what was asked for."""
    hosts = endpoints(asked.ranks, fabric, "ranks")
    check_joined(int(hosts.size))
    known = algorithms(asked.collective)
    algorithm = asked.algorithm or (known[0] if known else "")
    try:
        steps = phases(asked.collective, algorithm, hosts.size, asked.size_bytes, _in_domains(fabric, hosts))
    except ScenarioError as error:
        error.field = "algorithm" if known else "collective"
        raise
    job = Job(
        name=asked.name or f"{asked.collective} {index}",
        hosts=hosts,
        phases=steps,
        start_s=asked.start_s,
        repeat=asked.repeat,
        pause_s=asked.pause_s,
        message_s=asked.overhead_s,
    )
    return job, Ask(collective=asked.collective, algorithm=algorithm, size_bytes=asked.size_bytes)


def _in_domains(fabric: Fabric, hosts: Ints) -> tuple[int, ...]:
    """How many ranks follow one another in each scale-up domain."""
    domain = fabric.domain[hosts]
    first = np.flatnonzero(np.concatenate([[True], domain[1:] != domain[:-1]]))
    return tuple(np.diff(np.append(first, hosts.size)).tolist())


def endpoints(numbers: Sequence[int], fabric: Fabric, key: str) -> Ints:
    """Endpoints as a column; none are all of them."""
    if not numbers:
        return np.arange(fabric.num_hosts, dtype=np.int32)
    check_endpoints(numbers, fabric.num_hosts, key)
    return np.array(numbers, np.int32)


def burst_of(asked: Background, index: int, fabric: Fabric, seed: int) -> Burst:
    """Flows that nobody waits for, drawn with the scenario's seed."""
    hosts = endpoints(asked.hosts, fabric, "hosts")
    if hosts.size < 2:
        raise ScenarioError(
            "background needs two endpoints or more", field="hosts", hint="leave hosts out for all"
        )
    source, target, start_s = _pattern(asked, hosts, stream(seed, "background", index), fabric)
    return Burst(
        name=asked.name or f"{asked.pattern} {index}",
        source=source,
        target=target,
        num_bytes=np.full(source.size, asked.size_bytes),
        start_s=asked.start_s + start_s,
    )


def _pattern(
    asked: Background, hosts: Ints, rng: np.random.Generator, fabric: Fabric
) -> tuple[Ints, Ints, Floats]:
    if asked.pattern == "permutation":
        source, target = permutation(hosts.size, rng)
        return hosts[source], hosts[target], np.zeros(source.size)
    if asked.pattern == "incast":
        victim = int(hosts[0])
        if asked.target is not None:
            victim = int(endpoints((asked.target,), fabric, "target")[0])
        source = hosts[hosts != victim]
        return source, np.full(source.size, victim, np.int32), np.zeros(source.size)
    # Poisson arrivals that offer `load` of every endpoint's line rate
    line = float(fabric.link_bytes_per_s[: fabric.num_hosts].max())
    expected = asked.load_fraction * line * hosts.size * asked.until_s / asked.size_bytes
    if expected > MOST_BACKGROUND:
        large = fmt(1.001 * asked.size_bytes * expected / MOST_BACKGROUND, "bytes")
        hint = f"at most {MOST_BACKGROUND:,}, as with {option('size', large)}"
        raise ScenarioError(f"about {expected:,.0f} background flows", field="size", hint=hint)
    count = int(rng.poisson(expected))
    first = rng.integers(0, hosts.size, count)
    second = (first + rng.integers(1, hosts.size, count)) % hosts.size
    return hosts[first], hosts[second], np.sort(rng.random(count)) * asked.until_s


def changes_of(failures: Sequence[tuple[Failure, Bools]], link_bytes_per_s: Floats) -> Changes:
    """What failures make of links while flows are under way, and their repairs.

    A link that several have hit is back when the last of them is repaired.
    """
    ends = [(failure.start_s, failure.start_s + (failure.duration_s or np.inf)) for failure, _ in failures]
    changes = [NO_CHANGES]
    for at in sorted({time for pair in ends for time in pair if time < np.inf}):
        left = np.ones(link_bytes_per_s.size)
        changed = np.zeros(link_bytes_per_s.size, np.bool_)
        for (failure, hit), (start, end) in zip(failures, ends, strict=True):
            changed |= hit & (at in (start, end))
            if start <= at < end:
                left[hit] *= failure.left_fraction
        links = np.flatnonzero(changed).astype(np.int32)
        changes.append(Changes(np.full(links.size, at), links, link_bytes_per_s[links] * left[links]))
    return merged(*changes)


def stall_of(asked: StallSection, fabric: Fabric) -> Stall:
    """The port that a chip stops draining."""
    check_stall(asked, fabric.num_hosts)
    into = np.flatnonzero(fabric.link_target == asked.chip)
    end_s = np.inf if asked.duration_s is None else asked.start_s + asked.duration_s
    return Stall(int(into[0]), asked.start_s, end_s)
