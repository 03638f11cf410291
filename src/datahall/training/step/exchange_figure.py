"""The exchange of a training step as figures that can be opened: each collective down to links, ports and fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TypeAlias

import numpy as np

from datahall.breakdown import (
    Breakdown,
    assumed,
    ceiling,
    derived,
    fact,
    fitted,
    given,
    maximum,
    minimum,
    modelled,
    product,
    quotient,
    total,
)
from datahall.cluster.cluster import Cluster
from datahall.cluster.collective import group_figure, stage_figure
from datahall.training.adapters.figure import gathered_frozen, trained_leaf
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.leaf import (
    Degrees,
    block_widths,
    counted,
    dimension,
    expert_widths,
    part_of_bandwidth,
    tables,
)
from datahall.training.step.compression import kernel_column, summed_column
from datahall.training.step.exchange import CONTEXT_EXPOSED
from datahall.training.step.experts import EXCHANGES, blocks_left, layout_load, moe_share, reached
from datahall.training.step.framework import Framework
from datahall.training.step.passes import BLOCKS, EXPERT_GROUPS, HEADS, RING, STREAM_SHARE, Passes
from datahall.training.step.step import Job
from datahall.workload.parameters import count_parameters

AGAIN = ", and forward again"
ShareFigure: TypeAlias = tuple[str, Breakdown, Breakdown, float, int]


class ExchangeFigures:
    """What chips of a layout exchange: within a layer, between stages, and of gradients and parameters."""

    def __init__(
        self, job: Job, cluster: Cluster, layout: Layout, framework: Framework, degrees: Degrees
    ) -> None:
        self.job, self.cluster, self.layout, self.framework = job, cluster, layout, framework
        self.degrees, self.space = degrees, Space.of(layout)

    # -- of a layer ------------------------------------------------------------------------------------------------

    def layer(self) -> Breakdown | None:
        """Exchange of a layer that nothing hides; None where there is none."""
        parts = [one for one in (self._tensor(), self._sequence(), self._experts()) if one is not None]
        return total("exchange of one layer, one micro-batch", parts) if parts else None

    def load(self) -> Breakdown:
        """Copies on the busiest rank that holds experts over the mean."""
        name, value = "load of the busiest rank over the mean", layout_load(self.job, self.layout)
        ranks = self.degrees.number("expert ranks")
        if self.job.imbalance is not None:
            asked = given("imbalance", self.job.imbalance, "ratio", field="imbalance")
            return (
                minimum(name, [asked, ranks])
                if self.layout.ep > 1
                else assumed(name, 1.0, "ratio", "every chip holds all experts")
            )
        how = "scatter of chance alone, as where routing is forced even"
        model = self.job.model
        routing = [
            dimension(model, "moe.num_experts", "experts"),
            dimension(model, "moe.top_k", "experts of a token"),
        ]
        return modelled(name, value, "ratio", how, *routing, ranks, *self._sequences())

    def _sequences(self) -> list[Breakdown]:
        return [
            given("tokens of a sequence", self.job.seq, "count", field="seq"),
            self.degrees.number("micro-batch"),
        ]

    def _tokens(self, *more: Breakdown, over: Sequence[Breakdown] = ()) -> Breakdown:
        """Vectors of the tokens of a micro-batch on one chip."""
        parts = [
            *self._sequences(),
            dimension(self.job.model, "hidden", "hidden width"),
            self._value(),
            *more,
        ]
        whole = product("activations of a micro-batch", parts, "bytes")
        chips = self.degrees.group("chips that share them", self.degrees.number("cp"), *over)
        return whole if chips.value == 1 else quotient("activations of a chip", whole, chips, "bytes")

    def _value(self, of: str = "value", how: str = "activations travel") -> Breakdown:
        return assumed(f"bytes of a {of}", self.job.value_bytes, "bytes", f"{how} in {self.job.value_width}")

    def _fit(self, name: str, value: float) -> Breakdown:
        return fitted(name, value, "ratio", f"runs of {self.framework.title}", self.framework.source)

    def _passes(self, name: str, passes: Passes, why: str, more: str = "") -> Breakdown:
        """How often a layer exchanges something."""
        full = self.layout.recompute == "full"
        return assumed(name, passes.times(full=full), "count", why + (AGAIN if full else "") + more)

    def _tensor(self) -> Breakdown | None:
        """All-reduces of the two blocks, and of experts that have a tensor parallelism of their own."""
        parts = [one for one in (self._blocks(), self._expert_group()) if one is not None]
        if not parts or not self.framework.tensor_exposed:
            return None
        exposed = self._fit("share that nothing hides", self.framework.tensor_exposed)
        return product("tensor-parallel exchange", [total("alone", parts), exposed], "s")

    def _blocks(self) -> Breakdown | None:
        layout = self.layout
        if layout.tp == 1:
            return None
        why = "after each of the two blocks, forward and backward"
        count = self._passes("all-reduces of a layer", BLOCKS, why)
        parts = [count, group_figure(self.cluster, "all-reduce", self._tokens(), layout.tp)]
        left = blocks_left(self.job) if self._has_expert_group() else 1.0
        if left < 1.0:
            how = "layers with routed experts alone have no MLP to exchange for"
            parts.append(modelled("of blocks that take part", left, "fraction", how, self.routed()))
        return product("all-reduces of the blocks", parts, "s")

    def _has_expert_group(self) -> bool:
        return self.job.model.moe is not None and bool(self.space.has_expert_groups[0])

    def _expert_group(self) -> Breakdown | None:
        layout = self.layout
        if not self._has_expert_group() or layout.etp == 1:
            return None
        copies = dimension(self.job.model, "moe.top_k", "experts of a token")
        gathered = self.degrees.number("chips that share an expert")
        size = self._tokens(copies, gathered, over=self._spread())
        why = "gathered before, reduced behind, forward and backward"
        pairs = self._passes("exchanges", EXPERT_GROUPS, why)
        once = group_figure(self.cluster, "all-reduce", size, layout.etp)
        return product("exchange of experts that are cut", [pairs, self.routed(), once], "s")

    def routed(self) -> Breakdown:
        """Layers with routed experts over all."""
        how = "layers with routed experts over all"
        layers = dimension(self.job.model, "num_layers", "layers")
        return modelled("share of layers with experts", moe_share(self.job), "fraction", how, layers)

    def _heads(self, name: str, what: str, heads: Breakdown, over: Breakdown) -> Breakdown:
        """Values of some heads of every token."""
        each = [*self._sequences(), heads, dimension(self.job.model, "head_dim", "width of a head")]
        whole = product(what, [*each, self._value()], "bytes")
        return whole.named(name) if over.value == 1 else quotient(name, whole, over, "bytes")

    def _sequence(self) -> Breakdown | None:
        layout, model = self.layout, self.job.model
        if layout.cp == 1:
            return None
        if layout.context_exchange == "ring":
            kept = product(
                "key and value heads",
                [dimension(model, "num_kv_heads", "key heads"), derived("keys and values", 2, "count")],
                "count",
            )
            size = self._heads("of a chip", "keys and values", kept, self.degrees.number("tp"))
            passed = group_figure(self.cluster, "all-gather", size, layout.cp, layout.tp)
            why = "keys and values pass by, once forward and twice backward"
            times = self._passes("times in a layer", RING, why)
            hidden = "an estimate: no public run isolates what attention on the blocks at hand hides"
            share = assumed("share that nothing hides", CONTEXT_EXPOSED, "fraction", hidden)
            return product("context-parallel exchange", [times, passed, share], "s")
        both = [self._all_to_all(way) for way in ("into", "back")]
        times = self._passes("times in a layer", HEADS, "forward and backward", "; attention waits for it")
        return product("context-parallel exchange", [times, total("there and back", both)], "s")

    def _all_to_all(self, way: str) -> Breakdown:
        """Heads for tokens: queries, keys and values into attention, and its output back."""
        layout, model = self.layout, self.job.model
        chips = self._group("chips that share heads and tokens", "cp", "tp")
        heads = dimension(model, "num_heads", "query heads")
        if way == "into":
            kept = dimension(model, "num_kv_heads", "key heads")
            sent = maximum("key heads, as often as they are sent", [kept, chips])
            both = product("key and value heads", [derived("keys and values", 2, "count"), sent], "count")
            heads = total("heads", [heads, both])
        size = self._heads("of a chip", "values of all heads", heads, chips)
        return group_figure(self.cluster, "all-to-all", size, layout.cp, layout.tp)

    def _experts(self) -> Breakdown | None:
        job, layout = self.job, self.layout
        if job.model.moe is None or layout.ep == 1 or not self.framework.expert_exposed:
            return None
        once = self._once_per_place() if self.framework.deduplicated else self._once_per_expert()
        times = assumed("exchanges", EXCHANGES, "count", "dispatch and combine, forward and backward")
        exposed = self._fit("share that nothing hides", self.framework.expert_exposed)
        return product("expert exchange", [times, self.routed(), once, self.load(), exposed], "s")

    def _spread(self) -> list[Breakdown]:
        """Chips that share a token's vector."""
        return [self.degrees.number("tp")] if self.layout.sequence_parallel else []

    def _once_per_expert(self) -> Breakdown:
        copies = dimension(self.job.model, "moe.top_k", "experts of a token")
        size = self._tokens(copies, over=self._spread())
        return group_figure(self.cluster, "all-to-all", size, self.layout.ep)

    def _once_per_place(self) -> Breakdown:
        """A token is sent once to each domain and once to each chip that holds any of its experts."""
        near = min(self.layout.ep, self.cluster.system.num_domain)
        domains = -(-self.layout.ep // near)
        legs = []
        if near > 1:
            size = self._tokens(
                self._reached("chips", self.degrees.number("expert ranks")), over=self._spread()
            )
            legs.append(group_figure(self.cluster, "all-to-all", size, near).named("inside a domain"))
        if domains > 1:
            size = self._tokens(self._reached("domains", self._domains()), over=self._spread())
            legs.append(
                group_figure(self.cluster, "all-to-all", size, domains, near).named("between domains")
            )
        return maximum("one exchange", legs)

    def _domains(self) -> Breakdown:
        """Domains over which the ranks of experts lie."""
        size = self.cluster.system.num_domain
        known = self.cluster.chip.facts.get("num_scale_up_domain")
        of_each = (
            fact("chips of a domain", size, "count", known.source, note=known.note)
            if known is not None and known.value == size
            else derived("chips of a domain", size, "count", "as the machine is wired")
        )
        ranks = self.degrees.number("expert ranks")
        return ceiling("domains", quotient("domains, exactly", ranks, of_each, "ratio"))

    def _reached(self, what: str, places: Breakdown) -> Breakdown:
        moe = self.job.model.moe
        assert moe is not None
        return modelled(
            f"{what} that a token reaches", float(reached(moe, np.array([places.value]))[0]), "count",
            "distinct ones that its experts lie at, under uniform routing",
            dimension(self.job.model, "moe.top_k", "experts of a token"), places,
        )  # fmt: skip

    # -- between stages --------------------------------------------------------------------------------------------

    def message(self) -> Breakdown:
        """One message between neighbouring stages: each chip of a group sends its slice."""
        size = self._tokens(over=[self.degrees.number("tp")])
        chips = self.layout.tp * self.layout.cp * self.layout.dp
        return stage_figure(self.cluster, size, self.layout.pp, chips).named("one message")

    # -- gradients and parameters ----------------------------------------------------------------------------------

    def held(self) -> Breakdown:
        """Trained parameters of one chip of the fullest stage before ZeRO."""
        parts = [held for _, held, *_ in self._trained()]
        return parts[0] if len(parts) == 1 else total("parameters of a chip", parts)

    def owned(self) -> Breakdown:
        """Those whose state the chip keeps: from ZeRO-1 on its share."""
        parts = [held for _, held, *_ in self._trained()]
        if self.layout.zero >= 1:
            parts = [
                quotient(f"own {name}", held, over, "parameters") for name, held, over, *_ in self._trained()
            ]
        return total("parameters whose state the chip keeps", parts)

    def _dense(self) -> Breakdown:
        model, counts = self.job.model, count_parameters(self.job.model)
        outside = float(counts.embedding + counts.head)
        inside = float(counts.total - counts.expert) - outside
        cut, tp = self._group("chips that share the layers", "tp", "stages"), self.degrees.number("tp")
        ends = self.degrees.group("chips that share the tables", tp, self.degrees.table_stages())
        name, widths = "parameters besides routed experts", block_widths(model)
        of_layers = counted(model, name, inside, "parameters", "all layers", *widths)
        outer = tables(model, "embedding and head", outside, "parameters", "a row for each token")
        return total(
            "dense parameters of a chip",
            [
                quotient("of its layers", of_layers, cut, "parameters"),
                quotient("of its tables", outer, ends, "parameters"),
            ],
        )

    def _expert_parameters(self) -> Breakdown | None:
        expert = float(count_parameters(self.job.model).expert)
        if not expert:
            return None
        ways = self.degrees.group(
            "chips that hold them once", self.degrees.expert_ways(), self.degrees.number("stages")
        )
        model = self.job.model
        name, widths = "parameters of routed experts", expert_widths(model)
        every = counted(model, name, expert, "parameters", "all layers", *widths)
        return quotient("expert parameters of a chip", every, ways, "parameters")

    def gradients(self) -> Breakdown | None:
        """Gradients reduced and parameters gathered once a step, hidden or not; None where nothing is."""
        inside = () if self.layout.zero >= 3 else chain(*self.halves())
        parts = [*inside, *self._between_copies(), *self._packing()]
        return total("all of it, hidden or not", parts) if parts else None

    def _group(self, name: str, *degrees: str) -> Breakdown:
        return self.degrees.group(name, *(self.degrees.number(one) for one in degrees))

    def _shares(self) -> list[ShareFigure]:
        """What is shared: its name, its parameters, who share it, groups that hold copies, and their distance."""
        space, name = self.space, "ranks that share them"
        found = [
            ("dense", self._dense(), self.degrees.sharers(name), float(space.num_copies[0]), self.layout.tp)
        ]
        expert = self._expert_parameters()
        if expert is not None:
            copies = min(float(space.num_copies[0]), float(space.expert_copies[0]))
            ways = int(space.expert_ways[0])
            found.append(("expert", expert, self.degrees.expert_sharers(name), copies, ways))
        return found

    def _trained(self) -> list[ShareFigure]:
        """The same of what has gradients: all of it, or the adapters beside what is no routed expert."""
        if self.job.adapters is None:
            return self._shares()
        name, held, sharers, copies, stride = self._shares()[0]
        return [(name, trained_leaf(self.job, self.degrees, held), sharers, copies, stride)]

    def _wire(self, *, summed: bool = False) -> Breakdown:
        """Bytes of a gradient as it is sent; `summed`: once ranks have reduced it."""
        if self.layout.compression == "none":
            return self.gradient()
        ranks, plain = self.space.sharers if summed else np.ones(1), self.gradient().value
        wire = summed_column(self.space.compression, self.job.model, plain, ranks)
        how = f"gradients {self.layout.compression} on the wire{', of all ranks' if summed else ''}"
        return assumed("bytes of a gradient on the wire", float(wire[0]), "bytes", how)

    def gradient(self) -> Breakdown:
        """Bytes of a gradient as the framework holds and sends it."""
        each = self.framework.sent_bytes(self.job.value_bytes)
        own = each == self.framework.gradient_bytes
        why = f"format of {self.framework.title}" if own else f"computed in {self.job.value_width}"
        return assumed("bytes of a gradient", each, "bytes", why)

    def halves(self) -> Iterator[tuple[Breakdown, Breakdown]]:
        """Gradients reduced and parameters gathered, once, between those that share them."""
        for name, held, sharers, _, stride in self._trained():
            if sharers.value > 1:
                sent = product("gradients", [held, self._wire()], "bytes")
                gathers = self.layout.zero > 0
                each = self._value("parameter", "gathered") if gathers else self._wire(summed=True)
                back = product("parameters" if gathers else "gradients", [held, each], "bytes")
                num = int(sharers.value)
                reduced = group_figure(self.cluster, "reduce-scatter", sent, num, stride)
                gathered = group_figure(self.cluster, "all-gather", back, num, stride)
                if self.job.adapters is not None and self.layout.zero >= 3:
                    gathered = gathered_frozen(self.job, self.cluster, self.framework, self._shares())
                yield reduced.named(f"reduce-scatter, {name}"), gathered.named(f"all-gather, {name}")

    def _between_copies(self) -> list[Breakdown]:
        if not self.layout.shard:
            return []
        found = []
        for name, held, sharers, copies, _ in self._trained():
            sent = product("gradients", [held, self._wire(summed=True)], "bytes")
            found += self._copied(name, quotient("own gradients", sent, sharers, "bytes"), copies)
        if self.job.adapters is not None or not count_parameters(self.job.model).expert:
            none = assumed(
                "own gradients", 0.0, "bytes", "no experts; the collective is launched all the same"
            )
            copies = float(min(self.space.num_copies[0], self.space.expert_copies[0]))
            found += self._copied("expert", none, copies)
        return found

    def _copied(self, name: str, own: Breakdown, copies: float) -> list[Breakdown]:
        if copies <= 1:
            return []
        apart = int(self.layout.tp * self.space.sharers[0])
        once = group_figure(self.cluster, "all-reduce", own, int(copies), apart)
        return [once.named(f"all-reduce between copies, {name}")]

    def _packing(self) -> list[Breakdown]:
        each = float(kernel_column(self.space.compression, self.job.model, self.gradient().value)[0])
        if not each:
            return []
        why = f"{self.layout.compression} there and back"
        moved = [self.held(), assumed("bytes moved for a gradient", each, "bytes", why)]
        if self.layout.zero >= 3:
            moved.append(self.degrees.micro_batches(self.job.global_batch))
        rate = part_of_bandwidth(
            self.cluster.chip, STREAM_SHARE, "element-wise work streams at about this share"
        )
        return [quotient("compression", product("moved", moved, "bytes"), rate, "s")]
