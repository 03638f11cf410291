"""A table of steps is read between its points and never runs out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.compiled import Kernel
from datahall.inference.step.column import joined_times
from datahall.inference.step.table import (
    GRID_PER_OCTAVE,
    StepTable,
    decode_step_time,
    decode_time,
    grid_place,
    grid_point,
    head_time,
    host_time,
    joined_time,
    prefill_time,
    tokens_time,
)

SIZE = 48


def grid(size: int = SIZE) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return 2.0 ** (np.arange(size) / GRID_PER_OCTAVE) - 1.0


def linear(num_verified: int = 1) -> StepTable:
    """Every time grows in proportion, so reading between points is exact."""
    n, c = np.arange(33.0), grid()
    return StepTable(
        tokens_s=2.0 * np.arange(257.0),
        head_s=0.5 * n,
        decode_s=np.outer(n, c),
        prefill_s=np.outer(c, 1.0 + c),
        host=np.array([3.0, 0.25]),
        num_verified=num_verified,
    )


@given(st.floats(0, 2000))
def test_a_place_on_the_axis_lies_between_its_points(tokens: float) -> None:
    point, share = grid_place(tokens, SIZE)
    low, high = grid()[point], grid()[point + 1]
    assert -1e-6 <= share <= 1 + 1e-6
    assert low + share * (high - low) == pytest.approx(tokens, abs=1e-6)


@given(st.integers(0, 32), st.floats(0, 3000))
def test_decodes_are_read_by_their_mean_context(num: int, context: float) -> None:
    assert decode_time(linear(), num, context) == pytest.approx(num * context, rel=1e-6, abs=1e-6)


@given(st.floats(0.001, 3000), st.floats(0, 3000))
def test_a_chunk_is_read_after_its_past(chunk: float, past: float) -> None:
    assert prefill_time(linear(), chunk, past) == pytest.approx(chunk * (1 + past), rel=1e-6)


def test_past_its_end_the_table_goes_on_with_its_last_slope() -> None:
    assert tokens_time(linear(), 1000) == pytest.approx(2000.0)
    assert decode_time(linear(), 1, 1e6) == pytest.approx(1e6)
    assert head_time(linear(), 99) == head_time(linear(), 32)


def test_nothing_costs_nothing() -> None:
    assert (
        decode_time(linear(), 0, 500.0) == prefill_time(linear(), 0, 500.0) == tokens_time(linear(), 0) == 0.0
    )


@pytest.mark.parametrize("num_verified", [1, 4])
def test_a_decode_step_brings_in_every_verified_token(num_verified: int) -> None:
    table = linear(num_verified)
    expected = 2.0 * 10 * num_verified + 10 * 7.0 + 5.0 + host_time(table, 10)
    assert decode_step_time(table, 10, 7.0) == pytest.approx(expected)


def test_the_compiled_reader_reads_the_same() -> None:
    table = linear(2)
    assert Kernel(read_all)(table) == pytest.approx(read_all(table))


def read_all(table: StepTable) -> float:
    return decode_step_time(table, 9, 33.0) + prefill_time(table, 17.0, 5.0)


@given(st.integers(1, 32), st.floats(0, 3000), st.integers(1, 2048))
def test_decodes_beside_a_chunk_pay_for_it(num: int, context: float, chunk: int) -> None:
    plain = linear()
    joined = plain._replace(joined_s=2.0 * plain.decode_s, empty_s=np.array([0.125]))
    assert joined_time(plain, num, context, chunk) == decode_time(plain, num, context)
    found = joined_time(joined, num, context, chunk)
    assert found == pytest.approx(num * (2.0 * context + 0.125 * chunk), rel=1e-6)
    column = joined_times(joined, np.array([float(num)]), context, np.array([float(chunk)]))
    assert column[0] == pytest.approx(found, rel=1e-6)


def test_points_of_an_axis_are_powers_of_two_less_one() -> None:
    points = np.arange(120)
    found = [grid_point(point) for point in points.tolist()]
    assert found == pytest.approx((2.0 ** (points / GRID_PER_OCTAVE) - 1.0).tolist(), rel=1e-15)
    assert found[::GRID_PER_OCTAVE] == [2.0**octave - 1.0 for octave in range(30)]
