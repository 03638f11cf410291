"""A run is the same whatever its chunks, small in memory, and described by what it asks of a service."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.errors import ScenarioError, UnknownNameError
from datahall.scenario.requests import requests_of
from datahall.scenario.sections.traffic import Traffic as Said
from datahall.workload.traffic.arrivals import Arrivals
from datahall.workload.traffic.conversation import Think
from datahall.workload.traffic.presets import preset, presets
from datahall.workload.traffic.requests import CHUNK_ROWS, COLUMNS, Requests, join
from datahall.workload.traffic.shapes import Fixed, Lognormal
from datahall.workload.traffic.traffic import Traffic, describe, expected_tokens, generate
from datahall.workload.traffic.users import Users

PLAIN = Traffic(
    prompt=Lognormal(1000.0, 1.0),
    output=Lognormal(250.0, 0.7),
    arrivals=Arrivals(rate_per_s=80.0),
    num_requests=150_000,
)


def named(name: str, num: int, max_context: int = 0, **more: object) -> Traffic:
    """A preset at five requests per second, unless more is said."""
    rate = {} if "users" in more else {"rate_per_s": 5.0}
    return requests_of(Said(preset=name, requests=num, **(rate | more)), max_context)  # type: ignore[arg-type]


def same(one: Requests, other: Requests) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in COLUMNS)


@pytest.mark.parametrize("name", ["lmsys-chat", "rag", "agent", "chat"])
@pytest.mark.parametrize(
    "rate",
    [{"rate_per_s": 40.0}, {"rate_per_s": 40.0, "burstiness_ratio": 3.0}, {"users": 500, "think_s": 10.0}],
)
def test_chunks_do_not_change_the_rows(name: str, rate: dict[str, float]) -> None:
    traffic = named(name, 70_000, 8000, **rate)
    whole, pieces = generate(traffic, 5), generate(traffic, 5, chunk_rows=999)
    parts = list(pieces)
    assert max(len(part) for part in parts) <= 999
    for part in parts:  # no session is cut in two
        assert part.after[0] == -1
        assert np.all(part.after < np.arange(len(part)))
    assert same(join(whole), join(parts))
    assert whole.cut == pieces.cut
    assert whole.num_requests == pieces.num_requests == 70_000


def test_no_chunk_is_longer_than_agreed() -> None:
    for name in presets():
        for chunk in generate(named(name, 200_000), 1):
            assert len(chunk) <= CHUNK_ROWS


def test_a_seed_is_a_run() -> None:
    assert same(join(generate(PLAIN, 7)), join(generate(PLAIN, 7)))
    assert not same(join(generate(PLAIN, 7)), join(generate(PLAIN, 8)))


def test_the_rate_changes_times_and_nothing_else() -> None:
    slow, fast = (
        join(generate(PLAIN, 1)),
        join(generate(msgspec.structs.replace(PLAIN, arrivals=Arrivals(rate_per_s=160.0)), 1)),
    )
    assert fast.arrival_s == pytest.approx(slow.arrival_s / 2)
    assert np.array_equal(fast.prompt, slow.prompt)


def test_sessions_of_requests_without_turns_are_unique_over_chunks() -> None:
    run = join(generate(PLAIN, 1))
    assert np.array_equal(run.session, np.arange(150_000))
    assert np.all(run.after == -1)
    assert np.all(run.group == -1)


def test_cut_requests_are_counted() -> None:
    limited = msgspec.structs.replace(PLAIN, max_context=2000)
    drawn = generate(limited, 1)
    run, whole = join(drawn), join(generate(PLAIN, 1))
    assert np.all(run.prompt + run.output <= 2000)
    assert drawn.cut.num_prompts == np.count_nonzero(whole.prompt != run.prompt) > 0
    assert drawn.cut.num_outputs == np.count_nonzero(whole.output != run.output) > 0
    assert describe(limited).cut_fraction > 0.1
    assert describe(PLAIN).cut_fraction == 0


def test_users_have_a_pause_before_every_request() -> None:
    traffic = Traffic(users=Users(num=100, think=Think(mean_s=30.0)), num_requests=100_000)
    run = join(generate(traffic, 1))
    assert len(run) == 100_000
    assert run.arrival_s.mean() == pytest.approx(30.0, rel=0.02)
    assert np.all(run.after == -1)


def test_users_for_a_time_have_enough_requests_for_it() -> None:
    users = Users(num=100, think=Think(mean_s=30.0))
    run = join(generate(Traffic(users=users, duration_s=600.0), 1))
    # Answers that take no time: every user asks 600 / 30 times.
    assert len(run) > 100 * 600 / 30
    with pytest.raises(ScenarioError, match="never pause"):
        next(generate(Traffic(users=Users(num=5), duration_s=60.0), 1))


def test_describe_says_what_is_offered() -> None:
    figures = describe(PLAIN)
    assert figures.mean_prompt_tokens == pytest.approx(1000, rel=0.01)
    assert figures.output_tokens_per_s == pytest.approx(80 * 250, rel=0.01)
    assert figures.prompt_tokens_per_s == pytest.approx(80 * 1000, rel=0.01)
    assert figures.reusable_fraction == 0
    assert figures.num_sampled == 65_536


@pytest.mark.parametrize("name", list(presets()))
def test_a_preset_has_the_means_it_says(name: str) -> None:
    traffic = named(name, 200_000)
    figures = describe(traffic, seed=3, most_rows=200_000)
    prompt, output = expected_tokens(traffic)
    assert figures.mean_prompt_tokens == pytest.approx(prompt, rel=0.03)
    assert figures.mean_output_tokens == pytest.approx(output, rel=0.015)
    assert figures.rate_per_s == pytest.approx(5.0, rel=0.02)
    assert preset(name).source.title
    assert preset(name).source.date


@pytest.mark.parametrize(
    ("name", "prompt", "output", "reusable"),
    [("mooncake-conversation", 12_035, 343, 0.40), ("mooncake-agent", 8_596, 182, 0.59)],
)
def test_mooncake_presets_share_as_much_as_was_published(
    name: str, prompt: float, output: float, reusable: float
) -> None:
    figures = describe(named(name, 60_000))
    assert figures.mean_prompt_tokens == pytest.approx(prompt, rel=0.03)
    assert figures.mean_output_tokens == pytest.approx(output, rel=0.03)
    assert figures.reusable_fraction == pytest.approx(reusable, abs=0.02)


def test_published_percentiles_are_near_where_the_preset_has_them() -> None:
    run = join(generate(named("lmsys-chat", 65_536), 1))
    assert np.quantile(run.prompt, [0.5, 0.9]) == pytest.approx([417, 1678], rel=0.15)
    assert np.quantile(run.output, [0.5, 0.9]) == pytest.approx([139, 484], rel=0.2)


def test_an_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean: azure-code"):
        preset("azure-coding")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"arrivals": None}, "neither a rate, nor users, nor a trace"),
        ({"users": Users(num=1)}, "arrivals and users"),
        ({"num_requests": 0}, "without an end"),
        ({"num_requests": -1}, "-1 requests"),
        ({"prompt": Fixed(0)}, "prompt of 0 tokens"),
    ],
)
def test_traffic_that_cannot_be_is_refused(fields: dict[str, object], said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        msgspec.structs.replace(PLAIN, **fields)  # type: ignore[arg-type]


def test_a_chunk_has_at_least_a_row() -> None:
    with pytest.raises(ScenarioError, match="chunks of 0 rows"):
        generate(PLAIN, 1, chunk_rows=0)


def test_a_time_too_short_for_any_request_says_so() -> None:
    with pytest.raises(ScenarioError, match="no request comes"):
        describe(Traffic(arrivals=Arrivals(rate_per_s=0.001), duration_s=1.0))


@given(
    name=st.sampled_from(sorted(presets())),
    num=st.integers(1, 3000),
    chunk=st.integers(1, 4000),
    context=st.sampled_from([0, 6000, 32_768]),
    seed=st.integers(0, 2**40),
)
@settings(max_examples=50, deadline=None)
def test_any_run_is_in_order_and_positive(name: str, num: int, chunk: int, context: int, seed: int) -> None:
    traffic = named(name, num, context, rate_per_s=20.0)
    run = join(generate(traffic, seed, chunk_rows=chunk))
    assert len(run) == num
    assert min(run.prompt.min(), run.output.min()) >= 1
    assert np.all(np.diff(run.arrival_s[run.after < 0]) >= 0)
    assert not context or np.all(run.prompt + run.output <= context)
