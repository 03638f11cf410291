"""LoRA adapters: their memory, what a step with them costs, and what a first token waits for."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.catalog import Catalog, load
from datahall.cluster.host import host_of
from datahall.errors import ScenarioError
from datahall.inference.engine.adapters import (
    adapter_bytes,
    different,
    first_token_s,
    miss_fraction,
    products_s,
    reads_s,
    resident_bytes,
)
from datahall.inference.engine.build import adapters_of
from datahall.inference.engine.engine import engine
from datahall.inference.engine.replica import Adapters, Replica, Speculation
from datahall.inference.fleet.fleet import Fleet
from datahall.inference.fleet.service import Service
from datahall.inference.memory.kv_pool import divide_memory
from datahall.inference.simulation.histogram import TTFT
from datahall.inference.simulation.simulate import simulate_serving
from datahall.inference.step.figure import step_breakdown
from datahall.inference.step.kernels import Passes
from datahall.inference.step.price import price_steps
from datahall.inference.step.table import decode_step_time
from datahall.scenario.sections.deployment import Deployment
from datahall.workload.traffic.popularity import zipf_shares
from datahall.workload.traffic.requests import Requests


@pytest.fixture(scope="session")
def base(shelf: Catalog) -> Replica:
    return Replica(model=shelf.model("llama-3.1-8b"), chip=shelf.chip("h100-sxm"), engine=engine("vllm"))


def adapted(replica: Replica, **options: object) -> Replica:
    return msgspec.structs.replace(replica, adapters=Adapters(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize(("mlp", "num_parameters"), [(True, 41_943_040), (False, 13_631_488)])
def test_an_adapter_has_the_parameters_that_peft_prints(
    base: Replica, mlp: bool, num_parameters: int
) -> None:
    """Llama 3 8B with rank 16: all linear layers, or q, k, v and o."""
    assert adapter_bytes(adapted(base, num=1, mlp=mlp)) == 2 * num_parameters


def test_experts_and_recurrences_have_none(base: Replica, shelf: Catalog) -> None:
    mixture = msgspec.structs.replace(base, model=shelf.model("qwen3-30b-a3b"))
    assert adapter_bytes(adapted(mixture, num=1)) == adapter_bytes(adapted(mixture, num=1, mlp=False)) > 0


def test_chips_of_a_group_share_one_side_of_each_pair(base: Replica) -> None:
    whole, half = (
        adapter_bytes(adapted(msgspec.structs.replace(base, tp=tp), num=1, mlp=False)) for tp in (1, 2)
    )
    # q, k, v: A whole, B cut; o: A cut, B whole
    saved = 32 * 16 * 2.0 * ((4096 + 2 * 1024) + 4096) / 2
    assert whole - half == pytest.approx(saved)


def test_resident_adapters_come_out_of_the_cache(base: Replica) -> None:
    plain, many = divide_memory(base), divide_memory(adapted(base, num=500, num_resident=100))
    assert plain.adapter_bytes == 0.0
    assert plain.pool_bytes - many.pool_bytes == pytest.approx(many.adapter_bytes)
    assert many.adapter_bytes == pytest.approx(100 * 2 * 41_943_040)
    staged = msgspec.structs.replace(adapted(base, num=100), pp=4)
    assert resident_bytes(staged) == pytest.approx(many.adapter_bytes / 4)


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 40), st.floats(0.0, 2.0), st.integers(1, 60))
def test_different_adapters_are_as_many_as_draws_show(num: int, zipf: float, drawn: int) -> None:
    shares = zipf_shares(num, zipf)
    draws = np.random.default_rng(0).choice(num, p=shares, size=(2000, drawn))
    seen = np.mean([np.unique(row).size for row in draws])
    (expected,) = different(Adapters(num=num, zipf_factor=zipf), np.array([float(drawn)]))
    assert expected == pytest.approx(seen, rel=0.03, abs=0.05)


def test_steps_take_longer_with_rank_and_with_number(base: Replica) -> None:
    passes = [
        Passes.of(adapted(base, num=num, rank=rank)) for num, rank in ((1, 8), (10, 8), (100, 8), (100, 64))
    ]
    tokens, sequences = np.array([1.0, 64.0, 4096.0]), np.array([1.0, 16.0, 128.0])
    total = np.array([products_s(one, tokens) + reads_s(one, sequences) for one in passes])
    assert np.all(np.diff(total, axis=0) >= -1e-12)
    assert np.all(np.diff(total, axis=1) > 0)
    assert np.all(reads_s(passes[0], sequences) == 0.0)


def test_a_step_costs_about_what_punica_measured(base: Replica) -> None:
    """Chen et al. (2023): 2 ms a token more on Llama 2 7B and A100, with two launches for each of seven matrices."""
    plain, with_them = (
        decode_step_time(price_steps(one).table, 32, 1000.0) for one in (base, adapted(base, num=1))
    )
    assert 0.5e-3 < with_them - plain < 2e-3


def test_the_figure_of_a_step_is_its_time_in_the_table(base: Replica) -> None:
    one = adapted(base, num=100, rank=64)
    figure = step_breakdown(one, num_decodes=32, mean_context=1000)
    assert "adapters" in [part.name for part in figure.parts]
    assert figure.value == pytest.approx(decode_step_time(price_steps(one).table, 32, 1000.0), rel=0.01)


def test_one_sequence_reads_one_adapter(base: Replica) -> None:
    """As many sequences as there are: further adapters are read for the second, and for no part of one."""
    one = adapted(base, num=100, rank=64)
    alone, two = (step_breakdown(one, num_decodes=num, mean_context=1000).at("adapters") for num in (1, 2))
    read = {part.name: part.value for part in alone.parts}["further adapters"]
    assert read == pytest.approx(0.0, abs=1e-12)
    assert {part.name: part.value for part in two.parts}["further adapters"] > 1e-6


def test_a_draft_model_has_no_adapters(base: Replica) -> None:
    how = Speculation(draft="llama-3.2-1b", model=load().model("llama-3.2-1b"), num_draft=2)
    plain = msgspec.structs.replace(base, speculation=how)
    both = [price_steps(one).table.decode_s[8, 40] for one in (plain, adapted(plain, num=1))]
    assert both[0] == pytest.approx(both[1])


def test_misses_are_those_of_a_least_recently_used_cache() -> None:
    adapters = Adapters(num=60, num_resident=12, zipf_factor=0.9)
    asked = np.random.default_rng(1).choice(60, p=zipf_shares(60, 0.9), size=40_000)
    held: dict[int, None] = {}
    missed = 0
    for one in asked.tolist():
        missed += one not in held
        held.pop(one, None)
        held[one] = None
        if len(held) > 12:
            del held[next(iter(held))]
    assert miss_fraction(adapters) == pytest.approx(missed / asked.size, abs=0.01)
    assert miss_fraction(Adapters(num=60)) == miss_fraction(Adapters(num=60, num_resident=80)) == 0.0


def test_a_first_token_waits_for_what_is_fetched_on_average(base: Replica) -> None:
    rare = adapted(base, num=1000, num_resident=10, zipf_factor=0.0, rank=64)
    link = host_of(base.chip).link_bytes_per_s
    fetched_s = first_token_s(rare) - base.engine.first_token_s
    assert fetched_s == pytest.approx(0.99 * adapter_bytes(rare) / link, rel=1e-3)
    held = adapted(base, num=10, zipf_factor=0.0, rank=64)
    requests = Requests.of(np.arange(20) * 5.0, np.full(20, 100), np.full(20, 4))
    waits, ready = (simulate_serving(Fleet.of(one), requests).mean_s(TTFT) for one in (rare, held))
    assert waits - ready == pytest.approx(fetched_s, rel=0.02)


@pytest.mark.parametrize("options", [{"num": 0}, {"num": 1, "rank": 0}, {"num": 3, "zipf_factor": -1.0}])
def test_numbers_that_mean_nothing_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ScenarioError, match="adapters of rank"):
        Adapters(**options)  # type: ignore[arg-type]


def test_a_scenario_says_them_by_deployment(read: Callable[[str], Service]) -> None:
    text = (
        'version = 1\nmodel = "llama-3.1-8b"\n[[deployment]]\nchip = "h100-sxm"\n'
        "adapters = 200\nadapter_rank = 8\nresident_adapters = 50\nadapter_zipf = 0.8\nattention_adapters = true\n"
        "[traffic]\nisl = 200\nosl = 40\nrate = 5\nrequests = 300\n"
    )
    (pool,) = read(text).fleet.pools
    assert pool.replica.adapters == Adapters(num=200, rank=8, num_resident=50, zipf_factor=0.8, mlp=False)


def test_all_adapters_are_on_the_chips_where_nobody_says_how_many() -> None:
    found = adapters_of(Deployment(adapters=12))
    assert found is not None
    assert found.resident == 12
    assert adapters_of(Deployment()) is None
