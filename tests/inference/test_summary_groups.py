"""What a run did, by group: hand-made records of six requests on four replicas."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import msgspec
import numpy as np
import pytest

from datahall.inference.fleet.fleet import ReplicaOutage
from datahall.inference.fleet.service import Outcome, Service, simulate_service
from datahall.inference.fleet.span import MeasuredWindow
from datahall.inference.fleet.summary import (
    failure_latencies,
    mean_use,
    pool_uses,
    recomputed_tokens,
    region_latencies,
    scaling_use,
    stream_latencies,
    tier_uses,
)
from datahall.inference.memory.offload import lower_tiers
from datahall.inference.simulation.run import Records, ReplicaUse, Scaling
from datahall.scenario.sections.wanted.promise import Promise

TEXT = (
    'version = 1\nmodel = "llama-3.1-8b"\n[measurement]\nwarmup = "0 s"\n'
    '[[deployment]]\nchip = "h100-sxm"\nreplicas = 3\nregion = "eu"\nhost_cache = "10 GB"\n'
    '[[deployment]]\nchip = "h100-sxm"\nreplicas = 1\nregion = "us"\n'
    '[[region]]\nname = "eu"\nto = { us = "40 ms" }\n[[region]]\nname = "us"\n'
    '[[traffic]]\nname = "chat"\nisl = 100\nosl = 10\nrate = 5\nrequests = 5\nregion = "eu"\n'
    '[[traffic]]\nname = "code"\nisl = 100\nosl = 10\nrate = 5\nrequests = 5\nregion = "us"\n'
)

FINISHED, TOO_LONG, CACHED = 0, 1, 3

# row: stream, region, status, replica, prompt, output, hit, arrival, first token, end
REQUESTS = [
    (0, 0, FINISHED, 0, 100, 11, 40, 1.0, 1.2, 2.2),  # TTFT 0.2, TPOT 0.1
    (0, 0, FINISHED, 3, 100, 11, 0, 2.0, 2.4, 4.4),  # TTFT 0.4, TPOT 0.2, served in the other region
    (0, 0, FINISHED, 3, 100, 1, 300, 3.0, 3.6, 3.6),  # one token: no TPOT, and served in the other region
    (1, 1, FINISHED, 1, 100, 21, 0, 4.0, 5.0, 7.0),  # TTFT 1.0, TPOT 0.1, served in the other region
    (1, 0, CACHED, -1, 100, 11, 0, 5.0, 5.01, 5.01),
    (1, 0, TOO_LONG, -1, 900, 11, 0, 6.0, 6.0, 6.0),
]


@pytest.fixture
def outcome(read: Callable[[str], Service]) -> Outcome:
    """A run of the right shape with the records replaced by those above."""
    service = msgspec.structs.replace(read(TEXT), promise=Promise(ttft_s=0.5, tpot_s=0.15))
    stream, region, status, replica, prompt, output, hit, arrival, first, end = map(
        np.array, zip(*REQUESTS, strict=True)
    )
    records = Records(
        row=np.arange(6), status=status, replica=replica, prompt=prompt, output=output, hit=hit,
        preempted=np.zeros(6, np.int64), arrival_s=arrival, scheduled_s=arrival, first_s=first, end_s=end,
    )  # fmt: skip
    whole = np.zeros(4, np.int64)
    use = ReplicaUse(
        pool=np.array([0, 0, 0, 1]), busy_fraction=np.array([0.2, 0.6, 0.4, 0.9]),
        active_s=np.array([10.0, 0.0, 6.0, 4.0]), num_steps=whole, num_preempted=np.array([1, 2, 0, 4]),
        cache_mean_fraction=np.array([0.1, 0.5, 0.2, 0.3]), cache_peak_fraction=np.array([0.4, 0.7, 0.3, 0.6]),
        queue_mean=np.array([2.0, 8.0, 4.0, 3.0]), queue_peak=whole, prompt_tokens=np.array([100, 100, 0, 200]),
        output_tokens=whole, free_blocks=whole, blocks=whole, host_blocks=np.array([100, 0, 300, 0]),
        drive_blocks=whole,
    )  # fmt: skip
    made = simulate_service(service)
    run = msgspec.structs.replace(made.run, records=records, replicas=use, duration_s=20.0, num_unfinished=0)
    return msgspec.structs.replace(
        made, run=run, stream=stream, region=region, tier=np.array([0, 0, 0, 0, 1, 0], np.int8)
    )


def with_service(outcome: Outcome, **changes: object) -> Outcome:
    return msgspec.structs.replace(outcome, service=msgspec.structs.replace(outcome.service, **changes))


def test_a_stream_is_measured_on_its_own_requests_that_were_answered(outcome: Outcome) -> None:
    chat, code = stream_latencies(outcome)
    assert (chat.name, chat.num_requests) == ("chat", 3)
    assert chat.ttft_p50_s == pytest.approx(0.4)
    assert chat.tpot_mean_s == pytest.approx(0.15)  # the one of a single token has none
    assert chat.good_fraction == pytest.approx(1 / 3)  # one has 200 ms a token, one 600 ms to the first
    assert (code.name, code.num_requests) == ("code", 2)  # the one that was too long is none of them
    assert code.ttft_p50_s == pytest.approx((1.0 + 0.01) / 2)
    assert code.tpot_mean_s == pytest.approx(0.1)  # the cache's answer comes at once and is no TPOT
    assert code.good_fraction == pytest.approx(1 / 2)
    assert code.e2e_p99_s == pytest.approx(0.01 + 0.99 * (3.0 - 0.01))


def test_a_limit_that_is_just_kept_is_kept(outcome: Outcome) -> None:
    ttft_s, tpot_s = 3.6 - 3.0, (4.4 - 2.4) / 10
    exact = stream_latencies(with_service(outcome, promise=Promise(ttft_s=ttft_s, tpot_s=tpot_s)))[0]
    assert exact.good_fraction == 1.0
    tighter = stream_latencies(with_service(outcome, promise=Promise(ttft_s=ttft_s, tpot_s=0.19)))[0]
    assert tighter.good_fraction == pytest.approx(2 / 3)


def test_what_came_in_the_warm_up_is_not_measured(outcome: Outcome) -> None:
    assert [
        one.num_requests for one in stream_latencies(with_service(outcome, window=MeasuredWindow(3.0)))
    ] == [1, 2]
    late = stream_latencies(with_service(outcome, window=MeasuredWindow(9.0)))[0]
    assert late[1:] == (0, None, None, None, None, None)


def test_a_region_counts_those_it_sent_and_those_served_elsewhere(outcome: Outcome) -> None:
    rows, away, served = region_latencies(outcome)
    assert [(one.name, one.num_requests) for one in rows] == [("eu", 4), ("us", 1)]
    assert (away, served) == (3, 4)


def test_requests_during_an_outage_stand_apart_from_the_others(outcome: Outcome) -> None:
    def lost(replica: int, start_s: float, duration_s: float, *, drain: bool = False) -> ReplicaOutage:
        return ReplicaOutage(replica=replica, start_s=start_s, duration_s=duration_s, drain=drain)

    outages = (lost(0, 2.0, 1.0), lost(1, 2.0, 1.0), lost(0, 4.0, inf, drain=True))
    fleet = msgspec.structs.replace(outcome.service.fleet, outages=outages)
    rows = failure_latencies(with_service(outcome, fleet=fleet))
    assert [one.name for one in rows] == ["2 lost from 2 s to 3 s", "1 drained from 4 s on", "at other times"]
    # the request at 3.0 comes when the replicas are back
    assert [one.num_requests for one in rows] == [1, 2, 2]


def test_a_pool_is_the_mean_of_the_replicas_it_used(outcome: Outcome) -> None:
    first, second = pool_uses(outcome)
    assert (first.place, first.num_used, first.busy_fraction) == (0, 2, pytest.approx(0.3))
    assert (first.cache_mean_fraction, first.cache_peak_fraction) == (pytest.approx(0.15), pytest.approx(0.4))
    assert (first.num_waiting, first.num_preempted) == (3.0, 3)  # preemptions count whoever had them
    assert (second.place, second.num_used, second.num_preempted) == (1, 1, 4)
    host, _ = lower_tiers(outcome.service.fleet.pools[0].replica)
    assert host.num_blocks > 0
    assert (first.host_fraction, first.drive_fraction) == (pytest.approx(200 / host.num_blocks), None)
    assert (second.host_fraction, second.drive_fraction) == (None, None)


def test_an_unused_pool_is_not_told_of(outcome: Outcome) -> None:
    use = msgspec.structs.replace(outcome.run.replicas, active_s=np.array([0.0, 0.0, 0.0, 1.0]))
    run = msgspec.structs.replace(outcome.run, replicas=use)
    assert [one.place for one in pool_uses(msgspec.structs.replace(outcome, run=run))] == [1]


def test_the_mean_use_is_of_replicas_that_were_there(outcome: Outcome) -> None:
    assert mean_use(outcome.run) == (pytest.approx(0.5), pytest.approx(0.2), pytest.approx(0.7))
    idle = msgspec.structs.replace(outcome.run.replicas, active_s=np.zeros(4))
    assert mean_use(msgspec.structs.replace(outcome.run, replicas=idle)) == (0.0, 0.0, 0.0)


def test_tokens_computed_more_than_once_are_those_beyond_each_prompt_less_its_hits(outcome: Outcome) -> None:
    # finished prompts: 60 + 100 + 0 (found more than the prompt) + 100 = 260 of the 400 that were computed
    assert recomputed_tokens(outcome.run) == 140
    few = msgspec.structs.replace(outcome.run.replicas, prompt_tokens=np.array([10, 10, 10, 10]))
    assert recomputed_tokens(msgspec.structs.replace(outcome.run, replicas=few)) == 0
    assert recomputed_tokens(msgspec.structs.replace(outcome.run, num_unfinished=1)) is None
    assert recomputed_tokens(msgspec.structs.replace(outcome.run, records=None)) is None


def test_scaling_is_told_of_the_first_pool(outcome: Outcome) -> None:
    seen = Scaling(
        time_s=np.array([0.0, 5.0, 10.0]), num_active=np.array([1, 2, 1]), num_starting=np.zeros(3, np.int64),
        num_requests=np.array([3, 9, 4]),
    )  # fmt: skip
    use = scaling_use(outcome, seen)
    assert (use.least, use.most, use.most_requests) == (1, 2, 9)
    assert (use.replica_s, use.mean) == (16.0, pytest.approx(0.8))
    assert use.busy_fraction == pytest.approx(0.3)
    endless = msgspec.structs.replace(outcome.run, duration_s=0.0)
    assert scaling_use(msgspec.structs.replace(outcome, run=endless), seen).mean is None
    short = msgspec.structs.replace(outcome.run, duration_s=0.5)
    assert scaling_use(msgspec.structs.replace(outcome, run=short), seen).mean == pytest.approx(32.0)


def test_each_tier_in_front_is_told_with_what_it_answered(
    read: Callable[[str], Service], outcome: Outcome
) -> None:
    cached = read(TEXT + "[cache]\nquestions = 100\nprocess = 10\nrate = 20\n")
    process, model = tier_uses(with_service(outcome, cache=cached.cache))
    assert (process.tier, process.num_requests, process.share) == (1, 1, pytest.approx(1 / 6))
    assert (process.prompt_tokens, process.output_tokens) == (100, 11)
    assert (model.tier, model.num_requests) == (0, 5)
    assert (model.prompt_tokens, model.output_tokens) == (None, None)
    assert process.expected_fraction + model.expected_fraction == pytest.approx(1.0)
    assert 0.0 < process.expected_fraction < 1.0
