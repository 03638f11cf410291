"""One layout on so many chips, as a plan weighs it: its step in closed form, as simulated where it was, its memory."""

from __future__ import annotations

import msgspec

from datahall.training.layout.layout import Layout
from datahall.training.layout.search import Search, front
from datahall.training.pipeline.execution import Execution


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A layout that fits."""

    layout: Layout
    num_chips: int
    place: int  # in the ranking of its search
    closed_step_s: float
    memory_bytes: float  # of the fullest chip
    headroom_bytes: float
    closed_parts_s: dict[str, float] = {}  # what the closed form's step is made of
    execution: Execution | None = None  # event by event, where it was simulated

    @property
    def step_s(self) -> float:
        """As simulated, or in closed form where it was not."""
        return self.closed_step_s if self.execution is None else self.execution.step_s

    @property
    def difference_fraction(self) -> float | None:
        """How far the closed form is from what was simulated; None where nothing was."""
        return None if self.execution is None else self.closed_step_s / self.execution.step_s - 1.0


def closed_form(found: Search, place: int, execution: Execution | None = None) -> Candidate:
    """The candidate at a place of a ranking, with its simulation if there is one."""
    row = int(found.order[place])
    return Candidate(
        layout=found.space.row(row),
        num_chips=found.cluster.num_chips,
        place=place,
        closed_step_s=float(found.step_s[row]),
        memory_bytes=float(found.memory.total_bytes[row]),
        headroom_bytes=float(found.memory.headroom_bytes[row]),
        closed_parts_s=found.parts(place),
        execution=execution,
    )


def front_of(found: Search, most: int) -> tuple[Candidate, ...]:
    """The fastest layouts of those that no other beats in both time and memory."""
    return tuple(closed_form(found, int(place)) for place in front(found)[:most])
