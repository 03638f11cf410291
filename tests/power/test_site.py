"""From chips to a site: parts that add up, the published sizes, and limits that are kept or named."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

import msgspec
import numpy as np
import pytest

from datahall.breakdown import derived, false_nodes
from datahall.catalog import load
from datahall.cluster.cluster import cluster_of
from datahall.power.account import (
    compared_grids,
    energy_of,
    grids,
    racks,
    remedies,
    site_parts,
    step_phases,
)
from datahall.power.assessment import CHECKPOINT, STOPPED, Assessment
from datahall.power.carbon import day_of
from datahall.power.limits import broken_limits, fixing
from datahall.power.rack import rack_of
from datahall.power.site import Machines, building_of, drawn, machines_of, provisioned, wall_w
from datahall.power.swing.battery import num_units
from datahall.power.swing.remedies import REMEDIES, Remedy
from datahall.power.swing.timeline import step_timeline
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
    return Assessment(execution=RUN, asked=Site(**said), catalog=CATALOG, num_chips=1024)  # type: ignore[arg-type]


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


@pytest.mark.parametrize(
    ("chip", "nics"),
    [
        ("h100-sxm", 8),
        ("gb200", 4),
        ("rubin", 8),
        ("gh200", 1),
        ("h100-pcie", 1),
        ("trainium2", 16),
        ("gaudi3", 6),
    ],
)
def test_a_host_has_the_nics_that_the_catalogue_says(chip: str, nics: int) -> None:
    """72 in the 18 trays of an NVL72; one where a host has one chip and nobody says more."""
    there = machines(chip, 192 if chip == "trainium2" else 72)  # whole servers
    assert there.num_spare_chips == 0
    assert there.num_host_nics == nics
    site_w = drawn(there, building_of(Site(), CATALOG), derived("a chip", 500.0, "w"))
    servers = site_w.at("IT", "servers")
    assert [one.value for _, one in servers.walk() if one.name == "NICs of a server"] == [nics]
    assert servers.value == pytest.approx(there.num_chips * wall_w(there, 500.0))


def test_chips_of_one_domain_have_no_network_and_two_servers_have_one() -> None:
    assert [machines("h100-sxm", num).network.value for num in (1, 8)] == [0.0, 0.0]
    assert machines("gb200", 72).network.value == 0.0
    assert machines("h100-sxm", 16).network.value > 0.0


def test_a_stage_that_waits_spins_and_does_not_rest() -> None:
    """It polls for what comes, on a quarter of its multiprocessors, and moves nothing."""
    levels_w = site().levels_w
    waiting = levels_w["waiting in the pipeline"]
    assert levels_w["waiting for the slowest rank"] == waiting
    assert levels_w[STOPPED] == levels_w["once a step"] == 110.0
    assert 112.0 < waiting < levels_w["gradients and parameters"]


def test_a_floor_holds_while_a_job_writes_its_copy_and_not_when_it_is_gone() -> None:
    found = site(power_floor_fraction=0.7)
    floor_w = 0.7 * found.trace.peak_w
    copying, stopped = found.events
    assert copying.after_w == pytest.approx(floor_w)
    assert stopped.after_w == pytest.approx(site().stop.after_w)
    assert stopped.after_w < 0.6 * floor_w


@pytest.mark.parametrize(("share", "is_broken"), [(1.01, False), (0.99, True)])
def test_a_stop_that_falls_by_no_more_than_a_minute_allows_breaks_nothing(
    share: float, is_broken: bool
) -> None:
    ramp = share * site().stop.change_w / 60
    assert bool(broken_limits(site(ramp_limit_w_per_s=ramp), no_smaller)) == is_broken


def test_a_node_ramps_within_what_was_measured() -> None:
    """Between readings a second apart, nodes of eight GPUs step by 1.8 kW in the median and by 6.0 kW at most."""
    found = site()
    trace_w = 8 * (
        wall_w(found.machines, found.levels_w["forward"]) - wall_w(found.machines, found.levels_w[STOPPED])
    )
    assert 1.8e3 <= trace_w <= 6.0e3
    exchanging = found.levels_w["forward"] - found.levels_w["gradients and parameters"]
    assert 1.8e3 <= 8 * exchanging <= 6.0e3
    assert found.levels_w[STOPPED] < found.levels_w[CHECKPOINT] < found.levels_w["gradients and parameters"]


def test_the_mean_of_the_trace_is_what_is_drawn_with_or_without_remedies() -> None:
    plain, remedied = site(), site(battery=2, power_floor_fraction=0.7, capacitors_j=65.0, supercapacitors=10)
    walls_w = {phase: wall_w(plain.machines, level_w) for phase, level_w in plain.levels_w.items()}
    servers = step_trace(plain.timeline, walls_w, time_constant_s=0.01)
    assert plain.drawn.at("IT", "servers").value == pytest.approx(servers.mean_w)
    assert servers.mean_w == pytest.approx(1024 * wall_w(plain.machines, plain.chip.value))
    assert plain.trace.swing_w == pytest.approx(1.05 * servers.swing_w)  # with 5 % of losses on the way
    assert plain.site_w == pytest.approx(plain.drawn.value)
    assert remedied.site_w == pytest.approx(remedied.drawn.value + remedied.as_asked.cost_w)
    assert remedied.as_asked.trace.swing_w < plain.trace.swing_w
    assert not plain.is_remedied
    assert remedied.is_remedied


def test_a_site_swings_as_its_chips_do() -> None:
    """Without smoothing the swing of one stage of chips is N × ΔP at the wall, with the losses of what feeds them."""
    run = step(num_chips=64, pp=1, model="llama-3.1-8b")
    found = Assessment(execution=run, asked=Site(time_constant_s=0.0), catalog=CATALOG, num_chips=64)
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


def test_gradients_that_outlast_the_last_backward_are_exchanged_then() -> None:
    """Of one stage: parameters before its first kernel, gradients after its last, and what is never hidden."""
    run = step(num_chips=64, pp=1, model="llama-3.1-8b")
    (group,) = step_timeline(run).groups
    last_s = max(one.end_s for one in group.spans if one.phase == "backward")
    first_s = min(one.start_s for one in group.spans if one.phase == "forward")
    reduced_s = float(run.slowest.reduced_s.max())
    assert reduced_s > last_s
    by_hand = first_s + (reduced_s - last_s) + run.data_exposed_s
    assert step_timeline(run).times_s()["gradients and parameters"] == pytest.approx(by_hand)


def test_the_account_adds_up() -> None:
    found = site(battery=1)
    parts = site_parts(found)
    for column in ("provisioned_w", "drawn_w", "share_fraction", "chip_w"):
        assert sum(getattr(one, column) for one in parts[:-1]) == pytest.approx(getattr(parts[-1], column))
    rows = remedies(found)
    assert [one.name for one in (rows[0], rows[-1])] == ["as it is", "as asked"]
    assert all(one.swing_w <= rows[0].swing_w * (1 + 1e-9) for one in rows)
    assert all(one.more_fraction >= 0 for one in rows)
    assert rows[-1].more_fraction == pytest.approx(found.site_w / found.drawn.value - 1.0)
    assert rows[-1].more_fraction > 1e-4
    energy = energy_of(found, 1e12)
    assert energy.run_s == pytest.approx(
        ceil(1e12 / (1024 * 8192)) * RUN.step_s
    )  # whole steps of 1,024 sequences of 8,192
    assert energy.run_j == pytest.approx(found.site_w * energy.run_s)
    assert energy.day_j == pytest.approx(energy.step_j * 86400 / RUN.step_s)
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


def no_smaller(most: int) -> None:
    del most


def smaller(**said: object) -> Callable[[int], Assessment | None]:
    """The same layout on fewer chips, where a replica has 32."""

    def on(most: int) -> Assessment | None:
        num_chips = most // 32 * 32
        run = step(num_chips=num_chips) if 1024 % (num_chips // 32) == 0 else None
        if run is None:
            return on(num_chips - 1)
        return Assessment(execution=run, asked=Site(**said), catalog=CATALOG, num_chips=num_chips)  # type: ignore[arg-type]

    return on


def test_limits_are_named_with_what_keeps_them_and_that_keeps_them() -> None:
    plain = site()
    trace = plain.trace
    said: dict[str, object] = {
        "site_limit_w": (trace.mean_w + trace.peak_w) / 2,
        "swing_limit_w": trace.swing_w / 3,
        "ramp_limit_w_per_s": 1e4,
    }
    broken = broken_limits(site(**said), smaller(**said))
    assert [one.field for one in broken] == ["site_limit", "swing_limit", "ramp_limit"]
    assert [[fix.field for fix in one.fixes] for one in broken] == [
        ["battery", "chips"],
        ["battery", "power_floor"],
        ["battery"],
    ]
    assert broken[1].over_fraction == pytest.approx(2.0)
    num = fixing(broken)["battery"]
    assert broken_limits(site(**said, battery=num), no_smaller) == ()
    assert broken_limits(plain, no_smaller) == ()


def test_a_site_that_draws_too_much_is_asked_for_the_share_of_its_chips_that_it_may_draw() -> None:
    """Of 1,024 chips those that draw 60.05 % of the peak: 614 and not 1,023."""
    peak_w, tried = site().trace.peak_w, list[int]()

    def none(num_chips: int) -> None:
        tried.append(num_chips)

    (broken,) = broken_limits(site(site_limit_w=0.6005 * peak_w), none)
    assert tried == [614]
    assert "chips" not in {fix.field for fix in broken.fixes}


FIXED: dict[str, Callable[[str | int], dict[str, object]]] = {
    "capacitors": lambda said: {"capacitors_j": float(str(said).removesuffix(" J"))},
    "battery": lambda said: {"battery": said},
    "power_floor": lambda said: {"power_floor_fraction": float(str(said).removesuffix(" %")) / 100},
}


@pytest.mark.parametrize("share", [0.2, 0.5, 0.85, 0.95, 0.99])
def test_fixes_of_a_swing_keep_it_and_what_burns_the_least_comes_first(share: float) -> None:
    allowed = share * site().trace.swing_w
    (broken,) = broken_limits(site(swing_limit_w=allowed), no_smaller)
    held = site(capacitors_j=65.0).as_asked.trace.swing_w <= allowed
    assert {one.field for one in broken.fixes} == {"battery", "power_floor"} | (
        {"capacitors"} if held else set()
    )
    costs = [one.cost_w for one in broken.fixes]
    assert costs == sorted(costs)
    assert costs[0] > 0
    for fix in broken.fixes:
        after = site(swing_limit_w=allowed, **FIXED[fix.field](fix.value))
        assert broken_limits(after, no_smaller) == ()
        assert after.as_asked.cost_w == pytest.approx(fix.cost_w, rel=0.1)
    assert fixing((broken,)) == {broken.fixes[0].field: broken.fixes[0].value}
    (percent,) = (float(str(one.value)[:-2]) for one in broken.fixes if one.field == "power_floor")
    lower = site(swing_limit_w=allowed, power_floor_fraction=percent / 100 - 0.002)
    assert broken_limits(lower, no_smaller), "a floor that is lower is not enough"


@pytest.mark.parametrize(
    "said",
    [
        {"battery": 1, "battery_type": "supercapacitor-48v"},
        {"power_floor_fraction": 0.6},
        {
            "power_floor_fraction": 0.5,
            "battery": 3,
            "battery_type": "supercapacitor-48v",
            "capacitors_j": 20.0,
        },
        {"ramp_cap_w_per_s": 2e6, "capacitors_j": 65.0},
    ],
    ids=str,
)
def test_fixes_beside_other_remedies_keep_their_limit_too(said: dict[str, object]) -> None:
    """Stores act one after the other, and what they lose is more to fall from."""
    before = site(**said)
    limits: dict[str, object] = {
        "swing_limit_w": 0.5 * before.as_asked.trace.swing_w,
        "ramp_limit_w_per_s": 0.3 * before.stop.change_w / 60,
    }
    for limit, value in limits.items():
        (broken,) = broken_limits(site(**said, **{limit: value}), no_smaller)
        assert broken.fixes
        for fix in broken.fixes:
            after = site(**{**said, limit: value, **FIXED[fix.field](fix.value)})
            assert broken_limits(after, no_smaller) == (), fix


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_site_below_its_mean_needs_as_many_chips_fewer_as_its_layout_divides(share: float) -> None:
    said: dict[str, object] = {"site_limit_w": share * site().trace.mean_w}
    (broken,) = broken_limits(site(**said), smaller(**said))
    (fix,) = broken.fixes
    assert fix.field == "chips"
    assert int(fix.value) % 32 == 0
    assert 1024 % (int(fix.value) // 32) == 0
    after = smaller(**said)(int(fix.value))
    assert after is not None
    assert broken_limits(after, no_smaller) == ()


def test_a_site_that_nothing_brings_below_its_limit_says_so() -> None:
    (broken,) = broken_limits(site(site_limit_w=1.0), no_smaller)
    assert broken.fixes == ()
    assert fixing((broken,)) == {}


def test_a_stop_takes_what_a_stop_is_sized_for() -> None:
    found = site(ramp_limit_w_per_s=1e6 / 60)
    fallen_w = 1024 * (
        wall_w(found.machines, found.chip.value) - wall_w(found.machines, found.levels_w[STOPPED])
    )
    assert found.stop.change_w == pytest.approx(1.05 * fallen_w)
    assert found.stop.need.energy_j == pytest.approx(found.stop.change_w**2 / (2 * 1e6 / 60))
    assert found.stop.ramp_s == pytest.approx(60 * found.stop.change_w / 1e6)


@pytest.mark.parametrize(
    "said",
    [{"power_floor_fraction": 0.9}, {"power_floor_fraction": 1.0}, {"ramp_cap_w_per_s": 1e5}, {"battery": 1}],
    ids=str,
)
def test_a_job_that_stops_falls_from_what_the_site_draws_then(said: dict[str, object]) -> None:
    """Chips that burn power fall from there, to where they fell without."""
    plain, found = site(), site(**said)
    assert found.stop.after_w == pytest.approx(plain.stop.after_w)
    assert found.stop.change_w == pytest.approx(found.site_w - plain.stop.after_w)
    assert found.stop.change_w > plain.stop.change_w
    ratio = found.stop.change_w / plain.stop.change_w
    assert found.stop.need.energy_j == pytest.approx(ratio**2 * plain.stop.need.energy_j)


def test_a_limit_of_ramps_is_judged_by_what_burns_too() -> None:
    limit = {"ramp_limit_w_per_s": 1.05 * site().stop.change_w / 60}
    assert broken_limits(site(**limit), no_smaller) == ()
    (broken,) = broken_limits(site(**limit, power_floor_fraction=1.0), no_smaller)
    assert broken.field == "ramp_limit"
    assert broken.limit_w == pytest.approx(1.05 * site().stop.change_w)


def test_chips_in_a_checkpoint_keep_their_floor() -> None:
    plain, floored = site(), site(power_floor_fraction=0.8)
    (copying, _), (held, _) = plain.events, floored.events
    assert copying.after_w < 0.8 * plain.trace.peak_w
    assert held.after_w == pytest.approx(0.8 * plain.trace.peak_w)
    assert held.change_w == pytest.approx(floored.site_w - held.after_w)


def input_of(remedy: Remedy) -> str:
    """The input that asks for a remedy."""
    (name,) = (
        name
        for name in Site.__struct_fields__
        if remedy.asked(msgspec.structs.replace(Site(), **{name: 7})) == 7
    )
    return name


@pytest.mark.parametrize("remedy", REMEDIES, ids=input_of)
def test_each_remedy_that_is_asked_for_is_applied_compared_and_named(remedy: Remedy) -> None:
    plain = site()
    place = REMEDIES.index(remedy)
    size = 0.5 * plain.remedy_sizes[place]
    whole = round(size + 0.5) if isinstance(getattr(Site(), input_of(remedy)), int) else size
    found = site(**{input_of(remedy): whole})
    assert not plain.is_remedied
    assert found.is_remedied
    assert found.remedy_sizes[place] == whole
    alone = remedy.applied(found.stores, found.trace, whole)
    assert found.as_asked.trace.power_w == pytest.approx(alone.trace.power_w)
    assert found.as_asked.cost_w == alone.cost_w > 0
    rows = remedies(found)
    assert [one.name for one in rows] == ["as it is", *(one.name for one in found.remedies), "as asked"]
    assert rows[-1].swing_w == rows[1 + place].swing_w


def test_a_battery_that_is_named_is_the_one_that_is_counted() -> None:
    """648 kW by modules of some kW each instead of containers of 1.9 MW."""
    usual, modules = site(), site(battery_type="supercapacitor-48v")
    unit = CATALOG.buffer("supercapacitor-48v")
    assert modules.battery == unit
    assert modules.num_even == num_units(unit, usual.need) > usual.num_even
    assert modules.stop.num_batteries == num_units(unit, usual.stop.need)
    asked = site(battery_type="supercapacitor-48v", battery=modules.num_even).as_asked
    assert asked.num_units == modules.num_even
    assert asked.name == "as asked"
    assert asked.trace.swing_w < 0.01 * usual.trace.swing_w


def test_few_servers_take_no_more_than_themselves_of_a_rack() -> None:
    found = Assessment(
        execution=step(num_chips=8, pp=1, model="llama-3.1-8b"), asked=Site(), catalog=CATALOG, num_chips=8
    )
    rack = rack_of(found.machines, found.server_w, found.asked, CATALOG)
    assert (rack.num_servers, rack.num_racks) == (1, 1)
    assert rack.power_w == pytest.approx(10.2e3)


@pytest.mark.parametrize("cooling", ["air", "liquid"])
def test_the_row_of_ones_own_rack_is_cooled_as_asked(cooling: str) -> None:
    found = site(cooling=cooling, rack_power_w=20e3)
    rack = rack_of(found.machines, found.server_w, found.asked, CATALOG)
    rows = racks(found, rack)
    assert [row.cooling for row in rows if row.power_w == rack.power_w] == [CATALOG.cooling(cooling).title]
    others = {row.power_w: row.cooling for row in rows if row.power_w != rack.power_w}
    assert (others[10e3], others[120e3]) == ("air", "liquid")


def test_a_grid_is_compared_with_the_one_whose_hours_differ_most() -> None:
    mine, other = compared_grids(site(grid="texas"))
    assert mine.name == "texas"
    saved = {
        one.name: day_of(one, CATALOG).saved_fraction(8) for one in CATALOG.grids() if one.hourly_kg_per_j
    }
    assert saved[other.name] == max(saved.values())
    assert [one.name for one in compared_grids(site(grid=other.name))] == [other.name]
