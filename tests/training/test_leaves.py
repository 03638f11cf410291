"""What the leaves of a tapered network do to a step: fewer ways out, and ends that groups lie across."""

from __future__ import annotations

import pytest

import datahall as dh
from datahall.answer import Answer
from datahall.catalog import Catalog
from datahall.cluster.across import lain_across
from datahall.cluster.cluster import Cluster, cluster_from
from datahall.scenario.sections.fabric import FabricDesign

SHELF = Catalog(user=False)
TAPERS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16)


def tapered(ratio: float) -> Cluster:
    asked = FabricDesign(topology="fat-tree", chip="h800-sxm", chips=128, oversubscription=(float(ratio),))
    return cluster_from(asked, SHELF)


def step(ratio: int) -> Answer:
    return dh.simulate_train(
        "gpt-3-175b", chip="h800-sxm", tp=4, pp=8, dp=4, chips=128, zero=1, micro_batch=1, seq=2048,
        recompute="none", global_batch=16, on="fat-tree", oversubscription=f"{ratio}:1",
    )  # fmt: skip


def test_of_fabrics_whose_leaves_hold_equally_many_the_wider_is_no_slower() -> None:
    least: dict[int, float] = {}
    for ratio in TAPERS:
        (leaf,) = (cut for cut in tapered(ratio).system.cuts if cut.name == "leaf")
        took_s = float(str(step(ratio).results["step_s"]))
        assert took_s >= least.get(leaf.num_below, 0.0) * (1 - 1e-9), ratio
        least[leaf.num_below] = took_s
    assert len(least) < len(TAPERS)


@pytest.mark.parametrize(("ratio", "num_below"), [(6, 54), (8, 56)])
def test_a_step_says_that_its_groups_lie_across_leaves(ratio: int, num_below: int) -> None:
    (note,) = (note for note in step(ratio).notes if "lie across" in note)
    assert f"a leaf holds {num_below} chips" in note
    assert "16 chips in a row" in note


def test_groups_that_fill_whole_leaves_or_none_lie_across_nothing() -> None:
    """Leaves of 56 chips: 7 domains of 8, three and a half blocks of 16, less than one of 64."""
    cluster = tapered(8)
    found = {block: lain_across(cluster, block) is not None for block in (4, 8, 14, 16, 28, 64)}
    assert found == {4: False, 8: False, 14: False, 16: True, 28: False, 64: False}
    assert lain_across(tapered(1), 24) is None  # as wide as the ports


def test_a_larger_domain_is_hardly_slower() -> None:
    """Two chips of a mesh have one link, a little less than the port of one."""
    took = [
        float(dh.simulate_train(
            "gpt-3-175b", chip="gaudi3", tp=8, pp=8, dp=8, chips=512, zero=0, micro_batch=2, seq=2048,
            recompute="selective", global_batch=128, vpp=2, domain=domain,
        ).results["step_s"])  # type: ignore[arg-type]
        for domain in (1, 2, 4, 8)
    ]  # fmt: skip
    assert took[1] < 1.03 * took[0]
    assert took[0] > took[2] > took[3]
