"""A trace as a Perfetto file (https://ui.perfetto.dev): TrackEvent packets, written field by field.

Field numbers are those of perfetto/protos/perfetto/trace: TracePacket timestamp 8, sequence 10, track_event
11, track_descriptor 60; TrackDescriptor uuid 1, name 2; TrackEvent annotation 4, type 9, track 11, name 23;
DebugAnnotation int 4, double 5, name 10.
"""

from __future__ import annotations

import heapq
import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping

from datahall.events.trace import Trace, rows

VARINT, DOUBLE, BYTES = 0, 1, 2  # protobuf wire types
BEGIN, END, INSTANT = 1, 2, 3
NS_PER_S = 1_000_000_000
NO_NAMES: Mapping[int, str] = {}


def perfetto(
    trace: Trace, kinds: Mapping[int, str] = NO_NAMES, tracks: Mapping[int, str] = NO_NAMES
) -> bytes:
    """The trace with one track for each value of `a`; slices are named by kind, and carry `b` and `x`.

    Slices of one track that overlap without nesting go to further tracks of the same name, which Perfetto
    draws as one.
    """
    packets: list[tuple[int, bytes]] = []
    descriptors = bytearray()
    for uuid, (name, lane) in enumerate(_lanes(trace), start=1):
        label = tracks.get(name, str(name))
        descriptors += _packet(_bytes(60, _number(1, uuid) + _bytes(2, label.encode())))
        for start_ns, duration_ns, kind, b, x in lane:
            notes = _note("b", _number(4, b)) + _note("x", _double(5, x))
            title = _bytes(23, kinds.get(kind, f"kind {kind}").encode())
            first = BEGIN if duration_ns else INSTANT
            packets.append((start_ns, _event(start_ns, first, uuid, title + notes)))
            if duration_ns:
                packets.append((start_ns + duration_ns, _event(start_ns + duration_ns, END, uuid)))
    packets.sort(
        key=lambda packet: packet[0]
    )  # stable: a slice still ends before the next of its track begins
    return bytes(descriptors) + b"".join(data for _, data in packets)


Slice = tuple[int, int, int, int, float]  # start_ns, duration_ns, kind, b, x


def _lanes(trace: Trace) -> Iterator[tuple[int, list[Slice]]]:
    """Rows by track, and within a track shared out so that no two slices of one lane overlap."""
    by_track: defaultdict[int, list[Slice]] = defaultdict(list)
    for time_s, kind, a, b, x, duration_s in rows(trace).tolist():
        by_track[a].append((round(time_s * NS_PER_S), round(duration_s * NS_PER_S), kind, b, x))
    for name, slices in sorted(by_track.items()):
        lanes: list[list[Slice]] = []
        free: list[tuple[int, int]] = []  # when each lane is free again, and which it is
        for piece in sorted(slices, key=lambda piece: piece[0]):
            if free and free[0][0] <= piece[0]:
                _, lane = heapq.heappop(free)
            else:
                lane = len(lanes)
                lanes.append([])
            lanes[lane].append(piece)
            heapq.heappush(free, (piece[0] + piece[1], lane))
        yield from ((name, lane) for lane in lanes)


def _event(time_ns: int, what: int, track: int, rest: bytes = b"") -> bytes:
    return _packet(_number(8, time_ns) + _bytes(11, _number(9, what) + _number(11, track) + rest))


def _packet(content: bytes) -> bytes:
    return _bytes(1, content + _number(10, 1))


def _note(name: str, value: bytes) -> bytes:
    return _bytes(4, _bytes(10, name.encode()) + value)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | VARINT) + _varint(value % (1 << 64))


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | DOUBLE) + struct.pack("<d", value)


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | BYTES) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Seven bits a byte, lowest first, the top bit set on all but the last.

    >>> _varint(300).hex()
    'ac02'
    """
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
