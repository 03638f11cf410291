"""One layout on so many chips, as a plan weighs it: its step in closed form, as simulated where it was, its memory."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

import msgspec

from datahall.training.layout.layout import Layout
from datahall.training.layout.search import Search, front
from datahall.training.pipeline.execution import Execution

NUM_SIMULATED = 3  # of a ranking, at least
# Two layouts of one run that are predicted within a tenth of each other: by so much half of the measured pairs fall
# from what is predicted of them (954 pairs of the ledger); nearer ones cannot be told apart.
TOLD_APART = 0.035
AMPLE_FREE = 0.2  # of a chip's memory: more of it makes no layout safer


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


class Chosen(Candidate, frozen=True, kw_only=True):
    """The one that is chosen: it was simulated."""

    execution: Execution

    @property
    def difference_fraction(self) -> float:
        """How far the closed form is from what was simulated."""
        return self.closed_step_s / self.execution.step_s - 1.0


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


def chosen_at(found: Search, place: int, execution: Execution) -> Chosen:
    """The candidate at a place of a ranking, which was simulated and is chosen."""
    return Chosen(**msgspec.structs.asdict(closed_form(found, place, execution)))


def simplest(found: Search, steps_s: Mapping[int, float], within_s: float = inf) -> int:
    """Of places in a ranking whose steps are as fast as can be told, the one to take: tensor parallelism inside a
    domain, then free memory while it is scarce.

    Where some of them take no more than `within_s` for a step, one of those.
    """
    near = [
        place for place, step_s in steps_s.items() if step_s <= (1.0 + TOLD_APART) * min(steps_s.values())
    ]
    in_time = [place for place in near if steps_s[place] <= within_s]

    def complexity(place: int) -> tuple[bool, float, float]:
        free = float(found.memory.headroom_bytes[found.order[place]]) / found.memory.limit_bytes
        return leaves_domain(found, place), -min(free, AMPLE_FREE), steps_s[place]

    return min(in_time or near, key=complexity)


def leaves_domain(found: Search, place: int) -> bool:
    """Whether tensor parallelism crosses from one scale-up domain into another."""
    return bool(found.space.tp[found.order[place]] > max(1, found.cluster.num_domain))


def front_of(found: Search, most: int) -> tuple[Candidate, ...]:
    """The fastest layouts of those that no other beats in both time and memory."""
    return tuple(closed_form(found, int(place)) for place in front(found)[:most])
