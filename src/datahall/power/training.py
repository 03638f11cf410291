"""Power of the chips of a training step: what they do in the phases of a simulated step.

Kernels do the same arithmetic however long a step takes, so what their use of the tensor cores comes to over a step,
Σ use · time · peak, is the FLOPs of the step; whatever stretches it is waiting, at what a waiting chip draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain

import msgspec
import numpy as np

from datahall.breakdown import Breakdown, derived, product, total
from datahall.catalog.entries.chip import Chip
from datahall.power.activity import (
    IDLE,
    WAITING,
    Activity,
    Phase,
    communication_activity,
    mean_activity,
    work_activity,
)
from datahall.power.chip import chip_power, chip_power_w
from datahall.power.swing.timeline import (
    BACKWARD,
    EXCHANGE,
    FORWARD,
    HOST,
    ONCE,
    OPTIMIZER,
    SLOWEST,
    WAIT,
    Timeline,
    step_timeline,
)
from datahall.training.pipeline.execution import Execution
from datahall.training.pipeline.orders import FULL, B, F, W
from datahall.training.pipeline.schedule import EMPTY
from datahall.training.step.micro_batch import layout_operators
from datahall.training.step.passes import STREAM_SHARE
from datahall.training.step.step import operators_run

# what a chip does in the phases in which no kernels of layers run
BETWEEN: Mapping[str, Activity] = {
    WAIT: WAITING,
    EXCHANGE: communication_activity(),
    OPTIMIZER: Activity(memory_fraction=STREAM_SHARE, busy_fraction=1.0),
    HOST: IDLE,
    ONCE: IDLE,
    SLOWEST: WAITING,
}
# forward, backward for the input and for the weights that a piece of work is made of
MADE_OF: Mapping[int, tuple[int, ...]] = {F: (0,), B: (1,), W: (2,), FULL: (1, 2)}


class TrainingPower(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What the chips of a simulated step do and draw, in the mean over them."""

    run: Execution

    @cached_property
    def timeline(self) -> Timeline:
        return step_timeline(self.run)

    @cached_property
    def parts(self) -> dict[str, tuple[Phase, ...]]:
        """What each phase of the step is made of; the times of all add up to the step.

        Kernels and exchange inside layers alternate in fractions of a millisecond and draw what the chip does in the
        mean; what they wait for beside lasts longer, and draws what waiting does.
        """
        exchange = communication_activity()
        beside = exchange if self._exchanges_beside else WAITING
        found: dict[str, tuple[Phase, ...]] = {}
        for name, time_s in self.timeline.times_s().items():
            if name in BETWEEN:
                found[name] = (Phase(name, time_s, BETWEEN[name]),)
                continue
            kernels_s, exchange_s = self._worked_s[name]
            mixed = mean_activity(
                (Phase("kernels", kernels_s, self.kernels), Phase("exchange", exchange_s, exchange))
            )
            whole_s = kernels_s + exchange_s
            worked_s = min(time_s, whole_s)
            waited = Phase(f"{name}, waiting for what runs beside", time_s - worked_s, beside)
            found[name] = (
                Phase(name, worked_s, mixed.over(worked_s / whole_s)),
                *((waited,) if waited.time_s > 1e-9 * time_s else ()),
            )
        return found

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The same one after the other."""
        return tuple(chain.from_iterable(self.parts.values()))

    @cached_property
    def levels_w(self) -> dict[str, float]:
        """What a chip draws in each phase of the step [W], also in one that took no time."""
        chip = self.run.cluster.chip
        between = {name: chip_power_w(chip, one) for name, one in BETWEEN.items()}
        return between | {name: mean_power_w(chip, parts) for name, parts in self.parts.items()}

    @cached_property
    def chip(self) -> Breakdown:
        """Mean power of a chip over the step [W]."""
        chip, step_s = self.run.cluster.chip, self.timeline.step_s
        shares = (
            product(
                one.name,
                (
                    derived("share of the step", one.time_s / step_s, "fraction"),
                    chip_power(chip, one.activity),
                ),
                "w",
            )
            for one in self.phases
        )
        return total(f"mean power of a {chip.name}", tuple(shares))

    @cached_property
    def kernels(self) -> Activity:
        """Mean activity while kernels of a micro-batch run, forward and backward, over all stages."""
        run, stages = self.run, self.run.stages
        operators = operators_run(
            run.job, layout_operators(run.job, run.framework, run.layout, run.cluster.chip)
        )
        kernels_s = run.job.model.num_layers * sum(stages.layer.kernels_s)
        kernels_s += sum(stages.first.kernels_s) + sum(stages.last.kernels_s)
        return work_activity(run.cluster.chip, operators, kernels_s, busy_s=kernels_s)

    @property
    def _exchanges_beside(self) -> bool:
        """Whether parameters or gradients move while kernels run, which wait where that takes longer."""
        stages = self.run.stages
        return bool(stages.gathered_s) or bool((stages.work.gather_s + stages.work.reduce_s).any())

    @cached_property
    def _worked_s(self) -> dict[str, tuple[float, float]]:
        """Kernels and exchange inside layers of forward and backward, in the mean over the stages [s].

        Of two pieces that run as one the first says which it is, as in the timeline.
        """
        plan = self.run.plan
        second = np.zeros_like(plan.joined)
        second[:, 1:] = plan.joined[:, :-1]
        kinds = np.where(second, np.roll(plan.kind, 1, axis=1), plan.kind)
        places = np.arange(plan.num_stages)[:, None] * plan.num_chunks + plan.chunk
        found = {}
        for name, forward in ((FORWARD, True), (BACKWARD, False)):
            chosen = (plan.kind != EMPTY) & ((kinds == F) == forward)
            done_s = np.zeros(2)
            for kind, ways in MADE_OF.items():
                mine = places[chosen & (plan.kind == kind)]
                done_s += sum(self._places_s[:, mine, way].sum(axis=1) for way in ways)
            kernels_s, exchange_s = (done_s / plan.num_stages).tolist()
            found[name] = (kernels_s, exchange_s)
        return found

    @cached_property
    def _places_s(self) -> np.ndarray[tuple[int, int, int], np.dtype[np.float64]]:
        """Kernels, and exchange, of one micro-batch at each place: forward, backward for input and weights [s]."""
        stages, position = self.run.stages, self.run.plan.position
        ends = ((position == 0, stages.first), (position == self.run.plan.num_parts - 1, stages.last))
        return np.stack([
            stages.layers[position][:, None] * np.array(getattr(stages.layer, name))
            + sum(held[:, None] * np.array(getattr(end, name)) for held, end in ends)
            for name in ("kernels_s", "exchange_s")
        ])  # fmt: skip


def mean_power_w(chip: Chip, phases: Sequence[Phase]) -> float:
    """Mean power of a chip over some phases [W]."""
    whole_s = sum(one.time_s for one in phases)
    return sum(one.time_s / whole_s * chip_power_w(chip, one.activity) for one in phases)
