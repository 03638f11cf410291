"""A fleet under traffic: what is conserved, what routing, failures, hand-overs and scaling do, and what is refused."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.inference.serving_case import fleet, poisson, replica, table

from datahall.errors import ScenarioError, UnknownNameError
from datahall.events.perfetto import perfetto
from datahall.inference.engine.disaggregation import Handoff
from datahall.inference.engine.replica import Speculation
from datahall.inference.fleet.autoscale import Autoscaling
from datahall.inference.fleet.fleet import Fleet, Pool, ReplicaOutage
from datahall.inference.simulation.run import ServingRun
from datahall.inference.simulation.simulate import simulate_serving
from datahall.inference.step.table import decode_step_time
from datahall.scenario.sections.wanted.promise import Promise
from datahall.workload.traffic.requests import Requests

ROUTINGS = ["round-robin", "least-outstanding", "two-choices", "prefix-affinity", "session"]


def all_accounted(run: ServingRun) -> None:
    assert run.num_arrived == run.num_finished + run.num_rejected
    assert run.num_unfinished == 0
    assert run.replicas.free_blocks.tolist() == run.replicas.blocks.tolist()


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 150),
    st.floats(0.5, 60.0),
    st.integers(1, 4),
    st.sampled_from(ROUTINGS),
    st.integers(120, 2000),
    st.integers(0, 99),
)
def test_every_request_ends_and_every_block_comes_back(
    num: int, rate_per_s: float, count: int, routing: str, num_blocks: int, seed: int
) -> None:
    requests = poisson(num, rate_per_s, 700, 100, seed, spread=0.95)
    run = simulate_serving(fleet(count, num_blocks, routing), requests, record=True)
    all_accounted(run)
    assert run.records is not None
    assert run.records.row.tolist() == list(range(num))
    assert run.output_tokens == int(requests.output[run.records.status == 0].sum())
    assert int(run.replicas.output_tokens.sum()) == run.output_tokens


def test_nobody_gets_a_token_before_its_prompt_could_be_computed() -> None:
    requests = poisson(300, 8.0, 2000, 50, spread=0.9)
    run = simulate_serving(fleet(), requests, record=True)
    assert run.records is not None
    assert np.all(run.records.ttft_s >= table().tokens_s[np.minimum(requests.prompt, 8192)] - 1e-12)
    assert np.nanmin(run.records.tpot_s) >= decode_step_time(table(), 1, 1.0)


@pytest.mark.parametrize("routing", ROUTINGS)
def test_more_replicas_keep_more_requests_within_the_limits(routing: str) -> None:
    requests, slo = poisson(1500, 60.0), Promise(ttft_s=0.3, tpot_s=0.02)
    good = [
        simulate_serving(fleet(count, routing=routing), requests, slo=slo).num_good for count in (1, 2, 4)
    ]
    assert good[0] < good[1] <= good[2]


def test_the_same_seed_gives_the_same_bits_and_chunks_change_nothing() -> None:
    requests = poisson(900, 30.0, spread=0.5)
    served = fleet(3, routing="two-choices")
    one, again = (simulate_serving(served, requests, seed=5, record=True) for _ in range(2))
    other = simulate_serving(served, requests, seed=6, record=True)
    parts = (
        Requests.of(
            requests.arrival_s[i : i + 100], requests.prompt[i : i + 100], requests.output[i : i + 100]
        )
        for i in range(0, 900, 100)
    )
    chunked = simulate_serving(served, parts, seed=5, record=True)
    assert one.records is not None
    assert again.records is not None
    assert other.records is not None
    assert chunked.records is not None
    assert np.array_equal(one.records.end_s, again.records.end_s)
    assert np.array_equal(one.records.end_s, chunked.records.end_s)
    assert not np.array_equal(one.records.replica, other.records.replica)


def test_histograms_give_the_percentiles_of_the_records() -> None:
    run = simulate_serving(fleet(2), poisson(3000, 20.0, spread=0.8), record=True)
    assert run.records is not None
    for share in (0.5, 0.9, 0.99):
        assert run.ttft_s(share) == pytest.approx(np.quantile(run.records.ttft_s, share), rel=0.01)
        assert run.e2e_s(share) == pytest.approx(np.quantile(run.records.e2e_s, share), rel=0.01)


def test_requests_that_never_fit_are_refused_with_the_reason() -> None:
    requests = Requests.of(np.zeros(3), np.array([200_000, 9000, 100]), np.array([10, 10, 10]))
    run = simulate_serving(fleet(num_blocks=500), requests, record=True)
    assert (run.num_too_long, run.num_too_large, run.num_finished) == (1, 1, 1)


def test_a_request_goes_where_it_fits() -> None:
    pools = tuple(Pool(replica=replica(), table=table(), num_blocks=blocks) for blocks in (100, 2000))
    requests = Requests.of(np.arange(8) * 10.0, np.full(8, 5000), np.full(8, 5))
    run = simulate_serving(Fleet(pools=pools, routing="round-robin"), requests, record=True)
    assert run.records is not None
    assert set(run.records.replica.tolist()) == {1}


def test_too_much_load_is_said_with_the_rate_that_holds() -> None:
    light, heavy = (simulate_serving(fleet(), poisson(6000, rate)) for rate in (10.0, 90.0))
    assert light.stable
    assert not heavy.stable
    assert heavy.sustained_per_s == pytest.approx(heavy.num_finished / heavy.duration_s, rel=0.1)


def test_a_lost_replica_loses_no_request() -> None:
    served = msgspec.structs.replace(
        fleet(2, routing="least-outstanding"),
        outages=(ReplicaOutage(replica=0, start_s=5.0, duration_s=5.0),),
    )
    requests = poisson(400, 20.0, 300, 200)
    run, calm = simulate_serving(served, requests, record=True), simulate_serving(fleet(2), requests)
    all_accounted(run)
    assert run.num_rerouted > 0
    assert run.e2e_s(0.99) > calm.e2e_s(0.99)
    assert run.records is not None
    hit = (run.records.scheduled_s > 5.0) & (run.records.scheduled_s < 10.0)
    assert set(run.records.replica[hit].tolist()) == {1}


def test_a_drained_replica_finishes_what_it_has() -> None:
    served = msgspec.structs.replace(
        fleet(2), outages=(ReplicaOutage(replica=0, start_s=5.0, duration_s=5.0, drain=True),)
    )
    run = simulate_serving(served, poisson(400, 20.0, 300, 200))
    all_accounted(run)
    assert run.num_rerouted == 0


def test_prefill_hands_over_to_decode() -> None:
    handoff = Handoff(setup_s=0.01, token_s=1e-6, shown_fraction=1.0)
    pools = (
        Pool(replica=replica(), role="prefill", table=table(), num_blocks=2000, handoff=handoff),
        Pool(replica=replica(), role="decode", table=table(), num_blocks=4000, count=2),
    )
    requests = poisson(300, 8.0)
    run = simulate_serving(Fleet(pools=pools), requests, record=True)
    both = simulate_serving(fleet(3, routing="least-outstanding"), requests, record=True)
    all_accounted(run)
    assert run.replicas.prompt_tokens.tolist()[1:] == [0, 0]
    assert run.records is not None
    alone = float(table().tokens_s[512])
    assert run.records.ttft_s.min() >= alone + 0.01 + 512e-6
    assert run.tpot_s(0.99) < both.tpot_s(0.99)  # no prompt ever stops a decode


def test_a_far_region_is_asked_only_when_the_near_one_is_full() -> None:
    pools = tuple(
        Pool(replica=replica(), table=table(), num_blocks=27_000, region=region) for region in (0, 1)
    )
    served = Fleet(pools=pools, distance_s=((0.0, 0.05), (0.05, 0.0)), num_spill=4)
    requests = poisson(400, 10.0)
    near = simulate_serving(msgspec.structs.replace(served, num_spill=10_000), requests, record=True)
    spilled = simulate_serving(served, requests, record=True, region=np.zeros(400, np.int64))
    assert near.records is not None
    assert spilled.records is not None
    assert set(near.records.replica.tolist()) == {0}
    away = spilled.records.replica == 1
    assert 0 < away.sum() < 200
    assert spilled.records.ttft_s[away].min() > 0.1  # there and back


def test_replicas_follow_the_load_and_none_is_left_at_rest() -> None:
    rule = Autoscaling(target=8.0, interval_s=5.0, cold_start_s=20.0, patience_s=30.0, least=0, most=6)
    served = msgspec.structs.replace(fleet(1, routing="least-outstanding"), autoscaling=rule)
    busy, late = poisson(1500, 30.0), poisson(20, 1.0, seed=2)
    requests = Requests.of(
        np.append(busy.arrival_s, late.arrival_s + 400.0),
        np.append(busy.prompt, late.prompt),
        np.append(busy.output, late.output),
    )
    run = simulate_serving(served, requests, record=True)
    all_accounted(run)
    assert run.records is not None
    assert len(set(run.records.replica.tolist())) > 1
    assert run.records.ttft_s[1500] > 10.0  # all were off: it waits for a cold start
    assert run.replicas.active_s.sum() < 6 * run.duration_s / 2


def test_speculation_shortens_answers_by_the_tokens_of_a_step() -> None:
    plain = Pool(replica=replica(), table=table(), num_blocks=27_000)
    fast = Pool(
        replica=msgspec.structs.replace(replica(), speculation=Speculation(num_draft=3, acceptance=0.7)),
        table=table(4),
        num_blocks=27_000,
    )
    requests = poisson(400, 1.0, 256, 256)
    slow, quick = (simulate_serving(Fleet(pools=(pool,)), requests) for pool in (plain, fast))
    all_accounted(quick)
    assert slow.tpot_s() / quick.tpot_s() == pytest.approx(2.533, rel=0.05)


def test_a_static_batch_ends_together_and_a_dynamic_one_waits_for_company() -> None:
    requests = Requests.of(np.array([0.0, 0.001, 0.002]), np.array([100, 50, 10]), np.array([5, 40, 20]))
    static = simulate_serving(fleet(batching="static", max_sequences=8), requests, record=True)
    assert static.records is not None
    first, *others = static.records.end_s.tolist()
    assert others[0] == others[1] > first
    dynamic = simulate_serving(fleet(batching="dynamic", wait_s=0.1, max_sequences=8), requests, record=True)
    assert dynamic.records is not None
    assert dynamic.records.scheduled_s.tolist() == [0.1, 0.1, 0.1]
    full = simulate_serving(fleet(batching="dynamic", wait_s=0.1, max_sequences=3), requests, record=True)
    assert full.records is not None
    assert full.records.scheduled_s.tolist() == [0.002, 0.002, 0.002]


def test_ranks_share_requests_but_not_a_prompt() -> None:
    def pool(ranks: int) -> Fleet:
        one = msgspec.structs.replace(replica(), dp=ranks)
        return Fleet(pools=(Pool(replica=one, table=table(), num_blocks=4000),))

    alone = Requests.of(np.zeros(1), np.array([2000]), np.array([2]))
    crowd = Requests.of(np.zeros(64), np.full(64, 2000), np.full(64, 2))
    assert simulate_serving(pool(4), alone).duration_s == simulate_serving(pool(1), alone).duration_s
    assert simulate_serving(pool(4), crowd).duration_s < simulate_serving(pool(1), crowd).duration_s / 3
    assert simulate_serving(pool(4), alone).replicas.blocks.tolist() == [16_000]


def test_swapping_out_computes_nothing_twice() -> None:
    requests = poisson(120, 40.0, 400, 100, spread=0.9)
    swapped = simulate_serving(fleet(num_blocks=240, preemption="swap"), requests)
    again = simulate_serving(fleet(num_blocks=240), requests)
    all_accounted(swapped)
    assert swapped.num_preempted > 0
    assert swapped.replicas.prompt_tokens[0] == requests.prompt.sum() < again.replicas.prompt_tokens[0]


def test_a_turn_waits_for_the_one_before() -> None:
    requests = msgspec.structs.replace(
        Requests.of(np.array([0.0, 2.0, 0.5, 3.0]), np.full(4, 100), np.full(4, 50)),
        after=np.array([-1, 0, -1, 1]),
    )
    run = simulate_serving(fleet(), requests, record=True)
    assert run.records is not None
    records = run.records
    assert records.arrival_s[1] == pytest.approx(records.end_s[0] + 2.0)
    assert records.arrival_s[3] == pytest.approx(records.end_s[1] + 3.0)
    assert records.arrival_s[2] == 0.5


def test_lower_priority_numbers_go_first() -> None:
    requests = msgspec.structs.replace(
        Requests.of(np.arange(40) * 1e-4, np.full(40, 500), np.full(40, 20)),
        priority=np.arange(40)[::-1].copy(),
    )
    run = simulate_serving(fleet(max_sequences=1), requests, record=True)
    assert run.records is not None
    assert np.argsort(run.records.scheduled_s).tolist() == [0, *range(39, 0, -1)]


def test_a_cache_in_front_answers_at_once() -> None:
    answers = np.where(np.arange(100) % 2 == 0, 0.004, -1.0)
    run = simulate_serving(fleet(), poisson(100, 5.0), answer_s=answers, record=True)
    assert run.records is not None
    assert run.num_answered == 50
    assert np.allclose(run.records.e2e_s[::2], 0.004)


def test_the_first_seconds_can_be_seen_as_a_timeline() -> None:
    run = simulate_serving(fleet(), poisson(50, 5.0), trace_s=5.0)
    assert run.trace is not None
    assert 10 < int(run.trace.num_recorded[0]) < 500
    assert len(perfetto(run.trace)) > 1000


def test_bad_input_is_said() -> None:
    with pytest.raises(ScenarioError, match="no request comes"):
        simulate_serving(fleet(), poisson(0, 1.0))
    with pytest.raises(ScenarioError, match="order of their arrival"):
        simulate_serving(
            fleet(), Requests.of(np.array([2.0, 1.0]), np.ones(2, np.int64), np.ones(2, np.int64))
        )
    with pytest.raises(ScenarioError, match="output = 0"):
        simulate_serving(fleet(), Requests.of(np.zeros(1), np.ones(1, np.int64), np.zeros(1, np.int64)))
    with pytest.raises(UnknownNameError, match="least-outstanding"):
        fleet(routing="least-outstandin")
    with pytest.raises(ScenarioError, match="do not make a whole"):
        Fleet(pools=(Pool(replica=replica(), role="prefill"),))
