"""What a queue promises and keeps, whom it stops and where it puts jobs, minute by minute."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.scheduling.queue_case import play, queue

from datahall.scheduling.curves import bins_of, pieces, waiting
from datahall.scheduling.loop.state import PREEMPTED
from datahall.scheduling.machine import Machine, plain_machine
from datahall.scheduling.metrics import metrics_of
from datahall.scheduling.run import Outage, too_large


def leaves(sizes: tuple[int, ...], pods: tuple[int, ...], ratio: float = 4.0) -> Machine:
    """Leaves of so many nodes of eight chips, each in a pod; across leaves the network is so much narrower."""
    leaf = np.repeat(np.arange(len(sizes)), sizes)
    return Machine(
        name="",
        chips=np.full(leaf.size, 8),
        leaf=leaf,
        pod=np.array(pods)[leaf],
        ratios=np.array([1.0, ratio, 2 * ratio]),
    )


@pytest.mark.parametrize("policy", ["backfill", "conservative"])
def test_a_job_that_may_come_to_lie_across_leaves_does_not_pass_into_a_promise(policy: str) -> None:
    """Half of its time is network: what takes 10 in one leaf may take 25 across two, and the promise is at 20.

    A has nodes 0 and 3 of four until 20, for C and D, which hold 1 and 2, are gone at 1; B wants all four then.  E
    would lie across the leaves, on nodes 1 and 2: from 1 on it would hold them to 26.
    """
    machine = leaves((2, 2), (0, 0))
    jobs = queue(
        (0, 20, 8), (0, 1, 16), (0, 20, 8), (0.5, 10, 32), (0.6, 10, 16),
        network_fraction=(0.0, 0.0, 0.0, 0.0, 0.5),
    )  # fmt: skip
    run = play(jobs, policy, machine)  # type: ignore[arg-type]
    assert run.first_s.tolist() == [0, 0, 0, 20, 30]


def test_a_job_that_crosses_leaves_anyway_passes_where_its_own_time_lets_it() -> None:
    """Half of the 10 s of E is network across leaves, at a quarter: across pods, at an eighth, 4.5 / 2.5 as long.

    B wants all four nodes and is promised 30, when A is gone; E takes 18 at most and may pass, from 1 on.
    """
    jobs = queue((0, 30, 8), (0.5, 10, 32), (1, 10, 24), network_fraction=(0.0, 0.0, 0.5))
    for policy in ("backfill", "conservative"):
        assert play(jobs, policy, leaves((2, 2), (0, 0))).first_s.tolist() == [0, 30, 1]  # type: ignore[arg-type]


@pytest.mark.parametrize(("chips", "cannot"), [(13, False), (14, True)])
def test_a_job_needs_a_node_for_each_of_its_larger_parts(chips: int, cannot: bool) -> None:
    """On three nodes 13 chips are 5 + 4 + 4 and 14 are 5 + 5 + 4: of nodes with five there is one."""
    machine = msgspec.structs.replace(plain_machine(4, 4), chips=np.array([5, 4, 4, 4]))
    assert too_large(queue((0, 1, chips)), machine).tolist() == [cannot]


@settings(max_examples=60, deadline=None)
@given(
    jobs=st.lists(
        st.tuples(
            st.integers(0, 30), st.integers(1, 20), st.sampled_from([8, 16, 24, 32]),
            st.sampled_from([0.0, 0.25, 0.5, 0.9]),
        ),
        min_size=3, max_size=14,
    )
)  # fmt: skip
def test_nobody_behind_puts_off_what_the_first_of_the_queue_was_promised(
    jobs: list[tuple[int, int, int, float]],
) -> None:
    """Limits are kept and nothing fails: under backfill the first starts when it was promised to, or before.

    The promise is the first moment at which those that run leave it enough nodes, each at its longest: it is looked up
    in what ran when the job came to the front of the queue.
    """
    rows = sorted(jobs)
    made = queue(*(row[:3] for row in rows), network_fraction=[row[3] for row in rows])
    run = play(made, "backfill", leaves((2, 2, 1), (0, 0, 1)))
    worst = made.run_s * (1 + made.network_fraction * 7)  # across pods, at an eighth
    for job in range(made.num):
        if run.first_s[job] <= made.submit_s[job]:
            continue
        ahead = [other for other in range(job) if run.first_s[other] >= made.submit_s[job]]
        front_s = max([made.submit_s[job], *(run.first_s[other] for other in ahead)])
        if run.first_s[job] <= front_s:
            continue
        # nodes of those that run when it comes to the front, none of which is given to another later than it may
        there = [one for one in range(made.num) if run.first_s[one] <= front_s < run.end_s[one]]
        nodes = 5 - sum(int(made.chips[one]) // 8 for one in there)
        due_s = front_s
        for due, gives in sorted((run.first_s[one] + worst[one], int(made.chips[one]) // 8) for one in there):
            if nodes >= made.chips[job] // 8:
                break
            nodes, due_s = nodes + gives, due
        assert run.first_s[job] <= due_s + 1e-9


def test_those_without_whom_it_fits_as_well_are_spared() -> None:
    """Lowest priority first: 8 of A are chosen, then 16 of B, which alone are enough, so that A goes on."""
    jobs = queue(
        (0, 100, 8), (1, 100, 16), (10, 5, 16), priority=(0.0, 1.0, 9.0), preemptible=(True, True, False)
    )
    run = play(jobs, "priority", plain_machine(3, 8))
    assert run.restarts.tolist() == [0, 1, 0]
    assert (run.first_s[2], run.end_s[0]) == (10, 100)


@settings(max_examples=60, deadline=None)
@given(
    held=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3), st.booleans()), min_size=1, max_size=24),
    wanted=st.integers(1, 60),
)
def test_who_is_stopped_is_as_by_a_list_in_order(held: list[tuple[int, int, bool]], wanted: int) -> None:
    """All start one after the other on one node: the lowest priority goes first, then the latest start."""
    total = sum(chips for chips, _, _ in held)
    wanted = min(wanted, total)
    jobs = queue(
        *((at, 1000, chips) for at, (chips, _, _) in enumerate(held)),
        (100, 5, wanted),
        priority=[*(float(priority) for _, priority, _ in held), 3.0],
        preemptible=[*(may for _, _, may in held), False],
    )
    run = play(jobs, "priority", plain_machine(1, total))
    may = [at for at, (_, priority, stops) in enumerate(held) if stops and priority < 3]
    line = sorted(may, key=lambda at: (held[at][1], -at))
    while line and sum(held[at][0] for at in line[:-1]) >= wanted:
        line.pop()
    for at in reversed(list(line)):
        if sum(held[other][0] for other in line if other != at) >= wanted:
            line.remove(at)
    at_once = run.attempts["job"][
        (run.attempts["cause"] == PREEMPTED) & (run.attempts["end_s"] == 100)
    ].tolist()
    if sum(held[at][0] for at in line) < wanted:
        line = []
        assert not at_once
    assert set(at_once[: len(line)]) == set(line), "who is stopped may stop others himself, afterwards"


def test_a_job_that_fits_in_one_pod_lies_in_it_though_another_has_a_tighter_leaf() -> None:
    """Pod 0 has leaves of 2, 2 and 2 nodes free, pod 1 one leaf of 3 and pod 2 one of 1.

    Four nodes fit in pod 0 alone; the rest of any choice would fit best into the leaf of one node of pod 2.
    """
    machine = leaves((2, 2, 3, 1), (0, 0, 1, 2), ratio=2.0)
    run = play(queue((0, 10, 32), network_fraction=(0.5,)), "topology", machine)
    assert run.end_s[0] == 10, "what must cross leaves crosses no pods"
    assert metrics_of(run).num_spread == 0


def test_who_never_starts_waits_to_the_end_of_a_queue_that_begins_late() -> None:
    """One node is gone for good: from hour 1 to hour 2 one job runs and the other waits all the time."""
    outage = Outage(nodes=(1,), start_s=10)
    jobs = queue((3600, 3600, 8), (3600, 60, 16))
    run = play(jobs, "backfill", plain_machine(2, 8), outages=(outage,))
    assert run.first_s.tolist() == [3600, -1]
    edges = bins_of(3600.0, 7200.0)
    assert waiting(run, edges) == pytest.approx(1.0)


def test_who_does_all_jobs_ranks_before_who_makes_them_wait_less() -> None:
    """In one a job never starts, and the other waits 90 s in the mean: done comes first."""
    gone = play(
        queue((0, 10, 8), (0, 10, 16)),
        "fifo",
        plain_machine(2, 8),
        outages=(Outage(nodes=(1,), start_s=0.0),),
    )
    slow = play(queue((0, 180, 16), (0, 10, 16)), "fifo", plain_machine(2, 8))
    few, all_done = metrics_of(gone), metrics_of(slow)
    assert (few.num_done, few.mean_wait_s) == (1, 0.0)
    assert (all_done.num_done, all_done.mean_wait_s) == (2, 90.0)
    assert min((few, all_done), key=lambda one: one.rank) is all_done


def test_the_mean_wait_and_the_fairness_of_users_by_hand() -> None:
    """One node: a waits 0 for its 30 s, b waits 30 for its 10 and 40 for its 50."""
    jobs = queue((0, 30, 8), (0, 10, 8), (0, 50, 8), user=(0, 1, 1), users=("a", "b"))
    found = metrics_of(play(jobs, "fifo", plain_machine(1, 8)))
    assert found.median_wait_s == 30
    assert found.mean_wait_s == pytest.approx((0 + 30 + 40) / 3)
    # a: 30/30 = 1;  b: 40/10 = 4 and 90/50 = 1.8, in the mean 2.9;  (1 + 2.9)² / (2 · (1 + 8.41))
    assert found.slowdown_ratio == pytest.approx((1 + 4 + 1.8) / 3)
    assert found.fairness_fraction == pytest.approx(3.9**2 / (2 * (1 + 2.9**2)))
    assert found.p95_wait_s == pytest.approx(30 + 0.9 * 10)


def test_users_whose_jobs_are_cut_off_are_none_of_those_who_fare_alike() -> None:
    """a is stopped at a limit of 10; b is in the system for 20 s with 10 to run, and for 70 with 50."""
    jobs = queue(
        (0, 30, 8), (0, 10, 8), (0, 50, 8), user=(0, 1, 1), users=("a", "b"), limit_s=(10.0, 10.0, 50.0)
    )
    found = metrics_of(play(jobs, "fifo", plain_machine(1, 8)))
    assert found.slowdown_ratio == pytest.approx((2 + 1.4) / 2)
    assert found.fairness_fraction == 1.0, "of the one who has any"


def test_jobs_that_share_a_node_are_drawn_on_chips_of_their_own() -> None:
    """Four and two at once, and then six beside the two that are still held."""
    run = play(queue((0, 10, 4), (0, 20, 2), (10, 10, 6)), "gang", plain_machine(1, 8), traced=10)
    drawn = {one.job: (one.low, one.high) for one in pieces(run) if one.job < 2}
    assert drawn == {0: (0, 4), 1: (4, 6)}
    assert sorted((one.low, one.high) for one in pieces(run) if one.job == 2) == [(0, 4), (6, 8)]


def test_nobody_is_moved_to_a_node_that_would_then_be_too_full_itself() -> None:
    """Free are 1, 1, 6 and 8 of four nodes of 8, and 16 are wanted: the two chips of A fit on the last alone."""
    jobs = queue((0, 50, 7), (0, 50, 7), (0, 50, 2), (1, 10, 16), preemptible=(False, False, True, False))
    run = play(jobs, "defragment", plain_machine(4, 8))
    assert run.first_s.tolist() == [0, 0, 0, 50]
    assert run.restarts.sum() == 0


def test_a_node_that_cannot_be_cleared_takes_those_of_one_that_can() -> None:
    """Free are 7, 6 and 8 of three nodes of 8: the chip of the first stays, and the two of the next join it."""
    jobs = queue((0, 50, 1), (0, 2, 7), (0, 50, 2), (3, 10, 16), preemptible=(False, False, True, False))
    run = play(jobs, "defragment", plain_machine(3, 8))
    assert run.first_s.tolist() == [0, 0, 0, 3]
    assert run.restarts.tolist() == [0, 0, 1, 0]


def test_what_would_clear_one_node_by_halves_is_free_to_clear_another() -> None:
    """Free are 3, 2 and 3 of three nodes of 8, and 8 are wanted.

    On the first are 4 chips that fit nowhere and 1 that would; on the next six of one chip, which have just room.
    """
    sizes = (4, 1, 3, 1, 1, 1, 1, 1, 1, 5, 8)
    run = play(
        queue(
            *((2.0 * (size == 8), 1 if size == 3 else 50, size) for size in sizes),
            preemptible=[size in (1, 4) for size in sizes],
        ),
        "defragment",
        plain_machine(3, 8),
    )
    assert run.first_s[-1] == 2
    assert run.restarts.tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0]
