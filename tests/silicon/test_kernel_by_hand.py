"""One operator by hand: which constants, bytes and formats its time is asked with."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace
from tests.silicon.kernel_case import CATALOG, product, stream

from datahall.breakdown import Source
from datahall.catalog.entries.chip import Chip, Level
from datahall.silicon import kernel as kernels
from datahall.silicon.attention import decode_times, prefill_times
from datahall.silicon.calibration import Calibration, Constants, calibrate
from datahall.silicon.experts import expert_times
from datahall.silicon.figure import pass_figure
from datahall.silicon.gemm import gemm_times
from datahall.silicon.grouped_gemm import grouped_times
from datahall.silicon.kernel import KernelTime, time_operators
from datahall.silicon.kernel_formats import kernel_format
from datahall.workload.operator import Attention, Gemm, GroupedGemm, Operator, Stream

CONSTANTS = calibrate(CATALOG.chip("h200-sxm"), stack="vllm").constants
H200 = CATALOG.chip("h200-sxm")


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Callable[..., KernelTime]:
    """One operator on an H200 whose constants are changed."""

    def timed_with(
        operator: Operator,
        constants: Constants = CONSTANTS,
        *,
        serving: bool = False,
        chip: Chip = H200,
        **options: bool,
    ) -> KernelTime:
        found = Calibration(constants, "measured", serving)
        monkeypatch.setattr(kernels, "calibrate", lambda *_: found)
        return time_operators(chip, [operator], **options).kernels[0]

    return timed_with


def changed(part: str, **values: float) -> Constants:
    """The constants with some of one part replaced."""
    return replace(CONSTANTS, **{part: replace(getattr(CONSTANTS, part), **values)})


Given = Callable[..., KernelTime]


@pytest.mark.parametrize(
    ("precision", "weights", "widths"),
    [
        ("bf16", "bf16", (2.0, 2.0)),
        ("fp8", "fp8", (1.0, 1.0)),
        ("fp8", "bf16", (2.0, 2.0)),  # inputs are as wide as the wider of both
        ("bf16", "int4", (0.5 + 2 / 128, 2.0)),
    ],
)
@pytest.mark.parametrize("m", [1.0, 2.0, 300.0])
def test_a_product_is_timed_with_the_bytes_of_its_formats(
    given: Given, precision: str, weights: str, widths: tuple[float, float], m: float
) -> None:
    form = kernel_format(precision, weights)
    single = replace(CONSTANTS.path(form), single_row_s=1.0)
    found = given(
        product(m, 4096, 2048, precision, weights), replace(CONSTANTS, paths={"bf16": single, form: single})
    )
    alone = gemm_times(
        m, 4096, 2048, num_sms=132.0, peak_flop_per_s=H200.peak(precision), memory_bytes_per_s=4.8e12,
        constants=CONSTANTS.gemm_for(form, sustained=True), weight_bytes=widths[0], activation_bytes=widths[1],
        output_bytes=2.0,
    )  # fmt: skip
    assert found.time_s == pytest.approx(alone.time_s[0] + (1.0 if m < 2 else 0.0))
    assert found.compute_s == pytest.approx(max(alone.compute_s[0], alone.power_s[0]))
    assert found.memory_s == pytest.approx(alone.memory_s[0])
    assert isinstance(found.time_s, float)


def test_a_column_of_products_is_a_column_and_a_single_one_a_number() -> None:
    rows, width = np.array([1.0, 64.0]), 4096.0
    for shape in (Gemm(rows, width, width), Gemm(64.0, rows, width), Gemm(64.0, width, rows)):
        wide = replace(product(1, 1, 1, "bf16"), shape=shape)
        found = time_operators(H200, [wide]).kernels[0]
        assert np.shape(found.time_s) == np.shape(found.memory_s) == (2,)


@pytest.mark.parametrize(
    ("flop", "read", "written", "roofline_s"),
    [
        (989.4e12, 1.0, 1.0, 1.0),
        (1.0, 4.8e12, 0.0, 1.0),
        (1.0, 4.8e12, 2.4e12, 1.5),
        (4e14, 4e11, 4e11, 4e14 / 989.4e12),
    ],
)
def test_the_roofline_counts_all_arithmetic_and_all_traffic(
    flop: float, read: float, written: float, roofline_s: float
) -> None:
    one = replace(stream(read, flop=flop), write_bytes=written)
    assert time_operators(H200, [one]).kernels[0].roofline_s == pytest.approx(roofline_s, rel=1e-3)


def test_a_stream_reads_and_writes(given: Given) -> None:
    toy = changed("stream", kernel_s=1.0, memory_efficiency=0.5, l2_keep_bytes=1.0)
    for read, written in ((4.8e12, 0.0), (0.0, 4.8e12), (2.4e12, 2.4e12)):
        found = given(replace(stream(read), write_bytes=written), toy)
        assert found.memory_s == pytest.approx(2.0)
        assert found.time_s == pytest.approx(3.0)


def test_block_scales_are_found_on_the_way(given: Given) -> None:
    toy = changed("stream", kernel_s=0.0, memory_efficiency=1.0, l2_keep_bytes=1.0, cast_bytes_per_s=1e12)
    cast = replace(stream(4.8e12), shape=Stream(1.0, "cast"))
    assert given(cast, toy).time_s == pytest.approx(4.8)
    assert given(cast, toy, block_scaled=True).time_s == pytest.approx(1.0)
    rows = replace(stream(4.8e12), shape=Stream(1.0, "rows", 8.0))
    assert given(rows, toy, block_scaled=True).time_s == given(rows, toy).time_s


def test_the_host_launches_every_kernel_of_a_stream_and_each_product(given: Given) -> None:
    paths = {"bf16": replace(CONSTANTS.paths["bf16"], eager_s=5.0)}
    toy = replace(changed("stream", eager_kernel_s=2.0), paths=paths)
    three = replace(stream(1e3), shape=Stream(3.0))
    assert given(three, toy, graph=False).time_s == 6.0
    assert given(product(1, 8, 8, "bf16"), toy, graph=False).time_s == 5.0
    low = replace(toy, paths={"bf16": replace(paths["bf16"], eager_s=1.0)})
    assert given(product(1, 8, 8, "bf16"), low, graph=False).time_s == 2.0
    assert given(three, toy).time_s < 1e-3
    assert given(attended(1.0), toy, graph=False).time_s == 2.0


def attended(query: float, *, dims: tuple[float, float] = (128.0, 128.0), kv: str = "bf16") -> Operator:
    shape = Attention(4.0, query, 4096.0, 32.0, 8.0, *dims)
    return replace(stream(1e6), shape=shape, weight_precision=kv)


@pytest.mark.parametrize(("kv", "kv_bytes"), [("bf16", 2.0), ("fp8", 1.0)])
@pytest.mark.parametrize("sustained", [True, False])
def test_one_query_is_decode_and_several_are_prefill(
    given: Given, kv: str, kv_bytes: float, sustained: bool
) -> None:
    toy = replace(CONSTANTS, sustained=0.5)
    droop = 0.5 if sustained else 1.0
    machine = {"num_sms": 132.0, "memory_bytes_per_s": 4.8e12, "kv_bytes": kv_bytes, "value_bytes": 2.0}
    peak, power = H200.peak("bf16"), CONSTANTS.prefill.power_efficiency * droop
    one, many = attended(1.0, kv=kv), attended(512.0, kv=kv)
    assert isinstance(one.shape, Attention)
    assert isinstance(many.shape, Attention)
    alone = decode_times(one.shape, CONSTANTS.decode, peak_flop_per_s=peak * power, **machine)
    assert given(one, toy, sustained=sustained).time_s == pytest.approx(float(alone.time_s))
    limited = replace(CONSTANTS.prefill, power_efficiency=power)
    chunk = prefill_times(many.shape, limited, peak_flop_per_s=peak, **machine)
    assert given(many, toy, sustained=sustained).time_s == pytest.approx(float(chunk.time_s))
    mixed = replace(one, shape=replace(one.shape, q_len=np.array([1.0, 512.0])))
    assert np.asarray(given(mixed, toy, sustained=sustained).time_s)[1] == pytest.approx(float(chunk.time_s))


def test_an_engine_has_kernels_of_its_own_for_latent_attention(given: Given) -> None:
    toy = replace(
        CONSTANTS,
        latent_prefill=replace(CONSTANTS.prefill, launch_s=7.0),
        latent_decode=replace(CONSTANTS.decode, launch_s=9.0),
    )
    wide = (192.0, 128.0)
    assert given(attended(512.0, dims=wide), toy, serving=True).time_s > 7.0
    assert given(attended(1.0, dims=wide), toy, serving=True).time_s > 9.0
    for query in (1.0, 512.0):
        assert given(attended(query, dims=wide), toy).time_s < 1.0  # a library's
        assert given(attended(query), toy, serving=True).time_s < 1.0  # keys as wide as values
        none = replace(toy, latent_prefill=None, latent_decode=None)
        assert given(attended(query, dims=wide), none, serving=True).time_s < 1.0


def test_a_benchmark_finds_its_cache_in_l2_where_the_rate_of_l2_is_known(given: Given) -> None:
    l2 = next(level.capacity_bytes for level in H200.levels if level.name == "l2")
    known = changed("decode", l2_bytes_per_s=1e14)
    for constants, expected in ((known, l2), (changed("decode", l2_bytes_per_s=math.inf), 0.0)):
        assert kernels.warm_bytes(H200, constants.decode) == expected
    bare = replace(H200, levels=tuple(level for level in H200.levels if level.name != "l2"))
    assert kernels.warm_bytes(bare, known.decode) == 0.0
    blank = replace(H200, levels=(Level(name="l2"),))
    assert kernels.warm_bytes(blank, known.decode) == 0.0
    one = replace(attended(1.0), shape=Attention(1.0, 1.0, 4096.0, 32.0, 8.0, 128.0, 128.0))
    assert given(one, known, warm=True).memory_s < 0.1 * given(one, known).memory_s


def mixture(rows: float, hit: float, precision: str = "bf16", *, batched: bool = False) -> Operator:
    """Rows that reach some of 64 experts of 1,024 × 2,048 weights."""
    return replace(
        stream(1e6), shape=GroupedGemm(rows, 64.0, 1024.0, 2048.0, batched), precision=precision,
        weight_precision=precision, weight_bytes=hit * 1024 * 2048 * {"bf16": 2.0, "fp8": 1.0}[precision],
    )  # fmt: skip


@pytest.mark.parametrize(("precision", "width"), [("bf16", 2.0), ("fp8", 1.0)])
@pytest.mark.parametrize("sustained", [True, False])
def test_experts_are_timed_by_how_many_are_hit(
    given: Given, precision: str, width: float, sustained: bool
) -> None:
    toy = replace(CONSTANTS, sustained=0.5)
    droop = 0.5 if sustained else 1.0
    machine = {
        "peak_flop_per_s": H200.peak(precision), "memory_bytes_per_s": 4.8e12, "weight_bytes": width,
        "activation_bytes": width, "output_bytes": 2.0,
    }  # fmt: skip
    for rows, hit in ((64.0, 20.0), (65536.0, 64.0)):
        one = mixture(rows, hit, precision)
        assert isinstance(one.shape, GroupedGemm)
        own = CONSTANTS.expert(precision)
        assert own is not None
        own = replace(own, power_efficiency=own.power_efficiency * droop)
        served = expert_times(one.shape, hit, own, num_sms=132.0, **machine)
        assert given(one, toy, serving=True, sustained=sustained).time_s == pytest.approx(
            float(served.time_s)
        )
        for batched, constants in ((False, CONSTANTS.grouped), (True, CONSTANTS.batched)):
            path, wide = CONSTANTS.path(precision), CONSTANTS.path("bf16")
            shares = replace(
                constants,
                power_efficiency=constants.power_efficiency
                * droop
                * path.power_efficiency
                / wide.power_efficiency,
                memory_efficiency=constants.memory_efficiency * path.memory_factor,
                small_memory_efficiency=constants.small_memory_efficiency * path.memory_factor,
            )
            library = grouped_times(one.shape, hit, shares, **machine)
            for serving in {False, batched}:  # a batched product is a library's even under an engine
                found = given(
                    mixture(rows, hit, precision, batched=batched), toy, serving=serving, sustained=sustained
                )
                assert found.time_s == pytest.approx(float(library.time_s))
                assert (found.kind, found.compute_s) == (
                    "grouped_gemm",
                    pytest.approx(float(library.compute_s)),
                )


def test_an_engine_without_measured_experts_takes_the_librarys(given: Given) -> None:
    none = replace(CONSTANTS, experts={})
    assert given(mixture(64.0, 20.0), none, serving=True).time_s == given(mixture(64.0, 20.0), none).time_s


def test_eight_of_ten_passes_lie_in_the_band(given: Given) -> None:
    given(stream(1e9), replace(CONSTANTS, bands={"pass": (0.95, 3.0)}))
    found = time_operators(H200, [stream(1e9), stream(2e9)])
    band = pass_figure("pass", found, Source("sizes", "2026", "derived")).band
    assert band is not None
    assert (band.low, band.high) == pytest.approx((0.95 * found.total_s, 3 * found.total_s))
