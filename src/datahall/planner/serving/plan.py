"""The plan of a service: on each kind of chip the least hardware that keeps the latency limits at the load asked."""

from __future__ import annotations

from typing import NamedTuple

from datahall.planner.plan import Alternative, Plan
from datahall.planner.serving.apart import Apart
from datahall.planner.serving.candidate import Candidate, Proposal
from datahall.planner.serving.demand import Demand
from datahall.planner.serving.mixed.mixture import Mixture
from datahall.planner.serving.money.cost import Served
from datahall.planner.serving.think import Pace


class Lost(Alternative[Candidate], frozen=True, kw_only=True):
    """A candidate that is not the best of its chip."""

    num_more: int  # chips than the best has; below 0: fewer in closed form, though not when simulated
    more_fraction: float | None = None  # of the objective than the best has; None where nobody knows


class Rival(NamedTuple):
    """The best of another chip beside the chosen one."""

    candidate: Candidate
    value: float | None  # of the objective; None where nobody knows
    more_fraction: float | None  # of the objective than the chosen one
    served: Served | None  # as it is bought; None where nobody prices it
    flip_usd_per_hour: (
        float | None
    )  # of its chip: below it costs less than the chosen one; None: it never does
    why_not: str = ""  # nobody prices it


class Alike(NamedTuple):
    """A candidate that was simulated and keeps the limits, by what plans are chosen by."""

    candidate: Candidate
    cost_usd: float | None  # of a month
    latency_s: float  # of an answer at the percentile, with the headroom used up
    energy_j: float | None  # of a day
    on_front: bool  # no other is better in one of the three and as good in the others


class ServingPlan(Plan[Candidate], frozen=True, kw_only=True):
    """The best of all; `best` has that of each kind of chip, the chosen one at the head."""

    chosen: Proposal
    alternatives: tuple[Lost, ...] = ()
    best: tuple[Proposal, ...]
    kept: tuple[Candidate, ...] = ()  # all that were simulated and keep the limits
    num_candidates: int  # that keep the limits in closed form
    value: float | None = None  # of the objective, that the chosen one takes; None where nobody knows
    served: tuple[
        Served, ...
    ] = ()  # the best of each chip as it is bought, those that nobody prices left out
    rivals: tuple[Rival, ...] = ()  # the best of each other chip, best first
    weighed: tuple[Alike, ...] = ()  # those that were simulated, cheapest first
    is_weighed_apart: bool = False  # prompts and answers on replicas of their own
    apart: tuple[Apart, ...] = ()  # the least of each chip so, what keeps the limits first; empty: none does
    mixture: Mixture | None = None  # of several kinds, which was weighed and does not win
    mixture_more_fraction: float | None = None  # of the objective than the chosen one
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
