"""One matrix product: bounds that no constant can break, and the marks that tiles leave on its time."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.catalog import Catalog
from datahall.silicon import gemm
from datahall.silicon.calibration import calibrate, num_sms
from datahall.silicon.gemm import GemmTimes, fine_tiles, gemm_times, search_tiles

CATALOG = Catalog(user=False)
CHIPS = ("h200-sxm", "h100-pcie", "a100-sxm-80gb", "b200-sxm", "l40s", "mi300x", "tpu-v5p", "v100-sxm2-32gb")
FIELDS = GemmTimes.__struct_fields__

few = settings(max_examples=60, deadline=None)
chips = st.sampled_from(CHIPS)
sizes = st.integers(1, 100_000).map(float)


def timed(
    chip: str,
    m: object,
    n: object,
    k: object,
    *,
    peak_ratio: float = 1.0,
    bandwidth_ratio: float = 1.0,
    weight_bytes: float = 2.0,
    **constants: object,
) -> GemmTimes:
    """Products in the chip's half-width format, on a chip that may be faster than it is."""
    machine = CATALOG.chip(chip)
    precision = "bf16" if "bf16" in machine.peak_flop_per_s else "fp16"
    return gemm_times(
        m,  # type: ignore[arg-type]
        n,  # type: ignore[arg-type]
        k,  # type: ignore[arg-type]
        num_sms=num_sms(machine),
        peak_flop_per_s=machine.peak(precision) * peak_ratio,
        memory_bytes_per_s=machine.memory_bytes_per_s * bandwidth_ratio,
        constants=msgspec.structs.replace(calibrate(machine).constants.gemm_for(precision), **constants),
        weight_bytes=weight_bytes,
    )


def column(rows: int, *, seed: int = 0, largest: float = 16.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    m, n, k = (np.floor(2.0 ** random.uniform(0, largest, rows)) for _ in range(3))
    return m, n, k


def same_tile(one: GemmTimes, other: GemmTimes) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in ("tile_n", "tile_m", "split"))


@few
@given(chips, sizes, sizes, sizes)
def test_no_product_beats_its_arithmetic_or_its_weights(chip: str, m: float, n: float, k: float) -> None:
    machine = CATALOG.chip(chip)
    precision = "bf16" if "bf16" in machine.peak_flop_per_s else "fp16"
    constants = calibrate(machine).constants.gemm_for(precision)
    flop_s = 2 * m * n * k / machine.peak(precision)
    weights_s = 2 * n * k / machine.memory_bytes_per_s
    times = timed(chip, m, n, k)
    assert times.time_s >= flop_s / constants.power_efficiency * (1 - 1e-12)
    assert times.time_s >= constants.launch_s + weights_s / constants.memory_efficiency
    assert times.time_s >= times.memory_s + constants.launch_s
    assert times.compute_s >= flop_s / constants.tensor_efficiency * (1 - 1e-12)
    assert times.time_s >= max(flop_s, weights_s)


@few
@given(chips, sizes, sizes, sizes)
def test_the_tiles_cover_the_result(chip: str, m: float, n: float, k: float) -> None:
    times = timed(chip, m, n, k)
    tiles = math.ceil(n / times.tile_n[0]) * math.ceil(m / times.tile_m[0]) * times.split[0]
    assert times.waves[0] == math.ceil(tiles / num_sms(CATALOG.chip(chip)))
    assert 1 <= times.split[0] <= 16


@few
@given(chips, sizes, sizes, sizes, st.floats(1, 10), st.floats(1, 10))
def test_a_faster_chip_is_never_slower_with_the_same_tile(
    chip: str, m: float, n: float, k: float, peak_ratio: float, bandwidth_ratio: float
) -> None:
    now = timed(chip, m, n, k)
    then = timed(chip, m, n, k, peak_ratio=peak_ratio, bandwidth_ratio=bandwidth_ratio)
    if same_tile(now, then):
        assert then.time_s <= now.time_s * (1 + 1e-12)


@few
@given(chips, sizes, sizes, sizes)
def test_twice_the_depth_is_never_faster_with_the_same_tile(chip: str, m: float, n: float, k: float) -> None:
    once, twice = timed(chip, m, n, k), timed(chip, m, n, 2 * k)
    if same_tile(once, twice):
        assert twice.time_s > once.time_s


def test_twice_the_depth_is_hardly_ever_faster_when_the_library_chooses_another_tile() -> None:
    m, n, k = column(20_000)
    ratio = timed("h200-sxm", m, n, 2 * k).time_s / timed("h200-sxm", m, n, k).time_s
    assert np.mean(ratio < 1) < 0.01
    assert ratio.min() > 0.75


@few
@given(chips, st.integers(0, 10_000))
def test_a_column_holds_what_each_product_alone_gives(chip: str, seed: int) -> None:
    m, n, k = column(64, seed=seed)
    together = timed(chip, m, n, k)
    for row in range(0, 64, 9):
        alone = timed(chip, m[row], n[row], k[row])
        assert [getattr(alone, name)[0] for name in FIELDS] == [
            getattr(together, name)[row] for name in FIELDS
        ]


@pytest.mark.parametrize("chip", ["h200-sxm", "a100-sxm-80gb", "tpu-v5p"])
def test_the_compiled_search_equals_the_interpreted_one_bit_for_bit(
    chip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    m, n, k = column(300, seed=1)
    monkeypatch.setattr(gemm, "INTERPRET_BELOW", 0)
    compiled = timed(chip, m, n, k)
    monkeypatch.setattr(gemm, "INTERPRET_BELOW", 10**9)
    interpreted = timed(chip, m, n, k)
    for name in FIELDS:
        assert getattr(compiled, name).tobytes() == getattr(interpreted, name).tobytes(), name


def test_the_search_finds_the_cheapest_tile_of_its_own_estimate() -> None:
    """Brute force over the menu, with the library's estimate written out once more."""
    machine = CATALOG.chip("h200-sxm")
    constants = calibrate(machine).constants.gemm_for("bf16")
    peak, sms, bandwidth = machine.peak("bf16"), num_sms(machine), machine.memory_bytes_per_s

    def estimate(tile_n: float, tile_m: float, split: float, m: float, n: float, k: float) -> float:
        waves = math.ceil(math.ceil(n / tile_n) * math.ceil(m / tile_m) * split / sms)
        per_k = max(
            2 * tile_n * tile_m * sms / (peak * constants.power_efficiency),
            (tile_n + tile_m) * 2 / constants.feed_bytes_per_s,
            tile_n * 2 / constants.choose_stream_bytes_per_s,
        )
        tile_s = (
            k / split * per_k + constants.choose_tile_s + tile_n * tile_m * 2 / constants.epilogue_bytes_per_s
        )
        join_s = constants.choose_split_s + 8 * split * m * n / bandwidth if split > 1 else 0.0
        return waves * tile_s + join_s

    for m, n, k in zip(*column(40, seed=3), strict=True):
        candidates = []
        for tile_n, tile_m in fine_tiles():
            if tile_m > 8 and tile_m >= 2 * m:
                continue
            tiles = math.ceil(n / tile_n) * math.ceil(m / tile_m)
            candidates.append(estimate(tile_n, tile_m, 1.0, m, n, k))
            if 2 * tiles <= sms and k >= 1024:
                candidates.append(estimate(tile_n, tile_m, min(16.0, sms // tiles), m, n, k))
        found = timed("h200-sxm", m, n, k)
        chosen = estimate(found.tile_n[0], found.tile_m[0], found.split[0], m, n, k)
        assert chosen == pytest.approx(min(candidates), rel=1e-12)


def test_the_time_follows_from_the_tile_as_the_module_says() -> None:
    """The equations of the docstring, written out once more."""
    machine = CATALOG.chip("h200-sxm")
    c = calibrate(machine).constants.gemm_for("bf16")
    peak, sms, bandwidth = machine.peak("bf16"), num_sms(machine), machine.memory_bytes_per_s
    for m, n, k in zip(*column(60, seed=4), strict=True):
        found = timed("h200-sxm", m, n, k)
        tile_n, tile_m, split, waves = (
            float(getattr(found, name)[0]) for name in ("tile_n", "tile_m", "split", "waves")
        )
        per_k = max(
            2 * tile_n * tile_m * sms / (peak * c.tensor_efficiency),
            (tile_n + tile_m) * 2 / c.feed_bytes_per_s,
        )
        compute_s = waves * (k / split * per_k + tile_n * tile_m * 2 / c.epilogue_bytes_per_s)
        spilled = max(0.0, 2 * m * (k + n) - c.l2_keep_bytes)
        memory_s = max(
            (2 * n * k + spilled) / (bandwidth * c.memory_efficiency),
            waves * (tile_n + tile_m) * 2 * k / split / c.sm_stream_bytes_per_s,
        )
        p = c.ridge_sharpness
        join_s = c.split_s + 8 * split * m * n / bandwidth if split > 1 else 0.0
        power_s = 2 * m * n * k / (peak * c.power_efficiency)
        time_s = max(c.launch_s + (compute_s**p + memory_s**p) ** (1 / p) + join_s, power_s)
        written = (compute_s, memory_s, power_s, time_s)
        assert (found.compute_s, found.memory_s, found.power_s, found.time_s) == pytest.approx(written)


def test_a_single_question_loads_no_compiler() -> None:
    code = (
        "import sys\nfrom datahall.catalog import load\nfrom datahall.silicon import time_operators\n"
        "from datahall.workload.forward import forward_pass\n"
        "step = forward_pass(load().model('llama-3.1-8b'), batch=1.0, query=1.0, past=99.0)\n"
        "assert time_operators(load().chip('h200-sxm'), step).total_s > 0\n"
        "assert 'numba' not in sys.modules"
    )
    source = str(Path(gemm.__file__).parents[2])
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": source})


def test_one_column_past_a_full_wave_costs_another_wave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemm, "coarse_tiles", lambda: np.array([[128.0, 128.0]]))
    full, past = (
        timed("h200-sxm", 128, 132 * 128 + extra, 4096, tiles="coarse", memory_efficiency=100.0)
        for extra in (0, 1)
    )
    assert (full.waves[0], past.waves[0]) == (1, 2)
    assert past.compute_s == 2 * full.compute_s
    assert past.time_s > 1.5 * full.time_s


def test_a_part_of_a_tile_costs_a_whole_one() -> None:
    whole, part = timed("h200-sxm", 4096, 8192, 8192), timed("h200-sxm", 4096, 8191, 8192)
    assert whole.compute_s == part.compute_s


def test_the_time_of_a_column_goes_up_and_down_with_the_width() -> None:
    width = np.arange(1024.0, 20_000.0, 64.0)
    per_column = timed("h200-sxm", 2048, width, 4096).time_s / width
    assert np.any(np.diff(per_column) > 0)
    assert per_column[-1] < per_column[0]


@pytest.mark.parametrize(
    ("m", "n", "k", "splits"),
    [(16, 512, 16384, True), (16, 512, 512, False), (16, 65536, 16384, False), (4096, 4096, 16384, False)],
)
def test_k_is_split_where_tiles_are_few_and_the_product_is_deep(m: int, n: int, k: int, splits: bool) -> None:
    assert (timed("h200-sxm", m, n, k).split[0] > 1) == splits


def test_four_bit_weights_are_read_in_a_quarter_of_the_time() -> None:
    wide, narrow = (timed("h200-sxm", 1, 16384, 16384, weight_bytes=size) for size in (2.0, 0.5))
    assert narrow.memory_s / wide.memory_s == pytest.approx(0.25)
    assert narrow.time_s < 0.5 * wide.time_s


def test_activations_cost_bandwidth_only_once_they_outgrow_the_cache() -> None:
    inside, outside = (timed("h200-sxm", 256, 4096, 4096, l2_keep_bytes=keep) for keep in (1e12, 0.0))
    machine = CATALOG.chip("h200-sxm")
    efficiency = calibrate(machine).constants.gemm_for("bf16").memory_efficiency
    rate = machine.memory_bytes_per_s * efficiency
    assert inside.memory_s == pytest.approx(4096 * 4096 * 2 / rate)
    assert outside.memory_s == pytest.approx((4096 * 4096 + 2 * 256 * 4096) * 2 / rate)


def test_shapes_broadcast_like_columns() -> None:
    times = timed("h200-sxm", np.array([[1.0], [64.0]]), np.array([512.0, 1024.0, 2048.0]), 4096)
    assert times.time_s.shape == (2, 3)
    assert times.time_s[1, 2] == timed("h200-sxm", 64, 2048, 4096).time_s[0]


def test_a_hundred_thousand_shapes_have_a_time() -> None:
    times = timed("h200-sxm", *column(100_000))
    for name in FIELDS:
        assert np.all(np.isfinite(getattr(times, name))), name
    assert times.time_s.min() > 0


def test_the_menu_holds_tiles_that_fit_the_registers() -> None:
    tiles = fine_tiles()
    assert np.all(tiles[:, 0] * tiles[:, 1] <= gemm.MAX_ACCUMULATORS)
    assert len({tuple(tile) for tile in tiles}) == len(tiles)
    assert search_tiles.interpreted is gemm._search_tiles
