"""One step of an engine as a figure that can be opened: products, attention, exchange, head, host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.breakdown import Breakdown, derived, difference, fitted, modelled, product, total
from datahall.counted import counted
from datahall.inference.engine.adapters import products_s, reads_s
from datahall.inference.engine.figure import option_leaf
from datahall.inference.engine.replica import Replica
from datahall.inference.engine.speculation import num_verified
from datahall.inference.step.exchange_figure import exchange_figure, gather_figure
from datahall.inference.step.kernels import Passes
from datahall.inference.step.launch import LAUNCH_S, LAUNCHED, launches_of
from datahall.inference.step.price import draft_times, uneven_stages
from datahall.silicon.figure import KINDS, kernel_figure
from datahall.silicon.kernel import KernelTime, scalar
from datahall.workload.memory.figure import derived_from

Resource = Literal["compute", "memory bandwidth", "interconnect", "host"]


class StepFigure(msgspec.Struct, frozen=True):
    """The time of a step, and how much of it each resource takes."""

    figure: Breakdown
    taken_s: dict[Resource, float]


def step_breakdown(
    replica: Replica,
    *,
    num_decodes: int = 0,
    mean_context: float = 0.0,
    chunks: Sequence[tuple[float, float]] = (),
) -> Breakdown:
    """The time of a step of so many decodes and of chunks (tokens, tokens before them), by what it is spent on [s]."""
    return step_figure(replica, num_decodes=num_decodes, mean_context=mean_context, chunks=chunks).figure


def step_figure(
    replica: Replica,
    *,
    num_decodes: int = 0,
    mean_context: float = 0.0,
    chunks: Sequence[tuple[float, float]] = (),
) -> StepFigure:
    """The same, with what bounds it.

    The kernels are timed at these very sizes; the step table reads between points, so the two differ by its error.
    """
    step, verified, pp = _Step(replica), num_verified(replica.speculation), replica.pp
    tokens = num_decodes * verified + sum(chunk for chunk, _ in chunks)
    per_batch = np.array([max(tokens / pp, 1.0)])
    rows = np.array([max((num_decodes * verified + len(chunks)) / pp, 1.0)])
    step.add_kernels(step.passes.token_kernels(per_batch))
    step.add_attention(num_decodes / pp, mean_context, verified, chunks)
    if replica.adapters is not None:
        step.add_adapters(per_batch, num_decodes / pp, replica.adapters.rank)
    if replica.num_chips > 1:
        step.add(exchange_figure(replica, float(per_batch[0])), "interconnect")
    step.add_head(rows)
    if num_decodes and replica.speculation is not None:
        step.add_drafts(num_decodes)
    step.add(_host(replica, num_decodes + len(chunks)), "host")
    name = f"step of {num_decodes:,} decodes and {int(tokens - num_decodes * verified):,} prompt tokens"
    return StepFigure(step.named(name), step.taken_s)


class _Step:
    """The parts of a step as they come: figures, the resource that bounds each, and the least that they could take."""

    def __init__(self, replica: Replica) -> None:
        self.replica, self.passes = replica, Passes.of(replica)
        self.calibration = self.passes.calibration
        self.launched = launches_of(self.passes)
        self.uneven = uneven_stages(replica)
        self.parts: list[Breakdown] = []
        self.taken_s: dict[Resource, float] = {}
        self.least_s = 0.0

    def named(self, name: str) -> Breakdown:
        """All of it, with its band."""
        constants, whole = self.calibration.constants, total(name, self.parts)
        band = constants.bands["pass"]
        return whole.with_band(*band, constants.fitted_on, floor=self.least_s).with_note(
            basis=self.calibration.level, sources=(constants.source,)
        )

    def add(self, part: Breakdown | None, resource: Resource) -> None:
        """A part that one resource bounds."""
        if part is not None:
            self.parts.append(part)
            self._take(resource, part.value)

    def add_kernels(self, kernels: Sequence[KernelTime]) -> None:
        """Kernels that all tokens share, by kind; each is bound by itself."""
        hidden_s = 0.0
        for kind in ("gemm", "grouped_gemm", "stream"):
            mine = [one for one in kernels if one.kind == kind]
            if not mine:
                continue
            figures = self._kernels(mine, self.uneven)
            self.parts.append(total(KINDS[kind], figures))
            hidden_s += self.parts[-1].value
            for kernel, figure in zip(mine, figures, strict=True):
                self._take("compute" if kernel.bound == "compute" else "memory bandwidth", figure.value)
        self.add(self._unhidden(self.uneven * self.launched.tokens_s, hidden_s), "host")

    def add_attention(
        self, num_decodes: float, context: float, verified: int, chunks: Sequence[tuple[float, float]]
    ) -> None:
        """Decodes read the cache; chunks of prompts multiply."""
        parts = []
        if num_decodes and (opened := self._decodes(max(num_decodes, 1.0), context, verified, chunks)):
            what = f"{num_decodes:g} sequences of {context:,.0f} tokens"
            parts.append(total("decodes", opened, what))
            self._take("memory bandwidth", parts[-1].value)
            self._wait(parts, self.uneven * self.launched.attention_s)
        for chunk, past in chunks:
            kernels = self.passes.prefill_kernels(np.array([max(chunk, 1e-9)]), np.array([past]))
            if kernels:
                opened = self._kernels(kernels, self.uneven / self.replica.pp)
                tokens = counted(round(chunk), "token")
                parts.append(total("chunk of a prompt", opened, f"{tokens} after {past:,.0f}"))
                self._take("compute", parts[-1].value)
                self._wait(parts, self.uneven / self.replica.pp * self.launched.attention_s)
        if parts:
            self.parts.append(total(KINDS["attention"], parts))

    def add_adapters(self, tokens: NDArray[np.float64], num_decodes: float, rank: int) -> None:
        """Thin products beside the projections, and the adapters that they read."""
        sequences = np.array([max(num_decodes, 1.0)])
        thin_s, read_s = (
            self.uneven * float(times[0])
            for times in (products_s(self.passes, tokens), reads_s(self.passes, sequences))
        )
        width = derived("rank of an adapter", rank, "count")
        parts = (
            self._model(
                "thin products", thin_s, "two beside each projection", width, _count("tokens", tokens[0])
            ),
            self._model(
                "further adapters", read_s, "read from memory", width, _count("sequences", sequences[0])
            ),
        )
        self.add(total("adapters", parts), "memory bandwidth")

    def add_head(self, rows: NDArray[np.float64]) -> None:
        """The logits of the last tokens, once in each micro-batch, and their gathering."""
        parts = self._kernels(self.passes.head_kernels(rows), self.replica.pp, "once a micro-batch")
        taken_s = sum(part.value for part in parts)
        waited = self._unhidden(self.replica.pp * self.launched.head_s, taken_s)
        parts += [waited] if waited is not None else []
        if self.replica.tp > 1:
            parts.append(gather_figure(self.replica, float(rows[0])))
        what = f"{rows[0]:g} rows of {self.replica.model.vocab:,} logits"
        self.add(total("head", parts, what), "memory bandwidth")

    def add_drafts(self, num_decodes: int) -> None:
        """Tokens drafted for every decode."""
        how = self.replica.speculation
        assert how is not None
        drafted_s = float(draft_times(self.replica, np.array([float(num_decodes)]))[0])
        drafts = derived("tokens drafted", how.num_draft, "count", f"by {how.draft}")
        self.add(
            self._model("drafting", drafted_s, "a pass each", drafts, _count("sequences", num_decodes)),
            "memory bandwidth",
        )

    def _decodes(
        self, num: float, context: float, verified: int, chunks: Sequence[tuple[float, float]]
    ) -> list[Breakdown]:
        """Attention of decodes, which share the launch of chunks on some chips."""
        sequences, contexts = np.array([num]), np.array([context])
        sizes = (_count("sequences", num), _count("tokens of a sequence", context))
        joined_s, empty_s = self.passes.joined_s(sequences, contexts) if chunks else (None, 0.0)
        if joined_s is not None:
            time_s = float(joined_s[0, 0]) + empty_s * num * max(chunk for chunk, _ in chunks)
            return [self._model("beside a prompt", self.uneven * time_s, "one launch for both", *sizes)]
        kernels = self.passes.decode_kernels(sequences, contexts, verified)
        parts = self._kernels(kernels, self.uneven)
        states_s = float(self.passes.states_s(sequences)[0])
        if states_s:
            parts.append(
                self._model("states of the sequences", self.uneven * states_s, "beyond one", sizes[0])
            )
        return parts

    def _kernels(
        self, kernels: Iterable[KernelTime], times: float, note: str = "in the layers of the heaviest stage"
    ) -> list[Breakdown]:
        chip, shapes, made = self.replica.chip, derived_from(self.replica.model), []
        for kernel in kernels:
            each = kernel_figure(chip, kernel, self.calibration, shapes)
            runs = derived("runs", times * kernel.operator.count, "count", note)
            name = kernel.operator.name.replace("_", " ")
            made.append(product(name, (runs, each), "s", f"{kernel.bound}-bound"))
            self.least_s += runs.value * scalar(kernel.roofline_s)
        return made

    def _model(self, name: str, time_s: float, what: str, *inputs: Breakdown) -> Breakdown:
        """A time of the kernel models that is no single kernel's."""
        constants = self.calibration.constants
        by = f"{what}; kernel model of {self.replica.chip.name}, fitted on {constants.fitted_on}"
        return modelled(name, time_s, "s", by, *inputs).with_note(
            basis=self.calibration.level, sources=(constants.source,)
        )

    def _unhidden(self, launched_s: float, hidden_s: float) -> Breakdown | None:
        """What launching takes beyond the kernels that it is hidden behind; None where it is hidden, or in a graph."""
        if launched_s <= hidden_s:
            return None
        launch = fitted("a launch from the host", LAUNCH_S, "s", "steps that the host held up", LAUNCHED)
        num = derived("launches", launched_s / LAUNCH_S, "count", "kernels of this part")
        hidden = derived("behind kernels", hidden_s, "s", "their own time")
        return difference("waiting for launches", product("launching", (num, launch), "s"), hidden)

    def _wait(self, parts: list[Breakdown], launched_s: float) -> None:
        """The same of the attention that was counted last."""
        waited = self._unhidden(launched_s, parts[-1].value)
        if waited is not None:
            parts.append(waited)
            self._take("host", waited.value)

    def _take(self, resource: Resource, time_s: float) -> None:
        self.taken_s[resource] = self.taken_s.get(resource, 0.0) + time_s


def _count(name: str, value: float) -> Breakdown:
    return derived(name, value, "count", "of the step")


def _host(replica: Replica, num_sequences: int) -> Breakdown:
    engine, rows = replica.engine, "fitted on the marked rows of the ledger"
    return total(
        "host",
        (
            option_leaf(engine, "host_step_s", "of a step", "s", fitted_on=rows),
            product(
                "of its sequences",
                (
                    option_leaf(engine, "host_sequence_s", "of a sequence", "s", fitted_on=rows),
                    derived("sequences", num_sequences, "count", "in the step"),
                ),
                "s",
            ),
        ),
    )
