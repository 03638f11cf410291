"""Which inputs a collective, or the network under groups of chips, was given for nothing."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from datahall.catalog import Catalog
from datahall.cluster import left_out
from datahall.cluster.cluster import Cluster, cluster_of, stands_on_torus
from datahall.cluster.collective import CollectiveTime
from datahall.cluster.groups import machine_times
from datahall.cluster.joined import Joined
from datahall.cluster.network import DOMAIN
from datahall.cluster.wiring import Wiring
from datahall.counted import with_article
from datahall.fabric.collectives.algorithms.table import times
from datahall.fabric.collectives.choice import Choice, collective_times
from datahall.fabric.collectives.crossing import crossed, floor_s
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
    """Inputs without which a collective takes as long, and why; `level` and `only` are what it was asked with."""
    choice = found.choice
    reasons = {} if choice.moves.is_sized else {"size": f"{with_article(choice.collective)} moves one number"}
    if not cluster.system.torus:
        reasons |= _of_version(cluster.system, choice)
    told_s = _told_s(cluster.system, found, only)
    network = left_out.same_without(
        cluster,
        wiring,
        catalog,
        lambda other: _told_s(other.system, found, only) == told_s,
        level=level,
        in_order=True,
    )
    if choice.num_ranks <= cluster.num_domain and not cluster.system.torus:
        why = f"all {choice.num_ranks:,} chips are in one scale-up domain"
        return reasons | dict.fromkeys(network, why)
    return reasons | network


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


def idle_inputs_of_groups(
    wiring: Wiring, groups: Sequence[Joined], catalog: Catalog, *, searched: bool = False
) -> dict[str, str]:
    """Inputs of the network that change nothing because no group crosses what they are about, and why.

    `searched`: groups were looked for, so that a smaller domain would have left out some of them.
    """
    first, *others = (_not_crossed(wiring, group, catalog, searched=searched) for group in groups)
    return dict.fromkeys((name for name in first if all(name in one for one in others)), _why(groups))


def _why(groups: Sequence[Joined]) -> str:
    if all(group.span <= 1 for group in groups):
        return "no chip exchanges anything with another"
    if all(group.system is None or group.span <= group.system.num_domain for group in groups):
        return "no group of chips leaves its scale-up domain"
    return "no group of chips crosses a place that it would make narrower"


def _not_crossed(wiring: Wiring, group: Joined, catalog: Catalog, *, searched: bool) -> tuple[str, ...]:
    chip, system, span, ports, switched = group
    if system is None:
        return ("domain",) if ports else ("domain", "nic")
    if system.torus:  # its links are the network
        return ()
    usual = cluster_of(chip, 1, catalog=catalog).system
    leaves, narrow = span > system.num_domain, crossed(system, span)
    same_domain = not leaves and span <= usual.num_domain
    if searched and system.num_domain < usual.num_domain:
        same_domain = False
    same_port = not ports or system.nic_bytes_per_s == usual.nic_bytes_per_s
    idle = {
        "on": same_domain
        and same_port
        and not left_out.brings_chip(wiring, chip, catalog)
        and (switched or not stands_on_torus(chip)),
        "domain": same_domain,
        "nic": not leaves and not ports,
        "oversubscription": not any(cut.name != DOMAIN for cut in narrow),
        "failure": not ports
        and all(cut.left_fraction == 1.0 for cut in narrow)
        and system.scale_up_bytes_per_s >= usual.scale_up_bytes_per_s,
    }
    return tuple(name for name, is_idle in idle.items() if is_idle)
