"""From a fleet to the arrays of its simulation: what a pool, a table and a crowd of ranks become."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from tests.inference.serving_case import fleet, poisson, replica, table
from tests.inference.ticking_case import one_pool, records, rows, simulated, ticking

from datahall.cluster.cluster import cluster_of
from datahall.inference.engine.disaggregation import Handoff
from datahall.inference.engine.replica import Speculation
from datahall.inference.fleet.autoscale import Autoscaling
from datahall.inference.fleet.fleet import Fleet, Pool
from datahall.inference.memory.kv_capacity import kv_capacity
from datahall.inference.simulation.setup import (
    fill_pool,
    new_state,
    new_tiers,
    renewal,
    stack,
    step_tables,
    uneven_contexts,
)
from datahall.inference.simulation.simulate import simulate_serving
from datahall.inference.simulation.state import ACTIVE, OFF, POOL, fixed_blocks, step_table
from datahall.inference.step.price import price_steps
from datahall.inference.step.table import (
    StepTable,
    decode_time,
    head_time,
    joined_time,
    prefill_time,
    ranks_time,
    tokens_time,
)
from datahall.workload.traffic.requests import Requests

replace = msgspec.structs.replace


def row_of(pool: Pool) -> np.void:
    found = np.zeros(1, POOL)
    fill_pool(found[0], pool)
    return found[0]


def test_a_pool_becomes_a_row() -> None:
    one = replace(
        replica(token_budget=100, max_sequences=8, block_tokens=32, wait_s=0.5, preemption="swap"), pp=2, dp=3,
        host_bytes_per_s=1e9,
    )  # fmt: skip
    row = row_of(Pool(replica=one, table=table(), num_blocks=50, region=2))
    assert (row["budget"], row["sequences"], row["lanes"], row["blocks"]) == (200, 16, 3, 150)
    assert (row["block_tokens"], row["steps_per_block"], row["region"]) == (32, 32, 2)
    assert (row["chunked"], row["mixed"], row["whole"], row["caching"], row["reserve"]) == (1, 1, 1, 0, 0)
    assert (row["swap"], row["wait_s"], row["max_context"]) == (1, 0.5, 131_072)
    assert row["swap_token_s"] == pytest.approx(131_072 / 2 / 1e9)
    assert row["layer_share"] == pytest.approx(1 / 32)
    assert row["state_blocks"] == row["window_tokens"] == 0
    assert (
        row_of(Pool(replica=replace(one, max_context=99), table=table(), num_blocks=50))["max_context"] == 99
    )
    plain = row_of(Pool(replica=replica(), table=table(), num_blocks=50))
    assert plain["swap_token_s"] == 0.0  # no link is asked for


@pytest.mark.parametrize(
    ("options", "reserve"),
    [({}, 0), ({"whole_output_blocks": True}, 1), ({"batching": "static"}, 1), ({"batching": "dynamic"}, 1)],
)
def test_blocks_for_the_answer_are_kept_by_some(options: dict[str, object], reserve: int) -> None:
    assert row_of(Pool(replica=replica(**options), table=table(), num_blocks=50))["reserve"] == reserve


def test_blocks_come_from_memory_where_none_are_given() -> None:
    one = replace(replica(), dp=2)
    row = row_of(Pool(replica=one, table=table()))
    assert row["blocks"] == 2 * kv_capacity(one).num_blocks
    from_table = row_of(Pool(replica=one, num_blocks=70))
    assert from_table["blocks"] == 140


def test_windows_and_states_are_held_beside_the_blocks(serve: object) -> None:
    windowed = serve("gpt-oss-20b", precision="mxfp4")  # type: ignore[operator]
    found = kv_capacity(windowed)
    row = np.zeros(1, POOL)
    fill_pool(row[0], Pool(replica=windowed))
    ((window, each),) = found.window_blocks
    assert row[0]["window_tokens"] == window + windowed.engine.block_tokens
    assert row[0]["window_token_blocks"] == pytest.approx(each)
    state = new_state(
        Fleet(pools=(Pool(replica=windowed),)),
        [table()],
        caching=False,
        record=False,
        trace_steps=0,
        num_slots=8,
    )
    for tokens in (1, 16, 100, 5000):
        held = min(tokens, window + windowed.engine.block_tokens) * each
        assert fixed_blocks(state, 0, tokens) == math.ceil(held - 1e-9)
    stated = np.zeros(1, POOL)
    fill_pool(stated[0], Pool(replica=windowed, num_blocks=70))  # blocks that are stated are all there is
    assert stated[0]["window_tokens"] == stated[0]["window_token_blocks"] == 0
    recurrent = serve("nemotron-h-8b")  # type: ignore[operator]
    fill_pool(row[0], Pool(replica=recurrent))
    assert row[0]["state_blocks"] == pytest.approx(kv_capacity(recurrent).state_blocks)
    plain = new_state(fleet(), [table()], caching=False, record=False, trace_steps=0, num_slots=8)
    assert fixed_blocks(plain, 0, 5000) == 0


def test_fixed_blocks_by_hand() -> None:
    state = new_state(fleet(), [table()], caching=False, record=False, trace_steps=0, num_slots=8)
    state.pools[0]["state_blocks"], state.pools[0]["window_token_blocks"] = 1.5, 0.25
    state.pools[0]["window_tokens"] = 10
    assert [fixed_blocks(state, 0, tokens) for tokens in (0, 2, 3, 10, 99)] == [2, 2, 3, 4, 4]
    state.pools[0]["state_blocks"], state.pools[0]["window_token_blocks"] = 1.0, 0.0
    assert fixed_blocks(state, 0, 5) == 1


def test_a_prefill_pool_has_its_own_hand_over_or_that_of_its_network() -> None:
    own = Handoff(setup_s=0.5, token_s=0.25, shown_fraction=0.125)
    row = row_of(Pool(replica=replica(), role="prefill", table=table(), num_blocks=9, handoff=own))
    assert (row["handoff_setup_s"], row["handoff_token_s"], row["handoff_shown"]) == (0.5, 0.25, 0.125)
    slow = replace(replica(), system=cluster_of(replica().chip, 8, nic_bytes_per_s=25e9).system)
    network = row_of(Pool(replica=slow, role="prefill", table=table(), num_blocks=9))
    assert network["handoff_token_s"] == pytest.approx(131_072 / 17.5e9)
    assert row_of(Pool(replica=replica(), table=table(), num_blocks=9))["handoff_setup_s"] == 0.0


@pytest.mark.parametrize(("num_draft", "acceptance"), [(1, 0.5), (3, 0.7), (2, 0.0), (2, 1.0)])
def test_moments_of_the_tokens_of_a_step(num_draft: int, acceptance: float) -> None:
    """By the list of outcomes: k tokens are kept and the next is not, or all are."""
    chances = [acceptance**kept * (1 - acceptance) for kept in range(num_draft)] + [acceptance**num_draft]
    mean = sum(chance * (kept + 1) for kept, chance in enumerate(chances))
    square = sum(chance * (kept + 1) ** 2 for kept, chance in enumerate(chances))
    excess, spread = renewal(Speculation(num_draft=num_draft, acceptance=acceptance), mean)
    assert excess == pytest.approx((square / mean - 1) / (2 * mean))
    assert spread == pytest.approx(math.sqrt(max(0.0, square - mean**2) / mean**3), abs=1e-9)


def test_a_speculating_pool_needs_a_block_less_often() -> None:
    drafting = replace(replica(), speculation=Speculation(num_draft=3, acceptance=1.0))
    row = row_of(Pool(replica=drafting, table=table(4), num_blocks=9))
    assert (row["tokens_per_step"], row["steps_per_block"]) == (4.0, 4)
    wide = replace(replica(block_tokens=1), speculation=Speculation(num_draft=3, acceptance=1.0))
    assert row_of(Pool(replica=wide, table=table(4), num_blocks=9))["steps_per_block"] == 1


def test_replicas_that_may_be_started_are_there_and_off() -> None:
    pools = (Pool(replica=replica(), count=2, num_blocks=10, table=table()),
             Pool(replica=replica(), count=3, num_blocks=20, table=table(), region=1))  # fmt: skip
    whole = Fleet(pools=pools, distance_s=((0.0, 0.1), (0.1, 0.0)), autoscaling=Autoscaling(least=1, most=4))
    state = new_state(whole, [table(), table()], caching=False, record=False, trace_steps=0, num_slots=8)
    assert state.replicas["status"].tolist() == [ACTIVE] * 2 + [OFF] * 2 + [ACTIVE] * 3
    assert state.replicas["pool"].tolist() == [0] * 4 + [1] * 3
    assert state.replicas["region"].tolist() == [0] * 4 + [1] * 3
    assert state.replicas["free"].tolist() == [10] * 4 + [20] * 3
    few = replace(whole, autoscaling=Autoscaling(least=1, most=1))  # those that are there stay
    assert new_state(few, [table(), table()], caching=False, record=False, trace_steps=0).replicas.size == 5


def test_tiers_are_those_of_each_replicas_pool() -> None:
    block = 16 * 131_072.0
    pools = tuple(
        Pool(
            replica=replace(replica(), host_cache_bytes=size * block, host_bytes_per_s=block),
            count=2,
            num_blocks=9,
        )
        for size in (3, 5)
    )
    found = new_tiers(Fleet(pools=pools), np.array([0, 0, 1, 1]))
    assert found["blocks"].tolist() == [0, 3, 0, 0, 3, 0, 0, 5, 0, 0, 5, 0]
    assert found["block_s"].tolist() == [0.0, 1.0, 0.0] * 4
    assert (
        set(found["oldest"].tolist())
        == set(found["newest"].tolist())
        == set(found["lifting"].tolist())
        == {-1}
    )


def grown(scale: float, tokens: int, sequences: int, points: int, *, joined: bool = False) -> StepTable:
    axis = 2.0 ** (np.arange(points) / 4) - 1.0
    rows_s = np.outer(np.arange(sequences + 1.0), axis)
    made = StepTable(
        tokens_s=scale * np.arange(tokens + 1.0),
        head_s=scale * np.arange(sequences + 1.0),
        decode_s=scale * rows_s,
        prefill_s=scale * np.outer(axis, 1.0 + axis),
        host=np.array([scale, 2 * scale]),
        num_verified=1,
        met_s=0.5 * scale * np.arange(tokens + 1.0),
    )
    return made._replace(joined_s=3 * scale * rows_s, empty_s=np.array([scale])) if joined else made


@pytest.mark.parametrize("joined", [(False, False), (True, False), (True, True)])
def test_tables_of_several_pools_read_as_they_did_alone(joined: tuple[bool, bool]) -> None:
    """Shorter axes go on along their last slope, so reading does not notice the longer ones beside them."""
    tables = [grown(1.0, 40, 8, 20, joined=joined[0]), grown(10.0, 90, 16, 28, joined=joined[1])]
    stacked = stack(tables)
    for pool, alone in enumerate(tables):
        read = step_table(stacked, pool, 1)
        for tokens in (1, 39, 40, 41, 90, 200):
            assert tokens_time(read, tokens) == pytest.approx(tokens_time(alone, tokens))
        for num in (1, 8, 16):
            assert head_time(read, num) == pytest.approx(head_time(alone, num))
            for context in (3.0, 30.0, 100.0, 1000.0):
                assert decode_time(read, num, context) == pytest.approx(decode_time(alone, num, context))
                beside = joined_time(alone, num, context, 7.0)
                assert joined_time(read, num, context, 7.0) == pytest.approx(beside)
        for chunk, past in ((5.0, 0.0), (60.0, 3.0), (3.0, 500.0), (500.0, 600.0)):
            assert prefill_time(read, chunk, past) == pytest.approx(
                prefill_time(alone, chunk, past), rel=1e-6
            )
        assert ranks_time(read, 40, 20) == pytest.approx(ranks_time(alone, 40, 20))
        assert read.host.tolist() == alone.host.tolist()


def test_a_table_that_is_given_replaces_the_price() -> None:
    made = table()
    priced, given = Pool(replica=replica(), num_blocks=9), Pool(replica=replica(), table=made, num_blocks=9)
    found = step_tables(Fleet(pools=(given, priced)))
    assert found[0] is made
    assert np.array_equal(found[1].tokens_s, price_steps(replica()).table.tokens_s)


def test_contexts_of_ranks_are_those_of_draws() -> None:
    """A sequence is met as often as it lasts, anywhere between its prompt and its end; the fullest of k ranks."""
    draw = np.random.default_rng(2)
    prompt, output = draw.integers(100, 3000, 4000), draw.integers(1, 2000, 4000)
    requests = Requests.of(np.zeros(4000), prompt, output)
    met = draw.choice(4000, p=output / output.sum(), size=(3000, 8, 16))
    context = (prompt[met] + draw.random(met.shape) * output[met]).mean(axis=2)
    above = (context.max(axis=1) / context.mean(axis=1)).mean() - 1.0
    (found,) = uneven_contexts(requests, np.array([8]))
    assert found / math.sqrt(16) == pytest.approx(above, rel=0.05)


def test_the_rank_with_the_longest_contexts_sets_the_pace() -> None:
    """Two ranks of two decodes each, one second for each context token of a decode on a rank."""
    two = replace(replica(token_budget=64, max_sequences=2), dp=2)
    made = ticking(step_s=0.0, decode_s=1.0)
    requests = rows((0.0, 4, 2), (0.0, 12, 2), (0.0, 4, 2), (0.0, 12, 2))
    run = simulated(one_pool(of=two, table=made), requests=requests)
    (uneven,) = uneven_contexts(requests, np.array([2]))
    step_s = 2 * (8 + 1) * (1 + uneven / math.sqrt(2))
    assert records(run).end_s.tolist() == pytest.approx([step_s] * 4)
    pair = simulated(one_pool(of=two, table=made), requests=rows((0.0, 4, 2), (0.0, 12, 2)))
    assert records(pair).end_s.tolist() == pytest.approx([9.0] * 2)  # one on each: the mean of both


def test_slots_and_queues_have_room_from_the_start() -> None:
    state = new_state(fleet(3), [table()], caching=True, record=True, trace_steps=5, num_slots=16)
    assert sorted(state.slots["free"].tolist()) == list(range(16))
    assert state.fleet[0]["num_free_slots"] == 16
    assert state.cache.runs.size > 2 * 3 * 27_000
    assert state.cache.chains.size >= 4 * 3 * 27_000
    plain = new_state(fleet(3), [table()], caching=False, record=False, trace_steps=0, num_slots=16)
    assert (plain.cache.runs.size, plain.cache.chains.size, plain.ended.size) == (1, 4, 1)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_every_replica_has_room_for_the_sequences_of_the_widest_pool(order: tuple[int, int]) -> None:
    """Eight sequences, or 512 on each of three ranks: 1,536, and two places of the heap for each of them."""
    three = replace(replica(token_budget=64, max_sequences=512), dp=3)
    kinds = (one_pool(2, max_sequences=8), one_pool(of=three))
    made = new_state(
        Fleet(pools=tuple(kinds[place] for place in order)), [ticking(), ticking()], caching=False, record=True,
        trace_steps=0, num_slots=8,
    )  # fmt: skip
    assert made.heap.shape == (3, 3072)


def test_four_rows_are_handed_over_for_each_sequence_of_the_widest_pool() -> None:
    many = replace(replica(max_sequences=512), dp=64)  # 32,768 sequences
    made = new_state(
        Fleet(pools=(one_pool(of=many), one_pool(max_sequences=8))), [ticking(), ticking()], caching=False,
        record=True, trace_steps=0, num_slots=8,
    )  # fmt: skip
    assert (made.heap.shape, made.ended.shape) == ((2, 65_536), (131_072,))


def test_a_narrow_pool_beside_a_wide_one_serves_every_request() -> None:
    """Sixty at once, every other one on either replica: 30 run together on the wide one, eight at a time on the narrow
    one, so its last six of ten tokens begin after three rounds of ten steps of a second."""
    wide, narrow = one_pool(max_sequences=512, token_budget=256), one_pool(max_sequences=8, token_budget=256)
    run = simulated(wide, narrow, requests=rows(*[(0.0, 4, 10)] * 60))
    assert (run.num_arrived, run.num_finished) == (60, 60)
    found = records(run)
    assert sorted(found.row.tolist()) == list(range(60))
    assert np.bincount(found.replica).tolist() == [30, 30]
    assert set(found.end_s[found.replica == 0].tolist()) == {10.0}
    assert (
        sorted(found.end_s[found.replica == 1].tolist()) == [10.0] * 8 + [20.0] * 8 + [30.0] * 8 + [40.0] * 6
    )


def test_autoscaling_starts_what_is_wanted_after_a_cold_start() -> None:
    """Ten requests of 40 s at once, two for each replica, at most four: looked at every 5 s, started in 20 s."""
    rule = Autoscaling(target=2.0, interval_s=5.0, cold_start_s=20.0, patience_s=10.0, least=1, most=4)
    requests = rows(*[(0.0, 10, 40)] * 10, *[(26.0 + i, 10, 5) for i in range(6)])
    run = simulated(one_pool(), requests=requests, autoscaling=rule, routing="least-outstanding")
    assert run.scaling is not None
    seen = list(zip(run.scaling.time_s, run.scaling.num_active, run.scaling.num_starting, strict=True))
    assert seen[:6] == [(5, 1, 0), (10, 1, 3), (15, 1, 3), (20, 1, 3), (25, 4, 0), (30, 4, 0)]
    assert run.scaling.num_requests[0] == 10
    assert set(records(run).replica[10:].tolist()) <= {1, 2, 3}  # the first is full
    assert run.num_finished == 16
    # with all done nobody is looked after any more; those that had nothing were drained first
    assert run.replicas.active_s[0] >= run.replicas.active_s[1:].max()


def test_replicas_that_are_not_needed_drain_the_emptiest_first() -> None:
    rule = Autoscaling(target=2.0, interval_s=5.0, cold_start_s=20.0, patience_s=0.0, least=1, most=3)
    requests = rows((0.0, 10, 60), (0.5, 10, 8), (1.0, 10, 8))
    run = simulated(one_pool(3), requests=requests, autoscaling=rule)
    assert run.scaling is not None
    # three requests want two replicas: one of three drains at 5 s, when each has one; later one request, one replica
    assert run.scaling.num_active.tolist()[:3] == [3, 2, 1]
    assert run.num_finished == 3
    assert run.num_rerouted == 0


def test_requests_that_were_refused_are_not_waited_for() -> None:
    """Two that pass the context and one that passes the cache ask for no replica; the run ends with the others."""
    one = replace(replica(token_budget=64, max_sequences=8), max_context=2000)
    rule = Autoscaling(target=1.0, interval_s=5.0, cold_start_s=5.0, patience_s=0.0, least=1, most=4)
    requests = rows((0.0, 10, 8), (0.0, 3000, 5), (0.0, 3000, 5), (0.0, 1500, 5), (0.0, 10, 3))
    run = simulated(one_pool(of=one, num_blocks=50), requests=requests, autoscaling=rule, until_s=60.0)
    assert run.scaling is not None
    assert run.scaling.num_requests.tolist() == [1, 0]
    assert run.scaling.num_active.tolist() == [1, 1]
    assert (run.num_too_long, run.num_too_large, run.num_finished) == (2, 1, 2)


def test_the_result_knows_no_latencies_of_nobody() -> None:
    run = simulate_serving(fleet(), poisson(5, 1.0), warmup_s=1e9, compiled=False)
    assert (run.num_measured, run.measured_s) == (0, 0.0)
    assert all(
        math.isnan(value)
        for value in (run.ttft_s(), run.requests_per_s, run.good_fraction, run.goodput_per_s)
    )
    assert math.isnan(run.output_tokens_per_s)
    assert math.isnan(run.prompt_tokens_per_s)
    assert run.num_finished == 5
    assert run.trace is None
    assert run.records is None
