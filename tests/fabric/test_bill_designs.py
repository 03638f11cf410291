"""Designs from catalogue parts, their bills, and fabrics that were built."""

from __future__ import annotations

import pytest
from tests.fabric.designs import design

from datahall.catalog import Catalog
from datahall.fabric.design.asked import design_for
from datahall.fabric.design.bill import bill, estimates, fat_tree_bill
from datahall.fabric.design.built import preset
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.words import TOPOLOGIES

CATALOG = Catalog(user=False)


@pytest.mark.parametrize(
    "topology", [name for name in TOPOLOGIES if name not in {"full-mesh", "tpu-pod", "leaf-spine"}]
)
def test_every_topology_is_designed_and_billed(topology: str) -> None:
    made = design(topology, 9216, catalog=CATALOG)
    found = bill(made, CATALOG)
    assert made.counts.num_hosts == 9216
    assert found.num_cables == made.counts.num_cables
    assert found.price.value == pytest.approx(sum(item.price_usd for item in found.items))
    assert found.power.value == pytest.approx(sum(item.power_w for item in found.items))
    assert found.price.value == pytest.approx(sum(part.value for part in found.price.parts))
    assert found.price.band.low < found.price.value < found.price.band.high
    assert found.price.citations()
    assert 0 < made.all_to_all_bytes_per_s <= made.injection_bytes_per_s * (1 + 1e-12)


def test_a_fat_tree_of_16384_h100_is_what_an_operator_counts() -> None:
    made = design("fat-tree", 16_384, catalog=CATALOG, chip="h100-sxm")
    found = bill(made, CATALOG)
    assert made.counts.switches_by_tier == (512, 512, 256)
    assert (found.num_switches, found.num_cables, found.num_modules) == (1280, 49_152, 98_304)
    assert made.counts.bisection_bytes_per_s == pytest.approx(409.6e12)
    switches = 1280 * CATALOG.switch("qm9700").price_usd
    assert sum(item.price_usd for item in found.items if item.role == "switch") == switches
    assert any("Street prices" in source.title for source in estimates(found))


def test_oversubscription_saves_switches_and_costs_bisection() -> None:
    full = design("clos", 16_384, catalog=CATALOG)
    tapered = design("clos", 16_384, catalog=CATALOG, oversubscription="1:1,3:1")
    assert tapered.counts.num_switches < full.counts.num_switches
    assert tapered.counts.full_bisection_fraction == pytest.approx(1 / 3, rel=0.1)
    assert bill(tapered, CATALOG).price.value < bill(full, CATALOG).price.value


def test_a_torus_is_slower_for_all_to_all_and_needs_no_packet_switch() -> None:
    made = design("torus", 9216, catalog=CATALOG)
    link = CATALOG.link("ici-v7x").bytes_per_s
    assert made.all_to_all_bytes_per_s == pytest.approx(8 * link / 24)
    assert [item.part.name for item in bill(made, CATALOG).items] == [
        "palomar-ocs",
        "ici-copper",
        "ici-optical",
    ]


def test_a_single_rack_needs_no_network() -> None:
    made = design("nvl72", 72, catalog=CATALOG)
    assert made.fabric.topology == "scale-up"
    assert bill(made, CATALOG).items == ()
    assert made.counts.bisection_bytes_per_s == pytest.approx(36 * 900e9)  # 64.8 TB/s both ways


def test_another_radix_scales_the_price_by_ports() -> None:
    made = design("clos", 512, catalog=CATALOG, radix=32)
    assert bill(made, CATALOG).items[0].price_usd == pytest.approx(32 * 30_000 / 2)


def test_rail_only_is_cheaper_than_rail_optimised() -> None:
    only, optimised = (design(name, 8192, catalog=CATALOG) for name in ("rail-only", "rail-optimised"))
    saved = 1 - bill(only, CATALOG).price.value / bill(optimised, CATALOG).price.value
    assert 0.3 < saved < 0.8  # the paper says 38 to 77 %


PRESETS = {
    "meta-24k-roce": (24_576, (384, 256, 32)),
    "meta-24k-infiniband": (24_576, (768, 768, 512)),
    "dgx-superpod-h100": (1024, (32, 16)),
    "gb200-nvl72-cluster": (9216, None),
    "gb200-nvl72-superpod": (576, None),
    "xai-colossus": (100_000, None),
    "tpu-v4-pod": (4096, ()),
    "tpu-v5p-pod": (8960, ()),
}


def test_every_published_fabric_is_checked_here() -> None:
    assert {known.name for known in CATALOG.known_fabrics()} == set(PRESETS)


@pytest.mark.parametrize("name", PRESETS)
def test_published_fabrics_are_built_as_published(name: str) -> None:
    chips, switches = PRESETS[name]
    made = preset(name, catalog=CATALOG)
    assert made.counts.num_hosts == chips
    assert switches is None or made.counts.switches_by_tier == switches
    assert bill(made, CATALOG).power.value > 0


def test_meta_pods_are_3072_chips_and_seven_to_one_above() -> None:
    made = preset("meta-24k-roce", catalog=CATALOG)
    assert made.fabric.shape.below(2) == 3072
    assert made.counts.full_bisection_fraction == pytest.approx(1 / 7, rel=0.05)


def test_48_circuit_switches_join_a_v4_pod() -> None:
    items = {item.part.name: item.num for item in bill(preset("tpu-v4-pod", catalog=CATALOG), CATALOG).items}
    assert items["palomar-ocs"] == 48
    assert items["ici-optical"] == 3072


@pytest.mark.parametrize("name", ["h100-sxm", "gb200", "l40s", "gaudi3"])
@pytest.mark.parametrize("num_chips", [1, 9, 64, 65, 577, 2049, 4700, 9001])
def test_a_fat_tree_costs_counted_what_it_costs_laid(name: str, num_chips: int) -> None:
    chip = CATALOG.chip(name)
    asked = FabricDesign(topology="fat-tree", chip=name, chips=num_chips)
    laid = bill(design_for(asked, CATALOG, num_chips=num_chips, least_domains=1), CATALOG)
    counted = fat_tree_bill(chip, num_chips, CATALOG)
    assert counted.items == laid.items
    assert counted.num_chips == laid.num_chips
    assert counted.price.value == laid.price.value
    assert counted.power.value == laid.power.value
