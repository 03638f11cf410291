"""A run that only tells whether enough requests keep the limits: it ends when that is certain, and tells what all of
it would have told."""

from __future__ import annotations

from typing import Any

import pytest
from tests.inference.serving_case import fleet, poisson

from datahall.inference.simulation.histogram import TTFT
from datahall.inference.simulation.run import ServingRun
from datahall.inference.simulation.simulate import simulate_serving
from datahall.scenario.sections.wanted.promise import Promise

USERS, NUM, LAST = 120, 1500, 1200
REQUESTS = poisson(NUM, 1e9, prompt=400, output=120, spread=0.9)


def played(share_wanted: float, tpot_s: float, **options: Any) -> ServingRun:
    limits = Promise(ttft_s=1.0, tpot_s=tpot_s)
    return simulate_serving(
        fleet(2), REQUESTS, users=USERS, users_over_s=3.0, slo=limits, warmup_s=2.0, measure_rows=LAST,
        share_wanted=share_wanted, **options,
    )  # fmt: skip


WHOLE = {limit_ms: played(0.0, limit_ms / 1e3) for limit_ms in (11, 13, 14, 15, 18, 30)}


def test_the_limits_are_broken_by_all_some_and_none() -> None:
    kept = [run.good_fraction for run in WHOLE.values()]
    assert kept == sorted(kept)
    assert kept[0] < 0.1
    assert sum(0.1 < one < 0.99 for one in kept) >= 2
    assert kept[-1] > 0.99


@pytest.mark.parametrize("limit_ms", WHOLE)
@pytest.mark.parametrize("share", [0.05, 0.5, 0.9, 0.95, 1.0])
def test_it_tells_what_the_whole_run_tells(limit_ms: int, share: float) -> None:
    whole, told = WHOLE[limit_ms], played(share, limit_ms / 1e3)
    keeps = whole.good_fraction >= share
    assert (told.good_fraction >= share) is keeps
    if keeps:
        assert (told.num_good, told.num_measured) == (whole.num_good, whole.num_measured)
    assert told.num_measured <= whole.num_measured
    assert told.num_events < whole.num_events


def test_the_share_itself_is_enough() -> None:
    """As many as just that share: one more is too many."""
    whole = WHOLE[14]
    more = whole.good_fraction + 0.5 / whole.num_measured
    assert played(whole.good_fraction, 0.014).good_fraction == whole.good_fraction
    assert played(more, 0.014).good_fraction < more


def test_the_sooner_it_is_certain_the_sooner_it_ends() -> None:
    events = [played(0.95, limit_ms / 1e3).num_events for limit_ms in (11, 13, 14)]
    assert events == sorted(events)
    assert events[0] < 0.6 * WHOLE[11].num_events


def test_no_times_are_counted() -> None:
    run = played(0.5, 0.03)
    assert not run.histograms.any()
    assert WHOLE[30].histograms[TTFT].sum() == run.num_measured


def test_requests_that_are_refused_leave_it_to_the_end() -> None:
    """Who is refused is not measured: nobody knows that all have ended before the run has."""
    long = poisson(60, 1e9, prompt=400, output=120)
    long.prompt[30] = 500_000
    limits = Promise(ttft_s=10.0, tpot_s=1.0)
    both = [
        simulate_serving(fleet(), long, users=20, slo=limits, measure_rows=50, share_wanted=share)
        for share in (0.0, 0.9)
    ]
    assert both[0].num_too_long == 1
    assert both[0].num_measured == both[1].num_measured == 49
    assert both[0].num_finished == both[1].num_finished == 59


@pytest.mark.parametrize("limit_ms", [13, 15])
def test_the_interpreted_loop_tells_it_too(limit_ms: int) -> None:
    few, limits = REQUESTS.rows(0, 300), Promise(ttft_s=1.0, tpot_s=limit_ms / 1e3)
    both = [
        simulate_serving(
            fleet(2), few, users=60, users_over_s=1.0, slo=limits, warmup_s=0.5, measure_rows=250,
            share_wanted=0.9, compiled=compiled,
        )
        for compiled in (True, False)
    ]  # fmt: skip
    assert both[0].num_good == both[1].num_good
    assert both[0].num_events == both[1].num_events
