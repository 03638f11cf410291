"""What leaves a chip's memory: memory falls by it, traffic shows where kernels are shorter, a no is a clear line."""

from math import nan

import msgspec
import numpy as np
import pytest

import datahall as dh
from datahall.catalog import Catalog
from datahall.cluster.cluster import cluster_of
from datahall.cluster.host import Host, host_of
from datahall.errors import ScenarioError
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.memory.bookkeeping import BOOKS
from datahall.training.memory.peak import peak_memory
from datahall.training.memory.remedy import host_holds, layout_offload, why_not
from datahall.training.step.exchange import chip_share
from datahall.training.step.framework import framework
from datahall.training.step.step import Job, step_times

SHELF = Catalog(user=False)
H100 = SHELF.chip("h100-sxm")
KIT, BOOKS_ = framework("nemo"), BOOKS["nemo"]
JOB = Job(model=SHELF.model("llama-3.1-70b"), seq=8192, global_batch=256)
CLUSTER = cluster_of(H100, 64, servers=SHELF.servers())
PLAIN = Layout(tp=8, dp=8)


def out(*parts: str, layout: Layout = PLAIN) -> Layout:
    return msgspec.structs.replace(layout, offload=parts)


def memory(layout: Layout) -> dict[str, float]:
    found = peak_memory(JOB, H100, Space.of(layout), BOOKS_)
    return {
        name: float(getattr(found, f"{name}_bytes")[0])
        for name in ("weight", "optimizer", "activation", "total")
    }


def step_s(layout: Layout, cluster: object = CLUSTER) -> float:
    return float(step_times(JOB, cluster, Space.of(layout), KIT).step_s[0])


def test_the_host_is_that_of_the_server_sold_with_the_chip() -> None:
    host, server = host_of(H100, SHELF.servers()), SHELF.server("dgx-h100")
    assert host.memory_bytes == server.host_memory_bytes / 8
    assert host.nvme_bytes_per_s == server.nvme_bytes_per_s / 8
    assert host.link_bytes_per_s == H100.host_bytes_per_s
    assert host.tier_bytes_per_s("nvme") == host.nvme_bytes_per_s < host.tier_bytes_per_s("host")
    h200 = SHELF.chip("h200")
    assert host_of(h200).link_bytes_per_s == h200.measured_host_bytes_per_s
    assert np.isnan(host_of(H100).memory_bytes)


@pytest.mark.parametrize(
    ("part", "column"), [("optimizer", "optimizer"), ("activations", "activation"), ("parameters", "weight")]
)
def test_only_the_part_that_leaves_takes_less(part: str, column: str) -> None:
    before, after = memory(PLAIN), memory(out(part))
    assert after[column] < 0.2 * before[column]
    assert after["total"] < before["total"]
    for other in {"weight", "optimizer", "activation"} - {column}:
        assert after[other] == before[other]


def test_the_optimizer_on_the_host_costs_the_hosts_update() -> None:
    """(2·12 + 4 + 2) bytes of every parameter owned pass the host's memory at four fifths of its rate."""
    owned = float(chip_share(JOB, Space.of(PLAIN)).total[0]) / 8
    update_s = owned * 30 / (0.8 * CLUSTER.host.memory_bytes_per_s)
    times = step_times(JOB, CLUSTER, Space.of(out("optimizer")), KIT)
    assert float(times.offload_s[0]) == pytest.approx(update_s)
    assert float(times.optimizer_s[0]) == 0.0


def test_nothing_offloaded_costs_nothing() -> None:
    assert float(step_times(JOB, CLUSTER, Space.of(PLAIN), KIT).offload_s[0]) == 0.0
    both = step_times(JOB, CLUSTER, Space.of([PLAIN, out("optimizer")]), KIT)
    assert float(both.step_s[0]) == pytest.approx(step_s(PLAIN))


@pytest.mark.parametrize("part", ["optimizer", "activations", "parameters"])
def test_a_slower_link_never_helps_and_drives_are_slower(part: str) -> None:
    def over(rate: float) -> float:
        host = msgspec.structs.replace(CLUSTER.host, link_bytes_per_s=rate)
        return step_s(out(part), msgspec.structs.replace(CLUSTER, host=host))

    steps = [over(rate) for rate in (1e9, 4e9, 16e9, 64e9, 450e9)]
    assert steps == sorted(steps, reverse=True)
    assert step_s(out(part)) <= step_s(out(f"{part}:nvme"))


def test_a_link_that_does_not_keep_up_says_so() -> None:
    slow = msgspec.structs.replace(CLUSTER.host, link_bytes_per_s=4e9)
    cluster = msgspec.structs.replace(CLUSTER, host=slow)
    (line,) = layout_offload(JOB, cluster, out("activations"), KIT, BOOKS_)
    assert not line.keeps_up
    assert line.exposed_s > 0
    assert "activations on host does not keep up" in line.sentence
    assert "4 GB/s there" in line.sentence
    wide = msgspec.structs.replace(CLUSTER, host=msgspec.structs.replace(slow, link_bytes_per_s=1e12))
    (line,) = layout_offload(JOB, wide, out("activations"), KIT, BOOKS_)
    assert line.keeps_up
    assert line.exposed_s == 0
    assert line.moved_bytes == 2 * 32 * memory(PLAIN)["activation"]


def test_drives_have_the_time_of_the_update() -> None:
    (line,) = layout_offload(JOB, CLUSTER, out("optimizer:nvme"), KIT, BOOKS_)
    assert not line.keeps_up
    assert line.needed_bytes_per_s == pytest.approx(24 / 30 * 0.8 * CLUSTER.host.memory_bytes_per_s)
    (line,) = layout_offload(JOB, CLUSTER, out("optimizer"), KIT, BOOKS_)
    assert line.keeps_up
    assert "the host's own update shows" in line.sentence


def test_what_the_host_cannot_hold_is_no_remedy() -> None:
    small = msgspec.structs.replace(CLUSTER, host=msgspec.structs.replace(CLUSTER.host, memory_bytes=1e9))
    space = Space.of([PLAIN, out("optimizer"), out("optimizer:nvme")])
    assert host_holds(JOB, small, space, BOOKS_).tolist() == [True, False, True]
    (line,) = layout_offload(JOB, small, out("optimizer"), KIT, BOOKS_)
    assert not line.fits
    assert "more than the host has" in line.sentence


def test_a_shortage_offers_the_host_and_names_what_it_costs() -> None:
    shortage = why_not(JOB, CLUSTER, PLAIN, KIT, BOOKS_)
    assert shortage is not None
    offered = {one.change: one for one in shortage.remedies}
    assert offered["optimizer on the host"].fits
    assert offered["optimizer on the host"].step_s > step_s(PLAIN)
    unknown = msgspec.structs.replace(CLUSTER, host=Host())
    other = why_not(JOB, unknown, PLAIN, KIT, BOOKS_)
    assert other is not None
    assert not any("host" in one.change for one in other.remedies)


def test_a_tier_without_a_known_rate_is_refused() -> None:
    host = msgspec.structs.replace(CLUSTER.host, nvme_bytes_per_s=nan)
    with pytest.raises(ScenarioError, match="optimizer cannot go to nvme"):
        step_s(out("optimizer:nvme"), msgspec.structs.replace(CLUSTER, host=host))


def test_an_update_that_nobody_can_time_is_said_to_be_left_out() -> None:
    """With a host memory of unknown bandwidth what shows is the weights' way back, and no line calls it the update."""
    layout = out("optimizer")
    unknown = msgspec.structs.replace(CLUSTER.host, memory_bytes_per_s=nan)
    cluster = msgspec.structs.replace(CLUSTER, host=unknown)
    (line,) = layout_offload(JOB, cluster, layout, KIT, BOOKS_)
    assert line.keeps_up
    assert "own update shows" not in line.sentence
    assert "own update is not counted" in line.sentence
    (parameters,) = layout_offload(JOB, cluster, out("parameters"), KIT, BOOKS_)
    assert "update" not in parameters.sentence


@pytest.mark.parametrize(("chip", "counted"), [("h100-sxm", True), ("tpu-v5p", False)])
def test_the_chain_of_a_step_shows_the_hosts_update_or_that_it_is_left_out(chip: str, counted: bool) -> None:
    found = dh.simulate_train(
        "llama-3.1-8b", chips=8, chip=chip, global_batch=8, offload=["optimizer"], catalog=SHELF
    )
    assert found.figure is not None
    updates = [node for _, node in found.figure.walk() if node.name == "update on the host"]
    assert updates
    for update in updates:
        assert (update.value > 0) == bool(update.parts) == counted
        assert ("not counted" in update.note) != counted
    assert any("own update is not counted" in note for note in found.notes) != counted


def test_what_lies_outside_is_what_the_schedule_holds() -> None:
    """GPipe keeps every micro-batch of a step on the host, 1F1B as many as stages follow."""
    layout = msgspec.structs.replace(out("activations"), pp=4, tp=1, dp=2)
    held = {
        name: layout_offload(JOB, CLUSTER, layout, KIT, BOOKS_, schedule=name)[0].held_bytes
        for name in ("1f1b", "gpipe")
    }
    num_micro = layout.num_micro(JOB.global_batch)
    assert num_micro > 4
    assert held["gpipe"] == pytest.approx(held["1f1b"] * num_micro / 4)
    small = msgspec.structs.replace(
        CLUSTER, host=msgspec.structs.replace(CLUSTER.host, memory_bytes=8 * 1.5 * held["1f1b"])
    )
    space = Space.of(layout)
    assert host_holds(JOB, small, space, BOOKS_).all()
    assert not host_holds(JOB, small, space, BOOKS_, schedule="gpipe").any()
