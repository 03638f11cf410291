"""Checkpoints: what they hold, what each tier takes, how often to write, and which tiers are worth it."""

from __future__ import annotations

from itertools import combinations, product
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.catalog.entries.failures import COPY_TIERS, Tier
from datahall.errors import InfeasibleError
from datahall.reliability.checkpoint.plan import (
    WORTH,
    best_plan,
    check_drain,
    covered,
    plan_of,
    shares_of,
)
from datahall.reliability.checkpoint.size import checkpoint_size
from datahall.reliability.checkpoint.tier import TIER_ROWS, Cadence, CheckpointTier
from datahall.reliability.ettr import best_interval_s, renewal_ettr
from datahall.reliability.process import mttf_s, process_of
from datahall.reliability.recovery import Recovery
from datahall.reliability.simulation.simulate import simulate_runs
from datahall.training.layout.layout import Layout
from datahall.training.memory.bookkeeping import BOOKS
from datahall.training.step.step import Job

CATALOG = Catalog(user=False)
MTTF_S = 54 * 86_400 / 419
SHARES: dict[Tier, float] = {"device": 0.08, "host": 0.15, "peer": 0.75, "local": 0.0, "remote": 0.02}


def tier(name: Tier, blocking_s: float, drain_s: float = 0.0, load_s: float = 1.0) -> CheckpointTier:
    return CheckpointTier(name=name, blocking_s=blocking_s, drain_s=drain_s, load_s=load_s)


TIERS = (
    tier("device", 0.04), tier("host", 0.05), tier("peer", 0.05, 0.01), tier("local", 5.0, 0.1),
    tier("remote", 5.0, 3.0),
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "published_bytes"),
    [("llama-3.1-8b", 105e9), ("llama-3.1-70b", 912e9), ("llama-3.1-405b", 5290e9)],
)
def test_a_checkpoint_has_the_bytes_that_mlperf_storage_writes(name: str, published_bytes: float) -> None:
    """12 to 14 bytes of a parameter by the formats of the state; MLPerf Storage writes 13."""
    job = Job(model=CATALOG.model(name), seq=8192, global_batch=1024)
    sizes = {books: checkpoint_size(job, Layout(), BOOKS[books]) for books in ("nemo", "fsdp")}
    assert sizes["fsdp"].bytes_per_parameter == 12
    assert sizes["nemo"].bytes_per_parameter == 14
    assert sizes["fsdp"].total_bytes < published_bytes < sizes["nemo"].total_bytes


@pytest.mark.parametrize("zero", [0, 1, 3])
@pytest.mark.parametrize("name", ["llama-3.1-8b", "deepseek-v3"])
def test_replicas_write_each_value_once(name: str, zero: int) -> None:
    """What all chips write together is more than the whole by what the fullest stage has more than its layers.

    Of four stages that are cut evenly the first has one table and the last another, and all count as they do: two
    tables more than there are, of 0.525 G in Llama 3.1 8B and 0.927 G in DeepSeek-V3.  Its latent projections and
    routers, 1.03 G, are not cut by tensor parallelism: both chips have them.
    """
    job = Job(model=CATALOG.model(name), seq=4096, global_batch=1024)
    layout = Layout(tp=2, pp=4, ep=8 if job.model.moe else 1, dp=16, zero=zero)
    size = checkpoint_size(job, layout, BOOKS["nemo"])
    whole, more = {"llama-3.1-8b": (8.030, 2 * 0.525), "deepseek-v3": (671.03, 2 * 0.927 + 1.031)}[name]
    assert size.chip_bytes * layout.num_chips / size.total_bytes == pytest.approx(1 + more / whole, rel=1e-4)
    twice = checkpoint_size(job, Layout(tp=2, pp=4, ep=layout.ep, dp=32, zero=zero), BOOKS["nemo"])
    assert twice.chip_bytes == pytest.approx(size.chip_bytes / 2)
    assert twice.total_bytes == size.total_bytes


def test_chips_that_share_a_sequence_share_the_writing_of_what_they_all_hold() -> None:
    """Two of a context hold the same weights, as two replicas do: each writes half."""
    job = Job(model=CATALOG.model("llama-3.1-405b"), seq=8192, global_batch=1024)
    replicas, contexts = (
        checkpoint_size(job, Layout(tp=8, pp=16, dp=dp, cp=cp), BOOKS["nemo"]).chip_bytes
        for dp, cp in ((128, 1), (64, 2))
    )
    assert contexts == pytest.approx(replicas)


def test_every_failure_leaves_the_remote_copy_and_each_tier_what_is_nearer() -> None:
    assert set(TIER_ROWS["remote"].outlives) == set(COPY_TIERS)
    assert list(TIER_ROWS) == list(COPY_TIERS)
    assert "peer" not in TIER_ROWS["local"].outlives, "a lost node takes its drives with it"
    assert covered(SHARES, TIERS[-1]) == pytest.approx(1.0)
    assert covered(SHARES, TIERS[0]) == pytest.approx(0.08)


def test_a_tier_is_one_row_and_the_help_names_it() -> None:
    """All that is known of a tier whatever the machine: what it is called, what it outlives, whether it has files."""
    assert list(TIER_ROWS) == list(COPY_TIERS)
    assert len({row.title for row in TIER_ROWS.values()}) == len(COPY_TIERS)
    for verb in ("show checkpoint", "simulate run"):
        assert ", ".join(COPY_TIERS) in form_of(verb).fields["tier"].kind.help


def test_shares_are_those_of_the_causes() -> None:
    shares = shares_of(process_of(CATALOG.failure_preset("llama-3"), CATALOG, 2048).causes)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares["remote"] == pytest.approx(6 / 419), "silent corruption"
    assert shares["host"] == pytest.approx((54 + 7 + 2) / 419), "bugs, timeouts, dependencies"


def test_each_tier_gets_the_failures_that_nearer_ones_do_not_outlive() -> None:
    plan = plan_of([TIERS[1], TIERS[4]], SHARES, MTTF_S, 600.0, step_s=3.0)
    assert [one.share_fraction for one in plan.cadences] == pytest.approx([0.23, 0.77])
    without_use = plan_of([TIERS[2], TIERS[3], TIERS[4]], SHARES, MTTF_S, 600.0, step_s=3.0)
    assert without_use.names == ("peer", "remote"), "nothing is left for the drives"


def test_one_tier_is_the_renewal_form() -> None:
    remote = tier("remote", 5.0, 0.0, 2.0)
    plan = plan_of([remote], SHARES, MTTF_S, 600.0, step_s=0.0)
    assert plan.ettr == pytest.approx(renewal_ettr(plan.last.interval_s, 5.0, 602.0, MTTF_S), rel=1e-9)


def test_intervals_of_several_tiers_are_those_of_brute_force() -> None:
    """All pairs of 60 × 60 intervals: none keeps more than the best of each tier alone, which lies within 5 %."""
    two = [TIERS[2], TIERS[4]]
    plan = plan_of(two, SHARES, MTTF_S, 600.0, step_s=0.0)
    best = [one.interval_s for one in plan.cadences]

    def kept(intervals: tuple[float, float]) -> float:
        alone = [
            renewal_ettr(interval, one.tier.blocking_s, 0.0, MTTF_S / one.share_fraction)
            for interval, one in zip(intervals, plan.cadences, strict=True)
        ]
        return float(np.prod(alone))

    grids = [one * np.geomspace(0.2, 5.0, 61) for one in best]
    found = max(product(*(grid.tolist() for grid in grids)), key=kept)
    assert found == pytest.approx(tuple(best), rel=0.05)


@given(
    shares=st.lists(st.floats(0.0, 1.0), min_size=5, max_size=5).filter(lambda values: sum(values) > 0.1),
    mttf_s=st.floats(1e3, 1e6),
    blocking_s=st.floats(0.1, 60.0),
)
def test_the_best_plan_keeps_as_much_as_any_choice_of_tiers(
    shares: list[float], mttf_s: float, blocking_s: float
) -> None:
    parts: dict[Tier, float] = {
        name: share / sum(shares) for name, share in zip(COPY_TIERS, shares, strict=True)
    }
    tiers = (*TIERS[:3], tier("local", blocking_s, 0.1), tier("remote", blocking_s, 3.0))
    best = best_plan(tiers, parts, mttf_s, 300.0, step_s=3.0)
    every = [
        plan_of((*some, tiers[-1]), parts, mttf_s, 300.0, step_s=3.0).ettr
        for count in range(5)
        for some in combinations(tiers[:-1], count)
    ]
    assert best.last.tier.name == "remote"
    assert best.ettr >= max(every) - 4 * WORTH


@given(
    shares=st.lists(st.floats(0.0, 1.0), min_size=5, max_size=5).filter(lambda values: sum(values) > 0.1),
    stops_s=st.lists(st.floats(0.01, 600.0), min_size=5, max_size=5),
    mttf_s=st.floats(1e3, 1e7),
    num=st.integers(1, 4),
)
def test_nearer_copies_are_never_rarer_and_no_tier_makes_a_plan_worse(
    shares: list[float], stops_s: list[float], mttf_s: float, num: int
) -> None:
    """A near copy that is rarer than a far one is never the newest; what costs more than it saves is left out."""
    parts: dict[Tier, float] = {
        name: share / sum(shares) for name, share in zip(COPY_TIERS, shares, strict=True)
    }
    tiers = [
        tier(name, stop_s, 0.1 * place)
        for place, (name, stop_s) in enumerate(zip(COPY_TIERS, stops_s, strict=True))
    ]
    named = (*tiers[:num], tiers[-1])
    intervals_s = [one.interval_s for one in plan_of(named, parts, mttf_s, 300.0, step_s=3.0).cadences]
    assert intervals_s == sorted(intervals_s)
    best = best_plan(named, parts, mttf_s, 300.0, step_s=3.0, worth_fraction=0.0)
    for count in range(num + 1):
        for some in combinations(named[:-1], count):
            assert best.ettr >= plan_of((*some, tiers[-1]), parts, mttf_s, 300.0, step_s=3.0).ettr


def test_a_tier_that_blocks_as_long_as_a_farther_one_is_left_out() -> None:
    """Drives survive a quarter of the failures and stop the run as long as the storage, which survives all."""
    near, far = tier("local", 5.0, 0.1), tier("remote", 5.0, 3.0)
    best = best_plan((near, far), SHARES, MTTF_S, 600.0, step_s=3.0, worth_fraction=0.0)
    assert best.names == ("remote",)
    both = plan_of((near, far), SHARES, MTTF_S, 600.0, step_s=3.0)
    assert both.cadences[0].interval_s == both.cadences[1].interval_s, "written together"
    assert both.last.interval_s == pytest.approx(best_interval_s(10.0, MTTF_S))


@pytest.mark.parametrize(
    "names", [("local", "remote"), ("host", "peer", "remote"), ("peer", "local", "remote")]
)
def test_plans_of_several_tiers_keep_what_their_simulation_does(names: tuple[Tier, ...]) -> None:
    process = process_of(CATALOG.failure_preset("llama-3"), CATALOG, 2048)
    some = [one for one in TIERS if one.name in names]
    plan = plan_of(some, shares_of(process.causes), mttf_s(process), 600.0, step_s=3.0)
    recovery = Recovery(detect_s=600.0, reschedule_s=0.0, warmup_s=0.0)
    runs = simulate_runs(
        process, plan.cadences, recovery, until_s=100 * 86_400.0, goal_s=inf, num_runs=60, seed=1
    )
    assert plan.ettr == pytest.approx(float(runs.ettr.mean()), abs=0.002)


@pytest.mark.parametrize("mttf_s", [1e4, 1e6, 1e8, 1e10])
@pytest.mark.parametrize("blocking_s", [0.5, 5.0, 3600.0, 864_000.0])
def test_the_best_interval_is_that_of_brute_force_however_rare_failures_are(
    mttf_s: float, blocking_s: float
) -> None:
    plan = plan_of([tier("remote", blocking_s)], SHARES, mttf_s, 600.0, step_s=1.0)
    grid = np.geomspace(1.0, 1e9, 4000)
    kept = [renewal_ettr(float(one), blocking_s, 600.0, mttf_s) for one in grid]
    if max(kept) > 0.0:
        assert plan.last.interval_s == pytest.approx(float(grid[int(np.argmax(kept))]), rel=0.05)


@given(drain_s=st.floats(0.0, 20_000.0))
def test_no_interval_ends_before_the_last_copy_is_written_out(drain_s: float) -> None:
    slow = tier("remote", 5.0, drain_s)
    plan = plan_of([slow], SHARES, MTTF_S, 600.0, step_s=3.0)
    assert plan.last.interval_s >= drain_s
    slower = plan_of([tier("remote", 5.0, 2 * drain_s + 1.0)], SHARES, MTTF_S, 600.0, step_s=3.0)
    assert slower.ettr <= plan.ettr


def test_an_interval_shorter_than_the_drain_is_refused() -> None:
    check_drain(Cadence(tier=tier("remote", 5.0, 100.0), interval_s=100.0, share_fraction=1.0))
    with pytest.raises(InfeasibleError, match="takes 100 s to reach remote storage"):
        check_drain(Cadence(tier=tier("remote", 5.0, 100.0), interval_s=99.0, share_fraction=1.0))


def test_without_failures_only_the_last_tier_is_written_now_and_then() -> None:
    plan = plan_of(TIERS, SHARES, inf, 600.0, step_s=3.0)
    assert plan.names == ("remote",)
    assert plan.last.interval_s == 3 * 3600.0
    assert 0.999 < plan.ettr < 1.0
