"""One micro-batch on one layer as figures that can be opened: its kernels and its exchange, down to facts and fits.

Kernels of a kind are one figure: their least time on this chip, max(FLOP / peak, bytes / bandwidth), over the share of
that bound which kernels of such shapes reach, times what the framework adds to kernels alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from datahall.breakdown import Breakdown, assumed, derived, fitted, given, maximum, product, quotient, total
from datahall.cluster.cluster import Cluster
from datahall.silicon.calibration import calibrate
from datahall.training.layout.layout import Layout, Space
from datahall.training.leaf import bandwidth, dense_peak, exchange_time, of_model, part_of_bandwidth
from datahall.training.step.attention import score_traffic
from datahall.training.step.experts import (
    EXCHANGES,
    bias_traffic,
    expert_exchange,
    is_routed,
    layout_load,
    moe_share,
)
from datahall.training.step.framework import Framework, attention_factor
from datahall.training.step.launch import OUTSIDE, sync_time
from datahall.training.step.micro_batch import layout_operators
from datahall.training.step.step import (
    CONTEXT_EXPOSED,
    Job,
    accumulation_time,
    context_exchange,
    operator_times,
    reduction_alone,
)
from datahall.workload.operator import Attention, Operator, Stream

LAYOUT = "of the layout"
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


def layer_figures(job: Job, cluster: Cluster, layout: Layout, framework: Framework) -> LayerFigures:
    """The kernels and the exchange of one micro-batch."""
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
    context = _Context(job, cluster, layout, framework)
    return LayerFigures(
        layer=total(
            "one layer, one micro-batch", [*context.kinds(inside, job.model.num_layers), *context.once()],
            "forward and backward; the mean over all layers",
        ),
        embedding=total("embedding, one micro-batch", context.kinds(first, 1)),
        head=total("final norm, head and loss, one micro-batch", context.kinds(last, 1)),
        exchange=context.exchange(),
    )  # fmt: skip


class _Context:
    """What every figure of a layer needs."""

    def __init__(self, job: Job, cluster: Cluster, layout: Layout, framework: Framework) -> None:
        self.job, self.cluster, self.layout, self.framework = job, cluster, layout, framework
        self.space = Space.of(layout)
        self.load = layout_load(job, layout)

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
        counted = f"of {kind} on one chip, counted operator by operator"
        bounds = [
            quotient("moving their bytes", of_model(model, "bytes", group.moved_bytes, "bytes", counted),
                     bandwidth(chip), "s"),
        ]  # fmt: skip
        if group.flop:
            flop = of_model(model, "FLOP", group.flop, "flop", counted)
            bounds.insert(0, quotient("their arithmetic", flop, dense_peak(chip, precision), "s"))
        bound = maximum("least time", bounds)
        factors = [self._own(framework.compute_factor, "kernels in the framework over kernels alone")]
        if kind.startswith("attention"):
            slower = attention_factor(framework, chip.family)
            factors.append(self._own(slower, "its attention over that of the kernels measured"))
        if kind.startswith("routed"):
            factors.append(self._load())
        alone_s = group.time_s / (
            factors[0].value * (factors[1].value if kind.startswith("attention") else 1.0)
        )
        constants = calibrate(chip)
        reached = fitted(
            "share of the bound that they reach", bound.value / alone_s, "fraction", constants.constants.fitted_on,
            constants.constants.source, basis=constants.level,
        )  # fmt: skip
        return product(
            f"{kind}, {precision}", [quotient("kernels alone", bound, reached, "s"), *factors], "s"
        )

    def _own(self, value: float, name: str) -> Breakdown:
        return fitted(name, value, "ratio", f"runs of {self.framework.title}", self.framework.source)

    def _load(self) -> Breakdown:
        if self.job.imbalance is not None:
            return derived(
                "load of the busiest rank over the mean", self.load, "ratio", "at most the ranks there are"
            )
        why = "scatter of chance alone, as where routing is forced even"
        return assumed("load of the busiest rank over the mean", self.load, "ratio", why)

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
            found.append(self._streamed("unfused biases of experts", time_s, self._load()))
        if time_s := float(accumulation_time(job, cluster, self.space, framework)[0]):
            rate = part_of_bandwidth(cluster.chip, 0.9, STREAMED)
            size = of_model(
                job.model, "gradients read and written", time_s * rate.value, "bytes",
                f"weights of a layer on one chip, {framework.gradient_bytes:g} B each, both ways",
            )  # fmt: skip
            found.append(quotient("adding up weight gradients", size, rate, "s"))
        if time_s := sync_time(job, framework):
            host = self._own(framework.host_s, "host time to launch an operator")
            host = msgspec.structs.replace(host, unit="s")
            routed = of_model(job.model, "share of layers with experts", moe_share(job), "fraction")
            found.append(product("waiting for the host to read the routing", [routed, host], "s"))
        return found

    def _streamed(self, name: str, time_s: float, *more: Breakdown) -> Breakdown:
        rate = part_of_bandwidth(self.cluster.chip, 0.8, STREAMED)
        size = of_model(
            self.job.model, "bytes moved", time_s * rate.value, "bytes", "passes over each value, unfused"
        )
        factor = self._own(self.framework.compute_factor, "kernels in the framework over kernels alone")
        return product(name, [quotient("at that rate", size, rate, "s"), factor, *more], "s")

    # -- exchange ------------------------------------------------------------------------------------------------------

    def exchange(self) -> Breakdown | None:
        """Exchange of a layer that nothing hides; None where there is none."""
        parts = [one for one in (self._tensor(), self._sequence(), self._experts()) if one is not None]
        return total("exchange of one layer, one micro-batch", parts) if parts else None

    def _tokens(self, more: Sequence[Breakdown] = ()) -> Breakdown:
        """Values that one exchange moves: 16-bit vectors of a micro-batch's tokens."""
        job, layout = self.job, self.layout
        parts = [
            given("tokens of a sequence", job.seq, "count"),
            derived("micro-batch", layout.micro_batch, "count", LAYOUT),
            of_model(job.model, "hidden width", job.model.hidden),
            assumed("bytes of a value", 2.0, "bytes", "activations travel in 16 bits"), *more,
        ]  # fmt: skip
        whole = product("activations of a micro-batch", parts, "bytes")
        return whole if layout.cp == 1 else quotient(
            "activations of a chip", whole, derived("chips that share a sequence", layout.cp, "count"), "bytes"
        )  # fmt: skip

    def _tensor(self) -> Breakdown | None:
        job, cluster, framework, layout = self.job, self.cluster, self.framework, self.layout
        whole_s = float(reduction_alone(job, cluster, self.space)[0])
        if not whole_s * framework.tensor_exposed:
            return None
        count = 6.0 if layout.recompute == "full" else 4.0
        why = "after each of the two blocks, forward and backward" + (
            ", and forward again" if count == 6 else ""
        )
        moved = product(
            "moved in a layer",
            [assumed("all-reduces of a layer", count, "count", why), self._tokens()],
            "bytes",
        )
        exposed = self._own(framework.tensor_exposed, "share that nothing hides")
        whole = exchange_time("alone", moved, whole_s, cluster, layout.tp, 1)
        return product("tensor-parallel exchange", [whole, exposed], "s")

    def _sequence(self) -> Breakdown | None:
        job, cluster, layout = self.job, self.cluster, self.layout
        shown_s = float(context_exchange(job, cluster, self.space)[0])
        if not shown_s:
            return None
        model, full = job.model, layout.recompute == "full"
        if layout.context == "ring":
            count, share = (4.0 if full else 3.0), CONTEXT_EXPOSED
            heads, what = 2.0 * model.num_kv_heads, "keys and values pass by, once forward and twice backward"
            why = "an estimate: no public run isolates what attention on the blocks at hand hides"
        else:
            count, share = (3.0 if full else 2.0), 1.0
            what = "queries, keys and values for whole heads, and the output back"
            heads, why = 2.0 * model.num_heads + 2.0 * model.num_kv_heads, "attention waits for it"
        values = of_model(model, "values of a token", heads * model.head_dim / layout.tp)
        moved = product(
            "moved in a layer",
            [
                values, given("tokens of a sequence", job.seq, "count"),
                derived("micro-batch", layout.micro_batch, "count", LAYOUT),
                assumed("bytes of a value", 2.0, "bytes", "activations travel in 16 bits"),
                assumed("times in a layer", count, "count", what),
            ],
            "bytes",
        )  # fmt: skip
        whole = exchange_time("alone", moved, shown_s / share, cluster, layout.cp, layout.tp)
        return product(
            "context-parallel exchange",
            [whole, assumed("share that nothing hides", share, "fraction", why)],
            "s",
        )

    def _experts(self) -> Breakdown | None:
        job, cluster, framework, layout = self.job, self.cluster, self.framework, self.layout
        shown_s = float(expert_exchange(job, cluster, self.space, framework)[0])
        if not shown_s or job.model.moe is None:
            return None
        copies = of_model(job.model, "experts of a token", job.model.moe.top_k)
        routed = of_model(job.model, "share of layers with experts", moe_share(job), "fraction")
        spread = layout.tp if layout.sequence_parallel else 1
        times = assumed("exchanges", EXCHANGES, "count", "dispatch and combine, forward and backward")
        moved = quotient(
            "moved in a layer", product("token copies", [self._tokens((copies,)), times, routed], "bytes"),
            derived("chips that share a token's vector", spread, "count"), "bytes",
        )  # fmt: skip
        load = self._load()
        whole_s = shown_s / (framework.expert_exposed * load.value)
        alone = exchange_time("alone", moved, whole_s, cluster, layout.ep, 1)
        exposed = self._own(framework.expert_exposed, "share that nothing hides")
        return product("expert exchange", [alone, exposed, load], "s")


def _kind(one: Operator) -> str:
    if is_routed(one):
        return "routed experts"
    if isinstance(one.shape, Attention):
        return "attention, backward" if one.backward else "attention"
    return "element-wise work" if isinstance(one.shape, Stream) else "matrix products"
