"""Small queues against every order there is."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.scheduling.queue_case import play, queue

TOTAL = 4
JOBS = st.lists(st.tuples(st.integers(1, 6), st.integers(1, TOTAL)), min_size=1, max_size=5)


def in_order(jobs: list[tuple[int, int]], order: tuple[int, ...], total: int) -> list[int]:
    """Starts where each job in turn takes the first time at which it fits, all being there from 0 on."""
    starts: dict[int, int] = {}
    for job in order:
        run, chips = jobs[job]
        at = 0
        while any(
            sum(jobs[i][1] for i, s in starts.items() if s <= moment < s + jobs[i][0]) + chips > total
            for moment in range(at, at + run)
        ):
            at += 1
        starts[job] = at
    return [starts[job] for job in range(len(jobs))]


def best(jobs: list[tuple[int, int]]) -> tuple[int, float]:
    """The least makespan and the least mean wait of any order: one of them is optimal for each."""
    found = [in_order(jobs, order, TOTAL) for order in permutations(range(len(jobs)))]
    spans = [max(s + run for s, (run, _) in zip(one, jobs, strict=True)) for one in found]
    return min(spans), min(sum(one) / len(one) for one in found)


@settings(max_examples=40)
@given(jobs=JOBS)
def test_no_policy_is_better_than_the_best_and_packing_is_at_most_twice_as_long(
    jobs: list[tuple[int, int]],
) -> None:
    span, wait = best(jobs)
    asked = queue(*((0, run, chips) for run, chips in jobs))
    for policy in ("fifo", "gang", "backfill", "conservative"):
        run = play(asked, policy, TOTAL)  # type: ignore[arg-type]
        assert run.span_s >= span
        assert run.first_s.mean() >= wait - 1e-9
        if policy != "fifo":
            assert run.span_s <= 2 * span, "as any list schedule (Garey and Graham, 1975)"


@settings(max_examples=40)
@given(runs=st.lists(st.integers(1, 6), min_size=1, max_size=6))
def test_the_shortest_first_waits_least_of_all(runs: list[int]) -> None:
    """Jobs of one chip that come shortest first: in order is optimal for the mean wait (Conway, Maxwell, Miller)."""
    jobs = [(run, 1) for run in sorted(runs)]
    machine = 2
    found = [in_order(jobs, order, machine) for order in permutations(range(len(jobs)))]
    run = play(queue(*((0, run, 1) for run, _ in jobs)), "fifo", machine)
    assert run.first_s.mean() == min(sum(one) / len(one) for one in found)


@settings(max_examples=40)
@given(chips=st.lists(st.sampled_from((1, 2, 4)), min_size=1, max_size=6))
def test_alike_runs_that_divide_the_cluster_are_done_as_soon_as_can_be(chips: list[int]) -> None:
    """Of one length and sizes that divide each other, largest first: every policy has the least makespan."""
    jobs = [(3, size) for size in sorted(chips, reverse=True)]
    span, _ = best(jobs)
    asked = queue(*((0, 3, size) for _, size in jobs))
    spans = {play(asked, policy, TOTAL).span_s for policy in ("fifo", "gang", "backfill", "conservative")}  # type: ignore[arg-type]
    assert spans == {float(span)}
    assert span == 3 * int(np.ceil(sum(chips) / TOTAL))
