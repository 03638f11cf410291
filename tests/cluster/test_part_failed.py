"""What has failed of a fabric is counted over the chips that take part: others' ports help nobody, and harm nobody."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cluster.test_groups_across_parts import KINDS, needed

import datahall as dh
from datahall.answer import Answer
from datahall.breakdown import false_nodes
from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster, cluster_from
from datahall.cluster.collective import time_collective
from datahall.errors import InfeasibleError
from datahall.fabric.collectives.figure import LEFT
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.failure import Failure
from datahall.scenario.words import Collective

CATALOG = Catalog(user=False)
SIZE = 1e9
DOMAIN = {"fat-tree": 8, "nvl72": 72}
FEW = [("all-to-all", "nvl72", 73), ("all-gather", "fat-tree", 57), ("all-reduce", "fat-tree", 58)]
NOBODYS = [
    ("nvl72", 73, {"nics": [100], "left": "50%"}),
    ("nvl72", 73, {"nics": [100]}),
    ("nvl72", 73, {"chips": [100]}),
    ("fat-tree", 63, {"chips": [63]}),
    ("fat-tree", 5, {"nics": [7]}),
    ("fat-tree", 57, {"chips": [57, 58, 59, 60, 61, 62, 63]}),
]


def shown(kind: str, on: str, chips: int, **more: object) -> Answer:
    return dh.show_collective(kind, on=on, chips=chips, size="1GB", **more)


def left_of(on: str, chips: int, *failures: Failure) -> Cluster:
    return cluster_from(FabricDesign(topology=on, chips=chips), CATALOG, failures=failures, in_order=True)


@pytest.mark.parametrize(("kind", "on", "chips"), FEW)
def test_the_last_domain_has_the_ports_of_its_own_ranks_alone(kind: str, on: str, chips: int) -> None:
    last = list(range(chips // DOMAIN[on] * DOMAIN[on], chips))
    whole, half = (
        shown(kind, on, chips, **more) for more in ({}, {"failure": [{"nics": last, "left": "50%"}]})
    )
    assert whole.results["bound"] == half.results["bound"] == "part-filled domain"
    assert half.results["time_s"] == pytest.approx(2 * float(str(whole.results["time_s"])))
    assert half.figure is not None
    assert [part.value for _, part in half.figure.walk() if part.name == LEFT] == [0.5]
    assert not false_nodes(half.figure)
    with pytest.raises(InfeasibleError, match=f"cuts off {len(last)} of {chips} chips: {last[0]}") as caught:
        shown(kind, on, chips, failure=[{"nics": last}])
    assert caught.value.field == "failure"


@pytest.mark.parametrize(("on", "chips", "failure"), NOBODYS)
def test_what_is_nobodys_changes_nothing_and_is_said_to(
    on: str, chips: int, failure: dict[str, object]
) -> None:
    whole, less = (shown("all-to-all", on, chips, **more) for more in ({}, {"failure": [failure]}))
    assert less.results == whole.results
    assert any("failure does nothing here" in note for note in less.notes)


@pytest.mark.parametrize(("kind", "on", "chips"), FEW)
def test_a_port_of_a_full_domain_is_none_of_the_last(kind: str, on: str, chips: int) -> None:
    less = shown(kind, on, chips, failure=[{"nics": [0]}])
    assert less.results["time_s"] == shown(kind, on, chips).results["time_s"]


def test_a_leaf_that_has_nobodys_chips_alone_is_nobodys() -> None:
    design = FabricDesign(topology="clos", radix=8, chips=9)
    whole = cluster_from(design, CATALOG)
    assert whole.design is not None
    fabric = whole.design.fabric
    held, used = (
        set(fabric.link_target[fabric.link_source < count].tolist()) for count in (fabric.num_hosts, 9)
    )
    leaves = [node - fabric.num_hosts for node in sorted(held - used)]
    assert leaves
    less = cluster_from(design, CATALOG, failures=(Failure(switches=tuple(leaves)),), in_order=True)
    assert less.system == whole.system
    anyones = cluster_from(design, CATALOG, failures=(Failure(switches=tuple(leaves)),))
    assert anyones.system.nic_bytes_per_s == pytest.approx(whole.system.nic_bytes_per_s / 2)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), kind=st.sampled_from(KINDS), chips=st.integers(9, 64))
def test_no_collective_beats_its_bytes_over_the_ports_that_are_left(
    data: st.DataObject, kind: Collective, chips: int
) -> None:
    nics = data.draw(st.sets(st.integers(0, -(-chips // 8) * 8 - 1), min_size=1, max_size=8))
    kept = data.draw(st.sampled_from((0.1, 0.5, 0.9)))
    less = left_of("fat-tree", chips, Failure(nics=tuple(sorted(nics)), left_fraction=kept))
    whole = left_of("fat-tree", chips)
    choice, before = (time_collective(one, kind, SIZE).choice for one in (less, whole))
    found = choice.time_s
    port = whole.system.nic_bytes_per_s
    for first in range(0, chips, 8):
        ranks = np.arange(first, min(first + 8, chips))
        ports = sum(kept if rank in nics else 1.0 for rank in ranks.tolist()) * port
        assert found >= max(needed(kind, chips, ranks.size)) * SIZE / ports * (1 - 1e-9)
    ran = (choice.algorithm, choice.protocol)
    same = [one.time_s for one in before.candidates if (one.algorithm, one.protocol) == ran]
    assert found >= same[0] * (
        1 - 1e-12
    )  # what runs against itself: with other ports NCCL may choose another
    if min(nics) >= chips:
        assert less.system == whole.system
