"""Power of the chips of a training run: what they do in the parts of a step, in closed form."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from datahall.breakdown import Breakdown, derived, product, total
from datahall.catalog.entries.chip import Chip
from datahall.cluster.cluster import Cluster
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
from datahall.silicon.kernel import scalar
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.step.framework import Framework
from datahall.training.step.launch import OUTSIDE
from datahall.training.step.micro_batch import layout_operators, sharding_of
from datahall.training.step.passes import STREAM_SHARE
from datahall.training.step.step import Job, StepTimes, step_times, waited_times


def step_phases(job: Job, cluster: Cluster, layout: Layout, framework: Framework) -> tuple[Phase, ...]:
    """The parts of one training step on a chip of the slowest stage, whose times add up to the step.

    Exchange inside layers alternates with their kernels in fractions of a millisecond, so it is part of the
    micro-batches; what stands between them is apart.
    """
    times = step_times(job, cluster, Space.of(layout), framework)
    known = (
        _micro_batches(job, cluster, layout, framework, times),
        Phase("bubble", _first(times, "bubble_s"), WAITING),
        Phase("gradients and parameters", _first(times, "data_s"), communication_activity()),
        Phase(
            "optimizer",
            _first(times, "optimizer_s"),
            Activity(memory_fraction=STREAM_SHARE, busy_fraction=1.0),
        ),
        Phase("traffic to the host", _first(times, "offload_s"), IDLE),
        Phase("once a step", _first(times, "fixed_s"), IDLE),
    )
    left_s = max(0.0, _first(times, "step_s") - sum(one.time_s for one in known))
    return tuple(
        one for one in (*known, Phase("waiting for the slowest rank", left_s, WAITING)) if one.time_s > 0
    )


def _first(times: StepTimes, name: str) -> float:
    return float(getattr(times, name)[0])


def _micro_batches(
    job: Job, cluster: Cluster, layout: Layout, framework: Framework, times: StepTimes
) -> Phase:
    """Kernels of all micro-batches, with the exchange between them."""
    num, kernels_s = _first(times, "num_micro"), _first(times, "compute_s")
    sent_s = sum(_first(times, name) for name in ("tensor_s", "expert_s", "pipeline_s"))
    rest_s = max(0.0, _first(times, "slot_s") - kernels_s - sent_s)
    activity = mean_activity(
        (
            Phase("kernels", kernels_s, compute_activity(job, cluster, layout, framework)),
            Phase("exchange", sent_s, communication_activity()),
            Phase("what they wait for", rest_s, WAITING),
        )
    )
    return Phase("micro-batches", num * (kernels_s + sent_s + rest_s), activity)


def compute_activity(job: Job, cluster: Cluster, layout: Layout, framework: Framework) -> Activity:
    """Mean activity of a chip while kernels of a micro-batch run, forward and backward; of stages, an inner one."""
    operators = layout_operators(job, framework, layout, cluster.chip)
    timed = waited_times(job, cluster, operators, framework, sharding_of(layout), float(layout.micro_batch))
    mine = [
        (one, scalar(time_s)) for one, time_s in timed if layout.pp == 1 or not one.name.startswith(OUTSIDE)
    ]
    kernels_s = sum(time_s for _, time_s in mine)
    found = work_activity(cluster.chip, (one for one, _ in mine), kernels_s, busy_s=kernels_s)
    return msgspec.structs.replace(
        found,
        tensor_fraction=min(1.0, found.tensor_fraction),
        memory_fraction=min(1.0, found.memory_fraction),
    )


def mean_power_w(chip: Chip, phases: Sequence[Phase]) -> float:
    """Mean power of a chip over some phases [W]."""
    whole_s = sum(one.time_s for one in phases)
    return sum(one.time_s / whole_s * chip_power_w(chip, one.activity) for one in phases)


class TrainingPower(msgspec.Struct, frozen=True, kw_only=True):
    """What a chip draws over a training step."""

    chip: Breakdown  # mean over the step [W]
    energy: Breakdown  # of a step on one chip [J]
    phases: tuple[Phase, ...]


def training_power(job: Job, cluster: Cluster, layout: Layout, framework: Framework) -> TrainingPower:
    """Mean power of a chip over a training step, by its phases, and the energy of the step."""
    phases = step_phases(job, cluster, layout, framework)
    step_s = sum(one.time_s for one in phases)
    parts = tuple(
        product(
            one.name,
            (
                derived("share of the step", one.time_s / step_s, "fraction"),
                chip_power(cluster.chip, one.activity, "power then"),
            ),
            "w",
        )
        for one in phases
    )
    chip = total(f"mean power of a {cluster.chip.name}", parts)
    energy = product("energy of a step", (chip, derived("time of a step", step_s, "s")), "j")
    return TrainingPower(chip=chip, energy=energy, phases=phases)


def run_energy(found: TrainingPower, num_chips: int, num_steps: int) -> Breakdown:
    """Energy of a run of so many steps, of its chips alone [J].

    E = steps · chips · P · time of a step
    """
    return product(
        "energy of a run",
        (
            derived("steps", num_steps, "count"),
            derived("chips", num_chips, "count"),
            found.energy,
        ),
        "j",
    )
