"""Servers are bought whole: what is provisioned and what is drawn are of the same machines."""

from __future__ import annotations

import pytest

from datahall.breakdown import derived
from datahall.catalog import Catalog
from datahall.power.activity import IDLE
from datahall.power.chip import chip_power, power_limit_w
from datahall.power.site import building_of, drawn, lone_machines, provisioned, servers_of
from datahall.scenario.sections.operations.site import Site

CATALOG = Catalog(user=False)
BUILDING = building_of(Site(), CATALOG)


def at_rest_w(name: str, num_chips: int) -> float:
    """What the servers of so many chips draw when nobody has work for them."""
    chip = CATALOG.chip(name)
    idle = chip_power(chip, IDLE, "an idle chip")
    return servers_of(drawn(lone_machines(chip, CATALOG, num_chips), BUILDING, idle)).value


@pytest.mark.parametrize(("name", "in_server"), [("h100-sxm", 8), ("gb200", 72)])
def test_chips_of_a_server_that_nobody_asked_for_idle(name: str, in_server: int) -> None:
    """At rest a server draws the same however many of its chips were asked for."""
    whole = at_rest_w(name, in_server)
    for num in (1, in_server // 2, in_server - 1):
        assert at_rest_w(name, num) == pytest.approx(whole)
    assert at_rest_w(name, in_server + 1) == pytest.approx(2 * whole)


def test_spare_chips_by_hand() -> None:
    """Eleven H100 are two servers of eight."""
    machines = lone_machines(CATALOG.chip("h100-sxm"), CATALOG, 11)
    assert (machines.num_servers, machines.num_spare_chips) == (2, 5)
    assert lone_machines(CATALOG.chip("h100-sxm"), CATALOG, 16).num_spare_chips == 0


LIMITED = [chip.name for chip in CATALOG.chips() if "power_limit_w" in chip.facts]


@pytest.mark.parametrize("name", LIMITED)
def test_no_site_draws_more_than_it_is_built_for(name: str) -> None:
    """All chips at their limits, beside those of their servers that idle."""
    chip = CATALOG.chip(name)
    limit = derived("limit", power_limit_w(chip), "w")
    for num in (1, 3, 8, 11, 64, 72, 100):
        machines = lone_machines(chip, CATALOG, num)
        most_w = drawn(machines, BUILDING, limit).value
        assert most_w <= provisioned(machines, BUILDING).value * (1 + 1e-12), num


def test_whole_servers_are_provisioned_by_hand() -> None:
    """72 Trainium2 are two servers of 64: twice what one is provisioned for."""
    chip = CATALOG.chip("trainium2")
    one, two = (
        servers_of(provisioned(lone_machines(chip, CATALOG, num), BUILDING)).value for num in (64, 72)
    )
    assert two == pytest.approx(2 * one)
