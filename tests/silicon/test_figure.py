"""The chain behind a pass: it adds up to the kernel model's own time, and every leaf says what it rests on."""

from __future__ import annotations

import pytest

from datahall.breakdown import Breakdown, false_nodes
from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.errors import UnsupportedError
from datahall.silicon.figure import bound_figure, kernel_figure, pass_figure
from datahall.silicon.kernel import PassTimes, scalar, time_operators
from datahall.workload.forward import forward_pass
from datahall.workload.memory.figure import derived_from

CATALOG = Catalog(user=False)
SHAPES = derived_from(CATALOG.model("llama-3.1-8b"))
MODELS = ("llama-3.1-8b", "deepseek-v3", "qwen3-next-80b-a3b")


def passed(chip: Chip, name: str, query: float, past: float, *, graph: bool = True) -> PassTimes:
    operators = forward_pass(CATALOG.model(name), batch=4.0, query=query, past=past)
    return time_operators(chip, operators, graph=graph).merged()


def figure_of(times: PassTimes, name: str) -> Breakdown:
    return pass_figure("pass", times, derived_from(CATALOG.model(name)))


@pytest.mark.parametrize("chip", CATALOG.chips(), ids=lambda chip: chip.name)
@pytest.mark.parametrize(("query", "past"), [(1.0, 4096.0), (2048.0, 0.0)], ids=["decode", "prefill"])
@pytest.mark.parametrize("graph", [True, False], ids=["graph", "eager"])
def test_the_chain_gives_the_time_of_the_kernels(chip: Chip, query: float, past: float, graph: bool) -> None:
    for name in MODELS:
        try:
            times = passed(chip, name, query, past, graph=graph)
        except UnsupportedError:
            continue
        figure = figure_of(times, name)
        assert figure.value == pytest.approx(scalar(times.total_s), rel=1e-12)
        assert false_nodes(figure) == []
        assert not [node.name for _, node in figure.walk() if "by hand" in node.note]


@pytest.mark.parametrize("chip", CATALOG.chips(), ids=lambda chip: chip.name)
@pytest.mark.parametrize(("batch", "query"), [(4.0, 1.0), (200.0, 1.0), (1.0, 512.0), (2.0, 4096.0)], ids=str)
def test_no_kernel_is_faster_than_its_own_bound(chip: Chip, batch: float, query: float) -> None:
    """What a kernel finds in L2 it need not read from main memory: its bound counts the bytes where its time does."""
    for name in ("llama-3.1-8b", "qwen3-30b-a3b", "qwen3-next-80b-a3b"):
        operators = forward_pass(CATALOG.model(name), batch=batch, query=query, past=4096.0)
        try:
            times = time_operators(chip, operators)
        except UnsupportedError:
            continue
        shares = [node for _, node in figure_of(times, name).walk() if node.name == "efficiency"]
        assert shares
        assert max(node.value for node in shares) <= 1.0 + 1e-9


def test_the_band_is_that_of_the_constants() -> None:
    times = passed(CATALOG.chip("h200-sxm"), "llama-3.1-8b", 1.0, 4096.0)
    figure, constants = figure_of(times, "llama-3.1-8b"), times.calibration.constants
    low, high = constants.bands["pass"]
    assert figure.band is not None
    assert (figure.band.low, figure.band.high) == pytest.approx((low * figure.value, high * figure.value))
    assert figure.band.basis == constants.fitted_on


@pytest.mark.parametrize("chip", CATALOG.chips(), ids=lambda chip: chip.name)
@pytest.mark.parametrize(("query", "past"), [(1.0, 1000.0), (2048.0, 0.0)], ids=["decode", "prefill"])
def test_a_band_ends_at_the_roofline_and_nowhere_above_it(chip: Chip, query: float, past: float) -> None:
    """Constants of another chip of the family may promise more than this one's memory gives."""
    for name in MODELS:
        try:
            times = passed(chip, name, query, past)
        except UnsupportedError:
            continue
        figure, earned = figure_of(times, name), times.calibration.constants.bands["pass"][0]
        assert figure.band is not None
        assert times.roofline_s <= figure.value
        assert figure.band.low == pytest.approx(max(times.roofline_s, earned * figure.value))


@pytest.mark.parametrize("name", MODELS)
def test_what_is_counted_is_no_fact(name: str) -> None:
    """Facts are what the catalogue states: here the chip's own numbers."""
    chip = CATALOG.chip("h200-sxm")
    facts = [
        node for _, node in figure_of(passed(chip, name, 1.0, 4096.0), name).walk() if node.origin == "fact"
    ]
    assert facts
    assert {node.value for node in facts} <= {one.value for one in chip.facts.values()}


def test_a_bound_is_the_larger_of_arithmetic_and_bytes() -> None:
    chip, shapes = CATALOG.chip("h200-sxm"), derived_from(CATALOG.model("llama-3.1-8b"))
    times = passed(chip, "llama-3.1-8b", 2048.0, 0.0)
    for kernel in times.kernels:
        bound = bound_figure(chip, kernel.operator, times.calibration, shapes)
        if "bytes in L2" in {node.name for _, node in bound.walk()}:
            assert bound.value > scalar(kernel.roofline_s)
        else:
            assert bound.value == pytest.approx(scalar(kernel.roofline_s), rel=1e-12)


def test_where_the_gap_binds_it_stands_in_the_chain() -> None:
    figure = figure_of(passed(CATALOG.chip("h200-sxm"), "llama-3.1-8b", 1.0, 128.0), "llama-3.1-8b")
    gaps = [node for _, node in figure.walk() if node.name == "launch gap"]
    assert gaps
    assert all(node.origin == "fitted" and node.value > 0 for node in gaps)


def test_the_gap_stands_in_the_chain_of_kernels_that_it_binds_and_of_no_other() -> None:
    times = passed(CATALOG.chip("h200-sxm"), "llama-3.1-8b", 1.0, 4096.0)
    bounds = {kernel.bound for kernel in times.kernels}
    assert "launch" in bounds
    assert len(bounds) > 1
    for kernel in times.kernels:
        figure = kernel_figure(times.chip, kernel, times.calibration, SHAPES)
        gaps = [node.value for _, node in figure.walk() if node.name == "launch gap"]
        assert gaps == ([scalar(kernel.launch_s)] if kernel.bound == "launch" else [])


def test_an_operator_of_two_kinds_of_layer_is_merged_and_keeps_the_time() -> None:
    chip, model = CATALOG.chip("h200-sxm"), CATALOG.model("deepseek-v3")
    apart = time_operators(chip, forward_pass(model, batch=4.0, query=1.0, past=512.0))
    merged = apart.merged()
    assert len(merged.kernels) < len(apart.kernels)
    assert scalar(merged.total_s) == pytest.approx(scalar(apart.total_s))
    assert sum(one.operator.count for one in merged.kernels) == sum(
        one.operator.count for one in apart.kernels
    )


def test_the_shares_of_the_bounds_are_the_whole() -> None:
    times = passed(CATALOG.chip("h200-sxm"), "llama-3.1-8b", 1.0, 4096.0)
    assert sum(times.shares().values()) == pytest.approx(1.0)
    heaviest = times.kernels[times.heaviest]
    assert all(scalar(one.total_s) <= scalar(heaviest.total_s) for one in times.kernels)
    assert times.roofline_s == pytest.approx(
        sum(one.operator.count * scalar(one.roofline_s) for one in times.kernels)
    )
