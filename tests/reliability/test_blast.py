"""What one failed part takes of a fabric: chips, how often, how long, and what that adds up to."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from tests.fabric.designs import design

from datahall.breakdown import false_nodes
from datahall.catalog import Catalog
from datahall.errors import InfeasibleError
from datahall.reliability.blast.assess import Assessed, assess, by_size
from datahall.reliability.blast.part import Part, lost_fraction
from datahall.reliability.blast.radius import _through_one_switch, blast_parts
from datahall.scenario.sections.operations.failures import FailureRates

CATALOG = Catalog(user=False)


def found(topology: str, chips: int, rates: FailureRates | None = None, **said: object) -> dict[str, Part]:
    made = design(topology, chips, catalog=CATALOG, **said)
    return {part.name: part for part in blast_parts(made, rates or FailureRates(), CATALOG)}


def assessed(topology: str, chips: int, rates: FailureRates | None = None, **said: object) -> Assessed:
    return assess(design(topology, chips, catalog=CATALOG, **said), rates or FailureRates(), CATALOG)


def test_a_gpu_takes_its_server_of_eight_or_its_tray_of_four() -> None:
    hgx, rack = found("hgx", 1024), found("nvl72", 1008)
    assert hgx["GPU"].num_lost == hgx["server of 8"].num_lost == 8
    assert rack["GPU"].num_lost == rack["tray of 4"].num_lost == 4
    assert (hgx["GPU"].num, hgx["server of 8"].num, rack["tray of 4"].num) == (1024, 128, 252)


def test_what_a_rack_shares_takes_all_72() -> None:
    rack = found("nvl72", 720)
    shared = ("power shelf of a rack", "coolant loop of a rack", "NVLink switch tray", "NVLink backplane")
    assert {name: rack[name].num_lost for name in shared} == dict.fromkeys(shared, 72)
    assert {name: rack[name].num for name in shared} == dict(zip(shared, (10, 10, 90, 10), strict=True))
    assert not set(shared) & set(found("hgx", 720)), "servers of eight share none of it"


def test_what_joins_a_domain_of_several_hosts_takes_all_of_it() -> None:
    """A tray of switches for eight chips, as an NVL72 has nine: the larger the domain, the more one takes."""
    lost = []
    for size, trays in ((1, 0), (8, 0), (16, 576), (32, 576), (72, 576)):
        made = assessed("fat-tree", 4608, chip="b200", domain=size)
        parts = {part.name: part for part in made.parts}
        assert ("NVLink switch tray" in parts) == ("NVLink backplane" in parts) == bool(trays)
        if trays:
            assert parts["NVLink switch tray"].num == trays
            assert parts["NVLink switch tray"].num_lost == parts["NVLink backplane"].num_lost == size
            assert parts["NVLink backplane"].num == 4608 // size
        lost.append(made.lost_fraction)
    assert lost[0] == pytest.approx(lost[1])
    assert lost[1] < lost[2] < lost[3] < lost[4]


def test_a_domain_that_cables_join_says_that_nobody_counted_them() -> None:
    assert assessed("fat-tree", 4096, chip="trainium2", domain=64).leaves_out_domain_links
    assert not assessed("nvl72", 720).leaves_out_domain_links
    assert not assessed("hgx", 1024).leaves_out_domain_links
    assert not assessed("tpu-pod", 4096, chip="tpu-v4").leaves_out_domain_links


def test_what_is_shared_fails_as_often_as_what_each_would_have() -> None:
    """180 trays: 3 of 419 causes are power supplies, and 2 of the 678 that FT-HSDP counted are cooling."""
    rack = found("nvl72", 720)
    assert rack["power shelf of a rack"].failures_per_day == pytest.approx(180 * 2.3e-3 * 3 / 419)
    assert rack["coolant loop of a rack"].failures_per_day == pytest.approx(180 * 2.3e-3 * 2 / 678)


def test_a_part_is_out_for_its_repair_or_for_a_reset() -> None:
    """60 % of failures for three days, the others for a quarter of an hour; a cable for as long as its repair takes."""
    parts = found("hgx", 1024)
    assert parts["GPU"].out.value / 3600 == pytest.approx(0.6 * 72 + 0.4 * 0.25)
    assert parts["cable of a NIC"].out.value / 3600 == parts["leaf switch"].out.value / 3600 == 8.0


def test_a_tpu_takes_the_cube_whose_copper_cannot_be_rewired() -> None:
    pod = found("tpu-pod", 4096, chip="tpu-v4")
    assert pod["machine of 4"].num_lost == pod["cable in a cube"].num_lost == 64
    assert pod["cable between cubes"].num_lost == pod["optical circuit switch"].num_lost == 0
    assert pod["optical circuit switch"].num == 48
    assert pod["optical circuit switch"].num_slowed == 128, "both ends of 64 cables"
    larger = found("tpu-pod", 6144, chip="tpu-v5p")["optical circuit switch"]
    assert larger.num_slowed == 128, "a switch has as many ports however many cubes there are"
    assert pod["cable in a cube"].num + pod["cable between cubes"].num == 3 * 4096
    assert pod["machine of 4"].failures_per_day == pytest.approx(1024 * 8e-4)


def test_the_cables_of_a_circuit_switch_leave_all_cubes_at_one_place_along_one_axis() -> None:
    """A pod of 16 × 16 × 16 chips in 64 cubes of 4 × 4 × 4: 64 cables, with two ends at each cube."""
    made = design("tpu-pod", 4096, catalog=CATALOG, chip="tpu-v4")
    links = list(_through_one_switch(made))
    ends = np.array([made.fabric.link_source[links], made.fabric.link_target[links]])
    along, *across = np.unravel_index(ends, (16, 16, 16))
    cubes = Counter(zip(*((place // 4).ravel().tolist() for place in (along, *across)), strict=True))
    assert (len(links), len(cubes), set(cubes.values())) == (64, 64, {2})
    assert all(len(set((place % 4).ravel().tolist())) == 1 for place in across)
    assert all((place[0] == place[1]).all() for place in across)


def test_a_torus_that_nothing_can_rewire_is_lost_whole() -> None:
    assert found("torus", 256, chip="tpu-v5e")["server of 8"].num_lost == 256


def test_rates_of_a_node_add_up_to_what_was_published() -> None:
    """By all parts of nodes, NICs included, and by what no part is to blame for: all but switches and cables."""
    made = assessed("hgx", 16384)
    by_part = sum(
        part.failures_per_day
        for part in made.parts
        if part.name in ("GPU", "server of 8", "power supply", "NIC")
    )
    whole = 419 / 54
    optics = 35 / 419
    assert by_part / (1 - made.without_part_fraction - optics) == pytest.approx(whole)
    assert made.without_part_fraction == pytest.approx((54 + 2 + 7) / 419)


def test_switches_and_cables_fail_as_often_as_alibaba_counted() -> None:
    parts = found("hgx", 16384)
    assert parts["cable of a NIC"].failures_per_year == pytest.approx(16384 * 0.057e-2 * 12)
    assert parts["leaf switch"].failures_per_year == pytest.approx(512 * 0.051e-2 * 12)


def test_a_part_of_the_network_costs_the_bandwidth_that_is_gone() -> None:
    """One of eight NICs of a server, shared by its chips, is as much as one chip for as long."""
    parts = found("rail-optimised", 1024)
    nic = parts["NIC"]
    assert (nic.num_lost, nic.num_slowed) == (0, 8)
    assert nic.slowed_chips == pytest.approx(1.0)
    leaf = parts["leaf switch"]
    assert leaf.num_lost == 0
    assert leaf.slowed_chips == pytest.approx(leaf.num_slowed / 8), "one rail of eight"


def test_chip_hours_are_the_product_of_what_stands_in_the_table() -> None:
    made = assessed("nvl72", 720)
    for part in made.parts:
        by_hand = part.failures_per_year / 12 * (part.num_lost + part.slowed_chips) * part.out.value / 3600
        assert part.lost.value == pytest.approx(by_hand, rel=0.002), "all but what two outages take at once"
    assert made.lost.value == pytest.approx(sum(part.lost.value for part in made.parts))
    assert made.lost_fraction == pytest.approx(made.lost.value / (720 * 365.25 * 2))
    assert false_nodes(made.lost) == []


def test_the_costliest_and_the_widest_are_what_they_say() -> None:
    made = assessed("nvl72", 1440)
    assert made.costliest.lost.value == max(part.lost.value for part in made.parts)
    assert made.widest.num_lost == max(part.num_lost for part in made.parts) == 72
    assert made.costliest.name == "GPU"


@pytest.mark.parametrize("topology", ["hgx", "nvl72", "rail-optimised"])
def test_ten_times_the_chips_lose_ten_times_as_much(topology: str) -> None:
    few, many = assessed(topology, 1152), assessed(topology, 11_520)
    assert many.lost.value == pytest.approx(10 * few.lost.value, rel=0.02), "tiers of switches are added"
    assert many.lost_fraction == pytest.approx(few.lost_fraction, rel=0.02)
    assert many.mttf_s == pytest.approx(few.mttf_s / 10)


def test_a_hundred_thousand_chips_are_minutes_apart_and_sixteen_thousand_hours() -> None:
    assert assessed("fat-tree", 100_000, chip="h100-sxm").is_minutes
    assert not assessed("fat-tree", 16_384, chip="h100-sxm").is_minutes


def test_twice_the_rate_costs_twice_as_much_of_nodes_and_nothing_more_of_switches() -> None:
    usual, twice = (found("hgx", 1024, FailureRates(failure_rate_per_node_day=rate)) for rate in (4e-3, 8e-3))
    for part in ("GPU", "server of 8", "power supply", "pump or fan", "NIC"):
        assert twice[part].lost.value == pytest.approx(2 * usual[part].lost.value)
    assert twice["leaf switch"].lost.value == usual["leaf switch"].lost.value


@pytest.mark.parametrize("rate", [1e-6, 4e-3, 0.1])
@pytest.mark.parametrize(("topology", "node"), [("hgx", "server of 8"), ("rail-only", "server of 8")])
def test_parts_of_a_node_fail_no_more_often_than_the_rate_that_is_stated(
    topology: str, node: str, rate: float
) -> None:
    """But for pumps, of which Llama 3 counted none: 2 of 678 on top."""
    parts = found(topology, 64, FailureRates(failure_rate_per_node_day=rate))
    own = ("GPU", node, "power supply", "pump or fan", "NIC")
    assert 0.7 * 8 * rate < sum(parts[name].failures_per_day for name in own) < 8 * rate
    assert parts["pump or fan"].rate.value == pytest.approx(rate * 2 / 678)


@pytest.mark.parametrize("chips", [256, 1024, 9216])
def test_outages_that_overlap_are_lost_once(chips: int) -> None:
    """Any node of a mesh stops all of it: the share of the time that at least one is out, drawn one by one."""
    made = assessed("mesh", chips)
    (node,) = made.parts
    generator, years = np.random.default_rng(chips), 300.0
    num = generator.poisson(node.failures_per_year * years)
    starts = np.sort(generator.uniform(0.0, years, num))
    sigma = 1.0
    mean_years = node.out.value / (365.25 * 86_400.0)
    ends = starts + generator.lognormal(np.log(mean_years) - sigma**2 / 2, sigma, num)
    reached = np.maximum.accumulate(np.concatenate(([0.0], ends[:-1])))
    out = np.maximum(0.0, ends - np.maximum(starts, reached)).sum() / years
    assert made.lost_fraction == pytest.approx(out, rel=0.03)
    assert made.lost.value == pytest.approx(made.lost_fraction * chips * 730.5)
    assert false_nodes(made.lost) == []
    assert made.lost.band is not None
    assert made.lost.band.high <= chips * 730.5 * (1 + 1e-9), "no more than there is"


def test_few_outages_hardly_overlap() -> None:
    made = assessed("hgx", 1024)
    assert 0.0 < made.overlap_fraction < 0.003


@pytest.mark.parametrize(
    ("name", "attribute"),
    [("failure_rate", "failure_rate_per_node_day"), ("shock_rate", "shock_rate_per_day")],
)
def test_more_out_than_there_is_is_no_answer(name: str, attribute: str) -> None:
    def out(rate: float) -> float:
        return assessed("hgx", 64, FailureRates(shock_nodes=4, **{attribute: rate})).lost_fraction  # type: ignore[arg-type]

    with pytest.raises(InfeasibleError, match="times as many chips as there are") as caught:
        out(40.0)
    assert caught.value.field == name
    offered = float(caught.value.hint.partition(f"{name}=")[2].partition("⟧")[0])
    assert out(offered) == pytest.approx(0.5, abs=0.05)


def test_a_curve_over_sizes_goes_through_the_fabric_itself() -> None:
    made = assessed("hgx", 16_384)
    curve = by_size(made)
    assert dict(zip(curve.num_chips, curve.mttf_s, strict=True))[16_384] == pytest.approx(made.mttf_s)
    assert all(
        chips * time == pytest.approx(16_384 * made.mttf_s) for chips, time in zip(*curve, strict=True)
    )


def test_the_curve_of_a_job_that_fails_by_itself_does_too() -> None:
    made = assessed("hgx", 1024, FailureRates(job_rate_per_day=2.2))
    curve = by_size(made)
    assert dict(zip(curve.num_chips, curve.mttf_s, strict=True))[1024] == pytest.approx(made.mttf_s)
    assert curve.mttf_s[0] < 86400 / 2.2


def test_all_chips_out_all_the_time_is_the_whole() -> None:
    assert lost_fraction(8 * 365.25 * 2, 8) == pytest.approx(1.0)


def test_what_nodes_share_on_top_is_a_part_like_the_others() -> None:
    said = FailureRates(shock_rate_per_day=1e-3, shock_nodes=32)
    made = assessed("hgx", 1024, said)
    (row,) = [part for part in made.parts if part.name == "shared part of 32 nodes"]
    assert (row.num, row.num_lost) == (4, 256)
    assert row.lost.value == pytest.approx(4 * 1e-3 * 365.25 / 12 * 256 * 4, rel=0.003)
    plain = assessed("hgx", 1024)
    assert made.lost.value == pytest.approx(plain.lost.value + row.lost.value, rel=0.001)
    assert 86400 / made.mttf_s == pytest.approx(86400 / plain.mttf_s + 4e-3)
    assert made.spares.away_mean == pytest.approx(plain.spares.away_mean + 4 * 1e-3 * 32 * 4 / 24)


def test_a_job_that_fails_by_itself_does_so_whatever_its_size() -> None:
    plain, own = assessed("hgx", 1024), assessed("hgx", 1024, FailureRates(job_rate_per_day=2.2))
    assert 86400 / own.mttf_s - 86400 / plain.mttf_s == pytest.approx(2.2)
    assert own.lost.value == plain.lost.value
