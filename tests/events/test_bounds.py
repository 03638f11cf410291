"""The queue, the clock, the draws and the trace at the edges of what they take."""

from __future__ import annotations

import math
import struct
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.events import (
    EmptyQueueError,
    EventPriorityError,
    FullQueueError,
    cancel,
    digest,
    exponential,
    integer_below,
    is_pending,
    lognormal,
    new_dice,
    new_queue,
    new_trace,
    normal,
    now_s,
    num_dropped,
    num_pending,
    peek,
    perfetto,
    pop,
    push,
    record,
    reschedule,
    reserve,
    rows,
    stream,
    uniform,
)
from datahall.events.draws import normal_quantile
from datahall.events.logarithm import exp, log
from datahall.events.phold import MOVE_FRACTION, hold, next_process
from datahall.events.queue import Queue


@pytest.mark.parametrize(("asked", "room"), [(0, 4), (1, 4), (4, 4), (5, 8), (1000, 1024), (1024, 1024)])
def test_a_queue_has_room_for_a_power_of_two(asked: int, room: int) -> None:
    queue = new_queue(asked)
    for number in range(room):
        push(queue, float(number))
    with pytest.raises(FullQueueError, match=f"full with {room} events"):
        push(queue, 1.0)
    assert num_pending(queue) == room
    assert [pop(queue).time_s for _ in range(room)] == sorted(range(room))


def test_a_new_queue_has_room_for_1024_and_starts_at_0() -> None:
    queue = new_queue()
    assert now_s(queue) == 0.0
    for _ in range(1024):
        push(queue, 0.0)
    with pytest.raises(FullQueueError):
        push(queue, 0.0)


@pytest.mark.parametrize(
    ("pending", "more", "grows"), [(0, 4, False), (0, 5, True), (3, 1, False), (3, 2, True)]
)
def test_room_is_made_only_where_there_is_none(pending: int, more: int, grows: bool) -> None:
    queue = new_queue(4)
    tokens = [push(queue, float(number), a=number) for number in range(pending)]
    larger = reserve(queue, more)
    assert (larger is not queue) is grows
    new = [push(larger, 9.0) for _ in range(more)]
    assert len({*tokens, *new}) == pending + more
    assert all(is_pending(larger, token) for token in tokens)
    if grows:
        for ask in (pop, peek, lambda queue: is_pending(queue, 0), lambda queue: cancel(queue, 0)):
            with pytest.raises(EmptyQueueError, match="go on with the one it returned"):
                ask(queue)
        with pytest.raises(FullQueueError, match="go on with the one it returned"):
            push(queue, 1.0)


def test_the_clock_goes_with_the_queue_that_takes_its_place() -> None:
    queue = new_queue(4)
    push(queue, 3.0)
    pop(queue)
    assert now_s(reserve(queue, 100)) == 3.0


@pytest.mark.parametrize("priority", [-16385, 16385, 1 << 20])
def test_priorities_end_where_the_sequence_begins(priority: int) -> None:
    with pytest.raises(EventPriorityError, match=f"priority {priority} "):
        push(new_queue(), 1.0, priority=priority)
    for fine in (-16384, 16384):
        assert num_pending(_with(priority=fine)) == 1


def _with(**event: int) -> Queue:
    queue = new_queue()
    push(queue, 1.0, **event)
    return queue


def test_a_token_is_never_used_twice() -> None:
    """A slot is used again when its event is over; the token of an event that waits is passed over."""
    queue = new_queue(4)
    waiting = push(queue, 1e9)
    seen = {waiting}
    for _ in range(100):
        token = push(queue, now_s(queue) + 1.0)
        assert token not in seen
        seen.add(token)
        assert pop(queue).token == token
        assert not is_pending(queue, token)
    assert is_pending(queue, waiting)
    assert not is_pending(queue, -1)
    assert not is_pending(queue, max(seen) + 1)


def test_an_event_at_this_very_moment_is_taken() -> None:
    queue = new_queue(start_s=2.0)
    token = push(queue, 2.0)
    assert reschedule(queue, token, 2.0)
    assert pop(queue).time_s == 2.0


@given(
    st.lists(st.tuples(st.sampled_from([1.0, 2.0]), st.integers(-2, 2)), min_size=1, max_size=40), st.data()
)
def test_cancelling_any_event_leaves_the_others_in_order(
    made: list[tuple[float, int]], data: st.DataObject
) -> None:
    queue = new_queue(64)
    tokens = [push(queue, time_s, priority=priority) for time_s, priority in made]
    gone = data.draw(st.sets(st.sampled_from(tokens)))
    for token in gone:
        assert cancel(queue, token)
    left = sorted((*made[tokens.index(token)], token) for token in tokens if token not in gone)
    assert [pop(queue).token for _ in range(num_pending(queue))] == [token for *_, token in left]


def test_draws_have_mean_0_and_deviation_1_unless_told() -> None:
    """The same luck, so a told draw is the untold one stretched and moved."""
    for draw, told in [
        (lambda dice: normal(dice), lambda dice: (normal(dice, 5.0, 2.0) - 5.0) / 2.0),
        (lambda dice: exponential(dice), lambda dice: exponential(dice, 4.0) / 4.0),
        (lambda dice: lognormal(dice), lambda dice: math.sqrt(lognormal(dice, 9.0, 2.0) / 9.0)),
    ]:
        assert draw(new_dice(1, "x")) == pytest.approx(told(new_dice(1, "x")), rel=1e-12)
    luck = uniform(new_dice(1, "x"))
    assert normal(new_dice(1, "x")) == pytest.approx(NormalDist().inv_cdf(luck))
    assert lognormal(new_dice(1, "x")) == pytest.approx(math.exp(NormalDist().inv_cdf(luck)))
    assert exponential(new_dice(1, "x")) == pytest.approx(-math.log(luck))
    assert integer_below(new_dice(1, "x"), 1000) == math.floor(1000 * luck)


def test_every_draw_is_from_lane_0_unless_told() -> None:
    for draw in (uniform, exponential, normal, lognormal, lambda dice, lane=0: integer_below(dice, 9, lane)):
        dice = new_dice(1, "x", num_lanes=3)
        draw(dice)
        assert dice.num_drawn.tolist() == [1, 0, 0]
        draw(dice, lane=2)
        assert dice.num_drawn.tolist() == [1, 0, 1]
    assert new_dice(1, "x").num_drawn.tolist() == [0]


def test_a_lane_draws_on_past_32_bits() -> None:
    """Draw n and draw n + 2**32 are different numbers, and so are lane 0 and lane 2**32."""
    early, late = new_dice(1, "x"), new_dice(1, "x")
    late.num_drawn[0] = 1 << 32
    assert uniform(early) != uniform(late)


@pytest.mark.parametrize(
    "probability", [1e-300, 1e-20, 1e-11, 0.01, 0.074, 0.075, 0.076, 0.3, 0.5, 0.7, 0.925, 0.99]
)
def test_normal_quantiles_on_both_sides_of_every_seam(probability: float) -> None:
    """The seams are at |p - 1/2| = 0.425 and at p = exp(-25)."""
    found = normal_quantile(probability)
    assert found == pytest.approx(NormalDist().inv_cdf(probability), rel=1e-14, abs=1e-16)
    assert normal_quantile(math.exp(-25.0) * (1 - 1e-9)) < normal_quantile(math.exp(-25.0) * (1 + 1e-9))


@pytest.mark.parametrize("value", np.linspace(0.7, 1.45, 301).tolist())
def test_log_is_within_a_unit_and_a_half_around_1(value: float) -> None:
    assert abs(log(value) - math.log(value)) <= 1.5 * math.ulp(max(abs(math.log(value)), 1e-300))


@given(st.floats(-0.36, 0.36))
def test_exp_is_within_a_unit_and_a_half_around_0(value: float) -> None:
    assert abs(exp(value) - math.exp(value)) <= 1.5 * math.ulp(math.exp(value))


def test_log_and_exp_take_all_that_they_promise() -> None:
    assert exp(700.0) == pytest.approx(math.exp(700.0), rel=1e-14)
    assert exp(-700.0) == pytest.approx(math.exp(-700.0), rel=1e-14)
    assert log(5e-324) == pytest.approx(math.log(5e-324), rel=1e-15)
    assert log(1.7e308) == pytest.approx(math.log(1.7e308), rel=1e-15)


def test_the_hold_model_moves_a_quarter_and_keeps_its_population() -> None:
    queue = hold(32, 500, seed=2)
    assert num_pending(queue) == 32
    dice = new_dice(5, "x", num_lanes=10)
    seen = [next_process(dice, 3, 10) for _ in range(4000)]
    assert set(seen) == set(range(10))
    moved = sum(process != 3 for process in seen) / len(seen)
    assert moved == pytest.approx(MOVE_FRACTION * 0.9, abs=0.03)


def test_a_trace_of_no_rows_only_counts() -> None:
    trace = new_trace(0)
    assert (rows(trace).size, num_dropped(trace)) == (0, 0)
    record(trace, 1.0, 2)
    assert (rows(trace).size, num_dropped(trace)) == (0, 1)
    full = new_trace(1)
    record(full, 1.0, 2)
    assert (rows(full).tolist(), num_dropped(full)) == ([(1.0, 2, 0, 0, 0.0, 0.0)], 0)
    assert digest(trace) != digest(new_trace(0))


def _tags(data: bytes) -> list[tuple[int, int | bytes]]:
    """The fields of a protobuf message in order; written for this test alone."""
    found: list[tuple[int, int | bytes]] = []
    while data:
        size = next(index for index, byte in enumerate(data) if byte < 128) + 1
        tag = sum((byte & 127) << (7 * place) for place, byte in enumerate(data[:size]))
        data = data[size:]
        if tag & 7 == 1:
            found.append((tag >> 3, data[:8]))
            data = data[8:]
            continue
        size = next(index for index, byte in enumerate(data) if byte < 128) + 1
        value = sum((byte & 127) << (7 * place) for place, byte in enumerate(data[:size]))
        data = data[size:]
        if tag & 7 == 0:
            found.append((tag >> 3, value))
        else:
            found.append((tag >> 3, data[:value]))
            data = data[value:]
    return found


def test_a_perfetto_file_numbers_its_tracks_and_names_its_slices() -> None:
    trace = new_trace(10)
    record(trace, 1.0, 7, a=300, b=1, x=0.5, duration_s=2.0)
    record(trace, 2.0, 7, a=300, duration_s=2.0)  # overlaps: a second track of the same name
    record(trace, 3.0, 7, a=300, duration_s=1.0)  # the first is free again at this very moment
    record(trace, 1.0, 8, a=4)
    packets = [dict(_tags(packet)) for _, packet in _tags(perfetto(trace, {7: "x" * 200}, {4: "four"}))]
    tracks = [dict(_tags(packet[60])) for packet in packets if 60 in packet]
    assert [(track[1], track[2]) for track in tracks] == [(1, b"four"), (2, b"300"), (3, b"300")]
    events = [(packet[8], dict(_tags(packet[11]))) for packet in packets if 11 in packet]
    told = [(time_ns, event[9], event[11]) for time_ns, event in events]
    s = 10**9
    assert told == [
        (1 * s, 3, 1), (1 * s, 1, 2), (2 * s, 1, 3), (3 * s, 2, 2), (3 * s, 1, 2), (4 * s, 2, 2), (4 * s, 2, 3),
    ]  # fmt: skip
    assert [event.get(23) for _, event in events][:2] == [b"kind 8", b"x" * 200]
    notes = [dict(_tags(note)) for number, note in _tags(packets[4][11]) if number == 4]
    assert [note[10] for note in notes] == [b"b", b"x"]
    assert (notes[0][4], struct.unpack("<d", notes[1][5])[0]) == (1, 0.5)


def test_a_stream_is_numpys_philox_with_a_key_of_its_own() -> None:
    drawn = stream(7, "failures", 3).random(1000)
    assert drawn.mean() == pytest.approx(0.5, abs=0.05)
    assert (stream(7, "failures", 3).random(1000) == drawn).all()
    assert not (stream(7, "failures", 4).random(1000) == drawn).any()
