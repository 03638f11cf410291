"""The links from one group or leaf to another: how wide they are, and what passes them, counted one by one."""

from __future__ import annotations

from collections import Counter
from itertools import product

import msgspec
import pytest
from tests.fabric.collectives.test_by_hand import changed

from datahall.fabric.collectives.crossing import Sends, pair_share
from datahall.fabric.collectives.textbook import textbook_times
from datahall.fabric.topology.cuts import Cut, cuts
from datahall.fabric.topology.dragonfly import dragonfly, dragonfly_plus
from datahall.fabric.topology.graph import Fabric, Wire
from datahall.fabric.topology.grids.hyperx import hyperx

WIRE = Wire(50e9, 5e-7)
PARTS = {
    "groups of a dragonfly": (lambda: dragonfly(40, WIRE), "group"),
    "leaves of a dragonfly": (lambda: dragonfly(40, WIRE), "leaf"),
    "groups of a dragonfly+": (lambda: dragonfly_plus(64, WIRE, radix=8), "group"),
    "leaves of a HyperX": (lambda: hyperx((3, 4), WIRE, terminals=2), "leaf"),
}


def part_of_nodes(fabric: Fabric, num_below: int) -> dict[int, int]:
    """The part of each chip, and of each switch that chips of one part alone reach without those of another."""
    part = {host: host // num_below for host in range(fabric.num_hosts)}
    ends = list(zip(fabric.link_source.tolist(), fabric.link_target.tolist(), strict=True))
    part |= {there: part[here] for here, there in ends if here < fabric.num_hosts}
    near: dict[int, set[int]] = {}
    for here, there in ends:
        if there not in part:
            near.setdefault(there, set()).update({part[here]} if here in part else set())
    return part | {node: parts.pop() for node, parts in near.items() if len(parts) == 1}


def narrowest_pair(fabric: Fabric, num_below: int) -> float:
    part, joined = part_of_nodes(fabric, num_below), Counter[tuple[int, int]]()
    for here, there, speed in zip(
        fabric.link_source.tolist(),
        fabric.link_target.tolist(),
        fabric.link_bytes_per_s.tolist(),
        strict=True,
    ):
        if part[here] != part[there]:
            joined[part[here], part[there]] += speed
    return min(joined.values())


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("slow", [1.0, 0.5])
def test_two_parts_are_joined_by_the_links_between_those_with_the_fewest(name: str, slow: float) -> None:
    """Of all pairs the one with the slowest links counts, also where a single cable is slow."""
    build, kind = PARTS[name]
    whole = build()
    (before,) = (cut for cut in cuts(whole) if cut.name == kind)
    part = part_of_nodes(whole, before.num_below)
    ends = zip(whole.link_source.tolist(), whole.link_target.tolist(), strict=True)
    speeds = whole.link_bytes_per_s.copy()
    speeds[next(link for link, (here, there) in enumerate(ends) if part[here] != part[there])] *= slow
    fabric = msgspec.structs.replace(whole, link_bytes_per_s=speeds)
    for cut in cuts(fabric):
        if cut.name == kind:
            assert cut.pair_bytes_per_s == pytest.approx(narrowest_pair(fabric, cut.num_below))
            assert (cut.pair_bytes_per_s < before.pair_bytes_per_s) == (slow < 1.0)


def test_groups_between_each_others_ranks_share_the_links_between_parts() -> None:
    """Every eighth of 32 chips is in one group, so that eight groups have 400 GB/s together: 50 GB/s each."""
    leaf = Cut(
        name="leaf", num_below=32, num_full=32, bytes_per_s=1600e9, link_bytes_per_s=50e9,
        pair_bytes_per_s=400e9,
    )  # fmt: skip
    assert leaf.apart(8).pair_bytes_per_s == pytest.approx(50e9)
    assert leaf.apart(1).pair_bytes_per_s == pytest.approx(400e9)


@pytest.mark.parametrize("algorithm", [None, "direct"])
@pytest.mark.parametrize(("ranks", "below"), [(6, 4), (5, 3), (8, 4), (12, 4), (9, 8), (12, 2)])
def test_a_part_sends_pieces_to_no_more_ranks_than_are_outside(
    ranks: int, below: int, algorithm: str | None
) -> None:
    messages = Counter(
        (source // below, target // below)
        for source, target in product(range(ranks), repeat=2)
        if source // below != target // below
    )
    share = pair_share(Sends("all-to-all", algorithm), ranks, below)
    assert share == pytest.approx(max(messages.values()) / ranks)


def test_a_textbook_takes_as_long_as_its_pieces_need_between_two_parts() -> None:
    """Bruck among 16 in four parts of four: 1, 2, 4, 8 pieces to the rank 1, 2, 4, 8 further, one step after another.

    One rank of a part sends 1 to the next part, two send 2, four send 4, and four send 8 to the part after it.
    """
    four = Cut(
        name="group", num_below=4, num_full=4, bytes_per_s=1e9, link_bytes_per_s=1.0, sizes=((4, 4),),
        widest_bytes_per_s=1e9, pair_bytes_per_s=0.05,
    )  # fmt: skip
    machine = changed(num_domain=1, cuts=(four,))
    found = {one.name: one.time_s for one in textbook_times(machine, "all-gather", 16.0, 16)}
    assert found["Bruck"] == pytest.approx((1 * 1 + 2 * 2 + 4 * 4 + 4 * 8) / 0.05)
    wide = changed(num_domain=1, cuts=(msgspec.structs.replace(four, pair_bytes_per_s=1e9),))
    free = {one.name: one.time_s for one in textbook_times(wide, "all-gather", 16.0, 16)}
    assert free["Bruck"] < found["Bruck"] / 2
