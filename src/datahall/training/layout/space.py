"""Every legal layout of a job on so many chips, as columns."""

from __future__ import annotations

from math import ceil

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.catalog.entries.model import Model
from datahall.errors import ScenarioError, option
from datahall.scenario.words import CONTEXT_EXCHANGES, OFFLOADS, RECOMPUTES, ContextExchange
from datahall.training.layout.codes import offload_code
from datahall.training.layout.columns import Column, Space, micro_batches
from datahall.training.layout.legality import MOST_MICRO
from datahall.training.step.step import Job
from datahall.workload.memory.activation import Recompute
from datahall.workload.sharding import Sharding

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
    context: tuple[ContextExchange, ...] = ("ring",)
    recompute: tuple[Recompute, ...] = RECOMPUTES
    offload: tuple[tuple[str, ...], ...] = ((),)
    sequence_parallel: bool = True
    sharded_pipeline: bool = False  # whether ZeRO-2 and 3 may spread the stages of a pipeline


USUAL = Options()
# choices of a layout that a search weighs against each other
WEIGHED = tuple(name for name, value in msgspec.structs.asdict(USUAL).items() if isinstance(value, tuple))
WIDE = Options(etp=(0, 1), shard=GROUPS, context=CONTEXT_EXCHANGES)


def layout_space(job: Job, num_chips: int, options: Options = USUAL) -> Space:
    """Every layout that `Layout.check` passes and the options allow.

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
    rows: dict[str, Column] = {"tp": _values(options.tp, _tensor_degrees(job.model, num_chips))}
    _cross(rows, "pp", _values(options.pp, _stage_counts(job.model, num_chips)))
    _cross(rows, "cp", _values(options.cp, _context_degrees(job.seq, num_chips)))
    group = rows["tp"] * rows["pp"] * rows["cp"]
    _keep(rows, num_chips % group == 0)
    rows["dp"] = num_chips / (rows["tp"] * rows["pp"] * rows["cp"])
    _cross(rows, "micro_batch", np.array(options.micro_batch, dtype=np.float64))
    _keep(rows, job.global_batch % (rows["dp"] * rows["micro_batch"]) == 0)
    _keep(rows, micro_batches(job.global_batch, rows["dp"], rows["micro_batch"]) <= MOST_MICRO)
    _with_chunks(rows, job, options)
    _with_experts(rows, job.model, options)
    _cross(rows, "zero", np.array(options.zero, dtype=np.float64))
    alone = rows["dp"] * rows["cp"] == 1
    spread = (rows["zero"] < 2) | (rows["pp"] == 1) | options.sharded_pipeline
    _keep(rows, spread & (~alone | (rows["zero"] == min(options.zero, default=0))))
    _with_groups(rows, options)
    _with_contexts(rows, job.model, options)
    _cross(rows, "offload", np.array([offload_code(one) for one in options.offload], dtype=np.float64))
    _cross(
        rows, "recompute", np.array([RECOMPUTES.index(one) for one in options.recompute], dtype=np.float64)
    )
    codes = {name: rows.pop(name).astype(np.int8) for name in ("recompute", "context", "offload")}
    activations_move = codes["offload"] // np.int8(3 ** OFFLOADS.index("activations")) > 0
    space = Space.plain(rows, **codes, sequence_parallel=(rows["tp"] > 1) & options.sequence_parallel)
    return space.keep(~(activations_move & (codes["recompute"] == RECOMPUTES.index("full"))))


def _with_chunks(rows: dict[str, Column], job: Job, options: Options) -> None:
    """Virtual stages: they divide the layers of a stage, and the micro-batches fill whole pipelines."""
    layers = job.model.num_layers
    deepest = {ceil(layers / int(pp)) for pp in np.unique(rows["pp"])}
    every = sorted({chunks for depth in deepest for chunks in divisors(depth)})
    _cross(rows, "vpp", _values(options.vpp, every))
    per_stage = np.ceil(layers / rows["pp"])
    num_micro = micro_batches(job.global_batch, rows["dp"], rows["micro_batch"])
    interleaved = (rows["pp"] > 1) & (per_stage % rows["vpp"] == 0) & (num_micro % rows["pp"] == 0)
    fits = rows["pp"] * rows["vpp"] <= layers + 2
    _keep(rows, (rows["vpp"] == 1) | (interleaved & fits))


def _with_experts(rows: dict[str, Column], model: Model, options: Options) -> None:
    every = divisors(model.moe.num_experts) if model.moe is not None else [1]
    _cross(rows, "ep", _values(options.ep, every))
    if model.moe is None:
        rows["etp"] = np.zeros(rows["ep"].size)
        return
    widths = [0, *divisors(model.moe.expert_ffn)]
    _cross(rows, "etp", _values(options.etp, widths))
    tp, ep, etp = rows["tp"], rows["ep"], rows["etp"]
    chips, implied = tp * rows["cp"] * rows["dp"], np.maximum(tp / ep, 1.0)
    nested = np.maximum(tp, ep) % np.minimum(tp, ep) == 0
    usual = (etp == 0) & nested & (model.moe.expert_ffn % implied == 0)
    named = (etp > 0) & (chips % (ep * np.maximum(etp, 1.0)) == 0) & ~(nested & (etp == implied))
    _keep(rows, (chips % ep == 0) & (usual | named))


def _with_groups(rows: dict[str, Column], options: Options) -> None:
    """Data-parallel ranks that share a state: a divisor of dp below it, and something to share."""
    every = sorted({0, *(one for dp in np.unique(rows["dp"]) for one in divisors(int(dp)))})
    _cross(rows, "shard", _values(options.shard, every))
    shard, dp = rows["shard"], rows["dp"]
    shared = (dp % np.maximum(shard, 1.0) == 0) & (shard < dp) & (rows["zero"] >= 1)
    _keep(rows, (shard == 0) | shared)


def _with_contexts(rows: dict[str, Column], model: Model, options: Options) -> None:
    """How a split context is exchanged: whole heads need enough of them; one chip exchanges nothing."""
    _cross(
        rows, "context", np.array([CONTEXT_EXCHANGES.index(one) for one in options.context], dtype=np.float64)
    )
    heads = model.num_heads % (rows["tp"] * rows["cp"]) == 0
    _keep(rows, (rows["context"] == 0) | (heads & (rows["cp"] > 1)))


def _tensor_degrees(model: Model, num_chips: int) -> list[int]:
    """Divisors of the chips that heads and widths divide by; experts are looked at with ep."""
    found = []
    for tp in divisors(num_chips):
        if tp > model.num_heads:
            break
        ep = np.gcd(tp, model.moe.num_experts) if model.moe is not None else 1
        try:
            Sharding(tp=float(tp), ep=float(ep)).check(model)
        except ScenarioError:
            continue
        if model.num_heads % tp == 0:
            found.append(tp)
    return found


def _stage_counts(model: Model, num_chips: int) -> list[int]:
    layers = model.num_layers
    return [pp for pp in divisors(num_chips) if pp <= layers]


def _context_degrees(seq: int, num_chips: int) -> list[int]:
    """Each chip of the group takes two parts of the sequence, one early and one late, so that causal work is even."""
    least = [cp for cp in divisors(num_chips) if seq / cp >= LEAST_CONTEXT and seq % (2 * cp) == 0]
    return least or [1]


def divisors(number: int) -> list[int]:
    """All divisors in order.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    low = [value for value in range(1, int(number**0.5) + 1) if number % value == 0]
    return sorted({*low, *(number // value for value in low)})


def _values(chosen: tuple[int, ...], every: list[int]) -> Column:
    legal = [value for value in every if value in chosen] if chosen else every
    return np.array(legal, dtype=np.float64)


def _cross(rows: dict[str, Column], name: str, values: Column) -> None:
    """Every row with every value."""
    length = next(iter(rows.values())).size
    for known in rows:
        rows[known] = np.repeat(rows[known], values.size)
    rows[name] = np.tile(values, length)


def _keep(rows: dict[str, Column], mask: NDArray[np.bool_]) -> None:
    for name in rows:
        rows[name] = rows[name][mask]
