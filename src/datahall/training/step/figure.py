"""One micro-batch on one layer as figures that can be opened: its kernels and its exchange, down to facts and fits.

Kernels of a kind are one figure: their least time on this chip, max(FLOP / peak, bytes / bandwidth), over `efficiency`,
what the kernel model expects of all of them together, times what the framework adds to kernels alone.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from datahall.breakdown import (
    Breakdown,
    assumed,
    derived,
    fitted,
    given,
    maximum,
    modelled,
    product,
    quotient,
    total,
)
from datahall.catalog.entries.chip import Chip
from datahall.cluster.cluster import Cluster
from datahall.silicon.calibration import calibrate
from datahall.training.layout.layout import Layout
from datahall.training.leaf import (
    Degrees,
    bandwidth,
    block_widths,
    counted,
    dense_peak,
    dimension,
    expert_widths,
    part_of_bandwidth,
)
from datahall.training.step.attention import BACKWARD_ATTENTION, attention_share, score_passes
from datahall.training.step.exchange_figure import ExchangeFigures
from datahall.training.step.experts import OUTPUT_PASSES, WIDTH_PASSES, is_routed
from datahall.training.step.framework import Framework, attention_factor
from datahall.training.step.launch import OUTSIDE, sync_time
from datahall.training.step.micro_batch import layout_operators
from datahall.training.step.passes import ACCUMULATION_SHARE, STREAM_SHARE
from datahall.training.step.step import Job, accumulation_time, operator_times, operators_run
from datahall.workload.operator import Attention, Operator, Stream
from datahall.workload.parameters import count_parameters

STREAMED = "element-wise work streams at about this share of the datasheet's bandwidth"
BACKWARD = "attention, backward"


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
    operators = operators_run(job, operators)
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
        embedding=total("embedding, one micro-batch", context.kinds(first)),
        head=total("final norm, head and loss, one micro-batch", context.kinds(last)),
        exchange=exchange.layer(),
    )  # fmt: skip


class _Context:
    """What every figure of a layer needs."""

    def __init__(self, exchange: ExchangeFigures) -> None:
        self.job, self.cluster, self.layout = exchange.job, exchange.cluster, exchange.layout
        self.framework, self.space, self.degrees = exchange.framework, exchange.space, exchange.degrees
        self.exchange, self.load = exchange, exchange.load

    def kinds(self, rows: Iterable[tuple[Operator, float]], num_layers: int = 0) -> list[Breakdown]:
        """Kernels by kind and format, the longest first: of a layer in the mean, or outside the layers."""
        over = num_layers or 1
        found: dict[tuple[str, str], Kernels] = {}
        for one, time_s in rows:
            group = found.setdefault((_kind(one), one.precision), Kernels())
            moved = float(np.ravel(one.read_bytes + one.write_bytes)[0])
            group.time_s += time_s / over
            group.flop += one.count * float(np.ravel(one.flop)[0]) / over
            group.moved_bytes += one.count * moved / over
        made = [
            self._kind(kind, precision, group, self._sizes(kind, inside=num_layers > 0))
            for (kind, precision), group in found.items()
        ]
        return sorted(made, key=lambda one: -one.value)

    def _sizes(self, kind: str, *, inside: bool) -> list[Breakdown]:
        """What decides the sizes of kernels of a kind."""
        model, number = self.job.model, self.degrees.number
        found = [
            given("tokens of a sequence", self.job.seq, "count", field="seq"),
            number("micro-batch"),
            number("tp"),
        ]
        if self.layout.cp > 1:
            found.append(number("cp"))
        found.append(dimension(model, "hidden", "hidden width"))
        if not inside:
            return [*found, dimension(model, "vocab", "vocabulary")]
        found.append(dimension(model, "num_layers", "layers"))
        if kind.startswith("routed"):
            copies = dimension(model, "moe.top_k", "experts of a token")
            return [
                *found,
                copies,
                *expert_widths(model),
                number("expert ranks"),
                self.degrees.expert_chips(),
            ]
        return [*found, *block_widths(model)]

    def _kind(self, kind: str, precision: str, group: Kernels, sizes: list[Breakdown]) -> Breakdown:
        framework, chip = self.framework, self.cluster.chip
        how = f"of {kind} on one chip, counted operator by operator"
        moved = modelled("bytes", group.moved_bytes, "bytes", how, *sizes)
        bounds = [quotient("moving their bytes", moved, bandwidth(chip), "s")]
        if group.flop:
            flop = modelled("FLOP", group.flop, "flop", how, *sizes)
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
        reached = _efficiency(chip, bound.value / alone_s)
        if kind == BACKWARD:
            slower = BACKWARD_ATTENTION[framework.flash_attention]
            reached = reached.with_note(f"{reached.note}; backward in {slower:g} times its forward")
        return product(
            f"{kind}, {precision}", [quotient("kernels alone", bound, reached, "s"), *factors], "s"
        )

    def _own(self, value: float, name: str, unit: str = "ratio") -> Breakdown:
        return fitted(name, value, unit, f"runs of {self.framework.title}", self.framework.source)

    def once(self) -> list[Breakdown]:
        """What a layer takes besides its operators."""
        job, cluster, framework, layout = self.job, self.cluster, self.framework, self.layout
        found = []
        if not framework.flash_attention:
            again = "none" if layout.modules and "core_attn" not in layout.modules else layout.recompute
            found.append(self._streamed("scores written and read back", self._scores(again)))
        if not framework.fused_experts and job.model.moe is not None and job.model.moe.expert_bias:
            found.append(self._streamed("unfused biases of experts", self._biases(), self.load()))
        if accumulation_time(job, cluster, self.space, framework)[0]:
            rate = part_of_bandwidth(cluster.chip, ACCUMULATION_SHARE, STREAMED)
            size = self._accumulated()
            found.append(quotient("adding up weight gradients", size, rate, "s"))
        if sync_time(job, framework):
            host = self._own(framework.host_s, "host time to launch an operator", "s")
            routed = self.exchange.routed()
            found.append(product("waiting for the host to read the routing", [routed, host], "s"))
        return found

    def _shared(self, name: str, parts: list[Breakdown]) -> Breakdown:
        """Values of a micro-batch on one chip."""
        sequences = [
            self.degrees.number("micro-batch"),
            given("tokens of a sequence", self.job.seq, "count", field="seq"),
        ]
        chips = [self.degrees.number(one) for one in ("tp", "cp")]
        whole = product(f"{name} of a micro-batch", [*sequences, *parts], "count")
        return quotient(
            f"{name} of a chip", whole, self.degrees.group("chips that share them", *chips), "count"
        )

    def _scores(self, recompute: str) -> Breakdown:
        """Scores that attention writes to memory and reads back."""
        before = given("tokens of a sequence", self.job.seq, "count", "that a token looks at", field="seq")
        scores = self._shared("scores", [dimension(self.job.model, "num_heads", "query heads"), before])
        moved = score_passes(self.framework, self.job.value_bytes)
        passes = [
            assumed(way, getattr(moved, way), "count", moved.why)
            for way in ("forward", *(("forward",) if recompute != "none" else ()), "backward")
        ]
        parts = [scores, total("times each is moved", passes), self._value()]
        if (share := attention_share(self.job.model)) < 1.0:
            layers = dimension(self.job.model, "num_layers", "layers")
            parts.append(modelled("of layers that have scores", share, "fraction", "by their mixers", layers))
        return product("bytes moved", parts, "bytes")

    def _biases(self) -> Breakdown:
        """Activations of experts that biases and activation functions of their own go over."""
        model, why = self.job.model, "each operation a kernel of its own"
        copies = self._shared("copies", [dimension(model, "moe.top_k", "experts of a token")])
        inner, outer = (
            product(name, [assumed("passes", passes, "count", why), dimension(model, field, width)], "count")
            for name, passes, field, width in (
                ("inside an expert", WIDTH_PASSES, "moe.expert_ffn", "width of an expert"),
                ("of its output", OUTPUT_PASSES, "hidden", "hidden width"),
            )
        )
        values = total("values moved for a copy", [inner, outer])
        return product("bytes moved", [copies, values, self._value(), self.exchange.routed()], "bytes")

    def _accumulated(self) -> Breakdown:
        """Weight gradients of a layer on one chip, added to those of earlier micro-batches: read and written."""
        job = self.job
        counts = count_parameters(job.model)
        inside = float(counts.total - counts.expert - counts.embedding - counts.head) / job.model.num_layers
        how = "a layer in the mean"
        widths = block_widths(job.model)
        dense = counted(job.model, "parameters besides routed experts", inside, "parameters", how, *widths)
        parts = [quotient("dense", dense, self.degrees.number("tp"), "parameters")]
        if counts.expert:
            mean = float(counts.expert) / job.model.num_layers
            widths = expert_widths(job.model)
            routed = counted(job.model, "parameters of routed experts", mean, "parameters", how, *widths)
            ways = self.degrees.expert_ways()
            parts.append(quotient("expert", routed, ways, "parameters"))
        each = self.exchange.gradient()
        both = derived("read and written", 2, "count")
        return product(
            "gradients read and written", [total("weights of a layer", parts), each, both], "bytes"
        )

    def _value(self) -> Breakdown:
        return assumed("bytes of a value", self.job.value_bytes, "bytes", self.job.value_width)

    def _streamed(self, name: str, size: Breakdown, *more: Breakdown) -> Breakdown:
        rate = part_of_bandwidth(self.cluster.chip, STREAM_SHARE, STREAMED)
        factor = self._own(self.framework.compute_factor, "kernels in the framework over kernels alone")
        return product(name, [quotient("at that rate", size, rate, "s"), factor, *more], "s")


def _efficiency(chip: Chip, value: float) -> Breakdown:
    """The share of their bound that the kernel model expects of kernels, all of them together."""
    found = calibrate(chip)
    constants = found.constants
    return fitted("efficiency", value, "fraction", constants.fitted_on, constants.source, basis=found.level)


def _kind(one: Operator) -> str:
    if is_routed(one):
        return "routed experts"
    if isinstance(one.shape, Attention):
        return BACKWARD if one.backward else "attention"
    return "element-wise work" if isinstance(one.shape, Stream) else "matrix products"
