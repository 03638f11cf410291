"""A fabric without each thing that was said of it."""

from __future__ import annotations

from datahall.errors import ScenarioError
from datahall.fabric.design.left_out import each_left_out, same_without
from datahall.scenario.sections.fabric import PARTS, WIRING, FabricDesign

ASKED = FabricDesign(topology="clos", chips=64, domain=4, radix=32)


def test_each_input_of_a_group_that_was_given_is_left_out_alone() -> None:
    left = each_left_out(ASKED, WIRING, PARTS)
    assert set(left) == {"on", "domain", "radix"}
    assert left["domain"] == FabricDesign(topology="clos", chips=64, radix=32)
    assert left["on"] == FabricDesign(chips=64, domain=4, radix=32)
    assert set(each_left_out(ASKED, WIRING)) == {"on", "domain"}
    assert each_left_out(FabricDesign(chips=64), WIRING, PARTS) == {}


def test_an_input_does_something_where_anything_changes_or_cannot_be_without_it() -> None:
    def why(less: FabricDesign) -> str:
        if not less.topology:
            raise ScenarioError("nothing joins them")
        return "as fast" if less.radix is None else ""

    assert same_without(each_left_out(ASKED, WIRING, PARTS), why) == {"radix": "as fast"}
