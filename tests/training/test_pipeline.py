"""A pipeline played: against a longest path, against closed forms, within bounds, and the same each time."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.training.longest_path import LongestPath
from tests.training.test_schedule import plans

from datahall.compiled import Bare
from datahall.events import digest, perfetto, rows
from datahall.training.pipeline import simulate as pipeline
from datahall.training.pipeline.bubble import bubble_fraction, bubble_time
from datahall.training.pipeline.orders import B, F, W
from datahall.training.pipeline.schedule import EMPTY, Schedule, schedule
from datahall.training.pipeline.simulate import KIND_NAMES, Work, play, simulate, timeline, track_names
from datahall.training.pipeline.table import ORDERS

TIMES = st.floats(0.01, 4.0)


def even(plan: Schedule, forward: float = 1.0, into: float = 1.0, weight: float = 1.0, **rest: float) -> Work:
    """The same work on every stage; a stage's chunks share it."""
    share = plan.num_parts / plan.num_stages
    ones, none = np.ones(plan.before.size) / share, np.zeros(plan.before.size)
    quiet = {"latency_s": 0.0, "transfer_s": 0.0, "blocked_s": 0.0, "beside_ratio": 1.0}
    return Work(
        forward_s=forward * ones, input_s=into * ones, weight_s=weight * ones, gather_s=none, reduce_s=none,
        num_buckets=np.ones(ones.size, np.int64), **quiet | rest,
    )  # fmt: skip


@st.composite
def works(draw: st.DrawFn) -> tuple[Schedule, Work]:
    """A schedule with stages that differ, messages that take time, and exchange beside the kernels."""
    plan = draw(plans())
    places = plan.before.size
    columns = [np.array(draw(st.lists(TIMES, min_size=places, max_size=places))) for _ in range(5)]
    latency, transfer, blocked = (draw(st.sampled_from([0.0, 0.1, 0.7])) for _ in range(3))
    work = Work(
        forward_s=columns[0], input_s=columns[1], weight_s=columns[2], gather_s=columns[3], reduce_s=columns[4],
        num_buckets=np.full(places, draw(st.integers(1, 3))), latency_s=latency, transfer_s=transfer, blocked_s=blocked,
        together_ratio=draw(st.sampled_from([0.8, 1.0])),
        beside_ratio=1.0,
    )  # fmt: skip
    return plan, work


@settings(deadline=None, max_examples=60)
@given(works())
def test_every_time_is_the_longest_path_to_it(case: tuple[Schedule, Work]) -> None:
    plan, work = case
    played, oracle = simulate(plan, work), LongestPath(plan, work)
    for stage, slot in zip(*np.nonzero(plan.kind != EMPTY), strict=True):
        assert played.start_s[stage, slot] == pytest.approx(oracle.start(int(stage), int(slot)))
        assert played.end_s[stage, slot] == pytest.approx(oracle.end(int(stage), int(slot)))


@settings(deadline=None, max_examples=20)
@given(works())
def test_compiled_and_interpreted_agree_to_the_bit(case: tuple[Schedule, Work]) -> None:
    plan, work = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "play", Bare(play.interpreted))  # nothing loaded yet
        interpreted = simulate(plan, work)
    compiled = simulate(plan, work, num_runs=pipeline.SMALL)
    assert all((getattr(interpreted, name) == getattr(compiled, name)).all() for name in OUT)


OUT = ("start_s", "end_s", "gathered_s", "reduce_start_s", "reduced_s", "free_s")


@given(works())
def test_no_stage_beats_its_work_and_no_step_its_longest_micro_batch(case: tuple[Schedule, Work]) -> None:
    plan, work = case
    played = simulate(plan, work)
    assert (played.busy_s <= played.kernels_s + 1e-9).all()
    assert (played.idle_s >= -1e-9).all()
    everywhere = work.forward_s + work.input_s + work.weight_s
    one_way = (
        everywhere.reshape(plan.num_stages, -1)[:, 0].sum() if plan.order.both_ways else everywhere.sum()
    )
    chain = one_way - float(work.weight_s.sum() if (plan.kind == W).any() else 0.0)
    assert played.kernels_s >= work.together_ratio * chain - 1e-9
    assert played.makespan_s >= max(played.kernels_s, float(work.reduce_s.max()))
    assert (played.end_s[plan.kind == EMPTY] == 0).all()


@given(
    st.sampled_from([one.name for one in ORDERS.values() if not one.both_ways]),
    st.integers(1, 6),
    st.integers(1, 4),
    TIMES,
    TIMES,
)
def test_closed_forms_are_exact_on_even_stages(
    name: str, stages: int, rounds: int, forward: float, into: float
) -> None:
    chunks = 3 if ORDERS[name].chunked else 1
    weight = min(forward, into)  # zero bubble hides weights in gaps that are no shorter
    plan = schedule(name, num_stages=stages, num_micro=rounds * stages, num_chunks=chunks)
    played = simulate(plan, even(plan, forward, into, weight))
    idle = bubble_time(
        name, num_stages=stages, num_chunks=chunks, forward_s=forward, input_s=into, weight_s=weight
    )
    assert played.kernels_s == pytest.approx(plan.num_micro * (forward + into + weight) + idle)


@pytest.mark.parametrize("stages", [2, 4, 8, 16])
def test_dualpipe_has_its_published_bubble_where_all_parts_are_alike(stages: int) -> None:
    plan = schedule("dualpipe", num_stages=stages, num_micro=4 * stages)
    idle = bubble_time("dualpipe", num_stages=stages, forward_s=1.0, input_s=1.0, weight_s=1.0)
    assert simulate(plan, even(plan)).kernels_s == pytest.approx(3.0 * plan.num_micro + idle)


@given(st.integers(2, 8), st.floats(0.5, 2.0), st.floats(0.1, 1.0))
def test_dualpipe_stays_within_its_published_bubble(half: int, into: float, weight: float) -> None:
    """The form takes forward no longer than backward for the input, and weights no longer than either."""
    weight = min(weight, into, 1.0)
    plan = schedule("dualpipe", num_stages=2 * half, num_micro=8 * half)
    idle = bubble_time("dualpipe", num_stages=2 * half, forward_s=1.0, input_s=into, weight_s=weight)
    ran = simulate(plan, even(plan, 1.0, into, weight)).kernels_s - plan.num_micro * (1.0 + into + weight)
    assert ran <= idle + 2 * abs(1.0 - into) * half + 1e-6


def share_idle(name: str, stages: int, micro: int, chunks: int = 1) -> float:
    plan = schedule(name, num_stages=stages, num_micro=micro, num_chunks=chunks)
    played = simulate(plan, even(plan, latency_s=0.01))
    return float(played.idle_s.max()) / played.kernels_s


def test_bubbles_shrink_with_micro_batches_and_with_chunks() -> None:
    by_micro = [share_idle("1f1b", 8, micro) for micro in (8, 16, 32, 64)]
    by_chunks = [share_idle("interleaved", 8, 16, chunks) for chunks in (1, 2, 4)]
    assert by_micro == sorted(by_micro, reverse=True)
    assert by_chunks == sorted(by_chunks, reverse=True)
    assert share_idle("zb", 8, 16) < share_idle("1f1b", 8, 16)
    assert share_idle("dualpipe", 8, 16) < share_idle("zb", 8, 16)


def test_the_share_of_seed_000() -> None:
    for micro, share in ((8, 0.467), (12, 0.368)):
        plan = schedule("1f1b", num_stages=8, num_micro=micro)
        played = simulate(plan, even(plan))
        assert played.idle_s[0] / played.kernels_s == pytest.approx(bubble_fraction(8, micro))
        assert bubble_fraction(8, micro) == pytest.approx(share, abs=5e-4)


def test_a_slow_stage_slows_every_micro_batch_and_the_bound_holds() -> None:
    plan = schedule("1f1b", num_stages=4, num_micro=32)
    alone = simulate(plan, even(plan)).kernels_s
    for stage in range(4):
        speed = np.ones(4)
        speed[stage] = 1.1
        slow = simulate(plan, even(plan), speed).kernels_s
        assert alone + 0.1 * 3 * (32 - 3) <= slow + 1e-9 <= alone * 1.1 + 2e-9


def test_gradients_hide_behind_the_last_backward_and_show_only_beyond_it() -> None:
    plan = schedule("1f1b", num_stages=4, num_micro=8)
    for reduce_s, shown in ((1.0, 0.25), (20.0, 18.5)):  # four buckets beside 1.5 s of backward
        work = msgspec.structs.replace(even(plan), reduce_s=np.full(4, reduce_s), num_buckets=np.full(4, 4))
        played = simulate(plan, work)
        assert played.makespan_s - played.kernels_s == pytest.approx(shown)  # stage 0 drains last
        assert (np.diff(played.reduced_s) < 0).all()


def test_chunks_reduce_their_gradients_while_others_go_back() -> None:
    plan = schedule("interleaved", num_stages=4, num_micro=8, num_chunks=2)
    work = msgspec.structs.replace(even(plan), reduce_s=np.full(8, 1.0))
    played = simulate(plan, work)
    assert played.makespan_s - played.kernels_s == pytest.approx(
        1.0
    )  # one bucket: the last chunk's shows whole


def test_parameters_hold_up_the_first_forward_by_a_bucket() -> None:
    plan = schedule("1f1b", num_stages=1, num_micro=4)
    alone = simulate(plan, even(plan)).makespan_s
    for gather_s, shown in ((0.4, 0.1), (4.0, 3.25)):  # 4 s of gathering, then the last quarter of forward
        work = msgspec.structs.replace(even(plan), gather_s=np.full(1, gather_s), num_buckets=np.full(1, 4))
        assert simulate(plan, work).makespan_s - alone == pytest.approx(shown)


def test_kernels_run_slower_beside_a_collective() -> None:
    plan = schedule("interleaved", num_stages=1, num_micro=1, num_chunks=2)
    work = msgspec.structs.replace(
        even(plan, 2.0, 2.0, 2.0), reduce_s=np.array([0.0, 1.0]), beside_ratio=1.25
    )
    alone = simulate(plan, msgspec.structs.replace(work, beside_ratio=1.0)).makespan_s
    # chunk 1 is reduced in 1 s, during which the backward beside it does 0.8 s of work
    assert simulate(plan, work).kernels_s == pytest.approx(alone + 0.2)
    assert simulate(
        plan, msgspec.structs.replace(work, num_buckets=np.full(2, 100))
    ).kernels_s == pytest.approx(alone + 0.2, abs=0.01)


def test_a_timeline_shows_every_piece_once_on_its_stage() -> None:
    plan = schedule("zb", num_stages=3, num_micro=4)
    work = msgspec.structs.replace(even(plan), gather_s=np.full(3, 0.5), reduce_s=np.full(3, 0.5))
    trace = timeline(simulate(plan, work), work)
    kept = rows(trace)
    assert len(kept) == 3 * (3 * 4) + 6
    assert sorted(set(kept["kind"].tolist())) == [F, B, W, 4, 5]
    assert (kept["duration_s"] > 0).all()
    tracks = track_names(plan)
    assert {
        tracks[track]: num for track, num in zip(*np.unique(kept["a"], return_counts=True), strict=True)
    } == {name: 2 if "gradients" in name else 3 * 4 for name in tracks.values()}
    file = perfetto(trace, KIND_NAMES, track_names(plan))
    assert b"backward, weights" in file
    assert b"stage 2" in file
    assert digest(trace) == digest(timeline(simulate(plan, work), work))


def test_an_order_that_waits_for_ever_is_an_error() -> None:
    plan = schedule("1f1b", num_stages=2, num_micro=1)
    lost = msgspec.structs.replace(plan, micro=np.array([[0, 0], [1, 1]], np.int32))
    with pytest.raises(ValueError, match="wait for each other"):
        simulate(lost, even(lost))


def test_messages_of_one_way_fill_a_link_one_after_another() -> None:
    """Two stages, three micro-batches, forwards of 1 s and messages of 5 s: the second stage gets one at 6, 11, 16 s
    and half a second of latency later starts on it; its backwards of 2 s come back by the other way."""
    plan = schedule("gpipe", num_stages=2, num_micro=3)
    played = simulate(plan, even(plan, 1.0, 1.0, 1.0, transfer_s=5.0, latency_s=0.5))
    forwards = played.start_s[1][plan.kind[1] == F]
    assert forwards.tolist() == [6.5, 11.5, 16.5]
    backwards = played.start_s[0][plan.kind[0] != F][: plan.num_micro]
    done = played.end_s[1][plan.kind[1] != F]
    sent = [float(done[0])]
    for end in done[1:]:
        sent.append(max(float(end), sent[-1] + 5.0))
    assert sorted(backwards.tolist()) == pytest.approx([one + 5.5 for one in sent])


def test_a_sender_that_is_blocked_starts_its_next_work_later() -> None:
    plan = schedule("gpipe", num_stages=2, num_micro=3)
    played = simulate(plan, even(plan, 1.0, 1.0, 1.0, blocked_s=0.25))
    assert played.start_s[0][plan.kind[0] == F].tolist() == [0.0, 1.25, 2.5]
