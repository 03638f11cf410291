"""What is asked of a fleet: regions and how far they are, who fails and when, how often questions come."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.inference.ticking_case import one_pool

from datahall.errors import ScenarioError
from datahall.inference.deploy import region_number
from datahall.inference.fleet.build import autoscaling_of, cache_of, distances_of, offered_per_s, outages_of
from datahall.inference.fleet.fleet import ReplicaOutage
from datahall.scenario.sections.failure import Failure
from datahall.scenario.sections.fleet import AnswerCache, Region, Router
from datahall.workload.traffic.arrivals import Arrivals
from datahall.workload.traffic.traffic import Traffic, Users

POOLS = (one_pool(2, region=0), one_pool(3, region=1))
NAMES = ("eu", "us")


def refused(words: str, run: object, *given: object, **more: object) -> str | None:
    with pytest.raises(ScenarioError, match=words) as caught:
        run(*given, **more)  # type: ignore[operator]
    return caught.value.field


def test_distances_are_said_from_either_side_or_both() -> None:
    eu, us = Region(name="eu", inside_s=0.001, to_s={"us": 0.04}), Region(name="us", inside_s=0.002)
    assert distances_of((eu, us)) == ((0.001, 0.04), (0.04, 0.002))
    assert distances_of((us, eu)) == ((0.002, 0.04), (0.04, 0.001))
    apart = Region(name="us", to_s={"eu": 0.05})
    assert distances_of((eu, apart)) == ((0.001, 0.04), (0.05, 0.0))
    assert distances_of(()) == ((0.0,),)
    assert distances_of((us,)) == ((0.002,),)


def test_regions_have_names_of_their_own_and_a_distance_to_each_other() -> None:
    eu = Region(name="eu", to_s={"us": 0.04})
    assert refused('named "eu"', distances_of, (eu, eu)) == "region"
    assert refused("without a name", distances_of, (Region(), eu)) == "region"
    assert refused('"us" is not a region', distances_of, (eu,)) == "region"
    assert refused("no distance from eu to asia", distances_of, (eu, Region(name="us"), Region(name="asia")))
    three = (eu, Region(name="us", to_s={"asia": 0.1}), Region(name="asia", to_s={"eu": 0.2}))
    assert distances_of(three) == ((0.0, 0.04, 0.2), (0.04, 0.0, 0.1), (0.2, 0.1, 0.0))


def test_a_region_has_the_number_of_its_place() -> None:
    assert [region_number(name, NAMES, "region") for name in NAMES] == [0, 1]
    assert region_number("", (), "region") == 0
    assert refused("is missing", region_number, "", NAMES, "region") == "region"
    assert refused("is not a region", region_number, "asia", NAMES, "region") == "region"
    assert refused("is not a region", region_number, "eu", (), "failure") == "failure"


def lost(failure: Failure, *, scales: bool = False, others: tuple[ReplicaOutage, ...] = ()) -> list[int]:
    return [one.replica for one in outages_of(failure, others, POOLS, NAMES, scales=scales)]


def test_a_failure_takes_replicas_by_number_or_by_region() -> None:
    assert lost(Failure(replicas=(0, 4))) == [0, 4]
    assert lost(Failure(region="eu")) == [0, 1]
    assert lost(Failure(region="us")) == [2, 3, 4]
    (one,) = outages_of(
        Failure(replicas=(1,), start_s=3.0, duration_s=4.0, drain=True), (), POOLS, NAMES, scales=False
    )
    assert (one.start_s, one.duration_s, one.drain) == (3.0, 4.0, True)
    (forever,) = outages_of(Failure(replicas=(1,)), (), POOLS, NAMES, scales=False)
    assert forever.duration_s == inf


def test_a_failure_that_names_nobody_or_somebody_who_is_not_there_is_refused() -> None:
    assert refused("replicas or a region", lost, Failure()) == "failure"
    assert refused("replicas or a region", lost, Failure(replicas=(0,), region="eu")) == "failure"
    assert refused("replica 5 is not there", lost, Failure(replicas=(4, 5))) == "failure"
    assert refused("first pool", lost, Failure(replicas=(2,)), scales=True) == "failure"
    assert lost(Failure(replicas=(1,)), scales=True) == [1]


@given(st.integers(0, 9), st.integers(1, 9), st.integers(0, 9), st.integers(1, 9), st.booleans())
def test_two_failures_of_one_replica_do_not_overlap(
    start: int, length: int, other: int, more: int, same: bool
) -> None:
    before = (ReplicaOutage(replica=0, start_s=float(start), duration_s=float(length)),)
    failure = Failure(replicas=(0 if same else 1,), start_s=float(other), duration_s=float(more))
    moments = set(range(start, start + length)) & set(range(other, other + more))
    if same and moments:
        assert refused("is out from", lost, failure, others=before) == "failure"
    else:
        assert lost(failure, others=before) == [0 if same else 1]


def stream(rate: float = 0.0, *, gaps: str = "poisson") -> Traffic:
    arrivals = Arrivals(rate_per_s=rate, gaps=gaps) if rate else None  # type: ignore[arg-type]
    users = None if arrivals else Users(num=3)
    return Traffic(arrivals=arrivals, users=users, num_requests=10)


def test_questions_come_as_often_as_all_streams_or_as_was_said() -> None:
    assert offered_per_s([stream(3.0), stream(4.0)]) == 7.0
    assert offered_per_s([stream(3.0), stream()]) == 0.0
    assert offered_per_s([]) == 0.0
    found = cache_of(AnswerCache(shared=100), [stream(3.0), stream(4.0)])
    assert found is not None
    assert found.questions.rate_per_s == 7.0
    said = cache_of(AnswerCache(shared=100, rate_per_s=20.0), [stream()])
    assert said is not None
    assert said.questions.rate_per_s == 20.0
    assert cache_of(None, [stream(3.0)]) is None
    assert refused("how often", cache_of, AnswerCache(shared=100), [stream()]) == "cache"


def test_a_tier_that_is_not_there_takes_no_time() -> None:
    found = cache_of(AnswerCache(shared=100), [stream(3.0)])
    assert found is not None
    assert (found.process.num_entries, found.process.lookup_s, found.process.ttl_s) == (0, 0.0, 0.0)
    assert found.semantic.lookup_s == 0.0
    assert found.shared.lookup_s > 0
    other = cache_of(AnswerCache(process=10, semantic_fraction=0.1), [stream(3.0)])
    assert other is not None
    assert min(other.process.lookup_s, other.semantic.lookup_s) > 0
    assert (other.shared.lookup_s, other.shared.ttl_s) == (0.0, 0.0)


def test_nothing_scales_that_was_not_asked_to() -> None:
    assert autoscaling_of(Router()) is None
