"""The closed form on tables whose steps are round numbers, against formulas of queueing and counting by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.inference.serving_case import replica as case

from datahall.breakdown import Breakdown, fitted, total
from datahall.errors import InfeasibleError
from datahall.inference.closed_form import capacity, techniques
from datahall.inference.closed_form.bottleneck import mean_step, resource_shares
from datahall.inference.closed_form.capacity import held, num_replicas
from datahall.inference.closed_form.steady_state import (
    Curve,
    Load,
    State,
    _carried,
    _excess,
    _first_tokens,
    _inverse,
    _place_wait,
    _poisson,
    _Steps,
    _steps,
    at_concurrency,
    at_rate,
    curve,
    most_sequences,
)
from datahall.inference.engine.replica import Replica, Speculation
from datahall.inference.memory.kv_capacity import KvCapacity, kv_capacity
from datahall.inference.step.column import decode_times, met_times, prefill_times, step_times, token_times
from datahall.inference.step.price import StepPrice
from datahall.inference.step.table import (
    GRID_PER_OCTAVE,
    StepTable,
    decode_time,
    head_time,
    host_time,
    prefill_time,
    ranks_time,
    tokens_time,
)
from datahall.scenario.sections.promise import NO_LIMITS, Promise

replace = msgspec.structs.replace
AXIS = 2.0 ** (np.arange(60) / GRID_PER_OCTAVE) - 1.0


def limits(**said: float) -> Promise:
    """Latency limits of which only some are set."""
    return replace(NO_LIMITS, **said)


def linear(
    *,
    step_s: float = 1.0,
    token_s: float = 0.0,
    decode_s: float = 0.0,
    prefill_s: float = 0.0,
    past_s: float = 0.0,
    head_s: float = 0.0,
    host: tuple[float, float] = (0.0, 0.0),
    met_s: float = 0.0,
) -> StepTable:
    """Steps whose parts grow in proportion."""
    tokens, rows = np.arange(1025.0), np.arange(129.0)
    return StepTable(
        tokens_s=np.where(tokens > 0, step_s + token_s * tokens, 0.0),
        head_s=head_s * rows,
        decode_s=decode_s * np.outer(rows, AXIS),
        prefill_s=np.outer(AXIS, prefill_s + past_s * AXIS),
        host=np.array(host),
        met_s=met_s * tokens,
    )


def small(**options: object) -> Replica:
    return case(**{"token_budget": 100, "max_sequences": 16, **options})


def cache_of(num_blocks: int) -> KvCapacity:
    return replace(kv_capacity(case()), num_blocks=num_blocks)


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


def steps_by_hand(table: StepTable, one: Replica, load: Load, decodes: list[float]) -> _Steps:
    return _steps(table, one, load, np.array(decodes), np.arange(4.0))


def test_a_step_with_prompts_by_hand() -> None:
    """10 decodes and prompts of 30 after 20: a second, ½ s a token, ¼ s a decode and context token, rows and host."""
    made = linear(token_s=0.5, decode_s=0.25, prefill_s=0.125, past_s=0.01, head_s=2.0, host=(4.0, 8.0))
    load = Load(prompt=50.0, output=21.0, cached=20.0)
    found = steps_by_hand(made, small(), load, [10.0])

    def step(prompts: int) -> float:
        attention_s = prompts * float(prefill_times(made, np.array([30.0]), np.array([20.0]))[0])
        rows = 10 + prompts
        return 1 + 0.5 * (10 + 30 * prompts) + 0.25 * 10 * 60.5 + attention_s + 2 * rows + 4 + 8 * rows

    assert found.step_s[0, :4].tolist() == pytest.approx([step(0), step(1), step(2), step(3)])
    assert found.whole_s[0].tolist() == found.step_s[0].tolist()  # 90 tokens beside 10 decodes: one step


def test_prompts_past_the_budget_take_several_steps() -> None:
    """40 decodes leave 60 of 100 tokens: prompts of 50 are 1, 2 and 3 steps; of 150, 3 each."""
    made = linear(token_s=0.5)
    short = steps_by_hand(made, small(max_sequences=64), Load(prompt=50.0, output=21.0), [40.0])
    assert (short.whole_s / short.step_s)[0].tolist() == pytest.approx([1.0, 1.0, 2.0, 3.0])
    assert short.step_s[0].tolist() == pytest.approx([21.0, 46.0, 46.0, 46.0])
    long = steps_by_hand(made, small(max_sequences=64), Load(prompt=150.0, output=21.0), [40.0])
    assert (long.whole_s / long.step_s)[0].tolist() == pytest.approx([1.0, 3.0, 5.0, 8.0])
    assert long.step_s[0, 1] == pytest.approx(1 + 0.5 * 90)
    many = steps_by_hand(made, small(max_sequences=64), Load(prompt=50.0, output=21.0, verified=2.0), [40.0])
    assert (many.whole_s / many.step_s)[0].tolist() == pytest.approx([1.0, 3.0, 5.0, 8.0])


def test_later_pieces_of_a_prompt_attend_to_earlier_ones() -> None:
    """A prompt of 200 in two pieces of 100, the second after 100: 50 tokens before each on average."""
    made = linear(step_s=0.0, past_s=1.0)
    found = steps_by_hand(made, small(), Load(prompt=200.0, output=21.0), [0.0])
    assert found.whole_s[0, 1] == pytest.approx(100 * 0 + 100 * 100, rel=0.02)


def test_prompts_with_steps_of_their_own_add_the_decode_that_waits() -> None:
    made = linear(token_s=0.5)
    found = steps_by_hand(made, small(mixed_steps=False), Load(prompt=50.0, output=21.0), [10.0])
    # decodes: 1 + 5 s; prompts: 1 + 25 or 1 + 50 s, then the decodes
    assert found.step_s[0, :3].tolist() == pytest.approx([6.0, 32.0, 57.0])


def test_ranks_share_prompts_and_meet_at_experts() -> None:
    """Two ranks: one prompt of 40 is on one of them, while the experts see 20 on average."""
    made = linear(token_s=0.5, met_s=0.25)
    two = replace(small(), dp=2)
    found = _steps(made, two, Load(prompt=40.0, output=21.0), np.array([10.0]), np.arange(5.0))
    own = [1 + 0.5 * 10, 1 + 0.5 * 50, 1 + 0.5 * 50, 1 + 0.5 * 90, 1 + 0.5 * 90]
    spared = [0.0, 0.25 * 20, 0.0, 0.25 * 20, 0.0]
    assert found.step_s[0].tolist() == pytest.approx(np.subtract(own, spared).tolist())


def curved(
    table: StepTable, load: Load, *, num_blocks: int = 10_000, percentile: float = 0.95, **options: object
) -> Curve:
    return curve(table, small(**options), load, cache_of(num_blocks), percentile=percentile)


def test_a_lone_request_meets_an_idle_replica() -> None:
    """Its first token takes the step of its prompt, every other the step of one decode."""
    load = Load(prompt=50.0, output=21.0)
    found = at_rate(curved(linear(token_s=0.02), load), 1e-4)
    assert found.ttft_s == pytest.approx(1 + 0.02 * 50, rel=0.01)
    assert found.tpot_s == pytest.approx(1.02, rel=0.01)


def test_steps_that_do_not_grow_serve_in_proportion() -> None:
    """One second whatever is in it: n sequences of 20 steps are n/20 requests a second, and n is Poisson."""
    load = Load(prompt=5.0, output=21.0)
    found = curved(linear(), load)
    np.testing.assert_allclose(found.step_s, 1.0, rtol=1e-9)
    inner = (found.decoding > 0.2) & (found.decoding < 6.0)
    np.testing.assert_allclose(found.rate_per_s[inner], found.decoding[inner] / 20.0, rtol=0.012)
    np.testing.assert_allclose(found.tpot_s, 1.0, rtol=1e-6)
    assert found.most_per_s == pytest.approx(found.most / 20.0)
    # n keeps away from its limit of 16 while n + 1.645 √n does
    edge = found.decoding[found.within].max()
    assert edge + 1.645 * math.sqrt(edge) <= 16.0 + 1e-6
    later = found.decoding[~found.within].min()
    assert later + 1.645 * math.sqrt(later) > 16.0


@pytest.mark.parametrize("percentile", [0.7, 0.95])
def test_steps_that_grow_with_the_sequences_by_analysis(percentile: float) -> None:
    """Steps of 1 + n/10 s and answers of 1,000 steps, so that prompts hardly count.

    X = n / (1000 (1 + n/10)), so σ² = X / X′ = n (1 + n/10), and n forgets itself in 1 + n/10 of the 1,000 steps.
    """
    load = Load(prompt=1.0, output=1001.0)
    found = curved(linear(token_s=0.1), load, percentile=percentile, max_sequences=64)
    inner = (found.decoding > 2.0) & (found.decoding < 12.0)
    n = found.decoding[inner]
    step_s = 1 + 0.1 * n
    np.testing.assert_allclose(found.step_s[inner], step_s, rtol=0.01)
    sigma = np.sqrt(n * step_s)
    # the mean over a stay of a process that forgets itself in m stays: 2 m (1 − m (1 − e^(−1/m)))
    seen = np.sqrt(2 * step_s * (1 - step_s * (1 - np.exp(-1 / step_s))))
    above = 0.1 * sigma * seen * math.log(percentile / (1 - percentile)) / 1.702
    np.testing.assert_allclose(found.tpot_high_s[inner], step_s + above, rtol=0.02)
    quantile = stats.norm.ppf(percentile)
    every = found.decoding >= 1.0
    reach = found.decoding + quantile * np.sqrt(found.decoding * (1 + 0.1 * found.decoding))
    clear = every & (np.abs(reach - 64.0) > 1.5)
    assert np.array_equal(found.within[clear], reach[clear] <= 64.0)


def test_two_tokens_a_step_halve_the_time_of_each() -> None:
    one, two = (
        curved(linear(), Load(prompt=5.0, output=21.0, tokens_per_step=kept, verified=3.0))
        for kept in (1.0, 2.0)
    )
    np.testing.assert_allclose(two.tpot_s, one.tpot_s / 2)
    assert two.most_per_s == pytest.approx(two.most / 10.0)


def test_first_tokens_wait_for_the_rest_of_a_step() -> None:
    """Steps of a second met at any moment: half a second and the next step, where few are idle."""
    load = Load(prompt=5.0, output=21.0)
    found = curved(linear(), load, token_budget=1000)
    busy = np.argmin(np.abs(found.decoding - 8.0))
    assert found.ttft_s[busy] == pytest.approx(1.5, rel=0.02)
    assert found.ttft_high_s[busy] == pytest.approx(2.0, abs=0.15)
    alone = np.argmin(np.abs(found.decoding - 0.1))
    chance = math.exp(-found.decoding[alone])
    assert found.ttft_s[alone] == pytest.approx(chance * 1.0 + (1 - chance) * 1.5, rel=0.02)


def test_uneven_prompts_are_waited_for_longer() -> None:
    even, uneven = (
        curved(linear(token_s=0.05), Load(prompt=20.0, output=21.0, spread=spread)) for spread in (0.0, 1.0)
    )
    assert np.all(uneven.ttft_s > even.ttft_s)
    assert np.all(uneven.ttft_high_s >= even.ttft_high_s)
    assert np.all(uneven.tpot_high_s >= even.tpot_high_s)
    np.testing.assert_allclose(uneven.tpot_s, even.tpot_s)
    # the step met holds, on average, started · (spread · 1 s)² / 2 of a step of longer prompts
    place = np.argmin(np.abs(even.decoding - 4.0))
    started = even.decoding[place] / 20.0
    assert uneven.ttft_s[place] - even.ttft_s[place] >= started / (2 * even.step_s[place]) * (1 - 1e-9)


def test_a_budget_that_is_nearly_full_makes_prompts_queue() -> None:
    near, far = (
        curved(linear(), Load(prompt=50.0, output=21.0), token_budget=budget) for budget in (70, 1000)
    )
    assert near.ttft_s[-1] > 1.5 * far.ttft_s[-1]


@pytest.mark.parametrize(
    ("options", "computed", "started", "queue_s"),
    [
        # 20 decodes leave 80 of 100 tokens, of which two prompts of 20 take half: half of a full step of five prompts,
        # a quarter of which is a prompt's
        ({}, 20.0, 2.0, 0.5 / 0.5 / 2 * 0.25 * 6.0),
        ({}, 20.0, 3.0, 0.75 / 0.25 / 2 * 0.25 * 6.0),
        (
            {"mixed_steps": False},
            20.0,
            2.0,
            0.4 / 0.6 / 2 * 0.2 * 6.0,
        ),  # prompts have the budget to themselves
        ({}, 8.0, 5.0, 0.5 / 0.5 / 2 * 0.1 * 9.0),  # no more than eight prompts are told apart
        ({}, 160.0, 0.25, 0.5 / 0.5 / 2 * 2.0 * 2.0),  # longer than the budget: one at a time
    ],
)
def test_the_queue_of_prompts_is_pollaczeks(
    options: dict[str, object], computed: float, started: float, queue_s: float
) -> None:
    """Lengths that vary as much as their mean double the wait; steps take a second, and one more for each prompt."""
    step_s = np.array([1.0 + np.arange(9.0)])
    steps, n, begun = _Steps(step_s, step_s), np.array([20.0]), np.array([started])
    even, uneven = (
        _first_tokens(
            small(**options), Load(prompt=computed, output=11.0, spread=spread), n, begun, steps, 0.9
        )
        for spread in (0.0, 1.0)
    )
    assert uneven[0] - even[0] == pytest.approx(queue_s)
    assert uneven[1] - even[1] == pytest.approx(math.log(10.0) * queue_s)
    two = _first_tokens(
        replace(small(**options), dp=2), Load(prompt=computed, output=11.0), n, 2 * begun, steps, 0.9
    )
    alone = _first_tokens(small(**options), Load(prompt=computed, output=11.0), n, 2 * begun, steps, 0.9)
    assert two[0] < alone[0]  # half of the prompts on each rank


def test_a_first_token_by_hand() -> None:
    """Steps of 1 s without and 3 s with prompts, half of all steps; none is idle.

    A step with prompts is met three times out of four: half of 3 s or of 1 s is left, then 3 s of one's own.
    """
    step_s = np.array([[1.0, 3.0, 3.0, 3.0]])
    started = np.array([math.log(2.0)])
    load = Load(prompt=1.0, output=11.0)
    big = small(token_budget=10**9)
    mean_s, high_s = _first_tokens(big, load, np.array([1e3]), started, _Steps(step_s, step_s), 0.9)
    assert mean_s[0] == pytest.approx(0.75 * 1.5 + 0.25 * 0.5 + 3.0, rel=1e-3)
    assert high_s[0] == pytest.approx(3.0 + 3.0 * 11 / 12, rel=1e-3)  # the latest sixth of a long step
    idle_s, _ = _first_tokens(big, load, np.array([1e-9]), started, _Steps(step_s, 2 * step_s), 0.9)
    assert idle_s[0] == pytest.approx(6.0, rel=1e-3)  # all the steps of a prompt alone
    delayed = replace(big, engine=replace(big.engine, first_token_s=0.5))
    later = _first_tokens(delayed, load, np.array([1e3]), started, _Steps(step_s, step_s), 0.9)
    assert later[0] - mean_s == pytest.approx(0.5)
    assert later[1] - high_s == pytest.approx(0.5)


def flat(most: float = 4.0, rate: float = 2.0) -> Curve:
    """Up to `most` sequences in proportion to the rate, steps of a second."""
    n = np.linspace(0.1, most, 40)
    ones = np.ones_like(n)
    return Curve(
        decoding=n, step_s=ones, tpot_s=ones, tpot_high_s=2 * ones, ttft_s=3 * ones, ttft_high_s=5 * ones,
        rate_per_s=rate * n / most, within=n < 0.75 * most, limit="sequences", percentile=0.9, most=most,
        most_per_s=rate,
    )  # fmt: skip


def erlang_wait(places: int, offered: float, rate: float) -> float:
    """Mean wait in M/M/c, by the sum over states."""
    terms = [offered**k / math.factorial(k) for k in range(places)]
    last = offered**places / math.factorial(places) * places / (places - offered)
    return last / (sum(terms) + last) * (offered / rate) / (places - offered)


@pytest.mark.parametrize("use", [0.31, 0.5, 0.8, 0.95])
def test_the_wait_for_a_place_is_erlangs(use: float) -> None:
    found, rate = flat(), 2.0 * use
    wait_s = erlang_wait(4, 4.0 * use, rate)
    assert _place_wait(found, 4.0 * use, rate) == pytest.approx(wait_s, rel=1e-6)
    state = at_rate(found, rate)
    assert state.decoding == pytest.approx(4.0 * use)
    assert state.ttft_s == pytest.approx(3.0 + wait_s, rel=1e-6)
    assert state.ttft_high_s == pytest.approx(5.0 + math.log(10.0) * wait_s, rel=1e-6)
    assert (state.tpot_s, state.tpot_high_s) == pytest.approx((1.0, 2.0))
    assert state.within == (use < 0.75)
    assert state.near_saturation == (use > 0.9)
    assert state.use == pytest.approx(use)


def test_few_sequences_wait_for_no_place_and_all_places_taken_wait_long() -> None:
    assert _place_wait(flat(), 1.19, 1.0) == 0.0
    assert _place_wait(flat(), 1.21, 1.0) > 0.0
    assert _place_wait(flat(most=0.9), 0.8, 1.0) == 0.0
    assert _place_wait(flat(), 4.0, 2.0) == pytest.approx(4.0 / 2.0 / 1e-3)


def test_beyond_the_greatest_rate_nothing_holds() -> None:
    for rate in (2.0, 3.0):
        state = at_rate(flat(), rate)
        assert (state.stable, state.within, state.rate_per_s) == (False, False, 2.0)
        assert math.isinf(state.ttft_s)
        assert (state.use, state.decoding) == (rate / 2.0, 4.0)
    assert at_rate(flat(), 1.999).stable
    assert at_rate(replace(flat(), most_per_s=0.0), 1.0).use == math.inf


def test_users_are_in_the_system_or_thinking() -> None:
    """n of 4 sequences are n/2 requests a second; each stays 3 s and 10 steps, then thinks for 7 s: 10 n users."""
    load = Load(prompt=10.0, output=11.0)
    state = at_concurrency(flat(), 20.0, load, think_s=7.0)
    assert state.decoding == pytest.approx(2.0)
    assert state.rate_per_s == pytest.approx(1.0)
    assert state.ttft_s == pytest.approx(3.0)
    crowd = at_concurrency(flat(), 60.0, load, think_s=7.0)
    assert crowd.rate_per_s == pytest.approx(2.0)
    assert crowd.ttft_s == pytest.approx(3.0 + 20.0 / 2.0)  # twenty of them wait at two a second
    assert crowd.use == pytest.approx(1.0)


@given(st.lists(st.floats(0.01, 5.0), min_size=2, max_size=12), st.floats(0.0, 1.0))
def test_a_rising_column_is_read_backwards(increments: list[float], share: float) -> None:
    column = np.cumsum(increments)
    places = np.arange(1.0, len(increments) + 1)
    value = share * column[-1]
    found = _inverse(column, places, value)
    assert np.interp(found, np.append(0.0, places), np.append(0.0, column)) == pytest.approx(value, abs=1e-9)
    level = np.append(column, column[-1])  # a flat end adds nothing
    assert _inverse(level, np.append(places, places[-1] + 5), value) == pytest.approx(found)


@pytest.fixture
def on_curve(monkeypatch: pytest.MonkeyPatch) -> Callable[..., capacity.Held]:
    """What a replica carries whose curve and prices are given."""

    def made(found: Curve, slo: Promise, dp: int = 1) -> capacity.Held:
        price = StepPrice(
            table=linear()._replace(num_verified=3),
            tokens_per_step=2.0,
            stack="",
            level="measured",
            band=(1, 1),
        )
        monkeypatch.setattr(capacity, "price_steps", lambda _: price)
        monkeypatch.setattr(capacity, "kv_capacity", lambda _: cache_of(100))
        monkeypatch.setattr(capacity, "curve", lambda *_, **__: found)
        return held(replace(small(), dp=dp), Load(prompt=10.0, output=11.0), slo)

    return made


def rising(**columns: float) -> Curve:
    """A curve to 2 requests a second whose times grow with the number of sequences, up to four times."""
    base = flat()
    grown = {name: high * base.decoding for name, high in columns.items()}
    return replace(base, within=np.ones(40, bool), **grown)


@pytest.mark.parametrize(
    ("found", "slo", "rate", "ends"),
    [
        (rising(tpot_high_s=1.0), limits(tpot_s=2.0), 1.0, "TPOT"),  # 2 of 4 sequences
        (rising(ttft_high_s=0.5, ttft_s=0.0), limits(ttft_s=0.6), 0.6, "TTFT"),
        (rising(tpot_high_s=1.0, ttft_high_s=0.1, ttft_s=0.0), limits(tpot_s=2.0, ttft_s=0.1), 0.5, "TTFT"),
        (flat(), limits(), 1.5, "sequences"),  # three of four places are within the limit
        (replace(flat(), within=np.ones(40, bool)), limits(), 2.0, "TTFT"),
    ],
)
def test_the_most_that_keeps_the_promise_by_hand(
    on_curve: Callable[..., capacity.Held], found: Curve, slo: Promise, rate: float, ends: str
) -> None:
    one, four = on_curve(found, slo), on_curve(found, slo, 4)
    assert one.rate_per_s == pytest.approx(rate, rel=0.03)
    assert one.ends == ends
    kept, broken = (
        state.stable and state.within and state.tpot_high_s <= slo.tpot_s and state.ttft_high_s <= slo.ttft_s
        for state in (one.state, one.beyond)
    )
    assert kept
    assert not broken
    assert (four.rate_per_s, four.most_per_s) == pytest.approx((4 * one.rate_per_s, 8.0))
    assert four.at(4.0).decoding == pytest.approx(2.0)
    assert one.output_tokens_per_s == pytest.approx(one.rate_per_s * 11.0)
    assert (one.load.tokens_per_step, one.load.verified) == (2.0, 3.0)


@pytest.mark.parametrize(
    ("slo", "why"),
    [
        (limits(tpot_s=0.99), "TPOT of 1 s"),
        (limits(ttft_s=2.99), "TTFT of 3 s"),
        (limits(tpot_s=0.9, ttft_s=0.9), "TPOT"),
    ],
)
def test_a_promise_that_one_request_breaks_is_refused(
    on_curve: Callable[..., capacity.Held], slo: Promise, why: str
) -> None:
    with pytest.raises(InfeasibleError, match=why):
        on_curve(flat(), slo)
    assert on_curve(flat(), limits(tpot_s=2.0, ttft_s=6.0)).rate_per_s > 0


@pytest.mark.parametrize(
    ("offered", "headroom", "count"),
    [(1.8, 0.1, 1), (1.81, 0.1, 2), (2.0, 0.0, 1), (9.0, 0.1, 5), (0.0, 0.5, 1), (3.0, 0.5, 3)],
)
def test_replicas_for_a_rate_by_hand(
    on_curve: Callable[..., capacity.Held], offered: float, headroom: float, count: int
) -> None:
    two = replace(on_curve(replace(flat(), within=np.ones(40, bool)), limits()), rate_per_s=2.0)
    assert num_replicas(two, offered, headroom) == count


def test_parts_are_counted_by_what_bounds_them() -> None:
    def leaf(name: str, value: float, note: str = "a kernel") -> Breakdown:
        return fitted(name, value, "s", note)

    def group(name: str, *parts: Breakdown) -> Breakdown:
        return total(name, parts)

    step = group(
        "step",
        group("matrix products", leaf("qkv", 2.0, "memory-bound"), leaf("down", 1.0, "compute-bound")),
        group("attention", leaf("decodes", 3.0, "compute-bound"), leaf("chunk of a prompt", 4.0)),
        group("exchange", leaf("between stages", 5.0), leaf("between the chips", 0.5, "compute-bound")),
        leaf("host", 0.5, "compute-bound"),
        leaf("norm", 4.0, "launch-bound"),
    )
    shares = resource_shares(step)
    assert shares == pytest.approx(
        {"memory bandwidth": 9 / 20, "interconnect": 5.5 / 20, "compute": 5 / 20, "host": 0.5 / 20}
    )
    assert list(shares) == ["memory bandwidth", "interconnect", "compute", "host"]


def state_of(decoding: float) -> State:
    return State(
        decoding=decoding, rate_per_s=1.0, ttft_s=1.0, tpot_s=1.0, ttft_high_s=1.0, tpot_high_s=1.0, use=0.5,
        stable=True, within=True,
    )  # fmt: skip


def test_the_mean_step_has_its_decodes_and_the_prompts_that_come_with_them() -> None:
    """20 sequences of 10 steps start 2 prompts a step: 2 · 40 tokens after 60 cached ones."""
    load = Load(prompt=100.0, output=11.0, cached=60.0)
    named = mean_step(case(), load, state_of(20.0)).name
    assert "20 decodes and 80 prompt tokens" in named
    assert "1 decodes and 0 prompt tokens" in mean_step(case(), load, state_of(0.2)).name
    assert "4 prompt tokens" in mean_step(case(), load, state_of(1.0)).name


def test_a_prompt_alone_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    made = linear(token_s=0.5, prefill_s=0.25, head_s=2.0, host=(4.0, 8.0))
    price = StepPrice(table=made, tokens_per_step=1.0, stack="", level="measured", band=(1, 1))
    monkeypatch.setattr(techniques, "price_steps", lambda _: price)
    extra = 1 + 2 + 12
    assert techniques.prompt_time(small(), Load(prompt=80.0, output=5.0)) == pytest.approx(extra + 60)
    assert techniques.prompt_time(small(), Load(prompt=80.0, output=5.0, cached=60.0)) == pytest.approx(
        extra + 15
    )
    assert techniques.prompt_time(small(), Load(prompt=150.0, output=5.0)) == pytest.approx(
        2 * extra + 0.75 * 150
    )
    assert techniques.prompt_time(small(), Load(prompt=80.0, output=5.0, cached=80.0)) == pytest.approx(
        extra + 0.75
    )


def test_a_late_piece_of_a_prompt_attends_to_what_was_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two pieces of 100 after 50 cached tokens: 50 and 150 before them, 100 on average."""
    made = linear(step_s=0.0, past_s=1.0)
    price = StepPrice(table=made, tokens_per_step=1.0, stack="", level="measured", band=(1, 1))
    monkeypatch.setattr(techniques, "price_steps", lambda _: price)
    found = techniques.prompt_time(small(), Load(prompt=250.0, output=5.0, cached=50.0))
    assert found == pytest.approx(2 * 100 * 100, rel=0.02)


@pytest.mark.parametrize(("ttft_s", "percentile"), [(0.5, 0.9), (1.0, 0.99), (0.31, 0.5)])
def test_prompts_apart_keep_the_promise_up_to_their_greatest_rate(ttft_s: float, percentile: float) -> None:
    """M/D/1: a wait of ρ/(1 − ρ) · s/2, with an exponential tail."""
    service_s, handed_s = 0.2, 0.1
    rate = techniques._prompts_under(limits(ttft_s=ttft_s, percentile=percentile), service_s, handed_s)
    busy = rate * service_s
    wait_s = busy / (1 - busy) * service_s / 2
    assert service_s + handed_s + wait_s * math.log(1 / (1 - percentile)) == pytest.approx(ttft_s, rel=1e-3)


def test_a_prompt_that_breaks_the_promise_alone_carries_nothing() -> None:
    assert techniques._prompts_under(limits(ttft_s=0.29), 0.2, 0.1) == 0.0
    assert techniques._prompts_under(limits(), 0.2, 0.1) == pytest.approx(5.0, rel=1e-4)


def test_a_hand_over_shows_the_last_layer() -> None:
    one = case()
    way = techniques.handoff_of(one)
    load = Load(prompt=3200.0, output=5.0)
    assert techniques.handover_time(one, load) == pytest.approx(way.setup_s + way.token_s * 3200.0 / 32)


PLAIN = techniques.Setting(replica=case(), load=Load(prompt=500.0, output=100.0))


def test_techniques_change_one_thing() -> None:
    stopped = techniques.unchunked(PLAIN)
    assert (stopped.replica.engine.chunked_prefill, stopped.replica.engine.mixed_steps) == (False, False)
    assert techniques.chunked(stopped) == PLAIN
    assert techniques.chunked(PLAIN) is None
    half = techniques._with(PLAIN, engine=replace(PLAIN.replica.engine, mixed_steps=False))
    assert techniques.chunked(half) == PLAIN
    cached = techniques.prefix_cached(0.4)(PLAIN)
    assert cached is not None
    assert cached.load.cached == pytest.approx(200.0)
    assert techniques.one_by_one(PLAIN).replica.engine.max_sequences == 1
    narrow = techniques.narrow_cache(PLAIN)
    assert narrow is not None
    assert narrow.replica.precision.kv == "fp8"
    assert techniques.narrow_cache(narrow) is None
    apart = techniques.disaggregated(PLAIN)
    assert apart is not None
    assert apart.disaggregated
    how = Speculation(num_draft=2)
    drafted = techniques.speculative(how)(PLAIN)
    assert drafted is not None
    assert drafted.replica.speculation == how
    fp8 = techniques.quantised("fp8")(narrow)
    assert fp8 is not None
    assert (fp8.replica.precision.weights, fp8.replica.precision.kv) == ("fp8", "fp8")


def test_an_effect_is_told_per_chip() -> None:
    slo = limits(ttft_s=1.0, tpot_s=0.05)
    two = techniques.Setting(replica=replace(case(), tp=2), load=PLAIN.load)
    found, one = techniques.effect("x", two, slo, 2.0), held(two.replica, two.load, slo)
    assert found.held_per_s == pytest.approx(one.rate_per_s / 2)
    assert found.most_per_s == pytest.approx(one.most_per_s / 2)
    assert found.ttft_s == one.at(2.0).ttft_s
    assert (found.name, found.note) == ("x", "")
    assert "unstable" in techniques.effect("x", two, slo, 1e6).note
    nothing = techniques.effect("x", None, slo, 2.0)
    assert nothing.note == "already so"
    assert math.isnan(nothing.held_per_s)
    broken = techniques.effect("x", two, limits(tpot_s=1e-6), 2.0)
    assert broken.held_per_s == 0.0
    assert "TPOT" in broken.note


def test_pools_apart_are_divided_as_their_rates_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prompts of ¼ s: at most 4 a second; answers at 12 a second: three quarters of the chips are for prompts."""
    slo, load = limits(), Load(prompt=100.0, output=11.0)
    answers = replace(
        held(case(), load, limits(ttft_s=9.0, tpot_s=0.05)), rate_per_s=12.0, curve=flat(rate=20.0)
    )
    monkeypatch.setattr(techniques, "prompt_time", lambda *_: 0.25)
    monkeypatch.setattr(techniques, "handover_time", lambda *_: 0.5)
    monkeypatch.setattr(techniques, "_answers", lambda *_: answers)
    monkeypatch.setattr(techniques, "first_token_s", lambda *_: 0.125)
    setting = techniques.Setting(replica=replace(case(), tp=2), load=load, disaggregated=True)
    found = techniques.effect("apart", setting, slo, 1.5)
    assert found.held_per_s == pytest.approx(1 / (2 / 4 + 2 / 12), rel=1e-4)
    # 1.5 a second on three quarters of the chips: as 2 a second on a whole replica, half busy
    assert found.ttft_s == pytest.approx(0.25 + 0.5 / (2 * 0.5) * 0.25 + 0.5 + 0.125, rel=1e-4)
    assert found.tpot_s == 1.0
    assert "3 replicas for prompts to one for answers" in found.note
    full = techniques.effect("apart", setting, slo, 3.1)
    assert math.isinf(full.ttft_s)
    over = techniques.effect("apart", setting, slo, 5.1)  # 20 a second for the answers' quarter
    assert math.isnan(over.tpot_s)
    alone = techniques.effect("apart", setting, limits(ttft_s=0.7), 1.5)
    assert alone.held_per_s == 0.0
    assert "a prompt alone breaks" in alone.note


def test_answers_alone_compute_one_token_of_each_prompt() -> None:
    load = Load(prompt=400.0, output=50.0)
    found = techniques._answers(
        case(), load, limits(ttft_s=1e-6, tpot_s=0.05)
    )  # their first token is another's promise
    assert found.load.computed == 1.0
    assert found.rate_per_s > 0


@settings(max_examples=5, deadline=None)
@given(st.integers(1, 64))
def test_speed_up_of_nothing_drafted_is_none(batch: int) -> None:
    how = Speculation(num_draft=0, acceptance=0.5, draft="ngram")
    assert techniques.speed_up(case(), how, batch, 500.0) == pytest.approx(1.0)


def test_batching_gains_what_users_gain() -> None:
    gain = techniques.gain_of_batching(case(), Load(prompt=100.0, output=100.0), 1.0, 32.0)
    assert 8.0 < gain < 32.0
