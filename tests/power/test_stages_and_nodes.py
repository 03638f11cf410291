"""Stages without a table of tokens, nodes in step, and servers that are bought whole."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from datahall.catalog import load
from datahall.cluster.cluster import cluster_of
from datahall.power.activity import Activity
from datahall.power.site import lone_machines
from datahall.power.swing.trace import Trace, together
from datahall.power.training import compute_activity
from datahall.training.layout.layout import Layout
from datahall.training.step.framework import framework
from datahall.training.step.step import Job

CATALOG = load()


def at_work(pp: int, vocab: int) -> Activity:
    """A chip of Llama 3.1 8B with such a vocabulary, on so many stages of 8 chips."""
    model = msgspec.structs.replace(CATALOG.model("llama-3.1-8b"), vocab=vocab)
    cluster = cluster_of(CATALOG.chip("h100-sxm"), 8 * pp, servers=CATALOG.servers(), catalog=CATALOG)
    job = Job(model=model, seq=4096, global_batch=64)
    return compute_activity(job, cluster, Layout(tp=2, pp=pp, dp=4), framework("nemo"))


def test_the_vocabulary_is_felt_where_there_is_one_stage_alone() -> None:
    assert at_work(pp=4, vocab=4096) == at_work(pp=4, vocab=524_288)
    assert at_work(pp=1, vocab=4096) != at_work(pp=1, vocab=524_288)
    assert at_work(pp=1, vocab=4096).tensor_fraction == pytest.approx(
        at_work(pp=4, vocab=4096).tensor_fraction, rel=0.05
    )


@pytest.mark.parametrize(("rho", "shrunk"), [(1.0, 1.0), (0.0, 0.25), (0.2, 0.5)])
def test_nodes_swing_about_their_mean_the_same_way_up(rho: float, shrunk: float) -> None:
    """Of 16 nodes √(ρ + (1 − ρ)/16) of the swing are left; a dip stays a dip."""
    dip = Trace(period_s=1.0, power_w=np.array([100.0, 100.0, 100.0, 20.0]))
    found = together(dip, coherence_fraction=rho, num_nodes=16)
    assert found.mean_w == pytest.approx(80.0)
    assert found.peak_w == pytest.approx(80.0 + 20.0 * shrunk)
    assert found.low_w == pytest.approx(80.0 - 60.0 * shrunk)


@pytest.mark.parametrize(("chips", "servers"), [(1, 1), (8, 1), (9, 2), (1025, 129)])
def test_chips_that_no_network_joins_come_in_whole_servers(chips: int, servers: int) -> None:
    assert lone_machines(CATALOG.chip("h100-sxm"), CATALOG, chips).num_servers == servers
