"""Chips that do not fill their last scale-up domain: the few ports of its chips carry what all others need of them."""

from __future__ import annotations

from functools import cache

import msgspec
import numpy as np
import pytest
from tests.cluster.test_groups_across_parts import KINDS, needed

from datahall.breakdown import false_nodes
from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster, cluster_of
from datahall.cluster.collective import time_collective
from datahall.cluster.groups import machine_times
from datahall.cluster.idle import idle_inputs
from datahall.cluster.wiring import Wiring
from datahall.fabric.collectives.choice import Choice
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.words import COLLECTIVES, Collective

CATALOG = Catalog(user=False)
CHIPS = {"h100-sxm": 8, "gb200": 72}
SIZE = 1e9


@cache
def sold(chip: str) -> Cluster:
    return cluster_of(CATALOG.chip(chip), 200, catalog=CATALOG)


def machine(chip: str, num_chips: int) -> Cluster:
    return msgspec.structs.replace(sold(chip), num_chips=num_chips)


@cache
def choice(chip: str, kind: Collective, num_chips: int) -> Choice:
    return time_collective(machine(chip, num_chips), kind, SIZE).choice


def time_s(chip: str, kind: Collective, num_chips: int) -> float:
    return choice(chip, kind, num_chips).time_s


def members(num_chips: int, num_domain: int) -> list[int]:
    """Chips of each domain, one after another."""
    return np.bincount(np.arange(num_chips) // num_domain).tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chip", CHIPS)
def test_no_collective_beats_its_bytes_over_the_ports_of_any_domain(chip: str, kind: Collective) -> None:
    port = sold(chip).system.nic_bytes_per_s
    assert sold(chip).num_domain == CHIPS[chip]
    for count in range(2, 201):
        for inside in set(members(count, CHIPS[chip])):
            least_s = max(needed(kind, count, inside)) * SIZE / (inside * port)
            assert time_s(chip, kind, count) >= least_s * (1 - 1e-9)


@pytest.mark.parametrize("kind", [*KINDS, "broadcast", "reduce"])
@pytest.mark.parametrize("chip", CHIPS)
def test_more_chips_than_whole_domains_are_never_faster_than_those(chip: str, kind: Collective) -> None:
    """What runs is compared with itself: with uneven nodes NCCL has no NVLS tree, and a ring may beat it."""
    size = CHIPS[chip]
    for count in range(size + 1, 201):
        found, whole = choice(chip, kind, count), choice(chip, kind, count // size * size)
        (whole_s,) = [
            one.time_s
            for one in whole.candidates
            if (one.algorithm, one.protocol) == (found.algorithm, found.protocol)
        ] or [whole.time_s]
        assert found.time_s >= whole_s * (1 - 1e-9)


@pytest.mark.parametrize("kind", COLLECTIVES)
@pytest.mark.parametrize(
    ("chip", "count"), [("h100-sxm", 5), ("h100-sxm", 16), ("h100-sxm", 192), ("gb200", 144)]
)
def test_whole_domains_take_what_they_took(chip: str, count: int, kind: Collective) -> None:
    cluster = machine(chip, count)
    assert cluster.system.filled(count) == cluster.system
    plain = machine_times(cluster.system, kind, np.array([SIZE]), count)[0]
    assert time_collective(cluster, kind, SIZE).choice.time_s == plain


@pytest.mark.parametrize(("chip", "count"), [("gb200", 80), ("gb200", 73), ("h100-sxm", 9), ("h100-sxm", 20)])
@pytest.mark.parametrize("kind", COLLECTIVES)
def test_chain_band_and_headline_are_one(chip: str, count: int, kind: Collective) -> None:
    found = time_collective(machine(chip, count), kind, SIZE)
    assert found.figure.value == pytest.approx(found.choice.time_s, rel=1e-9)
    assert found.band.low <= found.figure.value * (1 + 1e-9) <= found.band.high * (1 + 2e-9)
    assert false_nodes(found.figure) == []


@pytest.mark.parametrize(
    ("chip", "kind", "count", "least_s"),
    [
        ("gb200", "all-to-all", 80, 0.9e9 / 50e9),  # each of eight sends nine tenths of its array
        ("gb200", "all-reduce", 73, 1e9 / 50e9),  # one chip has to bring its array, and to get the sum
        ("h100-sxm", "all-to-all", 9, 8e9 / 9 / 50e9),
        ("h100-sxm", "broadcast", 17, 1e9 / 50e9),
    ],
)
def test_the_domain_with_few_chips_binds(chip: str, kind: Collective, count: int, least_s: float) -> None:
    found = time_collective(machine(chip, count), kind, SIZE)
    assert found.choice.time_s == pytest.approx(least_s)
    assert found.bound.kind == "cut"
    assert found.bound.cut is not None
    assert found.bound.cut.num_below == count % CHIPS[chip]
    assert found.figure.at(f"out of a {found.bound.cut.name}").value == pytest.approx(least_s)


def test_a_wider_port_is_felt_where_few_ports_bind() -> None:
    cluster = cluster_of(CATALOG.chip("h100-sxm"), 9, nic_bytes_per_s=100e9, catalog=CATALOG)
    found = time_collective(cluster, "all-to-all", SIZE)
    wiring = Wiring(design=FabricDesign(chip="h100-sxm", chips=9, nic_bytes_per_s=100e9))
    assert "nic" not in idle_inputs(cluster, found, wiring, CATALOG)
    assert found.choice.time_s == pytest.approx(time_s("h100-sxm", "all-to-all", 9) / 2)
