"""Schedules worked out by hand, minute by minute."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from tests.scheduling.queue_case import play, queue

from datahall.scheduling.machine import Machine, plain_machine
from datahall.scheduling.metrics import metrics_of, useful_figure
from datahall.scheduling.run import Outage

# on 8 chips: A has 4 for 10, B wants 8, C wants 2 for 3, D wants 2 for 8, E wants 1 for 4
QUEUE = queue((0, 10, 4), (1, 10, 8), (2, 3, 2), (3, 8, 2), (4, 4, 1))


@pytest.mark.parametrize(
    ("policy", "starts"),
    [
        ("fifo", [0, 10, 20, 20, 20]),  # B waits for A, all others for B
        ("gang", [0, 11, 2, 3, 5]),  # D keeps B from its time; E waits for C, for 4 + 2 + 2 are taken
        ("backfill", [0, 10, 2, 20, 4]),  # B is promised 10: C ends before it and so does E, D would not
        ("conservative", [0, 10, 2, 20, 4]),
    ],
)
def test_five_jobs_on_eight_chips(policy: str, starts: list[float]) -> None:
    assert play(QUEUE, policy, 8).first_s.tolist() == starts  # type: ignore[arg-type]


def test_of_as_short_a_wait_the_policy_that_does_more_is_first() -> None:
    jobs = play(QUEUE, "fifo", 8)
    more = metrics_of(jobs)
    less = msgspec.structs.replace(more, goodput_fraction=more.goodput_fraction / 2)
    assert min((less, more), key=lambda one: one.rank) is more
    sooner = msgspec.structs.replace(less, mean_wait_s=more.mean_wait_s / 2)
    assert min((more, sooner), key=lambda one: one.rank) is sooner


def test_what_five_jobs_in_order_are_worth() -> None:
    run = play(QUEUE, "fifo", 8)
    one = metrics_of(run)
    assert one.mean_wait_s == pytest.approx((0 + 9 + 18 + 17 + 16) / 5)
    assert one.median_wait_s == 16
    assert one.makespan_s == 28
    held = 4 * 10 + 8 * 10 + 2 * 3 + 2 * 8 + 1 * 4
    assert one.utilisation_fraction == pytest.approx(held / (8 * 28))
    # 10, 19, 21, 25 and 20 in the system, for runs of 10, 10, (3 counts as) 10, (8 as) 10, (4 as) 10
    assert one.slowdown_ratio == pytest.approx((1.0 + 1.9 + 2.1 + 2.5 + 2.0) / 5)
    # 4 are idle from 2 to 10, while C and then D and E wait for less
    assert one.blocked_fraction == pytest.approx(4 * 8 / (8 * 28))
    assert one.goodput_fraction == 1.0
    assert useful_figure(run).value == pytest.approx(held / (8 * 28))


def test_a_limit_decides_who_may_pass_and_an_early_end_lets_the_first_start() -> None:
    jobs = queue((0, 10, 4), (1, 5, 8), (2, 6, 4), limit_s=(20, 5, 9))
    run = play(jobs, "backfill", 8)
    # B is promised 20, when A must have ended; C says 9, so it may pass; A ends at 10, C at 8: B starts at 10
    assert run.first_s.tolist() == [0, 10, 2]


def test_what_ends_in_the_moment_of_a_promise_is_free_beside_it() -> None:
    """Two jobs of four chips end at 10, when B is promised five of nine: C may have the ninth, however long it runs."""
    jobs = queue((0, 10, 4), (0, 10, 4), (1, 10, 5), (2, 100, 1))
    assert play(jobs, "backfill", 9).first_s.tolist() == [0, 0, 10, 2]


def test_a_job_is_stopped_at_its_limit() -> None:
    run = play(queue((0, 100, 1), limit_s=(30,)), "fifo", 1)
    assert run.end_s.tolist() == [30]


def test_what_a_limit_cuts_off_is_lost_since_the_last_checkpoint() -> None:
    jobs = queue((0, 100, 1), (0, 20, 1), limit_s=(30, 30), checkpoint_s=(8, 8))
    run = play(jobs, "fifo", 2)
    assert (run.useful_s, run.cut_off_s, run.allocated_s) == (24 + 20, 6, 50)
    assert run.is_done.tolist() == [False, True]
    one = metrics_of(run)
    assert (one.num_done, one.num_cut_off, one.num_restarts) == (1, 1, 0)
    figure = useful_figure(play(queue((0, 100, 1), limit_s=(30,)), "fifo", 1))
    assert figure.value == 0.0, "useful work, not the first part that is any"


@pytest.mark.parametrize("policy", ["fifo", "backfill", "conservative", "topology", "fair-share", "priority"])
def test_a_queue_that_begins_later_goes_as_one_that_begins_at_once(policy: str) -> None:
    """Jobs and outages an hour later: all of it is an hour later, and worth the same."""
    later = queue(
        *((submit + 3600, run, chips) for submit, run, chips in ((0, 10, 4), (1, 10, 8), (2, 3, 2)))
    )
    soon = queue((0, 10, 4), (1, 10, 8), (2, 3, 2))
    one, other = (
        play(
            jobs,
            policy,
            8,
            outages=(Outage(nodes=(0,), start_s=at, duration_s=4),),
            mttf_s=500.0,
            repair_s=5.0,
        )  # type: ignore[arg-type]
        for jobs, at in ((soon, 3.0), (later, 3603.0))
    )
    assert other.first_s.tolist() == pytest.approx((one.first_s + 3600).tolist())
    assert metrics_of(other).makespan_s == pytest.approx(metrics_of(one).makespan_s)
    assert metrics_of(other).utilisation_fraction == pytest.approx(metrics_of(one).utilisation_fraction)
    assert (other.idle_s, other.down_s) == pytest.approx((one.idle_s, one.down_s))


def test_who_begins_again_has_the_rest_of_its_limit() -> None:
    """A is stopped at 50 with five checkpoints and needs 50 more: B is promised 100, which C would run into."""
    jobs = queue((0, 100, 8), (52, 50, 16), (53, 60, 8), checkpoint_s=(10, 10, 10))
    stopped = Outage(nodes=(0,), start_s=50, duration_s=1)
    run = play(jobs, "backfill", plain_machine(2, 8), outages=(stopped,))
    assert run.first_s.tolist() == [0, 100, 150]


def test_who_begins_again_may_pass_only_with_its_restart() -> None:
    """C has 40 s of work and 60 s to begin again: from 21 on it would run into the 100 that B is promised."""
    jobs = queue((0, 100, 8), (1, 50, 16), (2, 40, 8))
    stopped = Outage(nodes=(1,), start_s=20, duration_s=1)
    run = play(jobs, "backfill", plain_machine(2, 8), outages=(stopped,), restart_s=60.0)
    assert run.first_s[1] == 100


def test_an_outage_that_is_over_before_the_first_job_is_none() -> None:
    jobs = queue((100, 10, 2))
    over = play(jobs, "fifo", 2, outages=(Outage(nodes=(0,), start_s=10, duration_s=20),))
    assert (over.first_s.tolist(), over.num_failures, over.down_s) == ([100], 0, 0)
    still = play(jobs, "fifo", 2, outages=(Outage(nodes=(0,), start_s=10, duration_s=95),))
    assert (still.first_s.tolist(), still.down_s) == ([105], 5)


def test_one_node_must_hold_a_job_that_fits_on_one() -> None:
    """Two nodes of 8 with 5 taken of each have 6 free chips, and no room for 6."""
    jobs = queue((0, 10, 5), (0, 10, 5), (1, 1, 6), (1, 1, 3))
    run = play(jobs, "gang", plain_machine(2, 8))
    assert run.first_s.tolist() == [0, 0, 10, 1]
    assert run.blocked_s == pytest.approx(
        6 * 8
    )  # from 2 to 10; before that the fourth has 3, and 3 are too few


def test_what_is_no_gang_starts_node_by_node() -> None:
    jobs = queue((0, 10, 8), (1, 5, 16), gang=(True, False))
    run = play(jobs, "gang", plain_machine(2, 8))
    assert run.first_s.tolist() == [0, 1]
    assert run.end_s.tolist() == [10, 11], (
        "one half from 1 to 6 and the other after it, on the node that is free"
    )
    whole = play(queue((0, 10, 8), (1, 5, 16)), "gang", plain_machine(2, 8))
    assert whole.first_s.tolist() == [0, 10]


def test_the_least_use_comes_first_under_fair_share() -> None:
    jobs = queue((0, 10, 4), (1, 10, 4), (2, 10, 4), user=(0, 0, 1), users=("a", "b"))
    assert play(jobs, "backfill", 4).first_s.tolist() == [0, 10, 20]
    assert play(jobs, "fair-share", 4).first_s.tolist() == [0, 20, 10]


def test_use_is_forgotten_by_half_lives() -> None:
    """a used 40 chip-seconds long ago, b 20 just now: with a short memory a comes first again."""
    jobs = queue((0, 10, 4), (100, 5, 4), (101, 5, 4), (102, 5, 4), user=(0, 1, 1, 0), users=("a", "b"))
    long = play(jobs, "fair-share", 4, half_life_s=1e6).first_s
    short = play(jobs, "fair-share", 4, half_life_s=5.0).first_s
    assert long[2] < long[3]
    assert short[3] < short[2]


def test_priority_stops_what_may_be_stopped_and_that_loses_what_no_checkpoint_has() -> None:
    jobs = queue(
        (0, 100, 4), (25, 10, 4), priority=(0.0, 5.0), preemptible=(True, False), checkpoint_s=(10.0, np.inf)
    )
    run = play(jobs, "priority", 4, restart_s=3.0)
    # stopped at 25 with 20 saved; from 35 on 3 to begin again and 80 to do
    assert run.first_s.tolist() == [0, 25]
    assert run.end_s.tolist() == [118, 35]
    assert (run.preempted_s, run.restart_s, run.useful_s) == pytest.approx((4 * 5, 4 * 3, 4 * 110))
    assert run.restarts.tolist() == [1, 0]
    kept = play(queue((0, 100, 4), (25, 10, 4), priority=(0.0, 5.0)), "priority", 4)
    assert kept.first_s.tolist() == [0, 100], "nobody may be stopped"


def test_only_as_many_are_stopped_as_it_takes() -> None:
    jobs = queue(
        (0, 100, 2), (1, 100, 2), (2, 100, 4), (10, 5, 2), priority=(0.0, 0.0, 0.0, 9.0),
        preemptible=(True, True, True, False),
    )  # fmt: skip
    run = play(jobs, "priority", 8)
    assert run.restarts.tolist() == [0, 0, 1, 0], "the latest start goes first, and 4 of its chips are enough"


def test_a_service_loses_no_work_when_it_is_stopped() -> None:
    jobs = queue(
        (0, 100, 4), (25, 10, 4), priority=(0.0, 5.0), preemptible=(True, False), serving=(True, False)
    )
    run = play(jobs, "priority", 4)
    assert run.end_s.tolist() == [110, 35]
    assert run.preempted_s == 0


def test_a_node_that_fails_takes_its_jobs_and_they_go_on_from_their_checkpoints() -> None:
    jobs = queue((0, 100, 16), checkpoint_s=(30.0,))
    outage = Outage(nodes=(1,), start_s=70.0, duration_s=50.0)
    run = play(jobs, "backfill", plain_machine(2, 8), outages=(outage,), restart_s=5.0)
    # 60 of 70 are saved; the node is back at 120, 5 to begin again, 40 to do
    assert run.end_s.tolist() == [165]
    assert (run.failed_s, run.restart_s, run.down_s) == pytest.approx((16 * 10, 16 * 5, 8 * 50))
    assert run.num_failures == 1
    assert run.allocated_s + run.idle_s + run.down_s == pytest.approx(16 * 165)


def test_outages_that_overlap_are_one_until_the_last_ends() -> None:
    outages = (Outage(nodes=(0,), start_s=10, duration_s=20), Outage(nodes=(0, 1), start_s=20, duration_s=30))
    run = play(queue((0, 5, 16), (12, 5, 16)), "fifo", plain_machine(2, 8), outages=outages)
    assert run.first_s.tolist() == [0, 50]
    assert run.num_failures == 2


def test_what_never_fits_again_never_ends_and_others_go_on() -> None:
    outage = Outage(nodes=(1,), start_s=10)
    run = play(queue((0, 5, 8), (11, 5, 16), (12, 5, 8)), "backfill", plain_machine(2, 8), outages=(outage,))
    assert run.first_s.tolist() == [0, -1, 12]
    assert run.end_s.tolist() == [5, -1, 17]


def test_work_that_is_lost_faster_than_it_is_done_is_given_up() -> None:
    run = play(queue((0, 1e6, 8)), "fifo", plain_machine(1, 8), mttf_s=100.0, repair_s=1.0)
    assert run.end_s.tolist() == [-1]
    assert run.restarts[0] > 1000
    assert run.useful_s == 0
    assert run.failed_s + run.idle_s + run.down_s == pytest.approx(8 * run.span_s)


def leaves(ratio: float = 4.0) -> Machine:
    """Four leaves of two nodes of 8, in pods of two leaves."""
    numbers = np.arange(8)
    return Machine(
        name="",
        chips=np.full(8, 8),
        leaf=numbers // 2,
        pod=numbers // 4,
        ratios=np.array([1.0, ratio, 2 * ratio]),
    )


def test_a_job_lies_in_one_leaf_where_topology_counts_and_runs_slower_where_it_does_not() -> None:
    """A small job takes node 0: first fit gives 16 chips nodes 1 and 2, which are of two leaves."""
    jobs = queue((0, 100, 8), (1, 10, 16), network_fraction=(0.0, 0.5))
    apart, near = play(jobs, "backfill", leaves()), play(jobs, "topology", leaves())
    # half of the time is network, at a quarter of the bandwidth: 10 · (1 + 0.5 · 3)
    assert apart.end_s[1] == pytest.approx(1 + 25)
    assert near.end_s[1] == pytest.approx(1 + 10)
    assert apart.placement_s == pytest.approx(16 * 15)
    assert near.placement_s == 0
    assert metrics_of(apart).num_spread == 1


def test_what_must_cross_leaves_is_not_slower_for_it() -> None:
    jobs = queue((0, 10, 32), network_fraction=(0.5,))
    assert play(jobs, "topology", leaves()).end_s[0] == pytest.approx(10), "four nodes are a pod"
    across = play(queue((0, 100, 32 - 8), (1, 10, 32), network_fraction=(0.0, 0.5)), "backfill", leaves())
    # nodes 3 to 6: pods, at an eighth; it would cross leaves at a quarter anyway: 5 of compute and 5 of network, twice
    assert across.end_s[1] == pytest.approx(1 + 5 + 2 * 5)


def test_the_tightest_place_that_fits_is_taken() -> None:
    """Best fit keeps node 1 whole for the last: 4 go beside the 4 of node 0."""
    jobs = queue((0, 100, 4), (1, 100, 4), (2, 10, 8))
    assert play(jobs, "topology", plain_machine(2, 8)).first_s.tolist() == [0, 1, 2]


def test_small_jobs_are_moved_together_where_that_makes_room() -> None:
    machine = plain_machine(2, 8)
    jobs = queue((0, 20, 6), (0, 100, 4), (1, 100, 2), (21, 10, 8), preemptible=(False, True, True, False))
    stuck, moved = play(jobs, "topology", machine), play(jobs, "defragment", machine, restart_s=5.0)
    assert stuck.first_s[3] > 21, "2 of one node and 4 of the other are taken"
    assert moved.first_s[3] == 21
    assert moved.restarts.sum() == 1
    assert moved.preempted_s == 0, "what is moved has a checkpoint of that moment"
    assert moved.restart_s == pytest.approx(5.0 * 2), "the two chips begin again"
    assert moved.allocated_s + moved.idle_s == pytest.approx(16 * moved.span_s)
