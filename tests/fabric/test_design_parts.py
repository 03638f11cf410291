"""What a design is wired with, what it draws and costs, and how likely enough of it works."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fabric.designs import design
from tests.fabric.topologies import WIRE

from datahall.catalog import Catalog
from datahall.catalog.entries.network.switch import Switch
from datahall.errors import DatahallError, ScenarioError, UnsupportedError
from datahall.fabric.design.bill import Bill, bill, estimates, has_circuit_switches
from datahall.fabric.design.built import preset
from datahall.fabric.design.parts import cable_for, machine, network_parts
from datahall.fabric.topology.graph import ACCESS, FABRIC, SCALE_UP
from datahall.fabric.topology.grids.tpu_pod import (
    PODS,
    TPU_V4,
    TPU_V5P,
    check_slice,
    crosses_cubes,
    cube_of,
    num_circuit_switches,
    slice_for,
    slice_shapes,
    tpu_pod,
    tpu_slice,
)  # fmt: skip
from datahall.reliability.nodes.availability import at_least, unit_availability
from datahall.scenario.sections.fabric import FabricDesign

CATALOG = Catalog(user=False)
DESIGNS = {
    "fat tree": ("fat-tree", 1024, {}),
    "three tiers": ("clos", 8192, {"radix": 32}),
    "other ports": ("clos", 512, {"radix": 32}),
    "rails": ("rail-only", 512, {}),
    "dragonfly": ("dragonfly", 512, {}),
    "hyperx": ("hyperx", 512, {}),
    "TPU torus": ("torus", 512, {}),
    "TPU pod": ("tpu-pod", 8960, {}),
    "torus of GPUs": ("torus", 512, {"chip": "h100-sxm"}),
    "NVL72": ("nvl72", 576, {}),
}


@pytest.fixture(scope="module", params=DESIGNS)
def billed(request: pytest.FixtureRequest) -> Bill:
    topology, chips, more = DESIGNS[request.param]
    return bill(design(topology, chips, catalog=CATALOG, **more), CATALOG)


def test_power_and_price_are_the_parts_times_their_facts(billed: Bill) -> None:
    """A switch draws and costs its own; a cable draws its modules and costs them and the fibre."""
    power = price = low = high = modules = 0.0
    for item in billed.items:
        facts = item.part.facts
        if isinstance(item.part, Switch):
            power += item.num * item.scale * facts["power_typical_w"].value
            paid = [(1, facts["price_usd"])] if "price_usd" in facts else []
        else:
            several = item.part.num_modules
            modules += item.num * several
            power += item.num * several * facts["module_power_w"].value if "module_power_w" in facts else 0.0
            wanted = ((several, "module_price_usd"), (1, "price_usd"))
            paid = [(times, facts[name]) for times, name in wanted if name in facts]
        price += sum(item.num * item.scale * times * fact.value for times, fact in paid)
        low += sum(item.num * item.scale * times * (fact.low or fact.value) for times, fact in paid)
        high += sum(item.num * item.scale * times * (fact.high or fact.value) for times, fact in paid)
    assert billed.power.value == pytest.approx(power)
    assert billed.price.value == pytest.approx(price)
    assert billed.num_modules == modules
    if billed.price.band is not None:
        assert (billed.price.band.low, billed.price.band.high) == pytest.approx((low, high))
    else:
        assert low == pytest.approx(high)


def test_every_estimate_is_named_once(billed: Bill) -> None:
    found = estimates(billed)
    assert len(set(found)) == len(found)
    assert all(source.kind == "estimate" for source in found)
    cited = {*billed.power.citations(), *billed.price.citations()}
    assert set(found) == {source for source in cited if source.kind == "estimate"}


def test_chips_hang_on_multimode_and_switches_on_single_mode_fibre() -> None:
    made = design("clos", 8192, catalog=CATALOG, radix=32)
    items = [(item.name, item.role, item.num) for item in bill(made, CATALOG).items]
    leaf, middle, core = made.counts.switches_by_tier
    _, low, high = made.counts.cables_by_tier
    assert items == [
        ("leaf switches", "switch", leaf),
        ("aggregation switches", "switch", middle),
        ("core switches", "switch", core),
        ("cables to the chips", "access", 8192),
        ("cables up to aggregation switches", "trunk", low),
        ("cables up to core switches", "trunk", high),
    ]
    for item in bill(made, CATALOG).items[3:]:
        assert item.part.medium == ("multimode" if item.role == "access" else "single-mode")
        assert item.part.bytes_per_s >= made.parts.port_bytes_per_s * 0.999
    flat = bill(design("dragonfly", 512, catalog=CATALOG), CATALOG)
    assert [item.num for item in flat.items if item.role == "access"] == [512]
    assert {item.name for item in flat.items if item.role == "trunk"} == {"cables between switches"}


def test_copper_stays_inside_cubes_and_light_goes_between_them() -> None:
    pod = {item.part.name: item.num for item in bill(design("tpu-pod", 8960, catalog=CATALOG), CATALOG).items}
    assert pod["ici-optical"] == 140 * 96 // 2
    assert pod["ici-copper"] == 3 * 8960 - 140 * 48
    assert pod["palomar-ocs"] == num_circuit_switches(140) == 105
    one = design("tpu-pod", 64, catalog=CATALOG)
    assert not has_circuit_switches(one)
    assert {item.part.name: item.num for item in bill(one, CATALOG).items} == {
        "ici-copper": 144,
        "ici-optical": 48,
    }
    assert has_circuit_switches(design("tpu-pod", 128, catalog=CATALOG))
    assert not has_circuit_switches(design("mesh", 128, catalog=CATALOG, sides="4x4x8"))
    assert not has_circuit_switches(design("torus", 120, catalog=CATALOG, sides="4x5x6"))
    assert not has_circuit_switches(design("torus", 128, catalog=CATALOG, chip="h100-sxm", sides="4x4x8"))


def test_a_mesh_in_a_server_is_not_billed_and_a_torus_of_gpus_is() -> None:
    assert bill(design("full-mesh", 8, catalog=CATALOG), CATALOG).items == ()
    (cables,) = bill(design("torus", 64, catalog=CATALOG, chip="h100-sxm"), CATALOG).items
    assert (cables.num, cables.role, cables.part.medium) == (3 * 64, "trunk", "single-mode")


def test_links_take_half_a_port_a_switch_and_thirty_metres() -> None:
    made = design("rail-optimised", 1024, catalog=CATALOG)
    fabric, port = made.fabric, made.parts.port
    assert port is not None
    assert made.parts.switch is not None
    assert made.parts.scale_up is not None
    kind, latency = fabric.link_kind, fabric.link_latency_s
    assert latency[kind == ACCESS] == pytest.approx(port.latency_s / 2)
    assert latency[kind == FABRIC] == pytest.approx(made.parts.switch.latency_s + 150e-9)
    assert latency[kind == SCALE_UP] == pytest.approx(made.parts.scale_up.latency_s / 2)
    assert fabric.link_bytes_per_s[kind == ACCESS] == pytest.approx(50e9)
    assert fabric.link_bytes_per_s[kind == SCALE_UP] == pytest.approx(450e9)
    assert made.injection_bytes_per_s == pytest.approx(50e9)
    assert made.all_to_all_bytes_per_s == pytest.approx(50e9)


def test_ports_of_a_gpu_are_spread_over_its_neighbours() -> None:
    six = design("torus", 64, catalog=CATALOG, chip="h100-sxm")
    assert six.fabric.link_bytes_per_s[0] == pytest.approx(50e9 / 6)
    assert six.fabric.link_latency_s[0] == 1e-6
    assert "6 neighbours" in six.notes[0]
    seven = design("full-mesh", 8, catalog=CATALOG, chip="h100-sxm")
    assert seven.fabric.link_bytes_per_s[0] == pytest.approx(50e9 / 7)
    own = design("torus", 64, catalog=CATALOG)
    assert own.fabric.link_bytes_per_s[0] == CATALOG.link("ici-v7x").bytes_per_s
    assert own.notes == ()


def test_a_design_is_of_the_sides_and_domains_asked_for() -> None:
    assert design("torus", 120, catalog=CATALOG, sides="4x5x6").fabric.shape.sides == (4, 5, 6)
    assert design("tpu-pod", 512, catalog=CATALOG, sides="4x8x16").fabric.shape.sides == (4, 8, 16)
    assert design("tpu-pod", 8960, catalog=CATALOG).fabric.shape.sides == (16, 20, 28)
    assert design("tpu-pod", 8960, catalog=CATALOG, sides="16x20x28").fabric.shape.sides == (16, 20, 28)
    assert design("tpu-pod", 512, catalog=CATALOG).fabric.shape.sides == (8, 8, 8)
    assert len(design("torus", 256, catalog=CATALOG, chip="tpu-v5e").fabric.shape.sides) == 2
    assert design("mesh", 64, catalog=CATALOG).fabric.topology == "mesh"
    assert design("hgx", 8, catalog=CATALOG).fabric.topology == "scale-up"
    assert design("hgx", 16, catalog=CATALOG).fabric.num_domains == 2
    assert design("nvl72", 144, catalog=CATALOG).counts.domain_size == 72
    assert design("clos", 64, catalog=CATALOG, tiers=3).counts.num_tiers == 3


def test_the_slowest_cable_that_will_do_is_taken() -> None:
    for medium, speed in product(("multimode", "single-mode"), (25e9, 50e9, 99.95e9, 100e9)):
        able = [
            one for one in CATALOG.cables()
            if one.medium == medium and one.bytes_per_s >= 0.999 * speed and one.joins == "switches"
        ]  # fmt: skip
        assert cable_for(CATALOG, medium, speed).bytes_per_s == min(one.bytes_per_s for one in able)
    with pytest.raises(UnsupportedError, match="no multimode cable"):
        cable_for(CATALOG, "multimode", 1e15)


def test_the_switch_has_ports_of_the_chips_speed_and_network() -> None:
    for server in CATALOG.servers():
        if not server.nic_link or not server.num_nics:
            continue
        try:
            parts = network_parts(
                FabricDesign(server=server.name), CATALOG, CATALOG.chip(server.chip), server
            )
        except UnsupportedError:
            continue
        assert parts.switch is not None
        assert parts.radix == parts.switch.radix(server.network_bytes_per_s_per_chip) >= 2
        assert (parts.switch.network == "infiniband") == server.nic_link.startswith("infiniband")
        assert parts.port_bytes_per_s == server.network_bytes_per_s_per_chip
        same = [
            box for box in CATALOG.switches()
            if box.network == parts.switch.network and box.port_bytes_per_s == parts.port_bytes_per_s
        ]  # fmt: skip
        assert not same or parts.switch.port_bytes_per_s == parts.port_bytes_per_s


def test_a_chip_is_at_home_in_a_server_with_ports() -> None:
    for chip in CATALOG.chips():
        found, home = machine(CATALOG, chip.name)
        homes = [
            one
            for one in CATALOG.servers()
            if one.chip == found.name and one.form in {"server", "rack", "pod"}
        ]
        assert home in homes or (not homes and home.num_scale_up_domain == max(1, chip.num_scale_up_domain))
        assert (home.num_nics > 0) == any(one.num_nics > 0 for one in homes)
    assert machine(CATALOG, server="dgx-h100")[0].name == "h100-sxm"


def test_a_published_fabric_says_what_is_estimated() -> None:
    for known in CATALOG.known_fabrics():
        made = preset(known.name, catalog=CATALOG)
        assert made.fabric.name == known.title
        unsure = [fact for fact in known.facts.values() if fact.source.kind == "estimate" and fact.note]
        assert sum("is an estimate" in note for note in made.notes) == len(unsure)
        assert not known.note or made.notes[-1] == known.note


@given(st.floats(0.0, 1.0), st.integers(0, 40))
def test_a_unit_works_when_all_its_parts_do(part: float, num_parts: int) -> None:
    assert unit_availability(part, num_parts) == pytest.approx(prod([part] * num_parts))
    assert unit_availability(0.5) == 2.0**-16


def test_shares_and_counts_out_of_range_are_refused() -> None:
    assert (at_least(0, 5, 0.0), at_least(5, 5, 1.0), at_least(1, 5, 0.0)) == (1.0, 1.0, 0.0)
    for ask in (
        lambda: at_least(6, 5, 0.5), lambda: at_least(-1, 5, 0.5), lambda: at_least(1, 5, 1.1),
        lambda: unit_availability(-0.1),
    ):  # fmt: skip
        with pytest.raises(ScenarioError):
            ask()


@pytest.mark.parametrize("pod", PODS.values(), ids=lambda pod: pod.name)
def test_slices_are_parts_of_a_cube_or_whole_cubes_in_order_of_size(pod: object) -> None:
    a, b, c = pod.largest
    whole = {
        (x, y, z)
        for x, y, z in product(range(4, 29, 4), repeat=3)
        if x <= y <= z and x <= a and y <= b and z <= c
    }
    small = {(1, 1, 1), (2, 2, 1), (2, 2, 2), (2, 2, 4), (2, 4, 4)}
    found = slice_shapes(pod)
    assert set(found) == whole | small
    sizes = [prod(shape) for shape in found]
    assert sizes == sorted(sizes)
    for shape in found:
        assert check_slice(shape[::-1], pod) == shape
        assert prod(slice_for(prod(shape), pod)) == prod(shape)
        assert max(slice_for(prod(shape), pod)) <= max(shape)


def test_a_slice_is_refused_with_those_nearest_to_it() -> None:
    with pytest.raises(ScenarioError) as caught:
        check_slice((4, 4, 5), TPU_V4)
    assert caught.value.hint == "nearest: 4x4x4 (64), 4x4x8 (128), 4x4x12 (192)"
    with pytest.raises(ScenarioError, match="whole cubes"):
        check_slice((3, 3, 3), TPU_V4)
    with pytest.raises(ScenarioError, match="largest slice of its 8,960 chips is 16x16x24, 6,144"):
        check_slice((16, 20, 28), TPU_V5P)
    with pytest.raises(ScenarioError) as caught:
        slice_for(5000, TPU_V4)
    assert caught.value.hint == "nearest: 4,096"


@pytest.mark.parametrize("sides", [(4, 4, 4), (4, 8, 12), (8, 8, 8), (4, 4, 8)])
def test_light_passes_between_cubes_and_around_them(sides: tuple[int, int, int]) -> None:
    fabric = tpu_slice(sides, WIRE, TPU_V4)
    where = np.stack(np.unravel_index(np.arange(prod(sides)), sides), axis=1)
    assert cube_of(sides, np.arange(prod(sides), dtype=np.int32)).tolist() == [
        np.ravel_multi_index(chip // 4, np.array(sides) // 4) for chip in where
    ]
    source, target = where[fabric.link_source], where[fabric.link_target]
    apart = (source // 4 != target // 4).any(axis=1) | (np.abs(source - target).max(axis=1) > 1)
    assert (crosses_cubes(fabric, sides) == apart).all()


def test_a_pod_says_its_largest_slice_and_has_the_switches_of_its_fibres() -> None:
    assert tpu_pod(TPU_V5P, WIRE).topology == "tpu-pod"
    assert "largest slice is 16x16x24" in tpu_pod(TPU_V5P, WIRE).name
    assert "largest" not in tpu_pod(TPU_V4, WIRE).name
    assert [num_circuit_switches(cubes) for cubes in (1, 2, 4, 5)] == [1, 2, 3, 4]
    assert num_circuit_switches(64, ports=64) == 96


def test_what_the_catalogue_does_not_have_is_said() -> None:
    for ask in (
        lambda: design("clos", 512, catalog=CATALOG, radix=1),
        lambda: design("tpu-pod", 100, catalog=CATALOG),
        lambda: design("full-mesh", 4, catalog=CATALOG, chip="rtx-4090"),
    ):
        with pytest.raises(DatahallError):
            ask()


def test_the_axes_of_a_torus_are_a_fact_of_its_links_and_not_of_their_notes() -> None:
    """Whatever the note says: a link of two axes makes a square, one of which nobody says makes a box."""
    flat = design("torus", 64, catalog=CATALOG, chip="tpu-v5e")
    assert flat.parts.scale_up is not None
    assert flat.parts.scale_up.num_torus_axes == len(flat.fabric.shape.sides) == 2
    for link in CATALOG.links():
        assert ("D torus" in link.note) == (link.num_torus_axes > 0)
        assert link.num_torus_axes == 0 or f"{link.num_torus_axes}D torus" in link.note
