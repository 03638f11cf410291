"""Which inputs of the network a step was given for nothing: it takes as long without them."""

from __future__ import annotations

from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster
from datahall.cluster.wiring import Wiring
from datahall.cluster.without import machines_without
from datahall.errors import DatahallError
from datahall.training.layout.columns import Space
from datahall.training.pipeline.execution import Execution, simulate_step
from datahall.training.step.step import step_times


def unfelt(run: Execution, wiring: Wiring, catalog: Catalog, *, seed: int = 0) -> dict[str, bool]:
    """Inputs without which the step takes as long, and whether the machine is the same without each."""
    found = {}
    for name, other in machines_without(run.cluster, wiring, catalog).items():
        if other.system == run.cluster.system:
            found[name] = True
        elif _takes_as_long(run, other, seed):
            found[name] = False
    return found


def _takes_as_long(run: Execution, other: Cluster, seed: int) -> bool:
    try:
        closed = step_times(run.job, other, Space.of(run.layout), run.framework)
    except DatahallError:
        return False  # nothing joins what exchanges
    if closed.step_s[0] != run.closed.step_s[0]:
        return False
    again = simulate_step(
        run.job,
        other,
        run.layout,
        run.framework,
        order=run.plan.name,
        stragglers=run.stragglers,
        seed=seed,
    )
    return again.step_s == run.step_s
