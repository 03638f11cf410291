"""Which algorithm and protocol NCCL takes: the smallest of its own estimates, which are not the true times.

NCCL writes latency + bytes / bandwidth for each pair with constants of its own and takes the minimum.  Where these
constants are off, so is the choice: eight-way all-gather on a B200 leaves LL at 12 MB although LL would be twice as
fast there.  A prediction has to make the same mistakes, so the choice is kept apart from the time.
The constants are facts of NCCL 2.27 as listed in research (latencies in µs, bandwidths in GB/s).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import numpy as np

from datahall.fabric.collectives.algorithms.all_gather import PAT_RANK_S, PAT_SHARE
from datahall.fabric.collectives.algorithms.bus import Collective, Floats, bus_factor
from datahall.fabric.collectives.algorithms.moves import MOVES

PROTOCOLS = ("LL", "LL128", "Simple")


class Waits(NamedTuple):
    """Latencies [µs] by protocol: at the start, per hop inside a domain over NVLink and over PCIe, over the network."""

    base_us: tuple[float, float, float]
    nvlink_us: tuple[float, float, float]
    pcie_us: tuple[float, float, float]
    network_us: tuple[float, float, float]


RING = Waits((6.6, 14.0, 8.4), (0.6, 1.9, 3.4), (1.0, 2.5, 5.7), (2.7, 4.0, 14.0))
TREE = Waits((6.8, 14.0, 8.4), (0.6, 1.25, 4.0), (1.0, 1.9, 4.0), (5.0, 8.5, 14.0))
NVLS_US, NVLS_TREE_NETWORK_US = 25.0, 20.9
PAT_US, PAT_NETWORK_US = 8.0, 14.0
PLATEAU = 1.4  # ring, Simple, all-reduce over several nodes

# most that LL moves, by family, on 1 / 2 / more nodes; between nodes the host decides, and the Intel row is taken
LL_MOST = {"volta": 39.0, "ampere": 87.7, "hopper": 141.0, "blackwell": 282.0}
LL_MOST_NETWORK = (39.0, 20.4)
LL128_RING_MOST = {"volta": 20.0, "ampere": 20.0, "hopper": 36.7, "blackwell": 40.0}  # per channel
TREE_MOST = {
    "volta": (26.5, 18.5, 10.0), "ampere": (24.0, 23.6, 17.8), "hopper": (38.7, 41.4, 36.0),
    "blackwell": (70.0, 42.8, 24.0),
}  # fmt: skip
TREE_LL128_MOST = {
    "volta": (20.0,) * 3, "ampere": (20.0,) * 3, "hopper": (36.7, 36.7, 29.0), "blackwell": (55.6, 31.67, 20.0),
}  # fmt: skip
NVLS_SHARE = {"hopper": 0.85, "blackwell": 0.74}
NVLS_TREE_MOST = {"hopper": (57.7, 45.5), "blackwell": (96.0, 80.0)}
# what the search for channels settles on: bandwidth of all rings together and of one NVLS head
RING_TOTAL = {"volta": 120.0, "ampere": 235.0, "hopper": 360.0, "blackwell": 640.0}
NVLS_HEAD_MOST = {"hopper": 60.0, "blackwell": 90.0}
NVLS_TOTAL = {"hopper": 371.0, "blackwell": 722.0}
CHANNELS = {"volta": 12, "ampere": 24, "hopper": 24, "blackwell": 16}
# trees run below their model between 64 B and 256 MB, by powers of two
TREE_SHARE = np.array(
    [
        [1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1, 1],
        [1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1, 1],
        [.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9],
    ]
)  # fmt: skip
LARGEST_SWITCHED = 32  # ranks of a domain that NVLS trees were seen on past two domains


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What NCCL sees of a machine when it chooses."""

    family: str
    num_ranks: int
    num_nodes: int  # scale-up domains
    nvlink: bool = True
    node_network_bytes_per_s: float = 0.0  # all NICs of a node, one way
    network_latency_s: float = 0.0  # what the network plug-in says it adds to a hop
    ll128: bool = True
    nvls: bool = True
    version: tuple[int, int] = (2, 27)
    num_channels: int = 0  # 0: what the family has
    num_chain: int = 0  # ranks of a node that a tree passes one by one; 0: all of them


def nvls_tree_allowed(num_ranks: int, num_nodes: int) -> bool:
    """Whether NVLink SHARP domains are joined by trees; more than two racks of NVL72 run plain trees and rings (e4).

    A switch adds nothing where a domain has one rank of the group.

    >>> nvls_tree_allowed(32, 4), nvls_tree_allowed(144, 2), nvls_tree_allowed(1440, 20), nvls_tree_allowed(9, 5)
    (True, True, False, False)
    """
    several = num_ranks // num_nodes > 1
    return several and num_nodes > 1 and (num_nodes == 2 or num_ranks // num_nodes <= LARGEST_SWITCHED)


def tree_most_bytes_per_s(family: str, num_nodes: int) -> float:
    """The bus bandwidth [B/s] that NCCL's trees do not pass: so much per channel, less across many nodes."""
    return CHANNELS[family] * TREE_MOST[family][min(num_nodes, 3) - 1] * 1e9


def steps_inside(num_inside: int, num_chain: int) -> int:
    """Steps of a tree through the ranks of one domain, one way: a chain through a server, or a rack that is sold as one
    domain, and a tree over those where a domain has several.

    >>> steps_inside(8, 8), steps_inside(72, 72), steps_inside(128, 8), steps_inside(128, 0)
    (7, 71, 11, 127)
    """
    chain = min(num_inside, num_chain or num_inside)
    return chain - 1 + (-(-num_inside // chain) - 1).bit_length()


def allowed(
    estimated: dict[tuple[str, str], Floats], only: Iterable[str] = (), without: Iterable[str] = ()
) -> dict[tuple[str, str], Floats]:
    """Return the pairs that NCCL may take; `only` is NCCL_ALGO, `without` its opposite."""
    kept, dropped = set(only), set(without)
    return {
        pair: time
        for pair, time in estimated.items()
        if (not kept or pair[0] in kept) and pair[0] not in dropped
    }


def choose(estimated: dict[tuple[str, str], Floats]) -> list[tuple[str, str]]:
    """Return the pair with the smallest estimate at every size."""
    pairs = list(estimated)
    return [pairs[index] for index in np.argmin(np.stack(list(estimated.values())), axis=0)]


def _scale(setting: Setting) -> int:
    return min(setting.num_nodes, 3) - 1


def _total(setting: Setting, network_share: float = 1.0) -> float:
    """Bandwidth of all rings [GB/s]."""
    inside = RING_TOTAL[setting.family] if setting.nvlink else 20.0
    if setting.num_nodes == 1:
        return inside
    return min(inside, network_share * setting.node_network_bytes_per_s / 1e9)


def _channels(setting: Setting) -> int:
    return setting.num_channels or CHANNELS[setting.family]


def _hops(setting: Setting, waits: Waits, index: int) -> tuple[float, float]:
    inside = (waits.nvlink_us if setting.nvlink else waits.pcie_us)[index]
    one_per_node = setting.num_nodes == setting.num_ranks
    across = (TREE if one_per_node else waits).network_us[index]
    across += setting.network_latency_s * 1e6 * (2.0 if index == 2 else 1.0)  # Simple also waits for a flush
    return inside, across


def _is_there(setting: Setting, protocol: str) -> bool:
    return protocol != "LL128" or (setting.ll128 and setting.nvlink)


def ring(setting: Setting, collective: Collective, protocol: str, size: Floats) -> Floats | None:
    """NCCL's own estimate [s] of a ring on arrays of sizes; None: it does not weigh it."""
    if not _is_there(setting, protocol):
        return None
    index = PROTOCOLS.index(protocol)
    rounds = MOVES[collective].num_rounds
    inside, across = _hops(setting, RING, index)
    total, most = _total(setting), 0.0
    if index == 0:
        most = LL_MOST[setting.family] if setting.num_nodes == 1 else LL_MOST_NETWORK[_scale(setting) - 1]
        total = min(0.5 * total, most)
    elif index == 1:
        total = min(0.92 * total, _channels(setting) * LL128_RING_MOST[setting.family])
    steps = rounds * (setting.num_ranks - 1)
    network = rounds * (setting.num_nodes - 1)
    if setting.num_nodes > 1:
        inside = max(inside, 3.0 if index == 2 else 1.0)
    latency = np.full(size.shape, RING.base_us[index] + (steps - network) * inside + network * across)
    if index == 2 and setting.num_nodes > 1 and rounds == 2:
        latency[size / (_channels(setting) * setting.num_ranks) >= 64] *= PLATEAU
    factor = bus_factor(collective, float(setting.num_ranks))
    return latency * 1e-6 + size * factor / (total * 1e9)


def tree(setting: Setting, _: Collective, protocol: str, size: Floats) -> Floats | None:
    """Its estimate [s] of a tree."""
    if not _is_there(setting, protocol):
        return None
    index = PROTOCOLS.index(protocol)
    inside, across = _hops(setting, TREE, index)
    channels, scale = _channels(setting), _scale(setting)
    # between two nodes a tree crosses the network once where a ring crosses it twice
    total = min(
        0.92 * _total(setting, 2.0 if setting.num_nodes == 2 else 1.0),
        channels * TREE_MOST[setting.family][scale],
    )
    if index == 0:
        most = LL_MOST[setting.family] if setting.num_nodes == 1 else LL_MOST_NETWORK[scale - 1]
        total = min(total / 3.8, most)
    elif index == 1:
        share = 7 / 9 if setting.num_nodes == 1 else 120 / 128
        total = min(total * share, channels * TREE_LL128_MOST[setting.family][scale])
    per_node = setting.num_ranks // setting.num_nodes
    depth = int(np.log2(setting.num_nodes))
    near = steps_inside(per_node, setting.num_chain)
    latency = TREE.base_us[index] + 2 * (near * inside + depth * across)
    place = np.clip(np.log2(np.maximum(size / 64, 1.0)).astype(np.int64), 0, 23)
    share_at = np.where(place < 23, TREE_SHARE[index][np.minimum(place, 22)], 1.0)
    return latency * 1e-6 + size / (0.5 * total * share_at * 1e9)


def _is_switched(setting: Setting) -> bool:
    """Whether switches add up what the ranks of a node send."""
    return setting.nvls and setting.family in NVLS_SHARE


def nvls(setting: Setting, _: Collective, __: str, size: Floats) -> Floats | None:
    """Its estimate [s] of one domain's switch."""
    if setting.num_nodes > 1 or not _is_switched(setting):
        return None
    heads = setting.num_ranks
    head = min(NVLS_HEAD_MOST[setting.family], NVLS_TOTAL[setting.family] / heads)
    total = 2 * heads * head * NVLS_SHARE[setting.family] * (heads - 1) / heads
    return NVLS_US * 1e-6 + size * bus_factor("all-reduce", float(heads)) / (total * 1e9)


def nvls_tree(setting: Setting, _: Collective, __: str, size: Floats) -> Floats | None:
    """Its estimate [s] of switches that trees join."""
    if not _is_switched(setting) or not nvls_tree_allowed(setting.num_ranks, setting.num_nodes):
        return None
    heads = setting.num_ranks // setting.num_nodes
    head = min(NVLS_HEAD_MOST[setting.family], NVLS_TOTAL[setting.family] / heads)
    inside = 2 * head * NVLS_SHARE[setting.family] * (heads - 1) / heads
    across = setting.node_network_bytes_per_s / 1e9 / heads * (2 if setting.num_nodes == 2 else 1)
    total = heads * min(inside, across, NVLS_TREE_MOST[setting.family][_scale(setting) - 1])
    network = NVLS_TREE_NETWORK_US + 2 * setting.network_latency_s * 1e6
    latency = NVLS_US + 2 * int(np.log2(setting.num_nodes)) * network
    return latency * 1e-6 + size * bus_factor("all-reduce", float(setting.num_ranks)) / (total * 1e9)


def pat(setting: Setting, _: Collective, __: str, size: Floats) -> Floats | None:
    """Its estimate [s] of PAT, with one rank a node."""
    if setting.num_nodes != setting.num_ranks:
        return None
    latency = (
        PAT_US
        + float(np.log2(setting.num_nodes)) * PAT_NETWORK_US / 3.5
        + PAT_RANK_S * 1e6 * setting.num_ranks
    )
    return latency * 1e-6 + size / (PAT_SHARE * _total(setting) * 1e9)
