"""When a service is said to keep its limits, how long it is not measured, and when each request is kept apart."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.inference.ticking_case import one_pool

from datahall.inference.fleet.fleet import Fleet, ReplicaOutage
from datahall.inference.fleet.service import (
    Outcome,
    Service,
    Stream,
    _window,
    behind_cache,
    regions_of,
)
from datahall.inference.fleet.span import UNKNOWN_FRACTION, expected_s, stay_s
from datahall.scenario.sections.wanted.promise import Promise
from datahall.workload.traffic.arrivals import Arrivals
from datahall.workload.traffic.conversation import Conversation, Cut, Think
from datahall.workload.traffic.traffic import Traffic
from datahall.workload.traffic.users import Users


def stream(traffic: Traffic, *shares: float) -> Stream:
    return Stream(traffic=traffic, region_fractions=shares or (1.0,))


def rate(per_s: float, *, num: int = 100, duration_s: float = 0.0, turns: float = 1.0) -> Traffic:
    return Traffic(
        arrivals=Arrivals(rate_per_s=per_s), num_requests=num, duration_s=duration_s,
        conversation=Conversation(num_turns=turns),
    )  # fmt: skip


def service(**more: Any) -> Service:
    given: dict[str, Any] = {
        "model": None, "fleet": Fleet(pools=(one_pool(),)), "precisions": ("bf16",), "streams": (stream(rate(1.0)),),
        "regions": (), "promise": Promise(percentile=0.9), "price": None, "seed": 0, "stay_s": 0.0, "users_over_s": 0.0,
    }  # fmt: skip
    return Service(**{**given, **more})


def outcome(*, cut: Cut | None = None, **run: Any) -> Outcome:
    none = np.zeros(0, np.int64)
    return Outcome(
        service=service(), run=SimpleNamespace(**run), stream=none, region=none,  # type: ignore[arg-type]
        tier=np.zeros(0, np.int8), cut=cut or Cut(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("stable", "num", "good", "keeps"),
    [(True, 10, 0.95, True), (True, 10, 0.9, True), (True, 10, 0.89, False), (False, 10, 1.0, False),
     (True, 0, float("nan"), False)],
)  # fmt: skip
def test_limits_are_kept_by_enough_requests_of_a_stable_run(
    stable: bool, num: int, good: float, keeps: bool
) -> None:
    found = outcome(stable=stable, num_measured=num, good_fraction=good)
    assert found.keeps_limits is keeps


@pytest.mark.parametrize("name", ["num_prompts", "num_outputs", "num_turns"])
def test_a_request_that_was_cut_is_said(name: str) -> None:
    assert outcome(cut=Cut(**{name: 1})).is_cut
    assert not outcome().is_cut


def test_requests_are_kept_apart_where_they_differ() -> None:
    plain = service()
    assert not plain.records
    replace = msgspec.structs.replace
    lost = replace(plain.fleet, outages=(ReplicaOutage(replica=0, start_s=1.0, duration_s=1.0),))
    assert replace(plain, fleet=lost).records
    assert replace(plain, regions=("eu",)).records
    assert replace(plain, streams=plain.streams * 2).records
    assert not replace(plain, seed=3).records


def test_requests_come_for_their_number_over_their_rate_or_as_long_as_was_said() -> None:
    assert expected_s(rate(4.0, num=100)) == 25.0
    assert expected_s(rate(4.0, num=100, turns=5.0)) == 5.0
    assert expected_s(rate(4.0, num=0, duration_s=7.0)) == 7.0
    assert expected_s(rate(4.0, num=100, duration_s=7.0)) == 7.0
    assert expected_s(Traffic(users=Users(num=3), num_requests=10)) == 0.0


def test_the_beginning_that_is_not_measured_is_of_the_longest_stream() -> None:
    short, long = stream(rate(4.0, num=100)), stream(rate(1.0, num=100))
    first, second = _window((short, long), 0.0), _window((long, short), 0.0)
    assert first.start_s == second.start_s == pytest.approx(UNKNOWN_FRACTION * 100.0)
    assert 0 < UNKNOWN_FRACTION < 1


def test_users_who_come_at_once_are_not_measured_in_their_first_rush() -> None:
    steady: Any = SimpleNamespace(ttft_s=2.0, tpot_s=0.5)
    at_once, later = (
        Traffic(users=Users(num=3, think=Think(mean_s=pause_s)), num_requests=10) for pause_s in (0.0, 900.0)
    )
    stay = stay_s(at_once, steady)
    assert stay == pytest.approx(2.0 + 0.5 * 250)  # the usual answer has 250 tokens
    assert stay_s(at_once, None) == 0
    rush, calm = (_window((stream(traffic),), stay) for traffic in (at_once, later))
    assert (
        rush.start_s == stay
    )  # ten requests of three users are 3.3 stays, a sixth of which is less than one
    assert calm.start_s == 2 * 900.0 + stay  # they begin spread over a pause and a stay, and think first


def test_a_session_comes_from_one_place_by_the_shares_of_its_stream() -> None:
    sessions = [np.repeat(np.arange(4000), 2)]
    own = np.zeros(8000, np.int64)
    there = service(streams=(stream(rate(1.0), 0.25, 0.75),), regions=("eu", "us"))
    found = regions_of(there, sessions, own)
    assert (found[::2] == found[1::2]).all()
    assert found.mean() == pytest.approx(0.75, abs=0.03)
    certain = service(streams=(stream(rate(1.0), 0.0, 1.0),), regions=("eu", "us"))
    assert set(regions_of(certain, sessions, own).tolist()) == {1}
    both = service(streams=(stream(rate(1.0), 1.0, 0.0), stream(rate(1.0), 0.0, 1.0)), regions=("eu", "us"))
    own[::2] = 1
    assert regions_of(both, sessions, own).tolist() == own.tolist()
    assert regions_of(both, [], np.zeros(0, np.int64)).size == 0


def test_what_no_tier_answers_comes_later_by_the_look_up() -> None:
    before = Fleet(pools=(one_pool(), one_pool()))
    after = behind_cache(before, 0.25)
    for old, new in zip(before.pools, after.pools, strict=True):
        assert new.replica.engine.first_token_s == pytest.approx(old.replica.engine.first_token_s + 0.25)
