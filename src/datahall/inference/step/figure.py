"""One step of an engine as a figure that can be opened: products, attention, exchange, head, host."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from datahall.breakdown import Band, Breakdown
from datahall.inference.engine.adapters import products_s, reads_s
from datahall.inference.engine.replica import Replica
from datahall.inference.engine.speculation import num_verified
from datahall.inference.step.exchange import exchange, gather_logits
from datahall.inference.step.kernels import Passes
from datahall.inference.step.price import draft_times, uneven_stages
from datahall.silicon.kernel import KernelTime
from datahall.units import fmt

WORDS = {
    "gemm": "matrix products",
    "grouped_gemm": "matrix products of experts",
    "stream": "work between them",
    "attention": "attention",
}


def step_breakdown(
    replica: Replica,
    *,
    num_decodes: int = 0,
    mean_context: float = 0.0,
    chunks: Sequence[tuple[float, float]] = (),
) -> Breakdown:
    """The time of a step of so many decodes and of chunks (tokens, tokens before them), by what it is spent on [s].

    The kernels are timed at these very sizes; the step table reads between points, so the two differ by its error.
    """
    passes, verified, pp = Passes.of(replica), num_verified(replica.speculation), replica.pp
    tokens = num_decodes * verified + sum(chunk for chunk, _ in chunks)
    per_batch = np.array([max(tokens / pp, 1.0)])
    rows = np.array([max((num_decodes * verified + len(chunks)) / pp, 1.0)])
    sent = exchange(replica, per_batch)
    uneven = uneven_stages(replica)
    parts = _by_kind(passes.token_kernels(per_batch), uneven)
    parts.append(_attention(passes, num_decodes / pp, mean_context, verified, chunks, uneven))
    if replica.adapters is not None:
        parts.append(_adapters(passes, per_batch, num_decodes / pp, uneven))
    if replica.num_chips > 1:
        parts.append(
            _exchange(replica, float(sent.tensor_s[0]), float(sent.expert_s[0]), float(sent.stage_s[0]))
        )
    head_s = float(
        pp * (sum((one.total_s for one in passes.head_kernels(rows)), 0.0) + gather_logits(replica, rows))[0]
    )
    parts.append(_leaf("head", head_s, f"{rows[0]:g} rows of {replica.model.vocab:,} logits"))
    if num_decodes and replica.speculation is not None:
        drafted = float(draft_times(replica, np.array([float(num_decodes)]))[0])
        parts.append(
            _leaf(
                "drafting", drafted, f"{replica.speculation.num_draft} tokens by {replica.speculation.draft}"
            )
        )
    engine, num_sequences = replica.engine, num_decodes + len(chunks)
    host_s = engine.host_step_s + engine.host_sequence_s * num_sequences
    parts.append(
        _leaf(
            "host",
            host_s,
            f"{fmt(engine.host_step_s, 's')} + {num_sequences} × {fmt(engine.host_sequence_s, 's')}",
        )
    )
    total = sum(part.value for part in parts)
    low, high = passes.calibration.constants.bands["pass"]
    return Breakdown(
        name=f"step of {num_decodes:,} decodes and {int(tokens - num_decodes * verified):,} prompt tokens",
        value=total,
        unit="s",
        formula=" + ".join(part.name for part in parts),
        parts=tuple(parts),
        band=Band(total * low, total * high, passes.calibration.constants.fitted_on),
        basis=passes.calibration.level,
        sources=(passes.calibration.constants.source, engine.source),
    )


def _by_kind(kernels: Sequence[KernelTime], uneven: float) -> list[Breakdown]:
    groups = []
    for kind in ("gemm", "grouped_gemm", "stream"):
        parts = tuple(_kernel(one, uneven) for one in kernels if one.kind == kind)
        if parts:
            groups.append(_sum(WORDS[kind], parts))
    return groups


def _attention(
    passes: Passes,
    num_decodes: float,
    context: float,
    verified: int,
    chunks: Sequence[tuple[float, float]],
    uneven: float,
) -> Breakdown:
    parts = []
    if num_decodes:
        found = _decodes(passes, max(num_decodes, 1.0), context, verified, chunks)
        parts.append(
            _leaf(
                "decodes", uneven * float(found[0, 0]), f"{num_decodes:g} sequences of {context:,.0f} tokens"
            )
        )
    for chunk, past in chunks:
        found = passes.prefill_s(np.array([chunk]), np.array([past]))
        time_s = uneven * float(found[0, 0]) / passes.replica.pp
        parts.append(_leaf("chunk of a prompt", time_s, f"{chunk:,.0f} tokens after {past:,.0f}"))
    return _sum(WORDS["attention"], tuple(parts))


def _decodes(
    passes: Passes, num: float, context: float, verified: int, chunks: Sequence[tuple[float, float]]
) -> NDArray[np.float64]:
    """Attention of decodes, which share the launch of chunks on some chips [s]."""
    joined_s, empty_s = passes.joined_s(np.array([num]), np.array([context])) if chunks else (None, 0.0)
    if joined_s is None:
        return passes.decode_s(np.array([num]), np.array([context]), verified)
    return joined_s + empty_s * num * max(chunk for chunk, _ in chunks)


def _adapters(passes: Passes, tokens: NDArray[np.float64], num_decodes: float, uneven: float) -> Breakdown:
    sequences = np.array([max(num_decodes, 1.0)])
    thin_s, read_s = (float(one[0]) for one in (products_s(passes, tokens), reads_s(passes, sequences)))
    return _sum(
        "adapters",
        (
            _leaf("thin products", uneven * thin_s, "two beside each projection"),
            _leaf("further adapters", uneven * read_s, f"of {sequences[0]:g} sequences, read from memory"),
        ),
    )


def _exchange(replica: Replica, tensor_s: float, expert_s: float, stage_s: float) -> Breakdown:
    named = (
        ("between the chips that share a layer", tensor_s, f"tp = {replica.tp}"),
        ("between attention and experts", expert_s, f"dp = {replica.dp}, ep = {replica.ep}"),
        ("between stages", replica.pp * stage_s, f"pp = {replica.pp}"),
    )
    return _sum("exchange", tuple(_leaf(name, value, note) for name, value, note in named if value > 0))


def _kernel(kernel: KernelTime, uneven: float) -> Breakdown:
    each = float(np.ravel(kernel.time_s)[0])
    return Breakdown(
        name=kernel.operator.name.replace("_", " "),
        value=uneven * kernel.operator.count * each,
        unit="s",
        formula=f"{kernel.operator.count:g} × {fmt(each, 's')}",
        note=f"{kernel.bound}-bound",
    )


def _sum(name: str, parts: tuple[Breakdown, ...]) -> Breakdown:
    return Breakdown(
        name=name, value=sum(part.value for part in parts), unit="s", formula="sum of its parts", parts=parts
    )


def _leaf(name: str, time_s: float, note: str) -> Breakdown:
    return Breakdown(name=name, value=time_s, unit="s", note=note)
