"""The compiled loop against a scheduler that shares nothing with it, on random queues."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.scheduling.reference_scheduler import Ask, Reference, starts

from datahall.scenario.words import QUEUE_POLICIES, QueuePolicy
from datahall.scheduling.jobs import Jobs, jobs_of
from datahall.scheduling.loop.advance import advance
from datahall.scheduling.machine import plain_machine
from datahall.scheduling.run import Conditions, Run, simulate_queue

TOTAL = 6


@st.composite
def queues(draw: st.DrawFn) -> list[Ask]:
    """Whole seconds, so that events of one instant are many."""
    num = draw(st.integers(1, 14))
    asks = []
    for _ in range(num):
        run = draw(st.integers(1, 12))
        limit = run + draw(st.sampled_from((0, 0, 1, 5, 20)))
        asks.append(
            Ask(float(draw(st.integers(0, 15))), float(run), float(limit), draw(st.integers(1, TOTAL)))
        )
    return sorted(asks, key=lambda ask: ask.submit)


def columns(asks: list[Ask]) -> Jobs:
    return jobs_of(
        np.array([ask.submit for ask in asks]),
        np.array([ask.run for ask in asks]),
        np.array([ask.chips for ask in asks]),
        limit_s=np.array([ask.limit for ask in asks]),
    )


def played(asks: list[Ask], policy: str, node_chips: int = 1) -> Run:
    machine = plain_machine(TOTAL // node_chips, node_chips)
    return simulate_queue(columns(asks), machine, policy, Conditions(depth=100))  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", ["fifo", "gang", "backfill"])
@settings(max_examples=100)
@given(asks=queues())
def test_jobs_start_when_the_reference_starts_them(policy: str, asks: list[Ask]) -> None:
    assert played(asks, policy).first_s.tolist() == starts(asks, TOTAL, policy)


@settings(max_examples=100)
@given(asks=queues())
def test_nobody_who_passes_delays_what_the_first_was_promised(asks: list[Ask]) -> None:
    """EASY: whoever is first starts no later than any promise that the reference would have made him."""
    reference = Reference(asks, TOTAL, "backfill")
    reference.play()
    began = played(asks, "backfill").first_s
    for _, job, promised_s in reference.head_promises:
        assert began[job] <= promised_s


@pytest.mark.parametrize("policy", ["backfill", "topology", "defragment"])
@settings(max_examples=60)
@given(asks=queues(), node_chips=st.sampled_from((2, 3, 6)))
def test_promises_to_the_first_are_kept_on_nodes_that_jobs_share(
    policy: str, asks: list[Ask], node_chips: int
) -> None:
    run = played(asks, policy, node_chips)
    assert (run.first_s <= run.promised_s).all()


@settings(max_examples=100)
@given(asks=queues(), node_chips=st.sampled_from((1, 2, 3, 6)))
def test_no_promise_is_put_off(asks: list[Ask], node_chips: int) -> None:
    """Conservative: everyone starts no later than the earliest time that he was ever told."""
    run = played(asks, "conservative", node_chips)
    assert np.isfinite(run.promised_s).all()
    assert (run.first_s <= run.promised_s).all()


@settings(max_examples=100)
@given(asks=queues())
def test_promises_to_everyone_are_those_of_the_reference(asks: list[Ask]) -> None:
    """On one node chips are a number, as they are to the reference."""
    asks = [ask for ask in asks if ask.chips <= TOTAL]
    assert played(asks, "conservative", TOTAL).first_s.tolist() == starts(asks, TOTAL, "conservative")


@pytest.mark.parametrize("policy", ["fifo", "gang", "backfill", "conservative", "topology", "defragment"])
@settings(max_examples=60)
@given(asks=queues(), node_chips=st.sampled_from((1, 2, 3, 6)))
def test_no_chip_is_had_twice(policy: str, asks: list[Ask], node_chips: int) -> None:
    """At every start, what runs on each node is no more than it has, and what runs at all no more than there is."""
    run = simulate_queue(
        columns(asks), plain_machine(TOTAL // node_chips, node_chips), policy, Conditions(traced=10_000)  # type: ignore[arg-type]
    )  # fmt: skip
    kept = run.trace.kept[: int(run.trace.num_recorded[0])]
    for moment in np.unique(kept["time_s"]):
        now = kept[(kept["time_s"] <= moment) & (moment < kept["time_s"] + kept["duration_s"])]
        assert np.bincount(now["a"], now["b"]).max(initial=0) <= node_chips
    whole_s = TOTAL * run.span_s
    assert run.allocated_s + run.idle_s + run.down_s == pytest.approx(whole_s)
    assert run.useful_s == pytest.approx(sum(ask.run * ask.chips for ask in asks))


class Chosen:
    """The loop, compiled or as it is, in place of what suits the number of jobs."""

    def __init__(self, play: Callable[..., int]) -> None:
        self.play = play

    def suited_to(self, num: int, small: int) -> Callable[..., int]:
        del num, small
        return self.play


@pytest.mark.parametrize("policy", QUEUE_POLICIES)
def test_compiled_it_does_what_it_says(policy: QueuePolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every policy with failures, priorities and shares: the machine code gives the same to the bit."""
    draws = np.random.default_rng(11)
    num = 80
    jobs = jobs_of(
        np.sort(draws.integers(0, 4000, num)).astype(float),
        draws.integers(50, 900, num).astype(float),
        draws.choice([1, 2, 3, 4, 8, 12], num),
        limit_s=draws.integers(900, 2000, num).astype(float),
        priority=draws.integers(0, 3, num).astype(float),
        preemptible=draws.random(num) < 0.6,
        checkpoint_s=np.full(num, 60.0),
        user=draws.integers(0, 4, num),
        users=("a", "b", "c", "d"),
        network_fraction=np.full(num, 0.2),
    )
    machine = msgspec.structs.replace(plain_machine(6, 4, leaf_nodes=2), ratios=np.array([1.0, 3.0, 3.0]))
    asked = Conditions(mttf_s=6_000.0, repair_s=300.0, restart_s=20.0, seed=3, depth=30, half_life_s=2000.0)
    runs = []
    for play in (advance, advance.interpreted):
        monkeypatch.setattr("datahall.scheduling.run.advance", Chosen(play))
        runs.append(simulate_queue(jobs, machine, policy, asked))
    compiled, interpreted = runs
    assert compiled.first_s.tolist() == interpreted.first_s.tolist()
    assert compiled.end_s.tolist() == interpreted.end_s.tolist()
    assert compiled.allocated_s == pytest.approx(interpreted.allocated_s, rel=1e-12)
    assert compiled.num_failures == interpreted.num_failures > 0
    whole_s = machine.num_chips * compiled.span_s
    assert compiled.allocated_s + compiled.idle_s + compiled.down_s == pytest.approx(whole_s)


def test_nodes_fail_as_often_as_they_are_said_to() -> None:
    """16 nodes with an MTTF of 1,000 h and an hour of repair, for 100,000 h: 1,600 failures less what repair takes."""
    hour_s = 3600.0
    jobs = jobs_of(np.zeros(1), np.array([1e5 * hour_s]), np.array([1]), serving=np.array([True]))
    asked = Conditions(mttf_s=1000 * hour_s, repair_s=hour_s, seed=5)
    run = simulate_queue(jobs, plain_machine(16, 1), "backfill", asked)
    expected = 16 * 100 / (1 + 1 / 1000)
    assert run.num_failures == pytest.approx(expected, abs=3 * expected**0.5)
    assert run.down_s == pytest.approx(run.num_failures * hour_s, rel=0.01)
