"""The plan of a service: on each kind of chip the least hardware that keeps the latency limits at the load asked."""

from __future__ import annotations

from datahall.planner.plan import Alternative, Objective, Plan
from datahall.planner.serving.apart import Apart
from datahall.planner.serving.candidate import Candidate, Proposal
from datahall.planner.serving.demand import Demand
from datahall.planner.serving.think import Pace

FEWEST_CHIPS = Objective("chips", "count")


class Lost(Alternative[Candidate], frozen=True, kw_only=True):
    """A candidate that is not the best of its chip."""

    num_more: int  # chips than the best has; below 0: fewer in closed form, though not when simulated


class ServingPlan(Plan[Candidate], frozen=True, kw_only=True):
    """The best of all; `best` has that of each kind of chip, fewest chips first, the chosen one at the head."""

    chosen: Proposal
    alternatives: tuple[Lost, ...] = ()
    best: tuple[Proposal, ...]
    num_candidates: int  # that keep the limits in closed form
    is_weighed_apart: bool = False  # prompts and answers on replicas of their own
    apart: tuple[Apart, ...] = ()  # the least of each chip so, what keeps the limits first; empty: none does
    paces: tuple[Pace, ...] = ()  # of users who pause for longer or shorter, shortest first; empty: no users

    @property
    def num_more_apart(self) -> int:
        """Chips that the least of those takes more than the one that was chosen; below 0: fewer."""
        return self.apart[0].num_chips - self.chosen.num_chips

    @property
    def demand(self) -> Demand:
        return self.chosen.demand

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The best of each chip, and those that lost to them."""
        return (*self.best, *(lost.candidate for lost in self.alternatives))
