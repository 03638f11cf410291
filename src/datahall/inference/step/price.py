"""Fills the table of step times from silicon kernels and fabric collectives.

    price_steps(replica, max_tokens=0, max_context=0) -> StepPrice     .table, .tokens_per_step, .level, .band
    round_token_budget(replica) -> int                                 most new tokens of a step, all micro-batches
    step_breakdown(replica, …) -> Breakdown                            one step, opened (`figure.py`)

What a pass of m tokens does outside attention is timed at a few hundred m and read between them; decode attention on a
grid of sequences × context, attention of a chunk on a grid of chunk × past.  Everything is per attention (dp) rank, the
others carrying the same load.

A pipeline of pp stages has pp micro-batches in flight.  The table's reader sees a replica as one batch, so a step of
the table is a round, in which each micro-batch has its turn on each stage: with t the time of a whole pass,

    tokens(m) = t(m/pp) + sends      decode(n, c) = t(n/pp, c)      prefill(chunk, past) = t(chunk, past)/pp

A decoding sequence brings `table.num_verified` tokens into a step (with speculation the drafted ones too) and gets
`StepPrice.tokens_per_step` out of it; drafting and the head's extra rows are in decode_s.
"""

from __future__ import annotations

from functools import cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.basis import Basis
from datahall.inference.engine.adapters import products_s, reads_s
from datahall.inference.engine.replica import Replica
from datahall.inference.engine.speculation import draft_model, num_verified, tokens_per_step
from datahall.inference.step.column import distinct
from datahall.inference.step.exchange import exchange, gather_logits
from datahall.inference.step.kernels import Passes
from datahall.inference.step.launch import launches_of
from datahall.inference.step.table import GRID_PER_OCTAVE, NOT_JOINED, NOT_MET, StepTable
from datahall.silicon.calibration import weakest

Column = NDArray[np.float64]
Grid = NDArray[np.float64]


DRAFT_CONTEXT = 4096  # tokens: attention is a small part of a draft, so one context stands for all


class StepPrice(msgspec.Struct, frozen=True, kw_only=True):
    """A table of step times and what it rests on."""

    table: StepTable
    tokens_per_step: float  # that a decoding sequence gets
    stack: str  # whose kernels were timed
    level: Basis  # of kernels and collectives, the weaker
    band: tuple[float, float]  # P10–P90 of measured over predicted steps


def price_steps(replica: Replica, *, max_tokens: int = 0, max_context: int = 0) -> StepPrice:
    """The table of a replica's step times; 0: as far as its engine's budget and its longest sequence go."""
    passes = Passes.of(replica)
    launched = launches_of(passes)
    verified = num_verified(replica.speculation)
    num_sequences = max(1, replica.engine.max_sequences) * replica.pp
    most = max_tokens or max(round_token_budget(replica), num_sequences * verified)
    longest = max_context or replica.max_context or replica.model.max_context
    layers = uneven_stages(replica)
    tokens = token_points(most / replica.pp)
    sent = exchange(replica, tokens)
    own_s, experts_s = passes.tokens_s(tokens)
    kernels_s = np.maximum(own_s + products_s(passes, tokens), launched.tokens_s)
    pass_s = layers * kernels_s + sent.total_s + replica.pp * sent.stage_s
    rows, rows_s = head_times(passes, num_sequences, verified)
    head_s = dense(rows, rows_s, num_sequences, replica.pp)
    contexts = grid_tokens(longest)
    sequences = sequence_points(num_sequences // replica.pp)
    read_s = layers * reads_s(passes, sequences)[:, None]
    attention_s = np.maximum(passes.decode_s(sequences, contexts, verified), launched.attention_s)
    decode_s = layers * attention_s + read_s
    joined_s, empty_s = passes.joined_s(sequences, contexts)
    joined_s = (
        NOT_JOINED if joined_s is None else layers * np.maximum(joined_s, launched.attention_s) + read_s
    )
    if replica.speculation is not None:
        wide_s = np.interp(sequences * verified, rows, rows_s) - np.interp(sequences, rows, rows_s)
        more_s = (wide_s + draft_times(replica, sequences))[:, None]
        decode_s = decode_s + more_s
        joined_s = NOT_JOINED if joined_s is NOT_JOINED else joined_s + more_s
    chunks = grid_tokens(min(most, longest))
    table = StepTable(
        tokens_s=dense(tokens, pass_s, most, replica.pp),
        head_s=head_s,
        decode_s=dense(sequences, decode_s, num_sequences, replica.pp),
        prefill_s=layers * np.maximum(passes.prefill_s(chunks, contexts), launched.attention_s) / replica.pp,
        host=np.array([replica.engine.host_step_s, replica.engine.host_sequence_s]),
        num_verified=verified,
        met_s=dense(tokens, layers * experts_s + sent.expert_s, most, replica.pp)
        if replica.dp > 1
        else NOT_MET,
        joined_s=NOT_JOINED
        if joined_s is NOT_JOINED
        else dense(sequences, joined_s, num_sequences, replica.pp),
        empty_s=np.array([layers * empty_s / replica.pp]),
    )
    levels = [passes.calibration.level] + ([sent.level] if replica.num_chips > 1 else [])
    low, high = passes.calibration.constants.bands["pass"]
    return StepPrice(
        table=table,
        tokens_per_step=tokens_per_step(replica.speculation),
        stack=passes.calibration.constants.stack,
        level=weakest(levels),
        band=(min(low, replica.engine.band("TPOT")[0]), max(high, replica.engine.band("TPOT")[1])),
    )


def narrowed(wide: StepPrice, replica: Replica, *, max_context: int) -> StepPrice | None:
    """The table of a replica, cut from that of the same one with more tokens in a step, sequences or a longer context.

    None where the wide table has fewer, or was timed at other points.
    """
    table, num_sequences = wide.table, max(1, replica.engine.max_sequences) * replica.pp
    verified = num_verified(replica.speculation)
    most = max(round_token_budget(replica), num_sequences * verified)
    wanted = sequence_points(num_sequences // replica.pp)
    num_there = table.decode_s.shape[0] - 1
    there = sequence_points(num_there // replica.pp)
    tokens, all_tokens = (token_points(one / replica.pp) for one in (most, table.tokens_s.size - 1))
    num_contexts, num_chunks = grid_tokens(max_context).size, grid_tokens(min(most, max_context)).size
    if (
        replica.speculation is not None
        or not np.array_equal(tokens, all_tokens[: tokens.size])
        or not np.array_equal(wanted, there[: wanted.size])
        or num_contexts > table.prefill_s.shape[1]
        or num_chunks > table.prefill_s.shape[0]
    ):
        return None

    def cut(values: Grid) -> Grid:
        return np.ascontiguousarray(values[: num_sequences + 1, :num_contexts])

    head_s = table.head_s[: num_sequences + 1].copy()
    rows = head_points(replica, num_sequences)
    if not np.array_equal(rows, head_points(replica, num_there)[: rows.size]):
        head_s = dense(*head_times(Passes.of(replica), num_sequences, verified), num_sequences, replica.pp)
    narrow = table._replace(
        tokens_s=table.tokens_s[: most + 1].copy(),
        met_s=table.met_s if table.met_s is NOT_MET else table.met_s[: most + 1].copy(),
        head_s=head_s,
        decode_s=cut(table.decode_s),
        prefill_s=np.ascontiguousarray(table.prefill_s[:num_chunks, :num_contexts]),
        joined_s=table.joined_s if table.joined_s is NOT_JOINED else cut(table.joined_s),
    )
    return msgspec.structs.replace(wide, table=narrow)


def head_times(passes: Passes, num_sequences: int, verified: int) -> tuple[Column, Column]:
    """Numbers of rows, and what the head takes for them in a round [s]."""
    replica, rows = passes.replica, head_points(passes.replica, num_sequences, verified)
    kernels_s = np.maximum(passes.head_s(rows), launches_of(passes).head_s)
    return rows, replica.pp * (kernels_s + gather_logits(replica, rows))


def head_points(replica: Replica, num_sequences: int, verified: int = 1) -> Column:
    """Numbers of rows at which the head is timed."""
    return token_points(max(1, num_sequences // replica.pp) * verified)


def draft_times(replica: Replica, num_sequences: Column) -> Column:
    """Time to draft for so many sequences: num_draft passes of one token each, one after the other [s]."""
    model, speculation = draft_model(replica), replica.speculation
    if model is None or speculation is None:
        return np.zeros_like(num_sequences)
    ep = replica.ep if model.moe is not None else 1
    drafter = msgspec.structs.replace(replica, model=model, speculation=None, adapters=None, pp=1, ep=ep)
    table = price_steps(drafter, max_tokens=int(num_sequences[-1]), max_context=DRAFT_CONTEXT).table
    count = num_sequences.astype(np.int64)
    at = GRID_PER_OCTAVE * int(np.log2(DRAFT_CONTEXT))
    once_s: Column = table.tokens_s[count] + table.head_s[count] + table.decode_s[count, at]
    return speculation.num_draft * once_s


def round_token_budget(replica: Replica) -> int:
    """Most new tokens in one round: the engine's budget counts for each micro-batch of the pipeline."""
    return replica.engine.token_budget * replica.pp


def uneven_stages(replica: Replica) -> float:
    """How much longer the round of a pipeline is because its stages are not equal: the fullest sets the pace."""
    num_layers = replica.model.num_layers
    return -(-num_layers // replica.pp) * replica.pp / num_layers


@cache
def token_points(most: float) -> Column:
    """Token counts at which kernels are timed: every one at first, then both sides of each edge of a tile.

    >>> token_points(8192).size < 400
    True
    """
    edges = np.concatenate(
        [np.arange(160, 1024, 32), np.arange(1024, 4096, 64), 4096 * 2.0 ** (np.arange(81) / 8)]
    )
    return _points(most, np.arange(1, 137), edges, edges + 1)


@cache
def sequence_points(most: float) -> Column:
    """Numbers of decoding sequences at which attention is timed; waves of multiprocessors matter less as they grow."""
    return _points(
        most,
        np.arange(1, 65),
        np.arange(64, 256, 4),
        np.arange(256, 1024, 16),
        1024 * 2.0 ** (np.arange(57) / 8),
    )


def _points(most: float, *wanted: NDArray[np.generic]) -> Column:
    last = max(1, int(np.ceil(most)))
    points = distinct(np.round(np.concatenate([*wanted, [last]])))
    found = points[points <= last]
    found.flags.writeable = False  # it is shared
    return found


def grid_tokens(longest: float) -> Column:
    """Contexts at the points of the table's logarithmic axes, the last beyond `longest`."""
    size = int(np.ceil(GRID_PER_OCTAVE * np.log2(longest + 2.0))) + 2
    tokens: Column = 2.0 ** (np.arange(size) / GRID_PER_OCTAVE) - 1.0
    return tokens


def dense(points: Column, values: NDArray[np.float64], last: int, num_parts: int) -> NDArray[np.float64]:
    """Values at 0 … last, each that of its num_parts-th part, read between `points`; nothing costs nothing."""
    places = np.clip(np.arange(last + 1) / num_parts, 1.0, points[-1])
    above = np.searchsorted(points, places)
    below = np.maximum(above - 1, 0)
    width = np.where(above > below, points[above] - points[below], 1.0)
    share = ((places - points[below]) / width).reshape(-1, *([1] * (values.ndim - 1)))
    found: NDArray[np.float64] = values[below] + share * (values[above] - values[below])
    found[0] = 0.0
    return found
