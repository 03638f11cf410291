"""Random numbers are those of the published generator, of the named distribution, and the same everywhere."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from datahall.compiled import Kernel
from datahall.events import exponential, integer_below, lognormal, new_dice, normal, stream, uniform
from datahall.events.draws import normal_quantile
from datahall.events.logarithm import exp, log
from datahall.events.philox import philox
from datahall.events.streams import Dice, unit_number

NUM_DRAWS = 20_000


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [  # the known answers that Random123 ships for philox4x32, 10 rounds
        ((0, 0, 0, 0), 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((2**32 - 1,) * 4, 2**64 - 1, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            0x299F31D0A4093822,
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_published_answers(
    counter: tuple[int, ...], key: int, words: tuple[int, ...]
) -> None:
    assert tuple(map(int, philox(*map(np.uint64, counter), np.uint64(key)))) == words  # type: ignore[call-arg]


def test_a_uniform_number_is_never_0_and_never_1() -> None:
    nothing, everything = np.uint64(0), np.uint64(2**32 - 1)
    assert unit_number(nothing, nothing) == 2.0**-53
    assert unit_number(everything, everything) == 1.0 - 2.0**-53


def test_first_draws_never_change() -> None:
    dice = new_dice(1, "golden")
    drawn = [uniform(dice), exponential(dice, 3.0), normal(dice, 5.0, 2.0), lognormal(dice, 10.0, 0.5)]
    assert [value.hex() for value in drawn] == [
        "0x1.a59032cd22e28p-4",
        "0x1.04bea91afa4a4p+1",
        "0x1.a3a72db5ed3b2p+2",
        "0x1.c5196b0e25f21p+3",
    ]


def _draw(dice: Dice, out: NDArray[np.float64]) -> None:
    for row in range(out.shape[0]):
        lane = row % dice.num_drawn.size
        out[row, 0] = uniform(dice, lane)
        out[row, 1] = exponential(dice, 2.0, lane)
        out[row, 2] = normal(dice, 1.0, 3.0, lane)
        out[row, 3] = lognormal(dice, 5.0, 0.7, lane)
        out[row, 4] = integer_below(dice, 10, lane)


draw = Kernel(_draw)


def _drawn(num_rows: int, num_lanes: int = 7) -> NDArray[np.float64]:
    out = np.zeros((num_rows, 5))
    draw(new_dice(3, "draws", num_lanes=num_lanes), out)
    return out


def test_compiled_draws_equal_interpreted_ones_to_the_bit() -> None:
    plain = np.zeros((2000, 5))
    draw.interpreted(new_dice(3, "draws", num_lanes=7), plain)
    assert plain.tobytes() == _drawn(2000).tobytes()


def test_draws_follow_their_distributions() -> None:
    """Kolmogorov's distance stays under its 0.1 % point."""
    unit, waits, bell, skewed, whole = _drawn(NUM_DRAWS).T
    for probabilities in (
        unit,
        1.0 - np.exp(-waits / 2.0),
        np.array([NormalDist(1.0, 3.0).cdf(value) for value in bell]),
        np.array([NormalDist(math.log(5.0), 0.7).cdf(math.log(value)) for value in skewed]),
    ):
        steps = np.arange(1, NUM_DRAWS + 1) / NUM_DRAWS
        assert np.abs(np.sort(probabilities) - steps).max() < 1.95 / math.sqrt(NUM_DRAWS)
    assert set(whole) == set(range(10))
    assert np.bincount(whole.astype(int)).min() > 0.9 * NUM_DRAWS / 10


def test_lanes_do_not_disturb_each_other() -> None:
    alone, busy = new_dice(1, "x", num_lanes=3), new_dice(1, "x", num_lanes=3)
    for _ in range(10):
        uniform(busy, 0)
    assert [uniform(busy, 2) for _ in range(5)] == [uniform(alone, 2) for _ in range(5)]
    assert uniform(alone, 1) != uniform(new_dice(1, "x", num_lanes=3), 2)


def test_lanes_and_neighbours_are_uncorrelated() -> None:
    out = _drawn(NUM_DRAWS, num_lanes=NUM_DRAWS)[:, 0]
    assert abs(np.corrcoef(out[:-1], out[1:])[0, 1]) < 4 / math.sqrt(NUM_DRAWS)


def test_names_and_seeds_make_different_streams() -> None:
    names: list[tuple[str | int, ...]] = [(), ("a",), ("b",), ("a", "b"), ("ab",), (1,), ("1",)]
    keys = [(seed, name) for seed in (-1, 1, 2) for name in names]
    assert len({stream(seed, *name).random() for seed, name in keys}) == len(keys)
    assert len({int(new_dice(seed, *name).key) for seed, name in keys}) == len(keys)


def test_a_numpy_stream_never_changes() -> None:
    assert stream(1, "arrivals", 3).random().hex() == "0x1.519de3d69e2cep-2"


@given(st.floats(5e-324, 1e308, exclude_min=True))
def test_log_is_within_two_units_in_the_last_place(value: float) -> None:
    assert abs(log(value) - math.log(value)) <= 2.0 * math.ulp(math.log(value))


@given(st.floats(-700.0, 700.0))
def test_exp_is_within_two_units_in_the_last_place(value: float) -> None:
    assert abs(exp(value) - math.exp(value)) <= 2.0 * math.ulp(math.exp(value))


@given(st.floats(1e-300, 1.0, exclude_max=True))
def test_normal_quantile_equals_the_standard_library(probability: float) -> None:
    assert normal_quantile(probability) == pytest.approx(
        NormalDist().inv_cdf(probability), rel=1e-14, abs=1e-15
    )


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_log_refuses_what_has_none(value: float) -> None:
    with pytest.raises(ValueError, match="positive finite"):
        log(value)


@pytest.mark.parametrize("value", [701.0, -701.0, math.nan])
def test_exp_refuses_what_would_overflow(value: float) -> None:
    with pytest.raises(ValueError, match="between -700 and 700"):
        exp(value)
