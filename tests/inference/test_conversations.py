"""Conversations are in steady state: as many come as were asked for, and longer runs find the same."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest

import datahall as dh
from datahall.events import stream
from datahall.workload.traffic.arrivals import Arrivals
from datahall.workload.traffic.conversation import Begun, Conversation, Think, UnderWay, in_order, resumed
from datahall.workload.traffic.requests import Requests
from datahall.workload.traffic.shapes import Fixed
from datahall.workload.traffic.sharing import reuse_of
from datahall.workload.traffic.traffic import Traffic, first_rows, generate
from datahall.workload.traffic.users import Users

RATE_NOISE, SHARE_NOISE = (
    0.08,
    0.03,
)  # four deviations of the rate of a default run; of the share near a limit


def talks(seed: int) -> dict[str, Any]:
    """Conversations that somebody may send to a replica of two H200, which holds them."""
    draw = random.Random(seed)
    kind = draw.choice(("chat", "agent", "mooncake-conversation", "turns"))
    asked: dict[str, Any] = {
        "model": "llama-3.1-8b",
        "chip": "h200-sxm",
        "tp": 2,
        "precision": "fp8",
        "seed": seed,
    }
    if kind == "turns":
        asked |= {"turns": draw.choice((1.5, 2, 4, 8)), "think": draw.choice(("5s", "30s", "5min"))}
        asked |= {"isl": draw.choice((200, 1000)), "osl": draw.choice((50, 200))}
    else:
        asked["traffic"] = kind
    most = {"chat": 25.0, "agent": 8.0, "mooncake-conversation": 2.5, "turns": 10.0}[kind]
    asked["rate"] = round(most * draw.uniform(0.3, 1.0), 2)
    if draw.random() < 0.4:
        asked |= {
            "replicas": 2,
            "rate": 2 * asked["rate"],
            "routing": draw.choice(("session", "least-outstanding")),
        }
    return asked


def found(asked: dict[str, Any]) -> dict[str, Any]:
    answer = dh.simulate_serve(**asked)
    hits = [re.findall(r"prompt tokens ([0-9.]+) %", note) for note in answer.notes]
    return {**answer.results, "cached": sum(float(share) for shares in hits for share in shares) / 100}


@pytest.mark.parametrize("seed", range(12))
def test_a_run_plays_the_rate_that_was_asked_and_five_times_as_long_the_same(seed: int) -> None:
    asked = talks(seed)
    run = found(asked)
    longer = found({**asked, "requests": 5 * run["num_arrived"]})
    assert run["stable"], asked
    assert run["requests_per_s"] == pytest.approx(asked["rate"], rel=RATE_NOISE), asked
    assert longer["requests_per_s"] == pytest.approx(asked["rate"], rel=RATE_NOISE / 2), asked
    assert longer["output_tokens_per_s"] == pytest.approx(run["output_tokens_per_s"], rel=RATE_NOISE), asked
    assert longer["good_fraction"] == pytest.approx(run["good_fraction"], abs=SHARE_NOISE), asked
    assert longer["cached"] == pytest.approx(run["cached"], abs=0.03), asked


def test_an_overloaded_service_of_conversations_says_so_at_its_own_length() -> None:
    """A replica holds some 28/s of this chat: its cache has room for 40 s of them, and people think for 30 s."""
    asked: dict[str, Any] = {
        "model": "llama-3.1-8b",
        "chip": "h200-sxm",
        "precision": "fp8",
        "traffic": "chat",
        "rate": 40,
    }
    run = found(asked)
    assert not run["stable"]
    assert run["sustained_per_s"] == pytest.approx(28, rel=0.1)
    assert found({**asked, "replicas": 2})["keeps_limits"]


def test_users_in_conversations_have_a_warm_up_apart_and_last() -> None:
    asked = {
        "model": "llama-3.1-8b",
        "chip": "h200-sxm",
        "tp": 2,
        "precision": "fp8",
        "users": 500,
        "traffic": "agent",
    }
    answer = dh.simulate_serve(**asked)
    run: dict[str, Any] = dict(answer.results)
    longer = found({**asked, "requests": 5 * run["num_arrived"]})
    assert "that came after the first" in answer.notes[0]
    assert longer["ttft_p50_s"] == pytest.approx(run["ttft_p50_s"], rel=0.1)
    assert longer["requests_per_s"] == pytest.approx(run["requests_per_s"], rel=0.05)


def test_as_many_requests_come_as_were_asked_for_whichever_conversation_they_are_of() -> None:
    asked = {
        "model": "llama-3.1-8b",
        "chip": "h200-sxm",
        "rate": 5,
        "turns": 6,
        "think": "20s",
        "requests": 777,
    }
    run = found(asked)
    assert run["num_arrived"] == run["num_finished"] == 777
    timed = found({**asked, "requests": None, "duration": "200s"})
    assert timed["num_arrived"] == pytest.approx(1000, rel=0.2)
    assert timed["duration_s"] < 215


def test_open_conversations_are_met_at_the_rate_of_later_turns_that_began_before() -> None:
    """Of 3 later turns a second with pauses of 10 s, 3 · 10 · e^(−t/10) are still to come at t."""
    parts = list(resumed(Think(mean_s=10.0), 0.0, 1.0, 4.0, stream(0, "test")))
    times_s = np.concatenate([part.start_s for part in parts])
    past = np.concatenate([part.num_past for part in parts])
    for after_s in (0.0, 5.0, 20.0):
        expected = 30 * np.exp(-after_s / 10)
        assert np.count_nonzero(times_s > after_s) == pytest.approx(expected, abs=4 * expected**0.5)
    assert past.min() >= 1
    many = list(resumed(Think(mean_s=10.0), 0.0, 1000.0, 4.0, stream(0, "test")))
    assert np.concatenate([part.num_past for part in many]).mean() == pytest.approx(4.0, rel=0.02)
    assert all(np.all(part.age_s > part.start_s) for part in many)


def test_sessions_are_met_in_the_order_of_their_time() -> None:
    new = iter([np.array([1.0, 3.0]), np.array([6.0, 9.0])])
    old = iter([Begun(np.array([0.5, 4.0]), np.array([2, 1]), np.array([5.0, 7.0]))])
    met = list(in_order(new, old))
    assert [part.start_s.tolist() for part in met] == [[0.5, 1.0, 3.0], [4.0, 6.0, 9.0]]
    assert [part.num_past.tolist() for part in met] == [[2, 0, 0], [1, 0, 0]]


TALK = Conversation(num_turns=5.0, think=Think(mean_s=10.0))


def coming(**more: Any) -> Traffic:
    return Traffic(prompt=Fixed(100), output=Fixed(20), conversation=TALK, num_requests=4000, **more)


def test_what_was_before_a_run_is_cached_as_long_as_caches_remember() -> None:
    """A turn that was k-th finds the k − 1 before it: 120 tokens each, if the pause was no longer than that."""
    asked = coming(arrivals=Arrivals(rate_per_s=20.0))
    for remembered_s in (0.0, 10.0, 1e9):
        rows = first_rows(
            generate(asked, 3, under_way=UnderWay(stay_s=1.0, remembered_s=remembered_s)), 60_000
        )
        old = (rows.after < 0) & (rows.prompt > 100)
        assert old.any()
        assert not rows.cached[~old].any()
        assert set(rows.cached[old] - (rows.prompt[old] - 100)) <= {0} | set(100 - rows.prompt[old])
        share = np.count_nonzero(rows.cached[old]) / old.sum()
        assert share == {0.0: 0.0, 1e9: 1.0}.get(remembered_s, pytest.approx(0.3, abs=0.3))


def test_users_begin_at_some_turn_of_a_conversation() -> None:
    asked = coming(users=Users(num=2000, think=Think(mean_s=10.0)))
    rows = first_rows(generate(asked, 3, under_way=UnderWay(stay_s=1.0, remembered_s=1e9)), 60_000)
    first = rows.prompt[np.flatnonzero(rows.after < 0)[:2000]]
    assert ((first - 100) / 120).mean() == pytest.approx(4.0, rel=0.1)  # as many as there are to come
    later = rows.prompt[np.flatnonzero(rows.after < 0)[2000:]]
    assert set(later) == {100}


def test_a_cache_keeps_as_long_as_it_takes_to_fill_it() -> None:
    """Sessions of two turns 10 s apart that leave 120 and 240 tokens: by hand.

    In 5 s, before any is used again, 2 · 5 s · (120 + 240)/2 = 1,800 tokens come.  In 30 s, of each pair the first is
    used again after 10 s and then belongs to the second: 1/2 · 2 · (120 · 10 s + 240 · 30 s) = 8,400.
    """
    num = 1000
    first = np.arange(num) % 2 == 0
    rows = Requests(
        arrival_s=np.where(first, np.arange(num), 10.0),
        prompt=np.where(first, 100, 220),
        output=np.full(num, 20),
        after=np.where(first, -1, np.arange(num) - 1),
        group=np.full(num, -1),
        shared=np.zeros(num, np.int64),
        session=np.arange(num) // 2,
        priority=np.zeros(num, np.int64),
    )
    uses = reuse_of(rows, stream(0, "test"), 1)
    small, large = uses.at(2.0, 1800.0, 0.0), uses.at(2.0, 8400.0, 0.0)
    assert small.time_s == pytest.approx(5.0, rel=0.01)
    assert (small.cached, small.computed) == (0.0, 160.0)
    assert large.time_s == pytest.approx(30.0, rel=0.01)
    assert (large.cached, large.computed) == (60.0, 100.0)  # every second prompt finds 120 tokens
    assert large.spread == 0.0
    assert uses.at(2.0, 8400.0, 25.0).cached == 0.0  # answers that take 25 s are too late
    assert uses.at(2.0, 0.0, 0.0).time_s == 0.0
    apart = reuse_of(rows, stream(0, "test"), 50)
    assert apart.at(1e-9, 8400.0, 0.0).cached == pytest.approx(
        60 / 50, abs=1.2
    )  # any of 50 may get the next turn
