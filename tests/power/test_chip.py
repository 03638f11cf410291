"""The power of a chip: between idle and its limit, more with more work, and what anchors say."""

from __future__ import annotations

from math import isfinite
from typing import Any

import msgspec
import pint
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from datahall.breakdown import Breakdown, false_nodes
from datahall.catalog import load
from datahall.catalog.entries.chip import Chip
from datahall.errors import UnsupportedError
from datahall.power.activity import (
    IDLE,
    WAITING,
    Activity,
    Phase,
    checkpoint_activity,
    communication_activity,
    kernels_activity,
    mean_activity,
    work_activity,
)
from datahall.power.chip import (
    IDLE_FRACTION,
    chip_power,
    chip_power_w,
    demand_w,
    full_power,
    held,
    idle_power_w,
)
from datahall.power.constants import band_of, basis_of, chip_constants, constants
from datahall.silicon.kernel import time_operators
from datahall.workload.operator import Attention, Gemm, GroupedGemm, Operator

CHIPS = [chip for chip in load().chips() if isfinite(chip.power_limit_w)]
H100, H200, B200 = (load().chip(name) for name in ("h100-sxm", "h200-sxm", "b200-sxm"))
shares = st.floats(0.0, 1.0)
activities = st.builds(Activity, shares, shares, shares, shares, shares, shares)


def a_gemm(rows: float, precision: str = "bf16", weights: str = "bf16") -> Operator:
    width, value = 4096.0, {"bf16": 2.0, "fp8": 1.0, "mxfp4": 0.53125}[weights]
    return Operator(
        name="product", shape=Gemm(rows, width, width), precision=precision, weight_precision=weights,
        flop=2 * rows * width * width, read_bytes=value * width * width, write_bytes=0.0,
        weight_bytes=value * width * width,
    )  # fmt: skip


@given(st.sampled_from(CHIPS), activities)
def test_no_chip_draws_more_than_its_limit_or_less_than_idle(chip: Chip, activity: Activity) -> None:
    drawn = chip_power_w(chip, activity)
    assert idle_power_w(chip) <= drawn <= chip.power_limit_w
    assert isfinite(drawn)


@given(st.sampled_from(CHIPS), activities, st.sampled_from(Activity.__struct_fields__), shares)
def test_more_of_anything_draws_no_less(chip: Chip, activity: Activity, part: str, more: float) -> None:
    busier = msgspec.structs.replace(activity, **{part: getattr(activity, part) + more})
    assert chip_power_w(chip, busier) >= chip_power_w(chip, activity) - 1e-9


@given(st.floats(0.0, 1e5), st.floats(1e-6, 1e-3))
def test_power_has_no_step_where_the_limit_is_neared(wanted_w: float, more: float) -> None:
    """Its slope lies between 0 and 1 everywhere, also beyond the headroom."""
    low, high = (held(one, idle_w=110.0, limit_w=700.0) for one in (wanted_w, wanted_w * (1 + more) + more))
    assert -1e-9 <= high - low <= wanted_w * more + more + 1e-9


def test_little_work_adds_what_it_asks_for_and_much_meets_the_limit() -> None:
    assert held(0.0, idle_w=124.0, limit_w=700.0) == 124.0
    assert held(1.0, idle_w=124.0, limit_w=700.0) == pytest.approx(125.0, abs=1e-5)
    assert held(1e9, idle_w=124.0, limit_w=700.0) == pytest.approx(700.0, rel=1e-9)
    # 3-4-5: a demand of 3/4 of the headroom gets 3/5 of it
    assert held(300.0, idle_w=100.0, limit_w=500.0) == pytest.approx(100.0 + 400.0 * 3 / 5)


def test_formulas_have_the_dimension_of_power() -> None:
    unit: Any = pint.UnitRegistry()
    w, s, byte = unit.watt, unit.second, unit.byte
    drawn: Any = held(300.0 * w, idle_w=100.0 * w, limit_w=500.0 * w)
    assert drawn.check("[power]")
    at_full = 1e-10 * unit.joule / byte * (3e12 * byte / s)
    assert at_full.to("W").magnitude == pytest.approx(300.0)


def test_a_figure_by_hand() -> None:
    """An H100 at half its bandwidth and a tenth of its peak, by the shipped constants and a calculator."""
    found, headroom = chip_constants(H100), 700.0 - 110.0
    asked = Activity(0.1, 0.5, 0.0, 0.8)
    wanted = (
        0.8 * found.busy_headroom_ratio * headroom
        + 0.1 * found.tensor_headroom_ratio * headroom
        + 0.5 * found.memory_j_per_byte * 3.35e12
    )
    by_hand = 110.0 + (wanted**-2 + headroom**-2) ** -0.5
    assert chip_power_w(H100, asked) == pytest.approx(by_hand)
    assert 500 < by_hand < 650


def test_links_caches_and_widened_weights_are_parts_of_their_own() -> None:
    full = full_power(H100)
    assert demand_w(full, Activity(link_fraction=1.0)) == full["link"] == pytest.approx(80e-12 * 450e9)
    assert demand_w(full, Activity(cache_fraction=0.5)) == pytest.approx(0.5 * full["cache"])
    per_value = chip_constants(H100).scaled_j_per_value
    assert full["scaled"] == pytest.approx(per_value * 3.35e12 / 2)


@given(st.sampled_from(CHIPS), activities)
@example(H100, Activity(scaled_fraction=2.3e-308))
@example(H100, Activity(tensor_fraction=1e-12, memory_fraction=1e-3))
def test_the_figure_says_what_the_function_says_and_holds(chip: Chip, activity: Activity) -> None:
    figure = chip_power(chip, activity)
    assert figure.value == pytest.approx(chip_power_w(chip, activity), rel=1e-6)
    assert false_nodes(figure) == []
    assert figure.band is None or figure.band.low >= idle_power_w(chip) - 1e-9
    assert figure.band is None or figure.band.high <= chip.power_limit_w * (1 + 1e-9)


def leaves(figure: Breakdown) -> set[str]:
    return {one.origin for _, one in figure.walk() if not one.parts}


def test_a_figure_rests_on_facts_and_fits() -> None:
    figure = chip_power(H200, Activity(0.3, 0.4, 0.2, 1.0, 0.1, 0.1))
    assert {"fact", "fitted", "derived", "assumption"} == leaves(figure)
    assert figure.at("idle power").value == 124.0
    names = [part.name for part in figure.at("above idle", "what its parts would add at full clock").parts]
    assert names == [
        "clocks and instructions", "tensor cores", "memory", "links", "attention to caches", "widening of weights",
    ]  # fmt: skip


def test_what_a_chip_rests_on_widens_its_band() -> None:
    assert [basis_of(chip) for chip in (H100, H200, load().chip("mi300x"))] == [
        "measured",
        "family-calibrated",
        "datasheet only",
    ]
    widths = [
        high - low for low, high in (band_of("chip", one) for one in (H100, H200, load().chip("mi300x")))
    ]
    assert widths == sorted(widths)
    assert widths[0] < widths[1] < widths[2]
    assert set(constants().chips) == {"h100-sxm", "b200-sxm"}


def test_without_an_idle_power_a_share_of_the_limit_stands_for_it() -> None:
    bare = msgspec.structs.replace(
        H100, power_idle_w=float("nan"), facts={k: v for k, v in H100.facts.items() if k != "power_idle_w"}
    )
    assert idle_power_w(bare) == IDLE_FRACTION * 700.0
    figure = chip_power(bare, IDLE)
    assert figure.value == pytest.approx(105.0)
    assert false_nodes(figure) == []


def test_a_chip_without_a_limit_is_refused() -> None:
    bare = msgspec.structs.replace(H100, power_limit_w=float("nan"))
    with pytest.raises(UnsupportedError, match="power limit"):
        chip_power_w(bare, IDLE)


class TestActivity:
    """What a chip does is counted from the operators that its kernels run."""

    def test_work_over_time(self) -> None:
        product = a_gemm(1024.0)
        least_s = 2 * 1024 * 4096**2 / H100.peak("bf16")
        found = work_activity(H100, [product], 4 * least_s, busy_s=least_s)
        assert found.tensor_fraction == pytest.approx(0.25)
        assert found.busy_fraction == pytest.approx(0.25)
        assert found.memory_fraction == pytest.approx(2 * 4096**2 / 3.35e12 / (4 * least_s))
        assert found.scaled_fraction == found.cache_fraction == 0.0

    def test_operators_count_as_often_as_they_run(self) -> None:
        once, often = a_gemm(8.0), msgspec.structs.replace(a_gemm(8.0), count=5.0)
        one, five = (work_activity(H100, [each], 1.0, busy_s=0.1) for each in (once, often))
        assert five.memory_fraction == pytest.approx(5 * one.memory_fraction)
        assert five.tensor_fraction == pytest.approx(5 * one.tensor_fraction)

    def test_only_narrow_weights_are_widened(self) -> None:
        wide, narrow = a_gemm(8.0), a_gemm(8.0, "bf16", "mxfp4")
        assert work_activity(H100, [wide], 1.0, busy_s=0.1).scaled_fraction == 0.0
        found = work_activity(H100, [narrow], 1.0, busy_s=0.1).scaled_fraction
        assert found == pytest.approx(4096**2 * 2.0 / 3.35e12)

    def test_experts_of_block_scaled_weights_fill_tiles_of_128_rows(self) -> None:
        weights = 4 * 1024.0 * 512.0
        experts = Operator(
            name="expert_up", shape=GroupedGemm(rows=4.0, num_experts=4.0, n=1024.0, k=512.0), precision="fp8",
            weight_precision="fp8", flop=2 * 4 * 1024.0 * 512.0, read_bytes=weights, write_bytes=0.0,
            weight_bytes=weights,
        )  # fmt: skip
        plain, padded = (
            work_activity(H100, [experts], 1.0, busy_s=0.1, block_scaled=flag).tensor_fraction
            for flag in (False, True)
        )
        assert padded == pytest.approx(128 * plain)
        many = msgspec.structs.replace(experts, flop=2 * 4096 * 1024.0 * 512.0)
        assert work_activity(
            H100, [many], 1.0, busy_s=0.1, block_scaled=True
        ).tensor_fraction == pytest.approx(work_activity(H100, [many], 1.0, busy_s=0.1).tensor_fraction)

    @pytest.mark.parametrize(("query", "is_cache"), [(1.0, True), (128.0, False)])
    def test_decodes_alone_read_caches(self, query: float, is_cache: bool) -> None:
        shape = Attention(8.0, query, 1024.0, 32.0, 8.0, 128.0, 128.0)
        attention = Operator(
            name="attention", shape=shape, precision="bf16", weight_precision="bf16", flop=1e9, read_bytes=1e8,
            write_bytes=0.0,
        )  # fmt: skip
        found = work_activity(H100, [attention], 1.0, busy_s=0.1)
        assert found.cache_fraction == (found.memory_fraction if is_cache else 0.0)

    def test_kernels_are_busy_for_their_time(self) -> None:
        kernels = time_operators(H200, (a_gemm(8192.0),)).kernels
        time_s = float(kernels[0].time_s)
        found = kernels_activity(H200, kernels, 2 * time_s)
        assert found.busy_fraction == pytest.approx(0.5)
        assert 0.25 < found.tensor_fraction < 0.5

    def test_means_are_weighted_by_time_and_rest_dilutes(self) -> None:
        work = Activity(0.8, 0.4, 0.2, 1.0, 0.1, 0.6)
        found = mean_activity((Phase("work", 3.0, work), Phase("rest", 1.0, IDLE)))
        assert msgspec.structs.astuple(found) == pytest.approx((0.6, 0.3, 0.15, 0.75, 0.075, 0.45))
        assert msgspec.structs.astuple(found) == pytest.approx(msgspec.structs.astuple(work.over(4 / 3)))
        assert mean_activity(()) == IDLE

    def test_waiting_draws_little_and_sending_less_than_computing(self) -> None:
        compute = chip_power_w(H100, Activity(0.5, 0.2, 0.0, 1.0))
        sending, waiting = (chip_power_w(H100, one) for one in (communication_activity(), WAITING))
        copying = chip_power_w(H100, checkpoint_activity(50e9, H100))
        assert 110.0 < waiting < sending < compute
        assert 110.0 < copying < sending
        half, full = communication_activity(0.5), communication_activity()
        assert (half.link_fraction, full.link_fraction) == (0.5, 1.0)
        assert half.memory_fraction == full.memory_fraction / 2
        assert full.memory_fraction == pytest.approx(2 * 450e9 / 3.35e12, rel=0.1)  # sent and received


@pytest.mark.parametrize(
    ("activity", "measured_w", "within"),
    [
        (
            IDLE,
            124.0,
            0.001,
        ),  # own readings of an H200 (validation/data/power/points.csv), which nothing was fitted on
        (Activity(0.68, 0.1, 0.0, 1.0), 692.0, 0.03),  # product of 8,192 rows and columns
    ],
)
def test_anchors_of_an_h200(activity: Activity, measured_w: float, within: float) -> None:
    assert chip_power_w(H200, activity) == pytest.approx(measured_w, rel=within)
