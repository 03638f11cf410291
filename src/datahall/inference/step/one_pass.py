"""One forward pass on one chip, as somebody asks for it: whether it fits, its kernels, their shares and rates."""

from __future__ import annotations

from functools import cached_property

import msgspec

from datahall.breakdown import Breakdown
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
from datahall.inference.early import check_format
from datahall.inference.engine.build import replica_of
from datahall.inference.memory.fit import Fit, on_group
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import Deployment
from datahall.scenario.sections.views import Pass, Sequences
from datahall.silicon.figure import bound_figure, pass_figure
from datahall.silicon.kernel import KernelTime, PassTimes, scalar, time_operators
from datahall.workload.forward import forward_pass, served_pass
from datahall.workload.memory.figure import derived_from
from datahall.workload.operator import Operator
from datahall.workload.precision import Precision, block_scaled
from datahall.workload.sharding import Sharding


class OperatorShare(msgspec.Struct, frozen=True, kw_only=True):
    """One operator of a pass: the time of all its runs, and how fast one of them multiplies."""

    kernel: KernelTime
    total_s: float
    share_fraction: float  # of the pass
    flop_per_s: float
    efficiency_fraction: float  # the least time of a run over the one predicted

    @property
    def is_counted(self) -> bool:
        """Whether its arithmetic is counted at all."""
        return scalar(self.kernel.operator.flop) > 0


class OnePass(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A prefill of some prompts, or a decode step of some sequences, on each of the chips that share the layers."""

    chip: Chip
    model: Model
    precision: str
    tp: int
    batch: int
    context: int
    phase: str
    level: str | None
    eager: bool
    fit: Fit

    @property
    def formats(self) -> Precision:
        return Precision.named(self.precision)

    @property
    def block_scaled(self) -> bool:
        return block_scaled(self.model, self.formats)

    @property
    def fits(self) -> bool:
        """Whether the chips hold the weights and the sequences, by the rule of `show fit`."""
        return self.fit.holds(self.batch)

    @property
    def step(self) -> str:
        return "decode step" if self.phase == "decode" else "prefill"

    @property
    def num_tokens(self) -> int:
        """Tokens that one pass brings forward."""
        return self.batch if self.phase == "decode" else self.batch * self.context

    @cached_property
    def times(self) -> PassTimes:
        """Every operator on the chip."""
        check_format(self.chip, self.formats)
        prefill = self.phase == "prefill"
        query, past = (float(self.context), 0.0) if prefill else (1.0, float(self.context))

        def described(formats: Precision) -> tuple[Operator, ...]:
            return forward_pass(
                self.model, batch=float(self.batch), query=query, past=past, sharding=Sharding(tp=float(self.tp)),
                precision=formats,
            )  # fmt: skip

        operators = served_pass(described, self.model, self.formats)
        return time_operators(
            self.chip, operators, level=self.level, graph=not self.eager, block_scaled=self.block_scaled
        ).merged()

    @cached_property
    def figure(self) -> Breakdown:
        """The time of the pass, down to the facts."""
        return pass_figure(f"one {self.step} on {self.chip.name}", self.times, derived_from(self.model))

    @property
    def tokens_per_s(self) -> float:
        return self.num_tokens / self.figure.value

    @property
    def roofline_fraction(self) -> float:
        """The least time that the datasheet allows over the time predicted."""
        return self.times.roofline_s / self.figure.value

    @cached_property
    def operators(self) -> tuple[OperatorShare, ...]:
        """The operators in the order they run, each with its share."""
        whole_s = scalar(self.times.total_s)
        return tuple(
            OperatorShare(
                kernel=kernel,
                total_s=scalar(kernel.total_s),
                share_fraction=min(1.0, scalar(kernel.total_s) / whole_s),
                flop_per_s=scalar(kernel.operator.flop) / scalar(kernel.time_s),
                efficiency_fraction=self._least_s(kernel) / scalar(kernel.time_s),
            )
            for kernel in self.times.kernels
        )

    def _least_s(self, kernel: KernelTime) -> float:
        """What one run of a kernel takes at least: its arithmetic, or its bytes from where they lie."""
        shapes = derived_from(self.model)
        return bound_figure(self.chip, kernel.operator, self.times.calibration, shapes).value

    @property
    def heaviest(self) -> OperatorShare:
        return self.operators[self.times.heaviest]

    @property
    def uncounted_fraction(self) -> float:
        """Share of the time in operators whose arithmetic is not counted: norms, rotations."""
        return sum(one.share_fraction for one in self.operators if not one.is_counted)


def pass_of(scenario: Scenario) -> OnePass:
    """The pass that a scenario asks for; the layers must divide by the chips that share them."""
    deployment, sequences, asked = scenario.one(Deployment), scenario.one(Sequences), scenario.one(Pass)
    model, tp = scenario.model(), deployment.tp or 1
    with scenario.at(field="tp"):
        Sharding(tp=float(tp)).check(model)
    alone = replica_of(msgspec.structs.replace(deployment, tp=None), model, scenario.catalog)
    return OnePass(
        chip=scenario.catalog.chip(deployment.chip),
        model=model,
        precision=deployment.precision,
        tp=tp,
        batch=sequences.batch,
        context=sequences.context,
        phase=asked.phase,
        level=asked.level,
        eager=asked.eager,
        fit=on_group(alone, tp, sequences.context),
    )
