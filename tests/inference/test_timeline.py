"""Small fleets whose every step takes a whole second: timelines worked out by hand."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from tests.inference.serving_case import replica
from tests.inference.ticking_case import one_pool, records, rows, simulated, ticking, times

from datahall.inference.engine.disaggregation import Handoff
from datahall.inference.engine.replica import Speculation
from datahall.inference.fleet.fleet import ReplicaOutage
from datahall.scenario.sections.wanted.promise import Promise

each_leap = pytest.mark.parametrize("max_leap", [1, 1 << 40])


@each_leap
def test_a_prompt_is_one_step_and_every_further_token_another(max_leap: int) -> None:
    run = simulated(one_pool(), requests=rows((0.5, 10, 3), (20.0, 10, 1)), max_leap=max_leap)
    assert times(run) == [(0.5, 1.5, 3.5), (20.0, 21.0, 21.0)]
    assert run.replicas.num_steps.tolist() == [4]
    assert run.replicas.busy_fraction[0] == pytest.approx(4 / 21)
    assert run.duration_s == 21.0
    assert records(run).tpot_s[0] == 1.0
    assert np.isnan(records(run).tpot_s[1])
    assert records(run).e2e_s.tolist() == [3.0, 1.0]


@each_leap
def test_who_comes_during_a_step_joins_the_next(max_leap: int) -> None:
    """Steps end at 1, 2, 3 …: arrivals at 0.2 and 10.2 wait for the ends at 1 and 11, one at 5 takes part at once."""
    requests = rows((0.0, 4, 30), (0.2, 4, 2), (5.0, 4, 2), (10.2, 4, 2))
    run = simulated(one_pool(), requests=requests, max_leap=max_leap)
    assert times(run) == [(0.0, 1.0, 30.0), (1.0, 2.0, 3.0), (5.0, 6.0, 7.0), (11.0, 12.0, 13.0)]
    assert run.queue_s(1.0) == pytest.approx(0.8, rel=0.01)
    assert run.replicas.queue_peak.tolist() == [1]
    assert run.queue_peak == 1
    assert run.replicas.queue_mean[0] == run.queue_mean == pytest.approx((0.8 + 0.8) / 30)


def test_the_time_of_a_step_is_the_sum_of_its_parts() -> None:
    """A prompt of 8 beside nothing, then one decode with a context of 9, then of 10."""
    made = ticking(token_s=0.25, decode_s=0.5, prefill_s=0.125, head_s=2.0, host=(4.0, 8.0))
    alone = 1 + 8 * 0.25 + 8 * 0.125 + 2.0 + 4 + 8
    first = 1 + 0.25 + 9 * 0.5 + 2.0 + 4 + 8
    run = simulated(one_pool(table=made), requests=rows((0.0, 8, 3)))
    assert times(run) == [(0.0, alone, pytest.approx(alone + first + first + 0.5))]


def test_a_prompt_that_is_cut_gets_no_token_before_its_last_piece() -> None:
    """150 tokens in pieces of 64, 64 and 22: the head has a row in the last step only."""
    run = simulated(one_pool(table=ticking(head_s=1.0)), requests=rows((0.0, 150, 2)))
    assert times(run) == [(0.0, 4.0, 6.0)]
    assert run.replicas.prompt_tokens.tolist() == [150]


def test_decodes_leave_less_of_the_budget_to_prompts() -> None:
    """Two decodes of 4 verified tokens each leave 56 of 64: a prompt of 57 takes two steps, one of 56 a single one."""
    for prompt, first_s in ((56, 2.0), (57, 3.0)):
        drafting = msgspec.structs.replace(
            replica(token_budget=64, max_sequences=8), speculation=Speculation(num_draft=3, acceptance=1.0)
        )
        pool = one_pool(of=drafting, table=ticking(verified=4))
        run = simulated(pool, requests=rows((0.0, 4, 100), (0.0, 4, 100), (0.5, prompt, 1)))
        assert times(run)[2] == (1.0, first_s, first_s)
        # 99 further tokens, four a step
        assert times(run)[0] == (0.0, 1.0, 26.0)


def test_prompts_that_stop_decodes_have_the_budget_to_themselves() -> None:
    pool = one_pool(mixed_steps=False)
    run = simulated(pool, requests=rows((0.0, 4, 5), (0.5, 64, 3)))
    # prompt, prompt, then both decode; the first waits for one step of the other's prompt
    assert times(run) == [(0.0, 1.0, 6.0), (1.0, 2.0, 4.0)]
    again = simulated(pool, requests=rows((0.0, 4, 10), (4.5, 64, 1)))
    assert times(again) == [(0.0, 1.0, 11.0), (5.0, 6.0, 6.0)]
    assert again.itl_s(1.0) == pytest.approx(2.0, rel=0.01)
    assert again.itl_s(0.5) == pytest.approx(1.0, rel=0.01)


def test_places_are_given_in_the_order_of_arrival() -> None:
    run = simulated(one_pool(max_sequences=1), requests=rows((0.0, 4, 3), (0.1, 4, 2), (0.2, 4, 1)))
    assert times(run) == [(0.0, 1.0, 3.0), (3.0, 4.0, 5.0), (5.0, 6.0, 6.0)]
    assert run.queue_peak == 2
    assert run.queue_mean == pytest.approx((2.9 + 4.8) / 6)


def test_the_latest_gives_way_where_blocks_are_short_and_computes_all_again() -> None:
    """Four blocks of 16: two prompts of 32 fill them, so the first token more takes a block of the second one."""
    run = simulated(one_pool(num_blocks=4), requests=rows((0.0, 32, 4), (0.0, 32, 2)))
    # the second comes back when the first ends; its prompt and one token are computed, and give the next
    assert times(run) == [(0.0, 1.0, 4.0), (0.0, 1.0, 5.0)]
    assert records(run).preempted.tolist() == [0, 1]
    assert run.replicas.prompt_tokens.tolist() == [32 + 32 + 33]
    assert run.replicas.num_preempted.tolist() == [1]
    assert run.replicas.cache_peak_fraction.tolist() == [1.0]


def test_a_cache_that_is_swapped_out_moves_twice() -> None:
    """As before, but 32 tokens go to the host and come back, each a 4096th of a second."""
    one = replica(token_budget=64, max_sequences=8, preemption="swap")
    one = msgspec.structs.replace(one, host_bytes_per_s=131_072.0 * 64)  # a token of Llama 8B in 1/64 s
    run = simulated(one_pool(num_blocks=4, of=one), requests=rows((0.0, 32, 4), (0.0, 32, 2)))
    assert times(run) == [(0.0, 1.0, 4.5), (0.0, 1.0, 6.0)]
    assert run.replicas.prompt_tokens.tolist() == [64]


@each_leap
def test_a_lost_replica_keeps_no_step_that_had_not_ended(max_leap: int) -> None:
    """Lost at 5.2 with five tokens out: the prompt of ten and these five are computed on the other, which gives six."""
    run = simulated(
        one_pool(2), requests=rows((0.0, 10, 8)), max_leap=max_leap,
        outages=(ReplicaOutage(replica=0, start_s=5.2, duration_s=2.0),),
    )  # fmt: skip
    assert times(run) == [(0.0, 1.0, 8.2)]
    assert run.replicas.prompt_tokens.tolist() == [10, 15]
    assert run.num_rerouted == 1
    assert run.replicas.active_s.tolist() == pytest.approx([5.2 + 1.0, 8.2])
    assert run.replicas.output_tokens.tolist() == [0, 8]
    assert records(run).replica.tolist() == [1]


@each_leap
def test_a_replica_lost_as_a_step_ends_has_its_token(max_leap: int) -> None:
    run = simulated(
        one_pool(2), requests=rows((0.0, 10, 8)), max_leap=max_leap,
        outages=(ReplicaOutage(replica=0, start_s=5.0, duration_s=2.0),),
    )  # fmt: skip
    # simulated before the step of its instant: the token of that step is lost in a single step, kept in a leap
    assert run.replicas.prompt_tokens.tolist() in ([10, 14], [10, 15])
    assert run.num_finished == 1


def test_a_prompt_that_was_being_computed_and_one_that_waited_are_sent_elsewhere() -> None:
    run = simulated(
        one_pool(2, max_sequences=1), requests=rows((0.0, 10, 3), (0.0, 10, 3), (0.1, 10, 3), (0.1, 10, 3)),
        outages=(ReplicaOutage(replica=0, start_s=0.5, duration_s=100.0),),
    )  # fmt: skip
    # rows 1 and 3 are on the second replica; 0 and 2 follow, sent at 0.5
    assert times(run)[1] == (0.0, 1.0, 3.0)
    assert sorted(times(run)[row][2] for row in (0, 2, 3)) == [6.0, 9.0, 12.0]
    assert times(run)[3] == (3.0, 4.0, 6.0)
    assert run.num_rerouted == 2
    assert records(run).replica.tolist() == [1, 1, 1, 1]


def test_requests_wait_for_the_only_replica_to_come_back() -> None:
    outage = ReplicaOutage(replica=0, start_s=2.0, duration_s=8.0)
    run = simulated(one_pool(), requests=rows((0.0, 10, 1), (6.0, 10, 2), (7.0, 10, 1)), outages=(outage,))
    assert times(run)[1:] == [(10.0, 11.0, 12.0), (10.0, 11.0, 11.0)]
    assert run.num_rerouted == 0
    assert run.replicas.active_s.tolist() == [2.0 + 2.0]


def test_a_replica_that_drains_is_off_when_its_last_request_has_left() -> None:
    outage = ReplicaOutage(replica=0, start_s=2.5, duration_s=20.0, drain=True)
    requests = rows((0.0, 10, 6), (0.0, 10, 1), (3.0, 10, 1), (4.0, 10, 1), (24.0, 10, 1), (24.0, 10, 1))
    run = simulated(one_pool(2), requests=requests, outages=(outage,))
    assert times(run)[0] == (0.0, 1.0, 6.0)
    assert records(run).replica.tolist()[:4] == [0, 1, 1, 1]
    assert set(records(run).replica.tolist()[4:]) == {0, 1}
    assert run.replicas.active_s[0] == pytest.approx(6.0 + 2.5)
    assert run.num_rerouted == 0


def test_a_replica_that_is_idle_drains_at_once() -> None:
    outage = ReplicaOutage(replica=0, start_s=2.0, duration_s=2.0, drain=True)
    run = simulated(one_pool(), requests=rows((0.0, 10, 1), (10.0, 10, 1)), outages=(outage,))
    assert run.replicas.active_s.tolist() == [2.0 + 7.0]
    lost = ReplicaOutage(replica=0, start_s=2.0, duration_s=2.0)
    later = ReplicaOutage(replica=0, start_s=6.0, duration_s=2.0, drain=True)
    run = simulated(one_pool(), requests=rows((0.0, 10, 1), (10.0, 10, 1)), outages=(lost, later))
    assert run.replicas.active_s.tolist() == [2.0 + 2.0 + 3.0]


HANDOFF = Handoff(setup_s=0.5, token_s=0.2, shown_fraction=0.25)


@pytest.mark.parametrize(
    ("prompt", "landed_s"),
    [
        (10, 1.0 + 0.5 + 1.0),  # 2 s on the way, of which the one of the prompt is hidden
        (4, 1.0 + 0.5 + 0.2),  # 0.8 s: all hidden but the last quarter
    ],
)
def test_a_cache_is_handed_over_while_its_prompt_is_computed(prompt: int, landed_s: float) -> None:
    pools = (one_pool(role="prefill", handoff=HANDOFF), one_pool(role="decode"))
    run = simulated(*pools, requests=rows((0.0, prompt, 3), (0.0, prompt, 1)))
    landed = round(landed_s, 9)
    assert times(run)[0] == (0.0, landed, round(landed + 2.0, 9))
    assert times(run)[1] == (0.0, 1.0, 1.0)  # one token needs no decode
    assert run.replicas.num_steps.tolist() == [1, 2]
    assert records(run).replica.tolist() == [1, 0]


def test_a_hand_over_that_a_failure_has_undone_is_not_taken_for_the_next() -> None:
    """Computed at 1.0 and on its way until 2.5; its replica is gone from 1.2 to 1.3 and computes it again until 2.3."""
    pools = (one_pool(role="prefill", handoff=HANDOFF), one_pool(role="decode"))
    lost = (ReplicaOutage(replica=0, start_s=1.2, duration_s=0.1),)
    run = simulated(*pools, requests=rows((0.0, 10, 4)), outages=lost)
    # 11 tokens are 2.2 s on the way, hidden but for the last quarter: it lands at 2.3 + 0.5 + 0.55 with two tokens
    assert times(run) == [(0.0, 1.0, 5.35)]
    assert run.replicas.prompt_tokens.tolist() == [10 + 11, 0]
    assert run.num_rerouted == 1


def test_a_hand_over_from_a_lost_replica_is_not_taken_for_that_of_another() -> None:
    pools = (one_pool(2, role="prefill", handoff=HANDOFF), one_pool(role="decode"))
    lost = (ReplicaOutage(replica=0, start_s=1.2, duration_s=50.0),)
    run = simulated(*pools, requests=rows((0.0, 10, 4)), outages=lost)
    assert times(run) == [(0.0, 1.0, 1.2 + 1.0 + 0.5 + 0.55 + 2.0)]
    assert run.replicas.prompt_tokens.tolist() == [10, 11, 0]


def test_a_prefill_replica_goes_on_with_its_queue_when_a_cache_has_left() -> None:
    """One place: the second prompt waits until the first one's cache has gone."""
    pools = (one_pool(role="prefill", handoff=HANDOFF, max_sequences=1), one_pool(role="decode"))
    run = simulated(*pools, requests=rows((0.0, 10, 2), (0.0, 10, 2)))
    assert times(run) == [(0.0, 2.5, 3.5), (2.5, 5.0, 6.0)]


def test_a_decode_replica_takes_caches_while_it_has_room() -> None:
    pools = (one_pool(role="prefill", handoff=HANDOFF), one_pool(role="decode", max_sequences=1))
    run = simulated(*pools, requests=rows((0.0, 10, 3), (0.0, 10, 3)))
    assert sorted(times(run)) == [(0.0, 2.5, 4.5), (0.0, 2.5, 6.5)]
    few = (one_pool(role="prefill", handoff=HANDOFF), one_pool(role="decode", num_blocks=2))
    run = simulated(*few, requests=rows((0.0, 10, 3), (0.0, 10, 3)))
    assert sorted(times(run)) == [
        (0.0, 2.5, 4.5),
        (0.0, 2.5, 6.5),
    ]  # one more block stays free for each that runs


def test_a_far_replica_is_reached_and_answers_after_the_way() -> None:
    run = simulated(one_pool(region=1), requests=rows((0.0, 10, 3)), distance_s=((0.0, 0.5), (0.5, 0.0)))
    assert times(run) == [(0.5, 2.0, 4.0)]  # half a second there, half a second back


def test_the_front_end_delays_every_token() -> None:
    one = replica(token_budget=64)
    one = msgspec.structs.replace(one, engine=msgspec.structs.replace(one.engine, first_token_s=0.25))
    assert times(simulated(one_pool(of=one), requests=rows((0.0, 10, 3)))) == [(0.0, 1.25, 3.25)]


def test_a_request_on_its_way_to_a_lost_replica_looks_for_another() -> None:
    far = ((0.0, 0.5), (0.5, 0.0))
    lost = ReplicaOutage(replica=0, start_s=0.2, duration_s=60.0)
    run = simulated(one_pool(2, region=1), requests=rows((0.0, 10, 1)), distance_s=far, outages=(lost,))
    assert times(run) == [(1.0, 2.5, 2.5)]
    assert records(run).replica.tolist() == [1]


def test_a_replica_that_was_lost_and_is_back_does_not_know_a_request_on_its_way() -> None:
    far = ((0.0, 0.5), (0.5, 0.0))
    lost = ReplicaOutage(replica=0, start_s=0.2, duration_s=0.1)
    run = simulated(
        one_pool(region=1), requests=rows((0.0, 10, 1), (9.0, 10, 1)), distance_s=far, outages=(lost,)
    )
    assert times(run) == [(1.0, 2.5, 2.5), (9.5, 11.0, 11.0)]


def test_two_ranks_compute_a_prompt_each_in_one_step() -> None:
    two = msgspec.structs.replace(replica(token_budget=64, max_sequences=1), dp=2)
    made = ticking(token_s=0.5, prefill_s=0.25)
    run = simulated(one_pool(of=two, table=made), requests=rows((0.0, 8, 2), (0.0, 12, 2), (0.0, 8, 1)))
    # the longest of both prompts is 12: 1 + 6 + 3 s; then a decode on each rank, 1 + ½ s; then the third alone
    assert times(run) == [(0.0, 10.0, 11.5), (0.0, 10.0, 11.5), (11.5, 18.5, 18.5)]
    assert run.replicas.blocks.tolist() == [2000]


def test_a_static_batch_is_padded_to_its_longest_prompt_and_answer() -> None:
    pool = one_pool(batching="static", table=ticking(prefill_s=0.125), num_blocks=6)
    run = simulated(pool, requests=rows((0.0, 8, 2), (0.0, 16, 5), (0.0, 4, 1), (0.0, 16, 48)))
    # three of 21 tokens take two blocks each; with a fourth of 64 tokens they would take four each
    assert times(run)[:3] == [(0.0, 7.0, 11.0)] * 3
    assert times(run)[3] == (11.0, 14.0, 61.0)
    assert run.replicas.prompt_tokens.tolist() == [3 * 16 + 16]


def test_a_dynamic_batch_waits_for_company_but_not_for_ever() -> None:
    pool = one_pool(batching="dynamic", wait_s=2.0, max_sequences=3)
    run = simulated(
        pool, requests=rows((0.0, 8, 1), (1.0, 8, 1), (10.0, 8, 1), (10.5, 8, 1), (11.0, 8, 1), (11.5, 8, 1))
    )
    assert [row[0] for row in times(run)] == [2.0, 2.0, 11.0, 11.0, 11.0, 13.5]


@pytest.mark.parametrize(("prompt", "output", "status"), [(90, 11, 0), (90, 12, 1), (100, 1, 0), (101, 1, 1)])
def test_prompt_and_answer_fit_the_context(prompt: int, output: int, status: int) -> None:
    """The last token is not read again."""
    one = msgspec.structs.replace(replica(token_budget=64, max_sequences=8), max_context=100)
    run = simulated(one_pool(of=one), requests=rows((0.0, prompt, output)))
    assert records(run).status.tolist() == [status]


@pytest.mark.parametrize(("prompt", "output", "status"), [(32, 17, 0), (32, 18, 2), (48, 1, 0), (49, 1, 2)])
def test_prompt_and_answer_fit_the_cache(prompt: int, output: int, status: int) -> None:
    run = simulated(one_pool(num_blocks=3), requests=rows((0.0, prompt, output)))
    assert records(run).status.tolist() == [status]
    assert (run.num_too_large, run.num_rejected) == (status // 2, status // 2)


def test_a_prefill_pool_need_not_hold_the_answer() -> None:
    pools = (one_pool(role="prefill", num_blocks=2, handoff=HANDOFF), one_pool(role="decode", num_blocks=8))
    run = simulated(*pools, requests=rows((0.0, 32, 60), (0.0, 33, 60)))
    assert records(run).status.tolist() == [0, 2]


def test_only_requests_after_the_warm_up_are_measured() -> None:
    requests = rows((0.0, 10, 3), (5.0, 20, 2), (10.0, 30, 1))
    run = simulated(one_pool(), requests=requests, warmup_s=5.0, slo=Promise(ttft_s=1.5, tpot_s=1.5))
    assert (run.num_finished, run.num_measured, run.num_good) == (3, 2, 2)
    assert (run.prompt_tokens, run.output_tokens) == (50, 3)
    assert run.measured_s == 6.0
    assert run.requests_per_s == run.goodput_per_s == pytest.approx(2 / 6)
    assert run.output_tokens_per_s == pytest.approx(3 / 6)
    assert run.prompt_tokens_per_s == pytest.approx(50 / 6)


@pytest.mark.parametrize(
    ("ttft_s", "tpot_s", "good"),
    [(1.0, 1.0, 2), (1.79, 1.0, 2), (1.81, 1.0, 3), (1.81, 0.99, 1), (1.81, 0.1, 1), (0.99, 9.0, 0)],
)
def test_a_promise_is_kept_up_to_its_limit(ttft_s: float, tpot_s: float, good: int) -> None:
    """First tokens after 1, 1.8 and 1 s; a second each for the others, and none after the last's only one."""
    requests = rows((0.0, 10, 3), (0.2, 10, 3), (8.0, 10, 1))
    run = simulated(one_pool(), requests=requests, slo=Promise(ttft_s=ttft_s, tpot_s=tpot_s))
    assert run.num_good == good
    assert run.good_fraction == pytest.approx(good / 3)


def test_a_run_that_is_stopped_counts_what_was_not_finished() -> None:
    run = simulated(
        one_pool(max_sequences=1), requests=rows((0.0, 10, 3), (0.0, 10, 30), (1.0, 10, 2)), until_s=8.5
    )
    assert (run.num_arrived, run.num_finished, run.num_unfinished) == (3, 1, 2)
    assert run.duration_s == 8.5
    assert run.queue_mean == pytest.approx((3.0 + 7.5) / 8.5)


def test_blocks_are_held_from_the_step_that_takes_them() -> None:
    """32 tokens are two blocks from 0 to 1, three for the two decode steps; half of a step's growth counts."""
    run = simulated(one_pool(num_blocks=10), requests=rows((0.0, 32, 3)), max_leap=1)
    assert run.replicas.cache_peak_fraction[0] == pytest.approx(0.3)
    assert run.replicas.cache_mean_fraction[0] == pytest.approx((2 * 1 + 3 * 2) / 3 / 10)


def test_a_user_sends_the_next_request_when_the_last_has_ended() -> None:
    run = simulated(
        one_pool(), requests=rows((0.0, 10, 2), (1.0, 10, 2), (0.5, 10, 1), (2.0, 10, 1)), users=2
    )
    assert records(run).arrival_s.tolist() == [0.0, 1.0, 2.5, 5.0]
    assert run.num_finished == 4
    assert run.stable


def test_tokens_found_in_a_cache_are_not_computed_but_one_always_is() -> None:
    requests = rows((0.0, 100, 1), (10.0, 100, 1), (20.0, 100, 1))
    found = simulated(one_pool(), requests=requests, cached_tokens=np.array([0, 60, 500]))
    assert found.replicas.prompt_tokens.tolist() == [100 + 40 + 1]
    assert records(found).hit.tolist() == [0, 60, 99]
    assert found.hit_tokens == 159


def test_turns_with_one_parent_all_follow_it() -> None:
    requests = rows((0.0, 10, 2), (1.0, 10, 1), (2.0, 10, 1), (0.5, 10, 1), after=[-1, 0, 0, 2])
    run = simulated(one_pool(), requests=requests)
    assert records(run).arrival_s.tolist() == [0.0, 3.0, 4.0, 5.5]


def test_urgent_requests_pass_those_that_wait_but_not_those_that_run() -> None:
    requests = rows(*[(0.1 * i, 4, 1) for i in range(6)], priority=[5, 3, 1, 3, 2, 1])
    run = simulated(one_pool(max_sequences=1), requests=requests)
    assert np.argsort(records(run).scheduled_s).tolist() == [0, 2, 5, 4, 1, 3]


def test_a_cache_in_front_spares_the_model() -> None:
    run = simulated(one_pool(), requests=rows((0.0, 10, 3), (1.0, 10, 3)), answer_s=np.array([-1.0, 0.25]))
    assert times(run)[1] == (-1.0, 1.25, 1.25)
    assert (run.num_answered, run.num_finished) == (1, 2)
    assert run.replicas.prompt_tokens.tolist() == [10]


@pytest.mark.parametrize(("mixed", "kinds"), [(True, [2, 1, 0, 0]), (False, [2, 2, 0, 0, 0])])
def test_steps_are_told_apart_in_a_trace(mixed: bool, kinds: list[int]) -> None:
    """Prompts alone, prompts beside decodes, decodes; what ends after the limit is not kept."""
    requests = rows((0.0, 10, 4), (0.5, 10, 2))
    run = simulated(one_pool(mixed_steps=mixed), requests=requests, trace_s=99.0, max_leap=1)
    assert run.trace is not None
    num = int(run.trace.num_recorded[0])
    assert run.trace.kept[:num]["kind"].tolist() == kinds
    short = simulated(one_pool(mixed_steps=mixed), requests=requests, trace_s=2.5, max_leap=1)
    assert short.trace is not None
    assert int(short.trace.num_recorded[0]) == 2


def test_two_choices_are_drawn_for_each_request() -> None:
    """Forty requests that never meet: each goes to the first of its two, so all of four replicas get some."""
    run = simulated(one_pool(4), requests=rows(*[(10.0 * i, 4, 1) for i in range(40)]), routing="two-choices")
    assert set(records(run).replica.tolist()) == {0, 1, 2, 3}
