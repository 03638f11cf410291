"""What is offered where chips do not fit a HyperX: the least even number of ports that holds them."""

from __future__ import annotations

import re

import pytest

from datahall.errors import ScenarioError
from datahall.fabric.topology.graph import Wire
from datahall.fabric.topology.grids.hyperx import hyperx_for

WIRE = Wire(50e9)


@pytest.mark.parametrize("radix", [8, 9, 12])
@pytest.mark.parametrize("num_chips", [200, 400, 1000, 3000])
def test_the_ports_that_are_offered_hold_the_chips_and_two_fewer_do_not(radix: int, num_chips: int) -> None:
    with pytest.raises(ScenarioError) as refused:
        hyperx_for(num_chips, WIRE, radix=radix, whole=8)
    found = re.search(r"radix=(\d+)", str(refused.value.hint))
    assert found is not None
    offered = int(found[1])
    assert offered % 2 == 0
    assert hyperx_for(num_chips, WIRE, radix=offered, whole=8).num_hosts == num_chips
    with pytest.raises(ScenarioError):
        hyperx_for(num_chips, WIRE, radix=offered - 2, whole=8)
