"""What chips draw that compute nothing: idle ones, and those that copy a checkpoint; and what boards emitted."""

from __future__ import annotations

import msgspec
import pytest

from datahall.catalog import load
from datahall.cluster.cluster import cluster_of
from datahall.power.account import energy_of
from datahall.power.assessment import CHECKPOINT, STOPPED, Assessment
from datahall.power.constants import chip_constants
from datahall.scenario.sections.operations.site import Site
from datahall.training.layout.layout import Layout
from datahall.training.pipeline.execution import Execution, simulate_step
from datahall.training.step.framework import framework
from datahall.training.step.step import Job

CATALOG = load()
YEAR_DAYS = 365.0


def step(chip: str = "h100-sxm", num_chips: int = 16) -> Execution:
    cluster = cluster_of(CATALOG.chip(chip), num_chips, servers=CATALOG.servers(), catalog=CATALOG)
    job = Job(model=CATALOG.model("llama-3.1-8b"), seq=2048, global_batch=64)
    return simulate_step(job, cluster, Layout(tp=4, dp=num_chips // 4), framework("nemo"))


RUN = step()


def site(run: Execution = RUN, num_chips: int = 16) -> Assessment:
    return Assessment(execution=run, asked=Site(), catalog=CATALOG, num_chips=num_chips)


def servers_w(found: Assessment) -> float:
    return found.drawn.at("IT", "servers").value


def test_two_chips_without_work_are_a_host_at_rest() -> None:
    """Two chips more than two servers have are a server more, all of whose chips idle."""
    idle_w = servers_w(site(num_chips=24)) - servers_w(site())  # eight more: one host without work
    assert servers_w(site(num_chips=18)) - servers_w(site()) == pytest.approx(idle_w)
    # eight H100 of 110 W and their host: less than one of 700 W each, and less than half of a server at work
    assert 8 * 110.0 < idle_w < 8 * 350.0
    assert idle_w < 0.5 * servers_w(site()) / 2


def test_a_chip_that_copies_a_checkpoint_reads_its_memory_at_the_rate_of_its_host_link() -> None:
    """What it reads a second times the energy of a byte, far from the limit: about that much above idle."""
    found = site()
    link = found.execution.cluster.host.link_bytes_per_s
    assert 20e9 < link <= 64e9, "PCIe 5.0 of 16 lanes, as sold or as measured"
    read_w = link * chip_constants(found.execution.cluster.chip).memory_j_per_byte
    copying_w, stopped_w = found.levels_w[CHECKPOINT], found.levels_w[STOPPED]
    assert stopped_w == 110.0
    assert copying_w - stopped_w == pytest.approx(read_w, rel=0.01)
    assert read_w > 1.0


def test_boards_are_counted_by_servers_and_not_by_hosts() -> None:
    """Two racks of 72 chips, each 18 hosts: 7,300 kg a rack over five years are 8 kg a day."""
    found = site(step("gb200", 144), 144)
    assert (found.machines.num_servers, found.machines.num_nodes) == (2, 36)
    made = msgspec.structs.replace(
        found.machines, server=msgspec.structs.replace(found.machines.server, embodied_kg=7300.0)
    )
    found.__dict__["machines"] = made
    assert energy_of(found, None).embodied_day_kg == pytest.approx(2 * 7300.0 / (5 * YEAR_DAYS))
