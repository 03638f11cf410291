"""Single changes of a layout that does not fit: which there are, in what order, and what a host holds of them."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest

from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster, cluster_of
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.memory.bookkeeping import bookkeeping_of
from datahall.training.memory.peak import peak_memory
from datahall.training.memory.remedy import host_holds, layout_offload, least_bytes, remedies, why_not
from datahall.training.step.framework import framework
from datahall.training.step.step import Job, step_times

SHELF = Catalog(user=False)
KIT = framework("nemo")
BOOKS = bookkeeping_of(KIT)
JOB = Job(model=SHELF.model("llama-3.1-70b"), seq=4096, global_batch=64)
MIXED = Job(model=SHELF.model("qwen3-30b-a3b"), seq=4096, global_batch=64)
replace = msgspec.structs.replace


def machine(num_chips: int, **host: float) -> Cluster:
    found = cluster_of(SHELF.chip("h100-sxm"), num_chips, servers=SHELF.servers(), catalog=SHELF)
    return replace(found, host=replace(found.host, **host))


def offered(layout: Layout, job: Job = JOB, **host: float) -> set[str]:
    return {one.change for one in remedies(job, machine(layout.num_chips, **host), layout, KIT, BOOKS)}


HOSTED = {"optimizer on the host", "parameters on the host", "activations on the host"}
VAST = {"memory_bytes": 1e15, "nvme_bytes": 1e15}


def test_every_single_change_is_offered() -> None:
    layout = Layout(tp=2, pp=2, dp=4, micro_batch=2, zero=1)
    assert offered(layout, **VAST) == {
        "recompute selective", "recompute full", "zero 2", *HOSTED, "micro-batch 1", "tp 4", "pp 4", "cp 2",
    }  # fmt: skip


def test_changes_that_go_no_further_are_not_offered() -> None:
    """All is recomputed and spread, batches are of one, and no replica is left to give."""
    last = Layout(tp=8, pp=1, dp=1, zero=3, recompute="full", micro_batch=1)
    assert offered(last, **VAST) == {"optimizer on the host", "parameters on the host"}
    alone = replace(last, zero=1)  # nobody to spread to
    assert not any(one.startswith("zero") for one in offered(alone, **VAST))
    copied = replace(alone, tp=4, cp=2)
    assert "zero 2" in offered(copied, **VAST)
    assert "zero 4" not in offered(replace(copied, zero=3), **VAST)


def test_experts_are_spread_over_as_many_chips_as_there_are() -> None:
    assert "ep 8" in offered(Layout(ep=4, dp=8), MIXED)
    assert "ep 16" not in offered(Layout(ep=8, dp=8), MIXED)
    assert not any(one.startswith("ep") for one in offered(Layout(tp=2, pp=2, dp=2)))


def test_virtual_stages_may_give_way_to_twice_the_stages() -> None:
    layout = Layout(tp=2, pp=4, vpp=2, dp=2, micro_batch=1)
    found = {one.change: one.layout for one in remedies(JOB, machine(16), layout, KIT, BOOKS)}
    wider = found["pp 8 with vpp 1"]
    assert (wider.pp, wider.vpp, wider.dp) == (8, 1, 1)
    assert not any("vpp" in one for one in offered(replace(layout, vpp=1)))


def test_a_degree_takes_what_data_parallelism_gives() -> None:
    layout = Layout(tp=2, pp=2, dp=4, micro_batch=2)
    for one in remedies(JOB, machine(16), layout, KIT, BOOKS):
        assert one.layout.num_chips == 16
        assert one.layout != layout
        memory = peak_memory(JOB, machine(16).chip, Space.of(one.layout), BOOKS)
        assert one.headroom_bytes == pytest.approx(float(memory.headroom_bytes[0]))
        assert one.step_s == pytest.approx(
            float(step_times(JOB, machine(16), Space.of(one.layout), KIT).step_s[0])
        )


def test_those_that_fit_come_first_and_the_fastest_of_them_is_the_cheapest() -> None:
    cluster, layout = machine(64), Layout(tp=8, pp=2, dp=4, micro_batch=2, zero=0)
    found = why_not(JOB, cluster, layout, KIT, BOOKS)
    assert found is not None
    kinds = [one.fits for one in found.remedies]
    assert kinds == sorted(kinds, reverse=True)
    fitting = [one.step_s for one in found.remedies if one.fits]
    assert fitting
    assert fitting == sorted(fitting)
    lacking = [one.headroom_bytes for one in found.remedies if not one.fits]
    assert lacking == sorted(lacking, reverse=True)
    assert found.cheapest == found.remedies[0]
    assert found.over_bytes == pytest.approx(found.total_bytes - found.limit_bytes)
    memory = peak_memory(JOB, cluster.chip, Space.of(layout), BOOKS)
    parts = [float(getattr(memory, name)[0]) for name in ("weight_bytes", "gradient_bytes", "optimizer_bytes",
             "activation_bytes", "working_bytes", "buffer_bytes")]  # fmt: skip
    assert found.part_bytes == max(parts)
    assert why_not(JOB, cluster, replace(layout, tp=8, pp=8, dp=1), KIT, BOOKS) is None


def test_a_host_holds_what_it_has_room_for() -> None:
    cluster = machine(8)
    layouts = [Layout(tp=8), Layout(tp=8, offload=("optimizer",)), Layout(tp=8, offload=("optimizer:nvme",))]
    space = Space.of(layouts)
    assert host_holds(JOB, machine(8, **VAST), space, BOOKS).tolist() == [True, True, True]
    assert host_holds(JOB, machine(8, memory_bytes=1.0, nvme_bytes=1e15), space, BOOKS).tolist() == [
        True, False, True,
    ]  # fmt: skip
    assert host_holds(JOB, machine(8, memory_bytes=1e15, nvme_bytes=1.0), space, BOOKS).tolist() == [
        True, True, False,
    ]  # fmt: skip
    unknown = machine(8, memory_bytes=math.nan, nvme_bytes=math.nan)
    assert host_holds(JOB, unknown, space, BOOKS).all()  # a size that nobody published is no limit
    # the optimizer's states of a chip's share: master and both moments, 12 bytes of each of its 70.6e9/8 parameters
    share = 12 * 70.55e9 / 8
    for room, holds in ((0.97 * share, False), (1.03 * share, True)):
        assert host_holds(JOB, machine(8, memory_bytes=room), Space.of(layouts[1]), BOOKS)[0] == holds
    assert layout_offload(JOB, cluster, layouts[0], KIT, BOOKS) == ()
    assert len(layout_offload(JOB, cluster, layouts[1], KIT, BOOKS)) == 1


def test_without_a_known_link_nothing_goes_to_the_host() -> None:
    assert not offered(Layout(tp=2, pp=2, dp=4), link_bytes_per_s=math.nan) & HOSTED


def test_the_nearest_to_fitting_takes_the_least() -> None:
    space = Space.of([Layout(tp=2, dp=4), Layout(tp=8), Layout(tp=4, dp=2)])
    memory = peak_memory(JOB, SHELF.chip("h100-sxm"), space, BOOKS)
    assert least_bytes(memory) == int(np.argmin(memory.total_bytes)) == 1
