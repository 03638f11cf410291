"""One micro-batch on one layer as figures that can be opened: its kernels and its exchange, down to facts and fits.

Kernels of a kind are one figure: their least time on this chip, max(FLOP / peak, bytes / bandwidth), over the share of
that bound which kernels of such shapes reach, times what the framework adds to kernels alone.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from datahall.breakdown import (
    Breakdown,
    derived,
    fitted,
    given,
    maximum,
    modelled,
    product,
    quotient,
    total,
)
from datahall.cluster.cluster import Cluster
from datahall.silicon.calibration import calibrate
from datahall.training.layout.layout import Layout
from datahall.training.leaf import Degrees, bandwidth, counted, dense_peak, part_of_bandwidth
from datahall.training.step.attention import score_traffic
from datahall.training.step.exchange_figure import ExchangeFigures
from datahall.training.step.experts import bias_traffic, is_routed, moe_share
from datahall.training.step.framework import Framework, attention_factor
from datahall.training.step.launch import OUTSIDE, sync_time
from datahall.training.step.micro_batch import layout_operators
from datahall.training.step.step import Job, accumulation_time, operator_times
from datahall.workload.operator import Attention, Operator, Stream
from datahall.workload.parameters import count_parameters

STREAMED = "element-wise work streams at about this share of the datasheet's bandwidth"


class Kernels(msgspec.Struct, kw_only=True):
    """Kernels of one kind in one format, all together: what they take in the framework, their FLOP and bytes."""

    time_s: float = 0.0
    flop: float = 0.0
    moved_bytes: float = 0.0


class LayerFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One micro-batch, forward and backward: on a layer in the mean, and before and after the layers."""

    layer: Breakdown
    embedding: Breakdown
    head: Breakdown
    exchange: Breakdown | None  # of a layer, what nothing hides


def layer_figures(
    job: Job, cluster: Cluster, layout: Layout, framework: Framework, degrees: Degrees | None = None
) -> LayerFigures:
    """The kernels and the exchange of one micro-batch."""
    exchange = ExchangeFigures(job, cluster, layout, framework, degrees or Degrees(layout))
    operators = layout_operators(job, framework, layout, cluster.chip)
    timed = list(operator_times(job, cluster, operators, framework))
    if job.adapters_only:
        operators = tuple(one for one in operators if not one.name.endswith("_wgrad"))
    rows = [(one, float(np.ravel(time)[0])) for one, (_, time) in zip(operators, timed, strict=True)]
    inside = [row for row in rows if not row[0].name.startswith(OUTSIDE)]
    first = [row for row in rows if row[0].name.startswith("embedding")]
    last = [
        row for row in rows if row[0].name.startswith(OUTSIDE) and not row[0].name.startswith("embedding")
    ]
    context = _Context(exchange)
    return LayerFigures(
        layer=total(
            "one layer, one micro-batch", [*context.kinds(inside, job.model.num_layers), *context.once()],
            "forward and backward; the mean over all layers",
        ),
        embedding=total("embedding, one micro-batch", context.kinds(first, 1)),
        head=total("final norm, head and loss, one micro-batch", context.kinds(last, 1)),
        exchange=exchange.layer(),
    )  # fmt: skip


class _Context:
    """What every figure of a layer needs."""

    def __init__(self, exchange: ExchangeFigures) -> None:
        self.job, self.cluster, self.layout = exchange.job, exchange.cluster, exchange.layout
        self.framework, self.space, self.degrees = exchange.framework, exchange.space, exchange.degrees
        self.load = exchange.load

    def kinds(self, rows: Iterable[tuple[Operator, float]], num_layers: int) -> list[Breakdown]:
        """Kernels by kind and format, the longest first."""
        found: dict[tuple[str, str], Kernels] = {}
        for one, time_s in rows:
            group = found.setdefault((_kind(one), one.precision), Kernels())
            moved = float(np.ravel(one.read_bytes + one.write_bytes)[0])
            group.time_s += time_s / num_layers
            group.flop += one.count * float(np.ravel(one.flop)[0]) / num_layers
            group.moved_bytes += one.count * moved / num_layers
        made = [self._kind(kind, precision, group) for (kind, precision), group in found.items()]
        return sorted(made, key=lambda one: -one.value)

    def _kind(self, kind: str, precision: str, group: Kernels) -> Breakdown:
        framework, chip, model = self.framework, self.cluster.chip, self.job.model
        how = f"of {kind} on one chip, counted operator by operator"
        sizes = (
            given("tokens of a sequence", self.job.seq, "count"),
            self.degrees.number("micro-batch"),
        )
        moved = counted(model, "bytes", group.moved_bytes, "bytes", how, *sizes)
        bounds = [quotient("moving their bytes", moved, bandwidth(chip), "s")]
        if group.flop:
            flop = counted(model, "FLOP", group.flop, "flop", how, *sizes)
            bounds.insert(0, quotient("their arithmetic", flop, dense_peak(chip, precision), "s"))
        bound = maximum("least time", bounds)
        factors = [self._own(framework.compute_factor, "kernels in the framework over kernels alone")]
        if kind.startswith("attention"):
            slower = attention_factor(framework, chip.family)
            factors.append(self._own(slower, "its attention over that of the kernels measured"))
        if kind.startswith("routed"):
            factors.append(self.load())
        alone_s = group.time_s / (
            factors[0].value * (factors[1].value if kind.startswith("attention") else 1.0)
        )
        constants = calibrate(chip)
        how = f"kernel by kernel, with constants fitted on {constants.constants.fitted_on}"
        reached = modelled(
            "share of the bound that they reach", bound.value / alone_s, "fraction", how, bound
        ).with_note(basis=constants.level, sources=(constants.constants.source,))
        return product(
            f"{kind}, {precision}", [quotient("kernels alone", bound, reached, "s"), *factors], "s"
        )

    def _own(self, value: float, name: str) -> Breakdown:
        return fitted(name, value, "ratio", f"runs of {self.framework.title}", self.framework.source)

    def once(self) -> list[Breakdown]:
        """What a layer takes besides its operators."""
        job, cluster, framework, layout = self.job, self.cluster, self.framework, self.layout
        tp, cp, batch = (np.array([float(one)]) for one in (layout.tp, layout.cp, layout.micro_batch))
        found = []
        if not framework.flash_attention:
            again = "none" if layout.modules and "core_attn" not in layout.modules else layout.recompute
            time_s = float(score_traffic(job, cluster, tp, cp, batch, again)[0])
            found.append(self._streamed("scores written and read back", time_s))
        if not framework.fused_experts and (time_s := float(bias_traffic(job, cluster, tp, cp, batch)[0])):
            found.append(self._streamed("unfused biases of experts", time_s, self.load()))
        if time_s := float(accumulation_time(job, cluster, self.space, framework)[0]):
            rate = part_of_bandwidth(cluster.chip, 0.9, STREAMED)
            size = self._accumulated()
            found.append(quotient("adding up weight gradients", size, rate, "s"))
        if time_s := sync_time(job, framework):
            host = self._own(framework.host_s, "host time to launch an operator")
            host = msgspec.structs.replace(host, unit="s")
            how = "layers with routed experts over all"
            routed = counted(job.model, "share of layers with experts", moe_share(job), "fraction", how)
            found.append(product("waiting for the host to read the routing", [routed, host], "s"))
        return found

    def _accumulated(self) -> Breakdown:
        """Weight gradients of a layer on one chip, added to those of earlier micro-batches: read and written."""
        job = self.job
        counts = count_parameters(job.model)
        inside = float(counts.total - counts.expert - counts.embedding - counts.head) / job.model.num_layers
        how = "a layer in the mean"
        dense = counted(job.model, "parameters besides routed experts", inside, "parameters", how)
        parts = [quotient("dense", dense, self.degrees.number("tp"), "parameters")]
        if counts.expert:
            mean = float(counts.expert) / job.model.num_layers
            routed = counted(job.model, "parameters of routed experts", mean, "parameters", how)
            ways = self.degrees.expert_ways()
            parts.append(quotient("expert", routed, ways, "parameters"))
        each = self._own(self.framework.gradient_bytes, "bytes of a gradient")
        both = derived("read and written", 2, "count")
        return product(
            "gradients read and written", [total("weights of a layer", parts), each, both], "bytes"
        )

    def _streamed(self, name: str, time_s: float, *more: Breakdown) -> Breakdown:
        rate = part_of_bandwidth(self.cluster.chip, 0.8, STREAMED)
        how = "passes over each value, unfused"
        size = counted(self.job.model, "bytes moved", time_s * rate.value, "bytes", how, *(
            given("tokens of a sequence", self.job.seq, "count"),
            self.degrees.number("micro-batch"),
        ))  # fmt: skip
        factor = self._own(self.framework.compute_factor, "kernels in the framework over kernels alone")
        return product(name, [quotient("at that rate", size, rate, "s"), factor, *more], "s")


def _kind(one: Operator) -> str:
    if is_routed(one):
        return "routed experts"
    if isinstance(one.shape, Attention):
        return "attention, backward" if one.backward else "attention"
    return "element-wise work" if isinstance(one.shape, Stream) else "matrix products"
