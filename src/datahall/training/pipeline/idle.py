"""Which inputs of the network a step was given for nothing: it takes as long without them."""

from __future__ import annotations

import msgspec

from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster, cluster_from
from datahall.cluster.wiring import Wiring, each_left_out
from datahall.errors import DatahallError
from datahall.training.layout.columns import Space
from datahall.training.pipeline.execution import Execution, simulate_step
from datahall.training.step.step import step_times


def machines_without(cluster: Cluster, wiring: Wiring, catalog: Catalog) -> dict[str, Cluster]:
    """By name, the machine without each input that was given; those that could not be built so are left out."""
    found = {}
    for name, less in each_left_out(wiring).items():
        if name == "failure" and cluster.system.torus:
            continue  # what failed links of a torus do to a step is said apart
        design = msgspec.structs.replace(less.design, chips=cluster.num_chips)
        try:
            other = cluster_from(design, catalog, failures=less.failures)
        except DatahallError:
            continue
        if other.chip.name == cluster.chip.name:
            found[name] = other
    return found


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
