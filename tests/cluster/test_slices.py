"""TPUs on their slices: no collective is faster than its links, and one slice has one answer whoever names it."""

from __future__ import annotations

from functools import cache
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import datahall as dh
from datahall.breakdown import false_nodes
from datahall.breakdown import given as said
from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster, cluster_from
from datahall.cluster.collective import group_figure, stage_figure, time_collective
from datahall.cluster.groups import group_times, stage_times
from datahall.fabric.collectives.torus_figure import ON_A_TORUS
from datahall.fabric.topology.graph import Wire
from datahall.fabric.topology.grids.torus import torus
from datahall.fabric.topology.grids.tpu_pod import FLAT, FLAT_CHIPS, PODS, own_slice, slice_shapes
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.words import Collective

CATALOG = Catalog(user=False)
CHIPS = (*FLAT_CHIPS, *PODS)
SIZE = 1e9
PASSES: dict[Collective, float] = {
    "all-gather": 1.0,
    "reduce-scatter": 1.0,
    "all-reduce": 2.0,
    "all-to-all": 1.0,
}


def sold(chip: str, num_chips: int) -> Cluster:
    return cluster_from(FabricDesign(chip=chip, chips=num_chips), CATALOG)


@cache
def fewest_links(sides: tuple[int, ...], wrap: bool) -> int:
    """Links of the chip of a slice that has fewest, counted on its graph."""
    fabric = torus(sides, Wire(1.0, 0.0), wrap=wrap)
    return int(np.bincount(fabric.link_source, minlength=fabric.num_hosts).min())


def least_s(cluster: Cluster, passes: float) -> float:
    """The time that the links of a chip need for what the others have, and those of a slice to the other slices."""
    sides, ranks, system = cluster.system.torus, cluster.num_chips, cluster.system
    link = system.scale_up_bytes_per_s / (2 * len(sides))
    wrap = prod(sides) >= (64 if len(sides) == 3 else 256)
    inside = min(ranks, prod(sides))
    own = (inside - 1) / inside * SIZE / (fewest_links(sides, wrap) * link)
    others = (ranks - inside) / ranks * SIZE / (inside * system.nic_bytes_per_s) if ranks > inside else 0.0
    return passes * max(own, others)


def took(cluster: Cluster, collective: Collective) -> float:
    return time_collective(cluster, collective, SIZE).choice.time_s


@given(chip=st.sampled_from(CHIPS), num_chips=st.integers(2, 700), kind=st.sampled_from(sorted(PASSES)))
@settings(max_examples=200, deadline=None)
def test_no_slice_is_faster_than_its_links(chip: str, num_chips: int, kind: Collective) -> None:
    cluster = sold(chip, num_chips)
    least = least_s(cluster, PASSES[kind]) * (1 - 1e-9)
    assert took(cluster, kind) >= least
    alone = group_times(cluster.system, kind, np.array([SIZE]), np.array([num_chips]), np.ones(1))
    assert alone[0] >= least  # as a training step has it, which asks for no cuts


def shapes(chip: str) -> list[tuple[int, ...]]:
    known = FLAT if chip in FLAT_CHIPS else slice_shapes(PODS[chip])
    return list({prod(sides): sides for sides in known if prod(sides) > 1}.values())


@pytest.mark.parametrize(("chip", "sides"), [(chip, sides) for chip in CHIPS for sides in shapes(chip)])
def test_every_slice_keeps_to_its_links_and_gathers_as_long_as_it_scatters(
    chip: str, sides: tuple[int, ...]
) -> None:
    cluster = sold(chip, prod(sides))
    assert prod(cluster.system.torus) == prod(sides)
    for kind, passes in PASSES.items():
        assert took(cluster, kind) >= least_s(cluster, passes) * (1 - 1e-9)
    assert took(cluster, "all-gather") == took(cluster, "reduce-scatter")
    assert took(cluster, "all-reduce") == pytest.approx(2 * took(cluster, "all-gather"))


@pytest.mark.parametrize("kind", ON_A_TORUS)
@pytest.mark.parametrize(
    ("chip", "num_chips"),
    [("tpu-v4", n) for n in (4, 8, 16, 32, 64, 128, 512)]
    + [("tpu-v5p", 8), ("tpu-v7x", 32), ("tpu-v7x", 256)],
)
def test_a_slice_of_a_pod_is_the_slice_that_nobody_names(chip: str, num_chips: int, kind: Collective) -> None:
    named = cluster_from(FabricDesign(topology="tpu-pod", chip=chip, chips=num_chips), CATALOG)
    assert sorted(named.system.torus) == sorted(sold(chip, num_chips).system.torus)
    assert took(named, kind) == pytest.approx(took(sold(chip, num_chips), kind))


@pytest.mark.parametrize("kind", ON_A_TORUS)
@pytest.mark.parametrize("chip", FLAT_CHIPS)
@pytest.mark.parametrize("sides", FLAT)
def test_a_flat_slice_is_a_mesh_below_the_whole_pod(
    kind: Collective, chip: str, sides: tuple[int, ...]
) -> None:
    on = "torus" if sides == (16, 16) else "mesh"
    named = cluster_from(FabricDesign(topology=on, chip=chip, sides=sides), CATALOG)
    assert took(named, kind) == pytest.approx(took(sold(chip, prod(sides)), kind))


def test_eight_and_sixteen_chips_by_hand() -> None:
    """A chip of 2×2×2 has three links of 90 GB/s, the corner of 4×4 two of 45 GB/s."""
    assert took(sold("tpu-v5p", 8), "all-gather") == pytest.approx(7 / 8 * SIZE / (3 * 90e9))
    assert took(sold("tpu-v5e", 16), "all-gather") == pytest.approx(15 / 16 * SIZE / (2 * 45e9))


@pytest.mark.parametrize("chip", CHIPS)
def test_halves_of_a_sum_cross_the_network_once_each(chip: str) -> None:
    most = prod(sold(chip, 10**5).system.torus)
    alone, several = sold(chip, most), sold(chip, 3 * most)
    across = 2 / 3 * SIZE / most / several.system.nic_bytes_per_s
    for kind, passes in {"all-gather": 1, "reduce-scatter": 1, "all-reduce": 2}.items():
        assert took(several, kind) == pytest.approx(took(alone, kind) + passes * across)  # type: ignore[arg-type]


def test_a_message_to_another_slice_goes_over_the_network() -> None:
    """Of 512 chips in two slices of 256 the last of the first sends to the first of the second."""
    cluster = sold("tpu-v5e", 512)
    assert took(cluster, "send-recv") == pytest.approx(SIZE / 3.125e9)
    assert took(sold("tpu-v5e", 256), "send-recv") == pytest.approx(SIZE / 45e9, rel=1e-3)


@pytest.mark.parametrize(
    ("stages", "chips", "leaving"),
    [(2, 256, 1.0), (4, 128, 1 / 3), (2, 384, 1.0), (2, 200, 1.0), (4, 16, 0.0)],
)
def test_stages_in_several_slices_send_over_the_network(stages: int, chips: int, leaving: float) -> None:
    cluster = sold("tpu-v5e", 768)
    size = np.array([SIZE])
    took_s = stage_times(cluster.system, size, np.array([stages]), np.array([chips]))[0]
    near_s = group_times(cluster.system, "send-recv", size, np.array([2]), np.array([min(chips, 128)]))[0]
    assert took_s == pytest.approx(leaving * SIZE / 3.125e9 + (1 - leaving) * near_s)
    figure = stage_figure(cluster, said("message", SIZE, "bytes"), stages, chips)
    assert figure.value == pytest.approx(took_s)
    assert false_nodes(figure) == []


@pytest.mark.parametrize("kind", ON_A_TORUS)
@pytest.mark.parametrize(("ranks", "stride"), [(768, 1), (3, 256), (6, 128), (48, 16)])
def test_the_chain_of_a_group_in_several_slices_is_its_time(
    kind: Collective, ranks: int, stride: int
) -> None:
    cluster = sold("tpu-v5e", 768)
    time = group_times(cluster.system, kind, np.array([SIZE]), np.array([ranks]), np.array([stride]))[0]
    figure = group_figure(cluster, kind, said("array", SIZE, "bytes"), ranks, stride)
    assert figure.value == pytest.approx(time)
    assert false_nodes(figure) == []


@pytest.mark.parametrize("chip", PODS)
def test_no_default_slice_is_larger_than_one_that_can_be_had(chip: str) -> None:
    """A pod of 8,960 TPU v5p is cut into slices of at most 6,144: more chips take several."""
    largest = prod(PODS[chip].largest)
    for num_chips in (8, 500, largest, largest + 1, prod(PODS[chip].sides), 20_000):
        assert prod(own_slice(chip, num_chips, 20_000)) <= largest


def test_what_binds_between_slices() -> None:
    """The NICs where they are slow, else the links inside a slice."""

    def bound(nic: str) -> str:
        return dh.show_collective("all-reduce", chip="tpu-v6e", chips=512, size="1GB", nic=nic).binding

    assert "NICs" in bound("1 Gb/s")
    assert "links of all axes bind" in bound("400 Gb/s")
