"""How a pipeline cuts the layers of a model, and how many micro-batches a stage holds at once."""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.catalog.entries.model import Layer, Model
from datahall.errors import UnknownNameError
from datahall.scenario.words import SCHEDULES
from datahall.training.layout.columns import Column, Space

Groups = tuple[tuple[Layer, int], ...]  # each kind of layer with how many there are


def cut_layers(num_layers: int, num_parts: int) -> NDArray[np.int64]:
    """Layers of each part: as even as can be, the last and the first part short first, as they hold the tables.

    >>> cut_layers(126, 16).tolist()
    [7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7]
    """
    layers = np.full(num_parts, -(-num_layers // num_parts), np.int64)
    ends = [
        part for pair in zip(range(num_parts - 1, -1, -1), range(num_parts), strict=True) for part in pair
    ]
    short = list(dict.fromkeys(ends))[: int(layers.sum()) - num_layers]
    layers[short] -= 1
    return layers


def part_layers(num_layers: int, num_parts: int, split: tuple[int, ...] = ()) -> NDArray[np.int64]:
    """Layers of each part of the model in its order: cut by hand, by stage or by chunk, else as even as can be.

    >>> part_layers(22, 8, (4, 6, 6, 6)).tolist()
    [2, 3, 3, 3, 2, 3, 3, 3]
    """
    if not split:
        return cut_layers(num_layers, num_parts)
    chunks = max(1, num_parts // len(split))
    return np.tile(np.array(split, np.int64) // chunks, chunks)


def stage_depths(model: Model, space: Space) -> tuple[Column, Column, Column]:
    """Layers of the deepest stage before the last, of the last, and of the mean one, for every layout."""
    deepest = np.ceil(model.num_layers / space.pp)
    on_last = np.maximum(0.0, model.num_layers - deepest * (space.pp - 1.0))
    mean = (deepest * (space.pp - 1.0) + on_last) / space.pp
    for which in np.unique(space.split[space.split > 0]):
        here = space.split == which
        by_part = np.array(space.splits[int(which)])
        for pp in np.unique(space.pp[here]):
            rows = here & (space.pp == pp)
            stages = by_part.reshape(-1, int(pp)).sum(axis=0)
            deepest[rows] = stages[:-1].max() if stages.size > 1 else stages[0]
            on_last[rows] = stages[-1] if stages.size > 1 else 0.0
            mean[rows] = stages.mean()
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
    ends = np.cumsum(part_layers(model.num_layers, pp * vpp, split))
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


def stage_runs(model: Model, pp: int, vpp: int = 1, split: tuple[int, ...] = ()) -> tuple[Run, ...]:
    """The stages grouped into runs that hold the same; first and last stand alone, for they hold the tables."""
    cut = stage_layers(model, pp, vpp, split)
    starts = [
        stage for stage in range(pp) if stage in (0, 1, pp - 1) or dict(cut[stage]) != dict(cut[stage - 1])
    ]
    ends = [*(start - 1 for start in starts[1:]), pp - 1]
    return tuple(
        Run(first=start, last=end, layers=cut[start]) for start, end in zip(starts, ends, strict=True)
    )


def in_flight(
    schedule: str, num_micro: Column, pp: Column | float, vpp: Column | float, stage: int
) -> Column:
    """Micro-batches whose activations a stage holds at its fullest.

        1F1B         min(m, pp − stage)
        interleaved  min(m, (2·(pp − 1 − stage) + (vpp − 1)·pp + 1)/vpp),  at stage 0: pp·(1 + (pp − 1)/(pp·vpp))
        GPipe        m
        zb           min(m, pp) on every stage, as its weight gradients wait
        DualPipe     min(m, pp + 1)

    Reference: Narayanan et al. (2021) § 2.2; Qi et al. (2023), Zero Bubble; DeepSeek-V3 (2024), table 2.

    >>> in_flight("1f1b", np.array([32.0]), 8, 1, 0), in_flight("1f1b", np.array([32.0]), 8, 4, 0)
    (array([8.]), array([9.75]))
    """
    if schedule not in SCHEDULES:
        raise UnknownNameError(
            "schedule", schedule, SCHEDULES, hint=f"one of {', '.join(SCHEDULES)}", field="schedule"
        )
    plain = np.asarray(pp - stage, dtype=np.float64)
    dealt = (2.0 * (plain - 1.0) + (vpp - 1.0) * pp + 1.0) / vpp
    either = np.where(np.asarray(vpp) > 1, dealt, plain)
    held: dict[str, Column] = {
        "1f1b": either,
        "interleaved": either,
        "gpipe": num_micro,
        "zb": np.asarray(pp, dtype=np.float64),
        "dualpipe": np.asarray(pp, dtype=np.float64) + 1.0,
    }
    return np.minimum(num_micro, held[schedule])
