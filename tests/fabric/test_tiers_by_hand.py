"""How many tiers so many chips need, by counting the ports of each switch on paper."""

from __future__ import annotations

from functools import partial

import pytest

from datahall.catalog import Catalog
from datahall.errors import ScenarioError, spelled
from datahall.fabric.design.parts import parts_of
from datahall.fabric.design.tiers import check_tiers, tiers_of
from datahall.fabric.topology.folded_clos import FoldedClos
from datahall.fabric.topology.graph import Wire
from datahall.fabric.topology.rail import rail_optimised
from datahall.fabric.topology.tiers import most_chips, num_tiers, rails_of
from datahall.scenario.sections.fabric import FabricDesign

SHELF = Catalog(user=False)
WIRE = Wire(50e9, 5e-7)


def test_leaves_that_are_not_full_leave_fewer_chips_under_the_same_spines() -> None:
    """A spine of 8 ports has 8 leaves, whatever hangs on them: 4 chips each where half of the ports go down, or 2."""
    assert most_chips(8, 2) == 8 * 4
    assert most_chips(8, 2, leaf_chips=2) == 8 * 2
    assert most_chips(8, 3, leaf_chips=2) == 8 * 4 * 2
    assert most_chips(8, 2, leaf_chips=9) == 8 * 4  # more than it has ports for do not hang on it
    few = partial(most_chips, leaf_chips=2)
    assert num_tiers(16, radix=8, holds=few) == 2
    assert num_tiers(18, radix=8, holds=few) == 3
    with pytest.raises(ScenarioError) as caught:
        num_tiers(18, radix=8, tiers=2, holds=few)
    assert "chips=16" in spelled(caught.value.hint)


def test_more_rails_than_a_spine_has_ports_need_a_third_tier() -> None:
    """Three servers of ten chips are ten leaves with three chips each, and a spine of 8 ports joins 8."""
    found = rails_of(30, radix=8, rails=10)
    assert (found.seats, found.tiers) == (3, 3)
    laid = rail_optimised(30, WIRE, WIRE, radix=8, rails=10).shape
    assert isinstance(laid, FoldedClos)
    assert laid.num_levels == 3
    assert rails_of(24, radix=8, rails=8).tiers == 2  # eight leaves


@pytest.mark.parametrize("rails", [2, 4])
@pytest.mark.parametrize("radix", [8, 16, 64])
def test_as_many_chips_as_a_switch_has_ports_hang_on_one(radix: int, rails: int) -> None:
    assert rails_of(radix - rails, radix=radix, rails=rails).tiers == 1
    assert rails_of(radix, radix=radix, rails=rails).tiers == 1
    assert rails_of(radix + rails, radix=radix, rails=rails).tiers == 2


@pytest.mark.parametrize(("topology", "domain"), [("hgx", 8), ("nvl72", 72)])
def test_a_single_domain_has_no_tiers_of_switches_to_speak_of(topology: str, domain: int) -> None:
    asked = FabricDesign(topology=topology, chips=domain, radix=8)
    assert tiers_of(asked, parts_of(asked, SHELF), domain) is None
    tapered = FabricDesign(topology=topology, chips=domain, radix=8, oversubscription=(3.0,))
    check_tiers(tapered, parts_of(tapered, SHELF), domain)
    two = FabricDesign(topology=topology, chips=2 * domain, radix=256)
    assert tiers_of(two, parts_of(two, SHELF), 2 * domain) == 1
