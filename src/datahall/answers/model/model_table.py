"""The tables of a model: what it fits on, its parts, its arithmetic, its memory by precision."""

from __future__ import annotations

from collections.abc import Sequence

from datahall.answer import Cell, Column, StackChart, Table
from datahall.catalog.entries.model import Model
from datahall.counted import counted
from datahall.inference.memory.fit import Fit, best
from datahall.scenario.sections.views import Sequences
from datahall.units import fmt
from datahall.workload.flops import TokenWork
from datahall.workload.memory.figure import SPREAD
from datahall.workload.memory.kv_cache import kv_bytes, kv_bytes_per_token
from datahall.workload.memory.state import serving_weight_bytes
from datahall.workload.parameters import ParameterCount
from datahall.workload.precision import COMMON, Precision


def fit_table(fits: Sequence[Fit], sequences: Sequences, precision: str, known: int) -> Table:
    """The smallest group of each chip, and what is left on it."""
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            one.chip.name,
            one.tp or None,
            one.chip.memory_bytes,
            one.weight_bytes if one.tp else None,
            one.free_bytes if one.tp else None,
            one.num_sequences if one.tp else None,
            one.why or _remark(one),
        )
        for one in fits
    )
    columns = (
        Column("chip"),
        Column("chips", "count", "num_chips"),
        Column("memory", "bytes"),
        Column("weights per chip", "bytes"),
        Column("free per chip", "bytes"),
        Column("sequences", "count", "num_sequences"),
        Column("remark"),
    )
    return Table(
        title=f"what it fits on: {sequences.batch:,} × {counted(sequences.context, 'token')}, {precision}",
        columns=columns,
        rows=rows,
        marked=best(fits),
        note=f"{len(fits)} of {known} chips; any other can be named" if len(fits) < known else "",
    )


def _remark(one: Fit) -> str:
    if not one.leaves_domain:
        return ""
    return f"{one.num_domain} per scale-up domain" if one.num_domain > 1 else "no scale-up link"


def parts_table(counts: ParameterCount) -> Table:
    """Parameters by part, and how each part is spread."""
    rows = tuple(
        (part.name, part.count, part.active, counts.share(part), SPREAD[part.sharding])
        for part in counts.parts
    )
    total: tuple[Cell, ...] = ("all", counts.total, counts.active, 1.0, "")
    columns = (
        Column("part"),
        Column("parameters", "parameters", "num_parameters"),
        Column("active per token", "parameters", "num_active_parameters"),
        Column("share", "fraction"),
        Column("spread"),
    )
    return Table(title="parameters by part", columns=columns, rows=(*rows, total))


def token_table(work: TokenWork, seq: int) -> Table:
    """Arithmetic of one token."""
    rows: tuple[tuple[Cell, ...], ...] = (
        ("forward", work.forward_flop, f"mean over {counted(seq, 'token')}, causal attention counted"),
        ("training", work.training_flop, "forward and backward: three forwards"),
        ("matrix products alone", work.matmul_flop, "the 2N of scaling laws"),
    )
    return Table(
        title="arithmetic per token",
        columns=(Column("pass"), Column("arithmetic", "flop", "flop_per_token"), Column("what counts")),
        rows=rows,
        note=(
            f"One decoded token at {counted(seq, 'token')} of context moves {fmt(work.decode_bytes, 'bytes')} "
            f"when it runs alone, and adds {fmt(work.kv_bytes, 'bytes')} to the cache."
        ),
    )


def precision_table(model: Model, counts: ParameterCount, seq: int) -> Table:
    """Weights and cache in the common formats."""
    rows = []
    for name in COMMON:
        formats = Precision.named(name)
        rows.append((
            name, formats.weights, formats.kv, float(serving_weight_bytes(model, counts, formats)),
            float(kv_bytes_per_token(model, formats)), float(kv_bytes(model, seq, formats)),
        ))  # fmt: skip
    columns = (
        Column("precision"), Column("weights in"), Column("cache in"), Column("weights", "bytes"),
        Column("cache per token", "bytes"), Column(f"cache at {seq:,}", "bytes", "cache_at_seq_bytes"),
    )  # fmt: skip
    return Table(title="memory by precision", columns=columns, rows=tuple(rows))


def charts(fits: Sequence[Fit], batch: int) -> tuple[StackChart, ...]:
    """What takes the memory of each chip."""
    shown = [one for one in fits if one.tp]
    if not shown:
        return ()
    return (
        StackChart(
            title="memory of one chip of the group",
            unit="bytes",
            rows=tuple(f"{one.tp} × {one.chip.name}" for one in shown),
            parts={
                "weights": tuple(one.weight_bytes for one in shown),
                "cache asked for": tuple(one.cache_bytes(batch) for one in shown),
                "free": tuple(one.left_bytes(batch) for one in shown),
                "kept back": tuple(one.kept_back_bytes for one in shown),
            },
        ),
    )
