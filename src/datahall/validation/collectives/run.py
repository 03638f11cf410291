"""One published run of a collective: its words and numbers as a prediction that can be compared.

Each library has a reader of its own; `READERS` tells them apart by the name of the algorithm.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
import numpy as np

from datahall.fabric.collectives.algorithms.bus import Collective, bus_factor
from datahall.fabric.collectives.algorithms.message import message_time
from datahall.fabric.collectives.algorithms.moves import MOVES
from datahall.fabric.collectives.algorithms.table import spoken
from datahall.fabric.collectives.algorithms.torus import HOP_S, bucket_all_gather_time, bucket_all_reduce_time
from datahall.fabric.collectives.choice import band_name, collective_times
from datahall.fabric.collectives.constants import library
from datahall.fabric.collectives.ctran import doubling_time, ring_time
from datahall.fabric.collectives.experts import Tokens, low_latency_time, normal_time
from datahall.fabric.collectives.multicast import multicast_time
from datahall.validation.collectives.testbed import Rig, chip_named, network_rate, read_testbed
from datahall.validation.measurement import Row, RowError

NAMES: dict[str, Collective] = {
    "all_reduce": "all-reduce", "allreduce": "all-reduce", "all_gather": "all-gather", "allgather": "all-gather",
    "reduce_scatter": "reduce-scatter", "reducescatter": "reduce-scatter", "alltoall": "all-to-all",
    "all_to_all": "all-to-all", "sendrecv": "send-recv", "send_recv": "send-recv", "put_p2p": "send-recv",
    "broadcast": "broadcast", "reduce": "reduce",
}  # fmt: skip
UNSTATED_BYTES = 16 * 2.0**30  # where a source gives a bandwidth "at large messages"
COARSEST = 0.05  # a figure rounded more coarsely than this cannot tell a good prediction from a bad one
NIC_BYTES_PER_S = 50e9


class Known(msgspec.Struct, frozen=True):
    """A row that could be read: its time by our model, and what was measured."""

    row: Row
    engine: str
    predicted_s: float
    measured_s: float
    size_bytes: float
    band: str  # name of the band in the constants
    algorithm: str
    system: str


def read_run(row: Row, level: str | None) -> Known:
    """Read a row and predict it; raises where it says too little or names what is not modelled."""
    algorithm = row.text("algorithm")
    for pattern, read in READERS:
        if re.search(pattern, algorithm.lower()):
            return read(row, level)
    raise RowError(f'algorithm "{algorithm}" is not modelled')


def _collective(row: Row) -> Collective:
    name = row.text("collective").lower().replace("-", "_")
    if name not in NAMES:
        raise RowError(f'collective "{name}" is not modelled')
    return NAMES[name]


def _count(row: Row, column: str, default: float | None = None) -> int:
    if default is not None and not row.text(column):
        return int(default)
    value = row.positive(column)
    if value != int(value):
        raise RowError(f'column "{column}" is not a whole number')
    return int(value)


def _size(row: Row) -> float:
    return row.positive("message_bytes") if row.text("message_bytes") else UNSTATED_BYTES


def _measured(row: Row, collective: Collective, size: float, ranks: int) -> float:
    """The time [s] that was published, as a time or as a bandwidth."""
    if row.text("time_us"):
        return row.positive("time_us") * 1e-6
    for column, factor in (("busbw_GBps", float(bus_factor(collective, float(ranks)))), ("algbw_GBps", 1.0)):
        text = row.text(column)
        if text and row.number(column) > 0:
            digits = len(text.partition(".")[2].rstrip("0")) if "." in text else 0
            if (
                0.5 * 10.0 ** -max(digits, 2) / row.number(column) > COARSEST
                and not MOVES[collective].is_pairwise
            ):
                raise RowError("only a bandwidth rounded to more than ±5 % was published")
            return size * factor / (row.number(column) * 1e9)
    raise RowError("neither a time nor a bandwidth was published")


def _testbed(row: Row, level: str | None) -> Rig:
    ranks = _count(row, "n_gpus")
    return read_testbed(
        row.text("hardware"), row.text("interconnect"), num_ranks=ranks,
        num_nodes=_count(row, "n_nodes", default=max(1.0, ranks / 8)), algorithm=row.text("algorithm"),
        notes=row.text("notes"), level=level,
    )  # fmt: skip


def _made(
    row: Row, engine: str, predicted: float, measured: float, size: float, band: str, algorithm: str,
    system: str,
) -> Known:  # fmt: skip
    return Known(row, engine, predicted, measured, size, band, algorithm, system)


def _nccl(row: Row, level: str | None) -> Known:
    collective, bed, size = _collective(row), _testbed(row, level), _size(row)
    measured = _measured(row, collective, size, bed.num_ranks)
    if MOVES[collective].is_pairwise and bed.system.num_domain == 1:
        return _message(row, "nccl", size, measured)
    if "cuda graph" in row.text("notes").lower() and collective == "all-reduce":
        return _captured(row, size, bed.num_ranks, measured)
    times, pairs = collective_times(
        bed.system, collective, size, bed.num_ranks, only=bed.only, without=bed.without
    )
    return _made(row, "nccl", float(times[0]), measured, size, band_name(bed.system, bed.num_ranks),
                 spoken(pairs[0]), f"{bed.system.name}, {bed.system.level(bed.num_ranks)}")  # fmt: skip


def _ctran(row: Row, _level: str | None) -> Known:
    collective, size, ranks = _collective(row), _size(row), _count(row, "n_gpus")
    measured = _measured(row, collective, size, ranks)
    text = row.text("algorithm").lower()
    run = doubling_time if "srd" in text else ring_time
    time = run(library().ctran, collective, np.array([size]), ranks, interleaved="interleave on" in text)
    return _made(row, "ctran", float(time[0]), measured, size, "ctran", text, _chip(row))


def _chip(row: Row) -> str:
    chip = chip_named(row.text("hardware"))
    if chip is None:
        raise RowError("the source does not name the chip")
    return chip.name


def _message(row: Row, name: str, size: float, measured: float) -> Known:
    wire = library().wire[name]
    rate = network_rate(row.text("interconnect"), 1, chip_named(row.text("hardware")))
    nics = max(1, round(rate / NIC_BYTES_PER_S)) if name == "nccl" else 1
    wire = msgspec.structs.replace(wire, num_nics=nics)
    time = message_time(wire, np.array([size]), min(rate, NIC_BYTES_PER_S))
    return _made(row, "message", float(time[0]), measured, size, "message", name, _chip(row))


def _put(row: Row, _level: str | None) -> Known:
    size = _size(row)
    name = "put" if "put" in row.text("algorithm").lower() else "mccl"
    return _message(row, name, size, _measured(row, "send-recv", size, 2))


def _multicast(row: Row, _level: str | None) -> Known:
    collective, size, ranks = _collective(row), _size(row), _count(row, "n_gpus")
    name = row.text("algorithm").lower()
    if name not in library().multicast:
        raise RowError(f'kernel "{name}" is not modelled')
    measured = _measured(row, collective, size, ranks)
    time = multicast_time(library().multicast[name], np.array([size]), ranks)
    return _made(row, "multicast", float(time[0]), measured, size, "multicast", name, _chip(row))


def _captured(row: Row, size: float, ranks: int, measured: float) -> Known:
    """NCCL replayed from a CUDA graph on registered buffers: its symmetric kernels, one shot or two."""
    times = {
        name: float(multicast_time(library().multicast[name], np.array([size]), ranks)[0])
        for name in ("nccl one shot", "nccl two shots")
    }
    name = min(times, key=times.__getitem__)
    return _made(row, "multicast", times[name], measured, size, "multicast", name, _chip(row))


def _experts(row: Row, _level: str | None) -> Known:
    text, notes = row.text("algorithm").lower(), row.text("notes").lower()
    name = next((key for key in library().experts if all(word in text for word in key.split("-"))), "")
    if not name:
        raise RowError(f'expert library "{text}" is not modelled')
    found = re.search(r"([\d.]+)(k?) tokens(?: per rank)? x (\d+)[^,;]*, top-(\d+)", notes)
    if not found:
        raise RowError("tokens, hidden size and top-k are not stated")
    width = 1.0 if row.text("collective").lower().endswith("fp8") else 2.0
    tokens = Tokens(num_tokens=float(found[1]) * (1024 if found[2] else 1), hidden=float(found[3]),
                    top_k=float(found[4]), bytes_per_value=width)  # fmt: skip
    ranks, nodes = _count(row, "n_gpus"), _count(row, "n_nodes", default=1)
    chip = chip_named(row.text("hardware"))
    if chip is None:
        raise RowError("the source does not name the chip")
    kernel = library().experts[_own_network(name, row.text("interconnect"))]
    run = low_latency_time if "low" in name else normal_time
    time = run(kernel, tokens, num_ranks=ranks, num_inside=-(-ranks // nodes),
               scale_up_bytes_per_s=chip.scale_up_bytes_per_s,
               nic_bytes_per_s=network_rate(row.text("interconnect"), -(-ranks // nodes), chip))  # fmt: skip
    if row.text("time_us"):
        measured = row.positive("time_us") * 1e-6
    else:
        measured = time.payload_bytes / (row.positive("busbw_GBps") * 1e9)
    return _made(row, "experts", time.time_s, measured, time.payload_bytes, "experts", name, chip.name)


def _own_network(name: str, interconnect: str) -> str:
    special = f"{name}-efa"
    return special if "efa" in interconnect.lower() and special in library().experts else name


def _direct(row: Row, level: str | None) -> Known:
    """Throughput of RDMA messages to peers on the same rail or on any: one message at a time per queue."""
    bed, size = _testbed(row, level), _size(row)
    across = bed.system.across
    assert across is not None
    crossed = "cross" in row.text("algorithm").lower()
    share = across.share[2] * (across.cross_rail_share if crossed else 1.0)
    overhead = across.message_s / (across.cross_rail_share if crossed else 1.0)
    predicted = overhead + size / (share * bed.system.nic_bytes_per_s)
    measured = size / (row.positive("busbw_GBps") * 1e9)
    return _made(row, "direct RDMA", predicted, measured, size, "direct",
                 row.text("algorithm"), bed.system.name)  # fmt: skip


def _torus(row: Row, _level: str | None) -> Known:
    collective, size = _collective(row), _size(row)
    chip = chip_named(row.text("hardware"))
    words = f"{row.text('hardware')} {row.text('interconnect')}".lower()
    axis = re.search(r"axis of (\d+)", words)
    speed = re.search(r"([\d.]+) gb/s per link", words)
    if chip is None or not axis or not speed or MOVES[collective].on_torus != "buckets":
        raise RowError("the torus of the run is not described")
    run = bucket_all_reduce_time if MOVES[collective].num_rounds == 2 else bucket_all_gather_time
    predicted = run(size, (int(axis[1]),), hop_s=HOP_S, bytes_per_s=float(speed[1]) * 1e9,
                    wrapped="no wrap" not in words)  # fmt: skip
    measured = _measured(row, collective, size, int(axis[1]))
    return _made(row, "torus", float(predicted), measured, size, "torus", "bucket", chip.name)


READERS: tuple[tuple[str, Callable[[Row, str | None], Known]], ...] = (
    (r"ctran", _ctran),
    (r"ibgda", _put),
    (r"oneshot|2shot|lsa_", _multicast),
    (r"deepep|uccl-ep|nccl ep|deep ep", _experts),
    (r"direct rdma", _direct),
    (r"xla", _torus),
    (r"nccl|rccl|^ring|^tree|^nvls|nvlink sharp|collnet|^pat\b|pytorch", _nccl),
)
