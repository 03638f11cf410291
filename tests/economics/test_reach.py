"""Users who are far away, and data that goes elsewhere: never faster than light, by the byte, never past a limit."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.economics.test_distance import CATALOG

from datahall.answers.ask import form_of
from datahall.breakdown import derived, false_nodes
from datahall.catalog.entries.supply.region import Region
from datahall.economics.sections.reach import Reach, reach_of
from datahall.economics.supply.distance import METRE_S, distance_m
from datahall.economics.supply.stand import stand_of
from datahall.economics.supply.users import farthest, left_of
from datahall.errors import InfeasibleError
from datahall.scenario.read import read_names
from datahall.scenario.sections.money.purchase import Purchase

H100 = CATALOG.chip("h100-sxm")
REGIONS = st.sampled_from([one for one in CATALOG.regions() if one.is_placed])


@cache
def reach(regions: str, users: str, limit_s: float, residency: str = "") -> Reach:
    said = {"model": "llama-3.1-8b", "rate": "1", "regions": regions, "users_in": users}
    where = {"residency": residency} if residency else {}
    scenario = read_names(form_of("plan serve"), said | where, CATALOG)
    found = reach_of(scenario, H100, 8, limit_s, 0.1, derived("answers of a month", 1e12, "bytes"))
    assert found is not None
    return found


def way_s(users: list[Region], regions: list[Region]) -> float:
    found = farthest(users, regions)
    assert found is not None
    assert false_nodes(found) == []
    return found.value


@given(st.lists(REGIONS, min_size=1, max_size=4), st.lists(REGIONS, min_size=1, max_size=4))
def test_the_way_to_users_is_that_of_those_who_are_farthest_and_none_beats_light(
    users: list[Region], regions: list[Region]
) -> None:
    most_m = max(distance_m(one, other) for one in users for other in regions)
    assert way_s(users, regions) >= 2.0 * most_m * METRE_S
    assert way_s(users, regions) == max(way_s([user], regions) for user in users)


def test_the_way_is_taken_off_the_limit_and_more_of_it_than_there_is_is_a_no() -> None:
    way = farthest([CATALOG.region("eu-west-2")], [CATALOG.region("us-east-1")])
    assert way is not None
    assert left_of(1.0, way) == pytest.approx(1.0 - way.value)
    with pytest.raises(InfeasibleError, match=r"alone takes 92\.7 ms of the 90 ms"):
        left_of(0.09, way)


@given(REGIONS, st.floats(1.0, 1e15), st.floats(1.0, 100.0))
def test_what_leaves_is_paid_by_the_byte(region: Region, num_bytes: float, ratio: float) -> None:
    one, more = (
        stand_of(region, H100, derived("data", size, "bytes"), Purchase(), CATALOG)
        for size in (num_bytes, num_bytes * ratio)
    )
    for few, many in ((one.egress, more.egress), (one.moved, more.moved)):
        assert (few is None) == (many is None)
        if few is not None and many is not None:
            assert many.value == pytest.approx(few.value * ratio)


def test_within_a_cloud_data_costs_no_more_than_out_of_it() -> None:
    both = [one for one in CATALOG.regions() if one.between_usd_per_gb >= 0.0]
    assert len(both) == 19
    for one in both:
        assert 0.0 < one.between_usd_per_gb <= one.egress_usd_per_gb, one.name


def test_other_regions_leave_time_for_the_first_token_and_cost_what_their_chips_do() -> None:
    found = reach("us-east-1", "eu-west-2", 1.0)
    assert found.others
    assert found.chips is not None
    assert found.chips.value == pytest.approx(8 * 730.5 * 6.88)
    for one in found.others:
        assert found.first_token_s + one.way.value <= 1.0
        assert found.saved_usd(one) == pytest.approx(found.chips.value - one.chips.value)
        assert found.added_s(one) == pytest.approx(one.way.value - found.way.value)
    assert [one.chips.value for one in found.others] == sorted(one.chips.value for one in found.others)
    assert not [figure.name for figure in found.figures if false_nodes(figure)]


def test_a_shorter_limit_leaves_fewer_regions() -> None:
    long, short = reach("us-east-1", "eu-west-2", 1.0), reach("us-east-1", "eu-west-2", 0.2)
    assert short.num_too_far > long.num_too_far
    assert short.others
    assert all(one.way.value <= 0.1 for one in short.others)


@pytest.mark.parametrize("residency", ["japan", "united-states", "united-states,united-kingdom"])
def test_no_region_is_named_where_the_data_may_not_be(residency: str) -> None:
    regions = {"japan": "ap-northeast-1"}.get(residency, "us-east-1")
    found = reach(regions, "eu-west-2", 10.0, residency)
    assert {one.region.country for one in found.others} <= {*residency.split(",")}
    assert found.num_too_far == 0
