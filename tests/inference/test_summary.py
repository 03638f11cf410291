"""What a run says of itself: shares, means and bands, the closed form beside it, replicas that would be enough."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isnan
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.inference.serving_case import fleet, poisson

from datahall.inference.closed_form.load import load_of
from datahall.inference.engine.replica import Replica
from datahall.inference.fleet.figure import tpot_figure, ttft_figure
from datahall.inference.fleet.fleet import Fleet, Pool
from datahall.inference.fleet.service import Outcome, Service, simulate_service
from datahall.inference.fleet.span import MeasuredWindow
from datahall.inference.fleet.summary import _latency, crosschecks, enough_replicas
from datahall.inference.simulation.histogram import TPOT, TTFT
from datahall.inference.simulation.run import Records, ServingRun
from datahall.inference.simulation.simulate import simulate_serving
from datahall.inference.simulation.state import FINISHED, TOO_LONG
from datahall.inference.step.floor import least_token_s
from datahall.scenario.sections.wanted.promise import Promise

Read = Callable[[str], Service]

PLAIN = """
version = 1
model = "llama-3.1-8b"
[deployment]
chip = "h100-sxm"
replicas = {replicas}
[traffic]
rate = {rate}
requests = {requests}
isl = 400
osl = 100
"""


def outcome(read: Read, *, rate: float, requests: int = 400, replicas: int = 1, more: str = "") -> Outcome:
    text = PLAIN.format(rate=rate, requests=requests, replicas=replicas) + more
    return simulate_service(read(text))


@pytest.fixture(scope="module")
def run() -> ServingRun:
    return simulate_serving(fleet(), poisson(200, 4.0))


def with_counts(run: ServingRun, **counts: int) -> ServingRun:
    return msgspec.structs.replace(run, **counts)


def test_tokens_that_were_found_are_divided_over_the_tiers(run: ServingRun) -> None:
    found = with_counts(run, prompt_tokens=1000, hit_tokens=600, host_hit_tokens=200, drive_hit_tokens=50)
    assert found.hit_fractions == {"on the chip": 0.35, "on the host": 0.2, "on drives": 0.05}
    assert found.hit_fraction == pytest.approx(sum(found.hit_fractions.values()))
    none = with_counts(run, prompt_tokens=0, hit_tokens=0)
    assert none.hit_fraction == 0.0
    assert none.hit_fractions == {}


def test_lengths_are_means_of_what_finished(run: ServingRun) -> None:
    found = with_counts(run, prompt_tokens=1001, output_tokens=248, num_measured=10)
    assert (found.mean_prompt, found.mean_output) == (100, 25)
    # a request has a token each way, whatever finished
    none = with_counts(run, prompt_tokens=0, output_tokens=0, num_measured=0)
    assert (none.mean_prompt, none.mean_output) == (1, 1)


def test_what_a_cache_answered_is_a_share_of_what_came(run: ServingRun) -> None:
    assert with_counts(run, num_answered=30, num_arrived=120).answered_fraction == 0.25
    assert isnan(with_counts(run, num_answered=0, num_arrived=0).answered_fraction)


def test_a_fleet_has_the_ranks_of_all_its_pools(serve: Callable[..., Replica]) -> None:
    one = serve("llama-3.1-8b")
    pools = (
        Pool(replica=msgspec.structs.replace(one, dp=4), count=3),
        Pool(replica=one, count=2),
    )
    assert Fleet(pools=pools).num_ranks == 14


def test_means_have_the_bands_of_what_they_are(read: Read) -> None:
    found = outcome(read, rate=4)
    for figure, measure, band in (
        (ttft_figure(found), TTFT, found.service.replica.engine.band("TTFT")),
        (tpot_figure(found), TPOT, found.service.price.band),
    ):
        assert figure is not None
        assert figure.value == found.run.mean_s(measure)
        assert figure.band is not None
        assert (figure.band.low / figure.value, figure.band.high / figure.value) == pytest.approx(band)
        assert figure.band.low < figure.value < figure.band.high
    tpot, ttft = tpot_figure(found), ttft_figure(found)
    assert tpot is not None
    assert ttft is not None
    assert tpot.band != ttft.band


def test_an_answer_of_one_token_has_no_time_per_token(read: Read) -> None:
    found = outcome(read, rate=4, more="")
    single = msgspec.structs.replace(
        found, run=simulate_serving(found.service.fleet, poisson(50, 4.0, output=1))
    )
    assert tpot_figure(single) is None
    assert ttft_figure(single) is not None


def test_the_closed_form_stands_beside_what_was_simulated(read: Read) -> None:
    found = outcome(read, rate=4, requests=1500)
    steady = found.service.steady
    assert steady is not None
    for row, measure, closed_s in zip(
        crosschecks(found), (TPOT, TTFT), (steady.tpot_s, steady.ttft_s), strict=True
    ):
        assert row.simulated_s == found.run.mean_s(measure)
        assert row.closed_s == closed_s
        assert row.difference_fraction is not None
        # the closed form is so much more than what was simulated
        assert row.simulated_s * (1 + row.difference_fraction) == pytest.approx(closed_s)
        assert abs(row.difference_fraction) < 0.1


def test_without_a_closed_form_there_is_nothing_to_compare(read: Read) -> None:
    found = outcome(read, rate=4, requests=50, more='[router]\nautoscale = "1..2"\n')
    assert found.service.steady is None
    assert crosschecks(found) == []


def test_a_closed_form_that_ends_says_nothing_of_the_wait(read: Read) -> None:
    found = outcome(read, rate=500, requests=2000)
    row = next(row for row in crosschecks(found) if row.name == "TTFT")
    assert (row.closed_s, row.difference_fraction) == (None, None)
    assert row.simulated_s is not None


def test_replicas_that_are_enough_are_enough(read: Read) -> None:
    """The fleet that is advised holds the traffic under which the first one broke, and little less does not."""
    broken = outcome(read, rate=200, requests=4000)
    assert not broken.run.stable
    enough = enough_replicas(broken)
    assert enough is not None
    assert outcome(read, rate=200, requests=4000, replicas=enough).run.stable
    assert not outcome(read, rate=200, requests=4000, replicas=enough // 2).run.stable


def test_what_is_advised_lets_a_queue_shrink_and_wastes_little(read: Read) -> None:
    """More than what comes, by a tenth to a fifth: told at a rate at which whole replicas round to little."""
    broken = outcome(read, rate=200, requests=4000)
    stream = broken.service.streams[0]
    assert stream.traffic.arrivals is not None
    offered_per_s = 1e5
    coming = msgspec.structs.replace(stream.traffic.arrivals, rate_per_s=offered_per_s)
    many = msgspec.structs.replace(stream, traffic=msgspec.structs.replace(stream.traffic, arrivals=coming))
    service = msgspec.structs.replace(broken.service, streams=(many,))
    enough = enough_replicas(msgspec.structs.replace(broken, service=service))
    assert enough is not None
    held_per_s = enough * broken.run.sustained_per_s / broken.service.fleet.num_replicas
    assert 1.1 * offered_per_s < held_per_s < 1.2 * offered_per_s


def test_turns_count_as_requests_that_come(read: Read) -> None:
    broken = outcome(read, rate=300, requests=4000)
    assert broken.run.sustained_per_s > 0
    once = enough_replicas(broken)
    stream = broken.service.streams[0]
    turns = msgspec.structs.replace(stream.traffic.conversation, num_turns=3.0)
    talk = msgspec.structs.replace(
        stream, traffic=msgspec.structs.replace(stream.traffic, conversation=turns)
    )
    service = msgspec.structs.replace(broken.service, streams=(talk,))
    thrice = enough_replicas(msgspec.structs.replace(broken, service=service))
    assert once is not None
    assert thrice == pytest.approx(3 * once, abs=1.5)


def test_nothing_is_advised_to_a_fleet_that_holds_its_traffic(read: Read) -> None:
    assert enough_replicas(outcome(read, rate=4)) is None


def test_a_run_without_requests_has_no_means(run: ServingRun) -> None:
    empty = msgspec.structs.replace(run, histograms=np.zeros_like(run.histograms), num_measured=0)
    assert isnan(empty.mean_s(TPOT))
    assert isnan(empty.good_fraction)
    assert isnan(msgspec.structs.replace(run, measured_s=0.0).goodput_per_s)


def test_the_floor_bounds_the_band_of_one_pool_and_no_mean_with_a_cache(read: Read) -> None:
    """A wide band ends at the floor; where a cache answers in no time, or pools differ, the mean has none."""
    cached = "[cache]\nprocess = 100\n"
    for more, cut in (("", True), (cached, False)):
        found = outcome(read, rate=0.5, requests=60, more=more)
        wide = msgspec.structs.replace(found.service.price, band=(0.01, 2.0))
        service = msgspec.structs.replace(found.service, price=wide)
        figure = tpot_figure(msgspec.structs.replace(found, service=service))
        assert figure is not None
        assert figure.band is not None
        load = load_of(service.traffic)
        floor_s = least_token_s(service.replica, load.prompt + load.output / 2)
        assert figure.band.low == pytest.approx(floor_s if cut else 0.01 * figure.value)


def test_latencies_of_a_group_by_hand() -> None:
    """Five requests: one of the warm-up, one refused, and three that take 1, 2 and 4 s to their first token."""
    records = Records(
        row=np.arange(5), status=np.array([FINISHED, TOO_LONG, FINISHED, FINISHED, FINISHED]), replica=np.zeros(5, int),
        prompt=np.full(5, 10), output=np.array([3, 3, 3, 1, 5]), hit=np.zeros(5, int), preempted=np.zeros(5, int),
        arrival_s=np.array([0.0, 10.0, 10.0, 20.0, 30.0]), scheduled_s=np.zeros(5),
        first_s=np.array([9.0, 10.0, 11.0, 22.0, 34.0]), end_s=np.array([99.0, 10.0, 12.0, 22.0, 36.0]),
    )  # fmt: skip
    service: Any = SimpleNamespace(promise=Promise(ttft_s=2.0, tpot_s=0.5), window=MeasuredWindow(10.0, 40.0))
    service.under_way = None
    service.measures = partial(Service.measures, service)
    told: Any = SimpleNamespace(run=SimpleNamespace(records=records), service=service)
    found = _latency(told, "all", np.ones(5, bool))
    assert found.num_requests == 3
    assert (found.ttft_p50_s, found.e2e_p99_s) == (2.0, pytest.approx(np.quantile([2.0, 2.0, 6.0], 0.99)))
    assert found.ttft_p99_s == pytest.approx(np.quantile([1.0, 2.0, 4.0], 0.99))
    assert found.tpot_mean_s == pytest.approx(0.5)  # an answer of one token has none
    assert found.good_fraction == pytest.approx(2 / 3)  # what just reaches both limits keeps them
    none = _latency(told, "none", np.zeros(5, bool))
    assert none == ("none", 0, None, None, None, None, None)


def test_a_plain_run_keeps_no_columns_of_requests(read: Read) -> None:
    plain = outcome(read, rate=4, requests=20)
    assert (plain.stream.size, plain.region.size, plain.tier.size) == (0, 0, 0)
    kept = simulate_service(plain.service, record=True)
    assert (kept.stream.size, kept.region.size, kept.tier.size) == (20, 20, 20)
