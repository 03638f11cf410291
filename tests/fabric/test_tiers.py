"""The tiers that are counted before anything is laid are those that are laid; what is offered instead fits."""

from __future__ import annotations

import re
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.catalog import Catalog
from datahall.errors import ScenarioError
from datahall.fabric.design.asked import design_of, fabric_of
from datahall.fabric.design.early import check_design
from datahall.fabric.design.parts import parts_of
from datahall.fabric.design.tiers import UnneededTier, tiers_of
from datahall.fabric.design.topologies import TABLE
from datahall.fabric.topology.folded_clos import FoldedClos
from datahall.scenario.sections.fabric import MOST_TIERS, FabricDesign

SHELF = Catalog(user=False)
TAPERED = tuple(one.name for one in TABLE if "oversubscription" in one.uses)
SWITCHED = ("tree", "fat-tree", "clos", "leaf-spine", "rail-optimised", "rail-only", "dragonfly-plus", "hgx")


@st.composite
def designs(draw: st.DrawFn) -> FabricDesign:
    topology = draw(st.sampled_from(TAPERED))
    domain = {"nvl72": 72}.get(topology, 8)
    return FabricDesign(
        topology=topology,
        chips=domain * draw(st.integers(1, 300)),
        radix=2 * draw(st.integers(2, 40)),
        tiers=draw(st.sampled_from([None, *range(1, MOST_TIERS + 1)])) if topology != "leaf-spine" else None,
        oversubscription=tuple(draw(st.lists(st.sampled_from([1.0, 2.0, 3.0, 7.0]), max_size=3))),
    )


@settings(max_examples=200, deadline=None)
@given(designs())
def test_the_tiers_that_are_counted_are_laid(asked: FabricDesign) -> None:
    parts, num_chips = parts_of(asked, SHELF), asked.chips or 0
    try:
        made = design_of(asked, SHELF)
    except ScenarioError as error:
        if isinstance(error, UnneededTier):  # the same design laid at full width has so many
            with pytest.raises(UnneededTier):
                check_design(asked, SHELF)
        return
    tiers = tiers_of(asked, parts, num_chips)
    assert isinstance(made.fabric.shape, FoldedClos)
    assert tiers == made.fabric.shape.num_levels or (tiers is None and num_chips == parts.num_domain)
    spoken = [ratio for ratio in asked.oversubscription[max(0, (tiers or 0) - 1) :] if ratio != 1.0]
    assert not spoken or tiers is None  # a ratio of a tier that there is not was not taken


@pytest.mark.parametrize("chips", [64, 512, 4096, 20_000])
@pytest.mark.parametrize("radix", [3, 5, 7, 9, 33])
@pytest.mark.parametrize("topology", SWITCHED)
@pytest.mark.parametrize("alike", [False, True])
def test_a_switch_that_is_offered_instead_holds_the_chips(
    topology: str, radix: int, chips: int, alike: bool
) -> None:
    links = {"bandwidth_bytes_per_s": 5e10} if alike else {}
    asked = FabricDesign(topology=topology, chips=chips, radix=radix, **links)
    try:
        fabric_of(asked, SHELF)
    except ScenarioError as error:
        if error.field != "radix":
            return
        offered = [int(number) for number in re.findall(r"⟦radix=(\d+)⟧", error.hint)]
        assert offered
        for number in offered:
            made = fabric_of(msgspec.structs.replace(asked, radix=number), SHELF)
            assert made.num_hosts == chips


TOO_LARGE = {
    "named tiers": FabricDesign(topology="leaf-spine", chips=1000, radix=16),
    "the greatest ratio": FabricDesign(topology="leaf-spine", chips=1000, radix=16, oversubscription=(15.0,)),
    "the greatest ratio in four tiers": FabricDesign(
        topology="fat-tree", chips=1000, radix=4, oversubscription=(3.0,)
    ),
    "tiers to spare": FabricDesign(topology="fat-tree", chips=1000, radix=16, tiers=2),
    "a grid": FabricDesign(topology="hyperx", chips=1000, radix=8),
    "a grid of odd switches": FabricDesign(topology="hyperx", chips=1000, radix=9),
    "racks": FabricDesign(topology="nvl72", chips=10_008, radix=4),
    "servers": FabricDesign(topology="hgx", chips=10_000, radix=4),
    "rails apart": FabricDesign(topology="rail-only", chips=10_000, radix=4),
    "rails joined": FabricDesign(topology="rail-optimised", chips=10_000, radix=16, tiers=2),
}


@pytest.mark.parametrize("asked", TOO_LARGE.values(), ids=TOO_LARGE)
def test_what_is_offered_to_too_many_chips_holds_them(asked: FabricDesign) -> None:
    """Every offer is an input with a value, of the inputs that the topology has, and is not refused in its turn."""
    with pytest.raises(ScenarioError, match="do not fit") as caught:
        design_of(asked, SHELF)
    offers = re.findall(r"⟦(\w+)=([^⟧]*)⟧", caught.value.hint)
    assert re.sub(r"⟦\w+=[^⟧]*⟧( or )?", "", caught.value.hint) == "nearest: "
    assert {"chips", "radix"} <= dict(offers).keys()
    uses = {one.name: one.uses for one in TABLE}[asked.topology]
    for name, value in offers:
        assert name == "chips" or name in uses
        said = (
            tuple(float(one.removesuffix(":1")) for one in value.split(",")) if ":" in value else int(value)
        )
        design_of(msgspec.structs.replace(asked, **{name: said}), SHELF)


@pytest.mark.parametrize("topology", ["fat-tree", "hgx", "rail-only", "rail-optimised", "hyperx"])
@pytest.mark.parametrize("radix", [8, 16])
def test_the_chips_offered_are_the_most(topology: str, radix: int) -> None:
    asked = FabricDesign(topology=topology, chips=200_000, radix=radix)
    with pytest.raises(ScenarioError, match="do not fit") as caught:
        design_of(asked, SHELF)
    most = int(re.findall(r"⟦chips=(\d+)⟧", caught.value.hint)[0])
    with pytest.raises(ScenarioError, match="do not fit"):
        design_of(msgspec.structs.replace(asked, chips=most + 8), SHELF)


@settings(max_examples=200, deadline=None)
@given(designs())
def test_no_offer_is_too_small(asked: FabricDesign) -> None:
    """Ratios of tiers that there are not are refused beside any number of chips."""
    try:
        check_design(asked, SHELF)
    except ScenarioError as error:
        offers = (
            re.findall(r"⟦(chips|radix|tiers)=(\d+)⟧", error.hint) if "do not fit" in error.message else []
        )
    else:
        return
    for name, value in offers:
        with suppress(UnneededTier):
            design_of(msgspec.structs.replace(asked, **{name: int(value)}), SHELF)
