"""Which inputs of the network a plan was given for nothing: it chooses the same layout without them, as fast."""

from __future__ import annotations

import msgspec

from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster
from datahall.cluster.wiring import Wiring
from datahall.planner.training.plan import TrainingPlan
from datahall.training.pipeline.idle import idle_inputs_of_step


def idle_inputs(plan: TrainingPlan, wiring: Wiring, catalog: Catalog) -> dict[str, str]:
    """Inputs without which the plan is the same, each with why.

    A machine that differs in its narrow places alone lies between this one and one with full bisection, so that where
    the plan is the same on both of them it is on that one too.
    """
    here, wide = plan.cluster.system, plan.full_bisection
    alike = wide is None or (wide.layout == plan.layout and wide.step_s == plan.step_s)

    def as_long(other: Cluster) -> bool:
        return alike and msgspec.structs.replace(other.system, cuts=here.cuts) == here

    return idle_inputs_of_step(plan.cluster, wiring, catalog, as_long)
