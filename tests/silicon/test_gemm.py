"""One matrix product: bounds that no constant can break, and the marks that tiles leave on its time."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.catalog import Catalog
from datahall.compiled import Bare
from datahall.silicon import gemm
from datahall.silicon.calibration import calibrate, num_sms
from datahall.silicon.gemm import GemmConstants, GemmTimes, fine_tiles, gemm_times, search_tiles

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
    activation_bytes: float = 2.0,
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
        activation_bytes=activation_bytes,
        output_bytes=2.0,
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
    monkeypatch.setattr(gemm, "search_tiles", Bare(gemm._search_tiles))  # nothing loaded yet
    interpreted = timed(chip, m, n, k)
    for name in FIELDS:
        assert getattr(compiled, name).tobytes() == getattr(interpreted, name).tobytes(), name


WIDTHS = ((2.0, 2.0), (1.0, 1.0), (0.5, 2.0), (1.0, 2.0))  # bytes of a weight and of an activation

# A chip whose numbers can be worked out by hand: 2 multiprocessors, 64 FLOP/s, 32 B/s, a tile of 4 columns × 2 rows.
# At a sharpness of 1 compute and memory simply add up.
TOY = GemmConstants(
    launch_s=1.0, memory_efficiency=0.5, tensor_efficiency=0.5, power_efficiency=0.25, feed_bytes_per_s=8.0,
    epilogue_bytes_per_s=16.0, sm_stream_bytes_per_s=64.0, split_s=5.0, l2_keep_bytes=48.0, ridge_sharpness=1.0,
    choose_stream_bytes_per_s=math.inf, choose_split_s=0.0, choose_tile_s=0.0, tiles="coarse",
)  # fmt: skip
Menu = Callable[..., GemmTimes]


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Menu:
    """Products on the toy chip with a menu of some tiles and some constants of its own."""

    def made(
        m: float,
        n: float,
        k: float,
        *tiles: tuple[float, float],
        num_sms: float = 2.0,
        bandwidth: float = 32.0,
        widths: tuple[float, float] = (2.0, 2.0),
        **constants: float,
    ) -> GemmTimes:
        monkeypatch.setattr(gemm, "coarse_tiles", lambda: np.array(tiles or ((4.0, 2.0),)))
        return gemm_times(
            m, n, k, num_sms=num_sms, peak_flop_per_s=64.0, memory_bytes_per_s=bandwidth,
            constants=msgspec.structs.replace(TOY, **constants), weight_bytes=widths[0], activation_bytes=widths[1],
            output_bytes=2.0,
        )  # fmt: skip

    return made


@pytest.mark.parametrize(
    ("widths", "compute_s", "memory_s"),
    [
        # a step of k: 2·8·2/(64·½) = 1 s of arithmetic, or 6 values fed at 8 B/s; 8 steps, and 16 B drained in 1 s;
        # memory: 32 weights at 32·½ B/s
        ((2.0, 2.0), 8 * 1.5 + 1, 4.0),
        ((1.0, 1.0), 8 * 1.0 + 1, 2.0),
        ((0.5, 2.0), 8 * 1.5 + 1, 1.0),  # weights are widened on the way: the feed is that of activations
        ((1.0, 2.0), 8 * 1.5 + 1, 2.0),
        ((4.0, 2.0), 8 * 3.0 + 1, 8.0),
    ],
)
def test_one_tile_by_hand_at_every_width(
    toy: Menu, widths: tuple[float, float], compute_s: float, memory_s: float
) -> None:
    found = toy(2, 4, 8, widths=widths)
    assert (found.compute_s[0], found.memory_s[0], found.power_s[0]) == (compute_s, memory_s, 8.0)
    assert found.time_s[0] == 1.0 + compute_s + memory_s


@pytest.mark.parametrize(
    ("shape", "constants", "expected"),
    [
        # compute, memory, time; one tile takes 13 s and its weights 4 s
        ((2, 4, 8), {}, (13.0, 4.0, 18.0)),
        (
            (2, 4, 8),
            {"l2_keep_bytes": 16.0},
            (13.0, 6.0, 20.0),
        ),  # 48 B in and out, of which 32 come from memory
        ((2, 4, 8), {"ridge_sharpness": 2.0}, (13.0, 4.0, 1 + math.sqrt(13**2 + 4**2))),
        ((2, 4, 8), {"power_efficiency": 1 / 64}, (13.0, 4.0, 128.0)),  # 128 FLOP at 1 FLOP/s, launch inside
        (
            (2, 4, 8),
            {"sm_stream_bytes_per_s": 8.0},
            (13.0, 12.0, 26.0),
        ),  # 12 B a step into one multiprocessor
        ((2, 5, 8), {}, (13.0, 5.25, 19.25)),  # a fifth column is another tile, on the idle multiprocessor
        ((3, 4, 8), {"l2_keep_bytes": 72.0}, (13.0, 4.0, 18.0)),
        ((2, 9, 8), {}, (26.0, 9.0 + (2 * (16 + 18) - 48) / 16, 37.25)),  # three tiles are two waves
        ((2, 9, 8), {"sm_stream_bytes_per_s": 8.0}, (26.0, 24.0, 51.0)),  # and stream twice
        ((2, 4, 16), {}, (25.0, 8.0 + 32 / 16, 36.0)),
    ],
)
def test_a_product_by_hand(
    toy: Menu, shape: tuple[int, int, int], constants: dict[str, float], expected: tuple[float, float, float]
) -> None:
    found = toy(*shape, **constants)
    assert (found.compute_s[0], found.memory_s[0], found.time_s[0]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("m", "n", "k", "num_sms", "split"),
    [
        (2, 4, 1024, 8.0, 8.0),  # one tile for eight multiprocessors
        (2, 4, 1024, 40.0, 16.0),  # no more than sixteen parts
        (2, 4, 1023, 8.0, 1.0),  # too shallow
        (2, 16, 1024, 8.0, 2.0),
        (2, 12, 1024, 8.0, 2.0),  # three tiles: two parts each, two multiprocessors stay idle
        (2, 17, 1024, 8.0, 1.0),  # five tiles: no two parts for each
        (4, 8, 2048, 8.0, 2.0),
    ],
)
def test_k_is_split_into_as_many_parts_as_idle_multiprocessors_take(
    toy: Menu, m: int, n: int, k: int, num_sms: float, split: float
) -> None:
    found = toy(m, n, k, num_sms=num_sms, bandwidth=1e9, l2_keep_bytes=1e9, power_efficiency=0.5)
    assert (found.split[0], found.waves[0]) == (split, 1.0)
    # a step of k is 2·8·num_sms/32 s of arithmetic or 1.5 s of feed, whichever is longer; 1 s to drain
    assert found.compute_s[0] == pytest.approx(k / split * max(num_sms / 2, 1.5) + 1)
    assert found.time_s[0] == pytest.approx(
        1 + found.compute_s[0] + found.memory_s[0] + 5 * (split > 1), rel=1e-6
    )


def test_the_parts_of_a_split_product_are_written_and_read_again(toy: Menu) -> None:
    """Eight parts of 8 sums in 4 bytes, there and back at 32 B/s: 16 s."""
    found = toy(2, 4, 1024, num_sms=8.0, l2_keep_bytes=1e9)
    core_s = found.compute_s[0] + found.memory_s[0]
    assert found.split[0] == 8
    assert found.memory_s[0] == 4 * 1024 * 2 / 16
    assert found.time_s[0] == 1.0 + core_s + 5.0 + 16.0


def test_a_split_that_costs_more_than_it_saves_is_not_made(toy: Menu) -> None:
    """Halves save 512 steps of 4 s and more; the library believes in what joining them takes."""
    for believed_s, split in ((2000.0, 2.0), (2100.0, 1.0)):
        found = toy(2, 16, 1024, num_sms=8.0, bandwidth=1e9, choose_split_s=believed_s, power_efficiency=0.5)
        assert found.split[0] == split
    slow = toy(2, 16, 1024, num_sms=8.0, bandwidth=0.2, power_efficiency=0.5)  # 512 B at 0.2 B/s
    assert slow.split[0] == 1.0


@pytest.mark.parametrize("widths", WIDTHS)
def test_a_library_that_knew_everything_would_choose_the_fastest_tile(
    toy: Menu, widths: tuple[float, float]
) -> None:
    """Its estimate made equal to the truth: no tile of the menu, tried alone, beats the one it takes."""
    menu = ((64.0, 16.0), (64.0, 64.0), (96.0, 8.0), (128.0, 32.0), (256.0, 128.0))
    truth = {
        "launch_s": 0.0, "power_efficiency": 0.5, "split_s": 3.0, "choose_split_s": 3.0, "memory_efficiency": 1e9,
        "sm_stream_bytes_per_s": math.inf, "feed_bytes_per_s": 100.0, "epilogue_bytes_per_s": 40.0,
    }  # fmt: skip
    splits = set()
    for m, n, k in zip(*column(60, seed=3, largest=12.0), strict=True):
        args = {"num_sms": 12.0, "bandwidth": 1e4, "widths": widths, **truth}
        found = toy(m, n, k, *menu, **args)
        allowed = [tile for tile in menu if tile[1] <= 16 or tile[1] < 2 * m]
        alone = [toy(m, n, k, tile, **args).time_s[0] for tile in allowed]
        assert found.time_s[0] == pytest.approx(min(alone), rel=1e-9)
        splits.add(found.split[0] > 1)
    assert splits == {True, False}


@pytest.mark.parametrize("menu", [((8.0, 4.0), (4.0, 8.0)), ((4.0, 8.0), (8.0, 4.0))])
def test_of_tiles_that_cost_the_same_the_first_of_the_menu_is_taken(
    toy: Menu, menu: tuple[tuple[float, float], ...]
) -> None:
    """Either way round they are as large and feed as much, and 8 × 8 results are two of them."""
    found = toy(8, 8, 64, *menu)
    assert (found.tile_n[0], found.tile_m[0]) == menu[0]


def test_a_split_that_saves_nothing_is_not_made(toy: Menu) -> None:
    """Halves save 512 steps of 4 s, and the library believes that joining them takes as long."""
    for believed_s, split in ((2048.0, 1.0), (2047.0, 2.0)):
        found = toy(
            2, 16, 1024, num_sms=8.0, bandwidth=math.inf, choose_split_s=believed_s, power_efficiency=0.5
        )
        assert found.split[0] == split


def test_a_tile_of_twice_the_rows_is_not_on_offer(toy: Menu) -> None:
    """Though one tall tile would save a wave; the lowest of the menu is always there."""
    menu = ((64.0, 8.0), (64.0, 32.0))
    for rows, chosen in ((16, 8.0), (17, 32.0)):
        found = toy(rows, 64, 512, *menu, num_sms=1.0, choose_tile_s=1e6)
        assert found.tile_m[0] == chosen
    assert toy(1, 64, 512, (64.0, 32.0)).tile_m[0] == 32.0
    assert toy(3, 64, 512, (64.0, 2.0), (64.0, 8.0), num_sms=1.0, choose_tile_s=1e6).tile_m[0] == 8.0


@pytest.mark.parametrize(
    ("constants", "chosen"),
    [
        # 20 columns on one multiprocessor: 3 tiles of 8 or 5 of 4; a wide tile feeds 12 values a step, a narrow one 8
        ({}, 8.0),  # 3 · 64 · 24 s or 5 · 64 · 16 s of feed
        ({"choose_stream_bytes_per_s": 0.1}, 4.0),  # 3 · 64 · 160 s or 5 · 64 · 80 s of weights
        ({"choose_stream_bytes_per_s": 0.1, "choose_tile_s": 1e4}, 8.0),  # and 3 or 5 starts
        (
            {"power_efficiency": 1e-3},
            4.0,
        ),  # 3 · 64 · 1000 s or 5 · 64 · 500 s of arithmetic at the power limit
        ({"tensor_efficiency": 1e-3}, 8.0),  # of the rate inside a tile the library knows nothing
        ({"epilogue_bytes_per_s": 1e-4}, 4.0),  # 3 · 64 or 5 · 32 bytes to drain
    ],
)
def test_the_library_weighs_feeds_streams_starts_and_drains(
    toy: Menu, constants: dict[str, float], chosen: float
) -> None:
    given = {"feed_bytes_per_s": 1.0, **constants}
    assert toy(4, 20, 64, (8.0, 4.0), (4.0, 4.0), num_sms=1.0, **given).tile_n[0] == chosen


@pytest.mark.parametrize("widths", WIDTHS)
@few
@given(chips, sizes, sizes, sizes)
def test_bounds_hold_at_every_width(
    widths: tuple[float, float], chip: str, m: float, n: float, k: float
) -> None:
    machine = CATALOG.chip(chip)
    weights, values = widths
    found = timed(chip, m, n, k, weight_bytes=weights, activation_bytes=values)
    assert found.time_s >= weights * n * k / machine.memory_bytes_per_s
    assert found.time_s >= found.power_s
    wider = timed(chip, m, n, k, weight_bytes=2 * weights, activation_bytes=2 * values)
    if same_tile(found, wider):
        assert found.time_s <= wider.time_s


def test_few_products_wait_for_no_machine_code_and_many_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts is all that was asked so far: then loading machine code is worth its time."""
    ran: list[bool] = []

    class Recorded(Bare[..., None]):
        def __call__(self, *_: object, **__: object) -> None:
            ran.append(True)

    def interpreted(*_: object) -> None:
        ran.append(False)

    monkeypatch.setattr(gemm, "search_tiles", Recorded(interpreted))
    few = gemm.INTERPRET_BELOW // 2
    for _ in range(3):
        timed("h200-sxm", np.arange(1.0, few + 1), 64.0, 64.0)
    assert ran == [False, True, True]


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


@pytest.mark.parametrize(
    ("tile", "there"),
    [
        ((320, 128), True),  # as many accumulators as registers hold
        ((512, 64), True),
        ((384, 96), False),  # wide tiles are low
        ((512, 80), False),
        ((160, 256), True),
        ((192, 192), True),
        ((64, 256), True),
        ((168, 192), False),  # tall ones come in four widths
        ((176, 128), True),
        ((192, 256), False),  # too many accumulators
    ],
)
def test_wide_tiles_are_low_and_tall_ones_narrow(tile: tuple[int, int], there: bool) -> None:
    assert (tile in {tuple(one) for one in fine_tiles().astype(int).tolist()}) == there
