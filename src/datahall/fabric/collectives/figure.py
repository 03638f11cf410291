"""The time of one collective as a chain: every term of `nccl`, down to links, ports and fitted constants.

The closed forms run on arrays; this builds the one that is shown.  A test holds the two against each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from datahall.breakdown import (
    Breakdown,
    Source,
    assumed,
    derived,
    fitted,
    given,
    maximum,
    minimum,
    overlap,
    product,
    quotient,
    total,
)
from datahall.counted import with_article
from datahall.fabric.collectives import nccl
from datahall.fabric.collectives.algorithms.all_gather import PAT_RANK_S, PAT_SHARE
from datahall.fabric.collectives.algorithms.all_reduce import tree_depth
from datahall.fabric.collectives.algorithms.bus import Collective
from datahall.fabric.collectives.algorithms.moves import MOVES, NUMBER_BYTES
from datahall.fabric.collectives.constants import Across, Protocol
from datahall.fabric.collectives.system import System
from datahall.fabric.collectives.tuner import PROTOCOLS, steps_inside, tree_most_bytes_per_s

NCCL = Source("NVIDIA, NCCL 2.27, src/graph/tuning.cc", "2025", "datasheet")


class Wires(NamedTuple):
    """The links of a machine as leaves: of a chip into its scale-up domain, and into the network."""

    scale_up: Breakdown
    nic: Breakdown | None = None


class Told(NamedTuple):
    """A time, and how long its bytes alone would take over the scale-up links and over the network [s]."""

    figure: Breakdown
    inside_s: float
    across_s: float = 0.0


LEFT = "left after the failure"


class Ask(NamedTuple):
    """What runs where."""

    system: System
    wires: Wires
    collective: Collective
    size: Breakdown
    num_ranks: int
    grouped: bool = False  # the ranks are a group of a layout, and not what was asked about

    @property
    def ranks(self) -> Breakdown:
        if self.grouped:
            return derived("ranks", self.num_ranks, "count", "of a group of the layout")
        return given("ranks", self.num_ranks, "count", field="chips experts sides on")

    @property
    def shape(self) -> tuple[int, int]:
        return self.system.shape(self.num_ranks)


def one_number(collective: Collective) -> Breakdown:
    """What a collective moves that stands for another [B]."""
    other = MOVES[collective].stands_for
    assert other is not None
    how = f"{with_article(collective)} is {with_article(other)} of one number"
    return assumed("array", NUMBER_BYTES, "bytes", how)


# -- leaves -----------------------------------------------------------------------------------------------------------


def _inside(ask: Ask, name: str, value: float, unit: str) -> Breakdown:
    """A constant of the scale-up domain."""
    own = ask.system.inside
    return fitted(name, value, unit, own.fitted_on or own.source.title, own.source)


def _across(ask: Ask, name: str, value: float, unit: str) -> Breakdown:
    """A constant of the network."""
    net = nccl.network(ask.system)
    return fitted(name, value, unit, net.fitted_on or net.source.title, net.source)


def _summed(ask: Ask, parts: list[Breakdown]) -> Breakdown:
    """Base and steps, and what a benchmark adds to each call."""
    if ask.system.harness_s:
        parts.append(_inside(ask, "benchmark", ask.system.harness_s, "s"))
    return total("closed form", parts)


def _hop(ask: Ask, protocol: Protocol) -> Breakdown:
    hop = _inside(ask, "a hop inside a domain", protocol.hop_s, "s")
    grown = 1.0 + protocol.ramp * float(nccl.grown(np.asarray(ask.size.value)))
    if grown == 1.0:
        return hop
    more = _inside(ask, "growth of a hop at this size", grown, "ratio")
    return product("a hop inside a domain at this size", [hop, more], "s")


def _link(ask: Ask, protocol: Protocol, what: str = "a ring") -> Breakdown:
    """What a ring reaches of the scale-up links."""
    return _of_link(ask, protocol.bytes_per_s, f"rate of {what} inside a domain", what)


def _of_link(ask: Ask, bytes_per_s: float, name: str, what: str) -> Breakdown:
    parts = [
        ask.wires.scale_up,
        _inside(ask, f"share of it that {what} reaches", bytes_per_s / ask.wires.scale_up.value, "ratio"),
    ]
    links = ask.system.inside.num_mesh_links
    inside, _ = ask.shape
    if links and max(1, inside - 1) < links:
        used = derived(
            "links in use", max(1, inside - 1), "count", note="one to each other chip of the group"
        )
        parts.append(
            quotient("share of the links", used, derived("links of a chip", links, "count"), "ratio")
        )
    return product(name, parts, "bytes_per_s")


def _ports(ask: Ask, share: float, what: str, num: int, most_bytes_per_s: float | None = None) -> Breakdown:
    """What the NICs of `num` chips give; each may have a most, however fast it is."""
    assert ask.wires.nic is not None
    name = f"share of the NICs that {what} reaches"
    reached = _across(ask, name, share, "ratio")
    members = [derived("chips of a domain that take part", num, "count")] if num > 1 else []
    if most_bytes_per_s is None:
        return product("rate of the NICs", [ask.wires.nic, *members, reached], "bytes_per_s")
    reached = assumed(
        name, share, "ratio", "of what LL sends half is flags, and a tree sends both ways", NCCL
    )
    one = minimum(
        "rate of a NIC",
        [
            product("share of a NIC", [ask.wires.nic, reached], "bytes_per_s"),
            _most(ask, most_bytes_per_s),
        ],
    )
    return product("rate of the NICs", [one, *members], "bytes_per_s")


def _most(ask: Ask, bytes_per_s: float) -> Breakdown:
    """What LL's messages take of a NIC at most, and of what a failure leaves of one."""
    how = "no less than p4de's NICs carry; a fit on six sizes of one machine ends there"
    most = assumed("most of LL's messages", bytes_per_s, "bytes_per_s", how, nccl.network(ask.system).source)
    left = ask.system.ports_left_fraction
    if left == 1.0:
        return most
    return product("most of what is left", [most, derived(LEFT, left, "fraction")], "bytes_per_s")


def _passes(ask: Ask, count: float, name: str = "bytes", note: str = "") -> Breakdown:
    if count == 1.0:
        return ask.size
    return product(name, [ask.size, derived("passes", count, "ratio", note=note)], "bytes")


def _degree(ask: Ask, degree: float, *, net: bool = False) -> Breakdown:
    leaf = _across if net else _inside
    return leaf(ask, "overlap of latency and transfer", degree, "ratio")


# -- NCCL's algorithms ------------------------------------------------------------------------------------------------


def ring(ask: Ask, index: int) -> Told:
    """The chain of `nccl.ring` by a protocol."""
    system, (inside, domains) = ask.system, ask.shape
    protocol = system.inside.protocol(PROTOCOLS[index])
    assert protocol is not None
    rounds = MOVES[ask.collective].num_rounds
    steps = rounds * (ask.num_ranks - 1)
    all_steps = derived("steps", steps, "count", note="2 (n − 1)" if rounds == 2 else "n − 1")
    hop, link = _hop(ask, protocol), _link(ask, protocol)
    base = _inside(ask, "start", protocol.base_s, "s")
    latency, rate = product("latency", [all_steps, hop], "s"), link
    across_rate = 0.0
    if domains > 1:
        across = nccl.network(system)
        base = _across(ask, "start", across.base_s[index], "s")
        latency = _ring_latency(ask, across, index, steps, hop)
        node = _ports(ask, across.share[index], "a ring", inside, across.most_bytes_per_s(index))
        rate = minimum("rate of a ring", [link, node]) if inside > 1 else node
        across_rate = node.value
        slower = 1.0 + across.taper * max(0.0, float(np.log2(domains / 4)))
        if slower != 1.0:
            rate = quotient(
                "rate through all nodes",
                rate,
                _across(ask, "loss through many nodes", slower, "ratio"),
                "bytes_per_s",
            )
    volume = ask.size if MOVES[ask.collective].is_rooted else _ring_volume(ask, all_steps, protocol)
    transfer = quotient("transfer", volume, rate, "s")
    both = overlap("steps and transfer", latency, transfer, _degree(ask, protocol.overlap))
    inside_s = volume.value / link.value if inside > 1 else 0.0
    return Told(_summed(ask, [base, both]), inside_s, volume.value / across_rate if across_rate else 0.0)


def _ring_latency(ask: Ask, across: Across, index: int, steps: int, hop: Breakdown) -> Breakdown:
    inside, domains = ask.shape
    rounds = steps // (ask.num_ranks - 1)
    crossing = steps if inside == 1 else rounds * (domains - 1)
    far = product(
        "steps over the network",
        [
            derived("of them", crossing, "count"),
            _across(ask, "a hop over the network", across.hop_s[index], "s"),
        ],
        "s",
    )
    if crossing == steps:
        return total("latency", [far])
    floor = _across(ask, "a proxy's least step", across.step_s[index], "s")
    near = product(
        "steps inside domains",
        [derived("of them", steps - crossing, "count"), maximum("a step inside a domain", [hop, floor])],
        "s",
    )
    return total("latency", [near, far])


def _ring_volume(ask: Ask, steps: Breakdown, protocol: Protocol) -> Breakdown:
    """Each step sends a share of the array; a rank also copies its own."""
    sent = steps
    if protocol.own_steps:
        sent = total(
            "steps and own copy", [steps, _inside(ask, "own copy, in steps", protocol.own_steps, "count")]
        )
    return product("bytes through a rank", [ask.size, quotient("passes", sent, ask.ranks, "ratio")], "bytes")


def tree(ask: Ask, index: int) -> Told:
    """The chain of `nccl.tree` by a protocol."""
    system, (inside, domains) = ask.system, ask.shape
    protocol = system.inside.protocol(PROTOCOLS[index])
    assert protocol is not None
    base = _inside(ask, "start", protocol.base_s, "s")
    latencies = [
        product(
            "chains inside domains",
            [
                derived("steps inside domains", 2 * steps_inside(inside, system.num_chain), "count"),
                _hop(ask, protocol),
            ],
            "s",
        )
    ]
    twice = _passes(ask, 2.0, "bytes up and down")
    most = assumed(
        "most that NCCL's trees reach", tree_most_bytes_per_s(system.family, domains), "bytes_per_s",
        "channels × what NCCL allows each", NCCL,
    )  # fmt: skip
    moves = [quotient("through the channels", twice, most, "s")]
    inside_s = across_s = 0.0
    if inside > 1:
        slower = assumed("share of a ring's rate", nccl.TREE_INSIDE_SHARE, "ratio", "NCCL's own factor", NCCL)
        rate = product("rate of a tree inside a domain", [_link(ask, protocol), slower], "bytes_per_s")
        moves.append(quotient("over the scale-up links", twice, rate, "s"))
        inside_s = max(moves[0].value, moves[-1].value)
    degree = _degree(ask, protocol.overlap)
    if domains > 1:
        across = nccl.network(system)
        base = _across(ask, "start", across.base_s[index], "s")
        latencies.append(_tree_hops(ask, across, index))
        copies = _passes(ask, 1.0 if domains == 2 else 2.0, "bytes over the network", "two nodes send once")
        most_of_nic = across.most_bytes_per_s(index, tree=True)
        ports = _ports(ask, across.tree_share[index], "a tree", inside, most_of_nic)
        moves.append(quotient("over the NICs", copies, ports, "s"))
        across_s = moves[-1].value
        if index == 2:
            degree = _degree(ask, across.tree_overlap, net=True)
    transfer = maximum("transfer", moves)
    both = overlap("steps and transfer", total("latency", latencies), transfer, degree)
    return Told(_summed(ask, [base, both]), inside_s, across_s)


def _tree_hops(ask: Ask, across: Across, index: int) -> Breakdown:
    _, domains = ask.shape
    depth = derived(
        "steps over the network", 2 * float(tree_depth(float(domains))), "count", note="2 ⌈log₂ nodes⌉"
    )
    parts = [depth, _across(ask, "a tree's hop over the network", across.tree_hop_s[index], "s")]
    grown = 1.0 + across.ramp * float(nccl.grown(np.asarray(ask.size.value))) if index == 0 else 1.0
    if grown != 1.0:
        parts.append(_across(ask, "growth of a hop at this size", grown, "ratio"))
    return product("tree over the network", parts, "s")


def _switched_rate(ask: Ask) -> Breakdown:
    own = ask.system.inside
    gain = own.nvls_large_gain if ask.size.value > nccl.LARGE_BYTES else 1.0
    return _of_link(ask, own.nvls_bytes_per_s * gain, "rate of NVLink SHARP", "the switch's sum")


def _switched(ask: Ask) -> Breakdown:
    inside, _ = ask.shape
    sent = _passes(ask, (inside + 1) / inside, "bytes of a chip", "its array once, and its share of the sum")
    return quotient("over the scale-up links", sent, _switched_rate(ask), "s")


def _chunked(ask: Ask, transfer: Breakdown) -> Breakdown:
    wait = _inside(ask, "latency of the switch", ask.system.inside.nvls_latency_s, "s")
    degree = assumed(
        "overlap of latency and transfer", nccl.BEST_CHUNKS, "ratio", "the chunks that suit it best"
    )
    return overlap("steps and transfer", wait, transfer, degree)


def nvls(ask: Ask, _: int) -> Told:
    """The chain of `nccl.nvls`."""
    transfer = _switched(ask)
    base = _inside(ask, "start", ask.system.inside.simple.base_s, "s")
    return Told(_summed(ask, [base, _chunked(ask, transfer)]), transfer.value)


def nvls_tree(ask: Ask, _: int) -> Told:
    """The chain of `nccl.nvls_tree`."""
    across, (inside, domains) = nccl.network(ask.system), ask.shape
    near = _switched(ask)
    copies = _passes(ask, 1.0 if domains == 2 else 2.0, "bytes over the network", "two nodes send once")
    far = quotient("over the NICs", copies, _ports(ask, across.tree_share[2], "a tree", inside), "s")
    together = assumed("overlap of the two", nccl.TWO_NETWORKS, "ratio", "both run at once")
    transfer = overlap("transfer", near, far, together)
    base = _inside(ask, "start", ask.system.inside.simple.base_s, "s")
    figure = _summed(ask, [base, _tree_hops(ask, across, 2), _chunked(ask, transfer)])
    return Told(figure, near.value, far.value)


def pat(ask: Ask, _: int) -> Told:
    """The chain of `nccl.pat`."""
    across = nccl.network(ask.system)
    rate = _ports(ask, across.share[2], "a ring", 1)
    slower = assumed("share of a ring's rate", PAT_SHARE, "ratio", "Jeaugey, PAT, 2025; NCCL 2.23", NCCL)
    sent = _passes(ask, (ask.num_ranks - 1.0) / ask.num_ranks, "bytes through a rank", "(n − 1)/n")
    transfer = quotient("transfer", sent, product("rate of PAT", [rate, slower], "bytes_per_s"), "s")
    steps = derived("steps", float(tree_depth(float(ask.num_ranks))), "count", note="⌈log₂ n⌉")
    hop = _across(ask, "a hop of PAT", across.hop_s[2] / nccl.PAT_HOPS, "s")
    each = assumed("what each rank adds", PAT_RANK_S, "s", "linear part that NCCL has left in PAT", NCCL)
    parts = [
        _inside(ask, "start", ask.system.inside.simple.base_s, "s"),
        product("latency", [steps, hop], "s"),
        product("of all ranks", [ask.ranks, each], "s"),
        transfer,
    ]
    return Told(_summed(ask, parts), 0.0, transfer.value)


def direct(ask: Ask, _: int) -> Told:
    """The chain of `nccl.direct`: all-to-all, or one message between neighbours."""
    system, (inside, domains) = ask.system, ask.shape
    pairwise = MOVES[ask.collective].is_pairwise
    own = system.inside.exchange or system.inside.simple
    share, local = (1, 1) if pairwise else (ask.num_ranks, inside - 1)
    peers = 1 if pairwise else ask.num_ranks - 1
    part = ask.size if share == 1 else quotient("for each rank", ask.size, ask.ranks, "bytes")
    copies = derived("peers in the domain", local, "count")
    if own.own_steps:
        copies = total(
            "peers in the domain and own copy", [copies, _inside(ask, "own copy", own.own_steps, "count")]
        )
    stays = product("bytes that stay in the domain", [part, copies], "bytes")
    near = quotient("over the scale-up links", stays, _link(ask, own, "an exchange"), "s")
    one_by_one = [derived("peers", local, "count"), _inside(ask, "a peer", own.hop_s, "s")]
    waits = [product("peers in the domain, one by one", one_by_one, "s")]
    bases, transfer = [_inside(ask, "start", own.base_s, "s")], near
    inside_s, across_s = (near.value if inside > 1 or domains == 1 else 0.0), 0.0
    if domains > 1:
        across = nccl.network(system)
        leaving = derived("peers outside the domain", 1 if pairwise else ask.num_ranks - inside, "count")
        away = product("bytes that leave the domain", [part, leaving], "bytes")
        far = quotient("over the NIC", away, _ports(ask, across.share[2], "an exchange", 1), "s")
        transfer, across_s = (maximum("transfer", [near, far]) if inside > 1 else far), far.value
        posted = derived("messages over the network", peers - local, "count")
        waits.append(
            product("to post messages", [posted, _across(ask, "a message", across.message_s, "s")], "s")
        )
        bases.append(_across(ask, "start over the network", across.exchange_base_s, "s"))
    both = overlap("steps and transfer", total("latency", waits), transfer, _degree(ask, own.overlap))
    return Told(_summed(ask, [*bases, both]), inside_s, across_s)
