"""Flows: rates at 101,306 hosts, a 1,024-rank collective played, flows per second, and SimGrid on the same ring."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from clock import best_s
from table import Line, printed

from datahall.fabric.collectives.algorithms.steps import phases
from datahall.fabric.flows.congestion import Carrier
from datahall.fabric.flows.jobs import Job, Net, Routing, traffic
from datahall.fabric.flows.rates import max_min_rates
from datahall.fabric.flows.simulate import Flows, Run, simulate
from datahall.fabric.flows.symmetry import simulate_folded
from datahall.fabric.routing.paths import route
from datahall.fabric.routing.policies import permutation, sharing, spread
from datahall.fabric.topology.fat_tree import fat_tree
from datahall.fabric.topology.graph import Fabric, Paths, Wire

LINE = 50e9
RING_BYTES = 256 * 2**20
SIMGRID_SOURCE = Path(__file__).with_name("simgrid_ring.cpp")


def fabric_lines() -> list[Line]:
    """Everything, the quick ones first."""
    return [*rate_lines(), *collective_lines(), *load_lines(), *ecmp_lines()]


def rate_lines() -> list[Line]:
    """One allocation: a permutation of 101,306 hosts, an all-to-all of 1,024."""
    large = fat_tree(101_306, Wire(LINE))
    rng = np.random.default_rng(0)
    source, target = permutation(large.num_hosts, rng)
    paths = route(large, source, target, rng.integers(0, 2**62, source.size))
    one_s = best_s(lambda: max_min_rates(paths, large.link_bytes_per_s))
    tree = fat_tree(1024, Wire(LINE))
    pairs = np.divmod(np.arange(1024 * 1024), 1024)
    keep = pairs[0] != pairs[1]
    every = route(tree, pairs[0][keep], pairs[1][keep], rng.integers(0, 2**62, int(keep.sum())))
    all_s = best_s(lambda: max_min_rates(every, tree.link_bytes_per_s), 3)
    return [
        Line(f"rates: permutation of {large.num_hosts:,} hosts, {large.num_links:,} links", one_s, "s", 0.2),
        Line(f"rates: all-to-all of 1,024 hosts, {every.num_flows:,} flows", all_s, "s", 0.2),
        Line("  flows per second", every.num_flows / all_s, "/s"),
    ]


def collective_lines() -> list[Line]:
    """A ring all-reduce over 1,024 ranks: folded, in full, and SimGrid's."""
    fabric = fat_tree(1024, Wire(LINE, 0.5e-6))
    net = Net(fabric=fabric, routing=Routing("deterministic"), carrier=Carrier(virtual_lanes=2))
    folded_s = best_s(lambda: _folded(net, "all-reduce", "ring"))
    two_level_s = best_s(lambda: _folded(net, "all-reduce", "two-level"))
    halving_s = best_s(lambda: _folded(net, "all-reduce", "halving-doubling"))
    full = traffic(net, (_job("all-reduce", "ring"),), level="full")
    full_s = best_s(lambda: simulate(full.flows, fabric.link_bytes_per_s), 1)
    lines = [
        Line("1,024 ranks: ring all-reduce from steps to end, alike flows folded", folded_s, "s", 0.005),
        Line("  two-level", two_level_s, "s", 0.005),
        Line("  halving-doubling, 20,480 flows", halving_s, "s"),
        Line(f"  ring in full, {full.flows.num_messages:,} flows", full_s, "s"),
        Line("  flows per second, in full", full.flows.num_messages / full_s, "/s"),
    ]
    peer = simgrid_ring(1024)
    if peer is None:
        print("SimGrid: absent (Debian: libsimgrid-dev, g++), so no comparison with it")
        return lines
    peer_s, simulated_s = peer
    ours = _folded(net, "all-reduce", "ring").makespan_s
    return [
        *lines,
        Line("  SimGrid, the same ring", peer_s, "s"),
        Line("  folded against SimGrid", peer_s / folded_s, "× faster", 1000, True),
        Line("  in full against SimGrid", peer_s / full_s, "× faster"),
        Line("  simulated time over SimGrid's", ours / simulated_s, "×"),
    ]


def _job(collective: str, algorithm: str, num_ranks: int = 1024) -> Job:
    steps = phases(collective, algorithm, num_ranks, RING_BYTES, 8 if algorithm == "two-level" else 1)
    return Job(name=algorithm, hosts=np.arange(num_ranks, dtype=np.int32), phases=steps)


def _folded(net: Net, collective: str, algorithm: str) -> Run:
    """From the name of a collective to its end: steps, routes, classes, events."""
    return simulate_folded(traffic(net, (_job(collective, algorithm),)).flows, net.fabric.link_bytes_per_s)


def load_lines() -> list[Line]:
    """Flows that come and go one by one, each changing the rates of its neighbours."""
    fabric = fat_tree(1024, Wire(LINE, 0.5e-6))
    rng = np.random.default_rng(0)
    flows = random_flows(fabric, 20_000, rng)
    part_s = best_s(lambda: simulate(flows, fabric.link_bytes_per_s), 1)
    few = random_flows(fabric, 2_000, rng)
    part, whole = (
        best_s(partial(simulate, few, fabric.link_bytes_per_s, whole=every), 1) for every in (False, True)
    )
    return [
        Line("20,000 flows at random times on 1,024 hosts", part_s, "s"),
        Line("  flows per second, end to end", flows.num_flows / part_s, "/s"),
        Line("  against solving everything after each event (2,000 flows)", whole / part, "× faster"),
    ]


def random_flows(fabric: Fabric, count: int, rng: np.random.Generator) -> Flows:
    """Poisson arrivals that keep the hosts about a third busy."""
    source, target = rng.integers(0, fabric.num_hosts, (2, count))
    paths: Paths = route(fabric, source, target, rng.integers(0, 2**62, count))
    duration = count * 8e6 / (0.33 * LINE * fabric.num_hosts)
    return Flows(paths=paths, num_bytes=rng.exponential(8e6, count), start_s=rng.random(count) * duration)


def ecmp_lines() -> list[Line]:
    """What a random permutation of 8,192 hosts gets, and how long it takes to know."""
    fabric = fat_tree(8192, Wire(LINE))
    lines = []
    for num_parts in (1, 8, 64):
        rng = np.random.default_rng(1)
        source, target = permutation(fabric.num_hosts, rng)
        start = time.process_time()
        found = sharing(spread(fabric, source, target, "ecmp", rng, num_parts), fabric.link_bytes_per_s, LINE)
        lines.append(
            Line(f"permutation of 8,192 hosts, {num_parts} paths: {found.mean_fraction:.1%} mean, "
                 f"{found.slowest_fraction:.1%} slowest", time.process_time() - start, "s")
        )  # fmt: skip
    return lines


def simgrid_ring(num_ranks: int) -> tuple[float, float] | None:
    """CPU time of SimGrid for the ring and the time it simulated [s]; None where it is not installed."""
    compiler = shutil.which("g++")
    if compiler is None or not Path("/usr/include/simgrid/s4u.hpp").exists():
        return None
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "ring")
        build = [compiler, "-O2", "-std=c++17", str(SIMGRID_SOURCE), "-lsimgrid", "-o", program]
        if subprocess.run(build, capture_output=True, check=False).returncode:
            return None
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [program, str(num_ranks), str(RING_BYTES)], capture_output=True, text=True, check=False
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        return None
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, float(done.stdout.split()[-1])


if __name__ == "__main__":
    print(printed(fabric_lines()))
