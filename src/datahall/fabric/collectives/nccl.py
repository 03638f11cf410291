"""Times of NCCL's algorithms and protocols on a system: closed forms with the system's own constants.

Rings and trees are those of `all_reduce` and `all_gather` with three refinements that measurements ask for: latency
hides behind transfer by a fitted degree, a rank also copies its own share, and a proxy between nodes sets a floor
under every step.
"""

from __future__ import annotations

import numpy as np

from datahall.fabric.collectives.algorithms.all_gather import pat_all_gather_time
from datahall.fabric.collectives.algorithms.all_reduce import nvlink_sharp_all_reduce_time, tree_depth
from datahall.fabric.collectives.algorithms.bus import Collective, Floats
from datahall.fabric.collectives.algorithms.pipeline import overlapped
from datahall.fabric.collectives.algorithms.table import TABLE
from datahall.fabric.collectives.constants import RAMP_DOUBLINGS, RAMP_FROM_BYTES, Across, Protocol
from datahall.fabric.collectives.system import System
from datahall.fabric.collectives.tuner import PROTOCOLS, allowed, nvls_tree_allowed, tree_most_bytes_per_s

Pair = tuple[str, str]
BEST_CHUNKS = 0.5  # `overlapped` with the chunk size that suits the pipeline best
TWO_NETWORKS = 4.0  # `overlapped` for two stages that run at once: little more than the slower one
TREE_INSIDE_SHARE = 0.92
LARGE_BYTES = 2.0**32
PAT_HOPS = 3.5  # steps of PAT that overlap, so each takes this part of a hop (NCCL)
BARRIER_BYTES = 4.0  # a barrier is an all-reduce of one number


def times(system: System, collective: Collective, size_bytes: Floats, num_ranks: int) -> dict[Pair, Floats]:
    """Return the time [s] of every algorithm and protocol that NCCL has for a collective."""
    row = TABLE[collective]
    if "direct" in row.algorithms:
        return {("direct", "Simple"): exchange(system, size_bytes, num_ranks, pairwise=row.is_pairwise)}
    if row.stands_for is not None:
        tiny = times(system, row.stands_for, np.full_like(size_bytes, BARRIER_BYTES), num_ranks)
        return {pair: time for pair, time in tiny.items() if pair[1] == "LL"}
    found: dict[Pair, Floats] = {}
    inside, domains = system.shape(num_ranks)
    for index, name in enumerate(PROTOCOLS):
        protocol = system.inside.protocol(name)
        if protocol is None or (name == "LL128" and not system.has_ll128(domains)):
            continue
        found["ring", name] = _ring(system, collective, protocol, index, size_bytes, num_ranks)
        if "tree" in row.algorithms and allowed(system.version, "tree"):
            found["tree", name] = _tree(system, protocol, index, size_bytes, num_ranks)
    if "NVLS" in row.algorithms and system.nvls and system.inside.nvls_bytes_per_s > 0 and inside > 1:
        if domains == 1 and allowed(system.version, "NVLS"):
            found["NVLS", "Simple"] = _nvls(system, size_bytes, inside)
        elif nvls_tree_allowed(num_ranks, domains) and allowed(system.version, "NVLS tree"):
            found["NVLS tree", "Simple"] = _nvls_tree(system, size_bytes, inside, domains)
    if inside == 1 and "PAT" in row.algorithms and allowed(system.version, "PAT"):
        found["PAT", "Simple"] = _pat(system, size_bytes, num_ranks)
    return {pair: time + system.harness_s for pair, time in found.items()}


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


def _ring(
    system: System, collective: Collective, protocol: Protocol, index: int, size: Floats, num_ranks: int
) -> Floats:
    inside, domains = system.shape(num_ranks)
    rounds = TABLE[collective].num_rounds
    steps = rounds * (num_ranks - 1)
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
        node = system.nic_bytes_per_s * inside * across.share[index]
        rate = tapered(min(rate, node) if inside > 1 else node, across, domains)
        floor = np.maximum(hop, across.step_s[index])
        latency = (steps - network_steps) * floor + network_steps * across.hop_s[index]
    volume = size if TABLE[collective].is_rooted else (steps + protocol.own_steps) * size / num_ranks
    return np.asarray(base + overlapped(latency, volume / rate, protocol.overlap), dtype=np.float64)


def _tree(system: System, protocol: Protocol, index: int, size: Floats, num_ranks: int) -> Floats:
    inside, domains = system.shape(num_ranks)
    latency, base = 2 * (inside - 1) * _hop(protocol, size), protocol.base_s
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
        transfer = np.maximum(
            transfer, copies * size / (system.nic_bytes_per_s * inside * across.tree_share[index])
        )
        if index == 2:
            return np.asarray(base + overlapped(latency, transfer, across.tree_overlap), dtype=np.float64)
    return np.asarray(base + overlapped(latency, transfer, protocol.overlap), dtype=np.float64)


def _nvls(system: System, size: Floats, num_ranks: int) -> Floats:
    own = system.inside
    rate = own.nvls_bytes_per_s * np.where(size > LARGE_BYTES, own.nvls_large_gain, 1.0)
    time = nvlink_sharp_all_reduce_time(
        size, float(num_ranks), hop_s=own.nvls_latency_s, bytes_per_s=rate, overlap=BEST_CHUNKS
    )
    return np.asarray(own.simple.base_s + time, dtype=np.float64)


def _nvls_tree(system: System, size: Floats, inside: int, domains: int) -> Floats:
    own, across = system.inside, network(system)
    copies = 1 if domains == 2 else 2
    node = system.nic_bytes_per_s * inside * across.tree_share[2]
    rate = own.nvls_bytes_per_s * np.where(size > LARGE_BYTES, own.nvls_large_gain, 1.0)
    transfer = overlapped((inside + 1) / inside * size / rate, copies * size / node, TWO_NETWORKS)
    hops = 2 * tree_depth(float(domains)) * across.tree_hop_s[2]
    return np.asarray(
        own.simple.base_s + hops + overlapped(own.nvls_latency_s, transfer, BEST_CHUNKS), dtype=np.float64
    )


def _pat(system: System, size: Floats, num_ranks: int) -> Floats:
    across = network(system)
    rate = system.nic_bytes_per_s * across.share[2]
    return np.asarray(
        system.inside.simple.base_s
        + pat_all_gather_time(size, float(num_ranks), hop_s=across.hop_s[2] / PAT_HOPS, bytes_per_s=rate),
        dtype=np.float64,
    )


def exchange(system: System, size: Floats, num_ranks: int, *, pairwise: bool = False) -> Floats:
    """Return the time [s] of an all-to-all, or of one message between neighbours, over the slower of both networks."""
    inside, domains = system.shape(num_ranks)
    own = system.inside.exchange or system.inside.simple
    peers = 1 if pairwise else num_ranks - 1
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
    return np.asarray(base + overlapped(latency, transfer, own.overlap) + system.harness_s, dtype=np.float64)


def num_steps(system: System, collective: Collective, algorithm: str, num_ranks: int) -> float:
    """Steps that follow one another: a ring counts ranks, a tree levels, a switch none."""
    inside, domains = system.shape(num_ranks)
    rounds = TABLE[collective].num_rounds
    if algorithm == "ring":
        return float(rounds * (num_ranks - 1))
    if algorithm in {"tree", "NVLS tree"}:
        local = inside - 1 if algorithm == "tree" else 1
        return float(2 * (local + (tree_depth(float(domains)) if domains > 1 else 0)))
    if algorithm == "PAT":
        return float(tree_depth(float(num_ranks)))
    return {"NVLS": 2.0, "direct": float(1 if TABLE[collective].is_pairwise else num_ranks - 1)}.get(
        algorithm, 1.0
    )
