"""Which inputs of the network a step was given for nothing: it takes as long without them."""

from __future__ import annotations

from collections.abc import Callable

from datahall.catalog import Catalog
from datahall.cluster import left_out
from datahall.cluster.cluster import Cluster
from datahall.cluster.wiring import Wiring
from datahall.training.layout.columns import Space
from datahall.training.pipeline.execution import Execution, simulate_step
from datahall.training.step.step import step_times

AS_LONG = "the step takes as long otherwise"


def idle_inputs(run: Execution, wiring: Wiring, catalog: Catalog, *, seed: int = 0) -> dict[str, str]:
    """Inputs without which the simulated step takes as long, each with why."""
    return idle_inputs_of_step(run.cluster, wiring, catalog, lambda other: _takes_as_long(run, other, seed))


def idle_inputs_of_step(
    cluster: Cluster, wiring: Wiring, catalog: Catalog, as_long: Callable[[Cluster], bool]
) -> dict[str, str]:
    """Inputs without which the machine is the same, or another on which the step takes `as_long`."""
    found = left_out.same_without(cluster, wiring, catalog, as_long, otherwise=AS_LONG)
    if cluster.system.torus:
        found.pop("failure", None)  # what failed links of a torus do to a step is said apart
    return found


def _takes_as_long(run: Execution, other: Cluster, seed: int) -> bool:
    closed = step_times(run.job, other, Space.of(run.layout), run.framework)
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
