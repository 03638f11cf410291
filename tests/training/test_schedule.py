"""Orders of pipeline work: every piece once, nothing before what it needs, and as much in flight as published."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.errors import ScenarioError, UnknownNameError
from datahall.training.pipeline.bubble import bubble_time
from datahall.training.pipeline.orders import FULL, B, F, W
from datahall.training.pipeline.schedule import EMPTY, Schedule, problems, schedule
from datahall.training.pipeline.table import ORDERS, less_idle_order, usual_order
from datahall.training.step.stage import in_flight


@st.composite
def plans(draw: st.DrawFn) -> Schedule:
    """Any legal schedule of a few stages."""
    order = draw(st.sampled_from(list(ORDERS.values())))
    stages = draw(st.integers(1, 4)) * (2 if order.both_ways else 1)
    chunks = draw(st.integers(1, 3)) if order.chunked else 1
    micro = draw(st.integers(1, 6))
    if order.both_ways:
        micro = 2 * stages + 2 * (micro - 1)
    elif chunks > 1:
        micro *= stages
    return schedule(order.name, num_stages=stages, num_micro=micro, num_chunks=chunks)


@given(plans())
def test_every_schedule_is_legal(plan: Schedule) -> None:
    assert problems(plan) == []


@given(plans())
def test_every_forward_and_backward_is_done_once(plan: Schedule) -> None:
    counts = {kind: int((plan.kind == kind).sum()) for kind in (F, B, W, FULL)}
    expected = plan.num_micro * plan.num_parts
    assert counts[F] == expected == counts[B] + counts[FULL]
    assert counts[B] == counts[W]
    assert int(plan.num_visits.sum()) == expected


@given(plans())
def test_a_row_says_what_its_order_does(plan: Schedule) -> None:
    """The parts that a stage holds, and the micro-batches under way on it where there are enough of them."""
    assert (
        np.unique(plan.position).size == plan.num_parts == plan.num_stages * plan.num_chunks / plan.num_copies
    )
    pipeline = schedule(
        plan.name,
        num_stages=plan.num_stages,
        num_micro=4 * plan.num_stages,
        num_chunks=plan.num_chunks // plan.num_copies,
    )
    chunks = pipeline.num_parts / pipeline.num_stages
    for stage, held in enumerate(pipeline.in_flight()):
        said = in_flight(plan.name, np.array([4.0 * plan.num_stages]), plan.num_stages, chunks, stage)
        assert said.tolist() == [held / chunks]


def test_what_leaves_less_idle_fills_the_gaps_of_the_usual_and_holds_no_more_parameters() -> None:
    slots = {"num_stages": 8, "forward_s": 1.0, "input_s": 1.0, "weight_s": 1.0}
    better, usual = less_idle_order(), ORDERS[usual_order(1)]
    assert bubble_time(better.name, **slots) < bubble_time(usual.name, **slots)
    assert better.num_copies == usual.num_copies
    assert (usual.chunked, ORDERS[usual_order(2)].chunked) == (False, True)


@given(st.integers(1, 8), st.integers(1, 24))
def test_1f1b_holds_no_more_than_the_stages_that_follow(stages: int, micro: int) -> None:
    held = schedule("1f1b", num_stages=stages, num_micro=micro).in_flight()
    assert held.tolist() == [min(micro, stages - stage) for stage in range(stages)]


def test_what_is_in_flight_at_the_fullest_is_as_published() -> None:
    stages, micro = 8, 32
    assert schedule("gpipe", num_stages=stages, num_micro=micro).in_flight().max() == micro
    assert set(schedule("zb", num_stages=stages, num_micro=micro).in_flight()) == {stages}
    assert set(schedule("dualpipe", num_stages=stages, num_micro=micro).in_flight()) == {stages + 1}
    for chunks in (2, 4):
        held = schedule("interleaved", num_stages=stages, num_micro=micro, num_chunks=chunks).in_flight()
        assert held[0] / chunks == stages * (1 + (stages - 1) / (stages * chunks))


def test_megatron_runs_the_published_number_of_chunks_ahead() -> None:
    plan = schedule("interleaved", num_stages=4, num_micro=8, num_chunks=2)
    ahead = [
        int(np.argmax(plan.kind[stage] == FULL)) - 1 for stage in range(4)
    ]  # then one forward, one backward
    assert ahead == [2 * (4 - stage - 1) + (2 - 1) * 4 for stage in range(4)]
    first = [(int(m), int(c)) for m, c in zip(plan.micro[0, :9], plan.chunk[0, :9], strict=True)]
    assert first == [(0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1), (2, 1), (3, 1), (4, 0)]


def test_places_know_their_neighbours() -> None:
    dealt = schedule("interleaved", num_stages=3, num_micro=3, num_chunks=2)
    assert dealt.position.tolist() == [0, 3, 1, 4, 2, 5]
    assert dealt.after.tolist() == [
        2,
        3,
        4,
        5,
        1,
        -1,
    ]  # the first round ends on stage 2 and goes on at stage 0
    both = schedule("dualpipe", num_stages=4, num_micro=8)
    assert both.position.tolist() == [0, 3, 1, 2, 2, 1, 3, 0]
    assert both.after.tolist() == [2, -1, 4, 1, 6, 3, -1, 5]


def swapped(plan: Schedule, stage: int, one: int, other: int) -> Schedule:
    """The same schedule with two slots of a stage exchanged."""
    columns = {name: getattr(plan, name).copy() for name in ("kind", "micro", "chunk")}
    for column in columns.values():
        column[stage, [one, other]] = column[stage, [other, one]]
    return msgspec.structs.replace(plan, **columns)


def test_broken_orders_are_found() -> None:
    plan = schedule("1f1b", num_stages=2, num_micro=2)
    assert "comes before its F" in problems(swapped(plan, 1, 0, 1))[0]
    twice = msgspec.structs.replace(plan, micro=np.zeros_like(plan.micro))
    assert any("done twice" in one for one in problems(twice))
    gone = plan.kind.copy()
    gone[0, -1] = EMPTY
    assert any("is not finished" in one for one in problems(msgspec.structs.replace(plan, kind=gone)))


def test_stages_that_wait_for_each_other_are_found() -> None:
    plan = schedule("1f1b", num_stages=2, num_micro=2)
    assert plan.kind[0].tolist() == [F, F, FULL, FULL]
    # stage 0 wants the gradient of 0 before it sends 1, and stage 1 wants 1 before it sends that gradient
    late = swapped(plan, 0, 1, 2)
    early = swapped(late, 1, 1, 2)
    assert any("waits for ever" in one for one in problems(early))


@pytest.mark.parametrize(
    ("name", "stages", "micro", "chunks", "text"),
    [
        ("1f1b", 0, 4, 1, "0 stages"),
        ("1f1b", 4, 0, 1, "0 micro-batches"),
        ("zb", 4, 8, 2, "zb gives a stage one chunk, not 2"),
        ("interleaved", 4, 6, 2, "4 or 8 micro-batches would do"),
        ("dualpipe", 3, 8, 1, "even stages"),
        ("dualpipe", 4, 6, 1, "at least two for each stage"),
        ("dualpipe", 4, 9, 1, "an even number of micro-batches"),
        ("interleaved", 2, 2, 0, "0 chunks"),
        ("interleaved", 4, 2, 2, "4 or 4 micro-batches would do"),
    ],
)
def test_what_a_schedule_cannot_do_says_which_rule(
    name: str, stages: int, micro: int, chunks: int, text: str
) -> None:
    with pytest.raises(ScenarioError, match=text):
        schedule(name, num_stages=stages, num_micro=micro, num_chunks=chunks)


def test_an_unknown_schedule_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean: dualpipe"):
        schedule("dual-pipe", num_stages=2, num_micro=4)


def test_a_micro_batch_that_misses_a_part_is_found() -> None:
    plan = schedule("1f1b", num_stages=2, num_micro=2)
    kind = plan.kind.copy()
    kind[1][plan.micro[1] == 1] = EMPTY  # the second stage never sees it
    found = problems(msgspec.structs.replace(plan, kind=kind))
    assert any("micro-batch 1 passes parts [0]" in one for one in found)
    longer = msgspec.structs.replace(plan, num_micro=3)
    assert any("micro-batch 2 passes parts []" in one for one in problems(longer))
    shorter = msgspec.structs.replace(plan, num_micro=1)
    assert any("micro-batch 1 passes" in one for one in problems(shorter))


def test_as_few_micro_batches_as_a_schedule_takes() -> None:
    for name, stages, micro, chunks in (("dualpipe", 4, 8, 1), ("interleaved", 3, 3, 2), ("1f1b", 1, 1, 1)):
        assert problems(schedule(name, num_stages=stages, num_micro=micro, num_chunks=chunks)) == []
    assert (schedule("zb", num_stages=2, num_micro=2).kind == W).any()  # weights are work of their own
    assert not (schedule("1f1b", num_stages=2, num_micro=2).kind == W).any()
