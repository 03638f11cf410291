"""What the chips of a training step draw from moment to moment, stage by stage.

A pipeline's stages do the same work shifted in time, and every replica does what the others do at the same moment.
So one level of power for each span of each stage says what any number of chips draw, at the cost of one replica.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.training.pipeline.execution import Execution
from datahall.training.pipeline.orders import F
from datahall.training.pipeline.schedule import EMPTY

Floats = NDArray[np.float64]
# what a chip does in a span
FORWARD, BACKWARD, WAIT, EXCHANGE, OPTIMIZER, HOST, ONCE, SLOWEST = STEP_PHASES = (
    "forward", "backward", "waiting in the pipeline", "gradients and parameters", "optimizer", "traffic to the host",
    "once a step", "waiting for the slowest rank",
)  # fmt: skip


class Span(NamedTuple):
    """A chip in one phase."""

    phase: str
    start_s: float
    end_s: float


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Chips that do the same at the same time: spans without gaps, from 0 to the end of the step."""

    name: str
    num_chips: float  # not whole where stages share what is left over
    spans: tuple[Span, ...]


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """One step of all its chips."""

    step_s: float
    groups: tuple[Group, ...]

    @property
    def num_chips(self) -> float:
        return sum(group.num_chips for group in self.groups)

    def times_s(self) -> dict[str, float]:
        """How long a chip is in each phase, in the mean over the chips."""
        spent = dict.fromkeys(STEP_PHASES, 0.0)
        for group in self.groups:
            for phase, start_s, end_s in group.spans:
                spent[phase] += (end_s - start_s) * group.num_chips / self.num_chips
        return {phase: time_s for phase, time_s in spent.items() if time_s > 0}

    def mean_w(self, levels_w: Mapping[str, float]) -> float:
        """Mean power of a chip whose phases draw so much each [W]."""
        return sum(levels_w[phase] * time_s for phase, time_s in self.times_s().items()) / self.step_s


def step_timeline(run: Execution) -> Timeline:
    """The spans of every stage of a simulated step, the slowest replica's, for all chips of the layout."""
    groups = tuple(
        Group(
            name=f"stage {stage}",
            num_chips=run.layout.num_chips / run.plan.num_stages,
            spans=tuple(_filled(_stage_spans(run, stage), run.step_s)),
        )
        for stage in range(run.plan.num_stages)
    )
    return Timeline(step_s=run.step_s, groups=groups)


def _stage_spans(run: Execution, stage: int) -> list[Span]:
    """What a stage does, in order of time; nothing is said of where it waits in its pipeline."""
    done, plan = run.slowest, run.plan
    mine = slice(stage * plan.num_chunks, (stage + 1) * plan.num_chunks)
    spans: list[Span] = []
    free_s = 0.0
    for slot in np.flatnonzero(plan.kind[stage] != EMPTY).tolist():
        start_s, end_s = float(done.start_s[stage, slot]), float(done.end_s[stage, slot])
        if start_s < free_s:  # the second of two that run as one
            continue
        spans.append(Span(FORWARD if plan.kind[stage, slot] == F else BACKWARD, start_s, end_s))
        free_s = end_s
    gathered_s = float(done.gathered_s[mine].max(initial=0.0))
    if spans:
        spans.insert(0, Span(EXCHANGE, 0.0, min(gathered_s, spans[0].start_s)))
    reduced_s = float(done.reduced_s[mine].max(initial=0.0))
    if reduced_s > free_s:
        spans.append(Span(EXCHANGE, free_s, reduced_s))
    at_s = done.makespan_s
    for phase, time_s in (
        (EXCHANGE, run.data_exposed_s), (OPTIMIZER, run.stages.optimizer_s), (HOST, run.stages.offload_s),
        (ONCE, run.framework.fixed_s),
    ):  # fmt: skip
        spans.append(Span(phase, at_s, at_s + time_s))
        at_s += time_s
    return [*spans, Span(SLOWEST, at_s, max(at_s, run.step_s))]


def _filled(spans: list[Span], step_s: float) -> list[Span]:
    """The same with waiting where nothing was said, cut to the step."""
    found: list[Span] = []
    at_s = 0.0
    for phase, start_s, end_s in spans:
        if start_s > at_s:
            found.append(Span(WAIT, at_s, min(start_s, step_s)))
        if min(end_s, step_s) > max(start_s, at_s):
            found.append(Span(phase, max(start_s, at_s), min(end_s, step_s)))
        at_s = max(at_s, min(end_s, step_s))
    return found
