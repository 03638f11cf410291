"""One training step, simulated: kernels and exchange on a pipeline schedule, and every replica waiting for the slowest.

Replicas of a data-parallel group do the same work, so one is simulated for all; only stragglers tell them apart,
and then only those that could be the slowest are simulated.
"""

from __future__ import annotations

import math
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.cluster.cluster import Cluster
from datahall.fabric.collectives.choice import Choice
from datahall.scenario.sections.training import Stragglers
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.pipeline.bubble import bubble_time
from datahall.training.pipeline.schedule import Schedule, schedule
from datahall.training.pipeline.simulate import Simulated, simulate
from datahall.training.pipeline.straggler import num_slow, stage_speeds
from datahall.training.pipeline.table import usual_order
from datahall.training.step.exchange import data_choices
from datahall.training.step.framework import Framework
from datahall.training.step.parts import PARTS
from datahall.training.step.passes import WAYS
from datahall.training.step.stage_work import StageWork, stage_work
from datahall.training.step.step import Job, StepTimes, round_trip_time, step_band, step_times

Floats = NDArray[np.float64]
NUM_STEPS = 8  # drawn where chips jitter
EVEN = Stragglers()  # every chip as fast as the others


OF_WHICH = ("redone_s", "uneven_s")  # inside other parts
# part of the simulated step -> what a person calls it
PART_NAMES = {
    f"{name}_s": PARTS[name]
    for name in (
        "kernels", "redone", "exchange", "uneven", "beside", "messages", "bubble", "data", "optimizer", "offload",
        "fixed", "slowest",
    )
}  # fmt: skip


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """A step taken apart on its slowest stage [s]."""

    kernels_s: float
    redone_s: float  # of which run again: recomputed forwards
    exchange_s: float  # tensor and expert exchange that nothing hides
    beside_s: float  # kernels slowed, or waiting, by what runs beside them
    messages_s: float  # between stages
    bubble_s: float
    data_s: float  # gradients and parameters that nothing hides
    optimizer_s: float
    fixed_s: float
    slowest_s: float  # waiting for the slowest rank
    offload_s: float = 0.0  # traffic to host or NVMe that nothing hides
    uneven_s: float = 0.0  # of kernels and exchange: waiting for the rank with the most routed tokens

    @property
    def step_s(self) -> float:
        return (
            self.kernels_s + self.exchange_s + self.beside_s + self.messages_s + self.bubble_s
            + self.data_s + self.optimizer_s + self.offload_s + self.fixed_s + self.slowest_s
        )  # fmt: skip


class Execution(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A simulated step, and the closed form beside it."""

    job: Job
    cluster: Cluster
    layout: Layout
    framework: Framework
    stragglers: Stragglers
    plan: Schedule
    stages: StageWork
    closed: StepTimes
    alone: Simulated  # a replica without stragglers
    slowest: Simulated  # the replica that everyone waited for in the first step
    steps_s: Floats  # each step drawn; one where nothing is left to chance
    num_simulated: int  # replicas, all steps together

    @property
    def step_s(self) -> float:
        """Mean over the steps drawn."""
        return float(self.steps_s.mean())

    @property
    def spread_s(self) -> tuple[float, float]:
        """Between which of the steps drawn eight of ten lie."""
        low, high = np.quantile(self.steps_s, [0.1, 0.9])
        return float(low), float(high)

    @property
    def stage_layers(self) -> tuple[int, ...]:
        """Layers of each stage."""
        layers = self.stages.layers[self.plan.position]
        return tuple(layers.reshape(self.plan.num_stages, self.plan.num_chunks).sum(axis=1).tolist())

    @property
    def in_flight(self) -> tuple[float, ...]:
        """By stage: micro-batches whose activations are held at the fullest moment."""
        held = self.plan.in_flight() * self.plan.num_stages / self.plan.num_parts  # chunks to micro-batches
        return tuple(held.tolist())

    @property
    def exposed_s(self) -> float:
        """Exchange that nothing hides."""
        return self.parts.exchange_s + self.parts.messages_s + self.parts.data_s + self.gathering_s

    @property
    def gathering_s(self) -> float:
        """What kernels wait for fully sharded parameters and their gradients, which move with every micro-batch."""
        return max(0.0, self.parts.beside_s) if self.stages.gathered_s else 0.0

    @property
    def is_checked(self) -> bool:
        """Whether closed form and simulation compute something each in its way.

        Without stages that is who is slow, and what moves beside the kernels once a step: of ranks that share
        parameters, or between copies of a state.  Fully sharded parameters wait by one rule that both share.
        """
        work = self.stages.work
        return self.plan.num_stages > 1 or self.stragglers.any or bool((work.gather_s + work.reduce_s).any())

    @property
    def tokens_per_s(self) -> float:
        return self.job.batch_tokens / self.step_s

    @property
    def chip_tokens_per_s(self) -> float:
        return self.tokens_per_s / self.cluster.num_chips

    @property
    def band_s(self) -> tuple[float, float]:
        """Between which steps eight of ten measured ones are expected."""
        low, high = step_band(self.job, self.cluster, self.framework)
        return self.step_s * low, self.step_s * high

    @property
    def bubble_fraction(self) -> float:
        return self.parts.bubble_s / self.step_s

    @property
    def closed_difference_fraction(self) -> float:
        """How far the closed form is from what was simulated."""
        return self.closed_parts.step_s / self.step_s - 1.0

    @cached_property
    def data_choices(self) -> tuple[Choice, ...]:
        """What NCCL runs for gradients and parameters."""
        return data_choices(self.job, self.cluster, Space.of(self.layout), self.framework)

    @property
    def num_hosts(self) -> int:
        """Hosts that the chips stand in: nodes of eight, trays of four in an NVL72."""
        return -(-self.layout.num_chips // self.cluster.num_host_chips)

    @property
    def num_slow_hosts(self) -> int:
        return num_slow(self.stragglers, self.num_hosts)

    @property
    def num_stage_chips(self) -> int:
        """Chips of a replica that do one stage together."""
        return self.layout.tp * self.layout.cp

    @property
    def mfu_fraction(self) -> float:
        """Model FLOPs, attention causal, over the dense peak of the chips at the precision of the products."""
        return self.job.mfu_fraction(self.cluster, self.step_s)

    @property
    def heaviest(self) -> int:
        """The stage with the most work, the first of equals."""
        work = self.stages.work
        each_s = self.plan.num_visits * (work.forward_s + work.input_s + work.weight_s)
        stages_s = each_s.reshape(self.plan.num_stages, -1).sum(axis=1)
        return int(np.argmax(stages_s >= (1.0 - 1e-9) * stages_s.max()))

    @cached_property
    def parts(self) -> Parts:
        """The simulated step on its heaviest stage."""
        stage, stages = self.heaviest, self.stages
        mine = slice(stage * self.plan.num_chunks, (stage + 1) * self.plan.num_chunks)
        visits, position = self.plan.num_visits[mine], self.plan.position[mine]
        layers = float((visits * stages.layers[position]).sum())
        ends = (
            float((visits * (position == 0)).sum()),
            float((visits * (position == self.plan.num_parts - 1)).sum()),
        )
        kernels_s = layers * sum(stages.layer.kernels_s)
        kernels_s += ends[0] * sum(stages.first.kernels_s) + ends[1] * sum(stages.last.kernels_s)
        exchange_s = layers * sum(stages.layer.exchange_s)
        busy_s, free_s = float(self.alone.busy_s[stage]), self.alone.kernels_s
        messages_s = self.num_messages(stage) * stages.work.blocked_s
        opened_s = float(self.alone.start_s[:, 0].min())
        data_s = opened_s + self.alone.makespan_s - free_s + self.data_exposed_s
        optimizer_s, offload_s, fixed_s = stages.optimizer_s, stages.offload_s, self.framework.fixed_s
        alone_s = self.alone.makespan_s + self.data_exposed_s + optimizer_s + offload_s + fixed_s
        return Parts(
            kernels_s=kernels_s,
            redone_s=layers * stages.layer.redone_s,
            uneven_s=layers * stages.layer.uneven_s,
            exchange_s=exchange_s,
            beside_s=_clean(busy_s - kernels_s - exchange_s, busy_s),
            messages_s=messages_s,
            bubble_s=_clean(free_s - opened_s - busy_s - messages_s, free_s),
            data_s=data_s,
            optimizer_s=optimizer_s,
            fixed_s=fixed_s,
            slowest_s=_clean(self.step_s - alone_s, self.step_s),
            offload_s=offload_s,
        )

    @property
    def closed_parts(self) -> Parts:
        """The closed form in the same parts."""
        closed, num_micro = self.closed, float(self.closed.num_micro[0])
        kernels_s = num_micro * float(closed.compute_s[0])
        exchange_s = num_micro * float(closed.tensor_s[0] + closed.expert_s[0])
        messages_s = num_micro * float(closed.pipeline_s[0])
        in_slots_s = num_micro * float(closed.slot_s[0])
        bubble_s = self._closed_bubble()
        alone_s = in_slots_s + float(
            closed.bubble_s[0]
            + closed.data_s[0]
            + closed.optimizer_s[0]
            + closed.offload_s[0]
            + closed.fixed_s[0]
        )
        growth = float(closed.step_s[0]) / alone_s
        total_s = alone_s + bubble_s - float(closed.bubble_s[0])
        return Parts(
            kernels_s=kernels_s,
            redone_s=0.0,
            exchange_s=exchange_s,
            beside_s=_clean(in_slots_s - kernels_s - exchange_s - messages_s, in_slots_s),
            messages_s=messages_s,
            bubble_s=bubble_s,
            data_s=float(closed.data_s[0]),
            optimizer_s=float(closed.optimizer_s[0]),
            fixed_s=float(closed.fixed_s[0]),
            slowest_s=(growth - 1.0) * total_s,
            offload_s=float(closed.offload_s[0]),
        )

    @property
    def data_exposed_s(self) -> float:
        """Gradient and parameter exchange that the framework never hides [s]."""
        return self.stages.data_s

    @property
    def hidden_s(self) -> dict[str, float]:
        """Exchange of the heaviest stage that ran beside kernels in one step [s]."""
        parts, stage, work = self.parts, self.heaviest, self.stages.work
        num_micro = float(self.plan.num_micro)
        mine = slice(stage * self.plan.num_chunks, (stage + 1) * self.plan.num_chunks)
        layers = float((self.plan.num_visits[mine] * self.stages.layers[self.plan.position[mine]]).sum())
        whole_data_s = float((work.gather_s + work.reduce_s)[mine].sum()) + self.data_exposed_s
        return {
            "tensor": max(0.0, layers * self.stages.tensor_whole_s - parts.exchange_s),
            "messages": self.num_messages(stage) * (self.stages.message_s - work.blocked_s),
            "data": max(0.0, whole_data_s - parts.data_s),
            "parameters": max(0.0, num_micro * self.stages.gathered_s - parts.beside_s),
        }

    @property
    def all_hidden_s(self) -> float:
        """Exchange of the heaviest stage that ran beside kernels, all kinds together [s]."""
        return sum(self.hidden_s.values())

    def num_messages(self, stage: int) -> int:
        """Messages that a stage sends in a step."""
        places = np.arange(stage * self.plan.num_chunks, (stage + 1) * self.plan.num_chunks)
        count = 0
        for target in (self.plan.before[places], self.plan.after[places]):
            away = (target >= 0) & (target // self.plan.num_chunks != stage)
            count += int(self.plan.num_visits[places][away].sum())
        return count

    def _closed_bubble(self) -> float:
        closed, order = self.closed, self.plan.order
        full_s = float((closed.bubble_s - closed.round_trip_s)[0])
        round_trip_s = float(round_trip_time(closed, Space.of(self.layout), order.name)[0])
        if order.bubble is None:
            return full_s + round_trip_s
        # the mean stage of the closed form, in the shares that forward and both backwards have of an operator's work
        work, pipeline_s = self.stages.work, float(closed.pipeline_s[0])
        shares = np.array([one.mean() for one in (work.forward_s, work.input_s, work.weight_s)])
        mean_s = float(closed.mean_stage_s[0]) * shares / shares.sum()
        return round_trip_s + bubble_time(
            self.plan.name,
            num_stages=self.plan.num_stages,
            forward_s=float(mean_s[0]) + pipeline_s / WAYS,
            input_s=float(mean_s[1]) + pipeline_s / WAYS,
            weight_s=float(mean_s[2]),
        )


def _clean(rest_s: float, whole_s: float) -> float:
    """What is left of a whole, or nothing where that is rounding."""
    return rest_s if abs(rest_s) > 1e-12 * whole_s else 0.0


def simulate_step(
    job: Job,
    cluster: Cluster,
    layout: Layout,
    framework: Framework,
    *,
    order: str = "",
    stragglers: Stragglers = EVEN,
    seed: int = 0,
    num_steps: int = NUM_STEPS,
) -> Execution:
    """Simulate a step; `order` is a schedule's name (default 1F1B, interleaved where there are virtual stages).

    Jitter that is asked for takes the place of what the framework's constants say of it.
    """
    name = order or usual_order(layout.vpp)
    num_micro = layout.num_micro(job.global_batch)
    plan = schedule(name, num_stages=layout.pp, num_micro=num_micro, num_chunks=layout.vpp)
    closed = step_times(job, cluster, Space.of(layout), framework)
    stages = stage_work(job, cluster, layout, framework, plan)
    alone = simulate(plan, stages.work)
    rest_s = stages.data_s + stages.optimizer_s + stages.offload_s + framework.fixed_s
    growth = (
        1.0 if stragglers.jitter_fraction else 1.0 + framework.jitter * math.log(max(1, cluster.num_chips))
    )
    steps_s, slowest, num_simulated = [], alone, 1
    for step in range(num_steps if stragglers.jitter_fraction else 1):
        speeds = stage_speeds(
            stragglers,
            num_replicas=layout.dp,
            num_stages=layout.pp,
            num_chips=layout.tp * layout.cp,
            num_host_chips=cluster.num_host_chips,
            seed=seed,
            step=step,
        )
        worst, count = _slowest_replica(plan, stages, alone, speeds)
        num_simulated += count
        slowest = worst if step == 0 else slowest
        steps_s.append((worst.makespan_s + rest_s) * growth)
    return Execution(
        job=job,
        cluster=cluster,
        layout=layout,
        framework=framework,
        stragglers=stragglers,
        plan=plan,
        stages=stages,
        closed=closed,
        alone=alone,
        slowest=slowest,
        steps_s=np.array(steps_s),
        num_simulated=num_simulated,
    )


def _slowest_replica(
    plan: Schedule, stages: StageWork, alone: Simulated, speeds: Floats
) -> tuple[Simulated, int]:
    """The replica that ends last.

    A replica whose slowest stage takes f times as long ends before f times the replica without stragglers, so
    replicas are simulated from the highest bound down until no bound is above the slowest found.
    """
    distinct = np.unique(speeds, axis=0)
    bounds = alone.makespan_s * np.maximum(1.0, distinct.max(axis=1))
    worst, count, num_runs = alone, 0, int((bounds > alone.makespan_s).sum())
    found_s = alone.makespan_s if bool((distinct >= 1.0).all()) else 0.0
    for which in np.argsort(-bounds, kind="stable").tolist():
        if bounds[which] <= found_s:
            break
        run = simulate(plan, stages.work, distinct[which], num_runs=num_runs)
        count += 1
        if run.makespan_s > found_s:
            worst, found_s = run, run.makespan_s
    return worst, count
