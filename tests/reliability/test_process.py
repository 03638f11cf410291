"""How often clusters fail: published rates carried over, limits, early life."""

from __future__ import annotations

from math import exp, inf

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.catalog import Catalog
from datahall.errors import ScenarioError
from datahall.reliability.process import (
    FailureProcess,
    Nodes,
    early_factor,
    lemon_share,
    mttf_s,
    over,
    process_of,
    repair_sigma,
    repairs_per_node_day,
    shock,
)
from datahall.reliability.recovery import ANY_SIZE, PREEMPTED, Recovery, interrupted

CATALOG = Catalog(user=False)
DAY_S, HOUR_S = 86400.0, 3600.0
R_JOB = CATALOG.failure_preset("rsc-1").job_rate_per_day
PRESETS = [one.name for one in CATALOG.failure_presets()]


def process(
    name: str = "llama-3", num_nodes: int = 2048, on: Nodes | None = None, **said: object
) -> FailureProcess:
    return process_of(CATALOG.failure_preset(name), CATALOG, num_nodes, on, **said)  # type: ignore[arg-type]


def aged(age_s: float) -> FailureProcess:
    return process(on=Nodes(num_chips=8, age_s=age_s))


def events(found: FailureProcess, span_s: float) -> float:
    """Failures of a job in a time that its nodes begin at their age."""
    return span_s / mttf_s(over(found, span_s))


def test_llama_3_meets_419_interruptions_in_its_published_proportions() -> None:
    found = process("llama-3", 16384 // 8)
    assert events(found, 54 * DAY_S) == pytest.approx(419, rel=0.15)
    each = {one.name: one.rate_per_node_day * 2048 * 54 for one in found.causes}
    published = {"Faulty GPU": 148, "GPU HBM3 memory": 72, "Software bug": 54, "NIC": 7, "Power supply": 3}
    assert {name: round(each[name]) for name in published} == published
    hardware = sum(each[one.name] for one in found.causes if one.component not in ("software", "unknown"))
    assert 0.75 < hardware / 419 < 0.87, "about 78 % are confirmed or suspected hardware"


@pytest.mark.parametrize(("chips", "hours"), [(16_384, 1.8), (131_072, 0.23)])
def test_meta_projects_as_we_do(chips: int, hours: float) -> None:
    assert mttf_s(process("rsc-1", chips // 8)) / HOUR_S == pytest.approx(hours, rel=0.03)


def test_a_small_job_fails_more_often_than_its_nodes() -> None:
    small = process("rsc-1", 128)
    assert mttf_s(small) / HOUR_S == pytest.approx(28.8, rel=0.01)
    assert mttf_s(process("rsc-1", 128, job_rate_per_day=R_JOB)) / HOUR_S == pytest.approx(7.9, rel=0.01)


@pytest.mark.parametrize("name", ["llama-3", "rsc-1", "rsc-2", "ft-hsdp", "gb200-field"])
def test_a_hundred_thousand_gpus_do_not_run_an_hour(name: str) -> None:
    preset = CATALOG.failure_preset(name)
    found = process(name, 100_000 // preset.num_node_chips)
    assert 15 * 60 < mttf_s(found) < HOUR_S


@pytest.mark.parametrize("name", PRESETS)
@given(num_nodes=st.integers(1, 200_000), times=st.integers(2, 50))
def test_more_nodes_fail_in_proportion(name: str, num_nodes: int, times: int) -> None:
    few, many = process(name, num_nodes), process(name, num_nodes * times)
    assert mttf_s(few) / mttf_s(many) == pytest.approx(times)
    assert few.rate_per_node_day == pytest.approx(CATALOG.failure_preset(name).rate_per_node_day)


def test_causes_of_a_job_matter_less_the_larger_it_is() -> None:
    ratio = [
        mttf_s(process("rsc-1", nodes)) / mttf_s(process("rsc-1", nodes, job_rate_per_day=R_JOB))
        for nodes in (1, 128, 2048, 16384)
    ]
    assert ratio == sorted(ratio, reverse=True)
    assert ratio[0] > 100 > 1.03 > ratio[-1] > 1


def test_what_a_node_has_once_does_not_grow_with_its_chips() -> None:
    eight, four = (process("llama-3", 1000, Nodes(num_chips=n)) for n in (8, 4))
    for whole, half in zip(eight.causes, four.causes, strict=True):
        once = CATALOG.component(whole.component).per == "node"
        assert half.rate_per_node_day == pytest.approx(whole.rate_per_node_day / (1 if once else 2))


def test_nodes_of_a_rack_lose_its_power_together() -> None:
    alone, racked = (process("llama-3", 1800, Nodes(num_chips=4, num_in_rack=n)) for n in (1, 18))
    lost = {one.component: one.num_nodes_lost for one in racked.causes}
    assert {component for component, num in lost.items() if num > 1} == {"psu"}
    assert lost["psu"] == 18
    assert mttf_s(racked) == pytest.approx(mttf_s(alone)), "as many failures, each of more nodes"
    power = next(one for one in racked.causes if one.component == "psu")
    assert power.survives == "remote"
    assert {one.survives for one in alone.causes if one.component == "psu"} == {"peer"}


def test_a_rate_of_ones_own_keeps_the_proportions() -> None:
    published, own = process(), process(rate_per_node_day=0.01)
    assert own.rate_per_node_day == pytest.approx(0.01)
    ratios = [
        one.rate_per_node_day / other.rate_per_node_day
        for one, other in zip(own.causes, published.causes, strict=True)
    ]
    assert ratios == pytest.approx([ratios[0]] * len(ratios))


def test_capacity_goes_with_all_of_its_memory_and_a_job_that_fails_keeps_that_of_its_hosts() -> None:
    """A provider takes many nodes at once, those with copies of others too; a job's own error takes no machine."""
    recovery = Recovery(detect_s=0.0, reschedule_s=0.0, warmup_s=0.0, preempted_every_s=100 * DAY_S)
    found = interrupted(process(num_nodes=50, job_rate_per_day=5.0), recovery)
    job, taken = found.causes[-2:]
    assert (job.name, job.survives, job.rate_per_node_day) == (ANY_SIZE, "host", 0.1)
    assert (taken.name, taken.survives, taken.rate_per_node_day) == (PREEMPTED, "remote", 0.01)
    assert found.job_rate_per_day == 0.0
    assert job.repair_fraction == taken.repair_fraction == 0.0


def test_a_shock_comes_on_top() -> None:
    """A row of 32 nodes, one in a hundred of which loses its power each day: 64 rows of 2,048 nodes."""
    row = shock(0.01, 32, CATALOG)
    assert (row.num_nodes_lost, row.survives) == (32, "remote")
    assert process(shocks=[row]).rate_per_day == pytest.approx(process().rate_per_day + 64 * 0.01)
    assert repairs_per_node_day(process(shocks=[row]).causes) == pytest.approx(
        repairs_per_node_day(process().causes) + 0.01
    )


def test_new_nodes_fail_more_often_and_then_as_others() -> None:
    new = aged(0.0)
    months = [
        events(msgspec.structs.replace(new, age_s=month * 30 * DAY_S), 30 * DAY_S) for month in range(5)
    ]
    assert months == sorted(months, reverse=True)
    steady = events(process(), 30 * DAY_S)
    assert months[0] > 1.5 * steady
    assert months[3] == months[4] == pytest.approx(steady), "past 90 days"
    assert mttf_s(over(new, 54 * DAY_S)) < mttf_s(over(process(), 54 * DAY_S)) == mttf_s(process())


def test_early_life_is_as_many_repairs_more_as_new_nodes_had_defects() -> None:
    """10.36 % of new nodes had a defect: what the hazard adds over the first 90 days, times the share of repairs."""
    new = aged(0.0)
    span = 90 * DAY_S
    more = (early_factor(new, 0.0, span) - 1.0) * repairs_per_node_day(new.causes) * 90
    assert more == pytest.approx(0.1036)


@given(days=st.floats(0.1, 400), age=st.floats(0, 200), rate=st.floats(1e-4, 10), job=st.floats(0, 50))
def test_what_is_no_nodes_own_comes_as_often_however_new_they_are(
    days: float, age: float, rate: float, job: float
) -> None:
    """64 rows of 32 nodes lose their power so often, and the job fails by itself so often, on top of what nodes do."""
    on, span = Nodes(num_chips=8, age_s=age * DAY_S), days * DAY_S
    alone = process(on=on)
    both = process(on=on, shocks=[shock(rate, 32, CATALOG)], job_rate_per_day=job)
    assert over(both, span).rate_per_day == pytest.approx(over(alone, span).rate_per_day + 64 * rate + job)
    assert both.early_shape == alone.early_shape


@given(days=st.floats(0.1, 400), first=st.floats(1e-5, 10), second=st.floats(1e-5, 10))
def test_nodes_that_fail_more_often_do_so_while_they_are_new_too(
    days: float, first: float, second: float
) -> None:
    low, high = (
        over(process(on=Nodes(num_chips=8, age_s=0.0), rate_per_node_day=rate), days * DAY_S).rate_per_day
        for rate in sorted((first, second))
    )
    assert high / low == pytest.approx(max(first, second) / min(first, second))


@given(start=st.floats(0, 200), span=st.floats(0.5, 200))
def test_the_hazard_adds_up(start: float, span: float) -> None:
    """Against the hazard itself, r (a/a₀)^(k−1), integrated numerically."""
    found = aged(0.0)
    ages = np.linspace(start, start + span, 200_001)[1:]
    hazard = np.maximum(1.0, (ages / 90.0) ** (found.early_shape - 1.0))
    numeric = float(hazard.mean())
    tolerance = 0.01 if start > 0.1 else 0.05  # at age 0 the hazard has no end
    assert early_factor(found, start * DAY_S, span * DAY_S) == pytest.approx(numeric, rel=tolerance)


def test_repairs_are_log_normal_with_the_published_mean() -> None:
    host = CATALOG.component("host")
    sigma = repair_sigma(host)
    assert sigma == pytest.approx(1.94, abs=0.01), "that of LANL: 355 min and 54 min"
    drawn = np.random.default_rng(5).lognormal(np.log(host.repair_median_s), sigma, 2_000_000)
    assert drawn.mean() == pytest.approx(host.repair_mean_s, rel=0.02)
    cause = next(one for one in process().causes if one.component == "host")
    assert cause.repair_mean_s == pytest.approx(3 * DAY_S)
    assert cause.repair_median_s * exp(cause.repair_sigma**2 / 2) == pytest.approx(cause.repair_mean_s)


def test_few_bad_nodes_have_their_share_of_failures() -> None:
    """Drawn node by node: 1.3 % of them fail 4.7 times as often."""
    found = process()
    generator = np.random.default_rng(11)
    bad = generator.random(400_000) < found.lemon_fraction
    failures = generator.poisson(np.where(bad, found.lemon_ratio, 1.0))
    assert lemon_share(found) == pytest.approx(failures[bad].sum() / failures.sum(), rel=0.05)
    assert lemon_share(msgspec.structs.replace(found, lemon_ratio=1.0)) == pytest.approx(found.lemon_fraction)
    assert lemon_share(msgspec.structs.replace(found, lemon_fraction=0.0)) == 0.0


def test_half_of_all_failures_need_a_repair() -> None:
    """60 % of 315 by hardware, all of 6 by corruption, a third of 35 by cables, none of 63 by software, of 419."""
    found = process()
    by_hand = (0.6 * (190 + 72 + 7 + 40 + 3 + 3) + 6 + 0.33 * 35) / 419
    assert repairs_per_node_day(found.causes) / found.rate_per_node_day == pytest.approx(by_hand)
    assert by_hand == pytest.approx(0.5, abs=0.01)


def test_no_node_cannot_fail() -> None:
    with pytest.raises(ScenarioError, match="0 nodes"):
        process(num_nodes=0)
    assert mttf_s(process(num_nodes=1)) < inf
