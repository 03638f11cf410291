"""Which inputs a collective was given for nothing: its time is the same without them."""

from __future__ import annotations

import msgspec
import numpy as np

from datahall.catalog import Catalog
from datahall.cluster import without
from datahall.cluster.cluster import Cluster
from datahall.cluster.collective import CollectiveTime
from datahall.cluster.groups import machine_times
from datahall.cluster.wiring import Wiring
from datahall.counted import with_article
from datahall.fabric.collectives.algorithms.table import times
from datahall.fabric.collectives.choice import Choice, collective_times
from datahall.fabric.collectives.crossing import floor_s
from datahall.fabric.collectives.system import DEFAULT_VERSION, System


def idle_inputs(
    cluster: Cluster,
    found: CollectiveTime,
    wiring: Wiring,
    catalog: Catalog,
    *,
    level: str | None = None,
    only: tuple[str, ...] = (),
) -> dict[str, str]:
    """Inputs that change nothing of a time, and why; `level` and `only` are what it was asked with."""
    choice = found.choice
    reasons = {} if choice.moves.is_sized else {"size": f"{with_article(choice.collective)} moves one number"}
    if not cluster.system.torus:
        reasons |= _of_version(cluster.system, choice)
    told_s = _told_s(cluster.system, found, only)
    unfelt = without.unfelt(
        cluster,
        wiring,
        catalog,
        lambda other: _told_s(other.system, found, only) == told_s,
        level=level,
        in_order=True,
    )
    if choice.num_ranks <= cluster.num_domain and not cluster.system.torus:
        why = f"all {choice.num_ranks:,} chips are in one scale-up domain"
        return reasons | dict.fromkeys(unfelt, why)
    return reasons | unfelt


def _of_version(system: System, choice: Choice) -> dict[str, str]:
    usual = msgspec.structs.replace(system, version=DEFAULT_VERSION)
    if _pairs(usual, choice) != _pairs(system, choice):
        return {}
    name = f"NCCL {'.'.join(map(str, DEFAULT_VERSION))}"
    if system.version == DEFAULT_VERSION:
        return {"version": f"{name} is taken without it"}
    if system.version > DEFAULT_VERSION:
        return {"version": f"{name} is the newest whose choices are known, and stands for it"}
    return {"version": f"{name} has the same algorithms for it"}


def _pairs(system: System, choice: Choice) -> set[tuple[str, str]]:
    """The algorithms and protocols that NCCL has for a collective."""
    return set(times(system, choice.collective, np.array([choice.size_bytes]), choice.num_ranks))


def _told_s(system: System, found: CollectiveTime, only: tuple[str, ...]) -> tuple[float, float]:
    """The time, and the low end of its band [s], which a narrow place may hold up where the time is longer."""
    choice = found.choice
    size = np.array([choice.size_bytes])
    filled = system.filled(choice.num_ranks)
    algorithm = None
    if system.torus:
        time_s = float(machine_times(system, choice.collective, size, choice.num_ranks)[0])
    else:
        took, pairs = collective_times(filled, choice.collective, size, choice.num_ranks, only=only)
        time_s, algorithm = float(took[0]), pairs[0][0]
    floor = floor_s(filled, choice.collective, choice.size_bytes, choice.num_ranks, algorithm)
    return time_s, max(floor, found.ratios[0] * time_s)
