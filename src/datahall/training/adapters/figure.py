"""The state of a stage whose weights are frozen, as figures that can be opened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from datahall.breakdown import Breakdown, assumed, given, minimum, product, quotient, total
from datahall.cluster.collective import group_figure
from datahall.training.adapters.adapters import NF4, FrozenBytes, frozen_bytes
from datahall.training.adapters.state import Held, held, largest_unit
from datahall.training.layout.columns import Space
from datahall.training.leaf import Degrees, block_widths, counted, dimension, expert_widths
from datahall.training.step.compression import kept_column
from datahall.training.step.exchange import gathered_bytes
from datahall.workload.adapters.count import ADAPTED
from datahall.workload.parameters import count_parameters

if TYPE_CHECKING:
    from datahall.cluster.cluster import Cluster
    from datahall.training.memory.bookkeeping import Bookkeeping
    from datahall.training.step.framework import Framework
    from datahall.training.step.stage import Run
    from datahall.training.step.step import Job


def adapters_leaf(job: Job, degrees: Degrees, values: float, where: str) -> Breakdown:
    """Parameters of adapters, some where: rank times the widths of what they stand beside."""
    assert job.adapters is not None
    rank = given("rank of the adapters", job.adapters.rank, "count", field="lora")
    beside = " and ".join(sorted(ADAPTED[job.adapters.targets]))
    widths = counted(
        job.model, "widths that they join", values / job.adapters.rank, "count", f"{where}, beside {beside}",
        *block_widths(job.model), degrees.number("tp"), degrees.number("stages"),
    )  # fmt: skip
    return product("parameters of the adapters", [rank, widths], "parameters")


def trained_leaf(job: Job, degrees: Degrees, on_chip: Breakdown) -> Breakdown:
    """Adapters on a chip: the share that they are of all parameters besides routed experts."""
    assert job.adapters is not None
    counts = count_parameters(job.model)
    every = counted(
        job.model, "parameters besides routed experts", float(counts.total - counts.expert), "parameters",
        "of the model", *block_widths(job.model),
    )  # fmt: skip
    own = adapters_leaf(job, degrees, job.adapters.parameters(job.model), "of the model")
    share = quotient("share that is trained", own, every, "fraction")
    return product("adapters of a chip", [on_chip, share], "parameters")


def gathered_frozen(
    job: Job,
    cluster: Cluster,
    framework: Framework,
    shares: Sequence[tuple[str, Breakdown, Breakdown, float, int]],
) -> Breakdown:
    """Frozen weights and adapters gathered, fully sharded, each in its own format."""
    parts, each = [], gathered_bytes(job, job.books(framework))
    for (name, whole, sharers, _, stride), value in zip(shares, each, strict=False):
        if sharers.value == 1:
            continue
        why = "frozen weights in the mean, and adapters"
        sent = product("weights", [whole, assumed("bytes of a weight", value, "bytes", why)], "bytes")
        one = group_figure(cluster, "all-gather", sent, int(sharers.value), stride)
        parts.append(one.named(f"all-gather, {name}"))
    return parts[0] if len(parts) == 1 else total("all-gather", parts)


class TunedFigures:
    """Weights, gradients and optimizer states of one chip of a stage."""

    def __init__(
        self, job: Job, degrees: Degrees, run: Run, books: Bookkeeping, head_values: float, schedule: str
    ) -> None:
        self.job, self.degrees, self.run, self.books = job, degrees, run, books
        self.layout, self.space = degrees.layout, Space.of(degrees.layout)
        rows = np.array([head_values])
        self.held: Held = held(job, self.space, run, rows, schedule)
        self.each: FrozenBytes = frozen_bytes(job, books)
        self.unit_bytes = float(largest_unit(job, self.space, run, rows, self.each)[0])

    def weights(self) -> Breakdown:
        """What is frozen, in its own format, and the adapters."""
        return total("weights", [self._frozen(), self._trained("weights of the adapters", "weight", 3)])

    def gradients(self) -> Breakdown:
        """Of the adapters; compression keeps its error beside them."""
        found = self._trained("gradients of the adapters", "gradient", 2)
        error = float(kept_column(self.space.compression)[0])
        if not error:
            return total("gradients", [found])
        fed_back = assumed(
            "bytes of an error", error, "bytes", "what compression feeds back in the next step"
        )
        kept = product("error of compression", [self._adapters(), fed_back], "bytes")
        return total("gradients", [found, kept])

    def optimizer(self) -> Breakdown:
        """Of the adapters."""
        if self.space.offloaded("optimizer")[0]:
            return assumed("optimizer states", 0.0, "bytes", "they lie outside the chip")
        return total("optimizer states", [self._trained("states of the adapters", "optimizer", 1)])

    def _adapters(self) -> Breakdown:
        return adapters_leaf(self.job, self.degrees, float(self.held.adapters[0]), "of the stage")

    def _trained(self, name: str, part: str, from_zero: int) -> Breakdown:
        recipe = self.books.recipe
        why = f"state recipe {self.books.state or 'of the framework'}"
        share = self._adapters()
        if self.layout.zero >= from_zero:
            ranks = self.degrees.sharers("ranks that share them")
            share = quotient("share of the adapters", share, ranks, "parameters")
        each = assumed("bytes of a parameter", float(getattr(recipe, part)), "bytes", why)
        return product(name, [share, each], "bytes")

    def _frozen(self) -> Breakdown:
        dense, expert = self._dense(), self._expert()
        whole = total("frozen, all of the stage", [one for one in (dense, expert) if one is not None])
        if self.layout.zero < 3 and not self.space.offloaded("parameters")[0]:
            return whole.named("frozen weights")
        if self.layout.zero < 3:
            return minimum("frozen weights", [whole, self._gathered(whole)])
        parts = [quotient("own share", dense, self.degrees.sharers("ranks that share them"), "bytes")]
        if expert is not None:
            ranks = self.degrees.expert_sharers("ranks that share them")
            parts.append(quotient("own share of the experts", expert, ranks, "bytes"))
        if self.space.sharers[0] > 1:
            parts.append(self._gathered(whole))
        least = [total("spread, with what is gathered", parts), whole]
        if self.space.offloaded("parameters")[0]:
            least.append(self._gathered(whole))
        return minimum("frozen weights", least)

    def _gathered(self, whole: Breakdown) -> Breakdown:
        unit = counted(
            self.job.model, "largest layer, or tables", self.unit_bytes, "bytes", "of the stage",
            *self._widths(), self.degrees.number("tp"),
        )  # fmt: skip
        two = assumed("units at once", 2, "count", "one at work and the next")
        return minimum("gathered", [whole, product("two units", [two, unit], "bytes")])

    def _widths(self) -> list[Breakdown]:
        return [dimension(self.job.model, "vocab", "vocabulary"), *block_widths(self.job.model)]

    def _dense(self) -> Breakdown:
        linear = self._values("weights of linear layers", float(self.held.linear[0]))
        wide = self._values("tables, norms and routers", float(self.held.wide[0]))
        parts = [product("linear layers", [linear, self._linear_bytes()], "bytes")] if linear.value else []
        as_multiplied = assumed(
            "bytes of a value", self.each.wide_bytes, "bytes", "as it is multiplied: nothing updates it"
        )
        parts.append(product("never quantised", [wide, as_multiplied], "bytes"))
        return total("frozen, besides routed experts", parts)

    def _expert(self) -> Breakdown | None:
        values = float(self.held.expert[0])
        if not values:
            return None
        widths = [*expert_widths(self.job.model), self.degrees.expert_ways()]
        held_here = counted(
            self.job.model, "weights of routed experts", values, "parameters", "of the stage", *widths
        )
        return product("frozen, routed experts", [held_here, self._linear_bytes()], "bytes")

    def _linear_bytes(self) -> Breakdown:
        name, each = "bytes of a frozen weight", self.each.linear_bytes
        if self.job.adapters is not None and self.job.adapters.quantised:
            why = "4 bits, 8 for the scale of 64 values, 32 for the scale of 256 scales"
            return assumed(name, each, "bytes", why, NF4)
        return assumed(name, each, "bytes", "as it is multiplied: nothing updates it")

    def _values(self, name: str, value: float) -> Breakdown:
        tp, stages = self.degrees.number("tp"), self.degrees.number("stages")
        return counted(self.job.model, name, value, "parameters", "of the stage", *self._widths(), tp, stages)
