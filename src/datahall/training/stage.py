"""How a pipeline cuts the layers of a model, and how many micro-batches a stage holds at once."""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np

from datahall.catalog.model import Layer, Model
from datahall.errors import UnknownNameError
from datahall.training.layout import Column
from datahall.training.schedule import NAMES
from datahall.training.stage_work import cut_layers

Groups = tuple[tuple[Layer, int], ...]  # each kind of layer with how many there are


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """Stages in a row that hold the same layers; the first of them holds the most micro-batches."""

    first: int
    last: int
    layers: Groups

    @property
    def num_layers(self) -> int:
        return sum(count for _, count in self.layers)


def stage_layers(model: Model, pp: int, vpp: int = 1) -> tuple[Groups, ...]:
    """The layers of every stage: pp · vpp chunks as even as can be, dealt out in turn.

    >>> from datahall.catalog import load
    >>> [count for (_, count), in stage_layers(load().model("llama-3.1-405b"), pp=8, vpp=8)]
    [15, 16, 16, 16, 16, 16, 16, 15]
    """
    ends = np.cumsum(cut_layers(model.num_layers, pp * vpp))
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


def stage_runs(model: Model, pp: int, vpp: int = 1) -> tuple[Run, ...]:
    """The stages grouped into runs that hold the same; first and last stand alone, for they hold the tables."""
    cut = stage_layers(model, pp, vpp)
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
    if schedule not in NAMES:
        raise UnknownNameError("schedule", schedule, NAMES, hint=f"one of {', '.join(NAMES)}")
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
