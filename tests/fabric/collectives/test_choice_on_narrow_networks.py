"""What NCCL takes on a network that is narrower than its ports: at most 1.5 times the fastest, whatever it thinks."""

from __future__ import annotations

import numpy as np
import pytest

from datahall.catalog import load
from datahall.cluster.cluster import Cluster, cluster_from
from datahall.fabric.collectives.choice import MOST_MISJUDGED, choose_collective, collective_times, crossovers
from datahall.scenario.sections.fabric import FabricDesign

CATALOG = load()
NARROW = [
    ("tree", None), ("fat-tree", 8.0), ("fat-tree", 2.0), ("rail-optimised", 4.0), ("dragonfly", None),
    ("hyperx", None),
]  # fmt: skip


def machine(on: str, chips: int, taper: float | None, chip: str = "h100-sxm") -> Cluster:
    tapered = {"oversubscription": (taper,)} if taper else {}
    return cluster_from(FabricDesign(topology=on, chip=chip, chips=chips, **tapered), CATALOG)


def took_s(made: Cluster, collective: str, size_bytes: float, chips: int) -> float:
    return float(collective_times(made.system, collective, size_bytes, chips)[0][0])  # type: ignore[arg-type]


@pytest.mark.parametrize("chip", ["h100-sxm", "a100-sxm-80gb", "b200-sxm"])
@pytest.mark.parametrize(("on", "taper"), NARROW)
@pytest.mark.parametrize("chips", [256, 1152])
def test_what_is_taken_is_at_most_one_and_a_half_times_the_fastest(
    on: str, taper: float | None, chips: int, chip: str
) -> None:
    made = machine(on, chips, taper, chip)
    for size_bytes in (1e5, 1e7, 1e9, 16e9):
        for collective in ("all-reduce", "all-gather", "reduce-scatter", "broadcast"):
            found = choose_collective(made.system, collective, size_bytes, chips)  # type: ignore[arg-type]
            fastest_s = min(one.time_s for one in found.candidates)
            assert found.time_s <= MOST_MISJUDGED * fastest_s * (1 + 1e-9), (collective, size_bytes)


@pytest.mark.parametrize(("on", "taper"), NARROW)
@pytest.mark.parametrize("size_bytes", [1e8, 1e9, 16e9])
def test_an_all_reduce_takes_at_most_one_and_a_half_times_its_two_halves(
    on: str, taper: float | None, size_bytes: float
) -> None:
    """A reduce-scatter and an all-gather one after the other are an all-reduce; it was 3.5 times as long."""
    made = machine(on, 1152, taper)
    halves_s = sum(took_s(made, half, size_bytes, 1152) for half in ("reduce-scatter", "all-gather"))
    assert took_s(made, "all-reduce", size_bytes, 1152) <= 1.5 * halves_s


def test_a_ring_crosses_the_uplink_of_a_plain_tree_by_hand() -> None:
    """2 (n−1)/n of 1 GB over one cable of 50 GB/s out of a leaf of 63 of 1,152: 39.97 ms."""
    made = machine("tree", 1152, None)
    assert took_s(made, "all-reduce", 1e9, 1152) == pytest.approx(2 * 1151 / 1152 / 50, rel=1e-3)


def test_the_choice_of_a_narrow_network_does_not_swap_back_and_forth() -> None:
    """From 60 MB on, where the narrow place binds, rings run; three swaps were printed there."""
    made = machine("tree", 1152, None)
    found = [one for one in crossovers(made.system, "all-reduce", 1152) if one.size_bytes > 6e7]
    assert all("ring" in one.after for one in found)
    assert len(found) <= 2


def test_a_network_as_wide_as_its_ports_is_chosen_as_before() -> None:
    """No cut binds there: the choice is NCCL's, of ports alone."""
    made = machine("fat-tree", 1024, None)
    sizes = np.array([1e5, 1e7, 1e9])
    _, pairs = collective_times(made.system, "all-reduce", sizes, 1024)
    assert pairs[-1][0] == "NVLS tree"
