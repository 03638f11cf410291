"""From chips to a site: parts that add up, the published sizes, and limits that are kept or named."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from datahall.breakdown import derived, false_nodes
from datahall.catalog import load
from datahall.cluster.cluster import cluster_of
from datahall.power.account import energy_of, grids, racks, remedies, site_parts, step_phases
from datahall.power.assessment import CHECKPOINT, STOPPED, Assessment
from datahall.power.limits import broken_limits, fixing
from datahall.power.rack import rack_of
from datahall.power.site import Machines, building_of, drawn, machines_of, provisioned, wall_w
from datahall.power.swing.trace import step_trace
from datahall.scenario.sections.operations.site import Site
from datahall.training.layout.layout import Layout
from datahall.training.pipeline.execution import Execution, simulate_step
from datahall.training.step.framework import framework
from datahall.training.step.step import Job

CATALOG = load()
MW = 1e6


def machines(chip: str, num_chips: int) -> Machines:
    cluster = cluster_of(CATALOG.chip(chip), num_chips, servers=CATALOG.servers(), catalog=CATALOG)
    return machines_of(cluster, CATALOG, num_chips)


def step(
    chip: str = "h100-sxm", num_chips: int = 1024, pp: int = 4, model: str = "llama-3.1-70b"
) -> Execution:
    cluster = cluster_of(CATALOG.chip(chip), num_chips, servers=CATALOG.servers(), catalog=CATALOG)
    layout = Layout(tp=8, pp=pp, dp=num_chips // (8 * pp))
    job = Job(model=CATALOG.model(model), seq=8192, global_batch=1024)
    return simulate_step(job, cluster, layout, framework("nemo"))


RUN = step()


def site(**said: object) -> Assessment:
    return Assessment(run=RUN, asked=Site(**said), catalog=CATALOG, num_chips=1024)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("chip", "low_mw", "high_mw"),
    [
        ("h100-sxm", 138, 173),  # Epoch's model and InferenceX's provisioned power
        ("gb200", 195, 225),  # 210 by InferenceX
        ("b200", 195, 240),  # 217
        ("mi355x", 225, 270),  # 265
    ],
)
def test_a_hundred_thousand_chips_are_the_size_that_was_published(
    chip: str, low_mw: float, high_mw: float
) -> None:
    found = provisioned(machines(chip, 100_000), building_of(Site(), CATALOG))
    assert low_mw * MW <= found.value <= high_mw * MW
    assert false_nodes(found) == []


def test_the_parts_add_up_by_hand() -> None:
    """12,500 DGX H100 of 10.2 kW; storage 2 %; PUE 1.15."""
    there, building = machines("h100-sxm", 100_000), building_of(Site(), CATALOG)
    found = provisioned(there, building)
    servers_w = 12_500 * 10.2e3
    it_w = 1.02 * servers_w + there.network.value
    assert found.at("IT", "servers").value == pytest.approx(servers_w)
    assert found.value == pytest.approx(1.15 * it_w)
    assert found.at("electrical losses").value == pytest.approx(0.05 * it_w)
    assert found.at("cooling").value == pytest.approx(0.10 * it_w)
    assert 10 * MW < there.network.value < 25 * MW


@pytest.mark.parametrize("pue", [1.0, 1.02, 1.05, 1.2, 3.0])
def test_a_pue_that_is_said_is_what_the_building_adds(pue: float) -> None:
    there = machines("h100-sxm", 1024)
    found = provisioned(there, building_of(Site(pue_ratio=pue), CATALOG))
    assert found.value == pytest.approx(pue * found.at("IT").value)
    assert min(found.at("electrical losses").value, found.at("cooling").value) >= -1e-6


def test_more_chips_draw_more_and_no_chips_out_of_work_draw_as_much_as_those_at_it() -> None:
    building, chip_w = building_of(Site(), CATALOG), derived("a chip", 600.0, "w")
    draws = [drawn(machines("h100-sxm", num), building, chip_w).value for num in (8, 64, 1024, 16384)]
    assert draws == sorted(draws)
    there = machines("h100-sxm", 1024)
    some = [drawn(there, building, chip_w, idle).value for idle in (0, 8, 512, 1024)]
    assert some == sorted(some, reverse=True)


def test_hosts_of_racks_and_servers() -> None:
    rack, server = machines("gb200", 144), machines("h100-sxm", 1024)
    assert (rack.num_servers, rack.num_host_chips, rack.num_nodes) == (2, 4, 36)
    assert (server.num_servers, server.num_host_chips, server.num_nodes) == (128, 8, 128)
    assert machines("h100-sxm", 1025).num_servers == 129


def test_a_node_ramps_within_what_was_measured() -> None:
    """Between readings a second apart, nodes of eight GPUs step by 1.8 kW in the median and by 6.0 kW at most."""
    found = site()
    trace_w = 8 * (
        wall_w(found.machines, found.levels_w["forward"]) - wall_w(found.machines, found.levels_w[STOPPED])
    )
    assert 1.8e3 <= trace_w <= 6.0e3
    exchanging = found.levels_w["forward"] - found.levels_w["gradients and parameters"]
    assert 1.8e3 <= 8 * exchanging <= 6.0e3
    assert found.levels_w[STOPPED] <= found.levels_w[CHECKPOINT] <= found.levels_w["forward"]


def test_the_mean_of_the_trace_is_what_is_drawn_with_or_without_remedies() -> None:
    plain, remedied = site(), site(battery=2, power_floor_fraction=0.7, capacitors_j=65.0, supercapacitors=10)
    walls_w = {phase: wall_w(plain.machines, level_w) for phase, level_w in plain.levels_w.items()}
    servers = step_trace(plain.timeline, walls_w, time_constant_s=plain.asked.time_constant_s)
    assert servers.mean_w == pytest.approx(plain.drawn.at("IT", "servers").value)
    assert plain.drawn.at("IT", "servers").value == pytest.approx(
        1024 * wall_w(plain.machines, plain.chip.value)
    )
    assert plain.site_w == pytest.approx(plain.drawn.value)
    assert remedied.site_w == pytest.approx(remedied.drawn.value + remedied.as_asked.cost_w)
    assert remedied.as_asked.trace.swing_w < plain.trace.swing_w
    assert not plain.is_remedied
    assert remedied.is_remedied


def test_a_site_swings_as_its_chips_do() -> None:
    """Without smoothing the swing of one stage of chips is N × ΔP at the wall, with the losses of what feeds them."""
    run = step(num_chips=64, pp=1, model="llama-3.1-8b")
    found = Assessment(run=run, asked=Site(time_constant_s=0.0), catalog=CATALOG, num_chips=64)
    levels = [wall_w(found.machines, found.levels_w[phase]) for phase in found.timeline.times_s()]
    assert found.trace.swing_w <= 1.05 * 64 * (max(levels) - min(levels)) * (1 + 1e-9)
    assert found.trace.swing_w == pytest.approx(1.05 * 64 * (max(levels) - min(levels)), rel=0.05)


def test_nodes_that_are_not_in_step_swing_less() -> None:
    swings = [site(coherence_fraction=rho).trace.swing_w for rho in (0.0, 0.01, 0.3, 1.0)]
    assert swings == sorted(swings)
    assert swings[0] == pytest.approx(swings[-1] / np.sqrt(128))  # of 128 nodes


def test_phases_of_a_step_cover_it_and_its_stages_are_shifted() -> None:
    found = site()
    assert sum(found.timeline.times_s().values()) == pytest.approx(RUN.step_s)
    for group in found.timeline.groups:
        assert group.spans[0].start_s == 0.0
        assert group.spans[-1].end_s == pytest.approx(RUN.step_s)
        for one, other in zip(group.spans[:-1], group.spans[1:], strict=True):
            assert one.end_s == pytest.approx(other.start_s)
    first = [
        next(one.start_s for one in group.spans if one.phase == "forward") for group in found.timeline.groups
    ]
    assert first == sorted(first)
    assert first[-1] > first[0]
    rows = step_phases(found)
    assert sum(one.energy_j for one in rows[:-1]) == pytest.approx(rows[-1].energy_j)


def test_the_account_adds_up() -> None:
    found = site(battery=1)
    parts = site_parts(found)
    for column in ("provisioned_w", "drawn_w", "share_fraction", "chip_w"):
        assert sum(getattr(one, column) for one in parts[:-1]) == pytest.approx(getattr(parts[-1], column))
    rows = remedies(found)
    assert [one.name for one in (rows[0], rows[-1])] == ["as it is", "as asked"]
    assert all(one.swing_w <= rows[0].swing_w * (1 + 1e-9) for one in rows)
    assert all(one.more_fraction >= 0 for one in rows)
    energy = energy_of(found, 1e12)
    assert energy.run_s is not None
    num_steps = energy.run_s / RUN.step_s
    assert num_steps == pytest.approx(1e12 / (1024 * 8192))  # a step is 1,024 sequences of 8,192 tokens
    assert energy.run_j == pytest.approx(num_steps * energy.step_j)
    assert energy.run_j == pytest.approx(energy.run_s / 86_400 * energy.day_j)
    mine = [one for one in grids(found) if one.grid.name == "usa"]
    assert len(mine) == 1
    assert mine[0].day_kg == pytest.approx(energy.day_kg)


def test_racks_of_a_site() -> None:
    found = site()
    rack = rack_of(found.machines, found.server_w, found.asked, CATALOG)
    assert (rack.num_servers, rack.num_racks, rack.cooling.name, rack.is_cooled) == (3, 43, "air", True)
    dense = msgspec.structs.replace(found.asked, rack_power_w=80e3)
    assert rack_of(found.machines, found.server_w, dense, CATALOG).cooling.name == "liquid"
    blown = msgspec.structs.replace(dense, cooling="air")
    assert not rack_of(found.machines, found.server_w, blown, CATALOG).is_cooled
    assert any(row.power_w == rack.power_w for row in racks(found, rack))


def test_limits_are_named_with_what_keeps_them_and_that_keeps_them() -> None:
    plain = site()
    trace = plain.trace
    said: dict[str, object] = {
        "site_limit_w": (trace.mean_w + trace.peak_w) / 2,
        "swing_limit_w": trace.swing_w / 3,
        "ramp_limit_w_per_s": 1e4,
    }
    broken = broken_limits(site(**said))
    assert [one.field for one in broken] == ["site_limit", "swing_limit", "ramp_limit"]
    assert [[fix.field for fix in one.fixes] for one in broken] == [
        ["battery", "chips"],
        ["battery", "power_floor"],
        ["battery"],
    ]
    assert broken[1].over_fraction == pytest.approx(2.0)
    num = fixing(broken)["battery"]
    assert broken_limits(site(**said, battery=num)) == ()
    assert broken_limits(plain) == ()


@pytest.mark.parametrize("place", [0, 1, 2])
def test_each_fix_of_a_swing_keeps_it(place: int) -> None:
    plain = site()
    allowed = site(capacitors_j=65.0).as_asked.trace.swing_w * 1.01
    (broken,) = broken_limits(site(swing_limit_w=allowed))
    assert [one.field for one in broken.fixes] == ["capacitors", "battery", "power_floor"]
    said = (
        {"capacitors_j": 65.0},
        {"battery": broken.fixes[1].value},
        {"power_floor_fraction": float(str(broken.fixes[2].value).removesuffix(" %")) / 100},
    )[place]
    assert broken_limits(site(swing_limit_w=allowed, **said)) == ()
    assert broken.fixes[place].cost_w > 0
    assert 0 < float(str(broken.fixes[2].value).removesuffix(" %")) < 100
    assert plain.trace.swing_w > allowed


def test_a_site_below_its_mean_needs_fewer_chips() -> None:
    plain = site()
    (broken,) = broken_limits(site(site_limit_w=0.5 * plain.trace.mean_w))
    assert [one.field for one in broken.fixes] == ["chips"]
    assert 0 < int(broken.fixes[0].value) < 512


def test_a_stop_takes_what_a_stop_is_sized_for() -> None:
    found = site(ramp_limit_w_per_s=1e6 / 60)
    fallen_w = 1024 * (
        wall_w(found.machines, found.chip.value) - wall_w(found.machines, found.levels_w[STOPPED])
    )
    assert found.stop.change_w == pytest.approx(1.05 * fallen_w)
    assert found.stop.need.energy_j == pytest.approx(found.stop.change_w**2 / (2 * 1e6 / 60))
    assert found.stop.ramp_s == pytest.approx(60 * found.stop.change_w / 1e6)
