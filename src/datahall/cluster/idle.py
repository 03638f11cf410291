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
from datahall.fabric.collectives import nccl
from datahall.fabric.collectives.choice import Choice, collective_times
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
    reasons = {"size": "a barrier moves one number"} if found.choice.collective == "barrier" else {}
    if not cluster.system.torus:
        reasons |= _of_version(cluster.system, found.choice)
    time_s = _time_s(cluster.system, found.choice, only)
    unfelt = without.unfelt(
        cluster,
        wiring,
        catalog,
        lambda other: _time_s(other.system, found.choice, only) == time_s,
        level=level,
    )
    if found.choice.num_ranks <= cluster.num_domain and not cluster.system.torus:
        why = f"all {found.choice.num_ranks:,} chips are in one scale-up domain"
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
    return set(nccl.times(system, choice.collective, np.array([choice.size_bytes]), choice.num_ranks))


def _time_s(system: System, choice: Choice, only: tuple[str, ...]) -> float:
    size = np.array([choice.size_bytes])
    if system.torus:
        return float(machine_times(system, choice.collective, size, choice.num_ranks)[0])
    filled = system.filled(choice.num_ranks)
    return float(collective_times(filled, choice.collective, size, choice.num_ranks, only=only)[0][0])
