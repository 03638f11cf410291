"""Times of NCCL's algorithms and protocols on a system: closed forms with the system's own constants.

Rings and trees are those of `all_reduce` and `all_gather` with three refinements that measurements ask for: latency
hides behind transfer by a fitted degree, a rank also copies its own share, and a proxy between nodes sets a floor
under every step.  Each gives no time where NCCL does not have it on the machine; `algorithms.table` lists them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from datahall.fabric.collectives.algorithms.all_gather import pat_all_gather_time
from datahall.fabric.collectives.algorithms.all_reduce import nvlink_sharp_all_reduce_time, tree_depth
from datahall.fabric.collectives.algorithms.bus import Collective, Floats
from datahall.fabric.collectives.algorithms.moves import MOVES
from datahall.fabric.collectives.algorithms.pipeline import overlapped
from datahall.fabric.collectives.constants import RAMP_DOUBLINGS, RAMP_FROM_BYTES, Across, Protocol
from datahall.fabric.collectives.system import System
from datahall.fabric.collectives.tuner import (
    PROTOCOLS,
    nvls_tree_allowed,
    steps_inside,
    tree_most_bytes_per_s,
)

BEST_CHUNKS = 0.5  # `overlapped` with the chunk size that suits the pipeline best
TWO_NETWORKS = 4.0  # `overlapped` for two stages that run at once: little more than the slower one
TREE_INSIDE_SHARE = 0.92
LARGE_BYTES = 2.0**32
PAT_HOPS = 3.5  # steps of PAT that overlap, so each takes this part of a hop (NCCL)


class Run(NamedTuple):
    """What runs where, by which of NCCL's protocols."""

    system: System
    collective: Collective
    num_ranks: int
    protocol: str

    @property
    def shape(self) -> tuple[int, int]:
        """Ranks of a domain, and domains."""
        return self.system.shape(self.num_ranks)

    @property
    def column(self) -> int:
        return PROTOCOLS.index(self.protocol)

    @property
    def constants(self) -> Protocol | None:
        """Those of the protocol inside a domain; None: the machine does not run it."""
        is_there = self.protocol != "LL128" or self.system.has_ll128(self.shape[1])
        return self.system.inside.protocol(self.protocol) if is_there else None


def network(system: System) -> Across:
    """The network's constants; `System.shape` has made sure that there is one."""
    assert system.across is not None
    return system.across


def grown(size: Floats) -> Floats:
    """How far a hop has grown towards its longest, 0 up to 8 KB and 1 from 32 KB on."""
    return np.clip(np.log2(np.maximum(size, 1.0) / RAMP_FROM_BYTES) / RAMP_DOUBLINGS, 0.0, 1.0)


def _hop(protocol: Protocol, size: Floats) -> Floats:
    return protocol.hop_s * (1.0 + protocol.ramp * grown(size))


def link_rate(system: System, protocol: Protocol, num_inside: int) -> float:
    """Bus bandwidth [B/s] of a ring in the domain; on a mesh a few chips reach a few links only."""
    links = system.inside.num_mesh_links
    return protocol.bytes_per_s * min(1.0, max(1, num_inside - 1) / links) if links else protocol.bytes_per_s


def tapered(rate: float, across: Across, domains: int) -> float:
    """A ring through more nodes meets more shared links: its rate falls with each doubling past four."""
    return rate / (1.0 + across.taper * max(0.0, float(np.log2(domains / 4))))


def ring(run: Run, size: Floats) -> Floats | None:
    """Rounds of n − 1 steps, each to the next rank."""
    protocol = run.constants
    if protocol is None:
        return None
    system, index, (inside, domains) = run.system, run.column, run.shape
    rounds, steps = MOVES[run.collective].num_rounds, int(ring_steps(run))
    rate = link_rate(system, protocol, inside)
    hop, base = _hop(protocol, size), protocol.base_s
    if domains == 1:
        latency = steps * hop
    else:
        across = network(system)
        base = across.base_s[index]
        network_steps = rounds * (domains - 1)
        if inside == 1:
            network_steps = steps
        share = across.nic_share(index, system.nic_bytes_per_s, system.ports_left_fraction)
        node = system.nic_bytes_per_s * inside * share
        rate = tapered(min(rate, node) if inside > 1 else node, across, domains)
        floor = np.maximum(hop, across.step_s[index])
        latency = (steps - network_steps) * floor + network_steps * across.hop_s[index]
    volume = size if MOVES[run.collective].is_rooted else (steps + protocol.own_steps) * size / run.num_ranks
    return np.asarray(base + overlapped(latency, volume / rate, protocol.overlap), dtype=np.float64)


def ring_steps(run: Run) -> float:
    """Steps that follow one another: a ring counts ranks."""
    return float(MOVES[run.collective].num_rounds * (run.num_ranks - 1))


def tree(run: Run, size: Floats) -> Floats | None:
    """Chains inside domains, or servers of larger ones, two trees over these."""
    protocol = run.constants
    if protocol is None:
        return None
    system, index, (inside, domains) = run.system, run.column, run.shape
    latency, base = 2 * steps_inside(inside, system.num_chain) * _hop(protocol, size), protocol.base_s
    transfer = 2 * size / tree_most_bytes_per_s(system.family, domains)
    if inside > 1:
        transfer = np.maximum(transfer, 2 * size / (TREE_INSIDE_SHARE * link_rate(system, protocol, inside)))
    if domains > 1:
        across = network(system)
        base = across.base_s[index]
        more = 1.0 + across.ramp * grown(size) if index == 0 else 1.0
        latency = latency + 2 * tree_depth(float(domains)) * across.tree_hop_s[index] * more
        # two nodes send to each other once; an inner node of a larger tree sends up and down
        copies = 1 if domains == 2 else 2
        share = across.nic_share(index, system.nic_bytes_per_s, system.ports_left_fraction, tree=True)
        transfer = np.maximum(transfer, copies * size / (system.nic_bytes_per_s * inside * share))
        if index == 2:
            return np.asarray(base + overlapped(latency, transfer, across.tree_overlap), dtype=np.float64)
    return np.asarray(base + overlapped(latency, transfer, protocol.overlap), dtype=np.float64)


def tree_steps(run: Run) -> float:
    """A tree counts levels, up and down."""
    inside, domains = run.shape
    return float(2 * (steps_inside(inside, run.system.num_chain) + _levels(domains)))


def _levels(domains: int) -> float:
    return float(tree_depth(float(domains))) if domains > 1 else 0.0


def _is_switched(run: Run) -> bool:
    """Whether switches add up what the ranks of a domain send."""
    return run.system.nvls and run.system.inside.nvls_bytes_per_s > 0


def nvls(run: Run, size: Floats) -> Floats | None:
    """The switch of one domain adds."""
    own, (num_ranks, domains) = run.system.inside, run.shape
    if domains > 1 or not _is_switched(run):
        return None
    rate = own.nvls_bytes_per_s * np.where(size > LARGE_BYTES, own.nvls_large_gain, 1.0)
    time = nvlink_sharp_all_reduce_time(
        size, float(num_ranks), hop_s=own.nvls_latency_s, bytes_per_s=rate, overlap=BEST_CHUNKS
    )
    return np.asarray(own.simple.base_s + time, dtype=np.float64)


def nvls_steps(_: Run) -> float:
    """To the switch, and from it."""
    return 2.0


def nvls_tree(run: Run, size: Floats) -> Floats | None:
    """The switch of each domain adds, two trees over these."""
    system, (inside, domains) = run.system, run.shape
    if not _is_switched(run) or not nvls_tree_allowed(run.num_ranks, domains):
        return None
    own, across = system.inside, network(system)
    copies = 1 if domains == 2 else 2
    node = system.nic_bytes_per_s * inside * across.tree_share[2]
    rate = own.nvls_bytes_per_s * np.where(size > LARGE_BYTES, own.nvls_large_gain, 1.0)
    transfer = overlapped((inside + 1) / inside * size / rate, copies * size / node, TWO_NETWORKS)
    hops = 2 * tree_depth(float(domains)) * across.tree_hop_s[2]
    return np.asarray(
        own.simple.base_s + hops + overlapped(own.nvls_latency_s, transfer, BEST_CHUNKS), dtype=np.float64
    )


def nvls_tree_steps(run: Run) -> float:
    """A tree's, with the switch in place of a chain."""
    return nvls_steps(run) + 2 * _levels(run.shape[1])


def pat(run: Run, size: Floats) -> Floats | None:
    """Trees from every rank at once, with one rank a domain."""
    system, num_ranks = run.system, run.num_ranks
    if run.shape[0] > 1:
        return None
    across = network(system)
    rate = system.nic_bytes_per_s * across.share[2]
    return np.asarray(
        system.inside.simple.base_s
        + pat_all_gather_time(size, float(num_ranks), hop_s=across.hop_s[2] / PAT_HOPS, bytes_per_s=rate),
        dtype=np.float64,
    )


def pat_levels(run: Run) -> float:
    """Levels of a tree over all ranks."""
    return float(tree_depth(float(run.num_ranks)))


def direct(run: Run, size: Floats) -> Floats:
    """An all-to-all, or one message between neighbours, over the slower of both networks."""
    system, num_ranks, (inside, domains) = run.system, run.num_ranks, run.shape
    pairwise = MOVES[run.collective].is_pairwise
    own = system.inside.exchange or system.inside.simple
    peers = int(direct_steps(run))
    local = 1 if pairwise else inside - 1
    share = 1 if pairwise else num_ranks
    transfer = (local + own.own_steps) * size / share / link_rate(system, own, inside)
    latency = own.hop_s * local
    base = own.base_s
    if domains > 1:
        across = network(system)
        leaving = 1 if pairwise else num_ranks - inside
        wire = leaving * size / share / (system.nic_bytes_per_s * across.share[2])
        transfer = np.maximum(transfer if inside > 1 else 0.0, wire)
        latency, base = latency + across.message_s * (peers - local), base + across.exchange_base_s
    return np.asarray(base + overlapped(latency, transfer, own.overlap), dtype=np.float64)


def direct_steps(run: Run) -> float:
    """One peer after the other."""
    return float(1 if MOVES[run.collective].is_pairwise else run.num_ranks - 1)
