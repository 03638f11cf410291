"""The compiled scheduler against a plain one, step by step and leaping."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.inference.reference_scheduler import One, Outcome, Rules, play
from tests.inference.serving_case import fleet, poisson, replica, table

from datahall.inference.memory.offload import host_bytes_per_s, token_bytes
from datahall.inference.simulation.run import ServingRun
from datahall.inference.simulation.setup import uneven_contexts
from datahall.inference.simulation.simulate import ALWAYS, simulate_serving
from datahall.workload.traffic.requests import Requests

SWAP_TOKEN_S = token_bytes(replica()) / host_bytes_per_s(replica())
CASES = {
    "vllm": Rules(),
    "small budget": Rules(budget=256),
    "few places": Rules(sequences=8),
    "small cache": Rules(num_blocks=240),
    "small cache, chunks": Rules(num_blocks=240, budget=200, whole_prompt=False),
    "whole prompts": Rules(chunked=False, budget=700),
    "prompts stop decodes": Rules(mixed=False),
    "prompts stop decodes, small cache": Rules(mixed=False, num_blocks=300),
    "whole output": Rules(whole_output=True, num_blocks=300),
    "swap": Rules(num_blocks=240, swap_token_s=SWAP_TOKEN_S),
    "swap, prompts stop decodes": Rules(mixed=False, num_blocks=240, swap_token_s=SWAP_TOKEN_S),
}


def both(rules: Rules, requests: Requests, max_leap: int, users: int = 0) -> tuple[Outcome, ServingRun]:
    expected = play(
        table(),
        rules,
        [
            One(row, float(at), int(prompt), int(output))
            for row, (at, prompt, output) in enumerate(
                zip(requests.arrival_s, requests.prompt, requests.output, strict=True)
            )
        ],
        users,
    )
    served = fleet(
        num_blocks=rules.num_blocks,
        token_budget=rules.budget,
        max_sequences=rules.sequences,
        chunked_prefill=rules.chunked,
        mixed_steps=rules.mixed,
        whole_prompt_blocks=rules.whole_prompt,
        whole_output_blocks=rules.whole_output,
        preemption="swap" if rules.swap_token_s else "recompute",
    )
    return expected, simulate_serving(served, requests, record=True, max_leap=max_leap, users=users)


def agree(expected: Outcome, run: ServingRun, within: float) -> None:
    assert run.records is not None
    for name in ("scheduled_s", "first_s", "end_s"):
        wanted = np.array([getattr(one, name) for one in expected.requests])
        np.testing.assert_allclose(getattr(run.records, name), wanted, rtol=within, atol=1e-9, err_msg=name)
    assert run.records.preempted.tolist() == [one.preempted for one in expected.requests]
    assert int(run.replicas.num_steps[0]) == expected.num_steps
    assert int(run.replicas.prompt_tokens[0]) == expected.prompt_tokens
    assert run.num_preempted == expected.num_preempted
    assert run.replicas.free_blocks.tolist() == run.replicas.blocks.tolist()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("rate_per_s", [3.0, 40.0])
def test_every_step_is_that_of_the_plain_scheduler(name: str, rate_per_s: float) -> None:
    expected, run = both(CASES[name], poisson(120, rate_per_s, 400, 100, spread=0.9), max_leap=1)
    agree(expected, run, 1e-9)


@pytest.mark.parametrize("name", ["small cache", "swap", "swap, prompts stop decodes"])
def test_a_small_cache_preempts(name: str) -> None:
    expected, _ = both(CASES[name], poisson(120, 40.0, 400, 100, spread=0.9), max_leap=1)
    assert expected.num_preempted > 10


@pytest.mark.parametrize("name", [name for name, rules in CASES.items() if rules.swap_token_s])
def test_a_cache_is_moved_once_however_many_steps_are_leaped_after_it(name: str) -> None:
    """All come at once and their answers are long: those that were swapped come back among steps that are leaped."""
    requests = Requests.of(np.zeros(24), np.full(24, 300, np.int64), np.arange(200, 440, 10))
    expected, leaped = both(CASES[name], requests, ALWAYS)
    assert expected.num_preempted > 10
    assert leaped.num_events < expected.num_steps
    assert leaped.records is not None
    end_s = np.array([one.end_s for one in expected.requests])
    np.testing.assert_allclose(leaped.records.end_s, end_s, rtol=1e-4)
    assert leaped.records.preempted.tolist() == [one.preempted for one in expected.requests]


@pytest.mark.parametrize("users", [1, 7, 100])
def test_a_closed_loop_is_that_of_the_plain_scheduler(users: int) -> None:
    requests = poisson(150, 20.0, 300, 60, spread=0.9)
    thinking = Requests.of(np.diff(requests.arrival_s, prepend=0.0), requests.prompt, requests.output)
    expected, run = both(Rules(), thinking, 1, users)
    agree(expected, run, 1e-9)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("rate_per_s", [0.5, 4.0])
def test_leaps_change_times_by_less_than_a_thousandth(name: str, rate_per_s: float) -> None:
    requests = poisson(60, rate_per_s, 400, 150, spread=0.9)
    _, stepped = both(CASES[name], requests, 1)
    _, leaped = both(CASES[name], requests, ALWAYS)
    assert leaped.num_events < stepped.num_events / 3
    assert stepped.records is not None
    assert leaped.records is not None
    np.testing.assert_allclose(leaped.records.e2e_s, stepped.records.e2e_s, rtol=1e-3)
    assert leaped.num_preempted == stepped.num_preempted


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0.0, 3.0), st.integers(1, 900), st.integers(1, 120)), min_size=1, max_size=40
    ),
    st.integers(64, 400),
    st.integers(80, 300),
    st.integers(1, 20),
    st.booleans(),
)
def test_any_traffic_agrees(
    rows: list[tuple[float, int, int]], budget: int, num_blocks: int, sequences: int, swaps: bool
) -> None:
    arrival, prompt, output = (np.array(column) for column in zip(*sorted(rows), strict=True))
    moved_s = SWAP_TOKEN_S if swaps else 0.0
    rules = Rules(budget=budget, num_blocks=num_blocks, sequences=sequences, swap_token_s=moved_s)
    expected, run = both(rules, Requests.of(arrival.astype(float), prompt, output), 1)
    agree(expected, run, 1e-9)


def test_compiled_and_plain_python_give_the_same_bits() -> None:
    requests, served = poisson(60, 20.0, 300, 40, spread=0.9), fleet(2, num_blocks=200)
    compiled = simulate_serving(served, requests, record=True)
    plain = simulate_serving(served, requests, record=True, compiled=False)
    assert compiled.records is not None
    for name in compiled.records.__struct_fields__:
        assert np.array_equal(getattr(compiled.records, name), getattr(plain.records, name)), name
    assert np.array_equal(compiled.histograms, plain.histograms)


def test_ranks_cut_a_prompt_each_and_all_of_them_end() -> None:
    lanes = fleet(token_budget=512, max_sequences=8)
    pool = lanes.pools[0]
    two = msgspec.structs.replace(pool, replica=msgspec.structs.replace(pool.replica, dp=2))
    requests = Requests.of(np.zeros(6), np.full(6, 1300, np.int64), np.full(6, 20, np.int64))
    done = simulate_serving(msgspec.structs.replace(lanes, pools=(two,)), requests, record=True)
    assert done.records is not None
    assert sorted(done.records.row) == list(range(6))
    first_s = np.sort(done.records.ttft_s)
    assert first_s[1] == first_s[0]  # both ranks worked on their own


def test_a_cut_prompt_that_gives_way_comes_back() -> None:
    lanes = fleet(token_budget=512, max_sequences=8, num_blocks=200)
    pool = lanes.pools[0]
    two = msgspec.structs.replace(pool, replica=msgspec.structs.replace(pool.replica, dp=2))
    requests = Requests.of(np.zeros(6), np.full(6, 1300, np.int64), np.full(6, 400, np.int64))
    done = simulate_serving(msgspec.structs.replace(lanes, pools=(two,)), requests, record=True)
    assert done.records is not None
    assert sorted(done.records.row) == list(range(6))
    assert done.num_preempted > 0


def test_the_rank_with_the_longest_contexts_is_waited_for() -> None:
    even = Requests.of(np.zeros(512), np.full(512, 1000, np.int64), np.full(512, 50, np.int64))
    prompts = np.where(np.arange(512) % 2, 1900, 100)
    uneven = Requests.of(np.zeros(512), prompts, np.full(512, 50, np.int64))
    for ranks in (2, 8):
        low, high = (float(uneven_contexts(one, np.array([ranks]))[0]) for one in (even, uneven))
        assert low < 0.03 * ranks
        drawn = np.random.default_rng(0).permuted(np.tile(prompts, (400, 1)), axis=1).reshape(400, ranks, -1)
        fullest = drawn.mean(axis=2).max(axis=1).mean() / 1025.0 - 1000.0 / 1025.0
        assert high / (512 / ranks) ** 0.5 == pytest.approx(fullest, rel=0.15)
    assert float(uneven_contexts(uneven, np.array([1]))[0]) == 0.0
