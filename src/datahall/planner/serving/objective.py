"""How candidates are ranked: by how much of an objective each takes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from datahall.planner.plan import FEWEST_CHIPS, Objective
from datahall.planner.serving.candidate import Candidate


class Aim(msgspec.Struct, frozen=True):
    """An objective, and how much of it a candidate takes; infinite where nobody knows."""

    objective: Objective
    value: Callable[[Candidate], float]

    def key(self, candidate: Candidate) -> tuple[float, int]:
        """What candidates are ranked by: what nobody knows comes last, and of equals the one on fewer chips first.

        Two bills of one sum are added up in another order, and so differ in the last digits of a float.
        """
        return float(f"{self.value(candidate):.10g}"), candidate.num_chips

    def most(self, candidate: Candidate, below: Candidate) -> int:
        """The most replicas with which a candidate is better than another; 0: with none that may keep the limits."""
        limit, few = self.key(below), candidate.num_bound
        most = max(few, 2 * candidate.num_replicas, 1 + below.num_chips // candidate.replica.num_chips)
        if self.key(_times(candidate, few)) >= limit:
            return 0
        while few < most:
            middle = (few + most + 1) // 2
            few, most = (middle, most) if self.key(_times(candidate, middle)) < limit else (few, middle - 1)
        return few


CHIPS = Aim(FEWEST_CHIPS, lambda candidate: float(candidate.num_chips))


def _times(candidate: Candidate, count: int) -> Candidate:
    return msgspec.structs.replace(candidate, num_replicas=count)
