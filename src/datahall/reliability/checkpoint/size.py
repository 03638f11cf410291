"""What a checkpoint holds: the weights and the optimizer's states, each distinct value once.

    bytes = (weight + master + moments) · parameters

Of a model whose weights are frozen the adapters alone are written: the rest is what the run began with.

Replicas hold the same weights, and under ZeRO shares of the states: together they write each value once, cut evenly
among those that hold it.  Gradients are not kept.
"""

from __future__ import annotations

import msgspec

from datahall.breakdown import Breakdown, assumed, derived, product, total
from datahall.training.adapters.adapters import trained_parameters
from datahall.training.layout.layout import Layout
from datahall.training.memory.bookkeeping import Bookkeeping
from datahall.training.step.step import Job
from datahall.workload.memory.state import chip_parameters
from datahall.workload.parameters import count_parameters


class CheckpointSize(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of one checkpoint: of all chips together, and of the chip that writes most."""

    num_parameters: int
    weight_bytes: float  # of one parameter
    state_bytes: float  # of one parameter, of the optimizer
    chip_bytes: float
    recipe: str
    of: str = "the model"  # whose parameters they are

    @property
    def total_bytes(self) -> float:
        return self.num_parameters * self.bytes_per_parameter

    @property
    def bytes_per_parameter(self) -> float:
        return self.weight_bytes + self.state_bytes

    @property
    def figure(self) -> Breakdown:
        """The whole, from what a parameter takes."""
        why = f"state recipe {self.recipe}"
        each = total(
            "of a parameter",
            [
                assumed("weight", self.weight_bytes, "bytes", why),
                assumed("states of the optimizer", self.state_bytes, "bytes", why),
            ],
        )
        count = derived(f"parameters of {self.of}", self.num_parameters, "count")
        return product("checkpoint", [each, count], "bytes")


def checkpoint_size(job: Job, layout: Layout, books: Bookkeeping) -> CheckpointSize:
    """What is written of a job under a layout.

    >>> from datahall.catalog import load
    >>> from datahall.training.memory.bookkeeping import BOOKS
    >>> job = Job(model=load().model("llama-3.1-405b"), seq=8192, global_batch=1024)
    >>> size = checkpoint_size(job, Layout(tp=8, pp=16, dp=128), BOOKS["nemo"])
    >>> round(size.total_bytes / 1e12, 2), round(size.chip_bytes / 1e6)
    (5.68, 372)
    """
    counts, recipe = count_parameters(job.model), books.recipe
    if job.adapters is not None:
        return _adapters(job, layout, books)
    chip = chip_parameters(counts, tp=layout.tp, pp=layout.pp, ep=layout.ep)
    sharers = layout.dp * layout.cp
    expert_sharers = max(1, sharers * layout.tp // max(layout.ep, layout.tp))
    kept = recipe.weight + recipe.optimizer
    return CheckpointSize(
        num_parameters=counts.total,
        weight_bytes=recipe.weight,
        state_bytes=recipe.optimizer,
        chip_bytes=kept * (float(chip.dense) / sharers + float(chip.expert) / expert_sharers),
        recipe=books.state or "of the framework",
    )


def _adapters(job: Job, layout: Layout, books: Bookkeeping) -> CheckpointSize:
    """Of adapters alone, cut as evenly as the chips that hold them differ."""
    num, kept = round(trained_parameters(job)), books.recipe.weight + books.recipe.optimizer
    return CheckpointSize(
        num_parameters=num,
        weight_bytes=books.recipe.weight,
        state_bytes=books.recipe.optimizer,
        chip_bytes=kept * num / layout.num_chips,
        recipe=books.state or "of the framework",
        of="the adapters",
    )
