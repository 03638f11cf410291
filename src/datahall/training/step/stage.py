"""How a pipeline cuts the layers of a model, how many micro-batches a stage holds at once, and what it runs beside."""

from __future__ import annotations

from collections import Counter
from math import ceil

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.catalog.entries.model import Layer, Model
from datahall.silicon.attention import smooth_max
from datahall.training.layout.columns import Column, Space, unique_rows
from datahall.training.pipeline.table import Depth, order_of, usual_order
from datahall.workload.parameters import layer_parameters

HIDING_SHARPNESS = 4.0  # how sharply exchange that runs beside kernels shows once it is the longer
Groups = tuple[tuple[Layer, int], ...]  # each kind of layer with how many there are


def cut_layers(num_layers: int, num_parts: int, head_layers: float) -> NDArray[np.int64]:
    """Layers of each part: all alike, and what does not divide is taken off the ends.

    The last part, which holds the head, is shorter by as many layers as that counts for, at most; then the first, which
    holds the table of tokens, and the others from both ends by one.

    >>> cut_layers(126, 16, 0.7).tolist()
    [7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7]
    >>> cut_layers(32, 7, 2.4).tolist()
    [5, 5, 5, 5, 5, 5, 2]
    """
    most = -(-num_layers // num_parts)
    layers = np.full(num_parts, most, np.int64)
    over = most * num_parts - num_layers
    layers[-1] -= min(over, most, max(1, ceil(head_layers)))
    left = over - (most - int(layers[-1]))
    pairs = zip(range(num_parts), range(num_parts - 2, -1, -1), strict=False)
    short = [part for part in dict.fromkeys(part for pair in pairs for part in pair) if part < num_parts - 1]
    layers[short[:left]] -= 1
    return layers


def head_layers(model: Model) -> float:
    """As how many layers the head counts: its products over those of a mean layer, by the weights a token passes."""
    layers = sum(times * layer_parameters(model, layer).active for layer, times in model.layer_groups())
    return model.vocab * model.hidden / (layers / model.num_layers)


def part_layers(num_layers: int, num_parts: int, split: tuple[int, ...], head: float) -> NDArray[np.int64]:
    """Layers of each part of the model in its order: cut by hand, by stage or by chunk, else as even as can be.

    >>> part_layers(22, 8, (4, 6, 6, 6), head=1.0).tolist()
    [2, 3, 3, 3, 2, 3, 3, 3]
    """
    if not split:
        return cut_layers(num_layers, num_parts, head)
    chunks = max(1, num_parts // len(split))
    return np.tile(np.array(split, np.int64) // chunks, chunks)


def stage_depths(model: Model, space: Space) -> tuple[Column, Column, Column]:
    """Layers of the deepest stage before the last, of the last, and of the mean one, for every layout."""
    cuts, index = unique_rows((space.pp, space.vpp, space.split))
    depths, head = np.empty((3, len(cuts))), head_layers(model)
    for place, (pp, vpp, split) in enumerate(cuts):
        parts = part_layers(model.num_layers, int(pp * vpp), space.splits[int(split)], head)
        stages = parts.reshape(-1, int(pp)).sum(axis=0)
        before = stages[:-1] if pp > 1 else stages
        depths[:, place] = before.max(), stages[-1], stages.mean()
    deepest, on_last, mean = depths[:, index]
    return deepest, on_last, mean


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """Stages in a row that hold the same layers; the first of them holds the most micro-batches."""

    first: int
    last: int
    layers: Groups

    @property
    def num_layers(self) -> int:
        return sum(count for _, count in self.layers)


def stage_layers(model: Model, pp: int, vpp: int = 1, split: tuple[int, ...] = ()) -> tuple[Groups, ...]:
    """The layers of every stage: pp · vpp chunks as even as can be, or cut by hand, dealt out in turn.

    >>> from datahall.catalog import load
    >>> [count for (_, count), in stage_layers(load().model("llama-3.1-405b"), pp=8, vpp=8)]
    [15, 16, 16, 16, 16, 16, 16, 15]
    """
    ends = np.cumsum(part_layers(model.num_layers, pp * vpp, split, head_layers(model)))
    starts = np.concatenate(([0], ends[:-1]))
    return tuple(
        tuple(
            Counter(
                layer
                for chunk in range(stage, pp * vpp, pp)
                for layer in model.layers[starts[chunk] : ends[chunk]]
            ).items()
        )
        for stage in range(pp)
    )


def stage_runs(model: Model, pp: int, vpp: int, split: tuple[int, ...]) -> tuple[Run, ...]:
    """The stages grouped into runs that hold the same; first and last stand alone, for they hold the tables."""
    cut = stage_layers(model, pp, vpp, split)
    starts = [
        stage for stage in range(pp) if stage in (0, 1, pp - 1) or dict(cut[stage]) != dict(cut[stage - 1])
    ]
    ends = [*(start - 1 for start in starts[1:]), pp - 1]
    return tuple(
        Run(first=start, last=end, layers=cut[start]) for start, end in zip(starts, ends, strict=True)
    )


def num_tables(model: Model, rows: Space, run: Run) -> Column:
    """Token tables and heads on a stage: both on a single one, else one at either end."""
    alone = 1.0 if model.tied_embeddings else 2.0
    at_end = (run.first == 0) | (rows.pp - 1 == run.last)
    return np.where(rows.pp == 1, alone, np.where(at_end, 1.0, 0.0))


def in_flight(
    schedule: str, num_micro: Column, pp: Column | float, vpp: Column | float, stage: int
) -> Column:
    """Micro-batches whose activations a stage holds at its fullest: `held` of its schedule, and no more than there are.

    Of the two usual schedules each layout has the one of its chunks, whichever was named: a space has both kinds.

    >>> in_flight("1f1b", np.array([32.0]), 8, 1, 0), in_flight("1f1b", np.array([32.0]), 8, 4, 0)
    (array([8.]), array([9.75]))
    """
    return np.minimum(num_micro, held_by(schedule, num_micro, pp, vpp, stage))


def held_by(schedule: str, num_micro: Column, pp: Column | float, vpp: Column | float, stage: int) -> Column:
    """The same where there are enough micro-batches."""
    order, depth = order_of(schedule), Depth(num_micro, pp, vpp, stage)
    if not order.usual:
        return np.asarray(order.held(depth))
    one, several = (order_of(usual_order(num_chunks)).held(depth) for num_chunks in (1, 2))
    return np.where(np.asarray(vpp) > 1, several, one)


def busy_time(
    stage_s: Column, gathered_s: Column, launch_s: Column, exchange_s: Column, waited: float
) -> Column:
    """A stage with what runs beside it: parameters gathered, kernels launched; it hides no exchange that is longer.

    `waited`: share of the gathering that kernels wait for, beside none of it.
    """
    hidden_s = (1.0 - waited) * gathered_s
    busy_s = smooth_max(stage_s, hidden_s, HIDING_SHARPNESS) + waited * gathered_s
    beside_s = smooth_max(busy_s, launch_s, HIDING_SHARPNESS)
    return np.maximum(beside_s, exchange_s)
