"""Memory of every stage of a simulated step: the closed form's peak with the activations that the schedule holds."""

from __future__ import annotations

import msgspec

from datahall.training.memory.bookkeeping import Bookkeeping
from datahall.training.memory.peak import stage_memories
from datahall.training.pipeline.execution import Execution


class StepMemory(msgspec.Struct, frozen=True, kw_only=True):
    """What a chip of each stage takes at its fullest [B]."""

    by_stage_bytes: tuple[float, ...]
    limit_bytes: float

    @property
    def most_bytes(self) -> float:
        return max(self.by_stage_bytes)

    @property
    def headroom_bytes(self) -> float:
        return self.limit_bytes - self.most_bytes

    @property
    def fits(self) -> bool:
        return self.headroom_bytes >= 0


def step_memory(run: Execution, books: Bookkeeping) -> StepMemory:
    """Peak memory of a chip on every stage; stages alike differ in what is in flight."""
    found = stage_memories(run.job, run.cluster.chip, run.layout, books, schedule=run.plan.name)
    held = run.plan.in_flight()
    taken: list[float] = []
    for one in found:
        activations = float(one.memory.activation_bytes[0])
        grows = float(one.memory.reserved_bytes[0] / one.memory.allocated_bytes[0])
        for stage in range(one.run.first, one.run.last + 1):
            fewer = activations * (1.0 - float(held[stage] / held[one.run.first]))
            taken.append(float(one.memory.total_bytes[0]) - grows * fewer)
    return StepMemory(by_stage_bytes=tuple(taken), limit_bytes=float(found[0].memory.limit_bytes))
