"""One machine for one chip: as it is sold, and on a network that is as wide as its ports, whatever chip it is."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest

from datahall.catalog import Catalog
from datahall.cluster.cluster import cluster_from
from datahall.cluster.collective import time_collective
from datahall.cluster.groups import machine_times
from datahall.cluster.wiring import Wiring
from datahall.errors import DatahallError, InfeasibleError, UnsupportedError
from datahall.fabric.collectives.system import System
from datahall.fabric.design.parts import network_parts, usual_domain, usual_server
from datahall.inference.engine.build import replica_of
from datahall.inference.engine.replica import Replica, replica_system
from datahall.inference.step.exchange import exchange
from datahall.scenario.sections.deployment import Deployment
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.words import COLLECTIVES, Collective

CATALOG = Catalog(user=False)
CHIPS = [chip.name for chip in CATALOG.chips()]
SIZES = np.geomspace(1e3, 1e10, 6)
each_chip = pytest.mark.parametrize("name", CHIPS)


LARGEST_DOMAIN = 256  # of a test: the pods of thousands of chips are wired no other way


def two_domains(name: str, topology: str = "") -> FabricDesign:
    """Two scale-up domains of a chip; those of TPU pods made smaller, alike with and without a topology."""
    chip = CATALOG.chip(name)
    usual = usual_domain(CATALOG, chip, usual_server(CATALOG, chip))
    size = min(usual, LARGEST_DOMAIN)
    return FabricDesign(chip=name, chips=2 * size, topology=topology, domain=size if size < usual else None)


def refusal(design: FabricDesign) -> DatahallError | None:
    try:
        cluster = cluster_from(design, CATALOG, switched=True)
        machine_times(cluster.system, "all-reduce", SIZES, cluster.num_chips)
    except (InfeasibleError, UnsupportedError) as error:
        return error
    return None


@each_chip
def test_a_chip_as_it_is_sold_is_a_chip_on_a_fat_tree_of_its_ports(name: str) -> None:
    """Where no network is known, or nobody sells a switch for it, both say so; of TPUs, without their torus."""
    sold, wired = two_domains(name), two_domains(name, "fat-tree")
    no, why = refusal(sold), refusal(wired)
    if no is not None or why is not None:
        assert why is not None
        assert why.hint
        assert no is not None or "switch" in why.message
        return
    one, other = cluster_from(sold, CATALOG, switched=True), cluster_from(wired, CATALOG)
    for kind in COLLECTIVES:
        free, on = (machine_times(each.system, kind, SIZES, each.num_chips).tolist() for each in (one, other))
        assert on == pytest.approx(free, rel=1e-9), kind
    assert one.wires == other.wires


@each_chip
def test_the_network_that_a_fat_tree_assumes_is_said(name: str) -> None:
    chip = CATALOG.chip(name)
    wired = two_domains(name, "fat-tree")
    if refusal(wired) is not None:
        return
    design = cluster_from(wired, CATALOG).design
    assert design is not None
    server = usual_server(CATALOG, chip).network_bytes_per_s_per_chip
    said = any("is taken to be" in note for note in design.notes)
    assert said == (server != design.parts.port_bytes_per_s)


@each_chip
@pytest.mark.parametrize("said", [{}, {"domain": 4}, {"nic_bytes_per_s": 10e9}])
def test_serving_stands_on_the_machine_that_collectives_run_on(name: str, said: dict[str, Any]) -> None:
    """But for the torus of TPUs, which it does not know."""
    asked, model, design = Deployment(chip=name, tp=1), CATALOG.model("llama-3.1-8b"), FabricDesign(**said)
    if not CATALOG.chip(name).scale_up_bytes_per_s > 0:
        with pytest.raises(UnsupportedError, match="published"):
            replica_system(replica_of(asked, model, CATALOG, Wiring(design)))
        return
    machine = cluster_from(design, CATALOG, chip=name, num_chips=256, switched=True).system
    replica = replica_of(asked, model, CATALOG, Wiring(design))
    assert replica_system(replica) == machine
    bare = Replica(model=model, chip=replica.chip, engine=replica.engine)
    if not said:
        assert replica_system(bare) == machine


@each_chip
@pytest.mark.parametrize("domain", [None, 4])
def test_a_replica_sees_the_same_machine_with_and_without_a_topology(name: str, domain: int | None) -> None:
    asked, model = Deployment(chip=name, tp=1), CATALOG.model("llama-3.1-8b")
    plain, wired = (FabricDesign(topology=on, domain=domain) for on in ("", "fat-tree"))
    try:
        on = replica_system(replica_of(asked, model, CATALOG, Wiring(wired)))
    except (UnsupportedError, InfeasibleError):
        return
    free = replica_system(replica_of(asked, model, CATALOG, Wiring(plain)))
    assert (on.num_domain, on.nic_bytes_per_s) == (free.num_domain, pytest.approx(free.nic_bytes_per_s))


@each_chip
@pytest.mark.parametrize("tokens", [1.0, 4000.0])
@pytest.mark.parametrize("ranks", [2, 8, 16, 32])
def test_experts_meet_in_a_time_or_not_at_all(name: str, tokens: float, ranks: int) -> None:
    """Cards that no network joins have no way to spread experts over servers: a no, not a division by zero."""
    asked = Deployment(chip=name, tp=1, dp=ranks, ep=ranks, expert_exchange="all-to-all")
    replica = replica_of(asked, CATALOG.model("deepseek-v3"), CATALOG)
    chip = replica.chip
    if not chip.scale_up_bytes_per_s > 0:
        with pytest.raises(UnsupportedError, match="published"):
            exchange(replica, np.array([tokens]))
        return
    system = replica_system(replica)
    if ranks > system.num_domain and system.nic_bytes_per_s == 0:
        with pytest.raises(InfeasibleError, match="no network"):
            exchange(replica, np.array([tokens]))
        return
    found = exchange(replica, np.array([tokens])).expert_s
    assert np.isfinite(found).all()
    assert (found > 0).all()


@pytest.mark.parametrize("speed", [25, 50, 75, 99, 100, 180, 200, 300, 400, 401, 600, 799, 800])
def test_a_switch_holds_as_many_ports_as_its_cages_do(speed: int) -> None:
    """A cage of 800 Gb/s holds two ports of 400 Gb/s, one of 401 and none of 801."""
    rate = speed * 1e9 / 8
    chip = CATALOG.chip("h100-sxm")
    parts = network_parts(FabricDesign(nic_bytes_per_s=rate), CATALOG, chip, usual_server(CATALOG, chip))
    assert parts.switch is not None
    whole = int(parts.switch.port_bytes_per_s / rate + 1e-9)
    most = max(parts.switch.num_ports, parts.switch.num_split_ports)
    assert parts.radix == min(most, whole * parts.switch.num_ports) >= 2
    assert parts.radix * rate <= parts.switch.num_ports * parts.switch.port_bytes_per_s * (1 + 1e-9)
    made = cluster_from(FabricDesign(topology="fat-tree", chips=64, nic_bytes_per_s=rate), CATALOG)
    assert made.system.nic_bytes_per_s == pytest.approx(rate)


def test_a_port_that_no_switch_has_names_those_there_are() -> None:
    with pytest.raises(UnsupportedError, match="1600 Gb/s") as caught:
        cluster_from(FabricDesign(topology="fat-tree", chips=64, nic_bytes_per_s=200e9), CATALOG)
    assert caught.value.field == "nic"
    assert "800 Gb/s" in caught.value.hint


def worst_joined_bytes_per_s(system: System) -> float:
    """What the chip with the fewest links takes in inside its domain: on a mesh one in a corner, by its graph."""
    if not system.torus:
        return system.scale_up_bytes_per_s
    grid = networkx.grid_graph([side for side in system.torus if side > 1], periodic=system.is_wrapped)
    return min(degree for _, degree in grid.degree) * system.scale_up_bytes_per_s / (2 * len(system.torus))


@each_chip
@pytest.mark.parametrize("kind", ["all-reduce", "all-gather", "all-to-all", "broadcast"])
def test_no_run_is_expected_faster_than_the_links_of_a_chip(name: str, kind: Collective) -> None:
    """Every chip takes in what it lacks, over all links that it has: an array, or what the others hold of it."""
    for num in (2, 8, 16, 512):
        try:
            made = cluster_from(FabricDesign(chip=name, chips=num), CATALOG)
            found = time_collective(made, kind, 4e9)
        except DatahallError:
            continue  # no network joins so many
        system, value = made.system, found.figure.value
        links = worst_joined_bytes_per_s(system) + (
            system.nic_bytes_per_s if num > system.num_domain else 0.0
        )
        lacking = 4e9 if kind in ("all-reduce", "broadcast") else 4e9 * (num - 1) / num
        assert found.band.low >= min(value, lacking / links) * (1 - 1e-12)


@pytest.mark.parametrize(
    ("name", "num", "low_ms"),
    [
        ("tpu-v5e", 16, 1e3 * 15 / 16 / (2 * 45)),  # 4 × 4, a mesh: two links of 45 GB/s in a corner
        ("tpu-v5e", 8, 1e3 * 7 / 8 / (2 * 45)),  # 2 × 4
        ("tpu-v5e", 256, 1e3 * 255 / 256 / (4 * 45)),  # 16 × 16, a torus: four links
        ("tpu-v5p", 16, 1e3 * 15 / 16 / (3 * 90)),  # 2 × 2 × 4, a mesh: three links of 90 GB/s
        ("tpu-v5p", 64, 1e3 * 63 / 64 / (6 * 90)),  # 4 × 4 × 4, a torus: six
    ],
)
def test_a_gigabyte_gathered_on_tpus_is_what_a_corner_takes_in(name: str, num: int, low_ms: float) -> None:
    found = time_collective(cluster_from(FabricDesign(chip=name, chips=num), CATALOG), "all-gather", 1e9)
    assert found.band.low == pytest.approx(low_ms * 1e-3, rel=1e-9)


@pytest.mark.parametrize("on", ["torus", "mesh", "tpu-pod"])
def test_no_run_between_neighbours_is_expected_below_the_floor_of_its_chain(on: str) -> None:
    for kind in ("all-reduce", "all-gather", "all-to-all"):
        found = time_collective(cluster_from(FabricDesign(topology=on, chips=64), CATALOG), kind, 1e9)
        floors = [part.value for part in found.figure.parts if part.name.startswith("out of ")]
        assert floors
        assert found.band.low >= max(floors) * (1 - 1e-12)
