"""The curve of a replica over its sequences: steps with prompts, first tokens, tails, by hand and by queueing."""

from __future__ import annotations

import math
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from scipy import stats
from tests.inference.closed_form_case import cache_of, linear, replace, small

from datahall.catalog import Catalog
from datahall.inference.closed_form.capacity import held
from datahall.inference.closed_form.steady_state import (
    Curve,
    Load,
    _first_tokens,
    _Steps,
    _steps,
    at_rate,
    curve,
)
from datahall.inference.engine.engine import engine
from datahall.inference.engine.replica import Replica
from datahall.inference.step.column import prefill_times
from datahall.inference.step.table import (
    StepTable,
)
from datahall.scenario.sections.wanted.promise import Promise


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


def test_experts_see_a_prompt_of_two_steps_in_halves() -> None:
    """90 tokens have room beside 10 decodes: 120 take two steps of 60 on one rank, experts see 30 on average."""
    two = replace(small(), dp=2)
    load = Load(prompt=120.0, output=21.0)
    found = _steps(linear(token_s=0.5, met_s=0.25), two, load, np.array([10.0]), np.arange(3.0))
    whole = 1 + 0.5 * 70
    assert found.step_s[0].tolist() == pytest.approx([1 + 0.5 * 10, whole - 0.25 * (60 - 30), whole])


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


def test_kernels_that_step_up_with_the_batch_do_not_make_a_percentile_leap() -> None:
    """Gemma 3 4B on an H20: the cache of 94 % of the memory held 6.0 requests/s within 60 ms a token, of 95 % 4.75."""
    shelf = Catalog(user=False)
    rates = []
    for share in (0.85, 0.9, 0.92, 0.94, 0.95, 0.96, 0.98):
        limited = msgspec.structs.replace(engine("vllm"), memory_fraction=share)
        replica = Replica(model=shelf.model("gemma-3-4b"), chip=shelf.chip("h20"), engine=limited)
        found = held(replica, Load(prompt=1500.0, output=200.0), Promise(ttft_s=2.0, tpot_s=0.06))
        rates.append(found.rate_per_s)
        near = [
            at_rate(found.curve, found.most_per_s * use).tpot_high_s for use in np.linspace(0.6, 0.85, 40)
        ]
        assert max(now / before for before, now in pairwise(near)) < 1.5
    assert max(rates) < 1.1 * min(rates)


def test_between_its_points_a_curve_is_read_as_columns_are() -> None:
    shelf = Catalog(user=False)
    one = Replica(model=shelf.model("llama-3.1-8b"), chip=shelf.chip("h100-sxm"), engine=engine("vllm"))
    found = held(one, Load(prompt=500.0, output=200.0), Promise(ttft_s=1.0, tpot_s=0.05)).curve
    places = found.decoding
    between = np.random.default_rng(0).uniform(0.0, 1.1 * places[-1], 300)
    for num in (0.0, *places.tolist(), *between.tolist()):
        columns = (
            found.ttft_s,
            found.tpot_s,
            found.ttft_high_s,
            found.tpot_high_s,
            found.within.astype(float),
        )
        expected = [float(np.interp(num, places, column)) for column in columns]
        assert found.between.at(num) == pytest.approx(expected, rel=1e-13)
    rates, numbers = found.by_rate
    assert rates[0] == numbers[0] == 0.0
    assert np.all(np.diff(rates) > 0)
