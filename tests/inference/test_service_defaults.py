"""What a service works out by itself: its warm-up, the longest request it draws, how often its cache is asked."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import pytest
from msgspec.structs import replace

from datahall.errors import DatahallError
from datahall.inference.closed_form.load import load_of
from datahall.inference.fleet.build import cache_of, offered_per_s
from datahall.inference.fleet.response_cache import hit_rates
from datahall.inference.fleet.service import Service
from datahall.inference.fleet.span import expected_s
from datahall.scenario.sections.fleet import AnswerCache
from datahall.workload.traffic.arrivals import Arrivals
from datahall.workload.traffic.conversation import Conversation
from datahall.workload.traffic.lengths import Fixed
from datahall.workload.traffic.traffic import Traffic
from datahall.workload.traffic.users import Users

Read = Callable[[str], Service]

ROOT = 'version = 1\nmodel = "llama-3.1-8b"\n'
POOL = '[[deployment]]\nchip = "h100-sxm"\n'
PLAIN = Traffic(
    prompt=Fixed(200), output=Fixed(40), arrivals=Arrivals(rate_per_s=5.0), num_requests=300, max_context=0
)

OF_USERS: dict[str, object] = {"arrivals": None, "users": Users(num=8)}
AT_ONCE: dict[str, object] = {"arrivals": Arrivals(rate_per_s=inf, gaps="at-once")}
UNKNOWN = (OF_USERS, AT_ONCE)


def traffic(text: str) -> str:
    return f"[[traffic]]\nisl = 200\nosl = 40\n{text}\n"


@pytest.mark.parametrize(
    ("changes", "lasts_s"),
    [
        ({}, 60.0),  # 300 requests at 5 a second
        ({"conversation": Conversation(num_turns=3.0)}, 20.0),  # 100 conversations at 5 a second
        ({"duration_s": 12.0}, 12.0),
        (AT_ONCE | {"duration_s": 0.0}, 0.0),  # all at once
        (OF_USERS | {"duration_s": 0.0}, 0.0),  # users come as they are answered
        (OF_USERS | {"duration_s": 30.0}, 30.0),
    ],
)
def test_how_long_requests_come(changes: dict[str, object], lasts_s: float) -> None:
    assert expected_s(replace(PLAIN, **changes)) == pytest.approx(lasts_s)


def test_two_stays_are_warm_up_or_a_tenth_of_streams_that_have_no_closed_form(read: Read) -> None:
    short, long = traffic("rate = 5\nrequests = 300"), traffic("rate = 2\nrequests = 300")
    one = read(ROOT + POOL + short)
    assert one.steady is not None
    stay = one.steady.ttft_s + one.steady.tpot_s * 40
    assert one.window.start_s == pytest.approx(2 * stay)
    assert one.window.num_rows == round(300 * (1 - 2 * stay / 60.0))
    both = read(ROOT + POOL + short + long)
    assert both.window.start_s == pytest.approx(2 * both.stay_s)
    assert both.window.end_s == pytest.approx(150.0 - 2 * both.stay_s)


def test_a_warm_up_that_was_said_is_taken(read: Read) -> None:
    short = traffic("rate = 5\nrequests = 300")
    assert read(f'{ROOT}{POOL}{short}[measurement]\nwarmup = "1 s"\n').window.start_s == 1.0
    assert read(f'{ROOT}{POOL}{short}[measurement]\nwarmup = "0 s"\n').window.start_s == 0.0


def test_users_who_all_come_at_once_warm_up_for_the_stay_of_one(read: Read) -> None:
    """Their first rush of prompts does not come again, so the first answer of each is left out."""
    service = read(ROOT + POOL + traffic("users = 30\nrequests = 300"))
    steady = service.steady
    assert steady is not None
    stay_s = steady.ttft_s + steady.tpot_s * load_of(service.traffic).output
    assert stay_s > 0.3
    assert service.window.start_s == pytest.approx(
        300 / 30 * stay_s / 6
    )  # ten stays, of which a sixth is more than one
    brief = read(ROOT + POOL + traffic("users = 30\nrequests = 60"))
    assert brief.window.start_s == pytest.approx(stay_s)


def test_users_who_think_first_warm_up_for_one_round(read: Read) -> None:
    """They begin spread over a pause and a stay, and think first."""
    service = read(ROOT + POOL + traffic('users = 30\nthink = "5 s"\nrequests = 300'))
    assert service.steady is not None
    assert service.window.start_s == pytest.approx(10.0 + service.steady.ttft_s + 40 * service.steady.tpot_s)


def test_requests_are_no_longer_than_every_pool_accepts(read: Read) -> None:
    """Two pools that accept 3,000 and 5,000 tokens, of a model of 131,072: requests are drawn for the first."""
    pools = "".join(f"{POOL}max_context = {limit}\n" for limit in (5000, 3000))
    asked = traffic("rate = 5\nrequests = 300")
    assert read(ROOT + pools + asked).streams[0].traffic.max_context == 3000
    assert read(f"{ROOT}{POOL}max_context = 5000\n{POOL}{asked}").streams[0].traffic.max_context == 5000
    assert read(ROOT + POOL + asked).streams[0].traffic.max_context == 131_072


def test_a_cache_is_asked_as_often_as_first_turns_come() -> None:
    assert offered_per_s([PLAIN, replace(PLAIN, arrivals=Arrivals(rate_per_s=2.0))]) == 7.0
    for unknown in UNKNOWN:
        assert offered_per_s([PLAIN, replace(PLAIN, **unknown)]) == 0.0


def test_the_rate_of_a_cache_is_that_of_the_traffic_unless_it_is_said() -> None:
    found = cache_of(AnswerCache(process=100), [PLAIN])
    assert found is not None
    assert found.questions.rate_per_s == 5.0
    said = cache_of(AnswerCache(process=100, rate_per_s=9.0), [PLAIN])
    assert said is not None
    assert said.questions.rate_per_s == 9.0
    assert cache_of(None, [PLAIN]) is None


def test_a_cache_needs_a_tier_and_a_rate() -> None:
    with pytest.raises(DatahallError, match="without tiers"):
        cache_of(AnswerCache(), [PLAIN])
    for unknown in UNKNOWN:
        with pytest.raises(DatahallError, match="not known"):
            cache_of(AnswerCache(shared=100), [replace(PLAIN, **unknown)])


def test_a_tier_that_is_not_there_keeps_and_costs_nothing() -> None:
    only = cache_of(AnswerCache(semantic_fraction=0.2), [PLAIN])
    assert only is not None
    for tier in (only.process, only.shared):
        assert (tier.num_entries, tier.ttl_s, tier.lookup_s) == (0, 0.0, 0.0)
    assert only.semantic.hit_fraction == 0.2
    assert float(only.tier_s[0]) == only.semantic.lookup_s == AnswerCache().semantic_lookup_s
    every = cache_of(AnswerCache(process=10, shared=100, semantic_fraction=0.2, processes=3), [PLAIN])
    assert every is not None
    assert (every.process.ttl_s, every.shared.ttl_s) == (
        AnswerCache().process_ttl_s,
        AnswerCache().shared_ttl_s,
    )
    assert every.process.num_caches == 3
    # who finds nothing has looked into all three
    looks = (every.process.lookup_s, every.shared.lookup_s, every.semantic.lookup_s)
    assert float(every.tier_s[0]) == pytest.approx(sum(looks))


def test_questions_that_come_more_often_are_found_more_often() -> None:
    """An answer is kept for a while: the oftener questions come, the more find one."""
    found = [
        hit_rates(cache).total_fraction
        for rate in (0.01, 1.0, 100.0)
        if (cache := cache_of(AnswerCache(shared=1000, rate_per_s=rate, unique_fraction=0.3), [])) is not None
    ]
    assert found == sorted(found)
    assert 0 < found[0] < found[-1] <= 0.7  # what nobody asks again is never found
