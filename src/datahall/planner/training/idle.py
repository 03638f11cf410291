"""Which inputs of the network a plan was given for nothing: it chooses the same layout without them, as fast."""

from __future__ import annotations

import msgspec

from datahall.catalog import Catalog
from datahall.cluster.wiring import Wiring
from datahall.cluster.without import machines_without
from datahall.planner.training.plan import TrainingPlan


def unfelt(plan: TrainingPlan, wiring: Wiring, catalog: Catalog) -> dict[str, bool]:
    """Inputs without which the plan is the same, and whether the machine is the same without each.

    A machine that differs in its narrow places alone lies between this one and one with full bisection, so that where
    the plan is the same on both of them it is on that one too.
    """
    here, wide = plan.cluster.system, plan.full_bisection
    alike = wide is None or (wide.layout == plan.layout and wide.step_s == plan.step_s)
    found = {}
    for name, other in machines_without(plan.cluster, wiring, catalog).items():
        if other.system == here:
            found[name] = True
        elif alike and msgspec.structs.replace(other.system, cuts=here.cuts) == here:
            found[name] = False
    return found
