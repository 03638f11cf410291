"""Loads and columns of step times, read as the simulation reads them; chances of prompts in a step."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.inference.closed_form_case import cache_of, linear, replace, small

from datahall.inference.closed_form.steady_state import (
    Load,
    _carried,
    _excess,
    _poisson,
    _Steps,
    most_sequences,
)
from datahall.inference.step.column import (
    at_context,
    decode_times,
    met_times,
    prefill_times,
    step_times,
    token_times,
)
from datahall.inference.step.table import (
    decode_time,
    head_time,
    host_time,
    prefill_time,
    ranks_time,
    tokens_time,
)


@pytest.mark.parametrize(
    ("load", "steps", "longest", "aged", "computed"),
    [
        (Load(prompt=100.0, output=11.0), 10.0, 11.0, 5.5, 100.0),
        (Load(prompt=100.0, output=11.0, tokens_per_step=2.5, cached=40.0), 4.0, 11.0, 5.5, 60.0),
        (
            Load(prompt=100.0, output=1.0, cached=100.0),
            0.5,
            1.0,
            0.5,
            1.0,
        ),  # a token of a prompt is always computed
        (
            Load(prompt=100.0, output=10.0, output_spread=1.0),
            9.0,
            20.0,
            10.0,
            100.0,
        ),  # long ones are met more often
    ],
)
def test_a_load_by_hand(load: Load, steps: float, longest: float, aged: float, computed: float) -> None:
    assert (load.steps, load.longest, load.aged, load.computed) == (steps, longest, aged, computed)


def test_an_answer_met_at_some_moment_is_as_long_as_draws_show() -> None:
    """Lengths 10 and 30: the long ones are there three times as long, so 25 on average, half of it written."""
    output_spread = 10.0 / 20.0
    load = Load(prompt=1.0, output=20.0, output_spread=output_spread)
    assert load.longest == pytest.approx((10 * 10 + 30 * 30) / 40)
    assert load.aged == pytest.approx(12.5)


@pytest.mark.parametrize(
    ("load", "options", "num_blocks", "most", "limit"),
    [
        # a request of 90 + 5.5 tokens holds 6 blocks of 16
        (Load(prompt=90.0, output=11.0), {}, 48, 8.0, "cache"),
        (
            Load(prompt=90.0, output=11.0),
            {"whole_output_blocks": True},
            56,
            8.0,
            "cache",
        ),  # 101 tokens: 7 blocks
        (Load(prompt=9.0, output=100.0), {}, 10_000, 16.0, "sequences"),
        # each sequence brings a token into a step and starts a tenth of a prompt of 90
        (Load(prompt=90.0, output=11.0), {}, 10_000, 10.0, "budget"),
        (Load(prompt=90.0, output=11.0, cached=50.0), {"token_budget": 50}, 10_000, 10.0, "budget"),
        (
            Load(prompt=90.0, output=11.0, verified=4.0, tokens_per_step=2.0),
            {},
            10_000,
            100 / (4 + 18),
            "budget",
        ),
        (Load(prompt=90.0, output=11.0, verified=10.0), {"mixed_steps": False}, 10_000, 10.0, "budget"),
    ],
)
def test_what_ends_the_curve_by_hand(
    load: Load, options: dict[str, object], num_blocks: int, most: float, limit: str
) -> None:
    assert most_sequences(small(**options), load, cache_of(num_blocks)) == (pytest.approx(most), limit)
    staged = replace(small(**options), pp=2)
    found = most_sequences(staged, load, cache_of(num_blocks))[0]
    assert found == pytest.approx(
        most if limit == "cache" else min(2 * most, 48.0 if num_blocks == 48 else 2 * most)
    )


MANY = linear(
    token_s=0.5, decode_s=0.25, prefill_s=0.125, past_s=0.01, head_s=2.0, host=(4.0, 8.0), met_s=0.25
)


@given(
    st.integers(1, 3000),
    st.integers(0, 128),
    st.floats(0.0, 3000.0),
    st.integers(1, 900),
    st.integers(0, 900),
)
def test_a_column_reads_what_the_simulation_reads(
    tokens: int, decodes: int, context: float, chunk: int, past: int
) -> None:
    as_column = [np.array([float(one)]) for one in (tokens, decodes, chunk, past)]
    assert token_times(MANY, as_column[0])[0] == pytest.approx(tokens_time(MANY, tokens))
    assert decode_times(MANY, as_column[1], context)[0] == pytest.approx(
        decode_time(MANY, decodes, context), abs=1e-9
    )
    assert prefill_times(MANY, as_column[2], as_column[3])[0] == pytest.approx(
        prefill_time(MANY, chunk, past)
    )
    assert met_times(MANY, as_column[0])[0] == pytest.approx(0.25 * min(tokens, 1024))
    whole = step_times(MANY, as_column[0], as_column[1], context, np.array([7.0]), as_column[1])[0]
    parts = tokens_time(MANY, tokens) + decode_time(MANY, decodes, context) + 7.0
    assert whole == pytest.approx(parts + head_time(MANY, decodes) + host_time(MANY, decodes))


def test_ranks_wait_for_the_fullest_and_experts_see_the_mean() -> None:
    """Of ½ s for each of 100 tokens on the fullest, ¼ is the experts', who see 40 on average."""
    assert ranks_time(MANY, 100, 100) == tokens_time(MANY, 100) == 51.0
    assert ranks_time(MANY, 100, 40) == pytest.approx(51.0 - 25.0 + 10.0)
    assert ranks_time(MANY, 2000, 1500) == pytest.approx(tokens_time(MANY, 2000))  # both past the table
    alone = MANY._replace(met_s=np.zeros(1))
    assert ranks_time(alone, 100, 40) == 51.0


def test_no_decodes_and_tokens_between_whole_ones() -> None:
    assert decode_times(MANY, np.array([0.0, 1.5]), 10.0).tolist() == pytest.approx([0.0, 1.5 * 0.25 * 10])
    assert token_times(MANY, np.array([0.5, 1.0, 2.5, 1024.5])).tolist() == pytest.approx(
        [1.5, 1.5, 2.25, 513.25]
    )


@pytest.mark.parametrize("mean", [0.01, 0.7, 3.0, 6.0])
def test_chances_are_those_of_poisson_with_the_rest_at_the_end(mean: float) -> None:
    count = np.arange(9.0)
    (found,) = _poisson(np.array([mean]), count)
    expected = stats.poisson.pmf(count, mean)
    expected[-1] = stats.poisson.sf(7, mean)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)
    assert _poisson(np.array([0.0]), count)[0].tolist() == pytest.approx([1.0] + [0.0] * 8, abs=1e-9)


def test_steps_that_carry_prompts_are_a_share_of_all_steps() -> None:
    """Prompts of one step each: the share of steps with j of them is Poisson."""
    started, ones = np.array([0.3, 1.5]), np.ones((2, 9))
    np.testing.assert_allclose(
        _carried(started, _Steps(ones, ones)), _poisson(started, np.arange(9.0)), rtol=1e-9
    )


def test_prompts_of_several_steps_fill_as_many() -> None:
    """Half a prompt a step, three steps each whatever their number: 0 or some of them in ¾ and more of the steps.

    With m that come together, m = ½ · E[steps], and steps are 1 without and 3 with prompts.
    """
    pieces = np.where(np.arange(9.0) > 0, 3.0, 1.0)[None, :]
    (share,) = _carried(np.array([0.5]), _Steps(np.ones((1, 9)), pieces))
    together = 0.5
    for _ in range(200):
        together = 0.5 * (math.exp(-together) + 3 * (1 - math.exp(-together)))
    none = math.exp(-together) / (math.exp(-together) + 3 * (1 - math.exp(-together)))
    assert share[0] == pytest.approx(none, rel=1e-3)
    assert share.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("percentile", [0.6, 0.9, 0.99])
def test_what_a_percentile_sees_beyond_the_mean(percentile: float) -> None:
    """Answers of one length: a normal quantile of drift and of the mean of so many steps, to the logistic's error."""
    load = Load(prompt=1.0, output=26.0)
    found = _excess(np.array([0.3, 0.0]), np.array([0.0, 4.0]), load, percentile)
    z = stats.norm.ppf(percentile)
    assert found == pytest.approx([0.3 * z, z * math.sqrt(4.0 / 25)], rel=0.17)
    both = _excess(np.array([0.3]), np.array([4.0]), load, percentile)[0]
    assert both == pytest.approx(math.hypot(*found), rel=1e-3)


def test_a_spread_of_answers_widens_the_tail() -> None:
    """Against draws: lognormal numbers of steps, each the mean of normal steps."""
    load = Load(prompt=1.0, output=41.0, output_spread=1.0)
    draw = np.random.default_rng(1)
    sigma = math.sqrt(math.log(2.0))
    steps = np.maximum(1.0, 40.0 * np.exp(sigma * draw.standard_normal(400_000) - sigma**2 / 2))
    seen = draw.standard_normal(400_000) * np.sqrt(4.0 / steps)
    found = _excess(np.array([0.0]), np.array([4.0]), load, 0.95)[0]
    assert found == pytest.approx(np.quantile(seen, 0.95), rel=0.08)


AXIS = 2.0 ** (np.arange(40) / 4) - 1.0


@given(
    st.integers(0, 1000),
    st.one_of(st.floats(-10.0, 2.0**11), st.sampled_from([float(point) for point in AXIS])),
)
def test_rows_at_one_context_are_read_as_one_row_is(seed: int, context: float) -> None:
    times = np.random.default_rng(seed).random((5, AXIS.size))
    one_by_one = [np.interp(context, AXIS, row) for row in times]
    np.testing.assert_array_max_ulp(at_context(times, context), np.array(one_by_one), maxulp=1)
