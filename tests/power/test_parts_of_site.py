"""A site is the sum of its parts, whatever parts it is made of."""

from __future__ import annotations

from math import fsum

import pytest

from datahall.breakdown import Breakdown, derived, total
from datahall.catalog import load
from datahall.power.activity import Activity
from datahall.power.chip import chip_power
from datahall.power.site import building_of, drawn, it_of, lone_machines, parts_of, provisioned, servers_of
from datahall.scenario.sections.operations.site import Site

CATALOG = load()
H100 = CATALOG.chip("h100-sxm")


def part(name: str, power_w: float) -> Breakdown:
    return derived(name, power_w, "w")


def test_a_part_that_is_new_is_one_of_them() -> None:
    it = total(
        "IT", (part("servers", 100.0), part("network", 5.0), part("storage", 2.0), part("robots", 3.0))
    )
    site = total("site", (it, part("losses", 5.0), part("cooling", 10.0), part("lights", 1.0)))
    assert [one.name for one in parts_of(site)] == [
        "servers", "network", "storage", "robots", "losses", "cooling", "lights",
    ]  # fmt: skip
    assert fsum(one.value for one in parts_of(site)) == site.value == 126.0


@pytest.mark.parametrize("num_idle", [0, 16])
def test_parts_add_up_by_nameplate_and_as_drawn(num_idle: int) -> None:
    machines, building = lone_machines(H100, CATALOG, 64), building_of(Site(pue_ratio=1.3), CATALOG)
    chip = chip_power(H100, Activity(0.4, 0.3, 0.0, 1.0))
    sites = provisioned(machines, building), drawn(machines, building, chip, num_idle)
    for site in sites:
        assert fsum(one.value for one in parts_of(site)) == pytest.approx(site.value, rel=1e-12)
        assert site.value == pytest.approx(1.3 * it_of(site).value)
        assert servers_of(site).name == "servers"
    first, second = ([one.name for one in parts_of(site)] for site in sites)
    assert first == second == ["servers", "network", "storage", "electrical losses", "cooling"]
