"""Runs of a few requests, worked out by hand, and the values just inside and just outside what is allowed."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np
import pytest

from datahall.errors import DocumentError, ScenarioError
from datahall.events import stream
from datahall.scenario.requests import requests_of
from datahall.scenario.sections.traffic import Traffic as Said
from datahall.units import DAY_S
from datahall.workload.traffic.arrivals import Arrivals, arrival_times, read_clock
from datahall.workload.traffic.conversation import Begun, Conversation, Sessions, Think, check_conversation
from datahall.workload.traffic.lengths import (
    LONGEST_TOKENS,
    Z95,
    Empirical,
    Lengths,
    Quantiles,
    Uniform,
    cut_to_context,
    lognormal_median,
    lognormal_p95,
    mean_tokens,
    quantile_tokens,
    sampler,
)
from datahall.workload.traffic.popularity import draw_ranks, zipf_shares
from datahall.workload.traffic.presets import preset
from datahall.workload.traffic.recorded.replay import replay
from datahall.workload.traffic.recorded.trace_file import read_trace
from datahall.workload.traffic.requests import CHUNK_ROWS, COLUMNS, Requests, join
from datahall.workload.traffic.shapes import Fixed, Lognormal, check_lengths
from datahall.workload.traffic.sharing import reusable_tokens
from datahall.workload.traffic.traffic import TraceReplay, Traffic, describe, expected_tokens, generate
from datahall.workload.traffic.users import Users

TOP = int(LONGEST_TOKENS)


@pytest.mark.parametrize(
    ("lengths", "mean", "at_quarter"),
    [
        (Fixed(7), 7, 7),
        (Uniform(10, 30), 20, 15),
        (Quantiles(((0.0, 10.0), (0.5, 20.0), (1.0, 60.0))), 0.5 * 15 + 0.5 * 40, 15),
        (Empirical((4, 1, 2, 9)), 4, 1),
        (Lognormal(100.0, 0.0), 100, 100),
    ],
)
def test_means_and_quartiles_by_hand(lengths: Lengths, mean: float, at_quarter: float) -> None:
    assert mean_tokens(lengths) == mean
    assert quantile_tokens(lengths, 0.25) == pytest.approx(at_quarter)


def test_a_lognormal_by_hand() -> None:
    """Variation √(e − 1) is σ = 1: the median is the mean over √e, and 84.13 % lie below e^½ of the mean."""
    one = Lognormal(100.0, math.sqrt(math.e - 1.0))
    assert quantile_tokens(one, 0.5) == pytest.approx(100 / math.sqrt(math.e))
    assert quantile_tokens(one, 0.8413447) == pytest.approx(100 * math.sqrt(math.e), rel=1e-5)


@pytest.mark.parametrize(
    ("lengths", "allowed"),
    [
        (Fixed(1), True), (Fixed(0), False), (Fixed(TOP - 1), True), (Fixed(TOP), False),
        (Uniform(1, 1), True), (Uniform(0, 1), False), (Uniform(2, 1), False), (Uniform(1, TOP - 1), True),
        (Uniform(1, TOP), False), (Lognormal(1.0, 0.0), True), (Lognormal(0.9, 0.0), False),
        (Lognormal(1.0, 20.0), True), (Lognormal(1.0, 20.5), False), (Lognormal(LONGEST_TOKENS, 1.0), False),
        (Quantiles(((0.0, 1.0), (1.0, 1.0))), True), (Quantiles(((0.0, 0.5), (1.0, 2.0))), False),
        (Quantiles(((0.0, 1.0), (0.5, 2.0), (0.5, 3.0), (1.0, 4.0))), False),
        (Quantiles(((0.0, 1.0), (1.0, LONGEST_TOKENS))), False), (Quantiles(((0.0, 1.0), (0.9, 2.0))), False),
        (Quantiles(((0.1, 1.0), (1.0, 2.0))), False), (Quantiles(((0.0, 3.0), (0.5, 2.0), (1.0, 4.0))), False),
        (Empirical((1,)), True), (Empirical(()), False), (Empirical((0, 3)), False), (Empirical((3, TOP)), False),
        (Empirical((1, TOP - 1)), True),
    ],
)  # fmt: skip
def test_lengths_at_the_edge_of_what_is_allowed(lengths: Lengths, allowed: bool) -> None:
    try:
        check_lengths(lengths, "prompt")
    except ScenarioError:
        assert not allowed
    else:
        assert allowed


def test_draws_stay_between_one_and_the_longest() -> None:
    assert sampler(Lognormal(1.0, 5.0))(stream(1, "low"), 1000).min() == 1
    assert sampler(Lognormal(9e8, 3.0))(stream(1, "high"), 1000).max() == TOP
    assert set(sampler(Empirical((3, 8)))(stream(1, "seen"), 100)) == {3, 8}


@pytest.mark.parametrize("ratio", [1.0, math.exp(Z95**2 / 2) * (1 - 1e-12)])
def test_a_lognormal_exists_at_either_end_of_its_ratios(ratio: float) -> None:
    found = lognormal_p95(100.0, 100.0 * ratio)
    assert quantile_tokens(found, 0.95) == pytest.approx(100 * ratio, rel=1e-4)
    assert lognormal_median(5.0, 5.0) == Lognormal(5.0, 0.0)


@pytest.mark.parametrize(("mean", "other"), [(100.0, 99.0), (100.0, 388.0), (0.0, 0.0), (-1.0, 1.0)])
def test_there_is_no_lognormal_beyond(mean: float, other: float) -> None:
    with pytest.raises(ScenarioError):
        lognormal_p95(mean, other)


def test_a_median_is_positive_and_not_above_the_mean() -> None:
    for mean, median in ((5.0, 0.0), (5.0, 5.1)):
        with pytest.raises(ScenarioError):
            lognormal_median(mean, median)


def test_a_cut_at_the_very_edge() -> None:
    prompt, output, num_prompts, num_outputs = cut_to_context(np.array([9, 10]), np.array([1, 1]), 10)
    assert (prompt.tolist(), output.tolist(), num_prompts, num_outputs) == ([9, 9], [1, 1], 1, 0)


def test_zipf_by_hand() -> None:
    assert zipf_shares(3, 1.0).tolist() == pytest.approx([6 / 11, 3 / 11, 2 / 11])
    assert zipf_shares(4, 0.0).tolist() == [0.25] * 4
    assert draw_ranks(stream(1, "one"), 3, 1, 1.0).tolist() == [0, 0, 0]
    ranks = draw_ranks(stream(1, "two"), 60_000, 2, 1.0)
    assert set(ranks) == {0, 1}
    assert np.mean(ranks == 0) == pytest.approx(2 / 3, abs=0.01)


def times(arrivals: Arrivals, num: int, duration_s: float = 0.0) -> np.ndarray:
    return np.concatenate([np.zeros(0), *arrival_times(arrivals, 1, num, duration_s)])


def test_a_clock_is_read_between_its_marks_and_at_both_ends() -> None:
    """Rate 2 for a second, silence for four, rate 1 for a second."""
    work, marks = np.array([0.0, 2.0, 2.0, 3.0]), np.array([0.0, 1.0, 5.0, 6.0])
    read = read_clock(work, marks, np.array([0.0, 0.5, 1.999, 2.0, 2.25, 3.0]))
    assert read.tolist() == pytest.approx([0.0, 0.25, 0.9995, 5.0, 5.25, 6.0])


def test_a_day_is_the_same_before_and_after_its_peak() -> None:
    """Constant gaps, a thousand a day, the peak at noon: the k-th before noon is as far from it as the k-th after."""
    swing = Arrivals(rate_per_s=1000 / DAY_S, gaps="constant", swing_fraction=0.8, peak_s=DAY_S / 2)
    found = times(swing, 1001)
    assert found + found[::-1] == pytest.approx(np.full(1001, DAY_S))
    assert found[250] > DAY_S / 4  # fewer than a quarter by six
    # between six and noon the mean factor is 1 + 0.8·2/π
    assert np.count_nonzero((found >= DAY_S / 4) & (found < DAY_S / 2)) == pytest.approx(
        250 * (1 + 1.6 / math.pi), abs=1.5
    )


def test_hours_are_scaled_to_their_mean() -> None:
    """Two factors of 3 at night, none else: all of a day's six requests come in these two hours."""
    hours = (3.0, 3.0, *(0.0,) * 22)
    found = times(Arrivals(rate_per_s=6 / DAY_S, gaps="constant", hourly_factor=hours), 8)
    assert found.tolist() == pytest.approx([0, 1200, 2400, 3600, 4800, 6000, DAY_S, DAY_S + 1200])


def test_a_number_or_a_duration_ends_a_run_whichever_is_first() -> None:
    steady = Arrivals(rate_per_s=2.0, gaps="constant")
    assert times(steady, 3, 10.0).tolist() == [0.0, 0.5, 1.0]
    assert times(steady, 0, 1.5).tolist() == [0.0, 0.5, 1.0]  # the end itself is not in it
    assert times(steady, CHUNK_ROWS).size == CHUNK_ROWS
    assert times(steady, CHUNK_ROWS + 1).size == CHUNK_ROWS + 1
    at_once = Arrivals(rate_per_s=math.inf, gaps="at-once")
    with pytest.raises(ScenarioError, match="without an end"):
        times(at_once, 0, 5.0)


def test_busy_and_quiet_rates_have_the_mean_asked_for() -> None:
    """A quarter of the time busy, quiet at a fifth of its rate: 10/(0.25 + 0.75·0.2) = 25 and 5 a second."""
    found = times(
        Arrivals(rate_per_s=10.0, gaps="constant", on_s=100.0, off_s=300.0, quiet_ratio=0.2), 100_000
    )
    gaps = np.round(np.diff(found), 9)
    within = gaps[(gaps == 0.04) | (gaps == 0.2)]
    assert within.size > 0.99 * gaps.size
    assert np.mean(within == 0.04) == pytest.approx(25 * 0.25 / 10, abs=0.1)


@pytest.mark.parametrize(
    ("fields", "allowed"),
    [
        ({"hourly_factor": (0.0,) * 23 + (1.0,)}, True),
        ({"hourly_factor": (-1.0,) + (1.0,) * 23}, False),
        ({"hourly_factor": (1.0,) * 25}, False),
        ({"swing_fraction": 1.0}, True),
        ({"swing_fraction": -0.1}, False),
        ({"on_s": 1.0, "off_s": 1.0}, True),
        ({"off_s": 1.0}, False),
        ({"on_s": -1.0, "off_s": -1.0}, False),
        ({"on_s": 1.0, "off_s": 1.0, "quiet_ratio": -0.1}, False),
        ({"variation_ratio": -1.0}, False),
        ({"gaps": "at-once", "rate_per_s": 0.0}, True),
        ({"gaps": "at-once", "swing_fraction": 0.5}, False),
        ({"swing_fraction": 0.5, "hourly_factor": (1.0,) * 24}, False),
        ({"on_s": 1.0, "off_s": 1.0, "hourly_factor": (1.0,) * 24}, False),
    ],
)
def test_arrivals_at_the_edge_of_what_is_allowed(fields: dict[str, object], allowed: bool) -> None:
    try:
        Arrivals(**({"rate_per_s": 1.0} | fields))  # type: ignore[arg-type]
    except ScenarioError:
        assert not allowed
    else:
        assert allowed


@pytest.mark.parametrize(
    ("fields", "allowed"),
    [
        ({"num_turns": 1.0}, True), ({"num_turns": 1000.0}, True), ({"num_turns": 1001.0}, False),
        ({"num_groups": 1}, True), ({"num_retrieved": 0}, False), ({"document_tokens": -1}, False),
        ({"num_documents": -1}, False), ({"num_documents": 1, "document_tokens": 1}, True),
        ({"think": Think(mean_s=1.0, variation_ratio=-1.0)}, False), ({"think": Think()}, True),
    ],
)  # fmt: skip
def test_conversations_at_the_edge_of_what_is_allowed(fields: dict[str, object], allowed: bool) -> None:
    try:
        check_conversation(Conversation(**fields))  # type: ignore[arg-type]
    except ScenarioError:
        assert not allowed
    else:
        assert allowed


@pytest.mark.parametrize("variation", [0.5, 1.0, 2.0])
def test_pauses_have_their_mean_and_variation(variation: float) -> None:
    pauses = Think(mean_s=20.0, variation_ratio=variation).draw(stream(1, "think"), 200_000)
    assert pauses.mean() == pytest.approx(20.0, rel=0.02)
    assert pauses.std() == pytest.approx(20.0 * variation, rel=0.02)


def test_sessions_are_counted_as_they_are_drawn() -> None:
    alone = Sessions(Conversation(), Fixed(10), Fixed(2), seed=1)
    first = alone.draw(Begun.new(np.arange(5.0)), 100)
    second = alone.draw(Begun.new(np.arange(3.0)), 2)
    assert first.session.tolist() == [0, 1, 2, 3, 4]
    assert second.session.tolist() == [5, 6]
    assert (alone.num_rows, alone.num_sessions) == (7, 7)
    talk = Sessions(Conversation(num_turns=3.0), Fixed(10), Fixed(2), seed=1)
    turns = talk.draw(Begun.new(np.arange(50.0)), 1000)
    assert talk.num_rows == len(turns)
    assert talk.num_sessions == 50
    assert talk.draw(Begun.new(np.arange(2.0)), 1000).session[0] == 50


def test_a_turn_holds_the_system_prompt_documents_and_all_before_it() -> None:
    """100 of system, two documents of 1,000, an opening of 50, then 10 a turn and answers of 5; one document is a
    prefix that others share."""
    talk = Conversation(
        num_turns=3.0,
        system_tokens=100,
        num_documents=4,
        document_tokens=1000,
        num_retrieved=2,
        opening=Fixed(50),
    )
    run = Sessions(talk, Fixed(10), Fixed(5), seed=1).draw(Begun.new(np.arange(40.0)), 10_000)
    place = np.zeros(len(run), int)
    for row in range(len(run)):
        place[row] = 0 if run.after[row] < 0 else place[row - 1] + 1
    assert place.max() > 2
    assert run.prompt.tolist() == (2150 + place * 15).tolist()
    assert set(run.shared) == {1100}
    assert (talk.quoted_tokens, talk.shared_tokens) == (2000, 1100)
    without = msgspec.structs.replace(talk, num_documents=0)
    assert (without.quoted_tokens, without.shared_tokens) == (0, 100)
    traffic = Traffic(
        prompt=Fixed(10),
        output=Fixed(5),
        arrivals=Arrivals(rate_per_s=1.0),
        conversation=talk,
        num_requests=1,
    )
    assert expected_tokens(traffic) == (2100 + 50 + 2 * 15, 5)


def test_every_system_prompt_has_documents_of_its_own() -> None:
    talk = Conversation(system_tokens=1, num_groups=2, num_documents=3, document_tokens=1)
    run = Sessions(talk, Fixed(10), Fixed(2), seed=1).draw(Begun.new(np.arange(2000.0)), 2000)
    assert set(run.group) == set(range(6))


def test_turns_that_do_not_fit_are_dropped_and_counted() -> None:
    """Prompts of 10, 25, 40 … in a context of 30: sessions end after their second turn."""
    talk = Sessions(Conversation(num_turns=4.0), Fixed(10), Fixed(5), seed=1, max_context=30)
    free = Sessions(Conversation(num_turns=4.0), Fixed(10), Fixed(5), seed=1)
    run, whole = talk.draw(Begun.new(np.arange(30.0)), 1000), free.draw(Begun.new(np.arange(30.0)), 1000)
    assert set(run.prompt) == {10, 25}
    turns = np.bincount(whole.session)
    assert len(run) == np.minimum(turns, 2).sum()
    last = int(np.maximum(turns[-1] - 2, 0))  # those behind the last row that is kept are not looked at
    assert talk.cut.num_turns == np.maximum(turns - 2, 0).sum() - last
    assert (talk.cut.num_prompts, talk.cut.num_outputs) == (0, 0)
    even = Sessions(Conversation(num_turns=4.0), Fixed(10), Fixed(5), seed=1, max_context=25)
    assert set(even.draw(Begun.new(np.arange(30.0)), 1000).prompt) == {10}  # 25 leave no room for an answer


def test_described_traffic_counts_what_was_cut() -> None:
    """Prompts of 10 with answers of 5 in a context of 12: every answer is cut."""
    short = Traffic(
        prompt=Fixed(10), output=Fixed(5), arrivals=Arrivals(rate_per_s=3.0), num_requests=8, max_context=12
    )
    found = describe(short)
    assert (found.mean_prompt_tokens, found.mean_output_tokens, found.cut_fraction) == (10, 2, 1)
    assert (found.rate_per_s, found.prompt_tokens_per_s, found.output_tokens_per_s) == (3, 30, 6)
    long = msgspec.structs.replace(short, prompt=Uniform(low=8, high=40), num_requests=500)
    assert 0.9 < describe(long).cut_fraction <= 1  # where prompts are cut as well, still each request once
    talk = msgspec.structs.replace(
        short, max_context=30, num_requests=200, conversation=Conversation(num_turns=4.0)
    )
    drawn = generate(talk, 0)
    run = join(drawn)
    cut = drawn.cut
    assert cut.num_turns > 0
    assert describe(talk).cut_fraction == pytest.approx(
        (max(cut.num_outputs, cut.num_prompts) + cut.num_turns) / (200 + cut.num_turns)
    )
    assert describe(talk).num_sampled == len(run) == 200
    assert describe(talk, most_rows=50).num_sampled == 50


def test_rates_of_users_and_of_traces(tmp_path: Path) -> None:
    users = Traffic(users=Users(num=12, think=Think(mean_s=4.0, variation_ratio=0.0)), num_requests=50)
    assert describe(users).rate_per_s == 3
    hasty = Traffic(users=Users(num=12), num_requests=50)
    assert describe(hasty).rate_per_s == math.inf
    file = tmp_path / "trace.csv"
    file.write_text("arrival_s,prompt,output\n0,10,2\n1,20,3\n5,20,3\n")
    played = Traffic(trace=TraceReplay(path=str(file), speed_ratio=1.0, first=0, block_tokens=0))
    assert describe(played).rate_per_s == pytest.approx(3 / 5)
    trace = read_trace(file)
    assert trace.duration_s == 7.5  # three requests in 5 s, and one mean gap of 2.5 s
    assert trace.rate_per_s == pytest.approx(3 / 7.5)
    at_once = Traffic(arrivals=Arrivals(rate_per_s=1.0, gaps="at-once"), num_requests=4)
    assert describe(at_once).rate_per_s == math.inf
    file.write_text("arrival_s,prompt,output\n0,10,2\n")
    assert read_trace(file).duration_s == 0
    assert read_trace(file).rate_per_s == math.inf
    assert describe(played).rate_per_s == math.inf


def test_failed_requests_are_counted_where_they_were_recorded(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_text("Timestamp,Request tokens,Response tokens\n1,5,0\n2,6,7\n3,8,0\n4,8,1\n")
    played = generate(Traffic(trace=TraceReplay(path=str(file), speed_ratio=1.0, first=0, block_tokens=0)), 0)
    assert len(join(played)) == 2
    assert played.num_failed == 2
    plain = Traffic(arrivals=Arrivals(rate_per_s=1.0), num_requests=3)
    drawn = generate(plain, 0)
    assert len(join(drawn)) == drawn.num_requests == 3
    assert drawn.num_failed == 0


@pytest.mark.parametrize(
    ("fields", "allowed"), [({"max_context": 1001}, True), ({"max_context": 1000}, False)]
)
def test_a_context_leaves_room_for_an_answer(fields: dict[str, int], allowed: bool) -> None:
    def traffic(**more: object) -> Traffic:
        return Traffic(
            prompt=Fixed(700), arrivals=Arrivals(rate_per_s=1.0), num_requests=1,
            conversation=Conversation(system_tokens=200, num_documents=2, document_tokens=100), **(fields | more),  # type: ignore[arg-type]
        )  # fmt: skip

    if allowed:
        traffic()
    else:
        with pytest.raises(ScenarioError, match="prompts of 1,000 tokens"):
            traffic()


def test_lengths_that_vary_are_cut_as_they_come() -> None:
    """What 99 of 100 prompts have is held against the context: 300 of system and documents and ten of their own."""
    talk = Conversation(system_tokens=200, num_documents=2, document_tokens=100)
    base = {
        "prompt": Uniform(1, 900),
        "arrivals": Arrivals(rate_per_s=1.0),
        "num_requests": 1,
        "conversation": talk,
    }
    Traffic(**base, max_context=311)  # type: ignore[arg-type]
    with pytest.raises(ScenarioError, match="prompts of 310 tokens and more"):
        Traffic(**base, max_context=310)  # type: ignore[arg-type]
    opened = msgspec.structs.replace(talk, opening=Fixed(5))
    Traffic(**(base | {"prompt": Fixed(900), "conversation": opened}), max_context=306)  # type: ignore[arg-type]


def test_users_of_a_duration_ask_a_tenth_more_than_they_could() -> None:
    """Four users, a pause of 5 s, for 60 s: 4·(1.1·12 + 1) = 56.8, rounded up."""
    assert Users(num=4, think=Think(mean_s=5.0)).most_sessions(60.0) == 57
    with pytest.raises(ScenarioError, match="0 users"):
        Users(num=0)
    for think in (Think(mean_s=-1.0), Think(mean_s=1.0, variation_ratio=-0.5)):
        with pytest.raises(ScenarioError, match="a think time"):
            Users(num=1, think=think)
    pauses = list(Users(num=1, think=Think(mean_s=1.0)).pauses(1, CHUNK_ROWS + 3))
    assert [part.size for part in pauses] == [CHUNK_ROWS, 3]


def test_what_is_not_said_of_traffic_is_usual() -> None:
    def said(**given: object) -> Traffic:
        return requests_of(Said(**given), 0)  # type: ignore[arg-type]

    assert said(rate_per_s=1.0).num_requests == 10_000
    assert said(users=10, think_s=1.0).num_requests == 10_000
    assert said(users=3000, think_s=1.0).num_requests == 15_000
    assert said(rate_per_s=1.0, duration_s=5.0).num_requests == 0
    usual = said(rate_per_s=1.0)
    assert (usual.name, usual.prompt) == ("lmsys-chat", preset("lmsys-chat").prompt)
    assert said(rate_per_s=1.0, osl=Fixed(9)).prompt == Fixed(1000)
    library = said(rate_per_s=1.0, isl=Fixed(9), documents=5).conversation
    assert (library.num_documents, library.document_tokens) == (5, 1000)
    assert said(rate_per_s=1.0, documents=5, document=70).conversation.document_tokens == 70
    assert said(rate_per_s=1.0, isl=Fixed(9)).conversation == Conversation()
    assert said(rate_per_s=1.0, osl=Fixed(9), spread_ratio=0.0).prompt == Fixed(1000)
    assert said(rate_per_s=1.0, isl=Fixed(9), spread_ratio=0.5).output == Lognormal(250.0, 0.5)
    assert said(rate_per_s=1.0, isl=Fixed(10)).output == Fixed(250)
    bursty = said(rate_per_s=6.0, burstiness_ratio=3.0, turns=2.0).arrivals
    assert bursty == Arrivals(rate_per_s=3.0, gaps="gamma", variation_ratio=3.0)
    assert said(rate_per_s=math.inf).arrivals == Arrivals(rate_per_s=math.inf, gaps="at-once")


def test_a_few_requests_share_what_they_have_in_common() -> None:
    """Two groups with prefixes of 4; the second turn finds the first and its answer; nobody finds a whole prompt."""
    plain = Requests.of(np.arange(5.0), np.array([9, 9, 20, 4, 9]), np.full(5, 3))
    run = msgspec.structs.replace(
        plain,
        group=np.array([0, 1, 1, 0, -1]),
        shared=np.array([4, 4, 4, 4, 4]),
        after=np.array([-1, -1, 1, -1, -1]),
    )
    assert plain.session.tolist() == [0, 1, 2, 3, 4]
    assert reusable_tokens(run).tolist() == [0, 0, 12, 3, 0]


def test_twenty_problems_are_listed_and_the_next_is_counted(tmp_path: Path) -> None:
    head = "arrival,prompt_tokens,output_tokens\n"
    file = tmp_path / "trace.csv"
    for num, listed in ((20, 20), (21, 21)):
        file.write_text(head + "0,x,5\n" * num)
        with pytest.raises(DocumentError) as caught:
            read_trace(file)
        assert len(caught.value.problems) == listed
        assert ("and 1 more" in str(caught.value)) == (num == 21)


def test_laps_of_a_trace_end_at_a_number_or_a_time(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_text("arrival_s,prompt,output\n0,10,2\n2,20,3\n")
    trace = read_trace(file)  # a lap of 4 s
    assert join(replay(trace)).arrival_s.tolist() == [0, 2]
    assert join(replay(trace, num=5)).arrival_s.tolist() == [0, 2, 4, 6, 8]
    assert join(replay(trace, duration_s=6.0)).arrival_s.tolist() == [0, 2, 4]
    assert join(replay(trace, num=3, duration_s=5.0)).arrival_s.tolist() == [0, 2, 4]
    assert join(replay(trace, num=4, duration_s=3.0)).arrival_s.tolist() == [0, 2]
    assert join(replay(trace, speed_ratio=4.0, num=3)).arrival_s.tolist() == [0, 0.5, 1]
    assert join(replay(trace, num=5)).session.tolist() == [0, 1, 2, 3, 4]


def test_nothing_joined_has_empty_columns() -> None:
    assert {getattr(join([]), name).size for name in COLUMNS} == {0}


def test_links_that_a_file_of_ours_leaves_out_are_none(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_text("arrival_s,prompt,output\n0,10,2\n1,20,3\n")
    run = read_trace(file).requests
    assert (run.after.tolist(), run.group.tolist()) == ([-1, -1], [-1, -1])
    assert (run.session.tolist(), run.shared.tolist(), run.priority.tolist()) == ([0, 1], [0, 0], [0, 0])
