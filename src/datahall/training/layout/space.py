"""Every legal layout of a job on so many chips, as columns."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.errors import ScenarioError, option
from datahall.scenario.words import CONTEXT_EXCHANGES, OFFLOADS, ContextExchange
from datahall.training.layout.columns import CODES, Column, Space, micro_batches
from datahall.training.layout.legality import MOST_MICRO
from datahall.training.step.step import Job
from datahall.workload.division import Split
from datahall.workload.memory.activation import Recompute
from datahall.workload.memory.recompute import RECOMPUTES

LEAST_CONTEXT = 2048  # tokens of a sequence that one chip of a context-parallel group keeps


# what a plan looks at besides the degrees: experts uncut, states shared inside groups, heads exchanged
GROUPS = (0, 8, 16, 32, 64, 128, 256)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a search may try; an empty choice means every legal value."""

    tp: tuple[int, ...] = ()
    pp: tuple[int, ...] = ()
    vpp: tuple[int, ...] = ()
    cp: tuple[int, ...] = ()
    ep: tuple[int, ...] = ()
    etp: tuple[int, ...] = (0,)  # 0: as tp and ep imply
    zero: tuple[int, ...] = (0, 1, 2, 3)
    shard: tuple[int, ...] = (0,)  # 0: all data-parallel ranks share one state
    micro_batch: tuple[int, ...] = (1, 2, 4, 8, 16)
    context_exchange: tuple[ContextExchange, ...] = ("ring",)
    recompute: tuple[Recompute, ...] = RECOMPUTES
    offload: tuple[tuple[str, ...], ...] = ((),)
    sequence_parallel: bool = True
    sharded_pipeline: bool = False  # whether ZeRO-2 and 3 may spread the stages of a pipeline
    margin_fraction: float = 0.0  # of a chip's memory that stays free


def weighed(options: Options) -> tuple[str, ...]:
    """Choices of a layout that a search weighs against each other."""
    return tuple(name for name, value in msgspec.structs.asdict(options).items() if isinstance(value, tuple))


USUAL = Options()
WEIGHED = weighed(USUAL)
WIDE = Options(etp=(0, 1), shard=GROUPS, context_exchange=CONTEXT_EXCHANGES)


Rows = dict[str, Column]
Mask = NDArray[np.bool_]


class Axis(NamedTuple):
    """How a choice enters a space: the values that it may have at all, and which rows can run with them."""

    every: Callable[[Rows, Job], list[int]] | None = None  # None: whatever the options list
    keeps: Callable[[Rows, Job, Options], Mask] | None = None


def layout_space(job: Job, num_chips: int, options: Options = USUAL) -> Space:
    """Every layout that `Layout.check` passes and the options allow: each choice of theirs crossed with all others.

    tp divides heads, widths and chips; no stage of a pipeline is empty; vpp divides the layers of a stage and
    then the micro-batches come in multiples of pp; a context is cut into 2·cp equal parts; ep divides the experts and
    the chips of a stage, and so does ep · etp; dp takes the chips left over and dp · micro-batch divides the global
    batch, into no more micro-batches than a schedule is made of; a group that shares a state divides dp.  Where one
    chip holds each weight alone, ZeRO changes nothing and only the lowest stage is listed; nor is a choice listed
    twice, once by its default and once by the same number.
    """
    if num_chips < 1:
        raise ScenarioError(
            f"{num_chips} chips cannot train anything", field="chips", hint=f"{option('chips', 1)} or more"
        )
    rows: Rows = {CHIPS: np.array([float(num_chips)])}
    for name in dict.fromkeys((*AXES, *weighed(options))):
        axis = AXES.get(name, Axis())
        _cross(rows, name, _values(name, getattr(options, name), axis, rows, job))
        if axis.keeps is not None:
            mask = axis.keeps(rows, job, options)
            for known in rows:
                rows[known] = rows[known][mask]
        if name == "cp":
            rows["dp"] = rows.pop(CHIPS) / (rows["tp"] * rows["pp"] * rows["cp"])
    codes = {name: rows.pop(name).astype(CODES[name].dtype) for name in CODES if name in rows}
    return Space.plain(rows, **codes, sequence_parallel=(rows["tp"] > 1) & options.sequence_parallel)


def _values(name: str, chosen: tuple[object, ...], axis: Axis, rows: Rows, job: Job) -> Column:
    """What a choice may be: of all legal values those that were chosen, as numbers."""
    code = CODES.get(name)
    listed = [code.number(one) if code is not None else one for one in chosen]
    if axis.every is not None:
        every = axis.every(rows, job)
        free = not chosen or every == [
            0
        ]  # all of them; or, as with experts that a model has not, nothing to choose
        listed = list(every) if free else [value for value in every if value in listed]
    return np.array(listed, dtype=np.float64)


def _cross(rows: Rows, name: str, values: Column) -> None:
    """Every row with every value."""
    length = next(iter(rows.values())).size
    for known in rows:
        rows[known] = np.repeat(rows[known], values.size)
    rows[name] = np.tile(values, length)


def _tensor_degrees(rows: Rows, job: Job) -> list[int]:
    """Divisors of the chips that heads and widths divide by; experts are looked at with ep."""
    model, found = job.model, []
    for tp in divisors(_num_chips(rows)):
        if tp > model.num_heads:
            break
        ep = np.gcd(tp, model.moe.num_experts) if model.moe is not None else 1
        if model.num_heads % tp == 0 and Split(tp=float(tp), ep=float(ep)).broken(model) is None:
            found.append(tp)
    return found


def _stage_counts(rows: Rows, job: Job) -> list[int]:
    return [pp for pp in divisors(_num_chips(rows)) if pp <= job.model.num_layers]


def _num_chips(rows: Rows) -> int:
    return int(rows[CHIPS][0]) if rows[CHIPS].size else 1


def _context_degrees(rows: Rows, job: Job) -> list[int]:
    """Each chip of the group takes two parts of the sequence, one early and one late, so that causal work is even."""
    every = divisors(_num_chips(rows))
    return [cp for cp in every if job.seq / cp >= LEAST_CONTEXT and job.seq % (2 * cp) == 0] or [1]


def _fills_the_chips(rows: Rows, job: Job, options: Options) -> Mask:
    del job, options
    return np.asarray(rows[CHIPS] % (rows["tp"] * rows["pp"] * rows["cp"]) == 0)


def _divides_the_batch(rows: Rows, job: Job, options: Options) -> Mask:
    del options
    num_micro = micro_batches(job.global_batch, rows["dp"], rows["micro_batch"])
    divides = job.global_batch % (rows["dp"] * rows["micro_batch"]) == 0
    return np.asarray(divides & (num_micro <= MOST_MICRO))


def _chunk_counts(rows: Rows, job: Job) -> list[int]:
    deepest = {ceil(job.model.num_layers / int(pp)) for pp in set(rows["pp"].tolist())}
    return sorted({chunks for depth in deepest for chunks in divisors(depth)})


def _interleaves(rows: Rows, job: Job, options: Options) -> Mask:
    """Virtual stages: they divide the layers of a stage, and the micro-batches fill whole pipelines."""
    del options
    layers = job.model.num_layers
    num_micro = micro_batches(job.global_batch, rows["dp"], rows["micro_batch"])
    per_stage = np.ceil(layers / rows["pp"])
    interleaved = (rows["pp"] > 1) & (per_stage % rows["vpp"] == 0) & (num_micro % rows["pp"] == 0)
    fits = rows["pp"] * rows["vpp"] <= layers + 2
    return np.asarray((rows["vpp"] == 1) | (interleaved & fits))


def _expert_degrees(rows: Rows, job: Job) -> list[int]:
    del rows
    return divisors(job.model.moe.num_experts) if job.model.moe is not None else [1]


def _expert_widths(rows: Rows, job: Job) -> list[int]:
    del rows
    return [0, *divisors(job.model.moe.expert_ffn)] if job.model.moe is not None else [0]


def _spreads_experts(rows: Rows, job: Job, options: Options) -> Mask:
    del options
    moe, (tp, ep, etp) = job.model.moe, (rows[name] for name in ("tp", "ep", "etp"))
    if moe is None:
        return np.ones(tp.size, np.bool_)
    chips, implied = tp * rows["cp"] * rows["dp"], np.maximum(tp / ep, 1.0)
    nested = np.maximum(tp, ep) % np.minimum(tp, ep) == 0
    usual = (etp == 0) & nested & (moe.expert_ffn % implied == 0)
    named = (etp > 0) & (chips % (ep * np.maximum(etp, 1.0)) == 0) & ~(nested & (etp == implied))
    return np.asarray((chips % ep == 0) & (usual | named))


def _shares_something(rows: Rows, job: Job, options: Options) -> Mask:
    del job
    alone = rows["dp"] * rows["cp"] == 1
    spread = (rows["zero"] < 2) | (rows["pp"] == 1) | options.sharded_pipeline
    return np.asarray(spread & (~alone | (rows["zero"] == min(options.zero, default=0))))


def _group_sizes(rows: Rows, job: Job) -> list[int]:
    del job
    return sorted({0, *(one for dp in np.unique(rows["dp"]) for one in divisors(int(dp)))})


def _groups(rows: Rows, job: Job, options: Options) -> Mask:
    """Data-parallel ranks that share a state: a divisor of dp below it, and something to share."""
    del job, options
    shard, dp = rows["shard"], rows["dp"]
    shared = (dp % np.maximum(shard, 1.0) == 0) & (shard < dp) & (rows["zero"] >= 1)
    return np.asarray((shard == 0) | shared)


def _exchanges_context(rows: Rows, job: Job, options: Options) -> Mask:
    """How a split context is exchanged: whole heads need enough of them; one chip exchanges nothing."""
    del options
    heads = job.model.num_heads % (rows["tp"] * rows["cp"]) == 0
    return np.asarray((rows["context_exchange"] == 0) | (heads & (rows["cp"] > 1)))


def _keeps_what_it_moves(rows: Rows, job: Job, options: Options) -> Mask:
    """Full recomputation keeps nothing worth an offload of activations."""
    del job, options
    moved = rows["offload"] // 3 ** OFFLOADS.index("activations") % 3 > 0
    return np.asarray(~(moved & (rows["recompute"] == RECOMPUTES.index("full"))))


CHIPS = "chips"  # a column of their number, until replicas take what is left of them
# in the order in which they are crossed: what others rest on first; a choice that is not here goes with any row
AXES = {
    "tp": Axis(_tensor_degrees),
    "pp": Axis(_stage_counts),
    "cp": Axis(_context_degrees, _fills_the_chips),
    "micro_batch": Axis(keeps=_divides_the_batch),
    "vpp": Axis(_chunk_counts, _interleaves),
    "ep": Axis(_expert_degrees),
    "etp": Axis(_expert_widths, _spreads_experts),
    "zero": Axis(keeps=_shares_something),
    "shard": Axis(_group_sizes, _groups),
    "context_exchange": Axis(keeps=_exchanges_context),
    "offload": Axis(),
    "recompute": Axis(keeps=_keeps_what_it_moves),
}


def divisors(number: int) -> list[int]:
    """All divisors in order.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    low = [value for value in range(1, int(number**0.5) + 1) if number % value == 0]
    return sorted({*low, *(number // value for value in low)})
