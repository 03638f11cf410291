"""Played piece by piece, the simulation says of each token what it says when it is played at once."""

from __future__ import annotations

from math import inf

import msgspec
import numpy as np
import pytest
from tests.inference.serving_case import fleet, poisson, replica, table

from datahall.inference.fleet.fleet import Fleet, Pool, ReplicaOutage
from datahall.inference.simulation.run import Records
from datahall.inference.simulation.simulate import simulate_serving
from datahall.serve.virtual.course import Course, Told
from datahall.workload.traffic.requests import Requests


def played(course: Course, requests: Requests, wake_s: float = inf) -> list[Told]:
    """As a server plays: at each arrival, when something is due, and now and then for nothing."""
    told: list[Told] = []
    for arrival_s, prompt, output in zip(requests.arrival_s, requests.prompt, requests.output, strict=True):
        while (due_s := min(course.next_s(), course.now_s + wake_s)) < arrival_s:
            told += course.play(due_s)
        told += course.arrive(float(arrival_s), int(prompt), int(output))[1]
    while course.next_s() < inf and len({one.row for one in told if one.is_last}) < len(requests):
        told += course.play(course.next_s())
    return told


def recorded(on: Fleet, requests: Requests) -> Records:
    found = simulate_serving(on, requests, record=True).records
    assert found is not None
    return found


def outages(*some: ReplicaOutage, count: int = 3) -> Fleet:
    return msgspec.structs.replace(fleet(count), outages=some)


def apart() -> Fleet:
    return Fleet(
        pools=tuple(
            Pool(replica=replica(), role=role, table=table(), num_blocks=27_000)
            for role in ("prefill", "decode")
        )
    )


FLEETS = {
    "one": fleet(),
    "three": fleet(3),
    "two choices": fleet(4, routing="two-choices"),
    "least outstanding": fleet(3, routing="least-outstanding"),
    "a cache that is too small": fleet(1, num_blocks=150),
    "prompts apart from decodes": fleet(2, mixed_steps=False),
    "static batches": fleet(2, batching="static"),
    "a slow front end": Fleet(
        pools=(Pool(replica=replica(), count=2, table=table(), num_blocks=27_000),), distance_s=((0.02,),)
    ),
    "a replica that is lost": outages(ReplicaOutage(replica=1, start_s=0.5, duration_s=0.5)),
    "one that drains": outages(ReplicaOutage(replica=0, start_s=0.5, duration_s=1.0, drain=True)),
    "prefill and decode": apart(),
}


@pytest.mark.parametrize("name", FLEETS)
def test_times_are_those_of_the_simulation(name: str) -> None:
    on, requests = FLEETS[name], poisson(50, 30.0, output=40, spread=0.5)
    run = recorded(on, requests)
    first: dict[int, float] = {}
    end: dict[int, float] = {}
    tokens = np.zeros(len(requests), np.int64)
    for one in played(Course(on), requests):
        first.setdefault(one.row, one.at_s)
        tokens[one.row] += one.num_tokens
        if one.is_last:
            end[one.row] = one.at_s
    assert tokens.tolist() == requests.output.tolist()
    assert [first[row] for row in run.row] == run.first_s.tolist()
    assert [end[row] for row in run.row] == run.end_s.tolist()


def test_events_come_in_the_order_of_the_simulation_whenever_it_is_looked() -> None:
    requests = poisson(40, 40.0, output=60, spread=0.5)
    often, seldom = (played(Course(fleet(2)), requests, wake_s) for wake_s in (0.0137, inf))
    assert often == seldom
    run = recorded(fleet(2), requests)
    ends = [(one.at_s, one.row) for one in often if one.is_last]
    assert sorted(ends) == sorted(zip(run.end_s.tolist(), run.row.tolist(), strict=True))
    assert [one.at_s for one in often] == sorted(one.at_s for one in often)


def test_steps_of_a_leap_are_told_one_by_one() -> None:
    """One request alone is one leap for the simulation; each of its tokens has a moment of its own."""
    requests = poisson(1, 1.0, prompt=100, output=50)
    told = played(Course(fleet()), requests)
    assert [one.num_tokens for one in told] == [1] * 50
    gaps_s = np.diff([one.at_s for one in told])
    assert np.all(np.diff(gaps_s) > 0.0)  # each token attends to one more
    steps = simulate_serving(fleet(), requests, record=True, max_leap=1).records
    assert steps is not None
    assert told[-1].at_s == pytest.approx(steps.end_s[0], rel=1e-6)


def test_what_no_replica_holds_is_refused_at_once() -> None:
    course = Course(fleet(1, num_blocks=10))
    _, told = course.arrive(1.0, 1000, 10)
    assert [(one.is_last, one.num_tokens, one.refused) for one in told] == [
        (True, 0, "larger than the cache")
    ]
    _, told = course.arrive(1.0, 10**7, 10)
    assert told[-1].refused == "longer than the context"


def test_who_leaves_while_decoding_frees_the_place_with_the_next_token() -> None:
    course = Course(fleet())
    row, told = course.arrive(0.0, 100, 500)
    while sum(one.num_tokens for one in told) < 10:
        told += course.play(course.next_s())
    left_s = told[-1].at_s
    course.leave(row)
    told = course.play(left_s + 0.1)
    assert [(one.row, one.is_last) for one in told] == [(row, True)]
    assert told[0].at_s - left_s < 0.02
    one = course.state.replicas[0]
    assert (one["running"], one["outstanding"], one["free"]) == (0, 0, 27_000)


def test_who_leaves_the_line_is_never_run_and_the_others_are() -> None:
    course = Course(fleet(1, max_sequences=1))
    rows = [course.arrive(0.01 * place, 100, 20)[0] for place in range(5)]
    course.leave(rows[4])  # the last, one between, and who runs
    course.leave(rows[2])
    course.leave(rows[0])
    told = course.play(10.0)
    assert {one.row for one in told if one.is_last} == {rows[0], rows[1], rows[3]}
    assert course.state.replicas[0]["queued"] == course.state.replicas[0]["outstanding"] == 0
    assert course.state.fleet[0]["num_free_slots"] == course.state.slots.size - 1
    row, told = course.arrive(11.0, 100, 5)
    assert sum(one.num_tokens for one in [*told, *course.play(12.0)] if one.row == row) == 5


def test_many_who_leave_at_any_moment_leave_nothing_behind() -> None:
    course, draw = Course(fleet(2, num_blocks=400)), np.random.default_rng(3)
    open_rows: list[int] = []
    for step in range(150):
        open_rows.append(
            course.arrive(0.01 * step, int(draw.integers(1, 900)), int(draw.integers(1, 200)))[0]
        )
        if draw.random() < 0.6:
            course.leave(open_rows.pop(int(draw.integers(len(open_rows)))))
    course.play(1e4)
    free = course.state.replicas["free"].tolist()
    assert free == [400, 400]
    assert course.state.fleet[0]["num_free_slots"] == course.state.slots.size - 1


def test_there_is_room_for_so_many_and_no_more() -> None:
    course = Course(fleet(), num_slots=8)
    while course.has_room:
        course.arrive(0.0, 10, 10)
    assert course.state.fleet[0]["num_free_slots"] >= 2
    course.play(60.0)
    assert course.has_room
