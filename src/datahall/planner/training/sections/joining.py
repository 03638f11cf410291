"""What chips of another kind add to a run, against leaving them idle: all in closed form."""

from __future__ import annotations

from functools import cached_property

import msgspec

from datahall.breakdown import Breakdown, derived, modelled, product, total
from datahall.cluster.cluster import Cluster
from datahall.errors import InfeasibleError, ScenarioError
from datahall.planner.training.plan import TrainingPlan
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.wanted.candidates import Candidates
from datahall.training.layout.space import Options
from datahall.training.mixed.joined import Joined, joined
from datahall.training.setup import machine_of

ON = "closed form, of all chips as if they were of its kind"


class Joining(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The chips of a plan and others beside them as one run; none where they cannot run together."""

    others: tuple[tuple[str, int], ...]
    found: Joined | None
    why_not: str = ""
    alone_s: float  # a step of the plan without them, in closed form

    @property
    def gain_ratio(self) -> float | None:
        """How many times as fast it is with them, split in proportion."""
        return None if self.found is None else self.alone_s / self.found.step_s

    @property
    def even_gain_ratio(self) -> float | None:
        """And with the batch split evenly."""
        return None if self.found is None else self.alone_s / self.found.even_s

    @cached_property
    def figures(self) -> tuple[Breakdown, ...]:
        """step = (micro-batches of the kind that is done last + once a step + exchange) × slowest rank."""
        if self.found is None:
            return ()
        last = self.found.last
        chips = derived("chips of its kind", last.num_chips, "count")
        busy = product(
            f"micro-batches of {last.chip}",
            (
                derived(
                    "micro-batches of a replica",
                    last.num_micro,
                    "count",
                    "in proportion to speed, whole ones",
                ),
                modelled("a micro-batch", last.replicas.slot_s, "s", ON, chips),
            ),
            "s",
        )
        once = modelled("once a step", last.replicas.once_s, "s", ON, chips)
        every = derived("chips of all kinds", sum(one.num_chips for one in self.found.parts), "count")
        moved = modelled("exchange between replicas", self.found.data_s, "s", "on the slower network", every)
        waited = modelled("slowest rank of all", self.found.slowest_ratio, "ratio", ON, every)
        return (product("step with all of them", (total("step", (busy, once, moved)), waited), "s"),)


def with_joining(plan: TrainingPlan, scenario: Scenario, options: Options) -> TrainingPlan:
    """The plan with what the chips add that can be had beside it; as it is where nobody says that there are any."""
    others = scenario.one(Candidates).available
    if not others:
        return plan
    counts = {plan.cluster.chip.name: plan.num_asked, **dict(others)}
    found, why = None, "no layout divides the chips of each kind, and fits on all"
    if scenario.one(FabricDesign).topology:
        why = "the fabric that is asked for joins one kind of chip"
    else:
        try:
            clusters = [_machine(scenario, name, sum(counts.values())) for name in counts]
            found = joined(plan.job, clusters, tuple(counts.values()), plan.search.framework, options)
        except (InfeasibleError, ScenarioError) as error:
            why = error.message
    return plan.with_section(
        Joining(
            others=others,
            found=found,
            why_not="" if found is not None else why,
            alone_s=plan.execution.closed_parts.step_s,
        )
    )


def _machine(scenario: Scenario, name: str, num_chips: int) -> Cluster:
    design = msgspec.structs.replace(scenario.one(FabricDesign), chip=name, chips=None)
    return machine_of(scenario.having(design))(num_chips)
