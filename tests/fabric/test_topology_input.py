"""Input that cannot be built is an error that names the nearest legal value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.fabric.designs import design
from tests.fabric.topologies import FAST, WIRE

from datahall.catalog import Catalog
from datahall.errors import DatahallError, spelled
from datahall.fabric.routing.paths import CutOffError, route
from datahall.fabric.topology.clos import clos
from datahall.fabric.topology.dragonfly import dragonfly, dragonfly_plus
from datahall.fabric.topology.fat_tree import fat_tree
from datahall.fabric.topology.graph import FABRIC, Fabric, Wire
from datahall.fabric.topology.grids.hyperx import hyperx, hyperx_for
from datahall.fabric.topology.grids.torus import torus, torus_for
from datahall.fabric.topology.grids.tpu_pod import TPU_V4, TPU_V5P, check_slice, slice_for
from datahall.fabric.topology.rail import rail_only, rail_optimised
from datahall.fabric.topology.scale_up import scale_up_domain, with_scale_up
from datahall.fabric.topology.tree import tree

CATALOG = Catalog(user=False)

BAD: dict[str, tuple[Callable[[], object], str, str]] = {
    "odd radix": (lambda: fat_tree(16, WIRE, radix=5), "even number of ports, not 5", "radix=4 or radix=6"),
    "odd radix of a Clos": (lambda: clos(16, WIRE, radix=33), "not 33", "radix=32 or radix=34"),
    "too many for a fat tree": (lambda: fat_tree(17, WIRE, radix=4), "which holds 16", "radix 6 holds 54"),
    "too many for two tiers": (lambda: clos(3000, WIRE, radix=64, tiers=2), "hold 2,048", "tiers=3"),
    "too many for three": (lambda: clos(70_000, WIRE, radix=64, tiers=3), "hold 65,536", "radix=66 or tiers=4"),
    "too many for any": (lambda: clos(3_000_000, WIRE, radix=64), "hold 2,097,152", "radix=70 or"),
    "five tiers": (lambda: clos(64, WIRE, radix=8, tiers=5), "5 tiers", "1 to 4"),
    "no chips": (lambda: clos(0, WIRE, radix=8), "0 chips", "1 chip or more"),
    "no chips in a tree": (lambda: tree(0, WIRE, radix=8), "0 chips", "1 chip or more"),
    "wild oversubscription": (lambda: clos(64, WIRE, radix=8, oversubscription=(9,)), "9:1", "7:1"),
    "a tree without branches": (lambda: tree(8, WIRE, radix=2), "no two branches", "radix=3, a binary tree"),
    "half a server": (lambda: with_scale_up(fat_tree(16, WIRE), 5, FAST), "domains of 5", "15 or 20"),
    "half a rack": (lambda: design("nvl72", 100, catalog=CATALOG), "domains of 72", "72 or 144"),
    "half a rail": (lambda: rail_optimised(60, WIRE, FAST, radix=64), "domains of 8", "56 or 64"),
    "one rail": (lambda: rail_only(8, WIRE, FAST, radix=8, rails=1), "1 rail", "2 rails"),
    "one rail with a spine": (lambda: design("rail-optimised", 8, catalog=CATALOG, domain=1), "1 rail", "2 rails"),
    "zero bandwidth": (lambda: Wire(0.0), "carries nothing", "400 Gb/s"),
    "negative bandwidth": (lambda: Wire(-1.0), "carries nothing", "above 0"),
    "negative latency": (lambda: Wire(1.0, -1e-6), "latency", "500 ns"),
    "no sides": (lambda: torus((), WIRE), "not a torus", "8x8x8"),
    "side of zero": (lambda: torus((4, 0), WIRE), "4x0", "1 or more"),
    "wraps of other axes": (lambda: torus((4, 4), WIRE, wrap=(True,)), "1 axes", "each axis"),
    "a prime torus": (lambda: torus_for(9217, WIRE, axes=3), "no 3D torus", "9,216 (16x24x24)"),
    "sides of other chips": (
        lambda: design("torus", 100, catalog=CATALOG, sides="4x5x6"), "120 chips", "chips=120",
    ),
    "slice beyond the largest": (lambda: check_slice((16, 20, 28), TPU_V5P), "6,144", "16x16x24"),
    "slice across cubes": (lambda: check_slice((4, 4, 6), TPU_V4), "whole cubes", "4x4x8"),
    "slice of so many": (lambda: slice_for(100, TPU_V4), "100 chips", "64 or 128"),
    "dragonfly too small": (lambda: dragonfly(1000, WIRE, radix=7), "7-port", "15 ports hold 1,056"),
    "odd dragonfly+": (lambda: dragonfly_plus(8, WIRE, radix=5), "not 5", "radix=4 or radix=6"),
    "hyperx too large": (lambda: hyperx_for(10**6, WIRE, radix=16, whole=1), "HyperX of 16-port", "chips=216"),
    "hyperx over-full": (lambda: hyperx((2, 2), WIRE, terminals=1, num_chips=5), "5 chips", "holds 4"),
    "empty domain": (lambda: scale_up_domain(0, FAST), "0 chips", "8 or 72"),
    "unknown topology": (lambda: design("fat-tre", 16, catalog=CATALOG), "not a topology", "fat-tree"),
    "unknown chip": (lambda: design("clos", 16, catalog=CATALOG, chip="h1000"), "h1000", "h100"),
    "unknown switch": (
        lambda: design("clos", 16, catalog=CATALOG, switch="qm9800"), "qm9800", "quantum-2-qm9700",
    ),
    "slow switch": (
        lambda: design("clos", 16, catalog=CATALOG, switch="quantum-qm8700"), "no ports of 400", "tomahawk",
    ),
    "taper upside down": (
        lambda: design("clos", 16, catalog=CATALOG, oversubscription="1:7"), "more bandwidth up", "7:1",
    ),
    "no ratio": (lambda: design("clos", 16, catalog=CATALOG, oversubscription="x"), "cannot be read", "1:1,7:1"),
    "no torus": (lambda: design("torus", 64, catalog=CATALOG, sides="4xy"), "cannot be read", "16x16x24"),
    "a pod of GPUs": (lambda: design("tpu-pod", 64, catalog=CATALOG, chip="h100-sxm"), "no pods", "tpu-v4"),
    "half a pod on switches": (lambda: design("clos", 64, catalog=CATALOG, chip="tpu-v4"), "domains of 4096", "4,096"),
    "a card without a network": (lambda: design("clos", 64, catalog=CATALOG, chip="l4"), "what network", "400 Gb/s"),
    "NVL72 of H100": (lambda: design("nvl72", 72, catalog=CATALOG, chip="h100-sxm"), "domains of 8", "gb200"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_names_what_was_seen_and_what_is_near(case: str) -> None:
    make, seen, near = BAD[case]
    with pytest.raises(DatahallError) as caught:
        make()
    assert seen in caught.value.message
    assert near in spelled(caught.value.hint)


@pytest.mark.parametrize("chips", [11, 23, 101, 9217])
def test_a_torus_that_cannot_be_names_the_nearest_on_either_side(chips: int) -> None:
    """No axis is more than four times another: counted by hand over all boxes of so many chips."""

    def squat(number: int) -> bool:
        sides = [n for n in range(1, number + 1) if number % n == 0]
        return any(
            number % (a * b) == 0 and max(a, b, number // (a * b)) <= 4 * min(a, b, number // (a * b))
            for a in sides
            for b in sides
        )

    lower = next(n for n in range(chips - 1, 0, -1) if squat(n))
    upper = next(n for n in range(chips + 1, 2 * chips) if squat(n))
    with pytest.raises(DatahallError) as caught:
        torus_for(chips, WIRE, axes=3)
    assert f"{lower:,} (" in caught.value.hint
    assert f"{upper:,} (" in caught.value.hint


def test_a_fabric_in_two_parts_says_which_pairs_are_cut_off() -> None:
    source, target = np.array([0, 1, 2, 3], np.int32), np.array([1, 0, 3, 2], np.int32)
    fabric = Fabric(
        name="two islands", topology="custom", num_hosts=4, num_nodes=4, node_tier=np.zeros(4, np.uint8),
        link_source=source, link_target=target, link_bytes_per_s=np.ones(4), link_latency_s=np.zeros(4),
        link_kind=np.full(4, FABRIC, np.uint8), domain=np.arange(4, dtype=np.int32),
    )  # fmt: skip
    with pytest.raises(CutOffError, match="0→2, 1→3") as caught:
        route(fabric, [0, 0, 1], [1, 2, 3])
    assert caught.value.source.tolist() == [0, 1]
    assert route(fabric, [0, 0], [1, 2], partial=True).hops.tolist() == [1, 0]


def test_an_endpoint_that_is_not_there_is_an_error() -> None:
    with pytest.raises(IndexError, match="endpoint 16 is not in"):
        route(fat_tree(16, WIRE), 0, 16)
