"""Jobs that shrink, slices of any healthy cubes, and results that were wrong."""

from __future__ import annotations

from itertools import pairwise
from math import comb, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.catalog import Catalog
from datahall.errors import ScenarioError
from datahall.reliability.corruption import corrupted, corruptions_per_day, detection, ways_to_notice
from datahall.reliability.elastic import outage_loss_s, shrunk, ways_to_shrink
from datahall.reliability.nodes.availability import slice_of
from datahall.reliability.process import process_of
from datahall.scenario.words import BATCH_RULES, DETECTORS

CATALOG = Catalog(user=False)


def test_a_batch_that_is_kept_is_shared_by_those_that_are_left() -> None:
    """128 replicas of 16 micro-batches have 2,048; 127 of them need 17 in the busiest."""
    found = shrunk(128, 1, 16, "kept")
    assert (found.num_micro_batches, found.batch_ratio, found.learning_rate_ratio) == (17, 1.0, 1.0)
    assert found.step_ratio == 17 / 16
    assert found.num_micro_batches * 127 >= 128 * 16 > (found.num_micro_batches - 1) * 127


def test_a_batch_that_shrinks_takes_the_learning_rate_with_it() -> None:
    linear, root = shrunk(64, 4, 8, "linear"), shrunk(64, 4, 8, "sqrt")
    assert linear.batch_ratio == root.batch_ratio == 60 / 64
    assert linear.learning_rate_ratio == 60 / 64
    assert root.learning_rate_ratio == sqrt(60 / 64)
    assert linear.step_ratio == root.step_ratio == 1.0


@pytest.mark.parametrize("rule", BATCH_RULES)
@given(replicas=st.integers(2, 500), micro=st.integers(1, 64), data=st.data())
def test_losing_more_is_never_faster(rule: str, replicas: int, micro: int, data: st.DataObject) -> None:
    lost = data.draw(st.integers(0, replicas - 2))
    few, more = shrunk(replicas, lost, micro, rule), shrunk(replicas, lost + 1, micro, rule)  # type: ignore[arg-type]
    assert more.throughput_ratio <= few.throughput_ratio <= 1.0
    assert shrunk(replicas, 0, micro, rule).throughput_ratio == 1.0  # type: ignore[arg-type]
    assert few.throughput_ratio <= (replicas - lost) / replicas + 1e-12, "no replica works faster than before"


def test_going_on_costs_less_than_waiting_for_a_repair() -> None:
    step = shrunk(128, 1, 16, "kept")
    going_on = outage_loss_s(step, 3 * 86400.0, 30.0)
    assert going_on == pytest.approx(60 + 3 * 86400 * (1 - 16 / 17))
    assert going_on < 3 * 86400.0
    assert outage_loss_s(step, 0.0, 30.0) == 60.0


@pytest.mark.parametrize(("replicas", "lost"), [(4, 4), (4, -1), (1, 1)])
def test_a_job_without_replicas_is_none(replicas: int, lost: int) -> None:
    with pytest.raises(ScenarioError, match="replicas cannot be lost"):
        shrunk(replicas, lost, 8, "kept")


def test_a_slice_of_fewer_cubes_can_be_had_and_waits_less() -> None:
    found = [slice_of(need, 64, 0.9986, reconfigure_s=10.0, repair_s=259_200.0) for need in (64, 60, 48, 32)]
    assert all(one.enough_fraction <= other.enough_fraction for one, other in pairwise(found))
    assert all(one.wait_s >= other.wait_s for one, other in pairwise(found))
    assert found[0].wait_s == 259_200.0, "without a cube to spare it waits for the repair"
    assert found[-1].wait_s == pytest.approx(10.0, abs=0.01), "with many it waits for mirrors"
    cube = 0.9986**16
    others = sum(comb(63, k) * cube**k * (1 - cube) ** (63 - k) for k in range(60, 64))
    assert found[1].wait_s == pytest.approx(others * 10 + (1 - others) * 259_200), (
        "the one that failed is none of them"
    )
    assert found[1].enough_fraction == pytest.approx(
        sum(comb(64, k) * cube**k * (1 - cube) ** (64 - k) for k in range(60, 65))
    )


def test_corruption_is_as_often_as_was_counted() -> None:
    llama = process_of(CATALOG.failure_preset("llama-3"), CATALOG, 2048)
    assert corruptions_per_day(llama) * 54 == pytest.approx(6)
    other = process_of(CATALOG.failure_preset("ft-hsdp"), CATALOG, 2048)
    assert corruptions_per_day(other) / other.rate_per_day == pytest.approx(37 / 678)
    gemini = process_of(CATALOG.failure_preset("llama-3"), CATALOG, 16_384 // 8)
    assert 7 < 1 / corruptions_per_day(gemini) < 14, "every week or two, as Gemini reports"


def test_a_replay_notices_on_average_after_half_of_its_period() -> None:
    steps = np.random.default_rng(1).integers(0, 100, 200_000)  # the wrong step, counted from the last replay
    late = (100 - steps) * 5.0
    assert detection("replay", 5.0, every_steps=100).delay_s == pytest.approx(late.mean(), rel=0.02)


def test_noticing_sooner_costs_more_of_each_step_and_less_of_each_event() -> None:
    ways = {name: detection(name, 5.0, every_steps=100) for name in DETECTORS}
    assert ways["none"].delay_s > ways["replay"].delay_s > ways["checksum"].delay_s == ways["vote"].delay_s
    assert (
        ways["none"].overhead_fraction
        == 0
        < ways["replay"].overhead_fraction
        < ways["vote"].overhead_fraction
    )
    cost = {name: corrupted(0.11, way, 5.0, interval_s=600, restart_s=300) for name, way in ways.items()}
    assert cost["none"].loss_s > cost["replay"].loss_s > cost["checksum"].loss_s
    assert cost["replay"].lost_fraction < cost["none"].lost_fraction < cost["vote"].lost_fraction
    assert cost["checksum"].loss_s == 5 + 300 + 300, "it says which device it was"
    assert cost["none"].steps_per_day == pytest.approx(0.11 * 12 * 3600 / 5)
    assert corrupted(0.0, ways["none"], 5.0, interval_s=600, restart_s=300).lost_fraction == 0


def test_three_that_vote_say_who_was_wrong() -> None:
    two, three = (detection("vote", 5.0, every_steps=1, num_replicas=num) for num in (2, 3))
    assert (two.finds_device, three.finds_device) == (False, True)
    assert three.overhead_fraction == 2 * two.overhead_fraction == 2.0


@pytest.mark.parametrize("said", [{"every_steps": 0}, {"num_replicas": 1}])
def test_what_compares_nothing_is_refused(said: dict[str, int]) -> None:
    with pytest.raises(ScenarioError, match="nothing is compared"):
        detection("replay", 1.0, **{"every_steps": 10, **said})


def test_ways_stand_side_by_side() -> None:
    llama = process_of(CATALOG.failure_preset("llama-3"), CATALOG, 2048)
    noticed = ways_to_notice(llama, 5.0, every_steps=100, interval_s=600, restart_s=300)
    assert tuple(one.by.method for one in noticed) == DETECTORS
    assert noticed[0].cost.loss_s == pytest.approx(12 * 3600 + 300 + 300 + 1800)
    outages = ways_to_shrink(128, 16, 600.0, 5.0)
    assert tuple(one.rule for one in outages) == BATCH_RULES
    kept, linear, root = (one.loss_s for one in outages)
    assert kept > linear == root, "16 micro-batches cannot be cut as finely as replicas"
