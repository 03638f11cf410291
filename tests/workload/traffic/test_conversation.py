"""Turns carry their history, sessions share prefixes, and a full context ends a session."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.errors import ScenarioError
from datahall.workload.traffic.arrivals import Arrivals
from datahall.workload.traffic.conversation import Conversation, Think
from datahall.workload.traffic.requests import Requests, join
from datahall.workload.traffic.shapes import Fixed, Lognormal
from datahall.workload.traffic.sharing import reusable_tokens
from datahall.workload.traffic.traffic import Traffic, expected_tokens, generate

TALK = Traffic(
    prompt=Lognormal(80.0, 1.0),
    output=Lognormal(200.0, 0.8),
    arrivals=Arrivals(rate_per_s=5.0),
    conversation=Conversation(num_turns=4.0, think=Think(mean_s=20.0), system_tokens=300, num_groups=6),
    num_requests=150_000,
)


def rows(traffic: Traffic, seed: int = 1) -> Requests:
    return join(generate(traffic, seed))


def changed(**fields: object) -> Traffic:
    talk = msgspec.structs.replace(TALK.conversation, **fields)  # type: ignore[arg-type]
    return msgspec.structs.replace(TALK, conversation=talk)


def test_a_later_turn_holds_the_whole_of_the_one_before() -> None:
    run = rows(TALK)
    later = np.flatnonzero(run.after >= 0)
    before = run.after[later]
    assert np.all(before == later - 1)
    assert np.all(run.session[later] == run.session[before])
    assert np.all(run.group[later] == run.group[before])
    assert np.all(run.prompt[later] > run.prompt[before] + run.output[before])


def test_sessions_have_numbers_of_their_own_and_begin_in_order() -> None:
    run = rows(TALK)
    first = run.after < 0
    assert np.array_equal(run.session[first], np.arange(np.count_nonzero(first)))
    assert np.all(np.diff(run.arrival_s[first]) >= 0)


def test_turns_are_geometric() -> None:
    run = rows(TALK)
    turns = np.bincount(run.session)[:-1]
    assert turns.mean() == pytest.approx(4.0, rel=0.02)
    assert turns.std() == pytest.approx(np.sqrt(12.0), rel=0.03)  # √(1 − p) / p
    assert np.mean(turns == 1) == pytest.approx(0.25, abs=0.01)


def test_means_are_those_of_the_closed_form() -> None:
    run = rows(TALK)
    prompt, output = expected_tokens(TALK)
    assert prompt == 300 + 80 + 3 * 280
    assert run.prompt.mean() == pytest.approx(prompt, rel=0.03)
    assert run.output.mean() == pytest.approx(output, rel=0.01)


def test_think_times_stand_in_the_rows_that_wait() -> None:
    run = rows(TALK)
    pauses = run.arrival_s[run.after >= 0]
    assert pauses.mean() == pytest.approx(20.0, rel=0.02)
    assert pauses.std() == pytest.approx(20.0, rel=0.03)
    steady = rows(changed(think=Think(mean_s=7.0, variation_ratio=0.0)))
    assert set(steady.arrival_s[steady.after >= 0]) == {7.0}


def test_groups_are_as_popular_as_zipf_says() -> None:
    run = rows(TALK)
    share = np.bincount(run.group[run.after < 0], minlength=6) / np.count_nonzero(run.after < 0)
    harmonic = sum(1 / rank for rank in range(1, 7))
    assert share == pytest.approx([1 / rank / harmonic for rank in range(1, 7)], abs=0.01)
    assert np.all(run.shared == 300)


def test_documents_are_a_prefix_that_only_their_readers_share() -> None:
    library = changed(num_turns=1.0, num_groups=1, num_documents=50, document_tokens=1000, num_retrieved=3)
    run = rows(library)
    assert np.all(run.shared == 1300)
    assert run.prompt.min() >= 3301
    assert set(run.group) == set(range(50))
    popular = np.bincount(run.group)
    assert popular[0] / popular[9] == pytest.approx(10**0.9, rel=0.1)


def test_an_agent_opens_with_its_task() -> None:
    agent = changed(opening=Fixed(5000))
    run = rows(agent)
    assert set(run.prompt[run.after < 0]) == {5300}
    assert run.prompt.mean() == pytest.approx(expected_tokens(agent)[0], rel=0.02)


def test_a_full_context_ends_the_session_and_is_counted() -> None:
    limited = msgspec.structs.replace(TALK, max_context=1500)
    stream = generate(limited, 1)
    run = join(stream)
    assert np.all(run.prompt + run.output <= 1500)
    assert len(run) == TALK.num_requests
    # The same sessions without a limit, less the turns that did not fit.
    whole = rows(msgspec.structs.replace(TALK, num_requests=600_000))
    last = int(run.session[-1])
    own = whole.session < last
    fits = own & ((whole.after < 0) | (whole.prompt < 1500))
    assert np.array_equal(run.prompt[run.session < last], np.minimum(whole.prompt[fits], 1499))
    dropped = np.count_nonzero(own) - np.count_nonzero(fits)
    assert dropped <= stream.cut.num_turns <= dropped + np.count_nonzero(whole.session == last)
    changed_prompts = np.count_nonzero(whole.prompt[fits] > 1499)
    changed_outputs = np.count_nonzero(run.output[run.session < last] != whole.output[fits])
    assert 0 <= stream.cut.num_prompts - changed_prompts <= 1  # the last session, cut short, may add one
    assert 0 <= stream.cut.num_outputs - changed_outputs <= 1
    later = np.flatnonzero(run.after >= 0)
    assert np.all(run.session[run.after[later]] == run.session[later])


def test_a_run_ends_at_its_number_of_requests_even_within_a_session() -> None:
    for num in (1, 2, 3, 100):
        assert len(rows(msgspec.structs.replace(TALK, num_requests=num))) == num


def test_history_and_system_prompt_are_reusable() -> None:
    run = rows(msgspec.structs.replace(TALK, num_requests=5000))
    found = reusable_tokens(run)
    later = run.after >= 0
    assert np.array_equal(found[later], (run.prompt + run.output)[run.after[later]])
    openings = np.flatnonzero(~later)
    assert found[0] == 0
    assert np.count_nonzero(found[openings] == 0) == 6  # the first of each group
    assert np.all(found < run.prompt)


@given(
    turns=st.floats(1.0, 12.0),
    system=st.integers(0, 500),
    context=st.sampled_from([0, 600, 4000]),
    num=st.integers(1, 400),
    seed=st.integers(0, 1000),
)
@settings(max_examples=60, deadline=None)
def test_any_conversation_is_whole(turns: float, system: int, context: int, num: int, seed: int) -> None:
    talk = Conversation(num_turns=turns, think=Think(mean_s=1.0), system_tokens=system)
    run = rows(msgspec.structs.replace(TALK, conversation=talk, max_context=context, num_requests=num), seed)
    assert len(run) == num
    assert min(run.prompt.min(), run.output.min()) >= 1
    assert np.all(run.after < np.arange(num))
    assert np.all(run.arrival_s >= 0)
    assert np.all(run.shared <= run.prompt)
    assert not context or np.all(run.prompt + run.output <= context)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"num_turns": 0.5}, "at least 1 turn"),
        ({"num_groups": 0}, "0 groups"),
        ({"system_tokens": -1}, "-1 system prompt tokens"),
        ({"num_documents": 5}, "documents without a length"),
        ({"think": Think(mean_s=-1.0)}, "a think time of -1 s"),
        ({"opening": Fixed(0)}, "opening of 0 tokens"),
    ],
)
def test_conversations_that_cannot_be_are_refused(fields: dict[str, object], said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        changed(**fields)
