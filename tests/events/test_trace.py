"""A trace keeps what it has room for, tells two runs apart, and opens in Perfetto."""

from __future__ import annotations

import math
import struct
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.events import Trace, digest, new_trace, num_dropped, perfetto, record, rows

Fields = dict[int, list[int | bytes]]


def _trace(*made: tuple[float, int, int, int, float, float], capacity: int = 100) -> Trace:
    trace = new_trace(capacity)
    for row in made:
        record(trace, *row)
    return trace


def test_rows_come_back_as_recorded() -> None:
    made = (0.5, 3, 7, -8, 1.25, 2.0)
    assert rows(_trace(made)).tolist() == [made]


def test_a_full_trace_keeps_the_first_rows_and_counts_the_others() -> None:
    trace = _trace(*[(float(number), 1, 0, 0, 0.0, 0.0) for number in range(10)], capacity=4)
    assert rows(trace)["time_s"].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert num_dropped(trace) == 6


def test_equal_traces_have_equal_digests_whatever_their_capacity() -> None:
    row = (1.0, 1, 2, 3, 4.0, 5.0)
    assert digest(_trace(row)) == digest(_trace(row, capacity=1))


@pytest.mark.parametrize("column", range(6))
def test_a_change_in_any_column_changes_the_digest(column: int) -> None:
    row = [1.0, 1, 2, 3, 4.0, 5.0]
    other = list(row)
    other[column] += 1
    assert digest(_trace(tuple(row))) != digest(_trace(tuple(other)))  # type: ignore[arg-type]


def test_rows_dropped_count_in_the_digest() -> None:
    row = (1.0, 1, 2, 3, 4.0, 5.0)
    assert digest(_trace(row, capacity=1)) != digest(_trace(row, row, capacity=1))


def test_the_sign_of_zero_and_the_bits_of_nan_do_not_count() -> None:
    other_nan = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000123))[0]
    one = _trace((0.0, 1, 0, 0, math.nan, 0.0))
    assert digest(one) == digest(_trace((-0.0, 1, 0, 0, other_nan, -0.0)))


def _fields(message: bytes) -> Fields:
    """Every field of a protobuf message, by number."""
    found: Fields = defaultdict(list)
    at = 0

    def varint() -> int:
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        tag = varint()
        if tag & 7 == 0:
            found[tag >> 3].append(varint())
            continue
        size = {1: 8, 2: 0}[tag & 7] or varint()
        found[tag >> 3].append(message[at : at + size])
        at += size
    return found


def _sub(fields: Fields, number: int) -> Fields:
    content = fields[number][0]
    assert isinstance(content, bytes)
    return _fields(content)


def _packets(data: bytes) -> list[Fields]:
    return [_fields(packet) for packet in _fields(data)[1] if isinstance(packet, bytes)]


def test_a_slice_and_an_instant_read_back_from_perfetto() -> None:
    trace = _trace((1e-6, 1, 5, -3, 0.5, 2e-6), (4e-6, 2, 5, 0, 0.0, 0.0))
    track, begin, end, instant = _packets(perfetto(trace, {1: "send"}, {5: "link 5"}))
    assert (_sub(track, 60)[1], _sub(track, 60)[2]) == ([1], [b"link 5"])
    assert [packet[8][0] for packet in (begin, end, instant)] == [1000, 3000, 4000]
    assert [_sub(packet, 11)[9] for packet in (begin, end, instant)] == [[1], [2], [3]]
    assert (_sub(begin, 11)[23], _sub(instant, 11)[23]) == ([b"send"], [b"kind 2"])
    notes = [_fields(note) for note in _sub(begin, 11)[4] if isinstance(note, bytes)]
    assert (notes[0][10], notes[0][4]) == ([b"b"], [2**64 - 3])
    assert (notes[1][10], notes[1][5]) == ([b"x"], [struct.pack("<d", 0.5)])
    assert all(packet[10] == [1] for packet in (track, begin, end, instant))


times = st.integers(0, 20).map(lambda quarter: quarter / 4)


@given(
    st.lists(st.tuples(times, st.just(1), st.integers(0, 2), st.just(0), st.just(0.0), times), max_size=40)
)
def test_slices_of_one_track_never_overlap(made: list[tuple[float, int, int, int, float, float]]) -> None:
    events = [packet for packet in _packets(perfetto(_trace(*made))) if 11 in packet]
    assert [packet[8][0] for packet in events] == sorted(packet[8][0] for packet in events)
    open_slices: dict[object, int] = defaultdict(int)
    for packet in events:
        event = _sub(packet, 11)
        track, what = event[11][0], event[9][0]
        open_slices[track] += {1: 1, 2: -1, 3: 0}[what]  # type: ignore[index]
        assert open_slices[track] in (0, 1)
    assert not any(open_slices.values())
    assert sum(_sub(packet, 11)[9] != [2] for packet in events) == len(made)
