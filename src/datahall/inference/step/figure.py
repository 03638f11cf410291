"""One step of an engine as a figure that can be opened: products, attention, exchange, head, host."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from datahall.breakdown import Breakdown, derived, fitted, modelled, product, total
from datahall.cluster.network import DOMAIN, LEFT
from datahall.fabric.collectives.crossing import crossed
from datahall.fabric.topology.cuts import Cut
from datahall.inference.engine.adapters import products_s, reads_s
from datahall.inference.engine.figure import option_leaf
from datahall.inference.engine.replica import Replica, replica_system
from datahall.inference.engine.speculation import num_verified
from datahall.inference.step.exchange import exchange, gather_logits
from datahall.inference.step.kernels import Passes
from datahall.inference.step.price import draft_times, uneven_stages
from datahall.silicon.figure import kernel_figure
from datahall.silicon.kernel import KernelTime
from datahall.workload.memory.figure import derived_from

WORDS = {
    "gemm": "matrix products",
    "grouped_gemm": "matrix products of experts",
    "stream": "work between them",
    "attention": "attention",
}


def step_breakdown(
    replica: Replica,
    *,
    num_decodes: int = 0,
    mean_context: float = 0.0,
    chunks: Sequence[tuple[float, float]] = (),
) -> Breakdown:
    """The time of a step of so many decodes and of chunks (tokens, tokens before them), by what it is spent on [s].

    The kernels are timed at these very sizes; the step table reads between points, so the two differ by its error.
    """
    passes, verified, pp = Passes.of(replica), num_verified(replica.speculation), replica.pp
    tokens = num_decodes * verified + sum(chunk for chunk, _ in chunks)
    per_batch = np.array([max(tokens / pp, 1.0)])
    rows = np.array([max((num_decodes * verified + len(chunks)) / pp, 1.0)])
    uneven = uneven_stages(replica)
    kernels = _Kernels(passes)
    parts = [
        *kernels.by_kind(passes.token_kernels(per_batch), uneven),
        *kernels.attention(num_decodes / pp, mean_context, verified, chunks, uneven),
    ]
    if replica.adapters is not None:
        parts.append(kernels.adapters(per_batch, num_decodes / pp, uneven))
    if replica.num_chips > 1:
        parts += _exchange(replica, per_batch)
    head_s = float(
        pp
        * (sum((head.total_s for head in passes.head_kernels(rows)), 0.0) + gather_logits(replica, rows))[0]
    )
    parts.append(kernels.leaf("head", head_s, f"{rows[0]:g} rows of {replica.model.vocab:,} logits"))
    if num_decodes and replica.speculation is not None:
        drafted = float(draft_times(replica, np.array([float(num_decodes)]))[0])
        how = f"{replica.speculation.num_draft} tokens by {replica.speculation.draft}"
        parts.append(kernels.leaf("drafting", drafted, how))
    parts.append(_host(replica, num_decodes + len(chunks)))
    low, high = passes.calibration.constants.bands["pass"]
    name = f"step of {num_decodes:,} decodes and {int(tokens - num_decodes * verified):,} prompt tokens"
    return (
        total(name, parts)
        .with_band(low, high, passes.calibration.constants.fitted_on)
        .with_note(basis=passes.calibration.level, sources=(passes.calibration.constants.source,))
    )


class _Kernels:
    """Kernels of a replica's passes as figures; what they rest on is the calibration of the chip."""

    def __init__(self, passes: Passes) -> None:
        self.passes = passes
        self.constants = passes.calibration.constants

    def leaf(self, name: str, time_s: float, what: str) -> Breakdown:
        """A time of the kernel models: the constants were fitted, the sizes are those of this step."""
        on = f"{what}; kernel model of {self.passes.replica.chip.name}, fitted on {self.constants.fitted_on}"
        return fitted(name, time_s, "s", on, self.constants.source, basis=self.passes.calibration.level)

    def by_kind(self, kernels: Sequence[KernelTime], uneven: float) -> list[Breakdown]:
        groups = []
        for kind in ("gemm", "grouped_gemm", "stream"):
            parts = [self._kernel(kernel, uneven) for kernel in kernels if kernel.kind == kind]
            if parts:
                groups.append(total(WORDS[kind], parts))
        return groups

    def _kernel(self, kernel: KernelTime, uneven: float) -> Breakdown:
        chip, model = self.passes.replica.chip, self.passes.replica.model
        each = kernel_figure(chip, kernel, self.passes.calibration, derived_from(model))
        times = derived(
            "runs", uneven * kernel.operator.count, "count", "in the layers of the heaviest stage"
        )
        return product(kernel.operator.name.replace("_", " "), (times, each), "s", f"{kernel.bound}-bound")

    def attention(
        self,
        num_decodes: float,
        context: float,
        verified: int,
        chunks: Sequence[tuple[float, float]],
        uneven: float,
    ) -> list[Breakdown]:
        parts = []
        if num_decodes:
            times = self._decodes(max(num_decodes, 1.0), context, verified, chunks)
            what = f"{num_decodes:g} sequences of {context:,.0f} tokens"
            parts.append(self.leaf("decodes", uneven * float(times[0, 0]), what))
        for chunk, past in chunks:
            times = self.passes.prefill_s(np.array([chunk]), np.array([past]))
            time_s = uneven * float(times[0, 0]) / self.passes.replica.pp
            parts.append(self.leaf("chunk of a prompt", time_s, f"{chunk:,.0f} tokens after {past:,.0f}"))
        return [total(WORDS["attention"], parts)] if parts else []

    def _decodes(
        self, num: float, context: float, verified: int, chunks: Sequence[tuple[float, float]]
    ) -> NDArray[np.float64]:
        """Attention of decodes, which share the launch of chunks on some chips [s]."""
        joined_s, empty_s = (
            self.passes.joined_s(np.array([num]), np.array([context])) if chunks else (None, 0.0)
        )
        if joined_s is None:
            return self.passes.decode_s(np.array([num]), np.array([context]), verified)
        return joined_s + empty_s * num * max(chunk for chunk, _ in chunks)

    def adapters(self, tokens: NDArray[np.float64], num_decodes: float, uneven: float) -> Breakdown:
        sequences = np.array([max(num_decodes, 1.0)])
        thin_s, read_s = (
            float(times[0]) for times in (products_s(self.passes, tokens), reads_s(self.passes, sequences))
        )
        return total(
            "adapters",
            (
                self.leaf("thin products", uneven * thin_s, "two beside each projection"),
                self.leaf(
                    "further adapters", uneven * read_s, f"of {sequences[0]:g} sequences, read from memory"
                ),
            ),
        )


def _exchange(replica: Replica, per_batch: NDArray[np.float64]) -> list[Breakdown]:
    sent, group = exchange(replica, per_batch), replica.tp * replica.dp
    named = (
        (
            "between the chips that share a layer",
            float(sent.tensor_s[0]),
            f"tp = {replica.tp}",
            replica.tp,
            1,
        ),
        (
            "between attention and experts",
            float(sent.expert_s[0]),
            f"dp = {replica.dp}, ep = {replica.ep}",
            group,
            1,
        ),
        ("between stages", replica.pp * float(sent.stage_s[0]), f"pp = {replica.pp}", 2, group),
    )
    parts = []
    for name, time_s, what, num_ranks, stride in named:
        if time_s > 0:
            how = f"{what}; closed forms of collectives, {sent.level}"
            links = links_crossed(replica, num_ranks, stride)
            parts.append(
                modelled(name, time_s, "s", how, *links) if links else fitted(name, time_s, "s", how)
            )
    return [total("exchange", parts)] if parts else []


def links_crossed(replica: Replica, num_ranks: int, stride: int) -> list[Breakdown]:
    """What a group of ranks `stride` apart sends over: ports and narrow places, with what failures left of them.

    Nothing where it stays inside its scale-up domain.
    """
    near = replica_system(replica).apart(stride)
    if num_ranks <= near.num_domain:
        return []
    port = replica.network or derived("network of a chip, one way", near.nic_bytes_per_s, "bytes_per_s")
    return [port, *(_way_out(cut) for cut in crossed(near, num_ranks) if cut.name != DOMAIN)]


def _way_out(cut: Cut) -> Breakdown:
    """The way out of a part of the fabric, shared by the chips below it."""
    name, left = f"way out of a {cut.name}, one way", cut.left_fraction
    if left == 1.0:
        return derived(name, cut.bytes_per_s, "bytes_per_s", f"of {cut.num_below:,} chips")
    whole = derived(f"{name}, whole", cut.bytes_per_s / left, "bytes_per_s", f"of {cut.num_below:,} chips")
    return product(
        name, [whole, derived(LEFT, left, "fraction", f"of the way out of a {cut.name}")], "bytes_per_s"
    )


def _host(replica: Replica, num_sequences: int) -> Breakdown:
    engine, rows = replica.engine, "fitted on the marked rows of the ledger"
    return total(
        "host",
        (
            option_leaf(engine, replica.chip, "host_step_s", "of a step", "s", fitted_on=rows),
            product(
                "of its sequences",
                (
                    option_leaf(
                        engine, replica.chip, "host_sequence_s", "of a sequence", "s", fitted_on=rows
                    ),
                    derived("sequences", num_sequences, "count", "in the step"),
                ),
                "s",
            ),
        ),
    )
