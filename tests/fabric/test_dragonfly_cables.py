"""Many cables join few groups: one period of them, after which their ends come again, speaks for all."""

from __future__ import annotations

import numpy as np
import pytest

from datahall.fabric.topology.dragonfly import Dragonfly, dragonfly, dragonfly_plus
from datahall.fabric.topology.graph import Fabric, Wire

WIRE = Wire(1.0, 0.0)
MADE = [
    dragonfly(20, WIRE, radix=11),  # two groups of six switches, 18 cables between them
    dragonfly(40, WIRE, radix=11),  # three groups: nine cables, a period of six and three more
    dragonfly(60, WIRE, radix=11),  # four groups, six cables, one for each switch
    dragonfly(80, WIRE, radix=11),  # five groups: four cables, fewer than switches
    dragonfly(30, WIRE, radix=7),  # four groups of four switches: two cables
    dragonfly(72, WIRE),
    dragonfly_plus(20, WIRE, radix=8),
    dragonfly_plus(60, WIRE, radix=8),  # four groups: five cables, a period of four and one more
]


def shape_of(fabric: Fabric) -> Dragonfly:
    assert isinstance(fabric.shape, Dragonfly)
    return fabric.shape


@pytest.mark.parametrize("fabric", MADE, ids=lambda one: f"{one.topology} {one.num_hosts}")
def test_every_cable_that_is_a_shortest_way_is_taken_once(fabric: Fabric) -> None:
    shape = shape_of(fabric)
    for source in range(0, fabric.num_hosts, shape.terminals):
        for target in range(0, fabric.num_hosts, shape.terminals):
            here, there = source // shape.terminals, target // shape.terminals
            offset = (there // shape.leaves - here // shape.leaves) % shape.groups
            if not offset:
                continue
            ways: dict[int, set[int]] = {}
            for port in range(offset - 1, shape.used_ports, shape.groups - 1):
                cable = shape.global_start + here // shape.leaves * shape.used_ports + port
                near, far = fabric.link_source[cable], fabric.link_target[cable]
                away = int(near != shape.num_hosts + here) + int(far != shape.num_hosts + there)
                ways.setdefault(3 if shape.plus else 1 + away, set()).add(port)
            shortest = min(ways)
            ends = np.array([source], np.int32), np.array([target], np.int32)
            assert shape.hops(*ends)[0] == 2 + shortest
            assert shape.num_paths(*ends)[0] == len(ways[shortest])
            over = shape.global_start + here // shape.leaves * shape.used_ports
            taken = [
                int(shape.paths(*ends, np.array([pick])).links.max()) - over
                for pick in range(len(ways[shortest]))
            ]
            assert sorted(taken) == sorted(ways[shortest])


def test_some_of_them_end_within_a_period() -> None:
    rests = {(one.topology, one.num_hosts): (shape := shape_of(one)).copies % shape.period for one in MADE}
    assert {name for name, rest in rests.items() if rest} == {
        ("dragonfly", 40),
        ("dragonfly-plus", 60),
    }


@pytest.mark.parametrize("fabric", MADE, ids=lambda one: f"{one.topology} {one.num_hosts}")
def test_the_cables_between_two_groups_meet_every_switch_before_one_of_them_twice(fabric: Fabric) -> None:
    """Three groups of four spines had eight cables between two, all of them on two spines of each."""
    shape = shape_of(fabric)
    owners, first = shape.spines or shape.leaves, fabric.num_hosts + shape.groups * shape.leaves
    first = first if shape.plus else fabric.num_hosts
    source, target = (
        ends[shape.global_start : shape.global_start + shape.groups * shape.used_ports].astype(int) - first
        for ends in (fabric.link_source, fabric.link_target)
    )
    for near in range(shape.groups):
        for far in set(range(shape.groups)) - {near}:
            joins = (source // owners == near) & (target // owners == far)
            assert joins.sum() == shape.copies
            for ends in (source, target):
                on = np.bincount(ends[joins] % owners, minlength=owners)
                assert on.max() - on.min() <= 1
    every = np.bincount(source, minlength=shape.groups * owners)
    assert every.max() <= -(-shape.global_ports // owners), "more cables than a switch has ports for"
    assert sorted(zip(source, target, strict=True)) == sorted(zip(target, source, strict=True))


def test_no_more_cables_are_looked_at_than_a_group_has_switches() -> None:
    """Two groups of 96 switches have 4,608 cables, which were all looked at for each of 18,000 pairs of switches."""
    shape = shape_of(dragonfly(8960, WIRE, radix=256))
    assert (shape.groups, shape.copies) == (2, 4608)
    assert shape.period <= shape.leaves
